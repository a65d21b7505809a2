# role: destroy
# problem: tsp
# expect: crash
# why: a module in place of the generator of numbers
import lns


def destroy(dist, current_tour, steps_since_improvement, rng):
    lns.random_removal(current_tour, 3, lns)
    count = max(1, len(current_tour) // 5)
    return current_tour[count:], current_tour[:count]

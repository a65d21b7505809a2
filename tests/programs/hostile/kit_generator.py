# role: destroy
# problem: tsp
# expect: crash
# why: a generator in place of a list
import lns


def destroy(dist, current_tour, steps_since_improvement, rng):
    lns.remove((v for v in current_tour), [1])
    count = max(1, len(current_tour) // 5)
    return current_tour[count:], current_tour[:count]

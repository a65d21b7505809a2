# role: destroy
# problem: tsp
# expect: crash
# why: a matrix of 70,000 nodes, each row the same tuple
import lns


def destroy(dist, current_tour, steps_since_improvement, rng):
    row = (0.0,) * 70000
    lns.cost((row,) * 70000, current_tour)
    count = max(1, len(current_tour) // 5)
    return current_tour[count:], current_tour[:count]

# role: destroy
# problem: tsp
# expect: rejected
# why: a refused statement behind a semicolon
# reason: os
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    x = 1; y = 2; import os
    return current_tour[count:], current_tour[:count]

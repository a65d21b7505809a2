# role: destroy
# problem: tsp
# expect: rejected
# why: a numpy function's globals
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    import numpy as np
    np.sum.__globals__['os'].mkdir('@TMP@/x')
    return current_tour[count:], current_tour[:count]

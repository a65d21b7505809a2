# role: destroy
# problem: tsp
# expect: ok
# why: an import that may fail
def destroy(dist, current_tour, steps_since_improvement, rng):
    try:
        import numpy as np
    except ImportError:
        np = None
    k = 3 if np is not None else 2
    return current_tour[k:], current_tour[:k]

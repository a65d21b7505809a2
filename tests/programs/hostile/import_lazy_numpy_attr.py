# role: destroy
# problem: tsp
# expect: any-failure
# why: a lazy submodule of numpy
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    import numpy as np
    np.f2py.main()
    return current_tour[count:], current_tour[:count]

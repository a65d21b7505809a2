# role: destroy
# problem: tsp
# expect: rejected
# why: a submodule of a refused module
# reason: os
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    import os.path
    os.path.exists('@TMP@')
    return current_tour[count:], current_tour[:count]

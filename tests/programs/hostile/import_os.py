# role: destroy
# problem: tsp
# expect: rejected
# why: operating system module
# reason: os
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    import os
    os.mkdir('@TMP@/os')
    return current_tour[count:], current_tour[:count]

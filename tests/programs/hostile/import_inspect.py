# role: destroy
# problem: tsp
# expect: rejected
# why: frames
# reason: inspect
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    import inspect
    inspect.currentframe().f_back.f_locals.clear()
    return current_tour[count:], current_tour[:count]

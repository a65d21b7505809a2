# role: destroy
# problem: tsp
# expect: crash
# why: an error whose arguments contain themselves
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    a = []
    a.append(a)
    raise KeyError(a)
    return current_tour[count:], current_tour[:count]

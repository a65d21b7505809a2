# role: destroy
# problem: tsp
# expect: contained
# why: a copy of the generator foresees its draws
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    import copy
    ahead = copy.copy(rng)
    if ahead.random() < 2:
        pass
    return current_tour[count:], current_tour[:count]

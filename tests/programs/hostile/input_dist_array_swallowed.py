# role: destroy
# problem: tsp
# expect: contained
# why: the same on the array
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    try:
        dist[0, 1] = 0.0
    except Exception:
        pass
    return current_tour[count:], current_tour[:count]

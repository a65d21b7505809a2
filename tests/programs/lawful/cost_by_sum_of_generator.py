# role: destroy
# problem: tsp
# expect: ok
# why: a long generator of edges, tour doubled
def destroy(dist, current_tour, steps_since_improvement, rng):
    n = len(current_tour)
    doubled = current_tour * 2
    k = 5
    best = max(range(n), key=lambda i: sum(dist[doubled[i + j]][doubled[i + j + 1]] for j in range(k)))
    removed = doubled[best : best + k]
    gone = dict.fromkeys(removed, True)
    return [v for v in current_tour if not gone.get(v, False)], removed

# role: destroy
# problem: tsp
# expect: ok
# why: a guarded ratio
def destroy(dist, current_tour, steps_since_improvement, rng):
    ratio = {}
    for a, b in zip(current_tour, current_tour[1:]):
        try:
            ratio[b] = dist[a][b] / dist[a][a]
        except ZeroDivisionError:
            ratio[b] = float("inf") if dist[a][b] > 0 else 0.0
    removed = sorted(ratio, key=lambda v: (-ratio[v], v))[:3]
    return [v for v in current_tour if v not in removed], removed

# role: destroy
# problem: tsp
# expect: ok
# why: a helper defined after the main function
def destroy(dist, current_tour, steps_since_improvement, rng):
    removed = _select(dist, current_tour)
    return [c for c in current_tour if c not in removed], removed


def _select(dist, tour):
    far = max(tour, key=lambda v: sum(dist[v]))
    return sorted(tour, key=lambda v, f=far: dist[f][v])[:4]

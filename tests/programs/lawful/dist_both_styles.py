# role: destroy
# problem: tsp
# expect: ok
# why: both ways of reading a distance
def destroy(dist, current_tour, steps_since_improvement, rng):
    a, b = current_tour[0], current_tour[1]
    assert dist[a][b] == dist[a, b] == dist[b][a]
    assert len(dist) == dist.shape[0] == dist.shape[1] == len(current_tour)
    row = dist[a]
    nearest = min((v for v in current_tour if v != a), key=lambda v: row[v])
    removed = [a, nearest]
    return [c for c in current_tour if c not in removed], removed

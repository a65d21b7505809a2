# role: destroy
# problem: tsp
# expect: ok
# why: nested comprehensions with conditions
def destroy(dist, current_tour, steps_since_improvement, rng):
    n = len(current_tour)
    pairs = [(dist[a][b], a, b) for i, a in enumerate(current_tour) if i % 2 == 0
             for j, b in enumerate(current_tour) if j > i if a != b]
    nearest = {a: min(d for d, x, _ in pairs if x == a) for a in {p[1] for p in pairs}}
    matrix = [[1 if a < b else 0 for b in range(3)] for a in range(3)]
    gen = (v for v in nearest if nearest[v] > 0.0)
    removed = sorted(gen, key=nearest.get, reverse=True)[: max(1, n // 5)]
    assert any(any(row) for row in matrix) and all(x in (0, 1) for row in matrix for x in row)
    return [c for c in current_tour if c not in removed], removed

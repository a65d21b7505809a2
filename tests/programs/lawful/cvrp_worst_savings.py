# role: destroy
# problem: cvrp
# expect: ok
# why: worst removal with the depot at the ends
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    gain = {}
    for route in current_routes:
        path = [0] + route + [0]
        for a, b, c in zip(path, path[1:], path[2:]):
            gain[b] = dist[a][b] + dist[b][c] - dist[a][c]
    removed = sorted(gain, key=gain.get, reverse=True)[: max(1, len(gain) // 6)]
    keep = [[c for c in r if c not in removed] for r in current_routes]
    return keep, removed

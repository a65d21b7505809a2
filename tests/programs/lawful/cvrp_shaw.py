# role: destroy
# problem: cvrp
# expect: ok
# why: relatedness with several terms and a normalising maximum
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    scale = max(max(row) for row in dist) or 1.0
    route_of = {c: k for k, r in enumerate(current_routes) for c in r}
    def related(a, b):
        return dist[a][b] / scale + 0.5 * abs(demands[a] - demands[b]) / capacity + (0 if route_of[a] == route_of[b] else 0.2)
    removed = [rng.choice(list(route_of))]
    while len(removed) < 5:
        base = rng.choice(removed)
        pool = sorted((c for c in route_of if c not in removed), key=lambda c: (related(base, c), c))
        removed.append(pool[int(rng.random() ** 4 * len(pool))])
    return [[c for c in r if c not in removed] for r in current_routes], removed

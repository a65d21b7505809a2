# role: destroy
# problem: cvrp
# expect: ok
# why: adjacent strings
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    n = sum(len(r) for r in current_routes)
    limit = max(1, int(0.3 * n))
    seed = rng.choice([c for r in current_routes for c in r])
    where = {c: (i, j) for i, r in enumerate(current_routes) for j, c in enumerate(r)}
    removed, touched = [], set()
    for c in sorted(where, key=lambda x: (dist[seed][x], x)):
        i, j = where[c]
        if i in touched or len(removed) >= limit:
            continue
        touched.add(i)
        size = min(len(current_routes[i]), 3, limit - len(removed))
        start = max(0, min(j, len(current_routes[i]) - size))
        removed += current_routes[i][start : start + size]
    gone = set(removed)
    return [[c for c in r if c not in gone] for r in current_routes], removed

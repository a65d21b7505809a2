"""The operators that G-LNS begins with on the CVRP: three simple destroys and three repairs."""


def destroy_random(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    """Remove a fifth of the customers, drawn uniformly."""
    customers = [node for route in current_routes for node in route]
    removed_customers = rng.sample(customers, max(1, len(customers) // 5))
    gone = set(removed_customers)
    return [[v for v in route if v not in gone] for route in current_routes], removed_customers


def destroy_worst(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    """Remove the customers whose detours are the longest, a fifth of all."""
    detours = []
    for route in current_routes:
        stops = [0, *route, 0]
        for before, node, after in zip(stops, route, stops[2:], strict=False):
            added = dist[before][node] + dist[node][after] - dist[before][after]
            detours.append((-added, len(detours), node))
    removed_customers = [node for _, _, node in sorted(detours)[: max(1, len(detours) // 5)]]
    gone = set(removed_customers)
    return [[v for v in route if v not in gone] for route in current_routes], removed_customers


def destroy_near(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    """Remove a customer that is drawn uniformly and those nearest to it, a fifth of all."""
    customers = [node for route in current_routes for node in route]
    row = dist[rng.choice(customers)]
    removed_customers = sorted(customers, key=lambda node: row[node])[: max(1, len(customers) // 5)]
    gone = set(removed_customers)
    return [[v for v in route if v not in gone] for route in current_routes], removed_customers


def repair_random(
    dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng
):
    """Insert each customer at a random place of a random route that has room for it."""
    routes = [list(route) for route in partial_routes if route]
    for node in removed_customers:
        for r in rng.sample(range(len(routes)), len(routes)):
            if sum(demands[v] for v in routes[r]) + demands[node] <= capacity:
                routes[r].insert(rng.randint(0, len(routes[r])), node)
                break
        else:
            routes.append([node])
    return routes


def repair_cheapest(
    dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng
):
    """Insert each customer in its turn where it costs the least, a route of its own included."""
    routes = [list(route) for route in partial_routes if route]
    for node in removed_customers:
        row = dist[node]
        best_route, best_place, best_added = -1, 0, 2 * row[0]
        for r, route in enumerate(routes):
            if sum(demands[v] for v in route) + demands[node] > capacity:
                continue
            stops = [0, *route, 0]
            for place in range(len(route) + 1):
                before, after = stops[place], stops[place + 1]
                added = row[before] + row[after] - dist[before][after]
                if added <= best_added:
                    best_route, best_place, best_added = r, place, added
        if best_route < 0:
            routes.append([node])
        else:
            routes[best_route].insert(best_place, node)
    return routes


def repair_largest(
    dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng
):
    """Insert the customers by falling demand, each where it costs the least, a route of its own
    included."""
    routes = [list(route) for route in partial_routes if route]
    for node in sorted(removed_customers, key=lambda v: -demands[v]):
        row = dist[node]
        best_route, best_place, best_added = -1, 0, 2 * row[0]
        for r, route in enumerate(routes):
            if sum(demands[v] for v in route) + demands[node] > capacity:
                continue
            stops = [0, *route, 0]
            for place in range(len(route) + 1):
                before, after = stops[place], stops[place + 1]
                added = row[before] + row[after] - dist[before][after]
                if added <= best_added:
                    best_route, best_place, best_added = r, place, added
        if best_route < 0:
            routes.append([node])
        else:
            routes[best_route].insert(best_place, node)
    return routes

"""The trivial design for the VRPTW: random removal, then each customer at its cheapest place."""


def destroy(
    dist, demands, capacity, ready, due, service, current_routes, steps_since_improvement, rng
):
    """Remove a tenth of the customers, drawn uniformly."""
    customers = [node for route in current_routes for node in route]
    removed_customers = rng.sample(customers, max(1, len(customers) // 10))
    gone = set(removed_customers)
    partial_routes = [[node for node in route if node not in gone] for route in current_routes]
    return partial_routes, removed_customers


def repair(
    dist,
    demands,
    capacity,
    ready,
    due,
    service,
    partial_routes,
    removed_customers,
    steps_since_improvement,
    rng,
):
    """Insert the customers in random order, each at its cheapest place that is in time, in a route
    with room for it, or alone in a new route where there is none."""
    routes = [list(route) for route in partial_routes if route]
    loads = [sum(demands[node] for node in route) for route in routes]
    for node in rng.sample(removed_customers, len(removed_customers)):
        best_route, best_place, best_added = -1, 0, float("inf")
        for r, route in enumerate(routes):
            if loads[r] + demands[node] > capacity:
                continue
            stops = [0, *route, 0]
            latest = [due[stop] for stop in stops]  # arrival after which a later stop is missed
            for k in range(len(route), 0, -1):
                onward = dist[stops[k]][stops[k + 1]] + service[stops[k]]
                latest[k] = min(latest[k], latest[k + 1] - onward)
            leaves = ready[0]
            for place in range(len(route) + 1):
                before, after = stops[place], stops[place + 1]
                begins = max(leaves + dist[before][node], ready[node])
                arrives = begins + service[node] + dist[node][after]
                added = dist[before][node] + dist[node][after] - dist[before][after]
                if begins <= due[node] and arrives <= latest[place + 1] and added < best_added:
                    best_route, best_place, best_added = r, place, added
                leaves = max(leaves + dist[before][after], ready[after]) + service[after]
        if best_route < 0:
            routes.append([node])
            loads.append(demands[node])
        else:
            routes[best_route].insert(best_place, node)
            loads[best_route] += demands[node]
    return routes

# role: repair
# problem: cvrp
# expect: rejected
# why: an asynchronous loop
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    async def c():
        async for x in routes:
            pass
    for customer in removed_customers:
        routes.append([customer])
    return routes

# role: repair
# problem: cvrp
# expect: rejected
# why: a generator's frame
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    g = (x for x in routes)
    g.gi_frame.f_back.f_globals
    for customer in removed_customers:
        routes.append([customer])
    return routes

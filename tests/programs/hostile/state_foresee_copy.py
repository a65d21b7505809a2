# role: repair
# problem: cvrp
# expect: any-failure
# why: a copy of the generator foresees its draws
import copy


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    ahead = copy.copy(rng)
    assert ahead.random() == rng.random(), 'not foreseen'
    for customer in removed_customers:
        routes.append([customer])
    return routes

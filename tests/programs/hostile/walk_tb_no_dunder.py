# role: repair
# problem: cvrp
# expect: rejected
# why: a traceback's frame by plain names
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    try:
        1 / 0
    except ZeroDivisionError as e:
        e.tb_frame.f_back
    for customer in removed_customers:
        routes.append([customer])
    return routes

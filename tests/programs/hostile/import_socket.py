# role: repair
# problem: cvrp
# expect: rejected
# why: network
# reason: socket
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    import socket
    socket.create_connection(('127.0.0.1', @PORT@))
    for customer in removed_customers:
        routes.append([customer])
    return routes

# role: repair
# problem: cvrp
# expect: ok
# why: inserts into the routes it was given
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    while removed_customers:
        c = removed_customers.pop()
        for route in partial_routes:
            if sum(demands[x] for x in route) + demands[c] <= capacity:
                route.insert(0, c)
                break
        else:
            partial_routes.append([c])
    return partial_routes

# role: destroy
# problem: cvrp
# expect: ok
# why: demands summed, sorted and indexed
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    assert demands[0] == 0 and len(demands) == len(dist) and max(demands) <= capacity and sum(demands) > 0
    loads = [sum(demands[c] for c in r) for r in current_routes]
    slack = [capacity - load for load in loads]
    loose = slack.index(max(slack))
    heavy = sorted((c for c in current_routes[loose]), key=lambda c: demands[c], reverse=True)[:3]
    return [[c for c in r if c not in heavy] for r in current_routes], heavy

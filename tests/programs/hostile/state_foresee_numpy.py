# role: destroy
# problem: cvrp
# expect: any-failure
# why: a deep copy of a numpy method of the generator foresees its draws
import copy


def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    routes = [list(route) for route in current_routes]
    count = max(1, sum(len(route) for route in routes) // 5)
    ahead = copy.deepcopy(rng.permutation)
    assert list(ahead(50)) == list(rng.permutation(50)), 'not foreseen'
    removed = []
    for route in routes:
        while route and len(removed) < count:
            removed.append(route.pop())
    return routes, removed

"""The removals of the kit of the VRPTW by place and time, in plain Python."""

from spo_jax.envs.problems.cvrp.kit.removals import related_of, remove_related, without
from spo_jax.envs.problems.cvrp.kit.routes import served_by, solution_of
from spo_jax.envs.problems.cvrp.kit.times import begins_of, row_of
from spo_jax.envs.problems.kit import checked_count, checked_number, node_of


def begins(dist, ready, service, routes):
    """When service begins at each customer of the routes: a list of lists of floats."""
    dist, routes = solution_of(dist, routes)
    ready, service = row_of(ready, len(dist)), row_of(service, len(dist))
    begin = begins_of(dist, ready, service, routes)
    return [[float(begin[node]) for node in route] for route in routes]


def timely_removal(dist, ready, service, routes, center, count, by_time=1.0):
    """Remove the `count` customers nearest to the customer `center` in place and time.

    The distance counts, plus by_time * the time between the begins of service.
    """
    dist, routes = solution_of(dist, routes)
    center, count = node_of(center, len(dist)), checked_count(count)
    ready, service = row_of(ready, len(dist)), row_of(service, len(dist))
    by_time = checked_number(by_time, 0, 1e6)
    customers, begin = served_by(routes), begins_of(dist, ready, service, routes)
    if center not in begin:
        raise ValueError("center is not in the routes")
    apart = {
        node: dist[center][node] + by_time * abs(begin[node] - begin[center]) for node in customers
    }
    return without(routes, sorted(customers, key=lambda node: apart[node])[:count])


def related_removal(
    dist,
    demands,
    ready,
    service,
    routes,
    center,
    count,
    rng,
    power=3.0,
    by_demand=0.0,
    by_route=0.0,
    by_time=0.0,
):
    """Remove `count` customers, at least one, related to those removed before them (Shaw).

    As in the CVRP's kit; by_time * the time between the begins of service counts as distance.
    """
    given = related_of(dist, demands, routes, center, count, power, by_demand, by_route)
    dist, routes = given[0], given[2]
    ready, service = row_of(ready, len(dist)), row_of(service, len(dist))
    by_time = checked_number(by_time, 0, 1e6)
    return remove_related(*given, rng, begins_of(dist, ready, service, routes), by_time)

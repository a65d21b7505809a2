"""The insertions of the kit of the VRPTW, in plain Python."""

from math import inf

from spo_jax.envs.problems.cvrp.kit.insertions import (
    cheapest_position,
    insert_by_regret,
    insert_in_order,
)
from spo_jax.envs.problems.cvrp.kit.times import timed_problem_of
from spo_jax.envs.problems.kit import checked_count, checked_number


def best_position(dist, demands, capacity, ready, due, service, routes, customer):
    """(added length, route, index) of the cheapest place in time with room.

    The route is len(routes), and the index 0, if a new route is cheaper or no other has such a
    place.
    """
    problem = timed_problem_of(dist, demands, capacity, ready, due, service, routes)
    return cheapest_position(problem, customer)


def ordered_insertion(
    dist,
    demands,
    capacity,
    ready,
    due,
    service,
    routes,
    customers,
    *,
    bound=inf,
    near=0,
    blink=0.0,
    noise=0.0,
    fresh=1.0,
    rng=None,
):
    """Insert `customers` in their order, each at its cheapest place in time with room: (routes,
    added).

    A new route is a place like any other, always in time. The rest is as in the CVRP's kit. Whether
    a place is in time takes no longer on a long route: of each stop is known when a vehicle can
    leave it, and until when it must arrive there.
    O(len(customers) * N), or O(len(customers) * near) and the stops of each route that grows.
    """
    problem = timed_problem_of(dist, demands, capacity, ready, due, service, routes)
    return insert_in_order(problem, customers, bound, near, blink, noise, fresh, rng)


def regret_insertion(
    dist,
    demands,
    capacity,
    ready,
    due,
    service,
    routes,
    customers,
    *,
    k=2,
    weight=0.0,
    bound=inf,
    near=0,
    noise=0.0,
    fresh=1.0,
    rng=None,
):
    """Insert the customer with the highest score first, at its cheapest place: (routes, added).

    As in the CVRP's kit, over the k cheapest routes with room and a place in time.
    """
    k, weight = checked_count(k, 1), checked_number(weight, -1e6, 1e6)
    problem = timed_problem_of(dist, demands, capacity, ready, due, service, routes)
    return insert_by_regret(problem, customers, k, weight, bound, near, noise, fresh, rng)


def greedy_insertion(
    dist,
    demands,
    capacity,
    ready,
    due,
    service,
    routes,
    customers,
    *,
    bound=inf,
    near=0,
    noise=0.0,
    fresh=1.0,
    rng=None,
):
    """Insert the customer with the lowest insertion cost first: (routes, added length)."""
    problem = timed_problem_of(dist, demands, capacity, ready, due, service, routes)
    return insert_by_regret(problem, customers, 1, 1.0, bound, near, noise, fresh, rng)

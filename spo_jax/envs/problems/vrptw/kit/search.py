"""The local search of the kit of the VRPTW, in plain Python.

Moves that change two routes are checked from when a vehicle can leave the stop before what changes
and until when it must arrive at the one behind it; a move within a route goes along the route.
"""

from spo_jax.envs.problems.cvrp.kit.routes import room_of
from spo_jax.envs.problems.cvrp.kit.search import (
    MARGIN,
    checked_search,
    lawful,
    place_of,
    search,
    search_or_opt,
    search_two_opt,
    search_two_opt_star,
    serves,
)
from spo_jax.envs.problems.cvrp.kit.times import joins_in_time, timed_problem_of
from spo_jax.envs.problems.kit import checked_count, near_by, way


def two_opt(
    dist, demands, capacity, ready, due, service, routes, customers, *, near=10, moves=1000
):
    """2-opt within routes, at `customers` and the ends of the edges it changes, as in the CVRP's
    kit: routes.
    """
    dist, _, _, routes, times = timed_problem_of(
        dist, demands, capacity, ready, due, service, routes
    )
    return search_two_opt(dist, routes, times, customers, near, moves)


def or_opt(
    dist,
    demands,
    capacity,
    ready,
    due,
    service,
    routes,
    customers,
    *,
    length=3,
    near=10,
    moves=1000,
):
    """Or-opt: move stretches of 1 to `length` customers with an end in `customers`, as in the
    CVRP's kit: routes.
    """
    problem = timed_problem_of(dist, demands, capacity, ready, due, service, routes)
    return search_or_opt(problem, customers, length, near, moves)


def two_opt_star(
    dist, demands, capacity, ready, due, service, routes, customers, *, near=10, moves=1000
):
    """2-opt*: exchange the ends of two routes, at `customers` and where edges changed, as in the
    CVRP's kit: routes.
    """
    problem = timed_problem_of(dist, demands, capacity, ready, due, service, routes)
    return search_two_opt_star(problem, customers, near, moves)


def exchange(
    dist,
    demands,
    capacity,
    ready,
    due,
    service,
    routes,
    customers,
    *,
    length=2,
    near=10,
    moves=1000,
):
    """Exchange stretches of 1 to `length` customers of two routes, from `customers` on: routes.

    One stretch begins or ends at a customer and the other beside one of its `near` nearest, so that
    these two become neighbours; none is turned round. Takes the first gain, goes on where edges
    changed, and stops after `moves` moves.
    """
    dist, demands, capacity, routes, times = timed_problem_of(
        dist, demands, capacity, ready, due, service, routes
    )
    queue, near, moves = checked_search(dist, routes, customers, near, moves)
    length = checked_count(length, 1)

    def move(a):
        return exchange_move(dist, demands, capacity, routes, times, a, length, near)

    return [route for route in search(routes, queue, moves, move) if route]


def exchange_move(dist, demands, capacity, routes, times, a, length, near):
    r, i = place_of(routes, a)
    mine = [0, *routes[r], 0]
    for step in (1, -1):  # stretches go forward or backward from there
        p, left = mine[i + 1 - step], len(routes[r]) - i if step == 1 else i + 1
        for size in range(1, min(length, left) + 1):
            e, q = mine[i + 1 + step * (size - 1)], mine[i + 1 + step * size]
            gone = way(dist, step, p, a) + way(dist, step, e, q)
            for c in near_by(dist, -step, a, 1, near):
                if way(dist, step, c, a) >= gone:
                    break
                if not serves(routes, c) or c in routes[r]:
                    continue
                s, j = place_of(routes, c)
                theirs = [0, *routes[s], 0]
                d, left = theirs[j + 1 + step], len(routes[s]) - 1 - j if step == 1 else j
                for other in range(1, min(length, left) + 1):
                    f, y = theirs[j + 1 + step * other], theirs[j + 1 + step * (other + 1)]
                    old = gone + (way(dist, step, c, d) + way(dist, step, f, y))
                    paid = way(dist, step, c, a), way(dist, step, e, y), way(dist, step, p, d)
                    gain = old - paid[0] - paid[1] - paid[2] - way(dist, step, f, q)
                    if gain > MARGIN * old:
                        low, start = (i, j + 1) if step == 1 else (i - size + 1, j - other)
                        ends = low, low + size, start, start + other
                        new = exchanged(dist, demands, capacity, routes[r], routes[s], times, *ends)
                        if new:
                            routes[r], routes[s] = new
                            return a, e, p, q, c, d, f, y
    return None


def exchanged(dist, demands, capacity, mine, theirs, times, low, high, start, end):
    """Two routes with mine[low:high] and theirs[start:end] exchanged; None unless both are
    feasible.
    """
    stretch, other = mine[low:high], theirs[start:end]
    one = mine[:low] + other + mine[high:]
    two = theirs[:start] + stretch + theirs[end:]
    feasible = (
        min(room_of(demands, capacity, one), room_of(demands, capacity, two)) >= 0
        and joins_in_time(dist, times, mine, low, other, mine, high)
        and joins_in_time(dist, times, theirs, start, stretch, theirs, end)
        and lawful(dist, one)
        and lawful(dist, two)
    )
    return (one, two) if feasible else None

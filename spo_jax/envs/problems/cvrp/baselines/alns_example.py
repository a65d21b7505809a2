"""ALNS for the CVRP as the example of the library `alns` has it: removal of strings, greedy repair.

Strings of up to two routes near a customer leave; they are inserted in random order where it is
cheapest among the routes with room, emptied ones included, in a new route where none has any. A
solution is accepted that is less than a threshold above the best one.
"""

from collections.abc import Callable

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.alns_example import STEPS, Example, State, searched
from spo_jax.envs.problems.cvrp.files.cvrplib import demands_of, routes_cost
from spo_jax.envs.problems.cvrp.limits import limits_of
from spo_jax.envs.problems.cvrp.rules import Routes
from spo_jax.seeding import numpy_rng

STRINGS, LONGEST = 2, 12  # routes that lose a string, and its length, if routes are no longer
SCORES = 25.0, 5.0, 1.0, 0.0
THRESHOLD = 0.02


def alns_example(instance: Instance, seed: int = 0, *, steps: int = STEPS) -> Routes:
    """The best routes of `steps` iterations. Raises MissingExtra without the library."""
    dist = instance.dist
    demands, capacity = demands_of(instance)
    limits = limits_of(instance)
    near = [row[row != 0] for row in np.argsort(dist, axis=1, kind="stable")]  # of each node
    rng = numpy_rng("alns-example", instance.digest, seed)

    def cost(routes: Routes) -> float:
        return routes_cost(dist, routes)

    def fits(route: list[int]) -> bool:
        return limits is None or not limits.excess(dist, [route])

    def strings(state: State, rng: np.random.Generator) -> State:
        routes = [list(route) for route in state.solution]
        longest = max(LONGEST, sum(map(len, routes)) // len(routes))
        owner = {node: r for r, route in enumerate(routes) for node in route}
        left: list[int] = []
        hit: set[int] = set()
        for node in near[int(rng.integers(1, len(dist)))].tolist():
            if len(hit) == min(STRINGS, len(routes)):
                break
            if owner[node] in hit:
                continue
            hit.add(owner[node])
            left += string(routes[owner[node]], node, longest, rng)
        return State(routes, cost, left)

    def greedy(state: State, rng: np.random.Generator) -> State:
        routes = [list(route) for route in state.solution]
        room = [capacity - int(demands[route].sum()) for route in routes]
        for node in rng.permutation(np.array(state.left, dtype=np.int64)).tolist():
            best = (np.inf, -1, 0)
            for r, route in enumerate(routes):
                if demands[node] <= room[r]:
                    walk = np.array([0, *route, 0])
                    added = dist[walk[:-1], node] + dist[node, walk[1:]] - dist[walk[:-1], walk[1:]]
                    place = int(added.argmin())
                    if fits([*route[:place], node, *route[place:]]):
                        best = min(best, (float(added[place]), r, place))
            if best[1] < 0:
                routes.append([])
                room.append(capacity)
                best = (0.0, len(routes) - 1, 0)
            routes[best[1]].insert(best[2], node)
            room[best[1]] -= int(demands[node])
        return State(routes, cost)

    start = State(nearest(near, demands, capacity, fits), cost)
    found = searched(start, Example((strings,), greedy, SCORES, THRESHOLD), rng, steps)
    return [route for route in found if route]


def string(route: list[int], node: int, longest: int, rng: np.random.Generator) -> list[int]:
    """Takes a string with `node` out of a route, which may run over its end; what was taken."""
    size = int(rng.integers(1, min(len(route), longest) + 1))
    first = route.index(node) - int(rng.integers(size))
    places = sorted({k % len(route) for k in range(first, first + size)}, reverse=True)
    return [route.pop(place) for place in places]


def nearest(
    near: list[np.ndarray],
    demands: np.ndarray,
    capacity: int,
    fits: Callable[[list[int]], bool],
) -> Routes:
    """Routes that go to the nearest customer not visited yet, until that one finds no room.

    fits: whether a route keeps all other limits.
    """
    left, routes = set(range(1, len(near))), []
    while left:
        route, load = [0], 0
        while left:
            node = next(int(v) for v in near[route[-1]] if int(v) in left)
            if load + demands[node] > capacity or not fits([*route[1:], node]):
                break
            route.append(node)
            left.discard(node)
            load += int(demands[node])
        routes.append(route[1:])
    return routes

"""How `spo solve` starts on a VRPTW instance."""

import math
import random
import time
from collections.abc import Iterator

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.cvrp.rules import Routes
from spo_jax.envs.problems.vrptw.rules import VRPTWRules

SWEEPS = 20  # of the local search, at most
MOST_BY_REGRET = 2000  # customers


def construct(instance: Instance, until: float = math.inf) -> Routes:
    """The shortest of five insertions of all customers, each after the kit's 2-opt*, Or-opt and
    exchange until none gains.

    Customers are inserted by due time, the farthest from the depot first, the narrowest window
    first, at random and, up to 2,000 of them, by regret. Where the kit is not compiled: Solomon's
    insertion I1. O(n^2). Nothing but the first insertion begins at `until`, a time.monotonic(), or
    later.
    """
    from spo_jax.envs.problems.vrptw import kit
    from spo_jax.envs.problems.vrptw.baselines.heuristics import insertion_i1

    if not kit.NATIVE:
        return insertion_i1(instance, until=until)
    arguments = VRPTWRules(instance.seen()).arguments("rows")
    dist, demands, capacity, ready, due, service = arguments
    given = dist, demands, capacity, ready, due, service
    customers = list(range(1, instance.size + 1))

    def inserted() -> Iterator[Routes]:
        orders = (
            sorted(customers, key=due.__getitem__),
            sorted(customers, key=lambda node: -dist[0][node]),
            sorted(customers, key=lambda node: due[node] - ready[node]),
            random.Random(0).sample(customers, len(customers)),
        )
        for order in orders:
            yield kit.ordered_insertion(*given, [], order)[0]
        if instance.size <= MOST_BY_REGRET:
            yield kit.regret_insertion(*given, [], customers, weight=0.5)[0]

    def polished(routes: Routes) -> tuple[float, Routes]:
        cost = kit.cost(dist, routes)
        for _ in range(SWEEPS):
            better = routes
            for search in (kit.two_opt_star, kit.or_opt, kit.exchange):
                if time.monotonic() < until:
                    better = search(*given, better, customers, moves=1 << 30)
            lower = kit.cost(dist, better)
            if lower >= cost:
                break
            cost, routes = lower, better
        return cost, routes

    kit.prepare(*given)
    try:
        found: list[tuple[float, Routes]] = []
        for routes in inserted():
            found.append(polished(routes))
            if time.monotonic() >= until:
                break
    finally:
        kit.release(*given)
    return min(found)[1]

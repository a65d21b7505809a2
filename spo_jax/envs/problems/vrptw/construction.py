"""How `spo solve` starts on a VRPTW instance."""

import math
import random
import time
from collections.abc import Iterator

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.cvrp.parts import Search, polished
from spo_jax.envs.problems.cvrp.rules import Routes
from spo_jax.envs.problems.vrptw.rules import TIMES

MOST_BY_REGRET = 2000  # customers


def construct(instance: Instance, until: float = math.inf) -> Routes:
    """The shortest of five insertions of all customers, each after the kit's 2-opt*, Or-opt and
    exchange until none gains.

    Customers are inserted by due time, the farthest from the depot first, the narrowest window
    first, at random and, up to 2,000 of them, by regret. Where the kit is not compiled: Solomon's
    insertion I1. O(n^2). Nothing but the first insertion begins at `until`, a time.monotonic(), or
    later.
    """
    from spo_jax.envs.problems.cvrp.files.cvrplib import demands_of, routes_cost
    from spo_jax.envs.problems.vrptw import kit
    from spo_jax.envs.problems.vrptw.baselines.heuristics import insertion_i1

    if not kit.NATIVE:
        return insertion_i1(instance, until=until)
    dist, (demands, capacity) = instance.dist, demands_of(instance)
    ready, due, service = (instance.extra[name].tolist() for name in TIMES)
    given = dist, demands, capacity, ready, due, service
    customers = list(range(1, instance.size + 1))
    far = (-dist[0]).tolist()
    orders = (
        sorted(customers, key=due.__getitem__),
        sorted(customers, key=far.__getitem__),
        sorted(customers, key=lambda node: due[node] - ready[node]),
        random.Random(0).sample(customers, len(customers)),
    )
    searches: list[Search] = [
        lambda routes: kit.two_opt_star(*given, routes, customers, moves=1 << 30),
        lambda routes: kit.or_opt(*given, routes, customers, moves=1 << 30),
        lambda routes: kit.exchange(*given, routes, customers, moves=1 << 30),
    ]

    def inserted() -> Iterator[Routes]:
        for order in orders:
            yield kit.ordered_insertion(*given, [], order)[0]
        if instance.size <= MOST_BY_REGRET:
            yield kit.regret_insertion(*given, [], customers, weight=0.5)[0]

    def cost(routes: Routes) -> float:
        return routes_cost(dist, routes)

    kit.prepare(*given)
    try:
        found: list[Routes] = []
        for routes in inserted():
            found.append(polished(routes, searches, cost, until))
            if time.monotonic() >= until:
                break
    finally:
        kit.release(*given)
    return min(found, key=cost)

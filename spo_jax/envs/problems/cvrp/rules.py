"""The capacitated vehicle routing problem in a worker (Appendix B.2)."""

import random
from itertools import chain, pairwise
from math import fsum
from operator import getitem, itemgetter
from typing import Any

from spo_jax.envs.problem import Infeasible, Instance, Layout, OverLimit, Rules
from spo_jax.envs.problems.cvrp.limits import limits_of
from spo_jax.envs.views import nodes_of
from spo_jax.errors import InputError

Routes = list[list[int]]
PACKINGS = 100  # tries for a random start with few vehicles


class CVRPRules(Rules):
    """One CVRP instance; a solution is a list of routes of customers 1..n.

    more: what programs are called with besides, of a problem with more constraints.
    """

    partial, item = "partial_routes", "customer"

    def __init__(self, instance: Instance, *more: Any):
        if instance.demands is None or instance.capacity is None:
            raise InputError(f"{instance.name}: its problem needs demands and a capacity")
        super().__init__(instance, instance.dist, instance.demands, int(instance.capacity), *more)
        self._limits, self._name = limits_of(instance), instance.name
        self._order = range(1, instance.size + 1)
        self._customers = frozenset(range(1, instance.size + 1))
        self._rows, self._demands, self._capacity, *_ = self.arguments("rows")

    def prepared(self, layout: Layout) -> tuple[Any, ...]:
        arguments = self.arguments(layout)
        return arguments if self._limits is None else (*arguments, self._limits)

    def start(self, rng: random.Random) -> Routes:
        """Customers in random order, cut greedily where a vehicle is full or a limit is reached."""
        customers = list(range(1, self.size + 1))
        rng.shuffle(customers)
        routes: Routes = [[]]
        load = 0
        for customer in customers:
            demand = self._demands[customer]
            if load + demand > self._capacity or self._exceeds([*routes[-1], customer]):
                routes.append([])
                load = 0
            routes[-1].append(customer)
            load += demand
        if self._limits is not None and len(routes) > self._limits.max_vehicles:
            return self._packed(self._limits.max_vehicles, rng)
        return routes

    def _packed(self, most: int, rng: random.Random) -> Routes:
        """At most so many routes: customers by falling demand, each try more out of this order.

        Each goes where it is shortest into the route that has the least room left, or, in every
        other try, that gets longer by least. Raises InputError where no try comes to so few.
        """
        for attempt in range(PACKINGS):
            blur = attempt / PACKINGS
            size = {node: self._demands[node] * (1.0 - blur * rng.random()) for node in self._order}
            routes: Routes = []
            for node in sorted(self._order, key=size.__getitem__, reverse=True):
                found = [
                    (key, r, place)
                    for r, route in enumerate(routes)
                    for key, place in self._takes(route, node, by_length=bool(attempt % 2))
                ]
                if found:
                    _, r, place = min(found)
                    routes[r].insert(place, node)
                else:
                    routes.append([node])
            if len(routes) <= most:
                return routes
        raise InputError(
            f"{self._name}: no start with {most} routes or fewer was found in {PACKINGS} tries; "
            "give a solution to start from, or more vehicles"
        )

    def _takes(self, route: list[int], node: int, by_length: bool) -> list[tuple[float, int]]:
        """What `_packed` compares, and the shortest place; [] if the route cannot take `node`."""
        room = self._capacity - sum(self._demands[each] for each in route) - self._demands[node]
        if room < 0:
            return []
        rows, walk = self._rows, [0, *route, 0]
        added, place = min(
            (rows[a][node] + rows[node][b] - rows[a][b], k)
            for k, (a, b) in enumerate(pairwise(walk))
        )
        if self._exceeds([*route[:place], node, *route[place:]]):
            return []
        return [(added if by_length else room, place)]

    def _exceeds(self, route: list[int]) -> bool:
        return self._limits is not None and bool(self._limits.excess(self._rows, [route]))

    def repaired(self, output: Any) -> Routes:
        lists = nodes_of(output)
        if lists is None:
            raise Infeasible("complete_routes must be a list of lists of integers")
        routes = [route for route in lists if route]
        customers = list(chain.from_iterable(routes))
        if len(customers) != self.size or self._customers != set(customers):
            raise Infeasible("complete_routes do not visit every customer exactly once")
        demand = self._demands.__getitem__
        for route in routes:
            if sum(map(demand, route)) > self._capacity:
                raise Infeasible("a route of complete_routes exceeds the capacity")
        if self._limits is not None and (wrong := self._limits.excess(self._rows, routes)):
            raise OverLimit(f"complete_routes break a limit: {wrong}")
        return routes

    def cost(self, solution: Routes) -> float:
        walk = [0]
        for route in solution:
            walk += route
            walk.append(0)
        return fsum(map(getitem, itemgetter(*walk[:-1])(self._rows), walk[1:]))

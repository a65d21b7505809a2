"""The capacitated vehicle routing problem in a worker (Appendix B.2)."""

import random
from itertools import chain
from math import fsum
from operator import getitem, itemgetter
from typing import Any

from spo_jax.envs.problem import Infeasible, Instance, Layout, Rules
from spo_jax.envs.problems.cvrp.limits import limits_of
from spo_jax.envs.views import nodes_of
from spo_jax.errors import InputError

Routes = list[list[int]]


class CVRPRules(Rules):
    """One CVRP instance; a solution is a list of routes of customers 1..n.

    more: what programs are called with besides, of a problem with more constraints.
    """

    partial, item = "partial_routes", "customer"

    def __init__(self, instance: Instance, *more: Any):
        if instance.demands is None or instance.capacity is None:
            raise InputError(f"{instance.name}: its problem needs demands and a capacity")
        super().__init__(instance, instance.dist, instance.demands, int(instance.capacity), *more)
        self._limits = limits_of(instance)
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
        return routes

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
            raise Infeasible(f"complete_routes break a limit: {wrong}")
        return routes

    def cost(self, solution: Routes) -> float:
        walk = [0]
        for route in solution:
            walk += route
            walk.append(0)
        return fsum(map(getitem, itemgetter(*walk[:-1])(self._rows), walk[1:]))

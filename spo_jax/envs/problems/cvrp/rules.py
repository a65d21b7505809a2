"""The capacitated vehicle routing problem in a worker (Appendix B.2)."""

import random
from itertools import chain
from operator import getitem, itemgetter
from typing import Any
from weakref import WeakSet

from spo_jax.envs.problem import Infeasible, Instance, Layout, OverLimit, Rules
from spo_jax.envs.problems.cvrp.fleets import STEPS, Fleet
from spo_jax.envs.problems.cvrp.limits import UNBOUNDED, limits_of
from spo_jax.envs.rules import exact_sum
from spo_jax.envs.views import nodes_of
from spo_jax.errors import InputError

Routes = list[list[int]]
_STARTED: WeakSet[Instance] = WeakSet()  # instances that have a start


def require_start(instance: Instance) -> None:
    """Raises InputError where no start is found for the number of vehicles: no rollout has one."""
    limits = limits_of(instance)
    if limits is not None and limits.max_vehicles < UNBOUNDED and instance not in _STARTED:
        CVRPRules(instance.seen()).start(random.Random(0))
        _STARTED.add(instance)


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
        self._sum = exact_sum(instance.dist, 2 * self.size)
        self._customers = frozenset(range(1, instance.size + 1))
        self._rows, self._demands, self._capacity, *_ = self.arguments("rows")

    def prepared(self, layout: Layout) -> tuple[Any, ...]:
        arguments = self.arguments(layout)
        return arguments if self._limits is None else (*arguments, self._limits)

    def start(self, rng: random.Random) -> Routes:
        """Customers in random order, cut greedily where a vehicle is full or a limit is reached;
        then, where these are too many routes, fewer. Raises InputError as `within_fleet`.
        """
        return self.within_fleet(self._cut(rng), rng)

    def within_fleet(self, routes: Routes, rng: random.Random) -> Routes:
        """Feasible routes that are as few as the vehicles: these, or others made from them.

        Raises InputError where none are found, which does not depend on `routes` and `rng`.
        """
        if self._limits is None or len(routes) <= self._limits.max_vehicles:
            return routes
        fleet = Fleet(self._rows, self._demands, self._capacity, self._limits)
        if found := fleet.reduced(routes, rng, STEPS // 10):
            return found
        luck = random.Random(0)  # that of all others that get here, as `require_start` tries it
        if found := fleet.reduced(self._cut(luck), luck):
            return found
        raise InputError(
            f"{self._name}: no start with {self._limits.max_vehicles} routes or fewer was found; "
            "give a solution to start from, or more vehicles"
        )

    def _cut(self, rng: random.Random) -> Routes:
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
            raise OverLimit(f"complete_routes break a limit: {wrong}")
        return routes

    def cost(self, solution: Routes) -> float:
        walk = [0]
        for route in solution:
            walk += route
            walk.append(0)
        return self._sum(map(getitem, itemgetter(*walk[:-1])(self._rows), walk[1:]))

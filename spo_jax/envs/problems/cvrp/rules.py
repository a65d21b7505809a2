"""The capacitated vehicle routing problem (Appendix B.2), with a free fleet as in the paper."""

import random
from collections.abc import Sequence
from itertools import chain, groupby
from math import fsum
from operator import getitem, itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from spo_jax.envs.problem import DIST, Infeasible, Instance, Layout
from spo_jax.envs.problems.cvrp import files as cvrplib
from spo_jax.envs.problems.tsp import files as tsplib
from spo_jax.envs.problems.views import frozen, node_list, rows
from spo_jax.errors import InputError
from spo_jax.program import Argument, Interface, Program
from spo_jax.seeding import numpy_rng

Routes = list[list[int]]


class CVRPRules:
    """One CVRP instance in a worker; a solution is a list of routes of customers 1..n."""

    def __init__(self, instance: Instance):
        if instance.demands is None or instance.capacity is None:
            raise InputError(f"{instance.name}: a CVRP instance needs demands and a capacity")
        self._n = instance.size
        self._most = instance.size * 35 // 100
        self._customers = frozenset(range(1, instance.size + 1))
        self._rows = rows(instance.dist)
        self._demands = tuple(instance.demands.tolist())
        self._capacity = int(instance.capacity)
        self._arguments = {
            "rows": (self._rows, self._demands, self._capacity),
            "array": (frozen(instance.dist), frozen(instance.demands), self._capacity),
        }

    def arguments(self, layout: Layout) -> tuple[Any, ...]:
        return self._arguments[layout]

    def start(self, rng: random.Random) -> Routes:
        """Customers in random order, cut greedily where a vehicle is full."""
        customers = list(range(1, self._n + 1))
        rng.shuffle(customers)
        routes: Routes = [[]]
        load = 0
        for customer in customers:
            demand = self._demands[customer]
            if load + demand > self._capacity:
                routes.append([])
                load = 0
            routes[-1].append(customer)
            load += demand
        return routes

    def copy(self, solution: Routes) -> Routes:
        return [route[:] for route in solution]

    def destroyed(self, current: Routes, output: Any) -> tuple[Routes, list[int]]:
        if type(output) not in (tuple, list) or len(output) != 2:
            raise Infeasible("returned no (partial_routes, removed_customers)")
        partial, removed = _route_lists(output[0], "partial_routes"), node_list(output[1])
        if removed is None:
            raise Infeasible("removed_customers must be a list of integers")
        gone = set(removed)
        if len(gone) != len(removed):
            raise Infeasible("removed_customers repeats a customer")
        if not gone:
            raise Infeasible("removed no customer")
        if len(gone) > self._most:
            raise Infeasible(f"removed {len(gone)} of {self._n} customers (at most {self._most})")
        kept = [[node for node in route if node not in gone] for route in current]
        # An emptied route may stay as [] or be dropped.
        if (partial != kept and [r for r in partial if r] != [r for r in kept if r]) or sum(
            map(len, kept)
        ) + len(gone) != self._n:
            raise Infeasible(
                "partial_routes are not the routes without removed_customers, in order"
            )
        return partial, removed

    def repaired(self, output: Any) -> Routes:
        routes = [route for route in _route_lists(output, "complete_routes") if route]
        customers = list(chain.from_iterable(routes))
        if len(customers) != self._n or self._customers != set(customers):
            raise Infeasible("complete_routes do not visit every customer exactly once")
        demand = self._demands.__getitem__
        for route in routes:
            if sum(map(demand, route)) > self._capacity:
                raise Infeasible("a route of complete_routes exceeds the capacity")
        return routes

    def cost(self, solution: Routes) -> float:
        walk = self.encode(solution)
        return fsum(map(getitem, itemgetter(*walk[:-1])(self._rows), walk[1:]))

    def encode(self, solution: Routes) -> list[int]:
        walk = [0]
        for route in solution:
            walk += route
            walk.append(0)
        return walk


def _route_lists(value: Any, what: str) -> Routes:
    if type(value) not in (list, tuple):
        raise Infeasible(f"{what} must be a list of routes")
    routes = [node_list(route) for route in value]
    if None in routes:
        raise Infeasible(f"each route of {what} must be a list of integers")
    return routes  # type: ignore[return-value]


class CVRP:
    """The parent's half; see `spo_jax.envs.problem.Problem`."""

    name = "cvrp"
    spec = "spo_jax.envs.problems.cvrp.rules:CVRP"
    interface = Interface(
        (
            DIST,
            Argument("demands", "row", "the demand of node i; node 0 is the depot"),
            Argument("capacity", "scalar"),
        ),
        "current_routes",
    )
    cpu_seconds = 30.0

    def sample(self, size: int, count: int, seed: int) -> list[Instance]:
        """`count` instances of `size` customers, uniform in [0, 1)^2 around a central depot.

        Demands are uniform integers 1..9, the capacity is 50.
        """
        if size < 3:
            raise InputError(f"a CVRP instance needs at least 3 customers, not {size}")
        instances = []
        for k in range(count):
            rng = numpy_rng("cvrp", "uniform", size, seed, k)
            coords = np.concatenate([[[0.5, 0.5]], rng.random((size, 2))])
            demands = np.concatenate([[0], rng.integers(1, 10, size)]).astype(np.int64)
            dist = tsplib.euclidean(coords)
            name = f"uniform-{size}-{k}@{seed}"
            instances.append(Instance("cvrp", name, size, coords, dist, demands, 50))
        return instances

    def read(self, path: str | Path) -> Instance:
        """A CVRPLIB .vrp file. Raises InputError."""
        return cvrplib.read(path)

    def rules(self, instance: Instance) -> CVRPRules:
        return CVRPRules(instance)

    def cost(self, instance: Instance, solution: Sequence[Sequence[int]]) -> float:
        """The exact float64 length of all routes, depot to depot."""
        walk = [0, *chain.from_iterable([*route, 0] for route in solution)]
        return fsum(instance.dist[walk[:-1], walk[1:]].tolist())

    def walk_length(self, instance: Instance) -> int:
        return 2 * instance.size + 1

    def decode(self, instance: Instance, walk: Sequence[int]) -> Routes:
        if len(walk) == 0 or walk[0] != 0 or walk[-1] != 0:
            raise Infeasible("a walk starts and ends at the depot")
        grouped = groupby(walk, key=bool)
        routes = [list(customers) for away, customers in grouped if away]
        if sorted(chain.from_iterable(routes)) != list(range(1, instance.size + 1)):
            raise Infeasible("not every customer is visited exactly once")
        assert instance.demands is not None
        assert instance.capacity is not None
        if any(instance.demands[route].sum() > instance.capacity for route in routes):
            raise Infeasible("a route exceeds the capacity")
        return routes

    def write(
        self, path: str | Path, instance: Instance, solution: Sequence[Sequence[int]]
    ) -> None:
        """A CVRPLIB .sol file."""
        cvrplib.write_solution(path, instance, solution)

    def classical_destroys(self) -> tuple[Program, ...]:
        from spo_jax.envs.problems.cvrp.classical import CVRP_DESTROYS

        return CVRP_DESTROYS

"""The vehicle routing problem with time windows in a worker.

A vehicle leaves the depot no earlier than it opens, travels for as long as the distance, waits
where it arrives before `ready`, may not begin service after `due`, stays for `service`, and is back
at the depot by its `due`.
"""

import random
from typing import Any

import numpy as np

from spo_jax.envs.problem import Infeasible, Instance
from spo_jax.envs.problems.cvrp.rules import CVRPRules, Routes
from spo_jax.errors import InputError

TIMES = ("ready", "due", "service")  # rows [N] float64 of `Instance.extra`
# Late is what is late by more than this share of the horizon: a program may add the same times in
# another order. Sums of a thousand times differ by less.
ROUNDING = 1e-12


def require_both_ways(instance: Instance) -> None:
    """Raises InputError for a directed instance.

    A program that takes a way for the way back is not only wrong about lengths here, but late.
    """
    if instance.directed:
        raise InputError(
            f"{instance.name}: distances of the VRPTW must be alike both ways, as its programs "
            "count on that"
        )


def require_times(instance: Instance) -> None:
    """Raises InputError for an instance without time windows and service times."""
    if any(name not in instance.extra for name in TIMES):
        listed = ", ".join(TIMES)
        raise InputError(f"{instance.name}: a VRPTW instance needs {listed} in `extra`")


def latest(instance: Instance) -> np.ndarray:
    """[N] float64: when service must have begun, later than `due` by what rounding explains."""
    due = np.asarray(instance.extra["due"], np.float64)
    return due + ROUNDING * due[0]


class VRPTWRules(CVRPRules):
    """One VRPTW instance; a solution is a list of routes of customers 1..n."""

    def __init__(self, instance: Instance):
        require_times(instance)
        require_both_ways(instance)
        super().__init__(instance, *(instance.extra[name] for name in TIMES))
        *_, self._ready, _, self._service = self.arguments("rows")
        self._due = tuple(latest(instance).tolist())

    def start(self, rng: random.Random) -> Routes:
        """Customers in random order, each at the end of the first route that it can end."""
        customers = list(range(1, self.size + 1))
        rng.shuffle(customers)
        routes: Routes = []
        ends: list[tuple[float, int]] = []  # when each route's last service ends, and its load
        for node in customers:
            for r, (clock, load) in enumerate(ends):
                if load + self._demands[node] > self._capacity:
                    continue
                leaves = self._served(clock, routes[r][-1], node)
                if leaves is not None:
                    routes[r].append(node)
                    ends[r] = leaves, load + self._demands[node]
                    break
            else:
                leaves = self._served(self._ready[0], 0, node)
                if leaves is None:
                    raise InputError(f"customer {node} cannot be served in time by any route")
                routes.append([node])
                ends.append((leaves, self._demands[node]))
        return routes

    def _served(self, clock: float, before: int, node: int) -> float | None:
        """When a vehicle that leaves `before` at `clock` has served `node`, its last customer.

        None where it is late there or back at the depot.
        """
        begins = max(clock + self._rows[before][node], self._ready[node])
        leaves = begins + self._service[node]
        if begins > self._due[node] or leaves + self._rows[node][0] > self._due[0]:
            return None
        return leaves

    def repaired(self, output: Any) -> Routes:
        routes = super().repaired(output)
        rows, ready, due, service = self._rows, self._ready, self._due, self._service
        for route in routes:
            clock, before = ready[0], 0
            for node in route:
                clock += rows[before][node]
                if clock < ready[node]:
                    clock = ready[node]
                elif clock > due[node]:
                    raise Infeasible("a route of complete_routes is late at a customer")
                clock += service[node]
                before = node
            if clock + rows[before][0] > due[0]:
                raise Infeasible("a route of complete_routes is late at the depot")
        return routes

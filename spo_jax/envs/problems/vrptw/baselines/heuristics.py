"""Solomon's insertion I1, and the places of a customer in a route with time windows."""

import math
import time
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.cvrp.files.cvrplib import demands_of, routes_cost
from spo_jax.envs.problems.vrptw.rules import ROUNDING, TIMES

# (mu, lambda, alpha_1) of I1 in Solomon's tables, alpha_2 being 1 - alpha_1.
_SETTINGS = ((1.0, 1.0, 1.0), (1.0, 2.0, 1.0), (1.0, 1.0, 0.0), (1.0, 2.0, 0.0))
_SEEDS = ("far", "urgent")


@dataclass(frozen=True, eq=False)
class Places:
    """Where customers fit into the routes of one instance in time."""

    instance: Instance

    def of(
        self, route: list[int], customers: np.ndarray, mu: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """What each place costs each of K customers, inf where some stop would be late.

        Returns [K, L + 1] the added length, the edge that goes counting `mu` times, and [K, L + 1]
        by how much service at the next stop (or the return) is put off. L: stops of the route.
        """
        dist = self.instance.dist
        ready, due, service = (self.instance.extra[name] for name in TIMES)
        walk = [0, *route, 0]
        slack = ROUNDING * due[0]
        begins = [float(ready[0])]
        for a, b in pairwise(walk):
            begins.append(max(begins[-1] + float(service[a] + dist[a, b]), float(ready[b])))
        begins[-1] = begins[-2] + float(service[walk[-2]] + dist[walk[-2], 0])  # nobody waits there
        latest = [float(due[0])]
        for a, b in zip(walk[-2:0:-1], walk[:1:-1], strict=True):
            latest.append(min(float(due[a]), latest[-1] - float(dist[a, b] + service[a])))
        nodes, leaves = np.array(walk), np.array(begins[:-1]) + service[walk[:-1]]
        near = dist[customers[:, None], nodes]  # [K, L + 2]
        at = np.maximum(leaves + near[:, :-1], ready[customers, None])
        after = at + service[customers, None] + near[:, 1:]
        added = near[:, :-1] + near[:, 1:] - mu * dist[nodes[:-1], nodes[1:]]
        fits = (at <= due[customers, None] + slack) & (after <= np.array(latest[::-1]) + slack)
        pushed = np.maximum(after - np.array(begins[1:]), 0.0)
        return np.where(fits, added, np.inf), np.where(fits, pushed, np.inf)


def insertion_i1(instance: Instance, seed: int = 0, *, until: float = math.inf) -> list[list[int]]:
    """The shortest routes of Solomon's insertion I1 (Operations Research 35, 1987).

    Routes are built one by one, each from the farthest customer or the one due first, with the four
    settings of Solomon's tables: eight runs. Each step inserts the customer with the largest
    lambda * d(0, u) - c1(u) at the place where c1 is least: alpha_1 times the detour plus alpha_2
    times the delay of the next stop. The seed changes nothing. No run but the first begins at
    `until`, a time.monotonic(), or later.
    """
    runs: list[list[list[int]]] = []
    for first, setting in product(_SEEDS, _SETTINGS):
        if not runs or time.monotonic() < until:
            runs.append(_i1(instance, first, *setting))
    return min(runs, key=lambda routes: routes_cost(instance.dist, routes))


def _i1(instance: Instance, first: str, mu: float, lam: float, alpha: float) -> list[list[int]]:
    demands, capacity = demands_of(instance)
    places, hub, due = Places(instance), instance.dist[0], instance.extra["due"]
    left = np.arange(1, instance.size + 1)
    routes: list[list[int]] = []
    while len(left):
        k = int(np.argmax(hub[left]) if first == "far" else np.argmin(due[left]))
        route, room = [int(left[k])], capacity - int(demands[left[k]])
        left = np.delete(left, k)
        while True:
            fitting = np.flatnonzero(demands[left] <= room)
            if not len(fitting):
                break
            added, pushed = places.of(route, left[fitting], mu)
            with np.errstate(invalid="ignore"):  # 0 * inf
                c1 = np.where(np.isfinite(added), alpha * added + (1 - alpha) * pushed, np.inf)
            spots = c1.argmin(axis=1)
            best = c1[np.arange(len(fitting)), spots]
            k = int(np.argmax(lam * hub[left[fitting]] - best))
            if not np.isfinite(best[k]):
                break
            node = int(left[fitting[k]])
            route.insert(int(spots[k]), node)
            room -= int(demands[node])
            left = np.delete(left, fitting[k])
        routes.append(route)
    return routes

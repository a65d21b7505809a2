"""Vehicle routing with time windows, as a user of the package would write it: one file."""

import random
from itertools import chain, pairwise
from math import fsum
from pathlib import Path

import numpy as np

from spo_jax.envs.problem import Infeasible, Instance, Problem, Rules
from spo_jax.envs.views import nodes_of
from spo_jax.errors import InputError
from spo_jax.program import Argument, Completion, Interface
from spo_jax.seeding import numpy_rng


class VRPTWRules(Rules):
    """A solution is a list of routes of customers 1..n; a vehicle may wait, and is never late."""

    partial, item = "partial_routes", "customer"

    def late(self, route):
        """Whether a route comes too late somewhere, or carries too much."""
        dist, demands, capacity, windows, service = self.arguments("rows")
        clock = 0.0
        for a, b in pairwise([0, *route, 0]):
            clock = max(clock + service[a] + dist[a][b], windows[b][0])
            if clock > windows[b][1]:
                return True
        return sum(demands[v] for v in route) > capacity

    def start(self, rng):
        customers = list(range(1, self.size + 1))
        rng.shuffle(customers)
        routes = []
        for v in customers:
            if routes and not self.late([*routes[-1], v]):
                routes[-1].append(v)
            else:
                routes.append([v])
        return routes

    def repaired(self, output):
        routes = nodes_of(output)
        if routes is None or sorted(chain(*routes)) != list(range(1, self.size + 1)):
            raise Infeasible("not every customer is visited exactly once")
        if any(map(self.late, routes)):
            raise Infeasible("a route is late or too full")
        return [route for route in routes if route]

    def cost(self, solution):
        dist = self.arguments("rows")[0]
        return fsum(dist[a][b] for r in solution for a, b in pairwise([0, *r, 0]))


class VRPTW(Problem):
    name = "vrptw"
    interface = Interface(
        (
            Argument("dist", "matrix", "the square matrix of distances and travel times"),
            Argument("demands", "row", "the demand of node i; node 0 is the depot"),
            Argument("capacity", "scalar"),
            Argument("windows", "matrix", "when service at node i may begin: the first and last"),
            Argument("service", "row", "how long service at node i takes"),
        ),
        "current_routes",
    )
    unit = "customers"
    suffixes = (".txt",)

    def made(self, name, coords, demands, capacity, windows, service):
        dist = np.hypot(*(coords[:, None] - coords).transpose(2, 0, 1))
        extra = {"windows": np.asarray(windows, float), "service": np.asarray(service, float)}
        n = len(coords) - 1
        return Instance("vrptw", name, n, coords, dist, demands, capacity, extra=extra)

    def sample(self, size, count, seed):
        instances = []
        for k in range(count):
            rng = numpy_rng("vrptw", size, seed, k)
            coords = rng.random((size + 1, 2))
            opens = 1.5 + 3 * rng.random(size + 1)
            windows = np.stack([opens, opens + 1], axis=1)
            windows[0] = 0, 9
            demands = [0, *rng.integers(1, 10, size)]
            service = [0, *rng.random(size) / 10]
            name = f"vrptw-{size}-{k}@{seed}"
            instances.append(self.made(name, coords, demands, 30, windows, service))
        return instances

    def read(self, path):
        """A file in Solomon's format."""
        try:
            lines = [line.split() for line in Path(path).read_text().splitlines() if line.split()]
            table = np.array([row for row in lines if len(row) == 7 and row[0].isdigit()], float)
            capacity = int(lines[3][1])
            return self.made(
                lines[0][0], table[:, 1:3], table[:, 3], capacity, table[:, 4:6], table[:, 6]
            )
        except (OSError, ValueError, IndexError) as error:
            raise InputError(f"{path} is not in Solomon's format ({error})") from None

    def rules(self, instance):
        return VRPTWRules(
            instance, instance.dist, instance.demands, instance.capacity, *instance.extra.values()
        )

    def contract(self, role):
        return f"Write one {role} function for the VRPTW.\n$state_input\n$adaptation\n" + (
            "$paired_destroy\n" if role == "repair" else ""
        )


DESTROY = """STRATEGY: {}.
CODE:
def destroy(dist, demands, capacity, windows, service, current_routes, steps, rng):
    customers = sorted((v for route in current_routes for v in route), key=lambda v: {})
    removed = customers[: max(1, len(customers) // 4)]
    return [[v for v in route if v not in removed] for route in current_routes], removed
"""
REPAIR = """STRATEGY: put {} customers first, each at its cheapest place that is in time.
CODE:
def late(route, dist, demands, capacity, windows, service):
    clock = 0.0
    for a, b in zip([0] + route, route + [0]):
        clock = max(clock + service[a] + dist[a][b], windows[b][0])
        if clock > windows[b][1]:
            return True
    return sum(demands[v] for v in route) > capacity


def repair(dist, demands, capacity, windows, service, partial, removed, steps, rng):
    for v in sorted(removed, key=lambda v: {}):
        best = dist[0][v] + dist[v][0], len(partial), [v]
        for r, route in enumerate(partial):
            for k, (a, b) in enumerate(zip([0] + route, route + [0])):
                longer = dist[a][v] + dist[v][b] - dist[a][b]
                longer_route = route[:k] + [v] + route[k:]
                if longer < best[0] and not late(
                    longer_route, dist, demands, capacity, windows, service
                ):
                    best = longer, r, longer_route
        partial[best[1] : best[1] + 1] = [best[2]]
    return partial
"""
SHELF = {
    "destroy": [
        DESTROY.format("remove customers at random", "rng.random()"),
        DESTROY.format("remove those that close first", "windows[v][1] + rng.random()"),
    ],
    "repair": [
        REPAIR.format("urgent", "windows[v][1]"),
        REPAIR.format("distant", "-dist[0][v]"),
    ],
}


class Shelf:
    """A generator of one's own: programs that were written beforehand."""

    def generate(self, prompts, n, seed):
        rng = random.Random(seed)
        return [
            tuple(Completion(rng.choice(SHELF[prompt.role])) for _ in range(n))
            for prompt in prompts
        ]

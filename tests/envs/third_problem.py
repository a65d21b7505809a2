"""A problem that the package does not know: the shortest Hamiltonian path from node 0.

A solution is the order of the other nodes. Nothing of TSP or CVRP is reused, so that the test says
what a third problem has to bring. `TimedPath` adds a second matrix, which is the instance's own.
"""

import json
from dataclasses import replace
from itertools import pairwise
from math import fsum
from pathlib import Path

from spo_jax.envs.problem import Infeasible, Instance
from spo_jax.envs.problems.tsp.files import euclidean
from spo_jax.envs.views import frozen, node_list, rows
from spo_jax.program import Argument, Interface
from spo_jax.seeding import numpy_rng


class PathRules:
    def __init__(self, instance):
        self.n = instance.size
        self.rows = rows(instance.dist)
        self.views = {"rows": (self.rows,), "array": (frozen(instance.dist),)}

    def arguments(self, layout):
        return self.views[layout]

    def start(self, rng):
        order = list(range(1, self.n))
        rng.shuffle(order)
        return order

    def copy(self, solution):
        return solution[:]

    def destroyed(self, current, output):
        partial, removed = map(node_list, output)
        if not removed or [v for v in current if v not in set(removed)] != partial:
            raise Infeasible("not the order without what was removed")
        return partial, removed

    def repaired(self, output):
        order = node_list(output)
        if order is None or sorted(order) != list(range(1, self.n)):
            raise Infeasible("not an order of the nodes")
        return order

    def cost(self, solution):
        walk = self.encode(solution)
        return fsum(self.rows[a][b] for a, b in pairwise(walk))

    def encode(self, solution):
        return [0, *solution]


class PathProblem:
    name = "path"
    spec = "third_problem:PathProblem"
    interface = Interface((Argument("dist", "matrix"),), "order")
    cpu_seconds = 5.0

    def sample(self, size, count, seed):
        instances = []
        for k in range(count):
            coords = numpy_rng("path", size, seed, k).random((size, 2))
            instances.append(Instance("path", f"path-{k}", size, coords, euclidean(coords)))
        return instances

    def read(self, path):
        raise NotImplementedError

    def rules(self, instance):
        return PathRules(instance)

    def cost(self, instance, solution):
        return PathRules(instance).cost(solution)

    def walk_length(self, instance):
        return instance.size

    def decode(self, instance, walk):
        return PathRules(instance).repaired(list(walk[1:]))

    def write(self, path, instance, solution):
        Path(path).write_text(json.dumps(solution))

    def classical_destroys(self):
        return ()


class TimedRules(PathRules):
    """A step from a to b also costs times[a][b], which the instance keeps in `extra`."""

    def __init__(self, instance):
        super().__init__(instance)
        times, limit = instance.extra["times"], instance.extra["limit"]
        self.times = rows(times)
        self.views = {
            "rows": (self.rows, self.times, limit),
            "array": (frozen(instance.dist), frozen(times), limit),
        }

    def cost(self, solution):
        walk = self.encode(solution)
        return fsum(self.rows[a][b] + self.times[a][b] for a, b in pairwise(walk))


class TimedPath(PathProblem):
    name = "timed-path"
    spec = "third_problem:TimedPath"
    interface = Interface(
        (
            Argument("dist", "matrix"),
            Argument("times", "matrix", "minutes"),
            Argument("limit", "scalar"),
        ),
        "order",
    )

    def sample(self, size, count, seed):
        return [
            replace(
                each,
                problem=self.name,
                extra={"times": numpy_rng("times", seed, k).random((size, size)), "limit": 5},
            )
            for k, each in enumerate(super().sample(size, count, seed))
        ]

    def rules(self, instance):
        return TimedRules(instance)

    def cost(self, instance, solution):
        return TimedRules(instance).cost(solution)

    def decode(self, instance, walk):
        return TimedRules(instance).repaired(list(walk[1:]))

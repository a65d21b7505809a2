"""A problem that the package does not know: the shortest Hamiltonian path from node 0.

A solution is the order of the other nodes. `TimedPath` adds a second matrix, which is the
instance's own.
"""

from dataclasses import replace
from itertools import pairwise
from math import fsum

from spo_jax.envs.problem import Infeasible, Instance, Problem, Rules
from spo_jax.envs.problems.tsp.files.tsplib import euclidean
from spo_jax.envs.views import node_list
from spo_jax.program import Argument, Interface
from spo_jax.seeding import numpy_rng


class PathRules(Rules):
    def start(self, rng):
        order = list(range(1, self.size))
        rng.shuffle(order)
        return order

    def repaired(self, output):
        order = node_list(output)
        if order is None or sorted(order) != list(range(1, self.size)):
            raise Infeasible("not an order of the nodes")
        return order

    def cost(self, solution):
        dist = self.arguments("rows")[0]
        return fsum(dist[a][b] for a, b in pairwise([0, *solution]))


class PathProblem(Problem):
    name = "path"
    interface = Interface((Argument("dist", "matrix"),), "order")
    cpu_seconds = 5

    def sample(self, size, count, seed):
        instances = []
        for k in range(count):
            coords = numpy_rng("path", size, seed, k).random((size, 2))
            instances.append(Instance("path", f"path-{k}", size, coords, euclidean(coords)))
        return instances

    def rules(self, instance):
        return PathRules(instance, instance.dist)


class TimedRules(PathRules):
    """A step from a to b also costs times[a][b], which the instance keeps in `extra`."""

    def cost(self, solution):
        dist, times, _ = self.arguments("rows")
        return fsum(dist[a][b] + times[a][b] for a, b in pairwise([0, *solution]))


class TimedPath(PathProblem):
    name = "timed-path"
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
        return TimedRules(instance, instance.dist, *instance.extra.values())

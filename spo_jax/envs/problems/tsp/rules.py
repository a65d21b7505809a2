"""The travelling salesperson problem (Appendix B.1)."""

import random
from collections.abc import Sequence
from itertools import filterfalse
from math import fsum
from operator import getitem, itemgetter
from pathlib import Path
from typing import Any

from spo_jax.envs.problem import DIST, Infeasible, Instance, Layout
from spo_jax.envs.problems.tsp import files as tsplib
from spo_jax.envs.problems.views import frozen, node_list, rows
from spo_jax.errors import InputError
from spo_jax.program import Interface, Program
from spo_jax.seeding import numpy_rng


class TSPRules:
    """One TSP instance in a worker; a solution is a list of the N nodes."""

    def __init__(self, instance: Instance):
        self._n = instance.size
        self._most = instance.size * 35 // 100
        self._nodes = frozenset(range(instance.size))
        self._rows = rows(instance.dist)
        self._arguments = {"rows": (self._rows,), "array": (frozen(instance.dist),)}

    def arguments(self, layout: Layout) -> tuple[Any, ...]:
        return self._arguments[layout]

    def start(self, rng: random.Random) -> list[int]:
        tour = list(range(self._n))
        rng.shuffle(tour)
        return tour

    def copy(self, solution: list[int]) -> list[int]:
        return solution[:]

    def destroyed(self, current: list[int], output: Any) -> tuple[list[int], list[int]]:
        if type(output) not in (tuple, list) or len(output) != 2:
            raise Infeasible("returned no (partial_tour, removed_nodes)")
        partial, removed = node_list(output[0]), node_list(output[1])
        if partial is None or removed is None:
            raise Infeasible("partial_tour and removed_nodes must be lists of integers")
        gone = set(removed)
        if len(gone) != len(removed):
            raise Infeasible("removed_nodes repeats a node")
        if not gone:
            raise Infeasible("removed no node")
        if len(gone) > self._most:
            raise Infeasible(f"removed {len(gone)} of {self._n} nodes (at most {self._most})")
        # Equality here and in the count leaves removed no room for a node that is not in the tour.
        if (
            partial != list(filterfalse(gone.__contains__, current))
            or len(partial) + len(gone) != self._n
        ):
            raise Infeasible("partial_tour is not the tour without removed_nodes, in its order")
        return partial, removed

    def repaired(self, output: Any) -> list[int]:
        tour = node_list(output)
        if tour is None:
            raise Infeasible("complete_tour must be a list of integers")
        if len(tour) != self._n or self._nodes != set(tour):
            raise Infeasible("complete_tour does not visit every node exactly once")
        return tour

    def cost(self, solution: list[int]) -> float:
        return fsum(map(getitem, itemgetter(*solution)(self._rows), solution[1:] + solution[:1]))

    def encode(self, solution: list[int]) -> list[int]:
        return solution + solution[:1]


class TSP:
    """The parent's half; see `spo_jax.envs.problem.Problem`."""

    name = "tsp"
    spec = "spo_jax.envs.problems.tsp.rules:TSP"
    interface = Interface((DIST,), "current_tour")
    cpu_seconds = 10.0

    def sample(self, size: int, count: int, seed: int) -> list[Instance]:
        """`count` instances of `size` nodes, uniform in [0, 1)^2, Euclidean distances."""
        if size < 3:
            raise InputError(f"a TSP instance needs at least 3 nodes, not {size}")
        instances = []
        for k in range(count):
            coords = numpy_rng("tsp", "uniform", size, seed, k).random((size, 2))
            name = f"uniform-{size}-{k}@{seed}"
            instances.append(Instance("tsp", name, size, coords, tsplib.euclidean(coords)))
        return instances

    def read(self, path: str | Path) -> Instance:
        """A TSPLIB .tsp file. Raises InputError."""
        return tsplib.read(path)

    def rules(self, instance: Instance) -> TSPRules:
        return TSPRules(instance)

    def cost(self, instance: Instance, solution: Sequence[int]) -> float:
        """The exact float64 length of a closed tour."""
        tour = list(solution)
        return fsum(instance.dist[tour, tour[1:] + tour[:1]].tolist())

    def walk_length(self, instance: Instance) -> int:
        return instance.size + 1

    def decode(self, instance: Instance, walk: Sequence[int]) -> list[int]:
        tour = list(walk[: instance.size])
        if set(walk[instance.size :]) != {tour[0]} or set(tour) != set(range(instance.size)):
            raise Infeasible("not a tour of the instance")
        return tour

    def write(self, path: str | Path, instance: Instance, solution: Sequence[int]) -> None:
        """A TSPLIB tour file."""
        tsplib.write_tour(path, instance, solution)

    def classical_destroys(self) -> tuple[Program, ...]:
        return ()

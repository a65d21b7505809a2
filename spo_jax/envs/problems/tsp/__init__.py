"""The travelling salesperson problem. Workers import this module, so it imports little."""

from collections.abc import Sequence
from math import fsum
from pathlib import Path

from spo_jax.envs.problem import DIST, Infeasible, Instance, Problem, decoded
from spo_jax.envs.problems.tsp.rules import TSPRules
from spo_jax.errors import InputError
from spo_jax.program import Interface
from spo_jax.seeding import numpy_rng


class TSP(Problem):
    """The parent's half; see `spo_jax.envs.problem.Problem`."""

    name = "tsp"
    interface = Interface((DIST,), "current_tour")
    suffixes = (".tsp",)
    solution_suffix = ".tour"

    def sample(self, size: int, count: int, seed: int) -> list[Instance]:
        """`count` instances of `size` nodes, uniform in [0, 1)^2, Euclidean distances."""
        from spo_jax.envs.problems.tsp.files import euclidean

        if size < 3:
            raise InputError(f"a TSP instance needs at least 3 nodes, not {size}")
        instances = []
        for k in range(count):
            coords = numpy_rng("tsp", "uniform", size, seed, k).random((size, 2))
            name = f"uniform-{size}-{k}@{seed}"
            instances.append(Instance("tsp", name, size, coords, euclidean(coords)))
        return instances

    def read(self, path: str | Path) -> Instance:
        """A TSPLIB .tsp file. Raises InputError."""
        from spo_jax.envs.problems.tsp import files

        return files.read(path)

    def rules(self, instance: Instance) -> TSPRules:
        return TSPRules(instance)

    def cost(self, instance: Instance, solution: Sequence[int]) -> float:
        """The exact float64 length of a closed tour."""
        tour = list(solution)
        return fsum(instance.dist[tour, tour[1:] + tour[:1]].tolist())

    def code_length(self, instance: Instance) -> int:
        return instance.size

    def decode(self, instance: Instance, code: Sequence[int]) -> list[int]:
        if sorted(code) != list(range(1, instance.size + 1)):
            raise Infeasible("not a tour of the instance")
        return decoded(code)

    def write(self, path: str | Path, instance: Instance, solution: Sequence[int]) -> None:
        """A TSPLIB tour file."""
        from spo_jax.envs.problems.tsp.files import write_tour

        write_tour(path, instance, solution)

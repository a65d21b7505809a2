"""The travelling salesperson problem. Workers import this module: keep its imports light."""

import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from spo_jax.envs.files.reading import Reading
from spo_jax.envs.kits import kit_texts
from spo_jax.envs.problem import (
    DIST,
    OR_TOOLS,
    Baseline,
    Infeasible,
    Instance,
    Part,
    Problem,
    decoded,
)
from spo_jax.envs.problems.tsp import parts
from spo_jax.envs.problems.tsp.files import tables, tsplib
from spo_jax.envs.problems.tsp.files.weights import euclidean
from spo_jax.envs.problems.tsp.rules import TSPRules
from spo_jax.errors import InputError
from spo_jax.program import Interface, Role
from spo_jax.seeding import numpy_rng

if TYPE_CHECKING:
    from spo_jax.program.grammar.base import Grammar

_HERE = Path(__file__).parent


class TSP(Problem):
    """The parent's half; see `spo_jax.envs.problem.Problem`."""

    name = "tsp"
    interface = Interface((DIST,), "current_tour")
    suffixes = (".tsp", ".atsp")
    tables = (".csv",)
    reading = ("distances",)
    kit = f"{__name__}.kit"
    pair = str(_HERE / "pair.py")
    simple = str(_HERE / "simple.py")
    first = str(_HERE / "first.py")
    whole, region = 1000, 500
    directed = True
    solution_suffix = ".tour"
    baselines = MappingProxyType(
        {
            "nearest-neighbor": Baseline(f"{__name__}.baselines.heuristics:nearest_neighbor"),
            "farthest-insertion": Baseline(f"{__name__}.baselines.heuristics:farthest_insertion"),
            "2-opt": Baseline(f"{__name__}.baselines.heuristics:two_opt"),
            "3-opt": Baseline(f"{__name__}.baselines.heuristics:three_opt", symmetric=True),
            "alns": Baseline(f"{__name__}.baselines.alns:alns", seeded=True),
            "alns-example": Baseline(
                f"{__name__}.baselines.alns_example:alns_example",
                seeded=True,
                needs=("alns", "solvers"),
            ),
            "or-tools": Baseline(f"{__name__}.baselines.or_tools:or_tools", needs=OR_TOOLS),
            "or-tools-default": Baseline(
                f"{__name__}.baselines.or_tools:or_tools_default", needs=OR_TOOLS
            ),
            "lkh": Baseline(
                f"{__name__}.baselines.references:lkh_runs", seeded=True, needs=("elkai", "solvers")
            ),
        }
    )
    references = str(_HERE / "references.csv")
    quick_reference = 200

    def sample(self, size: int, count: int, seed: int) -> list[Instance]:
        """`count` instances of `size` nodes, uniform in [0, 1)^2, Euclidean distances."""
        if size < 3:
            raise InputError(f"a TSP instance needs at least 3 nodes, not {size}")
        instances = []
        for k in range(count):
            coords = numpy_rng("tsp", "uniform", size, seed, k).random((size, 2))
            name = f"uniform-{size}-{k}@{seed}"
            instances.append(Instance("tsp", name, size, coords, euclidean(coords)))
        return instances

    def read(self, path: str | Path, *, distances: str = "file") -> Instance:
        """A TSPLIB .tsp or .atsp file or a CSV; distances: as in `Reading`. Raises InputError."""
        reader = tables if Path(path).suffix.lower() in self.tables else tsplib
        return reader.read(path, Reading(distances))

    def rules(self, instance: Instance) -> TSPRules:
        return TSPRules(instance)

    def cost(self, instance: Instance, solution: Sequence[int]) -> float:
        """The exact float64 length of a closed tour."""
        return tsplib.tour_cost(instance.dist, solution)

    def costs(
        self, instances: Sequence[Instance], codes: np.ndarray, whose: np.ndarray
    ) -> np.ndarray:
        from spo_jax.envs.problems.tsp import pricing

        return pricing.costs(instances, codes, whose)

    def code_length(self, instance: Instance) -> int:
        return instance.size

    def decode(self, instance: Instance, code: Sequence[int]) -> list[int]:
        if sorted(code) != list(range(1, instance.size + 1)):
            raise Infeasible("not a tour of the instance")
        return decoded(code)

    def write(self, path: str | Path, instance: Instance, solution: Sequence[int]) -> None:
        """A TSPLIB tour file."""
        tsplib.write_tour(path, instance, solution)

    def read_solution(self, path: str | Path, instance: Instance) -> list[int]:
        """A TSPLIB tour file. Raises InputError."""
        return tsplib.read_tour(path, instance)

    def construct(self, instance: Instance, until: float = math.inf) -> list[int]:
        return parts.construct(instance, until)

    def trivial(self, instance: Instance) -> list[int] | None:
        return list(range(instance.size)) if instance.size < 3 else None

    def part(self, instance: Instance, solution: list[int], center: int, size: int) -> Part:
        return parts.part(instance, solution, center, size)

    def rewritten(self, solution: list[int], rng: random.Random) -> list[int]:
        """From another node on."""
        k = rng.randrange(len(solution))
        return solution[k:] + solution[:k]

    def walks(self, instance: Instance, solution: Sequence[int]) -> list[list[int]]:
        return [[*solution, solution[0]]]

    def lower_bound(self, instance: Instance) -> float:
        return tsplib.lower_bound(instance)

    def draw(self, axes: Any, instance: Instance, solution: Sequence[int]) -> None:
        from spo_jax.envs.problems.tsp.picture import draw

        draw(axes, instance, solution)

    def solve_reference(self, instance: Instance, effort: str) -> tuple[list[int], str, bool]:
        """A tour by LKH, proven or improved where that is affordable. Raises MissingExtra."""
        from spo_jax.envs.problems.tsp.baselines.references import solve_reference

        return solve_reference(instance, effort)

    def contract(self, role: Role) -> str:
        return (_HERE / f"contract-{role}.txt").read_text("utf-8")

    def frame(self, role: Role) -> str:
        return (_HERE / f"frame-{role}.txt").read_text("utf-8")

    def kit_texts(self, role: Role, kit: bool) -> Mapping[str, str]:
        return kit_texts(_HERE, role, kit)

    def grammar(self, role: Role, kit: bool = False) -> "Grammar":
        if kit:
            from spo_jax.envs.problems.tsp.grammar import kit_destroy, kit_repair

            return kit_destroy.GRAMMAR if role == "destroy" else kit_repair.GRAMMAR
        from spo_jax.envs.problems.tsp.grammar import destroy, repair

        return destroy.GRAMMAR if role == "destroy" else repair.GRAMMAR

    def operators(self) -> str:
        return (_HERE / "operators.txt").read_text("utf-8")

    def export(self) -> str:
        return (_HERE / "export.txt").read_text("utf-8")

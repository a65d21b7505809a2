"""The capacitated vehicle routing problem, with a free fleet as in the paper.

Workers import this module: keep its imports light.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import chain
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
    decoded,
)
from spo_jax.envs.problems.cvrp import parts
from spo_jax.envs.problems.cvrp.baselines.exact import MOST, best_routes
from spo_jax.envs.problems.cvrp.files import cvrplib, tables
from spo_jax.envs.problems.cvrp.limits import limits_of, require_lone, told
from spo_jax.envs.problems.cvrp.parts import RoutingProblem
from spo_jax.envs.problems.cvrp.rules import CVRPRules, Routes, require_start
from spo_jax.envs.problems.tsp.files.weights import euclidean
from spo_jax.errors import InputError
from spo_jax.program import Argument, Interface, Program, Role
from spo_jax.seeding import numpy_rng

if TYPE_CHECKING:
    from spo_jax.program.grammar.base import Grammar

_HERE = Path(__file__).parent


class CVRP(RoutingProblem):
    """The parent's half; see `spo_jax.envs.problem.Problem`."""

    name = "cvrp"
    interface = Interface(
        (
            DIST,
            Argument("demands", "row", "the demand of node i; node 0 is the depot"),
            Argument("capacity", "scalar"),
        ),
        "current_routes",
    )
    cpu_seconds = 30.0
    suffixes = (".vrp",)
    tables = (".csv",)
    reading = ("distances", "capacity", "vehicles")
    kit = f"{__name__}.kit"
    pair = str(_HERE / "pair.py")
    simple = str(_HERE / "simple.py")
    first = str(_HERE / "first.py")
    acceptances = ("record-to-record", "annealing")
    directed = True
    solution_suffix = ".sol"
    baselines = MappingProxyType(
        {
            "alns": Baseline(f"{__name__}.baselines.alns:alns", seeded=True),
            "clarke-wright": Baseline(f"{__name__}.baselines.heuristics:clarke_wright"),
            "local-search": Baseline(f"{__name__}.baselines.heuristics:local_search"),
            "alns-example": Baseline(
                f"{__name__}.baselines.alns_example:alns_example",
                seeded=True,
                needs=("alns", "solvers"),
            ),
            "or-tools": Baseline(f"{__name__}.baselines.or_tools:or_tools", needs=OR_TOOLS),
            "or-tools-default": Baseline(
                f"{__name__}.baselines.or_tools:or_tools_default", needs=OR_TOOLS
            ),
            "pyvrp": Baseline(
                f"{__name__}.baselines.references:pyvrp", seeded=True, needs=("pyvrp", "solvers")
            ),
        }
    )
    references = str(_HERE / "references.csv")
    quick_reference = 50
    # Where the paper's CVRP settings differ from its TSP settings (Appendices A.2, A.4 and A.5).
    settings = MappingProxyType(
        {
            "panel_evolved": 2,
            "panel_classical": True,
            "max_new_tokens": 2048,
            "lora_targets": "mixers+mlp",
            "micro_batch": 2,
        }
    )

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
            name = f"uniform-{size}-{k}@{seed}"
            instances.append(Instance("cvrp", name, size, coords, euclidean(coords), demands, 50))
        return instances

    def read(
        self,
        path: str | Path,
        *,
        distances: str = "file",
        capacity: float | None = None,
        vehicles: int | None = None,
    ) -> Instance:
        """A CVRPLIB .vrp file or a CSV; the rest is as in `Reading`. Raises InputError."""
        reader = tables if Path(path).suffix.lower() in self.tables else cvrplib
        return reader.read(path, Reading(distances, capacity, vehicles))

    def rules(self, instance: Instance) -> CVRPRules:
        return CVRPRules(instance)

    def require(self, instance: Instance) -> None:
        require_lone(instance)
        require_start(instance)

    def cost(self, instance: Instance, solution: Sequence[Sequence[int]]) -> float:
        """The exact float64 length of all routes, depot to depot."""
        return cvrplib.routes_cost(instance.dist, solution)

    def costs(
        self, instances: Sequence[Instance], codes: np.ndarray, whose: np.ndarray
    ) -> np.ndarray:
        from spo_jax.envs.problems.cvrp import pricing

        return pricing.costs(instances, codes, whose)

    def decode(self, instance: Instance, code: Sequence[int]) -> Routes:
        if len(code) == 0 or code[-1] != 0:
            raise Infeasible("the last route has no end")
        routes = [route for route in decoded(code) if route]
        if sorted(chain.from_iterable(routes)) != list(range(1, instance.size + 1)):
            raise Infeasible("not every customer is visited exactly once")
        demands, capacity = cvrplib.demands_of(instance)
        if any(demands[route].sum() > capacity for route in routes):
            raise Infeasible("a route exceeds the capacity")
        limits = limits_of(instance)
        if limits is not None and (wrong := limits.excess(instance.dist, routes)):
            raise Infeasible(wrong)
        return routes

    def write(
        self, path: str | Path, instance: Instance, solution: Sequence[Sequence[int]]
    ) -> None:
        """A CVRPLIB .sol file."""
        cvrplib.write_solution(path, instance, solution)

    def classical_destroys(self) -> tuple[Program, ...]:
        from spo_jax.envs.problems.cvrp.classical import CVRP_DESTROYS

        return CVRP_DESTROYS

    def read_solution(self, path: str | Path, instance: Instance) -> Routes:
        """A CVRPLIB .sol file. Raises InputError."""
        return cvrplib.read_solution(path, instance)

    def construct(self, instance: Instance, until: float = math.inf) -> Routes:
        return parts.construct(instance, until)

    def trivial(self, instance: Instance) -> Routes | None:
        return best_routes(instance) if instance.size <= MOST else None

    def lower_bound(self, instance: Instance) -> float:
        return cvrplib.lower_bound(instance)

    def draw(self, axes: Any, instance: Instance, solution: Sequence[Sequence[int]]) -> None:
        from spo_jax.envs.problems.cvrp.picture import draw

        draw(axes, instance, solution)

    def solve_reference(self, instance: Instance, effort: str) -> tuple[Routes, str, bool]:
        """The best routes of several runs of PyVRP. Raises MissingExtra."""
        from spo_jax.envs.problems.cvrp.baselines.references import solve_reference

        return solve_reference(instance, effort)

    def contract(self, role: Role) -> str:
        return (_HERE / f"contract-{role}.txt").read_text("utf-8")

    def frame(self, role: Role) -> str:
        return (_HERE / f"frame-{role}.txt").read_text("utf-8")

    def kit_texts(self, role: Role, kit: bool) -> Mapping[str, str]:
        return kit_texts(_HERE, role, kit)

    def limits(self, role: Role, instances: Sequence[Instance], kit: bool) -> str:
        return told(role, instances, kit)

    def grammar(self, role: Role, kit: bool = False) -> "Grammar":
        if kit:
            from spo_jax.envs.problems.cvrp.grammar import kit_destroy, kit_repair

            return kit_destroy.GRAMMAR if role == "destroy" else kit_repair.GRAMMAR
        from spo_jax.envs.problems.cvrp.grammar import destroy, repair

        return destroy.GRAMMAR if role == "destroy" else repair.GRAMMAR

    def operators(self) -> str:
        return (_HERE / "operators.txt").read_text("utf-8")

    def export(self) -> str:
        return (_HERE / "export.txt").read_text("utf-8")

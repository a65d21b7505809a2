"""The vehicle routing problem with time windows, with a free fleet and the distance to minimise.

Workers import this module: keep its imports light.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from spo_jax.envs.files.reading import Reading
from spo_jax.envs.kits import kit_texts
from spo_jax.envs.problem import DIST, OR_TOOLS, Baseline, Instance
from spo_jax.envs.problems.cvrp.baselines.exact import MOST
from spo_jax.envs.problems.cvrp.files.cvrplib import lower_bound, routes_cost
from spo_jax.envs.problems.cvrp.parts import RoutingProblem
from spo_jax.envs.problems.cvrp.rules import Routes
from spo_jax.envs.problems.tsp.files.weights import euclidean
from spo_jax.envs.problems.vrptw.baselines.exact import best_routes
from spo_jax.envs.problems.vrptw.files import solomon, vrplib
from spo_jax.envs.problems.vrptw.rules import TIMES, VRPTWRules, require_both_ways, require_times
from spo_jax.errors import InputError
from spo_jax.program import Argument, Interface, Program, Role
from spo_jax.seeding import numpy_rng

if TYPE_CHECKING:
    from spo_jax.program.grammar.base import Grammar

_HERE = Path(__file__).parent
HORIZON, SERVICE, WIDTHS = 3.0, 0.1, (0.2, 1.0)  # of sampled instances


class VRPTW(RoutingProblem):
    """The parent's half; see `spo_jax.envs.problem.Problem`."""

    name = "vrptw"
    interface = Interface(
        (
            DIST,
            Argument("demands", "row", "the demand of node i; node 0 is the depot"),
            Argument("capacity", "scalar"),
            Argument("ready", "row", "when service at node i can begin at the earliest"),
            Argument("due", "row", "when it must have begun; due[0] is when the depot closes"),
            Argument("service", "row", "how long service at node i takes"),
        ),
        "current_routes",
    )
    cpu_seconds = 30.0
    suffixes = (".txt", ".vrp")
    reading = ("distances",)
    kit = f"{__name__}.kit"
    pair = str(_HERE / "pair.py")
    simple = str(_HERE / "simple.py")
    solution_suffix = ".sol"
    baselines = MappingProxyType(
        {
            "alns": Baseline(f"{__name__}.baselines.alns:alns", seeded=True),
            "insertion-i1": Baseline(f"{__name__}.baselines.heuristics:insertion_i1"),
            "or-tools": Baseline(f"{__name__}.baselines.or_tools:or_tools", needs=OR_TOOLS),
            "pyvrp": Baseline(
                f"{__name__}.baselines.references:pyvrp", seeded=True, needs=("pyvrp", "solvers")
            ),
        }
    )
    quick_reference = 50
    settings = MappingProxyType({"panel_evolved": 2, "panel_classical": True})

    def sample(self, size: int, count: int, seed: int) -> list[Instance]:
        """`count` instances of `size` customers, in the way of Solomon's class R.

        Customers are uniform in [0, 1)^2 around a central depot, demands uniform integers 1..9, the
        capacity is 50. The depot is open from 0 to 3, and service takes 0.1. Of each customer's
        times at which a vehicle of its own could begin service, one is drawn uniformly; the window
        lies around it, with a width that is uniform in [0.2, 1), as far as such times go.
        """
        if size < 3:
            raise InputError(f"a VRPTW instance needs at least 3 customers, not {size}")
        instances = []
        for k in range(count):
            rng = numpy_rng("vrptw", "uniform", size, seed, k)
            coords = np.concatenate([[[0.5, 0.5]], rng.random((size, 2))])
            demands = np.concatenate([[0], rng.integers(1, 10, size)]).astype(np.int64)
            dist = euclidean(coords)
            first, last = dist[0], HORIZON - SERVICE - dist[0]
            center = first + (last - first) * rng.random(size + 1)
            half = rng.uniform(*WIDTHS, size + 1) / 2
            ready, due = np.maximum(first, center - half), np.minimum(last, center + half)
            service = np.full(size + 1, SERVICE)
            ready[0], due[0], service[0] = 0.0, HORIZON, 0.0
            extra = dict(zip(TIMES, (ready, due, service), strict=True))
            name = f"uniform-{size}-{k}@{seed}"
            instances.append(Instance("vrptw", name, size, coords, dist, demands, 50, extra=extra))
        return instances

    def read(self, path: str | Path, *, distances: str = "file") -> Instance:
        """A file in Solomon's format, or a .vrp; distances: as in `Reading`. Raises InputError."""
        reader = vrplib if Path(path).suffix.lower() == ".vrp" else solomon
        return reader.read(path, Reading(distances))

    def rules(self, instance: Instance) -> VRPTWRules:
        return VRPTWRules(instance)

    def require(self, instance: Instance) -> None:
        require_times(instance)
        require_both_ways(instance)

    def cost(self, instance: Instance, solution: Sequence[Sequence[int]]) -> float:
        """The exact float64 length of all routes, depot to depot."""
        return routes_cost(instance.dist, solution)

    def costs(
        self, instances: Sequence[Instance], codes: np.ndarray, whose: np.ndarray
    ) -> np.ndarray:
        from spo_jax.envs.problems.vrptw import pricing

        return pricing.costs(instances, codes, whose)

    def write(
        self, path: str | Path, instance: Instance, solution: Sequence[Sequence[int]]
    ) -> None:
        """A CVRPLIB .sol file."""
        solomon.write_solution(path, instance, solution)

    def read_solution(self, path: str | Path, instance: Instance) -> Routes:
        """A CVRPLIB .sol file. Raises InputError."""
        return solomon.read_solution(path, instance)

    def construct(self, instance: Instance, until: float = math.inf) -> Routes:
        from spo_jax.envs.problems.vrptw.construction import construct

        require_both_ways(instance)
        return construct(instance, until)

    def trivial(self, instance: Instance) -> Routes | None:
        return best_routes(instance) if instance.size <= MOST else None

    def lower_bound(self, instance: Instance) -> float:
        return lower_bound(instance)

    def draw(self, axes: Any, instance: Instance, solution: Sequence[Sequence[int]]) -> None:
        from spo_jax.envs.problems.cvrp.picture import draw

        solomon.check_routes(instance, solution)
        draw(axes, instance, solution)

    def solve_reference(self, instance: Instance, effort: str) -> tuple[Routes, str, bool]:
        """The best routes of several runs of PyVRP. Raises MissingExtra."""
        from spo_jax.envs.problems.vrptw.baselines.references import solve_reference

        return solve_reference(instance, effort)

    def classical_destroys(self) -> tuple[Program, ...]:
        from spo_jax.envs.problems.vrptw.classical import VRPTW_DESTROYS

        return VRPTW_DESTROYS

    def contract(self, role: Role) -> str:
        return (_HERE / f"contract-{role}.txt").read_text("utf-8")

    def frame(self, role: Role) -> str:
        return (_HERE / f"frame-{role}.txt").read_text("utf-8")

    def kit_texts(self, role: Role, kit: bool) -> Mapping[str, str]:
        return kit_texts(_HERE, role, kit)

    def grammar(self, role: Role, kit: bool = False) -> "Grammar":
        if kit:
            from spo_jax.envs.problems.vrptw.grammar import kit_destroy, kit_repair

            return kit_destroy.GRAMMAR if role == "destroy" else kit_repair.GRAMMAR
        from spo_jax.envs.problems.vrptw.grammar import destroy, repair

        return destroy.GRAMMAR if role == "destroy" else repair.GRAMMAR

    def export(self) -> str:
        return (_HERE / "export.txt").read_text("utf-8")

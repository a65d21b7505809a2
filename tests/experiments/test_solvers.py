"""The bench of solvers: VROOM within the rules of the problems, and the table."""

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.problems import get_problem
from spo_jax.envs.rules import Infeasible
from spo_jax.errors import InputError

sys.path.append(str(Path(__file__).parents[2] / "experiments" / "bench"))
from solvers import GROUPS, behind, limited, table
from vroom_solver import vroom


def cost_of(problem: Problem, instance: Instance, solution: Any) -> float:
    """Of a solution that the problem's parent accepts."""
    code = problem.encode(instance, solution)
    return problem.cost(instance, problem.decode(instance, code))


@pytest.mark.parametrize("problem", ["cvrp", "vrptw"])
def test_vroom_finds_the_optimum_of_few_customers(problem: str) -> None:
    known = get_problem(problem)
    for instance in known.sample(6, 3, seed=1):
        best, _, _ = known.solve_reference(instance, "quick")  # PyVRP's
        found = cost_of(known, instance, vroom(instance, 0, seconds=1.0))
        assert found == pytest.approx(cost_of(known, instance, best), rel=1e-9)


def with_service(instance: Instance) -> Instance:
    """With a longest duration, of which service times are a part."""
    longest = instance.extra["max_distance"]
    service = (0.0, *(0.1 * longest for _ in range(instance.size)))
    return replace(
        instance, extra=instance.extra | {"max_duration": 1.2 * longest, "service": service}
    )


@pytest.mark.parametrize("bounded", [lambda instance: instance, with_service])
def test_vroom_keeps_to_limits(bounded: Callable[[Instance], Instance]) -> None:
    known, refused = get_problem("cvrp"), 0
    for instance in map(bounded, limited(20, 3)):
        cost_of(known, instance, vroom(instance, 0, seconds=1.0))
        free = instance.extra | {"max_distance": math.inf, "max_duration": math.inf}
        try:
            cost_of(known, instance, vroom(replace(instance, extra=free), 0, seconds=1.0))
        except Infeasible:
            refused += 1
    assert refused  # without the limits VROOM makes what they exclude


def test_groups_have_instances_of_their_problem() -> None:
    for name in ("tsp-100", "vrptw-25"):
        problem, size = name.split("-")
        assert GROUPS[name][0] == problem
        assert GROUPS[name][1](2) == [f"uniform:{size}x2@2026"]
    problem, instances = GROUPS["cvrp-limits"]
    assert [(problem, each.size) for each in instances(2)] == [("cvrp", 100)] * 2


def test_groups_of_named_files_are_spread_over_the_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPO_DATA", str(tmp_path))
    problem, instances = GROUPS["Golden"]
    assert problem == "cvrp"
    with pytest.raises(InputError, match=r"Golden_3\.vrp.*Golden_7\.vrp.*set SPO_DATA"):
        instances(2)
    (tmp_path / "cvrplib" / "Golden").mkdir(parents=True)
    for k in (3, 7):
        (tmp_path / "cvrplib" / "Golden" / f"Golden_{k}.vrp").touch()
    assert [Path(path).stem for path in instances(2)] == ["Golden_3", "Golden_7"]


def record(**gaps: list[float]) -> dict[str, Any]:
    attempts = [
        {"method": method, "instance": str(k), "gap": gap, "seconds": 1.0}
        for method, several in gaps.items()
        for k, gap in enumerate(several)
    ]
    summary = [
        {"method": method, "gap": sum(several) / len(several)} for method, several in gaps.items()
    ]
    return {"attempts": attempts, "summary": summary}


def test_the_pair_is_compared_with_the_best_other_by_instance() -> None:
    found = record(pair=[1.0, 2.0, 3.0], lkh=[0.5, 1.5, 2.5], alns=[9.0, 9.0, 9.0])
    assert behind(found, {"pair": 2.0, "lkh": 1.5, "alns": 9.0}) == "0.50 (0.50 to 0.50)"
    row = table([("tsp-100", 10.0, found)]).splitlines()[-1]
    assert row == "| tsp-100 | 10 | 2.00 | 9.00 | **1.50** | 0.50 (0.50 to 0.50) |"

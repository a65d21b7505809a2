"""The bench of solvers: VROOM within the rules of the problems, and the table."""

import sys
from pathlib import Path
from typing import Any

import pytest

from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.problems import get_problem

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


def test_vroom_keeps_to_a_longest_route() -> None:  # or the problem refuses what it made
    known = get_problem("cvrp")
    for instance in limited(20, 3):
        cost_of(known, instance, vroom(instance, 0, seconds=1.0))


def test_groups_have_instances_of_their_problem() -> None:
    for name in ("tsp-100", "cvrp-limits", "vrptw-25"):
        problem, instances = GROUPS[name]
        assert problem == name.partition("-")[0]
        assert len(instances(2)) in (1, 2)  # a text names both


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

"""OR-Tools under the paper's time limits. What runs it is skipped where it is not installed."""

import sys
import time

import numpy as np
import pytest
from exhaustive import cheapest_routes, cvrp

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.cvrp.baselines import or_tools as theirs
from spo_jax.envs.problems.cvrp.baselines.or_tools import fleet, or_tools, time_limit
from spo_jax.envs.problems.tsp.baselines.or_tools import or_tools as tour_by_or_tools
from spo_jax.errors import MissingExtra

TSP, CVRP = get_problem("tsp"), get_problem("cvrp")


@pytest.fixture
def ortools():
    return pytest.importorskip("ortools", reason="OR-Tools is not installed (the solvers extra)")


@pytest.mark.parametrize(
    ("size", "seconds"),
    [(1, 1), (20, 1), (21, 2), (50, 2), (51, 5), (100, 5), (101, 8), (150, 8), (151, 10),
     (200, 10), (201, 30), (500, 30), (501, 60), (750, 60), (751, 120), (1000, 120)],
)  # fmt: skip
def test_the_time_limits_of_appendix_c(size, seconds):
    assert time_limit(size) == seconds


def test_the_fleet_is_free_but_finite():
    def instance(*demands: int) -> Instance:
        n = len(demands)
        return Instance(
            "cvrp", "x", n, np.zeros((n + 1, 2)), np.zeros((n + 1, n + 1)),
            np.array([0, *demands]), 10,
        )  # fmt: skip

    # Six of 6 need a route each: no two fit together, and 36 fill four vehicles.
    assert fleet(instance(*[6] * 6)) == 6
    assert fleet(instance(*[2] * 5)) == 1
    assert fleet(instance(*[2] * 6)) == 3
    assert fleet(instance(0, 0)) == 1


@pytest.mark.long
def test_the_cheapest_routes_of_tiny_instances(ortools):
    for n, seed in ((1, 0), (2, 1), (6, 2), (7, 3)):
        instance = cvrp(n, seed)
        routes = CVRP.rules(instance).repaired(or_tools(instance, seconds=1.0))
        assert CVRP.cost(instance, routes) == pytest.approx(cheapest_routes(instance))


def test_the_limit_of_the_paper_is_of_cpu_time(ortools, monkeypatch):
    monkeypatch.setattr(theirs, "time_limit", lambda size: 0.3)
    instance = CVRP.sample(40, 1, 0)[0]
    or_tools(instance, seconds=1.0)  # imports
    start = time.thread_time()
    CVRP.rules(instance).repaired(or_tools(instance))
    assert 0.3 <= time.thread_time() - start < 0.8


@pytest.mark.parametrize(("problem", "solve"), [(CVRP, or_tools), (TSP, tour_by_or_tools)])
def test_it_tells_each_new_best(ortools, problem, solve):
    reported = []
    instance = problem.sample(20, 1, 0)[0]
    found = solve(instance, seconds=1.0, report=reported.append)
    costs = [problem.cost(instance, problem.rules(instance).repaired(each)) for each in reported]
    assert costs == sorted(costs, reverse=True)
    assert len(costs) > 1
    assert costs[-1] == pytest.approx(problem.cost(instance, found))


def test_without_or_tools_it_says_what_to_install(monkeypatch):
    for name in [*sys.modules]:
        if name.split(".")[0] == "ortools":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ortools", None)  # as if not installed
    with pytest.raises(MissingExtra, match=r"spo-jax\[solvers\]"):
        or_tools(cvrp(3))

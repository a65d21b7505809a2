"""Instances of one and two places: solved at once, and no trouble for anything else."""

import contextlib
import itertools
import math
from importlib import import_module

import numpy as np
import pytest

from spo_jax.cli import main
from spo_jax.envs.problem import Instance
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.cvrp.files.cvrplib import check_routes
from spo_jax.envs.problems.tsp.files.weights import euclidean
from spo_jax.envs.report.evaluation import evaluate
from spo_jax.envs.report.references import solved
from spo_jax.envs.report.searched import solved_lines
from spo_jax.envs.report.solve import shipped_pair, solve
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program

TSP, CVRP = get_problem("tsp"), get_problem("cvrp")
PLACES = np.array([[0.0, 0], [3, 4], [0, 4]])
ONE = """TYPE : CVRP
DIMENSION : 2
EDGE_WEIGHT_TYPE : EUC_2D
CAPACITY : 15
NODE_COORD_SECTION
1 456 320
2 228 0
DEMAND_SECTION
1 0
2 1
DEPOT_SECTION
1
-1
"""
TWO = """TYPE : TSP
DIMENSION : 2
EDGE_WEIGHT_TYPE : EUC_2D
NODE_COORD_SECTION
1 10 10
2 52 13
"""


def routed(count, demands=(1, 1), capacity=2, dist=None):
    own = euclidean(PLACES[: count + 1]) if dist is None else np.array(dist, float)
    needs = np.array([0, *demands[:count]])
    return Instance("cvrp", f"c{count}", count, None, own, needs, capacity)


@pytest.mark.parametrize(
    ("text", "name", "first_line"),
    [
        (ONE, "one.vrp", "one: cost 786 in 1 route, gap unknown"),
        (TWO, "two.tsp", "two: cost 84, gap unknown"),
        ("x,y\n0,0\n3,4\n", "two.csv", "two: cost 10, gap unknown"),
    ],
)
def test_solve_answers_at_once(tmp_path, monkeypatch, capsys, text, name, first_line):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text)
    assert main(["solve", name]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(first_line)
    assert lines[1] == "too small to search: this is the best of all solutions"
    [written] = tmp_path.glob("*.spo.*")
    assert lines[2] == f"solution: {written.name}"


@pytest.mark.parametrize(
    ("instance", "best", "cost"),
    [
        (routed(1), [[1]], 10),
        (routed(2), [[1, 2]], 5 + 3 + 4),
        (routed(2, capacity=1), [[1], [2]], 10 + 8),
        (routed(2, dist=[[0, 9, 1], [1, 0, 9], [9, 1, 0]]), [[2, 1]], 1 + 1 + 1),
        (routed(2, dist=[[0, 1, 1], [1, 0, 9], [1, 9, 0]]), [[1], [2]], 4),
        (Instance("tsp", "t", 2, None, euclidean(PLACES[:2])), [0, 1], 10),
    ],
)
def test_the_best_of_all_solutions(instance, best, cost):
    problem = get_problem(instance.problem)
    broken = Program("destroy", "def destroy(*given):\n    return None\n")
    pair = Pair(broken, shipped_pair(problem).repair)  # it is not run
    found = solve(instance, pair, problem, steps=1, workers=1)
    assert (found.solution, found.cost, found.searches, found.failed) == (best, cost, 0, ())
    routes = "" if instance.demands is None else f" in {len(best)} route{'s' * (len(best) > 1)}"
    assert f"cost {cost}{routes}, gap" in solved_lines(found)[0]


def test_larger_ones_are_searched():
    assert TSP.trivial(TSP.sample(3, 1, 0)[0]) is None
    assert CVRP.trivial(CVRP.sample(9, 1, 0)[0]) is None
    found = solve(CVRP.sample(9, 1, 0)[0], shipped_pair(CVRP), CVRP, steps=5, workers=1)
    assert found.steps == 5


def best_by_hand(instance):
    """The least cost over all orders, cut everywhere; infinite where no solution is feasible."""
    best = math.inf
    for order in itertools.permutations(range(1, instance.size + 1)):
        for cuts in range(1 << instance.size - 1):
            routes = [[order[0]]]
            for k, node in enumerate(order[1:]):
                if cuts >> k & 1:
                    routes.append([])
                routes[-1].append(node)
            cost = CVRP.cost(instance, routes)
            if cost < best:
                with contextlib.suppress(InputError):
                    check_routes(instance, routes)
                    best = cost
    return best


@pytest.mark.parametrize("seed", range(24))
def test_the_best_of_a_handful_of_customers(seed):
    """With a limit in turn, and with distances that depend on the direction."""
    size, rng = 4 + seed % 3 // 2, np.random.default_rng(seed)
    dist = np.rint(100 * rng.random((size + 1, size + 1)))
    np.fill_diagonal(dist, 0)
    far = (dist[0] + dist[:, 0]).max()
    service = np.array([0, *rng.integers(1, 20, size)], dtype=float)
    extra = [
        {},
        {"max_distance": 1.3 * far},
        {"max_duration": 1.4 * far + 20, "service": service},
        {"max_vehicles": 2},
    ][seed % 4]
    instance = Instance(
        "cvrp", f"r{seed}", size, dist=dist, demands=np.array([0, *rng.integers(1, 6, size)]),
        capacity=11, extra=extra,
    )  # fmt: skip
    best = best_by_hand(instance)
    if best == math.inf:
        with pytest.raises(InputError, match="no solution"):
            CVRP.trivial(instance)
        return
    found = CVRP.trivial(instance)
    check_routes(instance, found)
    assert CVRP.cost(instance, found) == best


SMALL = [
    routed(1),
    routed(2),
    routed(2, (0, 0)),
    Instance("tsp", "t", 2, None, euclidean(PLACES[:2])),
    Instance("tsp", "d", 2, None, np.array([[0.0, 3], [4, 0]])),
]


@pytest.mark.long
@pytest.mark.parametrize("instance", SMALL, ids=lambda each: each.name)
def test_every_baseline_takes_them(instance):
    problem = get_problem(instance.problem)
    best = problem.cost(instance, problem.trivial(instance))
    for name, baseline in problem.baselines.items():
        if baseline.symmetric and instance.directed:
            continue
        module, function = baseline.function.split(":")
        found = getattr(import_module(module), function)(instance, *([0] * baseline.seeded))
        assert problem.cost(instance, found) == best, name
    assert problem.cost(instance, problem.construct(instance)) == best
    assert problem.lower_bound(instance) <= best
    assert solved(problem, instance).reference == best


@pytest.mark.parametrize(("text", "name", "cost"), [(ONE, "o.vrp", 786), (TWO, "t.tsp", 84)])
def test_evaluation_of_small_instances(tmp_path, text, name, cost):
    problem = CVRP if text is ONE else TSP
    (tmp_path / name).write_text(text)
    report = evaluate(shipped_pair(problem), problem, [str(tmp_path / name)], steps=5, workers=1)
    [group] = report.groups
    assert (group.summary.failed, group.summary.mean_cost) == (0, cost)

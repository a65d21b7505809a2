"""Problems that strangers write: each a file of its own, and no line of ours changed for it."""

import itertools
import json
import re
from pathlib import Path

import assignment
import numpy as np
import pytest
import vrptw

from spo_jax.cli import main
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program, parse_response
from spo_jax.runs.run import load_run

NAME = "vrptw:VRPTW"
C101 = """C101

VEHICLE
NUMBER     CAPACITY
  25         30

CUSTOMER
CUST NO.  XCOORD.   YCOORD.    DEMAND   READY TIME  DUE DATE   SERVICE TIME

    0      40         50          0          0       1236          0
    1      45         68         10        912        967         90
    2      45         70         10        825        870         90
    3      42         66         10         65        146         90
    4      42         68         10        727        782         90
    5      42         65         10         15         67         90
    6      40         69         20        621        702         90
"""


# --- routes with time windows ---------------------------------------------------------------------


def schedule(instance, route) -> bool:
    """Whether a route is in time and not too full; times as in the instance's own coordinates."""
    at, clock = instance.coords[0], 0.0
    for v in [*route, 0]:
        clock += float(np.linalg.norm(instance.coords[v] - at))
        clock = max(clock, instance.extra["windows"][v, 0])
        if clock > instance.extra["windows"][v, 1] + 1e-12:
            return False
        clock += instance.extra["service"][v]
        at = instance.coords[v]
    return sum(instance.demands[list(route)]) <= instance.capacity


def best_cost(instance) -> float:
    """The least cost of all sets of routes, by trying every order of every subset."""
    every = range(1, instance.size + 1)
    cost = {}
    for k in range(1, instance.size + 1):
        for order in itertools.permutations(every, k):
            if schedule(instance, order):
                stops = [0, *order, 0]
                length = sum(instance.dist[a, b] for a, b in itertools.pairwise(stops))
                key = frozenset(order)
                cost[key] = min(cost.get(key, np.inf), length)
    best = {frozenset(): 0.0}
    for k in range(1, instance.size + 1):
        for group in map(frozenset, itertools.combinations(every, k)):
            parts = (
                (each, best[group - each]) for each in cost if each <= group and min(group) in each
            )
            best[group] = min((cost[each] + rest for each, rest in parts), default=np.inf)
    return best[frozenset(every)]


def test_it_finds_the_optimum_of_small_instances() -> None:
    problem = get_problem(NAME)
    pairs = [
        Pair(parse_response("destroy", d), parse_response("repair", r))
        for d in vrptw.SHELF["destroy"]
        for r in vrptw.SHELF["repair"]
    ]
    instances = problem.sample(6, 2, 0)
    with LocalEvaluator(problem, workers=2) as evaluator:
        found = evaluator.run(pairs, instances, seeds=range(6), steps=100)
    assert found.ok.all(), found.reason
    for i, instance in enumerate(instances):
        assert found.final_cost[:, i].min() == pytest.approx(best_cost(instance), rel=1e-12)
        for p, s in itertools.product(range(len(pairs)), range(6)):
            routes = problem.decode(instance, found.code_of(p, i, s))
            assert all(schedule(instance, route) for route in routes)
            assert problem.cost(instance, routes) == found.final_cost[p, i, s]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A discovery with a generator of one's own."""
    out = tmp_path_factory.mktemp("stranger") / "run"
    tiny = "--size 8 --instances 1 --rollouts 1 --steps 10 --workers 1 --preset smoke"
    argv = ["discover", NAME, "--generator", "vrptw:Shelf", *tiny.split()]
    assert main([*argv, "--out", str(out)]) == 0
    return out


def spo(capsys, *arguments: object) -> tuple[int, str, str]:
    code = main([*map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_from_discovery_to_a_solution(run: Path, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_run(run).status == "finished"
    file, pair = tmp_path / "c101.txt", tmp_path / "pair.py"
    file.write_text(C101)
    instance = get_problem(NAME).read(file)
    assert spo(capsys, "export", run, "--out", pair)[0] == 0
    assert "windows is when service at node i may begin" in " ".join(pair.read_text().split())

    on = ["--on", file, tmp_path, "uniform:8x2", "--seeds", 2, "--steps", 20, "--workers", 1]
    code, output, _ = spo(capsys, "evaluate", pair, "--problem", NAME, *on, "--json", "report.json")
    assert code == 0
    assert "c101.txt" in output
    groups = json.loads(Path("report.json").read_text())["groups"]
    assert [len(group["instances"]) for group in groups] == [1, 1, 2]

    code, output, _ = spo(capsys, "solve", file, "--pair", run, "--steps", 50, "--workers", 1)
    assert code == 0
    routes = json.loads((tmp_path / "c101.spo.json").read_text())
    assert sorted(itertools.chain(*routes)) == [1, 2, 3, 4, 5, 6]
    assert all(schedule(instance, route) for route in routes)


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("solve", "c101.txt", "--pair", "RUN", "--plot", "a.png"), "no picture"),
        (("baseline", "alns", "--problem", NAME, "--on", "uniform:8x1"), "alns|baseline"),
        (("discover", NAME, "--generator", "grammar", "--out", "r"), "no grammar"),
        (("discover", NAME, "--model", "embedded", "--out", "r"), r"trained on \(tsp, cvrp\), not"),
        (("solve", "none.txt", "--pair", "RUN"), "none.txt is not in Solomon's format"),
    ],
)  # fmt: skip
def test_what_it_has_not_is_one_sentence(run, tmp_path, monkeypatch, capsys, arguments, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c101.txt").write_text(C101)
    code, _, errors = spo(capsys, *(run if each == "RUN" else each for each in arguments))
    assert code == 2
    assert re.search(says, errors), errors
    assert errors.count("\n") == 1
    assert not list(tmp_path.glob("*.png"))
    assert not (tmp_path / "r").exists()


# --- agents of jobs -------------------------------------------------------------------------------

DESTROY = """
def destroy(costs, weights, room, agents, z, rng):
    removed = rng.sample(range(len(agents)), max(1, len(agents) // 3))
    return [-1 if job in removed else agent for job, agent in enumerate(agents)], removed
"""
REPAIR = """
def repair(costs, weights, room, agents, removed, z, rng):
    for job in sorted(removed, key=lambda job: -weights[job] * rng.random()):
        left = list(room)
        for other, agent in enumerate(agents):
            if agent >= 0:
                left[agent] -= weights[other]
        fits = [k for k in range(len(room)) if left[k] >= weights[job]]
        agents[job] = min(fits or range(len(room)), key=lambda k: costs[job][k])
    return agents
"""


def test_a_solution_need_not_be_a_list_of_what_is_removed() -> None:
    problem = assignment.Assignment()
    assert problem.spec == "assignment:Assignment"
    pair = Pair(Program.from_source("destroy", DESTROY), Program.from_source("repair", REPAIR))
    instances = problem.sample(7, 2, 0)
    with LocalEvaluator(problem, workers=2, on_invalid="skip") as evaluator:
        found = evaluator.run([pair], instances, seeds=range(4), steps=200)
    assert found.ok.all(), found.failure(0)
    for i, instance in enumerate(instances):
        assert instance.coords is None
        assert instance.dist is None
        costs, weights, room = instance.extra.values()
        jobs = np.arange(7)
        best = min(
            costs[jobs, agents].sum()
            for agents in map(np.array, itertools.product(range(3), repeat=7))
            if all(weights[agents == k].sum() <= room[k] for k in range(3))
        )
        assert found.final_cost[0, i].min() == pytest.approx(best, rel=1e-12)


# --- problems that are wrong ----------------------------------------------------------------------


class Negative(assignment.AssignmentRules):
    def encode(self, solution):
        return [-1 for _ in solution]


class Long(assignment.AssignmentRules):
    def encode(self, solution):
        return [1] * 50


class Other(assignment.AssignmentRules):
    def encode(self, solution):
        return [99 for _ in solution]


class Cheap(assignment.AssignmentRules):
    def cost(self, solution):
        return super().cost(solution) - 1.0


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        (Negative, "has a code that is no list of at most 14 integers of at least 0"),
        (Long, "has a code that is no list"),
        (Other, "is infeasible once decoded .not an agent for each job."),
        (Cheap, "costs .* by its rules and .* once decoded"),
    ],
)
def test_halves_that_differ_are_reported_before_any_program_runs(monkeypatch, rules, says) -> None:
    class Wrong(assignment.Assignment):
        def rules(self, instance):
            return rules(instance, *instance.extra.values())

        def cost(self, instance, solution):
            return assignment.Assignment().cost(instance, solution)

    problem = Wrong()
    monkeypatch.setattr(problem, "found_as", "assignment:Assignment")
    pair = Pair(Program.from_source("destroy", DESTROY), Program.from_source("repair", REPAIR))
    with (
        LocalEvaluator(problem) as evaluator,
        pytest.raises(InputError, match=f"problem assignment: a start of gap-0 {says}"),
    ):
        evaluator.run([pair], problem.sample(7, 1, 0))

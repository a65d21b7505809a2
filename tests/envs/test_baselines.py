"""spo baseline: what it runs, what it refuses, and that its report is that of spo evaluate."""

import json
import multiprocessing
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spo_jax.cli import main
from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.baselines import (
    Heuristic,
    evaluate_baseline,
    get_baseline,
    run_baseline,
)
from spo_jax.envs.report.evaluation import Report
from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError, MissingExtra

TSP, CVRP, VRPTW = map(get_problem, ("tsp", "cvrp", "vrptw"))
SOLVERS = {"or-tools": "ortools", "lkh": "elkai", "pyvrp": "pyvrp"}  # name: package
EXAMPLES = {"or-tools-default": "ortools", "alns-example": "alns"}  # which take no time limit
BASELINES = {
    name: {each.name for each in (TSP, CVRP, VRPTW) if name in each.baselines}
    for name in (*TSP.baselines, *CVRP.baselines, *VRPTW.baselines)
}

MINE = '''
from spo_jax.envs.problem import Infeasible

VALUE = 3


def sweep(instance, seed):
    """By the horizontal coordinate, turned by the seed."""
    order = instance.coords[:, 0].argsort().tolist()
    return order[seed:] + order[:seed]


def twice(instance, seed):
    return [0] * instance.size


def crashing(instance, seed):
    if seed == 1:
        raise ValueError("no\\nluck")
    return list(range(instance.size))


def refusing(instance, seed):
    raise Infeasible("not today")


def needy(instance, seed, more):
    return None


def stepping(instance, seed, *, steps=7):
    return list(range(instance.size)) if steps == 7 else instance.coords[:, 1].argsort()


def slower_first(instance, seed):
    import time

    time.sleep(0.1 * (3 - seed))
    return sweep(instance, seed)


def dying(instance, seed):
    import os

    os._exit(9)
'''


# --- what there is --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "problem"),
    [(name, problem) for name, ours in BASELINES.items() for problem in sorted(ours)],
)
def test_every_baseline_solves(name, problem):
    if package := (SOLVERS | EXAMPLES).get(name):
        pytest.importorskip(package, reason=f"{package} is not installed (the solvers extra)")
    found = get_problem(problem)
    baseline = get_baseline(name, found)
    instance = found.sample(8, 1, 0)[0]
    options = {"steps": 5} if baseline.takes_steps else {}
    options |= {"seconds": 1.0} if name in SOLVERS else {}
    found.rules(instance).repaired(baseline.solve(instance, 0, **options))
    assert baseline.seeded == (name in ("alns", "alns-example", "lkh", "pyvrp"))


@pytest.mark.parametrize(
    ("name", "problem", "says"),
    [
        ("clarke-wright", TSP, "is no baseline of tsp: there is nearest-neighbor, "),
        ("2-opt", CVRP, "is no baseline of cvrp: there is alns, clarke-wright, "),
        ("nowhere:method", TSP, "cannot import baseline 'nowhere:method'"),
        ("mine:missing", TSP, "cannot import baseline 'mine:missing'"),
        ("mine:VALUE", TSP, "is of type int, not a function"),
        ("mine:needy", TSP, "must take (instance, seed)"),
        (":", TSP, "unknown baseline ':': use "),
    ],
)
def test_what_is_not_a_baseline(mine, name, problem, says):
    with pytest.raises(InputError) as caught:
        get_baseline(name, problem)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_or_tools_is_missed_before_anything_runs(monkeypatch):
    monkeypatch.setitem(sys.modules, "ortools", None)  # as if not installed
    with pytest.raises(MissingExtra, match=r"ortools is not installed: pip install 'spo-jax\["):
        get_baseline("or-tools", CVRP)


# --- runs -----------------------------------------------------------------------------------------


def test_runs_are_rollouts_of_one_step():
    instances = [*TSP.sample(5, 1, 0), *TSP.sample(8, 1, 1)]
    calls = []
    found = run_baseline(
        lambda instance, seed: list(range(instance.size)), TSP, instances,
        lambda *done: calls.append(done), seeds=(0, 1),
    )  # fmt: skip
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert (found.status == Status.OK).all()
    assert found.code[0, 0, 0].tolist() == [1, 2, 3, 4, 5, -1, -1, -1]
    for i, instance in enumerate(instances):
        assert found.final_cost[0, i].tolist() == [TSP.cost(instance, range(instance.size))] * 2
    assert (found.seconds >= 0).all()


def test_failures_are_data(mine):
    import mine as module

    instances = TSP.sample(6, 1, 0)
    found = run_baseline(module.crashing, TSP, instances, seeds=(0, 1, 2))
    assert found.status.tolist() == [[[Status.OK, Status.CRASH, Status.OK]]]
    assert found.reason[0, 0, 1] == "ValueError: no luck (mine.py, line 19)"
    found = run_baseline(module.twice, TSP, instances)
    assert found.failure(0) == (
        Status.INVALID,
        "complete_tour does not visit every node exactly once",
        "",
    )
    found = run_baseline(module.refusing, TSP, instances)
    assert found.failure(0) == (Status.INVALID, "not today", "")


def test_workers_change_nothing(mine):
    """In fresh processes, and with a user's module, which they find."""
    baseline = get_baseline("mine:crashing", TSP)
    instances = TSP.sample(9, 2, 0)
    one = run_baseline(baseline.solve, TSP, instances, seeds=(0, 1))
    two = run_baseline(baseline.solve, TSP, instances, seeds=(0, 1), workers=2)
    assert one.status.tolist() == two.status.tolist()
    assert one.reason.tolist() == two.reason.tolist()
    assert one.code.tolist() == two.code.tolist()
    with pytest.raises(InputError, match="use one"):
        run_baseline(lambda instance, seed: [], TSP, instances, workers=2)


@pytest.mark.long
def test_a_worker_that_ends_first_does_not_come_first(mine):
    method = get_baseline("mine:slower_first", TSP).solve
    instances = TSP.sample(9, 1, 0)
    one, two = (run_baseline(method, TSP, instances, seeds=range(4), workers=k) for k in (1, 2))
    assert one.code.tolist() == two.code.tolist()


def test_a_worker_that_dies_is_a_sentence(mine):
    method = get_baseline("mine:dying", TSP).solve
    with pytest.raises(InputError, match=r"a worker died.*use fewer workers"):
        run_baseline(method, TSP, TSP.sample(9, 1, 0), seeds=range(4), workers=2)
    assert not multiprocessing.active_children()


class Odd(Exception):
    """One that does not survive pickling."""

    def __init__(self, one, two):
        super().__init__(one)


class Unpriced(type(TSP)):
    def __init__(self, error):
        self.error = error

    def cost(self, instance, solution):
        raise Odd(1, 2) if self.error is None else self.error


@pytest.mark.long
def test_a_fault_of_the_problem_keeps_its_place_in_workers(mine):
    method = get_baseline("mine:sweep", TSP).solve
    errors = {KeyError("no price"): KeyError, ConnectionRefusedError("no price"): OSError}
    for error, kind in (*errors.items(), (None, RuntimeError)):
        with pytest.raises(kind, match="no price" if error else "Odd in a worker") as caught:
            run_baseline(method, Unpriced(error), TSP.sample(9, 1, 0), seeds=range(4), workers=2)
        assert "in cost" in caught.value.__notes__[0]
        assert not multiprocessing.active_children()


# --- reports --------------------------------------------------------------------------------------


def test_a_report_is_that_of_evaluate(mine):
    saved: list[Report] = []
    baseline = get_baseline("mine:sweep", TSP)
    report = evaluate_baseline(
        baseline, TSP, ["uniform:8x2@3", "uniform:6x1"], references="none", save=saved.append
    )
    assert [each.complete for each in saved] == [False, True]
    assert saved[-1] is report
    read = json.loads(report.to_json(), parse_constant=pytest.fail)
    assert read["pair"] is None
    assert read["baseline"] == {"name": "mine:sweep", "function": "mine:sweep"}
    assert read["settings"] == {"seeds": [0, 1, 2], "references": "none"}
    instance = TSP.sample(8, 2, 3)[1]
    result = read["groups"][0]["instances"][1]
    assert [rollout["seed"] for rollout in result["rollouts"]] == [0, 1, 2]
    for seed, rollout in enumerate(result["rollouts"]):
        order = instance.coords[:, 0].argsort().tolist()
        assert rollout["solution"] == order[seed:] + order[:seed]
        assert rollout["best_cost"] == TSP.cost(instance, order)
        assert rollout["initial_cost"] is rollout["gap"] is None


def test_gaps_are_to_the_references_of_files(mine):
    (mine / "square.tsp").write_text(
        "NAME : square\nTYPE : TSP\nDIMENSION : 4\nEDGE_WEIGHT_TYPE : EUC_2D\n"
        "NODE_COORD_SECTION\n1 0 0\n2 30 40\n3 0 40\n4 30 0\nEOF\n"
    )
    (mine / "solutions.json").write_text('{"square": 140}')
    report = evaluate_baseline(Heuristic("x", lambda *_: [0, 1, 2, 3]), TSP, ["square.tsp"])
    rollouts = report.groups[0].instances[0].rollouts
    assert [rollout.gap for rollout in rollouts] == [pytest.approx(100 * 20 / 140)] * 3
    report = evaluate_baseline(get_baseline("2-opt", TSP), TSP, ["square.tsp"], seeds=5)
    assert [rollout.gap for rollout in report.groups[0].instances[0].rollouts] == [0.0]


def test_steps_are_for_what_takes_them(mine):
    specs = ["uniform:9x1"]
    baseline = get_baseline("mine:stepping", TSP)
    plain = evaluate_baseline(baseline, TSP, specs, references="none", seeds=1)
    assert plain.settings["steps"] == 7
    assert plain.groups[0].instances[0].rollouts[0].solution == list(range(9))
    stepped = evaluate_baseline(baseline, TSP, specs, references="none", seeds=1, steps=8)
    assert stepped.settings["steps"] == 8
    assert stepped.groups[0].instances[0].rollouts[0].solution != list(range(9))
    with pytest.raises(InputError, match="2-opt takes no steps"):
        evaluate_baseline(get_baseline("2-opt", TSP), TSP, specs, steps=5)
    assert get_baseline("alns", TSP).takes_steps
    assert get_baseline("alns", CVRP).takes_steps


def test_a_third_problem_and_a_baseline_of_its_own(mine):
    problem = get_problem("third_problem:PathProblem")
    with pytest.raises(InputError, match="no baseline of path: it declares none"):
        get_baseline("alns", problem)
    (mine / "paths.py").write_text(
        "def straight(instance, seed):\n    return [*range(1, instance.size)]\n"
    )
    baseline = get_baseline("paths:straight", problem)
    report = evaluate_baseline(baseline, problem, ["uniform:6x2"], seeds=1)
    assert report.groups[0].summary.failed == 0


# --- the command ----------------------------------------------------------------------------------

ON = ["--on", "uniform:10x2@5", "--references", "none", "--workers", "1"]


def test_the_command_prints_a_table_and_writes_strict_json(mine, capsys):
    argv = ["baseline", "alns", "--problem", "cvrp", *ON, "--steps", "5", "--seeds", "2"]
    assert main([*argv, "--json", "report.json"]) == 0
    out, err = capsys.readouterr()
    assert "uniform:10x2@5: rollouts: 4 done\n" in out
    assert "written: report.json" in out
    assert "0/4" in out
    assert err == ""
    report = json.loads(Path("report.json").read_text(), parse_constant=pytest.fail)
    assert report["baseline"]["name"] == "alns"
    assert report["settings"] == {"seeds": [0, 1], "references": "none", "steps": 5}
    assert report["complete"]


def test_what_draws_nothing_runs_once_and_says_so(mine, capsys):
    argv = ["baseline", "2-opt", "--problem", "tsp", *ON]
    assert main(argv) == 0
    assert "rollouts: 2 done" in (quiet := capsys.readouterr().out)
    assert "at random" not in quiet
    assert main([*argv, "--seeds", "3"]) == 0
    assert "2-opt draws nothing at random: one rollout of each instance" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["concorde", "--problem", "tsp", *ON], "'concorde' is no baseline of tsp"),
        (["pyvrp", "--problem", "tsp", *ON], "no baseline of tsp"),
        (["2-opt", "--problem", "knapsack", *ON], "unknown problem"),
        (["2-opt", "--problem", "tsp", *ON, "--steps", "5"], "takes no steps"),
        (["2-opt", "--problem", "tsp", "--on", "nothing.tsp"], "nothing.tsp does not exist"),
        (["2-opt", "--problem", "tsp", *ON, "--json", "no/where.json"], "no folder"),
        (["mine:needy", "--problem", "tsp", *ON], "must take (instance, seed)"),
    ],
)
def test_bad_input_is_one_sentence(mine, capsys, argv, says):
    assert main(["baseline", *argv]) == 2
    out, err = capsys.readouterr()
    assert err.startswith("spo: ")
    assert err.count("\n") == 1
    assert says in err
    assert "done" not in out


def test_help_names_all_of_them(capsys):
    assert main(["baseline", "--help"]) == 0
    out = " ".join(capsys.readouterr().out.replace("-\n", "-").split())
    for name in BASELINES:
        assert f" {name}" in out.replace("- ", "-"), name


@pytest.mark.long
def test_the_command_runs_in_workers_of_its_own(mine):
    """As a person starts it: the workers import the user's module and not the command."""
    argv = ["baseline", "mine:sweep", "--problem", "tsp", "--on", "uniform:9x2"]
    done = subprocess.run(
        [sys.executable, "-m", "spo_jax", *argv, "--references", "none", "--workers", "2"],
        capture_output=True, text=True, cwd=mine,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "0/6" in done.stdout
    assert done.stderr == ""


# --- docs/baselines.md ----------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "baselines.md").read_text("utf-8")


def test_the_page_names_all_of_them():
    rows = re.findall(r"^\| `([\w-]+)` \| ([A-Za-z, ]+) \|", PAGE, re.MULTILINE)
    documented = {name: which.replace("all", "TSP, CVRP, VRPTW").lower() for name, which in rows}
    assert {name: set(which.split(", ")) for name, which in documented.items()} == BASELINES


def test_the_examples_of_the_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"^```python\n# (\w+)\.py\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert [name for name, _ in examples] == ["sweep", "patient"]
    for name, text in examples:
        Path(f"{name}.py").write_text(text)
    argv = ["--problem", "cvrp", *ON]
    assert main(["baseline", "sweep:sweep", *argv]) == 0
    assert main(["baseline", "patient:alns", *argv, "--steps", "5"]) == 0
    assert capsys.readouterr().out.count("0/6") == 2

"""A problem that maximises goes through every command as one that minimises the negative does, and
is shown with its values as they are. The oracle is a look at every subset of a few items."""

import io
import json
import math
import types
from dataclasses import replace

import knapsack
import numpy as np
import pytest

import spo_jax
from spo_jax import Pair, Program, get_problem
from spo_jax.cli import main
from spo_jax.envs.exports import tail
from spo_jax.envs.problem import rules_of
from spo_jax.envs.report.baselines import run_baseline
from spo_jax.envs.report.compare import compare
from spo_jax.envs.report.comparison.methods import methods_of
from spo_jax.envs.report.evaluation import evaluate
from spo_jax.envs.report.reference_files import read_references
from spo_jax.envs.report.references import known
from spo_jax.envs.report.reporting import console, show_report
from spo_jax.envs.report.solve import solve
from spo_jax.envs.report.writing import as_json
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.errors import InputError
from spo_jax.search.utility import utility_of

BAG, DEBT = "knapsack:Knapsack", "knapsack:Debts"
KEY = "-rng.random() * profits[item] / weights[item]"
PAIR = Pair(
    Program.from_source("destroy", knapsack.destroy({"key": "rng.random()", "count": 3})[1]),
    Program.from_source("repair", knapsack.repair({"key": KEY})[1]),
)


def best(instance):
    return float(instance.extra["profits"][knapsack.optimum(instance)].sum())


@pytest.fixture(scope="module")
def both():
    """The same rollouts of the problem that maximises and of its negative, with instances."""
    found = []
    for name in (BAG, DEBT):
        problem = get_problem(name)
        with LocalEvaluator(problem, workers=1) as evaluator:
            instances = problem.sample(12, 3, 0)
            # seeds are drawn by the digest, which has the problem's name in it
            found.append((problem, instances, evaluator.run([PAIR], instances, (0, 1, 2), 60)))
    return found


def test_a_rollout_finds_the_optimum_either_way(both):
    for problem, instances, rollouts in both:
        assert rollouts.ok.all(), rollouts.reason
        for i, instance in enumerate(instances):
            assert -rollouts.final_cost[0, i].min() == best(instance)
            for s in range(3):
                solution = problem.decode(instance, rollouts.code_of(0, i, s))
                value = problem.cost(instance, solution)
                assert problem.turned(value) == rollouts.final_cost[0, i, s] < 0
                assert abs(value) == knapsack.fsum(instance.extra["profits"][solution])


def test_j_is_the_share_of_the_starts_value_that_is_added(both):
    problem, instances, rollouts = both[0]
    scores = utility_of("improvement", problem)(rollouts, instances)
    for i in range(len(instances)):
        for s in range(3):
            first = -rollouts.initial_cost[0, i, s]
            last = -rollouts.final_cost[0, i, s]
            assert first > 0
            assert scores[0, i, s] == (last - first) / first >= 0


def test_a_utility_sees_references_as_it_sees_costs(both):
    problem, instances, rollouts = both[0]
    known = [replace(each, reference=best(each)) for each in instances]
    seen = []
    spo_jax.search.utility.UTILITIES._shipped["seen"] = lambda r, i: seen.extend(i)
    try:
        utility_of("seen", problem)(rollouts, known)
    finally:
        del spo_jax.search.utility.UTILITIES._shipped["seen"]
    assert [each.reference for each in seen] == [-best(each) for each in instances]


def test_evaluate_tells_values_and_how_far_they_are_below_the_best(tmp_path):
    report = evaluate(PAIR, get_problem(BAG), ["uniform:12x3@0"], steps=3, seeds=2, cache=tmp_path)
    [group] = report.groups
    assert json.loads(report.to_json())["settings"]["maximise"] is True  # its costs are values
    show_report(report, console(out := io.StringIO()))
    assert " value " in out.getvalue()
    assert "cost" not in out.getvalue().splitlines()[0]
    for each in group.instances:
        [instance] = [i for i in get_problem(BAG).sample(12, 3, 0) if i.name == each.name]
        assert (each.reference, each.certified) == (best(instance), True)
        for run in each.rollouts:
            value = instance.extra["profits"][run.solution].sum()
            assert run.initial_cost <= run.best_cost == value <= each.reference
            assert run.gap == 100 * (each.reference - value) / each.reference
    assert group.summary.mean_gap > 0
    assert group.summary.mean_cost > 0


@pytest.mark.long
def test_the_three_acceptances_differ():
    """Of a minimised profit the thresholds were below 0, and each of them was `improving`."""
    for name in (BAG, DEBT):
        problem = get_problem(name)
        [instance] = problem.sample(60, 1, 3)
        weak = Pair(
            PAIR.destroy, Program.from_source("repair", knapsack.repair({"key": "rng.random()"})[1])
        )
        found = {
            acceptance: solve(
                instance, weak, problem, steps=300, acceptance=acceptance, start="random"
            ).cost
            for acceptance in ("improving", "annealing", "record-to-record")
        }
        assert len(set(found.values())) == 3, found


def test_solve_tells_news_and_results_as_values():
    problem = get_problem(BAG)
    [instance] = problem.sample(12, 1, 5)
    instance = replace(instance, reference=best(instance))
    news = []
    found = solve(instance, PAIR, problem, steps=600, workers=1, progress=news.append)
    assert found.cost == best(instance)
    assert 0 < found.initial_cost <= found.cost
    assert found.gap == 0.0
    assert [each.cost for each in news] == sorted(each.cost for each in news)
    assert news[-1].cost == found.cost


@pytest.mark.slow
def test_compare_ranks_by_value():
    problem = get_problem(BAG)
    instances = problem.sample(14, 2, 1)
    weak = Pair(PAIR.destroy, Program.from_source("repair", REFUSES))
    pairs = {
        name: (pair, {"state": True, "on_invalid": "fail"})
        for name, pair in {"weak": weak, "good": PAIR}.items()
    }
    found = compare(problem, instances, methods_of(problem, pairs, ()), seconds=4.0)
    assert [each.name for each in found.ranked()] == ["good", "weak"]
    for instance in found.instances:
        values = [each.found.cost for each in found.attempts if each.instance is not None
                  and each.instance.name == instance.name]  # fmt: skip
        assert instance.reference == max(values) > 0
        gaps = [found.gap(instance, value) for value in values]
        assert min(gaps) == 0.0
        assert all(each >= 0 for each in gaps)
    for each in found.attempts:
        curve = [value for _, value in each.found.curve]
        assert curve == sorted(curve)
        assert curve[-1] == each.found.cost


REFUSES = """
def repair(profits, weights, room, rest, removed, steps, rng):
    return rest + removed
"""


def test_a_baseline_is_measured_likewise():
    problem = get_problem(BAG)
    instances = [replace(each, reference=best(each)) for each in problem.sample(10, 2, 0)]

    class Exact:
        def __call__(self, instance, seed):
            return knapsack.optimum(instance)

    found = run_baseline(Exact(), problem, instances)
    assert found.final_cost.tolist() == [[[-best(each)] for each in instances]]


def test_references_are_values_and_no_solution_is_above_the_bound(tmp_path):
    problem = get_problem(BAG)
    [instance] = problem.sample(10, 1, 0)
    file = tmp_path / "refs.csv"

    def with_row(value, of=instance):
        file.write_text(f"digest,cost\n{instance.digest},{value}\n")
        return known(problem, of, own=read_references(file)).reference

    assert with_row(50) == 50.0
    weak = replace(instance, reference=40.0)
    assert with_row(50, weak) == 50.0  # the higher one counts
    assert with_row(30, weak) == 40.0
    above = problem.lower_bound(instance) + 1
    with pytest.raises(InputError, match=f"{above:g} is more than any solution .*at most"):
        with_row(above)


@pytest.mark.long
def test_a_better_solution_in_a_file_is_kept(tmp_path, capsys):
    (tmp_path / "a.knapsack").write_text("12 0")
    out = tmp_path / "a.json"
    spo_jax.save_pair(tmp_path / "pair.py", PAIR, "", get_problem(BAG).interface)
    command = ["solve", str(tmp_path / "a.knapsack"), "--problem", BAG, "--out", str(out),
               "--pair", str(tmp_path / "pair.py"), "--steps", "30"]  # fmt: skip
    assert main(command) == 0
    printed = capsys.readouterr().out
    found = json.loads(out.read_text())
    [instance] = get_problem(BAG).sample(12, 1, 0)
    value = int(instance.extra["profits"][found].sum())
    assert f"a.knapsack: value {value}," in printed
    told = as_json(get_problem(BAG), instance, found)
    assert (told["cost"], told["maximise"]) == (value, True)
    out.write_text("[]")  # worth 0
    assert main(command) == 0
    assert "in place of one of value 0" in capsys.readouterr().out
    out.write_text(json.dumps(knapsack.optimum(instance)))
    assert main([*command[:-1], "1"]) == 0
    assert f"whose value {best(instance):g} is above" in capsys.readouterr().out
    assert instance.extra["profits"][json.loads(out.read_text())].sum() == best(instance)


@pytest.mark.parametrize("purpose", ["function", "alns"])
def test_an_exported_file_climbs(purpose, tmp_path):
    problem = get_problem(BAG)
    path = spo_jax.save_pair(
        tmp_path / "pair.py", PAIR, "", problem.interface, "", tail(problem, PAIR, purpose)
    )
    module = types.ModuleType("exported")
    exec(compile(path.read_text(), "exported.py", "exec"), module.__dict__)
    [instance] = problem.sample(12, 1, 2)
    given = [value.tolist() if isinstance(value, np.ndarray) else value
             for value in instance.extra.values()]  # fmt: skip
    if purpose == "alns":
        state = module.first_state(*given, knapsack.optimum(instance))
        assert state.objective() == -best(instance)
    else:
        solution = module.solve(*given, steps=80, seed=1)
        assert instance.extra["profits"][solution].sum() == best(instance)


def test_rules_and_problems_keep_the_users_sense():
    problem = get_problem(BAG)
    [instance] = problem.sample(6, 1, 0)
    rules = rules_of(problem, instance)
    assert rules.cost([0, 1]) == -rules.minimised([0, 1]) > 0
    assert problem.cost(instance, [0]) == -problem.minimised(instance, [0]) > 0
    nothing = problem.minimised(instance, [])
    assert nothing == 0.0
    assert math.copysign(1, nothing) == 1.0  # and not -0
    debts = get_problem(DEBT)
    assert debts.minimised(instance, [0]) == debts.cost(instance, [0]) < 0


@pytest.mark.slow
def test_a_discovery_and_its_report(tmp_path, capsys):
    command = ["discover", BAG, "--preset", "smoke", "--generator", "grammar", "--rounds", "2",
               "--size", "12", "--out", str(tmp_path / "run"), "--report"]  # fmt: skip
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "J is the share of a random start's value that the search adds." in printed
    assert "Gaps of the training instances are to" in printed
    assert "gap of the best" in printed
    run = spo_jax.load_run(tmp_path / "run")
    assert run.maximise
    assert run.best.utility > 0
    instances = {each.name: each for each in get_problem(BAG).sample(12, 50, run.config.seed)}
    for each in run.references:
        assert each.certified
        assert each.cost > 0
        if each.name in instances:
            assert each.cost == best(instances[each.name])
    assert 0 <= run.gaps[-1].best < 50
    page = (tmp_path / "run" / "report.html").read_text()
    assert "the share of a random start&#39;s value that the search adds" in page

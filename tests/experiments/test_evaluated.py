"""Evaluations: equal to plain rollouts, cached by what determines them, resumed after a kill."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from common import budgets, contenders, evaluated
from common.cli import Context
from spo_jax.config import Settings
from spo_jax.envs.glns_operators import load_each
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.alns import Settings as AlnsSettings
from spo_jax.envs.problems.tsp.baselines.alns import alns_search
from spo_jax.envs.run.adaptive import Adaptation
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.observation import HIDDEN
from spo_jax.envs.run.rollouts import Status
from spo_jax.program import Pair, Program

NAN = math.nan
TSP = get_problem("tsp")
PAIR = Pair(
    Program.from_source("destroy", '''
def destroy(dist, current_tour, steps_since_improvement, rng):
    """Random."""
    removed = rng.sample(current_tour, 1 + steps_since_improvement % 2)
    return [v for v in current_tour if v not in removed], removed
'''),
    Program.from_source("repair", '''
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    """Anywhere."""
    tour = list(partial_tour)
    for node in removed_nodes:
        tour.insert(rng.randrange(len(tour) + 1), node)
    return tour
'''),
)  # fmt: skip


@pytest.fixture(scope="module")
def instances():
    return [replace(each, reference=2.0) for each in TSP.sample(8, 4, 1)]


@pytest.fixture
def context(tmp_path):
    return Context(TSP, replace(budgets.BUDGETS["smoke"], steps=5), tmp_path)


def run(instances, context, **more):
    return evaluated.evaluate_pair(PAIR, Settings(), context, instances, **more)


@pytest.mark.long
def test_a_pair_is_rolled_out_once(instances, context, monkeypatch):
    found = run(instances, context)
    with LocalEvaluator(TSP) as evaluator:
        plain = evaluator.run([PAIR], instances, seeds=(0, 1), steps=5, fail_fast=False)
    np.testing.assert_array_equal(found.best_cost, plain.best_cost[0])
    np.testing.assert_array_equal(found.state, plain.state[0])
    np.testing.assert_allclose(found.gaps, 100 * (plain.final_cost[0] - 2) / 2)
    assert (found.failed, found.failure) == (0, "")

    # Nothing runs again: other references, another order, fewer of them, are joined to the rows.
    monkeypatch.setattr(evaluated, "LocalEvaluator", None)
    fewer = [replace(instances[3], reference=1.0), replace(instances[0], reference=None)]
    again = run(fewer, context)
    np.testing.assert_array_equal(again.best_cost, plain.best_cost[0, [3, 0]])
    np.testing.assert_allclose(again.gaps[0], 100 * (plain.final_cost[0, 3] - 1))
    assert math.isnan(again.by_instance[1])
    # But anything that determines a rollout makes it another.
    other = replace(context, budget=replace(context.budget, patience=1.0))
    for where, more in ((context, {"steps": 6}), (context, {"shown": HIDDEN}), (other, {})):
        with pytest.raises(TypeError, match="not callable"):
            run(instances, where, **more)


@pytest.mark.long
def test_a_killed_evaluation_resumes(instances, context, monkeypatch):
    monkeypatch.setattr(evaluated, "CHUNK", 8)  # an instance at a time
    real, asked = LocalEvaluator.run, []

    def killed(self, pairs, some, *rest, **more):
        asked.append([instance.name for instance in some])
        if len(asked) == 3:
            raise KeyboardInterrupt
        return real(self, pairs, some, *rest, **more)

    monkeypatch.setattr(LocalEvaluator, "run", killed)
    with pytest.raises(KeyboardInterrupt):
        run(instances, context)
    run(instances, context)
    assert asked == [[f"uniform-8-{k}@1"] for k in (0, 1, 2, 2, 3)]


def test_baselines_have_curves_where_they_search(instances, context):
    plain = evaluated.evaluate_baseline("nearest-neighbor", context, instances)
    assert (plain.best_cost.shape, plain.state.shape) == ((4, 1, 1), (4, 1, 0))
    alns = evaluated.evaluate_baseline("alns", context, instances[:2])
    for i, s in np.ndindex(2, 2):
        own = alns_search(instances[i], s, AlnsSettings(iterations=5))
        np.testing.assert_allclose(alns.best_cost[i, s], own.best_cost)


@pytest.mark.long
def test_failures_are_kept_and_our_own_faults_are_not(instances, context, monkeypatch):
    real = LocalEvaluator.run

    def failing(self, pairs, some, seeds, steps, **more):
        found = real(self, pairs, some, seeds, steps, **more)
        found.status[0, 1, 0] = Status.HOST_FAULT if steps == 5 else Status.TIMEOUT
        found.reason[0, 1, 0] = "why"
        found.best_cost[0, 1, 0] = NAN
        return found

    monkeypatch.setattr(LocalEvaluator, "run", failing)
    first = run(instances[:2], context)
    assert (first.failed, first.failure) == (1, "uniform-8-1@1 seed 0: host_fault: why")
    late = run(instances[:2], context, steps=4)
    monkeypatch.setattr(LocalEvaluator, "run", real)
    again = run(instances[:2], context)  # the instance of our fault alone
    assert again.failed == 0
    np.testing.assert_array_equal(again.best_cost[0], first.best_cost[0])
    monkeypatch.setattr(LocalEvaluator, "run", None)
    kept = run(instances[:2], context, steps=4)
    assert kept.failure == late.failure == "uniform-8-1@1 seed 0: timeout: why"
    assert kept.by_instance[1] == kept.gaps[1, 1]  # the mean of those that gave a solution


@pytest.mark.long
def test_a_runs_pair_is_evaluated_as_it_was_discovered(instances, context, monkeypatch):
    """Without the state, and with infeasible candidates skipped, whatever the contender says."""
    falters = PAIR.repair.source.replace("return tour", "return tour[steps_since_improvement:]")
    pair = Pair(PAIR.destroy, Program.from_source("repair", falters))
    settings = [Settings(), Settings.make(state=False), Settings.make(on_invalid="skip")]
    runs = [SimpleNamespace(best=SimpleNamespace(pair=pair), config=each) for each in settings]
    monkeypatch.setattr(evaluated, "runs_of", lambda *arguments: runs)
    found = evaluated.evaluate(contenders.SPO, context, instances)
    assert [each.failed == 0 for each in found] == [False, True, True]
    for each, options in zip(found[1:], ({"shown": HIDDEN}, {"on_invalid": "skip"}), strict=True):
        with LocalEvaluator(TSP, **options) as evaluator:
            plain = evaluator.run([pair], instances, seeds=(0, 1), steps=5, fail_fast=False)
        np.testing.assert_array_equal(each.best_cost, plain.best_cost[0])


OPERATORS = """
import random

def destroy_last(x, destroy_cnt, problem_data):
    return x[-destroy_cnt:], x[:-destroy_cnt]

def destroy_random(x, destroy_cnt, problem_data):
    removed = random.sample(x, destroy_cnt)
    return removed, [node for node in x if node not in removed]

def insert_back(x, removed, problem_data):
    return x + removed
"""


@pytest.mark.long
def test_released_operators_have_new_weights_for_each_instance_and_seed(
    instances, context, tmp_path
):
    file = tmp_path / "operators.py"
    file.write_text(OPERATORS)
    theirs = replace(contenders.RELEASED[0], operators=file)
    context = replace(context, budget=replace(context.budget, steps=40))
    found = evaluated.evaluate_operators(theirs, context, instances)
    programs = load_each(file, TSP)
    with LocalEvaluator(TSP) as evaluator:
        anew, carried = (
            evaluator.adaptive(
                programs["destroy"], programs["repair"], instances, (0, 1), 40, Adaptation(),
                carry=carry,
            ).rollouts.best_cost[0]
            for carry in (False, True)
        )  # fmt: skip
    np.testing.assert_array_equal(found.best_cost, anew)
    assert (anew[0] == carried[0]).all()
    assert (anew[1:] != carried[1:]).any()


def test_chunks_have_one_limit_each():
    sizes = [50, 50, 400, 600, 600, 900]
    some = [replace(TSP.sample(3, 1, 0)[0], size=size) for size in sizes]
    chunks = [[each.size for each in chunk] for chunk in evaluated._chunks(some, 1300)]
    assert chunks == [[50, 50, 400], [600, 600], [900]]


def test_means_of_what_is_known_and_milestones():
    values = np.array([[1.0, NAN, 3.0], [NAN, NAN, NAN]])
    np.testing.assert_array_equal(evaluated.mean_of_known(values), [2.0, NAN])
    np.testing.assert_array_equal(evaluated.mean_of_known(values, axis=0), [1.0, NAN, 3.0])
    assert [evaluated.milestones(k).tolist() for k in (0, 1, 3)] == [[0], [1], [1, 2, 3]]
    at = evaluated.milestones(500)
    assert (at[0], at[-1]) == (1, 500)
    assert (np.diff(at) > 0).all()

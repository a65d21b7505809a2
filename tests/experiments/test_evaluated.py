"""Evaluations: equal to plain rollouts, kept by what decides them, gone on with after a kill."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from common import budgets, contenders, evaluated, kept
from common.budgets import Group
from common.evaluated import Evaluated

from spo_jax.config import Settings
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.alns import Settings as AlnsSettings
from spo_jax.envs.problems.tsp.alns import alns_search
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Status
from spo_jax.envs.run.shown import HIDDEN
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program
from spo_jax.search.runs import pairs

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


def run(instances, out, **more):
    settings = {"steps": 5, "seeds": 2, "who": "it"} | more
    return evaluated.evaluate_pair(PAIR, TSP, instances, out=out, **settings)


def test_a_pair_is_rolled_out_once(instances, tmp_path, monkeypatch):
    found = run(instances, tmp_path)
    with LocalEvaluator(TSP) as evaluator:
        plain = evaluator.run([PAIR], instances, seeds=(0, 1), steps=5, fail_fast=False)
    np.testing.assert_array_equal(found.best_cost, plain.best_cost[0])
    np.testing.assert_array_equal(found.state, plain.state[0])
    assert found.curves.shape == (4, 2, 6)
    np.testing.assert_allclose(found.gaps, 100 * (plain.final_cost[0] - 2) / 2)
    assert (found.failed, found.failure, found.names[0]) == (0, "", "uniform-8-0@1")

    # Nothing runs again: other references, another order, fewer of them, are joined to the rows.
    monkeypatch.setattr(evaluated, "LocalEvaluator", None)
    fewer = [replace(instances[3], reference=1.0), replace(instances[0], reference=None)]
    again = run(fewer, tmp_path)
    np.testing.assert_array_equal(again.best_cost, plain.best_cost[0, [3, 0]])
    np.testing.assert_allclose(again.gaps[0], 100 * (plain.final_cost[0, 3] - 1))
    assert np.isnan(again.gaps[1]).all()
    assert math.isnan(again.by_instance[1])
    # But anything that decides a rollout makes it another.
    for more in ({"steps": 6}, {"seeds": 1}, {"shown": HIDDEN}, {"patience": 1.0}):
        with pytest.raises(TypeError, match="not callable"):
            run(instances, tmp_path, **more)
    described = json.loads(next((tmp_path / "evaluations").glob("*.json")).read_text())
    assert (described["pair"], described["instances"]) == (PAIR.digest, 4)


def test_a_killed_evaluation_goes_on(instances, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluated, "CHUNK", 8)  # an instance at a time
    real, asked = LocalEvaluator.run, []

    def killed(self, pairs, some, **more):
        asked.append([instance.name for instance in some])
        if len(asked) == 3:
            raise KeyboardInterrupt
        return real(self, pairs, some, **more)

    monkeypatch.setattr(LocalEvaluator, "run", killed)
    with pytest.raises(KeyboardInterrupt):
        run(instances, tmp_path)
    found = run(instances, tmp_path)
    names = [f"uniform-8-{k}@1" for k in (0, 1, 2, 2, 3)]
    assert asked == [[name] for name in names]
    monkeypatch.setattr(evaluated, "CHUNK", 800)
    whole = run(instances, tmp_path / "other")
    np.testing.assert_array_equal(found.best_cost, whole.best_cost)
    assert len(asked[5]) == 4


def test_baselines_have_curves_where_they_search(instances, tmp_path):
    plain = evaluated.evaluate_baseline(
        "nearest-neighbor", TSP, instances, steps=5, seeds=3, out=tmp_path
    )
    assert (plain.best_cost.shape, plain.state.shape) == ((4, 1, 1), (4, 1, 0))
    alns = evaluated.evaluate_baseline("alns", TSP, instances[:2], steps=7, seeds=2, out=tmp_path)
    assert alns.best_cost.shape == (2, 2, 8)
    for i in range(2):
        for seed in range(2):
            direct = alns_search(instances[i], seed, AlnsSettings(iterations=7))
            np.testing.assert_allclose(alns.best_cost[i, seed], direct.best_cost, rtol=1e-12)
    with pytest.raises(InputError, match="no baseline of tsp"):
        evaluated.evaluate_baseline("clarke-wright", TSP, instances, steps=5, seeds=1, out=tmp_path)


def test_failures_are_data_and_our_own_are_tried_again(instances, tmp_path, monkeypatch):
    real, fault = LocalEvaluator.run, [Status.HOST_FAULT, Status.TIMEOUT]

    def failing(self, pairs, some, **more):
        found = real(self, pairs, some, **more)
        found.status[0, 1, 0], found.reason[0, 1, 0] = fault.pop(0), "why"
        found.best_cost[0, 1, 0] = NAN
        return found

    monkeypatch.setattr(LocalEvaluator, "run", failing)
    first = run(instances[:2], tmp_path)
    assert (first.failed, first.failure) == (1, "uniform-8-1@1 seed 0: host_fault: why")
    # Only the instance whose rollout failed by our fault runs again, and alone this time.
    monkeypatch.setattr(LocalEvaluator, "run", real)
    again = run(instances[:2], tmp_path)
    assert again.failed == 0
    np.testing.assert_array_equal(again.best_cost[0], first.best_cost[0])

    monkeypatch.setattr(LocalEvaluator, "run", failing)
    late = run(instances[:2], tmp_path, steps=4)
    monkeypatch.setattr(LocalEvaluator, "run", None)
    kept_late = run(instances[:2], tmp_path, steps=4)
    assert kept_late.failure == late.failure == "uniform-8-1@1 seed 0: timeout: why"
    # An instance is worth the mean of the rollouts that gave a solution.
    assert kept_late.by_instance[1] == kept_late.gaps[1, 1]


def test_an_entry_is_one_process_and_may_be_damaged(tmp_path):
    entry = kept.Entry(tmp_path, {"pair": "x"}, steps=1, seeds=1)
    row = kept.Row(
        np.ones((1, 2)), np.zeros((1, 1), np.int32), np.ones(1), np.zeros(1, np.int8),
        np.array([""]),
    )  # fmt: skip
    with entry.held():
        other = kept.Entry(tmp_path, {"pair": "x"}, steps=1, seeds=1)
        with pytest.raises(InputError, match="being written by another experiment"), other.held():
            pass
        entry.write({"a": row})
    assert list(entry.read()) == ["a"]
    assert kept.Entry(tmp_path, {"pair": "y"}, steps=1, seeds=1).read() == {}
    whole = entry.path.read_bytes()
    entry.path.write_bytes(whole[: len(whole) // 2])
    assert entry.read() == {}


def test_contenders_are_evaluated(instances, tmp_path):
    budget = replace(budgets.BUDGETS["smoke"], steps=5)
    file = tmp_path / "pair.py"
    file.write_text(PAIR.destroy.source + PAIR.repair.source)
    given = contenders.asked("tsp", "spo", pair=str(file))[0]
    (found,) = evaluated.evaluate(given, TSP, instances, budget, tmp_path)
    assert (found.who, found.best_cost.shape) == ("spo", (4, 2, 6))
    nearest = contenders.CONTENDERS["nearest-neighbor"]
    (plain,) = evaluated.evaluate(nearest, TSP, instances, budget, tmp_path)
    assert plain.best_cost.shape == (4, 1, 1)
    empty = Group("tsplib-200-", ">200", "TSPLIB", (), missing="no files")
    with pytest.raises(InputError, match="TSPLIB >200: no files"):
        evaluated.evaluate(nearest, TSP, empty, budget, tmp_path)


def test_a_runs_pair_is_evaluated_as_it_was_discovered(instances, tmp_path, monkeypatch):
    """Without the state, and with infeasible candidates skipped, whatever the contender says."""
    falters = PAIR.repair.source.replace("return tour", "return tour[steps_since_improvement:]")
    pair = Pair(PAIR.destroy, Program.from_source("repair", falters))
    settings = [Settings(), Settings.make(state=False), Settings.make(on_invalid="skip")]
    runs = [SimpleNamespace(best=SimpleNamespace(pair=pair), config=each) for each in settings]
    monkeypatch.setattr(evaluated, "runs_of", lambda *arguments: runs)
    budget = replace(budgets.BUDGETS["smoke"], steps=5)
    found = evaluated.evaluate(contenders.SPO, TSP, instances, budget, tmp_path)
    assert [each.failed == 0 for each in found] == [False, True, True]
    for each, options in zip(found[1:], ({"shown": HIDDEN}, {"on_invalid": "skip"}), strict=True):
        with LocalEvaluator(TSP, **options) as evaluator:
            plain = evaluator.run([pair], instances, seeds=(0, 1), steps=5, fail_fast=False)
        np.testing.assert_array_equal(each.best_cost, plain.best_cost[0])
    # Kept apart, and a run folder that is given says the same of itself as one that was found.
    again = evaluated.evaluate(contenders.SPO, TSP, instances, budget, tmp_path)
    assert [each.failed for each in again] == [each.failed for each in found]
    monkeypatch.setattr(pairs, "resolve", lambda path, problem: (TSP, pair, settings[1]))
    given = contenders.asked("tsp", "spo", pair=str(tmp_path))[0]
    (own,) = evaluated.evaluate(given, TSP, instances, budget, tmp_path)
    np.testing.assert_array_equal(own.best_cost, found[1].best_cost)


def test_chunks_have_one_limit_each():
    sizes = [50, 50, 400, 600, 600, 900]
    some = [replace(TSP.sample(3, 1, 0)[0], size=size) for size in sizes]
    chunks = [[each.size for each in chunk] for chunk in evaluated._chunks(some, 1300)]
    assert chunks == [[50, 50, 400], [600, 600], [900]]


def test_means_of_what_is_known():
    values = np.array([[1.0, NAN, 3.0], [NAN, NAN, NAN]])
    np.testing.assert_array_equal(evaluated.mean_of_known(values), [2.0, NAN])
    np.testing.assert_array_equal(evaluated.mean_of_known(values, axis=0), [1.0, NAN, 3.0])


def made(who, gaps, status=0):
    """An `Evaluated` with these gaps [I][S] to references of 100."""
    cost = 100 + np.array(gaps, dtype=float)
    count, seeds = cost.shape
    statuses = np.where(np.isnan(cost), Status.TIMEOUT, status).astype(np.int8)
    return Evaluated(
        who, tuple(f"i{k}" for k in range(count)), ("file",) * count, np.full(count, 9),
        cost[..., None], np.zeros((count, seeds, 0), np.int32), np.ones((count, seeds)),
        np.full(count, 100.0), statuses, np.full((count, seeds), "slow"),
    )  # fmt: skip

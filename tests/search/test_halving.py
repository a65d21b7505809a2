"""Successive halving against brute force, and the validation of a run that uses it."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spo_fakes import small
from test_validation import TSP, best, finished

from spo_jax.envs.run.rollouts import Rollouts, Status
from spo_jax.search.halving import LAST, halving, mixed, rungs
from spo_jax.search.instances import validation_instances
from spo_jax.search.rounds import Best, Observer
from spo_jax.search.validation import FEWEST_CONTROLS, controls_wanted, validate


def test_rungs_by_hand() -> None:
    assert rungs(24, 12) == [(24, 2), (12, 3), (6, 6), (3, 12)]
    assert rungs(24, 9) == [(24, 2), (12, 3), (6, 5), (3, 9)]
    assert rungs(6, 3) == [(6, 2), (3, 3)]
    assert rungs(48, 16) == [(48, 1), (24, 2), (12, 4), (6, 8), (3, 16)]
    assert rungs(4, 100) == [(4, 100)]  # half of them would be fewer than the last few
    assert rungs(100, 1) == [(100, 1)]
    assert rungs(1, 5) == [(1, 5)]


@given(st.integers(1, 200), st.integers(1, 64))
def test_halving_never_costs_more_than_a_validation_of_all(pairs: int, instances: int) -> None:
    found = rungs(pairs, instances)
    assert found[0][0] == pairs
    assert found[-1][1] == instances
    assert found[-1][0] >= min(LAST, pairs)
    for (many, few), (fewer, more) in pairwise(found):
        assert fewer == -(-many // 2)
        assert few < more
    before = [0, *(seen for _, seen in found)]
    cost = sum(n * (seen - old) for (n, seen), old in zip(found, before, strict=False))
    assert cost <= pairs * instances
    assert (cost < pairs * instances) == (len(found) > 1)


def brute_force(scores: np.ndarray, order: Sequence[int]) -> list[float | None]:
    """[P, I, S]: drop the worse half again and again, each time from all that was seen by then."""
    found: list[float | None] = [None] * len(scores)
    left = list(range(len(scores)))
    for k, (size, seen) in enumerate(rungs(len(scores), len(order))):
        if k:
            earlier = rungs(len(scores), len(order))[k - 1][1]
            means = {p: scores[p, order[:earlier]].mean() for p in left}
            left = sorted(left, key=lambda p: (-means[p], p))[:size]
        for p in list(left):
            if np.isnan(scores[p, order[:seen]]).any():
                found[p] = math.nan
                left.remove(p)
    for p in left:
        found[p] = scores[p, order].mean()
    return found


@pytest.mark.long
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 12), st.integers(1, 2))
def test_halving_equals_brute_force(seed: int, pairs: int, instances: int, seeds: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 8, (pairs, instances, seeds)) / 8  # ties
    scores[rng.random(pairs) < 0.2, rng.integers(instances)] = np.nan
    order = rng.permutation(instances).tolist()
    asked: list[tuple[int, int]] = []

    def measure(some: Sequence[int], places: Sequence[int]) -> np.ndarray:
        asked.extend((p, i) for p in some for i in places)
        return scores[np.ix_(some, places)]

    found = halving(pairs, order, measure)
    for ours, theirs in zip(found, brute_force(scores, order), strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None and theirs is not None:
            assert ours == pytest.approx(theirs, nan_ok=True)
    assert len(set(asked)) == len(asked)  # no rollout is run twice


def test_a_clear_best_wins_and_the_worst_is_dropped_first() -> None:
    scores = np.arange(24.0)[:, None, None] * np.ones((1, 12, 1))
    found = halving(24, range(12), lambda p, i: scores[np.ix_(p, i)])
    assert found == [None] * 21 + [21.0, 22.0, 23.0]


def test_every_portion_has_all_sizes() -> None:
    sets = [*TSP.sample(5, 4, 0), *TSP.sample(6, 4, 0), *TSP.sample(7, 1, 0)]
    # Shares of the size that come before: 1/8, 3/8, 5/8, 7/8 for four of a size, 1/2 for one alone.
    assert mixed(sets) == [0, 4, 1, 5, 8, 2, 6, 3, 7]
    assert mixed(sets[:4]) == [0, 1, 2, 3]


class Known:
    """An evaluator whose J of a pair on an instance is in a table by the pair's discovery J."""

    def __init__(self, scores: dict[str, list[float]], instances: list[str]):
        self.scores, self.instances = scores, instances
        self.batches: list[tuple[list[str], list[str]]] = []

    def run(self, pairs, instances, seeds=(0,), steps=1, **more):  # type: ignore[no-untyped-def]
        self.batches.append(([p.digest for p in pairs], [i.digest for i in instances]))
        shape = (len(pairs), len(instances), len(seeds))
        cost = np.full((*shape, steps + 1), 1.0)
        status = np.zeros(shape, np.int8)
        for p, pair in enumerate(pairs):
            for i, instance in enumerate(instances):
                row = self.scores[pair.digest]
                known = instance.digest in self.instances
                value = row[self.instances.index(instance.digest)] if known else 0.25
                cost[p, i, :, -1] = 1 - value
                if math.isnan(value):
                    status[p, i] = Status.CRASH
        none, text = np.zeros((*shape, 0)), np.full(shape, "", object)
        return Rollouts(cost, none, status, np.ones(shape), none, text, text)


def some_finalists(count: int) -> list[Best]:
    repair = "def repair(dist, tour, removed, z, rng):\n    return removed + tour + [][:{}]\n"
    return [best(repair.format(k), 1 - k / 64) for k in range(count)]


def test_a_validation_by_halving_measures_what_the_rule_says() -> None:
    config = small(validation_instances=4, validation_size=8, finalists=12, halving=True,
                   rollouts=2, select="validation")  # fmt: skip
    named = some_finalists(12)
    instances = [i.digest for i in validation_instances(config, TSP)]
    rng = np.random.default_rng(1)
    table = {f.pair.digest: (rng.integers(0, 64, 4) / 64).tolist() for f in named}
    table[named[2].pair.digest][0] = math.nan
    evaluator = Known(table, instances)
    controls = [replace(named[5], round=2)]
    finals = validate(config, TSP, evaluator, named, controls, Observer())  # type: ignore[arg-type]
    scores = np.array([table[f.pair.digest] for f in named])[..., None]
    expected = brute_force(scores, range(4))
    assert [f.validation for f in finals.finalists] == pytest.approx(expected, nan_ok=True)
    *rounds, (afresh, _) = evaluator.batches
    assert [(len(p), len(i)) for p, i in rounds] == [(12, 1), (6, 1), (3, 2)]
    # On fresh instances: the highest J, those that were not dropped, and the controls.
    kept = [f for k, f in enumerate(finals.finalists) if k == 0 or f.validation is not None]
    assert afresh == [each.pair.digest for each in (*kept, *controls)]
    assert [f.fresh is not None for f in finals.finalists] == [f in kept for f in finals.finalists]
    assert finals.controls == (replace(controls[0], fresh=0.25),)
    winner = max(v for v in expected if v is not None and not math.isnan(v))
    assert finals.chosen("validation").validation == winner  # type: ignore[union-attr]


def test_without_halving_all_are_measured_on_everything() -> None:
    config = small(validation_instances=4, validation_size=8, finalists=12)
    named = some_finalists(12)
    instances = [i.digest for i in validation_instances(config, TSP)]
    evaluator = Known({f.pair.digest: [0.5] * 4 for f in named}, instances)
    finals = validate(config, TSP, evaluator, named, [], Observer())  # type: ignore[arg-type]
    assert [(len(p), len(i)) for p, i in evaluator.batches] == [(12, 4), (12, 8)]
    assert {(f.validation, f.fresh) for f in finals.finalists} == {(0.5, 0.25)}
    assert controls_wanted(config) == 12
    assert controls_wanted(config.replace(halving=True)) == FEWEST_CONTROLS


def test_what_was_dropped_is_kept_without_a_validation(tmp_path: Path) -> None:
    with finished(tmp_path, halving=True, select="validation") as store:
        named = store.candidates(3)
        values = (None, 0.25, None)
        found = tuple(replace(f, validation=v) for f, v in zip(named, values, strict=True))
        store.commit_finals(replace(store.finals(), finalists=found))
        assert store.finals().finalists == found
        assert store.best() == found[1]

"""Races in rounds of a payoff table: against loops, scipy and cases worked out by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from spo_jax.errors import InputError
from spo_jax.search.lab.racing import (
    Bounded,
    WorstOut,
    completed,
    race,
    raced,
    races,
    scores_of,
)
from spo_jax.search.lab.replay import measured, replay
from spo_jax.search.lab.schemes import Scheme
from spo_jax.search.lab.tables import Table

CREDIT = Scheme("stackelberg")


@pytest.fixture
def table():
    """Six destroys, five repairs, four evaluations of different levels."""
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(6, 5, 1)) + [0, 10, -5, 3] + 0.1 * rng.normal(size=(6, 5, 4))
    return Table(scores, np.full(6, -1))


def test_the_worst_share_is_out_by_hand():
    scores = np.array([[[3, 0, 9], [1, 1, 9], [2, 2, 9], [5, 5, 9]]], float)
    made = race(WorstOut(2, 0.5), scores)  # means of two: 1.5, 1, 2, 5
    np.testing.assert_array_equal(made[0, :, 2], [False, False, True, True])
    assert made[..., :2].all()
    made = race(WorstOut(1, 0.25), scores)  # first scores: 3, 1, 2, 5
    np.testing.assert_array_equal(made[0, :, 1], [True, False, True, True])
    np.testing.assert_array_equal(made[0, :, 2], made[0, :, 1])  # who is out stays out
    assert race(WorstOut(2, 0.24), scores).all()  # a share is rounded down


def test_the_bound_is_a_paired_t_test_against_the_best_so_far():
    scores = np.random.default_rng(1).normal(size=(20, 7, 5)) + np.arange(7)[:, None]
    made = race(Bounded(0.95), scores)
    for n, rows in enumerate(scores):
        alive = set(range(7))
        for count in range(1, 5):
            seen = rows[:, :count]
            best = max(alive, key=lambda p: seen[p].mean())
            worse = {
                p for p in alive - {best}
                if count > 1
                and stats.ttest_rel(seen[best], seen[p], alternative="greater").pvalue < 0.05
            }  # fmt: skip
            alive -= worse
            assert set(np.flatnonzero(made[n, :, count])) == alive


def test_an_estimate_takes_the_levels_of_evaluations_from_those_that_have_all():
    scores = np.array([[[1.0, 11.0], [2.0, 14.0], [0.0, 100.0]]])
    made = np.array([[[True, True], [True, True], [True, False]]])
    # Levels 1.5 and 12.5; the third is 1.5 below on what it has, of a mean of 7.
    np.testing.assert_allclose(completed(scores, made), [[6.0, 8.0, 5.5]])
    whole = np.random.default_rng(2).normal(size=(3, 4, 5))
    np.testing.assert_allclose(completed(whole, np.ones(whole.shape, bool)), whole.mean(axis=2))


def test_without_a_rule_it_is_the_round_itself(table):
    rounds = replay(table, 3, 20, group=4, evaluations=4)
    own, plain = raced(None, CREDIT, table, rounds), measured(CREDIT, table, rounds)
    np.testing.assert_array_equal(own.spent, 1)
    np.testing.assert_array_equal(own.quarter, 1)
    assert np.isnan(own.bias).all()
    np.testing.assert_allclose(own.rank, plain["rank"])
    np.testing.assert_allclose(own.regret, plain["regret"])


def test_scores_are_those_of_the_round_in_its_order(table):
    rounds = replay(table, 3, 5, group=4, evaluations=3)
    found = scores_of(table, rounds).reshape(5, 4, 3, 3)
    for n, d, j, e in np.ndindex(found.shape):
        place = rounds.leaders[n, d], rounds.source[n, d, j], rounds.seen[n, e]
        assert found[n, d, j, e] == table.scores[place]


def test_a_race_spends_less_and_its_bias_is_downward(table):
    rounds = replay(table, 4, 300, group=6, evaluations=4)
    own = raced(WorstOut(1, 0.5), CREDIT, table, rounds)
    np.testing.assert_allclose(own.spent, (1 + 3 * 0.5) / 4)
    assert own.bias.mean() < 0
    # Noise is a tenth of the differences: the best of all is hardly ever out.
    assert own.best.mean() > 0.99


def test_rows_have_a_star_where_they_differ():
    rng = np.random.default_rng(3)
    table = Table(rng.normal(size=(6, 5, 1)) + 2 * rng.normal(size=(6, 5, 8)), np.full(6, -1))
    rounds = replay(table, 4, 1000, group=6, evaluations=8)

    def backwards(scores):
        means = scores.mean(axis=-1)
        return np.isfinite(means) & (means <= np.nanmedian(means, axis=-1, keepdims=True))

    first, harmful = races(table, rounds, CREDIT, [backwards])
    assert first[0] == "all evaluations"
    assert "*" not in "".join(first)
    assert harmful[-1].endswith("*")
    assert float(harmful[-1].rstrip("*")) > float(first[-1])


def test_what_is_no_rule(table):
    scores = np.random.default_rng(0).normal(size=(2, 3, 4))
    with pytest.raises(InputError, match="no pair"):
        race(lambda seen: np.zeros(seen.shape[:2], bool), scores)
    with pytest.raises(InputError, match="no bools"):
        race(lambda seen: seen.mean(axis=-1), scores)
    for own in ((0, 0.5), (1, 1.0), (1, -0.1), (1, math.nan)):
        with pytest.raises(InputError, match="WorstOut"):
            WorstOut(*own)
    for level in (0.5, 1, math.nan):
        with pytest.raises(InputError, match="level"):
            Bounded(level)

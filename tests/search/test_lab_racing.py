"""Races replayed from a payoff table: against loops and cases worked out by hand."""

import numpy as np
import pytest

from spo_jax.errors import InputError
from spo_jax.search.lab.racing import race, raced, races
from spo_jax.search.lab.replay import measured, replay
from spo_jax.search.lab.schemes import Scheme
from spo_jax.search.lab.tables import Table
from spo_jax.search.racing import TTest, WorstOut, completed, decided

CREDIT = Scheme("stackelberg")


@pytest.fixture
def table():
    """Six destroys, five repairs, four evaluations of different levels."""
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(6, 5, 1)) + [0, 10, -5, 3] + 0.1 * rng.normal(size=(6, 5, 4))
    return Table(scores, np.full(6, -1))


def test_who_is_out_stays_out():
    scores = np.array([[[3, 0, 9], [1, 1, 9], [2, 2, 9], [5, 5, 9]]], float)
    made = race(WorstOut(1, 0.25), scores)  # first scores: 3, 1, 2, 5
    np.testing.assert_array_equal(made[0, :, 1], [True, False, True, True])
    np.testing.assert_array_equal(made[0, :, 2], made[0, :, 1])
    assert race(WorstOut(2, 0.24), scores).all()  # a share is rounded down


def test_a_race_asks_after_each_evaluation_about_those_that_are_left():
    scores = np.random.default_rng(1).normal(size=(20, 7, 5)) + np.arange(7)[:, None]
    made = race(TTest(0.95), scores)
    assert 0.2 < made.mean() < 0.9
    for n, rows in enumerate(scores):
        alive = np.ones(7, bool)
        for count in range(1, 5):
            seen = np.full((7, 5, 1), np.nan)
            seen[alive, :count, 0] = rows[alive, :count]
            alive = decided(TTest(0.95), seen)
            np.testing.assert_array_equal(made[n, :, count], alive)


def test_without_a_rule_it_is_the_round_itself(table):
    rounds = replay(table, 3, 20, group=4, evaluations=4)
    own, plain = raced(None, CREDIT, table, rounds), measured(CREDIT, table, rounds)
    np.testing.assert_array_equal(own.spent, 1)
    np.testing.assert_array_equal(own.quarter, 1)
    assert np.isnan(own.bias).all()
    np.testing.assert_allclose(own.rank, plain["rank"])
    np.testing.assert_allclose(own.regret, plain["regret"])


def test_a_race_spends_less_and_its_bias_is_downward(table):
    rounds = replay(table, 4, 300, group=6, evaluations=4)
    own = raced(WorstOut(1, 0.5), CREDIT, table, rounds)
    np.testing.assert_allclose(own.spent, (1 + 3 * 0.5) / 4)
    assert own.bias.mean() < 0
    assert own.off.mean() < 0
    # Noise is a tenth of the differences: the best of all is hardly ever out.
    assert own.best.mean() > 0.99
    assert 0.9 < own.alike.mean() < 1


def test_the_responses_to_one_destroy_race_with_each_other(table):
    rounds = replay(table, 4, 50, group=6, evaluations=4)
    own = raced(WorstOut(2, 0.25), CREDIT, table, rounds)
    whole = rounds.scores
    for n in range(50):
        known, moved, due, out = [], [], [], []
        for rows in whole[n]:
            lost = rows[:, :2].mean(axis=1).argmin()
            made = np.ones((4, 4), bool)
            made[lost, 2:] = False
            known.append(completed(rows, made))
            due += (rows.mean(axis=1) - rows.mean()).tolist()
            moved += (known[-1] - known[-1].mean()).tolist()
            out += [p == lost for p in range(4)]
        away = (np.array(known) - whole[n].mean(axis=-1)).ravel()[out].mean()
        np.testing.assert_allclose(own.bias[n], away / whole[n].mean(axis=-1).std())
        due, moved = np.array(due), np.array(moved)
        alike = moved @ due / np.linalg.norm(moved) / np.linalg.norm(due)
        np.testing.assert_allclose(own.alike[n], alike)
        np.testing.assert_allclose(own.off[n], (moved - due)[out].mean() / due.std())


def test_rows_have_a_star_where_they_differ():
    rng = np.random.default_rng(3)
    table = Table(rng.normal(size=(6, 5, 1)) + 2 * rng.normal(size=(6, 5, 8)), np.full(6, -1))
    rounds = replay(table, 4, 1000, group=6, evaluations=8)

    def backwards(scores):
        known = np.isfinite(scores)
        means = np.where(known, scores, 0).sum((-2, -1)) / np.maximum(known.sum((-2, -1)), 1)
        means = np.where(known.any((-2, -1)), means, np.nan)
        return means <= np.nanmedian(means, axis=-1, keepdims=True)

    first, harmful, *none = races(table, rounds, CREDIT, [backwards, WorstOut(8, 0.5)])
    assert none == []  # a rule that would never be asked
    assert first[0] == "all evaluations"
    assert "*" not in "".join(first)
    assert harmful[-1].endswith("*")
    assert float(harmful[-1].rstrip("*")) > float(first[-1])


def test_what_is_no_rule(table):
    scores = np.random.default_rng(0).normal(size=(2, 3, 4))
    with pytest.raises(InputError, match="no pair"):
        race(lambda seen: np.zeros(seen.shape[:2], bool), scores)
    with pytest.raises(InputError, match="no pair would ever be left out"):
        race(WorstOut(4, 0.5), scores)

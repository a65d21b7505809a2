"""Rules of races and estimates: against loops, scipy and cases worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from spo_jax.errors import InputError
from spo_jax.search.racing import (
    RULES,
    FRace,
    TTest,
    WorstOut,
    completed,
    decided,
    evaluations,
    get_racing,
    stages,
)


def seen(rows, instances=3, seeds=2):
    """[P, I, S] of the first scores of each pair, in the order of a race; NaN for a pair's rest."""
    found = np.full((len(rows), instances, seeds), np.nan)
    for p, row in enumerate(rows):
        for (i, s), value in zip(evaluations(instances, seeds), row, strict=False):
            found[p, i, s] = value
    return found


def test_the_worst_share_is_out_by_hand():
    scores = seen([[3, 0], [1, 1], [2, 2], [5, 5]])  # means 1.5, 1, 2, 5
    assert decided(WorstOut(2, 0.5), scores).tolist() == [False, False, True, True]
    assert decided(WorstOut(2, 0.25), scores).tolist() == [True, False, True, True]
    assert decided(WorstOut(2, 0.24), scores).all()  # a share is rounded down
    assert decided(WorstOut(1, 0.5), seen([[1.0]] * 4)).sum() == 2
    scores[0] = np.nan  # out already: the share is of those that are left
    assert decided(WorstOut(2, 0.5), scores).tolist() == [False, False, True, True]


def test_t_tests_are_those_of_scipy():
    rng = np.random.default_rng(1)
    for count in (2, 3, 5):
        rows = rng.normal(size=(8, count)) + np.arange(8)[:, None] / 2
        best = rows.mean(axis=1).argmax()
        p = stats.ttest_rel(rows[best], rows, axis=1, alternative="greater").pvalue
        worse = np.nan_to_num(p, nan=1.0) < 0.05
        assert 0 < worse.sum() < 8
        np.testing.assert_array_equal(decided(TTest(0.95), seen(rows)), ~worse)
    assert decided(TTest(0.95), seen(rows[:, :1])).all()


def test_an_f_race_is_friedmans_test_and_conovers():
    rng = np.random.default_rng(2)
    kept = set()
    for trial in range(40):
        count, many = rng.integers(2, 7), rng.integers(3, 8)
        rows = rng.normal(size=(many, count)) + np.arange(many)[:, None] * rng.choice([0.2, 1.5])
        if trial % 3 == 0:
            rows = rows.round()  # ties
        found = decided(FRace(0.95), seen(rows))
        test = stats.friedmanchisquare(*rows)
        ranks = stats.rankdata(rows, axis=0)
        sums = ranks.sum(axis=1)
        due = np.ones(many, bool)
        if test.pvalue < 0.05:
            # Conover (1999), Practical Nonparametric Statistics, section 5.8, eq. 6
            spread = (ranks**2).sum() - (sums**2).sum() / count
            error = math.sqrt(2 * count * spread / ((count - 1) * (many - 1)))
            critical = stats.t.ppf(0.975, (count - 1) * (many - 1)) * error
            due = sums.max() - sums <= critical + 1e-9
        np.testing.assert_array_equal(found, due)
        kept.add(bool(due.all()))
    assert kept == {True, False}


def test_an_f_race_of_those_that_are_left():
    rows = np.random.default_rng(3).normal(size=(6, 5)) + np.arange(6)[:, None]
    part = seen(rows)
    part[2] = np.nan
    found = decided(FRace(0.95), part)
    np.testing.assert_array_equal(found[[0, 1, 3, 4, 5]], decided(FRace(0.95), seen(rows)[
        [0, 1, 3, 4, 5]]))  # fmt: skip
    assert not found[2]


@given(st.integers(1, 7), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_rules_keep_the_best_and_no_place_counts(many, count, seed):
    rng = np.random.default_rng(seed)
    scores = seen(rng.normal(size=(many, count)))
    order = rng.permutation(many)
    best = np.nanmean(scores, axis=(1, 2)).argmax()
    for rule in RULES.values():
        going = decided(rule, scores)
        if not isinstance(rule, FRace):  # ranks need not favour the best mean
            assert going[best]
        np.testing.assert_array_equal(decided(rule, scores[order]), going[order])
        # Any number of races at once, each by itself.
        np.testing.assert_array_equal(decided(rule, np.stack([scores, scores]))[1], going)


def test_an_estimate_takes_the_levels_of_evaluations_from_those_that_have_all():
    scores = np.array([[[1.0, 11.0], [2.0, 14.0], [0.0, 100.0], [9.0, np.nan]]])
    made = np.array([[[True, True], [True, True], [True, False], [True, False]]])
    # Levels 1.5 and 12.5, mean 7; the third is 1.5 below on what it has. The fourth is 7.5 above,
    # and no estimate is above the best of those that have all, 8.
    np.testing.assert_allclose(completed(scores, made), [[6.0, 8.0, 5.5, 8.0]])
    whole = np.random.default_rng(2).normal(size=(3, 4, 5))
    np.testing.assert_allclose(completed(whole, np.ones(whole.shape, bool)), whole.mean(axis=2))


def test_the_order_of_evaluations_meets_all_instances_first():
    assert evaluations(3, 2) == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]


def test_stages_are_those_of_the_rule_or_all():
    assert stages(WorstOut(2, 0.5), 6) == [2]
    assert stages(TTest(), 4) == [1, 2, 3]
    with pytest.raises(InputError, match="after 3, the worst 50% is asked after 3"):
        stages(WorstOut(3, 0.5), 3)
    with pytest.raises(InputError, match="a pair has 1 evaluations"):
        stages(TTest(), 1)


@pytest.mark.parametrize("told", [5, "12", ("a",), (2.0,), (1, None)])
def test_stages_that_are_no_numbers(told):
    def rule(scores):
        return np.ones(len(scores), bool)

    rule.stages = told
    with pytest.raises(InputError, match="the rule rule has stages"):
        stages(rule, 6)
    rule.stages = np.array([2, 1])
    assert stages(rule, 6) == [1, 2]
    rule.stages = ()
    with pytest.raises(InputError, match="the rule rule is asked after none"):
        stages(rule, 6)


def test_rules_by_name():
    assert get_racing("none") is None
    assert get_racing("worst-half") == WorstOut(3, 0.5)
    with pytest.raises(InputError, match="did you mean 'worst-half'"):
        get_racing("worst-hal")
    with pytest.raises(InputError, match="must take"):
        get_racing("random:randint")


def test_what_is_no_rule():
    scores = np.random.default_rng(0).normal(size=(3, 2, 2))
    with pytest.raises(InputError, match="lets no pair go on"):
        decided(lambda seen: np.zeros(len(seen), bool), scores)
    for wrong in (
        lambda seen: seen.mean(axis=(1, 2)),
        lambda seen: np.ones(2, bool),
        lambda seen: [[True], [True, False], True],
        lambda seen: None,
    ):
        with pytest.raises(InputError, match="no bools"):
            decided(wrong, scores)
    for own in ((0, 0.5), (1, 1.0), (1, -0.1), (1, math.nan)):
        with pytest.raises(InputError, match="WorstOut"):
            WorstOut(*own)
    for rule in (TTest, FRace):
        for level in (0.5, 1, math.nan):
            with pytest.raises(InputError, match="level"):
                rule(level)

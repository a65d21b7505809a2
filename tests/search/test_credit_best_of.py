"""Credits for the best of several responses: by hand, by their definitions, their expectations."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import brentq
from spo_fakes import payoff_with

from spo_jax.search.credit import CREDITS
from spo_jax.search.credit.best_of import BOUND

NAN = math.nan


def payoff_of(rows):
    rows = np.array(rows, dtype=float)
    names = tuple(tuple(f"r{i}{j}" for j in range(rows.shape[1])) for i in range(len(rows)))
    return payoff_with(rows, tuple(f"d{i}" for i in range(len(rows))), names)


# Four slots and top 2, so sets of k = 2.
PAYOFF = payoff_of([[0.5, NAN, 1.0, 0.0], [NAN, 0.25, NAN, NAN], [NAN] * 4])


def test_pkpo_by_hand():
    credits = CREDITS["pkpo"](PAYOFF, top=2)
    # 0 is in {0, 1/2} and {0, 1}, which lose nothing without it; 1/2 is worth 1/2 to {0, 1/2} and
    # nothing to {1/2, 1}; 1 is worth 1 to {0, 1} and 1/2 to {1/2, 1}. One alone is all there is.
    expected = [[0.25, NAN, 0.75, 0.0], [NAN, 0.25, NAN, NAN], [NAN] * 4]
    np.testing.assert_allclose(credits.follower, expected, atol=1e-15)
    np.testing.assert_allclose(credits.leader, [2.5 / 3, 0.25, NAN], rtol=1e-15)
    np.testing.assert_array_equal(credits.selected_by.follower, PAYOFF.utility)


def test_maxpo_by_hand():
    credits = CREDITS["maxpo"](PAYOFF, top=2)
    # Best of sets with 0: (1/2 + 1) / 2, without: 1; with 1/2 the same; with 1: 1, without: 1/2.
    expected = [[-0.25, NAN, 0.5, -0.25], [NAN, 0.0, NAN, NAN], [NAN] * 4]
    np.testing.assert_allclose(credits.follower, expected, atol=1e-15)
    np.testing.assert_allclose(credits.leader, [2.5 / 3, 0.25, NAN], rtol=1e-15)


def best(values):
    return max(values, default=0.0)  # of no response: 0


@pytest.mark.parametrize("top", [1, 2, 3, 6, 9])
def test_both_by_their_definitions(top):
    row = np.random.default_rng(3).normal(size=6)
    k, others = max(1, 6 // top), set(range(6))
    one, two = (CREDITS[n](payoff_of([row]), top=top).follower[0] for n in ("pkpo", "maxpo"))
    for i in range(6):
        sets = [s for s in itertools.combinations(range(6), k) if i in s]
        lost = [best(row[list(s)]) - best(row[[j for j in s if j != i]]) for s in sets]
        assert one[i] == pytest.approx(np.mean(lost), abs=1e-12)
        size = min(k, 5)
        gains = [  # leave-two-out: of i and a rival, each with the same others
            max([row[i], *row[list(t)]]) - max([row[j], *row[list(t)]])
            for j in others - {i}
            for t in itertools.combinations(sorted(others - {i, j}), size - 1)
        ]
        assert two[i] == pytest.approx(np.mean(gains), abs=1e-12)
    assert two.sum() == pytest.approx(0, abs=1e-12)


def expected_ascent(name, values, chance, n, top, centre):
    """E[mean_i A_i grad log p(x_i)] by the logits of a softmax, over all samples of n."""
    total = np.zeros(len(values))
    for drawn in itertools.product(range(len(values)), repeat=n):
        credit = CREDITS[name](payoff_of([values[list(drawn)]]), top=top).follower[0]
        advantage = credit - credit.mean() if centre else credit
        score = np.eye(len(values))[list(drawn)] - chance
        total += chance[list(drawn)].prod() * (advantage @ score) / n
    return total


@pytest.mark.parametrize(("name", "centre", "unbiased"), [
    ("pkpo", False, True), ("pkpo", True, False), ("maxpo", False, True), ("maxpo", True, True),
])  # fmt: skip
def test_which_ascend_the_expected_best_of_k(name, centre, unbiased):
    values, chance, n, k = np.array([0.0, 0.3, 1.0]), np.array([0.5, 0.3, 0.2]), 4, 2
    found = expected_ascent(name, values, chance, n, n // k, centre)
    gradient = np.zeros(3)
    for drawn in itertools.product(range(3), repeat=k):
        score = sum(np.eye(3)[y] - chance for y in drawn)
        gradient += chance[list(drawn)].prod() * values[list(drawn)].max() * score
    assert np.allclose(found, gradient / k, atol=1e-12) == unbiased


class TestEntropic:
    def test_by_hand(self):
        # Two of four are the best: their weight, 1/2 each, is log 2 from uniform. Of two, and of
        # one, all weight on the best is within the bound.
        payoff = payoff_of([[0.0, 1.0, 1.0, 0.5], [0.2, 0.9, NAN, NAN], [0.25, NAN, NAN, NAN],
                            [NAN] * 4, [0.3] * 4])  # fmt: skip
        credits = CREDITS["entropic"](payoff, top=2)
        expected = [[0, 2, 2, 0], [0, 2, NAN, NAN], [1, NAN, NAN, NAN], [NAN] * 4, [1] * 4]
        np.testing.assert_allclose(credits.follower, expected, atol=1e-15)
        np.testing.assert_array_equal(credits.leader, [1, 0.9, 0.25, NAN, 0.3])
        np.testing.assert_array_equal(credits.selected_by.leader, credits.leader)
        np.testing.assert_array_equal(credits.selected_by.follower, payoff.utility)

    @pytest.mark.parametrize("seed", range(4))
    def test_the_temperature_is_that_of_the_bound(self, seed):
        row = np.random.default_rng(seed).normal(size=7)
        if seed == 3:
            row[:2] = row.max() + 1 - np.array([0, 1e-9])  # as good as tied

        def q(b):
            power = np.exp(b * (row - row.max()))
            return power / power.sum()

        def away(b):
            return float((q(b) * np.log(np.maximum(q(b), 1e-300) * 7)).sum() - BOUND)

        b = brentq(away, 1e-3, 1e3, xtol=1e-13)
        credits = CREDITS["entropic"](payoff_of([row]), top=2)
        np.testing.assert_allclose(credits.follower[0], 7 * q(b), rtol=1e-7)
        assert credits.leader[0] == pytest.approx(np.log(np.exp(b * row).mean()) / b, rel=1e-9)
        assert row.mean() < credits.leader[0] < row.max()

    def test_weights_have_no_unit_and_leaders_that_of_j(self):
        rows = np.random.default_rng(5).normal(size=(3, 6))
        plain, other = (CREDITS["entropic"](payoff_of(r), top=2) for r in (rows, 8 * rows - 2))
        np.testing.assert_allclose(plain.follower, other.follower, rtol=1e-9)
        np.testing.assert_allclose(8 * plain.leader - 2, other.leader, rtol=1e-9)

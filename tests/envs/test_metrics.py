"""Every metric against a plain loop, a hand-computed example, and its promises on bits."""

import math

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spo_jax.envs import metrics
from spo_jax.envs.gaps import reference_gap
from spo_jax.errors import InputError

QUICK = settings(max_examples=40, deadline=None)
NAN = math.nan
# XLA takes what is below the least normal number for 0.
NUMBERS = st.floats(-1.0, 1.0).map(lambda x: x if abs(x) > 1e-300 else 0.0)


# Plain loops, from left to right. The comparisons below are exact: same bits, not "close".


def loop_leader(payoff, top):
    out = []
    for row in payoff.tolist():
        best = sorted((u for u in row if math.isfinite(u)), reverse=True)[:top]
        total = 0.0  # not by `sum`, which from Python 3.12 on rounds once
        for value in best:
            total += value
        out.append(total / len(best) if best else NAN)
    return np.array(out)


def loop_cross_play(payoff):
    out = []
    for column in payoff.T.tolist():
        total = 0.0
        for value in column:
            total += value
        out.append(total / len(column))
    return np.array(out)


@st.composite
def payoffs(draw, least=0):
    rows = draw(st.integers(least, 9))
    columns = draw(st.integers(least, 9))
    utilities = st.one_of(st.just(NAN), NUMBERS, st.sampled_from([0.5, 0.75]))
    return draw(arrays(np.float64, (rows, columns), elements=utilities))


class TestReferenceGap:
    def test_by_hand(self):
        cost = np.array([[11.0, 10.0], [9.0, NAN]])
        # 100 (11-10)/10 = 10; 100 (10-8)/8 = 25; 100 (9-10)/10 = -10; missing
        got = metrics.gap(cost, np.array([10.0, 8.0]))
        np.testing.assert_array_equal(got, [[10.0, 25.0], [-10.0, NAN]])

    @pytest.mark.parametrize("reference", [0.0, NAN])
    def test_without_a_reference_other_than_0_there_is_no_gap(self, reference):
        assert np.isnan(metrics.gap(np.array(3.0), np.array(reference)))

    def test_costs_below_0_by_hand(self):
        # 100 (-15 + 20)/20 = 25; 100 (-25 + 20)/20 = -25; 100 (3 + 20)/20 = 115
        cost, reference = np.array([-15.0, -25.0, 3.0]), np.array([-20.0])
        np.testing.assert_array_equal(metrics.gap(cost, reference), [25.0, -25.0, 115.0])

    @QUICK
    @given(st.integers(0, 5), st.integers(0, 5), st.data())
    def test_is_the_plain_loop(self, rows, columns, data):
        size = st.floats(0.5, 50.0)
        numbers = st.one_of(st.just(NAN), size, size.map(float.__neg__), st.just(0.0))
        cost = data.draw(arrays(np.float64, (rows, columns), elements=numbers))
        reference = data.draw(arrays(np.float64, (columns,), elements=numbers))
        expected = np.full((rows, columns), NAN)
        for r, c in np.ndindex(rows, columns):
            if reference[c] != 0:
                expected[r, c] = 100 * (cost[r, c] - reference[c]) / abs(reference[c])
        np.testing.assert_array_equal(metrics.gap(cost, reference), expected)
        np.testing.assert_array_equal(reference_gap(cost, reference), expected)  # for NumPy


class TestScores:
    COST = np.array([[10.0, 8.0, 5.0], [0.0, -2.0, -4.0], [4.0, NAN, NAN]])

    def test_by_hand(self):
        # (10 - 5) / 10; from a start of 0 the fall itself; missing
        np.testing.assert_array_equal(metrics.improvement(self.COST), [0.5, 4.0, NAN])
        # The means of 0.2 and 0.5, and of 2 and 4
        anytime = metrics.anytime(self.COST)
        np.testing.assert_allclose(anytime, [0.35, 3.0, NAN], rtol=1e-15)
        # Costs below 0: (-10 + 15) / 10, and no fall from a start of 0
        below = np.array([[-10.0, -15.0], [0.0, 0.0]])
        np.testing.assert_array_equal(metrics.improvement(below), [0.5, 0.0])
        scores = np.array([[[0.1, 0.2], [0.3, 0.6]], [[0.1, 0.2], [NAN, 0.6]]])
        expected = [(0.1 + 0.2 + 0.3 + 0.6) / 4, NAN]
        np.testing.assert_array_equal(metrics.utility(scores), expected)

    @QUICK
    @given(arrays(np.float64, (5, 2, 3), elements=NUMBERS))
    def test_utility_is_the_plain_loop_and_maps(self, scores):
        got = np.asarray(metrics.utility(scores))
        for one, row in zip(got, scores, strict=True):
            total = 0.0
            for value in row.ravel().tolist():
                total += value
            assert one == total / 6
        with jax.enable_x64(True):
            np.testing.assert_array_equal(jax.vmap(metrics.utility)(scores), got)


@pytest.mark.parametrize("name", ["leader_credit", "follower_credit", "cross_play"])
def test_a_batch_has_the_bits_of_each_alone(name):
    payoff = np.random.default_rng(1).normal(size=(4, 3, 6, 5))
    payoff[0, 1, 2] = NAN
    function = getattr(metrics, name)
    whole = np.asarray(function(payoff))
    for place in np.ndindex(4, 3):
        np.testing.assert_array_equal(whole[place], function(payoff[place]))
    with jax.enable_x64(True):
        np.testing.assert_array_equal(jax.vmap(jax.jit(function))(payoff), whole)


class TestCredits:
    PAYOFF = np.array([
        [0.1, 0.7, NAN, 0.5],
        [NAN, NAN, 0.25, NAN],
        [NAN, NAN, NAN, NAN],
        [-0.5, -0.25, -1.0, -0.75],
    ])  # fmt: skip

    def test_leader_by_hand(self):
        # (0.7 + 0.5) / 2 = 0.6; only one response: 0.25; none; (-0.25 - 0.5) / 2 = -0.375
        np.testing.assert_array_equal(
            metrics.leader_credit(self.PAYOFF), [(0.7 + 0.5) / 2, 0.25, NAN, -0.375]
        )
        # top 1 is the empirical maximum; top 3: (0.7 + 0.5 + 0.1) / 3, ..., (-0.25-0.5-0.75)/3
        np.testing.assert_array_equal(
            metrics.leader_credit(self.PAYOFF, top=1), [0.7, 0.25, NAN, -0.25]
        )
        np.testing.assert_array_equal(
            metrics.leader_credit(self.PAYOFF, top=3), [(0.7 + 0.5 + 0.1) / 3, 0.25, NAN, -0.5]
        )

    def test_follower_by_hand(self):
        np.testing.assert_array_equal(metrics.follower_credit(self.PAYOFF), self.PAYOFF)
        np.testing.assert_array_equal(metrics.follower_credit([[np.inf, 1.0]]), [[NAN, 1.0]])

    def test_cross_play_by_hand(self):
        payoff = np.array([[0.2, 0.5, NAN], [0.4, -0.5, 0.9], [0.9, 0.75, 0.9]])
        # (0.2 + 0.4 + 0.9) / 3 = 0.5; (0.5 - 0.5 + 0.75) / 3 = 0.25; it failed with one leader
        np.testing.assert_array_equal(metrics.cross_play(payoff), [0.5, 0.25, NAN])

    def test_without_a_panel_there_is_no_score(self):
        np.testing.assert_array_equal(metrics.cross_play(np.zeros((0, 2))), [NAN, NAN])

    @pytest.mark.long
    @QUICK
    @given(payoffs(), st.integers(1, 12))
    def test_leader_is_the_plain_loop(self, payoff, top):
        got = metrics.leader_credit(payoff, top)
        assert got.dtype == np.float64
        np.testing.assert_array_equal(got, loop_leader(payoff, top))

    @pytest.mark.long
    @QUICK
    @given(payoffs(), st.permutations(range(9)))
    def test_leader_ignores_the_order_of_responses(self, payoff, order):
        shuffled = payoff[:, [c for c in order if c < payoff.shape[1]]]
        np.testing.assert_array_equal(
            metrics.leader_credit(shuffled), metrics.leader_credit(payoff)
        )

    @pytest.mark.long
    @QUICK
    @given(payoffs(least=1))
    def test_cross_play_is_the_plain_loop(self, payoff):
        np.testing.assert_array_equal(metrics.cross_play(payoff), loop_cross_play(payoff))

    def test_infinite_utilities_are_none(self):
        payoff = np.array([[np.inf, 0.5, -np.inf]])
        np.testing.assert_array_equal(metrics.leader_credit(payoff), [0.5])
        np.testing.assert_array_equal(metrics.cross_play(payoff), [NAN, 0.5, NAN])

    def test_top_must_be_positive(self):
        with pytest.raises(InputError):
            metrics.leader_credit(self.PAYOFF, top=0)

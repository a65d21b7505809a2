"""Worlds with a known truth and estimators of it: by hand, by brute force, what they recover."""

import itertools
import math
import sys
import types

import numpy as np
import pytest

from spo_jax.advantages import centred, standardised
from spo_jax.errors import InputError
from spo_jax.program import Pair
from spo_jax.search.credit import CREDITS, Credits, asking
from spo_jax.search.credit.arrays import of_arrays
from spo_jax.search.credit.types import formula_of
from spo_jax.search.lab.bandit import Training, train
from spo_jax.search.lab.estimators import (
    correlation,
    cosine_of_mean,
    measure,
    signal_to_noise,
)
from spo_jax.search.lab.power import detectable, interval, seeds_needed
from spo_jax.search.lab.schemes import Scheme
from spo_jax.search.lab.worlds import (
    Rounds,
    Worlds,
    WorldSpec,
    draw_rounds,
    make_worlds,
    world_spec,
)

FORMULAS = {name: f for name, scheme in CREDITS.items() if (f := formula_of(scheme))}
NAN = math.nan


class TestWorlds:
    def test_without_interaction_every_leader_ranks_the_followers_alike(self):
        utility = make_worlds(WorldSpec(4, 5, gamma=0), 3).utility
        assert utility.shape == (3, 4, 5)
        away = utility - utility[:, :1]
        np.testing.assert_allclose(away, np.broadcast_to(away[..., :1], away.shape), atol=1e-12)

    @pytest.mark.parametrize("text", ["", "fit=0.2", "tails=8", "spread=0.5"])
    def test_gamma_is_the_deviation_of_the_interaction(self, text):
        # A lognormal spread and t tails have long-tailed squares: hence the tolerance.
        parameters = world_spec(f"leaders=40 followers=40 follower_sd=0 spread=0 gamma=2 {text}")
        plain = world_spec(f"leaders=40 followers=40 follower_sd=0 gamma=0 {text}")
        interaction = make_worlds(parameters, 60).utility - make_worlds(plain, 60).utility
        assert interaction.std() == pytest.approx(2, rel=0.06)

    def test_the_same_seed_has_the_same_parts_in_other_proportions(self):
        none, one, three = (make_worlds(WorldSpec(5, 6, gamma=g), 2).utility for g in (0, 1, 3))
        np.testing.assert_allclose(three - none, 3 * (one - none), atol=1e-12)
        np.testing.assert_array_equal(make_worlds(WorldSpec(5, 6), 2).utility, one)
        assert not np.isclose(make_worlds(WorldSpec(5, 6), 2, seed=1).utility, one).any()

    def test_leaders_with_few_but_brilliant_responses(self):
        def widest(h):
            each = make_worlds(WorldSpec(50, 40, spread=h, follower_sd=0), 20).utility.std(axis=-1)
            return (each.max(axis=-1) / np.median(each, axis=-1)).mean()

        assert widest(0.0) < 1.5
        assert widest(1.0) > 4

    def test_a_share_of_followers_fits(self):
        own = {"gamma": 5.0, "follower_sd": 0.0}
        utility = make_worlds(WorldSpec(60, 60, fit=0.25, **own), 5).utility
        alone = make_worlds(WorldSpec(60, 60, gamma=0, follower_sd=0), 5).utility
        assert np.isclose(utility, alone).mean() == pytest.approx(0.75, abs=0.02)

    def test_a_ceiling_is_never_passed_and_keeps_the_order(self):
        free, bound = (make_worlds(WorldSpec(9, 9, ceiling=c), 4).utility for c in (math.inf, 0.5))
        assert bound.max() < 0.5 < free.max()
        np.testing.assert_array_equal(np.argsort(free, axis=-1), np.argsort(bound, axis=-1))
        np.testing.assert_allclose(bound, 0.5 - np.log1p(np.exp(0.5 - free)), rtol=1e-12)

    def test_rounds_are_of_the_table_with_noise(self):
        worlds = make_worlds(WorldSpec(3, 4, noise=0), 2)
        rounds = draw_rounds(worlds, 5, 7)
        assert rounds.utility.shape == rounds.source.shape == (2, 7, 3, 5)
        for w, n, d, r in np.ndindex(2, 7, 3, 5):
            assert rounds.utility[w, n, d, r] == worlds.utility[w, d, rounds.source[w, n, d, r]]
        noisy = draw_rounds(Worlds(worlds.utility, 0.7), 50, 200)
        error = noisy.utility - draw_rounds(Worlds(worlds.utility), 50, 200).utility
        assert (error.mean(), error.std()) == pytest.approx((0, 0.7), abs=0.01)
        assert np.bincount(noisy.source.ravel()) / noisy.source.size == pytest.approx(
            0.25, abs=0.01
        )

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("gama=1", "'gama=1' is no parameter of a world"),
            ("gamma", "'gamma' is no parameter"),
            ("gamma=x", "'x' is not a number that gamma takes"),
            ("leaders=2.5", "'2.5' is not a number that leaders takes"),
            ("leaders=1", "leaders is 1"),
            ("noise=-1", "noise is -1"),
            ("gamma=nan", "gamma is nan"),
            ("fit=0", "fit is 0"),
            ("tails=2", "tails is 2"),
            ("ceiling=nan", "ceiling is nan"),
        ],
    )
    def test_what_is_no_world(self, text, message):
        with pytest.raises(InputError, match=message):
            world_spec(text)


def test_failures_have_the_share_and_the_tie_that_is_asked_for():
    spec = WorldSpec(40, 12, level=20, failing=0.3, tie=-0.8)
    worlds = make_worlds(spec, 200)
    assert worlds.failing.mean() == pytest.approx(0.3, abs=0.02)
    within = [np.corrcoef(v, c)[0, 1] for v, c in zip(worlds.value, worlds.failing, strict=True)]
    assert np.mean(within) == pytest.approx(-0.8, abs=0.05)
    rounds = draw_rounds(worlds, 9, 3)
    found = np.isnan(rounds.utility).mean(axis=(1, 3))
    assert abs((found - worlds.failing).mean()) < 0.01
    few = draw_rounds(worlds, 4, 3)
    np.testing.assert_array_equal(few.utility, rounds.utility[..., :4])
    plain = draw_rounds(make_worlds(WorldSpec(40, 12, level=20), 200), 9, 3)
    there = np.isfinite(rounds.utility)
    np.testing.assert_array_equal(rounds.utility[there], plain.utility[there])
    assert make_worlds(WorldSpec(4, 6), 2).failing is None
    for text, words in (("failing=1", "failing is 1"), ("tie=2", "tie is 2"), ("level=inf", "lev")):
        with pytest.raises(InputError, match=words):
            world_spec(text)


@pytest.mark.long
def test_failures_that_are_paid_as_zero_teach_leaders_nothing_else():
    """Twenty deviations above 0, where a failure outweighs all that leaders differ by."""
    names = ["stackelberg", "shared", "shared-failures-zero", "no-leader-credit"]
    worlds = make_worlds(WorldSpec(16, 24, level=20, failing=0.34), 40)
    learned = train(list(map(Scheme, names)), worlds, Training(steps=60))
    value = {n: each.leader.mean() for n, each in zip(names, learned, strict=True)}
    assert value["no-leader-credit"] == pytest.approx(0, abs=1e-6)
    assert value["shared-failures-zero"] < 0.3 * value["shared"]
    assert value["stackelberg"] > 0.2
    again = train([Scheme("shared")], worlds, Training(steps=60))
    np.testing.assert_array_equal(again[0].curve, learned[1].curve)


def test_more_responses_of_a_world_are_the_same_ones_and_further_ones():
    worlds = make_worlds(WorldSpec(5, 7), 3)
    many, few = draw_rounds(worlds, 30, 2), draw_rounds(worlds, 29, 2)
    np.testing.assert_array_equal(many.source[..., :29], few.source)
    np.testing.assert_array_equal(many.utility[..., :29], few.utility)
    np.testing.assert_array_equal(many.reference.leader, few.reference.leader)


class TestSchemes:
    @pytest.mark.long
    @pytest.mark.parametrize("name", FORMULAS)
    def test_many_rounds_at_once_earn_what_payoffs_earn(self, name):
        rounds = draw_rounds(make_worlds(WorldSpec(4, 6), 2), 4, 3)  # as many slots as test_credit
        for top in (1, 2):
            scheme = Scheme(name, top)
            given = rounds.utility, rounds.source, rounds.reference
            once, each = scheme(*given), scheme.one_by_one(*given)
            np.testing.assert_array_equal(once.leader, each.leader)
            np.testing.assert_array_equal(once.follower, each.follower)
            np.testing.assert_array_equal(once.score, each.score)

    def test_a_scheme_of_a_users_own(self, monkeypatch):
        def half(payoff, *, top):
            own = Credits(payoff.utility.mean(axis=1), payoff.utility)
            return Credits(own.leader / 2, payoff.utility / 2, own)

        module = types.ModuleType("mine")
        module.half = half
        monkeypatch.setitem(sys.modules, "mine", module)
        rounds = draw_rounds(make_worlds(WorldSpec(4, 6), 2), 5, 3)
        scheme, shared = Scheme.of("mine:half@3"), Scheme("shared")
        assert (scheme.label, scheme.top) == ("mine:half@3", 3)
        own, theirs = (each(rounds.utility, rounds.source) for each in (scheme, shared))
        np.testing.assert_allclose(own.leader, theirs.leader / 2, rtol=1e-12)
        np.testing.assert_allclose(own.score, theirs.leader, rtol=1e-12)

    def test_a_users_own_of_arrays_is_called_for_all_rounds_at_once(self):
        calls = []

        @of_arrays
        def least(rounds, top):
            calls.append(rounds.utility.shape)
            return rounds.utility.min(axis=-1), rounds.utility, None

        rounds = draw_rounds(make_worlds(WorldSpec(4, 6), 2), 5, 3)
        scheme = Scheme.of(least)
        found = scheme(rounds.utility, rounds.source)
        assert 1 <= len(calls) <= 2  # it is traced, not called for each of the ten rounds
        assert scheme.slow == ""
        each = scheme.one_by_one(rounds.utility, rounds.source)
        np.testing.assert_array_equal(found.leader, each.leader)
        np.testing.assert_array_equal(found.order, rounds.utility)

        @of_arrays
        def short(rounds, top):
            return rounds.utility[..., 0, 0], rounds.utility, None

        with pytest.raises(InputError, match="'short' returned a leader of shape"):
            Scheme.of(short)(rounds.utility, rounds.source)

    def test_references_are_of_the_table_with_noise(self):
        worlds = make_worlds(WorldSpec(5, 7, noise=0), 3)
        rounds = draw_rounds(worlds, 4, 2)
        known, table = rounds.reference, worlds.utility
        for w in range(3):
            best, answer = table[w].max(axis=1).argmax(), table[w].mean(axis=0).argmax()
            np.testing.assert_array_equal(known.pair[w], [table[w, best, answer]] * 2)
            np.testing.assert_array_equal(known.leader[w, 1], table[w, :, answer])
            np.testing.assert_array_equal(known.follower[w], table[w, best][rounds.source[w]])
        noisy = draw_rounds(Worlds(table, 0.7), 4, 2)
        for n in range(2):  # a follower is measured once a round with the reference
            seen = {}
            for f, value in zip(noisy.source[0, n].flat, noisy.reference.follower[0, n].flat,
                                strict=True):  # fmt: skip
                assert seen.setdefault(f, value) == value
        assert not np.isclose(noisy.reference.leader, known.leader).any()

    def test_without_parents_credits_relative_to_them_are_the_papers(self):
        rounds = draw_rounds(make_worlds(WorldSpec(4, 6), 1), 5, 1)
        paper = Scheme("stackelberg")(rounds.utility, rounds.source)
        for name in CREDITS.keys() - FORMULAS.keys():
            found = Scheme(name)(rounds.utility, rounds.source)
            np.testing.assert_array_equal(found.leader, paper.leader)

    def test_schemes_that_ask_have_fewer_responses(self):
        found = {n: [Scheme(n).responses(r) for r in (1, 6, 30)] for n in CREDITS}
        assert found["stackelberg"] == found["two-way"] == [1, 6, 30]
        assert found["fair-parent"] == [1, 5, 29]  # one more: the parent's
        assert found["counterfactual"] == [1, 4, 28]  # two more: its best two with the reference
        assert found["shapley"] == [1, 2, 14]  # one for each response, and one

    def test_a_scheme_that_asks_for_another_pair_is_told_so(self, monkeypatch):
        @asking(lambda payoff, *, top: [Pair(payoff.destroys[0], payoff.repairs[1][0])])
        def curious(payoff, *, top):
            return Credits(payoff.utility[:, 0], payoff.utility)

        module = types.ModuleType("mine")
        module.curious = curious
        monkeypatch.setitem(sys.modules, "mine", module)
        rounds = draw_rounds(make_worlds(WorldSpec(4, 6), 1), 5, 1)
        with pytest.raises(InputError, match="'mine:curious' asks for a pair without a reference"):
            Scheme("mine:curious")(rounds.utility, rounds.source, rounds.reference)

    @pytest.mark.parametrize("text", ["stackelberg@0", "shared@x", "nosuch", "shared@"])
    def test_what_is_no_scheme(self, text):
        with pytest.raises(InputError):
            Scheme.of(text)


class TestEstimators:
    def test_by_hand(self):
        # The first leader has the better response, the second the better mean.
        worlds = Worlds(np.array([[[0.0, 1.0], [0.6, 0.6]]]))
        source = np.broadcast_to([0, 1], (1, 1, 2, 2))
        rounds = Rounds(worlds.utility[:, None], source)
        found = {n: measure(Scheme(n, 1), worlds, rounds, 1) for n in ("stackelberg", "shared")}
        assert found["stackelberg"]["rank"] == pytest.approx([1])
        assert found["stackelberg"]["regret"] == pytest.approx([0])
        assert found["shared"]["rank"] == pytest.approx([-1])
        assert found["shared"]["regret"] == pytest.approx([0.4])
        assert np.isnan(found["shared"]["snr"]).all()  # one round has no noise to see

    def test_equal_credits_say_nothing_and_ties_keep_the_order(self):
        np.testing.assert_array_equal(correlation(np.ones((2, 3)), np.arange(6.0).reshape(2, 3)), 0)
        x = np.random.default_rng(0).normal(size=(2, 9))
        assert correlation(x[:1], x[1:]) == pytest.approx(np.corrcoef(x)[0, 1])

    def test_signal_to_noise_by_hand_and_by_simulation(self):
        # Two rounds: means 0 and 2, so a variance of 2; noise 2 and 2, of which means keep a half.
        samples = np.array([[[-1.0, 1.0], [1.0, 3.0]]])
        assert signal_to_noise(samples) == pytest.approx([(2 - 2 / 2) / 2])
        rng = np.random.default_rng(1)
        drawn = 1.5 * rng.normal(size=(400, 1, 30)) + 0.5 * rng.normal(size=(400, 4, 30))
        assert signal_to_noise(drawn).mean() == pytest.approx(9, rel=0.05)

    def test_the_cosine_is_that_of_the_expectation(self):
        rng = np.random.default_rng(2)
        direction, other = np.array([1.0, 0, 0]), np.array([0, 1.0, 0])
        noise = rng.normal(size=(300, 16, 3))
        found = cosine_of_mean(3 * direction + 4 * other + noise, np.tile(direction, (300, 1)))
        assert found.mean() == pytest.approx(3 / 5, abs=0.01)  # the noise would make it lower

    def test_survivors_and_their_number(self):
        worlds = make_worlds(WorldSpec(4, 6, noise=0), 3)
        rounds = draw_rounds(worlds, 2, 2)
        for name in ("stackelberg", "rank"):
            all_kept = measure(Scheme(name), worlds, rounds, survivors=4)
            np.testing.assert_allclose(all_kept["regret"], 0, atol=1e-12)
        with pytest.raises(InputError, match="5 survivors of 4 leaders"):
            measure(Scheme("shared"), worlds, rounds, survivors=5)

    def test_a_function_is_a_scheme_by_its_own_name(self):
        def least(payoff, *, top):
            return Credits(np.nanmin(payoff.utility, axis=1), payoff.utility)

        worlds = make_worlds(WorldSpec(4, 6, noise=0), 2)
        rounds = draw_rounds(worlds, 3, 2)
        scheme = Scheme.of(least, top=1)
        assert scheme.label == "least@1"
        found = scheme(rounds.utility, rounds.source)
        np.testing.assert_array_equal(found.leader, rounds.utility.min(axis=-1))
        least.__name__ = "shared"
        with pytest.raises(InputError, match="another name"):
            Scheme.of(least)
        with pytest.raises(InputError, match="returned a int"):
            Scheme.of(lambda payoff, *, top: 1)(rounds.utility, rounds.source)

    def test_what_earns_nothing_is_left_out(self):
        np.testing.assert_array_equal(centred(np.array([1.0, NAN, 3.0])), [-1, 0, 1])
        np.testing.assert_array_equal(centred(np.array([NAN, NAN])), [0, 0])
        np.testing.assert_array_equal(standardised(np.array([1.0, NAN, 5.0])), [-1, 0, 1])
        np.testing.assert_array_equal(standardised(np.array([[NAN, NAN], [7.0, 7.0]])), 0)

    @pytest.mark.parametrize(("name", "top"), [("stackelberg", 2), ("max", 2), ("max-at-k", 2)])
    def test_expectations_are_those_of_all_rounds_there_are(self, name, top):
        """Against an enumeration of all 4 ** 4 answers to a leader, by the definition."""
        worlds = make_worlds(WorldSpec(2, 4, noise=0), 1)
        rounds = draw_rounds(worlds, 4, 40_000)
        found = Scheme(name, top)(rounds.utility, rounds.source).leader[0]

        def earned(row):
            best = sorted(row, reverse=True)
            if name == "max-at-k":  # of k = 4 // 2
                return np.mean([max(each) for each in itertools.combinations(row, 2)])
            return np.mean(best[: 1 if name == "max" else top])

        for d, values in enumerate(worlds.utility[0]):
            truth = np.mean([earned(row) for row in itertools.product(values, repeat=4)])
            error = found[:, d].std() / math.sqrt(len(found))
            assert abs(found[:, d].mean() - truth) < 4 * error
            if name == "max-at-k":  # the expected best of two, whatever R is
                two = np.mean([max(each) for each in itertools.product(values, repeat=2)])
                assert truth == pytest.approx(two)

    @pytest.mark.long
    def test_the_shared_mean_is_the_better_estimator_without_interaction(self):
        worlds = make_worlds(WorldSpec(gamma=0, noise=1), 60)
        for responses in (6, 30):
            rounds = draw_rounds(worlds, responses, 2)
            shared, best = (measure(Scheme(n), worlds, rounds) for n in ("shared", "stackelberg"))
            assert interval(shared["rank"] - best["rank"])[1] > 0.02
            assert interval(best["regret"] - shared["regret"])[1] > 0

    def test_the_best_responses_are_where_spreads_differ_and_responses_are_many(self):
        worlds = make_worlds(WorldSpec(gamma=2, spread=1, noise=1), 60)
        rounds = draw_rounds(worlds, 30, 2)
        shared, best = (measure(Scheme(n), worlds, rounds) for n in ("shared", "stackelberg"))
        assert interval(best["rank"] - shared["rank"])[1] > 0.2
        assert interval(shared["regret"] - best["regret"])[1] > 1


class TestPower:
    @pytest.mark.parametrize(("effect", "n"), [(0.2, 199), (0.5, 34), (0.8, 15)])
    def test_of_a_paired_t_test_as_in_the_tables(self, effect, n):
        """Cohen's small, medium and large effects: what G*Power prints."""
        assert seeds_needed(effect, 1) == n
        assert seeds_needed(-3 * effect, 3) == n

    @pytest.mark.parametrize("n", [2, 3, 8, 100])
    def test_what_so_many_seeds_see(self, n):
        difference = detectable(2.0, n)
        assert seeds_needed(difference * 1.001, 2.0) == n
        assert n == 2 or seeds_needed(difference * 0.999, 2.0) == n + 1
        assert math.isnan(detectable(2.0, 1))
        assert detectable(0.0, n) == 0

    def test_by_simulation(self):
        from scipy import stats

        n = int(seeds_needed(0.9, 1))
        draws = np.random.default_rng(3).normal(0.9, 1, size=(20_000, n))
        found = (stats.ttest_1samp(draws, 0, axis=1).pvalue < 0.05).mean()
        assert 0.79 < found < 0.85

    def test_what_no_number_of_seeds_finds(self):
        assert seeds_needed(0, 1) == math.inf
        assert seeds_needed(1e-9, 1) == math.inf
        assert seeds_needed(1, 0) == 2
        assert seeds_needed(0.01, 1) == pytest.approx(78_490, rel=1e-3)  # (1.96 + 0.8416)^2 / d^2
        with pytest.raises(InputError, match="between 0 and 1"):
            seeds_needed(1, 1, power=1)

    def test_intervals_by_hand(self):
        # t is 12.7062 for two values, and the standard error half of what they are apart.
        assert interval(np.array([0.5, NAN, 0.7])) == pytest.approx(
            (0.6, 0.6 - 1.27062, 0.6 + 1.27062), abs=1e-5
        )
        assert interval(np.array([0.5]))[0] == 0.5
        assert all(map(math.isnan, interval(np.array([]))))

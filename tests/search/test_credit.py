"""Credit schemes by hand, against loops, and what `CREDITS` refuses."""

import itertools
import math
import sys
import types
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spo_fakes import payoff_with

from spo_jax.advantages import centred
from spo_jax.errors import InputError
from spo_jax.search.credit import (
    CREDITS,
    Credits,
    CrossPlay,
    of_arrays,
    paying_failures,
    shared,
    stackelberg,
)
from spo_jax.search.credit.arrays import arrays_with
from spo_jax.search.credit.types import formula_of
from spo_jax.search.lab.schemes import Scheme

FORMULAS = {name: f for name, scheme in CREDITS.items() if (f := formula_of(scheme))}
NAN = math.nan
TOP = 2


def payoff_of(rows):
    rows = np.array(rows, dtype=float)
    return payoff_with(
        rows,
        tuple(f"d{i}" for i in range(len(rows))),
        tuple(tuple(f"r{i}{j}" for j in range(rows.shape[1])) for i in range(len(rows))),
    )


PAYOFF = payoff_of([[0.5, NAN, 1.0, 0.0], [NAN, 0.25, NAN, NAN], [NAN] * 4])


class TestSchemes:
    def test_stackelberg_by_hand(self):
        credits = stackelberg(PAYOFF, top=2)
        # (1.0 + 0.5) / 2 = 0.75; its only response 0.25; none
        np.testing.assert_array_equal(credits.leader, [0.75, 0.25, NAN])
        np.testing.assert_array_equal(credits.follower, PAYOFF.utility)

    def test_shared_by_hand(self):
        credits = shared(PAYOFF, top=2)
        # (0.5 + 1.0 + 0.0) / 3 = 0.5; 0.25 / 1; none
        np.testing.assert_array_equal(credits.leader, [0.5, 0.25, NAN])
        np.testing.assert_array_equal(credits.follower, PAYOFF.utility)

    def test_weak_responses_hurt_a_leader_only_when_credit_is_shared(self):
        strong = payoff_of([[0.9, 0.8, NAN, NAN]])
        diluted = payoff_of([[0.9, 0.8, 0.1, 0.1]])
        assert stackelberg(strong).leader == stackelberg(diluted).leader
        assert shared(strong).leader > shared(diluted).leader

    def test_max_and_mean_of_all_pairs_of_a_program(self):
        # The repair "same" answers both destroys, 0.2 and 0.6; "b" answers the first alone.
        payoff = payoff_with(
            np.array([[0.2, 0.9], [0.6, NAN]]), ("d", "e"), (("same", "b"), ("same",))
        )
        best, mean = CREDITS["max"](payoff, top=TOP), CREDITS["mean"](payoff, top=TOP)
        np.testing.assert_array_equal(best.leader, [0.9, 0.6])
        np.testing.assert_array_equal(best.follower, [[0.6, 0.9], [0.6, NAN]])
        np.testing.assert_allclose(mean.leader, [0.55, 0.6], rtol=1e-15)
        np.testing.assert_array_equal(mean.follower, [[0.4, 0.9], [0.4, NAN]])
        assert mean.selected_by is mean

    def test_max_at_k_by_hand(self):
        # Four slots and top 2: k is 2. Of 0, 0.5 and 1 the pairs' best are 0.5, 1 and 1.
        credits = CREDITS["max-at-k"](PAYOFF, top=2)
        np.testing.assert_allclose(credits.leader, [2.5 / 3, 0.25, NAN], rtol=1e-15)
        np.testing.assert_array_equal(credits.follower, PAYOFF.utility)
        assert credits.selected_by is credits

    @pytest.mark.parametrize("top", [1, 2, 3, 6, 9])
    def test_max_at_k_is_the_mean_over_all_sets_of_k(self, top):
        row = np.random.default_rng(7).normal(size=6)
        k = max(1, 6 // top)
        best = [max(each) for each in itertools.combinations(row, k)]
        found = CREDITS["max-at-k"](payoff_of([row]), top=top).leader
        np.testing.assert_allclose(found, [np.mean(best)], rtol=1e-12)

    @pytest.mark.parametrize("name", FORMULAS)
    def test_rounds_among_others_have_the_bits_of_a_round_alone(self, name):
        rng = np.random.default_rng(5)
        utility = rng.choice([NAN, -1.0, *rng.normal(size=9)], size=(3, 2, 4, 4))
        utility[0, 0], utility[0, 1, 0] = NAN, NAN
        source = rng.integers(6, size=utility.shape)
        seen = arrays_with(utility, source=source, failed=np.isnan(utility), sources=6)
        leader, follower, selection = FORMULAS[name](seen, 2)
        for place in np.ndindex(3, 2):
            repairs = tuple(tuple(f"r{s}" for s in row) for row in source[place])
            alone = CREDITS[name](payoff_with(utility[place], tuple("abcd"), repairs), top=2)
            np.testing.assert_array_equal(leader[place], alone.leader)
            np.testing.assert_array_equal(follower[place], alone.follower)
            assert (selection is None) == (alone.selection is None)
            if selection is not None and alone.selection is not None:
                np.testing.assert_array_equal(selection[0][place], alone.selection.leader)
                np.testing.assert_array_equal(selection[1][place], alone.selection.follower)

    def test_readings_of_shared_by_hand(self):
        # Two destroys with three responses each: a failure, a fault of the host; an empty slot.
        utility = [[0.6, NAN, 0.3], [NAN, 0.5, NAN]]
        repairs = (("a", "b", "c"), ("d", "e"))
        payoff = replace(
            payoff_with(np.array(utility), tuple("xy"), repairs),
            failed=np.array([[False, True, False], [False] * 3]),
        )
        zero = CREDITS["shared-failures-zero"](payoff, top=TOP)
        np.testing.assert_allclose(zero.leader, [0.3, 0.5])
        np.testing.assert_array_equal(zero.follower, [[0.6, 0, 0.3], [NAN, 0.5, NAN]])
        first = CREDITS["shared-first-pair"](payoff, top=TOP)
        np.testing.assert_array_equal(first.leader, [0.6, 0.5])
        np.testing.assert_array_equal(first.follower, utility)
        none = CREDITS["no-leader-credit"](payoff, top=TOP)
        np.testing.assert_array_equal(none.leader, [0, 0])
        np.testing.assert_array_equal(none.follower, utility)
        # By default what has no utility failed, and a destroy of which all pairs did earns 0.
        alone = payoff_with(np.array([[NAN, NAN], [0.4, 0.2]]), tuple("xy"), (("a",), ("b", "c")))
        np.testing.assert_array_equal(alone.failed, [[True, False], [False, False]])
        earned = CREDITS["shared-failures-zero"](alone, top=TOP)
        np.testing.assert_allclose(earned.leader, [0, 0.3])
        np.testing.assert_array_equal(earned.follower, [[0, NAN], [0.4, 0.2]])

    def test_only_a_scheme_that_says_so_pays_failures(self, monkeypatch):
        def zeros(payoff, *, top):
            return Credits(np.zeros(len(payoff.utility)), np.nan_to_num(payoff.utility))

        module = types.ModuleType("paying")
        module.zeros, module.marked = (
            zeros,
            paying_failures(lambda payoff, *, top: zeros(payoff, top=top)),
        )
        monkeypatch.setitem(sys.modules, "paying", module)
        payoff = payoff_with(np.array([[0.5, NAN]]), ("x",), (("a", "b"),))
        with pytest.raises(InputError, match="pays a repair whose pair has no utility"):
            CREDITS["paying:zeros"](payoff, top=TOP)
        found = CREDITS["paying:marked"](payoff, top=TOP)
        np.testing.assert_array_equal(found.follower, [[0.5, 0.0]])
        empty = payoff_with(np.array([[0.5, NAN]]), ("x",), (("a",),))
        with pytest.raises(InputError, match="pays a repair whose pair has no utility"):
            CREDITS["paying:marked"](empty, top=TOP)  # a slot without a program
        with pytest.raises(InputError, match="programs without a utility"):
            replace(payoff, failed=np.array([[True, False]]))

    @pytest.mark.parametrize(
        ("returned", "words"),
        [
            (lambda u: None, r"must return \(leader, follower, selection\)"),
            (lambda u: (u[..., 0], u), r"must return \(leader, follower, selection\)"),
            (lambda u: (u[..., 0], u, 5), r"must return \(leader, follower, selection\)"),
            (lambda u: (u[..., 0], u, (u,)), r"must return \(leader, follower, selection\)"),
            (lambda u: (0.5, 0.5, None), r"a leader of shape \(\), not \(2,\)"),
            (lambda u: (u[..., 0], u[..., 0], None), r"a follower of shape \(2,\), not \(2, 2\)"),
            (lambda u: (u[..., 0], u, (u, u)), r"a leader of shape \(2, 2\)"),
            (lambda u: (u[..., 0], np.nan_to_num(u), None), "pays what has no utility"),
        ],
    )
    def test_what_a_function_of_arrays_may_return(self, monkeypatch, returned, words):
        module = types.ModuleType("arrays_of_mine")
        module.mine = of_arrays(lambda rounds, top: returned(rounds.utility))
        monkeypatch.setitem(sys.modules, "arrays_of_mine", module)
        payoff = payoff_of([[0.5, 0.2], [0.3, NAN]])
        with pytest.raises(InputError, match=f"^the function of arrays '<lambda>' .*{words}"):
            CREDITS["arrays_of_mine:mine"](payoff, top=TOP)
        scheme = Scheme("arrays_of_mine:mine")
        with pytest.raises(InputError, match=r"^the function of arrays 'arrays_of_mine:mine' "):
            scheme(payoff.utility[None, None], np.zeros((1, 1, 2, 2), int))

    def test_how_a_function_of_arrays_is_called(self):
        found = of_arrays(lambda rounds, top: (rounds.utility.tolist()[0], rounds.utility, None))
        payoff = payoff_of([[0.5, 0.2], [0.3, 0.1]])
        np.testing.assert_array_equal(found(payoff, top=2).leader, [0.5, 0.2])
        for wrong, words in ((lambda rounds: 1, r"must take \(rounds, top\)"), (3, "of type int")):
            with pytest.raises(InputError, match=f"the function of arrays .* {words}"):
                of_arrays(wrong)

    def test_rank_by_hand(self):
        payoff = payoff_of([[0.7, 0.1, 0.7, 0.3], [0.5, NAN, NAN, NAN], [NAN] * 4])
        credits = CREDITS["rank"](payoff, top=TOP)
        # In the first row of four: 0.1 is above none of the other three, 0.3 above one; each 0.7 is
        # above two and shares the top, (2 + 1/2) / 3. The second row's only answer has no rival.
        np.testing.assert_allclose(
            credits.follower, [[5 / 6, 0, 5 / 6, 1 / 3], [0.5, NAN, NAN, NAN], [NAN] * 4]
        )
        # All five: 0.1 < 0.3 < 0.5 < 0.7 = 0.7, so ranks 0, 1/4, 1/2, 7/8, 7/8.
        np.testing.assert_allclose(credits.leader, [7 / 8, 1 / 2, NAN])
        # Destroys meet later rounds by the paper's credit, (0.7 + 0.7) / 2.
        np.testing.assert_array_equal(credits.selected_by.leader, [0.7, 0.5, NAN])
        np.testing.assert_array_equal(credits.selected_by.follower, credits.follower)

    def test_regret_by_hand(self):
        credits = CREDITS["regret"](PAYOFF, top=TOP)
        np.testing.assert_array_equal(credits.leader, [0, -0.75, NAN])
        np.testing.assert_array_equal(
            credits.follower, [[-0.5, NAN, 0, -1], [NAN, 0, NAN, NAN], [NAN] * 4]
        )
        np.testing.assert_array_equal(credits.selected_by.leader, [1, 0.25, NAN])

    def test_gap_by_hand(self):
        payoff = payoff_of([[0.8, 0.6, NAN], [0.4, 0.0, 0.7]])
        # Behind the best by 0, 0.2, 0.4, 0.8, 0.1, of which 0.2 is the median: r = 0, 1, 2, 4, 1/2.
        credits = CREDITS["gap"](payoff, top=TOP)
        follower = -np.log([[1, 2, NAN], [3, 5, 1.5]])
        np.testing.assert_allclose(credits.follower, follower, atol=1e-15)
        np.testing.assert_allclose(
            credits.leader, [-math.log(2) / 2, -(math.log(3) + math.log(1.5)) / 2]
        )
        np.testing.assert_allclose(credits.selected_by.leader, [0.7, 0.55])

    def test_gap_where_most_pairs_are_the_best_one(self):
        # The median distance is 0, the mean (0 + 0 + 0.3) / 3.
        [follower] = CREDITS["gap"](payoff_of([[0.5, 0.5, 0.2]]), top=TOP).follower
        np.testing.assert_allclose(follower, [0, 0, -math.log(4)])
        alike = CREDITS["gap"](payoff_of([[0.5, 0.5], [0.5, NAN]]), top=TOP)
        np.testing.assert_array_equal(alike.follower, [[0, 0], [0, NAN]])

    def test_gap_sees_steps_near_the_best_and_not_how_bad_the_worst_is(self):
        row = [0.775, 0.774, 0.765, 0.760, 0.300]
        gap = CREDITS["gap"](payoff_of([row]), top=TOP).follower[0]
        plain = stackelberg(payoff_of([row]), top=TOP).follower[0]
        share = [(c[0] - c[3]) / (c[0] - c[4]) for c in (gap, plain)]  # of the group's spread
        assert share[0] > 0.2 > 0.04 > share[1]

    def test_relative_to_parent_and_improvement_by_hand(self):
        payoff = payoff_with(
            np.array([[0.5, 0.7], [0.9, NAN]]),
            ("d", "e"),
            (("r", "s"), ("t", "u")),
            np.array([0.8, NAN]),
            np.array([[0.6, 0.6], [NAN, 0.1]]),
        )
        relative = CREDITS["relative-to-parent"](payoff, top=TOP)
        np.testing.assert_allclose(relative.leader, [0.6 - 0.8, 0.9])
        np.testing.assert_allclose(relative.follower, [[-0.1, 0.1], [0.9, NAN]])
        gain = CREDITS["improvement"](payoff, top=TOP)
        np.testing.assert_allclose(gain.leader, [0, 0.9])
        np.testing.assert_allclose(gain.follower, [[0, 0.1], [0.9, NAN]])
        for credits in (relative, gain):
            np.testing.assert_allclose(credits.selected_by.leader, [0.6, 0.9])
            np.testing.assert_array_equal(credits.selected_by.follower, payoff.utility)

    @pytest.mark.parametrize("name", CREDITS)
    @pytest.mark.parametrize("shape", [(0, 0), (0, 4), (3, 0), (2, 4)])
    def test_rounds_without_pairs(self, name, shape):
        payoff = payoff_of(np.full(shape, NAN))
        credits = CREDITS[name](replace(payoff, failed=np.zeros(shape, bool)), top=2)
        np.testing.assert_array_equal(credits.leader, np.full(shape[0], NAN))
        np.testing.assert_array_equal(credits.follower, np.full(shape, NAN))


@st.composite
def payoffs(draw):
    """Up to 4 x 4 utilities on a grid of 1/64, with gaps, ties, repeated repairs and parents."""
    # Each number of slots and each `top` is compiled: other tests have 4 slots and TOP, too.
    rows, slots = draw(st.integers(1, 4)), draw(st.sampled_from([1, 4]))
    grid = st.integers(0, 64).map(lambda k: k / 64) | st.just(NAN)

    def array(*shape):
        flat = draw(st.lists(grid, min_size=math.prod(shape), max_size=math.prod(shape)))
        return np.array(flat, dtype=float).reshape(shape)

    names = [draw(st.permutations([f"r{k}" for k in range(5)])) for _ in range(rows)]
    return payoff_with(
        array(rows, slots),
        tuple(f"d{i}" for i in range(rows)),
        tuple(tuple(row[:slots]) for row in names),
        array(rows),
        array(rows, slots),
    )


def moved(payoff, change):
    """The payoff with `change` applied to its utilities and baselines."""
    baselines = change(payoff.leader_baseline), change(payoff.follower_baseline)
    return payoff_with(change(payoff.utility), payoff.destroys, payoff.repairs, *baselines)


def parts(credits):
    chosen = credits.selected_by
    return credits.leader, credits.follower, chosen.leader, chosen.follower


def in_rows(credits):
    """Advantages of a group for each row, as the update sees followers; NaN where there is none."""
    result = np.full(credits.follower.shape, NAN)
    for i, row in enumerate(credits.follower):
        finite = np.isfinite(row)
        if finite.any():
            result[i, finite] = centred(row[finite])
    return result


checked = settings(max_examples=25, deadline=None)


class TestProperties:
    @pytest.mark.long
    @pytest.mark.parametrize("name", CREDITS)
    @checked
    @given(payoffs(), st.sampled_from([1, TOP, 5]))
    def test_what_has_no_utility_earns_nothing_and_the_rest_does(self, name, payoff, top):
        finite = np.isfinite(payoff.utility)
        if hasattr(CREDITS[name], "pays_failures"):
            finite |= payoff.failed
        for credits in (got := CREDITS[name](payoff, top=top), got.selected_by):
            np.testing.assert_array_equal(np.isfinite(credits.follower), finite)
            np.testing.assert_array_equal(np.isfinite(credits.leader), finite.any(axis=1))

    @pytest.mark.parametrize("name", [each for each in CREDITS if each != "shared-first-pair"])
    @checked
    @given(payoffs(), st.randoms(use_true_random=False))
    def test_neither_order_matters(self, name, payoff, rng):
        rows, slots = payoff.utility.shape
        order = rng.sample(range(rows), rows)
        within = [rng.sample(range(slots), slots) for _ in order]
        places = np.array(order)[:, None], np.array(within)
        shuffled = payoff_with(
            payoff.utility[places],
            tuple(payoff.destroys[i] for i in order),
            tuple(
                tuple(payoff.repairs[i][j] for j in js) for i, js in zip(order, within, strict=True)
            ),
            payoff.leader_baseline[order],
            payoff.follower_baseline[places],
        )
        before = parts(CREDITS[name](payoff, top=TOP))
        after = parts(CREDITS[name](shuffled, top=TOP))
        for old, new in zip(before, after, strict=True):
            np.testing.assert_allclose(new, old[order] if old.ndim == 1 else old[places], rtol=0,
                                       atol=1e-15)  # fmt: skip

    @pytest.mark.parametrize("name", CREDITS)
    @checked
    @given(payoffs())
    def test_a_scheme_is_a_function_of_the_payoff(self, name, payoff):
        before = moved(payoff, np.copy)
        first, second = (parts(CREDITS[name](payoff, top=TOP)) for _ in range(2))
        for one, two in zip(first, second, strict=True):
            np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(payoff.utility, before.utility)

    @checked
    @given(payoffs())
    def test_rank_does_not_see_an_increasing_transform(self, payoff):
        plain = CREDITS["rank"](payoff, top=TOP)
        bent = CREDITS["rank"](moved(payoff, lambda u: np.exp(5 * u) - 3), top=TOP)
        np.testing.assert_array_equal(plain.leader, bent.leader)
        np.testing.assert_array_equal(plain.follower, bent.follower)

    @checked
    @given(payoffs())
    def test_gap_has_no_unit(self, payoff):
        plain = CREDITS["gap"](payoff, top=TOP)
        other = CREDITS["gap"](moved(payoff, lambda u: 8 * u - 2), top=TOP)  # exact on the grid
        np.testing.assert_allclose(plain.leader, other.leader, rtol=1e-12)
        np.testing.assert_allclose(plain.follower, other.follower, rtol=1e-12)

    @checked
    @given(payoffs())
    def test_gap_and_rank_order_the_answers_as_the_utility_does(self, payoff):
        for name in ("gap", "rank"):
            follower = CREDITS[name](payoff, top=TOP).follower
            for earned, row in zip(follower, payoff.utility, strict=True):
                np.testing.assert_array_equal(
                    np.sign(earned[:, None] - earned), np.sign(row[:, None] - row)
                )

    @pytest.mark.parametrize("name", ["regret", "relative-to-parent"])
    @checked
    @given(payoffs())
    def test_regret_and_parents_do_not_see_a_shift(self, name, payoff):
        plain = CREDITS[name](payoff, top=TOP)
        other = CREDITS[name](moved(payoff, lambda u: u + 0.5), top=TOP)
        known = np.isfinite(payoff.leader_baseline) | (name == "regret")
        np.testing.assert_allclose(plain.leader[known], other.leader[known], atol=1e-12)
        known = np.isfinite(payoff.follower_baseline) | (name == "regret")
        np.testing.assert_allclose(plain.follower[known], other.follower[known], atol=1e-12)

    @checked
    @given(payoffs())
    def test_regret_is_zero_for_the_best_and_negative_below(self, payoff):
        credits = CREDITS["regret"](payoff, top=TOP)
        for earned in (credits.leader, *credits.follower):
            finite = earned[np.isfinite(earned)]
            assert finite.size == 0 or finite.max() == 0

    @checked
    @given(payoffs())
    def test_what_a_group_cannot_see(self, payoff):
        """A number taken off a whole row leaves the centred advantages of its answers alone."""
        same_parents = payoff_with(
            payoff.utility, payoff.destroys, payoff.repairs, payoff.leader_baseline,
            np.repeat(payoff.leader_baseline[:, None], payoff.utility.shape[1], axis=1),
        )  # fmt: skip
        plain = in_rows(stackelberg(same_parents, top=TOP))
        for name in ("shared", "regret", "relative-to-parent", "counterfactual", "two-way"):
            seen = in_rows(CREDITS[name](same_parents, top=TOP))
            np.testing.assert_allclose(seen, plain, atol=1e-12)

    @pytest.mark.long
    @checked
    @given(payoffs(), st.sampled_from([1, TOP, 5]))
    def test_what_a_group_of_leaders_cannot_see(self, payoff, top):
        siblings = payoff_with(
            payoff.utility, payoff.destroys, payoff.repairs,
            np.full(len(payoff.destroys), 0.25), payoff.follower_baseline,
        )  # fmt: skip
        for one, two in (
            ("regret", "max"), ("relative-to-parent", "stackelberg"),
            ("fair-parent", "stackelberg"), ("pkpo", "max-at-k"), ("maxpo", "max-at-k"),
        ):  # fmt: skip
            seen = [CREDITS[name](siblings, top=top).leader for name in (one, two)]
            known = np.isfinite(seen[0])
            if known.any():
                a, b = (centred(leader[known]) for leader in seen)
                np.testing.assert_allclose(a, b, atol=1e-12)

    @checked
    @given(payoffs(), st.sampled_from([1, TOP, 5]))
    def test_max_is_stackelberg_with_one_response_and_mean_is_shared(self, payoff, top):
        once = payoff_with(
            payoff.utility, payoff.destroys,
            tuple(
                tuple(f"{i}-{r.source if r else ''}" for r in row)
                for i, row in enumerate(payoff.repairs)
            ),
        )  # fmt: skip
        for name, other, length in (("max", "stackelberg", 1), ("mean", "shared", top)):
            one, two = CREDITS[name](once, top=top), CREDITS[other](once, top=length)
            np.testing.assert_array_equal(one.leader, two.leader)
            np.testing.assert_array_equal(one.follower, two.follower)

    @checked
    @given(payoffs(), st.sampled_from([1, 2, 7]))
    def test_stackelberg_and_shared_against_loops(self, payoff, top):
        leader = CREDITS["stackelberg"](payoff, top=top).leader
        mean = CREDITS["shared"](payoff, top=top).leader
        for i, row in enumerate(payoff.utility.tolist()):
            scores = sorted((u for u in row if not math.isnan(u)), reverse=True)
            if scores:
                assert leader[i] == sum(scores[:top]) / len(scores[:top])
                assert mean[i] == pytest.approx(sum(scores) / len(scores), abs=1e-15)
                assert leader[i] >= mean[i] - 1e-15


class TestPayoff:
    def test_rows_may_be_ragged(self):
        payoff = payoff_with(np.array([[0.1, NAN], [NAN, 0.2]]), ("a", "b"), (("r",), ("", "s")))
        assert payoff.utility.dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            payoff.utility[0, 0] = 1.0

    def test_what_one_scheme_is_given_another_one_gets_unchanged(self):
        known = {("a", "r"): 0.5}
        crossed = CrossPlay(utility=np.zeros((1, 1)), scores=np.zeros((1, 1, 1, 1)))
        payoff = payoff_with([[0.1]], ("a",), (("r",),), cross_play=crossed, asked=known)
        with pytest.raises(ValueError, match="read-only"):
            payoff.cross_play.utility[0, 0] = 1.0
        with pytest.raises(ValueError, match="read-only"):
            payoff.cross_play.scores[0, 0] = 1.0
        with pytest.raises(TypeError, match="item assignment"):
            payoff.asked["a", "r"] = 1.0
        known.clear()
        assert dict(payoff.asked) == {("a", "r"): 0.5}

    def test_the_callers_array_stays_writable(self):
        utility = np.array([[0.1]])
        payoff = payoff_with(utility, ("a",), (("r",),))
        utility[0, 0] = 0.9
        assert payoff.utility[0, 0] == 0.1

    @pytest.mark.parametrize(
        ("utility", "destroys", "repairs"),
        [
            ([0.1], ("a",), (("r",),)),
            ([[0.1]], (), (("r",),)),
            ([[0.1]], ("a",), ()),
            ([[0.1]], ("a",), (("r", "s"),)),
            ([[0.1, 0.2]], ("a",), (("r",),)),
            ([[0.1]], ("a",), (("",),)),
        ],
    )
    def test_shapes_must_agree(self, utility, destroys, repairs):
        with pytest.raises(InputError):
            payoff_with(np.array(utility), destroys, repairs)

    def test_baselines(self):
        payoff = payoff_with(np.array([[0.1, 0.2]]), ("a",), (("r", "s"),))
        np.testing.assert_array_equal(payoff.leader_baseline, [NAN])
        np.testing.assert_array_equal(payoff.follower_baseline, [[NAN, NAN]])
        for wrong in ({"leader_baseline": [0.1, 0.2]}, {"follower_baseline": [[math.inf, 0.1]]}):
            with pytest.raises(InputError, match=next(iter(wrong))):
                payoff_with(payoff.utility, ("a",), (("r", "s"),), **wrong)


def double(payoff, *, top):
    return Credits([0, 1, NAN], 2 * payoff.utility)


def chosen_by_another(payoff, *, top):
    return Credits(np.array([0, 1, NAN]), payoff.utility, stackelberg(payoff, top=top))


def wrong_selection(payoff, *, top):
    return Credits(np.array([0, 1, NAN]), payoff.utility, double(payoff, top=top).leader)


def crooked_selection(payoff, *, top):
    return Credits(np.array([0, 1, NAN]), payoff.utility, pays_a_failure(payoff, top=top))


def pays_a_failure(payoff, *, top):
    return Credits(np.array([0, 1, NAN]), np.nan_to_num(payoff.utility))


def pays_a_hopeless_destroy(payoff, *, top):
    return Credits(np.zeros(len(payoff.destroys)), payoff.utility)


def wrong_leader(payoff, *, top):
    return Credits(np.zeros(len(payoff.destroys) + 1), payoff.utility)


def wrong_follower(payoff, *, top):
    return Credits(np.zeros(len(payoff.destroys)), payoff.utility.T)


def infinite(payoff, *, top):
    return Credits(np.full(len(payoff.destroys), -np.inf), payoff.utility)


def words(payoff, *, top):
    return Credits(["much"] * len(payoff.destroys), payoff.utility)


def a_tuple(payoff, *, top):
    return np.zeros(len(payoff.destroys)), payoff.utility


class TestGetCredit:
    @pytest.fixture(autouse=True)
    def module(self, monkeypatch):
        module = types.ModuleType("my_credit")
        for function in (
            double, wrong_leader, wrong_follower, infinite, words, a_tuple, chosen_by_another,
            wrong_selection, crooked_selection, pays_a_failure, pays_a_hopeless_destroy,
        ):  # fmt: skip
            setattr(module, function.__name__, function)
        module.number = 3
        monkeypatch.setitem(sys.modules, "my_credit", module)

    def test_a_users_scheme(self):
        credits = CREDITS["my_credit:double"](PAYOFF, top=2)
        np.testing.assert_array_equal(credits.leader, [0.0, 1.0, NAN])
        np.testing.assert_array_equal(credits.follower, 2 * PAYOFF.utility)
        assert credits.leader.dtype == credits.follower.dtype == np.float64
        assert credits.selected_by is credits
        other = CREDITS["my_credit:chosen_by_another"](PAYOFF, top=2)
        np.testing.assert_array_equal(other.selected_by.leader, [0.75, 0.25, NAN])

    @pytest.mark.parametrize(
        "name",
        [
            "",
            "stackleberg",
            "my_credit",
            "my_credit:",
            ":double",
            ".my_credit:double",
            "my_credit:triple",
            "no_such_module_here:double",
            "my_credit:number",
        ],
    )
    def test_names_that_find_nothing(self, name):
        with pytest.raises(InputError, match="credit"):
            CREDITS[name]

    def test_a_module_that_cannot_be_imported(self, tmp_path, monkeypatch):
        (tmp_path / "broken_credit.py").write_text("def scheme(:\n")
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(InputError, match="SyntaxError"):
            CREDITS["broken_credit:scheme"]

    @pytest.mark.parametrize(
        ("name", "complaint"),
        [
            ("wrong_leader", "leader of shape"),
            ("wrong_follower", "follower of shape"),
            ("infinite", "infinite leader"),
            ("words", "no array"),
            ("a_tuple", "returned a tuple"),
            ("wrong_selection", "selection of credit 'my_credit:wrong_selection' must be Credits"),
            ("crooked_selection", "selection.*pays a repair whose pair has no utility"),
            ("pays_a_failure", "pays a repair whose pair has no utility"),
            ("pays_a_hopeless_destroy", "pays a destroy without a valid pair"),
        ],
    )
    def test_results_are_checked(self, name, complaint):
        scheme = CREDITS[f"my_credit:{name}"]
        with pytest.raises(InputError, match=complaint):
            scheme(PAYOFF, top=2)

    @pytest.mark.parametrize("name", [*CREDITS, "my_credit:double"])
    def test_top_must_be_positive(self, name):
        with pytest.raises(InputError, match="top"):
            CREDITS[name](PAYOFF, top=0)

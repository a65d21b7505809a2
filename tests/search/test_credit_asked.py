"""Credits that compare a pair with others: by hand, what they ask for, and who plays it."""

import math
import sys
import types

import numpy as np
import pytest
from spo_fakes import Evaluator, Generator, Learner, default_verdict, fingerprint, small

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program
from spo_jax.runs.database.digests import require_intact
from spo_jax.runs.database.store import Store
from spo_jax.runs.discovery.loop import discover
from spo_jax.runs.run import load_run
from spo_jax.search.credit import (
    CREDITS,
    Credits,
    CrossPlay,
    Payoff,
    asking,
    pairs_asked,
    stackelberg,
)
from spo_jax.search.parts import Parts
from spo_jax.search.rounds import State

NAN = math.nan
ASKING = [name for name, scheme in CREDITS.items() if hasattr(scheme, "asks")]


def destroy(name):
    return Program("destroy", name)


def repair(name, *parents):
    return Program("repair", name, parents=tuple(repair(each).digest for each in parents))


def payoff_of(utility, rows, *, before=None, asked=None):
    """Destroys d, e, ... with named repairs. before: (destroys, repairs, their J)."""
    utility = np.array(utility, dtype=float)
    cross_play = CrossPlay()
    if before is not None:
        values = np.array(before[2], dtype=float)
        cross_play = CrossPlay(tuple(map(destroy, before[0])), tuple(map(repair, before[1])),
                               values, values[..., None, None])  # fmt: skip
    repairs = tuple(tuple(repair(r) if isinstance(r, str) else r for r in row) for row in rows)
    known = {(destroy(d).digest, repair(r).digest): v for (d, r), v in (asked or {}).items()}
    names = tuple(map(destroy, "defgh"[: len(utility)]))
    return Payoff(utility, names, repairs, cross_play=cross_play, asked=known)


def asked_for(name, payoff, top=2):
    pairs = pairs_asked([CREDITS[name]], payoff, top)
    return [(pair.destroy.source, pair.repair.source) for pair in pairs]


UTILITY = [[0.5, 0.7, 0.3], [0.6, NAN, NAN], [NAN] * 3]
ROWS = [["r", "s", "t"], ["u", "x"], []]
BEFORE = (["best", "other"], ["good", "also"], [[0.4, 0.2], [0.1, 0.3]])
ASKED = {
    ("best", "r"): 0.1, ("best", "s"): 0.5, ("best", "t"): 0.3, ("best", "u"): 0.2,
    ("d", "good"): 0.6, ("e", "good"): 0.2,
}  # fmt: skip


class TestByHand:
    def test_counterfactual(self):
        payoff = payoff_of(UTILITY, ROWS, before=BEFORE)
        assert asked_for("counterfactual", payoff) == [("best", "r"), ("best", "s"), ("best", "u")]
        credits = CREDITS["counterfactual"](
            payoff_of(UTILITY, ROWS, before=BEFORE, asked=ASKED), top=2
        )
        # The best two of d are s and r: (0.7 - 0.5 + 0.5 - 0.1) / 2; of e u alone: 0.6 - 0.2.
        np.testing.assert_allclose(credits.leader, [0.3, 0.4, NAN])
        np.testing.assert_array_equal(credits.follower, payoff.utility)
        np.testing.assert_allclose(credits.selected_by.leader, [0.6, 0.6, NAN])

    def test_responses_that_are_equal_are_all_asked_for(self):
        payoff = payoff_of([[0.5, 0.7, 0.5]], [["r", "s", "t"]], before=BEFORE)
        assert asked_for("counterfactual", payoff) == [("best", "r"), ("best", "s"), ("best", "t")]

    def test_a_pair_with_the_reference_that_failed_counts_as_the_mean_of_the_others(self):
        asked = ASKED | {("best", "u"): NAN}
        payoff = payoff_of(UTILITY, ROWS, before=BEFORE, asked=asked)
        found = CREDITS["counterfactual"](payoff, top=2).leader
        np.testing.assert_allclose(found, [0.3, 0.6 - (0.1 + 0.5 + 0.3) / 3, NAN])

    @pytest.mark.parametrize("name", ["counterfactual", "fair-parent"])
    def test_without_a_population_it_is_the_papers(self, name):
        payoff = payoff_of(UTILITY, ROWS)
        assert asked_for(name, payoff) == []
        found, paper = CREDITS[name](payoff, top=2), stackelberg(payoff, top=2)
        np.testing.assert_array_equal(found.leader, paper.leader)
        np.testing.assert_array_equal(found.follower, paper.follower)

    def test_shapley(self):
        payoff = payoff_of(UTILITY, ROWS, before=BEFORE)
        assert set(asked_for("shapley", payoff)) == {*ASKED, ("best", "good")}
        payoff = payoff_of(UTILITY, ROWS, before=BEFORE, asked=ASKED)
        credits = CREDITS["shapley"](payoff, top=2)
        # With 0.4 for the references: d adds (0.6 - 0.4 + (0.2 + 0.4) / 2) / 2 with s and r, and e
        # (0.2 - 0.4 + 0.4) / 2 with u. r adds (0.1 - 0.4 + 0.5 - 0.6) / 2, and so on.
        np.testing.assert_allclose(credits.leader, [0.25, 0.1, NAN], atol=1e-15)
        expected = [[-0.2, 0.1, -0.2], [0.1, NAN, NAN], [NAN] * 3]
        np.testing.assert_allclose(credits.follower, expected, atol=1e-15)
        np.testing.assert_allclose(credits.selected_by.leader, [0.6, 0.6, NAN])
        # What both earn of a pair is all that it has over the references.
        assert CREDITS["shapley"](payoff, top=1).leader[0] == pytest.approx(0.7 - 0.4 - 0.1)

    def test_shapley_values_are_means_over_both_orders(self):
        payoff = payoff_of(UTILITY, ROWS, before=BEFORE, asked=ASKED)
        leader = CREDITS["shapley"](payoff, top=1).leader[0]
        first, second = 0.6 - 0.4, 0.7 - 0.5  # d joins the references, or s with the reference
        assert leader == pytest.approx((first + second) / 2)

    def test_fair_parent(self):
        rows = [[repair("r", "good"), repair("s", "good", "also"), repair("t", "unknown")], ["u"]]
        utility = [[0.5, 0.7, 0.3], [0.6, NAN, NAN]]
        payoff = payoff_of(utility, rows, before=BEFORE)
        assert asked_for("fair-parent", payoff) == [("d", "good"), ("d", "also")]
        asked = {("d", "good"): 0.6, ("d", "also"): 0.65}
        credits = CREDITS["fair-parent"](
            payoff_of(utility, rows, before=BEFORE, asked=asked), top=2
        )
        np.testing.assert_allclose(credits.follower, [[0, 0.05, 0.3], [0.6, NAN, NAN]])
        np.testing.assert_allclose(credits.leader, [0.6, 0.6])
        failed = payoff_of(utility, rows, before=BEFORE, asked=asked | {("d", "good"): NAN})
        [row, _] = CREDITS["fair-parent"](failed, top=2).follower
        np.testing.assert_allclose(row, [0.5, 0.05, 0.3])

    def test_two_way(self):
        # m: 0.55 and 0.6. With the other destroy "same" is 0 over its row, or 0.35 below it.
        rows, utility = [["same", "b"], ["same"]], [[0.2, 0.9], [0.6, NAN]]
        payoff = payoff_of(utility, rows)
        assert asked_for("two-way", payoff) == []
        credits = CREDITS["two-way"](payoff, top=2)
        np.testing.assert_allclose(credits.leader, [0.55, 0.6 + 0.35 / 2])
        np.testing.assert_allclose(credits.follower, [[-0.35, 0.35], [0, NAN]], atol=1e-15)
        np.testing.assert_allclose(credits.selected_by.leader, [0.55, 0.6])
        # And 0.2 over the row of a destroy of the cross-play; d's own row there is left out.
        before = ["old", "d"], ["same", "more"], [[0.9, 0.5], [0.1, 0.1]]
        credits = CREDITS["two-way"](payoff_of(utility, rows, before=before), top=2)
        np.testing.assert_allclose(credits.leader, [0.55 - 0.2 / 3 / 2, 0.6 - (0.2 - 0.35) / 3])

    def test_two_way_takes_off_what_is_the_repairs_own(self):
        """Complete tables without interaction: leaders differ by their main effects alone."""
        rng = np.random.default_rng(0)
        leader, follower = rng.normal(size=(4, 1)), rng.normal(size=40)
        names = [[f"r{j}" for j in range(40)]] * 4
        found = CREDITS["two-way"](payoff_of(leader + follower, names), top=2).leader
        # A fourth of an effect stays, as one of four pairs adds nothing: 3 / (3 + 1) is taken off.
        best = np.sort(follower)[-2:].mean()
        np.testing.assert_allclose(found, leader[:, 0] + best - 0.75 * (best - follower.mean()))

    def test_lower_bound(self):
        scores = np.full((2, 2, 3, 2), NAN)
        scores[0, 0] = [[0.1, 0.3], [0.5, 0.5], [0.8, 0.8]]  # 0.2, 0.5, 0.8: J 0.5
        scores[0, 1] = [[0.5, 0.5], [0.6, 0.6], [0.7, 0.7]]  # J 0.6
        destroys, row = (destroy("d"), destroy("e")), (repair("r"), repair("s"))
        payoff = Payoff(scores.mean(axis=(2, 3)), destroys, (row, row), scores=scores)
        credits = CREDITS["lower-bound"](payoff, top=2)
        # Over J: -0.3, 0, 0.3 and -0.1, 0, 0.1, of which -0.2, 0, 0.2 are common. What is left, 0.1
        # twice, has a deviation of 0.1, and the mean of three instances an error of 0.1 / sqrt(3).
        error = 0.1 / math.sqrt(3)
        np.testing.assert_allclose(credits.follower, [[0.5 - error, 0.6 - error], [NAN, NAN]])
        np.testing.assert_allclose(credits.leader, [0.55 - error, NAN])

    def test_lower_bound_of_one_instance_is_the_papers(self):
        payoff = payoff_of(UTILITY, ROWS)
        np.testing.assert_array_equal(CREDITS["lower-bound"](payoff, top=2).leader,
                                      stackelberg(payoff, top=2).leader)  # fmt: skip


# --- in a round -----------------------------------------------------------------------------------


def played(credit, state=None, **options):
    config = small(rounds=3, responses=4, repairs_per_destroy=8)
    learner, rounds = Learner(), []
    learning = options.pop("learning", None)
    parts = Parts(
        config, get_problem("tsp"), Evaluator(), Generator(),
        CREDITS[credit] if isinstance(credit, str) else credit, updater=learner,
        learning_credit=CREDITS[learning] if learning else None,
    )  # fmt: skip
    discover(parts, state, rounds.append)
    return rounds


@pytest.mark.parametrize("name", ASKING)
def test_a_round_plays_what_is_asked_for_and_counts_it(name):
    seen = []

    @asking(CREDITS[name].asks)
    def watched(payoff, *, top):
        seen.append(payoff)
        return CREDITS[name](payoff, top=top)

    rounds = played(watched)
    new = [[p for p in done.pairs if p.kind == "credit"] for done in rounds]
    assert all(new[1:])
    for done, payoff, extra in zip(rounds, seen, new, strict=True):
        assert done.counts.pairs == len(done.pairs)
        assert {p.digests for p in extra} <= payoff.asked.keys()
        programs = {p.digest: p for p in done.programs}
        for (d, r), value in payoff.asked.items():
            status, utility = default_verdict(Pair(programs[d], programs[r]))
            assert value == utility if status == Status.OK else math.isnan(value)
        digests = [p.digests for p in done.pairs]
        assert len(set(digests)) == len(digests)
    # What one round has played, none plays again.
    everything = [p.digests for done in rounds for p in done.pairs]
    assert len(set(everything)) == len(everything)


@pytest.mark.long
@pytest.mark.parametrize("name", ASKING)
def test_a_run_that_goes_on_from_any_round_ends_the_same(name):
    whole = played(name)
    state = State()
    for k, done in enumerate(whole[:-1], 1):
        state = state.after(done)
        rest = played(name, state)
        assert [each.number for each in rest] == list(range(k + 1, 4))
        for one, two in zip(rest, whole[k:], strict=True):
            assert fingerprint([one])[0][:6] == fingerprint([two])[0][:6]


@pytest.mark.long
def test_the_credit_that_the_update_learns_from_may_ask_too():
    rounds = played("stackelberg", learning="shapley")
    assert any(p.kind == "credit" for done in rounds for p in done.pairs)
    plain = played("stackelberg")
    assert not any(p.kind == "credit" for done in plain for p in done.pairs)
    assert [done.destroys for done in rounds] == [done.destroys for done in plain]


def test_a_run_keeps_them(tmp_path):
    config = small(rounds=2, responses=4, repairs_per_destroy=8, credit="counterfactual")
    Store.create(tmp_path / "run", {"config": config.flat()}).__exit__()
    with Store.reopen(tmp_path / "run") as store:
        parts = Parts(config, get_problem("tsp"), Evaluator(), Generator(),
                      CREDITS["counterfactual"])  # fmt: skip
        end = discover(parts, None, store.commit)
        # By their texts: from Python 3.13 on no NaN equals itself in a dataclass.
        kept, had = store.state().payoffs, end.payoffs
        assert {k: repr(each) for k, each in kept.items()} == {k: repr(had[k]) for k in had}
        require_intact(store._connection)
    kinds = {pair.kind for pair in load_run(tmp_path / "run").pairs}
    assert kinds == {"response", "credit", "cross-play"}


class TestWhatMayBeAsked:
    @pytest.fixture(autouse=True)
    def module(self, monkeypatch):
        module = types.ModuleType("my_credit")
        monkeypatch.setitem(sys.modules, "my_credit", module)
        self.module = module

    def asks(self, found):
        @asking(lambda payoff, *, top: found)
        def scheme(payoff, *, top):
            return Credits(payoff.utility[:, 0], payoff.utility)

        self.module.scheme = scheme
        return pairs_asked([CREDITS["my_credit:scheme"]], payoff_of([[0.5]], [["r"]]), 2)

    def test_pairs_of_what_it_has_seen(self):
        pair = Pair(destroy("d"), repair("r"))
        assert self.asks([pair, pair]) == [pair]

    @pytest.mark.parametrize(("found", "message"), [
        (3, "asks for a int: it must ask for Pairs"),
        (["d"], "asks for a str: it must ask for Pairs"),
        ([Pair(destroy("d"), repair("new"))], "neither in the payoff nor in its cross-play"),
        ([Pair(destroy("new"), repair("r"))], "neither in the payoff nor in its cross-play"),
    ])  # fmt: skip
    def test_nothing_else(self, found, message):
        with pytest.raises(InputError, match=f"credit 'my_credit:scheme' .*{message}"):
            self.asks(found)


def test_what_asks_takes_what_a_scheme_takes(monkeypatch):
    module = types.ModuleType("narrow")
    module.scheme = asking(lambda payoff: [])(lambda payoff, *, top=2: stackelberg(payoff, top=top))
    monkeypatch.setitem(sys.modules, "narrow", module)
    with pytest.raises(
        InputError, match=r"'narrow:scheme' asks with must take \(payoff, \*, top\)"
    ):
        CREDITS["narrow:scheme"]

"""What pairs are worth: by hand, against loops, what is refused, and what a run keeps of it."""

import math
import subprocess
import sys
import types

import numpy as np
import pytest
from spo_fakes import Evaluator, Generator, play, small

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.rollouts import Rollouts, Status
from spo_jax.errors import InputError
from spo_jax.runs.database.store import Store
from spo_jax.runs.discovery.loop import discover
from spo_jax.search.credit import stackelberg
from spo_jax.search.parts import Parts
from spo_jax.search.rounds import State
from spo_jax.search.utility import UTILITIES, anytime, improvement, mean_scores


def rollouts_of(best_cost, status=None):
    best_cost = np.array(best_cost, float)
    shape = best_cost.shape[:3]
    status = np.zeros(shape, np.int8) if status is None else np.array(status, np.int8)
    none = np.zeros((*shape, 0))
    return Rollouts(best_cost, none, status, np.ones(shape), none, none, none)


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 6, 2), (5, 13, 3)])
def test_the_default_is_the_mean_of_relative_improvements_in_order(shape):
    rng = np.random.default_rng(0)
    cost = np.sort(rng.uniform(1, 9, (*shape, 4)))[..., ::-1]
    values = mean_scores(improvement(rollouts_of(cost), ()))
    for p, pair in enumerate(cost.tolist()):
        total = 0.0
        for instance in pair:
            for steps in instance:
                total += (steps[0] - steps[-1]) / steps[0]
        assert values[p] == total / (shape[1] * shape[2])  # the same bits
        alone = mean_scores(improvement(rollouts_of(cost[p : p + 1]), ()))
        assert alone[0] == values[p]


def test_by_hand():
    cost = [[[[8, 4, 2]], [[4, 4, 1]]], [[[8, 8, 8]], [[math.nan] * 3]]]
    rollouts = rollouts_of(cost, [[[0], [0]], [[0], [Status.CRASH]]])
    np.testing.assert_array_equal(improvement(rollouts, ()), [[[0.75], [0.75]], [[0], [math.nan]]])
    np.testing.assert_array_equal(anytime(rollouts, ()), [[[0.625], [0.375]], [[0], [math.nan]]])
    np.testing.assert_array_equal(mean_scores(anytime(rollouts, ())), [0.5, math.nan])


def test_a_start_of_zero_counts_as_1():
    assert improvement(rollouts_of([[[[0, -2]]]]), ()) == 2


@pytest.fixture
def given(monkeypatch):
    def install(function):
        module = types.ModuleType("given")
        module.f = function
        monkeypatch.setitem(sys.modules, "given", module)
        return UTILITIES["given:f"]

    return install


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros(2), r"a score of shape \(2,\), not \(2, 1, 1\)"),
        (np.full((2, 1, 1), np.nan), "a rollout that ended well no score"),
        (np.full((2, 1, 1), -np.inf), "an infinite score"),
        (np.full((2, 1, 1), 1j), "no array of numbers"),
        ([["much"]], "no array of numbers"),
        (None, r"no array of numbers|of shape"),
    ],
    ids=str,
)
def test_what_a_function_returns_is_checked(given, value, message):
    cost = np.ones((2, 1, 1, 3))
    with pytest.raises(InputError, match=rf"^utility 'given:f' .*({message})"):
        given(lambda rollouts, instances: value)(rollouts_of(cost), ())


def test_what_failed_has_no_score_whatever_a_function_says(given):
    rollouts = rollouts_of(np.ones((1, 2, 1, 3)), [[[0], [Status.TIMEOUT]]])
    scores = given(lambda rollouts, instances: np.ones((1, 2, 1)))(rollouts, ())
    np.testing.assert_array_equal(scores, [[[1], [math.nan]]])
    with pytest.raises(InputError, match=r"must take \(rollouts, instances\)"):
        given(lambda rollouts: None)


@pytest.mark.parametrize("value", [1.7e308, -1.7e308])
def test_scores_whose_mean_overflows_are_refused(given, value):
    rollouts = rollouts_of(np.ones((1, 2, 1, 3)))
    with pytest.raises(InputError, match=r"^utility 'given:f' returned scores too large"):
        given(lambda rollouts, instances: np.full((1, 2, 1), value))(rollouts, ())


class Uneven(Evaluator):
    """The first instance gains half of what the second does; the two seeds are alike."""

    def run(self, pairs, instances, **options):
        rollouts = super().run(pairs, instances, **options)
        rollouts.best_cost[:, 0, :, -1] = 512 + rollouts.best_cost[:, 0, :, -1] / 2
        return rollouts


class Watch:
    def __init__(self):
        self.payoffs = []

    def __call__(self, payoff, *, top):
        self.payoffs.append(payoff)
        return stackelberg(payoff, top=top)


def test_payoffs_carry_scores_programs_and_cross_play():
    watch = Watch()
    rounds, _, _ = play(small(rounds=3), evaluator=Uneven(), credit=watch)
    played = {p.digests: p for done in rounds for p in done.pairs}
    assert watch.payoffs[0].cross_play.utility.shape == (0, 0)
    for before, payoff in zip([None, *rounds], watch.payoffs, strict=False):
        np.testing.assert_array_equal(payoff.scores.mean(axis=(2, 3)), payoff.utility)
        np.testing.assert_array_equal(2 * payoff.scores[:, :, 0], payoff.scores[:, :, 1])
        for i, row in enumerate(payoff.repairs):
            for j, repair in enumerate(row):
                found = played[payoff.destroys[i].digest, repair.digest].utility
                np.testing.assert_equal(payoff.utility[i, j], found)
        if before is None:
            continue
        known = payoff.cross_play
        assert {p.digest for p in known.destroys} == {m.program.digest for m in before.destroys}
        assert {p.digest for p in known.repairs} == {m.program.digest for m in before.repairs}
        np.testing.assert_array_equal(known.scores.mean(axis=(2, 3)), known.utility)
        assert np.isfinite(known.utility).any()


def test_scores_of_earlier_rounds_outlive_the_process(tmp_path):
    def payoffs(stop):
        """Of all rounds; the process ends after round `stop` and goes on from the database."""
        watch, path = Watch(), tmp_path / str(stop)
        config = small(rounds=3)
        Store.create(path, {"config": config.flat()}).__exit__()
        parts = Parts(config, get_problem("tsp"), Uneven(), Generator(20), watch)
        for rounds in (stop, 3):
            with Store.reopen(path) as store:
                part = Parts(
                    small(rounds=rounds), parts.problem, parts.evaluator, Generator(20), watch
                )
                discover(part, store.state() if store.last_round(None) else State(), store.commit)
        return watch.payoffs

    for one, two in zip(payoffs(1), payoffs(2), strict=True):
        np.testing.assert_array_equal(one.scores, two.scores)
        np.testing.assert_array_equal(one.cross_play.scores, two.cross_play.scores)


@pytest.mark.parametrize("name", ["improvement", "anytime"])
def test_scores_have_the_same_bits_without_jax(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has not loaded it, or was forked."""
    rng = np.random.default_rng(4)
    cost = np.sort(rng.random((5, 3, 2, 41)) * 10.0 ** rng.integers(-3, 4, (5, 3, 2, 1)))[..., ::-1]
    cost[1, 2, 0] = np.nan
    scores = UTILITIES[name](rollouts_of(cost), ())
    values = mean_scores(scores)
    monkeypatch.setattr("spo_jax.search.utility.jax_ready", lambda: False)
    np.testing.assert_array_equal(UTILITIES[name](rollouts_of(cost), ()), scores)
    np.testing.assert_array_equal(mean_scores(scores), values)
    assert np.isnan(values).tolist() == [False, True, False, False, False]


@pytest.mark.long
def test_a_forked_process_does_not_call_jax() -> None:
    """Its threads are missing there, so a call would never end."""
    command = (
        "import os, jax\nfrom spo_jax.numerics.jax_state import jax_ready\nassert jax_ready()\n"
        "child = os.fork()\nif not child: os._exit(jax_ready())\n"
        "raise SystemExit(os.waitpid(child, 0)[1])"
    )
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", command]).returncode == 0

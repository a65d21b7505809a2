"""What the laboratory's runs have seen: copies that earn nothing, and the best pair found."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spo_jax.rl.updates.grpo import GrpoConfig
from spo_jax.search.lab import bandit
from spo_jax.search.lab.bandit import Training, train
from spo_jax.search.lab.policies import History, Sampled
from spo_jax.search.lab.schemes import Scheme
from spo_jax.search.lab.worlds import WorldSpec, make_worlds

pytestmark = pytest.mark.long  # XLA compiles

SCHEMES = [Scheme.of("stackelberg"), Scheme.of("shared")]


def sampled_of(leaders, followers):
    return Sampled(jnp.asarray(leaders), jnp.asarray(followers), jnp.zeros(np.shape(followers)))


def empty(runs, leaders, followers):
    seen = jnp.zeros((runs, leaders, followers), bool)
    return History(seen, jnp.full(runs, -jnp.inf), jnp.zeros(runs))


def test_history_by_loops():
    """Random rounds of two runs, with failures: a set of pairs and a running maximum."""
    rng = np.random.default_rng(3)
    runs, leaders, followers, group, responses = 2, 4, 5, 3, 2
    utility = rng.normal(size=(runs, leaders, followers)).astype(np.float32)
    history = empty(runs, leaders, followers)
    pairs = [set() for _ in range(runs)]
    top, true = [-math.inf] * runs, [0.0] * runs
    for _ in range(6):
        who = rng.integers(leaders, size=(runs, group))
        answer = rng.integers(followers, size=(runs, group, responses))
        measured = rng.normal(size=(runs, group, responses))
        measured[rng.random(measured.shape) < 0.3] = np.nan
        sampled = sampled_of(who, answer)
        old, again = history.copies(sampled)
        history = history.after(sampled, jnp.asarray(measured), jnp.asarray(utility))
        for n in range(runs):
            for b in range(group):
                assert bool(old[n, b]) == any(who[n, b] == d for d, _ in pairs[n])
                for r in range(responses):
                    assert bool(again[n, b, r]) == ((who[n, b], answer[n, b, r]) in pairs[n])
            for b in range(group):
                for r in range(responses):
                    pair = who[n, b], answer[n, b, r]
                    pairs[n].add(pair)
                    if measured[n, b, r] > top[n]:
                        top[n], true[n] = measured[n, b, r], utility[n][pair]
        assert np.allclose(history.measured, top, rtol=1e-6)
        assert np.array_equal(history.true, np.float32(true))


def test_a_round_of_failures_finds_nothing():
    history = empty(1, 2, 2)
    after = history.after(
        sampled_of([[0]], [[[1]]]), jnp.full((1, 1, 1), jnp.nan), jnp.ones((1, 2, 2))
    )
    assert after.measured[0] == -np.inf
    assert after.true[0] == 0
    assert after.seen.sum() == 1


@pytest.mark.parametrize("name", ["stackelberg", "shared-pair-samples", "shared-one-advantage"])
def test_copies_have_no_advantage(name):
    """Of four leaders the second is old; of its pairs, and of the first one's, some are. Leaders
    whose pairs are samples have the sum of their pairs' advantages among those of new leaders, in
    units in which the mean over leaders is that over pairs.
    """
    scheme = Scheme.of(name)
    plan = bandit._Plan(GrpoConfig(), (scheme,), (3,), "centred", 8)
    utility = np.array([[1.0, 2, 3], [9, 9, 9], [3, 4, 5], [0, 0, 7]])
    sampled = sampled_of([[0, 1, 2, 3]], np.zeros((1, 4, 3), int))
    known = [jnp.zeros((1, 4)), jnp.zeros((1, 4, 3)), jnp.zeros((1, 4))]
    old = np.array([False, True, False, False])
    again = np.array([[False, False, True], [True, True, False], [False] * 3, [False] * 3])
    with jax.enable_x64(True):
        top, answers = bandit._advantages(
            plan, Scheme.traced, sampled, jnp.asarray(utility[None]), known,
            (jnp.asarray(old[None]), jnp.asarray(again[None])),
        )  # fmt: skip
    top, answers = np.array(top[0]), np.array(answers[0])
    left = np.where(again, np.nan, utility)
    if name == "stackelberg":
        two = np.array([2.5, 0, 4.5, 3.5])  # means of the best two
        due = np.where(old, 0, two - two[~old].mean())
    else:
        mine = np.where(old[:, None], np.nan, left)
        due = np.nansum(mine - np.nanmean(mine), axis=1) * 3 / np.isfinite(mine).sum()
    np.testing.assert_allclose(top, due, atol=1e-6)
    assert top[1] == 0
    level = np.nanmean(left) if name == "shared-one-advantage" else np.nanmean(left, 1)[:, None]
    np.testing.assert_allclose(answers, np.nan_to_num(left - level), atol=1e-6)


def test_a_run_finds_among_the_pairs_that_its_scheme_asks_for():
    """`shapley` asks for two of six responses, so it finds what two responses find."""
    worlds = make_worlds(WorldSpec(leaders=16, followers=16), 8, 0)
    both = [Scheme.of("stackelberg"), Scheme.of("shapley")]
    assert [each.responses(6) for each in both] == [6, 2]
    all_six, two = (each.found for each in train(both, worlds, Training(steps=1)))
    [alone] = (each.found for each in train(both[1:], worlds, Training(steps=1)))
    np.testing.assert_allclose(two, alone, atol=1e-6)
    assert two.mean() < all_six.mean()
    sampled = sampled_of([[0], [0]], [[[1, 2]], [[1, 2]]])
    history = empty(2, 2, 4).after(
        sampled, jnp.asarray([[[5.0, jnp.nan]]] * 2), jnp.ones((2, 2, 4)),
        np.array([[[True, True]], [[True, False]]]),
    )  # fmt: skip
    assert np.array_equal(history.seen.sum(axis=(1, 2)), [2, 1])


def test_nothing_seen_before_the_first_round():
    """With one round there are no copies, so both choices are the same run, bit for bit."""
    worlds = make_worlds(WorldSpec(leaders=4, followers=4), 8, 0)
    paid, unpaid = (
        train(SCHEMES, worlds, Training(steps=1, copies=copies)) for copies in ("paid", "unpaid")
    )
    for one, other in zip(paid, unpaid, strict=True):
        assert np.array_equal(one.curve, other.curve)
        assert np.array_equal(one.found, other.found)


def test_a_policy_without_news_stands_still():
    """Two leaders and two followers: all four pairs are old after some rounds."""
    worlds = make_worlds(WorldSpec(leaders=2, followers=2, noise=0), 8, 0)
    long, longer = (
        train(SCHEMES[:1], worlds, Training(steps=steps, copies="unpaid", group=8))[0]
        for steps in (20, 40)
    )
    assert np.allclose(longer.curve[:, 20], longer.curve[:, 40], atol=0.05)
    assert np.array_equal(long.found, longer.found)
    assert np.allclose(long.found, 1, atol=1e-6)


def test_found_is_of_the_pair_measured_best_and_never_falls_without_noise():
    worlds = make_worlds(WorldSpec(leaders=16, followers=16, noise=0), 8, 0)
    few, many = (train(SCHEMES[:1], worlds, Training(steps=steps))[0].found for steps in (2, 20))
    assert (many >= few).all()
    assert (many <= 1 + 1e-6).all()
    assert many.mean() > few.mean()


def test_policies_with_no_rate_stay_uniform_and_find_by_chance():
    worlds = make_worlds(WorldSpec(leaders=16, followers=16, noise=0), 8, 0)
    [still] = train(SCHEMES[:1], worlds, Training(steps=20, rate=0))
    np.testing.assert_allclose(still.curve, 0, atol=1e-5)
    assert 0.3 < still.found.mean() < 1


def test_steps_that_are_a_loop_meet_the_same_copies(monkeypatch):
    worlds = make_worlds(WorldSpec(leaders=4, followers=4, failing=0.2), 8, 0)
    training = Training(steps=6, copies="unpaid")
    scanned = train(SCHEMES[:1], worlds, training)[0]
    monkeypatch.setattr(bandit, "_traces", lambda *_: False)
    looped = train(SCHEMES[:1], worlds, training)[0]
    np.testing.assert_allclose(scanned.curve, looped.curve, atol=1e-5)
    np.testing.assert_allclose(scanned.found, looped.found, atol=1e-5)

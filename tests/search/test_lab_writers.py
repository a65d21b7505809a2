"""Policies whose programs share parts: what is written, what is learned, and of what."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spo_jax.errors import InputError
from spo_jax.rl.updates.grpo import GrpoConfig, advantages
from spo_jax.search.lab.bandit import (
    ADVANTAGES,
    Training,
    advantages_of,
    bilevel_gradient,
    gradients,
    train,
)
from spo_jax.search.lab.policies import WRITERS, Policy, Sampled
from spo_jax.search.lab.schemes import Scheme
from spo_jax.search.lab.worlds import WorldSpec, bits, make_worlds

pytestmark = pytest.mark.long  # XLA compiles
NAN = math.nan


def parameters_of(writer, seed: int = 0) -> Policy:
    rng = np.random.default_rng(seed)
    zeros = writer.parameters(1)
    return jax.tree.map(
        lambda each: jnp.asarray(rng.normal(size=each.shape[1:]), jnp.float32), zeros
    )


def test_a_table_has_a_parameter_for_each_program() -> None:
    writer = WRITERS["table"](4, 8)
    own = parameters_of(writer)
    for one, two in zip(jax.tree.leaves(writer.policy(own)), jax.tree.leaves(own), strict=True):
        np.testing.assert_array_equal(one, two)


def test_programs_are_written_bit_by_bit() -> None:
    """The chance of a program is the product of its bits' chances, each the logistic of its own."""
    writer = WRITERS["parts"](8, 4)
    own = parameters_of(writer)
    found = jax.nn.softmax(writer.policy(own).leader)
    chance = 1 / (1 + np.exp(-np.asarray(own.leader, float)))  # of a 1
    for number, each in enumerate(bits(8)):
        due = np.prod(np.where(each > 0, chance, 1 - chance))
        assert found[number] == pytest.approx(due, rel=1e-5)
    answers = jax.nn.softmax(writer.policy(own).follower)
    for k, leader in enumerate(bits(8)):
        odds = np.asarray(own.shared, float) + leader @ np.asarray(own.own, float)
        chance = 1 / (1 + np.exp(-odds))
        for m, each in enumerate(bits(4)):
            due = np.prod(np.where(each > 0, chance, 1 - chance))
            assert answers[k, m] == pytest.approx(due, rel=1e-5)


def test_who_does_not_see_the_leader_answers_all_alike() -> None:
    writer = WRITERS["parts-unseen"](8, 4)
    answers = np.asarray(writer.policy(parameters_of(writer)).follower)
    assert np.ptp(answers, axis=0).max() == 0
    seen = WRITERS["parts"](8, 4)
    assert np.ptp(np.asarray(seen.policy(parameters_of(seen)).follower), axis=0).min() > 0.01


@pytest.mark.parametrize("name", WRITERS)
def test_gradients_go_through_the_features(name: str) -> None:
    """Of the leader's exact objective, against differences of it by each parameter."""
    writer = WRITERS[name](4, 4)
    own = parameters_of(writer)
    utility = np.random.default_rng(1).normal(size=(4, 4)).astype(np.float32)

    def objective(leader: np.ndarray) -> float:
        policy = writer.policy(Policy(jnp.asarray(leader, jnp.float32), own.shared, own.own))
        chance = np.asarray(jax.nn.softmax(policy.leader), float)
        return float(chance @ utility.max(axis=1))

    policy, back = jax.vjp(writer.policy, own)
    top, (shared, rest) = bilevel_gradient(policy, jnp.asarray(utility))
    [found] = back(Policy(top, shared, rest))
    for a, value in enumerate(np.asarray(own.leader, float)):
        ends = []
        for step in (0.02, -0.02):
            moved = np.array(own.leader, float)
            moved[a] = value + step
            ends.append(objective(moved))
        assert found.leader[a] == pytest.approx((ends[0] - ends[1]) / 0.04, abs=2e-3)


def test_a_sample_teaches_about_what_shares_its_bits() -> None:
    """One sampled program, 5 = 101, with an advantage of 1: the odds of 1 rise in bits 0 and 2."""
    writer = WRITERS["parts"](8, 4)
    own = jax.tree.map(lambda each: each[0], writer.parameters(1))
    policy, back = jax.vjp(writer.policy, own)
    sampled = Sampled(jnp.array([5]), jnp.array([[3]]), jnp.zeros((1, 1)))
    top, rest = gradients(policy, sampled, jnp.ones(1), jnp.zeros((1, 1)))
    [found] = back(Policy(top, *rest))
    np.testing.assert_allclose(found.leader, [0.5, -0.5, 0.5], atol=1e-6)


def learned(name: str, parts: float) -> float:
    worlds = make_worlds(WorldSpec(16, 32, spread=0.0, noise=0.2, parts=parts), 40, 0)
    training = Training(steps=60, writer=name)
    return float(train([Scheme("stackelberg")], worlds, training, 0)[0].leader.mean())


def test_parts_help_where_they_tell_and_hurt_where_they_do_not() -> None:
    assert learned("parts", 1.0) > learned("table", 1.0) + 0.05
    assert learned("parts", 0.0) < learned("table", 0.0) - 0.05


def test_an_unknown_writer_is_refused() -> None:
    with pytest.raises(InputError, match="no writer 'bits'; there are table, parts, parts-unseen"):
        Training(writer="bits")


# --- pairs as samples -----------------------------------------------------------------------------

UTILITY = np.array([[[1.0, 3.0], [5.0, NAN], [NAN, NAN]]])


def earned(name: str) -> tuple[np.ndarray, np.ndarray]:
    found = Scheme(name)(UTILITY, np.arange(6).reshape(1, 3, 2))
    return np.asarray(found.leader), np.asarray(found.follower)


def centred(credits: np.ndarray) -> np.ndarray:
    return np.asarray(ADVANTAGES["centred"](credits))


@pytest.mark.parametrize("samples", ["pairs", "one-group"])
def test_leaders_sum_over_their_pairs_as_in_the_real_update(samples) -> None:
    name = "shared-pair-samples" if samples == "pairs" else "shared-one-advantage"
    leader, follower = advantages_of(*earned(name), samples, centred)
    own = UTILITY[0]
    due = advantages(
        np.nanmean(own[:2], axis=1), np.zeros(2, bool), np.ones(2, bool), GrpoConfig(),
        by_pair=own[:2],
    )  # fmt: skip
    np.testing.assert_allclose(leader, [[*due, 0.0]])
    rows = [[-2, 0], [2, 0], [0, 0]] if samples == "one-group" else [[-1, 1], [0, 0], [0, 0]]
    np.testing.assert_allclose(follower, [rows])


def test_programs_as_samples_are_groups_of_each_role() -> None:
    leader, follower = advantages_of(*earned("shared"), "programs", centred)
    np.testing.assert_allclose(leader, [[-1.5, 1.5, 0]])
    np.testing.assert_allclose(follower, [[[-1, 1], [0, 0], [0, 0]]])

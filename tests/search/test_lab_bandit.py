"""The bilevel bandit: its gradients and updates against loops, enumeration and the real update."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spo_jax.advantages import centred
from spo_jax.errors import InputError
from spo_jax.rl.updates.grpo import ADVANTAGES as REAL
from spo_jax.rl.updates.grpo import GrpoConfig, advantages
from spo_jax.search.credit.arrays import Reference, of_arrays
from spo_jax.search.lab import bandit
from spo_jax.search.lab.bandit import (
    ADVANTAGES,
    Training,
    bilevel_gradient,
    draw,
    gradients,
    refer,
    train,
    worth,
)
from spo_jax.search.lab.policies import Policy, Sampled
from spo_jax.search.lab.schemes import Scheme
from spo_jax.search.lab.worlds import Worlds, WorldSpec, make_worlds

NAN = math.nan
pytestmark = pytest.mark.long  # XLA compiles


def softmax(x):
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def policy_of(rng, leaders, followers):
    shapes = (leaders,), (followers,), (leaders, followers)
    return Policy(*(jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in shapes))


def by_hand(policy, utility):
    """(J of a sampled pair, of a sampled leader with its best response), by loops."""
    first, answer = softmax(np.array(policy.leader)), softmax(np.array(policy.follower))
    pair = leader = 0.0
    for d, row in enumerate(utility):
        leader += first[d] * max(row)
        for f, value in enumerate(row):
            pair += first[d] * answer[d, f] * value
    return pair, leader


@pytest.fixture
def tiny():
    """Two leaders, three followers: a policy and utilities, float32."""
    rng = np.random.default_rng(11)
    return policy_of(rng, 2, 3), rng.normal(size=(2, 3)).astype(np.float32)


def test_what_policies_are_worth(tiny):
    policy, utility = tiny
    found = worth(jax.tree.map(lambda x: x[None], policy), utility[None])[0]
    np.testing.assert_allclose(found, by_hand(policy, utility), rtol=1e-5)


def test_exact_gradients_against_finite_differences(tiny):
    policy, utility = tiny
    leader, (shared, own) = bilevel_gradient(policy, jnp.asarray(utility))
    step = 1e-3
    for field, which, found in (
        ("leader", 1, leader), ("shared", 0, shared), ("own", 0, own),
    ):  # fmt: skip
        values = np.array(getattr(policy, field), np.float64)
        for place in np.ndindex(values.shape):
            ends = []
            for sign in (1, -1):
                moved = values.copy()
                moved[place] += sign * step
                parts = {n: np.array(getattr(policy, n), np.float64) for n in vars(policy)}
                ends.append(by_hand(Policy(**(parts | {field: moved})), utility)[which])
            assert float(found[place]) == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=2e-5)
    # And by its formula, pi_d (v_d - sum pi v).
    chance, value = softmax(np.array(policy.leader)), utility.max(axis=1)
    np.testing.assert_allclose(leader, chance * (value - chance @ value), rtol=1e-4)


@pytest.mark.parametrize("name", ADVANTAGES)
def test_the_update_is_the_equation_with_the_advantages_of_the_real_update(tiny, name):
    policy, _ = tiny
    rng = np.random.default_rng(4)
    leaders, followers = np.array([0, 1, 1, 0]), rng.integers(3, size=(4, 5))
    credit, answered = rng.normal(size=4), rng.normal(size=(4, 5))
    credit[2], answered[0, 1], answered[3] = NAN, NAN, 0.25  # left out; and equal credits

    def real(values):
        none, all_of_them = np.zeros(len(values), bool), np.ones(len(values), bool)
        config = GrpoConfig(advantage=REAL[name])
        return np.nan_to_num(advantages(values, none, all_of_them, config))

    top, below = ADVANTAGES[name](credit), ADVANTAGES[name](answered)
    np.testing.assert_allclose(top, real(credit), atol=1e-12)
    np.testing.assert_allclose(below, [real(row) for row in answered], atol=1e-12)
    sampled = Sampled(jnp.asarray(leaders), jnp.asarray(followers), jnp.zeros((4, 5)))
    way, (shared, own) = gradients(
        policy, sampled, jnp.asarray(top, jnp.float32), jnp.asarray(below, jnp.float32)
    )
    # (1 / B) sum_i A_i grad log pi(y_i), where grad log pi(y) = e_y - pi.
    first, answer = softmax(np.array(policy.leader)), softmax(np.array(policy.follower))
    expected = sum(a * (np.eye(2)[d] - first) for a, d in zip(top, leaders, strict=True)) / 4
    np.testing.assert_allclose(way, expected, atol=1e-6)
    each = np.zeros((2, 3))
    for d, row, chosen in zip(leaders, below, followers, strict=True):
        each[d] += sum(a * (np.eye(3)[f] - answer[d]) for a, f in zip(row, chosen, strict=True)) / 5
    np.testing.assert_allclose(own, each / 4, atol=1e-6)
    np.testing.assert_allclose(shared, each.sum(axis=0) / 4, atol=1e-6)


def expected_update(policy, utility, scheme, group, responses):
    """E of `gradients`, over all leaders and followers that could have been sampled."""
    count, answers = utility.shape
    first, answer = softmax(np.array(policy.leader)), softmax(np.array(policy.follower))
    rows = itertools.product(range(answers), repeat=responses)
    rounds = list(itertools.product(itertools.product(range(count), rows), repeat=group))
    leaders = np.array([[d for d, _ in each] for each in rounds])
    followers = np.array([[row for _, row in each] for each in rounds])
    chance = first[leaders].prod(axis=1) * answer[leaders[..., None], followers].prod(axis=(1, 2))
    assert chance.sum() == pytest.approx(1)
    seen = utility[leaders[..., None], followers].astype(np.float64)
    earned = scheme(seen, followers)
    found = jax.vmap(gradients, in_axes=(None, 0, 0, 0))(
        policy, Sampled(jnp.asarray(leaders), jnp.asarray(followers), jnp.asarray(seen)),
        jnp.asarray(centred(earned.leader), jnp.float32),
        jnp.asarray(centred(earned.follower), jnp.float32),
    )  # fmt: skip
    return jax.tree.map(lambda x: np.tensordot(chance, np.array(x, np.float64), 1), found)


@pytest.mark.parametrize("name", ["stackelberg", "shared", "max-at-k", "regret"])
def test_the_followers_update_is_unbiased_up_to_its_length(tiny, name):
    """For credits that are J, or J less a constant of the row: (R - 1) / R of the gradient."""
    policy, utility = tiny
    _, found = expected_update(policy, utility, Scheme(name), 2, 2)
    exact = bilevel_gradient(policy, jnp.asarray(utility))[1]
    for one, other in zip(found, exact, strict=True):
        np.testing.assert_allclose(one, np.array(other) / 2, atol=1e-6)


@pytest.mark.parametrize(("name", "k", "biased"), [
    ("shared", 1, False), ("max-at-k", 2, False), ("max", 2, True), ("stackelberg", 2, True),
])  # fmt: skip
def test_which_leaders_update_is_unbiased(name, k, biased):
    """max-at-k with R = 4 and top 2 ascends E[best of 2], shared E[J]; the others neither."""
    rng = np.random.default_rng(12)
    policy, utility = policy_of(rng, 2, 2), rng.normal(size=(2, 2)).astype(np.float32)
    found, _ = expected_update(policy, utility, Scheme(name), 2, 4)
    first, answer = softmax(np.array(policy.leader)), softmax(np.array(policy.follower))
    value = np.array([
        sum(np.prod(p[list(fs)]) * max(row[list(fs)])
            for fs in itertools.product(range(2), repeat=k))
        for p, row in zip(answer, utility, strict=True)
    ])  # fmt: skip
    exact = first * (value - first @ value) / 2  # (B - 1) / B of the gradient
    assert np.allclose(found, exact, atol=1e-6) != biased


def test_samples_follow_the_policies():
    rng = np.random.default_rng(5)
    policy, utility = policy_of(rng, 3, 4), np.arange(12.0).reshape(3, 4)
    many = jax.tree.map(lambda x: jnp.broadcast_to(x, (400, *x.shape)), policy)
    tables = jnp.broadcast_to(jnp.asarray(utility, jnp.float32), (400, 3, 4))
    drawn = rng.random((400, 20)), rng.random((400, 20, 30)), rng.normal(size=(400, 20, 30))
    found = draw(many, tables, 0.0, *drawn)
    leaders, followers = np.array(found.leaders), np.array(found.followers)
    shares = np.bincount(leaders.ravel(), minlength=3) / leaders.size
    np.testing.assert_allclose(shares, softmax(np.array(policy.leader)), atol=0.02)
    for d, chance in enumerate(softmax(np.array(policy.follower))):
        own = followers[leaders == d]
        np.testing.assert_allclose(
            np.bincount(own.ravel(), minlength=4) / own.size, chance, atol=0.015
        )
    np.testing.assert_array_equal(found.utility, utility[leaders[..., None], followers])
    noisy = draw(many, tables, 0.5, *drawn)
    error = np.array(noisy.utility - found.utility)
    assert (error.mean(), error.std()) == pytest.approx((0, 0.5), abs=0.01)


SMALL = Training(group=4, responses=3, steps=15)


def test_runs_are_the_same_again_and_schemes_do_not_touch_each_other():
    worlds = make_worlds(WorldSpec(5, 6), 7)
    pair = [Scheme("stackelberg"), Scheme("gap")]
    one, again = train(pair, worlds, SMALL), train(pair, worlds, SMALL)
    for a, b in zip(one, again, strict=True):
        np.testing.assert_array_equal(a.curve, b.curve)
    other = train([Scheme("shared"), Scheme("stackelberg")], worlds, SMALL)[1]
    np.testing.assert_allclose(one[0].curve, other.curve, atol=1e-5)
    assert not np.allclose(train(pair, worlds, SMALL, seed=1)[0].curve, one[0].curve)


def test_a_scheme_with_fewer_responses_learns_as_if_the_others_were_never_drawn():
    """Of six pairs a leader `shapley` has two responses: the update is the mean over these."""
    utility, source = (
        np.random.default_rng(2).normal(size=(3, 4, 6)),
        np.arange(72).reshape(3, 4, 6),
    )
    sampled = Sampled(np.zeros((3, 4), np.int32), source, utility)
    reference = utility[..., 0], utility + 1, utility[:, 0, 0]
    scheme = Scheme("shapley")
    plan = bandit._Plan(GrpoConfig(), (scheme,), (2,), "centred", 72)
    with jax.enable_x64(True):
        _, found = bandit._advantages(plan, Scheme.traced, sampled, utility, reference, None)
    part = Reference(reference[0], reference[1][..., :2], reference[2])
    alone = centred(scheme(utility[..., :2], source[..., :2], part).follower)
    np.testing.assert_array_equal(found[..., 2:], 0)
    np.testing.assert_allclose(found[..., :2], 3 * alone, rtol=1e-5)  # a mean over 6, not over 2


def test_equal_shapes_are_compiled_once():
    schemes = [Scheme("stackelberg"), Scheme("max", 1)]
    train(schemes, make_worlds(WorldSpec(5, 6), 3), SMALL)
    before = bandit._scanned.cache_size()
    worlds = make_worlds(WorldSpec(5, 6, gamma=2, noise=1.5, tails=4), 3, seed=9)
    train(list(map(Scheme.of, ("stackelberg", "max@1"))), worlds, SMALL, seed=3)
    assert bandit._scanned.cache_size() == before


def test_a_scheme_that_jax_cannot_trace_learns_as_its_twin():
    """Step by step, and with failures: as in the scan."""

    @of_arrays
    def mine(rounds, top):
        best = -np.sort(-np.nan_to_num(rounds.utility, nan=-np.inf), axis=-1)[..., :2]
        known = np.isfinite(best)
        total = np.where(known, best, 0.0).sum(axis=-1)
        leader = np.where(known.any(axis=-1), total / np.maximum(known.sum(axis=-1), 1), np.nan)
        return leader, rounds.utility, None

    worlds = make_worlds(WorldSpec(5, 6, failing=0.2), 4)
    scheme = Scheme.of(mine)
    one, two = (train([each], worlds, SMALL)[0] for each in (scheme, Scheme("stackelberg")))
    np.testing.assert_allclose(one.curve, two.curve, atol=1e-5)
    assert scheme.slow == (
        "mine is slow: JAX cannot trace it (TracerArrayConversionError), so it is called uncompiled"
    )


def test_policies_find_the_best_pair_of_an_easy_world():
    utility = np.zeros((1, 3, 4))
    utility[0, 1, 2] = 1.0
    [learned] = train([Scheme("stackelberg")], Worlds(utility), Training(steps=150, rate=0.1))
    assert learned.curve[0, 0] == 0
    assert learned.pair[0] == learned.curve[0, -1] > 0.9
    assert learned.leader[0] > 0.9


def test_a_world_without_differences_has_nothing_to_learn():
    [learned] = train([Scheme("gap")], Worlds(np.ones((2, 3, 4))), Training(steps=2))
    np.testing.assert_array_equal(learned.curve, 1)


@pytest.mark.parametrize(
    "own",
    [
        {"group": 1},
        {"responses": 0},
        {"steps": 0},
        {"rate": -1},
        {"advantage": "best"},
        {"copies": "half"},
    ],
)
def test_what_is_no_training(own):
    with pytest.raises(InputError, match=next(iter(own))):
        Training(**own)


def test_references_are_of_the_table_and_measured_once_a_round():
    utility = jnp.asarray(np.arange(12.0).reshape(1, 3, 4))
    answers = jnp.array([[[1, 1], [3, 0]]])
    sampled = Sampled(jnp.array([[0, 2]]), answers, jnp.zeros((1, 2, 2)))
    given = jnp.array([2]), jnp.array([1]), sampled, utility  # leader 2, follower 1
    errors = np.array([[0.3, -1.0]]), np.array([[2.0, 1.0, 0.5, -0.5]])
    leader, follower, pair = map(np.array, refer(*given, 0.0, *errors))
    np.testing.assert_array_equal(leader, [[1, 9]])
    np.testing.assert_array_equal(follower, [[[9, 9], [11, 8]]])
    np.testing.assert_array_equal(pair, [9])
    leader, follower, pair = map(np.array, refer(*given, 0.5, *errors))
    np.testing.assert_allclose(leader, [[1.15, 8.5]])
    np.testing.assert_allclose(follower, [[[9.5, 9.5], [10.75, 9.0]]])
    np.testing.assert_allclose(pair, [9.5])

"""A bilevel bandit: the group-relative update of GRPO on softmax policies, without a model.

The leader's policy is a softmax over K leaders. The follower's is a softmax over M followers whose
logits are a part that all leaders share plus a part of each leader: like a language model, it
carries over what it learns with one leader to others. A step is a round: B leaders, R followers in
answer to each, noisy evaluations, credits, and one step of the trainer's optimizer per role on the
gradient of eq:grpo, at a ratio of 1.

Everything but the credits is JAX, vectorised over runs and compiled once for a shape, whatever the
scheme: schemes are functions of NumPy arrays, and meet all their runs in one call a step.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from spo_jax.errors import InputError
from spo_jax.rl.grpo import NO_SPREAD, GrpoConfig, clipped_objective
from spo_jax.search.formulas.seen import Reference
from spo_jax.search.lab.schemes import Scheme, centred
from spo_jax.search.lab.worlds import Worlds
from spo_jax.seeding import numpy_rng

Array = np.ndarray


def standardised(credits: Array) -> Array:
    """`centred`, over the group's standard deviation; 0 where all credits of a group are equal."""
    known = np.isfinite(credits)
    count = np.maximum(known.sum(axis=-1, keepdims=True), 1)
    away = centred(credits)
    deviation = np.sqrt((away**2).sum(axis=-1, keepdims=True) / count)
    highest = np.where(known, credits, -np.inf).max(axis=-1, keepdims=True)
    lowest = np.where(known, credits, np.inf).min(axis=-1, keepdims=True)
    spread = highest - lowest > NO_SPREAD
    return np.where(spread, away / np.where(spread, deviation, 1.0), 0.0)


ADVANTAGES = {"centred": centred, "standardised": standardised}  # those of rl/grpo.py, of groups


@dataclass(frozen=True)
class Training:
    """group: leaders of a round, B. responses: R. steps: rounds. rate: AdamW's, of the logits; the
    other settings of the update are the trainer's defaults. advantage: one of ADVANTAGES. Raises
    InputError below 1, and for another advantage.
    """

    group: int = 8
    responses: int = 6
    steps: int = 100
    rate: float = 0.05
    advantage: str = "centred"

    def __post_init__(self) -> None:
        for name, least in (("group", 2), ("responses", 1), ("steps", 1)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}; it is at least {least}")
        if not self.rate > 0:
            raise InputError(f"rate is {self.rate}; it must be above 0")
        if self.advantage not in ADVANTAGES:
            known = ", ".join(ADVANTAGES)
            raise InputError(
                f"no advantage {self.advantage!r} in the laboratory; there are {known}"
            )


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Policy:
    """Logits, float32. leader: [K]. shared: [M]. own: [K, M]. All zero: uniform."""

    leader: jax.Array
    shared: jax.Array
    own: jax.Array

    @property
    def follower(self) -> jax.Array:
        """[K, M]: logits of each leader's responses."""
        return self.shared + self.own


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Sampled:
    """leaders: [B] int32. followers: [B, R] int32. utility: [B, R] float32, as measured."""

    leaders: jax.Array
    followers: jax.Array
    utility: jax.Array


@dataclass(frozen=True, eq=False)
class Learned:
    """By run, [W] float64, and the curve of `pair`, [W, steps + 1].

    pair: J of a pair that the policies sample, in expectation. leader: J of the leader that its
    policy samples with its best response, in expectation: the bilevel objective. Both in parts of
    the way from the uniform policy, 0, to the world's best pair, 1.
    """

    pair: np.ndarray
    leader: np.ndarray
    curve: np.ndarray = field(repr=False)


def train(
    schemes: Sequence[Scheme], worlds: Worlds, training: Training | None = None, seed: int = 0
) -> list[Learned]:
    """One run of each scheme in each world, with the same random streams.

    `responses` of the training is the number of pairs a leader: a scheme that asks for more has
    fewer responses (`Scheme.responses`), the first ones of those that the others have.
    """
    training = training or Training()
    counts = [scheme.responses(training.responses) for scheme in schemes]
    count, leaders, followers = worlds.utility.shape
    runs = count * len(schemes)
    utility = jnp.asarray(np.tile(worlds.utility, (len(schemes), 1, 1)), jnp.float32)
    policy = Policy(
        jnp.zeros((runs, leaders)), jnp.zeros((runs, followers)),
        jnp.zeros((runs, leaders, followers)),
    )  # fmt: skip
    config = GrpoConfig(learning_rate=training.rate)
    state: Any = jax.vmap(_optimizer(config).init)
    states = (state(policy.leader), state((policy.shared, policy.own)))
    values = [worth(policy, utility)]
    known = [jnp.asarray(np.tile(each, len(schemes))) for each in worlds.references]
    chances = _Chances(worlds, training, len(schemes), seed)
    for _ in range(training.steps):
        sampled = draw(policy, utility, worlds.noise, *chances.of_draw())
        reference = refer(*known, sampled, utility, worlds.noise, *chances.of_reference())
        advantages = _advantages(schemes, counts, sampled, reference, training.advantage)
        policy, states = learn(config, policy, states, sampled, *advantages)
        values.append(worth(policy, utility))
    pair, leader = np.array(values, np.float64).transpose(2, 1, 0)  # [runs, steps + 1] each
    best = worlds.utility.max(axis=(1, 2))
    found = []
    for i in range(len(schemes)):
        part = slice(i * count, (i + 1) * count)
        curve = _share(pair[part], best)
        found.append(Learned(curve[:, -1], _share(leader[part], best)[:, -1], curve))
    return found


def _share(values: np.ndarray, best: np.ndarray) -> np.ndarray:
    """[W, steps + 1]: of the way from the first value to the best, 1 where there is none."""
    way = (best - values[:, 0])[:, None]
    far = way > 1e-6
    return np.where(far, (values - values[:, :1]) / np.where(far, way, 1.0), 1.0)


class _Chances:
    """The random numbers of each step, the same for all schemes. From NumPy: XLA would take longer
    to compile its generator than all else.
    """

    def __init__(self, worlds: Worlds, training: Training, schemes: int, seed: int) -> None:
        self._worlds, self._schemes = worlds.utility.shape, schemes
        self._round = training.group, training.responses
        self._rounds = numpy_rng(seed, "laboratory", "bandit")
        self._references = numpy_rng(seed, "laboratory", "bandit", "references")

    def of_draw(self) -> tuple[Array, Array, Array]:
        """`who`, `answer` and `error` of `draw`."""
        count, rng = self._worlds[0], self._rounds
        return self._tiled(
            rng.random((count, self._round[0])), rng.random((count, *self._round)),
            rng.standard_normal((count, *self._round)),
        )  # fmt: skip

    def of_reference(self) -> tuple[Array, Array]:
        """`one` and `two` of `refer`."""
        count, rng = self._worlds[0], self._references
        return self._tiled(
            rng.standard_normal((count, self._round[0])),
            rng.standard_normal((count, self._worlds[2])),
        )

    def _tiled(self, *drawn: Array) -> Any:
        return tuple(
            np.tile(each.astype(np.float32), (self._schemes, *(1,) * (each.ndim - 1)))
            for each in drawn
        )


def _advantages(
    schemes: Sequence[Scheme], counts: Sequence[int], sampled: Sampled,
    reference: Sequence[jax.Array], advantage: str,
) -> tuple[jax.Array, jax.Array]:  # fmt: skip
    """[N, B] and [N, B, R] float32: each scheme's runs in one call.

    A scheme with fewer responses than R sees the first of them; the others have no advantage, and
    these count for more, so that the mean over R is theirs.
    """
    utility, source = np.asarray(sampled.utility, np.float64), np.asarray(sampled.followers)
    fields = utility, source, *(np.asarray(each, np.float64) for each in reference)
    parts = zip(*(np.split(each, len(schemes)) for each in fields), strict=True)
    leaders, followers, of_group = [], [], ADVANTAGES[advantage]
    for scheme, count, (u, s, mine, others, pair) in zip(schemes, counts, parts, strict=True):
        known = Reference(mine, others[..., :count], pair)
        earned = scheme(u[..., :count], s[..., :count], known)
        own = np.zeros(u.shape)
        own[..., :count] = of_group(earned.follower) * (u.shape[-1] / count)
        leaders.append(of_group(earned.leader))
        followers.append(own)
    return (
        jnp.asarray(np.concatenate(leaders), jnp.float32),
        jnp.asarray(np.concatenate(followers), jnp.float32),
    )


# --- compiled, over runs --------------------------------------------------------------------------


@jax.jit
@partial(jax.vmap, in_axes=(0, 0, None, 0, 0, 0))
def draw(
    policy: Policy, utility: jax.Array, noise: Any, who: Any, answer: Any, error: Any
) -> Sampled:
    """One round of each run: leaders, followers given the leader, evaluations.

    who: [B] and answer: [B, R] uniform in [0, 1), error: [B, R] standard normal.
    """
    leaders = _pick(policy.leader, who)
    followers = jax.vmap(_pick)(policy.follower[leaders], answer)
    true = utility[leaders[:, None], followers]
    return Sampled(leaders, followers, true + noise * error)


@jax.jit
@partial(jax.vmap, in_axes=(0, 0, 0, 0, None, 0, 0))
def refer(
    best: Any, answer: Any, sampled: Sampled, utility: jax.Array, noise: Any, one: Any, two: Any
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The fields of `Reference` of each run, as measured: a follower's once a round.

    one: [B], two: [M], standard normal.
    """
    others = utility[best] + noise * two
    mine = utility[sampled.leaders, answer] + noise * one
    return mine, others[sampled.followers], others[answer]


def _pick(logits: jax.Array, uniform: jax.Array) -> jax.Array:
    """[M], [S] -> [S] int32: inverse transform sampling, one uniform number for a draw."""
    cumulative = jnp.cumsum(jax.nn.softmax(logits))
    return jnp.sum(uniform[:, None] * cumulative[-1] >= cumulative[:-1], axis=1, dtype=jnp.int32)


@jax.jit
def gradients(
    policy: Policy, sampled: Sampled, leader: jax.Array, follower: jax.Array
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    """Ascent directions of eq:grpo where the policy is the sampler: of one round, both roles.

    leader: [B], follower: [B, R], advantages. Groups of responses count alike.
    """

    def objective(logits: jax.Array, actions: jax.Array, advantage: jax.Array) -> jax.Array:
        """Of groups: logits [G, A], actions [G, B] and advantages [G, B]."""
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), actions, axis=1)
        new = chosen.reshape(-1, 1)  # an action is one token
        old = jax.lax.stop_gradient(new)
        mask = jnp.ones(new.shape, bool)
        return clipped_objective(new, old, mask, advantage.ravel(), GrpoConfig.clip).value.mean()

    def of_leader(logits: jax.Array) -> jax.Array:
        return objective(logits[None], sampled.leaders[None], leader[None])

    def of_follower(shared: jax.Array, own: jax.Array) -> jax.Array:
        return objective((shared + own)[sampled.leaders], sampled.followers, follower)

    return jax.grad(of_leader)(policy.leader), jax.grad(of_follower, argnums=(0, 1))(
        policy.shared, policy.own
    )


@lru_cache
def _optimizer(config: GrpoConfig) -> optax.GradientTransformation:
    from spo_jax.rl.trainer import make_optimizer

    return make_optimizer(config)


@partial(jax.jit, static_argnums=0, donate_argnums=(1, 2))
def learn(
    config: GrpoConfig, policy: Policy, states: Any, sampled: Sampled, leader: Any, follower: Any
) -> tuple[Policy, Any]:
    """One optimizer step of each role of each run."""
    optimizer = _optimizer(config)

    def of_run(policy: Policy, states: Any, sampled: Sampled, leader: Any, follower: Any) -> Any:
        ascent = gradients(policy, sampled, leader, follower)
        params = (policy.leader, (policy.shared, policy.own))
        moved = []
        for way, state, values in zip(ascent, states, params, strict=True):
            descent = jax.tree.map(jnp.negative, way)
            change, state = optimizer.update(descent, state, values)
            moved.append((optax.apply_updates(values, change), state))
        (top, one), ((shared, own), two) = moved
        return Policy(top, shared, own), (one, two)

    return jax.vmap(of_run)(policy, states, sampled, leader, follower)


@jax.jit
@jax.vmap
def worth(policy: Policy, utility: jax.Array) -> jax.Array:
    """[2] by run, exact: J of a sampled pair, and of a sampled leader with its best response."""
    chance = jax.nn.softmax(policy.leader)
    answered = (jax.nn.softmax(policy.follower) * utility).sum(axis=-1)
    return jnp.stack([chance @ answered, chance @ utility.max(axis=-1)])


@jax.jit
def bilevel_gradient(policy: Policy, utility: jax.Array) -> tuple[jax.Array, Any]:
    """Exact, by enumeration, of one world. utility: [K, M], the true J.

    Of the leader's objective, sum_d pi(d) max_f J(d, f), by its logits [K]; and of the followers',
    sum_d pi(d) sum_f pi(f | d) J(d, f), by (shared [M], own [K, M]).
    """

    def objective(part: int, top: jax.Array, shared: jax.Array, own: jax.Array) -> jax.Array:
        chance = jax.nn.softmax(top)
        answered = (jax.nn.softmax(shared + own) * utility).sum(axis=-1)
        return chance @ (utility.max(axis=-1), answered)[part]

    at = policy.leader, policy.shared, policy.own
    return jax.grad(partial(objective, 0))(*at), jax.grad(partial(objective, 1), argnums=(1, 2))(
        *at
    )

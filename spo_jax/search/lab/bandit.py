"""A bilevel bandit: the group-relative update of GRPO on softmax policies, without a model.

The leader's policy is a softmax over K leaders. The follower's is a softmax over M followers whose
logits are a part that all leaders share plus a part that depends on the leader: like a language
model, it carries over what it learns with one leader to others. A writer (WRITERS) says what the
logits are linear in. "table": in the programs themselves, so that nothing is learned about one
program from another. "parts": in the bits of their numbers, so that a program is written bit by bit
and a sample teaches about all that share bits with it; the leader's bits shift the follower's.
"parts-unseen": likewise, but the follower does not see the leader.

A step is a round: B leaders, R followers in answer to each, noisy evaluations, credits, and one
step of the trainer's optimizer per role on the gradient of eq:grpo, at a ratio of 1. What an
earlier round had may be left out of the update (COPIES), as `learning.copies` does with programs
that repeat a parent.

All steps are one compiled scan, vectorised over the runs of all schemes; schemes meet their runs as
arrays [runs, B, R]. Where JAX cannot trace one of the schemes the steps are a loop, which calls
schemes as the rest of the laboratory does.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from spo_jax.advantages import centred, standardised
from spo_jax.errors import InputError
from spo_jax.numerics.float64 import bucket, jitted
from spo_jax.rl.updates.grpo import GrpoConfig, clipped_objective
from spo_jax.search.credit import samples_of
from spo_jax.search.credit.arrays import Reference, arrays_with
from spo_jax.search.credit.types import Samples, formula_of
from spo_jax.search.lab.policies import WRITERS, History, Policy, Sampled, Writer
from spo_jax.search.lab.schemes import Scheme
from spo_jax.search.lab.worlds import Worlds
from spo_jax.seeding import numpy_rng

Array = np.ndarray


ADVANTAGES = {"centred": centred, "standardised": standardised}
COPIES = ("paid", "unpaid")
NO_RATE = 1e-30  # for policies that stay as they are


@dataclass(frozen=True)
class Training:
    """group: leaders of a round, B. responses: R. steps: rounds. rate: AdamW's, of the logits, 0
    for policies that do not learn; the other settings of the update are the trainer's defaults.
    advantage: one of ADVANTAGES. writer: one of WRITERS. copies: one of COPIES; "unpaid" gives no
    advantage to a leader that an earlier round had, nor to a follower that answered this leader in
    one. Raises InputError below 1, and for another advantage, writer or choice of copies.
    """

    group: int = 8
    responses: int = 6
    steps: int = 100
    rate: float = 0.05
    advantage: str = "centred"
    writer: str = "table"
    copies: str = "paid"

    def __post_init__(self) -> None:
        for name, least in (("group", 2), ("responses", 1), ("steps", 1)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}; it is at least {least}")
        if not 0 <= self.rate < math.inf:
            raise InputError(f"rate is {self.rate}; it is 0 or more")
        if self.writer not in WRITERS:
            raise InputError(f"no writer {self.writer!r}; there are {', '.join(WRITERS)}")
        if self.copies not in COPIES:
            raise InputError(f"copies are {' or '.join(COPIES)}, not {self.copies!r}")
        if self.advantage not in ADVANTAGES:
            known = ", ".join(ADVANTAGES)
            raise InputError(
                f"no advantage {self.advantage!r} in the laboratory; there are {known}"
            )


@dataclass(frozen=True, eq=False)
class Learned:
    """By run, [W] float64, and the curve of `pair`, [W, steps + 1].

    pair: J of a pair that the policies sample, in expectation. leader: J of the leader that its
    policy samples with its best response, in expectation: the bilevel objective. found: J of the
    pair that was measured best in all rounds, which is above 0 for policies that do not learn, too.
    All in parts of the way from a pair of the uniform policy, 0, to the world's best pair, 1.
    """

    pair: np.ndarray
    leader: np.ndarray
    found: np.ndarray
    curve: np.ndarray = field(repr=False)


def train(
    schemes: Sequence[Scheme], worlds: Worlds, training: Training | None = None, seed: int = 0
) -> list[Learned]:
    """One run of each scheme in each world, with the same random streams.

    `responses` of the training is the number of pairs per leader: a scheme that asks for more has
    fewer responses (`Scheme.responses`), the first ones of those that the others have.
    """
    training = training or Training()
    counts = [scheme.responses(training.responses) for scheme in schemes]
    count, leaders, followers = worlds.utility.shape
    runs = count * len(schemes)
    utility = jnp.asarray(np.tile(worlds.utility, (len(schemes), 1, 1)), jnp.float32)
    writer = WRITERS[training.writer](leaders, followers)
    parameters = writer.parameters(runs)
    config = GrpoConfig(learning_rate=training.rate or NO_RATE)
    state: Any = jax.vmap(_optimizer(config).init)
    states = (state(parameters.leader), state((parameters.shared, parameters.own)))
    uniform = worth(jax.vmap(writer.policy)(parameters), utility)
    seen = jnp.zeros(utility.shape, bool) if training.copies == "unpaid" else None
    with jax.enable_x64(True):
        history = History(seen, jnp.full(runs, -jnp.inf, jnp.float64), uniform[:, 0])
    known = [jnp.asarray(np.tile(each, len(schemes))) for each in worlds.references]
    plan = _Plan(config, tuple(schemes), tuple(counts), training.advantage, bucket(followers))
    begun = writer, parameters, states, history, utility, known, worlds.noise
    failing = None if worlds.failing is None else np.tile(worlds.failing, (len(schemes), 1))
    chances = _chances(worlds, training, seed)
    if all(_traces(scheme, worlds, training) for scheme in schemes):
        values = np.asarray(_scanned(plan, *begun, failing, chances))
    else:
        values = np.stack(_looped(plan, *begun, failing, chances))
    start = np.asarray(uniform)[None, :, [0, 1, 0]]
    curves = np.concatenate([start, values]).astype(np.float64)  # [steps + 1, runs, 3]
    pair, leader, pick = curves.transpose(2, 1, 0)
    best = worlds.utility.max(axis=(1, 2))
    found = []
    for i in range(len(schemes)):
        part = slice(i * count, (i + 1) * count)
        curve, top, run = (_share(each[part], best) for each in (pair, leader, pick))
        found.append(Learned(curve[:, -1], top[:, -1], run[:, -1], curve))
    return found


def _share(values: np.ndarray, best: np.ndarray) -> np.ndarray:
    """[W, steps + 1]: of the way from the first value to the best, 1 where there is none."""
    way = (best - values[:, 0])[:, None]
    far = way > 1e-6
    return np.where(far, (values - values[:, :1]) / np.where(far, way, 1.0), 1.0)


@dataclass(frozen=True)
class _Plan:
    """What is compiled for. counts: responses of each scheme. sources: above all followers."""

    config: GrpoConfig
    schemes: tuple[Scheme, ...]
    counts: tuple[int, ...]
    advantage: str
    sources: int

    def asked(self, measured: jax.Array) -> np.ndarray:
        """[N, 1, R] bool: the responses that each run's scheme asks for, of measured [N, B, R]."""
        counts = np.repeat(self.counts, len(measured) // len(self.counts))
        return counts[:, None, None] > np.arange(measured.shape[-1])


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Chances:
    """Random numbers by step, [T, W, ...], the same for all schemes. who: [B], answer: [B, R] and
    luck: [B, R], uniform in [0, 1). error: [B, R], one: [B] and two: [M], standard normal.

    From NumPy: XLA would take longer to compile its generator than all else.
    """

    who: Any
    answer: Any
    error: Any
    one: Any
    two: Any
    luck: Any


def _chances(worlds: Worlds, training: Training, seed: int) -> _Chances:
    count, _, followers = worlds.utility.shape
    by_leader, by_pair = (count, training.group), (count, training.group, training.responses)
    rounds = numpy_rng(seed, "laboratory", "bandit")
    references = numpy_rng(seed, "laboratory", "bandit", "references")
    failures = numpy_rng(seed, "laboratory", "bandit", "failures")
    drawn = [
        (
            rounds.random(by_leader), rounds.random(by_pair), rounds.standard_normal(by_pair),
            references.standard_normal(by_leader), references.standard_normal((count, followers)),
            failures.random(by_pair) if worlds.failing is not None else np.zeros(()),
        )
        for _ in range(training.steps)
    ]  # fmt: skip
    *small, luck = (np.stack(each) for each in zip(*drawn, strict=True))
    who, answer, error, one, two = (each.astype(np.float32) for each in small)
    return _Chances(who, answer, error, one, two, luck)


def _traces(scheme: Scheme, worlds: Worlds, training: Training) -> bool:
    """Whether JAX can trace the scheme's formula, if it has one."""
    formula = formula_of(scheme.function)
    utility = np.zeros((2, training.group, scheme.responses(training.responses)))
    return formula is not None and formula.traces(arrays_with(utility), scheme.top)


def _played(
    plan: _Plan, policy: Policy, utility: Any, known: Sequence[Any], noise: Any, failing: Any,
    chance: _Chances,
) -> tuple[Sampled, Any, Any]:  # fmt: skip
    """One round of all runs: what was sampled, J as measured, [N, B, R] float64, NaN for failures,
    and the fields of `Reference`.
    """
    many = len(plan.schemes)
    who, answer, error, one, two = (
        jnp.tile(each, (many, *(1,) * (each.ndim - 1)))
        for each in (chance.who, chance.answer, chance.error, chance.one, chance.two)
    )
    sampled = draw(policy, utility, noise, who, answer, error)
    reference = refer(*known, sampled, utility, noise, one, two)
    measured = sampled.utility.astype(jnp.float64)
    if failing is not None:
        mine = jnp.take_along_axis(jnp.asarray(failing), sampled.leaders, axis=1)
        luck = jnp.tile(chance.luck, (many, 1, 1))
        measured = jnp.where(luck < mine[..., None], jnp.nan, measured)
    measured = jnp.where(plan.asked(measured), measured, jnp.nan)
    return sampled, measured, [each.astype(jnp.float64) for each in reference]


@jitted(static=("plan",))
def _scanned(
    plan: _Plan, writer: Writer, parameters: Policy, states: Any, history: History, utility: Any,
    known: Any, noise: Any, failing: Any, chances: _Chances,
) -> jax.Array:  # fmt: skip
    """[T, N, 3]: `worth` after each step, and J of the pair that was measured best so far."""

    def step(at: Any, chance: _Chances) -> Any:
        parameters, states, history = at
        policy = jax.vmap(writer.policy)(parameters)
        sampled, measured, reference = _played(plan, policy, utility, known, noise, failing, chance)
        earned = _advantages(
            plan, Scheme.traced, sampled, measured, reference, history.copies(sampled)
        )
        parameters, states = learn(plan.config, writer, parameters, states, sampled, *earned)
        history = history.after(sampled, measured, utility, plan.asked(measured))
        value = _worth_and_found(jax.vmap(writer.policy)(parameters), utility, history)
        return (parameters, states, history), value

    return jax.lax.scan(step, (parameters, states, history), chances)[1]


def _worth_and_found(policies: Policy, utility: jax.Array, history: History) -> jax.Array:
    """[N, 3]."""
    return jnp.concatenate([worth(policies, utility), history.true[:, None]], axis=1)


def _looped(
    plan: _Plan, writer: Writer, parameters: Policy, states: Any, history: History, utility: Any,
    known: Any, noise: Any, failing: Any, chances: _Chances,
) -> list[np.ndarray]:  # fmt: skip
    """As `_scanned`, step by step, with schemes that are called with NumPy arrays."""

    def called(scheme: Scheme, *seen: Any) -> tuple[Array, Array]:
        utility, source, reference, _ = jax.tree.map(np.asarray, seen)
        found = scheme(utility, source, reference)
        return found.leader, found.follower

    values = []
    with jax.enable_x64(True):
        for k in range(len(chances.who)):
            chance = jax.tree.map(lambda each, k=k: each[k], chances)
            policy = jax.vmap(writer.policy)(parameters)
            sampled, measured, reference = _played(
                plan, policy, utility, known, noise, failing, chance
            )
            earned = _advantages(
                plan, called, sampled, measured, reference, history.copies(sampled)
            )
            parameters, states = learn(plan.config, writer, parameters, states, sampled, *earned)
            history = history.after(sampled, measured, utility, plan.asked(measured))
            value = _worth_and_found(jax.vmap(writer.policy)(parameters), utility, history)
            values.append(np.asarray(value))
    return values


def _advantages(
    plan: _Plan, call: Callable[..., tuple[Any, Any]], sampled: Sampled, utility: Any,
    reference: Sequence[Any], copies: tuple[Any, Any] | None,
) -> tuple[jax.Array, jax.Array]:  # fmt: skip
    """[N, B] and [N, B, R] float32: each scheme's runs in one call.

    call: of a scheme, J, sources, references and their number. utility: [N, B, R] float64. copies:
    leaders and pairs whose credits are left out, of `History`.

    A scheme with fewer responses than R sees the first of them; the others have no advantage, and
    these count for more, so that the mean over R is theirs.
    """
    nothing = jnp.zeros(utility.shape[:2], bool), jnp.zeros(utility.shape, bool)
    fields = utility, sampled.followers, *reference, *(copies or nothing)
    parts = zip(*(jnp.split(jnp.asarray(each), len(plan.schemes)) for each in fields), strict=True)
    leaders, followers, of_group = [], [], ADVANTAGES[plan.advantage]
    for scheme, count, (u, s, mine, others, pair, old, again) in zip(
        plan.schemes, plan.counts, parts, strict=True
    ):
        known = Reference(mine, others[..., :count], pair)
        leader, follower = call(scheme, u[..., :count], s[..., :count], known, plan.sources)
        leader = jnp.where(old, jnp.nan, leader)
        follower = jnp.where(again[..., :count], jnp.nan, follower)
        slots = u.shape[-1]
        top, answers = advantages_of(leader, follower, samples_of(scheme.function), of_group)
        own = answers * (slots / count)
        leaders.append(top)
        followers.append(jnp.pad(own, [(0, 0), (0, 0), (0, slots - count)]))
    return (
        jnp.concatenate(leaders).astype(jnp.float32),
        jnp.concatenate(followers).astype(jnp.float32),
    )


def advantages_of(
    leader: Any, follower: Any, samples: Samples, of_group: Callable[[Any], Any]
) -> tuple[Any, Any]:
    """Of credits [N, B] and [N, B, R]; a round's leaders are one group, as one context's answers.

    samples: as in `spo_jax.search.groups`, by whose rules a leader has the sum of its pairs, in
    units in which the mean over leaders is that over pairs, and one without a credit has none.
    """
    if samples == "programs":
        return of_group(leader), of_group(follower)

    def of_pairs(credits: Any) -> Any:
        return of_group(credits.reshape(len(credits), -1)).reshape(credits.shape)

    mine = jnp.where(jnp.isfinite(leader)[..., None], follower, jnp.nan)
    finite = jnp.isfinite(mine)
    count = jnp.maximum(jnp.sum(finite, axis=(-2, -1)), 1)
    answers = jnp.sum(finite.any(axis=-1), axis=-1)
    top = of_pairs(mine).sum(axis=-1) * (answers / count)[:, None]
    return top, of_pairs(follower) if samples == "one-group" else of_group(follower)


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
    from spo_jax.rl.updates.trainer import make_optimizer

    return make_optimizer(config)


@partial(jax.jit, static_argnums=0, donate_argnums=(2, 3))
def learn(
    config: GrpoConfig, writer: Writer, parameters: Policy, states: Any, sampled: Sampled,
    leader: Any, follower: Any,
) -> tuple[Policy, Any]:  # fmt: skip
    """One optimizer step of each role of each run."""
    optimizer = _optimizer(config)

    def of_run(before: Policy, states: Any, sampled: Sampled, leader: Any, follower: Any) -> Any:
        policy, back = jax.vjp(writer.policy, before)
        top, rest = gradients(policy, sampled, leader, follower)
        [ascent] = back(Policy(top, *rest))
        moved: list[tuple[Any, Any]] = []
        for way, state, values in zip(_roles(ascent), states, _roles(before), strict=True):
            descent = jax.tree.map(jnp.negative, way)
            change, state = optimizer.update(descent, state, values)
            moved.append((optax.apply_updates(values, change), state))
        (top, one), ((shared, own), two) = moved
        return Policy(top, shared, own), (one, two)

    return jax.vmap(of_run)(parameters, states, sampled, leader, follower)


def _roles(values: Policy) -> tuple[Any, Any]:
    """What each role's optimizer moves."""
    return values.leader, (values.shared, values.own)


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

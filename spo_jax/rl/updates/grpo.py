"""Group relative policy optimization as in the paper (Section 4.4), and its variants.

Advantages are computed per group on the host; ratios and the clipped objective per micro-batch
inside jit. A variant is a function with the signature of `centred` or `sequence`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np

from spo_jax import advantages as shared
from spo_jax.advantages import NO_SPREAD
from spo_jax.constants import ImportanceMode
from spo_jax.errors import InputError
from spo_jax.numerics.float64 import bucket, padded
from spo_jax.registry import Registry, require_function
from spo_jax.rl.buckets import FINE, Ladder
from spo_jax.rl.qwen.logprobs import token_logprobs
from spo_jax.rl.updates.samples import Batch

Advantage = Callable[[np.ndarray], np.ndarray]  # credits [B] float64, finite -> advantages [B]
LogRatio = Callable[[jax.Array, jax.Array], jax.Array]  # see `sequence`
Schedule = Callable[[float], Any]  # learning rate -> rate, or a function of the step count


def _of_one(of_groups: Callable[[np.ndarray], jax.Array]) -> Advantage:
    """Of one group of credits [B], all finite; compiled for a few lengths."""

    @wraps(of_groups)
    def advantage(credits: np.ndarray) -> np.ndarray:
        count = len(credits)
        return np.asarray(of_groups(padded(credits, (bucket(count),))))[:count]

    return advantage


centred, standardised = _of_one(shared.centred), _of_one(shared.standardised)
leave_one_out = _of_one(shared.leave_one_out)


def sequence(delta: jax.Array, mask: jax.Array) -> jax.Array:
    """log rho of the whole sequence (eq:grpo-ratio): the sum over its tokens.

    delta: [B, T], each token's log-probability under the policy minus that under the sampler,
    zero where mask [B, T] is false. Returns [B, T]: the log ratio that weights token t.
    """
    return jnp.broadcast_to(jnp.sum(delta, axis=1, keepdims=True), delta.shape)


def length_normalised(delta: jax.Array, mask: jax.Array) -> jax.Array:
    """The mean over the sequence's tokens instead of the sum (GSPO, Zheng et al., 2025)."""
    tokens = jnp.maximum(mask.sum(axis=1, keepdims=True), 1)
    return sequence(delta, mask) / tokens


def token(delta: jax.Array, mask: jax.Array) -> jax.Array:
    """One ratio per token (Shao et al., 2024)."""
    return delta


def constant(rate: float) -> float:
    """A constant learning rate, as in the paper."""
    return rate


def inverse_sqrt(rate: float) -> Callable[[jax.Array], jax.Array]:
    """rate / sqrt(k) at an adapter's step k = 1, 2, ...: large at first, without a fixed end."""
    return lambda steps: rate / jnp.sqrt(steps + 1.0)


def _own(name: str, found: Any) -> Advantage:
    require_function(f"advantage {name!r}", found, centred)
    return found


ADVANTAGES: Registry[Advantage] = Registry(
    "advantage",
    {"centred": centred, "standardised": standardised, "leave-one-out": leave_one_out},
    _own,
)
RATIOS: dict[str, LogRatio] = {
    "sequence": sequence, "length-normalised": length_normalised, "token": token
}  # fmt: skip
SCHEDULES: dict[str, Schedule] = {"constant": constant, "inverse-sqrt": inverse_sqrt}


IMPORTANCE: tuple[ImportanceMode, ...] = get_args(ImportanceMode)


@dataclass(frozen=True)
class GrpoConfig:
    """The update's settings; the defaults are the paper's (Appendices A.2 and A.4).

    temperature: of the ratio's log-probabilities.
    sampled_at: temperature of the sampler's log-probabilities; None: the same.
    failure_penalty: None leaves failed samples out, as in the paper; a number gives them the
        group's lowest credit minus it.
    weights: "groups", as in eq:grpo: a role's groups count alike, and within a group its usable
        samples. "samples": all usable samples count alike.
    micro_batch: samples on a device at a time.
    share_prompts: compute a group's prompt once instead of once per sample; the same gradient.
    ladder: how lengths and groups are padded, so that few programs are compiled.
    on_policy: the updated adapter is the one that sampled, but the sampler rounds differently. Then
        the trainer's own log-probabilities replace the sampler's.
    importance_cap: with on_policy, weight the gradient by the probability under the trainer over
        that under the sampler, both at `sampled_at`, at most this; None: equal weights.
    importance_mode: one of IMPORTANCE: of a whole sample or of each token, and what is above the
        cap is set to it or left out. See `importance`.
    kl: weight of the divergence from the base without an adapter, a mean over a sample's tokens of
        Schulman's estimate exp(d) - d - 1, d = log pi_base - log pi (Shao et al., 2024); the paper
        has none. Raises InputError for a value out of range.
    """

    learning_rate: float = 5e-6
    schedule: Schedule = constant
    clip: float = 0.2
    max_gradient_norm: float = 1.0
    weight_decay: float = 0.01
    weights: Literal["groups", "samples"] = "groups"
    micro_batch: int = 3
    temperature: float = 0.8
    sampled_at: float | None = None
    advantage: Advantage = centred
    ratio: LogRatio = sequence
    failure_penalty: float | None = None
    share_prompts: bool = False
    ladder: Ladder = FINE
    on_policy: bool = False
    importance_cap: float | None = None
    importance_mode: ImportanceMode = "sequence-truncate"
    kl: float = 0.0

    def __post_init__(self) -> None:
        positive = ("learning_rate", "max_gradient_norm", "temperature", "micro_batch")
        for name in positive:
            if not getattr(self, name) > 0:
                raise InputError(f"{name} is {getattr(self, name)}; it must be above 0")
        if self.sampled_at is not None and not self.sampled_at > 0:
            raise InputError(f"sampled_at is {self.sampled_at}; it must be above 0")
        if self.sampled_at not in (None, self.temperature) and not self.on_policy:
            raise InputError(
                f"sampled_at is {self.sampled_at} and temperature {self.temperature}; without "
                "on_policy the ratio compares both, so they must be equal"
            )
        if not 0 < self.clip < 1:
            raise InputError(f"clip is {self.clip}; it must be between 0 and 1")
        if self.importance_cap is not None and not self.importance_cap > 0:
            raise InputError(f"importance_cap is {self.importance_cap}; it must be above 0")
        if self.importance_mode not in IMPORTANCE:
            raise InputError(
                f"importance_mode is {self.importance_mode!r}; there are {', '.join(IMPORTANCE)}"
            )
        if min(self.weight_decay, self.failure_penalty or 0, self.kl) < 0:
            raise InputError("weight_decay, failure_penalty and kl must not be negative")

    @property
    def refers(self) -> bool:
        """Whether the loss compares with the base."""
        return self.kl > 0

    def loss(self, hidden: jax.Array, head: jax.Array, rows: Batch) -> tuple[jax.Array, "Outcome"]:
        """The weighted loss of rows [B], negative eq:grpo; see `gradients.Objective`."""
        logprobs = token_logprobs(hidden, rows.tokens, head, self.temperature)
        own, old, drift = logprobs, rows.logprobs, None
        if self.on_policy:
            hidden, head, old = jax.lax.stop_gradient((hidden, head, logprobs))
            compared = old  # the trainer's log-probabilities, at the sampler's temperature
            if self.sampled_at not in (None, self.temperature):
                compared = token_logprobs(hidden, rows.tokens, head, self.sampled_at)
            drift = compared - rows.logprobs
            if self.importance_cap is not None:
                # The ratio stays 1, and each token's gradient has its weight.
                weights = importance(drift, rows.mask, self.importance_cap, self.importance_mode)
                own = old + weights * (logprobs - old)
        outcome = clipped_objective(
            own, old, rows.mask, rows.advantage, self.clip, self.ratio, drift
        )
        value = outcome.value
        if self.refers:
            assert rows.reference is not None
            value -= self.kl * divergence(logprobs, rows.reference, rows.mask)
            outcome = replace(outcome, value=value)
        return -jnp.sum(value * rows.weight), outcome


def advantages(
    credits: np.ndarray,
    failed: np.ndarray,
    usable: np.ndarray,
    config: GrpoConfig,
    *,
    by_pair: np.ndarray | None = None,
    others: Sequence[float] | np.ndarray = (),
) -> np.ndarray:
    """A group's advantages [B] float64, NaN for omitted samples, all zero for equal credits.

    credits: [B], NaN without one. failed: [B] bool, samples without a credit by their own fault.
    usable: [B] bool, samples with log-probabilities. by_pair: [B, K], the credits of which
    `credits` are means, where each pair is a sample of the group; NaN for none. An answer's
    advantage is then the sum over its pairs, in units in which the mean over answers is that over
    pairs. others: [M], finite credits of the group's samples that are not among these.

    Raises InputError if the advantage function does not return one finite number per credit.
    """
    each = np.asarray(credits if by_pair is None else by_pair, np.float64).reshape(len(credits), -1)
    if config.failure_penalty is not None and (known := np.isfinite(each) & usable[:, None]).any():
        worst = min([each[known].min(), *others]) - config.failure_penalty
        punished = usable & failed & ~np.isfinite(each).any(axis=1)
        each = np.where(punished[:, None] & (np.arange(each.shape[1]) == 0), worst, each)
    earned = np.isfinite(each) & usable[:, None]
    result = np.full(len(each), np.nan)
    kept = np.concatenate([each[earned], others])
    if earned.any():
        flat = np.ptp(kept) <= NO_SPREAD
        values = np.zeros(each.shape)
        if not flat:
            values[earned] = _checked(config.advantage(kept), kept)[: int(earned.sum())]
        there = earned.any(axis=1)
        result[there] = values.sum(axis=1)[there] * (int(there.sum()) / int(earned.sum()))
    return result


def _checked(found: Any, credits: np.ndarray) -> np.ndarray:
    """Advantages [B] of credits [B]. Raises InputError for an invalid result of the function."""
    try:
        if np.iscomplexobj(found):
            raise TypeError
        array = np.array(found, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"the advantage returned {found!r:.80}: it must return an array of numbers, one for "
            f"each of {len(credits)} credits"
        ) from None
    if array.shape != credits.shape or not np.isfinite(array).all():
        raise InputError(
            f"the advantage of {len(credits)} credits has the shape {array.shape} or is not "
            "finite; it must be one number for each"
        )
    return array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Outcome:
    """The objective's results per row, [B] float32. value: before the row's weight.
    log_ratio: of the whole sequence. clipped: share of its clipped tokens. kl: sum over tokens of
    an estimate of KL(sampler, policy), never negative. surprise: sum over tokens of an estimate of
    the sampler's entropy, minus the log-probability of what it drew. tokens: their number.
    drift, drift_size, drift_max: of the trainer's minus the sampler's log-probabilities, the sum
    over tokens, the sum of absolute values and the largest one. drift_clipped: share of its tokens
    that would be clipped with the sampler's numbers in the ratio.
    """

    value: jax.Array
    log_ratio: jax.Array
    clipped: jax.Array
    kl: jax.Array
    surprise: jax.Array
    tokens: jax.Array
    drift: jax.Array
    drift_size: jax.Array
    drift_max: jax.Array
    drift_clipped: jax.Array


def clipped_objective(
    logprobs: jax.Array,
    old: jax.Array,
    mask: jax.Array,
    advantage: jax.Array,
    clip: float,
    ratio: LogRatio = sequence,
    drift: jax.Array | None = None,
) -> Outcome:
    """min(rho A, clip(rho, 1 - eps, 1 + eps) A) of each row (eq:grpo), a mean over its tokens.

    logprobs, old: [B, T] float32, of the policy and of the sampler. mask: [B, T] bool.
    advantage: [B]. drift: [B, T], see `Outcome`; by default logprobs - old. With the whole-sequence
    ratio all tokens of a row agree, and so does their mean.
    """
    delta = jnp.where(mask, logprobs - old, 0.0)
    log_ratio = ratio(delta, mask)
    A = advantage[:, None]
    held = _held(log_ratio, A, clip)
    bound = jnp.where(log_ratio > 0, 1 + clip, 1 - clip)
    # No exp where its value is unused: infinity times a zero gradient is NaN.
    free = jnp.exp(jnp.where(held | (A == 0), 0.0, log_ratio))
    value = jnp.where(held, bound, free) * A
    tokens = mask.sum(axis=1)
    count = jnp.maximum(tokens, 1)
    plain = jax.lax.stop_gradient(delta)
    drift = plain if drift is None else jnp.where(mask, jax.lax.stop_gradient(drift), 0.0)
    return Outcome(
        value=jnp.sum(value * mask, axis=1) / count,
        log_ratio=plain.sum(axis=1),
        clipped=jnp.sum(held & mask, axis=1) / count,
        kl=jnp.sum(jnp.expm1(plain) - plain, axis=1),
        surprise=-jnp.sum(jnp.where(mask, old, 0.0), axis=1),
        tokens=tokens.astype(jnp.float32),
        drift=drift.sum(axis=1),
        drift_size=jnp.abs(drift).sum(axis=1),
        drift_max=jnp.abs(drift).max(axis=1),
        drift_clipped=jnp.sum(_held(ratio(drift, mask), A, clip) & mask, axis=1) / count,
    )


def importance(drift: jax.Array, mask: jax.Array, cap: float, mode: ImportanceMode) -> jax.Array:
    """Weights that correct a sampler by the trainer: exp(drift), truncated or left out above a cap.

    drift: [B, T], the trainer's minus the sampler's log-probabilities. mask: [B, T] bool. mode: one
    of IMPORTANCE. Returns [B, 1], of whole samples, or [B, T]. As in TRL, whose default is
    "sequence-mask".
    """
    level, _, above = mode.partition("-")
    drift = jnp.where(mask, jax.lax.stop_gradient(drift), 0.0)
    if level == "sequence":
        drift = drift.sum(axis=1, keepdims=True)
    bound = jnp.log(cap)
    weights = jnp.exp(jnp.minimum(drift, bound))
    return jnp.where(drift > bound, 0.0, weights) if above == "mask" else weights


def divergence(logprobs: jax.Array, reference: jax.Array, mask: jax.Array) -> jax.Array:
    """Schulman's estimate of KL(policy, reference) [B], a mean over the tokens of each row.

    logprobs, reference: [B, T] float32. mask: [B, T] bool. Never negative.
    """
    d = jnp.where(mask, reference - logprobs, 0.0)
    return jnp.sum(jnp.expm1(d) - d, axis=1) / jnp.maximum(mask.sum(axis=1), 1)


def _held(log_ratio: jax.Array, advantage: jax.Array, clip: float) -> jax.Array:
    """The tokens at which the clip stops a further step, bool [B, T]."""
    above, below = log_ratio > jnp.log1p(clip), log_ratio < jnp.log1p(-clip)
    return (above & (advantage > 0)) | (below & (advantage < 0))

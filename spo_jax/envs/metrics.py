"""Scores, gaps, credits and cross-play as JAX functions of arrays.

Every function is pure, compiled, made for `jax.vmap`, and computes in float64
(`spo_jax.numerics.float64`); NaN stands for a missing value. Leading axes are `...`. The others are
D destroy, R repair, M panel member, I instance, S seed, C cost after the start and after each step.
Advantages are in `spo_jax.advantages`, which the trainer uses too; feasibility and costs of batches
of solutions in `spo_jax.envs.pricing`.

Sums run in order (`spo_jax.numerics.in_order`). So a result has the same bits alone, with padding
and in a batch, and the same as a plain loop: neither the order of the pairs nor the number of
workers can break a tie between two scores. Numbers below 2.3e-308 count as 0, as everywhere in XLA.
"""

import jax
import jax.numpy as jnp
import numpy as np

from spo_jax.envs import scores
from spo_jax.envs.gaps import reference_gap
from spo_jax.numerics.float64 import jitted
from spo_jax.numerics.in_order import highest_of, mean_in_order

Array = jax.Array | np.ndarray


improvement = jitted()(scores.improvement)
anytime = jitted()(scores.anytime)
utility = jitted()(scores.utility)
gap = jitted()(reference_gap)


@jitted()
def follower_credit(payoff: Array) -> jax.Array:
    """Follower credits (eq:follower-credit): a repair earns its pair's utility.

    payoff: [..., D, R] float64. Returns as many, NaN where there is no finite utility.
    """
    payoff = jnp.asarray(payoff, jnp.float64)
    return jnp.where(jnp.isfinite(payoff), payoff, jnp.nan)


@jitted(static=("top",))
def leader_credit(payoff: Array, top: int = 2) -> jax.Array:
    """Leader credits (eq:leader-credit): the mean of a destroy's `top` best utilities.

    payoff: [..., D, R] float64, NaN where there is none. A row with fewer finite utilities than
    `top` averages those it has, so that a destroy is not charged for repairs that never ran.
    Returns [..., D] float64, NaN for a row without any. Raises InputError for a top below 1.
    """
    best = highest_of(payoff, top)
    known = jnp.isfinite(best)
    return jnp.where(known.any(axis=-1), mean_in_order(best, known), jnp.nan)


@jitted()
def cross_play(payoff: Array) -> jax.Array:
    """Cross-play scores (eq:repair-population-credit): a repair's mean over the leader panel.

    payoff: [..., M, R] float64. Returns [..., R] float64; a repair that fails with one leader
    fails, so a missing entry makes the score NaN, and so does an empty panel.
    """
    columns = jnp.swapaxes(jnp.asarray(payoff, jnp.float64), -1, -2)
    known = jnp.isfinite(columns)
    whole = known.all(axis=-1) & bool(columns.shape[-1])
    return jnp.where(whole, mean_in_order(columns, known), jnp.nan)

"""Group-relative advantages (eq:grpo-advantage) as JAX functions of credits with leading axes.

The trainer calls them with one group, the laboratory with thousands. What has no credit is NaN: it
is left out, and its advantage is 0.
"""

import jax
import jax.numpy as jnp
import numpy as np

from spo_jax.numerics.float64 import jitted
from spo_jax.numerics.in_order import mean_in_order

Array = jax.Array | np.ndarray
NO_SPREAD = 1e-9  # credits closer than this are equal up to rounding


@jitted()
def centred(credits: Array) -> jax.Array:
    """A_i = C_i - mean of the group. credits: [..., B] float64. Returns [..., B] float64."""
    known, mean = _of_group(credits)
    return jnp.where(known, credits - mean, 0.0)


@jitted()
def leave_one_out(credits: Array) -> jax.Array:
    """A_i = C_i - mean of the group's others: centred credits times B / (B - 1) (Ahmadian et al.,
    2024).

    As `centred`; 0 for a credit that is alone.
    """
    count = jnp.sum(jnp.isfinite(credits), axis=-1, keepdims=True)
    return centred(credits) * (count / jnp.maximum(count - 1, 1))


@jitted()
def standardised(credits: Array) -> jax.Array:
    """Centred credits over their standard deviation (Shao et al., 2024).

    As `centred`; 0 where the credits of a group are equal up to `NO_SPREAD`.
    """
    away = centred(credits)
    known = jnp.isfinite(credits)
    _, variance = _of_group(jnp.where(known, away * away, jnp.nan))
    highest = jnp.max(credits, axis=-1, keepdims=True, where=known, initial=-jnp.inf)
    lowest = jnp.min(credits, axis=-1, keepdims=True, where=known, initial=jnp.inf)
    spread = highest - lowest > NO_SPREAD
    deviation = jnp.sqrt(jnp.where(spread & known, variance, 1.0))
    return jnp.where(spread, away / deviation, 0.0)


def _of_group(credits: Array) -> tuple[jax.Array, jax.Array]:
    """Which credits there are, [..., B] bool, and their mean, [..., 1], 0 without any."""
    known = jnp.isfinite(credits)
    mean = mean_in_order(credits, known)[..., None]
    return known, mean

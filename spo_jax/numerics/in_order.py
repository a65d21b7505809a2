"""Sums and sorts for the inside of compiled functions, in one order whatever the shape.

`jnp.sum` adds in an order that depends on the shape, so a score would have other bits alone than in
a batch, or with padding at its end.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from spo_jax.errors import InputError

Array = jax.Array | np.ndarray
AT_ONCE = 32  # columns that are compiled into one loop
FEW = 4  # so many of the highest are found in one pass, and more by sorting


def fold(step: Callable[[Any, Any], Any], start: Any, values: Array) -> Any:
    """step(... step(step(start, values[..., 0]), values[..., 1]) ...).

    start: what the first step is given, such as zeros [...].
    """
    columns = jnp.moveaxis(jnp.asarray(values), -1, 0)
    unroll = max(1, min(len(columns), AT_ONCE))
    return jax.lax.scan(lambda so_far, c: (step(so_far, c), None), start, columns, unroll=unroll)[0]


def sum_in_order(values: Array) -> jax.Array:
    """[..., N] -> [...]: ((0 + first) + second) + ...."""
    return fold(jnp.add, jnp.zeros(values.shape[:-1]), values)


def mean_in_order(values: Array, known: Array) -> jax.Array:
    """[..., N], bool [..., N] -> [...]: the mean of what is known, 0 where nothing is.

    The divisor is counted, because XLA multiplies by the reciprocal of a constant: it rounds twice.
    """
    total = sum_in_order(jnp.where(known, values, 0.0))
    return total / jnp.maximum(jnp.sum(known, axis=-1), 1)


def highest_of(values: Array, top: int) -> jax.Array:
    """[..., N] -> [..., min(top, N)]: the highest finite values, in descending order, then
    -infinity. Raises InputError for a top below 1.
    """
    if top < 1:
        raise InputError(f"top is {top}: a leader is judged by at least one response")
    values = jnp.asarray(values, jnp.float64)
    known = jnp.where(jnp.isfinite(values), values, -jnp.inf)
    if top > FEW or top >= known.shape[-1]:
        return ascending(known)[..., ::-1][..., :top]

    def insert(best: tuple[jax.Array, ...], value: jax.Array) -> tuple[jax.Array, ...]:
        held = []
        for each in best:
            held.append(jnp.maximum(each, value))
            value = jnp.minimum(each, value)
        return tuple(held)

    none = jnp.full(known.shape[:-1], -jnp.inf)
    return jnp.stack(fold(insert, (none,) * top, known), axis=-1)


def ascending(values: Array) -> jax.Array:
    """[..., N] sorted; without NaN.

    By Batcher's bitonic network, whose steps are minima and maxima of whole arrays: on a CPU a
    third of the time of `jnp.sort`, which calls a comparison for each two numbers.
    """
    count = values.shape[-1]
    width = 1 << max(count - 1, 0).bit_length()
    filled = jnp.full((*values.shape[:-1], width - count), jnp.inf)
    found = jnp.concatenate([values, filled], axis=-1)
    size = 1
    while size < width:
        distance = size
        while distance:
            pairs = found.reshape(*values.shape[:-1], width // 2 // distance, 2, distance)
            one, two = pairs[..., 0, :], pairs[..., 1, :]
            turn = slice(None, None, -1 if distance == size else 1)  # the first step meets in turn
            low, high = jnp.minimum(one, two[..., turn]), jnp.maximum(one, two[..., turn])
            found = jnp.stack([low, high[..., turn]], axis=-2).reshape(found.shape)
            distance //= 2
        size *= 2
    return found[..., :count]


def flat(values: Array, axes: int = 2) -> jax.Array:
    """The last axes as one."""
    return jnp.reshape(values, (*values.shape[:-axes], math.prod(values.shape[-axes:])))

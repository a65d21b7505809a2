"""Feasibility and cost of many solutions at once, in JAX: what `Problem.costs` of a problem is of.

A batch of solutions is the array of their codes (`Rules.encode`), [B, L] int32 with -1 after the
end of each. What belongs to a position, such as the way to it, is gathered by NumPy from the
instance's own arrays, so that no matrix is copied and no shape depends on it.
"""

from collections.abc import Callable, Sequence

import chex
import jax
import jax.numpy as jnp
import numpy as np

from spo_jax.envs.instance import Instance
from spo_jax.numerics.float64 import bucket, jitted, padded

LEAST = 64  # rows and positions of the smallest bucket
TALLER = 4  # rows are of fewer buckets than positions: their number changes more often
MOST = 1 << 20  # numbers of an array in one call


@jitted()
def exact_sum(values: jax.Array) -> jax.Array:
    """[..., N] float64 -> [...] float64, correctly rounded: the bits of `math.fsum`.

    Each number is split into two parts that are multiples of two powers of two, with room for N of
    them, so that the sums of parts are exact in any order (AccSum of Rump, Ogita and Oishi 2008).
    NaN where numbers have bits more than about 84 below the highest of the largest, or are not
    finite.
    """
    chex.assert_type(values, jnp.float64)
    width = (values.shape[-1] + 2).bit_length()
    largest = jnp.abs(values).max(axis=-1, initial=0.0, keepdims=True)
    exponent = (jax.lax.bitcast_convert_type(largest, jnp.int64) >> 52) - 1022  # largest < 2**it
    high, rest = _split(values, exponent + width)
    low, rest = _split(rest, exponent + 2 * width - 52)
    total = high.sum(axis=-1) + low.sum(axis=-1)  # the one rounding
    return jnp.where((rest == 0).all(axis=-1), total, jnp.nan)


def _split(values: jax.Array, exponent: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The multiples of 2**(exponent - 53) that are nearest to values, and what is left of each."""
    biased = jnp.clip(exponent + 1023, 0, 2047)
    step = jax.lax.bitcast_convert_type(biased << 52, jnp.float64)  # 2.0**exponent
    multiple = (step + values) - step
    return multiple, values - multiple


@jitted()
def visits_once(codes: jax.Array, first: int, count: jax.Array) -> jax.Array:
    """[...] bool: whether each number from `first` to `first + count - 1` is there exactly once.

    codes: [..., L] int, where numbers below 1 are none. first: a number; count: [...] int.
    """
    there = codes > 0
    lawful = (codes >= first) & (codes < first + count[..., None])
    place = jnp.where(lawful, codes - first, codes.shape[-1])
    flat = place.reshape(-1, codes.shape[-1])
    rows = jnp.arange(len(flat))[:, None]
    seen = jnp.zeros((len(flat), codes.shape[-1] + 1), bool).at[rows, flat].set(True)
    distinct = seen[:, :-1].sum(axis=-1).reshape(count.shape)
    return (there == lawful).all(axis=-1) & (there.sum(axis=-1) == count) & (distinct == count)


@jitted()
def loads(demands: jax.Array, ends: jax.Array) -> jax.Array:
    """[..., L]: the load of each route so far, 0 at its end.

    demands: [..., L], of each position. ends: [..., L] bool, the ends of routes.
    """

    def step(load: jax.Array, at: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        demand, end = at
        load = jnp.where(end, 0, load + demand)
        return load, load

    chex.assert_equal_shape([demands, ends])
    over = jnp.moveaxis(demands, -1, 0), jnp.moveaxis(ends, -1, 0)
    found = jax.lax.scan(step, jnp.zeros(demands.shape[:-1], demands.dtype), over)[1]
    return jnp.moveaxis(found, 0, -1)


@jitted()
def late(
    legs: jax.Array, ready: jax.Array, due: jax.Array, service: jax.Array, ends: jax.Array,
    opens: jax.Array,
) -> jax.Array:  # fmt: skip
    """[..., L] bool: whether a vehicle is late at a position, a customer or the end of a route.

    legs: [..., L] float64, the way to it. ready, due, service: of it; at an end `due` is the
    depot's. opens: [...], when the depot opens and each route begins. A vehicle waits until
    `ready`; times are added in the order of the walk.
    """

    def step(clock: jax.Array, at: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        leg, ready, due, service, end = at
        clock = clock + leg
        waits = (clock < ready) & ~end
        late = ~waits & (clock > due)
        clock = jnp.where(end, opens, jnp.where(waits, ready, clock) + service)
        return clock, late

    chex.assert_equal_shape([legs, ready, due, service, ends])
    over = tuple(jnp.moveaxis(each, -1, 0) for each in (legs, ready, due, service, ends))
    return jnp.moveaxis(jax.lax.scan(step, opens, over)[1], 0, -1)


# --- batches --------------------------------------------------------------------------------------


def in_buckets(
    price: Callable[..., jax.Array], codes: np.ndarray, *others: np.ndarray
) -> np.ndarray:
    """[B] float64: `price` of codes [B, L] and other arrays, [B, L] or [B], padded to buckets.

    Codes are padded with -1, the others with 0. A very large batch takes several calls.
    """
    count, length = codes.shape
    wide = bucket(length, LEAST)
    most = max(LEAST, MOST // wide)
    found = np.empty(count)
    for first in range(0, count, most):
        rows = slice(first, min(first + most, count))
        shape = bucket(rows.stop - first, LEAST, TALLER), wide
        given = [padded(codes[rows], shape, -1)]
        given += [padded(each[rows], shape[: each.ndim], 0) for each in others]
        found[rows] = np.asarray(price(*given))[: rows.stop - first]
    return found


def gathered(
    instances: Sequence[Instance], whose: np.ndarray,
    take: Callable[[Instance, np.ndarray], np.ndarray], shape: tuple[int, ...], dtype: type,
) -> np.ndarray:  # fmt: skip
    """[*shape]: of each instance `take(instance, rows)` in its rows [K], those whose number it is.

    whose: [B] int, the number of each row's instance.
    """
    found: np.ndarray = np.zeros(shape, dtype)
    for k, instance in enumerate(instances):
        rows = np.flatnonzero(whose == k)
        if rows.size:
            found[rows] = take(instance, rows)
    return found

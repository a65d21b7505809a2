"""The costs of many tours at once, as `spo_jax.envs.pricing` has it. It imports JAX."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from spo_jax.envs.instance import Instance
from spo_jax.envs.pricing import exact_sum, gathered, in_buckets, visits_once
from spo_jax.numerics.float64 import jitted


@jitted()
def tour_costs(codes: jax.Array, size: jax.Array, legs: jax.Array) -> jax.Array:
    """[...] float64, NaN for what is no tour.

    codes: [..., L] int32, nodes from 1 to `size` and then -1. size: [...] int. legs: [..., L]
    float64, the way from each node to the next, 0 after the end.
    """
    closed = (codes >= 0).sum(axis=-1) == size  # a 0 within the code is no node
    return jnp.where(visits_once(codes, 1, size) & closed, exact_sum(legs), jnp.nan)


def costs(instances: Sequence[Instance], codes: np.ndarray, whose: np.ndarray) -> np.ndarray:
    """As `Problem.costs`."""

    def legs(instance: Instance, rows: np.ndarray) -> np.ndarray:
        found = np.zeros((len(rows), codes.shape[1]))
        tours = np.clip(codes[rows, : instance.size] - 1, 0, instance.size - 1)
        found[:, : tours.shape[1]] = instance.dist[tours, np.roll(tours, -1, axis=1)]
        return found

    size = np.array([each.size for each in instances])[whose]
    return in_buckets(
        tour_costs, codes, size, gathered(instances, whose, legs, codes.shape, np.float64)
    )

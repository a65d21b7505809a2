"""The costs of many solutions at once, as `spo_jax.envs.pricing` has it. It imports JAX."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from spo_jax.envs.instance import Instance
from spo_jax.envs.pricing import exact_sum, gathered, in_buckets, late, loads, visits_once
from spo_jax.envs.problems.cvrp.limits import allowed, limits_of
from spo_jax.numerics.float64 import jitted


@jitted()
def routes_costs(
    codes: jax.Array, size: jax.Array, capacity: jax.Array, legs: jax.Array, demands: jax.Array
) -> jax.Array:
    """[...] float64, NaN for what are no routes within the capacity.

    codes: [..., L] int32, customers from 2 to `size + 1`, 0 at the end of each route, then -1.
    size, capacity: [...] int. legs: [..., L] float64, the way to each position from the one before,
    to the first from the depot, 0 after the end. demands: [..., L] int64, 0 at the depot.
    """
    within = (loads(demands, codes == 0) <= capacity[..., None]).all(axis=-1)
    lawful = visits_once(codes, 2, size) & ended(codes) & within
    return jnp.where(lawful, exact_sum(legs), jnp.nan)


@jitted()
def limited_costs(
    codes: jax.Array, size: jax.Array, capacity: jax.Array, legs: jax.Array, demands: jax.Array,
    service: jax.Array, distance: jax.Array, duration: jax.Array, vehicles: jax.Array,
) -> jax.Array:  # fmt: skip
    """[...] float64, NaN for what are no routes within the capacity and the limits.

    As `routes_costs`, and service: [..., L] float64, of each position. distance, duration,
    vehicles: [...], the limits, infinite or very large where there is none.
    """
    ends, zero = codes == 0, jnp.zeros_like(legs)

    def over(limit: jax.Array, service: jax.Array) -> jax.Array:
        due = jnp.where(ends, limit[..., None], jnp.inf)
        return (late(legs, zero - jnp.inf, due, service, ends, zero[..., 0]) & ends).any(axis=-1)

    routes = (ends & (jnp.roll(codes, 1, axis=-1) > 0)).sum(axis=-1)
    broken = over(distance, zero) | over(duration, service) | (routes > vehicles)
    return jnp.where(broken, jnp.nan, routes_costs(codes, size, capacity, legs, demands))


def ended(codes: jax.Array) -> jax.Array:
    """[...] bool: whether the last route of codes [..., L] has an end."""
    last = (codes >= 0).sum(axis=-1, keepdims=True) - 1
    return jnp.take_along_axis(codes, last, axis=-1)[..., 0] == 0


def costs(instances: Sequence[Instance], codes: np.ndarray, whose: np.ndarray) -> np.ndarray:
    """As `Problem.costs`."""
    given = columns(instances, codes, whose)
    limits = [limits_of(each) for each in instances]
    if not any(limits):
        return in_buckets(routes_costs, codes, *given)

    def service(instance: Instance, rows: np.ndarray) -> np.ndarray:
        own = instance.extra.get("service", np.zeros(instance.size + 1))
        return np.asarray(own)[nodes_of(instance, codes[rows])]

    bounds = np.array(
        [
            (allowed(each.max_distance), allowed(each.max_duration), each.max_vehicles)
            if each
            else (np.inf, np.inf, np.inf)
            for each in limits
        ]
    )[whose].T
    times = gathered(instances, whose, service, codes.shape, np.float64)
    return in_buckets(limited_costs, codes, *given, times, *bounds)


def columns(
    instances: Sequence[Instance], codes: np.ndarray, whose: np.ndarray
) -> tuple[np.ndarray, ...]:
    """size, capacity, legs and demands of `routes_costs`."""

    def legs(instance: Instance, rows: np.ndarray) -> np.ndarray:
        nodes = nodes_of(instance, codes[rows])
        before = np.concatenate([np.zeros((len(rows), 1), nodes.dtype), nodes[:, :-1]], axis=1)
        return np.where(codes[rows] >= 0, instance.dist[before, nodes], 0.0)

    def demands(instance: Instance, rows: np.ndarray) -> np.ndarray:
        assert instance.demands is not None  # its rules have seen to it
        return np.where(codes[rows] > 0, instance.demands[nodes_of(instance, codes[rows])], 0)

    size, capacity = (
        np.array([getattr(each, name) for each in instances])[whose]
        for name in ("size", "capacity")
    )
    return (
        size,
        capacity,
        gathered(instances, whose, legs, codes.shape, np.float64),
        gathered(instances, whose, demands, codes.shape, np.int64),
    )


def nodes_of(instance: Instance, codes: np.ndarray) -> np.ndarray:
    """Nodes of codes, of the same shape; the depot for what is none."""
    return np.clip(codes - 1, 0, instance.size)

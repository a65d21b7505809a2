"""The costs of many solutions at once, as `spo_jax.envs.pricing` has it. It imports JAX."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from spo_jax.envs.instance import Instance
from spo_jax.envs.pricing import gathered, in_buckets, late
from spo_jax.envs.problems.cvrp import pricing as cvrp
from spo_jax.envs.problems.vrptw.rules import TIMES, latest
from spo_jax.numerics.float64 import jitted


@jitted()
def timed_costs(
    codes: jax.Array, size: jax.Array, capacity: jax.Array, legs: jax.Array, demands: jax.Array,
    ready: jax.Array, due: jax.Array, service: jax.Array, opens: jax.Array,
) -> jax.Array:  # fmt: skip
    """[...] float64, NaN for what are no routes within the capacity and in time.

    As `routes_costs` of the CVRP, and ready, due, service: [..., L] float64, of each position, the
    depot's at the end of a route. opens: [...] float64, when the depot does.
    """
    ends = codes == 0
    delayed = (late(legs, ready, due, service, ends, opens) & (codes >= 0)).any(axis=-1)
    total = cvrp.routes_costs(codes, size, capacity, legs, demands)
    return jnp.where(delayed, jnp.nan, total)


def costs(instances: Sequence[Instance], codes: np.ndarray, whose: np.ndarray) -> np.ndarray:
    """As `Problem.costs`."""

    def of(name: str) -> np.ndarray:
        def take(instance: Instance, rows: np.ndarray) -> np.ndarray:
            values = latest(instance) if name == "due" else instance.extra[name]
            return np.asarray(values)[cvrp.nodes_of(instance, codes[rows])]

        return gathered(instances, whose, take, codes.shape, np.float64)

    opens = np.array([float(each.extra["ready"][0]) for each in instances])[whose]
    times = map(of, TIMES)
    return in_buckets(timed_costs, codes, *cvrp.columns(instances, codes, whose), *times, opens)

"""Formulas that compare with parents, and by instance."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from spo_jax.envs.metrics import follower_credit, leader_credit
from spo_jax.numerics.in_order import sum_in_order
from spo_jax.search.credit.arrays import Array, Earned, PayoffArrays, of_arrays
from spo_jax.search.credit.plain import mean_of_round


@of_arrays
def relative_to_parent(rounds: PayoffArrays, top: int) -> Earned:
    """The paper's credit minus the score of the best parent in the prompt.

    Without a parent nothing is taken off. All answers to one prompt have the same parents, so
    advantages that are centred by group do not see the difference: see `improvement`. Selection is
    the paper's.
    """
    return _compared(rounds, top, _above)


@of_arrays
def improvement(rounds: PayoffArrays, top: int) -> Earned:
    """`relative_to_parent`, but no less than 0: a child is paid for beating its parents alone.

    Those that do not are alike, however bad. Without a parent it is the paper's credit.
    """
    return _compared(rounds, top, _gain)


@of_arrays
def lower_bound(rounds: PayoffArrays, top: int) -> Earned:
    """The paper's credit of J less its standard error over the training instances.

    J_ij - sqrt(sum_k e_ijk^2 / (I - 1) / I), with e_ijk the mean score on instance k less J_ij and
    less what all valid pairs of the round have on k, on average, above their own J: what is hard
    for all is no risk. With one instance it is J. A lower confidence bound of one deviation
    (pessimism, arXiv 2012.15085). All selection is by it.
    """
    utility = follower_credit(rounds.utility)
    *_, count, seeds = rounds.scores.shape
    if count > 1:
        mean = sum_in_order(rounds.scores) / seeds
        own = jnp.moveaxis(mean - utility[..., None], -1, 0)  # [I, ..., D, R]
        own = own - mean_of_round(own)[..., None, None]
        square = sum_in_order(jnp.moveaxis(own**2, 0, -1))
        utility = utility - jnp.sqrt(square / (count - 1) / count)
    return leader_credit(utility, top), follower_credit(utility), None


def _compared(rounds: PayoffArrays, top: int, by: Callable[[Array, Array], jax.Array]) -> Earned:
    """The paper's credits, compared with the baselines; selection is by the credits themselves."""
    leader, follower = leader_credit(rounds.utility, top), follower_credit(rounds.utility)
    credit = by(leader, rounds.leader_baseline), by(follower, rounds.follower_baseline)
    return (*credit, (leader, follower))


def _above(values: Array, baseline: Array) -> jax.Array:
    return jnp.asarray(values) - jnp.where(jnp.isnan(baseline), 0.0, baseline)


def _gain(values: Array, baseline: Array) -> jax.Array:
    gain = jnp.maximum(values - baseline, 0.0)  # NaN stays NaN
    return jnp.where(jnp.isnan(baseline), values, gain)

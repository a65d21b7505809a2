"""Formulas of J as it is: means, maxima, ranks and distances within a round."""

import math

import jax
import jax.numpy as jnp

from spo_jax.envs.metrics import follower_credit, leader_credit
from spo_jax.numerics.float64 import jitted
from spo_jax.numerics.in_order import ascending, flat, fold, highest_of, sum_in_order
from spo_jax.search.credit.arrays import Array, Earned, PayoffArrays, of_arrays
from spo_jax.search.credit.types import paying_failures, sampling


@of_arrays
def stackelberg(rounds: PayoffArrays, top: int) -> Earned:
    """The paper's credit: followers by how well they answer, leaders by their best answers.

    follower = J of the pair (eq:follower-credit); leader = mean of the `top` highest J of its row,
    of those there are (eq:leader-credit).
    """
    return leader_credit(rounds.utility, top), follower_credit(rounds.utility), None


@of_arrays
def shared(rounds: PayoffArrays, top: int) -> Earned:
    """The ablation without Stackelberg credit: both programs of a pair receive the pair's J.

    A destroy that is in several pairs receives the mean of its pairs' scores, of those there are;
    `top` plays no part.
    """
    return _row_means(rounds.utility), follower_credit(rounds.utility), None


@paying_failures
@of_arrays
def shared_failures_zero(rounds: PayoffArrays, top: int) -> Earned:
    """`shared`, where a pair that failed has the score 0, for both of its programs.

    0 is no improvement on the start, so a program that fails in one of six pairs loses a sixth. A
    reading of the paper's ablation; `shared` takes the mean of valid pairs and leaves failures out.
    """
    utility = jnp.where(rounds.failed, 0.0, rounds.utility)
    return _row_means(utility), follower_credit(utility), None


@of_arrays
def shared_first_pair(rounds: PayoffArrays, top: int) -> Earned:
    """`shared`, where a destroy is judged by its first response that has a J, in their order.

    A reading of the paper's ablation in which a destroy has one pair.
    """
    follower = follower_credit(rounds.utility)
    if not follower.shape[-1]:
        return _row_means(follower), follower, None
    finite = jnp.isfinite(follower)
    first = jnp.argmax(finite, axis=-1)[..., None]  # NaN without any
    return jnp.take_along_axis(follower, first, axis=-1)[..., 0], follower, None


@sampling("pairs")
@of_arrays
def shared_pair_samples(rounds: PayoffArrays, top: int) -> Earned:
    """`shared`, where each pair is a sample of its destroy, with the pair's J as its credit.

    A reading of the paper's ablation in which a group has as many samples as valid pairs: a destroy
    with more of them weighs more, and a standard deviation is that of pairs. Selection is that of
    `shared`.
    """
    return _row_means(rounds.utility), follower_credit(rounds.utility), None


@sampling("one-group")
@of_arrays
def shared_one_advantage(rounds: PayoffArrays, top: int) -> Earned:
    """`shared`, where both programs of a pair have the same advantage as well.

    It is relative to the mean of all pairs of the destroy's context: as in `shared_pair_samples`
    for destroys, and a repair is compared with the answers to the context's other destroys too. So
    a repair is paid for the destroy that it was given. Selection is that of `shared`.
    """
    return _row_means(rounds.utility), follower_credit(rounds.utility), None


@of_arrays
def no_leader_credit(rounds: PayoffArrays, top: int) -> Earned:
    """All destroys with a valid pair earn 0: a floor, under which no credit of leaders should fall.

    Followers earn J. Which destroys survive does not depend on what they are worth.
    """
    leader = jnp.where(jnp.isfinite(rounds.utility).any(axis=-1), 0.0, math.nan)
    return leader, follower_credit(rounds.utility), None


@of_arrays
def highest(rounds: PayoffArrays, top: int) -> Earned:
    """A program earns its best pair of the round, whichever its role; `top` plays no part.

    A repair whose source was written for several destroys has several pairs.
    """
    values, group, groups = by_source(rounds.utility, rounds.source, rounds.sources)
    best = jnp.full(groups + 1, -math.inf).at[group].max(values)
    follower = jnp.where(group < groups, best[group], math.nan)
    return leader_credit(rounds.utility, 1), follower.reshape(rounds.utility.shape), None


@of_arrays
def average(rounds: PayoffArrays, top: int) -> Earned:
    """A program earns the mean of its pairs of the round, whichever its role.

    `shared` but for repairs that were written for several destroys; `top` plays no part.
    """
    values, group, groups = by_source(rounds.utility, rounds.source, rounds.sources)
    # Within a source values ascend, so that the order of the pairs cannot show.
    wide = math.prod(rounds.utility.shape[-2:])
    key = jnp.where(group < groups, values, math.inf).reshape(-1, max(wide, 1))
    key, whose = jax.lax.sort((key, group.reshape(key.shape)), num_keys=1)
    mean = means_by(key.ravel(), whose.ravel(), groups)
    follower = jnp.where(group < groups, mean[group], math.nan)
    return _row_means(rounds.utility), follower.reshape(rounds.utility.shape), None


@of_arrays
def rank(rounds: PayoffArrays, top: int) -> Earned:
    """Followers earn their rank among the answers to their destroy, leaders that of their best.

    A rank is the share of the others that are worse, ties counted as half: 1 for the best, 0 for
    the worst, 1/2 for one alone. A leader earns the mean rank of its `top` best pairs among all
    pairs of the round. Any increasing transform of J leaves these credits as they are. They say
    nothing about other rounds, so destroys are selected by the paper's credit; which repairs enter
    cross-play goes by rank: the best answers to all destroys come before any second best.
    """
    utility = follower_credit(rounds.utility)
    within = ranks(utility)
    best = highest_of(utility, top)
    best = jnp.where(jnp.isfinite(best), best, math.nan)
    overall = ranks(flat(best), utility).reshape(best.shape)
    return leader_credit(overall, top), within, (leader_credit(utility, top), within)


@of_arrays
def regret(rounds: PayoffArrays, top: int) -> Earned:
    """Minus what a program lost by not being the best reply that was sampled; at most 0.

    follower = J minus the best J of its row: what this answer costs the pair, the leader given.
    leader = its row's best J minus the best of all rows: what committing to this destroy costs,
    followers that reply as well as any was seen to reply given (eq:spo-objective with sampled
    responses). So a leader has no share in the regret of its followers, and `top` plays no part.
    Destroys are selected by their row's best J, which does not depend on the round's other rows.
    """
    utility = rounds.utility
    value = leader_credit(utility, 1)
    follower = follower_credit(utility) - value[..., None]
    known = jnp.isfinite(value)
    best = jnp.max(value, axis=-1, keepdims=True, initial=-math.inf, where=known)
    leader = jnp.where(known, value - best, math.nan)
    return leader, follower, (value, follower)


@of_arrays
def gap(rounds: PayoffArrays, top: int) -> Earned:
    """Minus log(1 + r), where r is a pair's distance to the round's best in typical distances.

    r = (best J - J) / (best J - median J), medians over the round's pairs: 0 for the best pair, 1
    for the typical one. Up to r's unit that is the pair's gap to the best pair of the round, so a
    step counts by its share of what is left, near the best where J saturates, and a very bad pair
    cannot outweigh the rest of its group. A leader earns the mean of its `top` highest. No unit is
    left: J can be scaled and shifted. Selection is the paper's.
    """
    utility = follower_credit(rounds.utility)
    finite = jnp.isfinite(utility)
    best = jnp.max(utility, axis=(-2, -1), keepdims=True, initial=-math.inf, where=finite)
    behind = jnp.where(finite, best - utility, math.nan)
    # Where half of the pairs are the best one the mean stands in: it is zero only if all are.
    unit = _median(behind)
    unit = jnp.where(unit > 0, unit, mean_of_round(behind))[..., None, None]
    scaled = behind / jnp.where(finite & (unit > 0), unit, 1.0)  # by pair: see `reference_gap`
    follower = jnp.where(unit > 0, -jnp.log1p(scaled), jnp.where(finite, 0.0, math.nan))
    return leader_credit(follower, top), follower, (leader_credit(utility, top), utility)


def _row_means(utility: Array) -> jax.Array:
    return leader_credit(utility, max(utility.shape[-1], 1))


def by_source(utility: Array, source: Array, sources: int) -> tuple[jax.Array, jax.Array, int]:
    """Utilities of [..., D, R] pairs, their groups, both [N], and the number of groups.

    A group is the source of a round; pairs without a utility or a source are in one more group.
    """
    wide = math.prod(utility.shape[-2:])
    rounds = math.prod(utility.shape[:-2])
    values = jnp.asarray(utility).reshape(rounds, wide)
    whose = jnp.asarray(source).reshape(values.shape)
    known = jnp.isfinite(values) & (whose >= 0)
    group = jnp.where(known, jnp.arange(rounds)[:, None] * sources + whose, rounds * sources)
    return jnp.where(known, values, 0.0).ravel(), group.ravel(), rounds * sources


def means_by(values: Array, group: Array, groups: int) -> jax.Array:
    """[groups + 1]: the mean of each group's values, in their order; 0 for none."""
    total = jnp.zeros(groups + 1).at[group].add(values)
    return total / jnp.maximum(jnp.zeros(groups + 1).at[group].add(1.0), 1.0)


@jitted()
def ranks(values: Array, among: Array | None = None) -> jax.Array:
    """The share of the others below, in [0, 1], and half of those equal; 1/2 for one alone.

    values: [..., N], NaN stays. among: [..., K, M], what they are compared with, of which each is
    one; by default the values themselves.
    """
    table = jnp.asarray(values)[..., None, :] if among is None else among
    own = values[..., None, :]

    def count(so_far: tuple[jax.Array, jax.Array], column: jax.Array) -> tuple[jax.Array, ...]:
        other = column[..., None]
        return so_far[0] + (other < own), so_far[1] + (other == own)

    none = jnp.zeros((*table.shape[:-1], values.shape[-1]), jnp.int32)
    below, equal = fold(count, (none, none), table)
    others = jnp.sum(jnp.isfinite(table), axis=(-2, -1))[..., None] - 1
    sums = jnp.sum(2 * below + equal, axis=-2) - 1  # itself is equal
    known = jnp.isfinite(values)
    most = jnp.where(known, jnp.maximum(2 * others, 1), 1)  # by value: see `reference_gap`
    return jnp.where(known, jnp.where(others < 1, 0.5, sums / most), math.nan)


def _median(values: Array) -> jax.Array:
    """[..., D, R] -> [...]: of what is not NaN; 0 where nothing is."""
    each = flat(values)
    if not each.shape[-1]:
        return jnp.zeros(each.shape[:-1])
    finite = jnp.isfinite(each)
    ordered = ascending(jnp.where(finite, each, math.inf))
    count = jnp.sum(finite, axis=-1, keepdims=True)
    low = jnp.take_along_axis(ordered, jnp.maximum(count - 1, 0) // 2, axis=-1)
    high = jnp.take_along_axis(ordered, jnp.minimum(count // 2, each.shape[-1] - 1), axis=-1)
    return jnp.where(count > 0, (low + high) / 2, 0.0)[..., 0]


def mean_of_round(values: Array) -> jax.Array:
    """[..., D, R] -> [...]: of what is finite; 0 where nothing is."""
    finite = jnp.isfinite(values)
    total = sum_in_order(sum_in_order(jnp.where(finite, values, 0.0)))
    return total / jnp.maximum(jnp.sum(finite, axis=(-2, -1)), 1)

"""Formulas for the best of several responses: sampled ones of k, and softly by a temperature."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from spo_jax.envs.metrics import follower_credit
from spo_jax.numerics.in_order import ascending, sum_in_order
from spo_jax.search.credit.arrays import Array, Earned, PayoffArrays, of_arrays

BOUND = math.log(2)  # on the divergence of `entropic`, as TTT-Discover sets it
State = tuple[Any, ...]
STEPS = 60  # of its root search; each at least halves the logarithm of the bracket


@of_arrays
def max_at_k(rounds: PayoffArrays, top: int) -> Earned:
    """Leaders earn what the best of k responses is worth in expectation, k = R // top.

    The mean of the best over all sets of k of a row's n finite responses: with u_(1) <= u_(2) ...,
    sum_i C(i - 1, k - 1) / C(n, k) u_(i), without bias for any n >= k (PKPO, arXiv 2505.15201;
    all n where there are fewer). So the credit's expectation does not depend on how many responses
    were drawn, as that of the best `top` of them does. Followers earn J.
    """
    leader = _best_of(rounds.utility, max(1, rounds.utility.shape[-1] // top))
    return leader, follower_credit(rounds.utility), None


@of_arrays
def pkpo(rounds: PayoffArrays, top: int) -> Earned:
    """As `max_at_k`, but followers earn what the best of k would lose without them.

    follower = the mean over all sets S of k = R // top of the row's n valid responses that hold j,
    of max S - max (S without j); J itself where k is 1 (PKPO, arXiv 2505.15201, eq. 33, divided by
    k / n). An ascent of E[max of k] without bias before it is centred; centring by the group's mean
    biases it, since J of one is in the credits of the others. Never below 0 if J is not.
    """
    return _sampled(rounds.utility, top, _leave_one_out)


@of_arrays
def maxpo(rounds: PayoffArrays, top: int) -> Earned:
    """As `pkpo` with credits that have a mean of 0 in each row, so that centring takes nothing off.

    follower = the mean of max S over the sets of k that hold j, less that over the sets of k that
    do not (the leave-two-out baseline of MaxPO, arXiv 2606.06080, as derived here: the mean over
    the others l of max(j, T) - max(l, T), T all sets of k - 1 without j and l). So it ascends
    E[max of k] without bias in the update that centres. k is at most n - 1; one response alone
    earns 0.
    """
    return _sampled(rounds.utility, top, _leave_two_out)


@of_arrays
def entropic(rounds: PayoffArrays, top: int) -> Earned:
    """Weights of a soft maximum, as sharp as a bound on their divergence allows.

    q_j is proportional to exp(b u_j) over row i's n valid responses, with b such that the
    divergence KL(q || uniform) is log 2 (TTT-Discover, arXiv 2601.16175); where all weight on the
    best is within the bound, as for n of 2, b is infinite. follower = n q_j, the gradient's weight,
    with a mean of 1. leader = log(mean of exp(b u)) / b, between the mean of its row and the best.
    `top` plays no part. Destroys are selected by their credit, repairs by J: a weight says nothing
    about other rows.
    """
    utility = follower_credit(rounds.utility)
    found = jnp.isfinite(utility)
    count = jnp.sum(found, axis=-1, keepdims=True)
    best = jnp.max(utility, axis=-1, keepdims=True, initial=-math.inf, where=found)
    best = jnp.where(count > 0, best, 0.0)
    behind = jnp.where(found, best - utility, math.inf)  # 0 for the best
    width = jnp.max(behind, axis=-1, keepdims=True, initial=0.0, where=found)
    scaled = behind / jnp.where(found & (width > 0), width, 1.0)  # by pair: see `reference_gap`
    ties = jnp.sum(scaled == 0, axis=-1, keepdims=True)
    known = jnp.maximum(count, 1)
    # The divergence of all weight on the best is log(n / ties): where even that is within the bound
    # the temperature is 0.
    sharp = jnp.log(known / jnp.maximum(ties, 1)) <= BOUND + 1e-12
    ordered = ascending(scaled)  # so that the order of the responses cannot show in a sum
    inverse = _inverse_temperature(ordered, known[..., 0], ~sharp[..., 0])[..., None]
    power = jnp.where(sharp, scaled == 0, jnp.exp(-inverse * scaled))
    total = jnp.where(sharp, ties, sum_in_order(jnp.exp(-inverse * ordered))[..., None])
    total = jnp.maximum(total, 1.0)
    follower = jnp.where(found, known * power / jnp.where(found, total, 1.0), math.nan)
    soft = jnp.log(total / known) * width / jnp.where(sharp, 1.0, inverse)
    leader = jnp.where(count > 0, best + jnp.where(sharp, 0.0, soft), math.nan)[..., 0]
    return leader, follower, (leader, utility)


def _inverse_temperature(scaled: Array, count: Array, wanted: Array) -> jax.Array:
    """[...]: t with KL(q || uniform) = BOUND, q proportional to exp(-t scaled); 1 elsewhere.

    scaled: [..., R], infinity for none. count, wanted: [...].

    The divergence grows with t, by t Var_q(scaled): Newton's steps in log t, and where one leaves
    the bracket its middle.
    """
    columns = jnp.moveaxis(jnp.asarray(scaled), -1, 0)
    none = jnp.zeros(count.shape)

    def moments(t: jax.Array) -> State:
        def add(sums: State, column: jax.Array) -> tuple[State, None]:
            power = jnp.exp(-t * column)
            first = power * jnp.where(jnp.isfinite(column), column, 0.0)
            total, mean, square = sums
            return (total + power, mean + first, square + first * column), None

        # Not unrolled: so many exponentials are long to compile.
        start: Any = (none, none, none)
        return jax.lax.scan(add, start, columns)[0]

    def wrong(state: State) -> Any:
        step, *_, done = state
        return (step < STEPS) & ~jnp.all(done)

    def improved(state: State) -> State:
        number, low, high, place, done = state
        t = jnp.exp(place)
        total, mean, square = moments(t)
        total = jnp.maximum(total, 1.0)
        mean, square = mean / total, square / total
        away = jnp.log(count / total) - t * mean - BOUND
        low, high = jnp.where(away < 0, place, low), jnp.where(away < 0, high, place)
        slope = t * t * (square - mean * mean)
        steep = slope > 1e-100
        step = place - away / jnp.where(steep, slope, 1.0)
        inside = steep & (step >= low) & (step <= high)
        moved = jnp.where(inside, step, (low + high) / 2)
        # Each stops by itself, so that its bits do not depend on the others.
        settled = jnp.abs(moved - place) <= 1e-14 * jnp.abs(place)
        return number + 1, low, high, jnp.where(done, place, moved), done | settled

    start = jnp.asarray(0), none - 12.0, none + 40.0, none + 1.0, ~wanted
    *_, place, _ = jax.lax.while_loop(wrong, improved, start)
    return jnp.where(wanted, jnp.exp(place), 1.0)


# --- sets of k of a row's n responses -------------------------------------------------------------


def _sampled(utility: Array, top: int, matrix: Callable[[int, int], np.ndarray]) -> Earned:
    """Followers by a matrix of their row in ascending order; all else as `max_at_k`."""
    slots = utility.shape[-1]
    k = max(1, slots // top)
    leader, own = _best_of(utility, k), follower_credit(utility)
    weights = np.zeros((slots + 1, slots, slots))
    for n in range(1, slots + 1):
        weights[n, slots - n :, slots - n :] = matrix(n, k)
    earned = _weighted(own, weights)
    known = jnp.isfinite(own)
    filled = jnp.where(known, own, -math.inf)
    other, each = filled[..., None, :], filled[..., :, None]
    before = np.tri(slots, k=-1, dtype=bool)  # of equal ones the first comes first
    place = jnp.sum((other < each) | ((other == each) & before), axis=-1)
    follower = jnp.where(known, jnp.take_along_axis(earned, place, axis=-1), math.nan)
    return leader, follower, (leader, own)


def _best_of(utility: Array, k: int) -> jax.Array:
    """[..., D]: the mean of the best over all sets of k of a row."""
    slots = utility.shape[-1]
    weights = np.zeros((slots + 1, 1, slots))
    for n in range(1, slots + 1):
        weights[n, 0, slots - n :] = _best(n, min(k, n))
    found = jnp.isfinite(utility).any(axis=-1)
    return jnp.where(found, _weighted(utility, weights)[..., 0], math.nan)


def _weighted(utility: Array, weights: np.ndarray) -> jax.Array:
    """[..., A]: sums of a row's values in ascending order, weighted by how many there are.

    weights: [R + 1, A, R], for 0 to R finite ones, which come last.
    """
    known = jnp.isfinite(utility)
    found = jnp.sum(known, axis=-1)
    values = ascending(jnp.where(known, utility, -math.inf))
    columns = jnp.moveaxis(jnp.where(jnp.isfinite(values), values, 0.0), -1, 0)

    def add(total: jax.Array, at: tuple[Any, Any]) -> tuple[jax.Array, None]:
        value, weight = at
        return total + weight[found] * value[..., None], None

    none = jnp.zeros((*found.shape, weights.shape[1]))
    return jax.lax.scan(add, none, (columns, np.moveaxis(weights, -1, 0)))[0]


def _best(n: int, k: int) -> np.ndarray:
    """[n]: the chance that a set of k of n has the i-th lowest as its best one."""
    return np.array([math.comb(i, k - 1) / math.comb(n, k) for i in range(n)])


@lru_cache
def _with(n: int, k: int) -> np.ndarray:
    """[n, n]: row i, the chance that of a set of k with the i-th lowest the j-th is the best."""
    found, sets = np.zeros((n, n)), math.comb(n - 1, k - 1)
    for i in range(n):
        found[i, i] = math.comb(i, k - 1) / sets
        if k > 1:
            found[i, i + 1 :] = [math.comb(j - 1, k - 2) / sets for j in range(i + 1, n)]
    return found


@lru_cache
def _without(n: int, k: int) -> np.ndarray:
    """[n, n]: row i, the chance that of a set of k without the i-th lowest the j-th is the best.

    None is the best of an empty set.
    """
    found = np.zeros((n, n))
    for i in range(n if k else 0):
        found[i, np.arange(n) != i] = _best(n - 1, k)
    return found


def _leave_one_out(n: int, k: int) -> np.ndarray:
    """What the best of a set of k loses without the i-th (`pkpo`)."""
    k = min(k, n)
    return _with(n, k) - _without(n, k - 1)


def _leave_two_out(n: int, k: int) -> np.ndarray:
    """The best of sets of k with the i-th less that of sets of k without it (`maxpo`).

    Sets are of n - 1 at most, so that there is one without it. One alone has no rival: 0.
    """
    k = min(k, n - 1)
    return _with(n, k) - _without(n, k) if k else np.zeros((n, n))

"""Formulas for the best of several responses: sampled ones of k, and softly by a temperature."""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from spo_jax.envs.metrics import follower_credit
from spo_jax.search.formulas.seen import Array, Earned, Seen

BOUND = math.log(2)  # on the divergence of `entropic`, as TTT-Discover sets it
STEPS = 60  # of its root search; each at least halves the logarithm of the bracket


def max_at_k(seen: Seen, top: int) -> Earned:
    leader = _best_of(seen.utility, max(1, seen.utility.shape[-1] // top))
    return leader, follower_credit(seen.utility), None


def pkpo(seen: Seen, top: int) -> Earned:
    return _sampled(seen.utility, top, _leave_one_out)


def maxpo(seen: Seen, top: int) -> Earned:
    return _sampled(seen.utility, top, _leave_two_out)


def entropic(seen: Seen, top: int) -> Earned:
    utility = seen.utility
    order = np.argsort(np.where(np.isfinite(utility), utility, -math.inf), axis=-1, kind="stable")
    ordered = np.take_along_axis(utility, order, axis=-1)
    finite = np.isfinite(ordered)
    count = finite.sum(axis=-1, keepdims=True)
    best = ordered[..., -1:] if ordered.shape[-1] else np.full(count.shape, math.nan)
    best = np.where(count > 0, best, 0.0)
    behind = np.where(finite, best - np.where(finite, ordered, 0.0), math.inf)  # 0 for the best
    width = np.where(finite, behind, 0.0).max(axis=-1, keepdims=True, initial=0.0)
    scaled = behind / np.where(width > 0, width, 1.0)
    ties = (scaled == 0).sum(axis=-1, keepdims=True)
    known = np.maximum(count, 1)
    # The divergence of all weight on the best is log(n / ties): where even that is within the bound
    # the temperature is 0.
    sharp = np.log(known / np.maximum(ties, 1)) <= BOUND + 1e-12
    inverse = _inverse_temperature(scaled, known, ~sharp)
    power = np.where(sharp, scaled == 0, np.exp(-inverse * scaled))
    total = power.sum(axis=-1, keepdims=True)
    weight = np.where(finite, known * power / np.maximum(total, 1.0), math.nan)
    soft = np.log(np.maximum(total, 1.0) / known) * width / np.where(sharp, 1.0, inverse)
    leader = np.where(count > 0, best + np.where(sharp, 0.0, soft), math.nan)[..., 0]
    follower = np.empty(utility.shape)
    np.put_along_axis(follower, order, weight, axis=-1)
    return leader, follower, (leader, follower_credit(utility))


def _inverse_temperature(scaled: Array, count: Array, wanted: Array) -> Array:
    """[..., 1]: t with KL(q || uniform) = BOUND, q proportional to exp(-t scaled); 1 elsewhere.

    The divergence grows with t, by t Var_q(scaled): Newton's steps in log t, and where one leaves
    the bracket its middle.
    """
    low, high = np.full(count.shape, -12.0), np.full(count.shape, 40.0)
    place, done = np.full(count.shape, 1.0), ~wanted
    seen = np.where(np.isfinite(scaled), scaled, 0.0)
    for _ in range(STEPS):
        if done.all():
            break
        t = np.exp(place)
        power = np.exp(-t * scaled)
        total = np.maximum(power.sum(axis=-1, keepdims=True), 1.0)
        mean = (power * seen).sum(axis=-1, keepdims=True) / total
        square = (power * seen * seen).sum(axis=-1, keepdims=True) / total
        away = np.log(count / total) - t * mean - BOUND
        low, high = np.where(away < 0, place, low), np.where(away < 0, high, place)
        slope = t * t * (square - mean * mean)
        steep = slope > 1e-100
        step = place - away / np.where(steep, slope, 1.0)
        inside = steep & (step >= low) & (step <= high)
        moved = np.where(inside, step, (low + high) / 2)
        # Each stops by itself, so that its bits do not depend on the others.
        settled = np.abs(moved - place) <= 1e-14 * np.abs(place)
        place = np.where(done, place, moved)
        done = done | settled
    return np.where(wanted, np.exp(place), 1.0)


# --- sets of k of a row's n responses -------------------------------------------------------------


def _sampled(utility: Array, top: int, matrix: Callable[[int, int], Array]) -> Earned:
    """Followers by a matrix of their row in ascending order; all else as `max_at_k`."""
    slots = utility.shape[-1]
    k = max(1, slots // top)
    leader, own = _best_of(utility, k), follower_credit(utility)
    order = np.argsort(np.where(np.isfinite(utility), utility, -math.inf), axis=-1, kind="stable")
    ascending = np.take_along_axis(own, order, axis=-1)
    found = np.isfinite(ascending).sum(axis=-1)
    values = np.where(np.isfinite(ascending), ascending, 0.0)
    weights = np.zeros((slots + 1, slots, slots))
    for n in range(1, slots + 1):
        weights[n, slots - n :, slots - n :] = matrix(n, k)
    earned = np.zeros(utility.shape)
    for i in range(slots):
        earned = earned + weights[:, :, i][found] * values[..., i, None]
    earned = np.where(np.isfinite(ascending), earned, math.nan)
    follower = np.empty(utility.shape)
    np.put_along_axis(follower, order, earned, axis=-1)
    return leader, follower, (leader, own)


def _best_of(utility: Array, k: int) -> Array:
    """[..., D]: the mean of the best over all sets of k of a row."""
    slots = utility.shape[-1]
    ascending = np.sort(np.where(np.isfinite(utility), utility, -math.inf), axis=-1)
    found = np.isfinite(ascending).sum(axis=-1)
    weights = np.zeros((slots + 1, slots))
    for n in range(1, slots + 1):
        weights[n, slots - n :] = _best(n, min(k, n))
    values = np.where(np.isfinite(ascending), ascending, 0.0)
    total = np.zeros(found.shape)
    for i in range(slots):  # in a fixed order, as in metrics.py
        total = total + weights[found, i] * values[..., i]
    return np.where(found > 0, total, math.nan)


def _best(n: int, k: int) -> Array:
    """[n]: the chance that a set of k of n has the i-th lowest as its best one."""
    return np.array([math.comb(i, k - 1) / math.comb(n, k) for i in range(n)])


@lru_cache
def _with(n: int, k: int) -> Array:
    """[n, n]: row i, the chance that of a set of k with the i-th lowest the j-th is the best."""
    found, sets = np.zeros((n, n)), math.comb(n - 1, k - 1)
    for i in range(n):
        found[i, i] = math.comb(i, k - 1) / sets
        if k > 1:
            found[i, i + 1 :] = [math.comb(j - 1, k - 2) / sets for j in range(i + 1, n)]
    return found


@lru_cache
def _without(n: int, k: int) -> Array:
    """[n, n]: row i, the chance that of a set of k without the i-th lowest the j-th is the best.

    None is the best of an empty set.
    """
    found = np.zeros((n, n))
    for i in range(n if k else 0):
        found[i, np.arange(n) != i] = _best(n - 1, k)
    return found


def _leave_one_out(n: int, k: int) -> Array:
    """What the best of a set of k loses without the i-th (`pkpo`)."""
    k = min(k, n)
    return _with(n, k) - _without(n, k - 1)


def _leave_two_out(n: int, k: int) -> Array:
    """The best of sets of k with the i-th less that of sets of k without it (`maxpo`).

    Sets are of n - 1 at most, so that there is one without it. One alone has no rival: 0.
    """
    k = min(k, n - 1)
    return _with(n, k) - _without(n, k) if k else np.zeros((n, n))

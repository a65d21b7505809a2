"""Formulas of J as it is: means, maxima, ranks and distances within a round."""

import math
from collections.abc import Callable

import numpy as np

from spo_jax.envs.metrics import follower_credit, leader_credit
from spo_jax.search.formulas.seen import Array, Earned, Seen


def stackelberg(seen: Seen, top: int) -> Earned:
    return leader_credit(seen.utility, top), follower_credit(seen.utility), None


def shared(seen: Seen, top: int) -> Earned:
    everything = max(seen.utility.shape[-1], 1)
    return leader_credit(seen.utility, everything), follower_credit(seen.utility), None


def highest(seen: Seen, top: int) -> Earned:
    follower = _by_source(seen.utility, seen.source, _highest)
    return leader_credit(seen.utility, 1), follower, None


def average(seen: Seen, top: int) -> Earned:
    return shared(seen, top)[0], _by_source(seen.utility, seen.source, _means), None


def rank(seen: Seen, top: int) -> Earned:
    utility = seen.utility
    within = ranks(utility)
    overall = ranks(utility.reshape(*utility.shape[:-2], -1)).reshape(utility.shape)
    return leader_credit(overall, top), within, (leader_credit(utility, top), within)


def regret(seen: Seen, top: int) -> Earned:
    utility = seen.utility
    value = leader_credit(utility, 1)
    follower = follower_credit(utility) - value[..., None]
    best = np.where(np.isfinite(value), value, -math.inf).max(axis=-1, initial=-math.inf)
    leader = np.where(np.isfinite(value), value - best[..., None], math.nan)
    return leader, follower, (value, follower)


def gap(seen: Seen, top: int) -> Earned:
    utility = seen.utility
    finite = np.isfinite(utility)
    known = np.where(finite, utility, -math.inf).max(axis=(-2, -1), initial=-math.inf)
    best = np.where(np.isfinite(known), known, 0.0)[..., None, None]
    behind = np.where(finite, best - np.where(finite, utility, best), math.nan)
    # Where half of the pairs are the best one the mean stands in: it is zero only if all are.
    unit = _median(behind)
    unit = np.where(unit > 0, unit, _mean(behind))[..., None, None]
    scaled = behind / np.where(unit > 0, unit, 1.0)
    follower = np.where(unit > 0, -np.log1p(scaled), np.where(finite, 0.0, math.nan))
    return leader_credit(follower, top), follower, (leader_credit(utility, top), utility)


def _by_source(utility: Array, source: Array, of: Callable[[Array, Array, int], Array]) -> Array:
    """[..., D, R]: `of` the utilities of all pairs of a repair's source; NaN where there is none.

    of: (values [N], their groups [N], number of groups) -> by group. Within a group values ascend,
    so that the order of the pairs cannot show.
    """
    if not utility.size:
        return np.full(utility.shape, math.nan)
    values = utility.reshape(-1, math.prod(utility.shape[-2:]))
    whose = source.reshape(values.shape)
    known = np.isfinite(values) & (whose >= 0)
    numbers = int(whose.max()) + 1
    order = np.argsort(np.where(known, values, math.inf), axis=-1)
    rounds, place = np.nonzero(np.take_along_axis(known, order, axis=-1))
    place = order[rounds, place]
    group = rounds * numbers + whose[rounds, place]
    earned = np.full(values.shape, math.nan)
    earned[rounds, place] = of(values[rounds, place], group, len(values) * numbers)[group]
    return earned.reshape(utility.shape)


def _highest(values: Array, group: Array, groups: int) -> Array:
    found = np.full(groups, -math.inf)
    np.maximum.at(found, group, values)
    return found


def _means(values: Array, group: Array, groups: int) -> Array:
    total = np.bincount(group, values, minlength=groups)
    return total / np.maximum(np.bincount(group, minlength=groups), 1)


def ranks(values: Array) -> Array:
    """[..., N] in [0, 1]: the share of the others below, and half of those equal; NaN stays.

    1/2 for one alone.
    """
    finite = np.isfinite(values)
    filled = np.where(finite, values, math.inf)  # above all that are compared
    order = np.argsort(filled, axis=-1, kind="stable")
    ordered = np.take_along_axis(filled, order, axis=-1)
    places = np.broadcast_to(np.arange(values.shape[-1]), values.shape)
    with np.errstate(invalid="ignore"):  # infinity is not above infinity
        rises = ordered[..., 1:] > ordered[..., :-1]
    edge = np.ones((*values.shape[:-1], min(1, values.shape[-1])), bool)
    starts, ends = np.concatenate([edge, rises], -1), np.concatenate([rises, edge], -1)
    below = np.maximum.accumulate(np.where(starts, places, 0), axis=-1)
    last = np.where(ends, places, values.shape[-1])[..., ::-1]
    others = np.minimum.accumulate(last, axis=-1)[..., ::-1]  # below or equal, itself left out
    sums = np.empty(values.shape)
    np.put_along_axis(sums, order, (below + others).astype(float), axis=-1)
    count = finite.sum(axis=-1, keepdims=True)
    alone = np.where(count < 2, 0.5, sums / np.maximum(2 * (count - 1), 1))
    return np.where(finite, alone, math.nan)


def _median(values: Array) -> Array:
    """[..., D, R] -> [...]: of what is not NaN; 0 where nothing is."""
    ordered = np.sort(values.reshape(*values.shape[:-2], -1), axis=-1)  # NaN comes last
    count = np.isfinite(ordered).sum(axis=-1, keepdims=True)
    if not ordered.shape[-1]:
        return np.zeros(count.shape[:-1])
    low = np.take_along_axis(ordered, np.maximum(count - 1, 0) // 2, axis=-1)
    high = np.take_along_axis(ordered, np.minimum(count // 2, ordered.shape[-1] - 1), axis=-1)
    return np.where(count > 0, (low + high) / 2, 0.0)[..., 0]


def _mean(values: Array) -> Array:
    """[..., D, R] -> [...]: of what is not NaN; 0 where nothing is."""
    finite = np.isfinite(values)
    flat = np.where(finite, values, 0.0).reshape(*values.shape[:-2], -1)
    return flat.sum(axis=-1) / np.maximum(finite.sum(axis=(-2, -1)), 1)

"""Formulas that ask which program of a pair earned its J, by pairs with others."""

import math

import numpy as np

from spo_jax.envs.metrics import follower_credit, leader_credit
from spo_jax.search.formulas.plain import stackelberg
from spo_jax.search.formulas.seen import Array, Earned, Seen


def two_way(seen: Seen, top: int) -> Earned:
    utility = follower_credit(seen.utility)
    finite = np.isfinite(utility)
    row = leader_credit(utility, max(utility.shape[-1], 1))[..., None]
    over = np.where(finite, utility - row, 0.0)  # what a repair adds to its destroy
    elsewhere = _elsewhere(over, np.where(finite, seen.source, -1))
    leader = leader_credit(utility - elsewhere, top)
    return leader, utility - row, (leader_credit(utility, top), utility)


def counterfactual(seen: Seen, top: int) -> Earned:
    utility = follower_credit(seen.utility)
    without = _filled(seen.reference.follower, utility, 2)
    chosen = best_responses(utility, without, top)
    return _mean_of(utility - without, chosen), utility, (leader_credit(utility, top), utility)


def shapley(seen: Seen, top: int) -> Earned:
    utility, reference = follower_credit(seen.utility), seen.reference
    without = _filled(reference.follower, utility, 2)
    valid = np.isfinite(utility).any(axis=-1)
    alone = _filled(reference.leader, np.where(valid, 0.0, math.nan), 1)
    none = np.where(np.isfinite(reference.pair), reference.pair, 0.0)[..., None]
    chosen = best_responses(utility, without, top)
    leader = (alone - none + _mean_of(utility - without, chosen)) / 2
    follower = (without - none[..., None] + utility - alone[..., None]) / 2
    return leader, follower, (leader_credit(utility, top), utility)


def fair_parent(seen: Seen, top: int) -> Earned:
    leader, utility, _ = stackelberg(seen, top)
    bar = seen.parent
    gain = np.where(np.isfinite(bar), np.maximum(utility - bar, 0.0), utility)  # NaN stays NaN
    return leader, gain, (leader, utility)


def best_responses(utility: Array, second: Array, top: int) -> Array:
    """[..., D, R] bool: the `top` highest of each row, of equal ones those with less of `second`.

    Those that are equal in both are in the order of their slots.
    """
    finite = np.isfinite(utility)
    by_second = np.argsort(np.where(finite, second, math.inf), axis=-1, kind="stable")
    first = np.where(finite, -utility, math.inf)
    order = np.argsort(np.take_along_axis(first, by_second, axis=-1), axis=-1, kind="stable")
    places = np.take_along_axis(by_second, order[..., :top], axis=-1)
    chosen = np.zeros(utility.shape, bool)
    np.put_along_axis(chosen, places, True, axis=-1)
    return chosen & finite


def _mean_of(values: Array, chosen: Array) -> Array:
    """[..., D]: the mean of the chosen ones of each row, NaN without any."""
    return leader_credit(np.where(chosen, values, math.nan), max(values.shape[-1], 1))


def _filled(values: Array, like: Array, axes: int) -> Array:
    """`values` where `like` is finite, else NaN; what is missing is the mean of the round's others.

    0 where the round has none. So a pair with a reference that failed moves nobody. axes: how many
    of the last ones are the round's.
    """
    wanted = np.isfinite(like)
    known = wanted & np.isfinite(values)
    flat = np.where(known, values, 0.0).reshape(*values.shape[: values.ndim - axes], -1)
    many = known.reshape(flat.shape).sum(axis=-1)
    mean = flat.sum(axis=-1) / np.maximum(many, 1)
    mean = mean.reshape(mean.shape + (1,) * axes)
    return np.where(wanted, np.where(known, values, mean), math.nan)


def _elsewhere(over: Array, source: Array) -> Array:
    """[..., D, R]: the mean of what a repair of this source adds to the other destroys.

    One more pair, which adds nothing, is in the mean: 0 for a repair without others.
    """
    if not over.size:
        return np.zeros(over.shape)
    rows, slots = over.shape[-2:]
    flat, whose = over.reshape(-1, rows * slots), source.reshape(-1, rows * slots)
    numbers = int(whose.max(initial=-1)) + 1
    found = np.zeros(flat.shape)
    if numbers:
        rounds, place = np.nonzero(whose >= 0)
        key = rounds * numbers + whose[rounds, place]
        own = key * rows + place // slots
        values = flat[rounds, place]
        total = np.bincount(key, values, minlength=len(flat) * numbers)
        many = np.bincount(key, minlength=len(flat) * numbers)
        mine = np.bincount(own, values, minlength=len(flat) * numbers * rows)
        here = np.bincount(own, minlength=len(flat) * numbers * rows)
        rest = many[key] - here[own]
        found[rounds, place] = np.where(rest, (total[key] - mine[own]) / (rest + 1), 0.0)
    return found.reshape(over.shape)

"""Gaps, credits and cross-play scores.

Every function takes and returns NumPy arrays in float64; NaN stands for a missing value.
Axes: D destroy, R repair, M panel member.

Sums run one column at a time, from left to right, and not as `np.sum` does, whose order depends on
the shape. So a result has the same bits whatever else is in its batch, and the same as a plain
loop: neither the order of the pairs nor the number of workers can break a tie between two scores.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from spo_jax.errors import InputError

Array = np.ndarray


def _float64(array: Any) -> Array:
    return np.asarray(array, dtype=np.float64)


def _sum_in_order(columns: Iterable[Array], shape: int | tuple[int, ...]) -> Array:
    """[*shape] of columns [*shape]: ((0 + first) + second) + ..."""
    total = np.zeros(shape)
    for column in columns:
        total = total + column
    return total


def reference_gap(cost: Array, reference: Array) -> Array:
    """Gap in percent, 100 (f - f_ref) / f_ref (Section 5.1); the shapes broadcast as in NumPy.

    Returns float64, NaN where either is missing or the reference is not positive.
    """
    cost, reference = _float64(cost), _float64(reference)
    reference = np.where(reference > 0, reference, np.nan)
    return 100.0 * (cost - reference) / reference


def follower_credit(payoff: Array) -> Array:
    """Follower credits (eq:follower-credit): a repair earns its pair's utility.

    payoff: [..., D, R] float64. Returns as many, NaN where there is no finite utility.
    """
    payoff = _float64(payoff)
    return np.where(np.isfinite(payoff), payoff, np.nan)


def leader_credit(payoff: Array, top: int = 2) -> Array:
    """Leader credits (eq:leader-credit): the mean of a destroy's `top` best utilities.

    payoff: [..., D, R] float64, NaN where there is none. A row with fewer finite utilities than
    `top` averages those it has, so that a destroy is not charged for repairs that never ran.
    Returns [..., D] float64, NaN for a row without any.
    """
    payoff = _float64(payoff)
    if top < 1:
        raise InputError(f"top is {top}: a leader is judged by at least one response")
    finite = np.isfinite(payoff)
    best = -np.sort(np.where(finite, -payoff, np.inf), axis=-1)[..., :top]
    columns = np.moveaxis(np.where(np.isfinite(best), best, 0.0), -1, 0)
    total = _sum_in_order(columns, payoff.shape[:-1])
    taken = np.minimum(finite.sum(axis=-1), top)
    return np.where(taken > 0, total / np.maximum(taken, 1), np.nan)


def cross_play(payoff: Array) -> Array:
    """Cross-play scores (eq:repair-population-credit): a repair's mean over the leader panel.

    payoff: [M, R] float64. Returns [R] float64; a repair that fails with one leader fails, so a
    missing entry makes the score NaN, and so does an empty panel.
    """
    payoff = _float64(payoff)
    members, repairs = payoff.shape
    if members == 0:
        return np.full(repairs, np.nan)
    with np.errstate(invalid="ignore"):
        score = _sum_in_order(payoff, repairs) / members
    return np.where(np.isfinite(score), score, np.nan)

"""Scores of rollouts and their means, for NumPy and for JAX, with the same bits.

`spo_jax.envs.metrics` has them compiled. A process that has not loaded JAX need not do so for them.
"""

from functools import reduce
from typing import Any

import numpy as np

EPS = 1e-12  # a start whose cost is no further from 0 counts as 1 in eq:pair-performance


def improvement(best_cost: Any) -> Any:
    """The paper's score (eq:pair-performance): how far the cost fell, as a share of |start|.

    best_cost: [..., C] float64, the lowest cost so far, of any sign. Returns [...] float64; from a
    start that costs 0, how far the cost fell.
    """
    start, end = best_cost[..., 0], best_cost[..., -1]
    return (start - end) / _size(start)


def shares(best_cost: np.ndarray) -> np.ndarray:
    """[..., C] -> [..., C]: `improvement` so far, after each step."""
    start: np.ndarray = best_cost[..., :1]
    return np.asarray((start - best_cost) / _size(start))


def _size(start: Any) -> Any:
    """What an improvement is a share of."""
    xp = start.__array_namespace__()
    size = xp.abs(start)
    return xp.where(size > EPS, size, 1.0)


def anytime(best_cost: Any) -> Any:
    """The mean of `improvement` after each step: early progress counts more.

    best_cost: [..., C] float64, at least one step. Returns [...] float64.
    """
    xp = best_cost.__array_namespace__()
    start, after = best_cost[..., :1], best_cost[..., 1:]
    # Of the shape of all steps, because XLA divides by what it broadcasts as by a constant: it
    # rounds the reciprocal first.
    scale = xp.where(xp.isnan(after), xp.nan, _size(start))
    return _mean((start - after) / scale)


def utility(scores: Any) -> Any:
    """J of pairs, the mean of their scores, NaN where any is missing.

    scores: [..., I, S] float64, finite or NaN. Returns [...] float64.
    """
    return _mean(scores.reshape(*scores.shape[:-2], scores.shape[-2] * scores.shape[-1]))


def _mean(values: Any) -> Any:
    """[..., N] -> [...], summed in order, NaN where any is missing."""
    xp = values.__array_namespace__()
    known = xp.isfinite(values)
    mean: Any
    if xp is np:
        columns = np.moveaxis(np.where(known, values, 0.0), -1, 0)
        mean = reduce(np.add, columns, np.zeros(values.shape[:-1])) / max(len(columns), 1)
    else:
        from spo_jax.numerics.in_order import mean_in_order

        mean = mean_in_order(values, known)
    return xp.where(known.all(axis=-1), mean, xp.nan)

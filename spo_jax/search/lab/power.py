"""Intervals and tests of means over worlds or seeds, and how many of them a difference needs."""

import math
from collections.abc import Sequence

import numpy as np

from spo_jax.envs.report.intervals import quantile
from spo_jax.errors import InputError

MOST = 10_000_000  # seeds; nobody has more


def interval(values: np.ndarray) -> tuple[float, float, float]:
    """The mean of the finite values and its 95% Student t interval; NaN for what lacks."""
    known = np.asarray(values, np.float64)
    known = known[np.isfinite(known)]
    if known.size < 2:
        return float(known.mean()) if known.size else math.nan, math.nan, math.nan
    error = float(known.std(ddof=1)) / math.sqrt(known.size)
    half = quantile(0.975, known.size - 1) * error
    mean = float(known.mean())
    return mean, mean - half, mean + half


def p_of(mean: float, deviation: float, count: int) -> float:
    """Two-sided p of a t test that the mean is 0; 1 where all values are, NaN below two values."""
    from scipy import stats

    if count < 2:
        return math.nan
    if not deviation:
        return 0.0 if mean else 1.0
    return float(2 * stats.t.sf(abs(mean) / (deviation / math.sqrt(count)), count - 1))


def holm(values: Sequence[float] | np.ndarray) -> np.ndarray:
    """Holm's adjusted p-values, in the order given; NaN is no test and counts for none."""
    p = np.asarray(values, float)
    order = np.argsort(p)[: np.isfinite(p).sum()]
    adjusted = np.full(p.shape, math.nan)
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.maximum.accumulate(np.minimum(steps, 1))
    return adjusted


def seeds_needed(
    difference: float, deviation: float, power: float = 0.8, level: float = 0.95
) -> float:
    """Pairs of runs with which a paired t test sees a difference, two-sided, so often.

    difference: of the means. deviation: of the paired differences, in the same unit. Returns a
    whole number of at least 2; infinity for no difference, or where it takes more than MOST.
    Raises InputError for what is no probability, or a negative or missing deviation.
    """
    from scipy import stats

    if not 0 < power < 1 or not 0 < level < 1 or not deviation >= 0:
        raise InputError("power and level are between 0 and 1, and a deviation is 0 or more")
    if not difference:
        return math.inf
    if abs(difference) >= MOST * deviation:  # scipy's noncentral t ends where effects are so large
        return 2
    effect = abs(difference) / deviation
    tail = (1 + level) / 2
    about = ((stats.norm.ppf(tail) + stats.norm.ppf(power)) / effect) ** 2
    if not about <= MOST:
        return math.inf
    if about > 10_000:  # where t is normal
        return math.ceil(about)

    def reached(n: int) -> bool:
        bound, shift = quantile(tail, n - 1), effect * math.sqrt(n)
        return stats.nct.sf(bound, n - 1, shift) >= power

    n = max(2, math.floor(about))
    while not reached(n):
        n += 1
    return n


def detectable(deviation: float, seeds: int, power: float = 0.8, level: float = 0.95) -> float:
    """The least difference that so many pairs of runs see so often: `seeds_needed` the other way.

    deviation: of the paired differences. Returns NaN for fewer than two pairs. Raises InputError as
    `seeds_needed` does.
    """
    from scipy import optimize, stats

    if seeds < 2:
        return math.nan
    if not 0 < power < 1 or not 0 < level < 1 or not deviation >= 0:
        raise InputError("power and level are between 0 and 1, and a deviation is 0 or more")
    bound = stats.t.ppf((1 + level) / 2, seeds - 1)

    def missed(effect: float) -> float:
        return float(stats.nct.sf(bound, seeds - 1, effect * math.sqrt(seeds))) - power

    return deviation * float(optimize.brentq(missed, 0, 2 * bound + 10))

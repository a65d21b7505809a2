"""The interval of a mean over few, skewed values, as the gaps of 8 to 16 instances are.

The method was chosen by measured coverage: shares of samples of n = 8, 12, 16 values whose 95%
interval holds the true mean (10,000 samples for ours, 4,000 for the others, 2,000 resamples each;
tests/envs/test_intervals.py measures ours again):

    samples                        percentile   BCa          studentised  Student t    ours
    normal                         .88 .91 .91  .88 .91 .91  .94 .95 .94  .95 .95 .95  .96 .96 .96
    lognormal, sigma 0.5           .86 .88 .89  .86 .89 .90  .94 .94 .93  .92 .92 .92  .95 .95 .95
    lognormal, sigma 1             .78 .81 .83  .80 .84 .85  .90 .91 .91  .83 .84 .85  .91 .92 .93
    60% zeros, the rest lognormal  .74 .79 .81  .79 .84 .85  (1)          .78 .81 .82  .92 .95 .96
    Student t of 3 degrees         .88 .90 .92  .85 .88 .89  .94 .92 .93  .96 .96 .96  .97 .96 .96
    difference of two lognormals   .86 .89 .90  .81 .84 .84  .91 .91 .90  .97 .97 .96  .97 .97 .97
    rollouts of instances (2)      .82 .85 .88  .83 .86 .88  .92 .92 .93  .88 .88 .90  .93 .93 .94

(1) without an upper end in 38, 22 and 6% of the samples: a resample of zeros has no deviation.
(2) the means of two lognormal rollouts (sigma 0.5) around lognormal instances (sigma 0.7).
No method is right for every skewness at this size; ours is never below .91 here. It costs width:
a tenth more than Student's t for normal values, up to twice as much for the skewed ones.
"""

import math
from functools import cache

import numpy as np

from spo_jax.errors import InputError

LEVEL = 0.95


@cache
def quantile(share: float, degrees: int) -> float:
    """Of Student's t."""
    from scipy.stats import t

    return float(t.ppf(share, degrees))


def mean_interval(values: np.ndarray) -> tuple[float, float]:
    """A 95% confidence interval of the mean of independent draws.

    values: [n] float64, n >= 2, finite; drop missing ones knowingly, before. Where they are nested
    (rollouts of instances), the outer ones are the draws: give their means.
    Returns (low, high), in the unit of the values. Nothing is drawn at random.

    Each end is the farther out of two: Student's t, and t after Hall's third-order correction for
    skewness (Hall 1992, On the removal of skewness by transformation, JRSS B 54, with t's quantile
    in place of the normal one). With T = sqrt(n) (mean - mu) / sd, G the adjusted sample skewness
    and c = G / sqrt(n), ((1 + c T / 3)^3 - 1) / c + c / 6 is taken to have t's distribution.
    Raises InputError for fewer than two values, and for values that are not finite.
    """
    from scipy.stats import skew

    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2:
        raise InputError(
            f"values of shape {values.shape}: an interval needs at least two, in a row"
        )
    if not np.isfinite(values).all():
        bad = int((~np.isfinite(values)).sum())
        raise InputError(f"{bad} of {len(values)} values are not finite: drop them first")
    mean, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))
    if np.ptp(values) <= 1e-12 * np.abs(values).max():  # equal but for rounding
        return mean, mean
    far = quantile((1 + LEVEL) / 2, len(values) - 1)
    down = up = far  # standard errors below and above the mean
    c = float(skew(values, bias=False)) / math.sqrt(len(values)) if len(values) > 2 else 0.0
    if abs(c) > 1e-6:  # else it corrects nothing, and divides by zero
        down, up = max(far, _back(far, c)), max(far, -_back(-far, c))
    return mean - down * error, mean + up * error


def _back(transformed: float, c: float) -> float:
    """The T whose transformed value is given."""
    return float(3 * (np.cbrt(1 + c * (transformed - c / 6)) - 1) / c)

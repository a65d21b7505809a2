"""The interval of a mean: by a root finder, what it refuses, and how often it holds the mean."""

import math
import warnings

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import t

from spo_jax.envs.report.intervals import mean_interval
from spo_jax.errors import InputError

SIZES = (8, 12, 16)


def lognormal(rng, shape, sigma=1.0):
    return np.exp(rng.normal(0, sigma, shape))


def mostly_zero(rng, shape):
    """Gaps where most instances are solved to the optimum."""
    return np.where(rng.random(shape) < 0.6, 0.0, lognormal(rng, shape))


def nested(rng, shape):
    """Means of two rollouts of each instance, which share what the instance is like."""
    rollouts = lognormal(rng, (*shape, 2), 0.5)
    return (lognormal(rng, shape, 0.7)[..., None] * rollouts).mean(axis=-1)


# name: (samples, true mean). The mean of a lognormal is exp(sigma^2 / 2).
SAMPLES = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0),
    "lognormal 0.5": (lambda rng, shape: lognormal(rng, shape, 0.5), math.exp(0.125)),
    "lognormal 1": (lognormal, math.exp(0.5)),
    "mostly zero": (mostly_zero, 0.4 * math.exp(0.5)),
    "t of 3 degrees": (lambda rng, shape: rng.standard_t(3, size=shape), 0.0),
    "differences": (lambda rng, shape: lognormal(rng, shape) - lognormal(rng, shape), 0.0),
    "nested": (nested, math.exp(0.245 + 0.125)),
}


def drawn(name, size, count, seed=11):
    """[count, size] samples, and their true mean."""
    make, mean = SAMPLES[name]
    return make(np.random.default_rng([seed, size]), (count, size)), mean


@pytest.mark.long
@pytest.mark.parametrize("name", SAMPLES)
def test_it_holds_the_mean_as_often_as_it_says(name):
    """The percentile bootstrap does so 74 to 88 times in 100 at n = 8."""
    for size in SIZES:
        samples, mean = drawn(name, size, 1000)
        found = [mean_interval(row) for row in samples]
        share = np.mean([low <= mean <= high for low, high in found])
        assert 0.90 <= share <= 0.985, (name, size, share)


@pytest.mark.long
def test_it_is_hardly_wider_than_students_where_that_is_exact():
    for size in SIZES:
        samples, _ = drawn("normal", size, 500)
        widths = [high - low for low, high in map(mean_interval, samples)]
        errors = samples.std(axis=1, ddof=1) / math.sqrt(size)
        assert 1 <= np.mean(widths / (2 * t.ppf(0.975, size - 1) * errors)) < 1.3


def by_root(values):
    """Hall's cubic in T = sqrt(n) (mean - mu) / s solved for mu by bisection, and Student's t."""
    n, mean = len(values), sum(values) / len(values)
    deviations = [value - mean for value in values]
    s = math.sqrt(sum(d**2 for d in deviations) / (n - 1))
    skewness = n / ((n - 1) * (n - 2)) * sum((d / s) ** 3 for d in deviations)
    quantile = t.ppf(0.975, n - 1)

    def cubic(T):
        g = skewness / math.sqrt(n)
        return T + g * T**2 / 3 + g**2 * T**3 / 27 + g / 6

    ends = []
    for sign in (1, -1):
        hall = brentq(lambda T: cubic(T) - sign * quantile, -1e4, 1e4, xtol=1e-13)  # noqa: B023
        far = max(sign * hall, quantile)
        ends.append(mean - sign * far * s / math.sqrt(n))
    return tuple(ends)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("size", [3, 8, 33])
def test_it_is_the_farther_of_hall_and_student(name, size):
    samples, _ = drawn(name, size, 20)
    for row in samples:
        if np.ptp(row):
            assert mean_interval(row) == pytest.approx(by_root(row.tolist()), rel=1e-8, abs=1e-9)


def test_by_hand():
    # Symmetric: Student's t alone. Of two values t is 12.7062, and the standard error is 1.
    assert mean_interval(np.array([2.0, 4.0])) == pytest.approx(
        (3 - 12.7062, 3 + 12.7062), abs=1e-4
    )
    # Seven optima and one gap of 8: mean 1, standard error 1; G = sqrt(8), so c = 1, and 2.3646 is
    # t's quantile of seven degrees. Below t is farther, above 3 (1 + cbrt(2.3646 + 1/6 - 1)).
    low, high = mean_interval(np.array([0.0] * 7 + [8.0]))
    assert low == pytest.approx(1 - 2.3646, abs=1e-4)
    assert high == pytest.approx(1 + 3 * (1 + (2.3646 + 1 / 6 - 1) ** (1 / 3)), abs=1e-4)


def test_a_unit_and_a_sign_change_nothing():
    for name in SAMPLES:
        row = drawn(name, 12, 1)[0][0]
        low, high = mean_interval(row)
        assert mean_interval(5 + 3 * row) == pytest.approx((5 + 3 * low, 5 + 3 * high))
        assert mean_interval(-row) == pytest.approx((-high, -low))
        assert mean_interval(row[::-1]) == pytest.approx((low, high))


def test_equal_values_have_no_width_and_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mean_interval(np.full(7, 0.5)) == (0.5, 0.5)
        assert mean_interval(np.zeros(3)) == (0.0, 0.0)
        nearly = np.array([0.1 + 0.2, 0.3, 0.3, 0.3])
        low, high = mean_interval(nearly)
        assert (low, high) == pytest.approx((0.3, 0.3), abs=1e-15)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, math.nan], [1.0, math.inf], [[1.0, 2.0]]])
def test_bad_input(values):
    with pytest.raises(InputError):
        mean_interval(np.array(values))

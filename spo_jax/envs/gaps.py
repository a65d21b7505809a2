"""The gap of a cost to a reference, for NumPy and for JAX.

A display of a few gaps need not load JAX: `spo_jax.envs.metrics.gap` is `reference_gap`, compiled.
"""

import math
from typing import Any

from spo_jax.envs.problem import Instance, Problem


def reference_gap(cost: Any, reference: Any) -> Any:
    """Gap in percent, 100 (f - f_ref) / |f_ref| (Section 5.1); the shapes broadcast.

    cost, reference: float64 arrays of NumPy or of JAX, of what is minimised. Returns such an array,
    NaN where either is missing or the reference is 0.
    """
    xp = reference.__array_namespace__()
    # Of the shape of both, because XLA divides by what it broadcasts as by a constant: it rounds
    # the reciprocal first.
    reference = xp.where((reference != 0) & ~xp.isnan(cost), reference, xp.nan)
    return 100.0 * (cost - reference) / xp.abs(reference)


def gap_of(problem: Problem, instance: Instance, cost: float) -> float | None:
    """By how many per cent of its instance's reference a cost is worse than that.

    None without a reference, for one of 0, and for a cost that is not finite.
    """
    reference = instance.reference
    if not reference or not math.isfinite(reference) or not math.isfinite(cost):
        return None
    return float(problem.turned(100 * (cost - reference) / abs(reference)))

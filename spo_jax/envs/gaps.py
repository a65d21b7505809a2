"""The gap of a cost to a reference, for NumPy and for JAX.

A display of a few gaps need not load JAX: `spo_jax.envs.metrics.gap` is this function, compiled.
"""

from typing import Any


def reference_gap(cost: Any, reference: Any) -> Any:
    """Gap in percent, 100 (f - f_ref) / f_ref (Section 5.1); the shapes broadcast.

    cost, reference: float64 arrays of NumPy or of JAX. Returns such an array, NaN where either is
    missing or the reference is not positive.
    """
    xp = reference.__array_namespace__()
    # Of the shape of both, because XLA divides by what it broadcasts as by a constant: it rounds
    # the reciprocal first.
    reference = xp.where((reference > 0) & ~xp.isnan(cost), reference, xp.nan)
    return 100.0 * (cost - reference) / reference

"""The kit of the capacitated vehicle routing problem: native where it is built, else in Python.

Both give the same results to the last bit, and draw the same random numbers.
"""

from typing import Any

from spo_jax.envs.problems import kit as python
from spo_jax.envs.problems.cvrp.kit import routes
from spo_jax.envs.problems.cvrp.kit.reference import *  # noqa: F403
from spo_jax.envs.problems.cvrp.kit.reference import __all__ as __all__

try:
    from spo_jax.envs.problems.cvrp.kit import _native
    from spo_jax.envs.problems.cvrp.kit._native import *  # noqa: F403

    NATIVE = True
except ImportError:
    from spo_jax.envs.problems.kit import forget as forget

    _native, NATIVE = None, False


def prepare(dist: Any, demands: Any, capacity: Any, limits: Any = None) -> None:
    """Convert the matrix [N, N] once for all calls with this object, which must not change any
    more; the last 8 are kept, until `release`.

    limits: a `Limits`, to which calls with this object keep as to the capacity.
    Raises ValueError if it is not square or has a number that is not finite.
    """
    (_native or python).prepare(dist)
    if limits is not None:
        (_native or routes).limit(dist, *limits.arguments)


def release(dist: Any, demands: Any, capacity: Any, limits: Any = None) -> None:
    """Drop what `prepare` has made of the matrix."""
    (_native or python).release(dist)

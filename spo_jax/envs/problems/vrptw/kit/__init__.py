"""The kit of the vehicle routing problem with time windows: native where it is built, else in
Python.

Both give the same results to the last bit, and draw the same random numbers.
"""

from typing import Any

from spo_jax.envs.problems import kit as python
from spo_jax.envs.problems.cvrp.kit import routes
from spo_jax.envs.problems.vrptw.kit.reference import *  # noqa: F403
from spo_jax.envs.problems.vrptw.kit.reference import __all__ as __all__

try:
    from spo_jax.envs.problems.vrptw.kit import _native
    from spo_jax.envs.problems.vrptw.kit._native import *  # noqa: F403

    NATIVE = True
except ImportError:
    from spo_jax.envs.problems.kit import forget as forget

    _native, NATIVE = None, False


def prepare(
    dist: Any, demands: Any, capacity: Any, ready: Any, due: Any, service: Any, limits: Any = None
) -> None:
    """As `prepare` of the CVRP's kit."""
    (_native or python).prepare(dist)
    if limits is not None:
        (_native or routes).limit(dist, *limits.arguments)


def release(
    dist: Any, demands: Any, capacity: Any, ready: Any, due: Any, service: Any, limits: Any = None
) -> None:
    """Drop what `prepare` has made of the matrix."""
    (_native or python).release(dist)

"""Reference routes of the VRPTW: the best of PyVRP's from several seeds.

PyVRP works on integers. Times are scaled by a power of ten, which leaves those of benchmark files
exact, and ways that are no whole number take one unit longer than they are: what is in time there
is in time here. Lengths are rounded to the nearest, and have a scale of their own where times are
so much larger that they would not fit.
"""

import math
import time
from collections.abc import Callable

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.cvrp.baselines.references import LARGEST, Times, best_of, data_of, solved
from spo_jax.envs.problems.cvrp.rules import Routes
from spo_jax.envs.problems.vrptw.files.solomon import check_routes
from spo_jax.envs.problems.vrptw.rules import TIMES

_FINEST = 2**53  # the largest scaled time: float64 has no finer ones
_BACK = 1e-9  # units by which a scaled time may miss a whole number through rounding


def scaled_times(instance: Instance, largest: int = LARGEST) -> Times:
    """Lengths and times on integers, no edge longer than `largest`."""
    scale = _power(largest, float(instance.dist.max()))
    clock = min(scale, _power(_FINEST, max(float(instance.extra[name].max()) for name in TIMES)))
    ready, due, service = (instance.extra[name] * clock for name in TIMES)
    return Times(
        weights=_whole(np.rint(instance.dist * scale)),
        durations=_whole(np.ceil(instance.dist * clock - _BACK)),
        early=_whole(np.ceil(ready - _BACK)),
        late=_whole(np.floor(due + _BACK)),
        service=_whole(np.ceil(service - _BACK)),
    )


def _power(largest: int, top: float) -> float:
    """The greatest power of ten by which `top`, 1 if it is 0, is at most `largest`."""
    return 10.0 ** math.floor(math.log10(largest / (top or 1.0)))


def _whole(array: np.ndarray) -> np.ndarray:
    return array.astype(np.int64)


def pyvrp(
    instance: Instance,
    seed: int = 0,
    iterations: int | None = None,
    *,
    seconds: float | None = None,
    report: Callable[[Routes], None] | None = None,
) -> Routes:
    """Routes by PyVRP; as `spo_jax.envs.problems.cvrp.baselines.references.pyvrp`."""
    began = time.monotonic()
    data = data_of(instance, scaled_times(instance))
    routes = solved(instance, data, seed, iterations, seconds, began, report)
    check_routes(instance, routes)
    return routes


def solve_reference(instance: Instance, effort: str) -> tuple[Routes, str, bool]:
    """Routes, who found them how, and False: they are not proven best. Raises MissingExtra."""
    return best_of(pyvrp, instance, effort)

"""The picture of a tour. Geographic ones have longitude to the right and latitude up."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.tsp.files.tsplib import check_tour
from spo_jax.errors import InputError

INK, LINE = "#1f2933", "#2a6f97"


def draw(axes: Any, instance: Instance, tour: Sequence[int]) -> None:
    """Draw a tour on a matplotlib axes. Raises InputError for what is no tour of `instance`."""
    check_tour(instance, tour)
    xy = places(instance)
    width, area = sizes(len(tour))
    closed = xy[[*tour, tour[0]]]
    axes.plot(*closed.T, color=LINE, linewidth=width, solid_joinstyle="round", zorder=1)
    axes.scatter(*xy.T, s=area, color=INK, linewidths=0, zorder=2)
    axes.set_aspect("equal")


def places(instance: Instance) -> np.ndarray:
    """[N, 2] float64 positions, x to the right and y upwards. Raises InputError without any."""
    if instance.coords is None:
        raise InputError(f"{instance.name} has no coordinates, so there is no picture of it")
    return np.asarray(instance.file.get("degrees", instance.coords))


def sizes(n: int) -> tuple[float, float]:
    """Line width in points and marker area in square points, finer as nodes grow denser."""
    density = math.sqrt(50 / max(n, 50))
    return 0.8 + 0.9 * density, 2.5 + 22.0 * density**2

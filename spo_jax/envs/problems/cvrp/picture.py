"""The picture of routes around their depot."""

import math
from collections.abc import Sequence
from typing import Any

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.cvrp.files.cvrplib import check_routes
from spo_jax.envs.problems.tsp.picture import INK, places, sizes


def draw(axes: Any, instance: Instance, solution: Sequence[Sequence[int]]) -> None:
    """Draw routes on a matplotlib axes. Raises InputError where they are not feasible."""
    check_routes(instance, solution)
    xy, routes = places(instance), [route for route in solution if len(route)]
    width, area = sizes(len(xy) - 1)
    # Colours follow the angle around the depot, so that neighbouring routes never look alike.
    middle = [xy[list(route)].mean(axis=0) - xy[0] for route in routes]
    order = sorted(range(len(routes)), key=lambda k: (math.atan2(middle[k][1], middle[k][0]), k))
    for rank, k in enumerate(order):
        colour = route_colour(rank, len(routes))
        stops = xy[list(routes[k])]
        ends = xy[[0, routes[k][0]]], xy[[0, routes[k][-1]]]
        for spoke in ends:  # faint: many of them meet at the depot
            axes.plot(*spoke.T, color=colour, linewidth=0.7 * width, alpha=0.35, zorder=1)
        axes.plot(*stops.T, color=colour, linewidth=width, solid_joinstyle="round", zorder=2)
        axes.scatter(*stops.T, s=area, color=[colour], linewidths=0, zorder=3)
    axes.scatter(*xy[0], s=70, marker="s", color=INK, edgecolors="white", linewidths=1.2, zorder=4)
    axes.set_aspect("equal")


def route_colour(rank: int, count: int) -> tuple[float, float, float]:
    """The sRGB colour of the `rank`-th of `count` routes around the depot.

    Hues step by the golden angle through OKLCH (Ottosson 2020), where equal steps look equal, and
    lightness alternates: neighbours differ in both.
    """
    hue = math.radians(250.0 + 137.508 * rank)
    lightness = (0.58, 0.70)[rank % 2] if count > 1 else 0.58
    a, b = 0.125 * math.cos(hue), 0.125 * math.sin(hue)
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    red, green, blue = (_gamma(min(max(value, 0.0), 1.0)) for value in linear)
    return red, green, blue


def _gamma(value: float) -> float:
    return 12.92 * value if value <= 0.0031308 else 1.055 * value ** (1 / 2.4) - 0.055

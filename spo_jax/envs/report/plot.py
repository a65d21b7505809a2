"""Pictures of solutions: a tour, or routes around their depot.

Matplotlib is imported inside the functions and used without pyplot, so there is no global figure,
no display and no cost for commands that draw nothing. The same input gives the same file.
"""

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spo_jax.envs.problem import Instance, Solution
from spo_jax.envs.problems.cvrp.files import check_routes, routes_cost
from spo_jax.envs.problems.tsp.files import check_tour, cost_text, degrees, tour_cost
from spo_jax.envs.textfiles import write_atomically
from spo_jax.errors import InputError

SUFFIXES = (".png", ".pdf")

_INK, _LINE = "#1f2933", "#2a6f97"
_LONG_SIDE, _SHORT_SIDE, _EDGE = 8.0, 3.2, 0.15  # inches


def plot_solution(
    instance: Instance, solution: Solution, path: str | Path, title: str | None = None
) -> None:
    """Draw a solution into a PNG or PDF, by the suffix of `path`.

    title: the line above the picture; without it name, size and cost, and "" for none. GEO
    instances are drawn with longitude to the right and latitude upwards.

    Raises InputError for another suffix, an infeasible solution, an unknown problem or a file that
    cannot be written.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{path}: a picture ends in {' or '.join(SUFFIXES)}")
    if instance.problem == "tsp":
        check_tour(instance, solution)
        cost, unit = tour_cost(instance.dist, solution), "nodes"
    elif instance.problem == "cvrp":
        check_routes(instance, solution)
        cost, unit = routes_cost(instance.dist, solution), "customers"
    else:
        raise InputError(f"no picture is defined for the problem {instance.problem!r}")
    if title is None:
        title = f"{instance.name}  ·  {instance.size} {unit}  ·  cost {_rounded(cost)}"
    xy = places(instance)
    figure, axes = _canvas(xy, title)
    if instance.problem == "tsp":
        _draw_tour(axes, xy, solution)
    else:
        _draw_routes(axes, xy, [route for route in solution if len(route)])
    # No dates and no version strings: equal pictures are equal files.
    metadata = {"Software": None} if suffix == ".png" else {"CreationDate": None, "Producer": None}
    buffer = io.BytesIO()
    figure.savefig(buffer, format=suffix[1:], dpi=200, metadata=metadata)
    write_atomically(path, buffer.getvalue())


def _rounded(cost: float) -> str:
    return cost_text(cost) if cost.is_integer() else f"{cost:.4f}"


def places(instance: Instance) -> np.ndarray:
    """[N, 2] float64 positions, x to the right and y upwards."""
    if instance.file.get("edge_weight_type") == "GEO":
        return degrees(instance.coords)[:, ::-1]
    return np.asarray(instance.coords)


def _canvas(xy: np.ndarray, title: str) -> tuple[Any, Any]:
    """A figure shaped like the instance, without frame or ticks, and its axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    low, high = xy.min(axis=0), xy.max(axis=0)
    span = np.maximum(high - low, 1e-9 * max(1.0, float(np.abs(xy).max())))
    box = np.maximum(_LONG_SIDE * span / span.max(), _SHORT_SIDE)  # inches
    head = 0.5 if title else _EDGE
    width, height = float(box[0]) + 2 * _EDGE, float(box[1]) + _EDGE + head
    figure = Figure(figsize=(width, height), facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((_EDGE / width, _EDGE / height, box[0] / width, box[1] / height))
    axes.set_axis_off()
    # The same number of units an inch both ways, with room for the outermost markers.
    reach = 0.52 * float((span / box).max()) * box
    centre = (low + high) / 2
    axes.set_xlim(centre[0] - reach[0], centre[0] + reach[0])
    axes.set_ylim(centre[1] - reach[1], centre[1] + reach[1])
    if title:
        place = (0.2 / width, 1 - 0.32 / height)
        figure.text(*place, title, color=_INK, fontsize=11, va="center", parse_math=False)
    return figure, axes


def _sizes(n: int) -> tuple[float, float]:
    """Line width in points and marker area in square points, finer as nodes grow denser."""
    density = math.sqrt(50 / max(n, 50))
    return 0.8 + 0.9 * density, 2.5 + 22.0 * density**2


def _draw_tour(axes: Any, xy: np.ndarray, tour: Sequence[int]) -> None:
    width, area = _sizes(len(tour))
    closed = xy[[*tour, tour[0]]]
    axes.plot(*closed.T, color=_LINE, linewidth=width, solid_joinstyle="round", zorder=1)
    axes.scatter(*xy.T, s=area, color=_INK, linewidths=0, zorder=2)


def _draw_routes(axes: Any, xy: np.ndarray, routes: Sequence[Sequence[int]]) -> None:
    width, area = _sizes(len(xy) - 1)
    # Colours follow the angle around the depot, so that neighbouring routes never look alike.
    middle = [xy[list(route)].mean(axis=0) - xy[0] for route in routes]
    order = sorted(range(len(routes)), key=lambda k: (math.atan2(middle[k][1], middle[k][0]), k))
    for rank, k in enumerate(order):
        colour = route_colour(rank, len(routes))
        places = xy[list(routes[k])]
        ends = xy[[0, routes[k][0]]], xy[[0, routes[k][-1]]]
        for spoke in ends:  # faint: many of them meet at the depot
            axes.plot(*spoke.T, color=colour, linewidth=0.7 * width, alpha=0.35, zorder=1)
        axes.plot(*places.T, color=colour, linewidth=width, solid_joinstyle="round", zorder=2)
        axes.scatter(*places.T, s=area, color=[colour], linewidths=0, zorder=3)
    axes.scatter(*xy[0], s=70, marker="s", color=_INK, edgecolors="white", linewidths=1.2, zorder=4)


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

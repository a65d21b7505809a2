"""Pictures of solutions: the problem draws on an axes, and the figure is saved here.

Matplotlib is imported inside the functions and used without pyplot, so there is no global figure,
no display and no cost for commands that draw nothing. The same input gives the same file.
"""

import io
from pathlib import Path
from typing import Any

import numpy as np

from spo_jax.envs.files.textfiles import shown_cost, write_atomically
from spo_jax.envs.problem import Instance, Problem, Solution
from spo_jax.errors import InputError

# By suffix: the field of the metadata that takes a text, and those that would differ each time.
_METADATA = {
    ".png": ("Description", "Software"),
    ".svg": ("Description", "Date", "Creator"),
    ".pdf": ("Subject", "CreationDate", "Producer"),
}
SUFFIXES = tuple(_METADATA)

INK = "#1f2933"
# Those of Okabe and Ito, which colour-blind people tell apart, and two more.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#8c564b")
_LONG_SIDE, _SHORT_SIDE, _EDGE = 8.0, 3.2, 0.15  # inches


def require_picture(problem: Problem, path: str | Path) -> None:
    """Raises InputError unless `problem` draws its solutions and `path` ends as a picture does."""
    if not problem.offers("draw"):
        raise InputError(f"no picture is defined for the problem {problem.name}: leave --plot out")
    if Path(path).suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: a picture ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")


def placed(problem: Problem, instance: Instance) -> bool:
    """Whether the instance has what a picture needs: walks are drawn through coordinates."""
    return instance.coords is not None or not problem.offers("walks")


def plot_solution(
    problem: Problem,
    instance: Instance,
    solution: Solution,
    path: str | Path,
    title: str | None = None,
    mark: str | None = None,
) -> None:
    """Draw a solution into a PNG, SVG or PDF, by the suffix of `path`.

    What the problem draws with equal units both ways is a map: it fills a figure of its own shape,
    without frame or ticks. title: the line above the picture; without it name, size and cost, and
    "" for none. mark: a text for the file's metadata.

    Raises InputError for another suffix, an infeasible solution, a problem that does not draw or a
    file that cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    require_picture(problem, path)
    figure = Figure(figsize=(_LONG_SIDE, 0.6 * _LONG_SIDE), facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.1, 0.1, 0.85, 0.78))
    problem.draw(axes, instance, solution)
    if title is None:
        cost = problem.cost(instance, solution)
        size = f"{instance.size} {problem.unit}"
        title = f"{instance.name}  ·  {size}  ·  {problem.word} {shown_cost(cost)}"
    if axes.get_aspect() == 1.0:
        _fit(figure, axes, 0.5 if title else _EDGE)
    width, height = figure.get_size_inches()
    place = (0.2 / width, 1 - 0.32 / height)
    figure.text(*place, title, color=INK, fontsize=11, va="center", parse_math=False)
    save_figure(figure, path, mark)


def save_figure(figure: Any, path: str | Path, mark: str | None = None) -> None:
    """Write a figure as a PNG, SVG or PDF, by the suffix; equal figures give equal files.

    mark: a text for the file's metadata. Raises InputError for a file that cannot be written.
    """
    from matplotlib import rc_context

    # No dates and no version strings.
    suffix = Path(path).suffix.lower()
    about, *unstable = _METADATA[suffix]
    metadata = dict.fromkeys(unstable) | ({} if mark is None else {about: mark})
    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "spo"}):  # else the names in it are drawn at random
        figure.savefig(buffer, format=suffix[1:], dpi=200, metadata=metadata)
    write_atomically(path, buffer.getvalue())


def _fit(figure: Any, axes: Any, head: float) -> None:
    """Shape the figure like the map on its axes; head: inches above it."""
    low, high = axes.dataLim.get_points()
    span = np.maximum(high - low, 1e-9 * max(1.0, float(np.abs(axes.dataLim.get_points()).max())))
    box = np.maximum(_LONG_SIDE * span / span.max(), _SHORT_SIDE)  # inches
    width, height = float(box[0]) + 2 * _EDGE, float(box[1]) + _EDGE + head
    figure.set_size_inches(width, height)
    axes.set_position((_EDGE / width, _EDGE / height, box[0] / width, box[1] / height))
    axes.set_axis_off()
    axes.set_aspect("auto")
    # The same number of units an inch both ways, with room for the outermost markers.
    reach = 0.52 * float((span / box).max()) * box
    centre = (low + high) / 2
    axes.set_xlim(centre[0] - reach[0], centre[0] + reach[0])
    axes.set_ylim(centre[1] - reach[1], centre[1] + reach[1])

"""What the figures share: their look, files, logarithmic axes, and drawings of tours.

Figures are drawn at the width they are printed in: COLUMN for half a page, WIDTH for a whole line.
Matplotlib is used without pyplot: no global figure, no display. Files carry no dates, and equal
data give equal files.
"""

import io
import math
import textwrap
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from common.contenders import OURS, Contender
from common.tables import write_csv
from spo_jax.envs.files.textfiles import write_atomically
from spo_jax.envs.problem import Instance, Solution
from spo_jax.envs.problems.tsp.picture import places

WIDTH, COLUMN = 5.5, 3.5  # inches
INK, MUTED, PALE = "#1F2933", "#5F6B76", "#C9D1D8"


def new(
    width: float, height: float, rows: int = 1, columns: int = 1, *, maps: bool = False, **more: Any
) -> Any:
    """An empty figure of so many inches and its axes [rows, columns]. more: of `subplots`."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    matplotlib.rc_file(Path(__file__).with_name("paper.mplstyle"))
    figure = Figure(figsize=(width, height), layout="compressed" if maps else "constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **more)


def publish(figure: Any, stem: str, caption: str, rows: Any, columns: Any = None) -> None:
    """Write STEM.png, .pdf, the caption in STEM.txt and the numbers in STEM.csv; print the caption.

    Raises InputError where they cannot be written.
    """
    for suffix, undated in (("png", "Software"), ("pdf", "CreationDate")):
        buffer = io.BytesIO()
        figure.savefig(buffer, format=suffix, dpi=300, metadata={undated: None})
        write_atomically(Path(f"{stem}.{suffix}"), buffer.getvalue())
    write_atomically(Path(f"{stem}.txt"), caption + "\n")
    write_csv(f"{stem}.csv", rows, columns)
    print(f"\n{textwrap.fill(caption, 100)}\nwritten: {stem}.png, .pdf, .csv, .txt")


def look(who: Contender) -> dict[str, Any]:
    """Colour, line, width and order of a contender's curve."""
    order = 3 if who.family == OURS else 2
    return {
        "color": who.colour, "linestyle": who.line, "linewidth": 0.8 * who.width, "zorder": order
    }  # fmt: skip


def log_axis(axes: Any, which: str, steps: Sequence[float] = (1, 2, 5)) -> None:
    """Make the "x" or "y" axis logarithmic, with plain numbers at `steps` times powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis = getattr(axes, f"{which}axis")
    getattr(axes, f"set_{which}scale")("log")
    axis.set_major_locator(LogLocator(subs=steps, numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(LogLocator(subs=range(1, 10), numticks=12))
    axis.set_minor_formatter(NullFormatter())


def above_zero(values: np.ndarray) -> np.ndarray:
    """The values that a logarithmic axis has room for; NaN for the others."""
    return np.where(values > 0, values, math.nan)


def whole_rounds(axes: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(nbins=12, integer=True, min_n_ticks=2))


# --- tours and routes -----------------------------------------------------------------------------

Edges = set[tuple[int, int]]


def edges_of(instance: Instance, solution: Solution) -> Edges:
    """The edges of a tour, or of routes with the depot at both ends, each as (smaller, larger)."""
    walks = (
        [[*route, route[0]] for route in [list(solution)] if route]
        if instance.problem == "tsp"
        else [[0, *route, 0] for route in solution if len(route)]
    )
    return {(min(a, b), max(a, b)) for walk in walks for a, b in pairwise(walk) if a != b}


def map_axes(axes: Any, instance: Instance) -> np.ndarray:
    """Make `axes` a map of the instance, without ticks; the places of its nodes, [N, 2] float64."""
    xy = places(instance)
    low, high = xy.min(axis=0), xy.max(axis=0)
    room = 0.045 * float((high - low).max())
    axes.set(
        xlim=(low[0] - room, high[0] + room), ylim=(low[1] - room, high[1] + room),
        aspect="equal", xticks=[], yticks=[],
    )  # fmt: skip
    axes.grid(False)
    axes.spines[:].set(visible=True, color=PALE)
    return xy


def draw_edges(axes: Any, xy: np.ndarray, edges: Edges, **style: Any) -> None:
    from matplotlib.collections import LineCollection

    lines = [xy[list(edge)] for edge in sorted(edges)]
    axes.add_collection(LineCollection(lines, capstyle="round", **style))

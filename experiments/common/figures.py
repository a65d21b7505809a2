"""What the figures share: their look, axes in percent, bands, labels at the ends of curves, files.

Figures are drawn at the width they are printed in, so that text has the size that it says: COLUMN
for half a page with its margin, WIDTH for a whole line of the paper. Matplotlib is used without
pyplot: no global figure, no display. Files carry no dates, and equal data give equal files. Only
fonts that come with matplotlib are used, for the same reason.

Who has which colour is said in `contenders`, once for all figures.
"""

import csv
import io
import math
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from spo_jax.envs.problem import Instance, Solution
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.tsp.picture import places
from spo_jax.envs.report.intervals import mean_interval
from spo_jax.envs.specs import cache_folder, own_references, with_references
from spo_jax.envs.textfiles import write_atomically
from spo_jax.errors import InputError

WIDTH, COLUMN = 5.5, 3.5  # inches
SLIM = 0.8  # of a contender's line width, where the figure is a column wide
INK, MUTED, PALE, GRID = "#1F2933", "#5F6B76", "#C9D1D8", "#E4E8EB"
MINUS = "\u2212"
SAVED = ".png", ".pdf"

_LOOK: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 7.5,
    "axes.titlesize": 8.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 5.0,
    "axes.labelsize": 7.5,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": GRID,
    "grid.linewidth": 0.5,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "legend.frameon": False,
    "legend.fontsize": 7.0,
    "lines.solid_capstyle": "round",
    "lines.solid_joinstyle": "round",
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "pdf.fonttype": 42,  # text stays text
    "figure.constrained_layout.h_pad": 0.03,
    "figure.constrained_layout.w_pad": 0.03,
}


@contextmanager
def look() -> Iterator[None]:
    """The style of all figures; to be held while one is drawn and saved."""
    import matplotlib

    with matplotlib.rc_context(cast(Any, _LOOK)):
        yield


def new(
    width: float,
    height: float,
    rows: int = 1,
    columns: int = 1,
    layout: Literal["constrained", "compressed"] = "constrained",
    **more: Any,
) -> Any:
    """An empty figure of so many inches and its axes [rows, columns]; "compressed" is for maps.

    more: arguments of `Figure.subplots`.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **more)


def save(figure: Any, stem: str | Path) -> list[Path]:
    """Write STEM.png and STEM.pdf. Raises InputError where they cannot be written."""
    written = []
    for suffix in SAVED:
        path = Path(f"{stem}{suffix}")
        undated = {"Software": None} if suffix == ".png" else {"CreationDate": None}
        buffer = io.BytesIO()
        figure.savefig(buffer, format=suffix[1:], dpi=300, metadata=undated)
        write_atomically(path, buffer.getvalue())
        written.append(path)
    return written


def write_csv(path: Path, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> Path:
    """Write the numbers behind a figure; what is missing is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([["" if _missing(value) else value for value in row] for row in rows])
    write_atomically(path, text.getvalue().encode("utf-8"))
    return path


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def publish(figure: Any, stem: Path, caption: str, rows: Sequence[Path] = ()) -> None:
    """Write a figure and its caption, STEM.txt, and print both the caption and what was written.

    rows: CSV files that were written for it.
    """
    files = save(figure, stem)
    note = Path(f"{stem}.txt")
    write_atomically(note, (caption + "\n").encode("utf-8"))
    print("\n" + textwrap.fill(caption, 100))
    print("written: " + ", ".join(map(str, (*files, *rows, note))))


def count(number: int, what: str) -> str:
    """A number of things in words: 1 run, 2 runs."""
    return f"{number} {what}" + ("" if number == 1 else "s")


# --- axes -----------------------------------------------------------------------------------------


def number(value: float, _: Any = None) -> str:
    """A tick in plain digits, with a true minus: 0.05, 0.2, 10, 400."""
    text = f"{value:.10f}".rstrip("0").rstrip(".") if abs(value) < 1 else f"{value:g}"
    return text.replace("-", MINUS)


def plain_axis(axis: Any, ticks: int = 6, whole: bool = False) -> None:
    """A linear axis with about so many ticks in plain numbers; whole: integers alone."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    steps = [1, 2, 5, 10]
    axis.set_major_locator(MaxNLocator(nbins=ticks, steps=steps, integer=whole, min_n_ticks=2))
    axis.set_major_formatter(FuncFormatter(number))


def log_axis(axes: Any, which: str, steps: Sequence[float] = (1, 2, 5)) -> None:
    """Make the "x" or "y" axis logarithmic, with plain numbers at `steps` times powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(LogLocator(subs=steps, numticks=12))
    axis.set_major_formatter(FuncFormatter(number))
    axis.set_minor_locator(LogLocator(subs=range(1, 10), numticks=12))
    axis.set_minor_formatter(NullFormatter())


def above_zero(values: np.ndarray) -> np.ndarray:
    """The values that a logarithmic axis has room for; NaN for the others."""
    return np.where(values > 0, values, math.nan)


def below(labels: Sequence[str]) -> str:
    """What a caption says of the curves that end where a logarithmic axis has no room."""
    return f"Not above 0 at the end, where a logarithmic axis shows nothing: {', '.join(labels)}."


def end_labels(axes: Any, ends: Sequence[tuple[str, float, str]], size: float = 7.0) -> None:
    """Names beside the right ends of curves, moved apart where they would touch.

    ends: (label, height in the units of the y axis, colour). Call it when the limits are set.
    """
    figure = axes.figure
    figure.canvas.draw()  # lays the axes out
    high = axes.get_window_extent().height * 72 / figure.dpi  # points
    to_axes = axes.transData + axes.transAxes.inverted()
    found = [float(to_axes.transform((1, y))[1]) * high for _, y, _ in ends]
    for (label, _, colour), y, placed in zip(ends, found, spread(found, 1.15 * size), strict=True):
        leader = {"arrowstyle": "-", "color": colour, "linewidth": 0.5, "relpos": (0, 0.5)}
        axes.annotate(
            label, (1, y / high), xytext=(11, placed - y), xycoords="axes fraction",
            textcoords="offset points", color=readable(colour), fontsize=size, va="center",
            annotation_clip=False, arrowprops={**leader, "shrinkA": 0.5, "shrinkB": 0},
        )  # fmt: skip


def readable(colour: str, contrast: float = 3.0) -> tuple[float, float, float]:
    """`colour`, darkened until text in it has this contrast to white (as WCAG 2 defines it)."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    while 1.05 / (0.05 + luminance(red, green, blue)) < contrast:
        red, green, blue = 0.96 * red, 0.96 * green, 0.96 * blue
    return red, green, blue


def luminance(*channels: float) -> float:
    """The relative luminance of an sRGB colour, from 0 to 1, as WCAG 2 defines it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def spread(heights: Sequence[float], apart: float) -> list[float]:
    """Heights in the same order, moved as little as needed to be `apart` from one another.

    Least squares: neighbours that are too close become a block around its own mean.
    """
    order = sorted(range(len(heights)), key=lambda k: (heights[k], k))
    blocks: list[tuple[float, list[int]]] = []  # (middle of the block, its members)
    for k in order:
        blocks.append((heights[k], [k]))
        while len(blocks) > 1:
            (below, low), (above, up) = blocks[-2:]
            if above - below >= apart * (len(low) + len(up)) / 2:
                break
            merged = low + up
            # The mean of what each member wants the middle to be.
            middle = sum(
                heights[m] - apart * (i - (len(merged) - 1) / 2) for i, m in enumerate(merged)
            ) / len(merged)
            blocks[-2:] = [(middle, merged)]
    placed = [0.0] * len(heights)
    for middle, members in blocks:
        for i, m in enumerate(members):
            placed[m] = middle + apart * (i - (len(members) - 1) / 2)
    return placed


# --- intervals ------------------------------------------------------------------------------------


def interval(values: np.ndarray) -> tuple[int, float, float, float]:
    """How many of `values` there are, their mean, and its 95% interval; NaN for what lacks."""
    known = values[np.isfinite(values)]
    if not known.size:
        return 0, math.nan, math.nan, math.nan
    low, high = math.nan, math.nan
    if known.size > 1:
        low, high = mean_interval(known)
    return known.size, float(known.mean()), low, high


def milestones(steps: int, points: int = 40) -> np.ndarray:
    """[K] int64: about so many steps from 1 to `steps`, evenly spaced on a logarithmic axis."""
    spaced = np.geomspace(1, steps, points) if steps > 1 else np.ones(1)
    return np.unique(np.rint(spaced).astype(np.int64))


def referenced(instances: list[Instance], effort: str, own: str | None) -> list[Instance]:
    """The instances with references as `spo evaluate` finds them.

    effort: of the solvers, where none of that effort ship. own: a file of better references.
    """
    better = None if own is None else own_references(own)
    problem = get_problem(instances[0].problem)
    return with_references(
        problem, instances, cache_folder(), lambda done, total: None, effort, better
    )


def require_references(instances: Sequence[Instance]) -> None:
    """Raises InputError for an instance without a reference cost, with which it has no gap."""
    for instance in instances:
        if instance.reference is None:
            raise InputError(
                f"{instance.name} has no reference, so there is no gap to draw "
                f"({instance.reference_source})"
            )


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
    axes.set_xlim(low[0] - room, high[0] + room)
    axes.set_ylim(low[1] - room, high[1] + room)
    axes.set_aspect("equal")
    axes.grid(False)
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(True)
        side.set_color(PALE)
    return xy


def draw_edges(axes: Any, xy: np.ndarray, edges: Edges, **style: Any) -> None:
    from matplotlib.collections import LineCollection

    lines = [xy[list(edge)] for edge in sorted(edges)]
    axes.add_collection(LineCollection(lines, capstyle="round", **style))

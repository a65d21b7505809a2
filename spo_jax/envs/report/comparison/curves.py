"""The picture of a comparison: the mean gap by second, on a logarithmic axis of time."""

import math
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from spo_jax.envs.report.compare import Comparison
from spo_jax.envs.report.comparison.methods import Method
from spo_jax.envs.report.plot import COLOURS, INK, save_figure

METHOD_COLUMNS = ("instance", "method", "seed", "second", "cost", "gap")
LINES = ("-", "--", ":")
FIRST = 1e-2  # second: where the axis begins at the earliest
NEAR = 0.1  # percent: the gaps' axis is linear below


def points(found: Comparison) -> Iterator[tuple[Any, ...]]:
    """A row of METHOD_COLUMNS for each improvement of each attempt."""
    for each in found.attempts:
        instance = found.instance_of(each)
        for second, cost in each.found.curve:
            gap = found.gap(instance, cost)
            yield instance.name, each.method.name, each.seed, second, cost, gap


def curve(found: Comparison, method: Method) -> tuple[np.ndarray, np.ndarray]:
    """Seconds [K] and the mean gap in percent [K] from each of them on.

    The mean is over instances, of each the mean over seeds; it begins when all have a solution.
    Failed attempts are left out, as instances are without a reference.
    """
    by_instance: list[list[tuple[list[float], list[float]]]] = []
    for instance in found.instances:
        runs = []
        for each in found.of(method, instance):
            gaps = [found.gap(instance, cost) for _, cost in each.found.curve]
            if each.ok and None not in gaps:
                runs.append(([second for second, _ in each.found.curve], gaps))
        if runs:
            by_instance.append(runs)  # type: ignore[arg-type]
    if not by_instance:
        return np.empty(0), np.empty(0)
    begin = max(seconds[0] for runs in by_instance for seconds, _ in runs)
    every = {second for runs in by_instance for seconds, _ in runs for second in seconds}
    times = sorted(second for second in every if second >= begin)
    means = [
        math.fsum(
            math.fsum(gaps[bisect_right(seconds, now) - 1] for seconds, gaps in runs) / len(runs)
            for runs in by_instance
        )
        / len(by_instance)
        for now in times
    ]
    return np.array(times), np.array(means)


def plot_curves(found: Comparison, path: str | Path) -> bool:
    """Draw the curves into a PNG, SVG or PDF, by the suffix of `path`; False if there are none.

    A method that tells of no better solutions on its way is a point, with a thin line from it on.
    Raises InputError for a file that cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    drawn = [(method, *curve(found, method)) for method in found.ranked()]
    drawn = [each for each in drawn if len(each[1])]
    if not drawn:
        return False
    figure = Figure(figsize=(8.0, 4.6), facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    end = max(found.seconds, *(float(times[-1]) for _, times, _ in drawn))
    for k, (method, times, gaps) in enumerate(drawn):
        style: Any = {"color": COLOURS[k % len(COLOURS)], "linestyle": LINES[k // len(COLOURS) % 3]}
        times = np.maximum(times, FIRST)
        alone = len(times) == 1
        axes.plot(times[:1], gaps[:1], marker="o", markersize=5 if alone else 3.5,
                  color=style["color"], linestyle="none")  # fmt: skip
        width = 0.8 if alone else 1.6
        label = f"{method.name}  {gaps[-1]:.2f}"
        axes.plot(
            [*times, 1.05 * end],
            [*gaps, gaps[-1]],
            drawstyle="steps-post",
            linewidth=width,
            label=label,
            **style,
        )
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=NEAR, linscale=0.4)
    low = min(-NEAR / 5, *(1.2 * float(gaps.min()) for *_, gaps in drawn))
    axes.set_ylim(low, 1.3 * max(NEAR, *(float(gaps.max()) for *_, gaps in drawn)))
    axes.set_xlim(max(FIRST, 0.8 * min(float(times[0]) for _, times, _ in drawn)), 1.05 * end)
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(plain)
        axis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 3), numticks=12))
    axes.grid(color=INK, alpha=0.12, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    many = len(found.instances) > 1
    axes.set_xlabel("seconds of wall-clock time", color=INK)
    axes.set_ylabel("mean gap (%)" if many or found.seeds > 1 else "gap (%)", color=INK)
    what = f"{len(found.instances)} instances" if many else found.instances[0].name
    cores = "1 core" if found.workers == 1 else f"{found.workers} cores"
    axes.set_title(f"{what}, {found.seconds:g} s, {cores}", loc="left", fontsize=10, color=INK,
                   parse_math=False)  # fmt: skip
    legend = figure.legend(loc="outside right upper", frameon=False, fontsize=9,
                           title="gap at the end")  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)
    save_figure(figure, path)
    return True

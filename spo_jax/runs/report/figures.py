"""Still pictures as inline SVG, drawn by matplotlib without pyplot.

What is drawn in INK takes the colour of the page's text, so that one picture serves a light and a
dark page. Colours are those of Okabe and Ito, which colour-blind people tell apart. The same input
gives the same text.
"""

import io
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from spo_jax.envs.report.plot import COLOURS, INK

BINS = 16  # of the scale of values
_WIDTH, _HEIGHT = 5.4, 2.5  # inches
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "spo",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "text.parse_math": False,
}
Series = tuple[str, np.ndarray]
_DRAWING = threading.Lock()  # matplotlib's settings belong to the process


class Figures:
    """Makes the pictures of one page; their ids differ, since one document holds them all."""

    def __init__(self) -> None:
        self._numbers = count()

    def lines(
        self,
        rounds: np.ndarray,
        series: Sequence[Series],
        about: str,
        *,
        percent: bool = False,
        band: tuple[np.ndarray, np.ndarray] | None = None,
        level: Series | None = None,
        along: str = "round",
        log: bool = False,
    ) -> Markup:
        """Lines [K] over rounds [K]. band: low and high [K]. level: a dashed line. log: on a
        logarithmic scale of `rounds`. about: in words, for screen readers.
        """

        def draw(axes: Any) -> None:
            if band is not None:
                axes.fill_between(rounds, *band, color=COLOURS[0], alpha=0.18, linewidth=0)
            mark = {"marker": "o", "markersize": 3} if len(rounds) <= 40 else {}
            for k, (label, values) in enumerate(series):
                colour = COLOURS[k % len(COLOURS)]
                axes.plot(rounds, values, label=label, color=colour, linewidth=1.6, **mark)
            if level is not None:
                label, value = level
                axes.axhline(float(value), color=INK, linewidth=1, linestyle="--", label=label)
            if percent:
                axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
                axes.set_ylim(-0.02, 1.04)
            else:  # no factor or offset above the axis
                axes.yaxis.set_major_formatter(lambda value, _: f"{value:.5g}".replace("-", "−"))
            axes.set_xlabel(along)
            if log:
                axes.set_xscale("log")
                axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            if len(series) + (level is not None) > 1:
                axes.legend(
                    loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=4, columnspacing=1.2
                )

        return self.chart(draw, about, whole=along == "round")

    def bars(
        self, rounds: np.ndarray, parts: Mapping[str, np.ndarray], about: str, unit: str
    ) -> Markup:
        """Bars [K] of parts on top of each other, those of a part in one outline."""

        def draw(axes: Any) -> None:
            below = np.zeros(len(rounds))
            edges = np.append(rounds, rounds[-1] + 1) - 0.5
            for k, (label, values) in enumerate(parts.items()):
                filled = np.nan_to_num(values)
                colour = COLOURS[k % len(COLOURS)]
                axes.stairs(
                    below + filled, edges, baseline=below, fill=True, label=label, color=colour,
                    linewidth=0,
                )  # fmt: skip
                below = below + filled
            axes.set_xlabel("round")
            axes.set_ylabel(unit)
            axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.02))

        return self.chart(draw, about, counts=unit not in ("seconds", "cost"))

    def chart(
        self, draw: Callable[[Any], None], about: str, whole: bool = True, counts: bool = False
    ) -> Markup:
        """What `draw` puts on axes with a grid. whole, counts: across and upwards only integers."""
        import matplotlib
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator

        with _DRAWING, matplotlib.rc_context(_STYLE):
            figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="tight")
            axes = figure.add_subplot()
            axes.grid(axis="y", color=INK, alpha=0.12, linewidth=0.6)
            axes.set_axisbelow(True)
            draw(axes)
            axes.yaxis.set_major_locator(MaxNLocator(5, integer=counts))
            if whole:
                axes.xaxis.set_major_locator(MaxNLocator(10, integer=True))
            return self._svg(figure, about)

    def map(self, draw: Callable[[Any], None], about: str, inches: float = 3.4) -> Markup:
        """What `draw` puts on axes without frame or ticks."""
        import matplotlib
        from matplotlib.figure import Figure

        with _DRAWING, matplotlib.rc_context(_STYLE):
            figure = Figure(figsize=(inches, inches))
            axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
            draw(axes)
            if axes.get_aspect() == 1.0:
                axes.set_axis_off()
                axes.margins(0.04)
            else:
                axes.set_position((0.12, 0.1, 0.85, 0.85))
            return self._svg(figure, about)

    def _svg(self, figure: Any, about: str) -> Markup:
        from matplotlib.backends.backend_svg import FigureCanvasSVG

        FigureCanvasSVG(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
        text = buffer.getvalue()
        text = text[text.index("<svg") :]
        # A style sheet and a licence for each picture would apply to the whole page.
        text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
        text = re.sub(r"\s*<style.*?</style>", "", text, flags=re.DOTALL)
        text = re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL)
        mine = f"f{next(self._numbers)}-"
        text = re.sub(r'( id="|url\(#|href="#)', rf"\1{mine}", text)
        text = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font: \1 system-ui, sans-serif", text)
        text = text.replace(INK, "currentColor")
        text = re.sub(r'(<svg [^>]*?) width="[^"]*"', r"\1", text, count=1)
        text = re.sub(r'(<svg [^>]*?) height="[^"]*"', r"\1", text, count=1)
        text = re.sub(r">\s+<", "><", text)
        label = f'<svg class="plot" role="img" aria-label="{escape(about)}" '
        return Markup(text.replace("<svg ", label, 1).strip())


class Scale:
    """Values as one of BINS colours, dark for low and light for high.

    It spans the tenth percentile of the values to the highest: on small instances the good pairs
    differ in the fourth digit, and a few bad ones would take all the colours.
    """

    def __init__(self, values: np.ndarray):
        known = values[np.isfinite(values)]
        self.low, self.high = (
            (float(np.quantile(known, 0.1)), float(known.max())) if len(known) else (0.0, 1.0)
        )

    def bin(self, value: float) -> int:
        """From 0 to BINS - 1, and -1 for NaN."""
        if not np.isfinite(value):
            return -1
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 1.0
        return int(min(max(share, 0.0), 1.0) * (BINS - 1) + 0.5)


def colours() -> list[tuple[str, str]]:
    """[BINS] the background and the text of each bin."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    found = []
    for k in range(BINS):
        red, green, blue, _ = colormaps["viridis"](k / (BINS - 1))
        light = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2
        found.append((to_hex((red, green, blue)), "#000000" if light > 0.18 else "#ffffff"))
    return found

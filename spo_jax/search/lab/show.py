"""The laboratory's tables, its CSV files and its picture."""

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from spo_jax.envs.files import textfiles
from spo_jax.search.lab.estimators import MEASURES
from spo_jax.search.lab.measured.shares import Shares
from spo_jax.search.lab.power import holm
from spo_jax.search.lab.schemes import Scheme
from spo_jax.search.lab.study import LEARNED, Row

LETTERS = {
    "shared": "s", "max": "m", "max-at-k": "k", "rank": "r", "gap": "g", "entropic": "e",
    "counterfactual": "c", "two-way": "t", "shapley": "v",
}  # fmt: skip
LEVEL = 0.05  # of a test
SHOWN = 0.01  # the least lead in rank correlation that has a letter
INK = "#1F2933"
STYLE: dict[Any, Any] = {
    "font.size": 7.5, "axes.titlesize": 8.0, "axes.titleweight": "bold", "axes.labelsize": 7.5,
    "axes.titlelocation": "left", "axes.linewidth": 0.6, "text.color": INK,
    "axes.labelcolor": INK, "axes.spines.top": False, "axes.spines.right": False,
    "xtick.labelsize": 7.0, "ytick.labelsize": 7.0, "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
}  # fmt: skip


def csv_text(rows: Sequence[Row]) -> str:
    """Rows as CSV; what is missing is an empty cell."""
    where = list(rows[0].where) if rows else []
    columns = [*where, "scheme", "measure", "mean", "low", "high", "difference", "from", "to",
               "p", "needed"]  # fmt: skip
    lines = []
    for row in rows:
        numbers = (
            row.mean,
            row.low,
            row.high,
            row.difference,
            row.start,
            row.end,
            row.p,
            row.needed,
        )
        cells = ["" if math.isnan(value) else repr(float(value)) for value in numbers]
        lines.append([*row.where.values(), row.scheme, row.measure, *cells])
    return textfiles.csv_text(columns, lines)


def tables(
    estimated: Sequence[Row], learned: Sequence[Row], schemes: Sequence[Scheme], exclude: float
) -> str:
    """What policies learn, then how credits estimate, as Markdown, and a verdict on each.

    exclude: the size of a difference that is to be excluded, in the unit of each table.
    """
    first, by_label = schemes[0].label, {scheme.label: scheme for scheme in schemes}
    heads = ["world", "pairs per leader", "scheme", "responses", *MEASURES.values(),
             f"regret - {first}", "worlds"]  # fmt: skip
    rows = []
    regrets = significant(estimated, "regret")
    for (world, pairs, scheme), own in _grouped(estimated, "world", "pairs").items():
        count = by_label[scheme].responses(pairs)
        cells = [cell(own[each]) for each in MEASURES]
        difference = lead(own["regret"], own["regret"] in regrets)
        rows.append([world, str(pairs), scheme, str(count), *cells, *difference])
    by_advantage: dict[str, list[Row]] = {}
    for row in learned:
        by_advantage.setdefault(row.where["advantage"], []).append(row)
    gains = [row for own in by_advantage.values() for row in significant(own, "pair")]
    names = ["world", "advantage", "scheme", *LEARNED.values(), f"pair - {first}", "runs"]
    own_rows = [
        [world, advantage, scheme, *(cell(own[each]) for each in LEARNED),
         *lead(own["pair"], own["pair"] in gains)]
        for (world, advantage, scheme), own in _grouped(learned, "world", "advantage").items()
    ]  # fmt: skip
    judged = "\n".join(
        f"With {advantage} advantages:\n\n{verdicts(own, 'pair', gains, True, exclude)}"
        for advantage, own in by_advantage.items()
    )
    starred = "* apart by a paired t test, corrected by Holm over the table"
    return (
        f"What policies learn (0: uniform, 1: the best pair); {starred}, by advantage\n\n"
        f"{markdown(names, own_rows)}\n\n{judged}\n"
        f"How well credits tell good leaders from bad ones; {starred}\n\n"
        f"{markdown(heads, rows)}\n\n{verdicts(estimated, 'regret', regrets, False, exclude)}"
    )


def significant(rows: Sequence[Row], measure: str) -> list[Row]:
    """Rows of a measure that differ from the first scheme, corrected by Holm over all of them."""
    tested = [row for row in rows if row.measure == measure]
    adjusted = holm([row.p for row in tested])
    return [row for row, p in zip(tested, adjusted, strict=True) if p < LEVEL]


def verdicts(
    rows: Sequence[Row], measure: str, apart: Sequence[Row], more_is_better: bool, exclude: float
) -> str:
    """One line per scheme: in how many cells it is better, worse, and where what is excluded.

    apart: as `significant` says.
    """
    lines = []
    tested = [row for row in rows if row.measure == measure and math.isfinite(row.difference)]
    for scheme in dict.fromkeys(row.scheme for row in tested):
        own = [row for row in tested if row.scheme == scheme]
        ahead = [row for row in own if row in apart and (row.difference > 0) == more_is_better]
        behind = sum(row in apart for row in own) - len(ahead)
        within = sum(-exclude < row.start and row.end < exclude for row in own)
        largest = max(max(abs(row.start), abs(row.end)) for row in own)
        lines.append([
            scheme, str(len(own)), str(len(ahead)), str(behind), str(within), f"{largest:.3f}",
        ])  # fmt: skip
    heads = ["scheme", "cells", "better", "worse", f"differences above {exclude:g} excluded in",
             "differences excluded in all: above"]  # fmt: skip
    return f"{markdown(heads, lines)}\n"


def _grouped(rows: Iterable[Row], *by: str) -> dict[tuple[Any, ...], dict[str, Row]]:
    """By what `where` names and the scheme: the rows by measure."""
    found: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in rows:
        key = (*(row.where[name] for name in by), row.scheme)
        found.setdefault(key, {})[row.measure] = row
    return found


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cell(row: Row) -> str:
    if not math.isfinite(row.mean):
        return "none"
    return f"{row.mean:.2f} ({row.low:.2f} to {row.high:.2f})"


def lead(row: Row, apart: bool = False) -> list[str]:
    """The difference to the first scheme, and how many worlds or runs would show it."""
    if not math.isfinite(row.difference):
        return ["", ""]
    if row.difference == row.start == row.end == 0:
        return ["the same", ""]
    many = f"{row.needed:,.0f}" if math.isfinite(row.needed) else "none would do"
    star = "*" * apart
    return [f"{row.difference:+.3f}{star} ({row.start:+.3f} to {row.end:+.3f})", many]


def draw_map(
    cells: Sequence[Row], schemes: Sequence[Scheme], marks: Mapping[str, Shares] | None = None
) -> bytes:
    """A PNG: panels by spread and pairs per leader, of cells by gamma and noise.

    The colour is the first scheme's lead over the second in rank correlation. A letter is the
    scheme with the highest one, where it leads the first by SHOWN, and with 95% confidence. marks:
    measured tables, each a point in the row of the nearest spread.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    first, other = schemes[0].label, schemes[min(1, len(schemes) - 1)].label
    letters = letters_of(list(dict.fromkeys(row.scheme for row in cells)))
    spreads, counts, gammas, noises = (
        list(dict.fromkeys(row.where[name] for row in cells))
        for name in ("spread", "pairs", "gamma", "noise")
    )
    known: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in cells:
        known.setdefault(tuple(row.where.values()), {})[row.scheme] = row
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 1.1 + 1.55 * len(spreads)), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(len(spreads), len(counts), sharex=True, sharey=True, squeeze=False)
        for (i, j), axes in np.ndenumerate(panels):
            grid = np.zeros((len(noises), len(gammas)))
            for (y, noise), (x, gamma) in (
                (a, b) for a in enumerate(noises) for b in enumerate(gammas)
            ):
                own = known[spreads[i], gamma, noise, counts[j]]
                grid[y, x] = -own[other].difference if other != first else 0.0
                if letter := _letter(own, first, letters):
                    colour = "white" if abs(grid[y, x]) > 0.3 else INK
                    axes.text(x, y, letter, ha="center", va="center", fontsize=7, color=colour)
            image = axes.imshow(
                grid, cmap="RdBu", vmin=-0.5, vmax=0.5, origin="lower", aspect="auto"
            )
            for k, (name, each) in enumerate((marks or {}).items()):
                if min(spreads, key=lambda value: abs(value - each.spread)) == spreads[i]:
                    at = (
                        float(np.interp(each.gamma, gammas, range(len(gammas)))),
                        float(np.interp(each.noise_in_leaders, noises, range(len(noises)))),
                    )
                    axes.plot(*at, "o", color="white", markeredgecolor=INK, markersize=5)
                    axes.annotate(
                        name, at, (0, -11 if k % 2 else 5),  # above and below: points may be close
                        textcoords="offset points", fontsize=6.5, ha="center",
                        bbox={"fc": "white", "ec": "none", "alpha": 0.8, "pad": 0.4},
                    )  # fmt: skip
            axes.set_xticks(range(len(gammas)), [f"{value:g}" for value in gammas])
            axes.set_yticks(range(len(noises)), [f"{value:g}" for value in noises])
            if i == 0:
                axes.set_title(f"{counts[j]} pairs per leader")
            if j == 0:
                kind = "alike" if not spreads[i] else "differ"
                axes.set_ylabel(f"spread {spreads[i]:g}: leaders {kind}\nnoise")
            if i == len(spreads) - 1:
                axes.set_xlabel("interaction γ")
        bar = figure.colorbar(image, ax=panels, fraction=0.03, extend="both")
        bar.set_label(f"rank correlation with the truth:\n{first} - {other}")
        names = [f"{letter} {name}" for name, letter in letters.items() if name != first]
        lines = [", ".join(names[k : k + 9]) for k in range(0, len(names), 9)]
        title = f"Blue: {first} tells good leaders from bad ones better than {other}. Red: worse."
        caption = f"A letter: the best scheme, where it leads {first} by {SHOWN:g} or more:"
        figure.suptitle("\n".join([title, caption, *lines]), fontsize=8)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=200, metadata={"Software": None})
    return buffer.getvalue()


def _letter(own: Mapping[str, Row], first: str, letters: Mapping[str, str]) -> str:
    best = max(own.values(), key=lambda row: row.mean)
    ahead = best.scheme != first and best.start > 0 and best.difference >= SHOWN
    return letters[best.scheme] if ahead else ""


def letters_of(labels: Sequence[str]) -> dict[str, str]:
    """A letter, or for other schemes a number, of each."""
    others = [label for label in labels if label not in LETTERS]
    return {label: LETTERS.get(label) or str(others.index(label)) for label in labels}

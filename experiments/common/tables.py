"""Tables as the paper has them: column groups, families of rows, the best of a column in bold.

A table is data first; `write` puts it into a CSV file (long: one line a cell), a Markdown file and
a LaTeX file (booktabs). Intervals are over instances, see `cell`. The paper's own rows
can stand beneath ours; they are marked, and the bold is among ours alone. A cell with failed
rollouts says so, and is never the best: its mean is over other rollouts than its neighbours'.
"""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from common.budgets import Group

from spo_jax.envs.report.intervals import mean_interval
from spo_jax.envs.textfiles import write_atomically

OURS, PAPER = "ours", "paper"
FAILED = "†"
FORMATS = {".csv": "csv", ".md": "markdown", ".tex": "latex"}


@dataclass(frozen=True)
class Cell:
    """A mean over `count` instances with its interval; NaN for what there is not.

    failed: rollouts that are in no mean.
    """

    mean: float = math.nan
    low: float = math.nan
    high: float = math.nan
    count: int = 0
    failed: int = 0

    @property
    def known(self) -> bool:
        return math.isfinite(self.mean)


@dataclass(frozen=True)
class Column:
    """key: in files. label: heading; block: the heading over it and its neighbours."""

    key: str
    label: str
    block: str = ""

    @property
    def heading(self) -> str:
        """Both in one, where headings have one line."""
        return f"{self.block.split()[0]} {self.label}" if self.block else self.label


@dataclass(frozen=True)
class Row:
    """Cells by column key. Rows of one family stand together; source: OURS or PAPER."""

    label: str
    family: str
    cells: Mapping[str, Cell]
    source: str = OURS


@dataclass(frozen=True)
class Table:
    """caption, notes: sentences. corner: heading of the labels. digits: after the point."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    corner: str = "Method"
    digits: int = 3

    def best(self, column: str) -> float:
        """The lowest mean of a column as it is printed, among ours without failures, or NaN."""
        cells = [row.cells.get(column, Cell()) for row in self.rows if row.source == OURS]
        means = [round(c.mean, self.digits) for c in cells if c.known and not c.failed]
        return min(means, default=math.nan)

    def is_best(self, row: Row, column: str) -> bool:
        """Whether a cell is the best of its column; several may be, where they print alike."""
        cell = row.cells.get(column, Cell())
        if row.source != OURS or not cell.known or cell.failed:
            return False
        return round(cell.mean, self.digits) == self.best(column)


def cell(values: Iterable[float], failed: int = 0) -> Cell:
    """The mean of a group's instances with a 95% interval over them (`mean_interval`).

    values: one an instance, NaN for one without any; those are in no mean. No interval for fewer
    than two.
    """
    known = np.array([value for value in values if math.isfinite(value)], dtype=float)
    if not known.size:
        return Cell(failed=failed)
    low, high = mean_interval(known) if known.size > 1 else (math.nan, math.nan)
    return Cell(float(known.mean()), low, high, known.size, failed)


def columns_of(groups: Sequence[Group]) -> list[Column]:
    return [Column(group.key, group.label, group.block) for group in groups]


def with_paper(table: Table, values: Mapping[str, Mapping[str, float]]) -> Table:
    """The table with the paper's row beneath each of ours that the paper has, by its label."""
    rows: list[Row] = []
    for row in table.rows:
        rows.append(row)
        if row.label in values:
            theirs = {key: Cell(mean=mean) for key, mean in values[row.label].items()}
            rows.append(Row(f"{row.label} (paper)", row.family, theirs, PAPER))
    return replace(table, rows=rows)


def write(table: Table, stem: str | Path, *, intervals: bool = True) -> list[Path]:
    """STEM.csv, .md and .tex. intervals: in the last two; the first always has them."""
    texts = {
        ".csv": csv_text(table),
        ".md": markdown(table, intervals=intervals),
        ".tex": latex(table, intervals=intervals),
    }
    paths = []
    for suffix, text in texts.items():
        paths.append(Path(f"{stem}{suffix}"))
        paths[-1].parent.mkdir(parents=True, exist_ok=True)
        write_atomically(paths[-1], text)
    return paths


# --- formats --------------------------------------------------------------------------------------


def csv_text(table: Table) -> str:
    """One line a cell, numbers in full; what is missing is empty."""
    head = ("row", "family", "source", "column", "mean", "low", "high", "instances", "failed")
    rows = []
    for row in table.rows:
        for column in table.columns:
            c = row.cells.get(column.key, Cell())
            counts = ("", "") if row.source == PAPER else (c.count, c.failed)
            told = (row.label, row.family, row.source, column.key, c.mean, c.low, c.high, *counts)
            rows.append(told)
    return lines_of(head, rows)


def lines_of(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """CSV; NaN is empty."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        writer.writerow(["" if isinstance(v, float) and math.isnan(v) else v for v in row])
    return file.getvalue()


def markdown(table: Table, *, intervals: bool = True) -> str:
    """A heading, the table, its caption and its notes."""
    heads = [table.corner, *(column.heading for column in table.columns)]
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * len(table.columns)]
    for row in table.rows:
        label = f"*{row.label}*" if row.source == PAPER else row.label
        cells = [label]
        for column in table.columns:
            c = row.cells.get(column.key, Cell())
            text = _number(c.mean, table.digits) or "–"
            if table.is_best(row, column.key):
                text = f"**{text}**"
            if row.source == PAPER and c.known:
                text = f"*{text}*"
            text += FAILED if c.failed else ""
            if intervals and math.isfinite(c.low):
                text += f" ({_number(c.low, table.digits)} to {_number(c.high, table.digits)})"
            cells.append(text)
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", table.caption, *(f"\n- {note}" if k == 0 else f"- {note}"
                                   for k, note in enumerate(told_notes(table)))]  # fmt: skip
    return "\n".join(lines) + "\n"


def latex(table: Table, *, intervals: bool = True) -> str:
    """A table environment for booktabs; families between rules, blocks over their columns."""
    count = len(table.columns)
    lines = [
        r"\begin{table}[t]",
        rf"\caption{{{_tex(table.caption)}}}",
        r"\centering",
        r"\footnotesize",
        r"\setlength{\tabcolsep}{2.5pt}",
        rf"\begin{{tabular}}{{@{{}}l*{{{count}}}{{r}}@{{}}}}",
        r"\toprule",
    ]
    if any(column.block for column in table.columns):
        spans = _spans([column.block for column in table.columns])
        over = [rf"\multicolumn{{{last - first}}}{{c}}{{{_tex(b)}}}" for b, first, last in spans]
        lines.append(" & ".join(["", *over]) + r" \\")
        rules = [rf"\cmidrule(lr){{{first + 2}-{last + 1}}}" for b, first, last in spans if b]
        lines.append("".join(rules))
    labels = [_tex(column.label) for column in table.columns]
    lines += [" & ".join([_tex(table.corner), *labels]) + r" \\", r"\midrule"]
    family = table.rows[0].family if table.rows else ""
    for row in table.rows:
        if row.family != family:
            lines.append(r"\midrule")
            family = row.family
        lines += _latex_row(table, row, intervals)
    lines += [r"\bottomrule", r"\end{tabular}"]
    for note in told_notes(table):
        lines.append(rf"\par\vspace{{2pt}}\parbox{{\linewidth}}{{\scriptsize {_tex(note)}}}")
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _latex_row(table: Table, row: Row, intervals: bool) -> list[str]:
    cells, below = [], []
    for column in table.columns:
        c = row.cells.get(column.key, Cell())
        text = _number(c.mean, table.digits) or "--"
        if table.is_best(row, column.key):
            text = rf"\textbf{{{text}}}"
        if row.source == PAPER and c.known:
            text = rf"\textit{{{text}}}"
        cells.append(text + (r"$^\dagger$" if c.failed else ""))
        known = intervals and math.isfinite(c.low)
        bounds = f"{_number(c.low, table.digits)}, {_number(c.high, table.digits)}"
        below.append(rf"{{\tiny ({bounds})}}" if known else "")
    label = _tex(row.label)
    label = rf"\textit{{{label}}}" if row.source == PAPER else label
    lines = [" & ".join([label, *cells]) + r" \\"]
    if any(below):
        lines.append(" & ".join(["", *below]) + r" \\")
    return lines


def told_notes(table: Table) -> list[str]:
    """The notes, and what the marks of failed rollouts mean where there are any."""
    failed = [
        f"{row.label} {column.heading} {row.cells[column.key].failed}"
        for row in table.rows
        for column in table.columns
        if column.key in row.cells and row.cells[column.key].failed
    ]
    if not failed:
        return list(table.notes)
    text = f"{FAILED} failed rollouts, which are in no mean: {', '.join(failed)}."
    return [*table.notes, text]


def _spans(blocks: Sequence[str]) -> list[tuple[str, int, int]]:
    """(block, first, last + 1) of equal neighbours."""
    found: list[tuple[str, int, int]] = []
    for k, block in enumerate(blocks):
        if found and found[-1][0] == block:
            found[-1] = (block, found[-1][1], k + 1)
        else:
            found.append((block, k, k + 1))
    return found


def _number(value: float, digits: int) -> str:
    """ "" for NaN; never -0.000."""
    return "" if math.isnan(value) else f"{round(value, digits) + 0.0:.{digits}f}"


_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_", "$": r"\$",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "–": "--", "<": "$<$", ">": "$>$", "≤": r"$\leq$", FAILED: r"$^\dagger$",
}  # fmt: skip


def _tex(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in text)

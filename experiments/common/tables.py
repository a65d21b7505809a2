"""Tables as in the paper: blocks of columns, families of rows, the best of a column in bold.

A table is a data frame with one line per cell; `write` makes a CSV file of it, a Markdown file and
a LaTeX file (booktabs). Intervals are over instances. The paper's own rows may stand below ours,
in italics, and bold is among ours alone. A cell with failed rollouts has a dagger and is never the
best: its mean is over other rollouts than its neighbours'.
"""

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from common.budgets import Group
from spo_jax.envs.files.textfiles import write_atomically
from spo_jax.envs.report.intervals import mean_interval

OURS, PAPER = "ours", "paper"
FAILED = "†"
CELL = ("row", "family", "source", "column", "mean", "low", "high", "instances", "failed")


def interval(values: Iterable[float]) -> tuple[int, float, float, float]:
    """How many finite values there are, their mean, and its 95% interval (`mean_interval`); NaN
    for the mean of none, and for the interval of fewer than two.
    """
    known = np.array([value for value in values if math.isfinite(value)])
    if not known.size:
        return 0, math.nan, math.nan, math.nan
    low, high = mean_interval(known) if known.size > 1 else (math.nan, math.nan)
    return known.size, float(known.mean()), low, high


def cell(row: str, family: str, column: str, values: Iterable[float], failed: int = 0) -> tuple:
    """One line of `Table.cells`. values: one per instance. failed: rollouts that are in no mean."""
    count, mean, low, high = interval(values)
    return row, family, OURS, column, mean, low, high, count, failed


@dataclass(frozen=True, eq=False)
class Table:
    """caption, notes: sentences. cells: columns CELL. corner: heading of the rows' labels."""

    caption: str
    columns: Sequence[Group]
    cells: pd.DataFrame
    notes: Sequence[str] = ()
    corner: str = "Method"

    @property
    def best(self) -> pd.Series:
        """Whether a cell is the lowest of its column as printed, of ours without failures."""
        candidate = (self.cells.source == OURS) & (self.cells.failed == 0)
        means = self.cells["mean"].round(3).where(candidate)
        return means.notna() & (means == means.groupby(self.cells.column).transform("min"))

    def texts(self, bold: str, italic: str, interval: str, dagger: str) -> pd.DataFrame:
        """Rows by columns of printed cells. bold, italic, interval: formats."""
        rows: dict[str, dict[str, str]] = {}
        for each, best in zip(self.cells.itertuples(), self.best, strict=True):
            mean: Any = each.mean
            text = f"{round(mean, 3) + 0.0:.3f}" if math.isfinite(mean) else "–"
            text = (bold if best else italic if each.source == PAPER else "{}").format(text)
            text += dagger if each.failed else ""
            if math.isfinite(each.low):
                text += interval.format(each.low, each.high)
            label = italic.format(each.row) if each.source == PAPER else each.row
            rows.setdefault(label, {})[each.column] = text
        keys = [column.key for column in self.columns]
        return pd.DataFrame.from_dict(rows, "index", columns=None)[keys]

    @property
    def all_notes(self) -> list[str]:
        failed = self.cells[self.cells.failed > 0]
        lost = [f"{each.row} {each.column} {each.failed:.0f}" for each in failed.itertuples()]
        return [*self.notes, *([f"{FAILED} failed rollouts: {', '.join(lost)}."] if lost else [])]

    def markdown(self) -> str:
        texts = self.texts("**{}**", "*{}*", " ({:.3f} to {:.3f})", FAILED)
        heads = [self.corner, *(column.heading for column in self.columns)]
        table = markdown(heads, texts.itertuples(name=None))
        return "\n".join([table, "", self.caption, "", *(f"- {n}" for n in self.all_notes)]) + "\n"

    def latex(self) -> str:
        texts = self.texts(
            r"\textbf{{{}}}", r"\textit{{{}}}", r" {{\tiny ({:.3f}, {:.3f})}}", FAILED
        )
        texts.columns = pd.MultiIndex.from_tuples([(c.block, c.label) for c in self.columns])
        lost = bool((self.cells.failed > 0).any())
        table = texts.to_latex(
            caption=self.caption.replace("%", r"\%") + f" {FAILED}: with failed rollouts." * lost,
            multicolumn_format="c",
            column_format="@{}l" + "r" * len(self.columns) + "@{}",
        )  # fmt: skip
        for text, command in ((FAILED, r"$^\dagger$"), ("–", "--"), (">", "$>$")):
            table = table.replace(text, command)
        return table.replace(r"\begin{tabular}", "\\footnotesize\n\\begin{tabular}")


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table whose first column is of text and all others of numbers."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def with_paper(table: Table, name: str, called: Mapping[str, str]) -> Table:
    """The table with the paper's row below each of ours that the paper has, by its label.

    called: the paper's label, by ours, where it is another.
    """
    values, parts = paper_values(name), []
    for label, own in table.cells.groupby("row", sort=False):
        parts.append(own)
        theirs_is = called.get(str(label), str(label))
        if theirs_is in values:
            theirs = own.assign(row=f"{theirs_is} (paper)", source=PAPER, failed=0)
            theirs["mean"] = theirs.column.map(values[theirs_is])
            parts.append(theirs.assign(low=math.nan, high=math.nan, instances=0))
    return replace(table, cells=pd.concat(parts, ignore_index=True))


def paper_values(name: str) -> Mapping[str, Mapping[str, float]]:
    """Mean gaps by method and column of the paper's "tsp", "cvrp" (Table 1) or "ablations"."""
    found = tomllib.loads(Path(__file__).with_name("paper_values.toml").read_text("utf-8"))[name]
    keys = found.pop("columns")
    return {label: dict(zip(keys, values, strict=True)) for label, values in found.items()}


def write(table: Table, stem: str) -> list[Path]:
    """STEM.csv, .md and .tex; prints the Markdown."""
    print("\n" + table.markdown())
    return [
        write_csv(f"{stem}.csv", table.cells),
        *(
            write_text(f"{stem}{s}", t)
            for s, t in ((".md", table.markdown()), (".tex", table.latex()))
        ),
    ]


def write_csv(path: str | Path, frame: Any, columns: Sequence[str] | None = None) -> Path:
    """Rows or a data frame as CSV; what is missing is an empty cell."""
    return write_text(path, pd.DataFrame(frame, columns=columns).to_csv(index=False))


def write_text(path: str | Path, text: str) -> Path:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text)
    return path

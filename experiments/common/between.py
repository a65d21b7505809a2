"""Is a method better than another by more than chance of its discovery runs?

`significance.py` asks this of instances, for the pairs that were found. Here the unit is the run: a
run's gap on a column is the mean over the column's instances, runs of two methods with the same
seed are a pair, and a method without discovery has the same gap for every seed. A paired t test of
the differences, Holm's correction over the tests of a column, and the least difference that as many
runs would see in 80 of 100 such tables. Last comes the mean over all columns.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from common.budgets import Group
from common.significance import LEVEL, ROUNDING
from common.tables import markdown, write_csv, write_text
from spo_jax.search.lab import power
from spo_jax.search.lab.power import holm, p_of

ALL = Group("all", "columns", "All")  # the mean over a table's columns
# Per cent, by method's label and column key: [runs], or a number where discovery has no part.
Gaps = Mapping[str, Mapping[str, np.ndarray | float]]


def against(base: str, gaps: Gaps, columns: Sequence[Group]) -> pd.DataFrame:
    """Every other method against `base` on every column that both have, one line per test.

    gaps: of each run in the order of seeds, NaN for what is missing; of a method without discovery
    a number, the same for every seed. Runs whose seed the other method lacks are in no pair.
    Differences are rounded to ROUNDING: what is equal but for rounding is equal. difference, low,
    high: the mean difference in percentage points, positive where the method is worse, and its 95%
    Student t interval. detectable: see above; p, holm_p and detectable are NaN below two runs.
    """
    rows = []
    for key in (column.key for column in columns if column.key in gaps[base]):
        for method, own in gaps.items():
            if method == base or key not in own:
                continue
            apart = by_seed(own[key], gaps[base][key])
            apart = np.rint(apart[np.isfinite(apart)] / ROUNDING) * ROUNDING
            mean, low, high = power.interval(apart)
            deviation = deviation_of(apart)
            least = power.detectable(deviation, apart.size)
            p = p_of(mean, deviation, apart.size)
            rows.append((key, method, base, apart.size, mean, low, high, p, least))
    found = pd.DataFrame(
        rows,
        columns=["column", "method", "against", "runs", "difference", "low", "high", "p",
                 "detectable"],
    )  # fmt: skip
    families = found.groupby("column").p
    found["holm_p"] = families.transform(holm)
    found["family"] = families.transform("count").astype(int)
    return found


def by_seed(own: np.ndarray | float, other: np.ndarray | float) -> np.ndarray:
    """[runs] the differences of runs with the same seed."""
    one, two = np.asarray(own, float), np.asarray(other, float)
    if one.ndim and two.ndim:
        runs = min(len(one), len(two))
        one, two = one[:runs], two[:runs]
    return np.atleast_1d(one - two)


def with_all(base: str, gaps: Gaps) -> Gaps:
    """The gaps with each run's mean over the columns of `base` as one more column, ALL.

    A method that lacks one of these has none, nor does a run with a gap that is missing. With one
    column there is nothing to add.
    """
    keys = list(gaps[base])
    if len(keys) < 2:
        return gaps
    return {
        method: {**own, ALL.key: np.asarray([own[key] for key in keys]).mean(axis=0)}
        if all(key in own for key in keys)
        else own
        for method, own in gaps.items()
    }


def deviation_of(values: np.ndarray) -> float:
    """Of a sample: NaN below two values, exactly 0 where all are equal."""
    if values.size < 2:
        return math.nan
    return float(values.std(ddof=1)) if np.ptp(values) else 0.0


def write(base: str, gaps: Gaps, columns: Sequence[Group], stem: str) -> list[Path]:
    """STEM.csv and STEM.md, on the columns and on their mean; prints the second."""
    gaps, columns = with_all(base, gaps), [*columns, ALL]
    found = against(base, gaps, columns)
    text = table(found, gaps, columns)
    print(text)
    return [write_csv(f"{stem}.csv", found), write_text(f"{stem}.md", text)]


def table(found: pd.DataFrame, gaps: Gaps, columns: Sequence[Group]) -> str:
    """Methods by columns: the base's mean and its deviation between runs, then the differences."""
    kept = [column for column in columns if (found.column == column.key).any()]
    base = str(found.against.iloc[0])
    rows = [[base, *(_own(gaps[base][column.key]) for column in kept)]]
    cells = {(each.column, each.method): _cell(each) for each in found.itertuples()}
    rows += [
        [method, *(cells.get((column.key, method), "–") for column in kept)]
        for method in found.method.unique()
    ]
    return markdown([f"minus {base}, over runs", *(column.heading for column in kept)], rows) + (
        f"\n\nThe first row: mean gap over runs, and ± their standard deviation. Others: their gap "
        "minus it in percentage points, paired by seed, with its 95% Student t interval; p of a "
        f"paired t test after Holm over the tests of a column, bold below {LEVEL}; in square "
        "brackets the difference that as many runs would see in 80 of 100 such tables. All columns "
        "is their mean, of runs without a missing gap.\n"
    )


def _own(values: np.ndarray | float) -> str:
    known = np.atleast_1d(np.asarray(values, float))
    known = known[np.isfinite(known)]
    spread = f" ± {known.std(ddof=1):.3f}" if known.size > 1 else ""
    return f"{known.mean():.3f}{spread}" if known.size else "–"


def _cell(each: Any) -> str:
    if not each.runs:
        return "–"
    text = f"{each.difference:+.3f}"
    if not math.isfinite(each.p):
        return text
    p = f"p = {each.holm_p:.2g}" if each.holm_p >= 1e-4 else "p < 0.0001"
    p = f"**{p}**" if each.holm_p < LEVEL else p
    return f"{text} ({each.low:+.3f} to {each.high:+.3f}), {p} [{each.detectable:.3f}]"

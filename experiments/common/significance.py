"""Is a method better than another by more than chance of the instances?

Paired by instance: the difference of an instance's mean gaps is tested. Wilcoxon's signed-rank test
(two-sided, exact up to 16 instances, with ties too; differences equal to rounding are dropped)
tests whether differences are symmetric about zero. Its direction is that of the ranks; the mean,
which one instance can turn, may have another, and the verdict says where it does. Holm's step-down
corrects within a family: the tests of all other methods against one on one column. Nothing is
corrected across columns, and nothing is said of other discovery runs.

A failed rollout is in no mean, which favours the method that fails. So a difference with failures
is marked, and no verdict is in favour of the method that has them.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from common.budgets import Group
from common.tables import FAILED, interval, markdown, write_csv, write_text
from spo_jax.search.lab.power import holm

LEVEL = 0.05
ROUNDING = 1e-9  # percentage points
ENUMERATED = 16  # differences of which every pattern of signs is tried


def signed_ranks(differences: np.ndarray) -> tuple[float, float]:
    """Wilcoxon's signed-rank test: its two-sided p and the rank-biserial correlation.

    The second is (W+ - W-) / (W+ + W-) of the sums of the ranks of positive and negative
    differences, from -1 to 1. (1, 0) where all are zero, NaN for none.
    """
    from scipy.stats import PermutationMethod, rankdata, wilcoxon

    if not len(differences):
        return math.nan, math.nan
    units = np.rint(differences / ROUNDING)  # so that what is equal to rounding is tied
    units = units[units != 0]
    if not units.size:
        return 1.0, 0.0
    ranks = rankdata(np.abs(units))
    tied = np.unique(ranks).size < units.size and units.size <= ENUMERATED
    method = PermutationMethod(n_resamples=2**ENUMERATED) if tied else "auto"
    p = float(wilcoxon(units, method=method).pvalue)
    return p, float((np.sign(units) * ranks).sum() / ranks.sum())


def against(
    base: str,
    gaps: Mapping[str, Mapping[str, np.ndarray]],
    columns: Sequence[Group],
    failed: Mapping[str, Mapping[str, int]],
) -> pd.DataFrame:
    """Every other method against `base` on every column that both have, one line per test.

    gaps: by method's label and column key, [I] percent, NaN for what is missing. failed: likewise,
    rollouts that are in none of them. difference, low, high: the mean difference in percentage
    points, positive where the method is worse, and its interval.
    """
    tests = []
    for key in (column.key for column in columns if column.key in gaps[base]):
        for method, own in gaps.items():
            if method != base and key in own:
                differences = np.asarray(own[key], float) - np.asarray(gaps[base][key], float)
                p, ranks = signed_ranks(differences[np.isfinite(differences)])
                lost = failed[method][key], failed[base][key]
                tests.append((key, method, base, *interval(differences), ranks, p, *lost))
    found = pd.DataFrame(
        tests,
        columns=["column", "method", "against", "instances", "difference", "low", "high",
                 "rank_correlation", "wilcoxon_p", "failed", "failed_of_against"],
    )  # fmt: skip
    families = found.groupby("column").wilcoxon_p
    found["holm_p"] = families.transform(holm)
    found["family"] = families.transform("count").astype(int)
    found["verdict"] = [verdict(each) for _, each in found.iterrows()]
    return found


def verdict(test: pd.Series) -> str:
    """worse or better than the base, by the ranks; failures where only those would favour one."""
    if not test.holm_p < LEVEL:
        return "no difference shown"
    worse = test.rank_correlation > 0
    if test.failed_of_against if worse else test.failed:
        return "failures"
    agree = test.difference * test.rank_correlation > 0
    return ("worse" if worse else "better") + ("" if agree else " by ranks, not by the mean")


def write(tests: pd.DataFrame, columns: Sequence[Group], stem: str) -> list[Path]:
    """STEM.csv and STEM.md; prints the second."""
    text = table(tests, columns)
    print(text)
    return [write_csv(f"{stem}.csv", tests), write_text(f"{stem}.md", text)]


def table(tests: pd.DataFrame, columns: Sequence[Group]) -> str:
    """Methods by columns: the mean difference, its interval and Holm's p."""
    cells = {(each.column, each.method): _cell(each) for _, each in tests.iterrows()}
    kept = [column for column in columns if (tests.column == column.key).any()]
    base = tests.against.iloc[0]
    rows = [
        [method, *(cells.get((column.key, method), "–") for column in kept)]
        for method in tests.method.unique()
    ]
    return markdown([f"minus {base}", *(column.heading for column in kept)], rows) + (
        f"\n\nMean gap minus {base}'s in percentage points, paired by instance, with its 95% "
        "interval; p of Wilcoxon's signed-rank test, two-sided, after Holm over the tests of a "
        f"column ({', '.join(map(str, tests.family.unique()))}); bold below {LEVEL}. {FAILED}: "
        "failed rollouts are in no mean, and no p in favour of the method that failed is bold.\n"
    )


def _cell(test: pd.Series) -> str:
    counts = (test.failed, ""), (test.failed_of_against, f" of {test.against}'s")
    lost = [f"{count}{whose} failed" for count, whose in counts if count]
    mark = f"{FAILED} ({', '.join(lost)})" if lost else ""
    if not test.instances:
        return f"–{mark}"
    text = f"{test.difference:+.3f}{mark}"
    if math.isfinite(test.low):
        text += f" ({test.low:+.3f} to {test.high:+.3f})"
    p = f"p = {test.holm_p:.2g}" if test.holm_p >= 1e-4 else "p < 0.0001"
    bold = test.verdict not in ("no difference shown", "failures")
    text += f", {f'**{p}**' if bold else p}"
    return text + (", " + test.verdict.split(",")[0] if "ranks" in test.verdict else "")

"""Is a method ahead of another by more than the luck of the instances?

Paired by instance: two methods meet on the same instances with the same references, so what is
tested is the difference of an instance's mean gaps. Wilcoxon's signed-rank test (two-sided and
exact up to 16 instances, with ties too; gaps that are equal to rounding are dropped) says whether
differences are symmetric about zero. Its direction is that of the ranks: the mean, which one
instance can turn, may say otherwise, and the verdict tells where it does. Holm's step-down holds
the chance of any false alarm at the level within a family: the tests of all other methods against
one on one column. Nothing is corrected across columns. The interval is of the mean difference,
see spo_jax.envs.report.intervals. None of it speaks of other discovery runs: the programs are held
fixed.

A rollout that failed is in no mean, which favours the method that fails. So a difference with
failures is marked, and no verdict is in favour of the method that has them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from common.tables import FAILED, Column, lines_of

from spo_jax.envs.report.intervals import TOLD, mean_interval
from spo_jax.envs.textfiles import write_atomically

LEVEL = 0.05
ROUNDING = 1e-9  # percentage points
ENUMERATED = 16  # differences of which every pattern of signs is tried


@dataclass(frozen=True)
class Comparison:
    """A method minus the one it is measured against, on one column.

    count: instances that both have. difference, low, high: mean difference in percentage points,
    positive where `other` is worse, and its interval. p: of Wilcoxon's test; ranks: which way it
    goes, from -1 to 1, see `signed_ranks`. holm: p adjusted within a family of so many tests.
    NaN where there is nothing to say it from. failed, base_failed: rollouts of each that are in no
    mean.
    """

    column: str
    other: str
    count: int
    difference: float
    low: float
    high: float
    p: float
    ranks: float
    holm: float = math.nan
    family: int = 0
    failed: int = 0
    base_failed: int = 0

    @property
    def verdict(self) -> str:
        """worse, better (than the one it is measured against), or no difference shown; failures
        where only the one that has them would be ahead. The direction is that of the ranks, which
        p is of; where the mean does not have it, too, the verdict says so.
        """
        if not self.holm < LEVEL:
            return "no difference shown"
        worse = self.ranks > 0
        if self.base_failed if worse else self.failed:
            return "failures"
        return ("worse" if worse else "better") + (
            "" if self.agree else " by ranks, not by the mean"
        )

    @property
    def agree(self) -> bool:
        """Whether the mean difference has the sign that the ranks have."""
        return self.difference * self.ranks > 0


def compare(column: str, other: str, theirs: np.ndarray, base: np.ndarray) -> Comparison:
    """theirs, base: [I] gaps of the same instances in percent, NaN for what is missing."""
    differences = np.asarray(theirs, float) - np.asarray(base, float)
    known = differences[np.isfinite(differences)]
    if not known.size:
        return Comparison(column, other, 0, *(math.nan,) * 5)
    low, high = mean_interval(known) if known.size > 1 else (math.nan, math.nan)
    mean, (p, ranks) = float(known.mean()), signed_ranks(known)
    return Comparison(column, other, known.size, mean, low, high, p, ranks)


def signed_ranks(differences: np.ndarray) -> tuple[float, float]:
    """Wilcoxon's signed-rank test: its two-sided p, and which way it goes.

    The second is (W+ - W-) / (W+ + W-), of the sums of the ranks of positive and of negative
    differences (the rank-biserial correlation): 1 where all are positive, -1 where all are
    negative. (1, 0) where all are zero, NaN for none.
    """
    from scipy.stats import permutation_test, rankdata, wilcoxon

    if not len(differences):
        return math.nan, math.nan
    units = np.rint(differences / ROUNDING)  # so that what is equal to rounding is tied
    units = units[units != 0]
    if not units.size:
        return 1.0, 0.0
    signed = np.sign(units) * rankdata(np.abs(units))
    ranks = float(signed.sum() / np.abs(signed).sum())
    tied = np.unique(np.abs(units)).size < units.size
    if tied and units.size <= ENUMERATED:  # where SciPy would take the normal approximation
        test = permutation_test(
            (signed,),
            np.sum,
            permutation_type="samples",
            n_resamples=2**ENUMERATED,
            vectorized=True,
        )
        return float(test.pvalue), ranks
    return float(wilcoxon(units, alternative="two-sided").pvalue), ranks


def holm(values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given; NaN is no test and counts for none."""
    order = sorted((p, k) for k, p in enumerate(values) if math.isfinite(p))
    adjusted, highest = [math.nan] * len(values), 0.0
    for rank, (p, k) in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * p))
        adjusted[k] = highest
    return adjusted


def against(
    base: str,
    gaps: Mapping[str, Mapping[str, np.ndarray]],
    columns: Sequence[Column],
    failed: Mapping[str, Mapping[str, int]],
) -> list[Comparison]:
    """Every other method against `base` on every column that both have, Holm within a column.

    gaps: by method's label, then by column key, [I] in percent. failed: likewise, rollouts that are
    in none of them.
    """
    found: list[Comparison] = []
    for column in columns:
        mine = gaps[base].get(column.key)
        if mine is None:
            continue
        tests = [
            replace(
                compare(column.key, other, own[column.key], mine),
                failed=failed[other][column.key],
                base_failed=failed[base][column.key],
            )
            for other, own in gaps.items()
            if other != base and column.key in own
        ]
        family = sum(math.isfinite(test.p) for test in tests)
        adjusted = holm([test.p for test in tests])
        found += [replace(t, holm=p, family=family) for t, p in zip(tests, adjusted, strict=True)]
    return found


# --- what is written ------------------------------------------------------------------------------


def write(
    tests: Sequence[Comparison], base: str, columns: Sequence[Column], stem: str | Path
) -> list[Path]:
    """STEM.csv and STEM.md."""
    Path(stem).parent.mkdir(parents=True, exist_ok=True)
    paths = [Path(f"{stem}.csv"), Path(f"{stem}.md")]
    head = ("column", "method", "against", "instances", "difference", "low", "high",
            "rank_correlation", "wilcoxon_p", "holm_p", "family", "verdict", "failed",
            "failed_of_against")  # fmt: skip
    rows = [
        (t.column, t.other, base, t.count, t.difference, t.low, t.high, t.ranks, t.p, t.holm,
         t.family, t.verdict, t.failed, t.base_failed)
        for t in tests
    ]  # fmt: skip
    write_atomically(paths[0], lines_of(head, rows))
    write_atomically(paths[1], markdown(tests, base, columns))
    return paths


def remove(stem: str | Path) -> None:
    """Take away what `write` wrote, if it did."""
    for suffix in (".csv", ".md"):
        Path(f"{stem}{suffix}").unlink(missing_ok=True)


def markdown(tests: Sequence[Comparison], base: str, columns: Sequence[Column]) -> str:
    """One table: methods by columns, with the mean difference, its interval and Holm's p."""
    kept = [c for c in columns if any(test.column == c.key for test in tests)]
    cells = {(test.other, test.column): _cell(test, base) for test in tests}
    lines = [
        f"| minus {base} | " + " | ".join(c.heading for c in kept) + " |",
        "|---|" + "---|" * len(kept),
    ]
    for other in dict.fromkeys(test.other for test in tests):
        row = [cells.get((other, c.key), "–") for c in kept]
        lines.append(f"| {other} | " + " | ".join(row) + " |")
    told = [caption(tests, base, kept)]
    if any(_turned(test) for test in tests):
        told.append(
            "By ranks: p and its direction are of the ranks, and the mean, which a few instances "
            "can turn, does not have it."
        )
    if any(test.failed or test.base_failed for test in tests):
        told.append(
            f"{FAILED}: rollouts that failed are in no mean, which favours the method whose they "
            "are; no p in its favour is bold."
        )
    return "\n".join(lines) + "\n\n" + " ".join(told) + "\n"


def caption(tests: Sequence[Comparison], base: str, columns: Sequence[Column]) -> str:
    """What the numbers are, in words, with the families that Holm corrects in."""
    sizes = {c.heading: max(t.family for t in tests if t.column == c.key) for c in columns}
    if len(set(sizes.values())) == 1:
        told = f"{next(iter(sizes.values()))} in each"
    else:
        told = ", ".join(f"{heading} {size}" for heading, size in sizes.items())
    return (
        f"Mean gap of each method minus {base}'s in percentage points, paired by instance; "
        f"positive: worse than {base}. In brackets the mean's 95% interval over instances, for "
        f"itself ({TOLD}); then p of Wilcoxon's signed-rank test, two-sided, after Holm; bold "
        f"below {LEVEL}. A family that Holm corrects is the tests of all other methods against "
        f"{base} on one column ({told}); nothing is corrected across columns. With few instances "
        "no p can be small: 5 pairs reach 0.0625 at best, before Holm."
    )


def _turned(test: Comparison) -> bool:
    return " by ranks" in test.verdict


def _cell(test: Comparison, base: str) -> str:
    counts = (test.failed, ""), (test.base_failed, f" of {base}'s")
    lost = [f"{count}{whose} failed" for count, whose in counts if count]
    mark = f"{FAILED} ({', '.join(lost)})" if lost else ""
    if not test.count:
        return f"–{mark}"
    text = f"{test.difference:+.3f}{mark}"
    if math.isfinite(test.low):
        text += f" ({test.low:+.3f} to {test.high:+.3f})"
    if math.isfinite(test.holm):
        p = f"p = {test.holm:.2g}" if test.holm >= 1e-4 else "p < 0.0001"
        shown = test.verdict not in ("no difference shown", "failures")
        text += f", {f'**{p}**' if shown else p}"
        text += f", {test.verdict.removesuffix(', not by the mean')}" if _turned(test) else ""
    return text

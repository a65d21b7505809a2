"""How many seeds a study needs, by the spread of past ones.

    python -m spo_jax.search.lab power --effect 0.001
    python -m spo_jax.search.lab power --effect 0.2 --measure "gap: uniform:200x4@2026" --power 0.9
    python -m spo_jax.search.lab power --effect 0.001 --study runs/learning/table.csv

A study is a CSV file of experiments/learning.py or credit_study.py, with a row per arm and seed.
Runs of two arms with the same seed are a pair; the test is Student's, paired and two-sided, at 5%.
For each arm against the first one of its study: how many pairs there are, the mean and the standard
deviation of their differences, the least effect that as many pairs show with the power asked for,
and the pairs that --effect takes, with what the 95% interval of the deviation makes of that number.
Without --study these are the studies of docs/tables in a checkout of the repository.
"""

import argparse
import csv
import io
import math
import statistics
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spo_jax.errors import InputError
from spo_jax.search.lab.power import MOST, detectable, seeds_needed
from spo_jax.search.lab.show import LEVEL, markdown

SHIPPED = Path(__file__).parents[3] / "docs" / "tables"


@dataclass(frozen=True)
class Past:
    """An arm of a study against the first one. deviation: of the paired differences of `seeds`
    pairs of runs, with its 95% interval `low`, `high` for normal differences.
    """

    arm: str
    first: str
    seeds: int
    difference: float
    deviation: float
    low: float
    high: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--effect", type=float, required=True, metavar="X",
        help="the difference that the study is to show, in the unit of the measure",
    )  # fmt: skip
    parser.add_argument(
        "--study", action="append", default=[], metavar="FILE.csv",
        help="of past runs; may be repeated (default: those of docs/tables)",
    )  # fmt: skip
    parser.add_argument("--measure", default="best", help="a column of the studies (default: best)")
    parser.add_argument(
        "--power", type=float, default=0.8, metavar="P",
        help="how often it is to show it (default: 0.8)",
    )  # fmt: skip


def run(args: argparse.Namespace) -> None:
    """Print the table. Raises InputError for what the user can mend."""
    if not 0 < args.effect < math.inf:
        raise InputError(f"--effect is {args.effect:g}; an effect is a number above 0")
    if not 0 < args.power < 1:
        raise InputError(f"--power is {args.power:g}; it is between 0 and 1")
    files = [Path(each) for each in args.study] or _shipped(args.measure)
    found = {path.stem: past(path, args.measure) for path in files}
    print(planned(found, args.measure, args.effect, args.power))


def planned(studies: dict[str, list[Past]], measure: str, effect: float, power: float) -> str:
    """The table of all studies, and the seeds by their median and their largest deviation."""
    lines, needed = [], []
    for name, rows in studies.items():
        for row in rows:
            many, low, high = (
                seeds_needed(effect, each, power) for each in (row.deviation, row.low, row.high)
            )
            needed.append(many)
            lines.append([
                name, row.arm, str(row.seeds), f"{row.difference:+.5f}", f"{row.deviation:.5f}",
                f"{detectable(row.deviation, row.seeds, power):.5f}",
                f"{_count(many)} ({_count(low)} to {_count(high)})",
            ])  # fmt: skip
    heads = ["study", "arm", "seeds", "difference", "its deviation", "detectable",
             f"seeds for {effect:g}"]  # fmt: skip
    middle = statistics.median_high(needed)
    return (
        f"Seeds that show a difference of {effect:g} in {measure}, paired by seed, two-sided at "
        f"{LEVEL:.0%}, with a power of {power:g}\n\n{markdown(heads, lines)}\n\n"
        f"By the median of {len(needed)} comparisons: {_count(middle)} seeds of each arm. By the "
        f"one that varies most: {_count(max(needed))}."
    )


def past(path: Path, measure: str) -> list[Past]:
    """Every arm of a study against its first one; arms with fewer than two pairs are left out.

    Raises InputError for a file that is none, a measure that it does not have, and where no arm is
    left.
    """
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8"), newline="")))
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"--study {path} cannot be read ({error})") from None
    heads = list(rows[0]) if rows else []
    if not {"arm", "seed"} <= set(heads):
        raise InputError(f"--study {path} has no rows with an arm and a seed")
    if measure not in heads or measure in ("arm", "seed"):
        known = ", ".join(name for name in heads if name not in ("arm", "seed"))
        raise InputError(f"--study {path} has no measure {measure!r}; it has {known}")
    values: dict[str, dict[str, float]] = {}
    for row in rows:
        try:
            value = float(row[measure] or "nan")
        except (TypeError, ValueError):
            raise InputError(f"--study {path}: {row[measure]!r} is no number") from None
        own = values.setdefault(row["arm"], {})
        if row["seed"] in own:
            raise InputError(
                f"--study {path} has the arm {row['arm']!r} with the seed {row['seed']!r} twice"
            )
        own[row["seed"]] = value
    first, *others = values
    found = []
    for arm in others:
        apart = np.array([
            value - values[first].get(seed, math.nan) for seed, value in values[arm].items()
        ])  # fmt: skip
        apart = apart[np.isfinite(apart)]
        if apart.size > 1:
            deviation = float(apart.std(ddof=1))
            low, high = _ends(deviation, apart.size)
            found.append(Past(arm, first, apart.size, float(apart.mean()), deviation, low, high))
    if not found:
        raise InputError(f"--study {path} has no two arms with two seeds in common")
    return found


def _ends(deviation: float, count: int) -> tuple[float, float]:
    """The 95% interval of a standard deviation, by chi squared."""
    from scipy import stats

    square = (count - 1) * deviation**2
    low, high = (square / stats.chi2.ppf(share, count - 1) for share in (0.975, 0.025))
    return math.sqrt(low), math.sqrt(high)


def _shipped(measure: str) -> list[Path]:
    """The studies of the repository that have the measure. Raises InputError without any."""
    files = sorted(SHIPPED.glob("learning-*.csv"))
    studies = [path for path in files if not path.stem.endswith("-tests")]
    if not studies:
        raise InputError("there are no studies beside the package: name one with --study FILE.csv")
    heads = {path: path.read_text("utf-8").partition("\n")[0].split(",") for path in studies}
    found = [path for path in studies if measure in heads[path]]
    if not found:
        known = ", ".join(name for name in heads[studies[0]] if name not in ("arm", "seed"))
        raise InputError(f"no study has a measure {measure!r}; the first has {known}")
    return found


def _count(seeds: float) -> str:
    return f"{seeds:,.0f}" if seeds < math.inf else f"above {MOST:,}"

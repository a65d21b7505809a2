"""What discovery runs spent, and methods that are given the budget that SPO spent.

Methods have equal budgets in programs written. SPO evaluates more pairs with them, because
cross-play runs its repairs with several destroys. So a table says what every run spent, and
`matched` gives the other methods as many pairs as SPO evaluated, or SPO as few as they did.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from common.cli import Context
from common.compared import Measured
from common.contenders import DISCOVERY, EQUAL_PAIRS, SPO, Contender
from common.runs import runs_of, spent_by
from common.tables import interval, markdown, write_csv, write_text
from spo_jax.errors import InputError
from spo_jax.runs.run import Run

MATCHES = ("programs", "pairs", "both", "rounds")
SPENT = {  # column of the file: heading of the table
    "programs": "programs written",
    "other": "other answers",
    "pairs": "pairs evaluated",
    "cpu_seconds": "CPU seconds",
}


def spent(measured: Sequence[Measured], context: Context) -> pd.DataFrame:
    """One line per discovery run: what it spent, in the columns of SPENT.

    other: answers that are no programs, as ReEvo's reflections. CPU seconds are NaN for a run that
    was made elsewhere; a local model's are in them, those of an endpoint or a server are not.
    """
    rows = [
        {
            "method": each.label, "run": run.path.name,
            "programs": run.best_by_round[-1].answers,
            "other": int(np.nansum(run.metrics.get("reflections", ()))),
            "pairs": run.evaluated,
            "cpu_seconds": spent_by(run.path.name, context.out),
        }
        for each in measured
        for run in each.runs
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["method", "run", *SPENT])


def write(found: pd.DataFrame, stem: str) -> list[Path]:
    """STEM-spent.csv, one line per run, and STEM-spent.md, means over a method's runs; prints it.

    Nothing where nothing was discovered.
    """
    if found.empty:
        return []
    means = found.groupby("method", sort=False)
    rows = [
        [str(method), str(len(part)), *(_mean(part[name]) for name in SPENT)]
        for method, part in means
    ]
    text = markdown(["", "runs", *SPENT.values()], rows) + (
        "\n\nMeans over a method's runs. Where programs are equal, pairs are not, and the other "
        "way round. Other answers are reflections, which no budget counts.\n"
    )
    print("\n" + text)
    return [write_csv(f"{stem}-spent.csv", found), write_text(f"{stem}-spent.md", text)]


def matched(contenders: Sequence[Contender], match: str, context: Context) -> list[Contender]:
    """The contenders with the budgets that `match` asks for.

    programs: as they are. pairs: each discovery method but SPO is given as many pairs as SPO's runs
    evaluated, their failures included. both: it has two rows. rounds: SPO has a second row, of runs
    that end after as many rounds as evaluate what the other methods' runs did; cheaper than the
    others, as its runs are short. Raises InputError where SPO is not among them, or is a pair, and
    for rounds where there is no other method, or SPO's runs differ in rounds.
    """
    if match == "programs":
        return list(contenders)
    if SPO not in contenders:
        raise InputError(f"--match {match} needs SPO's own runs: add spo, and leave out --pair")
    others = [each for each in contenders if each.family == DISCOVERY and each.discovered]
    if match == "rounds":
        if not others:
            raise InputError("--match rounds needs another method that discovers")
        pairs = _mean_pairs([run for each in others for run in runs_of(each, context)])
        short = _with_rounds(runs_of(SPO, context), pairs)
        place = list(contenders).index(SPO) + 1
        return [*contenders[:place], short, *contenders[place:]]
    pairs = round(_mean_pairs(runs_of(SPO, context)))
    found = []
    for each in contenders:
        if each not in others or match == "both":
            found.append(each)
        if each in others:
            found.append(_with_pairs(each, pairs))
    return found


def _mean_pairs(runs: Sequence[Run]) -> float:
    return sum(run.evaluated for run in runs) / len(runs)


def _with_rounds(runs: Sequence[Run], pairs: float) -> Contender:
    """SPO with the rounds after which its runs have evaluated about as many pairs, at least one.

    A run of fewer rounds begins as the longer one of the same seed, so these are counted in it.
    """
    if len({len(run.best_by_round) for run in runs}) > 1:
        raise InputError("--match rounds needs runs of as many rounds each: leave out --minutes")
    after = np.mean([[each.evaluations for each in run.best_by_round] for run in runs], axis=0)
    rounds = int(np.abs(after - pairs).argmin()) + 1
    return replace(
        SPO,
        name=f"{SPO.name}-{rounds}-rounds",
        label=SPO.label + EQUAL_PAIRS,
        line=":",
        settings={**(SPO.settings or {}), "rounds": rounds},
        note=f"ends after {rounds} rounds, as the other methods evaluate {pairs:,.0f} pairs",
    )


def _with_pairs(contender: Contender, pairs: int) -> Contender:
    note = f"given the {pairs:,} pairs that SPO evaluated"
    return replace(
        contender,
        name=f"{contender.name}-{pairs}-pairs",
        label=contender.label + EQUAL_PAIRS,
        line=":",
        settings={**(contender.settings or {}), "pairs": pairs},
        note=f"{contender.note}; {note}" if contender.note else note,
    )


def _mean(values: pd.Series) -> str:
    count, mean, _, _ = interval(values)
    return f"{mean:,.0f}" if count else "–"

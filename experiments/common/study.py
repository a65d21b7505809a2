"""Arms that run with the same seeds and budget, and one report of them all.

An arm is a name and the settings that it changes; `learning.py` and `credit_study.py` choose arms.
Every arm discovers once with each of the seeds 0, 1, ... in OUT/ARM-seedN; finished runs are kept,
so the same command resumes. Any setting of `spo discover` may follow, and holds for all runs.

OUT/table.md and table.csv have means over seeds with 95% Student t intervals (seeds are too few for
a bootstrap), and each arm minus the first one, paired by seed: the training instances of a seed
move J by more than an arm does. curves.png is aligned at round 1 for the same reason. Budgets are
equal in nominal answers alone: repairs are written for valid destroys, one set for a destroy that a
round wrote twice, so an arm that fails or repeats itself samples and evaluates less. The table's
first columns say how much.
"""

import io
import math
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import cli, figures
from common.runs import STATE, again, discover, reads_state
from common.tables import markdown, write_csv, write_text

from spo_jax import flags, presets
from spo_jax.config import Settings
from spo_jax.envs.problems import get_problem
from spo_jax.envs.textfiles import write_atomically
from spo_jax.errors import InputError
from spo_jax.search.credit import get_credit
from spo_jax.search.runs.run import Run
from spo_jax.seeding import derive

Arms = Mapping[str, Mapping[str, Any]]  # name -> the settings that the arm changes

FRESH_INSTANCES = 32  # the same ones for every run of every study
MEASURES = {  # name in the files: heading of the table and format
    "answers": ("answers", ",.0f"),
    "pairs": ("pairs evaluated", ",.0f"),
    "best": ("best J", ".5f"),
    "median": ("median, last third", ".5f"),
    "top_decile": ("top decile, last third", ".5f"),
    "failures": ("failures, last third", ".1%"),
    "state_use": ("use the state, last third", ".1%"),
    "fresh": ("chosen pair, fresh J", ".5f"),
}
CURVES = {  # by round: name in the files, title of the panel
    "median": "median J of the round's new pairs",
    "top_decile": "top decile of J of the round's new pairs",
    "state_use": f"share of new programs that use\n{STATE}",
}


def main(parser: ArgumentParser, arms: Callable[[Namespace], Arms]) -> int:
    """Run a study's command line."""
    parser.add_argument("--seeds", type=int, default=5, help="runs of each arm")
    parser.add_argument("--problem", default="tsp")
    flags.add_arguments(parser)
    return cli.main(parser, lambda args: study(args, arms(args)))


def study(args: Namespace, arms: Arms) -> None:
    """Run what is missing, then report all. Raises InputError for what the user can mend."""
    given, out = flags.given(args), Path(args.out)
    varied = sorted({"seed", *(name for own in arms.values() for name in own)} & given.keys())
    if varied:
        raise InputError(f"{' and '.join(varied)}: a study sets that itself; leave it out")
    folders = {arm: re.sub(r"[^A-Za-z0-9_-]+", "-", arm) for arm in arms}
    if args.seeds < 1 or not arms or len(set(folders.values())) < len(arms):
        raise InputError("a study needs at least one seed, and arms with names of their own")
    for own in arms.values():
        first = presets.settings(args.problem, args.preset, **{**given, **own})
        for name in (first.search.credit, first.learning.learning_credit):
            if name is not None:
                get_credit(name)
    runs = {}
    for seed in range(args.seeds):  # so that a study that was stopped has something to compare
        for arm, own in arms.items():
            settings = {**given, **own, "seed": seed}
            path = out / f"{folders[arm]}-seed{seed}"
            runs[arm, seed] = discover(args.problem, args.preset, settings, path)
    runs = {(arm, seed): runs[arm, seed] for arm in arms for seed in range(args.seeds)}
    report(runs, fresh_utilities(runs), out)


def listed(text: str) -> list[str]:
    """The names in a text with commas between them."""
    return [name.strip() for name in text.split(",") if name.strip()]


def named(arms: Iterable[tuple[str, Mapping[str, Any]]]) -> Arms:
    """Arms by name. Raises InputError for a name that comes twice."""
    found: dict[str, Mapping[str, Any]] = {}
    for name, own in arms:
        if name in found:
            raise InputError(f"{name} is there twice: arms need names of their own")
        found[name] = own
    return found


def fresh_utilities(runs: Mapping[Any, Run]) -> dict[Any, float]:
    """J of each run's pair on instances that all runs and studies share; NaN without a pair.

    A pair runs as it was discovered: with the state or without, failing or skipping what is
    infeasible.
    """
    found = dict.fromkeys(runs, math.nan)
    known: dict[Any, float] = {}
    for key, run in runs.items():
        if run.best is None:
            continue
        config = run.config
        same = run.best.pair.digest, config.generator.state, config.evaluation.on_invalid
        if same not in known:
            problem, size = get_problem(config.problem), config.evaluation.size
            instances = problem.sample(size, FRESH_INSTANCES, derive("credit study"))
            known[same] = float(again(run, [run.best.pair], instances)[1][0])
        found[key] = known[same]
    return found


# --- what a run did -------------------------------------------------------------------------------


def by_round(rows: Iterable[tuple[int, float]]) -> Any:
    """(round, value) rows, grouped by round."""
    return pd.DataFrame(rows, columns=["round", "value"], dtype=float).groupby("round").value


def curves_of(run: Run) -> pd.DataFrame:
    """[K] of CURVES by round, from 1; NaN where there is nothing to compute it from."""
    pairs, programs = by_round(_new_pairs(run)), by_round(_new_programs(run))
    curves = {"median": pairs.median(), "top_decile": pairs.quantile(0.9)}
    curves["state_use"] = programs.mean()
    return pd.DataFrame(curves, index=pd.RangeIndex(1, run.rounds + 1, name="round"))


def measures_of(run: Run) -> dict[str, float]:
    """MEASURES of a run but `fresh`.

    answers: sampled in the run. pairs: evaluated, cross-play included. best: the highest J. Of the
    last third of the rounds: median, top_decile of J of its new pairs; failures, the share of its
    answers that gave no valid program; state_use, the share of its programs that read the state.
    """
    first = first_of_last_third(run.rounds)
    late = pd.Series([value for k, value in _new_pairs(run) if k >= first], dtype=float)
    uses = pd.Series([value for k, value in _new_programs(run) if k >= first], dtype=float)
    answers = [c.destroy_answers + c.repair_answers for c in run.counts]
    valid = sum(c.valid_destroys + c.valid_repairs for c in run.counts[first - 1 :])
    asked = sum(answers[first - 1 :])
    return {
        "answers": sum(answers),
        "pairs": run.evaluated,
        "best": run.best_by_round[-1].utility,
        "median": late.median(),
        "top_decile": late.quantile(0.9),
        "failures": 1 - valid / asked if asked else math.nan,
        "state_use": uses.mean(),
    }


def _new_pairs(run: Run) -> list[tuple[int, float]]:
    """(round, J) of valid responses; a pair that an earlier round evaluated is not among them."""
    return [(p.round, p.utility) for p in run.pairs if p.kind == "response" and p.status == "ok"]


def _new_programs(run: Run) -> list[tuple[int, float]]:
    return [(p.round, reads_state(p.source)) for p in run.programs if p.form]


def first_of_last_third(rounds: int) -> int:
    """Number of the round with which the last third begins; it holds at least one round."""
    return rounds - math.ceil(rounds / 3) + 1


# --- the report -----------------------------------------------------------------------------------


def report(runs: Mapping[tuple[str, int], Run], fresh: Mapping[Any, float], out: Path) -> None:
    """Print the table and write it, the runs, the curves and the picture into `out`."""
    index = pd.MultiIndex.from_tuples(runs, names=["arm", "seed"])
    rows = [{**measures_of(run), "fresh": fresh[key]} for key, run in runs.items()]
    measures = pd.DataFrame(rows, index=index)[list(MEASURES)]
    curves = pd.concat({key: curves_of(run) for key, run in runs.items()}, names=index.names)
    found = table(measures)
    config = next(iter(runs.values())).config
    text = f"{table_text(found)}\n\n{caption(config, measures.index.levshape[1])}\n"
    print("\n" + text, end="")
    write_text(out / "table.md", text)
    write_csv(out / "table.csv", found)
    write_csv(out / "runs.csv", measures.reset_index())
    write_csv(out / "curves.csv", curves.reset_index())
    write_atomically(out / "curves.png", plot(curves))
    print(f"written to {out}: table.md, table.csv, runs.csv, curves.csv, curves.png")


def interval(values: Sequence[float]) -> tuple[int, float, float, float]:
    """How many values are known, their mean, and its 95% Student t interval; NaN for what lacks.

    Seeds are few: of five normal values a percentile bootstrap covers the mean 84 times in 100.
    """
    from scipy import stats

    known = pd.Series(values, dtype=float).dropna()
    low = high = math.nan
    if len(known) > 1:
        half = float(stats.t.ppf(0.975, len(known) - 1) * stats.sem(known))
        low, high = known.mean() - half, known.mean() + half
    return len(known), float(known.mean()), low, high


def table(measures: pd.DataFrame) -> pd.DataFrame:
    """arm, measure, seeds, mean, low, high: of every arm, then of every other arm minus the first.

    measures: of runs, indexed by arm and seed.
    """
    arms = list(measures.index.get_level_values("arm").unique())
    parts = {arm: measures.loc[arm] for arm in arms}
    parts |= {f"{arm} - {arms[0]}": parts[arm] - parts[arms[0]] for arm in arms[1:]}
    rows = [
        (name, each, len(part), *interval(part[each]))
        for name, part in parts.items()
        for each in part
    ]
    columns = ["arm", "measure", "runs", "seeds", "mean", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def table_text(found: pd.DataFrame) -> str:
    """Means and intervals, and the number of seeds where some have no value."""
    rows: dict[str, list[str]] = {}
    for each in found.itertuples():
        form = "{:" + "+" * (" - " in str(each.arm)) + MEASURES[str(each.measure)][1] + "}"
        cell = form.format(each.mean) if each.seeds else "none"
        if each.seeds > 1:
            cell += f" ({form.format(each.low)} to {form.format(each.high)})"
        if each.seeds < each.runs:
            cell += f", {each.seeds} of {each.runs} seeds"
        rows.setdefault(str(each.arm), []).append(cell)
    heads = ["arm", *(heading for heading, _ in MEASURES.values())]
    return markdown(heads, ([name, *cells] for name, cells in rows.items()))


def caption(settings: Settings, seeds: int) -> str:
    judged, rounds = settings.evaluation, settings.search.rounds
    return (
        f"{settings.problem}; {rounds} rounds, the last third from round "
        f"{first_of_last_third(rounds)}; {seeds} seeds. Means over seeds with 95% Student t "
        "intervals, not corrected for their number. Fresh J: of the pair chosen by "
        f"{settings.search.select}, on {FRESH_INSTANCES} unseen instances of size {judged.size}, "
        f"{judged.rollouts} rollouts of {judged.steps} steps each."
    )


def aligned(curves: pd.Series) -> pd.Series:
    """A curve by arm, seed and round, shifted so that all seeds are level at round 1.

    Taken off a seed is the mean over arms of its round 1; the mean over seeds is put back, so
    heights keep their meaning.
    """
    level = curves.xs(1, level="round").groupby("seed").mean()
    middle = level.mean() if level.notna().any() else 0.0
    shift = middle - level.fillna(middle)
    return curves + curves.index.get_level_values("seed").map(shift)


def plot(curves: pd.DataFrame) -> bytes:
    """A PNG with a panel for each of CURVES: means over seeds, with bands where there are two."""
    figure, panels = figures.new(13.8, 4.2, 1, len(CURVES))
    for axes, (name, title) in zip(panels[0], CURVES.items(), strict=True):
        for k, (arm, part) in enumerate(aligned(curves[name]).groupby("arm", sort=False)):
            points = [interval(values) for _, values in part.groupby("round")]
            _, mean, low, high = map(np.array, zip(*points, strict=True))
            rounds, style = np.arange(1, len(mean) + 1), ("-", "--", "-.", ":")[k % 4]
            axes.plot(
                rounds, mean, label=arm, color=f"C{k}", linestyle=style, marker="osD^vP"[k % 6]
            )
            axes.fill_between(rounds, low, high, color=f"C{k}", alpha=0.15, linewidth=0)
        axes.set(title=title, xlabel="round")
        figures.whole_rounds(axes)
    handles, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names))
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=150, metadata={"Software": None})  # equal pictures, equal files
    return buffer.getvalue()

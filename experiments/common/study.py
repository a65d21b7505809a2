"""Arms that run with the same seeds and budget, and one report of them all.

An arm is a name and the settings that it changes; `learning.py` and `credit_study.py` choose arms.
Every arm discovers once with each of the seeds 0, 1, ... in OUT/ARM-seedN; finished runs are kept,
so the same command resumes, and machines with other seeds (--first-seed) share a study whose
folders are then copied together. Any setting of `spo discover` may follow, and holds for all runs.

OUT/table.md and table.csv have means over seeds with 95% Student t intervals (seeds are too few for
a bootstrap), and each arm minus the first one, paired by seed: the training instances of a seed
move J by more than an arm does. curves.png is aligned at round 1 for the same reason. Budgets are
equal in nominal answers alone: repairs are written for valid destroys, one set for a destroy that a
round wrote twice, so an arm that fails or repeats itself samples and evaluates less. The table's
first columns say how much, and in CPU seconds; give an arm more rounds to make those equal.

tests.csv has a paired t test of each difference, Holm's correction over all tests of the study, and
the least difference that as many seeds would see in 80 of 100 studies.
"""

import io
import math
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from common import between, cli, figures, heldout
from common.runs import STATE, discover_counted, reads_state, spent_by
from common.tables import markdown, write_csv, write_text
from spo_jax import presets
from spo_jax.cli import flags
from spo_jax.config import Settings
from spo_jax.envs.files.specs import parse_specs
from spo_jax.envs.files.textfiles import write_atomically
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError
from spo_jax.runs.run import Run
from spo_jax.search.credit import CREDITS
from spo_jax.search.lab import power
from spo_jax.search.lab.power import holm, p_of

Arms = Mapping[str, Mapping[str, Any]]  # name -> the settings that the arm changes

BEST = 50  # pairs in `top`
SPENT = {  # name in the files: heading of the table and format
    "answers": ("answers", ",.0f"),
    "pairs": ("pairs evaluated", ",.0f"),
    "cpu": ("CPU seconds", ",.0f"),
}
OUTCOMES = {
    "best": ("best J", ".5f"),
    "top": (f"best {BEST} pairs, J", ".5f"),
    "median": ("median, last third", ".5f"),
    "top_decile": ("top decile, last third", ".5f"),
    "failures": ("failures, last third", ".1%"),
    "state_use": ("use the state, last third", ".1%"),
    "survivors": ("percentile of survivors", ".0f"),
}
GAP = "gap: "  # and the held-out set
CURVES = {  # by round: name in the files, title of the panel
    "median": "median J\nof the round's new pairs",
    "top_decile": "top decile of J\nof the round's new pairs",
    "state_use": f"share of new programs with\n{STATE}",
}


def main(parser: ArgumentParser, arms: Callable[[Namespace], Arms]) -> int:
    """Run a study's command line."""
    parser.add_argument("--seeds", type=int, default=5, help="runs of each arm")
    parser.add_argument(
        "--first-seed", type=int, default=0, metavar="N", help="number of the first seed"
    )
    parser.add_argument("--problem", default="tsp")
    parser.add_argument(
        "--held-out", nargs="*", metavar="SPEC",
        help="sets of instances to measure the runs' pairs on, as for spo evaluate; nothing after "
        "it for none (default: standard sets of three sizes)",
    )  # fmt: skip
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
    if args.first_seed < 0:
        raise InputError(f"--first-seed is {args.first_seed}; seeds begin at 0")
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    for own in arms.values():
        first = presets.settings(args.problem, args.preset, **{**given, **own})
        for name in (first.search.credit, first.learning.learning_credit):
            if name is not None:
                CREDITS[name]
    sets = heldout.sets_of(args.problem) if args.held_out is None else args.held_out
    if sets:
        parse_specs(sets, get_problem(args.problem), "solve")
    runs, rows = {}, {}
    for seed in seeds:  # so that a study that was stopped has something to compare
        for arm, own in arms.items():
            settings = {**given, **own, "seed": seed}
            path = out / f"{folders[arm]}-seed{seed}"
            run = discover_counted(args.problem, args.preset, settings, path, out)
            spent = spent_by(path.name, out)
            found = heldout.gaps(run, sets, out)
            own_gaps = {GAP + each: found[each] for each in sets}
            rows[arm, seed] = {"cpu": spent, **measures_of(run), **own_gaps}
            runs[arm, seed] = run
    order = [(arm, seed) for arm in arms for seed in seeds]
    report({key: runs[key] for key in order}, {key: rows[key] for key in order}, out)


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
    """SPENT but the CPU seconds, and OUTCOMES of a run.

    answers: sampled in the run. pairs: evaluated, cross-play included. best: the highest J. top:
    the mean J of the BEST pairs. Of the last third of the rounds: median, top_decile of J of its
    new pairs; failures, the share of its answers that gave no valid program; state_use, the share
    of its programs that read the state. survivors: see `survivors_percentile`.
    """
    first = first_of_last_third(run.rounds)
    late = pd.Series([value for k, value in _new_pairs(run) if k >= first], dtype=float)
    uses = pd.Series([value for k, value in _new_programs(run) if k >= first], dtype=float)
    answers = [c.destroy_answers + c.repair_answers for c in run.counts]
    every = sorted((p.utility for p in run.pairs if p.status == "ok"), reverse=True)
    valid = sum(c.valid_destroys + c.valid_repairs for c in run.counts[first - 1 :])
    asked = sum(answers[first - 1 :])
    return {
        "answers": sum(answers),
        "pairs": run.evaluated,
        "best": run.best_by_round[-1].utility,
        "top": float(np.mean(every[:BEST])) if every else math.nan,
        "median": late.median(),
        "top_decile": late.quantile(0.9),
        "failures": 1 - valid / asked if asked else math.nan,
        "state_use": uses.mean(),
        "survivors": survivors_percentile(run),
    }


def survivors_percentile(run: Run) -> float:
    """Where surviving destroys stand among all destroys so far, by the score they are selected by.

    The share of scored destroys that are better, in per cent, with ties as half: the mean over the
    members of the population and over the rounds from the second on, in which there is a choice.
    NaN for a method without credits and for a single round.
    """
    scores: dict[str, float] = {}
    found: list[float] = []
    for number in range(1, run.rounds + 1):
        try:
            credits = run.credits(number)
        except InputError:
            return math.nan
        for name, score in zip(credits.destroys, credits.leader_selection, strict=True):
            if math.isfinite(score):  # a destroy that is written again keeps its highest score
                scores[name] = max(score, scores.get(name, -math.inf))
        members = [m.name for m in run.populations.get((number, "destroy"), ()) if m.name in scores]
        known = np.array(list(scores.values()))
        if number > 1:
            found += [
                100 * float(np.mean(known > scores[name]) + np.mean(known == scores[name]) / 2)
                for name in members
            ]
    return float(np.mean(found)) if found else math.nan


def _new_pairs(run: Run) -> list[tuple[int, float]]:
    """(round, J) of valid responses; a pair that an earlier round evaluated is not among them.

    Of pairs that a race left out the estimates: without them a median would be of the better ones.
    """
    return [
        (p.round, p.utility) for p in run.pairs if p.kind == "response" and math.isfinite(p.utility)
    ]


def _new_programs(run: Run) -> list[tuple[int, float]]:
    return [(p.round, reads_state(p.source)) for p in run.programs if p.form]


def first_of_last_third(rounds: int) -> int:
    """Number of the round with which the last third begins; it holds at least one round."""
    return rounds - math.ceil(rounds / 3) + 1


# --- the report -----------------------------------------------------------------------------------


def report(
    runs: Mapping[tuple[str, int], Run], rows: Mapping[tuple[str, int], Any], out: Path
) -> None:
    """Print the tables and write them, the runs, the curves and the picture into `out`.

    rows: of each run, its measures by name.
    """
    index = pd.MultiIndex.from_tuples(runs, names=["arm", "seed"])
    measures = pd.DataFrame([rows[key] for key in runs], index=index)
    measures = measures[[*SPENT, *OUTCOMES, *(m for m in measures if m.startswith(GAP))]]
    curves = pd.concat({key: curves_of(run) for key, run in runs.items()}, names=index.names)
    found, compared = table(measures), tests(measures)
    config = next(iter(runs.values())).config
    text = f"{table_text(found)}\n\n{caption(config, measures.index.levshape[1])}\n"
    if compared.p.notna().any():
        text += f"\n{tests_text(compared)}\n\n{TESTS_CAPTION}\n"
    print("\n" + text, end="")
    write_text(out / "table.md", text)
    write_csv(out / "table.csv", found)
    write_csv(out / "tests.csv", compared)
    write_csv(out / "runs.csv", measures.reset_index())
    write_csv(out / "curves.csv", curves.reset_index())
    write_atomically(out / "curves.png", plot(curves))
    print(f"written to {out}: table.md, table.csv, tests.csv, runs.csv, curves.csv, curves.png")


def interval(values: Iterable[float]) -> tuple[int, float, float, float]:
    """How many values are known, their mean, and its 95% Student t interval; NaN for what lacks.

    Seeds are few: of five normal values a percentile bootstrap covers the mean 84 times in 100.
    """
    known = pd.Series(values, dtype=float).dropna().to_numpy()
    return len(known), *power.interval(known)


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


def tests(measures: pd.DataFrame) -> pd.DataFrame:
    """Every other arm against the first on every outcome, paired by seed, one line per test.

    p: of a two-sided t test; 1 where all differences are zero. holm: p corrected over all lines.
    detectable: the least difference that as many seeds see in 80 of 100 studies, from the deviation
    of these; NaN for what fewer than two seeds have.
    """
    arms = list(measures.index.get_level_values("arm").unique())
    rows = []
    for arm in arms[1:]:
        apart = measures.loc[arm] - measures.loc[arms[0]]
        for name in (each for each in apart if each not in SPENT):
            values = apart[name].dropna().to_numpy(float)
            seeds, mean, low, high = interval(values)
            deviation = between.deviation_of(values)
            p = p_of(mean, deviation, seeds)
            rows.append((arm, name, seeds, mean, low, high, p, power.detectable(deviation, seeds)))
    columns = ["arm", "measure", "seeds", "difference", "low", "high", "p", "detectable"]
    found = pd.DataFrame(rows, columns=columns)
    found.insert(7, "holm", holm(found.p.to_numpy(float)))
    return found


TESTS_CAPTION = (
    "Differences from the first arm, paired by seed. p of a t test, by Holm's correction over all "
    "lines; detectable: what as many seeds would see in 80 of 100 studies."
)


def tests_text(found: pd.DataFrame) -> str:
    """`tests` as Markdown, those that two seeds or more have."""
    lines = []
    for each in found[found.p.notna()].itertuples():
        form = "{:+" + shown(str(each.measure))[1] + "}"
        heading, plain = shown(str(each.measure))[0], form.replace("+", "")
        between = f"{form.format(each.low)} to {form.format(each.high)}"
        lines.append((
            str(each.arm), heading, f"{form.format(each.difference)} ({between})",
            f"{each.p:.4f}", f"{each.holm:.4f}", plain.format(each.detectable),
        ))  # fmt: skip
    return markdown(["arm", "measure", "difference", "p", "Holm", "detectable"], lines)


def shown(measure: str) -> tuple[str, str]:
    """The heading and the format of a measure."""
    if measure.startswith(GAP):
        return f"gap on {measure.removeprefix(GAP)}, %", ".3f"
    return {**SPENT, **OUTCOMES}[measure]


def table_text(found: pd.DataFrame) -> str:
    """Means and intervals, and the number of seeds where some have no value."""
    rows: dict[str, list[str]] = {}
    for each in found.itertuples():
        form = "{:" + "+" * (" - " in str(each.arm)) + shown(str(each.measure))[1] + "}"
        cell = form.format(each.mean) if each.seeds else "none"
        if each.seeds > 1:
            cell += f" ({form.format(each.low)} to {form.format(each.high)})"
        if each.seeds < each.runs:
            cell += f", {each.seeds} of {each.runs} seeds"
        rows.setdefault(str(each.arm), []).append(cell)
    heads = ["arm", *(shown(str(each))[0] for each in found.measure.unique())]
    return markdown(heads, ([name, *cells] for name, cells in rows.items()))


def caption(settings: Settings, seeds: int) -> str:
    rounds = settings.search.rounds
    return (
        f"{settings.problem}; {rounds} rounds, the last third from round "
        f"{first_of_last_third(rounds)}; {seeds} seeds. Means over seeds with 95% Student t "
        "intervals, not corrected for their number. Percentile of survivors: the share of all "
        "destroys so far that score higher than one that survives. Gaps: of the pair chosen by "
        f"{settings.search.select}, on instances that no run has seen, one rollout of "
        f"{heldout.STEPS} steps each."
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
    figure, panels = figures.new(2 * figures.COLUMN, 2.6, 1, len(CURVES))
    for axes, (name, title) in zip(panels[0], CURVES.items(), strict=True):
        for k, (arm, part) in enumerate(aligned(curves[name]).groupby("arm", sort=False)):
            points = [interval(values) for _, values in part.groupby("round")]
            _, mean, low, high = map(np.array, zip(*points, strict=True))
            rounds, style = np.arange(1, len(mean) + 1), ("-", "--", "-.", ":")[k % 4]
            axes.plot(
                rounds, mean, label=arm, color=f"C{k}", linestyle=style,
                linewidth=1.0, marker="osD^vP"[k % 6], markersize=3.0,
            )  # fmt: skip
            axes.fill_between(rounds, low, high, color=f"C{k}", alpha=0.15, linewidth=0)
        axes.set(title=title, xlabel="round")
        figures.whole_rounds(axes)
    handles, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names))
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=300, metadata={"Software": None})  # equal pictures, equal files
    return buffer.getvalue()

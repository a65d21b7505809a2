"""What the studies share: arms that run with the same seeds and budget, and one report of them all.

An arm is a name and the settings that it changes; `learning.py` and `credit_study.py` choose arms.
Every arm discovers once with each of the seeds 0, 1, ..., in a run folder of its own under --out.
Finished runs are kept, so the same command goes on where it was stopped, and more arms or more
seeds cost only themselves. Any setting of `spo discover` may follow, and holds for all runs.

The table is printed, and written beside its picture: table.md, table.csv, runs.csv, curves.csv,
curves.png. Its intervals are 95% percentile bootstraps over the seeds. A seed has its own training
instances, and they move J by more than an arm does; runs of one seed share them, and arms with the
same model share their first answers. So the table also has each arm minus the first one, seed by
seed, and the picture aligns the seeds at round 1. Budgets are equal before failures: repairs are
written for valid destroys alone, so an arm that teaches to fail samples fewer; the caption tells.
"""

import argparse
import ast
import csv
import math
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from discovered import discover

from spo_jax import config, presets
from spo_jax.config import Config
from spo_jax.envs import get_problem
from spo_jax.envs.evaluator import Evaluator
from spo_jax.envs.metrics import bootstrap_interval, utility
from spo_jax.errors import InputError, SpoError
from spo_jax.program import Pair
from spo_jax.search import commands
from spo_jax.search.credit import get_credit
from spo_jax.search.store import DATABASE, load_run
from spo_jax.search.tables import connect
from spo_jax.seeding import derive

Arms = Mapping[str, Mapping[str, Any]]  # name -> the settings that the arm changes

FRESH_INSTANCES = 32  # the same ones for every run of every study
STATE = "steps_since_improvement"
MEASURES = {  # name in the files: heading of the table
    "best": "best J",
    "median": "median, last third",
    "top_decile": "top decile, last third",
    "failures": "failures, last third",
    "state_use": "use the state, last third",
    "fresh": "chosen pair, fresh J",
}
SHARES = ("failures", "state_use")  # the measures that are shares
CURVES = {  # by round: name in the files, title of the panel
    "median": "median J of the round's new pairs",
    "top_decile": "top decile of J of the round's new pairs",
    "state_use": f"share of new programs that use\n{STATE}",
}


@dataclass(frozen=True, eq=False)
class Outcome:
    """One finished run. Everything is NaN where there is nothing to say it from.

    answers: sampled in the run. pairs: evaluated. best: its highest J. median, top_decile: of J of
    the pairs that the last third of the rounds found. failures: share of that third's answers that
    came to nothing. state_use: share of its programs that read the LNS state. fresh: J of the run's
    pair on instances that no run has seen. curves: [K] a round, by the names of CURVES.
    """

    arm: str
    seed: int
    answers: int
    pairs: int
    best: float
    median: float
    top_decile: float
    failures: float
    state_use: float
    fresh: float
    curves: Mapping[str, np.ndarray]


def script(name: str, parser: argparse.ArgumentParser, arms: Callable[[Namespace], Arms]) -> int:
    """Run a study's command line; the exit code: 2 for what the user can mend, 130 after Ctrl-C."""
    parser.add_argument("--seeds", type=int, default=5, help="runs of each arm")
    parser.add_argument("--problem", default="tsp")
    config.add_arguments(parser)
    try:
        args = parser.parse_args()
        return study(args, arms(args))
    except SpoError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return commands.INTERRUPTED


def study(args: Namespace, arms: Arms) -> int:
    """Run what is missing, then tell of all. Raises InputError for what the user can mend."""
    given = config.overrides_from(args)
    varied = sorted({"seed", *(name for own in arms.values() for name in own)} & given.keys())
    if varied:
        raise InputError(f"{' and '.join(varied)}: a study sets that itself; leave it out")
    if args.seeds < 1 or not arms or len(set(map(folder_name, arms))) < len(arms):
        raise InputError("a study needs at least one seed, and arms with names of their own")
    out = Path(args.out)
    wanted: dict[tuple[str, int], Config] = {}
    for arm, own in arms.items():
        for seed in range(args.seeds):
            settings = presets.load(args.problem, args.preset, {**given, **own, "seed": seed})
            wanted[arm, seed] = settings
        get_credit(wanted[arm, 0].credit)
    paths = {key: out / f"{folder_name(key[0])}-seed{key[1]}" for key in wanted}
    # Seed by seed, so that a study that was stopped has something to compare.
    for arm, seed in sorted(wanted, key=lambda key: key[1]):
        own = {**arms[arm], "seed": seed}
        code = discover(wanted[arm, seed], args.preset, {**given, **own}, paths[arm, seed])
        if code:
            return code
    afresh = fresh_utilities({key: load_run(path).best for key, path in paths.items()}, wanted)
    outcomes = [outcome(*key, path, afresh[key]) for key, path in paths.items()]
    report(outcomes, next(iter(wanted.values())), args.preset, out)
    return 0


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


def folder_name(arm: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", arm)


# --- runs -----------------------------------------------------------------------------------------


def fresh_utilities(pairs: Mapping[Any, Any], settings: Mapping[Any, Config]) -> dict[Any, float]:
    """J of each run's pair (a `Best` or None) on instances that all runs and studies share.

    The state is shown to all: a pair that was found without it does not look.
    """
    first = next(iter(settings.values()))
    problem = get_problem(first.problem)
    instances = problem.sample(first.size, FRESH_INSTANCES, derive("credit study"))
    found = {key: best.pair for key, best in pairs.items() if best is not None}
    distinct: dict[str, Pair] = {pair.digest: pair for pair in found.values()}
    values: dict[str, float] = {}
    if distinct:
        with Evaluator(
            problem,
            first.workers,
            cpu_seconds=first.cpu_seconds,
            memory_mb=first.memory_mb,
            on_invalid=first.on_invalid,
            unsafe=first.unsafe_sandbox,
        ) as evaluator:
            rollouts = evaluator.run(
                list(distinct.values()), instances, seeds=range(first.rollouts), steps=first.steps
            )
        values = dict(zip(distinct, map(float, utility(rollouts.best_cost)), strict=True))
    return {key: values[found[key].digest] if key in found else math.nan for key in pairs}


def outcome(arm: str, seed: int, path: Path, fresh: float) -> Outcome:
    """Read a finished run."""
    known = load_run(path)
    with closing(connect(path / DATABASE)) as db:
        # A pair that an earlier round evaluated is not in this one's rows: these are new.
        found = db.execute(
            "SELECT round, utility FROM pairs WHERE kind = 'response' AND status = 'ok'"
        ).fetchall()
        written = db.execute("SELECT round, source FROM programs WHERE form != ''").fetchall()
        counts = np.array(
            db.execute(
                "SELECT destroy_answers + repair_answers, valid_destroys + valid_repairs"
                " FROM rounds ORDER BY round"
            ).fetchall()
        )
    last = known.rounds - first_of_last_third(known.rounds) + 1
    answers, valid = counts[-last:].sum(axis=0)
    utilities = by_round(known.rounds, found)
    uses = by_round(known.rounds, [(k, reads_state(source)) for k, source in written])
    late = np.concatenate(utilities[-last:])
    return Outcome(
        arm,
        seed,
        answers=int(counts[:, 0].sum()),
        pairs=known.pairs,
        best=known.best_by_round[-1],
        median=_of(np.median, late),
        top_decile=_of(_top_decile, late),
        failures=1 - valid / answers if answers else math.nan,
        state_use=_of(np.mean, np.concatenate(uses[-last:])),
        fresh=fresh,
        curves={
            "median": np.array([_of(np.median, values) for values in utilities]),
            "top_decile": np.array([_of(_top_decile, values) for values in utilities]),
            "state_use": np.array([_of(np.mean, values) for values in uses]),
        },
    )


def by_round(rounds: int, rows: Sequence[tuple[int, float]]) -> list[np.ndarray]:
    """(round, value) rows as the values of round 1, 2, ..."""
    numbers, values = (np.array([row[k] for row in rows], dtype=float) for k in (0, 1))
    return [values[numbers == k] for k in range(1, rounds + 1)]


def reads_state(source: str) -> bool:
    """Whether a program reads steps_since_improvement, which is in its parameters anyway."""
    return any(isinstance(n, ast.Name) and n.id == STATE for n in ast.walk(ast.parse(source)))


def first_of_last_third(rounds: int) -> int:
    """Number of the round with which the last third begins; it holds at least one round."""
    return rounds - math.ceil(rounds / 3) + 1


def _of(statistic: Callable[[np.ndarray], Any], values: np.ndarray) -> float:
    return float(statistic(values)) if values.size else math.nan


def _top_decile(values: np.ndarray) -> float:
    return float(np.quantile(values, 0.9))


# --- what is told ---------------------------------------------------------------------------------


def interval(values: Sequence[float]) -> tuple[int, float, float, float]:
    """How many values there are, their mean, and its 95% bootstrap interval; NaN for what lacks."""
    known = np.array([value for value in values if math.isfinite(value)])
    if known.size == 0:
        return 0, math.nan, math.nan, math.nan
    low, high = bootstrap_interval(known) if known.size > 1 else (math.nan, math.nan)
    return known.size, float(known.mean()), low, high


def report(outcomes: Sequence[Outcome], settings: Config, preset: str, out: Path) -> None:
    """Print the table and write it, the runs and the picture into `out`."""
    seeds = 1 + max(each.seed for each in outcomes)
    rows = table(outcomes)
    text = markdown(rows, seeds) + "\n\n" + _caption(outcomes, settings, preset, seeds)
    print("\n" + text)
    (out / "table.md").write_text(text + "\n", "utf-8")
    _write_csv(
        out / "table.csv",
        ("arm", "measure", "seeds", "mean", "low", "high"),
        [(name, key, *row[key]) for name, row in rows.items() for key in MEASURES],
    )
    numbers = ("arm", "seed", "answers", "pairs", *MEASURES)
    _write_csv(out / "runs.csv", numbers, [tuple(getattr(o, n) for n in numbers) for o in outcomes])
    _write_csv(
        out / "curves.csv",
        ("arm", "seed", "round", *CURVES),
        [
            (o.arm, o.seed, k + 1, *(float(o.curves[name][k]) for name in CURVES))
            for o in outcomes
            for k in range(len(o.curves["median"]))
        ],
    )
    plot(outcomes, out / "curves.png")
    print(f"written to {out}: table.md, table.csv, runs.csv, curves.csv, curves.png")


Row = dict[str, tuple[int, float, float, float]]  # measure -> values known, mean, low, high


def table(outcomes: Sequence[Outcome]) -> dict[str, Row]:
    """Every arm, then every arm but the first minus the first, paired by seed."""
    values = {
        measure: {(o.arm, o.seed): float(getattr(o, measure)) for o in outcomes}
        for measure in MEASURES
    }
    arms = _arms(outcomes)
    seeds = sorted({each.seed for each in outcomes})
    rows: dict[str, Row] = {
        arm: {m: interval([of[arm, seed] for seed in seeds]) for m, of in values.items()}
        for arm in arms
    }
    for arm in arms[1:]:
        rows[f"{arm} - {arms[0]}"] = {
            m: interval([of[arm, seed] - of[arms[0], seed] for seed in seeds])
            for m, of in values.items()
        }
    return rows


def _arms(outcomes: Sequence[Outcome]) -> list[str]:
    return list(dict.fromkeys(each.arm for each in outcomes))


def markdown(rows: Mapping[str, Row], seeds: int) -> str:
    """Means and intervals, and how many of the seeds there are where some have no value."""
    lines = [
        "| arm | " + " | ".join(MEASURES.values()) + " |",
        "|---" * (len(MEASURES) + 1) + "|",
    ]
    for name, row in rows.items():
        sign = "+" if " - " in name else ""
        cells = []
        for measure, (count, mean, low, high) in row.items():
            form = f"{{:{sign}.1%}}" if measure in SHARES else f"{{:{sign}.5f}}"
            cell = form.format(mean) if count else "none"
            if count > 1:
                cell += f" ({form.format(low)} to {form.format(high)})"
            if count < seeds:
                cell += f", {count} of {seeds} seeds"
            cells.append(cell)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _caption(outcomes: Sequence[Outcome], settings: Config, preset: str, seeds: int) -> str:
    answers = [each.answers for each in outcomes]
    spread = f"{min(answers)} to {max(answers)}" if len(set(answers)) > 1 else str(answers[0])
    first = first_of_last_third(settings.rounds)
    return (
        f"{settings.problem}, preset {preset}; {settings.rounds} rounds, the last third from round "
        f"{first}; "
        f"{seeds} seeds, {spread} answers a run. Means over seeds with 95% bootstrap intervals. "
        f"Fresh J: {FRESH_INSTANCES} instances of size {settings.size} that no run has seen, "
        f"{settings.rollouts} rollouts of {settings.steps} steps on each; the pair is chosen by "
        f"{settings.select}."
    )


def _write_csv(path: Path, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(
            ["" if isinstance(v, float) and math.isnan(v) else v for v in row] for row in rows
        )


def aligned(outcomes: Sequence[Outcome], name: str) -> dict[str, np.ndarray]:
    """The curves [seeds, K] of each arm, shifted so that all seeds are level at round 1.

    What is taken off a seed, the mean over arms of its round 1, is the same for all arms, and the
    mean over seeds is put back, so heights keep their meaning.
    """
    start: dict[int, list[float]] = {}
    for each in outcomes:
        start.setdefault(each.seed, []).append(each.curves[name][0])
    level = {seed: float(np.mean(values)) for seed, values in start.items()}
    level = {seed: value for seed, value in level.items() if math.isfinite(value)}
    middle = float(np.mean(list(level.values()))) if level else 0.0
    return {
        arm: np.stack(
            [
                each.curves[name] + middle - level.get(each.seed, middle)
                for each in outcomes
                if each.arm == arm
            ]
        )
        for arm in _arms(outcomes)
    }


def plot(outcomes: Sequence[Outcome], path: Path) -> None:
    """A panel for each of CURVES: means over seeds, with bands where there are two."""
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    figure = Figure(figsize=(4.6 * len(CURVES), 4.2), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    colours = colormaps["tab10"].colors  # type: ignore[attr-defined]
    panels = figure.subplots(1, len(CURVES), squeeze=False)[0]
    for axes, (name, title) in zip(panels, CURVES.items(), strict=True):
        for k, (arm, curves) in enumerate(aligned(outcomes, name).items()):
            points = [interval(column) for column in curves.T]
            _, mean, low, high = map(np.array, zip(*points, strict=True))
            rounds = np.arange(1, len(mean) + 1)
            colour = colours[k % len(colours)]
            axes.plot(
                rounds, mean, label=arm, color=colour, linewidth=max(2.4 - 0.3 * k, 1.2),
                linestyle=("-", "--", "-.", ":")[k % 4], marker="osD^vP"[k % 6], markersize=4,
            )  # fmt: skip
            axes.fill_between(rounds, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("round")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        if name in SHARES:
            axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    figure.suptitle("means over seeds, seeds aligned at round 1", fontsize=9, color="0.35")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    figure.savefig(path, dpi=150, metadata={"Software": None})  # equal pictures, equal files

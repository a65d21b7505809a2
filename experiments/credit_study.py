"""Credit schemes against each other: the same seeds and the same budget of sampled answers.

    python experiments/credit_study.py --schemes stackelberg,shared,gap --seeds 5 --preset quick
    python experiments/credit_study.py --schemes stackelberg,my_module:my_scheme --generator grammar

Every scheme discovers once with each of the seeds 0, 1, ..., in a run folder of its own under
--out. Finished runs are kept, so the same command goes on where it was stopped, and more schemes or
more seeds cost only themselves. Any setting of `spo discover` may follow, and holds for all runs.

The table is printed, and written beside its picture: table.md, table.csv, runs.csv, curves.png.
Its intervals are 95% percentile bootstraps over the seeds. A seed has its own training instances,
and they move J by more than a scheme does; runs of one seed share them, and their first answers. So
the table also has each scheme minus the first one, seed by seed, and the picture aligns the seeds
at round 1. Budgets are equal before failures: repairs are written for valid destroys alone, so a
scheme that teaches to fail samples fewer of them; the caption tells.
"""

import argparse
import csv
import math
import re
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spo_jax import config
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

FRESH_INSTANCES = 32  # the same ones for every run of every study
MEASURES = {  # name in the files: heading of the table
    "best": "best J",
    "median": "median, last third",
    "top_decile": "top decile, last third",
    "failures": "failures, last third",
    "fresh": "chosen pair, fresh J",
}


@dataclass(frozen=True, eq=False)
class Outcome:
    """One finished run. Everything is NaN where there is nothing to say it from.

    answers: sampled in the run. pairs: evaluated. best: its highest J. median, top_decile: of J of
    the pairs that the last third of the rounds found. failures: share of that third's answers that
    came to nothing. fresh: J of the run's pair on instances that no run has seen. curve: [K] median
    J of the pairs that each round found.
    """

    scheme: str
    seed: int
    answers: int
    pairs: int
    best: float
    median: float
    top_decile: float
    failures: float
    fresh: float
    curve: np.ndarray


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code: 2 for what the user can mend, 130 after Ctrl-C."""
    try:
        return study(_parser().parse_args(argv))
    except SpoError as error:
        print(f"credit_study: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return commands.INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").splitlines()[0], allow_abbrev=False
    )
    parser.add_argument("--schemes", required=True, help="names with commas between them")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each scheme")
    parser.add_argument("--problem", default="tsp")
    parser.add_argument("--preset", default=config.DEFAULT_PRESET)
    parser.add_argument("--out", default="runs/credit-study", help="folder of the study")
    config.add_arguments(parser)
    return parser


def study(args: Namespace) -> int:
    """Run what is missing, then tell of all."""
    schemes = [name.strip() for name in args.schemes.split(",") if name.strip()]
    given = config.overrides_from(args)
    if "credit" in given or "seed" in given:
        raise InputError("--credit and --seed are what a study varies: use --schemes and --seeds")
    if args.seeds < 1 or not schemes or len(set(map(folder_name, schemes))) < len(schemes):
        raise InputError("a study needs at least one seed, and schemes of different names")
    for scheme in schemes:
        get_credit(scheme)
    out = Path(args.out)
    wanted = {
        (scheme, seed): config.load(
            args.problem, args.preset, given | {"credit": scheme, "seed": seed}
        )
        for scheme in schemes
        for seed in range(args.seeds)
    }
    for (scheme, seed), settings in wanted.items():
        code = run(settings, args.preset, given, out / f"{folder_name(scheme)}-seed{seed}")
        if code:
            return code
    paths = {key: out / f"{folder_name(key[0])}-seed{key[1]}" for key in wanted}
    afresh = fresh_utilities({key: load_run(path).best for key, path in paths.items()}, wanted)
    outcomes = [outcome(*key, path, afresh[key]) for key, path in paths.items()]
    report(outcomes, next(iter(wanted.values())), args.preset, out)
    return 0


def folder_name(scheme: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", scheme)


# --- runs -----------------------------------------------------------------------------------------


def run(settings: Config, preset: str, given: Mapping[str, Any], path: Path) -> int:
    """Start the run at `path`, go on with it, or leave it if it is finished; the exit code."""
    if not path.exists():
        start = {"problem": settings.problem, "preset": preset, "out": str(path), "resume": None}
        own = {"credit": settings.credit, "seed": settings.seed}
        return commands.discover(Namespace(**(dict(given) | own | start)))
    found = load_run(path)
    if changes := found.config.changed(settings.to_dict()):
        raise InputError(f"{path} differs in {', '.join(changes)}: choose another --out")
    if found.status == "finished":
        return 0
    if found.status == "running":
        raise InputError(f"{path} is being run by another process")
    return commands.discover(Namespace(**given, resume=str(path)))


def fresh_utilities(pairs: Mapping[Any, Any], settings: Mapping[Any, Config]) -> dict[Any, float]:
    """J of each run's pair (a `Best` or None) on instances that all runs and studies share."""
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
            show_state=first.state,
            unsafe=first.unsafe_sandbox,
        ) as evaluator:
            rollouts = evaluator.run(
                list(distinct.values()), instances, seeds=range(first.rollouts), steps=first.steps
            )
        values = dict(zip(distinct, map(float, utility(rollouts.best_cost)), strict=True))
    return {key: values[found[key].digest] if key in found else math.nan for key in pairs}


def outcome(scheme: str, seed: int, path: Path, fresh: float) -> Outcome:
    """Read a finished run."""
    known = load_run(path)
    with closing(connect(path / DATABASE)) as db:
        # A pair that an earlier round evaluated is not in this one's rows: these are new.
        found = db.execute(
            "SELECT round, utility FROM pairs WHERE kind = 'response' AND status = 'ok'"
        ).fetchall()
        counts = np.array(
            db.execute(
                "SELECT destroy_answers + repair_answers, valid_destroys + valid_repairs"
                " FROM rounds ORDER BY round"
            ).fetchall()
        )
    rounds, values = (np.array([row[k] for row in found]) for k in (0, 1))
    last = known.rounds - first_of_last_third(known.rounds) + 1
    late = values[rounds > known.rounds - last]
    answers, valid = counts[-last:].sum(axis=0)
    curve = [_median(values[rounds == k]) for k in range(1, known.rounds + 1)]
    return Outcome(
        scheme,
        seed,
        answers=int(counts[:, 0].sum()),
        pairs=known.pairs,
        best=known.best_by_round[-1],
        median=_median(late),
        top_decile=float(np.quantile(late, 0.9)) if late.size else math.nan,
        failures=1 - valid / answers if answers else math.nan,
        fresh=fresh,
        curve=np.array(curve),
    )


def first_of_last_third(rounds: int) -> int:
    """Number of the round with which the last third begins; it holds at least one round."""
    return rounds - math.ceil(rounds / 3) + 1


def _median(values: np.ndarray) -> float:
    return float(np.median(values)) if values.size else math.nan


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
        ("scheme", "measure", "seeds", "mean", "low", "high"),
        [(name, key, *row[key]) for name, row in rows.items() for key in MEASURES],
    )
    numbers = ("scheme", "seed", "answers", "pairs", *MEASURES)
    _write_csv(out / "runs.csv", numbers, [tuple(getattr(o, n) for n in numbers) for o in outcomes])
    plot(outcomes, out / "curves.png")
    print(f"written to {out}: table.md, table.csv, runs.csv, curves.png")


Row = dict[str, tuple[int, float, float, float]]  # measure -> values known, mean, low, high


def table(outcomes: Sequence[Outcome]) -> dict[str, Row]:
    """Every scheme, then every scheme but the first minus the first, paired by seed."""
    values = {
        measure: {(o.scheme, o.seed): float(getattr(o, measure)) for o in outcomes}
        for measure in MEASURES
    }
    schemes = _schemes(outcomes)
    seeds = sorted({each.seed for each in outcomes})
    rows: dict[str, Row] = {
        scheme: {m: interval([of[scheme, seed] for seed in seeds]) for m, of in values.items()}
        for scheme in schemes
    }
    for scheme in schemes[1:]:
        rows[f"{scheme} - {schemes[0]}"] = {
            m: interval([of[scheme, seed] - of[schemes[0], seed] for seed in seeds])
            for m, of in values.items()
        }
    return rows


def _schemes(outcomes: Sequence[Outcome]) -> list[str]:
    return list(dict.fromkeys(each.scheme for each in outcomes))


def markdown(rows: Mapping[str, Row], seeds: int) -> str:
    """Means and intervals, and how many of the seeds there are where some have no value."""
    lines = [
        "| scheme | " + " | ".join(MEASURES.values()) + " |",
        "|---" * (len(MEASURES) + 1) + "|",
    ]
    for name, row in rows.items():
        sign = "+" if " - " in name else ""
        cells = []
        for measure, (count, mean, low, high) in row.items():
            form = f"{{:{sign}.1%}}" if measure == "failures" else f"{{:{sign}.4f}}"
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
        f"{settings.problem}, preset {preset}, generator {settings.generator}, update "
        f"{settings.update}; {settings.rounds} rounds, the last third from round {first}; "
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


def aligned(outcomes: Sequence[Outcome]) -> dict[str, np.ndarray]:
    """The curves [seeds, K] of each scheme, shifted so that all seeds are level at round 1.

    What is taken off a seed, the mean over schemes of its round 1, is the same for all schemes, and
    the mean over seeds is put back, so heights keep their meaning.
    """
    start: dict[int, list[float]] = {}
    for each in outcomes:
        start.setdefault(each.seed, []).append(each.curve[0])
    level = {seed: float(np.mean(values)) for seed, values in start.items()}
    level = {seed: value for seed, value in level.items() if math.isfinite(value)}
    middle = float(np.mean(list(level.values()))) if level else 0.0
    return {
        scheme: np.stack(
            [
                each.curve + middle - level.get(each.seed, middle)
                for each in outcomes
                if each.scheme == scheme
            ]
        )
        for scheme in _schemes(outcomes)
    }


def plot(outcomes: Sequence[Outcome], path: Path) -> None:
    """The median J of each round's new pairs: means over seeds, with bands where there are two."""
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(8, 4.5), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    colours = colormaps["tab10"].colors  # type: ignore[attr-defined]
    for k, (scheme, curves) in enumerate(aligned(outcomes).items()):
        points = [interval(column) for column in curves.T]
        _, mean, low, high = map(np.array, zip(*points, strict=True))
        rounds = np.arange(1, len(mean) + 1)
        colour = colours[k % len(colours)]
        axes.plot(
            rounds, mean, label=scheme, color=colour, linewidth=max(2.4 - 0.3 * k, 1.2),
            linestyle=("-", "--", "-.", ":")[k % 4], marker="osD^vP"[k % 6], markersize=4,
        )  # fmt: skip
        axes.fill_between(rounds, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.set_xlabel("round")
    axes.set_ylabel("median J of the round's new pairs\n(seeds aligned at round 1)")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, dpi=150, metadata={"Software": None})  # equal pictures, equal files


if __name__ == "__main__":
    sys.exit(main())

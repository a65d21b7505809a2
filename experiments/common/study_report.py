"""What a study tells: its table with intervals, its files and its picture."""

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from common.outcomes import COUNTS, CURVES, MEASURES, SHARES, Outcome, first_of_last_third
from common.tables import lines_of

from spo_jax.config import Settings
from spo_jax.envs.textfiles import write_atomically


def interval(values: Sequence[float]) -> tuple[int, float, float, float]:
    """How many values there are, their mean, and its 95% Student t interval; NaN for what lacks.

    Seeds are few: of five normal values a percentile bootstrap covers the mean 84 times in 100.
    """
    from scipy.stats import t

    known = np.array([value for value in values if math.isfinite(value)])
    if known.size == 0:
        return 0, math.nan, math.nan, math.nan
    mean, half = float(known.mean()), math.nan
    if known.size > 1:
        half = float(t.ppf(0.975, known.size - 1) * known.std(ddof=1) / math.sqrt(known.size))
    return known.size, mean, mean - half, mean + half


def report(
    outcomes: Sequence[Outcome], settings: Settings, preset: str, fresh: int, out: Path
) -> None:
    """Print the table and write it, the runs and the picture into `out`.

    fresh: instances behind the fresh J.
    """
    seeds = 1 + max(each.seed for each in outcomes)
    rows = table(outcomes)
    text = markdown(rows, seeds) + "\n\n" + _caption(outcomes, settings, preset, fresh, seeds)
    print("\n" + text)
    numbers = ("arm", "seed", *MEASURES)
    files: dict[str, str | bytes] = {
        "table.md": text + "\n",
        "table.csv": lines_of(
            ("arm", "measure", "seeds", "mean", "low", "high"),
            [(name, key, *row[key]) for name, row in rows.items() for key in MEASURES],
        ),
        "runs.csv": lines_of(numbers, [[getattr(o, n) for n in numbers] for o in outcomes]),
        "curves.csv": lines_of(
            ("arm", "seed", "round", *CURVES),
            [
                (o.arm, o.seed, k + 1, *(float(o.curves[name][k]) for name in CURVES))
                for o in outcomes
                for k in range(len(o.curves["median"]))
            ],
        ),
        "curves.png": plot(outcomes),
    }
    for name, data in files.items():
        write_atomically(out / name, data)
    print(f"written to {out}: {', '.join(files)}")


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
            form = f"{{:{sign}{_digits(measure)}}}"
            cell = form.format(mean) if count else "none"
            if count > 1:
                cell += f" ({form.format(low)} to {form.format(high)})"
            if count < seeds:
                cell += f", {count} of {seeds} seeds"
            cells.append(cell)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _digits(measure: str) -> str:
    return ".1%" if measure in SHARES else ",.0f" if measure in COUNTS else ".5f"


def _caption(
    outcomes: Sequence[Outcome], settings: Settings, preset: str, fresh: int, seeds: int
) -> str:
    first, judged = first_of_last_third(settings.search.rounds), settings.evaluation
    return (
        f"{settings.problem}, preset {preset}; {settings.search.rounds} rounds, the last third "
        f"from round {first}; {seeds} seeds. Means over seeds with 95% Student t intervals, each "
        "for itself: nothing is tested, and nothing corrected for their number. Arms have the same "
        "nominal budget; what they spent is in the first columns: repairs are written for valid "
        "destroys alone, one set for a destroy that a round wrote twice, and a pair that was met "
        "before is not evaluated again. "
        f"Fresh J: {fresh} instances of size {judged.size} that no run has seen, "
        f"{judged.rollouts} rollouts of {judged.steps} steps on each; the pair is chosen by "
        f"{settings.search.select}."
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


def plot(outcomes: Sequence[Outcome]) -> bytes:
    """A PNG with a panel for each of CURVES: means over seeds, with bands where there are two."""
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
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=150, metadata={"Software": None})  # equal pictures, equal files
    return buffer.getvalue()

"""Several runs on one page: arms, which differ in settings, with bands over their seeds."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from markupsafe import Markup

from spo_jax.program import ROLES, Role
from spo_jax.runs.report.figures import COLOURS, Figures
from spo_jax.runs.report.text import template
from spo_jax.runs.run import Run
from spo_jax.search.rounds import Counts

OF_SEED = re.compile(r"[-_ .]?seed[-_ ]?[0-9]+$")


@dataclass(frozen=True, eq=False)
class Arm:
    """Runs with the same settings but for the seed.

    name: of the folder of the first, without its seed. settings: those that not all arms share.
    """

    name: str
    settings: Mapping[str, Any]
    runs: list[Run]


def arms(runs: Sequence[Run]) -> list[Arm]:
    """Runs, put together by their settings, in the order in which each arm comes first."""
    flat = [
        {k: v for k, v in run.config.flat().items() if k not in ("seed", "workers")} for run in runs
    ]
    varied = [k for k in flat[0] if len({repr(each[k]) for each in flat}) > 1]
    found: dict[str, Arm] = {}
    for run, label, own in zip(runs, labels(runs), flat, strict=True):
        key = repr([own[k] for k in varied])
        if key not in found:
            name = OF_SEED.sub("", label) or label
            taken = {each.name for each in found.values()}
            found[key] = Arm(label if name in taken else name, {k: own[k] for k in varied}, [])
        found[key].runs.append(run)
    return list(found.values())


def labels(runs: Sequence[Run]) -> list[str]:
    """The names of the runs' folders, with as many of the folders above as tell them apart."""
    paths = [run.path.absolute().parts for run in runs]
    for depth in range(1, max(map(len, paths)) + 1):
        found = ["/".join(parts[-depth:]) for parts in paths]
        if len(set(found)) == len(set(paths)):
            break
    return found


def curves(runs: Sequence[Run]) -> dict[str, list[np.ndarray]]:
    """[K] of each run by name of the curve: gaps if every run knows some, else J; valid answers;
    what probes found, if there are any.
    """
    valid = [np.array([valid_share(count) for count in run.counts], float) for run in runs]
    besides = {"valid answers, %": valid}
    if any(run.probes for run in runs):
        for role in ROLES:
            title = f"J of the policy's {runs[0].game.side(role).plural} (probe)"
            besides[title] = [probed(run, role) for run in runs]
    gaps = {
        name: [run.gaps.column(field).astype(float) for run in runs]
        for name, field in (
            ("best gap so far, %", "best"),
            ("median gap of new pairs, %", "median"),
        )
    }
    if all(np.isfinite(each).any() for each in gaps["median gap of new pairs, %"]):
        return gaps | besides
    return {
        "best J so far": [run.best_by_round.column("utility").astype(float) for run in runs],
        "median J of new pairs": [
            np.array([math.nan if c.median is None else c.median for c in run.counts], float)
            for run in runs
        ],
        **besides,
    }


def probed(run: Run, role: Role) -> np.ndarray:
    """[K] the worth of a role's policy, NaN after rounds that were not probed."""
    found = {each.round: each.worth for each in run.probes if each.role == role}
    return np.array([found.get(k, math.nan) for k in range(1, run.rounds + 1)])


def valid_share(count: Counts) -> float:
    """Answers of a round that gave a valid program, in per cent; NaN of none.

    A destroy is valid if it passed the gate, a repair if its pair has a utility.
    """
    asked = count.destroy_answers + count.repair_answers
    return 100 * (count.valid_destroys + count.valid_repairs) / asked if asked else math.nan


def html(page: Mapping[str, Any], unread: Sequence[str] = ()) -> str:
    """The text of what `page` found. unread: sentences about runs that are not on it."""
    style = Markup((files(__package__) / "page.css").read_text("utf-8"))
    return template(__package__, "compare.html").render(page=page, unread=unread, style=style)


def page(runs: Sequence[Run]) -> dict[str, Any]:
    """Pictures and rows of the comparison; `missing`, a sentence, where there is none."""
    problems = sorted({run.config.problem for run in runs})
    begun = [run for run in runs if run.rounds]
    if len(problems) > 1:
        return {"missing": f"The runs are of {' and '.join(problems)}, which do not compare."}
    if not begun:
        return {"missing": "No run has a round that is over."}
    groups, figures = arms(begun), Figures()
    named = {
        title: dict(zip(begun, values, strict=True)) for title, values in curves(begun).items()
    }
    pictures = [(title, _drawn(figures, title, groups, own)) for title, own in named.items()]
    heads = ("arm", "run", "seed", "rounds", "state", *named)
    label = dict(zip(begun, labels(begun), strict=True))
    rows = [
        [arm.name, label[run], str(run.config.seed), run.progress,
         run.status, *(_cell(own[run][-1]) for own in named.values())]
        for arm in groups for run in arm.runs
    ]  # fmt: skip
    settings = [[arm.name, *map(str, arm.settings.values())] for arm in groups if arm.settings]
    apart = ("arm", *(name.replace("_", "-") for name in groups[0].settings))
    left = [f"{run.path} has no round that is over." for run in runs if not run.rounds]
    return {"pictures": pictures, "heads": heads, "rows": rows, "apart": apart,
            "settings": settings, "left": left}  # fmt: skip


def _cell(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "-"


def _drawn(
    figures: Figures, title: str, groups: Sequence[Arm], values: Mapping[Run, np.ndarray]
) -> Markup:
    """Means over the seeds of an arm that have the round; bands from the lowest to the highest."""

    def draw(axes: Any) -> None:
        for k, arm in enumerate(groups):
            own = [values[run] for run in arm.runs]
            length = max(map(len, own))
            table = np.full((len(own), length), np.nan)
            for row, each in zip(table, own, strict=True):
                row[: len(each)] = each
            known = np.isfinite(table).any(axis=0)
            rounds, table = np.arange(1, length + 1)[known], table[:, known]
            colour, label = COLOURS[k % len(COLOURS)], f"{arm.name} ({len(own)})"
            axes.plot(rounds, np.nanmean(table, axis=0), color=colour, label=label, marker="o",
                      markersize=3, linewidth=1.6)  # fmt: skip
            if len(own) > 1:
                low, high = np.nanmin(table, axis=0), np.nanmax(table, axis=0)
                axes.fill_between(rounds, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.set_xlabel("round")
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.02))

    return figures.chart(draw, f"{title} by round and arm, with bands over seeds")

"""The page of the run's pair: its source, its curve, a solution before and after, its steps."""

import math
from typing import Any

import numpy as np

from spo_jax.envs.problem import Instance, Solution
from spo_jax.envs.report.plot import placed
from spo_jax.envs.run.starts import CONSTRUCTION, RANDOM
from spo_jax.program import DESTROY_REPAIR, Game
from spo_jax.runs.report.figures import COLOURS, Figures
from spo_jax.runs.report.played import STEPS, Frame, Played
from spo_jax.runs.report.text import number
from spo_jax.runs.run import Run


def page(run: Run, played: Played | str, figures: Figures) -> dict[str, Any]:
    """played: or why the pair was not played."""
    if run.best is None:
        return {"missing": "There is no pair to show, because no pair of this run has been valid."}
    names = run.names(run.best.pair)
    best = run.best
    facts = [
        ("J in discovery", number(best.utility)),
        ("J on fresh instances", number(best.fresh)),
        ("J in validation", number(best.validation)),
        ("found in round", str(best.round)),
    ]
    programs = [
        (side.noun.capitalize(), name, program)
        for side, name, program in zip(
            (run.game.leader, run.game.follower),
            names,
            (best.pair.destroy, best.pair.repair),
            strict=True,
        )
    ]
    found: dict[str, Any] = {"facts": facts, "programs": programs, "missing_parts": []}
    missing: list[str] = found["missing_parts"]
    if isinstance(played, str):
        missing.append(played)
        return found
    if math.isfinite(played.gap):
        facts.append(("mean gap to references", f"{played.gap:.2f}%"))
    else:
        missing.append(
            "There is no gap, because the validation instances have no references; "
            "spo evaluate measures it on instances that have."
        )
    valid = int(np.isfinite(played.curves[:, -1]).sum())
    if valid:
        found["curve"] = _curve(played, figures)
        found["curve_about"] = (
            f"J so far by step on {valid} validation instances, one rollout each; "
            "the band spans the instances"
            if valid > 1
            else "J so far by step on one validation instance, one rollout"
        )
        reached = float(np.nanmean(played.curves[:, -1]))
        facts.append(("J at the end of the curve below", number(reached)))
        if math.isfinite(played.alns):
            facts.append(("J of ALNS there", number(played.alns)))
    if valid < len(played.instances):
        failed = len(played.instances) - valid
        missing.append(
            f"The pair failed on {failed} of {len(played.instances)} validation instances."
        )
    if math.isnan(played.alns) and valid:
        missing.append(f"The problem {played.problem.name} has no ALNS to compare the curve with.")
    if played.stopped:
        missing.append(played.stopped)
    if not played.problem.offers("draw"):
        missing.append(
            f"There is no picture of a solution, because the problem {played.problem.name} "
            "defines none (Problem.draw)."
        )
        return found
    if not placed(played.problem, played.instance):
        missing.append(
            f"There is no picture of a solution, because {played.instance.name} has no coordinates."
        )
        return found
    found |= _pictures(played, run.game, figures)
    return found


def _curve(played: Played, figures: Figures) -> Any:
    curves = played.curves[:, 1:]
    steps = 1 + np.arange(curves.shape[1])
    low, high = np.nanmin(curves, axis=0), np.nanmax(curves, axis=0)
    level = ("ALNS after as many steps", np.array(played.alns))
    return figures.lines(
        steps,
        [("this pair", np.nanmean(curves, axis=0))],
        "J so far by step of the search, mean over validation instances",
        band=(low, high),
        level=None if math.isnan(played.alns) else level,
        along="step",
        log=True,
    )


def _pictures(played: Played, game: Game, figures: Figures) -> dict[str, Any]:
    """The solution before and after the walk, and two pictures for each step that is shown."""
    instance, problem = played.instance, played.problem

    def cost(solution: Solution) -> str:
        return number(problem.cost(instance, solution))

    def paid(minimised: float) -> str:
        return number(problem.turned(minimised))

    def map(solution: Solution, removed: list[Any], about: str) -> Any:
        return figures.map(lambda axes: _draw(axes, played, solution, removed), about)

    after = "Where it ended" if played.stopped else f"After {STEPS} steps"
    names = {RANDOM: "A random start", CONSTRUCTION: "The construction"}
    start = names.get(played.start_name, "The start")
    ends = [
        (title, map(solution, [], f"{title} of {instance.name}"), cost(solution))
        for title, solution in ((start, played.start), (after, played.final))
    ]
    frames = []
    for each in played.frames:
        removed = each.step.removed if game == DESTROY_REPAIR else []
        caption = (
            f"Step {each.number}: destroy removes {len(removed)} of {played.size} {played.unit}"
            if game == DESTROY_REPAIR
            else f"Step {each.number}: before it"
        )
        frames.append(
            (caption, f"{problem.word} {paid(each.before)}", map(each.solution, removed, caption))
        )
        change = _change(each, problem.maximise)
        what = "repair puts them back" if game == DESTROY_REPAIR else " and ".join(game.functions)
        caption = f"Step {each.number}: {what}, {change}"
        cost_now = f"{problem.word} {paid(each.step.cost)}"
        frames.append((caption, cost_now, map(each.step.candidate, removed, caption)))
    return {"ends": ends, "frames": frames, "on": instance.name}


def _change(frame: Frame, maximise: bool) -> str:
    if not frame.accepted:
        return "worse, so the step is undone"
    if frame.step.cost > frame.before:
        return "worse, and accepted"
    if frame.step.cost < frame.before:
        share = (frame.before - frame.step.cost) / (abs(frame.before) or 1.0)
        return f"{100 * share:.2f}% {'more' if maximise else 'cheaper'}"
    return "as good as before"


def _draw(axes: Any, played: Played, solution: Solution, removed: list[Any]) -> None:
    """The problem's picture, with rings around removed nodes that it draws at their coordinates."""
    instance: Instance = played.instance
    played.problem.draw(axes, instance, solution)
    coords = instance.coords
    nodes = coords is not None and all(type(each) is int and each < len(coords) for each in removed)
    if not removed or coords is None or not nodes:
        return
    extent = [coords.min(axis=0), coords.max(axis=0)]
    if axes.get_aspect() == 1.0 and np.allclose(axes.dataLim.get_points(), extent):
        places = coords[removed]
        axes.scatter(
            *places.T, s=70, facecolors="none", edgecolors=COLOURS[1], linewidths=1.6, zorder=9
        )

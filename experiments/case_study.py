"""Figure 3: one step of a pair under the true state and under another, and with another repair.

    python experiments/case_study.py
    python experiments/case_study.py --run runs/tsp-standard-seed0 --size 60
    python experiments/case_study.py --pair mine.py --other docs/pairs/tsp-standard.py

The instance, the incumbent and the random stream are the same in all panels. (a1-a2): a destroy D1
and its repair R1 at a point of their own rollout, where the true state is 2. (b1-b2): the same
programs, shown 50 instead. (b3): the destruction of (b1) repaired by R2, which is shown 50, too.

The step is chosen as an illustration: of the run's best pairs by J, one per destroy, that read the
state, and of the points of their rollouts with state 2 and a gap neither 0 nor large, the one at
which the spread of the removed nodes changes most with the state, on average over a few draws of
which the first is shown; points where both steps leave the incumbent come first. R2 is the repair
of the best other pair that repairs the same destruction differently. The spread is the mean
distance between two removed nodes over that between any two.

Programs that are shown another state than z (--state of a discovery) see what that was at the
point, and instead what it was in the same rollout where z was nearest to 50.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common import cli, figures
from common.budgets import INSTANCE_SEED
from common.evaluated import referenced
from common.runs import asked_runs
from spo_jax.envs.problem import Instance, Solution
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.tsp.picture import places
from spo_jax.envs.run.jobs.onestep import Step, take_step
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.observation import given, shown_with
from spo_jax.envs.run.rollouts import Status
from spo_jax.envs.run.states import HIDDEN_STATE, Value
from spo_jax.errors import InputError
from spo_jax.program import Pair, save_pair
from spo_jax.runs.pairs import resolve
from spo_jax.runs.report.text import reads_state

STEPS = 100  # of the rollouts whose points are looked at
POINTS = 2  # of a rollout that are looked at, the last ones
COUNTER = 50  # the state that is shown instead
DRAWS = 4  # steps at each point and state, so that luck does not pass for the state's doing
ROUGH = 0.10  # the largest gap of an incumbent: a worse one is improved by any step
REMOVED, REMADE = "#D55E00", "#0072B2"
KEPT, BRIDGE = figures.MUTED, "#A9B4BD"


@dataclass(frozen=True, eq=False)
class Point:
    """A point of a rollout. pair: whose. z: the state that was shown. steps: how many were taken.
    counter: what is shown instead.
    """

    pair: Pair
    incumbent: Solution
    seed: int
    z: Value
    steps: int
    counter: Value


@dataclass(frozen=True, eq=False)
class Case:
    """What is drawn. true, shown: R1's steps under both states; other: R2's under the second."""

    instance: Instance
    point: Point
    second: Pair
    true: Step
    shown: Step
    other: Step


def run(args: argparse.Namespace) -> None:
    context = cli.context(args)
    if args.pair:
        if args.other is None:
            raise InputError("--pair needs --other, a pair or a run whose repair is R2")
        _, pair, config = resolve(args.pair, context.problem)
        first, rest = [pair], [resolve(args.other, context.problem)[1]]
        name = Path(args.pair).stem
    else:
        context, (found, *_) = asked_runs(args, context)
        first = rest = [each.pair for each in found.best_pairs(args.best)]
        config, name = found.config, found.path.name
    state = config.generator.state
    if state == HIDDEN_STATE:
        raise InputError(f"{name} was discovered without the LNS state, which this is about")
    sampled = context.problem.sample(args.size, args.instance + 1, INSTANCE_SEED)
    [instance] = referenced(context, sampled[args.instance :])
    with LocalEvaluator(
        context.problem,
        context.workers,
        on_invalid=config.evaluation.on_invalid,
        shown=shown_with(state),
        states=[state],
    ) as evaluator:
        case = chosen_case(
            evaluator, instance, first, rest, args.state, args.counter, config.evaluation.on_invalid
        )
    stem = f"{context.out}/case-study-{context.problem.name}-{name}"
    for what, pair in (("pair", case.point.pair), ("other", case.second)):
        about = f"Of the case study of {name}."
        problem = context.problem
        file = Path(f"{stem}-{what}.py")
        save_pair(file, pair, about, problem.interface, problem.kit, overwrite=True)
    figures.publish(draw(case), stem, f"{caption(case)} From {name}.", rows_of(case))


# --- the choice -----------------------------------------------------------------------------------


def chosen_case(
    evaluator: LocalEvaluator,
    instance: Instance,
    first: Sequence[Pair],
    rest: Sequence[Pair],
    z: int,
    counter: int,
    on_invalid: str,
) -> Case:
    """The case whose spread changes most; `rest` are the pairs whose repairs may be R2.

    Raises InputError if no pair reads the state, or none ever was at state z.
    """
    reading = [pair for pair in first if reads_state("destroy", pair.destroy.source)]
    reading = reading or [pair for pair in first if reads_state("repair", pair.repair.source)]
    if not reading:
        raise InputError("none of these pairs reads the state that it is shown: choose others")
    found: list[tuple[bool, float, Point, Step, Step]] = []
    for point in points(evaluator, instance, reading, z, counter, on_invalid):
        steps = [
            [_tried(evaluator, point.pair, instance, point, shown, draw) for draw in range(DRAWS)]
            for shown in (point.z, point.counter)
        ]
        known = [[step for step in row if step is not None] for row in steps]
        if min(map(len, known)) == DRAWS:
            spreads = [[spread(instance, step.removed) for step in row] for row in known]
            change = abs(float(np.mean(spreads[0]) - np.mean(spreads[1])))
            old = figures.edges_of(instance, point.incumbent)
            new = [figures.edges_of(instance, row[0].candidate) for row in known]
            found.append((old not in new, change, point, known[0][0], known[1][0]))
    if not found:
        raise InputError(
            f"no rollout is at state {z} where a little is left to improve; "
            "try another --state, --size or --instance"
        )
    _, _, point, true, shown = max(found, key=lambda each: each[:2])
    second, other = other_repair(evaluator, instance, point, shown, rest)
    return Case(instance, point, second, true, shown, other)


def points(
    evaluator: LocalEvaluator,
    instance: Instance,
    pairs: Sequence[Pair],
    z: int,
    counter: int = COUNTER,
    on_invalid: str = "fail",
) -> list[Point]:
    """The last points of the pairs' rollouts at which the state is z and the gap neither 0 nor
    above ROUGH. counter: what is shown instead, or the z at which that was shown. Raises InputError
    if every rollout fails.
    """
    seeds = (0, 1)
    rollouts = evaluator.run(pairs, [instance], seeds, STEPS)
    if not (rollouts.status == Status.OK).any():
        raise InputError(f"all these pairs fail here: {rollouts.failure(0)}")
    known = instance.reference
    goal = known if known is not None else np.nanmin(rollouts.final_cost)
    found = []
    for p, s in np.ndindex(len(pairs), len(seeds)):
        true = rollouts.state[p, 0, s]
        there = true == z
        seen = rollouts.shown_of(p, 0, s)
        another = seen != true.tolist()
        cost = rollouts.best_cost[p, 0, s, :-1]
        fit = (cost > goal * (1 + 1e-9)) & (cost <= goal * (1 + ROUGH))
        fit[0] = False  # the random start
        for t in np.flatnonzero(there & fit)[-POINTS:].tolist():
            # A shorter rollout that is shown the same is the beginning of a longer one, and ends
            # in its incumbent.
            if another:
                with LocalEvaluator(
                    evaluator.problem, on_invalid=on_invalid, shown=given(seen)
                ) as again:
                    at = again.run([pairs[p]], [instance], seeds[s : s + 1], t)
            else:
                at = evaluator.run([pairs[p]], [instance], seeds[s : s + 1], t)
            if at.status[0, 0, 0] != Status.OK:
                continue  # limits of time scale with the steps
            incumbent = evaluator.problem.decode(instance, at.code_of(0, 0, 0))
            other = seen[int(np.abs(true - counter).argmin())] if another else counter
            found.append(Point(pairs[p], incumbent, seeds[s], seen[t], t, other))
    return found


def other_repair(
    evaluator: LocalEvaluator,
    instance: Instance,
    point: Point,
    shown: Step,
    rest: Sequence[Pair],
) -> tuple[Pair, Step]:
    """The first pair of `rest` whose repair answers D1's destruction differently."""
    same = figures.edges_of(instance, shown.candidate)
    for pair in rest:
        if pair.repair.digest == point.pair.repair.digest:
            continue
        mixed = Pair(point.pair.destroy, pair.repair)
        step = _tried(evaluator, mixed, instance, point, point.counter)
        if step is not None and figures.edges_of(instance, step.candidate) != same:
            return pair, step
    raise InputError("all other repairs repair it alike: choose another --other")


def _tried(
    evaluator: LocalEvaluator, pair: Pair, instance: Instance, point: Point, z: Value, draw: int = 0
) -> Step | None:
    """A step of a pair, None where it fails. draw: which random numbers it draws."""
    try:
        return take_step(evaluator, pair, instance, point.incumbent, z, seed=draw)
    except InputError:
        return None


def spread(instance: Instance, nodes: Sequence[int]) -> float:
    """The mean distance between two of `nodes` over that between any two; 0 for fewer than two."""
    if len(nodes) < 2:
        return 0.0
    return _mean_distance(instance.dist[np.ix_(nodes, nodes)]) / _mean_distance(instance.dist)


def _mean_distance(dist: np.ndarray) -> float:
    return float(dist.sum() / (len(dist) * (len(dist) - 1)))


# --- the picture ----------------------------------------------------------------------------------


def draw(case: Case) -> Any:
    across, up = np.ptp(places(case.instance), axis=0)
    high = 1.78 * (0.09 * max(across, up) + up) / (0.09 * max(across, up) + across)  # of a map
    figure, panels = figures.new(figures.WIDTH, 2 * (high + 0.37), 2, 3, maps=True)
    z, counter = case.point.z, case.point.counter
    draw_destroy(panels[0, 0], case, case.true, f"(a1) $D_1$ under the true $z={z}$")
    draw_repair(panels[0, 1], case, case.true, "(a2) repaired by $R_1$")
    draw_destroy(panels[1, 0], case, case.shown, f"(b1) $D_1$ shown $z={counter}$")
    draw_repair(panels[1, 1], case, case.shown, "(b2) repaired by $R_1$")
    draw_repair(panels[1, 2], case, case.other, "(b3) repaired by $R_2$ instead")
    draw_legend(panels[0, 2])
    return figure


def draw_destroy(axes: Any, case: Case, step: Step, title: str) -> None:
    """What is left of the incumbent, and what was taken out of it."""
    instance = case.instance
    xy = figures.map_axes(axes, instance)
    old = figures.edges_of(instance, case.point.incumbent)
    left = figures.edges_of(instance, step.partial)
    figures.draw_edges(axes, xy, old - left, color=REMOVED, linewidth=0.7, linestyle=":", zorder=1)
    figures.draw_edges(axes, xy, left - old, color=BRIDGE, linewidth=0.8, zorder=1)
    figures.draw_edges(axes, xy, left & old, color=KEPT, linewidth=1.4, zorder=2)
    _nodes(axes, xy, instance, step.removed, filled=False)
    apart = spread(instance, step.removed)
    _titled(axes, title, f"{len(step.removed)} of {instance.size} removed, spread {apart:.2f}")


def draw_repair(axes: Any, case: Case, step: Step, title: str) -> None:
    """The candidate: what was kept, what was put back as it was, and what is new."""
    instance = case.instance
    xy = figures.map_axes(axes, instance)
    old = figures.edges_of(instance, case.point.incumbent)
    kept = figures.edges_of(instance, step.partial) & old
    new = figures.edges_of(instance, step.candidate)
    figures.draw_edges(axes, xy, kept & new, color=KEPT, linewidth=0.9, zorder=2)
    figures.draw_edges(axes, xy, (new & old) - kept, color=REMOVED, linewidth=1.2, zorder=2)
    figures.draw_edges(axes, xy, new - old, color=REMADE, linewidth=1.9, zorder=3)
    _nodes(axes, xy, instance, step.removed, filled=True)
    before = incumbent_cost(case)
    after = _worth(case, step.cost).partition(" ")[2]
    _titled(axes, title, f"{_worth(case, before)} → {after}")


def draw_legend(axes: Any) -> None:
    from matplotlib.lines import Line2D

    axes.set_axis_off()
    node: dict[str, Any] = {"linestyle": "none", "marker": "o", "markeredgecolor": REMOVED}
    looks: dict[str, dict[str, Any]] = {
        "kept": {"color": KEPT, "linewidth": 1.4},
        "bridge over removed nodes": {"color": BRIDGE, "linewidth": 0.8},
        "cut by the destroy": {"color": REMOVED, "linewidth": 0.9, "linestyle": ":"},
        "removed node": {**node, "markersize": 4.5, "markerfacecolor": "white"},
        "put back by the repair": {**node, "markersize": 4.5, "color": REMOVED},
        "edge as it was before": {"color": REMOVED, "linewidth": 1.2},
        "edge that is new": {"color": REMADE, "linewidth": 1.9},
    }
    handles = [Line2D([], [], label=label, **look) for label, look in looks.items()]
    axes.legend(handles=handles, loc="center left", labelspacing=0.75, borderaxespad=0.0)


def _nodes(
    axes: Any, xy: np.ndarray, instance: Instance, removed: Sequence[int], filled: bool
) -> None:
    gone = set(removed)
    first = 0 if instance.problem == "tsp" else 1  # the depot is drawn apart
    rest = [node for node in range(first, len(xy)) if node not in gone]
    axes.scatter(*xy[rest].T, s=5, color=figures.INK, linewidths=0, zorder=4)
    axes.scatter(
        *xy[list(removed)].T, s=15, facecolors=REMOVED if filled else "white",
        edgecolors=REMOVED, linewidths=1.1, zorder=5,
    )  # fmt: skip
    if first:
        axes.scatter(*xy[0], s=26, marker="s", color=figures.INK, edgecolors="white", zorder=6)


def _titled(axes: Any, title: str, below: str) -> None:
    label, _, rest = title.partition(" ")
    text = f"$\\mathbf{{{label}}}$ {rest}\n{below}"
    axes.set_title(text, fontsize=7.2, fontweight="normal", linespacing=1.35)


def incumbent_cost(case: Case) -> float:
    """The incumbent's cost."""
    return get_problem(case.instance.problem).cost(case.instance, case.point.incumbent)


def _worth(case: Case, cost: float) -> str:
    """A cost as a gap, or as it is where there is no reference."""
    known = case.instance.reference
    return f"cost {cost:.4g}" if known is None else f"gap {100 * (cost - known) / known:.2f}%"


def rows_of(case: Case) -> list[dict[str, Any]]:
    """The panels in numbers; tours and routes as lists of nodes."""
    steps = (
        ("a1-a2", case.point.z, "R1", case.true),
        ("b1-b2", case.point.counter, "R1", case.shown),
        ("b1-b3", case.point.counter, "R2", case.other),
    )
    return [
        {
            "panels": panels, "state": z, "repair": repair, "removed": len(step.removed),
            "spread": spread(case.instance, step.removed), "incumbent_cost": incumbent_cost(case),
            "candidate_cost": step.cost, "reference": case.instance.reference,
            "removed_nodes": step.removed, "incumbent": case.point.incumbent,
            "candidate": step.candidate,
        }
        for panels, z, repair, step in steps
    ]  # fmt: skip


def caption(case: Case) -> str:
    point = case.point
    costs = (incumbent_cost(case), case.true.cost, case.shown.cost, case.other.cost)
    ends = [_worth(case, cost) for cost in costs]
    return (
        f"One step from the same incumbent ({case.instance.name}, after {point.steps} steps of "
        f"rollout {point.seed}, {ends[0]}). (a1-a2) D1 and R1 under the true state z = {point.z}: "
        f"{ends[1]}. (b1-b2) The same programs, shown z = {point.counter}: {ends[2]}. (b3) The "
        f"destruction of (b1) repaired by R2: {ends[3]}. D1: {point.pair.destroy.strategy} "
        f"R1: {point.pair.repair.strategy} R2: {case.second.repair.strategy}"
    )


def main() -> int:
    parser = cli.parser(__doc__, runs=True)
    parser.add_argument("--pair", metavar="PATH", help="the pair (D1, R1), instead of a run's")
    parser.add_argument("--other", metavar="PATH", help="with --pair: whose repair is R2")
    parser.add_argument("--size", type=int, default=60, help="nodes or customers")
    parser.add_argument("--instance", type=int, default=0, metavar="K", help="which of that size")
    parser.add_argument("--state", type=int, default=2, help="the true state of the point")
    parser.add_argument(
        "--counter", type=int, default=COUNTER, help="the state that is shown instead"
    )
    parser.add_argument("--best", type=int, default=40, metavar="N", help="pairs to choose from")
    return cli.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())

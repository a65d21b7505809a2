"""The best pair at work: rollouts on validation instances, single steps, and removals by state.

Programs run in the sandbox as ever, with seeds of the run, so the same run gives the same numbers.
"""

import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from spo_jax.envs.gaps import reference_gap
from spo_jax.envs.problem import Instance, Problem, Solution, rules_of
from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.baselines import get_baseline
from spo_jax.envs.run.acceptance import ACCEPTANCES, PAPER, mean_edge
from spo_jax.envs.run.evaluator import LOCAL, RAY
from spo_jax.envs.run.jobs.onestep import Step, take_step
from spo_jax.envs.run.lns import Outcome
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.observation import Shown, shown_with
from spo_jax.envs.run.starts import STARTS
from spo_jax.envs.run.states import History, Value
from spo_jax.envs.scores import shares
from spo_jax.errors import InputError, SpoError
from spo_jax.program import DESTROY_REPAIR, ROLES, Pair, Program, Role
from spo_jax.runs.references import kept
from spo_jax.runs.report.text import arguments, reads_state
from spo_jax.runs.run import ProgramRecord, Run
from spo_jax.search.instances import training_instances, validation_instances

STAGNATIONS = (0, 1, 2, 5, 10, 20, 50)
DRAWS = 3  # removals that a number by state is the mean of
MOST_PROGRAMS, MOST_INSTANCES, LARGEST = 4, 4, 500
STEPS, FRAMES = 40, 9  # of the walk, and the steps of it that are shown


@dataclass(frozen=True)
class Frame:
    """A step of the walk. before: the cost, as it is minimised; state: what programs were shown;
    accepted: whether the search went on from it.
    """

    number: int
    solution: Solution
    step: Step
    before: float
    state: Value
    accepted: bool


@dataclass(frozen=True)
class ByState:
    """What a program does in each of some states, from one solution; means, NaN where it failed.

    values: how much a destroy removes; of any other program the cost of what the step makes, in
    percent above the cost before. alike: how much of what a destroy removes the same draw removes
    in the first state (Jaccard); of others the share of draws with the same solution as there.
    """

    name: str
    reads: bool
    values: tuple[float, ...]
    alike: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Played:
    """curves: [I, T+1] J so far by step on the validation instances. gap: percent above their
    references at the end, NaN without. alns: J of the classical baseline with as many steps, NaN
    without. frames: of a walk on `instance`, whose best is `final`; stopped: why it was cut short.
    start_name: what `start` is, as STARTS has it.
    states: those of destroys and repairs.
    """

    problem: Problem
    curves: np.ndarray
    gap: float
    alns: float
    instances: tuple[str, ...]
    instance: Instance
    frames: tuple[Frame, ...]
    start: Solution
    final: Solution
    start_name: str
    stopped: str
    states: tuple[Value, ...]
    destroys: tuple[ByState, ...]
    repairs: tuple[ByState, ...]

    @property
    def size(self) -> int:
        return self.instance.size

    @property
    def unit(self) -> str:
        return self.problem.unit


def play(run: Run) -> Played | str:
    """The run's best pair at work, or in one sentence why that cannot be shown."""
    if run.best is None:
        return "The pair was not played, because no pair of this run has been valid."
    if run.config.evaluation.evaluator not in (LOCAL, RAY):
        return (
            "The pair was not played, because the run has an evaluator of its own, "
            f"{run.config.evaluation.evaluator}."
        )
    try:
        problem = get_problem(run.config.problem)
        validation = _small(validation_instances(run.config, problem))
        training = _small(training_instances(run.config, problem))
        if not validation or not training:
            return (
                f"The pair was not played: every instance has more than {LARGEST} {problem.unit}."
            )
        return _play(run, problem, validation, training[0], run.best.pair)
    except SpoError as error:
        return f"The pair was not played: {error}."


def _small(instances: list[Instance]) -> list[Instance]:
    return [each for each in instances if each.size <= LARGEST][:MOST_INSTANCES]


def _play(
    run: Run, problem: Problem, validation: list[Instance], instance: Instance, pair: Pair
) -> Played:
    config = run.config
    steps = config.evaluation.validation_steps
    with LocalEvaluator(
        problem,
        1,
        seed=config.seed,
        cpu_seconds=config.evaluation.cpu_seconds,
        memory_mb=config.evaluation.memory_mb,
        on_invalid=config.evaluation.on_invalid,
        shown=shown_with(config.generator.state),
        unsafe=config.evaluation.unsafe_sandbox,
        kit=config.generator.kit != "none",
        acceptance=config.evaluation.acceptance,
        start=config.evaluation.start,
        work=config.evaluation.work,
    ) as evaluator:
        rollouts = evaluator.run([pair], validation, seeds=(0,), steps=steps, fail_fast=False)
        steps = int((rollouts.state[0, :, 0] >= 0).sum(axis=1).max()) or steps  # work may end them
        cost = rollouts.best_cost[0, :, 0, : steps + 1]
        curves = shares(cost)
        named, shown = config.evaluation.start, shown_with(config.generator.state)
        start = STARTS[named](problem, instance, random.Random(config.seed))
        walked, final, stopped = _walk(
            evaluator, pair, instance, start, shown, config.evaluation.acceptance
        )
        improving = [each for each in walked if each.step.cost < each.before]
        frames = tuple((improving or walked)[:FRAMES])
        seen = [rollouts.shown_of(0, i, 0) for i in range(len(validation))]
        states = _met(max(seen, key=len)) if shown.observes else STAGNATIONS
        # It failed throughout, or the repair fails, with whichever destroy.
        lost = not states or (bool(stopped) and not frames)
        by_state = [
            () if lost else _by_state(run, evaluator, instance, final, role, states)
            for role in ROLES
        ]
    known = kept(run.path)
    references = [
        known[each.digest].cost if each.digest in known else each.reference or math.nan
        for each in validation
    ]
    gaps = reference_gap(cost[:, -1], problem.turned(np.array(references)))
    gap = float(np.nanmean(gaps)) if np.isfinite(gaps).any() else math.nan
    valid = np.flatnonzero(np.isfinite(cost[:, -1]))
    alns = _alns(problem, [validation[i] for i in valid], steps, cost[valid, 0])
    names = tuple(each.name for each in validation)
    return Played(
        problem,
        curves,
        gap,
        alns,
        names,
        instance,
        frames,
        start,
        final,
        named,
        stopped,
        states,
        *by_state,
    )


def _walk(
    evaluator: LocalEvaluator,
    pair: Pair,
    instance: Instance,
    current: Solution,
    shown: Shown,
    acceptance: str = PAPER,
) -> tuple[list[Frame], Solution, str]:
    """Single steps of the run's search from a solution, its best, and why it was cut short."""
    problem, luck = evaluator.problem, random.Random(evaluator.seed)
    cost, since, best = problem.minimised(instance, current), 0, current
    lowest, (make, warmth, left) = cost, ACCEPTANCES[acceptance]
    threshold = warmth * mean_edge(cost, instance.size)  # or temperature
    rule = make(threshold, luck.random)
    history = History(cost, STEPS, lambda step: step / STEPS, lambda share: threshold * left(share))
    taken = []
    stopped = ""
    rules = rules_of(problem, instance)
    for k in range(STEPS):
        history.step, history.stagnation, history.best = k, since, lowest
        state = shown.at(since, k, history)
        try:
            step = take_step(evaluator, pair, instance, current, state, seed=k)
        except InputError as error:
            stopped = f"The search that is drawn ended at step {k + 1}: {error}."
            break
        if acceptance != PAPER:
            candidate = rules.polished(current, step.candidate)
            code, cost_of = [*rules.encode(candidate)], problem.minimised(instance, candidate)
            step = replace(step, candidate=candidate, code=code, cost=cost_of)
        accepted = rule(step.cost, cost, lowest, k / STEPS)
        taken.append(Frame(k + 1, current, step, cost, state, accepted))
        outcome = _outcome(step.cost, cost, lowest) if accepted else Outcome.REJECTED
        since = 0 if outcome == Outcome.BEST else since + 1
        if accepted:
            current, cost = step.candidate, step.cost
            best, lowest = (current, cost) if cost <= lowest else (best, lowest)
        if outcome == Outcome.BEST and acceptance != PAPER:
            current = problem.rewritten(current, luck)
        history.add(cost, outcome)
    return taken, best, stopped


def _outcome(cost: float, current: float, lowest: float) -> Outcome:
    """Of a step that is accepted."""
    if cost < current:
        return Outcome.BEST if cost < lowest else Outcome.BETTER
    return Outcome.WORSE if cost > current else Outcome.SAME


def _met(shown: Sequence[Value]) -> tuple[Value, ...]:
    """As many different states of a rollout as STAGNATIONS has, from its first to its last."""
    met = list(dict.fromkeys(shown))
    places = np.linspace(0, len(met) - 1, min(len(met), len(STAGNATIONS)))
    return tuple(met[int(place)] for place in places)


def _by_state(
    run: Run,
    evaluator: LocalEvaluator,
    instance: Instance,
    solution: Solution,
    role: Role,
    states: Sequence[Value],
) -> tuple[ByState, ...]:
    """The best pair's program of a role and some of the last population, each with the other half
    of the pair; repairs with its destroy held in the first state, so that all get the same.
    """
    assert run.best is not None
    best = run.best.pair
    names = [run.names(best)[ROLES.index(role)]]
    if run.rounds:
        names += [member.name for member in run.populations[run.rounds, role]]
    chosen: list[ProgramRecord] = [run.index[n] for n in dict.fromkeys(names) if n in run.index]
    destroy = unmoved(best.destroy, states[0], run.game.leader.function)
    found, entry = [], run.game.side(role).function
    for each in chosen[:MOST_PROGRAMS]:
        leads = role == "destroy"
        removes = leads and run.game == DESTROY_REPAIR
        pair = Pair(each.program, best.repair) if leads else Pair(destroy, each.program)
        steps = [
            [_step(evaluator, pair, instance, solution, z, draw) for draw in range(DRAWS)]
            for z in states
        ]
        cost = evaluator.problem.minimised(instance, solution)
        measure = _size if removes else partial(_change, cost)
        canonical = _overlap if removes else _same
        values = tuple(_mean([measure(one) for one in row]) for row in steps)
        alike = tuple(
            _mean([canonical(one, first) for one, first in zip(row, steps[0], strict=True)])
            for row in steps
        )
        found.append(ByState(each.name, reads_state(entry, each.source), values, alike))
    return tuple(found)


def unmoved(destroy: Program, state: Value = 0, entry: str = "destroy") -> Program:
    """The same leader, always shown a state; itself where its function `entry` is not found."""
    names = arguments(entry, destroy.source)
    if len(names) < 2:
        return destroy
    inner = re.sub(rf"^def {entry}\(", "def shown_nothing(", destroy.source, flags=re.MULTILINE)
    passed = ", ".join([*names[:-2], repr(state), names[-1]])
    outer = f"def {entry}({', '.join(names)}):\n    return shown_nothing({passed})\n"
    return replace(destroy, source=f"{inner.rstrip()}\n\n\n{outer}")


def _step(
    evaluator: LocalEvaluator,
    pair: Pair,
    instance: Instance,
    solution: Solution,
    z: Value,
    seed: int,
) -> Step | None:
    """None for a pair that fails at this step."""
    try:
        return take_step(evaluator, pair, instance, solution, z, seed)
    except InputError:
        return None


def _size(step: Step | None) -> float:
    return len(step.removed) if step else math.nan


def _change(cost: float, step: Step | None) -> float:
    """Percent of the cost before."""
    return 100 * (step.cost - cost) / abs(cost) if step and cost else math.nan


def _overlap(one: Step | None, other: Step | None) -> float:
    """Jaccard index of what two steps remove."""
    if not one or not other:
        return math.nan
    mine, its = set(map(repr, one.removed)), set(map(repr, other.removed))
    return len(mine & its) / len(mine | its)


def _same(one: Step | None, other: Step | None) -> float:
    return float(one.code == other.code) if one and other else math.nan


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _alns(problem: Problem, instances: list[Instance], steps: int, start: np.ndarray) -> float:
    """J of the problem's classical ALNS from the pair's starting costs, NaN where it has none."""
    if "alns" not in problem.baselines or not instances:
        return math.nan
    try:
        heuristic: Any = get_baseline("alns", problem)
    except SpoError:  # a package is not installed
        return math.nan
    if not heuristic.takes_steps:
        return math.nan
    costs = [problem.minimised(each, heuristic.solve(each, 0, steps=steps)) for each in instances]
    return float(np.mean(shares(np.stack([start, costs], axis=1))[:, -1]))

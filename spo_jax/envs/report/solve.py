"""`spo solve`: the best solution of one instance that a pair finds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spo_jax.envs.problem import Instance, Problem, Solution
from spo_jax.envs.problems import get_problem, known_problems
from spo_jax.envs.report.evaluation import require_lawful
from spo_jax.envs.run.evaluator import EvaluatorFactory
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Status
from spo_jax.envs.run.shown import shown_with
from spo_jax.errors import InputError
from spo_jax.program import Pair

STEPS = 500  # of a rollout that is given neither steps nor time
STEPS_PER_SECOND = 40_000  # more than any rollout does: the bound where time decides
MOST_STEPS = 2_000_000  # what a rollout has room to record


@dataclass(frozen=True, eq=False)
class Solved:
    """The best of one instance's rollouts.

    gap: percent above the instance's reference, None without one. steps: LNS steps of the best
    rollout, whose seed is `seed`. seconds: CPU seconds of all rollouts. failed: (status, reason)
    of each rollout that gave no solution.
    """

    instance: Instance
    solution: Solution
    cost: float
    gap: float | None
    initial_cost: float
    seed: int
    steps: int
    seconds: float
    rollouts: int
    failed: tuple[tuple[str, str], ...]


def problem_of(path: str | Path, options: Iterable[str] = ()) -> str:
    """The name of the known problem with the suffix of an instance file. Raises InputError.

    options: of `Reading` that its files must take. Of several, the first in `known_problems`.
    """
    known = {name: get_problem(name) for name in known_problems()}
    suffixes = {name: problem.suffixes for name, problem in known.items()}
    for kind in ("suffixes", "tables"):
        fits = [n for n, each in known.items() if Path(path).suffix.lower() in getattr(each, kind)]
        if fits:
            return next((n for n in fits if set(options) <= {*known[n].reading}), fits[0])
    listed = " or ".join(suffix for own in suffixes.values() for suffix in own)
    raise InputError(f"{path}: the suffix is not {listed}, so say which --problem it is of")


def default_output(path: str | Path, problem: Problem) -> Path:
    """The default file of the solution: in this folder, with a name that no benchmark file has."""
    return Path(f"{Path(path).stem}.spo{problem.solution_suffix}")


def cpu_limit(problem: Problem, instance: Instance) -> float:
    """CPU seconds of 500 steps after which a rollout counts as endless.

    An evaluation has the problem's limit. A user's instance may be larger than that allows for,
    and the time of a step grows at least with the square of the size.
    """
    return 10 * problem.cpu_seconds * max(1.0, (instance.size / 500) ** 2)


def solve(
    instance: Instance,
    pair: Pair,
    problem: Problem,
    *,
    steps: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    seeds: int = 1,
    workers: int = 1,
    cpu_seconds: float | None = None,
    on_invalid: str = "fail",
    state: bool = True,
    unsafe: bool = False,
    evaluator: EvaluatorFactory = LocalEvaluator,
    progress: Callable[[int, int], None] | None = None,
) -> Solved:
    """Rollouts with seeds seed, seed + 1, ..., spread over the workers; the best one's solution.

    steps: LNS steps of a rollout; seconds: CPU seconds of a rollout, instead. cpu_seconds: CPU
    limit of 500 steps, by default `cpu_limit`. state: whether the programs see
    steps_since_improvement; else they see 0 at every step. evaluator: the evaluator's factory.

    Raises InputError if no rollout gave a solution, SandboxUnavailable where none can run.
    """
    if steps is not None and seconds is not None:
        raise InputError("give steps or a time, not both")
    if seeds < 1:
        raise InputError(f"seeds must be at least 1, not {seeds}")
    if seconds is not None and not 0 < seconds <= 1e6:
        raise InputError(f"the time must be between 0 and a million seconds, not {seconds:g}")
    if steps is None:
        steps = STEPS
        if seconds is not None:
            steps = min(MOST_STEPS, max(STEPS, round(seconds * STEPS_PER_SECOND)))
    elif not 1 <= steps <= MOST_STEPS:
        raise InputError(f"steps must be from 1 to {MOST_STEPS}, not {steps}")
    limit = cpu_limit(problem, instance) if cpu_seconds is None else cpu_seconds
    with evaluator(
        problem,
        min(workers, seeds),
        cpu_seconds=limit,
        on_invalid=on_invalid,
        shown=shown_with(state),
        unsafe=unsafe,
    ) as started:
        require_lawful(started, problem, pair)
        rollouts = started.run(
            [pair],
            [instance],
            seeds=range(seed, seed + seeds),
            steps=steps,
            seconds=seconds,
            fail_fast=False,
            progress=progress,
        )
    status, reason = rollouts.status[0, 0], rollouts.reason[0, 0]
    failed = tuple(
        (Status(int(status[s])).label, str(reason[s]))
        for s in range(seeds)
        if status[s] != Status.OK
    )
    if len(failed) == seeds:
        why, said = failed[0]
        hint = " (--cpu-seconds raises the limit, --time ends in time)" if why == "timeout" else ""
        raise InputError(f"the pair gave no solution: {why}: {said or 'no reason given'}{hint}")
    final = rollouts.final_cost[0, 0]
    best = int(np.nanargmin(final))
    cost = float(final[best])
    reference = instance.reference
    gap = 100 * (cost - reference) / reference if reference and reference > 0 else None
    return Solved(
        instance=instance,
        solution=problem.decode(instance, rollouts.code_of(0, 0, best)),
        cost=cost,
        gap=gap,
        initial_cost=float(rollouts.initial_cost[0, 0, best]),
        seed=seed + best,
        steps=int((rollouts.state[0, 0, best] >= 0).sum()),
        seconds=float(np.nansum(rollouts.seconds[0, 0])),
        rollouts=seeds,
        failed=failed,
    )

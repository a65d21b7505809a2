"""One step taken apart, to look at what a destroy removes and what a repair makes of it.

The programs run in the sandbox as ever, and what they report is checked by the problem's rules.
"""

import ast
from dataclasses import dataclass
from typing import Any

import numpy as np

from spo_jax.envs.problem import Infeasible, Instance, Rules, Solution
from spo_jax.envs.run.jobs.planning import CHECK_SECONDS
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Status, unpadded
from spo_jax.envs.run.sandbox.jobs import RunJob, StepTask
from spo_jax.envs.run.states import Value
from spo_jax.errors import InputError
from spo_jax.program import Pair
from spo_jax.seeding import derive

ROOM = 64  # bytes of a report for each item of a solution


@dataclass(frozen=True)
class Step:
    """handed: what the rules took from the leader, in plain values; of a destroy the solution
    without the removed items, and these. () where they are more than a report has room for.
    candidate: what the follower made of it; code: of that; cost: as it is minimised.
    """

    handed: tuple[Any, ...]
    candidate: Solution
    code: list[int]
    cost: float

    @property
    def partial(self) -> Solution:
        """What a destroy left; None where that is not known."""
        return self.handed[0] if len(self.handed) == 2 else None

    @property
    def removed(self) -> list[Any]:
        """What a destroy removed; [] where that is not known."""
        removed = self.handed[1] if len(self.handed) == 2 else []
        if type(removed) is list:
            return removed
        return [*removed] if isinstance(removed, tuple | set | dict) else [removed]


def take_step(
    evaluator: LocalEvaluator,
    pair: Pair,
    instance: Instance,
    solution: Solution,
    z: Value,
    seed: int = 0,
) -> Step:
    """One step of `pair` from `solution`, shown the state `z`.

    seed: of what the programs draw. Two pairs with the same destroy, the same z and the same seed
    destroy alike. The step may take as long as a rollout. Raises InputError if the solution is
    infeasible or the pair fails.
    """
    problem = evaluator.problem
    rules = problem.rules(instance.seen())
    try:
        solution = rules.repaired(solution)
    except Infeasible as error:
        raise InputError(f"there is no step from an infeasible solution: {error}") from None
    task = StepTask(
        instance=instance.digest,
        code_length=problem.code_length(instance),
        room=ROOM * (1 + problem.code_length(instance) + instance.size),
        solution=solution,
        z=z,
        rng_seed=derive("step", evaluator.seed, instance.digest, seed),
    )
    job = RunJob(
        destroy=pair.destroy.source,
        repair=pair.repair.source,
        tasks=(task,),
        steps=1,
        cpu_seconds=evaluator.cpu_seconds,
        memory=evaluator.memory,
        gate_seconds=2 * CHECK_SECONDS,
    )
    report = evaluator.step(job, instance)
    if report.status != Status.OK:
        raise InputError(
            f"the pair fails at this step ({report.status.label}: {report.what}); choose another"
        )
    code = unpadded(np.frombuffer(report.payload, "<i4", offset=task.room))
    try:
        made = ast.literal_eval(report.payload[: task.room].decode("ascii"))
        if type(rules).destroyed is Rules.destroyed:  # others may take what is no plain value
            rules.destroyed(solution, made)
        candidate = problem.decode(instance, code)
    except (Infeasible, IndexError, ValueError, TypeError, SyntaxError, RecursionError) as error:
        raise InputError(f"the report of a step is none ({error})") from None
    return Step(made or (), candidate, code, problem.minimised(instance, candidate))

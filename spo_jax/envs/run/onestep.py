"""One LNS step taken apart, to look at what a destroy removes and what a repair makes of it.

The programs run in the sandbox as ever, and what they report is checked by the problem's rules.
"""

from dataclasses import dataclass

import numpy as np

from spo_jax.envs.problem import Infeasible, Instance, Solution, without
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.planning import CHECK_SECONDS
from spo_jax.envs.run.rollouts import Status, unpadded
from spo_jax.envs.run.sandbox.jobs import RunJob, StepTask
from spo_jax.errors import InputError
from spo_jax.program import Pair
from spo_jax.seeding import derive


@dataclass(frozen=True)
class Step:
    """removed: nodes, as the destroy listed them. partial: the solution without them, in its order.
    candidate: what the repair made of it, and its cost as it is minimised.
    """

    removed: list[int]
    partial: Solution
    candidate: Solution
    cost: float


def take_step(
    evaluator: LocalEvaluator,
    pair: Pair,
    instance: Instance,
    solution: Solution,
    z: int,
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
        size=instance.size,
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
    numbers = np.frombuffer(report.payload, "<i4")
    removed = unpadded(numbers[: task.size])
    partial = without(solution, set(removed))
    try:
        rules.destroyed(solution, (partial, removed))
        candidate = problem.decode(instance, unpadded(numbers[task.size :]))
    except (Infeasible, IndexError) as error:
        raise InputError(f"the pair reports a step that is none ({error})") from None
    return Step(removed, partial, candidate, problem.minimised(instance, candidate))

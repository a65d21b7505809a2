"""What an evaluation of pairs is made of: tasks with their seeds and limits, shared out as jobs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf

from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.run.acceptance import PAPER
from spo_jax.envs.run.observation import Showing, Shown, of_rollout
from spo_jax.envs.run.sandbox.jobs import RunJob, Task, portions
from spo_jax.envs.run.starts import Starts
from spo_jax.errors import InputError
from spo_jax.program import Pair
from spo_jax.seeding import derive

FULL_STEPS = 500  # Problem.cpu_seconds is for this many steps
CHECK_SECONDS = 5.0  # of CPU time for one program's gate


def limit_of(problem: Problem, instance: Instance, cpu_seconds: float | None) -> float:
    """CPU seconds of 500 steps. The problem's own limit is made for up to 500 nodes."""
    if cpu_seconds is not None:
        return cpu_seconds
    return problem.cpu_seconds * max(1.0, (instance.size / 500) ** 2)


@dataclass(frozen=True)
class Planner:
    """The terms of all rollouts of an evaluator, which has the same arguments.

    memory: in bytes.
    """

    problem: Problem
    seed: int
    cpu_seconds: float | None
    memory: int
    skip_infeasible: bool
    shown: Showing
    work: float | None
    acceptance: str = PAPER
    starts: Starts | None = None

    @property
    def parts(self) -> int:
        """Of the state whose values rollouts record. Raises InputError where they differ."""
        several = [self.shown] if isinstance(self.shown, Shown) else self.shown.values()
        found = {each.parts for each in several}
        if len(found) > 1:
            raise InputError("states with different numbers of parts are shown side by side")
        return max(found, default=0)

    def limit(self, instance: Instance) -> float:
        """CPU seconds of 500 steps."""
        return limit_of(self.problem, instance, self.cpu_seconds)

    def tasks(
        self, instances: Sequence[Instance], seeds: Sequence[int], steps: int
    ) -> Iterator[Task]:
        """The rollouts of any pair, in the order of instances and seeds."""
        for i, instance in enumerate(instances):
            for s, seed in enumerate(seeds):
                name = (self.seed, instance.digest, seed)
                yield Task(
                    index=i * len(seeds) + s,
                    instance=instance.digest,
                    code_length=self.problem.code_length(instance),
                    start_seed=derive("start", *name),
                    rng_seed=derive("programs", *name),
                    shown=of_rollout(self.shown, instance.digest, seed, steps),
                    work=inf if self.work is None else self.work * steps * instance.size,
                    luck_seed=derive("luck", *name),
                    start=None if self.starts is None else self.starts.sent(instance, seed),
                )

    def jobs(
        self,
        pairs: Sequence[Pair],
        instances: Sequence[Instance],
        seeds: Sequence[int],
        steps: int,
        *,
        seconds: float | None,
        fail_fast: bool,
        workers: int,
    ) -> Iterator[tuple[int, RunJob]]:
        """One job per pair; where pairs are few, several, so that every worker has something to do.

        Each with the position of its pair. How rollouts are shared out cannot be seen in their
        results.
        """
        tasks = list(self.tasks(instances, seeds, steps))
        shared = workers > 1 and 0 < len(pairs) < 4 * workers
        pieces = -(-4 * workers // len(pairs)) if shared else 1
        size = -(-len(tasks) // pieces)
        limits = {}
        for instance in instances:
            limits[instance.digest] = self.limit(instance) * steps / FULL_STEPS
            if seconds is not None:  # a step begun in time may end late, but not forever
                limits[instance.digest] = seconds + 10.0
        weights = {each.digest: each.nbytes for each in instances}
        shares = [
            (limit, portion)
            for limit, alike in groupby(tasks, lambda task: limits[task.instance])
            for portion in portions(list(alike), size, weights)
        ]
        for p, pair in enumerate(pairs):
            for limit, portion in shares:
                yield (
                    p,
                    RunJob(
                        destroy=pair.destroy.source,
                        repair=pair.repair.source,
                        tasks=portion,
                        steps=steps,
                        cpu_seconds=limit,
                        memory=self.memory,
                        gate_seconds=2 * CHECK_SECONDS,
                        seconds=seconds,
                        skip_infeasible=self.skip_infeasible,
                        fail_fast=fail_fast,
                        metered=self.work is not None,
                        acceptance=self.acceptance,
                    ),
                )


def require_valid(
    problem: Problem,
    instances: Sequence[Instance],
    seeds: Sequence[int],
    steps: int,
    seconds: float | None,
) -> None:
    """Raises InputError for an evaluation that cannot be done."""
    if not instances or not seeds:
        raise InputError("an evaluation needs at least one instance and one seed")
    if steps < 1:
        raise InputError(f"steps must be at least 1, not {steps}")
    if seconds is not None and not seconds > 0:
        raise InputError(f"seconds must be positive, not {seconds}")
    for instance in instances:
        if instance.problem != problem.name:
            raise InputError(
                f"{instance.name} is a {instance.problem} instance, not {problem.name}"
            )
        problem.require(instance)

"""Adaptive searches over several destroys and repairs: planned, checked, and what came of them.

A step that ends the process of its search, by its time, its memory or a crash, has failed: the
search is done anew, without that step's pair, whose steps then fail without being played.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.run.adaptive import Adaptation
from spo_jax.envs.run.jobs.planning import CHECK_SECONDS, FULL_STEPS, Planner
from spo_jax.envs.run.jobs.results import Results
from spo_jax.envs.run.rollouts import Rollouts, Status
from spo_jax.envs.run.sandbox.jobs import STEP, WHOLE_JOB, AdaptiveJob
from spo_jax.envs.run.sandbox.outcome import ChildReport, Ended
from spo_jax.program import Program
from spo_jax.seeding import derive

STEP_SHARE = 0.1  # of the CPU time of a rollout of as many steps: what one step may take


@dataclass(frozen=True, eq=False)
class AdaptiveRuns:
    """Adaptive searches over axes: I instance, S seed, T step.

    Attributes:
        rollouts: [1, I, S] as those of one pair; their state is the steps since the best cost fell.
        drawn: [I, S, T, 2] int16, the positions of the destroy and the repair; -1 in a failed
            search.
        outcomes: [I, S, T] int8, an Outcome.
    """

    rollouts: Rollouts
    drawn: np.ndarray
    outcomes: np.ndarray


class Adapting:
    """Adaptive searches under construction.

    A search has the starts of the rollouts with its seed, and what it draws is derived from it too,
    so its result is the same for any number of workers.
    """

    def __init__(
        self,
        problem: Problem,
        planner: Planner,
        destroys: Sequence[Program],
        repairs: Sequence[Program],
        instances: Sequence[Instance],
        seeds: Sequence[int],
        steps: int,
        rules: Adaptation,
    ):
        self._planner, self._instances, self._seeds = planner, instances, seeds
        self._destroys = tuple(program.source for program in destroys)
        self._repairs = tuple(program.source for program in repairs)
        self._steps, self._rules = steps, rules
        self._results = Results(problem, 1, instances, seeds, steps, planner.seed, planner.starts)
        shape = (len(instances) * len(seeds), steps)
        self._drawn = np.full((*shape, 2), -1, np.int16)
        self._outcomes = np.full(shape, -1, np.int8)
        self.done = 0

    def jobs(self, carry: bool) -> Iterator[AdaptiveJob]:
        """One per seed, in which the weights go on from instance to instance, or one per search."""
        tasks = list(self._planner.tasks(self._instances, self._seeds, self._steps))
        count = len(self._seeds)
        shares = [tasks[s::count] for s in range(count)] if carry else [[task] for task in tasks]
        limit = max(map(self._planner.limit, self._instances)) * self._steps / FULL_STEPS
        for share in shares:
            yield AdaptiveJob(
                destroys=self._destroys,
                repairs=self._repairs,
                tasks=tuple(share),
                luck_seeds=tuple(derive("adaptive", task.start_seed) for task in share),
                steps=self._steps,
                rules=self._rules,
                cpu_seconds=STEP_SHARE * limit,
                memory=self._planner.memory,
                gate_seconds=CHECK_SECONDS * (len(self._destroys) + len(self._repairs)),
            )

    def settle(self, job: AdaptiveJob, ended: Ended, last: bool) -> AdaptiveJob | None:
        """Record what a job came to; what is left to do: the job itself once more, or another.

        last: whether a fault of our own side counts now.
        """
        reports, verdict = ended.reports, ended.verdict
        if reports and reports[-1].index == WHOLE_JOB:
            self._fail(job, reports[-1])
            return None
        if len(reports) < len(job.tasks) * (self._steps + 1):
            ours = verdict is None or verdict.status in (Status.HOST_FAULT, Status.TAMPERED)
            if verdict is not None and verdict.again and not last:
                return job
            if reports and not ours:
                destroy, repair, _, _ = STEP.unpack_from(reports[-1].payload)
                if destroy >= 0 and (destroy, repair) not in job.banned:
                    return replace(job, banned=job.banned | {(destroy, repair)})
            silent = ChildReport(0, Status.CRASH, "the process ended without reporting", 0.0)
            self._fail(job, verdict or silent)
            return None
        for k, task in enumerate(job.tasks):
            first = k * (self._steps + 1)
            self._record(task.index, reports[first : first + self._steps + 1])
        self.done += len(job.tasks)
        return None

    def found(self) -> AdaptiveRuns:
        shape = (len(self._instances), len(self._seeds), self._steps)
        return AdaptiveRuns(
            self._results.rollouts([0], fail_fast=False),
            self._drawn.reshape(*shape, 2),
            self._outcomes.reshape(shape),
        )

    def _fail(self, job: AdaptiveJob, report: ChildReport) -> None:
        for task in job.tasks:
            self._results.fail(0, replace(report, index=task.index))
        self.done += len(job.tasks)

    def _record(self, index: int, reports: Sequence[ChildReport]) -> None:
        steps = [STEP.unpack_from(report.payload) for report in reports]
        best = np.array([lowest for *_, lowest in steps])
        fell = np.flatnonzero(np.diff(best) < 0)
        at = np.arange(self._steps)
        before = np.concatenate([[0], fell + 1])
        state = at - before[np.searchsorted(before, at, side="right") - 1]
        payload = (
            best.astype("<f8").tobytes()
            + state.astype("<i4").tobytes()
            + reports[-1].payload[STEP.size :]
        )
        whole = ChildReport(index, Status.OK, "", reports[-1].seconds, payload)
        self._results.record(0, whole)
        self._drawn[index] = [(destroy, repair) for destroy, repair, _, _ in steps[:-1]]
        self._outcomes[index] = [outcome for _, _, outcome, _ in steps[1:]]

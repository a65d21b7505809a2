"""Evaluations as jobs: what they are made of, and what becomes of their reports.

Results are the same whoever does the jobs, and in whatever order they come back: every rollout has
its own seeds, derived from (run seed, instance, rollout seed), the same for every pair.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from spo_jax.envs.kits import load_kit
from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.run.acceptance import ACCEPTANCES, PAPER
from spo_jax.envs.run.adaptive import Adaptation
from spo_jax.envs.run.evaluator import Progress
from spo_jax.envs.run.jobs.planning import CHECK_SECONDS, Planner, require_valid
from spo_jax.envs.run.jobs.results import Results
from spo_jax.envs.run.observation import OBSERVED, Showing, Shown
from spo_jax.envs.run.own import KINDS
from spo_jax.envs.run.rollouts import Refusal, Rollouts, Status
from spo_jax.envs.run.sandbox.jobs import WHOLE_JOB, AdaptiveJob, CheckJob, Job, RunJob
from spo_jax.envs.run.sandbox.outcome import ChildReport, Ended
from spo_jax.envs.run.starts import RANDOM, Starts
from spo_jax.envs.run.states import STATES
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program

if TYPE_CHECKING:
    from spo_jax.envs.run.jobs.operators import AdaptiveRuns

CHECKS_PER_JOB = 32
TRIES = 3  # of a job at which our own side fails, before it is a host fault


@dataclass
class Work:
    """A job and who it is for.

    attempts: how often our own side failed at it. died: how its process died at the task that is
    next now; a second time is the program's doing.
    """

    job: Job
    pair: int = -1
    attempts: int = 0
    died: ChildReport | None = None

    @property
    def size(self) -> int:
        """Rollouts."""
        return len(self.job.tasks) if isinstance(self.job, RunJob) else 0


Finished = Callable[[Work, Ended], list[Work]]  # what became of a job -> what is left to do for it
Wanted = Callable[[Work], bool]  # whether a job is still worth starting
Running = Callable[[int], None]  # told how many rollouts of jobs that run are done


class JobEvaluator:
    """What evaluators share whose rollouts are jobs of sandboxed workers; see `LocalEvaluator` for
    the settings. A subclass does the jobs: `_start`, `_drain`, `close` and `layers`.
    """

    def __init__(
        self,
        problem: Problem,
        workers: int = 1,
        *,
        seed: int = 0,
        cpu_seconds: float | None = None,
        memory_mb: int = 512,
        on_invalid: str = "fail",
        shown: Showing = OBSERVED,
        unsafe: bool = False,
        kit: bool = True,
        work: float | None = None,
        acceptance: str = PAPER,
        start: str = RANDOM,
        states: Sequence[str] = (),
    ):
        if workers < 1:
            raise InputError(f"workers must be at least 1, not {workers}")
        if on_invalid not in ("fail", "skip"):
            raise InputError(f"on_invalid must be 'fail' or 'skip', not {on_invalid!r}")
        self.cpu_seconds = problem.cpu_seconds if cpu_seconds is None else cpu_seconds
        if not self.cpu_seconds > 0 or memory_mb < 1:
            raise InputError("cpu_seconds and memory_mb must be positive")
        if work is not None and not work > 0:
            raise InputError(f"work must be positive, not {work}")
        self.problem = problem
        self.seed = seed
        self.memory = memory_mb << 20
        ACCEPTANCES[acceptance]
        self._starts = Starts(problem, seed, start)
        self._planner = Planner(
            problem, seed, cpu_seconds, self.memory, on_invalid == "skip", shown, work, acceptance,
            self._starts,
        )  # fmt: skip
        showing = [shown] if isinstance(shown, Shown) else shown.values()
        states = sorted({*states, *(each.state for each in showing)})
        for state in states:
            STATES[state]
        self._parts = [name for name in (acceptance, *states) if ":" in name]
        self._unsafe = unsafe
        self._kit = kit
        self._count = workers
        self._started = False

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers and whatever they run."""
        raise NotImplementedError

    @property
    def layers(self) -> Mapping[str, bool]:
        """Which sandbox layers hold (the names are in `confine.LAYERS`)."""
        raise NotImplementedError

    @property
    def _width(self) -> int:
        """How many workers there are to share out jobs to."""
        return self._count

    def _start(self) -> None:
        """Start the workers."""
        raise NotImplementedError

    def _drain(
        self,
        queue: deque[Work],
        finished: Finished,
        wanted: Wanted,
        running: Running,
        instances: Sequence[Instance],
    ) -> None:
        """Do the jobs of the queue, and those that `finished` returns. instances: those that the
        jobs name. Whatever it raises, the workers are ended before.
        """
        raise NotImplementedError

    def _require_kit(self) -> None:
        """Raises InputError for a kit that cannot be imported, before a process starts."""
        if self._kit:
            load_kit(self.problem, counts=self._planner.work is not None)

    # --- what it is for ---------------------------------------------------------------------------

    def run(
        self,
        pairs: Sequence[Pair],
        instances: Sequence[Instance],
        seeds: Sequence[int] = (0, 1),
        steps: int = 100,
        *,
        seconds: float | None = None,
        fail_fast: bool = True,
        progress: Progress | None = None,
    ) -> Rollouts:
        """Roll every pair out on every instance with every seed, as `Evaluator.run` says."""
        require_valid(self.problem, instances, seeds, steps, seconds)
        order: dict[str, int] = {}
        for pair in pairs:
            order.setdefault(pair.digest, len(order))
        unique = [pairs[k] for k in _first_positions([pair.digest for pair in pairs])]
        results = Results(
            self.problem, len(unique), instances, seeds, steps, self.seed, self._starts,
            self._planner.parts,
        )  # fmt: skip
        planned = self._planner.jobs(
            unique, instances, seeds, steps,
            seconds=seconds, fail_fast=fail_fast, workers=self._width,
        )  # fmt: skip
        jobs = [Work(job, p) for p, job in planned]
        total = len(unique) * len(instances) * len(seeds)
        done = 0

        def finished(work: Work, ended: Ended) -> list[Work]:
            nonlocal done
            again = _settle(work, ended, results, fail_fast)
            done += work.size - sum(each.size for each in again)
            return again

        def running(reported: int) -> None:
            if progress is not None:
                progress(done + reported, total)

        def wanted(work: Work) -> bool:
            nonlocal done
            assert isinstance(work.job, RunJob)
            if not fail_fast or not results.failed_before(work.pair, work.job.tasks[0].index):
                return True
            done += work.size
            return False

        self._do(jobs, finished, wanted, running, instances)
        return results.rollouts([order[pair.digest] for pair in pairs], fail_fast)

    def check(self, programs: Sequence[Program]) -> list[Refusal | None]:
        """Pass programs through the static gate: None, or why each did not pass."""
        refusals: list[Refusal | None] = [None] * len(programs)
        places: dict[int, list[int]] = {}
        jobs = []
        for first in range(0, len(programs), CHECKS_PER_JOB):
            chunk = range(first, min(first + CHECKS_PER_JOB, len(programs)))
            job = self._check_job([programs[k] for k in chunk])
            places[id(job)] = list(chunk)
            jobs.append(Work(job))

        def finished(work: Work, ended: Ended) -> list[Work]:
            where = places.pop(id(work.job))
            for report in ended.reports:
                if report.reason:
                    refusals[where[report.index]] = Refusal(Status.REJECTED, report.reason)
            left = where[len(ended.reports) :]
            attempts, verdict = work.attempts, ended.verdict
            died = None if ended.reports else work.died
            if left and verdict is not None and verdict.again and attempts + 1 < TRIES:
                attempts += 1
                died = verdict if verdict.status == Status.CRASH else died
            elif left:
                if verdict is not None and verdict.status == Status.HOST_FAULT:
                    verdict = died or verdict
                ours = verdict is not None and verdict.status == Status.HOST_FAULT
                reason = verdict.reason if verdict else "the gate ended without a verdict"
                status = Status.HOST_FAULT if ours else Status.REJECTED
                refusals[left[0]] = Refusal(status, reason)
                left, attempts, died = left[1:], 0, None
            if not left:
                return []
            job = self._check_job([programs[k] for k in left])
            places[id(job)] = left
            return [Work(job, attempts=attempts, died=died)]

        self._do(jobs, finished)
        return refusals

    def adaptive(
        self,
        destroys: Sequence[Program],
        repairs: Sequence[Program],
        instances: Sequence[Instance],
        seeds: Sequence[int],
        steps: int,
        rules: Adaptation,
        *,
        carry: bool = True,
        progress: Progress | None = None,
    ) -> "AdaptiveRuns":
        """Adaptive searches over some operators; see `spo_jax.envs.run.jobs.operators`."""
        from spo_jax.envs.run.jobs.operators import Adapting

        require_valid(self.problem, instances, seeds, steps, None)
        runs = Adapting(
            self.problem, self._planner, destroys, repairs, instances, seeds, steps, rules
        )

        def finished(work: Work, ended: Ended) -> list[Work]:
            assert isinstance(work.job, AdaptiveJob)
            again = runs.settle(work.job, ended, last=work.attempts + 1 == TRIES)
            if progress is not None:
                progress(runs.done, len(instances) * len(seeds))
            attempts = work.attempts + 1 if again is work.job else 0
            return [] if again is None else [Work(again, attempts=attempts)]

        self._do([Work(job) for job in runs.jobs(carry)], finished, instances=instances)
        return runs.found()

    # --- how it does it ---------------------------------------------------------------------------

    def _check_job(self, programs: Sequence[Program]) -> CheckJob:
        return CheckJob(tuple((p.role, p.source) for p in programs), CHECK_SECONDS, self.memory)

    def _do(
        self,
        jobs: Sequence[Work],
        finished: Finished,
        wanted: Wanted = lambda work: True,
        running: Running = lambda reported: None,
        instances: Sequence[Instance] = (),
    ) -> None:
        """Do jobs. Raises RuntimeError for a mistake of the problem, and InputError for one of
        another function of the user's.
        """

        def judged(work: Work, ended: Ended) -> list[Work]:
            for report in ended.reports:
                if report.status == Status.HOST_FAULT:  # a bug, whatever pair met it
                    if report.reason.startswith(KINDS):
                        raise InputError(report.reason)
                    raise RuntimeError(f"problem {self.problem.name}: {report.reason}")
            return finished(work, ended)

        if not self._started:
            self._start()
        try:
            self._drain(deque(jobs), judged, wanted, running, instances)
        except BaseException:
            self.close()  # a half-read job would confuse the next run
            raise


SILENT = ChildReport(0, Status.CRASH, "the process ended without reporting", 0.0)


def _first_positions(keys: Sequence[str]) -> list[int]:
    seen: dict[str, int] = {}
    for k, key in enumerate(keys):
        seen.setdefault(key, k)
    return list(seen.values())


def _settle(work: Work, ended: Ended, results: Results, fail_fast: bool) -> list[Work]:
    """Record a job's reports; what is left to do for it."""
    job, reports = work.job, ended.reports
    assert isinstance(job, RunJob)
    for report in reports:
        if report.index == WHOLE_JOB:
            for task in job.tasks:
                results.fail(work.pair, replace(report, index=task.index))
            return []
        results.record(work.pair, report)
    left = job.tasks[len(reports) :]
    if not left or (fail_fast and reports and reports[-1].status != Status.OK):
        return []
    if ended.isolate:
        return [replace(work, job=replace(job, tasks=left, isolate=True))]
    verdict = ended.verdict or SILENT
    died = None if reports else work.died
    crashed = verdict.status == Status.CRASH
    if verdict.again and work.attempts + 1 < TRIES and not (crashed and died):
        # A process that shares nothing decides.
        again = replace(job, tasks=left, isolate=job.isolate or crashed)
        died = verdict if crashed else died
        return [replace(work, job=again, attempts=work.attempts + 1, died=died)]
    if verdict.status == Status.HOST_FAULT and died:
        verdict = died
    results.fail(work.pair, replace(verdict, index=left[0].index))
    if fail_fast or not left[1:]:
        return []
    return [Work(replace(job, tasks=left[1:]), work.pair)]

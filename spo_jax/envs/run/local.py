"""Run pairs on instances in sandboxed workers and collect what happened.

Results are the same for any number of workers and any order of pairs: every rollout has its own
seeds, derived from (run seed, instance, rollout seed), the same for every pair.
"""

import select
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from spo_jax.envs.kits import load_kit
from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.run.adaptive import Adaptation
from spo_jax.envs.run.evaluator import Progress
from spo_jax.envs.run.operators import Adapting, AdaptiveRuns
from spo_jax.envs.run.planning import CHECK_SECONDS, Planner, require_valid
from spo_jax.envs.run.results import Results
from spo_jax.envs.run.rollouts import Refusal, Rollouts, Status
from spo_jax.envs.run.sandbox.board import Board
from spo_jax.envs.run.sandbox.confine import REQUIRED
from spo_jax.envs.run.sandbox.jobs import (
    WHOLE_JOB,
    AdaptiveJob,
    CheckJob,
    Job,
    Place,
    RunJob,
)
from spo_jax.envs.run.sandbox.outcome import ChildReport, Ended, fault
from spo_jax.envs.run.sandbox.worker import Worker
from spo_jax.envs.run.shown import OBSERVED, Showing
from spo_jax.errors import InputError, SandboxUnavailable
from spo_jax.program import Pair, Program

CHECKS_PER_JOB = 32
TRIES = 3  # of a job at which our own side fails, before it is a host fault


@dataclass
class _Work:
    """A job and who it is for. attempts: how often our own side failed at it."""

    job: Job
    pair: int = -1
    attempts: int = 0


class LocalEvaluator:
    """Sandboxed workers on this machine: an `Evaluator`, and the factory of itself.

    problem: a `Problem`. workers: processes. seed: the run seed of all rollouts.
    cpu_seconds: CPU-time limit of a rollout of 500 steps, scaled to the steps of a run; the
        problem's own by default, times (size / 500) squared on an instance of more than 500.
        memory_mb: what a program may map on top of the interpreter.
    on_invalid: "fail" (an infeasible candidate fails the pair) or "skip" (a rejected step).
    shown: what programs see as steps_since_improvement; HIDDEN is the paper's second ablation.
    unsafe: run even where the kernel offers no seccomp.
    kit: whether programs may import the problem's kit, `lns`, if it has one.
    work: units of work per step and node (`spo_jax.envs.run.sandbox.meter`). A rollout ends when
        its programs have spent as much as all its steps at that price. Unlike time, that repeats.

    Raises SandboxUnavailable on entry if the sandbox cannot be built here, and InputError for a kit
    that cannot be imported, or that `work` needs and that does not count its own.
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
        self._planner = Planner(
            problem, seed, cpu_seconds, self.memory, on_invalid == "skip", shown, work
        )
        self._unsafe = unsafe
        self._kit = kit
        self._count = workers
        self._workers: list[Worker] = []
        self._started = False

    def __enter__(self) -> "LocalEvaluator":
        self._start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _start(self) -> None:
        if self._kit:
            # Complains before a process starts.
            load_kit(self.problem, counts=self._planner.work is not None)
        self._board = Board()
        self._workers = [
            Worker(self.problem.spec, self._board.file.reader, self._kit)
            for _ in range(self._count)
        ]
        self._started = True
        try:
            for worker in self._workers:
                worker.launch()
            for worker in self._workers:
                worker.start()
        except BaseException:
            self.close()
            raise
        missing = [name for name in REQUIRED if not self.layers.get(name)]
        if missing and not self._unsafe:
            self.close()
            raise SandboxUnavailable(
                f"this machine offers no {' and no '.join(missing)}, without which generated "
                "programs are not run; --unsafe-sandbox runs them all the same"
            )

    def close(self) -> None:
        """End all workers and whatever they run."""
        if self._started:
            for worker in self._workers:
                worker.close()
            self._board.close()
        self._started = False

    @property
    def layers(self) -> dict[str, bool]:
        """Which sandbox layers hold (the names are in `confine.LAYERS`)."""
        return dict(self._workers[0].layers)

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
        results = Results(self.problem, len(unique), instances, seeds, steps, self.seed)
        planned = self._planner.jobs(
            unique, instances, seeds, steps,
            seconds=seconds, fail_fast=fail_fast, workers=self._count,
        )  # fmt: skip
        jobs = [_Work(job, p) for p, job in planned]
        total = len(unique) * len(instances) * len(seeds)
        done = 0

        def finished(work: _Work, ended: Ended) -> list[_Work]:
            nonlocal done
            again = _settle(work, ended, results, fail_fast)
            done += _size(work) - sum(map(_size, again))
            return again

        def running(busy: Iterable[Worker]) -> None:
            if progress is not None:
                progress(done + sum(len(worker.reports) for worker in busy), total)

        def wanted(work: _Work) -> bool:
            nonlocal done
            assert isinstance(work.job, RunJob)
            if not fail_fast or not results.failed_before(work.pair, work.job.tasks[0].index):
                return True
            done += _size(work)
            return False

        self._drain(deque(jobs), finished, wanted, running, instances)
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
            jobs.append(_Work(job))

        def finished(work: _Work, ended: Ended) -> list[_Work]:
            where = places.pop(id(work.job))
            for report in ended.reports:
                if report.reason:
                    refusals[where[report.index]] = Refusal(Status.REJECTED, report.reason)
            left = where[len(ended.reports) :]
            attempts, verdict = work.attempts, ended.verdict
            if left and verdict is not None and verdict.again and attempts + 1 < TRIES:
                attempts += 1
            elif left:
                ours = verdict is not None and verdict.status == Status.HOST_FAULT
                reason = verdict.reason if verdict else "the gate ended without a verdict"
                status = Status.HOST_FAULT if ours else Status.REJECTED
                refusals[left[0]] = Refusal(status, reason)
                left, attempts = left[1:], 0
            if not left:
                return []
            job = self._check_job([programs[k] for k in left])
            places[id(job)] = left
            return [_Work(job, attempts=attempts)]

        self._drain(deque(jobs), finished)
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
    ) -> AdaptiveRuns:
        """Adaptive searches over some operators; see `spo_jax.envs.run.operators`."""
        require_valid(self.problem, instances, seeds, steps, None)
        runs = Adapting(
            self.problem, self._planner, destroys, repairs, instances, seeds, steps, rules
        )
        queue = deque(_Work(job) for job in runs.jobs(carry))

        def finished(work: _Work, ended: Ended) -> list[_Work]:
            assert isinstance(work.job, AdaptiveJob)
            again = runs.settle(work.job, ended, last=work.attempts + 1 == TRIES)
            if progress is not None:
                progress(runs.done, len(instances) * len(seeds))
            attempts = work.attempts + 1 if again is work.job else 0
            return [] if again is None else [_Work(again, attempts=attempts)]

        self._drain(queue, finished, instances=instances)
        return runs.found()

    def step(self, job: RunJob, instance: Instance) -> ChildReport:
        """What became of one step, not yet recomputed; see `spo_jax.envs.run.onestep`."""
        answers: list[ChildReport] = []

        def finished(work: _Work, ended: Ended) -> list[_Work]:
            verdict = ended.verdict
            if ended.isolate:
                return [replace(work, job=replace(job, isolate=True))]
            if verdict is not None and verdict.again and work.attempts + 1 < TRIES:
                return [replace(work, attempts=work.attempts + 1)]
            answers.append(ended.reports[0] if ended.reports else verdict or _SILENT)
            return []

        self._drain(deque([_Work(job)]), finished, instances=[instance])
        return answers[0]

    def hire(self, instance: Instance) -> tuple[list[Worker], Mapping[str, Place]]:
        """Its workers, for searches on `instance`, and where that is; see `spo_jax.envs.run.team`.

        The caller polls them; after that, `close` ends what still runs.
        """
        if not self._started:
            self._start()
        self._board.hold([instance])
        return self._workers, self._board.places

    # --- how it does it ---------------------------------------------------------------------------

    def _check_job(self, programs: Sequence[Program]) -> CheckJob:
        return CheckJob(tuple((p.role, p.source) for p in programs), CHECK_SECONDS, self.memory)

    def _drain(
        self,
        queue: deque[_Work],
        finished: Callable[[_Work, Ended], list[_Work]],
        wanted: Callable[[_Work], bool] = lambda work: True,
        running: Callable[[Iterable[Worker]], None] = lambda busy: None,
        instances: Sequence[Instance] = (),
    ) -> None:
        """Keep every worker busy until the queue is empty.

        finished: takes what became of a job and may return more work. wanted: whether a job is
        still worth starting. running: called with the busy workers whenever something has happened.
        instances: those that the jobs name.
        """
        if not self._started:
            self._start()
        self._board.hold(instances)
        idle = list(reversed(self._workers))
        busy: dict[Worker, _Work] = {}
        try:
            while queue or busy:
                while queue and idle:
                    work = queue.popleft()
                    if wanted(work):
                        worker = idle.pop()
                        busy[worker] = work
                        try:
                            worker.submit(work.job, self._board.places)
                        except OSError:  # its zygote has died since the last job
                            queue.appendleft(busy.pop(worker))
                            worker.restart()
                            idle.append(worker)
                if not busy:
                    continue
                owners = {fd: worker for worker in busy for fd in worker.descriptors}
                patience = min(worker.deadline for worker in busy) - time.monotonic()
                ready, _, _ = select.select(list(owners), [], [], max(0.0, patience))
                now = time.monotonic()
                awake = {owners[fd] for fd in ready}
                awake |= {worker for worker in busy if worker.deadline <= now}
                for worker in [w for w in busy if w in awake]:
                    try:
                        if not worker.poll():
                            continue
                        ended = worker.finish()
                    except ConnectionError:  # its zygote died under the job
                        ended = Ended(worker.reports, fault(*worker.lost()))
                        worker.restart()
                    for report in ended.reports:
                        if report.status == Status.HOST_FAULT:  # a bug, whatever pair met it
                            raise RuntimeError(f"problem {self.problem.name}: {report.reason}")
                    queue.extendleft(reversed(finished(busy.pop(worker), ended)))
                    idle.append(worker)
                running(busy)
        except BaseException:
            self.close()  # a half-read job would confuse the next run
            raise


_SILENT = ChildReport(0, Status.CRASH, "the process ended without reporting", 0.0)


def _size(work: _Work) -> int:
    return len(work.job.tasks) if isinstance(work.job, RunJob) else 0


def _first_positions(keys: Sequence[str]) -> list[int]:
    seen: dict[str, int] = {}
    for k, key in enumerate(keys):
        seen.setdefault(key, k)
    return list(seen.values())


def _settle(work: _Work, ended: Ended, results: Results, fail_fast: bool) -> list[_Work]:
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
    verdict = ended.verdict or _SILENT
    if verdict.again and work.attempts + 1 < TRIES:
        return [replace(work, job=replace(job, tasks=left), attempts=work.attempts + 1)]
    results.fail(work.pair, replace(verdict, index=left[0].index))
    if fail_fast or not left[1:]:
        return []
    return [_Work(replace(job, tasks=left[1:]), work.pair)]

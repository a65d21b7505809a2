"""Run pairs on instances in sandboxed workers and collect what happened.

Results are the same for any number of workers and any order of pairs: every rollout has its own
seeds, derived from (run seed, instance, rollout seed), the same for every pair.
"""

import select
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.results import Results
from spo_jax.envs.rollouts import Refusal, Rollouts, Status
from spo_jax.envs.sandbox.child import WHOLE_JOB, CheckJob, Job, RunJob, StepJob, Task
from spo_jax.envs.sandbox.worker import Report, Worker
from spo_jax.envs.shown import OBSERVED, Showing, of_rollout
from spo_jax.errors import InputError, SandboxUnavailable
from spo_jax.program import Pair, Program
from spo_jax.seeding import derive

FULL_STEPS = 500  # Problem.cpu_seconds is for this many steps
CHECKS_PER_JOB = 32
CHECK_SECONDS = 5.0  # of CPU time for one program's gate
TRIES = 3  # of a job at which our own side fails, before it is a host fault
Progress = Callable[[int, int], None]


@dataclass
class _Work:
    """A job and who it is for. attempts: how often our own side failed at it."""

    job: Job
    instances: list[Instance] = field(default_factory=list)
    pair: int = -1
    attempts: int = 0


class Evaluator:
    """Sandboxed workers for one problem; a context manager.

    problem: a `Problem`. workers: processes. seed: the run seed of all rollouts.
    cpu_seconds: CPU-time limit of a rollout of 500 steps, scaled to the steps of a run; the
        problem's own by default. memory_mb: what a program may map on top of the interpreter.
    on_invalid: "fail" (an infeasible candidate fails the pair) or "skip" (a rejected step).
    shown: what programs see as steps_since_improvement; HIDDEN is the paper's second ablation.
    unsafe: run even where the kernel offers no seccomp.

    Raises SandboxUnavailable on entry if the sandbox cannot be built here.
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
    ):
        if workers < 1:
            raise InputError(f"workers must be at least 1, not {workers}")
        if on_invalid not in ("fail", "skip"):
            raise InputError(f"on_invalid must be 'fail' or 'skip', not {on_invalid!r}")
        limit = problem.cpu_seconds if cpu_seconds is None else cpu_seconds
        if not limit > 0 or memory_mb < 1:
            raise InputError("cpu_seconds and memory_mb must be positive")
        self.problem = problem
        self.seed = seed
        self.cpu_seconds = limit
        self.memory = memory_mb << 20
        self._skip = on_invalid == "skip"
        self._shown = shown
        self._unsafe = unsafe
        self._workers = [Worker(problem.spec) for _ in range(workers)]
        self._started = False

    def __enter__(self) -> "Evaluator":
        self._start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _start(self) -> None:
        try:
            for worker in self._workers:
                worker.launch()
            for worker in self._workers:
                worker.start()
        except BaseException:
            self.close()
            raise
        self._started = True
        if not self.layers["seccomp"] and not self._unsafe:
            self.close()
            raise SandboxUnavailable(
                "this kernel offers no seccomp, without which generated programs are not run; "
                "--unsafe-sandbox runs them all the same"
            )

    def close(self) -> None:
        """End all workers and whatever they run."""
        for worker in self._workers:
            worker.close()
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
        """Roll every pair out on every instance with every seed.

        seconds: end each rollout after this CPU time at the latest; the rest of best_cost repeats
            the last value, the rest of state is -1. It also raises the CPU-time limit to match.
        fail_fast: the first failed rollout of a pair, in the order of instances and seeds, stands
            for all that come after it, which are not run; otherwise each has its own status.
        progress: called with (rollouts done, rollouts in all).
        """
        _validate(self.problem, instances, seeds, steps, seconds)
        order: dict[str, int] = {}
        for pair in pairs:
            order.setdefault(pair.digest, len(order))
        unique = [pairs[k] for k in _first_positions([pair.digest for pair in pairs])]
        results = Results(self.problem, len(unique), instances, seeds, steps, self.seed)
        jobs = self._plan(unique, instances, seeds, steps, seconds, fail_fast)
        total = len(unique) * len(instances) * len(seeds)
        done = 0

        def finished(work: _Work, reports: list[Report], verdict: Report | None) -> list[_Work]:
            nonlocal done
            again = _settle(work, reports, verdict, results, fail_fast)
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

        self._drain(deque(jobs), finished, wanted, running)
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

        def finished(work: _Work, reports: list[Report], verdict: Report | None) -> list[_Work]:
            where = places.pop(id(work.job))
            for report in reports:
                if report.reason:
                    refusals[where[report.index]] = Refusal(Status.REJECTED, report.reason)
            left = where[len(reports) :]
            attempts = work.attempts
            fault = verdict is not None and verdict.status == Status.HOST_FAULT
            if left and fault and attempts + 1 < TRIES:
                attempts += 1
            elif left:
                reason = verdict.reason if verdict else "the gate ended without a verdict"
                status = Status.HOST_FAULT if fault else Status.REJECTED
                refusals[left[0]] = Refusal(status, reason)
                left, attempts = left[1:], 0
            if not left:
                return []
            job = self._check_job([programs[k] for k in left])
            places[id(job)] = left
            return [_Work(job, attempts=attempts)]

        self._drain(deque(jobs), finished, lambda work: True, lambda busy: None)
        return refusals

    def step(self, job: StepJob, instance: Instance) -> Report:
        """What became of one step, not yet recomputed; see `spo_jax.envs.onestep`."""
        answers: list[Report] = []

        def finished(work: _Work, reports: list[Report], verdict: Report | None) -> list[_Work]:
            fault = verdict is not None and verdict.status == Status.HOST_FAULT
            if not reports and fault and work.attempts + 1 < TRIES:
                return [replace(work, attempts=work.attempts + 1)]
            silent = Report(0, Status.CRASH, "the process ended without reporting", 0.0)
            answers.append(reports[0] if reports else verdict or silent)
            return []

        work = _Work(job, [instance])
        self._drain(deque([work]), finished, lambda work: True, lambda busy: None)
        return answers[0]

    # --- how it does it ---------------------------------------------------------------------------

    def _check_job(self, programs: Sequence[Program]) -> CheckJob:
        return CheckJob(tuple((p.role, p.source) for p in programs), CHECK_SECONDS, self.memory)

    def _plan(
        self,
        pairs: Sequence[Pair],
        instances: Sequence[Instance],
        seeds: Sequence[int],
        steps: int,
        seconds: float | None,
        fail_fast: bool,
    ) -> list[_Work]:
        """One job a pair; where pairs are few, several, so that every worker has something to do.

        How rollouts are shared out cannot be seen in their results.
        """
        tasks, lengths, owners = [], [], []
        for i, instance in enumerate(instances):
            for s, seed in enumerate(seeds):
                name = (self.seed, instance.digest, seed)
                start, rng = derive("start", *name), derive("programs", *name)
                shown = of_rollout(self._shown, instance.digest, seed, steps)
                tasks.append(Task(i * len(seeds) + s, instance.digest, start, rng, shown))
                lengths.append(self.problem.walk_length(instance))
                owners.append(instance)
        workers = len(self._workers)
        shared = workers > 1 and 0 < len(pairs) < 4 * workers
        pieces = -(-4 * workers // len(pairs)) if shared else 1
        size = -(-len(tasks) // pieces)
        limit = self.cpu_seconds * steps / FULL_STEPS
        if seconds is not None:
            limit = seconds + 10.0  # a step begun in time may end late, but not forever
        jobs = []
        for p, pair in enumerate(pairs):
            for k in range(0, len(tasks), size):
                job = RunJob(
                    destroy=pair.destroy.source,
                    repair=pair.repair.source,
                    tasks=tuple(tasks[k : k + size]),
                    walk_lengths=tuple(lengths[k : k + size]),
                    steps=steps,
                    cpu_seconds=limit,
                    memory=self.memory,
                    seconds=seconds,
                    skip_infeasible=self._skip,
                    fail_fast=fail_fast,
                )
                needed = list({o.digest: o for o in owners[k : k + size]}.values())
                jobs.append(_Work(job, needed, p))
        return jobs

    def _drain(
        self,
        queue: deque[_Work],
        finished: Callable[[_Work, list[Report], Report | None], list[_Work]],
        wanted: Callable[[_Work], bool],
        running: Callable[[Iterable[Worker]], None],
    ) -> None:
        """Keep every worker busy until the queue is empty.

        finished: takes a job's reports and may return more work. wanted: whether a job is still
        worth starting. running: called with the busy workers whenever something has happened.
        """
        if not self._started:
            self._start()
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
                            worker.submit(work.job, work.instances)
                        except OSError:  # its zygote has died since the last job
                            queue.appendleft(busy.pop(worker))
                            self._relaunch(worker)
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
                        queue.extendleft(reversed(finished(busy.pop(worker), *worker.finish())))
                        idle.append(worker)
                    except ConnectionError:
                        self._lost(worker, busy, queue, finished, idle)
                running(busy)
        except BaseException:
            self.close()  # a half-read job would confuse the next run
            raise

    def _lost(
        self,
        worker: Worker,
        busy: dict[Worker, _Work],
        queue: deque[_Work],
        finished: Callable[[_Work, list[Report], Report | None], list[_Work]],
        idle: list[Worker],
    ) -> None:
        """A zygote died under its job: start another, keep what was reported."""
        work = busy.pop(worker)
        reports = worker.reports
        self._relaunch(worker)
        fault = Report(0, Status.HOST_FAULT, "the sandbox process died", 0.0)
        queue.extendleft(reversed(finished(work, reports, fault)))
        idle.append(worker)

    @staticmethod
    def _relaunch(worker: Worker) -> None:
        worker.close()
        worker.launch()
        worker.start()


def _size(work: _Work) -> int:
    return len(work.job.tasks) if isinstance(work.job, RunJob) else 0


def _first_positions(keys: Sequence[str]) -> list[int]:
    seen: dict[str, int] = {}
    for k, key in enumerate(keys):
        seen.setdefault(key, k)
    return list(seen.values())


def _validate(
    problem: Problem,
    instances: Sequence[Instance],
    seeds: Sequence[int],
    steps: int,
    seconds: float | None,
) -> None:
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


def _settle(
    work: _Work,
    reports: list[Report],
    verdict: Report | None,
    results: Results,
    fail_fast: bool,
) -> list[_Work]:
    """Record a job's reports; what is left to do for it."""
    job = work.job
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
    lengths = job.walk_lengths[len(reports) :]
    if verdict is not None and verdict.status == Status.HOST_FAULT and work.attempts + 1 < TRIES:
        again = replace(job, tasks=left, walk_lengths=lengths)
        return [_Work(again, work.instances, work.pair, work.attempts + 1)]
    if verdict is None:
        verdict = Report(0, Status.CRASH, "the process ended without reporting", 0.0)
    results.fail(work.pair, replace(verdict, index=left[0].index))
    if fail_fast or not left[1:]:
        return []
    return [
        _Work(replace(job, tasks=left[1:], walk_lengths=lengths[1:]), work.instances, work.pair)
    ]

"""Run pairs on instances in sandboxed workers of this machine."""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from spo_jax.envs.problem import Instance
from spo_jax.envs.run.jobs.job_evaluator import (
    SILENT,
    TRIES,
    Finished,
    JobEvaluator,
    Running,
    Wanted,
    Work,
)
from spo_jax.envs.run.jobs.worker_pool import WorkerPool
from spo_jax.envs.run.sandbox.jobs import Place, RunJob
from spo_jax.envs.run.sandbox.outcome import ChildReport, Ended
from spo_jax.envs.run.sandbox.process.confine import REQUIRED
from spo_jax.envs.run.sandbox.process.starting import Ahead
from spo_jax.envs.run.sandbox.worker import Worker
from spo_jax.errors import SandboxUnavailable


class LocalEvaluator(JobEvaluator):
    """Sandboxed workers on this machine: an `Evaluator`, and the factory of itself.

    Args:
        problem: A `Problem`.
        workers: Processes.
        seed: The run seed of all rollouts.
        cpu_seconds: CPU-time limit of a rollout of 500 steps, scaled to the steps of a run; the
            problem's own by default, times (size / 500) squared on an instance of more than 500.
        memory_mb: What a program may map on top of the interpreter, in MiB.
        on_invalid: "fail" (an infeasible candidate fails the pair) or "skip" (a rejected step).
        shown: What programs see as their state; HIDDEN is the paper's second ablation.
        unsafe: Run even where the kernel offers no seccomp.
        kit: Whether programs may import the problem's kit, `lns`, if it has one.
        work: Units of work per step and node (`spo_jax.envs.run.sandbox.meter`). A rollout ends
            when its programs have spent as much as all its steps at that price. Unlike time, that
            repeats.
        acceptance: What a rollout accepts: a name of ACCEPTANCES, or "package.module:NAME".
        start: Its first solution: a name of STARTS, or "package.module:NAME".
        states: The states that the jobs of `hire` name.

    Raises:
        InputError: An argument is out of range. On entry: a kit cannot be imported, or `work` needs
            one that does not count its own.
        SandboxUnavailable: On entry, if the sandbox cannot be built here.
    """

    ahead: Ahead | None = None  # zygotes that were started before, for the first start

    def _start(self) -> None:
        self._require_kit()
        self._pool: WorkerPool[Work] = WorkerPool(
            self.problem.spec, self._count, self._kit, parts=self._parts, ahead=self.ahead
        )
        self._pool.start()
        self._started = True
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
            self._pool.close()
        self._started = False

    @property
    def layers(self) -> dict[str, bool]:
        """Which sandbox layers hold (the names are in `confine.LAYERS`)."""
        return self._pool.layers

    def step(self, job: RunJob, instance: Instance) -> ChildReport:
        """Run one step; see `spo_jax.envs.run.jobs.onestep`.

        Args:
            job: The step.
            instance: On what.

        Returns:
            What became of it, not yet recomputed.
        """
        answers: list[ChildReport] = []

        def finished(work: Work, ended: Ended) -> list[Work]:
            verdict = ended.verdict
            if ended.isolate:
                return [replace(work, job=replace(job, isolate=True))]
            if verdict is not None and verdict.again and work.attempts + 1 < TRIES:
                return [replace(work, attempts=work.attempts + 1)]
            answers.append(ended.reports[0] if ended.reports else verdict or SILENT)
            return []

        self._do([Work(job)], finished, instances=[instance])
        return answers[0]

    def hire(self, instance: Instance) -> tuple[list[Worker], Place, int | None]:
        """Lend its workers for searches on an instance.

        The caller polls them; after that, `close` ends what still runs.

        Args:
            instance: On what.

        Returns:
            The workers, and what `Worker.submit` takes of the instance.
        """
        if not self._started:
            self._start()
        return self._pool.workers, *self._pool.store.share(instance)

    def _drain(
        self,
        queue: deque[Work],
        finished: Finished,
        wanted: Wanted,
        running: Running,
        instances: Sequence[Instance],
    ) -> None:
        """Keep every worker busy until the queue is empty."""
        pool = self._pool
        pool.hold(instances)
        while queue or pool.busy:
            while queue and pool.idle:
                work = queue.popleft()
                if wanted(work):
                    pool.begin(work, work.job)
            if not pool.busy:
                continue
            for work, ended in pool.wait():
                queue.extendleft(reversed(finished(work, ended)))
            running(pool.reported)

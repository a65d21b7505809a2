"""Run pairs on instances in sandboxed workers of this machine."""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from spo_jax.envs.problem import Instance
from spo_jax.envs.run.crew import Crew
from spo_jax.envs.run.jobwise import (
    SILENT,
    TRIES,
    Finished,
    JobEvaluator,
    Running,
    Wanted,
    Work,
)
from spo_jax.envs.run.sandbox.confine import REQUIRED
from spo_jax.envs.run.sandbox.jobs import Place, RunJob
from spo_jax.envs.run.sandbox.outcome import ChildReport, Ended
from spo_jax.envs.run.sandbox.worker import Worker
from spo_jax.errors import SandboxUnavailable


class LocalEvaluator(JobEvaluator):
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

    def _start(self) -> None:
        self._require_kit()
        self._crew: Crew[Work] = Crew(self.problem.spec, self._count, self._kit)
        self._crew.start()
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
            self._crew.close()
        self._started = False

    @property
    def layers(self) -> dict[str, bool]:
        """Which sandbox layers hold (the names are in `confine.LAYERS`)."""
        return self._crew.layers

    def step(self, job: RunJob, instance: Instance) -> ChildReport:
        """What became of one step, not yet recomputed; see `spo_jax.envs.run.onestep`."""
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
        """Its workers, for searches on `instance`, and what `Worker.submit` takes of that.

        The caller polls them; after that, `close` ends what still runs.
        """
        if not self._started:
            self._start()
        return self._crew.workers, *self._crew.board.share(instance)

    def _drain(
        self,
        queue: deque[Work],
        finished: Finished,
        wanted: Wanted,
        running: Running,
        instances: Sequence[Instance],
    ) -> None:
        """Keep every worker busy until the queue is empty."""
        crew = self._crew
        crew.hold(instances)
        while queue or crew.busy:
            while queue and crew.idle:
                work = queue.popleft()
                if wanted(work):
                    crew.begin(work, work.job)
            if not crew.busy:
                continue
            for work, ended in crew.wait():
                queue.extendleft(reversed(finished(work, ended)))
            running(crew.reported)

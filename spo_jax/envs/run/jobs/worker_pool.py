"""Workers of one machine that do jobs side by side, whoever gives them."""

import time
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from spo_jax.envs.problem import Instance
from spo_jax.envs.run.sandbox.instance_store import InstanceStore
from spo_jax.envs.run.sandbox.jobs import Job
from spo_jax.envs.run.sandbox.outcome import Ended, fault
from spo_jax.envs.run.sandbox.process.starting import Ahead
from spo_jax.envs.run.sandbox.worker import Worker, readable

T = TypeVar("T")


class WorkerPool(Generic[T]):
    """Zygotes with their workers, and the store with the instances. T: what marks a job.

    problem: a `get_problem` name. kit: whether programs may import its kit. path: where zygotes
    import from; by default as this process does. parts: see `Worker`. ahead: zygotes to take.
    """

    def __init__(
        self,
        problem: str,
        workers: int,
        kit: bool = True,
        path: Sequence[str] | None = None,
        parts: Sequence[str] = (),
        ahead: Ahead | None = None,
    ):
        file, zygotes = (None, []) if ahead is None else ahead.take(workers)
        self.store = InstanceStore(file)
        zygotes += [None] * (workers - len(zygotes))
        reader = self.store.file.reader
        self.workers = [Worker(problem, reader, kit, path, parts, each) for each in zygotes]
        self._idle: list[Worker] = []
        self._busy: dict[Worker, T] = {}

    def start(self) -> None:
        """Raises SandboxUnavailable where a zygote does not start; nothing is left of it then."""
        try:
            for worker in self.workers:
                worker.launch()
            for worker in self.workers:
                worker.start()
        except BaseException:
            self.close()
            raise
        self._idle = list(reversed(self.workers))

    def close(self) -> None:
        """End all workers and whatever they run."""
        for worker in self.workers:
            worker.close()
        self.store.close()

    @property
    def layers(self) -> dict[str, bool]:
        """Which sandbox layers hold (the names are in `confine.LAYERS`)."""
        return dict(self.workers[0].layers)

    @property
    def idle(self) -> int:
        return len(self._idle)

    @property
    def busy(self) -> int:
        return len(self._busy)

    @property
    def reported(self) -> int:
        """Reports so far of the jobs that run."""
        return sum(len(worker.reports) for worker in self._busy)

    def hold(self, instances: Iterable[Instance]) -> None:
        """Have these instances in the store, which jobs name. Only while no job runs."""
        self.store.hold(instances)

    def begin(self, mark: T, job: Job) -> None:
        """Give a job to an idle worker. Raises SandboxUnavailable where none can be started."""
        worker = self._idle.pop()
        while True:
            try:
                worker.submit(job, self.store.places)
                break
            except OSError:  # its zygote has died since the last job
                worker.restart()
        self._busy[worker] = mark

    def wait(self, most: float | None = None, waker: int | None = None) -> list[tuple[T, Ended]]:
        """Wait until something happens to a job; what ended, by its mark.

        most: seconds. waker: a descriptor that ends the wait when it is readable.
        """
        owners = {fd: worker for worker in self._busy for fd in worker.descriptors}
        now = time.monotonic()
        ends = [worker.deadline for worker in self._busy]
        if most is not None:
            ends.append(now + most)
        watched = [*owners] if waker is None else [*owners, waker]
        ready = readable(watched, min(ends) - now)
        now = time.monotonic()
        awake = {owners[fd] for fd in ready if fd != waker}
        awake |= {worker for worker in self._busy if worker.deadline <= now}
        done = []
        for worker in [w for w in self._busy if w in awake]:
            try:
                if not worker.poll():
                    continue
                ended = worker.finish()
            except ConnectionError:  # its zygote died under the job
                ended = Ended(worker.reports, fault(*worker.lost()))
                worker.restart()
            done.append((self._busy.pop(worker), ended))
            self._idle.append(worker)
        return done

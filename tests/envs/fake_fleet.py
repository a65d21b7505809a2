"""A fleet without machines or time: nodes answer from a record, late, wrongly, or never."""

import json
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from spo_jax.envs.problem import Instance
from spo_jax.envs.run.cluster.compatibility import fingerprint
from spo_jax.envs.run.cluster.encoding import Done, pack
from spo_jax.envs.run.cluster.fleet import HostLost, HostSettings, Machine
from spo_jax.envs.run.cluster.host import BAD, GOOD
from spo_jax.envs.run.cluster.schedule import LOSSES
from spo_jax.envs.run.jobs.job_evaluator import Work
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Status
from spo_jax.envs.run.sandbox.jobs import WHOLE_JOB, CheckJob, Job, RunJob
from spo_jax.envs.run.sandbox.outcome import ChildReport, Ended
from spo_jax.envs.run.sandbox.process.confine import LAYERS


class Recorder(LocalEvaluator):
    """A local evaluator that keeps what became of every rollout and check."""

    def __init__(self, *args: Any, **settings: Any):
        super().__init__(*args, **settings)
        self.record = Record()

    def _do(self, jobs: Sequence[Work], finished: Any, *more: Any, **rest: Any) -> None:
        def kept(work: Work, ended: Ended) -> list[Work]:
            self.record.keep(work.job, ended)
            return finished(work, ended)

        super()._do(jobs, kept, *more, **rest)


class Record:
    """What becomes of a rollout or a check, by what it is of."""

    def __init__(self) -> None:
        self._known: dict[Any, ChildReport] = {}
        self._isolated: set[tuple[str, str]] = set()

    def keep(self, job: Job, ended: Ended) -> None:
        for k, report in enumerate(ended.reports):
            self._known[self._key(job, None if report.index == WHOLE_JOB else k)] = report
        if ended.verdict is not None:
            self._known[self._key(job, len(ended.reports))] = ended.verdict
        if ended.isolate and isinstance(job, RunJob):
            self._isolated.add((job.destroy, job.repair))

    def play(self, job: Job) -> Ended:
        """As a worker would."""
        if isinstance(job, RunJob):
            if not job.isolate and (job.destroy, job.repair) in self._isolated:
                return Ended([], isolate=True)
            if (whole := self._known.get(self._key(job, None))) is not None:
                return Ended([whole])
        reports: list[ChildReport] = []
        for k in range(len(job.tasks if isinstance(job, RunJob) else job.programs)):
            report = self._known[self._key(job, k)]
            if report.index != job.due(k):  # a verdict
                return Ended(reports, report)
            reports.append(report)
            if isinstance(job, RunJob) and job.fail_fast and report.status != Status.OK:
                break
        return Ended(reports)

    @staticmethod
    def _key(job: Job, k: int | None) -> Any:
        if isinstance(job, CheckJob):
            assert k is not None
            return job.programs[k]
        assert isinstance(job, RunJob)
        return job.destroy, job.repair, None if k is None else job.tasks[k].rng_seed  # type: ignore[union-attr]


class FakeFleet:
    """harm: how often something bad happens at an answer; it stops before a job can be given up.

    Nodes join as time passes. time: what stands for the module of that name.
    """

    def __init__(self, record: Record, seed: int = 0, nodes: int = 2, harm: float = 0.0):
        self.record, self.harm = record, harm
        self.draw = random.Random(seed)
        self.now = 0.0
        self.time = SimpleNamespace(monotonic=lambda: self.now, sleep=self._sleep)
        self.alive: dict[str, Machine] = {}
        self.born = 0
        self.about: dict[str, Any] = {}
        self.puts: list[str] = []
        self.events: list[str] = []
        self.hosts: dict[str, list[tuple[int, Job]]] = {}
        self.held: dict[str, set[str]] = {}
        self.pending: dict[int, tuple[str, str, tuple[Any, ...]]] = {}
        self.answers: dict[int, bytes | None] = {}
        self.hung: set[str] = set()
        self.calls = 0
        self.closed = False
        for _ in range(nodes):
            self.join()
        self.first = nodes

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def join(self, cpus: int | None = None) -> str:
        self.born += 1
        name = f"n{self.born}"
        self.alive[name] = Machine(name, "::1", self.draw.randint(1, 4) if cpus is None else cpus)
        return name

    def open(self) -> None:
        pass

    def machines(self) -> Mapping[str, Machine]:
        if not self.alive or (self.harm and self.draw.random() < 0.1):
            self.join()
        return dict(self.alive)

    def start(self, node: str, workers: int, settings: HostSettings) -> int:
        self.hosts[node], self.held[node] = [], set()
        return self.call(node, "open")

    def put(self, instance: Instance) -> str:
        self.puts.append(instance.digest)
        return instance.digest

    def call(self, node: str, method: str, *arguments: Any) -> int:
        self.calls += 1
        self.pending[self.calls] = (node, method, arguments)
        return self.calls

    def wait(self, calls: Sequence[int], seconds: float) -> Sequence[int]:
        ready = []
        for call in self.draw.sample(list(calls), len(calls)):
            if call in self.answers:
                ready.append(call)
            elif self.draw.random() < 0.7 and self.pending[call][0] not in self.hung:
                self._answer(call)
                ready += [call] * (call in self.answers)
        self.now += 0.01 if ready else seconds
        return ready

    def _answer(self, call: int) -> None:
        node, method, arguments = self.pending.pop(call)
        bad = self.draw.random() < self.harm and len(self.events) < LOSSES - 1
        if bad and method != "close" and not (method == "open" and call <= self.first):
            kinds = ["die"] if method == "open" else ["die", "leave", "hang", "lie", "wrong"]
            kind = self.draw.choice(kinds)
            self.events.append(kind)
            if kind == "hang":
                self.hung.add(node)
                self.pending[call] = (node, method, arguments)
                return
            if kind == "leave":
                self.alive.pop(node, None)
            lie = GOOD + self.draw.randbytes(self.draw.randint(1, 60))
            self.answers[call] = {"lie": lie, "wrong": BAD + b"no workers"}.get(kind)
            if method == "hold" and kind == "lie":
                self.answers[call] = b""
            return
        self.answers[call] = getattr(self, f"_{method}")(node, *arguments)

    def _open(self, node: str) -> bytes:
        found = {
            "fingerprint": fingerprint(), "cpu": "", "cpus": 1, "system": "", "wrong": "",
            "layers": dict.fromkeys(LAYERS, True),
        }  # fmt: skip
        return json.dumps(found | self.about.get(node, {})).encode()

    def _hold(self, node: str, digests: Sequence[str], stands: Sequence[str]) -> bytes:
        assert list(digests) == list(stands)
        assert not self.hosts[node]  # no job runs
        self.held[node].update(digests)
        return GOOD

    def _turn(self, node: str, jobs: Sequence[tuple[int, Job]]) -> bytes:
        for _, job in jobs:
            if isinstance(job, RunJob):
                assert {task.instance for task in job.tasks} <= self.held[node]
        have = self.hosts[node]
        have += jobs
        self.draw.shuffle(have)
        ended = [have.pop() for _ in range(self.draw.randint(0, len(have)))]
        return GOOD + pack(
            Done(ticket, self.draw.random(), self.record.play(job)) for ticket, job in ended
        )

    def _close(self, node: str) -> bytes:
        return GOOD

    def answer(self, call: int) -> bytes:
        found = self.answers.pop(call)
        if found is None:
            raise HostLost("the actor died")
        return found

    def drop(self, node: str) -> None:
        with suppress(KeyError):
            del self.hosts[node]
        self.hung.discard(node)
        self.pending = {k: v for k, v in self.pending.items() if v[0] != node}

    def close(self) -> None:
        self.closed = True

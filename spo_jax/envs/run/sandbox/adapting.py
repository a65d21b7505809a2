"""Adaptive searches over several operators in a confined child: it plays all, and reports steps.

A report before each step names what is drawn for it. So whoever reads them knows what was played
when a step ended the process.
"""

import contextlib
import gc
import os
import pickle
import random
import time

from spo_jax.envs.problem import Instance
from spo_jax.envs.run.adaptive import Roulettes
from spo_jax.envs.run.lns import Failure, Operator, OperatorPair, Outcome
from spo_jax.envs.run.rollouts import Status
from spo_jax.envs.run.sandbox.acts import (
    Loaded,
    arm,
    define,
    padded_code,
    read_instance,
    report,
)
from spo_jax.envs.run.sandbox.gate.namespace import make_rng
from spo_jax.envs.run.sandbox.jobs import EXIT_MEMORY, STEP, AdaptiveJob, Task, read_frames
from spo_jax.envs.run.sandbox.process import confine
from spo_jax.envs.run.sandbox.process.confine import JOB_FD
from spo_jax.envs.run.sandbox.searching import (
    ENDLESS,
    Confined,
    mending,
    never,
    preparing,
)
from spo_jax.envs.run.search import Search, Terms
from spo_jax.program import Role

# A step that a program fails is lost, and no step is out of sight.
TERMS = Terms("improving", 0.0, region=0, stay=0, skip_infeasible=True, tolerant=True, clock="cpu")


def run_adaptive(child: Confined, job: AdaptiveJob) -> None:
    """All searches of a child that is confined so far as to take a job."""
    sources: list[tuple[Role, str]] = [("destroy", each) for each in job.destroys]
    sources += [("repair", each) for each in job.repairs]
    loaded = child.gate(job.gate_seconds, sources)
    if loaded is None:
        return
    tasks: list[tuple[Task, Instance]] = []
    for _, body in read_frames(JOB_FD):
        task, place = pickle.loads(body)
        tasks.append((task, read_instance(place)))
    teller = Teller()
    choice = Roulettes(job.rules, len(job.destroys), len(job.repairs), job.banned, teller.tell)
    searches = [
        _Play(child, job, task, instance, luck, loaded, choice, teller)
        for (task, instance), luck in zip(tasks, job.luck_seeds, strict=True)
    ]
    confine.confine_task(job.memory, ENDLESS, child.filters.task)
    gc.collect()
    gc.freeze()
    try:
        for each in searches:
            each.run()
    except Failure as failure:  # a bug in the rules
        arm(0.0)
        report(teller.index, failure.status, str(failure))
    except MemoryError:  # the programs left too little for our own code
        os._exit(EXIT_MEMORY)


class Teller:
    """Reports each draw with what became of the one before, and keeps each step's time."""

    def __init__(self) -> None:
        self.index = 0
        self.last: tuple[int, int, Outcome, float] | None = None

    def begin(self, limit: float, steps: int) -> None:
        """limit: CPU seconds of one step."""
        self._limit, self._left = limit, steps + 1
        self._began = time.process_time()

    def tell(self, destroy: int, repair: int, outcome: Outcome, lowest: float) -> None:
        arm(0.0)  # no kill in the middle of a report
        self._left -= 1
        if self._left:
            self.report(STEP.pack(destroy, repair, outcome, lowest))
            arm(self._limit)
        else:
            self.last = destroy, repair, outcome, lowest

    def report(self, payload: bytes) -> None:
        seconds = time.process_time() - self._began
        report(self.index, Status.OK, seconds=seconds, payload=payload)
        self.index += 1


class _Play:
    """One search, made before the programs' memory counts."""

    def __init__(
        self,
        child: Confined,
        job: AdaptiveJob,
        task: Task,
        instance: Instance,
        luck: int,
        loaded: list[Loaded],
        choice: Roulettes,
        teller: Teller,
    ):
        self._job, self._task = job, task
        self._choice, self._teller = choice, teller
        self._luck = random.Random(luck)
        self._rng = make_rng(task.rng_seed)
        operators = [Operator(never, known.layout) for known in loaded]
        self._programs = list(zip(operators, loaded, strict=True))
        rules = child.problem.rules(instance)
        start = task.start
        if start is None:
            start = rules.start(random.Random(task.start_seed))
        self._start = child.problem.minimised(instance, start)
        count = len(job.destroys)
        self._pairs = [
            OperatorPair(destroy, repair, task.shown)
            for destroy in operators[:count]
            for repair in operators[count:]
        ]
        self._kit, self._prepare = child.kit, preparing(child.kit, self._programs)
        self._search = Search(
            child.problem, instance, choice, start, TERMS, self._luck, self._rng,
            self._prepare, mending(self._programs, self._rng),
            job.rules.acceptance(self._start, self._luck.random), task.shown.observes,
        )  # fmt: skip
        self._search.used = lambda steps, now: steps / job.steps
        self._search.look()

    def run(self) -> None:
        """Raises Failure for a bug in the rules, and MemoryError."""
        job, search, teller = self._job, self._search, self._teller
        if self._kit is not None:
            self._kit.forget()  # what the search before left
        self._prepare(search.rules)  # a kit keeps few
        arm(job.gate_seconds)
        for k, (operator, known) in enumerate(self._programs):
            role: Role = "destroy" if k < len(job.destroys) else "repair"
            with contextlib.suppress(Failure):  # then it fails in every step
                operator.function = define(known, role, self._rng)
        teller.begin(job.cpu_seconds, job.steps)
        self._choice.begin(self._pairs, self._luck, self._start, job.steps)
        search.leg(job.steps, float("inf"), lambda steps, now: float(steps))
        assert teller.last is not None
        code = padded_code(search.rules, search.best, self._task.code_length)
        teller.report(STEP.pack(*teller.last) + code)

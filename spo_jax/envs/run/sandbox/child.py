"""The code of a confined child: gate, compile, roll out, report.

A child takes one job. It checks and compiles the two programs and forks a process per task; only
that process executes them. So rollouts share nothing that a program could have written, and each
starts from the same memory. Programs that cannot observe earlier rollouts (`isolation`) run all
their tasks in the child itself, without forks.

Reports are frames of fixed-width numbers on one descriptor. No object of a program is pickled.
"""

import contextlib
import gc
import os
import pickle
import random
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from spo_jax.envs.kits import Kit
from spo_jax.envs.problem import Layout, Problem, Rules, rules_of
from spo_jax.envs.run.lns import Failure, Operator, OperatorPair, bug_of, one_step, rollout
from spo_jax.envs.run.rollouts import Status
from spo_jax.envs.run.sandbox.acts import (
    Loaded,
    arm,
    define,
    limit_recursion,
    padded_code,
    read_instance,
    report,
)
from spo_jax.envs.run.sandbox.adapting import run_adaptive
from spo_jax.envs.run.sandbox.gate import isolation
from spo_jax.envs.run.sandbox.gate.namespace import ArraysNeeded, make_rng
from spo_jax.envs.run.sandbox.gate.policy import check
from spo_jax.envs.run.sandbox.jobs import (
    EXIT_ISOLATE,
    EXIT_MEMORY,
    EXIT_SIGNAL,
    JUDGED,
    PID,
    PREFIX,
    WHOLE_JOB,
    AdaptiveJob,
    CheckJob,
    Place,
    RunJob,
    SearchJob,
    StepTask,
    Task,
    read_frame,
    read_frames,
)
from spo_jax.envs.run.sandbox.meter import Meter, metered
from spo_jax.envs.run.sandbox.process import confine
from spo_jax.envs.run.sandbox.process.confine import JOB_FD
from spo_jax.envs.run.sandbox.searching import PAIR, Filters, run_search
from spo_jax.envs.shared_arrays import mapped
from spo_jax.errors import Rejection
from spo_jax.program import Interface, Role

# Exit codes. A task's process uses them to tell its child what to do next.
EXIT_NEXT, EXIT_DONE, EXIT_STOP = 0, 90, 91
EXIT_ARRAY: dict[Role, int] = {"destroy": 92, "repair": 93}  # repeat with arrays for this role
EXIT_FAULT = 98  # on our side

Layouts = dict[Role, Layout]
End = tuple[Status, str, Role | None]  # and its reason, and the role at fault


@dataclass(frozen=True)
class _Repeatable:
    """The layouts of a task's process, and those with which it is repeated if a role needs arrays.

    Made before the first fork: a dictionary that is made between two forks is not freed in the
    order that leaves the free memory as it was.
    """

    layouts: Layouts
    repeated: Mapping[Role, "_Repeatable"]

    @classmethod
    def first(cls, layouts: Layouts) -> "_Repeatable":
        both = cls({"destroy": "array", "repair": "array"}, {})
        destroy = cls({**layouts, "destroy": "array"}, {"repair": both})
        repair = cls({**layouts, "repair": "array"}, {"destroy": both})
        return cls(layouts, {"destroy": destroy, "repair": repair})


class _Again(Exception):
    """A task must restart in another process; code: the exit code that says how."""

    def __init__(self, code: int):
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class Child:
    """The whole life of a child: warm up, wait for a job, drop everything else, work.

    jobs: the socket that delivers the pipe for a job's reports. job, store: descriptors of the
    files of jobs and of instances. zygote: its process; space: the bytes that it maps. kit: what
    programs may import as `lns`.
    """

    problem: Problem
    jobs: socket.socket
    job: int
    store: int
    zygote: int
    space: int
    filters: Filters
    kit: Kit | None = None

    def live(self) -> NoReturn:
        confine.die_with_parent(self.zygote)
        os.setsid()
        _warm_up(self.problem.interface)
        _, given, _, _ = socket.recv_fds(self.jobs, 1, 2)
        if not given:
            os._exit(0)
        result, *files = given
        os.write(result, PID.pack(os.getpid()))
        matrix = mapped(files[0]) if files else None  # of a search; later no file can be mapped
        os.lseek(self.job, 0, os.SEEK_SET)
        _, body = read_frame(self.job)
        job = pickle.loads(body)
        limit = self.space + job.memory + (0 if matrix is None else matrix.nbytes)
        confine.confine_job(result, self.job, self.store, limit, self.filters.job)
        if isinstance(job, CheckJob):
            self.check(job)
        elif isinstance(job, SearchJob):
            run_search(self, job, matrix)
        elif isinstance(job, AdaptiveJob):
            run_adaptive(self, job)
        else:
            self.run(job)
        os._exit(0)

    # --- the gate ---------------------------------------------------------------------------------

    def check(self, job: CheckJob) -> None:
        for index, (role, source) in enumerate(job.programs):
            arm(job.cpu_seconds)
            try:
                self.load(role, source)
                report(index, Status.OK)
            except Rejection as error:
                report(index, Status.REJECTED, error.reason)

    def load(self, role: Role, source: str, counted: bool = False) -> Loaded:
        """Check and compile a program; counted: so that it counts its work. Raises Rejection."""
        try:
            names = self.kit.names if self.kit else ()
            verdict = check(source, role, self.problem.interface, names)
            closed = isolation.is_closed(verdict)
            tree = metered(verdict.tree) if counted else verdict.tree
            code = compile(tree, f"<{role}>", "exec")
            kit = self.kit if verdict.kit else None
            return Loaded(code, verdict.entry, verdict.layout, closed, kit)
        except SyntaxError as error:
            raise Rejection(f"line {error.lineno}: {error.msg}") from None
        except (RecursionError, MemoryError):
            raise Rejection("too large to compile") from None
        except Rejection:
            raise
        except ValueError as error:
            raise Rejection(f"does not compile: {error}") from None

    def gate(
        self, seconds: float, programs: Iterable[tuple[Role, str]], counted: bool = False
    ) -> list[Loaded] | None:
        """Check and compile the programs of a job, and report; None where one is refused.

        seconds: of CPU time for all of them. What comes after is the programs' time.
        """
        arm(seconds)
        loaded = []
        for role, source in programs:
            try:
                loaded.append(self.load(role, source, counted))
            except Rejection as error:
                report(WHOLE_JOB, Status.REJECTED, error.reason, role)
                return None
        arm(0.0)
        report(JUDGED, Status.OK)
        confine.free_address_space()  # an instance may need more than a program's limit
        return loaded

    # --- rollouts ---------------------------------------------------------------------------------

    def run(self, job: RunJob) -> None:
        """Run a job's tasks, each in its own process if the programs need that."""
        sources = zip(PAIR, (job.destroy, job.repair), strict=True)
        passed = self.gate(job.gate_seconds, sources, job.metered)
        if passed is None:
            return
        loaded: dict[Role, Loaded] = dict(zip(PAIR, passed, strict=True))
        layouts: Layouts = {role: program.layout for role, program in loaded.items()}
        if not job.isolate and all(program.closed for program in loaded.values()):
            os._exit(self.run_together(job, loaded, layouts))
        child, plan = os.getpid(), _Repeatable.first(layouts)
        gc.collect()
        gc.freeze()
        while (code := self.fork_task(job, loaded, plan, child)) == EXIT_NEXT:
            pass
        if code not in (EXIT_DONE, EXIT_STOP):
            os._exit(code if code >= 0 else EXIT_SIGNAL - code)

    def fork_task(
        self, job: RunJob, loaded: Mapping[Role, Loaded], plan: _Repeatable, child: int
    ) -> int:
        """Run the next task in its own process; returns how that ended. child: this process.

        It restores its state, so that the next process finds the same free memory, in the same
        order, and the layouts that the gate chose: what it allocates it frees, the last block
        first, and the free lists are cleared.
        """
        position = os.lseek(JOB_FD, 0, os.SEEK_CUR)
        pid = os.fork()
        if pid == 0:
            try:
                confine.die_with_parent(child)
                self.be_task(job, loaded, plan.layouts)
            finally:
                os._exit(EXIT_FAULT)
        ended = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(ended[1])
        del ended, pid
        if code in _ROLE_OF:
            os.lseek(JOB_FD, position, os.SEEK_SET)
            code = self.fork_task(job, loaded, plan.repeated[_ROLE_OF[code]], child)
        del position
        gc.collect()
        return code

    def be_task(self, job: RunJob, loaded: Mapping[Role, Loaded], layouts: Layouts) -> NoReturn:
        prefix, body = read_frame(JOB_FD)
        task, place = pickle.loads(body)
        rules = rules_of(self.problem, read_instance(place))
        _prepare(rules, loaded, layouts)
        confine.confine_task(job.memory, int(job.cpu_seconds) + 2, self.filters.task)
        gc.collect()  # also clears the free lists, which differ after the first fork
        gc.freeze()
        try:
            fine = _attempt(job, task, prefix, self.problem, rules, loaded, layouts, shared=False)
        except _Again as again:
            os._exit(again.code)
        except MemoryError:  # the program left too little memory for our own code
            os._exit(EXIT_MEMORY)
        last = PREFIX.unpack(prefix)[2]
        stop = job.fail_fast and not fine
        os._exit(EXIT_STOP if stop else EXIT_DONE if last else EXIT_NEXT)

    def run_together(self, job: RunJob, loaded: Mapping[Role, Loaded], layouts: Layouts) -> int:
        """Run all tasks in this process; returns its exit code."""
        rules: dict[Place, Rules] = {}
        tasks: list[tuple[bytes, Task | StepTask, Place]] = []
        for prefix, body in read_frames(JOB_FD):
            task, place = pickle.loads(body)
            tasks.append((prefix, task, place))
            if place not in rules:
                rules[place] = rules_of(self.problem, read_instance(place))
                _prepare(rules[place], loaded, layouts)
        if not all(isolation.is_plain(known.arguments("rows")) for known in rules.values()):
            return EXIT_ISOLATE
        cpu_seconds = int(job.cpu_seconds * len(tasks)) + 2
        confine.confine_task(job.memory, cpu_seconds, self.filters.task, shared=True)
        gc.collect()
        gc.freeze()
        for prefix, task, place in tasks:
            try:
                fine = _attempt(
                    job, task, prefix, self.problem, rules[place], loaded, layouts, shared=True
                )
            except _Again:
                return EXIT_ISOLATE
            except MemoryError:
                return EXIT_ISOLATE
            if job.fail_fast and not fine:
                break
        return 0


_ROLE_OF = {code: role for role, code in EXIT_ARRAY.items()}


def _warm_up(interface: Interface) -> None:
    """Touch the pages that every job writes to, before a job waits for them."""
    role: Role = "destroy"
    with contextlib.suppress(Rejection):
        names = ", ".join(f"a{k}" for k in range(interface.arity(role)))
        text = (
            f"def {interface.function(role)}({names}):\n    return [v for v in a1 if v], a1[:1]\n"
        )
        compile(check(text, role, interface).tree, "<warm>", "exec")


def _prepare(rules: Rules, loaded: Mapping[Role, Loaded], layouts: Layouts) -> None:
    """Let the kit convert an instance before the programs' time and memory count."""
    for role, program in loaded.items():
        if program.kit:
            program.kit.prepare(*rules.prepared(layouts[role]))


def _attempt(
    job: RunJob,
    task: Task | StepTask,
    prefix: bytes,
    problem: Problem,
    rules: Rules,
    loaded: Mapping[Role, Loaded],
    layouts: Layouts,
    *,
    shared: bool,
) -> bool:
    """Run a task and report its result; returns whether it succeeded. Raises _Again.

    shared: whether this process also runs other tasks.
    """
    arm(job.cpu_seconds)
    began = time.process_time()
    end, payload = _played(job, task, problem, rules, loaded, layouts, shared=shared)
    # What the program left goes now: where that ends the process, it is this task that failed, and
    # no later one finds it.
    for program in loaded.values():
        if program.kit:
            program.kit.forget()
    gc.collect()
    seconds = time.process_time() - began
    arm(0.0)  # no kill in the middle of a report
    report(PREFIX.unpack(prefix)[1], *end, seconds, payload)
    return end[0] == Status.OK


def _played(
    job: RunJob,
    task: Task | StepTask,
    problem: Problem,
    rules: Rules,
    loaded: Mapping[Role, Loaded],
    layouts: Layouts,
    *,
    shared: bool,
) -> tuple[End, bytes]:
    """How a task ended, and what to report of it: no object of a program. Raises _Again."""
    limit_recursion()
    try:
        rng = make_rng(task.rng_seed, arrays=not shared)
        meter = _meter_of(loaded) if job.metered else None
        destroy = Operator(define(loaded["destroy"], "destroy", rng, meter), layouts["destroy"])
        repair = Operator(define(loaded["repair"], "repair", rng, meter), layouts["repair"])
        if isinstance(task, StepTask):
            payload = _step(task, rules, OperatorPair(destroy, repair), rng)
        else:
            pair = OperatorPair(destroy, repair, task.shown)
            payload = _run(task, job, problem, rules, pair, rng, _used_of(task, job, meter))
    except Failure as failure:
        if isinstance(failure.cause, ArraysNeeded):
            raise _Again(EXIT_ISOLATE) from None
        if shared and failure.status == Status.MEMORY:
            raise _Again(EXIT_ISOLATE) from None  # what earlier tasks left room for does not count
        # The gate chose tuples; if they fail, restart with the array.
        guessed = layouts[failure.role] == "rows"
        if guessed and isinstance(failure.cause, TypeError | AttributeError):
            raise _Again(EXIT_ARRAY[failure.role]) from None
        role = None if failure.status == Status.HOST_FAULT else failure.role
        return (failure.status, str(failure), role), b""
    except Exception as error:
        bug = bug_of(rules, error)
        if not bug:
            raise
        return (Status.HOST_FAULT, bug, None), b""
    return (Status.OK, "", None), payload


def _meter_of(loaded: Mapping[Role, Loaded]) -> Meter:
    counts = [program.kit.work for program in loaded.values() if program.kit and program.kit.work]
    return Meter(*counts[:1])  # both programs have the same kit


def _used_of(task: Task, job: RunJob, meter: Meter | None) -> Callable[[], float] | None:
    """What says how much of a rollout's time or work is used up; None: only its steps end it."""
    if job.seconds is not None:
        began, seconds = time.process_time(), job.seconds
        return lambda: (time.process_time() - began) / seconds
    if meter is not None:
        return lambda: meter.work() / task.work
    return None


def _run(
    task: Task,
    job: RunJob,
    problem: Problem,
    rules: Rules,
    pair: OperatorPair,
    rng: Any,
    used: Callable[[], float] | None,
) -> bytes:
    start, luck = random.Random(task.start_seed), random.Random(task.luck_seed)
    trace = rollout(
        rules, pair, start, rng, job.steps, used=used, skip_infeasible=job.skip_infeasible,
        first=task.start, acceptance=job.acceptance, luck=luck,
        rewritten=lambda solution: problem.rewritten(solution, luck),
    )  # fmt: skip
    return (
        np.asarray(trace.best_cost, "<f8").tobytes()
        + np.asarray(trace.state, "<i4").tobytes()
        + np.asarray(trace.shown, "<f8").tobytes()
        + padded_code(rules, trace.best, task.code_length)
    )


def _step(task: StepTask, rules: Rules, pair: OperatorPair, rng: Any) -> bytes:
    made, candidate = one_step(rules, pair, task.solution, task.z, rng)
    text = ascii(made).encode()
    text = (text if len(text) <= task.room else b"None").ljust(task.room)
    return text + padded_code(rules, candidate, task.code_length)

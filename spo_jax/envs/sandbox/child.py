"""What runs in a confined child: gate, compile, roll out, report.

Reports are frames of fixed-width numbers on one descriptor. Nothing a program made is pickled.
"""

import contextlib
import gc
import os
import random
import signal
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import CodeType
from typing import Any

import numpy as np

from spo_jax.envs.lns import Failure, one_step, rollout
from spo_jax.envs.problem import Layout, Rules, Solution
from spo_jax.envs.rollouts import Status
from spo_jax.envs.sandbox.confine import RESULT_FD
from spo_jax.envs.sandbox.namespace import make_globals, make_rng
from spo_jax.envs.sandbox.policy import Verdict, check
from spo_jax.envs.shown import Shown
from spo_jax.errors import Rejection
from spo_jax.program import Role

# index, status, length of the reason, CPU seconds; then the reason, then (if OK) what the job's
# `payload_size` counts.
HEADER = struct.Struct("<IBHd")
MAX_REASON = 400
WHOLE_JOB = 0xFFFFFFFF  # the index of a report that concerns every rollout of the job
EXIT_MEMORY, EXIT_FAULT = 97, 98  # exit codes of a child that could not report
Function = Callable[..., Any]
Arguments = tuple[tuple[Any, ...], tuple[Any, ...]]  # the instance's, for destroy and for repair
WARM_NUMBERS = 50_000  # how many numbers of the instances are worth touching ahead of a job


@dataclass(frozen=True)
class Task:
    """One rollout of a job. index: its place in the job. shown: what its programs see of z_t."""

    index: int
    instance: str  # digest
    start_seed: int
    rng_seed: int
    shown: Shown


@dataclass(frozen=True)
class RunJob:
    """One pair on some rollouts, in order; see `lns.rollout` for what is not explained here.

    walk_lengths: one a task, the length of its encoded solution. cpu_seconds: per rollout.
    memory: bytes on top of what the interpreter maps. fail_fast: stop at the first failure.
    """

    destroy: str
    repair: str
    tasks: tuple[Task, ...]
    walk_lengths: tuple[int, ...]
    steps: int
    cpu_seconds: float
    memory: int
    seconds: float | None
    skip_infeasible: bool
    fail_fast: bool

    @property
    def instances(self) -> frozenset[str]:
        return frozenset(task.instance for task in self.tasks)

    @property
    def total_cpu_seconds(self) -> int:
        """For RLIMIT_CPU, which is in whole seconds and for the process: only the last resort."""
        return int(self.cpu_seconds * len(self.tasks)) + 2

    def due(self, k: int) -> int | None:
        """The index of report k, or None if there is to be none."""
        return self.tasks[k].index if k < len(self.tasks) else None

    def payload_size(self, k: int) -> int:
        """Bytes of report k: best_cost [T+1] float64, state [T] int32 and walk [L] int32."""
        return 12 * self.steps + 8 + 4 * self.walk_lengths[k]


@dataclass(frozen=True)
class StepJob:
    """One step of a pair from a given solution, to see what the programs do; see `lns.one_step`.

    size: of the instance, which no removal exceeds. walk_length: of an encoded solution.
    """

    destroy: str
    repair: str
    instance: str  # digest
    solution: Solution
    z: int
    rng_seed: int
    size: int
    walk_length: int
    cpu_seconds: float
    memory: int

    @property
    def instances(self) -> frozenset[str]:
        return frozenset((self.instance,))

    @property
    def total_cpu_seconds(self) -> int:
        return int(self.cpu_seconds) + 2

    def due(self, k: int) -> int | None:
        return 0 if k == 0 else None

    def payload_size(self, k: int) -> int:
        """Bytes: removed [size] int32, -1 where there are fewer, and the candidate's walk [L]."""
        return 4 * (self.size + self.walk_length)


@dataclass(frozen=True)
class CheckJob:
    """Programs to pass through the static gate and the compiler; cpu_seconds for each."""

    programs: tuple[tuple[Role, str], ...]
    cpu_seconds: float
    memory: int
    instances: frozenset[str] = frozenset()

    @property
    def total_cpu_seconds(self) -> int:
        return int(self.cpu_seconds * len(self.programs)) + 2

    def due(self, k: int) -> int | None:
        return k if k < len(self.programs) else None

    def payload_size(self, k: int) -> int:
        return 0


Job = RunJob | StepJob | CheckJob


def warm_up(arity: Mapping[Role, int], rules: Mapping[str, Rules]) -> None:
    """Write to the pages that any job writes to, before there is a job to wait for them."""
    role: Role = "destroy"
    with contextlib.suppress(Rejection):
        names = ", ".join(f"a{k}" for k in range(arity[role]))
        _load(role, f"def destroy({names}):\n    return [v for v in a1 if v], a1[:1]\n", arity)
    left = WARM_NUMBERS
    for known in rules.values():
        for argument in known.arguments("rows"):
            if type(argument) is tuple and (left := left - len(argument) ** 2) > 0:
                for row in argument:
                    if type(row) is tuple:
                        for _ in row:
                            pass


def work(job: Job, arity: Mapping[Role, int], rules: Mapping[str, Rules]) -> None:
    """Carry out a job and report every result. Called once, in a confined child."""
    gc.enable()
    _arm(job.cpu_seconds)
    if isinstance(job, CheckJob):
        for index, (role, source) in enumerate(job.programs):
            _arm(job.cpu_seconds)
            try:
                _load(role, source, arity)
                _report(index, Status.OK, "")
            except Rejection as error:
                _report(index, Status.REJECTED, error.reason)
        return
    loaded: dict[Role, _Loaded] = {}
    for role, source in (("destroy", job.destroy), ("repair", job.repair)):
        try:
            loaded[role] = _load(role, source, arity)
        except Rejection as error:
            _report(WHOLE_JOB, Status.REJECTED, f"{role}: {error.reason}")
            return
    if isinstance(job, StepJob):
        _tell(0, job.cpu_seconds, partial(_step, job, rules[job.instance], loaded))
        return
    for task, walk_length in zip(job.tasks, job.walk_lengths, strict=True):
        attempt = partial(_run, task, walk_length, job, rules[task.instance], loaded)
        if not _tell(task.index, job.cpu_seconds, attempt) and job.fail_fast:
            return


def _tell(index: int, cpu_seconds: float, attempt: Callable[[], bytes]) -> bool:
    """Report what comes of `attempt`; whether it succeeded."""
    _arm(cpu_seconds)
    began = time.process_time()
    try:
        payload = attempt()
    except Failure as failure:
        reason = f"{failure.role}: {failure}"
        _report(index, failure.status, reason, time.process_time() - began)
        return False
    _report(index, Status.OK, "", time.process_time() - began, payload)
    return True


@dataclass(frozen=True)
class _Loaded:
    code: CodeType
    verdict: Verdict


def _load(role: Role, source: str, arity: Mapping[Role, int]) -> _Loaded:
    try:
        verdict = check(source, role, arity[role])
        return _Loaded(compile(verdict.tree, f"<{role}>", "exec"), verdict)
    except SyntaxError as error:
        raise Rejection(f"line {error.lineno}: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise Rejection("nested too deeply") from None
    except Rejection:
        raise
    except ValueError as error:
        raise Rejection(f"does not compile: {error}") from None


def _run(
    task: Task, walk_length: int, job: RunJob, rules: Rules, loaded: dict[Role, _Loaded]
) -> bytes:
    def attempt(destroy: Function, repair: Function, arguments: Arguments, rng: Any) -> bytes:
        trace = rollout(
            rules,
            destroy,
            repair,
            arguments,
            random.Random(task.start_seed),
            rng,
            job.steps,
            seconds=job.seconds,
            skip_infeasible=job.skip_infeasible,
            shown=task.shown,
        )
        return (
            np.asarray(trace.best_cost, "<f8").tobytes()
            + np.asarray(trace.state, "<i4").tobytes()
            + _walk(rules, trace.best, walk_length)
        )

    return _with_layouts(rules, loaded, task.rng_seed, attempt)


def _step(job: StepJob, rules: Rules, loaded: dict[Role, _Loaded]) -> bytes:
    def attempt(destroy: Function, repair: Function, arguments: Arguments, rng: Any) -> bytes:
        removed, candidate = one_step(rules, destroy, repair, arguments, job.solution, job.z, rng)
        padded = removed + [-1] * (job.size - len(removed))
        return np.asarray(padded, "<i4").tobytes() + _walk(rules, candidate, job.walk_length)

    return _with_layouts(rules, loaded, job.rng_seed, attempt)


def _walk(rules: Rules, solution: Solution, length: int) -> bytes:
    walk = rules.encode(solution)
    return np.asarray(walk + walk[-1:] * (length - len(walk)), "<i4").tobytes()


def _with_layouts(
    rules: Rules,
    loaded: dict[Role, _Loaded],
    rng_seed: int,
    attempt: Callable[[Function, Function, Arguments, Any], bytes],
) -> bytes:
    """What `attempt` returns, given freshly defined functions and the numbers in their layouts."""
    layouts: dict[Role, Layout] = {role: known.verdict.layout for role, known in loaded.items()}
    while True:
        rng = make_rng(rng_seed)
        functions = {role: _define(program, role, rng) for role, program in loaded.items()}
        arguments = rules.arguments(layouts["destroy"]), rules.arguments(layouts["repair"])
        try:
            return attempt(functions["destroy"], functions["repair"], arguments, rng)
        except Failure as failure:
            # The gate guessed that tuples would do; where they do not, start again on the array.
            guessed = layouts[failure.role] == "rows"
            if guessed and isinstance(failure.cause, TypeError | AttributeError):
                layouts[failure.role] = "array"
                continue
            raise


def _define(program: _Loaded, role: Role, rng: Any) -> Function:
    """Execute the module in a fresh namespace, so that no rollout sees another."""
    namespace = make_globals(rng)
    try:
        exec(program.code, namespace)  # a gated, compiled program in a confined process
        return namespace[program.verdict.entry]
    except MemoryError as error:
        raise Failure(Status.MEMORY, role, "out of memory", error) from None
    except BaseException as error:
        raise Failure(Status.CRASH, role, f"{type(error).__name__} at import") from None


def _arm(seconds: float) -> None:
    """Have the kernel kill this process after `seconds` of CPU time; no handler, so C loops too."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


def _report(
    index: int, status: Status, reason: str, seconds: float = 0.0, payload: bytes = b""
) -> None:
    plain = "".join(c if " " <= c <= "~" else "?" for c in reason[:MAX_REASON])
    text = plain.encode("ascii")
    view = memoryview(HEADER.pack(index, status, len(text), seconds) + text + payload)
    while view:
        view = view[os.write(RESULT_FD, view) :]

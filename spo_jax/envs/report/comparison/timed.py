"""Calls of solvers by the wall clock, each in a process of its own, on cores of its own.

A process can be ended when a solver does not end, as LKH does not, and its CPU time and its cores
are its own. What a solver finds is received as it comes; the problem checks it afterwards, so that
a check takes no time of the solver's.
"""

import json
import math
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from socket import socketpair
from typing import Any

from spo_jax.envs.problem import Infeasible, Instance, Problem, Solution

CHILD = Path(__file__).with_name("timed_child.py")
MARK = "SPO_TIMED_CALL"  # the variable by which what a solver has started is found
INVALID = "invalid"  # the status of a call whose solution is none


@dataclass(frozen=True)
class Call:
    """What a process is to do. All of it is pickled.

    solve: of (instance, seed, **options), or its "package.module:NAME". modules: imported before
    the clock starts. reports: whether it takes the keyword `report`. cores: which it may use.
    """

    solve: Callable[..., Solution] | str
    instance: Instance
    seed: int
    options: dict[str, Any] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    reports: bool = False
    cores: frozenset[int] = frozenset()


@dataclass(frozen=True, eq=False)
class Timed:
    """What a call came to, or several side by side.

    status: "ok", or a status of rollouts with its reason. curve: (second, cost) of each solution
    that is better than all before. seconds: of wall-clock time, of the longest call; cpu_seconds:
    of all. steps: of a search, None where that is not known. A call that failed has no solution, an
    infinite cost and no curve.
    """

    status: str
    reason: str
    solution: Solution
    cost: float
    curve: tuple[tuple[float, float], ...]
    seconds: float
    cpu_seconds: float
    steps: int | None = None


@dataclass(frozen=True)
class Counted:
    """What a solver may return in place of its solution. steps: that its search has taken."""

    solution: Solution
    steps: int


def timed(problem: Problem, calls: Sequence[Call], limit: float) -> Timed:
    """The calls side by side; the best solution of all. One that fails is the failure of all.

    limit: seconds after which a call that has not ended is killed, and has failed. All calls end
    with this one, whatever ends it.
    """
    children = [_Child(call) for call in calls]
    try:
        end = time.monotonic() + limit
        waiting = {child.connection: child for child in children}
        while waiting and (left := end - time.monotonic()) > 0:
            for ready in wait([*waiting], left):
                if waiting[ready].receive():  # type: ignore[index]
                    del waiting[ready]  # type: ignore[arg-type]
        for child in waiting.values():
            child.failure = ("timeout", f"it did not end within {limit:g} s", limit)
    finally:
        for child in children:
            child.end()
    return _best([child.outcome(problem) for child in children])


class _Child:
    """A process that makes one call."""

    def __init__(self, call: Call):
        self._instance = call.instance
        self._found: list[tuple[float, Solution]] = []
        self._done: tuple[float, float] | None = None
        self._steps: int | None = None
        self.failure: tuple[str, str, float] | None = None
        ours, theirs = socketpair()
        self._mark = f"{MARK}={uuid.uuid4().hex}"
        with ours, theirs:
            path = json.dumps([os.path.abspath(each or ".") for each in sys.path])
            self._process = subprocess.Popen(
                [sys.executable, str(CHILD), str(theirs.fileno()), str(os.getpid()), path],
                env={**os.environ, "PYTHONHASHSEED": "0", MARK: self._mark.partition("=")[2]},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # solvers may be talkative
                start_new_session=True,  # Ctrl-C is for us
            )
            self.connection = Connection(ours.detach())
        with suppress(BrokenPipeError, ConnectionError):  # it has died: `receive` will see it
            self.connection.send(call)

    def receive(self) -> bool:
        """Take one message; whether it was the last."""
        try:
            what, *rest = self.connection.recv()
        except (EOFError, ConnectionError):
            code = self._process.wait()
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            self.failure = ("crash", f"its process ended early ({how})", math.nan)
            return True
        except Exception as error:  # the solver's own objects, which may raise anything
            self.failure = (INVALID, unread(error), math.nan)
            return True
        if what == "found":
            self._found.append((rest[0], rest[1]))
            return False
        if what == "failed":
            self.failure = (rest[0], rest[1], rest[2])
        else:
            self._done = (rest[0], rest[1])
            solution = rest[2]
            if isinstance(solution, Counted):
                solution, self._steps = solution.solution, solution.steps
            self._found.append((rest[0], solution))
        return True

    def end(self) -> None:
        """End the process and what it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for _ in range(100):  # those that left the group; one may start another meanwhile
            if not _killed(self._mark.encode()):
                break
            time.sleep(0.01)
        self.connection.close()

    def outcome(self, problem: Problem) -> Timed:
        """What it found, checked by the problem's rules, with costs by the problem, turned."""
        if self.failure is None:
            assert self._done is not None
            rules = problem.rules(self._instance.seen())
            best, lowest, curve = None, math.inf, []
            try:
                for second, output in self._found:
                    solution = rules.repaired(output)
                    cost = problem.minimised(self._instance, solution)
                    if cost < lowest:
                        best, lowest = solution, cost
                        curve.append((second, cost))
            except Infeasible as error:
                self.failure = (INVALID, " ".join(str(error).split()), self._done[0])
            else:
                if best is not None:
                    return Timed("ok", "", best, lowest, tuple(curve), *self._done, self._steps)
                self.failure = (INVALID, "its cost is not finite", self._done[0])
        status, reason, seconds = self.failure
        return Timed(status, reason, None, math.inf, (), seconds, math.nan)


def _killed(mark: bytes) -> int:
    """Kill the processes that have `mark` in their environment; how many there were."""
    count = 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with suppress(OSError):  # it has ended, or is not ours
            process = os.pidfd_open(int(entry.name))  # so that its number cannot become another's
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    signal.pidfd_send_signal(process, signal.SIGKILL)
                    count += 1
            finally:
                os.close(process)
    return count


def unread(error: Exception) -> str:
    """Why a solution cannot be passed on, in one line."""
    why = " ".join(f"{type(error).__name__}: {error}".split())
    return f"its solution cannot be taken over ({why})"


def _best(found: Sequence[Timed]) -> Timed:
    """Of calls side by side, one call."""
    for each in found:
        if each.status != "ok":
            return each
    best = min(found, key=lambda each: each.cost)
    curve, lowest = [], math.inf
    for second, cost in sorted(point for each in found for point in each.curve):
        if cost < lowest:
            lowest = cost
            curve.append((second, cost))
    seconds, spent = max(each.seconds for each in found), sum(each.cpu_seconds for each in found)
    return Timed("ok", "", best.solution, best.cost, tuple(curve), seconds, spent, best.steps)

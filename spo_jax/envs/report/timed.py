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
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from socket import socketpair
from typing import Any

from spo_jax.envs.problem import Infeasible, Instance, Problem, Solution

CHILD = Path(__file__).with_name("timed_child.py")


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
    of all. A call that failed has no solution, an infinite cost and no curve.
    """

    status: str
    reason: str
    solution: Solution
    cost: float
    curve: tuple[tuple[float, float], ...]
    seconds: float
    cpu_seconds: float


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
        self.failure: tuple[str, str, float] | None = None
        ours, theirs = socketpair()
        with ours, theirs:
            path = json.dumps([os.path.abspath(each or ".") for each in sys.path])
            self._process = subprocess.Popen(
                [sys.executable, str(CHILD), str(theirs.fileno()), str(os.getpid()), path],
                env={**os.environ, "PYTHONHASHSEED": "0"},
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
        if what == "found":
            self._found.append((rest[0], rest[1]))
            return False
        if what == "failed":
            self.failure = (rest[0], rest[1], rest[2])
        else:
            self._done = (rest[0], rest[1])
            self._found.append((rest[0], rest[2]))
        return True

    def end(self) -> None:
        """End the process and what it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.connection.close()

    def outcome(self, problem: Problem) -> Timed:
        """What it found, checked by the problem's rules, with costs by the problem."""
        if self.failure is None:
            assert self._done is not None
            rules = problem.rules(self._instance.seen())
            best, lowest, curve = None, math.inf, []
            try:
                for second, output in self._found:
                    solution = rules.repaired(output)
                    cost = float(problem.cost(self._instance, solution))
                    if cost < lowest:
                        best, lowest = solution, cost
                        curve.append((second, cost))
            except Infeasible as error:
                self.failure = ("invalid", " ".join(str(error).split()), self._done[0])
            else:
                if best is not None:
                    return Timed("ok", "", best, lowest, tuple(curve), *self._done)
                self.failure = ("invalid", "its cost is not finite", self._done[0])
        status, reason, seconds = self.failure
        return Timed(status, reason, None, math.inf, (), seconds, math.nan)


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
    return Timed("ok", "", best.solution, best.cost, tuple(curve), seconds, spent)

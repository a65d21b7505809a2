"""What all confined children do: read an instance, define a program, keep time, report."""

import os
import pickle
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np

from spo_jax.envs.kits import Kit
from spo_jax.envs.problem import Instance, Layout, Rules, Solution
from spo_jax.envs.run.lns import Failure
from spo_jax.envs.run.rollouts import Status
from spo_jax.envs.run.sandbox.gate.namespace import make_globals
from spo_jax.envs.run.sandbox.jobs import HEADER, MAX_REASON, ROLES, Place
from spo_jax.envs.run.sandbox.meter import TICK, Meter
from spo_jax.envs.run.sandbox.process.confine import RESULT_FD, STORE_FD
from spo_jax.program import Role

Function = Callable[..., Any]
LEVELS = 1000  # of calls that programs may nest, less a few of the loop that calls them


@dataclass(frozen=True)
class Loaded:
    code: CodeType
    entry: str
    layout: Layout
    closed: bool
    kit: Kit | None


def read_instance(place: Place) -> Instance:
    offset, length = place
    data = os.pread(STORE_FD, length, offset)
    while len(data) < length:
        data += os.pread(STORE_FD, length - len(data), offset + len(data))
    return pickle.loads(data)


def padded_code(rules: Rules, solution: Solution, length: int) -> bytes:
    code = rules.encode(solution)
    return np.asarray(code + [-1] * (length - len(code)), "<i4").tobytes()


def define(program: Loaded, role: Role, rng: Any, meter: Meter | None = None) -> Function:
    """Execute the module in a fresh namespace, so that rollouts share no names.

    meter: of the rollout, if the program is metered.
    """
    namespace = make_globals(rng, program.kit.members if program.kit else None)
    if meter is not None:
        namespace[TICK] = meter.ticks
    try:
        exec(program.code, namespace)  # a gated, compiled program in a confined process
        return namespace[program.entry]
    except MemoryError as error:
        raise Failure(Status.MEMORY, role, "out of memory", error) from None
    except BaseException as error:
        raise Failure(Status.CRASH, role, f"{type(error).__name__} at import", error) from None


def limit_recursion() -> None:
    """Leave what is called from here on LEVELS calls, however deep our own are."""
    frame, depth = sys._getframe(), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    sys.setrecursionlimit(depth + LEVELS)


def arm(seconds: float) -> None:
    """Make the kernel kill this process after `seconds` of CPU time, even in a loop in C.

    0 cancels the limit.
    """
    signal.setitimer(signal.ITIMER_PROF, seconds)


def report(
    index: int,
    status: Status,
    reason: str = "",
    role: Role | None = None,
    seconds: float = 0.0,
    payload: bytes = b"",
) -> None:
    plain = "".join(c if " " <= c <= "~" else "?" for c in reason[:MAX_REASON])
    text = plain.encode("ascii")
    header = HEADER.pack(index, status, ROLES.index(role), len(text), seconds)
    view = memoryview(header + text + payload)
    while view:
        view = view[os.write(RESULT_FD, view) :]

"""The outcome of a job: its reports, and the meaning of its child's end."""

import signal
from dataclasses import dataclass

from spo_jax.envs.run.rollouts import Status
from spo_jax.envs.run.sandbox.jobs import EXIT_MEMORY, EXIT_SIGNAL
from spo_jax.envs.run.sandbox.process.confine import EXIT_SECCOMP
from spo_jax.program import Role

# Signals that a program can cause itself; any other signal came from outside.
CPU_SIGNALS = (signal.SIGPROF, signal.SIGXCPU)
CRASH_SIGNALS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT)


@dataclass(frozen=True)
class ChildReport:
    """One parsed report of a child. payload: see `jobs.RunJob.payload_size`.

    role: at fault for a failure, if known. again: whether a retry is due, because the failure may
    not be the program's.
    """

    index: int
    status: Status
    reason: str
    seconds: float
    payload: bytes = b""
    role: Role | None = None
    again: bool = False

    @property
    def what(self) -> str:
        """The reason with its role, as text."""
        return f"{self.role}: {self.reason}" if self.role else self.reason


@dataclass(frozen=True)
class Ended:
    """The outcome of a job.

    reports: in order. verdict: on its first unreported task; None if the child ended normally after
    all its reports. isolate: the rest needs a process per task.
    """

    reports: list[ChildReport]
    verdict: ChildReport | None = None
    isolate: bool = False


def verdict(code: int, limit: float, seconds: float, longest: float) -> ChildReport:
    """The meaning of an exit code.

    limit: CPU seconds. seconds: wall-clock time since the report before; longest: what it may have
    been at most, as a busy machine reads reports late.
    """
    number = code - EXIT_SIGNAL if code > EXIT_SIGNAL else -code
    if code == EXIT_MEMORY:
        return ChildReport(0, Status.MEMORY, "out of memory", seconds)
    if code == EXIT_SECCOMP:
        return fault("the kernel refused the seccomp filter", seconds)
    if 0 < code < EXIT_SIGNAL:
        return fault(f"the child ended with code {code}", seconds)
    if number in CPU_SIGNALS and longest >= 0.9 * limit:
        return ChildReport(0, Status.TIMEOUT, f"used up {limit:g} s of CPU time", limit)
    if number in CRASH_SIGNALS:
        name = signal.Signals(number).name
        return ChildReport(0, Status.CRASH, f"the process died of {name}", seconds, again=True)
    return fault(killed(number), seconds)


def fault(reason: str, seconds: float) -> ChildReport:
    """A fault on our side."""
    return ChildReport(0, Status.HOST_FAULT, reason, seconds, again=True)


def killed(number: int) -> str:
    """The text for a signal from outside."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    short = " (out of memory?)" if number == signal.SIGKILL else ""
    return f"killed from outside by {name}{short}"

"""What a node answers, in bytes: numbers of fixed width and texts of a known length, no pickles.

The parent knows the jobs that a node has, and so the length of each of their reports. An answer
that is a byte longer or shorter than it must be, or says what no job can say, is `Malformed`.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from spo_jax.envs.run.rollouts import Status
from spo_jax.envs.run.sandbox.jobs import ROLES, Job, is_due, is_known
from spo_jax.envs.run.sandbox.outcome import ChildReport, Ended

# An answer: how many jobs ended. A job: ticket, seconds on its worker, number of reports, whether
# the rest needs a process per task, whether a verdict follows its reports.
COUNT = struct.Struct("<I")
JOB = struct.Struct("<QdI??")
# A report or verdict: index, status, role at fault (an index of ROLES), whether a retry is due,
# length of the reason in bytes of UTF-8, CPU seconds; then the reason, then an OK report's payload.
REPORT = struct.Struct("<IBB?Hd")
MAX_REASON = 2000  # bytes; the longest of a child are 3 * 390, the others are of our own side
VERDICTS = (Status.CRASH, Status.TIMEOUT, Status.MEMORY, Status.TAMPERED, Status.HOST_FAULT)


class Malformed(ValueError):
    """An answer that no node of ours gives."""


@dataclass(frozen=True)
class Done:
    """A job that has ended. seconds: of wall-clock time on its worker."""

    ticket: int
    seconds: float
    ended: Ended


def pack(done: Iterable[Done]) -> bytes:
    """The answer with these jobs."""
    parts, count = [], 0
    for each in done:
        ended, count = each.ended, count + 1
        reports, verdict = ended.reports, ended.verdict
        parts.append(
            JOB.pack(each.ticket, each.seconds, len(reports), ended.isolate, verdict is not None)
        )
        for report in reports if verdict is None else [*reports, verdict]:
            reason = _cut(report.reason)
            role = ROLES.index(report.role)
            head = (report.index, report.status, role, report.again, len(reason), report.seconds)
            parts += [REPORT.pack(*head), reason, report.payload]
    return b"".join([COUNT.pack(count), *parts])


def unpack(data: bytes, job_of: Callable[[int], Job | None]) -> list[Done]:
    """The jobs of an answer. job_of: the job that the node has under a ticket.

    Raises Malformed, also for a ticket that the node does not have or that comes twice.
    """
    if type(data) is not bytes:
        raise Malformed(f"it is a {type(data).__name__}")
    reader = _Reader(data)
    [count] = reader.take(COUNT)
    done = list(_jobs(reader, count, job_of))
    if reader.left:
        raise Malformed(f"{reader.left} bytes follow its end")
    if len({each.ticket for each in done}) < len(done):
        raise Malformed("a job ended twice")
    return done


def _jobs(reader: "_Reader", count: int, job_of: Callable[[int], Job | None]) -> Iterator[Done]:
    for _ in range(count):
        ticket, seconds, number, isolate, judged = reader.take(JOB)
        job = job_of(ticket)
        if job is None:
            raise Malformed(f"it has a ticket {ticket} that the node does not hold")
        if not seconds >= 0.0:
            raise Malformed(f"a job took {seconds} s")
        reports = []
        for k in range(number):  # ends at the first that is not due
            report = reader.report()
            due = is_due(job, k, report.index, report.status)
            if not due or report.again or report.status == Status.TAMPERED:
                raise Malformed(
                    f"report {k} of a job has index {report.index} and status {report.status}"
                )
            if report.status == Status.OK:
                report = reader.with_payload(report, job.payload_size(k))
            reports.append(report)
        verdict = reader.report() if judged else None
        if verdict is not None and (verdict.status not in VERDICTS or verdict.index != 0):
            raise Malformed(f"a verdict has status {verdict.status} and index {verdict.index}")
        yield Done(ticket, seconds, Ended(reports, verdict, isolate))


class _Reader:
    """Takes an answer apart from front to back."""

    def __init__(self, data: bytes):
        self._data, self._at = data, 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, what: struct.Struct) -> tuple[Any, ...]:
        return what.unpack(self.bytes(what.size))

    def bytes(self, length: int) -> bytes:
        if length > self.left:
            raise Malformed(f"it is cut off: {length} bytes are due and {self.left} are left")
        self._at += length
        return self._data[self._at - length : self._at]

    def report(self) -> ChildReport:
        """One without its payload."""
        index, code, role, again, length, seconds = REPORT.unpack(self.bytes(REPORT.size))
        if not (is_known(code, role, seconds) or (code == Status.TAMPERED and role < len(ROLES))):
            raise Malformed(f"a report has status {code}, role {role} and {seconds} s")
        if length > MAX_REASON:
            raise Malformed(f"a reason has {length} bytes")
        reason = self.bytes(length).decode("utf-8", "replace")
        return ChildReport(index, Status(code), reason, seconds, b"", ROLES[role], again)

    def with_payload(self, report: ChildReport, length: int) -> ChildReport:
        return ChildReport(
            report.index, report.status, report.reason, report.seconds, self.bytes(length),
            report.role,
        )  # fmt: skip


def _cut(reason: str) -> bytes:
    """UTF-8 of at most MAX_REASON bytes, cut between characters."""
    data = reason.encode("utf-8", "replace")
    return data[:MAX_REASON].decode("utf-8", "ignore").encode() if len(data) > MAX_REASON else data

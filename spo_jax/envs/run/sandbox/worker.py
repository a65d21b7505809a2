"""The parent's end of a zygote: send a job, read its reports, enforce the wall clock.

A worker does not trust a job's pipe: a report must have the fixed length of its status and the
expected index, and the evaluator recomputes its numbers.
"""

import contextlib
import json
import math
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from spo_jax.envs.run.rollouts import Status
from spo_jax.envs.run.sandbox.jobs import (
    CALL,
    EXIT_ISOLATE,
    FORK,
    HEADER,
    JUDGED,
    MAX_REASON,
    PID,
    ROLES,
    TAKE,
    CheckJob,
    Job,
    Order,
    Place,
    RunJob,
    SearchJob,
    is_due,
    is_known,
)
from spo_jax.envs.run.sandbox.outcome import ChildReport, Ended, fault, killed, verdict
from spo_jax.envs.run.sandbox.process.starting import Zygote, launched
from spo_jax.errors import SandboxUnavailable

START_SECONDS = 60.0
STARTS = 6  # attempts to start a zygote that is killed while it starts, or dies before any job
PAUSE = 0.1  # seconds before the first restart; each later one waits twice as long
GRACE_SECONDS = 0.75  # wall-clock seconds past the CPU limit before a sleeping child is killed
ORDER_SECONDS = 10.0  # in which a search must read an order
PATIENCE = 10.0  # multiple of the limit for a runnable child that gets no CPU


class Worker:
    """One zygote and at most one job at a time. Only `start` blocks.

    store: the descriptor from which its children read instances. kit: whether programs may import
    the problem's kit. path: where the zygote imports from; by default as this process does. parts:
    the functions of the user's that jobs name, as "package.module:NAME". ahead: its first zygote,
    which was started before, with this store and path.
    """

    def __init__(
        self,
        problem: str,
        store: int,
        kit: bool = True,
        path: Sequence[str] | None = None,
        parts: Sequence[str] = (),
        ahead: Zygote | None = None,
    ):
        self._problem = problem
        self._kit = kit
        self._store = store
        self._path = path
        self._parts = parts
        self._ahead = ahead
        self._zygote: Zygote | None = None
        self._futile = 0  # zygotes in a row that died before a job began
        self.layers: dict[str, bool] = {}
        self.job: Job | None = None
        self.reports: list[ChildReport] = []

    # --- the zygote's life ------------------------------------------------------------------------

    def launch(self) -> None:
        """Start the process; `start` waits until it is ready, so several can warm up at once."""
        self._zygote = self._ahead or launched(self._store, self._path)
        self._ahead = None
        self._zygote.tell(self._problem, self._kit, self._parts)
        self._control, self._jobs = self._zygote.control, self._zygote.jobs
        self._waiting: list[int] = []  # children that the zygote waits for
        self._statuses = b""
        self._words: str | None = None
        self._useful = False  # whether a child of this zygote has begun a job
        self.job = None

    def start(self) -> None:
        """Wait until the zygote is ready; restart it if it is killed before that.

        Raises SandboxUnavailable with its last output.
        """
        for attempt in range(STARTS):
            hello = self._hello()
            if hello is not None:
                break
            words, killed = self._last_words(), self._was_killed
            self.close()
            if not killed or attempt + 1 == STARTS:
                times = f" ({STARTS} times)" if killed else ""
                raise SandboxUnavailable(f"the sandbox process did not start{times}: {words}")
            time.sleep(PAUSE * 2**attempt)
            self.launch()
        assert hello is not None
        self.layers = json.loads(hello)
        with contextlib.suppress(OSError):  # it has died: the first job will notice
            self._control.sendall(FORK)

    def lost(self) -> tuple[str, float]:
        """The reason why a zygote died during a job, and the seconds the job had taken."""
        return f"the sandbox process died: {self._last_words()}", time.monotonic() - self._began

    def restart(self) -> None:
        """Replace a dead zygote. Raises SandboxUnavailable, also if all die idle."""
        self._futile = 0 if self._useful else self._futile + 1
        words = self._last_words()
        self.close()
        if self._futile >= STARTS:
            often = f"{STARTS} times before a program could run"
            raise SandboxUnavailable(f"the sandbox process died {often}: {words}")
        if self._futile > 1:  # what hinders it may pass
            time.sleep(PAUSE * 2 ** (self._futile - 2))
        self.launch()
        self.start()

    def _hello(self) -> bytes | None:
        """The zygote's ready message; None if it ends or hangs before that."""
        hello = b""
        deadline = time.monotonic() + START_SECONDS
        while not hello.endswith(b"\n"):
            patience = max(0.0, deadline - time.monotonic())
            ready = readable([self._control.fileno()], patience)
            try:
                data = self._control.recv(1 << 12) if ready else b""
            except ConnectionResetError:  # it ended before it was told anything
                data = b""
            if not data:
                return None
            hello += data
        return hello

    @property
    def _was_killed(self) -> bool:
        code = self._zygote.process.returncode if self._zygote is not None else None
        return code is not None and code < 0

    def _last_words(self) -> str:
        """Why the zygote ended, as far as known."""
        if self._words is None:
            self._words = self._found_words()
        return self._words

    def _found_words(self) -> str:
        assert self._zygote is not None
        process = self._zygote.process
        assert process.stderr is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1.0)
        if process.returncode is None:
            return f"it said nothing for {START_SECONDS:g} s"
        lines = (process.stderr.read() or b"").decode("utf-8", "replace").strip().splitlines()
        if lines:
            return lines[-1]
        code = process.returncode
        return killed(-code) if code < 0 else f"it ended with code {code}"

    def close(self) -> None:
        """Kill the zygote and its children."""
        if self._zygote is not None and self.job is not None:
            self._kill_child()
            self._end_job()
        for each in filter(None, (self._zygote, self._ahead)):
            each.close()
        self._zygote = self._ahead = None

    # --- a job's life -----------------------------------------------------------------------------

    def submit(self, job: Job, places: Mapping[str, Place], matrix: int | None = None) -> None:
        """Begin `job`. Raises OSError.

        places: of its instances in the store. matrix: the file with the distances of the instance,
        where they are not in the store.
        """
        assert self._zygote is not None
        self._zygote.file.write(job.frames(places), 0)
        if isinstance(job, SearchJob):  # which also reads
            ends = socket.socketpair()
            read_end, write_end = ends[0].detach(), ends[1].detach()
        else:
            read_end, write_end = os.pipe2(os.O_CLOEXEC)
        try:
            sent = [write_end] if matrix is None else [write_end, matrix]
            socket.send_fds(self._jobs, [TAKE], sent)
            self._control.sendall(FORK)  # the next child warms up while this one works
        except OSError:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        os.set_blocking(read_end, False)
        self.job, self.reports = job, []
        self._pipe, self._open = read_end, True
        self._buffer = bytearray()
        self._pid: int | None = None
        self._exit: int | None = None
        self._judged = False
        self._reaped = False
        self._killed = False
        self._broken = False
        self._leg_seconds = 0.0
        self._ticks = 0
        self._began = self._looked = self._earliest = time.monotonic()
        self._deadline = self._began + self._limit

    def order(self, order: Order) -> None:
        """Begin the next leg of a search. One that is gone or does not listen shows in `poll`."""
        job = self.job
        assert isinstance(job, SearchJob)
        self._leg_seconds = order.cpu_seconds
        self._began = self._looked = self._earliest = time.monotonic()
        self._deadline = self._began + self._limit
        if not self._open:
            return
        with socket.socket(fileno=os.dup(self._pipe)) as channel:
            try:
                channel.settimeout(ORDER_SECONDS)
                channel.sendall(order.packed(job.code_length))
            except OSError:
                self._broken = isinstance(sys.exc_info()[1], TimeoutError)
        os.set_blocking(self._pipe, False)

    @property
    def _limit(self) -> float:
        """Wall-clock seconds without a report before the watchdog checks the child."""
        return self._cpu_limit + GRACE_SECONDS

    @property
    def _cpu_limit(self) -> float:
        """CPU seconds that a child may use until its next report."""
        job = self.job
        assert job is not None
        if not isinstance(job, CheckJob) and not self._judged:
            return job.gate_seconds
        return self._leg_seconds if isinstance(job, SearchJob) else job.cpu_seconds

    @property
    def descriptors(self) -> list[int]:
        """The descriptors to select on while a job runs."""
        control = self._control.fileno()
        return [self._pipe, control] if self._open else [control]

    @property
    def deadline(self) -> float:
        """time.monotonic() at which `poll` must be called even if nothing is readable."""
        return self._deadline

    def poll(self) -> bool:
        """Read available data and check the clock; True once the job has ended.

        Raises ConnectionError if the zygote itself is gone.
        """
        self._read_reports()
        complete = self._reported_all()
        if self._pid is not None and not self._reaped and (complete or not self._open):
            self._reap()
        if complete:  # the next job does not wait for the child's end
            self._exit = 0
            return True
        self._read_statuses()
        if self._exit is not None:
            return True
        if not self._open and self._pid is None:
            self._exit = -signal.SIGKILL  # it died before its first message
            return True
        if self._broken and not self._killed:
            self._kill_child()
        if time.monotonic() >= self._deadline:
            self._watchdog()
        return False

    def finish(self) -> Ended:
        """The outcome of the finished job."""
        reports, code, limit = self.reports, self._exit, self._cpu_limit
        now = time.monotonic()
        seconds, longest = now - self._began, now - self._earliest
        killed, broken = self._killed, self._broken
        self._end_job()
        assert code is not None
        if broken:
            return Ended(reports, ChildReport(0, Status.TAMPERED, "malformed report", seconds))
        if killed and code == -signal.SIGKILL:  # else it had ended before
            return Ended(reports, fault("stalled without using CPU time", seconds))
        if code == EXIT_ISOLATE:
            return Ended(reports, isolate=True)
        if code == 0:
            return Ended(reports)
        return Ended(reports, verdict(code, limit, seconds, longest))

    def _reported_all(self) -> bool:
        if not isinstance(self.job, RunJob) or self._broken or self._buffer:
            return False
        return len(self.reports) == len(self.job.tasks)

    def _reap(self) -> None:
        """Make the zygote wait for the child and return its status."""
        assert self._pid is not None
        try:
            self._control.sendall(CALL.pack(self._pid))
        except OSError:
            raise ConnectionError("the sandbox process is gone") from None
        self._waiting.append(self._pid)
        self._reaped = True

    def _end_job(self) -> None:
        if self._open:
            os.close(self._pipe)
            self._open = False
        self.job = None

    def _read_statuses(self) -> None:
        try:
            data = self._control.recv(CALL.size * 64, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        if not data:
            raise ConnectionError("the sandbox process is gone")
        self._statuses += data
        while len(self._statuses) >= CALL.size:
            (status,) = CALL.unpack(self._statuses[: CALL.size])
            self._statuses = self._statuses[CALL.size :]
            if self._waiting.pop(0) == self._pid:
                self._exit = os.waitstatus_to_exitcode(status)

    def _read_reports(self) -> None:
        before, self._looked = self._looked, time.monotonic()
        known = self._began
        while self._open:
            try:
                data = os.read(self._pipe, 1 << 16)
            except BlockingIOError:
                break
            except ConnectionResetError:  # a search that ended before it read its order
                data = b""
            if not data:
                os.close(self._pipe)
                self._open = False
            self._buffer += data
            if self._pid is None and len(self._buffer) >= PID.size:
                (self._pid,) = PID.unpack_from(self._buffer)
                self._useful = True
                del self._buffer[: PID.size]
            if self._pid is not None:
                self._parse()
        if self._began != known:  # a report came since the look before
            self._earliest = before

    def _parse(self) -> None:
        """Parse complete reports from the buffer; anything unexpected marks the job as broken."""
        job = self.job
        assert job is not None
        while not self._broken and len(self._buffer) >= HEADER.size:
            index, code, role, length, seconds = HEADER.unpack_from(self._buffer)
            size = HEADER.size + length
            ok = code == Status.OK
            if not is_known(code, role, seconds) or length > MAX_REASON:
                self._broken = True
                return
            news = not isinstance(job, CheckJob) and not (self._judged or self.reports)
            if index == JUDGED and news and ok and not length:
                self._judged = True
                del self._buffer[:size]
                self._began = time.monotonic()
                self._deadline = self._began + self._limit
                continue
            if not is_due(job, len(self.reports), index, code):
                self._broken = True
                return
            if ok:
                size += job.payload_size(len(self.reports))
            if len(self._buffer) < size:
                return
            start = HEADER.size + length
            reason = bytes(self._buffer[HEADER.size : start]).decode("ascii", "replace")
            payload = bytes(self._buffer[start:size])
            report = ChildReport(index, Status(code), reason, seconds, payload, ROLES[role])
            self.reports.append(report)
            del self._buffer[:size]
            self._began = time.monotonic()
            waits = isinstance(job, SearchJob)  # for an order, or its end is near
            self._deadline = math.inf if waits else self._began + self._limit

    def _watchdog(self) -> None:
        """Check a rollout past its limit that the kernel has not killed.

        A runnable child only lacks CPU on a busy machine and gets more time, up to `PATIENCE`. A
        sleeping child does something forbidden and is killed.
        """
        now = time.monotonic()
        waited = now - self._began
        if self._pid is not None and waited < PATIENCE * self._limit and self._is_running():
            self._deadline = now + 0.25
            return
        self._kill_child()
        self._deadline = now + 5.0

    def _is_running(self) -> bool:
        """Whether the child, or its task's process, runs on a CPU, waits for one or for memory, has
        used one since the last look, or has ended: its status is on its way then.
        """
        pid, before = self._pid, self._ticks
        try:
            below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            stats = [Path(f"/proc/{p}/stat").read_text() for p in (pid, *below)]
        except OSError:
            return True
        fields = [stat.rpartition(")")[2].split() for stat in stats]
        self._ticks = sum(int(ticks) for each in fields for ticks in each[11:15])
        return self._ticks > before or any(each[0] in "RDZX" for each in fields)

    def _kill_child(self) -> None:
        if self._pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
            self._killed = True
        elif self._zygote is not None:  # it never forked, so the zygote hangs
            self._zygote.process.kill()


def readable(descriptors: Iterable[int], seconds: float) -> list[int]:
    """Those that can be read, or have no writer any more; waits for the first as long as that.

    Unlike `select.select` it takes the descriptors of hundreds of workers.
    """
    watch = select.poll()
    for descriptor in descriptors:
        watch.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in watch.poll(math.ceil(1000 * max(0.0, seconds)))]

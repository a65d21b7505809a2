"""The parent's end of a zygote: send a job, read its reports, enforce the wall clock.

A worker never trusts what comes through a job's pipe: a report has a fixed length for its status,
an index that is due, and numbers that the evaluator recomputes.
"""

import contextlib
import json
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from spo_jax.envs.problem import Instance
from spo_jax.envs.rollouts import Status
from spo_jax.envs.sandbox.child import (
    EXIT_MEMORY,
    HEADER,
    MAX_REASON,
    WHOLE_JOB,
    CheckJob,
    Job,
    RunJob,
)
from spo_jax.envs.sandbox.zygote import EVENT, receive, send
from spo_jax.errors import SandboxUnavailable

START_SECONDS = 60.0
GRACE_SECONDS = 0.75  # wall-clock time past the CPU limit in which a sleeping child is killed
PATIENCE = 10.0  # a child that wants CPU and is not given it may take this many limits
INSTANCE_BYTES = 256 << 20  # of distance matrices that a zygote keeps


@dataclass(frozen=True)
class Report:
    """One parsed report of a child. payload: see `child.HEADER`."""

    index: int
    status: Status
    reason: str
    seconds: float
    payload: bytes = b""


class Worker:
    """One zygote and at most one job at a time. All methods are non-blocking but for `start`."""

    def __init__(self, problem: str):
        self._problem = problem
        self._process: subprocess.Popen[bytes] | None = None
        self._known: OrderedDict[str, int] = OrderedDict()
        self.layers: dict[str, bool] = {}
        self.job: Job | None = None
        self.reports: list[Report] = []

    # --- the zygote's life ------------------------------------------------------------------------

    def launch(self) -> None:
        """Start the process; `start` waits until it is ready, so several can warm up at once."""
        ours, theirs = socket.socketpair()
        self._socket = ours
        command = [sys.executable, "-s", "-S", "-P", "-B"]
        command += [str(Path(__file__).with_name("launch.py")), str(theirs.fileno())]
        command += [self._problem, json.dumps([os.path.abspath(p or ".") for p in sys.path])]
        single = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
        self._process = subprocess.Popen(
            command,
            env={"PYTHONHASHSEED": "0", **dict.fromkeys(single, "1")},
            pass_fds=[theirs.fileno()],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        theirs.close()
        self._known.clear()
        self._stale_exit = False
        self._events = b""
        self.job = None

    def start(self) -> None:
        """Wait for the zygote's hello. Raises SandboxUnavailable with its last words."""
        process = self._process
        assert process is not None
        assert process.stderr is not None
        ready, _, _ = select.select([self._socket], [], [], START_SECONDS)
        hello = receive(self._socket) if ready else None
        if hello is None:
            process.kill()
            words = process.stderr.read().decode("utf-8", "replace").strip().splitlines()
            last = words[-1] if words else "it said nothing"
            raise SandboxUnavailable(f"the sandbox process did not start: {last}")
        process.stderr.close()
        self.layers = json.loads(hello[0])

    def close(self) -> None:
        """Kill the zygote and what it runs."""
        if self._process is None:
            return
        if self.job is not None:
            self._kill_child()
            self._end_job()
        self._socket.close()
        self._process.kill()
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()
        self._process = None

    # --- a job's life -----------------------------------------------------------------------------

    def submit(self, job: Job, instances: list[Instance]) -> None:
        """Begin `job`; `instances` are those its tasks name."""
        self._teach(instances)
        read_end, write_end = os.pipe2(os.O_CLOEXEC)
        try:
            send(self._socket, pickle.dumps(("job", job)), write_end)
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
        self._killed = False
        self._broken = False
        self._began = time.monotonic()
        self._deadline = self._began + self._limit

    def _teach(self, instances: list[Instance]) -> None:
        """Make sure the zygote knows the instances, forgetting the oldest where room is short."""
        for instance in instances:
            if instance.digest not in self._known:
                send(self._socket, pickle.dumps(("learn", instance)))
                self._known[instance.digest] = instance.dist.nbytes * 5  # tuples of floats
            self._known.move_to_end(instance.digest)
        needed = {instance.digest for instance in instances}
        for digest in list(self._known):
            if sum(self._known.values()) <= INSTANCE_BYTES:
                break
            if digest not in needed:
                send(self._socket, pickle.dumps(("forget", digest)))
                del self._known[digest]

    @property
    def _limit(self) -> float:
        """Wall-clock seconds between two signs of life, before the watchdog looks closer."""
        assert self.job is not None
        return self.job.cpu_seconds + GRACE_SECONDS

    @property
    def descriptors(self) -> list[int]:
        """What to select on while a job runs."""
        return [self._pipe, self._socket.fileno()] if self._open else [self._socket.fileno()]

    @property
    def deadline(self) -> float:
        """time.monotonic() at which `poll` must be called even if nothing is readable."""
        return self._deadline

    def poll(self) -> bool:
        """Read what there is and look at the clock; True once the job has ended.

        Raises ConnectionError if the zygote itself is gone.
        """
        self._read_reports()
        if self._reported_all() and self._pid is not None:
            self._exit, self._stale_exit = 0, True  # the next job need not wait for its exit
            return True
        self._read_events()
        if self._exit is not None:
            self._read_reports()  # whatever was written before the child ended
            return True
        if self._broken and not self._killed:
            self._kill_child()
        if time.monotonic() >= self._deadline:
            self._watchdog()
        return False

    def finish(self) -> tuple[list[Report], Report | None]:
        """The reports of the job that ended, and what became of its first unreported rollout.

        The second is None when the child ended by itself after reporting what it had to.
        """
        reports, code = self.reports, self._exit
        seconds = time.monotonic() - self._began
        verdict: Report | None = None
        if self._broken:
            verdict = Report(0, Status.TAMPERED, "malformed report", seconds)
        elif self._killed:
            verdict = Report(0, Status.HOST_FAULT, "stalled without using CPU time", seconds)
        elif code in (-signal.SIGPROF, -signal.SIGXCPU):
            limit = self.job.cpu_seconds if self.job else 0.0
            verdict = Report(0, Status.TIMEOUT, f"used up {limit:g} s of CPU time", limit)
        elif code == EXIT_MEMORY:
            verdict = Report(0, Status.MEMORY, "out of memory", seconds)
        elif code == 99:
            verdict = Report(0, Status.HOST_FAULT, "the kernel refused the seccomp filter", seconds)
        elif code is not None and code < -1000:
            verdict = Report(0, Status.HOST_FAULT, f"cannot fork: {os.strerror(-code - 1000)}", 0.0)
        elif code == -signal.SIGKILL:
            verdict = Report(0, Status.MEMORY, "killed by the kernel", seconds)
        elif code is not None and code < 0:
            name = signal.Signals(-code).name
            verdict = Report(0, Status.CRASH, f"the process died of {name}", seconds)
        elif code != 0:
            verdict = Report(0, Status.HOST_FAULT, f"the child exited with code {code}", seconds)
        self._end_job()
        return reports, verdict

    def _reported_all(self) -> bool:
        if not isinstance(self.job, RunJob) or self._broken or self._buffer:
            return False
        return len(self.reports) == len(self.job.tasks)

    def _end_job(self) -> None:
        if self._open:
            os.close(self._pipe)
            self._open = False
        self.job = None

    def _read_events(self) -> None:
        try:
            data = self._socket.recv(EVENT.size, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        if not data:
            raise ConnectionError("the sandbox process is gone")
        self._events += data
        while len(self._events) >= EVENT.size:
            (value,) = EVENT.unpack(self._events[: EVENT.size])
            self._events = self._events[EVENT.size :]
            if self._stale_exit:
                self._stale_exit = False
            elif self._pid is None and value > 0:
                self._pid = value
            elif self._pid is None:
                self._exit = value - 1000
            else:
                self._exit = value

    def _read_reports(self) -> None:
        while self._open:
            try:
                data = os.read(self._pipe, 1 << 16)
            except BlockingIOError:
                break
            if not data:
                os.close(self._pipe)
                self._open = False
            self._buffer += data
            self._parse()

    def _parse(self) -> None:
        """Take whole reports off the buffer; anything unexpected marks the job as broken."""
        job = self.job
        assert job is not None
        while not self._broken and len(self._buffer) >= HEADER.size:
            index, code, length, seconds = HEADER.unpack_from(self._buffer)
            size = HEADER.size + length
            ok = code == Status.OK
            if code > Status.MEMORY or length > MAX_REASON or not seconds >= 0.0:
                self._broken = True
                return
            due = job.due(len(self.reports))
            whole = index == WHOLE_JOB and code == Status.REJECTED
            if due is None or not (index == due or (whole and not isinstance(job, CheckJob))):
                self._broken = True
                return
            if ok:
                size += job.payload_size(len(self.reports))
            if len(self._buffer) < size:
                return
            start = HEADER.size + length
            reason = bytes(self._buffer[HEADER.size : start]).decode("ascii", "replace")
            payload = bytes(self._buffer[start:size])
            self.reports.append(Report(index, Status(code), reason, seconds, payload))
            del self._buffer[:size]
            self._began = time.monotonic()
            self._deadline = self._began + self._limit

    def _watchdog(self) -> None:
        """A rollout is past its limit and the kernel has not killed it: see whether it runs.

        A child that is runnable is only short of CPU on a busy machine and is given more time; one
        that sleeps does what no program may do. Either way there is an end.
        """
        now = time.monotonic()
        waited = now - self._began
        if self._pid is not None and waited < PATIENCE * self._limit and _is_running(self._pid):
            self._deadline = now + 0.25
            return
        self._kill_child()
        self._deadline = now + 5.0

    def _kill_child(self) -> None:
        if self._pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
            self._killed = True
        elif self._process is not None:  # it never forked: the zygote itself hangs
            self._process.kill()


def _is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] == "R"

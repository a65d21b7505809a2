"""The zygote: a warm, single-threaded process that forks one confined child a job.

It is started by `worker.Worker` as a fresh interpreter with an empty environment and talks to it
over one Unix socket. Towards it come pickles made by ourselves, with the write end of a pipe for a
job's results; from it go fixed-width numbers only. It never touches a program.

A child costs a few milliseconds to fork and to warm up (most of it copying pages it writes to), so
the next one is forked while the present one works; it serves one job all the same.
"""

import ast
import contextlib
import gc
import importlib
import json
import os
import pickle
import select
import signal
import socket
import struct
import warnings
from dataclasses import dataclass

import numpy as np

from spo_jax.envs import get_problem
from spo_jax.envs.problem import Problem, Rules
from spo_jax.envs.sandbox import child, confine

LENGTH = struct.Struct("<Q")
EVENT = struct.Struct("<q")


def receive(sock: socket.socket) -> tuple[bytes, int | None] | None:
    """One message and the descriptor that came with it; None when the other end is gone."""
    data, fds, _, _ = socket.recv_fds(sock, LENGTH.size, 1, socket.MSG_WAITALL)
    if len(data) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(data)
    buffer = bytearray(length)
    view = memoryview(buffer)
    while view:
        count = sock.recv_into(view)
        if not count:
            return None
        view = view[count:]
    return bytes(buffer), fds[0] if fds else None


def send(sock: socket.socket, message: bytes, fd: int | None = None) -> None:
    """One message, with a descriptor or without."""
    header = LENGTH.pack(len(message))
    if fd is None:
        sock.sendall(header)
    else:
        socket.send_fds(sock, [header], [fd])
    sock.sendall(message)


@dataclass
class _Spare:
    """A child forked ahead of its job. knows: the instances that were there when it was forked."""

    pid: int
    sock: socket.socket
    knows: frozenset[str]

    def discard(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.sock.close()


class _Zygote:
    def __init__(self, sock: socket.socket, problem: Problem, fixed_addresses: bool):
        self.sock = sock
        self.problem = problem
        self.rules: dict[str, Rules] = {}
        self.spare: _Spare | None = None
        self.space = confine.AddressSpace()
        layers = confine.confine_zygote()
        self.seccomp = confine.seccomp_filter() if _seccomp_works() else None
        layers |= {"seccomp": self.seccomp is not None, "fixed_addresses": fixed_addresses}
        send(sock, json.dumps(layers).encode())

    def serve(self) -> None:
        while (received := receive(self.sock)) is not None:
            message, fd = received
            kind, body = pickle.loads(message)
            if kind == "learn":
                self.rules[body.digest] = self.problem.rules(body)
            elif kind == "forget":
                self.rules.pop(body, None)
            elif fd is not None and not self.job(message, body, fd):
                break
        if self.spare is not None:
            self.spare.discard()

    def job(self, message: bytes, job: child.RunJob | child.CheckJob, fd: int) -> bool:
        """Give the job to a fresh child and wait for it; False once the parent is gone."""
        spare = self.spare
        if spare is not None and not job.instances <= spare.knows:
            spare.discard()
            spare = None
        try:
            spare = spare or self.fork()
        except OSError as error:
            os.close(fd)
            self.sock.sendall(EVENT.pack(-(error.errno or 1)))
            return True
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it died: waitpid tells
            send(spare.sock, message, fd)
        spare.sock.close()
        os.close(fd)
        self.sock.sendall(EVENT.pack(spare.pid))
        with contextlib.suppress(OSError):
            self.spare = None
            self.spare = self.fork()  # it warms up while this job runs
        watch = os.pidfd_open(spare.pid)
        try:
            ready, _, _ = select.select([watch, self.sock.fileno()], [], [])
            if watch not in ready and self.sock.recv(1, socket.MSG_PEEK) == b"":
                os.kill(spare.pid, signal.SIGKILL)
                return False
            _, status = os.waitpid(spare.pid, 0)
        finally:
            os.close(watch)
        self.sock.sendall(EVENT.pack(os.waitstatus_to_exitcode(status)))
        return True

    def fork(self) -> _Spare:
        ours, theirs = socket.socketpair()
        space = self.space.bytes()
        gc.freeze()
        pid = os.fork()
        if pid == 0:
            try:
                ours.close()
                self.be_child(theirs, space)
            except MemoryError:
                os._exit(child.EXIT_MEMORY)
            finally:
                os._exit(child.EXIT_FAULT)
        theirs.close()
        return _Spare(pid, ours, frozenset(self.rules))

    def be_child(self, sock: socket.socket, space: int) -> None:
        """A child's whole life: warm up, wait for a job, give everything else up, work."""
        confine.die_with_parent()
        os.setsid()
        child.warm_up(self.problem.arity, self.rules)
        received = receive(sock)
        message, fd = received or (b"", None)
        if fd is None:
            os._exit(0)
        _, job = pickle.loads(message)
        confine.confine_child(fd, space + job.memory, job.total_cpu_seconds, self.seccomp)
        child.work(job, self.problem.arity, self.rules)
        os._exit(0)


def _seccomp_works() -> bool:
    """Whether a child accepts the filter."""
    program = confine.seccomp_filter()
    if program is None:
        return False
    pid = os.fork()
    if pid == 0:
        os._exit(0 if confine.try_seccomp(program) else 1)
    _, status = os.waitpid(pid, 0)
    return status == 0


def _load_lazy_modules() -> None:
    """Import what Python and NumPy import on first use: later nothing can be opened."""
    for name in ("numpy._core._methods", "numpy.linalg", "numpy.ma", "numpy.random", "unicodedata"):
        importlib.import_module(name)
    np.random.default_rng(0)
    ast.parse("\u00e9 = 1")


def main(fd: int, problem: str, fixed_addresses: bool) -> None:
    """The zygote's whole life. fd: its end of the socket; problem: a `get_problem` name."""
    os.environ.clear()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    _load_lazy_modules()
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    sock = socket.socket(fileno=fd)
    _Zygote(sock, get_problem(problem), fixed_addresses).serve()

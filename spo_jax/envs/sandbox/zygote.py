"""The zygote: a warm, single-threaded process that forks one confined child a job.

It is started by `worker.Worker` as a fresh interpreter with an empty environment and talks to it
over one Unix socket. Towards it come pickles made by ourselves, with the write end of a pipe for a
job's results; from it go fixed-width numbers only. It never touches a program.
"""

import gc
import json
import os
import pickle
import select
import signal
import socket
import struct
import warnings
from typing import Any

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


class _Zygote:
    def __init__(self, sock: socket.socket, problem: Problem, fixed_addresses: bool):
        self.sock = sock
        self.problem = problem
        self.rules: dict[str, Rules] = {}
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
            elif fd is not None and not self.job(body, fd):
                return

    def job(self, job: Any, fd: int) -> bool:
        """Fork a child for `job`, wait for it; False once the parent is gone."""
        tasks = len(job.tasks) if isinstance(job, child.RunJob) else 1
        space = self.space.bytes() + job.memory
        gc.freeze()
        try:
            pid = os.fork()
        except OSError as error:
            os.close(fd)
            self.sock.sendall(EVENT.pack(-(error.errno or 1)))
            return True
        if pid == 0:
            try:
                # RLIMIT_CPU is in whole seconds and for the process: only the last resort.
                confine.confine_child(fd, space, int(job.cpu_seconds * tasks) + 2, self.seccomp)
                child.work(job, self.problem.arity, self.rules)
                os._exit(0)
            except MemoryError:
                os._exit(97)
            finally:
                os._exit(98)
        os.close(fd)
        self.sock.sendall(EVENT.pack(pid))
        watch = os.pidfd_open(pid)
        try:
            ready, _, _ = select.select([watch, self.sock], [], [])
            if watch not in ready and self.sock.recv(1, socket.MSG_PEEK) == b"":
                os.killpg(pid, signal.SIGKILL)
                return False
            _, status = os.waitpid(pid, 0)
        finally:
            os.close(watch)
        self.sock.sendall(EVENT.pack(os.waitstatus_to_exitcode(status)))
        return True


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


def main(fd: int, problem: str, fixed_addresses: bool) -> None:
    """The zygote's whole life. fd: its end of the socket; problem: a `get_problem` name."""
    os.environ.clear()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    np.random.default_rng(0)  # numpy.random loads lazily, and later nothing can be opened
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    sock = socket.socket(fileno=fd)
    _Zygote(sock, get_problem(problem), fixed_addresses).serve()

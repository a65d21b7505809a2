"""Starts the process of a zygote, which is told later what it is for.

So it can load what all zygotes need while its parent still reads the problem. This module is cheap
to import.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

LAUNCHER = Path(__file__).with_name("launch.py")


class MemoryFile:
    """An anonymous file in memory. reader: a descriptor that can only read, for children."""

    def __init__(self, name: str):
        self._writer = os.memfd_create(name, os.MFD_CLOEXEC)
        self.reader = os.open(f"/proc/self/fd/{self._writer}", os.O_RDONLY | os.O_CLOEXEC)

    def write(self, data: bytes, offset: int) -> None:
        """Write all of `data`. Raises OSError if memory is short."""
        view = memoryview(data)
        while view:
            count = os.pwrite(self._writer, view, offset)
            view, offset = view[count:], offset + count

    def truncate(self, size: int) -> None:
        os.ftruncate(self._writer, size)

    def close(self) -> None:
        for fd in (self._writer, self.reader):
            with contextlib.suppress(OSError):
                os.close(fd)


class Zygote(NamedTuple):
    """The parent's ends of a zygote. control: orders. jobs: pipes for reports. file: of a job."""

    control: socket.socket
    jobs: socket.socket
    file: MemoryFile
    process: "subprocess.Popen[bytes]"

    def tell(self, problem: str, kit: bool, parts: Sequence[str]) -> None:
        """What it is for, as `zygote.main` has it. It loads that, and says that it is ready."""
        with contextlib.suppress(OSError):  # it has died, which whoever waits for it will notice
            self.control.sendall(json.dumps([problem, kit, list(parts)]).encode() + b"\n")

    def close(self) -> None:
        """Kill the process; children that work are the caller's to kill."""
        self.control.close()
        self.jobs.close()
        self.file.close()
        self.process.kill()
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()


def launched(store: int, path: Sequence[str] | None = None) -> Zygote:
    """Start a process.

    store: the descriptor from which its children read instances. path: where it imports from; by
    default as this process does.
    """
    parent_control, control = socket.socketpair()
    parent_jobs, jobs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    file = MemoryFile("spo-job")
    ends = (control.fileno(), jobs.fileno(), file.reader, store)
    command = [sys.executable, "-s", "-S", "-P", "-B"]
    command += [str(LAUNCHER), ",".join(map(str, ends))]
    command += [json.dumps(import_path() if path is None else list(path))]
    single = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    process = subprocess.Popen(
        command,
        env={"PYTHONHASHSEED": "0", **dict.fromkeys(single, "1")},
        pass_fds=ends,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    control.close()
    jobs.close()
    assert process.stderr is not None
    os.set_blocking(process.stderr.fileno(), False)
    return Zygote(parent_control, parent_jobs, file, process)


def import_path() -> list[str]:
    """Where this process imports from, in full."""
    return [os.path.abspath(place or ".") for place in sys.path]


class Ahead:
    """Zygotes that start before a pool of workers wants them.

    A context manager: it ends those that no pool took.
    """

    def __init__(self, count: int):
        self._store: MemoryFile | None = MemoryFile("spo-instances")
        self._zygotes: list[Zygote] = []
        try:
            for _ in range(count):
                self._zygotes.append(launched(self._store.reader))
        except BaseException:
            self.close()
            raise

    def take(self, count: int) -> "tuple[MemoryFile | None, list[Zygote | None]]":
        """The file of their instances and so many of them, or as many as there are.

        A second time there is nothing left.
        """
        if self._store is None:
            return None, []
        store, self._store = self._store, None
        taken, self._zygotes = self._zygotes[:count], self._zygotes[count:]
        return store, [*taken]

    def __enter__(self) -> "Ahead":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End those that are left."""
        for each in self._zygotes:
            each.close()
        if self._store is not None:
            self._store.close()
        self._store, self._zygotes = None, []

"""The zygote: a warm, single-threaded process that only forks.

`worker.Worker` starts it as a fresh interpreter with an empty environment. Every child takes one
job and ends. The zygote never sees a job: the parent writes it to a file that children read
(`jobs`, `instance_store`). It treats all jobs alike, so every child starts from the same memory. So
results do not depend on a worker's history, even for a program that reads hashes of addresses.

A child takes a few milliseconds to fork and warm up (mostly to copy pages that it writes to), so
the zygote forks the next one while the present one works.
"""

import ast
import gc
import importlib
import json
import os
import signal
import socket
import sys
import warnings
from dataclasses import dataclass

import numpy as np

from spo_jax.envs.kits import load_kit
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.sandbox import child, memory
from spo_jax.envs.run.sandbox.jobs import CALL, FORK
from spo_jax.envs.run.sandbox.process import confine
from spo_jax.registry import imported


@dataclass(frozen=True)
class Ends:
    """A zygote's descriptors. control: orders. jobs: whoever reads from it takes the next job.

    job, store: the files of jobs and instances.
    """

    control: int
    jobs: int
    job: int
    store: int


def main(ends: Ends, fixed_addresses: bool) -> None:
    """The whole life of the zygote.

    The parent tells it a problem, by a `get_problem` name, whether to offer its kit, and functions
    of the user's that jobs name, which can only be imported now.
    """
    os.environ.clear()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    _load_lazy_modules()
    told = b""
    while not told.endswith(b"\n"):
        part = os.read(ends.control, 1 << 12)
        if not part:  # the parent is gone
            return
        told += part
    problem, with_kit, parts = json.loads(told)
    del told, part
    solved = get_problem(problem)
    for name in parts:
        imported("part", name, "", call=False)
    kit = load_kit(solved) if with_kit else None
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    layers = {"fixed_addresses": fixed_addresses, "zeroed_arrays": memory.zero_array_memory()}
    layers |= confine.confine_zygote()
    layers["seccomp"] = _seccomp_works()
    filters = child.Filters(
        job=confine.seccomp_filter(forks=True) if layers["seccomp"] else None,
        task=confine.seccomp_filter() if layers["seccomp"] else None,
        search=confine.seccomp_filter(asks=True) if layers["seccomp"] else None,
    )
    jobs = socket.socket(fileno=ends.jobs)
    space = confine.address_space()
    worked = child.Child(solved, jobs, ends.job, ends.store, os.getpid(), space, filters, kit)
    os.write(ends.control, json.dumps(layers).encode() + b"\n")
    gc.collect()
    gc.freeze()
    _serve(ends.control, worked)


def _serve(control: int, worked: child.Child) -> None:
    """Fork and wait on orders until the parent is gone.

    Each turn gives back what it allocated, the last block first: the allocator hands out the block
    that was freed last, so the next child finds the same free memory in the same order.
    """
    for _ in range(3):  # the first turns fill the free lists
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        order = CALL.pack(pid)
        _status(order)
        del order, pid
    while True:
        order = os.read(control, CALL.size)
        if not order:
            return
        if order == FORK:
            try:
                if os.fork() == 0:
                    os.close(control)  # so that only the zygote holds it open
                    _be(worked)
            except OSError as error:
                sys.exit(f"cannot fork: {error.strerror}")
        else:
            os.write(control, _status(order))
        del order


def _status(order: bytes) -> bytes:
    """The message with the status of the child that `order` names, once it has ended."""
    (pid,) = CALL.unpack(order)
    ended = os.waitpid(pid, 0)
    message = CALL.pack(ended[1])
    del ended, pid
    return message


def _be(worked: child.Child) -> None:
    try:
        worked.live()
    finally:
        os._exit(child.EXIT_FAULT)


def _seccomp_works() -> bool:
    """Whether a child under the first filter can fork one that adds the second."""
    outer, inner = confine.seccomp_filter(forks=True), confine.seccomp_filter()
    if outer is None or inner is None:
        return False
    pid = os.fork()
    if pid == 0:
        try:
            if confine.try_seccomp(outer):
                below = os.fork()
                if below == 0:
                    os._exit(0 if confine.try_seccomp(inner) else 1)
                os._exit(os.waitstatus_to_exitcode(os.waitpid(below, 0)[1]))
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    return status == 0


def _load_lazy_modules() -> None:
    """Import what Python and NumPy import on first use; later no file can be opened."""
    for name in ("numpy._core._methods", "numpy.linalg", "numpy.ma", "numpy.random", "unicodedata"):
        importlib.import_module(name)
    np.random.default_rng(0)
    ast.parse("\u00e9 = 1")

"""A node's end: our own zygote and workers there, behind four calls that answer in bytes.

Ray makes one of these an actor on each node; nothing here knows Ray. A thread keeps the workers
busy between calls.
"""

import contextlib
import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from spo_jax.envs.problem import Instance
from spo_jax.envs.run.cluster.compatibility import cpu_name, fingerprint, usable
from spo_jax.envs.run.cluster.encoding import Done, pack
from spo_jax.envs.run.jobs.worker_pool import WorkerPool
from spo_jax.envs.run.sandbox.jobs import Job
from spo_jax.envs.run.sandbox.outcome import Ended
from spo_jax.envs.run.sandbox.process.starting import import_path

GATHER = 0.1  # seconds from the first result to an answer, so that an answer brings several
TURN = 1.0  # seconds after which an answer comes without any result
STUCK = 60.0  # seconds in which the thread must have looked at its workers
GOOD, BAD = b"\0", b"\1"  # what an answer begins with: results, or a text that says what is wrong


class Host:
    """A pool of workers on this machine. It raises nothing: an answer says what is wrong.

    problem: a `get_problem` name. kit: whether programs may import its kit. path: where the
    machine of the run imports from. fetch: makes an instance of what stands for one. parts: the
    functions of the user's that jobs name.
    """

    def __init__(
        self,
        problem: str,
        workers: int,
        kit: bool,
        path: Sequence[str],
        fetch: Callable[[Any], Instance],
        parts: Sequence[str] = (),
    ):
        self._problem, self._count, self._kit, self._path = problem, workers, kit, list(path)
        self._fetch, self._parts = fetch, parts
        self._changed = threading.Condition()
        self._waiting: deque[tuple[int, Job]] = deque()
        self._ended: list[Done] = []
        self._running = 0
        self._wrong = ""
        self._closing = False
        self._looked = time.monotonic()
        self._thread: threading.Thread | None = None

    # --- the calls --------------------------------------------------------------------------------

    def open(self) -> bytes:
        """Start the workers; what there is to know of this machine, as JSON."""
        known: dict[str, Any] = {
            "fingerprint": fingerprint(),
            "cpu": cpu_name(),
            "cpus": os.cpu_count(),
            "system": os.uname().release,
            "layers": {},
            "wrong": "",
        }
        try:
            # The parent's own path wherever it is here: then zygotes there and here are alike.
            path = self._path
            if not usable(path):
                path = [*import_path(), *filter(os.path.exists, path)]
            self._pool = self._made(path)
            self._pool.start()
            known["layers"] = self._pool.layers
            self._wake, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()
        except Exception as error:
            known["wrong"] = _error_text(error)
        return json.dumps(known).encode()

    def hold(self, digests: Sequence[str], instances: Sequence[Any]) -> bytes:
        """Have these instances in the store, and fetch those that are not there. Only while there
        is no job. instances: what stands for each.
        """
        try:
            store = self._pool.store
            fresh = [self._fetch(each) for digest, each in zip(digests, instances, strict=True)
                     if digest not in store.places]  # fmt: skip
            store.hold(fresh)
            if any(digest not in store.places for digest in digests):  # it made room for the fresh
                store.hold([self._fetch(each) for each in instances])
        except Exception as error:
            return BAD + _error_text(error).encode()
        return GOOD

    def turn(self, jobs: Sequence[tuple[int, Job]]) -> bytes:
        """Take these jobs, each with its ticket; answer with those that have ended meanwhile."""
        with self._changed:
            self._waiting.extend(jobs)
            self._nudge()
            self._changed.wait_for(lambda: self._ended or self._wrong, TURN)
            if self._ended:
                all_done = lambda: not (self._waiting or self._running)  # noqa: E731
                self._changed.wait_for(lambda: self._wrong or all_done(), GATHER)
            if not self._wrong and time.monotonic() - self._looked > STUCK:
                self._wrong = f"its workers did not answer for {STUCK:g} s"
            if self._wrong:
                return BAD + self._wrong.encode()
            ended, self._ended = self._ended, []
        return GOOD + pack(ended)

    def close(self) -> bytes:
        """End the workers and whatever they run."""
        with self._changed:
            self._closing = True
            self._nudge()
        if self._thread is not None:
            self._thread.join(STUCK)
        with contextlib.suppress(Exception):
            self._pool.close()
        return GOOD

    # --- the thread -------------------------------------------------------------------------------

    def _made(self, path: Sequence[str]) -> WorkerPool[tuple[int, float]]:
        return WorkerPool(self._problem, self._count, self._kit, path, self._parts)

    def _nudge(self) -> None:
        """End the thread's wait."""
        if self._thread is not None:
            with contextlib.suppress(BlockingIOError):  # it has been told already
                os.write(self._waker, b"!")

    def _work(self) -> None:
        pool = self._pool
        try:
            while not self._closing:
                with self._changed:
                    self._looked = time.monotonic()
                    begun = [self._waiting.popleft()
                             for _ in range(min(pool.idle, len(self._waiting)))]  # fmt: skip
                    self._running += len(begun)
                for ticket, job in begun:
                    pool.begin((ticket, time.monotonic()), job)
                self._note(pool.wait(TURN, self._wake))
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake, 1 << 12)
        except BaseException as error:
            with self._changed:
                self._wrong = _error_text(error)
                self._changed.notify_all()

    def _note(self, found: Sequence[tuple[tuple[int, float], Ended]]) -> None:
        now = time.monotonic()
        with self._changed:
            self._ended += [Done(ticket, now - began, ended) for (ticket, began), ended in found]
            self._running -= len(found)
            if found:
                self._changed.notify_all()


def _error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:1000]

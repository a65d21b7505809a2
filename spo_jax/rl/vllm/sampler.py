"""Keeps a server in the required state: running, awake, with the adapters of the round.

Work is a function of a client. If the server dies or hangs, it restarts with the same adapters and
the work is repeated. After every change of its weights `check` runs before any work. A server that
cannot be restarted ends all work of a call at once.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from spo_jax.config import Settings
from spo_jax.errors import InputError
from spo_jax.rl.endpoint.web import Late, Lost
from spo_jax.rl.vllm.client import Cache, Client
from spo_jax.rl.vllm.server import Server, Stopped
from spo_jax.seeding import derive

T = TypeVar("T")
RESTARTS = 3  # without an answer between them
PATIENCE = 0.5  # seconds between checks for a waiting caller
BACKOFF, LONGEST = 0.5, 8.0  # seconds before a repetition: first, maximum
AT_ONCE = 8  # requests at a time, where a server does not say what its cache holds
MOST = 256  # answers at a time: vLLM's own limit on most cards


class Sampler:
    """Runs work with a server, which starts at the first work.

    states: how many blocks the states of an answer take (`spo_jax.rl.vllm.sampler.at_once`).
    check: called with a client and the base's name after a start, a wake or a change of adapters.
    remark: shows the user a line.
    """

    def __init__(
        self,
        config: Settings,
        server: Server,
        states: int,
        check: Callable[[Client, str], None],
        remark: Callable[[str], None],
    ) -> None:
        self._config, self._server, self._check, self._remark = config, server, check, remark
        self._states = states
        self._lock = threading.RLock()
        self._stopping = threading.Event()
        self._counting = threading.Lock()
        self._calls = 0  # of `each`, that are not over
        self._client: Client | None = None
        self._wanted: dict[str, Path] = {}
        self._round = 0
        self._loaded: set[str] = set()
        self._asleep = False
        self._checked = False
        self._in_a_row = 0  # restarts since the last answer
        self._late = 0  # timeouts since the last start or answer
        self._over: InputError | None = None  # why this call must end

    def want(self, adapters: Mapping[str, Path], round: int) -> None:
        """Load these adapters, of that round, instead of the previous ones before the next work."""
        with self._lock:
            self._wanted, self._round = dict(adapters), round

    def begin(self) -> None:
        """Bring the server into its state beside other work, so that the next work need not wait.

        A failure here shows again at that work.
        """

        def start() -> None:
            with suppress(Stopped, Lost, InputError):
                self._ready()

        self._stopping.clear()
        threading.Thread(target=start, name="vllm", daemon=True).start()

    def each(
        self, work: Sequence[Callable[[Client], T]], answers: int, tokens: int
    ) -> Iterator[T | None]:
        """The results in order, some at a time; None while the next is not ready.

        answers, tokens: of the largest work, the tokens of an answer with its prompt; if
        `endpoint.concurrency` is none, as many works run at a time as the server's cache holds.
        Closing the iterator aborts the work in flight. Another call may begin and end before this
        one is over. Raises InputError if a result fails finally.
        """
        with self._counting:
            if not self._calls or self._stopping.is_set():
                self._stopping.clear()
                self._over = None
            self._calls += 1
        coming: list[Future[Any]] = []
        pools: list[ThreadPoolExecutor] = []

        def begin(works: Sequence[Callable[[Client], Any]], width: int) -> list[Future[Any]]:
            pools.append(ThreadPoolExecutor(width, "vllm"))
            coming.extend(pools[-1].submit(self.steadily, one) for one in works)
            return coming[-len(works) :]

        try:
            width = self._config.endpoint.concurrency
            if width is None:
                (asked,) = begin([Client.cache], 1)
                yield from _until(asked)
                width = at_once(asked.result(), self._states, answers, tokens)
            for future in begin(work, width):
                yield from _until(future)
                yield future.result()
        finally:
            with self._counting:
                self._calls -= 1
                if not self._calls or not all(future.done() for future in coming):
                    self._stopping.set()
            for pool in pools:
                pool.shutdown(wait=False, cancel_futures=True)
            while not all(future.done() for future in coming):
                if (client := self._client) is not None:
                    client.abort()  # repeatedly: a request may begin after the last abort
                time.sleep(PATIENCE / 20)

    def steadily(self, work: Callable[[Client], T]) -> T:
        """The result of `work`, repeated if the server fails."""
        failures = 0
        while True:
            if self._stopping.is_set():
                raise Stopped
            client = None
            try:
                client = self._ready()
                found = work(client)
            except Lost as why:
                failures = self._failed(client, why, failures + 1)
                continue
            self._in_a_row = self._late = 0
            return found

    def rest(self) -> None:
        """Free the card until the next work, as `vllm.residency` says."""
        with self._lock:
            if self._client is None or self._config.vllm.residency == "both":
                return
            if self._config.vllm.residency == "restart":
                self._drop()
            elif not self._asleep:
                try:
                    self._client.sleep()
                    self._asleep, self._checked = True, False
                except Lost:
                    self._lost_while_idle()

    def close(self) -> None:
        """End our own server; leave another one awake and without our adapters."""
        self._stopping.set()
        while not self._lock.acquire(timeout=PATIENCE / 20):
            if (client := self._client) is not None:
                client.abort()  # repeatedly: a probe has many requests
        try:
            if (client := self._client) is not None and not self._server.owned:
                client.abort()  # answers in flight, before their adapters go
                with suppress(Lost, InputError):
                    if self._asleep:
                        client.wake()
                for name in self._loaded:
                    with suppress(Lost, InputError):
                        client.unload(name)
            self._drop()
        finally:
            self._lock.release()

    # --- inside -----------------------------------------------------------------------------------

    def _ready(self) -> Client:
        """A client of a server in the required state."""
        with self._lock:
            if self._stopping.is_set():
                raise Stopped
            if self._over is not None:
                raise InputError(str(self._over))
            try:
                return self._prepared()
            except InputError as error:
                self._over = error
                raise

    def _prepared(self) -> Client:
        if self._client is None:
            seed = derive(self._config.seed, "server", self._round, self._in_a_row)
            self._client = self._server.start(self._stopping, seed)
            self._loaded, self._asleep, self._checked, self._late = set(), False, False, 0
        client = self._client
        if self._asleep:
            client.wake()
            self._asleep = False
        for name, folder in self._wanted.items():
            if name not in self._loaded:
                client.load(name, str(folder.absolute()))
                self._loaded.add(name)
                self._checked = False
        for name in sorted(self._loaded - self._wanted.keys()):
            client.unload(name)
            self._loaded.discard(name)
        if not self._checked:
            self._check(client, self._server.base)
            self._checked = True
        return client

    def _failed(self, client: Client | None, why: Lost, failures: int) -> int:
        """Returns when a retry may start, with the number of failures on the current server.

        Raises InputError if a retry is pointless.
        """
        retries = self._config.endpoint.retries
        with self._lock:
            if self._stopping.is_set():
                raise Stopped
            current = self._client
            if client is not None and client is not current:
                return 0  # another request has already restarted the server
            self._late += isinstance(why, Late)
            well = current is not None and self._server.alive() and current.healthy()
            if self._server.owned and (not well or self._late > retries):
                self._in_a_row += 1
                if self._in_a_row > RESTARTS:
                    raise self._end(
                        f"the vLLM server {why} and was started {RESTARTS} times without giving an "
                        f"answer{self._server.last_lines()}"
                    )
                self._remark(f"The vLLM server {why}; it is started again")
                self._drop()
                return 0
            if failures > retries:
                kept = "; finished rounds are kept: fix it and continue with --resume"
                raise self._end(
                    f"the vLLM server {why}, {failures} times in a row"
                    f"{self._server.last_lines() or kept}"
                )
            if well and current is not None:
                self._look_again(current)
        self._stopping.wait(min(BACKOFF * 2 ** (failures - 1), LONGEST))
        return failures

    def _end(self, why: str) -> InputError:
        self._over = InputError(why)
        return self._over

    def _look_again(self, client: Client) -> None:
        """Reset the known state of a server after a call with unknown outcome."""
        try:
            held = set(client.models())
        except Lost:
            return
        known = self._loaded | self._wanted.keys()
        if self._loaded != known & held:
            self._loaded, self._checked = known & held, False

    def _lost_while_idle(self) -> None:
        if self._server.owned:
            self._drop()
            return
        raise InputError("the vLLM server is gone; start it again and continue with --resume")

    def _drop(self) -> None:
        self._server.stop()
        self._client, self._loaded, self._asleep = None, set(), False


def _until(future: Future[Any]) -> Iterator[None]:
    """None again and again, until the future is done."""
    while wait([future], PATIENCE).not_done:
        yield None


def at_once(cache: Cache | None, states: int, answers: int, tokens: int) -> int:
    """How many prompts of `answers` answers each a server can decode at a time, at least one.

    tokens: of the longest prompt and answer. states: an answer's blocks beside those of its tokens.
    vLLM gives each group of equally many layers its own blocks: of the tokens in the layers of
    attention, one for the state in each group of delta nets. That answers share their prompt is not
    counted, nor that most end early. `AT_ONCE` for a server that says nothing of its cache.
    """
    if cache is None:
        return AT_ONCE
    rows = cache.blocks // (-(-tokens // cache.size) + states)
    return max(1, min(rows, MOST) // answers)

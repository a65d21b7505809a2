"""A server kept in the state that the run wants: running, awake, with the adapters of the round.

Work is given as functions of a client. Where the server has gone or hangs, it is started again with
what it had loaded, and the work is done again. After every change of what the server holds, `check`
looks at it before any work is done. A server that cannot be had ends all work of a call at once.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from spo_jax.config import Config
from spo_jax.errors import InputError
from spo_jax.rl.vllm.client import Client, Late, Lost
from spo_jax.rl.vllm.server import Server, Stopped

T = TypeVar("T")
RESTARTS = 3  # of a server that answers nothing between them
PATIENCE = 0.5  # seconds, after which it is looked whether anyone still waits
BACKOFF, LONGEST = 0.5, 8.0  # seconds before a request is repeated: the first, and the most


class Sampler:
    """Does work with a server; starts it when there is some.

    check: called with a client and the base's name when the server has been started or woken, or
    has other adapters. remark: shows a person a line.
    """

    def __init__(
        self,
        config: Config,
        server: Server,
        check: Callable[[Client, str], None],
        remark: Callable[[str], None],
    ) -> None:
        self._config, self._server, self._check, self._remark = config, server, check, remark
        self._lock = threading.RLock()
        self._stopping = threading.Event()
        self._client: Client | None = None
        self._wanted: dict[str, Path] = {}
        self._loaded: set[str] = set()
        self._asleep = False
        self._checked = False
        self._in_a_row = 0  # restarts since the last answer
        self._late = 0  # requests that got no answer in time since the last start or answer
        self._over: InputError | None = None  # why there is no point in going on with this call

    def want(self, adapters: Mapping[str, Path]) -> None:
        """From the next work on, these adapters are loaded, and those wanted before are not."""
        with self._lock:
            self._wanted = dict(adapters)

    def each(self, work: Sequence[Callable[[Client], T]]) -> Iterator[T | None]:
        """The results in order, `config.concurrency` at a time; None as long as one is awaited.

        Close it to leave early: what is under way is broken off. Raises InputError where a result
        cannot be had.
        """
        self._stopping.clear()
        self._over = None
        pool = ThreadPoolExecutor(self._config.concurrency, "vllm")
        coming = [pool.submit(self.steadily, one) for one in work]
        try:
            for future in coming:
                while wait([future], PATIENCE).not_done:
                    yield None
                yield future.result()
        finally:
            self._stopping.set()
            pool.shutdown(wait=False, cancel_futures=True)
            while not all(future.done() for future in coming):
                if (client := self._client) is not None:
                    client.abort()  # again and again: one may begin after a look
                time.sleep(PATIENCE / 20)

    def steadily(self, work: Callable[[Client], T]) -> T:
        """The result of `work`, which is repeated where the server fails."""
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
        """Leave the card to others until there is work again, as `config.residency` says."""
        with self._lock:
            if self._client is None or self._config.residency == "both":
                return
            if self._config.residency == "restart":
                self._drop()
            elif not self._asleep:
                try:
                    self._client.sleep()
                    self._asleep, self._checked = True, False
                except Lost:
                    self._lost_while_idle()

    def close(self) -> None:
        """End the server if it is ours; else leave it awake and without our adapters."""
        self._stopping.set()
        with self._lock:
            if self._client is not None and not self._server.owned:
                with suppress(Lost, InputError):
                    if self._asleep:
                        self._client.wake()
                    for name in self._loaded:
                        self._client.unload(name)
            self._drop()

    # --- inside -----------------------------------------------------------------------------------

    def _ready(self) -> Client:
        """A client of a server in the wanted state."""
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
            self._client = self._server.start(self._stopping)
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
        """Returns when it may be tried again, with the failures on the server that is there then.

        Raises InputError where that has no point.
        """
        retries = self._config.retries
        with self._lock:
            if self._stopping.is_set():
                raise Stopped
            current = self._client
            if client is not None and client is not current:
                return 0  # another request has seen it first, and the server is a new one
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
                kept = "; finished rounds are kept, so mend it and go on with --resume"
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
        """What a server holds after a call whose end is not known: it may be a new one."""
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
        raise InputError("the vLLM server is gone; start it again and go on with --resume")

    def _drop(self) -> None:
        self._server.stop()
        self._client, self._loaded, self._asleep = None, set(), False

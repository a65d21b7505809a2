"""The limit on an endpoint's requests at a time, over all calls that are not over."""

import asyncio
import threading

POLL = 0.01  # seconds between checks of a request for its turn


class Slots:
    """Limits the requests of all calls together to `most` at a time.

    The call that began last goes first, because what began before waits for its answers.
    """

    def __init__(self, most: int) -> None:
        self._lock = threading.Lock()
        self._free = most
        self._waiting: list[int] = []
        self._calls = 0

    def enter(self) -> int:
        """The number of a new call."""
        with self._lock:
            self._calls += 1
            return self._calls

    async def take(self, call: int) -> None:
        """Wait for the turn of a request of this call; `give` it back."""
        with self._lock:
            self._waiting.append(call)
        try:
            while not self._taken(call):
                await asyncio.sleep(POLL)
        finally:
            with self._lock:
                self._waiting.remove(call)

    def give(self) -> None:
        with self._lock:
            self._free += 1

    def _taken(self, call: int) -> bool:
        with self._lock:
            if not self._free or call < max(self._waiting):
                return False
            self._free -= 1
            return True

"""The limit on the answers that an endpoint writes at a time, over all calls that are not over."""


class Slots:
    """Limits the answers in flight of all calls together to `most`.

    The call that began last goes first, because what began before waits for its answers. All
    methods are for one thread, that of the requests.
    """

    def __init__(self, most: int) -> None:
        self._free = self.most = most
        self._waiting: set[int] = set()
        self._calls = 0

    def enter(self) -> int:
        """The number of a new call."""
        self._calls += 1
        return self._calls

    def take(self, call: int, count: int) -> bool:
        """Take `count` slots, at most `most`, for `give` to return; False if they are not free.

        A call that got none waits: earlier calls get none until it has its slots or leaves.
        """
        free = count <= self._free and all(call >= other for other in self._waiting)
        if free:
            self._free -= count
            self._waiting.discard(call)
        else:
            self._waiting.add(call)
        return free

    def give(self, count: int) -> None:
        self._free += count

    def leave(self, call: int) -> None:
        """The end of a call, which waits no longer."""
        self._waiting.discard(call)

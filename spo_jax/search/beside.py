"""Two things at a time, with the same result whatever the timing.

Only what neither reads from the other runs side by side, and results are taken in a fixed order. An
error on either side reaches the caller as it is, once the other side has come to rest.
"""

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar

T = TypeVar("T")


def ahead(
    items: Iterator[T], around: Callable[[], AbstractContextManager[None]] = nullcontext
) -> Generator[T, None, None]:
    """The items in their order; each is made in another thread while the one before is used.

    around: wraps the making of each. Close the result to leave early: the item that is being made
    is waited for, and no other is begun.
    """
    end = object()

    def make() -> T | object:
        with around():
            return next(items, end)

    with ThreadPoolExecutor(1) as other:
        coming = other.submit(make)
        while (item := coming.result()) is not end:
            coming = other.submit(make)
            yield item  # type: ignore[misc]


@contextmanager
def beside(work: Callable[[], T]) -> Iterator[Callable[[], T]]:
    """`work` runs in another thread while the block does; call what is given for its result.

    Leaving the block waits for it, whatever the reason.
    """
    with ThreadPoolExecutor(1) as other:
        yield other.submit(work).result

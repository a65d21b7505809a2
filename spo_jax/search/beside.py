"""Two pieces of independent work at a time, with the same result whatever the timing.

Results are taken in a fixed order. An error on either side reaches the caller once the other side
has ended.
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
    """`work` runs in another thread beside the block; call the yielded function for its result.

    Leaving the block always waits for it.
    """
    with ThreadPoolExecutor(1) as other:
        yield other.submit(work).result

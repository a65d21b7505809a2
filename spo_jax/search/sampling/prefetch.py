"""Items that are made in another thread, in order and with the same result whatever the timing."""

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

T = TypeVar("T")


def ahead(
    items: Iterator[T], around: Callable[[], AbstractContextManager[None]] = nullcontext
) -> Generator[T, None, None]:
    """The items in their order; each is made in another thread while the one before is used.

    around: wraps the making of each. Close the result to leave early: the item that is being made
    is waited for, and no other is begun. An error of `items` reaches the caller in its turn.
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

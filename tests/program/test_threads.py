"""Texts are parsed while others are: answers come in one thread while another writes prompts."""

import gc
import sys
import threading
from collections.abc import Iterator

import pytest

from spo_jax.program import parse_tree

TEXT = "def f(a):\n" + "".join(f"    x{i} = (a + {i}) * [b for b in (a, {i})]\n" for i in range(60))


class Unreachable:
    """What only the collector frees; its finaliser lets other threads run."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        sum(range(200))


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads that are switched, and garbage that is collected, as often as can be."""
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(50)
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*thresholds)


@pytest.mark.long
@pytest.mark.usefixtures("switching")
def test_threads_may_parse_at_once() -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(60):
                garbage = [Unreachable() for _ in range(30)]
                parse_tree(TEXT)
                del garbage
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors

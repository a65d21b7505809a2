"""Ctrl-C, SIGTERM and SIGHUP end a command alike: a sentence, and nothing of it left running.

Each raises KeyboardInterrupt in the main thread, so what is open is closed in its order. Some work
cannot be left at once (a batch of answers, a program that XLA compiles), and what a kill loses is
lost anyway: after `GRACE` seconds a thread that waits for signals says the sentence and ends the
process as it is. Sandbox workers and a vLLM server end with the process that started them.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

GRACE = 0.6  # seconds from a signal to the end, whatever the main thread is doing
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOPPED = tuple(128 + number for number in _SIGNALS)  # exit codes


class Stopped(KeyboardInterrupt):
    """SIGTERM or SIGHUP; `number` says which."""

    def __init__(self, number: int):
        super().__init__()
        self.number = number


def exit_code(stop: KeyboardInterrupt) -> int:
    """What a shell calls the end by a signal: 130 after Ctrl-C, 143 after SIGTERM."""
    return 128 + getattr(stop, "number", signal.SIGINT)


class _Farewell:
    """The last sentence, said once, by whoever comes first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._said = False
        self.words: Callable[[], None] | None = None

    def say(self, otherwise: Callable[[], None]) -> None:
        with self._lock:
            if not self._said:
                self._said = True
                with suppress(OSError, ValueError):  # the terminal is gone
                    (self.words or otherwise)()
                    sys.stdout.flush()
                sys.stderr.flush()

    def reset(self) -> None:
        self._said, self.words = False, None


_farewell = _Farewell()
_deadline: threading.Timer | None = None


def last_words(words: Callable[[], None]) -> None:
    """What is to be said, in place of a bare "stopped", if the command is stopped from now on."""
    _farewell.words = words


def say_farewell(otherwise: Callable[[], None]) -> None:
    """Say the last words unless they are said; `otherwise` where there are none."""
    _farewell.say(otherwise)


def take_time() -> None:
    """What comes now may take longer than `GRACE`: another signal is needed to end it."""
    global _deadline
    if _deadline is not None:
        _deadline.cancel()
        _deadline = None


@contextmanager
def stoppable(otherwise: Callable[[], None]) -> Iterator[None]:
    """Within the block signals do as the module says; only the main thread can see to that.

    A signal that whoever started the process has ignored, as nohup does, stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _farewell.reset()
    asked = False

    def stop(number: int, frame: object) -> None:
        nonlocal asked
        if not asked:  # a second one must not disturb the closing
            asked = True
            raise Stopped(number)

    def hear(pipe: int) -> None:
        global _deadline
        while data := os.read(pipe, 1):
            if data[0] in _SIGNALS and _deadline is None:
                _deadline = threading.Timer(GRACE, _end, (data[0], otherwise))
                _deadline.daemon = True
                _deadline.start()

    def unraised(what: Any) -> None:
        """A library's callback cannot raise: the deadline ends the process, without a traceback."""
        if not isinstance(what.exc_value, KeyboardInterrupt):
            hook(what)

    hook, sys.unraisablehook = sys.unraisablehook, unraised
    heard = [each for each in _SIGNALS if signal.getsignal(each) not in (signal.SIG_IGN, None)]
    before = {each: signal.signal(each, stop) for each in heard if each != signal.SIGINT}
    ours, theirs = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(theirs, False)
    wakeup = signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
    ear = threading.Thread(target=hear, args=(ours,), daemon=True)
    ear.start()
    try:
        yield
    finally:
        sys.unraisablehook = hook
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(theirs)
        ear.join()
        os.close(ours)
        take_time()


@contextmanager
def at_once() -> Iterator[None]:
    """Within the block a signal ends the process without a word.

    For a library that keeps the interpreter's lock for long: no thread of ours runs meanwhile.
    """
    with _handled_by(signal.SIG_DFL):
        yield


@contextmanager
def held() -> Iterator[None]:
    """Within the block a signal waits for its end: for what must not be left half done."""
    caught: list[int] = []
    with _handled_by(lambda number, frame: caught.append(number)):
        yield
    for number in caught[:1]:
        signal.raise_signal(number)


@contextmanager
def _handled_by(handler: Any) -> Iterator[None]:
    """Within the block `handler` gets the signals that are not ignored; the main thread's alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = [each for each in _SIGNALS if signal.getsignal(each) not in (signal.SIG_IGN, None)]
    before = {each: signal.signal(each, handler) for each in heard}
    try:
        yield
    finally:
        for number, own in before.items():
            signal.signal(number, own)


def _end(number: int, otherwise: Callable[[], None]) -> None:
    """End the process as it is."""
    say_farewell(otherwise)
    if sys.stderr.isatty():
        print("\x1b[?25h", end="", file=sys.stderr, flush=True)  # a live bar hides the cursor
    os._exit(128 + number)

"""Ctrl-C, SIGTERM and SIGHUP end a command alike: one sentence, no process left.

Each raises KeyboardInterrupt in the main thread, so context managers close in order. Some work
cannot be interrupted (a batch of answers, a compilation by XLA). So after `GRACE` seconds a thread
that waits for signals prints the sentence and ends the process; it loses no more than a kill would.
Sandbox workers and a vLLM server end with the process that started them.
"""

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

GRACE = 0.6  # seconds from a signal to the end of the process
LONGEST_HELD = 10.0  # more seconds for a block that is held
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOPPED = tuple(128 + number for number in _SIGNALS)  # exit codes


class Stopped(KeyboardInterrupt):
    """SIGTERM or SIGHUP; `number` says which."""

    def __init__(self, number: int):
        super().__init__()
        self.number = number


def exit_code(stop: KeyboardInterrupt) -> int:
    """The shell's exit code for a signal: 130 after Ctrl-C, 143 after SIGTERM."""
    return 128 + getattr(stop, "number", signal.SIGINT)


class _Farewell:
    """The last sentence. The first thread that ends the command prints it, once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._printed = False
        self.words: Callable[[], None] | None = None

    def say(self, otherwise: Callable[[], None]) -> None:
        with self._lock:
            if not self._printed:
                self._printed = True
                with suppress(OSError, ValueError):  # the terminal is gone
                    (self.words or otherwise)()
                    sys.stdout.flush()
                sys.stderr.flush()

    def reset(self) -> None:
        self._printed, self.words = False, None


_farewell = _Farewell()
_deadline: threading.Timer | None = None
_ear: int | None = None  # the pipe whose bytes are the numbers of signals
_hearing = threading.Lock()  # of the two above
_whole = threading.RLock()  # of work that must not stop halfway


def last_words(words: Callable[[], None]) -> None:
    """Set the message of a stop from now on, instead of a bare "stopped"."""
    _farewell.words = words


def say_farewell(otherwise: Callable[[], None]) -> None:
    """Print the last words once; `otherwise` if none are set."""
    _farewell.say(otherwise)


def take_time() -> None:
    """Cancel the deadline: the next work may exceed `GRACE`, and only another signal ends it."""
    global _deadline
    with _hearing:
        if _ear is not None:
            _read(_ear)  # the signal may not have been heard yet, which would set a deadline now
        if _deadline is not None:
            _deadline.cancel()
            _deadline = None


def _read(pipe: int) -> bytes | None:
    """What is in a pipe; None for nothing, b"" if it is closed."""
    try:
        return os.read(pipe, 64)
    except BlockingIOError:
        return None


@contextmanager
def stoppable(otherwise: Callable[[], None]) -> Iterator[None]:
    """Handle signals within the block as the module says; does nothing outside the main thread.

    A signal that is ignored at the start of the process, as by nohup, stays ignored.
    """
    global _ear
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _farewell.reset()
    asked = False

    def stop(number: int, frame: object) -> None:
        nonlocal asked
        if not asked:  # a second signal must not interrupt the closing
            asked = True
            raise Stopped(number)

    def hear(pipe: int) -> None:
        global _deadline
        while True:
            select.select([pipe], [], [])
            with _hearing:
                data = _read(pipe)
                if data == b"":
                    return
                number = next((each for each in data or b"" if each in _SIGNALS), None)
                if number is not None and _deadline is None:
                    _deadline = threading.Timer(GRACE, _end, (number, otherwise))
                    _deadline.daemon = True
                    _deadline.start()

    def unraised(what: Any) -> None:
        """A library's callback cannot raise: the deadline ends the process, without a traceback."""
        if not isinstance(what.exc_value, KeyboardInterrupt):
            hook(what)

    hook, sys.unraisablehook = sys.unraisablehook, unraised
    heard = [each for each in _SIGNALS if signal.getsignal(each) not in (signal.SIG_IGN, None)]
    before = {each: signal.signal(each, stop) for each in heard if each != signal.SIGINT}
    ours, theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    wakeup = signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
    ear = threading.Thread(target=hear, args=(ours,), daemon=True)
    ear.start()
    _ear = ours
    try:
        yield
    finally:
        sys.unraisablehook = hook
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        _ear = None
        os.close(theirs)
        ear.join()
        os.close(ours)
        take_time()


@contextmanager
def at_once() -> Iterator[None]:
    """Within the block a signal ends the process at once, without a message.

    For a library that holds the interpreter's lock for long, so that no thread of ours can run.
    """
    with _handled_by(signal.SIG_DFL):
        yield


@contextmanager
def held() -> Iterator[None]:
    """Defer signals, and the deadline, to the end of the block: such work must not stop halfway."""
    caught: list[int] = []
    with _handled_by(lambda number, frame: caught.append(number)), _whole:
        yield
    for number in caught[:1]:
        signal.raise_signal(number)


@contextmanager
def _handled_by(handler: Any) -> Iterator[None]:
    """Within the block `handler` gets all signals that are not ignored. Main thread only."""
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
    """End the process at once, or with the block that is `held`, unless that hangs."""
    _whole.acquire(timeout=LONGEST_HELD)
    say_farewell(otherwise)
    if sys.stderr.isatty():
        print("\x1b[?25h", end="", file=sys.stderr, flush=True)  # a live bar hides the cursor
    os._exit(128 + number)

"""Tells trackers of a run, each in a thread of its own, so that none holds the run up.

tracks.json in the run's folder has what each has recorded, by which a run that goes on continues
the same track. Nothing here can change a run: a tracker that fails is told nothing more.
"""

import contextlib
import json
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

from spo_jax.envs.files.textfiles import write_atomically
from spo_jax.runs.run import Run, load_run
from spo_jax.runs.tracking import Factory, Track, Tracker
from spo_jax.runs.tracking.numbers import finals, numbers
from spo_jax.search.rounds import Observer, Round
from spo_jax.stopping import take_time

FILE = "tracks.json"
PATIENCE = 60.0  # seconds that the end of a run waits for its trackers
HASTE = 5.0  # of a run that is stopped


@dataclass
class Mark:
    """What a tracker has recorded of a run: its first `rounds`, and whether also its end.

    id: of the track.
    """

    id: str
    rounds: int = 0
    finished: bool = False


class Marks:
    """The marks of a run by tracker, in the run's folder."""

    def __init__(self, folder: Path):
        self._path = folder / FILE
        self._lock = threading.Lock()

    def read(self) -> dict[str, Mark]:
        """All of them; none where the file is missing or no longer what was written."""
        try:
            return {
                name: Mark(**each) for name, each in json.loads(self._path.read_bytes()).items()
            }
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def keep(self, name: str, mark: Mark) -> None:
        with self._lock:
            self._write(self.read() | {name: mark})

    def rewind(self, number: int) -> None:
        """Begin a new track where one has recorded more than the rounds up to `number`."""
        marks = self.read()
        kept = {n: each for n, each in marks.items() if each.rounds <= number and not each.finished}
        if kept != marks:
            self._write(kept)

    def _write(self, marks: Mapping[str, Mark]) -> None:
        records = {name: asdict(each) for name, each in sorted(marks.items())}
        write_atomically(self._path, json.dumps(records, indent=2) + "\n")


class Tracking(Observer):
    """Tells trackers of each round that is over, and of the end; a context manager.

    remark: is told once of each tracker that fails, in the run's own thread.
    """

    def __init__(
        self, factories: Mapping[str, Factory], folder: Path, remark: Callable[[str], None]
    ):
        self._folder, self._remark = folder, remark
        marks = Marks(folder)
        self._senders = [_Sender(name, each, marks) for name, each in factories.items()]

    def finished(self, done: Round) -> None:
        self._send(load_run, over=False)

    def over(self, run: Run) -> None:
        """The run is over."""
        self._send(lambda folder: run, over=True)

    def __enter__(self) -> "Tracking":
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        if kind is not None and self._senders:
            take_time()
        until = time.monotonic() + (PATIENCE if kind is None else HASTE)
        for each in self._senders:
            each.end()
        for each in self._senders:
            each.wait(max(0.0, until - time.monotonic()))
        self._complain()

    def _send(self, read: Callable[[Path], Run], over: bool) -> None:
        if not self._senders:
            return
        try:
            run = read(self._folder)
            rows, end = numbers(run), finals(run) if over else None
        except Exception as error:
            self._remark(f"no tracking of this round, because of a {_error_text(error)}")
            return
        for each in self._senders:
            each.send(run, rows, end)
        self._complain()

    def _complain(self) -> None:
        for each in self._senders:
            if line := each.complaint():
                self._remark(line)


_Message = tuple[Run, list[dict[str, float]], dict[str, float] | None]


class _Sender:
    """One tracker and its thread, which is a daemon: one that hangs does not keep the process."""

    def __init__(self, name: str, factory: Factory, marks: Marks):
        self._name, self._factory, self._marks = name, factory, marks
        self._messages: SimpleQueue[_Message | None] = SimpleQueue()
        self._failed = ""
        self._tracker: Tracker | None = None
        self._thread = threading.Thread(target=self._follow, name=f"track {name}", daemon=True)
        self._thread.start()

    def send(self, run: Run, rows: list[dict[str, float]], end: dict[str, float] | None) -> None:
        """rows: of each round so far. end: the numbers of the run's end, None before it."""
        self._messages.put((run, rows, end))

    def end(self) -> None:
        self._messages.put(None)

    def wait(self, seconds: float) -> None:
        self._thread.join(seconds)
        if self._thread.is_alive() and not self._failed:
            self._failed = f"tracking by {self._name} is not over after {seconds:.0f} s; left it"

    def complaint(self) -> str:
        """Why the tracker was told nothing more; "" after the first time."""
        line, self._failed = self._failed, ""
        return line

    def _follow(self) -> None:
        try:
            while (message := self._messages.get()) is not None:
                self._tell(*message)
            if self._tracker is not None:
                self._tracker.close()
        except (Exception, SystemExit) as error:
            self._failed = f"tracking by {self._name} ends, because of a {_error_text(error)}"
            while self._messages.get() is not None:
                pass
            if self._tracker is not None:
                with contextlib.suppress(Exception):  # it has failed already
                    self._tracker.close()

    def _tell(self, run: Run, rows: list[dict[str, float]], end: dict[str, float] | None) -> None:
        """Brings the track up to date; opens it where there is something to tell."""
        mark = self._marks.read().get(self._name) or Mark(uuid.uuid4().hex)
        if mark.rounds >= len(rows) and (end is None or mark.finished):
            return
        if self._tracker is None:
            self._tracker = self._factory(Track(run, mark.id, mark.rounds + 1))
        for row in rows[mark.rounds :]:
            mark.rounds += 1
            self._tracker.log(mark.rounds, dict(row))
            self._marks.keep(self._name, mark)
        if end is not None:
            self._tracker.finish(run, dict(end))
            mark.finished = True
            self._marks.keep(self._name, mark)


def _error_text(error: BaseException) -> str:
    """An error in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]

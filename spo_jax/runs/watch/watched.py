"""A run that is looked at while it goes on."""

import threading
from pathlib import Path
from typing import Any

from spo_jax.errors import InputError
from spo_jax.runs.folders import DATABASE, LOG, locked
from spo_jax.runs.report.write import html
from spo_jax.runs.run import Run, load_run

UNPLAYED = "A page that is watched does not play the pair: spo report does."
TAIL = 8192  # bytes of the log that hold its last line


class Watched:
    """Reads a run when its database has changed, and renders its page when it is asked for.

    Threads may share it. A reading goes on in a thread of its own: who asks for the state of many
    runs need not wait for a large one. It holds the database for as long as one query takes, so the
    run never waits for more than that.
    """

    def __init__(self, path: Path):
        """path: of a run folder. Raises InputError if there is no run in it."""
        self.path = path
        self._lock = threading.Lock()  # of what is known; held for moments
        self._version = ""
        self._run = load_run(path)
        self._reader: threading.Thread | None = None
        self._failure: Exception | None = None  # of the last reading
        self._rendering = threading.Lock()  # of this run's page
        self._page = ""
        self._drawn: Run | None = None  # the run that the page shows

    def run(self) -> Run:
        """The run as it is now. Raises InputError if it can no longer be read."""
        for _ in range(2):  # a reading that goes on already may be of an older state
            if reader := self.follow():
                reader.join()
        with self._lock:
            if self._failure is not None:
                raise self._failure
            return self._run

    def page(self) -> str:
        """The report of the run as it is now. Raises InputError if it can no longer be read."""
        with self._rendering:
            run = self.run()
            if self._drawn is not run:
                self._page, self._drawn = html(run, UNPLAYED), run
            return self._page

    def follow(self) -> threading.Thread | None:
        """The reading that goes on, begun if the run has changed; None if there is nothing to read.

        Raises InputError if the run is gone.
        """
        now = self._now()
        with self._lock:
            if self._reader is None or not self._reader.is_alive():
                self._reader = None
                if now != self._version:
                    self._reader = threading.Thread(target=self._read, args=(now,), daemon=True)
                    self._reader.start()
            return self._reader

    def state(self, patience: float | None = None) -> dict[str, Any]:
        """What a browser asks for every other second.

        patience: seconds to wait for a reading; by default until it is over. It is of the last
        reading where that one goes on.

        version: a text that changes with the page. rounds, planned, status: as of `Run`. stage: the
        last line of the log while the run goes on, else "". error: why it cannot be read, or "".
        """
        try:
            if reader := self.follow():
                reader.join(patience)
            with self._lock:
                run, version, failure = self._run, self._version, self._failure
            if failure is not None:
                raise failure
        except InputError as error:
            return {"name": self.path.name, "version": "gone", "error": str(error)}
        over = run.status == "finished"
        status = run.status if over else "running" if locked(self.path) else "interrupted"
        return {
            "name": self.path.name,
            "version": version,
            "rounds": run.rounds,
            "planned": run.planned,
            "status": status,
            "stage": last_line(self.path / LOG) if status == "running" else "",
            "error": "",
        }

    def _read(self, version: str) -> None:
        try:
            run = load_run(self.path)
        except Exception as error:  # for those who ask; tried again when they do
            with self._lock:
                self._failure = error
        else:
            with self._lock:
                self._run, self._version, self._failure = run, version, None

    def _now(self) -> str:
        try:
            about = (self.path / DATABASE).stat()
        except OSError:
            raise InputError(f"{self.path}: the run is no longer there") from None
        return f"{about.st_mtime_ns:x}-{about.st_size:x}"


def last_line(log: Path) -> str:
    """The last whole line of a file, "" where there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL))
            lines = file.read().split(b"\n")[:-1]
    except OSError:
        return ""
    return lines[-1].decode(errors="replace") if lines else ""


def found(paths: list[str]) -> list[Watched]:
    """The runs of folders, each a run or a folder of runs. Raises InputError for anything else."""
    from spo_jax.runs.folders import MANIFEST, list_runs

    runs: dict[Path, Watched] = {}
    for each in map(Path, paths):
        own = [each] if (each / MANIFEST).exists() else list_runs(each) if each.is_dir() else []
        if not own:
            load_run(each)  # which says what is wrong
        for path in own:
            if path.resolve() not in runs:
                runs[path.resolve()] = Watched(path)
    return list(runs.values())

"""The run folder: manifest.json, spo.sqlite, best.py, log.txt, and the learner's checkpoints.

A round is one transaction, so a run that is killed at any moment leaves exactly its committed
rounds. Everything in the database but the table of timings is a function of the config: no order
of workers, so that two equal runs have equal tables.
"""

import contextlib
import fcntl
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import IO, Any

from spo_jax.config import FIELDS, Settings
from spo_jax.constants import current
from spo_jax.envs.files.stored import save_instances
from spo_jax.envs.files.textfiles import sync_folder, write_atomically
from spo_jax.envs.problem import Instance
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.states import parts_shown
from spo_jax.errors import InputError
from spo_jax.program import Program, Role, Unwritable, save_pair
from spo_jax.runs.budget import Spent
from spo_jax.runs.database import reading, tables
from spo_jax.runs.database.digests import require_intact, seal
from spo_jax.runs.folders import (
    BEST,
    DATABASE,
    INSTANCES,
    LOCK,
    LOG,
    MANIFEST,
    REMEDY,
    Locked,
    check_new,
    config_of,
    read_manifest,
    storage,
    umask,
    write_new,
)
from spo_jax.runs.manifest import shape_of
from spo_jax.search.rounds import Best, Played, Round, State
from spo_jax.search.validation import Finals


class Store:
    """One run folder, held by one process. Made by `create` or `reopen`; a context manager."""

    def __init__(self, path: Path, manifest: Mapping[str, Any], lock: IO[str]):
        self.path = path
        self.manifest = dict(manifest)
        self.config = config_of(path, manifest)
        self._earlier = self.manifest.get("nodes") or []  # machines of sessions before this one
        self._lock = lock
        self._connection = open_database(path, self.manifest, self.config)

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *exc: object) -> None:
        self._connection.close()
        self._lock.close()  # and with it the lock

    # --- opening ----------------------------------------------------------------------------------

    @classmethod
    def create(
        cls, path: str | Path, manifest: Mapping[str, Any], instances: Sequence[Instance] = ()
    ) -> "Store":
        """A new run folder, which appears complete or not at all.

        manifest: what `manifest.json` says; "config" is the run's config as a dict. instances:
        those to train on that were passed.
        Raises InputError if `path` exists (an empty folder may), or cannot be written.
        """
        path = Path(path)
        check_new(path)
        with storage(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
            try:
                write_new(draft / MANIFEST, json.dumps(manifest, indent=2) + "\n")
                if instances:
                    save_instances(draft / INSTANCES, instances)
                with contextlib.closing(
                    tables.connect(draft / DATABASE, create=True)
                ) as connection:
                    config = Settings.make(**manifest["config"])
                    connection.execute("BEGIN")  # one wait for the disk, not one for each row
                    seal(connection, tables.write_config(connection, config))
                    connection.execute("COMMIT")
                draft.chmod(0o777 & ~umask())
                draft.rename(path)
                sync_folder(path.parent)
            except BaseException:
                shutil.rmtree(draft, ignore_errors=True)
                raise
        return cls.reopen(path)

    @classmethod
    def reopen(cls, path: str | Path) -> "Store":
        """An existing run folder, to go on with. Raises InputError if another process has it."""
        path = Path(path)
        manifest = read_manifest(path)
        with storage(path):
            lock = open(path / LOCK, "a")  # noqa: SIM115 - held as long as the store
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise InputError(f"{path} is being run by another process") from None
        try:
            with storage(path):
                for unfinished in path.glob(f".{BEST}.*"):
                    unfinished.unlink()
                return cls(path, manifest, lock)
        except BaseException:
            lock.close()
            raise

    # --- rounds -----------------------------------------------------------------------------------

    def commit(
        self,
        done: Round,
        remark: Callable[[str], None] = lambda line: None,
        *,
        advantages: tables.Advantages | None = None,
        seconds: Mapping[str, float] | None = None,
    ) -> None:
        """Write one round: all of it, or nothing. Raises InputError for no space, say.

        Waits for another reader of the database, however long, with a remark each half minute.
        The manifest then says the peaks of memory so far, where the metrics have any.
        advantages, seconds: see `tables.write_round`.
        """
        self._write(lambda db: tables.write_round(db, done, advantages, seconds), remark)
        with storage(self.path):
            if peaks := reading.read_peaks(self._connection):
                self.manifest["peak_memory_gb"] = peaks
                self._write_manifest()

    def last_round(self, rewind: int | None = None) -> int:
        """The round to go on from: the last one committed, 0 without any, or the one to go back to.

        Raises InputError unless there is a round `rewind`.
        """
        with storage(self.path):
            rounds = reading.last_round(self._connection)
        if rewind is not None and not 1 <= rewind <= rounds:
            raise InputError(
                f"{self.path} cannot go back to round {rewind}: it has {rounds} rounds"
            )
        return rounds if rewind is None else rewind

    def rewind(self, number: int) -> None:
        """Forget the rounds after `number`, and what was measured when they were over."""
        self._write(lambda db: tables.forget_after(db, number), lambda line: None)

    def candidates(self, count: int) -> list[Best]:
        """The pairs to validate: the run's `count` best by J, one per destroy."""
        with storage(self.path):
            return reading.candidates(self._connection, count, self.config.search.best_from)

    def controls(self, count: int, but: Sequence[Best]) -> list[Best]:
        """`count` valid pairs of the run that are drawn whatever their J, other than `but`."""
        config = self.config
        with storage(self.path):
            return reading.controls(
                self._connection, count, config.search.best_from, config.seed, but
            )

    def commit_finals(
        self,
        finals: Finals,
        remark: Callable[[str], None] = lambda line: None,
        seconds: Mapping[str, float] | None = None,
    ) -> None:
        """Write what was measured when the rounds were over, which ends the run; as `commit`."""

        def write(db: sqlite3.Connection) -> set[int]:
            number = reading.last_round(db)
            changed = tables.write_finals(db, finals, number)
            spent = {name: (seconds or {}).get(name, 0.0) for name in tables.FINAL_STAGES}
            if number:
                tables.write_seconds(db, number, spent if seconds else {})
            return changed

        self._write(write, remark)

    def _write(
        self, write: Callable[[sqlite3.Connection], set[int]], remark: Callable[[str], None]
    ) -> None:
        """One transaction, repeated as long as another process blocks it.

        write: returns the rounds that it changed, whose digests follow.
        """
        while True:
            try:
                with storage(self.path), self._connection as db:
                    db.execute("BEGIN IMMEDIATE")
                    if not tables.DIGESTS.exists(db):
                        seal(db)  # a run of an earlier version: what it has is taken as it is
                    seal(db, write(db))
                return
            except Locked:
                remark(
                    f"Waiting: another process is reading {self.path / DATABASE}, so the round "
                    "cannot be written; end its query"
                )

    def finals(self) -> Finals:
        """What was measured when the rounds were over."""
        with storage(self.path):
            return reading.read_finals(self._connection)

    def best(self) -> Best | None:
        """The pair that `select` chooses; before any is measured, the one with the highest J."""
        with storage(self.path):
            return best_of(self._connection, self.config)

    def spent(self) -> Spent:
        """What the finished rounds took."""
        with storage(self.path):
            return reading.read_spent(self._connection)

    def planned(self, rounds: int | None) -> None:
        """Keep in the manifest how many rounds the run has, or that this is not known."""
        if self.manifest.get("rounds") != rounds:
            self.manifest["rounds"] = rounds
            with storage(self.path):
                self._write_manifest()

    def ran_on(self, nodes: Sequence[Mapping[str, Any]]) -> None:
        """Keep in the manifest which machines this session used, after those of earlier ones."""
        found = [*self._earlier, *nodes]
        if self.manifest.get("nodes", []) != found:
            self.manifest["nodes"] = found
            with storage(self.path):
                self._write_manifest()

    def _write_manifest(self) -> None:
        write_atomically(self.path / MANIFEST, json.dumps(self.manifest, indent=2) + "\n")

    def paid(self, before: int) -> dict[int, list[Played]] | None:
        """The pairs with costs of each of the rounds before one; None where these are not kept."""
        with storage(self.path):
            return reading.read_paid(self._connection, before)

    def name(self, program: Program) -> str:
        """A program's name in the run, "" for one that is not in it."""
        with storage(self.path):
            return reading.read_name(self._connection, program)

    def sources(self, before: int) -> list[tuple[Role, str]]:
        """The roles and sources of the programs of the rounds before one."""
        with storage(self.path):
            return reading.read_sources(self._connection, before)

    def export_best(self, best: Best | None) -> str:
        """Write best.py if there is a pair.

        Returns "", or why a file cannot hold the pair, which does not end the run.
        """
        if best is None:
            return ""
        with storage(self.path):
            try:
                problem = get_problem(self.config.problem)
                header = about(
                    self.path, best, map(self.name, (best.pair.destroy, best.pair.repair))
                )
                save_pair(
                    self.path / BEST,
                    best.pair,
                    header,
                    problem.interface,
                    problem.kit,
                    terms=self.config.terms,
                    shown=parts_shown(self.config.generator.state),
                    overwrite=True,
                )
            except Unwritable as error:
                (self.path / BEST).unlink(missing_ok=True)  # an earlier pair's
                return f"no {BEST}, because {error}"
        return ""

    def log(self, line: str) -> None:
        """Add a line to log.txt."""
        text = f"{line}\n".encode("utf-8", "backslashreplace")  # it may quote any file name
        with storage(self.path), open(self.path / LOG, "ab") as file:
            file.write(text)

    def totals(self) -> dict[str, float]:
        """The metrics of all rounds, added up."""
        with storage(self.path):
            return reading.read_totals(self._connection)

    def state(self) -> State:
        """The state after the last committed round."""
        with storage(self.path):
            return reading.read_state(self._connection)


def open_database(path: Path, manifest: Mapping[str, Any], config: Settings) -> sqlite3.Connection:
    """The database of the run in `path`. Raises InputError unless it is intact and `config`'s."""
    db = tables.connect(path / DATABASE)
    try:
        db.execute("BEGIN")
        try:
            require_intact(db)
            _require_scores(db, manifest, config)
        except InputError as error:
            raise InputError(f"{path / DATABASE}: {error}") from None
        try:
            _require_settings(db, config)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        db.execute("COMMIT")
    except BaseException:
        db.close()
        raise
    return db


def _require_settings(db: sqlite3.Connection, config: Settings) -> None:
    """Raises InputError if a run's manifest has other settings than it began with."""
    now = config.flat()
    changes = [
        f"{name} is {now[name]!r:.80} there and was {value!r:.80}"
        for name, value in map(astuple, tables.CONFIG.select(db))
        if name in FIELDS and now[name] != current(name, value)
    ]
    if changes:
        raise InputError(
            f"its manifest has other settings than the run began with ({'; '.join(changes)}); "
            "undo that, or begin a new run with them"
        )


def _require_scores(db: sqlite3.Connection, manifest: Mapping[str, Any], config: Settings) -> None:
    """Raises InputError if a run's manifest has another number of instances than its scores."""
    (instances, rollouts), validation = shape_of(manifest, config), manifest.get("validation")
    known: list[tuple[tables.Table[Any], str, str, int]] = [
        (tables.PAIRS, "scores", "status = 'ok'", instances * rollouts),
        (tables.INDIVIDUALS, "scores", "1", instances),
        (tables.COSTS, "costs", "kind = 'training'", instances * rollouts),
    ]
    if validation is not None:
        known += [(tables.COSTS, "costs", "kind = 'validation'", len(validation) * rollouts)]
    for table, column, where, count in known:
        wrong = f"{where} AND json_array_length({column}) != {count}"
        if table.exists(db) and db.execute(f"SELECT 1 FROM {table.name} WHERE {wrong}").fetchone():
            raise InputError(
                f"the table {table.name} has another number of {column} than the instances and "
                f"rollouts of {MANIFEST} give: {REMEDY}"
            )


def best_of(db: sqlite3.Connection, config: Settings) -> Best | None:
    """The pair that `select` chooses; before any is measured, the one with the highest J."""
    finals = reading.read_finals(db)
    return finals.best(config.search.select) or reading.read_best(db)


def about(path: Path, best: Best, names: Iterable[str]) -> str:
    """The origin of an exported pair, for its file. names: of destroy and repair."""
    name = path.name.encode("utf-8", "backslashreplace").decode()  # any bytes can name a folder
    validated = "" if best.validation is None else f", validated at {best.validation:.6f}"
    which = " with ".join(filter(None, names))
    return (
        f"Discovered by spo-jax: run {name}, round {best.round}{which and f' ({which})'}, "
        f"discovery utility J = {best.utility:.6f}{validated}."
    )


def dump(path: str | Path) -> dict[str, list[tuple[Any, ...]]]:
    """All tables of a run but its timings, rows in order: equal for equal runs.

    Without the digests, which follow from these, so that a table can be left out of a comparison.
    """
    with contextlib.closing(tables.connect(Path(path) / DATABASE)) as db:
        known = [table.name for table in tables.TABLES if table.exists(db)]
        rows = {name: db.execute(f"SELECT * FROM {name}") for name in known}
        return {name: sorted(each, key=lambda row: row[:4]) for name, each in rows.items()}

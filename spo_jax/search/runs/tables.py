"""The tables of a run, and how rounds, programs and states become rows and back."""

import json
import math
import os
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import Any

from spo_jax.config import FIELDS, Config
from spo_jax.errors import InputError
from spo_jax.program import ROLES, Pair, Program
from spo_jax.search.population import Member, Population
from spo_jax.search.rounds import Best, Individual, Played, Round, State, stands
from spo_jax.search.validation import Finals
from spo_jax.seeding import derive, python_rng

MEMORY = "memory/"  # how metrics of memory begin
SCHEMA_VERSION = 5
READABLE = (SCHEMA_VERSION,)
FRESH, BLAMED = 3, 4  # from these versions on finalists have `fresh` and `kind`, pairs a `role`
SIGNED = 4  # from this one on there is a config, and a program's id is of its row as it is stored
LATER_COLUMNS = {("finalists", "fresh"): FRESH, ("finalists", "kind"): FRESH}
LATER_COLUMNS |= {("pairs", "role"): BLAMED}
LATER = {"individuals": 4, "notes": 4, "config": 4}  # tables that every run has from then on

# programs.id is a hash of the whole program, so that a row is one Program object exactly; digest,
# destroy and repair are digests of normalised source, by which payoffs are known.
SCHEMA = """
CREATE TABLE programs (
    id TEXT PRIMARY KEY, round INTEGER NOT NULL, role TEXT NOT NULL, digest TEXT NOT NULL,
    condition TEXT NOT NULL, form TEXT NOT NULL, parents TEXT NOT NULL, strategy TEXT NOT NULL,
    source TEXT NOT NULL, derivation TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX programs_by_digest ON programs (digest);
CREATE TABLE pairs (
    destroy TEXT NOT NULL, repair TEXT NOT NULL, round INTEGER NOT NULL, kind TEXT NOT NULL,
    status TEXT NOT NULL, utility REAL, reason TEXT NOT NULL, role TEXT NOT NULL,
    scores TEXT NOT NULL,
    PRIMARY KEY (destroy, repair)
) WITHOUT ROWID;
CREATE TABLE rounds (
    round INTEGER PRIMARY KEY, destroy_answers INTEGER NOT NULL, destroys INTEGER NOT NULL,
    valid_destroys INTEGER NOT NULL, repair_answers INTEGER NOT NULL, repairs INTEGER NOT NULL,
    valid_repairs INTEGER NOT NULL, pairs INTEGER NOT NULL, reused INTEGER NOT NULL, top REAL,
    median REAL, best_utility REAL, best_round INTEGER, best_destroy TEXT, best_repair TEXT,
    metrics TEXT NOT NULL
);
CREATE TABLE members (
    round INTEGER NOT NULL, role TEXT NOT NULL, rank INTEGER NOT NULL, program TEXT NOT NULL,
    score REAL NOT NULL, born INTEGER NOT NULL,
    PRIMARY KEY (round, role, rank)
) WITHOUT ROWID;
CREATE TABLE failures (
    round INTEGER NOT NULL, number INTEGER NOT NULL, subject TEXT NOT NULL, status TEXT NOT NULL,
    reason TEXT NOT NULL, destroy TEXT NOT NULL, repair TEXT NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (round, number)
) WITHOUT ROWID;
CREATE TABLE finalists (
    rank INTEGER PRIMARY KEY, round INTEGER NOT NULL, utility REAL NOT NULL,
    destroy TEXT NOT NULL, repair TEXT NOT NULL, validation REAL, fresh REAL,
    kind TEXT NOT NULL DEFAULT 'finalist'
);
CREATE TABLE individuals (
    round INTEGER NOT NULL, number INTEGER NOT NULL, destroy TEXT NOT NULL, repair TEXT NOT NULL,
    utility REAL NOT NULL, operator TEXT NOT NULL, place INTEGER NOT NULL, scores TEXT NOT NULL,
    PRIMARY KEY (round, number)
) WITHOUT ROWID;
CREATE TABLE notes (round INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE config (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
TABLES = (
    "programs", "pairs", "rounds", "members", "failures", "finalists", "individuals", "notes",
    "config",
)  # fmt: skip


def connect(path: Path, create: bool = False) -> sqlite3.Connection:
    """A connection in autocommit mode; transactions are begun by hand. `create` makes the tables.

    The rollback journal with full synchronisation: what is committed survives a power cut, and a
    killed writer's journal is rolled back by the next reader, who needs to write for that.
    """
    mode = "rwc" if create else "rw" if os.access(path, os.W_OK) else "ro&immutable=1"
    uri = f"{path.resolve().as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA synchronous = FULL")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if create:
            connection.executescript(
                f"BEGIN; {SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
            )
        elif version not in READABLE:
            raise InputError(
                f"{path} has format {version}, and this spo-jax reads {READABLE[0]} to "
                f"{SCHEMA_VERSION}: it is of another version, or no run database"
            )
    except BaseException:
        connection.close()
        raise
    return connection


def write_config(db: sqlite3.Connection, config: Config) -> None:
    """Keep the settings that make a run what it is: all but the volatile ones."""
    kept = {n: v for n, v in config.to_dict().items() if not FIELDS[n].metadata["volatile"]}
    _insert(db, "INSERT INTO config", [(name, json.dumps(v)) for name, v in kept.items()])


def program_id(program: Program) -> str:
    """A hash of everything in a program, as it is stored."""
    return identity(*map(_storable, _fields(program)))


def identity(*fields: str) -> str:
    """The id of a row of programs; fields: those of `Program`, in its order."""
    return f"{derive('program', *fields):016x}"


def _fields(program: Program) -> tuple[str, ...]:
    return tuple(
        json.dumps(value) if isinstance(value, tuple) else value
        for value in asdict(program).values()
    )


def write_round(db: sqlite3.Connection, done: Round) -> None:
    """Insert everything a round adds; the caller opens and commits the transaction."""
    extra = () if done.best is None else (done.best.pair.destroy, done.best.pair.repair)
    _insert(
        db,
        "INSERT OR IGNORE INTO programs",
        [_program_row(program, done.number) for program in (*done.programs, *extra)],
    )
    # A pair that met a fault of the host before is played again, and its verdict replaced.
    _insert(
        db,
        "INSERT OR REPLACE INTO pairs",
        [_pair_row(played, done.number) for played in done.pairs],
    )
    for role, population in (("destroy", done.destroys), ("repair", done.repairs)):
        _insert(
            db,
            "INSERT INTO members",
            [
                (done.number, role, rank, program_id(m.program), m.score, m.round)
                for rank, m in enumerate(population)
            ],
        )
    _insert(
        db,
        "INSERT INTO failures",
        [
            (done.number, n, f.subject, f.status, f.reason, f.destroy, f.repair, f.text)
            for n, f in enumerate(done.failures)
        ],
    )
    rows = [_individual_row(each, number) for number, each in enumerate(done.individuals)]
    _insert(db, "INSERT INTO individuals", rows)
    _insert(db, "INSERT INTO notes", [(done.number, done.note)] if done.note else [])
    _insert(db, "INSERT INTO rounds", [_round_row(done)])


def forget_after(db: sqlite3.Connection, number: int) -> None:
    """Delete what came after a round; the caller opens and commits the transaction."""
    for table in TABLES:
        if table == "finalists":
            db.execute("DELETE FROM finalists")
        elif table != "config" and has(db, table):
            db.execute(f"DELETE FROM {table} WHERE round > ?", (number,))


def _insert(db: sqlite3.Connection, command: str, rows: Sequence[tuple[Any, ...]]) -> None:
    if rows:
        places = ",".join("?" * len(rows[0]))
        db.executemany(f"{command} VALUES ({places})", [tuple(map(_storable, r)) for r in rows])


def _storable(value: Any) -> Any:
    """Text that a database holds: an answer may contain unpaired surrogates."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _program_row(program: Program, number: int) -> tuple[Any, ...]:
    return (
        program_id(program), number, program.role, program.digest, program.condition, program.form,
        json.dumps(program.parents), program.strategy, program.source, program.derivation,
    )  # fmt: skip


def _pair_row(played: Played, number: int) -> tuple[Any, ...]:
    value = None if math.isnan(played.utility) else played.utility
    return (
        played.destroy, played.repair, number, played.kind, played.status, value, played.reason,
        played.role, json.dumps(played.scores),
    )  # fmt: skip


def _read_pairs(db: sqlite3.Connection) -> list[Played]:
    """All pairs of a run."""
    rows = db.execute(
        "SELECT destroy, repair, kind, status, utility, reason, role, scores FROM pairs"
    )
    found = []
    for destroy, repair, kind, status, value, reason, role, scores in rows:
        value = math.nan if value is None else value
        own = tuple(json.loads(scores))
        found.append(Played(destroy, repair, kind, status, value, reason, role, own))
    return found


def _individual_row(each: Individual, number: int) -> tuple[Any, ...]:
    programs = map(program_id, (each.pair.destroy, each.pair.repair))
    scores = json.dumps(each.scores)
    return (each.round, number, *programs, each.utility, each.operator, each.place, scores)


def _round_row(done: Round) -> tuple[Any, ...]:
    best: tuple[Any, ...] = (None,) * 4
    if done.best is not None:
        pair = done.best.pair
        best = (done.best.utility, done.best.round, *map(program_id, (pair.destroy, pair.repair)))
    known = {name: v if math.isfinite(v) else None for name, v in done.metrics.items()}
    metrics = json.dumps(known, sort_keys=True)
    return (done.number, *asdict(done.counts).values(), *best, metrics)


def _program(db: sqlite3.Connection, identity: str) -> Program:
    row = db.execute(
        "SELECT role, source, strategy, parents, form, condition, derivation FROM programs"
        " WHERE id = ?",
        (identity,),
    ).fetchone()
    role, source, strategy, parents, form, condition, derivation = row
    return Program(role, source, strategy, tuple(json.loads(parents)), form, condition, derivation)


def read_totals(db: sqlite3.Connection) -> dict[str, float]:
    """The sum of each metric over the rounds that have it."""
    totals: dict[str, float] = {}
    for (metrics,) in db.execute("SELECT metrics FROM rounds ORDER BY round"):
        for name, value in json.loads(metrics).items():
            if value is not None:
                totals[name] = totals.get(name, 0.0) + value
    return totals


def read_peaks(db: sqlite3.Connection) -> dict[str, float]:
    """The highest value of each metric of memory over the rounds, GB by phase."""
    peaks: dict[str, float] = {}
    for (metrics,) in db.execute("SELECT metrics FROM rounds"):
        for name, value in json.loads(metrics).items():
            if name.startswith(MEMORY) and value is not None:
                phase = name.removeprefix(MEMORY)
                peaks[phase] = max(value, peaks.get(phase, value))
    return peaks


def read_best(db: sqlite3.Connection) -> Best | None:
    row = db.execute(
        "SELECT best_utility, best_round, best_destroy, best_repair FROM rounds"
        " ORDER BY round DESC LIMIT 1"
    ).fetchone()
    if row is None or row[0] is None:
        return None
    utility, number, destroy, repair = row
    return Best(Pair(_program(db, destroy), _program(db, repair)), utility, number)


def candidates(db: sqlite3.Connection, count: int, best_from: str) -> list[Best]:
    """The `count` best pairs of a run by J, one a destroy; the run's best comes first.

    Of equals it is the one found first.
    """
    best = read_best(db)
    found = {} if best is None else {best.pair.destroy.digest: best}
    for destroy, repair, utility, number in _valid(db, best_from):
        if len(found) >= count:
            break
        if destroy not in found:
            found[destroy] = _named(db, destroy, repair, utility, number)
    return list(found.values())[:count]


def controls(
    db: sqlite3.Connection, count: int, best_from: str, seed: int, but: Sequence[Best]
) -> list[Best]:
    """`count` valid pairs of a run drawn whatever their J, or all there are; none of `but`."""
    out = {(each.pair.destroy.digest, each.pair.repair.digest) for each in but}
    rows = [row for row in _valid(db, best_from) if row[:2] not in out]
    drawn = python_rng(seed, "controls").sample(rows, min(count, len(rows)))
    return [_named(db, *row) for row in drawn]


def _valid(db: sqlite3.Connection, best_from: str) -> list[tuple[str, str, float, int]]:
    """Digests, J and round of the pairs that a run's best is chosen from, the highest J first."""
    kinds = ("response",) if best_from == "responses" else ("response", "cross-play")
    return db.execute(
        f"SELECT destroy, repair, utility, round FROM pairs WHERE status = 'ok' AND kind IN"
        f" ({','.join('?' * len(kinds))}) ORDER BY utility DESC, round, destroy, repair",
        kinds,
    ).fetchall()


def _named(db: sqlite3.Connection, destroy: str, repair: str, utility: float, number: int) -> Best:
    pair = Pair(_by_digest(db, "destroy", destroy), _by_digest(db, "repair", repair))
    return Best(pair, utility, number)


def _by_digest(db: sqlite3.Connection, role: str, digest: str) -> Program:
    identity = db.execute(
        "SELECT id FROM programs WHERE role = ? AND digest = ? ORDER BY round, id LIMIT 1",
        (role, digest),
    ).fetchone()[0]
    return _program(db, identity)


def write_finals(db: sqlite3.Connection, finals: Finals) -> None:
    """Insert what was measured at a run's end; the caller opens and commits the transaction."""
    if not _has_fresh(db):
        db.execute("ALTER TABLE finalists ADD COLUMN fresh REAL")
        db.execute("ALTER TABLE finalists ADD COLUMN kind TEXT NOT NULL DEFAULT 'finalist'")
        db.execute(f"PRAGMA user_version = {FRESH}")
    kinds = ["finalist"] * len(finals.finalists) + ["control"] * len(finals.controls)
    rows = []
    for rank, f in enumerate((*finals.finalists, *finals.controls)):
        values = (None if v is None or math.isnan(v) else v for v in (f.validation, f.fresh))
        programs = (f.pair.destroy, f.pair.repair)
        rows.append((rank, f.round, f.utility, *map(program_id, programs), *values, kinds[rank]))
    _insert(db, "INSERT INTO finalists", rows)


def read_finals(db: sqlite3.Connection) -> Finals:
    """What was measured at a run's end; where a pair failed there is None."""
    more = "fresh, kind" if _has_fresh(db) else "NULL, 'finalist'"
    rows = db.execute(
        f"SELECT destroy, repair, utility, round, validation, {more} FROM finalists ORDER BY rank"
    ).fetchall()
    found: dict[str, list[Best]] = {"finalist": [], "control": []}
    for destroy, repair, *numbers, kind in rows:
        found[kind].append(Best(Pair(_program(db, destroy), _program(db, repair)), *numbers))
    return Finals(tuple(found["finalist"]), tuple(found["control"]))


def _has_fresh(db: sqlite3.Connection) -> bool:
    return _version(db) >= FRESH


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def read_state(db: sqlite3.Connection) -> State:
    number = db.execute("SELECT COALESCE(MAX(round), 0) FROM rounds").fetchone()[0]
    return State(
        round=number,
        destroys=_population(db, number, "destroy"),
        repairs=_population(db, number, "repair"),
        best=read_best(db),
        payoffs={each.digests: each for each in _read_pairs(db) if stands(each)},
        individuals=_individuals(db),
        note=_note(db, number),
    )


def _individuals(db: sqlite3.Connection) -> tuple[Individual, ...]:
    if not has(db, "individuals"):
        return ()
    program = cache(partial(_program, db))
    rows = db.execute(
        "SELECT destroy, repair, utility, round, operator, place, scores FROM individuals"
        " ORDER BY round, number"
    ).fetchall()
    found = []
    for destroy, repair, utility, number, operator, place, scores in rows:
        pair = Pair(program(destroy), program(repair))
        own = tuple(json.loads(scores))
        found.append(Individual(pair, utility, number, operator, place, own))
    return tuple(found)


def _note(db: sqlite3.Connection, number: int) -> str:
    if not has(db, "notes"):
        return ""
    row = db.execute("SELECT text FROM notes WHERE round = ?", (number,)).fetchone()
    return row[0] if row else ""


def has(db: sqlite3.Connection, table: str) -> bool:
    """Whether a database has a table; only those of methods other than SPO can be missing."""
    found = db.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (table,))
    return found.fetchone() is not None


def _population(db: sqlite3.Connection, number: int, role: str) -> Population:
    rows = db.execute(
        "SELECT program, score, born FROM members WHERE round = ? AND role = ? ORDER BY rank",
        (number, role),
    ).fetchall()
    return tuple(Member(_program(db, identity), score, born) for identity, score, born in rows)

"""The tables of a run, and how rounds become rows. `spo_jax.search.runs.reading` reads them."""

import json
import math
import os
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from spo_jax.config import FIELDS, Settings
from spo_jax.errors import InputError
from spo_jax.program import Program, Role
from spo_jax.search.rounds import Individual, Round, Scored
from spo_jax.search.runs.answer_rows import as_bytes, mend_rows, packed
from spo_jax.search.validation import Finals
from spo_jax.seeding import derive

SCHEMA_VERSION = 5
FINAL_STAGES = ("validation", "fresh")  # what `timings` has besides the stages of rounds
Advantages = Mapping[Role, Sequence[np.ndarray]]  # of each group, [B] float64

# programs.id is a hash of the whole program, so that a row is one Program object exactly; digest,
# and destroy and repair of pairs and costs, are digests of normalised source, by which payoffs are
# known. Other columns that name a program hold its id. The table costs holds what pairs paid in
# training and in validation; runs from before there was one go on without it.
SCHEMA = """
CREATE TABLE programs (
    id TEXT PRIMARY KEY, round INTEGER NOT NULL, role TEXT NOT NULL, digest TEXT NOT NULL,
    condition TEXT NOT NULL, form TEXT NOT NULL, parents TEXT NOT NULL, strategy TEXT NOT NULL,
    source TEXT NOT NULL, derivation TEXT NOT NULL, name TEXT NOT NULL
);
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
CREATE TABLE credits (
    round INTEGER NOT NULL, role TEXT NOT NULL, row INTEGER NOT NULL, slot INTEGER NOT NULL,
    program TEXT NOT NULL, utility REAL, credit REAL, selection REAL,
    PRIMARY KEY (round, role, row, slot)
) WITHOUT ROWID;
CREATE TABLE cross_play (
    round INTEGER NOT NULL, row INTEGER NOT NULL, slot INTEGER NOT NULL, destroy TEXT NOT NULL,
    repair TEXT NOT NULL, utility REAL, score REAL,
    PRIMARY KEY (round, row, slot)
) WITHOUT ROWID;
CREATE TABLE prompts (
    round INTEGER NOT NULL, role TEXT NOT NULL, number INTEGER NOT NULL, form TEXT NOT NULL,
    parents TEXT NOT NULL, destroy TEXT NOT NULL, shortened TEXT NOT NULL, text BLOB NOT NULL,
    PRIMARY KEY (round, role, number)
);
CREATE TABLE samples (
    round INTEGER NOT NULL, role TEXT NOT NULL, prompt INTEGER NOT NULL, place INTEGER NOT NULL,
    digest TEXT NOT NULL, credit REAL, advantage REAL,
    PRIMARY KEY (round, role, prompt, place)
) WITHOUT ROWID;
CREATE TABLE mends (
    round INTEGER NOT NULL, role TEXT NOT NULL, prompt INTEGER NOT NULL, place INTEGER NOT NULL,
    number INTEGER NOT NULL, wrong TEXT NOT NULL, message TEXT NOT NULL, status TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (round, role, prompt, place, number)
) WITHOUT ROWID;
CREATE TABLE failures (
    round INTEGER NOT NULL, number INTEGER NOT NULL, subject TEXT NOT NULL, status TEXT NOT NULL,
    reason TEXT NOT NULL, destroy TEXT NOT NULL, repair TEXT NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (round, number)
) WITHOUT ROWID;
CREATE TABLE finalists (
    rank INTEGER PRIMARY KEY, round INTEGER NOT NULL, utility REAL NOT NULL,
    destroy TEXT NOT NULL, repair TEXT NOT NULL, validation REAL, fresh REAL, kind TEXT NOT NULL
);
CREATE TABLE individuals (
    round INTEGER NOT NULL, number INTEGER NOT NULL, destroy TEXT NOT NULL, repair TEXT NOT NULL,
    utility REAL NOT NULL, operator TEXT NOT NULL, place INTEGER NOT NULL, scores TEXT NOT NULL,
    PRIMARY KEY (round, number)
) WITHOUT ROWID;
CREATE TABLE costs (
    round INTEGER NOT NULL, kind TEXT NOT NULL, destroy TEXT NOT NULL, repair TEXT NOT NULL,
    costs TEXT NOT NULL,
    PRIMARY KEY (kind, destroy, repair)
) WITHOUT ROWID;
CREATE TABLE remeasured (
    round INTEGER NOT NULL, destroy TEXT NOT NULL, repair TEXT NOT NULL, kind TEXT NOT NULL,
    status TEXT NOT NULL, utility REAL, reason TEXT NOT NULL, role TEXT NOT NULL,
    scores TEXT NOT NULL,
    PRIMARY KEY (round, destroy, repair)
) WITHOUT ROWID;
CREATE TABLE misfits (
    round INTEGER NOT NULL, destroy TEXT NOT NULL, repair TEXT NOT NULL, reason TEXT NOT NULL,
    PRIMARY KEY (destroy, repair)
) WITHOUT ROWID;
CREATE TABLE notes (round INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE config (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE timings (
    round INTEGER NOT NULL, stage TEXT NOT NULL, seconds REAL NOT NULL, PRIMARY KEY (round, stage)
) WITHOUT ROWID;
"""
REMEASURED, MENDS, MISFITS = "remeasured", "mends", "misfits"
TABLES = (
    "programs", "pairs", "rounds", "members", "credits", "cross_play", "prompts", "samples",
    "failures", "finalists", "individuals", "costs", REMEASURED, MENDS, MISFITS, "notes", "config",
)  # fmt: skip
LATER = ("costs", REMEASURED, MENDS, MISFITS)  # tables that an older run has not
TIMED = (*TABLES, "timings")  # equal runs have equal TABLES, and their own timings


def remeasures(db: sqlite3.Connection) -> bool:
    """Whether a run measures its best again, by the settings that it began with."""
    return _began_with(db, "remeasure") not in (None, "0")


def races(db: sqlite3.Connection) -> bool:
    """Whether responses race, likewise; what was left out may be evaluated again."""
    return _began_with(db, "racing") not in (None, '"none"')


def mends(db: sqlite3.Connection) -> bool:
    """Whether answers go back to be mended, likewise."""
    return _began_with(db, "mend") not in (None, "0")


def _began_with(db: sqlite3.Connection, name: str) -> str | None:
    """A setting as JSON; None in a run from before there was one."""
    row = db.execute("SELECT value FROM config WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def connect(path: Path, create: bool = False) -> sqlite3.Connection:
    """A connection in autocommit mode: the caller begins transactions. `create` makes the tables.

    The rollback journal with full synchronisation: what is committed survives a power cut, and a
    killed writer's journal is rolled back by the next reader, who needs to write for that.
    Raises InputError for a database of another format.
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
        elif version != SCHEMA_VERSION:
            raise InputError(
                f"{path} has format {version}, and this spo-jax reads {SCHEMA_VERSION}: it is of "
                "another version, or no run database"
            )
    except BaseException:
        connection.close()
        raise
    return connection


def there(db: sqlite3.Connection) -> tuple[str, ...]:
    """The tables of TIMED that a run has, in their order: all of them, but those of LATER."""
    found = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    return tuple(name for name in TIMED if name in found)


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


# --- writing: the caller opens and commits the transaction ----------------------------------------


def write_config(db: sqlite3.Connection, config: Settings) -> None:
    """Keep the settings that make a run what it is: all but the volatile ones."""
    kept = {n: v for n, v in config.flat().items() if not FIELDS[n].volatile}
    _insert(db, "config", [(name, json.dumps(v)) for name, v in kept.items()])


def write_round(
    db: sqlite3.Connection,
    done: Round,
    advantages: Advantages | None = None,
    seconds: Mapping[str, float] | None = None,
) -> None:
    """Insert everything that a round adds.

    advantages: what the update computed of each group. seconds: wall-clock by stage.
    """
    k = done.number
    _insert(db, "programs", _program_rows(db, done))
    # A pair that failed by a fault of the host is evaluated again, and its verdict replaced.
    pairs = [
        (*p.digests, k, p.kind, p.status, p.utility, p.reason, p.role, json.dumps(p.scores))
        for p in done.pairs
    ]
    _insert(db, "pairs", pairs, "INSERT OR REPLACE")
    again = [
        (k, *p.digests, p.kind, p.status, p.utility, p.reason, p.role, json.dumps(p.scores))
        for p in done.again
    ]
    _insert(db, REMEASURED, again)
    paid = {p.digests: p.costs for p in (*done.pairs, *done.again) if p.costs}
    _write_costs(db, k, "training", paid)
    for role, population in (("destroy", done.destroys), ("repair", done.repairs)):
        rows = [
            (k, role, rank, program_id(m.program), m.score, m.round)
            for rank, m in enumerate(population)
        ]
        _insert(db, "members", rows)
    if done.scored is not None:
        _insert(db, "credits", _credit_rows(done.scored, k))
        _insert(db, "cross_play", _cross_play_rows(done.scored, k))
    _write_answers(db, done, advantages or {})
    failures = enumerate(done.failures)
    _insert(db, "failures", [(k, n, *asdict(failure).values()) for n, failure in failures])
    _insert(db, "individuals", [_individual_row(i, n) for n, i in enumerate(done.individuals)])
    _insert(db, "notes", [(k, done.note)] if done.note else [])
    _insert(db, "rounds", [_round_row(done)])
    write_seconds(db, k, seconds or {})


def write_finals(db: sqlite3.Connection, finals: Finals, number: int) -> None:
    """Insert what was measured at a run's end. number: its last round."""
    kinds = ["finalist"] * len(finals.finalists) + ["control"] * len(finals.controls)
    rows = []
    everyone = (*finals.finalists, *finals.controls)
    for rank, f in enumerate(everyone):
        programs = map(program_id, (f.pair.destroy, f.pair.repair))
        rows.append((rank, f.round, f.utility, *programs, f.validation, f.fresh, kinds[rank]))
    _insert(db, "finalists", rows)
    paid = {(f.pair.destroy.digest, f.pair.repair.digest): f.costs for f in finals.finalists}
    _write_costs(db, number, "validation", paid)
    if MISFITS in there(db):
        misfits = {row[3:5]: f.misfit for row, f in zip(rows, everyone, strict=True) if f.misfit}
        _insert(db, MISFITS, [(number, *names, why) for names, why in misfits.items()])


def _write_costs(
    db: sqlite3.Connection, number: int, kind: str, costs: Mapping[tuple[str, str], Sequence[float]]
) -> None:
    """Insert what pairs paid, by their digests; nothing in a run without the table."""
    if "costs" in there(db):
        rows = [(number, kind, *names, json.dumps(paid)) for names, paid in costs.items() if paid]
        _insert(db, "costs", rows, "INSERT OR REPLACE")


def write_seconds(db: sqlite3.Connection, number: int, seconds: Mapping[str, float]) -> None:
    """Insert the wall-clock seconds of some stages of a round."""
    rows = [(number, stage, float(value)) for stage, value in seconds.items()]
    _insert(db, "timings", rows, "INSERT OR REPLACE")


def forget_after(db: sqlite3.Connection, number: int) -> None:
    """Delete what came after a round, and what was measured when the rounds were over."""
    for table in there(db):
        if table != "config":
            db.execute(f"DELETE FROM {table} WHERE round > ?", (number,))
    if "costs" in there(db):
        db.execute("DELETE FROM costs WHERE kind = 'validation'")
    db.execute("DELETE FROM finalists")
    db.execute(f"DELETE FROM timings WHERE stage IN {FINAL_STAGES}")


def _insert(
    db: sqlite3.Connection, table: str, rows: Sequence[tuple[Any, ...]], how: str = "INSERT"
) -> None:
    if rows:
        places = ",".join("?" * len(rows[0]))
        stored = [tuple(map(_storable, row)) for row in rows]
        db.executemany(f"{how} INTO {table} VALUES ({places})", stored)


def _storable(value: Any) -> Any:
    """What a database holds: NULL for NaN, and no unpaired surrogates, which an answer may have."""
    if isinstance(value, str):
        return as_bytes(value).decode()
    if isinstance(value, float):
        return None if math.isnan(value) else float(value)
    return value


def _program_rows(db: sqlite3.Connection, done: Round) -> list[tuple[Any, ...]]:
    """Of the programs that no earlier round wrote, each with its name: D3.07, R3.112."""
    best = () if done.best is None else (done.best.pair.destroy, done.best.pair.repair)
    known = {key for (key,) in db.execute("SELECT id FROM programs")}
    count: Counter[str] = Counter()
    rows = []
    for p in (*done.programs, *best):
        key = program_id(p)
        if key in known:
            continue
        known.add(key)
        count[p.role] += 1
        name = f"{p.role[0].upper()}{done.number}.{count[p.role]:02}"
        parents = json.dumps(p.parents)
        rows.append((key, done.number, p.role, p.digest, p.condition, p.form, parents, p.strategy,
                     p.source, p.derivation, name))  # fmt: skip
    return rows


def _credit_rows(scored: Scored, k: int) -> list[tuple[Any, ...]]:
    credits, selection = scored.credits, scored.selection
    rows: list[tuple[Any, ...]] = [
        (k, "destroy", i, 0, program_id(destroy), None, credits.leader[i], selection.leader[i])
        for i, destroy in enumerate(scored.destroys)
    ]
    rows += [
        (k, "repair", i, j, program_id(repair), scored.utility[i, j], credits.follower[i, j],
         selection.follower[i, j])
        for i, row in enumerate(scored.repairs)
        for j, repair in enumerate(row)
    ]  # fmt: skip
    return rows


def _cross_play_rows(scored: Scored, k: int) -> list[tuple[Any, ...]]:
    leaders, repairs = list(map(program_id, scored.panel)), scored.candidates
    return [
        (k, i, j, leader, program_id(m.program), scored.cross_play[i, j], m.score)
        for i, leader in enumerate(leaders)
        for j, m in enumerate(repairs)
    ]


def _write_answers(db: sqlite3.Connection, done: Round, advantages: Advantages) -> None:
    """Every prompt of a round, its text compressed, and what became of the answers to it."""
    number: Counter[Role] = Counter()
    first: dict[Role, str] = {}
    prompts, samples, sent = [], [], []
    for answers in done.answers:
        prompt = answers.prompt
        role, n = prompt.role, number[prompt.role]
        number[role] += 1
        parents = json.dumps([program_id(parent) for parent in prompt.parents])
        destroy = "" if prompt.destroy is None else program_id(prompt.destroy)
        text = packed(prompt.whole, first.get(role, ""))
        first.setdefault(role, prompt.whole)
        prompts.append((done.number, role, n, prompt.form, parents, destroy, prompt.shortened,
                        text))  # fmt: skip
        earned = _values(done.groups.get(role, ()), n, lambda group: group.credits)
        moved = _values(advantages.get(role, ()), n, lambda values: values)
        for place, program in enumerate(answers.programs):
            digest = "" if program is None else program.digest
            samples.append((done.number, role, n, place, digest, earned(place), moved(place)))
        sent += [(done.number, role, n, *row) for row in mend_rows(answers)]
    _insert(db, "prompts", prompts)
    _insert(db, "samples", samples)
    _insert(db, MENDS, sent)


def _values(of: Sequence[Any], n: int, read: Any) -> Any:
    """The numbers of the n-th group by their places; None for each where there is no group."""
    values = read(of[n]) if n < len(of) else None
    return lambda place: None if values is None else float(values[place])


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

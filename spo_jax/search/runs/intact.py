"""Checks that a run's database is as it was written, before anything is read from it.

A database that was edited, or copied in part, gives one sentence. So code that reads it can rely on
types, JSON texts and references.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from spo_jax.config import FIELDS, Settings
from spo_jax.errors import InputError
from spo_jax.program import ROLES
from spo_jax.search.rounds import CENSORED
from spo_jax.search.runs.tables import (
    LATER,
    MENDS,
    MISFITS,
    REMEASURED,
    SCHEMA,
    TIMED,
    identity,
    mends,
    races,
    remeasures,
    there,
)

REMEDY = "it was edited or damaged; restore it from a copy, or begin a new run"

KINDS = ("response", "credit", "cross-play", "start")
_WORDS = {
    ("programs", "role"): ROLES,
    **{(table, "role"): ROLES for table in ("members", "credits", "prompts", "samples", MENDS)},
    ("pairs", "kind"): KINDS,
    ("pairs", "role"): ("", *ROLES),
    ("finalists", "kind"): ("finalist", "control"),
    (REMEASURED, "kind"): ("elite", "control", *KINDS),
    (REMEASURED, "role"): ("", *ROLES),
    ("costs", "kind"): ("training", "validation"),
}
_TYPES = {
    "TEXT": "'text'",
    "INTEGER": "'integer'",
    "REAL": "'real', 'integer'",
    "BLOB": "'blob'",
}
_LARGEST = "1.7976931348623157e308"

# Table, column that names a program, role of that program, and the condition on the row.
_NAMED = (
    *(("rounds", f"best_{role}", role, f"best_{role} IS NOT NULL") for role in ROLES),
    *(
        (table, "program", role, f"role = '{role}'")
        for table in ("members", "credits")
        for role in ROLES
    ),
    *(
        (table, role, role, "1")
        for table in ("individuals", "finalists", "cross_play", MISFITS)
        for role in ROLES
    ),
)


def require_intact(db: sqlite3.Connection) -> None:
    """Raises InputError, with the first thing that is wrong, unless all of it can be read."""
    for wrong in _faults(db):
        raise InputError(f"{wrong}: {REMEDY}")


def _faults(db: sqlite3.Connection) -> Iterator[str]:
    """What is wrong, one clause each."""
    known = there(db)
    for table in TIMED:
        if table not in known and table not in LATER:
            yield f"there is no table {table}"
    if REMEASURED not in known and (remeasures(db) or races(db)):
        yield f"there is no table {REMEASURED}"
    if MENDS not in known and mends(db):
        yield f"there is no table {MENDS}"
    for table in known:
        yield from _columns(db, table)
    others = db.execute("SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'view')")
    for kind, name in others:
        yield f"there is a {kind} {name:.40}, which no run has"
    if not db.execute("SELECT COUNT(*) FROM config").fetchone()[0]:
        yield "the table config is empty"
    rows = db.execute(
        "SELECT id, role, source, strategy, parents, form, condition, derivation FROM programs"
    )
    for name, *fields in rows:
        if identity(*fields) != name:
            yield f"the table programs has a program ({name:.20}) that is not what it was"
            break
    if _any(db, "programs", "1 GROUP BY name HAVING COUNT(*) > 1"):
        yield "the table programs has two programs of one name"
    for table in ("credits", "cross_play"):  # places in a matrix of a round
        if _any(db, table, "1 GROUP BY round HAVING MAX(MAX(row), MAX(slot)) >= COUNT(*)"):
            yield f"the table {table} has a row or slot that no round has"
    last = db.execute("SELECT COUNT(*) FROM rounds").fetchone()[0]
    if db.execute("SELECT COALESCE(MAX(round), 0) FROM rounds").fetchone()[0] != last or (
        last and db.execute("SELECT MIN(round) FROM rounds").fetchone()[0] != 1
    ):
        yield "the table rounds lacks a round"
    for table in known:
        if "round" in _expected()[table]:
            found = db.execute(
                f"SELECT COUNT(*) FROM {table} WHERE round NOT BETWEEN 1 AND ?", (last,)
            )
            if found.fetchone()[0]:
                yield f"the table {table} has a round that the table rounds has not"
    if _any(db, "rounds", "(best_utility IS NULL) + (best_round IS NULL) + (best_destroy IS NULL)"
            " + (best_repair IS NULL) NOT IN (0, 4)"):  # fmt: skip
        yield "the table rounds has half of a best pair"
    for table, column, role, where in _NAMED:
        if table in known and _any(
            db, table, f"{where} AND NOT EXISTS"
            f" (SELECT 1 FROM programs WHERE id = {table}.{column} AND role = '{role}')",
        ):  # fmt: skip
            yield f"the table {table} names a {role} program ({column}) that is not there"
    for role in ROLES:
        if _any(
            db, "pairs", f"status IN ('ok', '{CENSORED}') AND NOT EXISTS (SELECT 1 FROM programs"
            f" WHERE digest = pairs.{role} AND programs.role = '{role}')",
        ):  # fmt: skip
            yield f"the table pairs names a {role} program that is not there"
    for table in ("pairs", *({REMEASURED} & set(known))):
        if _any(db, table, f"status IN ('ok', '{CENSORED}') AND utility IS NULL"):
            yield f"the table {table} has a pair that is ok and has no utility"
    for table, column, lawful, kind in _JSON:
        if table not in known:
            continue
        for (text,) in db.execute(f"SELECT DISTINCT {column} FROM {table}"):
            if not _is_json(text, lawful):
                yield f"the table {table} has a value of {column} that is not {kind}"
                break


def _columns(db: sqlite3.Connection, table: str) -> Iterator[str]:
    """What is wrong with the columns of a table and the types in them."""
    found = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
    for column, (kind, needed) in _expected()[table].items():
        if column not in found:
            yield f"the table {table} has no column {column}"
        types = _TYPES[kind] + ("" if needed else ", 'null'")
        wrong = f"typeof({column}) NOT IN ({types})"
        if kind == "REAL":
            wrong += f" OR ABS({column}) > {_LARGEST}"
        if kind == "INTEGER":
            wrong += f" OR {column} NOT BETWEEN 0 AND {2**53}"
        if (table, column) in _WORDS:
            wrong += f" OR {column} NOT IN {_WORDS[table, column]}"
        if _any(db, table, wrong):
            yield f"the table {table} has a value of {column} that cannot be"


def _any(db: sqlite3.Connection, table: str, where: str) -> bool:
    return bool(db.execute(f"SELECT EXISTS (SELECT 1 FROM {table} WHERE {where})").fetchone()[0])


@cache
def _expected() -> dict[str, dict[str, tuple[str, bool]]]:
    """Table -> column -> its type, and whether it must have a value."""
    empty = sqlite3.connect(":memory:")
    empty.executescript(SCHEMA)
    found = {
        table: {
            name: (kind, bool(needed) or bool(key))
            for _, name, kind, needed, _, key in empty.execute(f"PRAGMA table_info({table})")
        }
        for table in TIMED
    }
    empty.close()
    return found


# --- JSON -----------------------------------------------------------------------------------------


def _is_json(text: str, lawful: Callable[[Any], bool]) -> bool:
    try:
        return lawful(json.loads(text))
    except (ValueError, RecursionError):
        return False


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) < 2**1000)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _numbers(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_number, value))


def _metrics(value: Any) -> bool:
    known = isinstance(value, dict) and [each for each in value.values() if each is not None]
    return known is not False and all(map(_is_number, known))


_JSON: tuple[tuple[str, str, Callable[[Any], bool], str], ...] = (
    ("programs", "parents", _texts, "a JSON list of texts"),
    ("prompts", "parents", _texts, "a JSON list of texts"),
    ("individuals", "scores", _numbers, "a JSON list of numbers"),
    ("pairs", "scores", _numbers, "a JSON list of numbers"),
    (REMEASURED, "scores", _numbers, "a JSON list of numbers"),
    ("costs", "costs", _numbers, "a JSON list of numbers"),
    ("rounds", "metrics", _metrics, "a JSON object of numbers"),
    ("config", "value", lambda value: True, "JSON"),
)


# --- settings -------------------------------------------------------------------------------------


def require_settings(db: sqlite3.Connection, config: Settings) -> None:
    """Raises InputError if a run's manifest has other settings than it began with."""
    now = config.flat()
    changes = [
        f"{name} is {now[name]!r:.80} there and was {json.loads(value)!r:.80}"
        for name, value in db.execute("SELECT name, value FROM config ORDER BY name")
        if name in FIELDS and now[name] != json.loads(value)
    ]
    if changes:
        raise InputError(
            f"its manifest has other settings than the run began with ({'; '.join(changes)}); "
            "undo that, or begin a new run with them"
        )


def require_scores(
    db: sqlite3.Connection, instances: int, rollouts: int, validation: int | None = None
) -> None:
    """Raises InputError unless the scores and costs of pairs and individuals have the run's shapes.

    instances, rollouts: how many a pair is evaluated on. validation: instances of the validation,
    where they are known.
    """
    of_pair = f"CASE status WHEN 'ok' THEN {instances * rollouts} ELSE 0 END"
    lengths = {"pairs": of_pair, "individuals": str(instances)}
    if REMEASURED in there(db):
        lengths[REMEASURED] = of_pair
    if "costs" in there(db):
        counts = {"training": instances, "validation": validation}
        for kind, count in counts.items():
            wrong = f"kind = '{kind}' AND json_array_length(costs) != {(count or 0) * rollouts}"
            if count is not None and _any(db, "costs", wrong):
                raise InputError(
                    f"the table costs has another number of costs of the {kind} than {count} "
                    f"instances and {rollouts} rollouts give: {REMEDY}"
                )
    for table, due in lengths.items():
        if _any(db, table, f"json_array_length(scores) != {due}"):
            raise InputError(
                f"the table {table} has another number of scores than {instances} instances and "
                f"{rollouts} rollouts give: {REMEDY}"
            )

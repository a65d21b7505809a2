"""What a run's database looks like, and how a dataclass becomes a table."""

import math
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from spo_jax.program import Pair, Program
from spo_jax.runs.database.table import Stored, Table
from spo_jax.runs.database.tables import DIGESTS, SCHEMA, SCHEMA_VERSION, TABLES, TIMINGS

# Format 5: name and type of each column, ! for NOT NULL, and its place in the primary key. By
# these databases of earlier versions are read, and equal runs have equal ones.
FORMAT = {
    "programs": (
        "id TEXT 1, round INTEGER!, role TEXT!, digest TEXT!, condition TEXT!, form TEXT!, "
        "parents TEXT!, strategy TEXT!, source TEXT!, derivation TEXT!, name TEXT!"
    ),
    "pairs": (
        "destroy TEXT! 1, repair TEXT! 2, round INTEGER!, kind TEXT!, status TEXT!, utility "
        "REAL, reason TEXT!, role TEXT!, scores TEXT!; WITHOUT ROWID"
    ),
    "rounds": (
        "round INTEGER 1, destroy_answers INTEGER!, destroys INTEGER!, valid_destroys "
        "INTEGER!, repair_answers INTEGER!, repairs INTEGER!, valid_repairs INTEGER!, pairs "
        "INTEGER!, reused INTEGER!, top REAL, median REAL, best_utility REAL, best_round "
        "INTEGER, best_destroy TEXT, best_repair TEXT, metrics TEXT!"
    ),
    "members": (
        "round INTEGER! 1, role TEXT! 2, rank INTEGER! 3, program TEXT!, score REAL!, born "
        "INTEGER!; WITHOUT ROWID"
    ),
    "credits": (
        "round INTEGER! 1, role TEXT! 2, row INTEGER! 3, slot INTEGER! 4, program TEXT!, "
        "utility REAL, credit REAL, selection REAL; WITHOUT ROWID"
    ),
    "cross_play": (
        "round INTEGER! 1, row INTEGER! 2, slot INTEGER! 3, destroy TEXT!, repair TEXT!, "
        "utility REAL, score REAL; WITHOUT ROWID"
    ),
    "prompts": (
        "round INTEGER! 1, role TEXT! 2, number INTEGER! 3, form TEXT!, parents TEXT!, "
        "destroy TEXT!, shortened TEXT!, text BLOB!"
    ),
    "samples": (
        "round INTEGER! 1, role TEXT! 2, prompt INTEGER! 3, place INTEGER! 4, digest TEXT!, "
        "credit REAL, advantage REAL; WITHOUT ROWID"
    ),
    "mends": (
        "round INTEGER! 1, role TEXT! 2, prompt INTEGER! 3, place INTEGER! 4, number INTEGER! "
        "5, wrong TEXT!, message TEXT!, status TEXT!, digest TEXT!; WITHOUT ROWID"
    ),
    "failures": (
        "round INTEGER! 1, number INTEGER! 2, subject TEXT!, status TEXT!, reason TEXT!, "
        "destroy TEXT!, repair TEXT!, text TEXT!; WITHOUT ROWID"
    ),
    "finalists": (
        "rank INTEGER 1, round INTEGER!, utility REAL!, destroy TEXT!, repair TEXT!, "
        "validation REAL, fresh REAL, kind TEXT!"
    ),
    "individuals": (
        "round INTEGER! 1, number INTEGER! 2, destroy TEXT!, repair TEXT!, utility REAL!, "
        "operator TEXT!, place INTEGER!, scores TEXT!; WITHOUT ROWID"
    ),
    "costs": (
        "round INTEGER!, kind TEXT! 1, destroy TEXT! 2, repair TEXT! 3, costs TEXT!; WITHOUT ROWID"
    ),
    "misfits": "round INTEGER!, destroy TEXT! 1, repair TEXT! 2, reason TEXT!; WITHOUT ROWID",
    "classical": "round INTEGER! 1, number INTEGER! 2, program TEXT!; WITHOUT ROWID",
    "asked": "round INTEGER! 1, number INTEGER! 2, destroy TEXT!, repair TEXT!; WITHOUT ROWID",
    "notes": "round INTEGER 1, text TEXT!",
    "config": "name TEXT! 1, value TEXT!; WITHOUT ROWID",
    "timings": "round INTEGER! 1, stage TEXT! 2, seconds REAL!; WITHOUT ROWID",
}


def looks(db):
    """Each table of a database as FORMAT has it."""
    found = {}
    for name, sql in db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'"):
        columns = [
            f"{column} {kind}{'!' * needed}{f' {place}' if place else ''}"
            for _, column, kind, needed, _, place in db.execute(f"PRAGMA table_info({name})")
        ]
        found[name] = ", ".join(columns) + "; WITHOUT ROWID" * sql.endswith(" WITHOUT ROWID")
    return found


def test_the_stored_format_is_what_it_was():
    db = sqlite3.connect(":memory:")
    db.executescript(SCHEMA)
    assert SCHEMA_VERSION == 5
    assert looks(db) == FORMAT | {"digests": "round INTEGER 1, digest TEXT!"}
    assert [table.name for table in (*TABLES, TIMINGS, DIGESTS)] == list(looks(db))
    indices = "SELECT name, tbl_name FROM sqlite_schema WHERE type = 'index' AND sql NOT NULL"
    assert db.execute(indices).fetchall() == [("programs_by_digest", "programs")]
    for table in (*TABLES, TIMINGS, DIGESTS):
        known = {name for _, name, *_ in db.execute(f"PRAGMA table_info({table.name})")}
        assert known == set(table.columns)


# --- any dataclass --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Inner:
    low: float
    high: float | None


@dataclass(frozen=True)
class Thing:
    name: str
    kind: Literal["a", "b"]
    inner: Inner
    born: int
    data: bytes
    parts: tuple[str, ...]
    known: Mapping[str, float]
    more: Any
    word: str | None = None
    unkept: int = 7


@dataclass(frozen=True)
class Short:
    title: str
    high: float | None
    born: int
    other: str = "none"


THINGS = Table(
    "things", Thing, "round born", "round born name kind low high data parts known more word",
    types={"round": int}, called={"title": "name"}, finite="low",
)  # fmt: skip


@pytest.fixture
def db():
    db = sqlite3.connect(":memory:")
    db.executescript(THINGS.ddl)
    return db


def thing(**changes):
    known = {"x": 0.5, "y": 2.0}
    values = {"name": "n", "kind": "a", "inner": Inner(0.5, None), "born": 1, "data": b"\0\xff",
              "parts": ("p", "q"), "known": known, "more": [1, None]}  # fmt: skip
    return Thing(**(values | changes))


def test_what_is_written_is_what_is_read(db):
    both = [thing(), thing(born=2, inner=Inner(-1e300, 0.0), word="w", parts=(), known={})]
    THINGS.insert(db, both, round=3)
    assert THINGS.select(db) == both
    assert THINGS.select(db, "word = ?", "w") == both[1:]
    assert THINGS.of(Short).select(db, order="born DESC") == [
        Short("n", 0.0, 2),
        Short("n", None, 1),
    ]
    assert db.execute("SELECT round, parts, known FROM things WHERE born = 1").fetchall() == [
        (3, '["p", "q"]', '{"x": 0.5, "y": 2.0}')
    ]


def test_nan_is_null_and_surrogates_are_escaped(db):
    THINGS.insert(db, [thing(name="\ud800", known={"x": math.nan, "y": math.inf})], round=1)
    [found] = THINGS.select(db)
    assert found.name == "\\ud800"
    assert all(math.isnan(value) for value in found.known.values())
    with pytest.raises(sqlite3.IntegrityError, match=r"NOT NULL .*low"):
        THINGS.insert(db, [thing(born=2, inner=Inner(math.nan, None))], round=1)


def test_rows_are_numbered_where_nothing_says_otherwise(db):
    few = Table("few", Bare, "number", "number shape", types={"number": int}, rowid=True)
    db.executescript(few.ddl)
    few.insert(db, [Bare("n"), Bare("m")])
    assert db.execute("SELECT * FROM few").fetchall() == [(0, "n"), (1, "m")]
    assert few.select(db, order="number DESC") == [Bare("m"), Bare("n")]


def test_a_row_that_is_replaced_tells_its_round(db):
    assert THINGS.insert(db, [thing()], round=1, replace=True) == set()
    with pytest.raises(sqlite3.IntegrityError):
        THINGS.insert(db, [thing()], round=1)
    alone = Table("things", Thing, "born", " ".join(THINGS.columns), types={"round": int})
    db.execute("DROP TABLE things")
    db.executescript(alone.ddl)
    assert alone.insert(db, [thing(), thing(born=2)], round=1, replace=True) == set()
    assert alone.insert(db, [thing(name="m")], round=5, replace=True) == {1}
    assert [each.name for each in alone.select(db)] == ["m", "n"]


def test_what_refers_to_an_object_brings_it_back():
    looked = []

    def look(db, key):
        looked.append(key)
        return Program("destroy" if key == "d" else "repair", key)

    by_source = {Program: Stored("TEXT", lambda program: program.source, look, refers=True)}
    pairs = Table("pairs", Pair, "destroy repair", refers=by_source)
    db = sqlite3.connect(":memory:")
    db.executescript(pairs.ddl)
    both = [Pair(Program("destroy", "d"), Program("repair", r)) for r in ("r", "s")]
    pairs.insert(db, both)
    assert pairs.select(db) == both
    assert sorted(looked) == ["d", "r", "s"]  # each once


@pytest.mark.parametrize(
    ("column", "value"),
    [("name", b"x"), ("born", "x"), ("low", "x"), ("parts", "["), ("parts", "3"), ("known", "[]"),
     ("more", "[" * 100_000)],
)  # fmt: skip
def test_a_value_that_nobody_wrote_is_one_error(db, column, value):
    THINGS.insert(db, [thing()], round=1)
    db.execute(f"UPDATE things SET {column} = ?", (value,))
    with pytest.raises(sqlite3.DataError, match="table things has a value that cannot be read"):
        THINGS.select(db)


def test_a_table_that_an_older_database_lacks_is_empty():
    later = Table("later", Inner, "low", later=True)
    db = sqlite3.connect(":memory:")
    later.insert(db, [Inner(0.0, 1.0)])
    assert later.select(db) == []
    assert not later.exists(db)


def test_what_has_no_column_is_reported():
    with pytest.raises(TypeError, match=r"things has no column for Bare\.shape"):
        THINGS.of(Bare)
    with pytest.raises(TypeError, match="no column holds a"):
        Table("odd", Odd, "x")


@dataclass(frozen=True)
class Bare:
    shape: str


@dataclass(frozen=True)
class Odd:
    x: set[int]

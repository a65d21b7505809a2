"""A table of the database, declared by the dataclass of its rows: DDL, insert and select follow."""

import json
import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, partial
from operator import attrgetter
from types import NoneType
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

Row = TypeVar("Row")
T = TypeVar("T")
# By field: its column and `Stored`, or the dataclass in it and the plan of that.
Plan = dict[str, tuple[Any, Any]]


@dataclass(frozen=True)
class Stored:
    """How the values of a type are stored.

    sql: the type of the column. write, read: to the database and back; `read` raises TypeError or
    ValueError for what `write` never gives. needed: whether there is no NULL among them. refers:
    whether `read` looks up what the value stands for, so that it is given the connection before it.
    """

    sql: str
    write: Callable[[Any], Any]
    read: Callable[..., Any]
    needed: bool = True
    refers: bool = False


class Table(Generic[Row]):
    """A table, and how objects become its rows and come back.

    kind: a dataclass, whose fields are the columns.
    key: the columns of the primary key. columns: all of them, where they are not the fields in
        their order. In place of a field that is no column and holds a dataclass stand that one's.
    types: of columns that are no fields, or not stored as the field's type. called: columns of
        fields with another name. refers: how dataclasses are stored that are one value.
    finite: columns of floats that are never NaN. rowid: False for WITHOUT ROWID. index: a column
        with an index of its own. later: whether a database of an earlier version may lack the
        table; it is read as an empty one there, and nothing is inserted.
    """

    def __init__(
        self,
        name: str,
        kind: type[Row],
        key: str,
        columns: str = "",
        *,
        types: Mapping[str, type] | None = None,
        called: Mapping[str, str] | None = None,
        refers: Mapping[type, Stored] | None = None,
        finite: str = "",
        rowid: bool = False,
        index: str = "",
        later: bool = False,
    ):
        self.name, self.kind, self.key, self.later = name, kind, tuple(key.split()), later
        self._types, self._called, self._refers = types or {}, called or {}, refers or {}
        names = [self._called.get(name, name) for name in get_type_hints(kind)]
        self.columns = tuple(columns.split() or names)
        self._plan: Callable[[Any], Plan] = cache(self._planned)
        leaves = {column: (path, how) for path, column, how in _leaves(self._planned(kind))}
        self._paths = {column: attrgetter(path) for column, (path, _) in leaves.items()}
        self._hows = {c: leaves[c][1] if c in leaves else self._how(c) for c in self.columns}
        lines = []
        for column, how in self._hows.items():
            rule = " NOT NULL" * (how.needed or column in finite.split())
            lines.append(f"{column} {how.sql}{' PRIMARY KEY' if self.key == (column,) else rule}")
        if len(self.key) > 1:
            lines.append(f"PRIMARY KEY ({', '.join(self.key)})")
        self.ddl = f"CREATE TABLE {name} ({', '.join(lines)}){'' if rowid else ' WITHOUT ROWID'};"
        if index:
            self.ddl += f"\nCREATE INDEX {name}_by_{index} ON {name} ({index});"

    def exists(self, db: sqlite3.Connection) -> bool:
        """Whether a database has it."""
        which = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"
        return db.execute(which, (self.name,)).fetchone() is not None

    def insert(
        self, db: sqlite3.Connection, rows: Iterable[Any], *, replace: bool = False, **given: Any
    ) -> set[int]:
        """Add rows. Returns the rounds of those that they replace.

        rows: objects with the fields of `kind`. given: values that all rows have in common, by
        column. A column that has neither is the number of the row, from 0 on.
        """

        def value(column: str, row: Any, number: int) -> Any:
            if column in given:
                return given[column]
            return self._paths[column](row) if column in self._paths else number

        values = [
            [how.write(value(column, row, number)) for column, how in self._hows.items()]
            for number, row in enumerate(rows)
        ]
        if not values or (self.later and not self.exists(db)):
            return set()
        old: set[int] = set()
        if replace:
            places = [self.columns.index(column) for column in self.key]
            same = " AND ".join(f"{column} = ?" for column in self.key)
            query = f"SELECT round FROM {self.name} WHERE {same}"
            old = {k for row in values for (k,) in db.execute(query, [row[p] for p in places])}
        how, marks = "INSERT OR REPLACE" if replace else "INSERT", ", ".join("?" * len(values[0]))
        db.executemany(f"{how} INTO {self.name} VALUES ({marks})", self.packed(values))
        return old

    def of(self, kind: type[T]) -> "Table[T]":
        """The same table with rows of another dataclass: its fields are columns or have defaults.

        Raises TypeError for a field that is neither.
        """
        self._plan(kind)
        view: Any = copy(self)
        view.kind = kind
        return view

    def select(
        self, db: sqlite3.Connection, where: str = "", *given: Any, order: str = ""
    ) -> list[Row]:
        """Rows as objects, in the order of the primary key or another one.

        where: a condition with the parameters `given`. Raises sqlite3.DataError for a value that
        nobody wrote with `insert`.
        """
        if self.later and not self.exists(db):
            return []
        plan = self._plan(self.kind)
        rows = db.execute(
            f"SELECT {', '.join(column for _, column, _ in _leaves(plan))} FROM {self.name}"
            f" {where and f'WHERE {where}'} ORDER BY {order or ', '.join(self.key)}",
            given,
        ).fetchall()
        # What many rows refer to is looked up once.
        refers = {how: cache(partial(how.read, db)) for how in self._refers.values()}
        try:
            return [_made(self.kind, plan, iter(row), refers) for row in self.unpacked(rows)]
        except (AttributeError, TypeError, ValueError, RecursionError):
            message = f"the table {self.name} has a value that cannot be read"
            raise sqlite3.DataError(message) from None

    def packed(self, rows: list[list[Any]]) -> list[list[Any]]:
        """Rows as they are stored: for a table that packs some values."""
        return rows

    def unpacked(self, rows: list[Any]) -> Iterable[Any]:
        """The inverse of `packed`."""
        return rows

    def _how(self, column: str, hint: Any = None) -> Stored:
        return self._refers.get(hint) or stored(self._types.get(column, hint))

    def _planned(self, kind: type) -> Plan:
        hints = get_type_hints(kind)
        plan: Plan = {}
        for field in fields(kind):
            hint, column = hints[field.name], self._called.get(field.name, field.name)
            if column in self.columns:
                plan[field.name] = (column, self._how(column, hint))
            elif is_dataclass(hint):
                plan[field.name] = (hint, self._planned(hint))  # type: ignore[arg-type]
            elif field.default is MISSING:
                raise TypeError(f"{self.name} has no column for {kind.__name__}.{field.name}")
        return plan


def _leaves(plan: Plan, within: str = "") -> Iterator[tuple[str, str, Stored]]:
    """Path, column and way of storing of each field that is a column."""
    for name, (what, how) in plan.items():
        if isinstance(how, Stored):
            yield within + name, what, how
        else:
            yield from _leaves(how, f"{within}{name}.")


def _made(kind: Any, plan: Plan, row: Iterator[Any], refers: Mapping[Any, Any]) -> Any:
    """An object of a dataclass, from the next values of a row."""
    values = {}
    for name, (what, how) in plan.items():
        if isinstance(how, Stored):
            values[name] = refers[how](next(row)) if how.refers else how.read(next(row))
        else:
            values[name] = _made(what, how, row, refers)
    return kind(**values)


# --- types ----------------------------------------------------------------------------------------


@cache
def stored(hint: Any) -> Stored:
    """How values of a type are stored. Raises TypeError for a type that has no column."""
    what, inner = get_origin(hint) or hint, get_args(hint)
    if NoneType in inner:
        some = stored(next(each for each in inner if each is not NoneType))
        return Stored(some.sql, _or_none(some.write), _or_none(some.read), needed=False)
    if what in (str, Literal):
        return Stored("TEXT", lambda text: as_bytes(text).decode(), partial(_only, str))
    if what is int:
        return Stored("INTEGER", _same, partial(_only, int))
    if what is bytes:
        return Stored("BLOB", _same, _same)
    if what is float:
        return Stored("REAL", _number, _or_nan, needed=False)
    if what is tuple:
        return Stored("TEXT", json.dumps, lambda text: tuple(json.loads(text)))
    if what is Mapping:
        return Stored("TEXT", _numbers, lambda text: _each(_or_nan, json.loads(text)))
    if what is Any:
        return Stored("TEXT", json.dumps, json.loads)
    raise TypeError(f"no column holds a {hint}")


def as_bytes(text: str) -> bytes:
    """UTF-8 of a text, and of what an answer may have besides: unpaired surrogates."""
    return text.encode("utf-8", "backslashreplace")


def _same(value: Any) -> Any:
    return value


def _only(kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError
    return value


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _or_nan(value: Any) -> float:
    if value is not None and math.isinf(value):
        raise ValueError
    return math.nan if value is None else float(value)


def _or_none(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else change(value)


def _numbers(values: Mapping[str, float]) -> str:
    known = _each(lambda value: value if math.isfinite(value) else None, values)
    return json.dumps(known, sort_keys=True)


def _each(change: Callable[[Any], Any], values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: change(value) for name, value in values.items()}

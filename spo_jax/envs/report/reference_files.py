"""Files of reference costs: those of the package, and custom ones.

A row is the cost of one instance, identified by its name or, better, by the digest of its content.
CSV has a header with some of FIELDS; JSON is a list of objects with such keys, or one object of
names and costs. The package's own values are looked up by digest alone, so that they cannot apply
to instances that are generated differently.
"""

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from spo_jax.envs.files.textfiles import csv_text, load_json, read_text, shown, write_atomically
from spo_jax.envs.problem import Instance, Problem
from spo_jax.errors import InputError

FIELDS = ("problem", "name", "digest", "cost", "certified", "effort", "source")

_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False, "": False}


@dataclass(frozen=True)
class Row:
    """One reference; a text that the file does not give is empty.

    certified: whether `cost` is proven optimal. effort: one of `references.EFFORTS`. source: the
    solver with its version and settings. where: the file and the line.
    """

    problem: str
    name: str
    digest: str
    cost: float
    certified: bool = False
    effort: str = ""
    source: str = ""
    where: str = ""


class ReferenceFile:
    """The rows of one file."""

    def __init__(self, label: str, rows: Sequence[Row]):
        self.label, self.rows = label, tuple(rows)
        self._by_digest: dict[str, Row] = {}
        self._by_name: dict[tuple[str, str], Row] = {}
        shared = set()  # names of several instances, as of files in different folders
        for row in rows:
            if row.digest:
                _add(self._by_digest, row.digest, row)
            twin = self._by_name.get((row.problem, row.name))
            if twin is not None and row.digest and twin.digest:
                shared.add((row.problem, row.name))
            elif row.name:
                _add(self._by_name, (row.problem, row.name), row)
        for name in shared:  # which only digests tell apart
            del self._by_name[name]

    def by_digest(self, instance: Instance) -> Row | None:
        return self._by_digest.get(instance.digest)

    def find(self, problem: Problem, instance: Instance) -> Row | None:
        """The row of `instance`, by digest or by name.

        Raises InputError if the row belongs to another instance: its digest differs, or its cost is
        better than that of any solution.
        """
        row = self.by_digest(instance)
        for named in (instance.problem, ""):
            row = row or self._by_name.get((named, instance.name))
        if row is None:
            return None
        if row.digest not in ("", instance.digest):
            raise InputError(
                f"{row.where}: the digest is of another instance than the {instance.name} that is "
                f"evaluated, whose digest is {instance.digest}: correct or remove the row"
            )
        if problem.turned(row.cost) < least(problem, instance):
            bound = problem.lower_bound(instance)
            less, at = ("more", "most") if problem.maximise else ("less", "least")
            raise InputError(
                f"{row.where}: {row.cost:.9g} is {less} than any solution of {instance.name} costs "
                f"(at {at} {bound:.9g}): it is of another instance or in another unit"
            )
        return row


def read_references(path: str | Path) -> ReferenceFile:
    """The references in a .json or a CSV file. Raises InputError."""
    path = Path(path)
    records = _json_records(path) if path.suffix.lower() == ".json" else _csv_records(path)
    rows = [_row(where, record) for where, record in records]
    if not rows:
        raise InputError(f"{path} has no references")
    return ReferenceFile(path.name, rows)


def least(problem: Problem, instance: Instance) -> float:
    """The problem's bound, less rounding, of what is minimised."""
    bound = float(problem.turned(problem.lower_bound(instance)))
    return bound - 1e-9 * abs(bound) if math.isfinite(bound) else -math.inf


def shipped(problem: Problem) -> ReferenceFile:
    """The references in a problem's package; may be empty."""
    return _shipped(problem.references)


@cache
def _shipped(path: str) -> ReferenceFile:
    return read_references(path) if path else ReferenceFile("", ())


def write_references(path: str | Path, rows: Iterable[Row]) -> None:
    """A CSV file that `read_references` reads. Raises InputError."""
    lines = []
    for row in rows:
        values = dict(zip(Row.__dataclass_fields__, astuple(row), strict=True))
        values |= {"cost": repr(row.cost), "certified": "yes" if row.certified else "no"}
        lines.append([values[field] for field in FIELDS])
    write_atomically(path, csv_text(FIELDS, lines))


# --- reading --------------------------------------------------------------------------------------


def _add(rows: dict[Any, Row], key: Any, row: Row) -> None:
    if key in rows:
        named = row.name or row.digest
        raise InputError(f"{row.where}: {named} was already given in {rows[key].where}")
    rows[key] = row


def _csv_records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    reader = csv.reader(io.StringIO(read_text(path)), strict=True)
    try:
        header = [word.strip().lower() for word in next(reader)]
        wrong = [word for word in header if word not in FIELDS]
        if wrong or len(set(header)) < len(header):
            raise InputError(
                f"{path}: the first line names the columns, each one of {', '.join(FIELDS)}"
                + (f", not {shown(wrong[0])}" if wrong else ", none twice")
            )
        for words in reader:
            where = f"{path}, line {reader.line_num}"
            if not any(word.strip() for word in words):
                continue
            if len(words) != len(header):
                _fail(where, f"expected {len(header)} columns, not {len(words)}")
            yield where, dict(zip(header, (word.strip() for word in words), strict=True))
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}") from None


def _json_records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    value = load_json(path)
    if isinstance(value, dict):
        value = [
            {"name": name, **(known if isinstance(known, dict) else {"cost": known})}
            for name, known in value.items()
        ]
    if not isinstance(value, list):
        raise InputError(f"{path} is neither a list of references nor an object of names and costs")
    for number, record in enumerate(value, 1):
        where = f"{path}, reference {number}"
        if not isinstance(record, dict):
            _fail(where, f"expected an object, not {shown(str(record))}")
        for key in record:
            if key not in FIELDS:
                _fail(where, f"unknown key {shown(str(key))}: use {', '.join(FIELDS)}")
        yield where, record


def _row(where: str, record: dict[str, Any]) -> Row:
    texts = {}
    for field in ("problem", "name", "digest", "effort", "source"):
        value = record.get(field, "")
        if not isinstance(value, str):
            _fail(where, f"{field} must be a text, not {shown(str(value))}")
        texts[field] = value
    if not texts["name"] and not texts["digest"]:
        _fail(where, "give the name or the digest of the instance")
    if texts["digest"] and not re.fullmatch(r"[0-9a-f]{32}", texts["digest"]):
        _fail(where, f"a digest is 32 of the characters 0-9a-f, not {shown(texts['digest'])}")
    return Row(
        **texts,
        cost=_cost(where, record.get("cost", "")),
        certified=_certified(where, record.get("certified", "")),
        where=where,
    )


def _cost(where: str, value: Any) -> float:
    try:
        cost = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        cost = math.nan
    if not math.isfinite(cost):
        _fail(where, f"cost must be a number that is finite, not {shown(str(value))}")
    return cost


def _certified(where: str, value: Any) -> bool:
    known = _WORDS.get(str(value).lower())
    if known is None:
        _fail(where, f"certified is yes or no, not {shown(str(value))}")
    return known


def _fail(where: str, message: str) -> NoReturn:
    raise InputError(f"{where}: {message}")

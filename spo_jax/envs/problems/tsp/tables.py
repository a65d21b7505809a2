"""CSV files of places, or of the distances between them: how people without a .tsp file have them.

A table of places has a header with the columns x and y, or lat and lon, and perhaps an id and
other columns; a matrix has one row and one column for each node, with or without names. Columns
are separated by commas, semicolons or tabs. Each error is one sentence with file and line. The
reader of the CVRP's tables builds on this one.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.tsp.matrices import checked
from spo_jax.envs.problems.tsp.weights import Weights, great_circle, weights_by, weights_of
from spo_jax.envs.reading import AS_STATED, Reading
from spo_jax.envs.shared_arrays import empty
from spo_jax.envs.textfiles import MAX_NODES, not_a_number, read_text, shown
from spo_jax.errors import InputError

# What a column may be called, in lower case.
_COLUMNS = {
    "id": ("id", "name", "node", "city", "customer", "stop", "label"),
    "x": ("x", "x_coord", "xcoord"),
    "y": ("y", "y_coord", "ycoord"),
    "lat": ("lat", "latitude"),
    "lon": ("lon", "lng", "long", "longitude"),
    "demand": ("demand", "demands"),
    "capacity": ("capacity",),
}
_MEANING = {word: column for column, words in _COLUMNS.items() for word in words}
_PLACES = "x and y, or lat and lon"
NO_REFERENCE = "none: a CSV file brings none"


@dataclass(frozen=True, eq=False)
class Table:
    """The N nodes of a file, in its order.

    lines: where they stand. names: their ids or labels, or None. coords: [N, 2] float64, x and y or
    longitude and latitude in degrees; or matrix: [N, N] float64. columns: the words of "demand" and
    "capacity", if they are there. unused: names of other columns.
    """

    path: Path
    lines: list[int]
    names: list[str] | None
    coords: np.ndarray | None = None
    geographic: bool = False
    matrix: np.ndarray | None = None
    columns: dict[str, list[str]] = field(default_factory=dict)
    unused: tuple[str, ...] = ()

    def fail(self, message: str, line: int | None = None) -> NoReturn:
        _fail(self.path, message, line)

    def weights(self, distances: str) -> Weights:
        """Straight lines, great circles in kilometres, or the matrix; rounded only on request."""
        if self.matrix is not None:
            return weights_of(self.matrix, distances)
        assert self.coords is not None
        return weights_by(self.coords, great_circle if self.geographic else None, distances)

    def file(self, found: Weights, distances: str, used: Sequence[str] = ()) -> dict[str, Any]:
        """What an instance keeps of the file. used: the columns beside the places that count."""
        names = self.names or []
        whole = all(name.isdecimal() and len(name) < 16 for name in names)
        ids = [int(name) for name in names] if names and whole else []
        file: dict[str, Any] = {"ids": ids or list(range(1, len(self.lines) + 1))}
        remarks = found.remarks(f"--distances {distances}")
        if self.names is not None and not ids:
            file["names"] = self.names
            remarks.append("nodes have the numbers of their rows, from 1")
        if self.geographic:
            file["degrees"] = self.coords
            remarks.append("distances are great circles in kilometres")
        unused = [*self.unused, *(column for column in self.columns if column not in used)]
        if unused:
            remarks.append(f"not used: the columns {', '.join(map(shown, unused))}")
        if remarks:
            file["remarks"] = remarks
        return file


def read_table(path: str | Path) -> Table:
    """The nodes of a CSV file, at least three. Raises InputError."""
    path = Path(path)
    rows = _rows(path)
    header = [word.lower() for word in rows[0][1]]
    if {"x", "y", "lat", "lon"} & {_MEANING.get(word) for word in header}:
        return _places(path, rows, header)
    return _matrix(path, rows)


def read(path: str | Path, reading: Reading = AS_STATED) -> Instance:
    """A TSP instance of a table of places or a matrix. Raises InputError."""
    table = read_table(path)
    found = table.weights(reading.distances)
    return Instance(
        problem="tsp",
        name=table.path.stem,
        size=len(table.lines),
        coords=table.coords,  # type: ignore[arg-type]
        dist=found.dist,
        symmetric=found.symmetric,
        reference_source=NO_REFERENCE,
        file=table.file(found, reading.distances),
    )


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """(line, words) of every row, but of empty ones and of comments."""
    text = read_text(path)
    head = next(line for line in text.splitlines() if line.strip())
    delimiter = next((each for each in "\t;" if each in head), ",")
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    rows: list[tuple[int, list[str]]] = []
    try:
        for row in reader:
            words = [word.strip() for word in row]
            if any(words) and not words[0].startswith("#"):
                rows.append((reader.line_num, words))
            if len(rows) > MAX_NODES + 1:
                _fail(path, f"a table of more than {MAX_NODES} nodes is not read")
    except csv.Error as error:
        _fail(path, f"this is no CSV: {error}", reader.line_num)
    if not rows:
        _fail(path, "there are no rows")
    for line, words in rows:
        if len(words) != len(rows[0][1]):
            first = f"where line {rows[0][0]} has {len(rows[0][1])}"
            _fail(path, f"the row has {len(words)} columns, {first}", line)
    return rows


def _places(path: Path, rows: list[tuple[int, list[str]]], header: list[str]) -> Table:
    place: dict[str, int] = {}
    unused = []
    for k, word in enumerate(header):
        column = _MEANING.get(word)
        if column is None or (column == "id" and column in place):
            unused.append(rows[0][1][k])
        elif column in place:
            _fail(path, f"two columns are called {column}", rows[0][0])
        else:
            place[column] = k
    axes = ("x", "y") if {"x", "y"} & place.keys() else ("lon", "lat")
    for axis in axes:
        if axis not in place:
            _fail(path, f"there is no column {axis}: name {_PLACES}", rows[0][0])
    geographic = axes[0] == "lon"
    if not geographic:
        unused += [rows[0][1][place[axis]] for axis in ("lat", "lon") if axis in place]
    body = rows[1:]
    _require_three(path, len(body))
    coords = np.array(
        [[_number(path, words[place[axis]], axis, line) for axis in axes] for line, words in body]
    )
    lines = [line for line, _ in body]
    if geographic:
        for line, (lon, lat) in zip(lines, coords.tolist(), strict=True):
            if not (-90 <= lat <= 90 and -180 <= lon <= 180):
                said = f"lat {lat:g}, lon {lon:g} is no place on earth: lat is from -90 to 90"
                _fail(path, f"{said}, lon from -180 to 180", line)
    words_of = {name: [words[k] for _, words in body] for name, k in place.items()}
    names = words_of.get("id")
    _require_distinct(path, names, lines)
    columns = {name: words for name, words in words_of.items() if name in ("demand", "capacity")}
    return Table(path, lines, names, coords, geographic, None, columns, tuple(unused))


def _matrix(path: Path, rows: list[tuple[int, list[str]]]) -> Table:
    first = rows[0][1]
    labelled = any(not_a_number(word) for word in first)
    columns: dict[str, list[str]] = {}
    names = None
    body = rows
    if labelled:
        body = rows[1:]
        while first and _MEANING.get(first[-1].lower()) in ("demand", "capacity"):
            columns[first[-1].lower().removesuffix("s")] = [words[-1] for _, words in body]
            body = [(line, words[:-1]) for line, words in body]
            first = first[:-1]
        names = first
        if len(first) == len(body) + 1:  # a column of names, too
            names = [words[0] for _, words in body]
            if first[1:] != names:
                k = next(k for k in range(len(names)) if first[k + 1] != names[k])
                message = f"the row is of {shown(names[k])}, the column of {shown(first[k + 1])}"
                _fail(path, f"{message}: a matrix has its nodes in one order", body[k][0])
            body = [(line, words[1:]) for line, words in body]
    n = len(body)
    if n and len(body[0][1]) != n:
        _fail(
            path,
            f"{n} rows of {len(body[0][1])} columns are no square matrix, and no header names "
            f"{_PLACES}",
        )
    _require_three(path, n)
    lines = [line for line, _ in body]
    _require_distinct(path, names, lines)
    called = names or [str(k) for k in range(1, n + 1)]
    dist = empty((n, n))
    for k, (line, words) in enumerate(body):
        for j, word in enumerate(words):
            if word or j != k or not labelled:
                dist[k, j] = _number(path, word, f"the distance to {called[j]}", line)
            else:
                dist[k, j] = 0.0
        if dist[k, k] != 0:
            _fail(path, f"the distance of {called[k]} to itself is {words[k]}, not 0", line)

    def refuse(message: str) -> NoReturn:
        _fail(path, message)

    matrix = checked(dist, called, refuse)
    return Table(path, lines, names, None, False, matrix, columns)


def _number(path: Path, word: str, what: str, line: int) -> float:
    wrong = not_a_number(word) if word else "is missing"
    if wrong:
        hint = ": decimals have a point" if word.count(",") == 1 else ""
        _fail(path, f"{what} {wrong}{hint}", line)
    return float(word)


def _require_three(path: Path, n: int) -> None:
    if n < 3:
        _fail(path, f"there are {n} rows of nodes, but at least 3 nodes are needed")


def _require_distinct(path: Path, names: Sequence[str] | None, lines: Sequence[int]) -> None:
    seen: dict[str, int] = {}
    for name, line in zip(names or (), lines, strict=False):
        if not name:
            _fail(path, "the id is missing", line)
        if name in seen:
            _fail(path, f"{shown(name)} was already used in line {seen[name]}", line)
        seen[name] = line


def _fail(path: Path, message: str, line: int | None = None) -> NoReturn:
    raise InputError(f"{path}: {message}" if line is None else f"{path}, line {line}: {message}")

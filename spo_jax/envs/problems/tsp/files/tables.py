"""CSV files of places, or of the distances between them: how people without a .tsp file have them.

A table of places has a header with the columns x and y, or lat and lon, and perhaps an id and
other columns; a matrix has one row and one column for each node, with or without names. Each error
is one sentence with file, line and column. The reader of the CVRP's tables builds on this one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from spo_jax.envs.files.reading import AS_STATED, Reading
from spo_jax.envs.files.textfiles import MAX_COORDINATE, not_a_number, shown
from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.tsp.files.matrices import checked
from spo_jax.envs.problems.tsp.files.sheets import Cells, Sheet, is_gap, listed, sheet
from spo_jax.envs.problems.tsp.files.weights import Weights, great_circle, weights_by, weights_of
from spo_jax.envs.shared_arrays import empty

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
_ENDS = {"from", "to", "origin", "destination", "source", "target"}  # of a list of ways
_TOTALS = {"total", "totals", "sum", "sums", "grand total", "average", "mean", "count"}
_TOTALS |= {"summe", "gesamt", "gesamtsumme", "somme", "totale", "suma"}
_ZERO = ("", "0", "0.0", "0.00")  # on the diagonal of a matrix
_WHOLE = re.compile(r"[0-9]{1,15}")
_NUMERIC = re.compile(r"[+-]?\.?[0-9]")  # how a number begins, also one that is wrong
NO_REFERENCE = "none: a CSV file brings none"


@dataclass(frozen=True, eq=False)
class Table:
    """The N nodes of a file, in its order.

    lines: where they stand. names: their ids or labels, or None. coords: [N, 2] float64, x and y or
    longitude and latitude in degrees; or matrix: [N, N] float64. columns: the words of "demand" and
    "capacity", if they are there. unused: names of other columns. remarks: on how it is read.
    """

    sheet: Sheet
    lines: list[int]
    names: list[str] | None
    coords: np.ndarray | None = None
    geographic: bool = False
    matrix: np.ndarray | None = None
    columns: dict[str, list[str]] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        return self.sheet.path

    def fail(self, message: str, line: int | None = None) -> NoReturn:
        self.sheet.fail(message, line)

    def weights(self, distances: str) -> Weights:
        """Straight lines, great circles in kilometres, or the matrix; rounded only on request."""
        if self.matrix is not None:
            return weights_of(self.matrix, distances)
        assert self.coords is not None
        return weights_by(self.coords, great_circle if self.geographic else None, distances)

    def file(self, found: Weights, distances: str, used: Sequence[str] = ()) -> dict[str, Any]:
        """What an instance keeps of the file. used: the columns beside the places that count."""
        names = self.names or []
        whole = all(_WHOLE.fullmatch(name) and str(int(name)) == name for name in names)
        ids = [int(name) for name in names] if names and whole else []
        file: dict[str, Any] = {"ids": ids or list(range(1, len(self.lines) + 1))}
        remarks = [*self.remarks, *found.remarks(f"--distances {distances}")]
        if self.names is not None and not ids:
            file["names"] = self.names
            remarks.append("nodes have the numbers of their rows, from 1")
        if self.geographic:
            file["degrees"] = self.coords
            remarks.append("distances are great circles in kilometres")
        unused = [*self.unused, *(column for column in self.columns if column not in used)]
        if unused:
            remarks.append(f"not used: the columns {listed(unused, len(unused))}")
        if remarks:
            file["remarks"] = remarks
        return file


def read_table(path: str | Path) -> Table:
    """The nodes of a CSV file, at least two. Raises InputError."""
    found = sheet(path)
    _require_comments(found)
    header = [word.lower() for word in found.rows[0][1]]
    if len(_ENDS.intersection(header)) > 1:
        found.fail("a list of ways is not read: write them as a matrix", found.rows[0][0])
    axes = {"x", "y", "lat", "lon"}.intersection(_MEANING.get(word, "") for word in header)
    if axes and not _names_matrix(found, {"x", "y"} <= axes or {"lat", "lon"} <= axes):
        return _places(found, header)
    return _matrix(found)


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
        reference_source=NO_REFERENCE,
        file=table.file(found, reading.distances),
    )


def _require_comments(found: Sheet) -> None:
    """Raises InputError for a comment that is a row or a header: it is not left out unseen."""
    width = len(found.rows[0][1])
    for line, (first, *words) in found.comments:
        row = len(words) + 1 == width and any(is_gap(w) or not not_a_number(w) for w in words)
        heads = {_MEANING.get(word.lower().lstrip("# ")) for word in (first, *words)}
        if (width > 1 and row) or {"x", "y"} <= heads or {"lat", "lon"} <= heads:
            found.fail("this begins with # and has the columns of a row: is it a comment?", line)


def _names_matrix(found: Sheet, complete: bool) -> bool:
    """Whether a first row with a name such as LON is that of a matrix.

    complete: whether it has both columns of a place. Raises InputError where it may be either.
    """
    (top, first), body = found.rows[0], [words for _, words in found.rows[1:]]
    if first[1:] == [words[0] for words in body]:
        return True
    if len(body) != len(first) or any(words[k] not in _ZERO for k, words in enumerate(body)):
        return False
    if complete and not all(word.lower() in _MEANING for word in first):
        message = "it is unclear whether this row names columns of places or nodes of a matrix"
        found.fail(f"{message}: begin the rows of a matrix with names, too", top)
    return not complete


# --- places ---------------------------------------------------------------------------------------


def _places(found: Sheet, header: list[str]) -> Table:
    (top, titles), body = found.rows[0], found.rows[1:]
    place: dict[str, int] = {}
    unused = []
    for k, word in enumerate(header):
        column = _MEANING.get(word)
        if column is None or (column == "id" and column in place):
            unused.append(titles[k])
        elif column in place:
            found.fail(f"two columns are called {column}", top)
        else:
            place[column] = k
    axes = ("x", "y") if {"x", "y"} & place.keys() else ("lon", "lat")
    for axis in axes:
        if axis not in place:
            found.fail(f"there is no column {axis}: name {_PLACES}", top)
    geographic = axes[0] == "lon"
    if not geographic:
        unused += [titles[place[axis]] for axis in ("lat", "lon") if axis in place]
    _require_two(found, len(body))
    coords = np.array(
        [[found.number(words[place[axis]], axis, line) for axis in axes] for line, words in body]
    )
    lines = [line for line, _ in body]
    if geographic:
        for line, (lon, lat) in zip(lines, coords.tolist(), strict=True):
            if not (-90 <= lat <= 90 and -180 <= lon <= 180):
                message = f"lat {lat:g}, lon {lon:g} is no place on earth: lat is from -90 to 90"
                found.fail(f"{message}, lon from -180 to 180", line)
    words_of = {name: [words[k] for _, words in body] for name, k in place.items()}
    if _totals(body[-1][1], coords, words_of.get("demand", [])):
        found.fail("this looks like a row of totals, and not a place: remove it", lines[-1])
    names = words_of.get("id")
    _require_distinct(found, names, lines)
    columns = {name: words for name, words in words_of.items() if name in ("demand", "capacity")}
    return Table(found, lines, names, coords, geographic, None, columns, tuple(unused))


def _totals(last: list[str], coords: np.ndarray, demands: list[str]) -> bool:
    """Whether a spreadsheet's last row sums up those above: by its word, or by its numbers."""
    if any(word.lower().rstrip(":") in _TOTALS for word in last):
        return True
    if len(coords) < 6 or any(map(not_a_number, demands[1:])):
        return False
    columns = [*coords.T, np.array([word or 0 for word in demands], np.float64)]
    return all(np.isclose(each[-1], each[:-1].sum(), rtol=1e-12) for each in columns if len(each))


# --- matrices -------------------------------------------------------------------------------------


def _matrix(found: Sheet) -> Table:
    rows, columns = _loads(found)
    names, body, indent = _named(found, rows)
    n = len(body)
    if n and len(body[0][1]) != n:
        found.fail(
            f"{n} rows of {len(body[0][1])} columns are no square matrix, and no header names "
            f"{_PLACES}",
            rows[0][0],
        )
    _require_two(found, n)
    lines = [line for line, _ in body]
    _require_distinct(found, names, lines)
    called = names or [str(k) for k in range(1, n + 1)]
    dist = empty((n, n))
    for k, (line, words) in enumerate(body):
        if names and not words[k]:
            words[k] = "0"
        dist[k] = _distances(found, line, words, called, indent)
        if dist[k, k] != 0:
            found.fail(f"the distance of {called[k]} to itself is {words[k]}, not 0", line)
    matrix = checked(dist, called, found.fail)
    remarks: tuple[str, ...] = ()
    if names and any(map(_WHOLE.fullmatch, names)) and not _counted(names):
        remarks = (f"{listed(names)} of the first row and column are names of nodes",)
    return Table(found, lines, names, None, False, matrix, columns, (), remarks)


def _loads(found: Sheet) -> tuple[list[Cells], dict[str, list[str]]]:
    """The rows without the last columns that are demands or capacities, and these."""
    rows = list(found.rows)
    columns: dict[str, list[str]] = {}
    while rows[0][1] and (word := rows[0][1][-1].lower()) in _MEANING:
        if _MEANING[word] not in ("demand", "capacity"):
            break
        columns[_MEANING[word]] = [words[-1] for _, words in rows[1:]]
        rows = [(line, words[:-1]) for line, words in rows]
    return rows, columns


def _named(found: Sheet, rows: list[Cells]) -> tuple[list[str] | None, list[Cells], int]:
    """The names of nodes or None, the rows of distances, and how many columns come before these.

    A first row is names where all of it is, with or without a corner. Otherwise it is distances,
    and a word in it is one that is wrong: it is never left out.
    """
    (top, first), below = rows[0], rows[1:]
    left = [words[0] for _, words in rows]
    corner = not is_gap(first[0]) and not _NUMERIC.match(first[0])
    words = [bool(word and not_a_number(word)) for word in first]
    if corner and len(first) == len(rows):
        if first[1:] == left[1:] and _are_names(left[1:]):
            body = [(line, cells[1:]) for line, cells in below]
            empty = all(not cells[k] for k, (_, cells) in enumerate(body))
            if empty and not first[0] and all(map(_WHOLE.fullmatch, first[1:])):
                message = "it is unclear whether the numbers of this row are names or distances"
                found.fail(f"{message}: write 0 on the diagonal", top)
            return first[1:], body, 1
        if all(words[1:]) and first[1:] != left[1:]:
            k = next(k for k in range(1, len(first)) if first[k] != left[k])
            message = f"the row is of {shown(left[k])}, the column of {shown(first[k])}"
            found.fail(f"{message}: a matrix has its nodes in one order", below[k - 1][0])
    if all(words) and not all(map(is_gap, first)):
        return first, below, 0
    # Names in the first column alone, or numbers that pandas gave to rows or columns.
    whole = [*map(_counted, (first, left))]
    if len(first) == len(rows) + 1 and (whole[1] or all(map(not_a_number, left))):
        return left, [(line, cells[1:]) for line, cells in rows], 1
    if len(first) == len(below) and whole[0]:
        return first, below, 0
    return None, rows, 0


def _are_names(words: list[str]) -> bool:
    """Whether a row can be names: words, whole numbers, and both where no word means a gap."""
    texts = [word for word in words if not _WHOLE.fullmatch(word)]
    if not all(text and not_a_number(text) for text in texts):
        return False
    return not any(map(is_gap, texts)) or (len(texts) == len(words) and not all(map(is_gap, texts)))


def _counted(names: list[str]) -> bool:
    """Whether names are 0, 1, 2, ... or 1, 2, 3, ..."""
    return any(names == [str(k + low) for k in range(len(names))] for low in (0, 1))


def _distances(
    found: Sheet, line: int, words: list[str], called: Sequence[str], indent: int
) -> np.ndarray:
    """The numbers of one row. indent: how many columns of the file come before them."""
    row = np.empty(len(words))
    try:
        row[:] = np.array(words, np.float64)
        good = bool((np.abs(row) <= MAX_COORDINATE).all()) and "_" not in ",".join(words)
    except ValueError:
        good = False
    if not good:
        for j, word in enumerate(words):
            what = f"the distance to {called[j]}"
            if is_gap(word) or re.fullmatch("[0-9]{13,}", word):  # as routers have it
                no_way = "where there is no way, write a length that no tour would take, as 1e6"
                found.fail(f"{what} {not_a_number(word)}: {no_way}", line, j + indent)
            row[j] = found.number(word, what, line, j + indent)
    return row


def _require_two(found: Sheet, n: int) -> None:
    if n < 2:
        found.fail(f"rows of nodes: {n}, but at least 2 are needed", found.rows[0][0])


def _require_distinct(found: Sheet, names: Sequence[str] | None, lines: Sequence[int]) -> None:
    seen: dict[str, int] = {}
    for name, line in zip(names or (), lines, strict=False):
        if not name:
            found.fail("the id is missing", line)
        if name in seen:
            found.fail(f"{shown(name)} was already used in line {seen[name]}", line)
        seen[name] = line

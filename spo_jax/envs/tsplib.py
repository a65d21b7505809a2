"""TSPLIB files: instances, tours, and the edge weights that the library defines.

Everything follows Reinelt, "TSPLIB - A traveling salesman problem library" (ORSA Journal on
Computing 3, 1991): integer edge weights in the convention that the file names, because recorded
optima hold only there. Layout is read tolerantly (white space, colons, a missing EOF line); what
the numbers say is checked strictly, and every complaint is one sentence with file and line.

The scanner and the reference look-up also serve `spo_jax.envs.cvrplib`, whose format is a dialect.
"""

import json
import math
import os
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.errors import InputError

MAX_BYTES = 64 * 2**20
MAX_NODES = 20_000  # a float64 matrix of 3.2 GB
MAX_COORDINATE = 1e12  # keeps every tour length far inside the integers that float64 holds

# --- edge weights -------------------------------------------------------------------------------

_PI, _EARTH = 3.141592, 6378.388  # TSPLIB's own constants; better ones would change the optima


def _nint(x: np.ndarray) -> np.ndarray:
    return np.floor(x + 0.5)


def _exact(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.sqrt((a[..., 0] - b[..., 0]) ** 2 + (a[..., 1] - b[..., 1]) ** 2)


def _att(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Pseudo-Euclidean: a scaled distance, rounded, then raised by one if that lowered it."""
    exact = np.sqrt(((a[..., 0] - b[..., 0]) ** 2 + (a[..., 1] - b[..., 1]) ** 2) / 10.0)
    rounded = _nint(exact)
    return rounded + (rounded < exact)


def _geo(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Great circles in kilometres; `a` and `b` are (latitude, longitude) in DDD.MM."""
    (lat_a, lon_a), (lat_b, lon_b) = (np.moveaxis(_radians(x), -1, 0) for x in (a, b))
    q1, q2, q3 = np.cos(lon_a - lon_b), np.cos(lat_a - lat_b), np.cos(lat_a + lat_b)
    angle = np.arccos(np.clip(0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3), -1.0, 1.0))
    return np.trunc(_EARTH * angle + 1.0)


def degrees(coords: np.ndarray) -> np.ndarray:
    """Decimal degrees of TSPLIB's DDD.MM: the integer part is degrees, the rest is minutes."""
    whole = np.trunc(coords)
    return whole + 5.0 * (coords - whole) / 3.0


def _radians(coords: np.ndarray) -> np.ndarray:
    return _PI * degrees(coords) / 180.0


_METRICS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "EUC_2D": lambda a, b: _nint(_exact(a, b)),
    "CEIL_2D": lambda a, b: np.ceil(_exact(a, b)),
    "ATT": _att,
    "GEO": _geo,
}
EDGE_WEIGHT_TYPES = tuple(_METRICS)


def euclidean(coords: np.ndarray) -> np.ndarray:
    """[N, N] float64 unrounded Euclidean distances of [N, 2] `coords`.

    Exactly symmetric with a zero diagonal: differences are squared, never expanded.
    """
    return _matrix(coords, _exact)


def distance_matrix(coords: np.ndarray, edge_weight_type: str) -> np.ndarray:
    """[N, N] float64 edge weights of [N, 2] `coords`, integers in TSPLIB's rounding.

    The diagonal is 0. Nodes that share coordinates are 0 apart, except under GEO, where they are 1.
    """
    return _matrix(coords, _METRICS[edge_weight_type])


def _matrix(
    coords: np.ndarray, metric: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    coords = np.asarray(coords, np.float64)
    n = len(coords)
    dist = np.empty((n, n))
    step = max(1, 2**18 // max(n, 1))  # blocks of rows, so that temporaries stay small
    for k in range(0, n, step):
        dist[k : k + step] = metric(coords[k : k + step, None, :], coords[None, :, :])
    np.fill_diagonal(dist, 0.0)
    return dist


# --- text files ---------------------------------------------------------------------------------


def read_text(path: str | Path) -> str:
    """The text of a regular file of at most 64 MB. Raises InputError."""
    path = Path(path)
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder, not a file")
        if not path.exists():
            raise InputError(f"{path} does not exist")
        if not path.is_file():
            raise InputError(f"{path} is not a regular file")
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{path} is larger than {MAX_BYTES // 2**20} MB")
        data = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot read {path}: {_why(error)}") from None
    if not data.strip():
        raise InputError(f"{path} is empty")
    if re.search(rb"[\x00-\x08\x0e-\x1f\x7f]", data):
        raise InputError(f"{path} is not a text file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")  # names and comments of old files


def write_atomically(path: str | Path, data: str | bytes) -> None:
    """Write a file whole or not at all: into a neighbour, then renamed. Raises InputError."""
    raw = data.encode() if isinstance(data, str) else data
    try:
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_bytes(raw)  # a pipe or a device is written to, never replaced
            return
        part = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}.part")
        try:
            part.write_bytes(raw)
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot write {path}: {_why(error)}") from None


def load_json(path: Path) -> Any:
    """The value in a JSON file. Raises InputError."""
    try:
        return json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError):
        raise InputError(f"{path} is not valid JSON") from None


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


# --- the scanner --------------------------------------------------------------------------------

_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_]*)\s*(?::\s*(.*))?")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)


@dataclass(frozen=True)
class Row:
    """One line of a section: its number in the file and its words."""

    line: int
    words: list[str]


@dataclass(frozen=True)
class Document:
    """A TSPLIB-like file, cut into fields (key -> line number, value) and sections of rows."""

    path: Path
    fields: dict[str, tuple[int, str]]
    sections: dict[str, list[Row]]

    def fail(self, message: str, line: int | None = None) -> NoReturn:
        where = f"{self.path}" if line is None else f"{self.path}, line {line}"
        raise InputError(f"{where}: {message}")

    def text(self, key: str) -> str:
        """A field's value. Raises InputError if it is missing or blank."""
        line, value = self.fields.get(key, (None, None))
        if not value:
            self.fail(f"{key} is missing", line)
        return value

    def section(self, key: str) -> list[Row]:
        """A section's rows. Raises InputError if it is missing or has none."""
        if key not in self.sections:
            self.fail(f"{key} is missing")
        if not self.sections[key]:
            self.fail(f"{key} is empty")
        return self.sections[key]

    def integer(self, word: str, what: str, line: int | None) -> int:
        """A whole number, which may be written as 100.0. Raises InputError."""
        if _INTEGER.fullmatch(word):
            return int(word)
        if _NUMBER.fullmatch(word) and float(word).is_integer() and abs(float(word)) < 2**53:
            return int(float(word))
        self.fail(f"{what} must be a whole number, not {_shown(word)}", line)

    def coordinate(self, word: str, line: int) -> float:
        """A finite number. Raises InputError."""
        if _NUMBER.fullmatch(word):
            value = float(word)
            if abs(value) <= MAX_COORDINATE:
                return value
            self.fail(f"coordinate {_shown(word)} is out of range (1e12 at most)", line)
        if _NOT_FINITE.fullmatch(word):
            self.fail(f"coordinate {word} is not a finite number", line)
        self.fail(f"coordinate {_shown(word)} is not a number", line)

    def dimension(self, least: int) -> int:
        """DIMENSION, at least `least` nodes. Raises InputError, before anything is allocated."""
        n = self.integer(self.text("DIMENSION"), "DIMENSION", self.fields["DIMENSION"][0])
        if n < least:
            self.fail(f"DIMENSION is {n}, but at least {least} nodes are needed")
        if n > MAX_NODES:
            self.fail(
                f"DIMENSION is {n}: the distance matrix would need {8e-9 * n * n:.3g} GB of memory "
                f"(at most {MAX_NODES} nodes are read)"
            )
        return n

    def nodes(self, n: int) -> tuple[list[int], np.ndarray]:
        """The `n` ids and [n, 2] float64 coordinates of NODE_COORD_SECTION. Raises InputError."""
        rows = self.section("NODE_COORD_SECTION")
        seen: dict[int, int] = {}
        coords = np.empty((len(rows), 2))
        for k, row in enumerate(rows):
            if len(row.words) != 3:
                self.fail(f"expected 'id x y', not {_shown(' '.join(row.words))}", row.line)
            node = self.integer(row.words[0], "a node id", row.line)
            if node in seen:
                self.fail(f"node id {node} was already used in line {seen[node]}", row.line)
            seen[node] = row.line
            coords[k] = [self.coordinate(word, row.line) for word in row.words[1:]]
        if len(rows) != n:
            self.fail(f"DIMENSION is {n}, but NODE_COORD_SECTION has {len(rows)} nodes")
        return list(seen), coords


def _shown(word: str) -> str:
    return repr(word if len(word) <= 40 else word[:37] + "...")


def scan(path: str | Path) -> Document:
    """Cut a file into fields and sections. Raises InputError."""
    document = Document(Path(path), {}, {})
    rows: list[Row] | None = None
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", read_text(path)), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if not line[0].isalpha():
            if rows is None:
                document.fail(f"expected 'KEY: value', not {_shown(line)}", number)
            if len(rows) > MAX_NODES:
                document.fail(f"a section has more than {MAX_NODES} rows", number)
            rows.append(Row(number, line.split()))
            continue
        match = _KEY.fullmatch(line)
        key = match.group(1).upper() if match else ""
        if key == "EOF":
            break
        if match is None or (match.group(2) is None and not key.endswith("_SECTION")):
            document.fail(f"expected 'KEY: value' or a section, not {_shown(line)}", number)
        if key in document.sections or (key in document.fields and key != "COMMENT"):
            document.fail(f"{key} is given twice", number)
        if key.endswith("_SECTION"):
            if match.group(2):
                document.fail(f"{key} must stand alone on its line", number)
            rows = document.sections[key] = []
        else:
            document.fields[key] = (number, match.group(2).strip())
    return document


def require_kind(document: Document, kind: str, weights: Iterable[str], known: set[str]) -> str:
    """The EDGE_WEIGHT_TYPE of a file whose TYPE is `kind`. Raises InputError.

    A section outside `known` is refused: it would state a constraint that we do not keep.
    """
    found = document.text("TYPE").split()[0].upper()
    if found != kind:
        document.fail(f"TYPE is {_shown(found)}, expected {kind}", document.fields["TYPE"][0])
    weight = document.text("EDGE_WEIGHT_TYPE").upper()
    if weight not in weights:
        document.fail(
            f"EDGE_WEIGHT_TYPE {_shown(weight)} is not supported; supported: {', '.join(weights)}",
            document.fields["EDGE_WEIGHT_TYPE"][0],
        )
    for key in document.sections:
        if key not in known:
            document.fail(f"{key} is not supported")
    return weight


def instance_name(document: Document, suffix: str) -> str:
    """The NAME field without a file suffix, else the file's name without it."""
    _, name = document.fields.get("NAME", (0, ""))
    return (name or document.path.name).removesuffix(suffix) or document.path.stem


# --- references ---------------------------------------------------------------------------------


def recorded(path: Path, names: Iterable[str], field: str | None = None) -> tuple[float, str] | str:
    """The cost that a JSON index records for the first of `names` in it, and that name.

    An index maps a name to a cost, or to an object with the cost under `field`. Where there is
    none, the reason as a clause.
    """
    if not path.exists():
        return f"no {path.name} beside the file"
    try:
        index = load_json(path)
    except InputError as error:
        return str(error)
    for name in names:
        value = index.get(name) if isinstance(index, dict) else None
        if isinstance(value, dict) and field:
            value = value.get(field)
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        if 0 <= value < math.inf:
            return float(value), name
    return f"{path.name} records no cost for it"


def best_reference(
    found: Sequence[tuple[float, str]], notes: Sequence[str]
) -> tuple[float | None, str]:
    """The lowest of the (cost, source) pairs, the first one on ties, and where it comes from.

    The others are named if they disagree, and so are `notes`; without any pair, notes say why.
    """
    if not found:
        return None, "; ".join(notes)
    cost, source = min(found, key=lambda pair: pair[0])
    others = [f"{name} says {cost_text(value)}" for value, name in found if value != cost]
    remarks = [*others, *notes]
    return cost, source + (f" ({'; '.join(remarks)})" if remarks else "")


def cost_text(cost: float) -> str:
    """A cost as the field's files write it: without a point if it is whole."""
    return str(int(cost)) if float(cost).is_integer() and abs(cost) < 2**53 else repr(float(cost))


# --- instances and tours ------------------------------------------------------------------------


def read(path: str | Path) -> Instance:
    """A symmetric TSP instance with coordinates (EUC_2D, CEIL_2D, ATT or GEO).

    Node k is the k-th line of NODE_COORD_SECTION; `extra` keeps the file's ids (list of N ints) and
    its edge_weight_type. The reference is the cost of the `.opt.tour` beside the file or the value
    in a `solutions.json` beside it, the lower of the two if both exist.

    Raises InputError for anything that cannot be read as such an instance. A damaged reference is
    no such thing: the instance is still good, and reference_source says what is wrong.
    """
    document = scan(path)
    known = {"NODE_COORD_SECTION", "DISPLAY_DATA_SECTION"}
    weight = require_kind(document, "TSP", EDGE_WEIGHT_TYPES, known)
    ids, coords = document.nodes(document.dimension(least=3))
    name = instance_name(document, ".tsp")
    extra = {"ids": ids, "edge_weight_type": weight}
    instance = Instance("tsp", name, len(ids), coords, distance_matrix(coords, weight), extra=extra)
    reference, source = _reference(document.path, instance)
    return replace(instance, reference=reference, reference_source=source)


def _reference(path: Path, instance: Instance) -> tuple[float | None, str]:
    found, notes = [], []
    tour_file = path.with_name(path.stem + ".opt.tour")
    index = path.with_name("solutions.json")
    if tour_file.exists():
        try:
            tour = read_tour(tour_file, instance)
            found.append((tour_cost(instance.dist, tour), tour_file.name))
        except InputError as error:
            notes.append(f"unusable: {error}")
    value = recorded(index, (path.stem, instance.name))
    if not isinstance(value, str):
        found.append((value[0], index.name))
    elif not tour_file.exists():
        notes.append(f"no {tour_file.name} beside the file")
        notes.append(value)
    if not found and not tour_file.exists() and not index.exists():
        notes = ["no .opt.tour or solutions.json beside the file"]
    return best_reference(found, notes)


def tour_cost(dist: np.ndarray, tour: Sequence[int]) -> float:
    """The exact float64 length of a closed tour: the correctly rounded sum of its edges."""
    nodes = list(tour)
    return math.fsum(dist[nodes, nodes[1:] + nodes[:1]].tolist())


def check_tour(instance: Instance, tour: Sequence[int]) -> None:
    """Raises InputError unless `tour` visits every node of `instance` exactly once."""
    if sorted(tour) != list(range(instance.size)):
        raise InputError(f"not a tour of {instance.name}: it must visit every node exactly once")


def read_tour(path: str | Path, instance: Instance) -> list[int]:
    """The first tour of a TSPLIB tour file, as nodes 0..N-1 of `instance`. Raises InputError."""
    document = scan(path)
    kind = document.fields.get("TYPE", (0, "TOUR"))[1]
    if kind.upper() != "TOUR":
        document.fail(f"TYPE is {_shown(kind)}, expected TOUR")
    if "DIMENSION" in document.fields and document.dimension(least=1) != instance.size:
        document.fail(f"DIMENSION differs from the {instance.size} nodes of {instance.name}")
    node_of = {file_id: node for node, file_id in enumerate(_ids(instance))}
    tour: list[int] = []
    seen: set[int] = set()
    for row in document.section("TOUR_SECTION"):
        for word in row.words:
            file_id = document.integer(word, "a node id", row.line)
            if file_id == -1 and -1 not in node_of:
                return _complete(document, tour, instance)
            if file_id not in node_of:
                document.fail(f"{instance.name} has no node {file_id}", row.line)
            if node_of[file_id] in seen:
                document.fail(f"node {file_id} is visited twice", row.line)
            seen.add(node_of[file_id])
            tour.append(node_of[file_id])
    return _complete(document, tour, instance)


def _complete(document: Document, tour: list[int], instance: Instance) -> list[int]:
    if len(tour) != instance.size:
        document.fail(f"the tour visits {len(tour)} of the {instance.size} nodes")
    return tour


def _ids(instance: Instance) -> list[int]:
    return instance.extra.get("ids") or list(range(1, instance.size + 1))


def write_tour(path: str | Path, instance: Instance, tour: Sequence[int]) -> None:
    """A TSPLIB tour file with the ids of the instance's own file. Raises InputError."""
    nodes = [int(node) for node in tour]
    check_tour(instance, nodes)
    ids = _ids(instance)
    lines = [
        f"NAME : {instance.name}.tour",
        f"COMMENT : length {cost_text(tour_cost(instance.dist, nodes))}",
        "TYPE : TOUR",
        f"DIMENSION : {instance.size}",
        "TOUR_SECTION",
        *(str(ids[node]) for node in nodes),
        "-1",
        "EOF",
    ]
    write_atomically(path, "\n".join(lines) + "\n")

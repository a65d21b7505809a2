"""Reads and writes text files, and scans files of fields and sections.

The scanner tolerates layout (white space, colons, a missing EOF line) and checks content strictly;
each error is one sentence with file and line. Each problem's reader defines fields and sections.
"""

import codecs
import contextlib
import csv
import io
import math
import os
import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from spo_jax import jsontext
from spo_jax.errors import InputError

MAX_BYTES = 64 * 2**20
MAX_NODES = 20_000  # a float64 matrix of 3.2 GB
MAX_COORDINATE = 1e12  # keeps every tour length far inside the integers that float64 holds

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
    if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):  # as spreadsheets write Unicode
        with contextlib.suppress(UnicodeDecodeError):
            data = data.decode("utf-16").encode()
    if re.search(rb"[\x00-\x08\x0e-\x1f\x7f]", data):
        raise InputError(f"{path} is not a text file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")  # names and comments of old files


def write_atomically(path: str | Path, data: str | bytes) -> None:
    """Write a file completely or not at all, by renaming a temporary file. Raises InputError.

    The data is on the disk on return: a power cut leaves no empty file in place of an old one.
    """
    raw = data.encode() if isinstance(data, str) else data
    try:
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_bytes(raw)  # a pipe or a device is written to, never replaced
            return
        part = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}.part")
        try:
            with open(part, "wb") as file:
                file.write(raw)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, target)
            sync_folder(target.parent)
        finally:
            part.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot write {path}: {_why(error)}") from None


def sync_folder(folder: str | Path) -> None:
    """Flush new and renamed entries of a folder to the disk, if the file system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A CSV file of a head and rows; None is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def load_json(path: Path) -> Any:
    """The value in a JSON file. Raises InputError."""
    text = read_text(path)
    try:
        return jsontext.parse(text)
    except ValueError:
        raise InputError(f"{path} is not valid JSON") from None


def jsonable(value: Any, strict: bool = False) -> Any:
    """A value of lists, tuples, sets, dicts, arrays and numbers as JSON can have it.

    A set becomes a sorted list, a dict whose keys are no texts a list of [key, value]. Anything
    else that JSON does not have becomes its `repr`; a ValueError if `strict`.
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return {key: jsonable(each, strict) for key, each in value.items()}
        return [[jsonable(key, strict), jsonable(each, strict)] for key, each in value.items()]
    if isinstance(value, set | frozenset):
        value = sorted(value, key=lambda each: (str(type(each)), each))
    if isinstance(value, list | tuple):
        return [jsonable(each, strict) for each in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if strict:
        raise ValueError(f"{value!r:.60} is not JSON")
    return repr(value)


def cost_text(cost: float) -> str:
    """A cost as benchmark files write it: without a decimal point if it is whole."""
    return str(int(cost)) if float(cost).is_integer() and abs(cost) < 2**53 else repr(float(cost))


def shown_cost(cost: float) -> str:
    """A cost for the eye: whole, or with four decimals."""
    return cost_text(cost) if float(cost).is_integer() else f"{cost:.4f}"


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


# --- the scanner --------------------------------------------------------------------------------

_MATRIX = "EDGE_WEIGHT_SECTION"  # whose rows are numbers rather than nodes
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_]*)\s*(?::\s*(.*))?")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_SOLOMON = re.compile(r"^[ \t]*VEHICLE[ \t\r]*$", re.MULTILINE)
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)


@dataclass(frozen=True)
class Row:
    """One line of a section: its number in the file and its words.

    The words are cut out when they are asked for: matrices have millions.
    """

    line: int
    text: str

    @property
    def words(self) -> list[str]:
        return self.text.split()


@dataclass(frozen=True)
class Document:
    """A file cut into fields (key -> line number, value) and sections of rows.

    after: the first line after EOF that is not blank, if there is one.
    """

    path: Path
    fields: dict[str, tuple[int, str]]
    sections: dict[str, list[Row]]
    after: int | None = None

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
        self.fail(f"{what} must be a whole number, not {shown(word)}", line)

    def number(self, word: str, what: str, line: int | None) -> float:
        """A finite number. Raises InputError."""
        wrong = not_a_number(word)
        if wrong:
            self.fail(f"{what} {wrong}", line)
        return float(word)

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

    def nodes(
        self, n: int, key: str = "NODE_COORD_SECTION", axes: str = "x y"
    ) -> tuple[list[int], np.ndarray]:
        """The `n` ids and [n, axes] float64 coordinates of a section. Raises InputError.

        Where the ids count the nodes, from 1 or 0, they are in their order, else in the file's:
        other sections, and solutions, count by them.
        """
        rows = self.section(key)
        seen: dict[int, int] = {}
        count = len(axes.split())
        coords = np.empty((len(rows), count))
        for k, row in enumerate(rows):
            words = row.words
            if len(words) != count + 1:
                self.fail(f"expected 'id {axes}', not {shown(' '.join(words))}", row.line)
            node = self.integer(words[0], "a node id", row.line)
            if node < 0:
                self.fail(f"a node id must not be negative, as {node} is", row.line)
            if node in seen:
                self.fail(f"node id {node} was already used in line {seen[node]}", row.line)
            seen[node] = row.line
            coords[k] = [self.number(word, "coordinate", row.line) for word in words[1:]]
        if len(rows) != n:
            self.fail(f"DIMENSION is {n}, but {key} has {len(rows)} nodes")
        ids = list(seen)
        return (sorted(ids), coords[np.argsort(ids)]) if counted(sorted(ids)) else (ids, coords)


def counted(ids: Sequence[int]) -> bool:
    """Whether ids are 1, 2, 3, ... or 0, 1, 2, ..."""
    return list(ids) in ([*range(len(ids))], [*range(1, len(ids) + 1)])


def not_a_number(word: str) -> str:
    """What is wrong with a word in place of a number, or "" if nothing is."""
    if _NUMBER.fullmatch(word):
        in_range = abs(float(word)) <= MAX_COORDINATE
        return "" if in_range else f"{shown(word)} is out of range (1e12 at most)"
    if _NOT_FINITE.fullmatch(word):
        return f"{word} is not a finite number"
    return f"{shown(word)} is not a number"


def shown(word: str) -> str:
    """A word quoted for an error message, cut to 40 characters."""
    return repr(word if len(word) <= 40 else word[:37] + "...")


def scan(path: str | Path) -> Document:
    """Cut a file into fields and sections. Raises InputError."""
    document = Document(Path(path), {}, {})
    rows: list[Row] | None = None
    ended = False
    text = read_text(path)
    if _SOLOMON.search(text):
        document.fail("this is a VRPTW file in Solomon's format: --problem vrptw")
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if ended:
            return replace(document, after=number)
        if not line[0].isalpha():
            if rows is None:
                document.fail(f"expected 'KEY: value', not {shown(line)}", number)
            if len(rows) > MAX_NODES and rows is not document.sections.get(_MATRIX):
                document.fail(f"a section has more than {MAX_NODES} rows", number)
            rows.append(Row(number, line))
            continue
        match = _KEY.fullmatch(line)
        key = match.group(1).upper() if match else ""
        if key == "EOF":
            ended = True
            continue
        if match is None or (match.group(2) is None and not key.endswith("_SECTION")):
            document.fail(f"expected 'KEY: value' or a section, not {shown(line)}", number)
        if key in document.sections or (key in document.fields and key != "COMMENT"):
            document.fail(f"{key} is given twice", number)
        if key.endswith("_SECTION"):
            if match.group(2):
                document.fail(f"{key} must stand alone on its line", number)
            rows = document.sections[key] = []
        else:
            document.fields[key] = (number, match.group(2).strip())
    return document

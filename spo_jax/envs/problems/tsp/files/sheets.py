"""CSV files as rows of cells, in the dialects that spreadsheets and pandas write.

Only empty rows and columns are left out, and comments, in which rows are not looked for.
"""

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from spo_jax.envs.files.textfiles import MAX_NODES, not_a_number, read_text, shown
from spo_jax.errors import InputError

# How spreadsheets, routers and libraries write that there is no number.
_NO_NUMBER = {"nan", "inf", "-inf", "infinity", "null", "none", "nil", "na", "n/a", "#n/a", "-"}
_NO_NUMBER |= {"#value!", "#ref!", "#div/0!", "#num!", "#name?", "undefined", "?"}
# 1,234.5 or 1.234,5 or 7,5
_GROUPED = re.compile(
    r"[+-]?[0-9](?=.*[,' \u00a0\u202f\u2019]|.*\..*\.)[0-9.,' \u00a0\u202f\u2019]*"
)
_SEPARATOR = re.compile(r'"?sep=([^"])"?', re.IGNORECASE)  # Excel's first line

Cells = tuple[int, list[str]]  # the line in the file, and the words of a row


@dataclass(frozen=True)
class Sheet:
    """The rows of a file, all as long as the first, without empty rows and columns.

    numbers: of its columns in the file, from 1. comments: the rows that begin with #.
    """

    path: Path
    rows: list[Cells]
    numbers: list[int]
    comments: list[Cells]

    def fail(self, message: str, line: int | None = None, column: int | None = None) -> NoReturn:
        """Raises InputError. column: the index of a cell in its row."""
        where = str(self.path)
        where += "" if line is None else f", line {line}"
        where += "" if column is None else f", column {self.numbers[column]}"
        raise InputError(f"{where}: {message}")

    def number(self, word: str, what: str, line: int, column: int | None = None) -> float:
        """A finite number. Raises InputError, which names the likely cause."""
        wrong = not_a_number(word) if word else "is missing"
        if wrong:
            if _GROUPED.fullmatch(word):
                wrong += ": decimals have a point, and thousands no separator"
            self.fail(f"{what} {wrong}", line, column)
        return float(word)


def is_gap(word: str) -> bool:
    """Whether a cell stands for a number that is missing."""
    return word.lower() in _NO_NUMBER


def sheet(path: str | Path) -> Sheet:
    """The rows of a CSV file. Raises InputError."""
    path = Path(path)
    found = Sheet(path, [], [], [])
    text = re.sub(r"\r\n?", "\n", read_text(path))
    lines = text.split("\n")
    first = next((k for k, line in enumerate(lines) if _content(line)), 0)
    separator = _SEPARATOR.fullmatch(lines[first].strip(" "))
    if separator:
        lines[first] = ""
        delimiter = separator[1]
    else:
        bare = re.sub(r'"[^"]*"', "", lines[first])
        delimiter = next((each for each in "\t;" if each in bare), ",")
    reader = csv.reader(
        io.StringIO("\n".join(lines)), delimiter=delimiter, skipinitialspace=True, strict=True
    )
    try:
        for row in reader:
            words = [word.strip() for word in row]
            if any(words):
                comment = words[0].startswith("#") and not is_gap(words[0])
                kept = found.comments if comment else found.rows
                kept.append((reader.line_num, words))
            if len(found.rows) > MAX_NODES + 1:
                found.fail(f"a table of more than {MAX_NODES} nodes is not read")
    except csv.Error as error:
        found.fail(f"this is no CSV: {error}", reader.line_num)
    if not found.rows:
        found.fail("there are no rows")
    _even(found)
    line, words = found.rows[0]
    if len(words) == 1 < len(found.rows) and len(words[0].split()) > 1:
        found.fail("columns are separated by commas, semicolons or tabs", line)
    return found


def _content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _even(found: Sheet) -> None:
    """Give all rows the columns of the first, and drop columns that are empty everywhere."""
    rows = found.rows
    if len({len(words) for _, words in rows}) > 1:  # some have separators at the end
        width = _filled(rows[0][1])
        for k, (line, words) in enumerate(rows):
            if len(words) < width or _filled(words) > width:
                due = f"where line {rows[0][0]} has {width}"
                found.fail(f"the row has {max(len(words), 1)} columns, {due}", line)
            rows[k] = (line, words[:width])
    kept = [any(column) for column in zip(*(words for _, words in rows), strict=True)]
    found.numbers.extend(k for k, filled in enumerate(kept, 1) if filled)
    if not all(kept):
        for k, (line, words) in enumerate(rows):
            rows[k] = (line, [word for word, filled in zip(words, kept, strict=True) if filled])


def _filled(words: list[str]) -> int:
    """The number of cells up to the last that is not empty."""
    return max((k for k, word in enumerate(words, 1) if word), default=0)


def listed(words: list[str], most: int = 3) -> str:
    """A few words, quoted."""
    more = ", ..." if len(words) > most else ""
    return ", ".join(map(shown, words[:most])) + more

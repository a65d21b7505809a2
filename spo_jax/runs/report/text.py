"""Text of programs made safe to show, and packed so that thousands of programs fit into a page.

Strategies, sources, prompts and reasons come from a model and are hostile. Jinja escapes them where
they stand in the page; the rest travels as compressed JSON in base64, which no parser of HTML
reads, and the page's script puts it on the screen as text. Here characters that would hide, reorder
or fake text are made visible (Boucher and Anderson, "Trojan Source", 2021).
"""

import base64
import json
import math
import re
import zlib
from functools import cache
from typing import TYPE_CHECKING, Any

from spo_jax.program import MAX_SOURCE

if TYPE_CHECKING:
    from jinja2 import Template

# Controls but tab and newline, marks and overrides of direction, characters without width, tags,
# and surrogates, which have no UTF-8.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_COMMENT = re.compile(r"#[^\n]*")


def visible(text: str) -> str:
    """The text with each character that cannot be seen as its code point: ⟨U+202E⟩."""
    return _UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def shortened(text: str, most: int) -> str:
    """The first `most` characters, with a word on how many are left out."""
    return text if len(text) <= most else f"{text[:most]}\n… {len(text) - most:,} more characters"


def shown(text: str, most: int = MAX_SOURCE) -> str:
    """A text as it stands on a page: all of it can be seen, by default as much as a program has."""
    return visible(shortened(text, most))


@cache
def template(package: str, name: str) -> "Template":
    """A page of a package. What it is filled with is escaped, and texts of a model are visible."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # slow to import

    environment = Environment(
        loader=PackageLoader(package, ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: shown(value) if type(value) is str else value,
    )
    return environment.get_template(name)


def packed(value: Any) -> str:
    """A value as JSON, deflated, in base64: letters, digits, +, / and = only."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    squeeze = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.b64encode(squeeze.compress(text.encode()) + squeeze.flush()).decode("ascii")


def number(value: float | None, digits: int = 4) -> str:
    """0.7203, or a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.{digits}f}".replace("-", "−")


def rounded(value: float | None) -> float | None:
    """Six digits after the point, as JSON has them; None where there is none."""
    return None if value is None or not math.isfinite(value) else round(float(value), 6)


def arguments(entry: str, source: str) -> list[str]:
    """The names of the arguments of a program's function `entry`; empty where none is found."""
    begin, end = _head(entry, source)
    given = source[begin:end].split(",")
    return [each.split(":")[0].split("=")[0].strip() for each in given if each.strip()]


def _head(entry: str, source: str) -> tuple[int, int]:
    """Where the arguments of a program's function stand; (0, 0) where it is not found.

    One pattern with the closing bracket would read to the end of the text from each line that
    looks like the function's.
    """
    found = re.search(rf"^def {re.escape(entry)}\(", source, re.MULTILINE)
    end = -1 if found is None else source.find(")", found.end())
    return (0, 0) if found is None or end < 0 else (found.end(), end)


def reads_state(entry: str, source: str) -> bool:
    """Whether a program's function `entry` uses its last but one argument, by its text.

    Comments do not count. The text is searched rather than parsed, because a run has thousands of
    programs; a name inside a string passes for a use.
    """
    names = arguments(entry, source)
    if len(names) < 2:
        return False
    _, end = _head(entry, source)
    body = _COMMENT.sub("", source[end:])
    return re.search(rf"\b{re.escape(names[-2])}\b", body) is not None

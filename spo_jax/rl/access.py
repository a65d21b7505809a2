"""A server's address and key, and the removal of the key from its texts.

A run stores addresses and shows server texts, so neither may contain a secret. Keys are read from
the environment at each use; no object holds them.
"""

import html
import os
import re
import unicodedata
from base64 import b64encode
from typing import Any
from urllib.parse import urlsplit

from spo_jax.errors import InputError

ENDPOINT_KEYS = ("SPO_API_KEY", "OPENAI_API_KEY")  # environment variables, the first that is set
VLLM_KEYS = ("VLLM_API_KEY",)  # vLLM's own variable
LONGEST = 300  # shown characters of a server's text
LEAST = 6  # characters of a secret; a shorter key (none, EMPTY) is an ordinary word
STRUCK = "..."  # replaces a key
SURE = 16  # a key of this length is no part of a server's or a model's name by chance
WITHHELD = "(withheld: it contains the key in disguise)"
TOO_LONG = "(withheld: too long to search for the key)"
NESTED = 3  # levels of nested escapes that are undone
MOST = 1 << 18  # searched characters; a longer text is withheld
PERCENT = re.compile(r"%(?:25)*(?:u00)?([0-9a-f]{2})", re.IGNORECASE)
# Only from the first backslash of a run, without backtracking: a run may be long.
BACKSLASH = re.compile(
    r"(?<!\\)\\++(?:u\{?0{0,8}([0-9a-f]{2})\}?|x\{?0{0,8}([0-9a-f]{2})\}?|([0-7]{3}))",
    re.IGNORECASE,
)
BREAK = re.compile(r"(?<!\\)\\++[nrtbfv]|=\r?\n")
OTHER = re.compile(r"[^0-9a-z]+")


def address(url: str, setting: str, names: tuple[str, ...]) -> str:
    """`url` without a final slash. names: of the variables for the key.

    Raises InputError for an invalid address, and for one with a secret.
    """
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        known = False
    if not known:
        raise InputError(f"{setting} is not an address; write it as http://127.0.0.1:8000/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InputError(
            f"{setting} must not contain a name, password or query, because a run stores it; "
            f"put the key into the environment variable {names[0]}"
        )
    return url.rstrip("/")


def key(names: tuple[str, ...]) -> str:
    """The key in the first set variable of these, stripped of blanks, or "".

    Raises InputError for one that cannot be sent: a later error message would show it.
    """
    for name in names:
        if found := os.environ.get(name, "").strip():
            if not (found.isascii() and found.isprintable()):
                raise InputError(
                    f"the key in {name} has a line break or another character that no key has; "
                    "set it again"
                )
            return found
    return ""


def cleaned(value: Any) -> Any:
    """A JSON value without our keys or unpaired surrogates in its strings and field names.

    A key is removed as it is, in other case, backwards, and in base64 or hexadecimal. A string with
    another disguise, by escapes or with characters between its letters, is withheld. Every server
    text passes through here before we read, store or show it.
    """
    return _cleaned(value, [_forms(own) for own in _keys()])


def check_kept(text: str, setting: str, names: tuple[str, ...]) -> None:
    """Raises InputError for a setting that contains the key, because a run stores its settings."""
    forms = [_forms(own) for own in _keys() if len(own) >= SURE]
    if _cleaned(text, forms) != _cleaned(text, []):
        raise InputError(
            f"{setting} contains the key, and a run stores it; put the key into the environment "
            f"variable {names[0]}"
        )


def shown(text: str) -> str:
    """At most `LONGEST` characters on one line, without the key, for a terminal."""
    start = cleaned(text)[: 10 * LONGEST]
    line = " ".join("".join(c if c.isprintable() else " " for c in start).split())
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."


# --- the key in a text ----------------------------------------------------------------------------


def _cleaned(value: Any, keys: list[list[str]]) -> Any:
    """keys: the forms of each."""
    if isinstance(value, str):
        return _clean(value, keys)
    if isinstance(value, list):
        return [_cleaned(each, keys) for each in value]
    if isinstance(value, dict):
        return {_clean(name, keys): _cleaned(each, keys) for name, each in value.items()}
    return value


def _clean(text: str, keys: list[list[str]]) -> str:
    text = _whole(text)
    if keys and len(text) > MOST:
        return TOO_LONG
    for forms in keys:
        if len(text) < min(map(len, forms)):
            continue
        low = text.lower()
        for form in forms:
            if form in low:
                text = re.sub(re.escape(form), STRUCK, text, flags=re.IGNORECASE)
        if _disguised(text, forms):
            return WITHHELD
    return text


def _whole(text: str) -> str:
    """`text` with unpaired surrogates replaced, which no file or terminal accepts."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _keys() -> list[str]:
    """All set keys, also those that cannot be sent."""
    found = {os.environ.get(name, "").strip() for name in (*ENDPOINT_KEYS, *VLLM_KEYS)}
    return sorted(own for own in found if len(own) >= LEAST)


def _forms(own: str) -> list[str]:
    """The forms of a key in a text, in lower case, the longest first."""
    found = set()
    for each in (own, own[::-1], own.lower(), own.upper(), own.swapcase()):
        raw = each.encode("utf-8", "replace")
        found |= {each, raw.hex()}
        for before in range(3):  # preceding bytes, which share its first base64 digit
            code = b64encode(b"\0" * before + raw).decode()
            code = code[-(-8 * before // 6) : 8 * (before + len(raw)) // 6]
            found |= {code, code.translate(str.maketrans("+/", "-_"))}
    low = {form.lower() for form in found}
    return sorted(low | {form[::-1] for form in low}, key=lambda form: (-len(form), form))


def _disguised(text: str, forms: list[str]) -> bool:
    """Whether the letters and digits of a text, also with escapes undone, contain a form."""
    bare = {short for form in forms if len(short := OTHER.sub("", form)) >= LEAST}
    for _ in range(NESTED + 1):
        plain = _folded(text)
        letters = OTHER.sub("", plain)
        if any(form in letters for form in bare) or any(form in plain for form in forms):
            return True
        before, text = text, _unescaped(text)
        if text == before:
            return False
    return False


def _folded(text: str) -> str:
    """Lower case, with wide and accented letters made plain."""
    if not text.isascii():
        # Also before normalising, because sorting a long run of accents takes time.
        text = unicodedata.normalize("NFKD", _without_accents(text))
        text = _without_accents(text)
    return text.lower()


def _without_accents(text: str) -> str:
    return "".join(c for c in text if not unicodedata.combining(c))


def _unescaped(text: str) -> str:
    """Undo one level of percent, backslash and HTML escapes."""
    if "\\" in text:
        text = BREAK.sub("", BACKSLASH.sub(_letter, text))
    if "%" in text:
        text = PERCENT.sub(_letter, text)
    return html.unescape(text) if "&" in text else text


def _letter(found: re.Match[str]) -> str:
    code = found[found.lastindex or 0]
    return chr(int(code, 8 if found.lastindex == 3 else 16))

"""Parses untrusted JSON: returns a value of bounded depth or raises ValueError."""

import json
from typing import Any

DEPTH = 100  # nested lists and objects


def parse(text: str | bytes) -> Any:
    """The value of a JSON text; bytes are UTF-8.

    Raises ValueError for invalid JSON and for a value nested deeper than `DEPTH`, because code that
    writes, compares or prints a value recurses into it.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    try:
        value = json.loads(text)
    except RecursionError:
        value, level = None, DEPTH + 1
    else:
        level = 0 if text.count("[") + text.count("{") <= DEPTH else _depth(value)
    if level > DEPTH:
        raise ValueError(f"it is nested more than {DEPTH} levels deep")
    return value


def _depth(value: Any) -> int:
    """Levels of lists and objects, at most `DEPTH` + 1."""
    level, row = 0, [value]
    while level <= DEPTH:
        inner: list[Any] = []
        for each in row:
            if isinstance(each, dict):
                inner.extend(each.values())
            elif isinstance(each, list):
                inner.extend(each)
        if not any(isinstance(each, dict | list) for each in row):
            return level
        level, row = level + 1, inner
    return level

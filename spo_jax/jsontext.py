"""JSON that others wrote: whatever the text, a value that can be walked, or one ValueError."""

import json
from typing import Any

DEPTH = 100  # lists and objects inside each other


def parse(text: str | bytes) -> Any:
    """The value of a JSON text, in UTF-8 where it is bytes.

    Raises ValueError for what is none, and for one that is nested deeper than `DEPTH`: what writes,
    compares or shows a value goes into it by recursion, which has an end.
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
    """Levels of lists and objects, but no more than one above `DEPTH`."""
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

"""A file of instances as they are in memory, of any problem: an .npz of arrays and an index.

The index is JSON. In it a list is a value that JSON has not, by its kind: ["array", 3] is the array
named 3, ["tuple", 1, 2] is (1, 2). A NaN lies among the arrays with all its bits: digests see them.
"""

import json
import os
import zipfile
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from spo_jax import jsontext
from spo_jax.envs.canonical import DEEPEST
from spo_jax.envs.instance import Instance
from spo_jax.errors import InputError

_INDEX = "index"
_DAMAGED = (OSError, EOFError, ValueError, TypeError, LookupError, AttributeError)


def save_instances(path: Path, instances: Sequence[Instance]) -> None:
    """Write a new file, which is on the disk when this returns.

    Raises InputError for an instance that holds values of other types than `canonical` takes.
    """
    arrays: list[np.ndarray] = []
    rows = [
        ["dict", *(p for f in fields(each) for p in (f.name, _written(each, f.name, arrays)))]
        for each in instances
    ]
    named: dict[str, Any] = {str(n): array for n, array in enumerate(arrays)}
    named[_INDEX] = np.frombuffer(json.dumps(rows).encode(), np.uint8)
    with open(path, "xb") as file:
        np.savez(file, **named)
        file.flush()
        os.fsync(file.fileno())


def load_instances(path: Path) -> list[Instance]:
    """The instances of a file that `save_instances` wrote. Raises InputError."""
    try:
        if not path.is_file():
            raise ValueError("it is no file")
        with np.load(path, allow_pickle=False) as found:
            rows = jsontext.parse(found[_INDEX].tobytes())
            return [Instance(**_read(row, found)) for row in rows]
    except (*_DAMAGED, zipfile.BadZipFile) as error:
        raise InputError(f"{path} cannot be read: {error}") from None


def _written(instance: Instance, name: str, arrays: list[np.ndarray]) -> Any:
    """A field of an instance for the index, its arrays added to `arrays`."""

    def written(value: Any, depth: int = 0) -> Any:
        kind = type(value)
        if depth > DEEPEST:
            raise InputError(f"{where} is nested deeper than {DEEPEST} levels, or in itself")
        if value is None or kind in (bool, int, str) or (kind is float and value == value):
            return value
        if kind in (list, tuple):
            return [kind.__name__, *(written(each, depth + 1) for each in value)]
        if kind is dict:
            return ["dict", *(written(p, depth + 1) for item in value.items() for p in item)]
        if kind is bytes:
            return ["bytes", value.decode("latin-1")]
        if kind in (float, complex) or isinstance(value, np.generic | np.ndarray):
            array = np.asarray(value)
            if not array.dtype.hasobject:
                arrays.append(array)
                kinds = {np.ndarray: "array", float: "number", complex: "number"}
                return [kinds.get(kind, "scalar"), len(arrays) - 1]
        raise InputError(f"{where} holds a {kind.__name__}, which cannot be stored")

    where = f"`{name}` of the instance {instance.name}"
    return written(getattr(instance, name))


def _read(value: Any, arrays: Any) -> Any:
    """The inverse of `_written`."""
    if not isinstance(value, list):
        return value
    kind, *parts = value
    if kind in ("array", "scalar", "number"):
        array = arrays[str(parts[0])]
        return array if kind == "array" else array[()] if kind == "scalar" else array.item()
    if kind == "bytes":
        return parts[0].encode("latin-1")
    found = [_read(each, arrays) for each in parts]
    if kind == "dict":
        return dict(zip(found[::2], found[1::2], strict=True))
    return {"list": list, "tuple": tuple}[kind](found)

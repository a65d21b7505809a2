"""Serialises values for digests: the bytes differ if and only if a program could see a difference.

So the types of values and the order of dictionaries count, the memory layout of arrays does not.
Sets are refused: their order depends on how they were built. Each value is written as a letter for
its type, the length of its content, and the content.
"""

import struct
from typing import Any

import numpy as np

from spo_jax.errors import InputError

DEEPEST = 50  # levels of nested containers


def canonical(value: Any, where: str) -> bytes:
    """The bytes of None, booleans, numbers, texts, bytes, NumPy's numbers and arrays, and lists,
    tuples and dicts of these.

    where: names the value in errors. Raises InputError for any other type.
    """
    return _written(value, where, 0)


def _written(value: Any, where: str, depth: int) -> bytes:
    if depth > DEEPEST:
        raise InputError(f"{where} is nested deeper than {DEEPEST} levels, or in itself")

    def parts(values: Any) -> list[bytes]:
        return [_written(each, where, depth + 1) for each in values]

    kind = type(value)  # not isinstance: a subclass may mean anything by its values
    if value is None:
        return _tagged(b"n")
    if kind is bool:
        return _tagged(b"b", b"1" if value else b"0")
    if kind is int:
        return _tagged(b"i", b"%x" % value)
    if kind is float:
        return _tagged(b"f", struct.pack("<d", value))
    if kind is complex:
        return _tagged(b"c", struct.pack("<dd", value.real, value.imag))
    if kind is str:
        return _tagged(b"s", value.encode("utf-8", "surrogatepass"))
    if kind is bytes:
        return _tagged(b"y", value)
    if kind is list or kind is tuple:
        return _tagged(b"l" if kind is list else b"t", *parts(value))
    if kind is dict:  # in its order, which a program can see
        items = zip(parts(value), parts(value.values()), strict=True)
        return _tagged(b"d", *(part for item in items for part in item))
    if kind is np.ndarray or (isinstance(value, np.generic) and kind.__module__ == "numpy"):
        # Bytes of objects are addresses; those of records and long doubles hold padding.
        if value.dtype.kind not in "biufcSUmM" or value.dtype in (np.longdouble, np.clongdouble):
            raise _unknown(f"{kind.__name__} of {value.dtype}", where)
        shape = ",".join(map(str, value.shape)).encode()
        letter = b"a" if kind is np.ndarray else b"g"
        return _tagged(letter, _tagged(value.dtype.str.encode()), _tagged(shape), value.tobytes())
    raise _unknown(kind.__name__, where)


def _tagged(letter: bytes, *parts: bytes) -> bytes:
    content = b"".join(parts)
    return b"%s%d:%s" % (letter, len(content), content)


def _unknown(kind: str, where: str) -> InputError:
    return InputError(
        f"{where} holds a {kind}, which cannot be told from another one: use numbers, "
        "texts, NumPy arrays of them, and lists, tuples (sorted, in place of a set) and dicts"
    )

"""Read-only views of an instance's numbers for programs, and checks of the lists they return.

A program that indexes element by element is four times faster on tuples than on an ndarray, and
a vectorised one needs the ndarray; `spo_jax.envs.run.sandbox.layout` decides which it gets.
"""

import math
from itertools import chain
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Copy lists, tuples, sets, dicts and arrays in one another as plain Python values.

    Args:
        value: Of these, numbers, texts and None.

    Returns:
        The copy; an array becomes nested lists.

    Raises:
        TypeError: There is something else in it, as infinity.
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {plain(key): plain(each) for key, each in value.items()}
    for kind in (list, tuple, set):
        if isinstance(value, kind):
            return kind(map(plain, value))
    if value is None or type(value) in (int, bool, str):
        return value
    if type(value) is float and math.isfinite(value):
        return value
    raise TypeError(type(value).__name__)


def rows(array: Any) -> Any:
    """Make tuples of an array.

    Returns:
        [N, M] as a tuple of tuples of Python numbers, [N] as a tuple; not an array: as it is.
    """
    if not isinstance(array, np.ndarray):
        return array
    return tuple(map(tuple, array.tolist()) if array.ndim == 2 else array.tolist())


def frozen(array: Any) -> Any:
    """Copy an array over immutable bytes: no flag can make it writable again.

    Returns:
        The copy; not an array: as it is.
    """
    if not isinstance(array, np.ndarray):
        return array
    return np.frombuffer(array.tobytes(), dtype=array.dtype).reshape(array.shape)


def node_list(value: object) -> list[int] | None:
    """Read a list of nodes that a program returned.

    Args:
        value: Accepted are lists, tuples and one-dimensional integer arrays of Python or NumPy
            integers; not subclasses, not booleans, not floats.

    Returns:
        A list of Python ints; None for anything else. It is a copy: the program could still change
        the list that it returned, in a generator that is finalised late.
    """
    kind = type(value)
    if kind is list or kind is tuple:
        nodes = [*value]  # type: ignore[misc]
    elif kind is np.ndarray:
        if value.ndim != 1 or value.dtype.kind not in "iu":  # type: ignore[attr-defined]
            return None
        return value.tolist()  # type: ignore[attr-defined]
    else:
        return None
    kinds = [*map(type, nodes)]
    if kinds.count(int) == len(kinds):
        return nodes
    if _INTEGERS.issuperset(kinds):
        return [*map(int, nodes)]
    return None


def removed_list(value: object) -> list[int] | None:
    """Read what a destroy says that it removed.

    Args:
        value: What `node_list` accepts, a set or frozenset of integers, or a single integer.

    Returns:
        A list of Python ints, that of a set in ascending order; None for anything else.
    """
    kind = type(value)
    if kind is set or kind is frozenset:
        nodes = node_list([*value])  # type: ignore[misc]
        return None if nodes is None else sorted(nodes)
    return node_list([value] if kind in _INTEGERS else value)


_LISTS, _INTS = {list, tuple}, {int}
_INTEGERS = {int, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64}
_INTEGERS |= {np.longlong, np.ulonglong, np.intc, np.uintc}


def nodes_of(value: object) -> list[list[int]] | None:
    """Read a list of lists of nodes that a program returned.

    Args:
        value: A list or tuple of what `node_list` accepts.

    Returns:
        A list of lists of Python ints; None for anything else.
    """
    if type(value) not in _LISTS:
        return None
    parts = [*value]  # type: ignore[misc]
    if _LISTS.issuperset(map(type, parts)):  # mostly: all items are checked in one pass
        copied = [[*part] for part in parts]
        if _INTS.issuperset(map(type, chain.from_iterable(copied))):
            return copied
    lists = [node_list(part) for part in parts]
    return None if None in lists else lists  # type: ignore[return-value]

"""Read-only views of an instance's numbers, as programs see them.

A program that indexes element by element is four times faster on tuples than on an ndarray, and
a vectorised one needs the ndarray; `spo_jax.envs.run.sandbox.layout` decides which it gets.
"""

import numpy as np

Rows = tuple[tuple[float, ...], ...]


def rows(matrix: np.ndarray) -> Rows:
    """[N, N] float64 as a tuple of tuples of floats."""
    return tuple(map(tuple, matrix.tolist()))


def frozen(array: np.ndarray) -> np.ndarray:
    """A copy over immutable bytes: no flag can make it writable again."""
    return np.frombuffer(array.tobytes(), dtype=array.dtype).reshape(array.shape)


def node_list(value: object) -> list[int] | None:
    """`value` as a list of Python ints, or None unless it is exactly what a program may return.

    Lists, tuples and one-dimensional integer arrays of Python or NumPy integers; not subclasses,
    not booleans, not floats. Always a list of its own: the one a program returned could still be
    changed, by a generator of its that is finalised late.
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


_INTEGERS = {int, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64}
_INTEGERS |= {np.longlong, np.ulonglong, np.intc, np.uintc}

"""Read-only views of an instance's numbers, as programs see them.

A program that indexes element by element is four times faster on tuples than on an ndarray, and
a vectorised one needs the ndarray; `spo_jax.envs.sandbox.layout` decides which it gets.
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
    not booleans, not floats. A list of Python ints is returned as it is, not copied.
    """
    kind = type(value)
    if kind is not list:
        if kind is tuple:
            value = list(value)  # type: ignore[call-overload]
        elif kind is np.ndarray:
            if value.ndim != 1 or value.dtype.kind not in "iu":  # type: ignore[attr-defined]
                return None
            return value.tolist()  # type: ignore[attr-defined]
        else:
            return None
    kinds = [*map(type, value)]  # type: ignore[call-overload]
    if kinds.count(int) == len(kinds):
        return value  # type: ignore[return-value]
    if _INTEGERS.issuperset(kinds):
        return list(map(int, value))  # type: ignore[call-overload]
    return None


_INTEGERS = {int, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64}
_INTEGERS |= {np.longlong, np.ulonglong, np.intc, np.uintc}

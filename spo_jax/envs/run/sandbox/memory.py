"""The memory of arrays: all unwritten entries of NumPy's arrays read as zeros.

NumPy leaves the entries of many results unwritten (`np.pad` in mode "empty", a ufunc with `where`
and no `out`), and an earlier call freed the memory behind them. No list of such functions is
complete, so we replace the allocator: NumPy lets a process set its own (NEP 49), and ours takes
every block from the C library's `calloc`.
"""

import ctypes

import numpy as np

_GET_HANDLER, _SET_HANDLER = 305, 304  # places in NumPy's C API, fixed since version 1.22
_CAPSULE = b"mem_handler"


class _Handler(ctypes.Structure):
    """PyDataMem_Handler, version 1."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


_kept: list[_Handler] = []  # NumPy holds a bare pointer to it


def zero_array_memory() -> bool:
    """Zero the memory of arrays in this process and its forks; returns whether that works.

    NumPy calls `malloc(context, size)`: with 1 as the context, that is `calloc(1, size)`. What
    `realloc` adds is not zeroed, but only `np.fromiter` uses it, and truncates the unfilled part.
    """
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype = ctypes.py_object
    capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    table = ctypes.cast(
        pointer(_multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p)
    )
    get_handler = ctypes.PYFUNCTYPE(ctypes.py_object)(table[_GET_HANDLER])
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET_HANDLER])
    old = _Handler.from_address(pointer(get_handler(), _CAPSULE))
    if old.version != 1:
        return False
    calloc = ctypes.cast(ctypes.CDLL(None).calloc, ctypes.c_void_p).value
    ours = _Handler(b"zeroed", 1, 1, calloc, old.calloc, old.realloc, old.free)
    _kept.append(ours)
    set_handler(capsule(ctypes.addressof(ours), _CAPSULE, None))
    return _holds()


def _holds() -> bool:
    """Whether unwritten entries are zeros in memory with freshly freed values."""
    for size in (1, 5, 50, 500, 50_000):
        stale = [np.full(size, 7.25) for _ in range(9)]
        del stale
        fresh = [np.empty(size) for _ in range(9)]
        fresh.append(np.pad(np.zeros(1), size, mode="empty"))
        if any(array.any() for array in fresh):
            return False
    return True

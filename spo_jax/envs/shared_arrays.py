"""Large arrays in memory that other processes can map, so that all workers read one copy.

Workers import this module: keep its imports light.
"""

import math
import mmap
import os
import weakref

import numpy as np

LEAST_BYTES = 32 << 20  # of an array that is worth a file of its own: the distances of 2,000 nodes


class _Memory(mmap.mmap):
    """The mapping of a file in memory; both end with the last array that is made of it."""

    descriptor: int

    def __new__(cls, size: int) -> "_Memory":
        descriptor = os.memfd_create("spo-array", os.MFD_CLOEXEC)
        try:
            os.ftruncate(descriptor, size)
            made = super().__new__(cls, descriptor, size)
        except BaseException:
            os.close(descriptor)
            raise
        made.descriptor = descriptor
        weakref.finalize(made, os.close, descriptor)
        return made


def empty(shape: tuple[int, ...]) -> np.ndarray:
    """A float64 array, in a file in memory if it is large. Its values are not set."""
    count = math.prod(shape)
    if 8 * count < LEAST_BYTES:
        return np.empty(shape)
    return np.frombuffer(_Memory(8 * count), np.float64).reshape(shape)


def shared(array: np.ndarray) -> np.ndarray:
    """`array` itself, or a copy of it, that lies as a whole in a file in memory."""
    if descriptor_of(array) is not None:
        return array
    copy = np.frombuffer(_Memory(array.nbytes), np.float64).reshape(array.shape)
    copy[...] = array
    return copy


def descriptor_of(array: np.ndarray) -> int | None:
    """The file of an array that `empty` made, or of a view of all of it in its order."""
    base: object = array
    while isinstance(base, np.ndarray | memoryview):
        base = base.obj if isinstance(base, memoryview) else base.base
    if not isinstance(base, _Memory) or array.nbytes != len(base):
        return None
    return base.descriptor if array.flags.c_contiguous else None


def mapped(descriptor: int) -> np.ndarray:
    """The float64 numbers of such a file [N], which nothing in this process can write to."""
    size = os.fstat(descriptor).st_size
    return np.frombuffer(mmap.mmap(descriptor, size, mmap.MAP_SHARED, mmap.PROT_READ), np.float64)

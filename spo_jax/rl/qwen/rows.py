"""The rows of a stacked array as separate arrays in the memory of the stack.

XLA cannot read an operand of a product from the middle of a buffer: a slice inside a compiled
program is a copy. Training scans over stacked weights and decoding needs each layer's weights; both
use the same bytes if the rows are arguments. DLPack makes them, because its tensors have an offset:
JAX exports the stack, we narrow the tensor to one row, and JAX imports it.
"""

import ctypes
from typing import Any

import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

SHARED = ("cpu", "gpu")  # platforms with DLPack
ALIGNED = 64  # bytes; XLA's alignment of foreign buffers on a CPU


class _Tensor(ctypes.Structure):
    """DLTensor of dlpack.h, with which a DLManagedTensor begins. Strides count elements."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


_pointer_in = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class _Row:
    """Row `index` of `stacked`, an array on one device, for `from_dlpack`."""

    def __init__(self, stacked: jax.Array, index: int) -> None:
        self._stacked: Any = stacked  # JAX's types omit parts of DLPack
        self._index = index

    def __dlpack_device__(self) -> Any:
        return self._stacked.__dlpack_device__()

    def __dlpack__(self, stream: Any = None, **_: Any) -> Any:
        """The stack's own capsule, which keeps its memory alive, narrowed.

        The first version of DLPack, with this layout, is a valid reply to any requested version.
        """
        capsule = self._stacked.__dlpack__(stream=stream)
        tensor = _Tensor.from_address(_pointer_in(capsule, b"dltensor"))
        tensor.byte_offset += self._index * row_bytes(self._stacked)
        tensor.ndim -= 1
        tensor.shape += ctypes.sizeof(ctypes.c_int64)
        if tensor.strides:
            tensor.strides += ctypes.sizeof(ctypes.c_int64)
        return capsule


def row_bytes(stacked: jax.Array) -> int:
    return stacked.nbytes // stacked.shape[0]


def rows(stacked: jax.Array) -> list[jax.Array]:
    """stacked[0], stacked[1], ... of [N, ...], without copies; they keep its memory alive.

    Copies are made of rows that do not start at a multiple of `ALIGNED` bytes (all small in a
    model), and on devices that DLPack does not support (TPUs) or distinguish (several forced ones
    of one CPU). The first axis must not be split over devices.
    """
    pieces = [_rows_on_one_device(shard.data) for shard in stacked.addressable_shards]
    sharding = stacked.sharding
    if isinstance(sharding, NamedSharding):
        sharding = NamedSharding(sharding.mesh, P(*sharding.spec[1:]))
    elif len(pieces) == 1:
        return pieces[0]
    return [
        jax.make_array_from_single_device_arrays(stacked.shape[1:], sharding, list(row))
        for row in zip(*pieces, strict=True)
    ]


def _rows_on_one_device(stacked: jax.Array) -> list[jax.Array]:
    (device,) = stacked.devices()
    numbers = range(stacked.shape[0])
    if row_bytes(stacked) % ALIGNED == 0 and device.platform in SHARED:
        found = [jax.dlpack.from_dlpack(_Row(stacked, i)) for i in numbers]
        if all(one.devices() == {device} for one in found):
            return found
    return [stacked[i] for i in numbers]

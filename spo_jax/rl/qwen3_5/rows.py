"""The rows of a stacked array as arrays of their own, in the memory of the stack.

XLA cannot read an operand of a product out of the middle of a buffer: a slice inside a compiled
program is a copy. Training scans over stacked weights and decoding wants each layer's by itself;
both get the same bytes when the rows are arguments. They are made by DLPack, whose tensors have an
offset: what JAX exports of the stack is narrowed to one row and imported again.
"""

import ctypes
from typing import Any

import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

SHARED = ("cpu", "gpu")  # platforms whose memory DLPack can name
ALIGNED = 64  # bytes; where XLA lets a buffer of somebody else begin on a CPU


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
    """What `from_dlpack` takes: row `index` of `stacked`, an array on one device."""

    def __init__(self, stacked: jax.Array, index: int) -> None:
        self._stacked: Any = stacked  # JAX declares less of DLPack than it has
        self._index = index

    def __dlpack_device__(self) -> Any:
        return self._stacked.__dlpack_device__()

    def __dlpack__(self, stream: Any = None, **_: Any) -> Any:
        """The stack's own capsule, which keeps its memory alive, narrowed.

        Of whatever version of DLPack is asked for, the first is an answer, and has this layout.
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
    """stacked[0], stacked[1], ... of [N, ...], as they lie there; they keep its memory alive.

    Copied are rows that do not begin at a multiple of `ALIGNED` bytes, all of them small in a
    model, and those on devices that DLPack does not know (TPUs) or not apart (several forced ones
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

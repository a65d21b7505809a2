"""Placement of arrays on a mesh of data and fsdp axes, by NamedSharding.

Rows of a batch are split over both axes. Weights are split over fsdp and gathered layer by layer
for use. Adapters and optimizer states are small and replicated on every device.
"""

from typing import Any, TypeVar

import jax
from flax import nnx
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from spo_jax.errors import InputError

ROWS = ("data", "fsdp")
T = TypeVar("T")
M = TypeVar("M", bound=nnx.Module)


def make_mesh(data: int = 1, fsdp: int = 1) -> Mesh:
    """A mesh over data x fsdp devices of all processes, in JAX's order.

    Raises InputError if there are fewer devices.
    """
    devices = jax.devices()
    if data < 1 or fsdp < 1 or data * fsdp > len(devices):
        raise InputError(
            f"a mesh of data={data} and fsdp={fsdp} needs {data * fsdp} devices; "
            f"{len(devices)} are there"
        )
    return jax.make_mesh(
        (data, fsdp),
        ROWS,
        axis_types=(jax.sharding.AxisType.Auto,) * 2,
        devices=devices[: data * fsdp],
    )


def weight_sharding(shape: tuple[int, ...], mesh: Mesh, stacked: bool) -> NamedSharding:
    """Splits the longest axis that fsdp divides, except the axis of the scan over layers."""
    size = mesh.shape["fsdp"]
    axes = [i for i in range(int(stacked), len(shape)) if shape[i] % size == 0]
    if size == 1 or not axes:
        return NamedSharding(mesh, P())
    longest = max(axes, key=lambda i: shape[i])
    return NamedSharding(mesh, P(*("fsdp" if i == longest else None for i in range(len(shape)))))


def shard_model(model: M, mesh: Mesh) -> M:
    """A `Qwen` with these weights, split by `weight_sharding`, and with its mesh set.

    `load_pretrained(folder, mesh=mesh)` splits while it reads, so no device must hold all weights.
    """

    def placed(path: tuple[Any, ...], leaf: nnx.Variable) -> nnx.Variable:
        sharding = weight_sharding(leaf.shape, mesh, stacked=path[0] == "block")
        return leaf.replace(jax.device_put(leaf[...], sharding))

    graph, weights = nnx.split(model)
    flat = nnx.to_flat_state(weights)
    sharded: Any = nnx.merge(graph, nnx.from_flat_state((p, placed(p, leaf)) for p, leaf in flat))
    sharded.mesh = mesh
    return sharded


def replicated(tree: T, mesh: Mesh | None) -> T:
    """`tree` replicated on each device."""
    return tree if mesh is None else jax.device_put(tree, NamedSharding(mesh, P()))


def split_rows(x: jax.Array, mesh: Mesh | None) -> jax.Array:
    """Inside jit: x [B, ...] with its rows split over all devices."""
    if mesh is None:
        return x
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(ROWS)))


def gathered(tree: T, mesh: Mesh | None) -> T:
    """Inside jit: `tree` replicated on each device."""
    if mesh is None:
        return tree
    return jax.lax.with_sharding_constraint(tree, NamedSharding(mesh, P()))

"""Which axis of a weight is split, and the model on four forced host devices against one."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest
from jax.sharding import PartitionSpec as P

from spo_jax.errors import InputError
from spo_jax.rl.sharding import gathered, make_mesh, replicated, split_rows, weight_sharding

UNOPTIMISED = os.environ.get("XLA_FLAGS", "")  # see conftest
FORCED = "--xla_force_host_platform_device_count=4"


def on_four_devices(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": f"{UNOPTIMISED} {FORCED}"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("fsdp", "shape", "stacked", "expected"),
    [
        (2, (6, 4), False, P("fsdp", None)),
        (2, (4, 6), False, P(None, "fsdp")),
        (2, (7, 4), False, P(None, "fsdp")),  # the longest does not divide, the next does
        (2, (4, 4), False, P("fsdp", None)),  # the first of equals
        (4, (6, 10), False, P()),  # nothing divides: whole
        (4, (), False, P()),
        (2, (16, 4, 6), True, P(None, None, "fsdp")),  # never the axis of the scan
        (2, (16, 3, 5), True, P()),
        (2, (8,), True, P()),
        (2, (8,), False, P("fsdp")),
        (1, (8, 8), False, P()),
    ],
)
def test_the_longest_axis_that_divides_is_split(fsdp, shape, stacked, expected):
    mesh = jax.sharding.AbstractMesh((1, fsdp), ("data", "fsdp"))
    assert weight_sharding(shape, mesh, stacked).spec == expected


@pytest.mark.parametrize(("data", "fsdp"), [(0, 1), (1, 0), (-1, -1), (64, 1), (8, 8)])
def test_a_mesh_larger_than_the_machine(data, fsdp):
    there = len(jax.devices())
    with pytest.raises(InputError) as caught:
        make_mesh(data, fsdp)
    assert str(caught.value) == (
        f"a mesh of data={data} and fsdp={fsdp} needs {data * fsdp} devices; {there} are there"
    )


def test_without_a_mesh_nothing_moves():
    tree = {"x": jax.numpy.ones(3)}
    assert replicated(tree, None) is tree
    assert gathered(tree, None) is tree
    assert split_rows(tree["x"], None) is tree["x"]


MESHES = """
import jax
from jax.sharding import PartitionSpec as P
from spo_jax.rl.sharding import make_mesh, replicated

for sizes in ((2, 2), (1, 4), (4, 1), (2, 1), (1, 1)):
    mesh = make_mesh(*sizes)
    count = sizes[0] * sizes[1]
    assert dict(mesh.shape) == {"data": sizes[0], "fsdp": sizes[1]}
    assert list(mesh.devices.flat) == jax.devices()[:count]
    whole = replicated(jax.numpy.arange(6.0), mesh)
    assert [shard.data.shape for shard in whole.addressable_shards] == [(6,)] * count
print("done")
"""


@pytest.mark.long
def test_meshes_take_the_devices_in_order():
    assert on_four_devices(MESHES) == "done\n"


LOGITS = """
import jax, jax.numpy as jnp, numpy as np
from flax import nnx
from spo_jax.rl.lora import TARGETS, LoraConfig, init_adapter
from spo_jax.rl.qwen import Qwen
from spo_jax.rl.sharding import make_mesh, replicated, shard_model
from tests.rl import tiny

kinds = ("linear_attention", "full_attention") * 4
config = tiny.config(vocab_size=260, layer_types=kinds)  # a stack of four, which 2 and 4 divide
rng = np.random.default_rng(0)


def drawn(leaf):
    scale = leaf.shape[-1] ** -0.5 if leaf.ndim > 2 else 0.3
    return jnp.asarray(scale * rng.normal(size=leaf.shape), leaf.dtype)


graph, abstract = nnx.split(nnx.eval_shape(lambda: Qwen(config, rngs=nnx.Rngs(0))))
model = nnx.merge(graph, jax.tree.map(drawn, abstract))
lora = LoraConfig(rank=4, targets=TARGETS)
adapter = jax.eval_shape(lambda key: init_adapter(key, lora, config), jax.random.key(0))
adapter = jax.tree.map(drawn, adapter)
tokens = tiny.tokens(0, 8, 70)
mask = tiny.padded((70, 1, 63, 64, 65, 30, 5, 70), 70, "left")


def run(model, adapter):
    graph, weights = nnx.split(model)

    @jax.jit
    def logits(weights, adapter, tokens, mask):
        return nnx.merge(graph, weights)(tokens, mask, adapter.layers)

    compiled = logits.lower(weights, adapter, tokens, mask).compile()
    return np.asarray(compiled(weights, adapter, tokens, mask)), compiled, weights


single, alone, given = run(model, adapter)
assert np.isfinite(single).all() and 0.5 < single[mask].std() < 50
total = sum(leaf.nbytes for leaf in jax.tree.leaves(given))

for data, fsdp in ((2, 2), (1, 4), (4, 1)):
    mesh = make_mesh(data, fsdp)
    spread = shard_model(model, mesh)
    assert spread.mesh is mesh and model.mesh is None
    logits, compiled, weights = run(spread, replicated(adapter, mesh))

    # A device holds 1 / fsdp of each weight, stacks whole along their first axis.
    for path, leaf in nnx.to_flat_state(weights):
        shapes = {shard.data.shape for shard in leaf[...].addressable_shards}
        assert len(leaf[...].addressable_shards) == 4 and len(shapes) == 1, path
        (shape,) = shapes
        assert np.prod(shape) * fsdp == leaf.size, path
        assert path[0] != "block" or shape[0] == leaf.shape[0], path
    embedding = weights["embed_tokens"][...].addressable_shards[0].data.shape
    assert embedding == (260 // fsdp, 64)

    # So does the compiled program, which gathers them where they are used.
    given_shardings = jax.tree.map(lambda leaf: leaf.sharding, weights)
    for has, is_given, leaf in zip(
        jax.tree.leaves(compiled.input_shardings[0][0]),
        jax.tree.leaves(given_shardings),
        jax.tree.leaves(weights),
        strict=True,
    ):
        assert has.is_equivalent_to(is_given, leaf.ndim)
    own = compiled.memory_analysis().argument_size_in_bytes
    rest = alone.memory_analysis().argument_size_in_bytes - total
    assert abs(own - rest - total / fsdp) < 0.05 * total, (own, rest, total)
    assert ("all-gather" in compiled.as_text()) == (fsdp > 1)
    print(data, fsdp, np.abs(logits - single)[mask].max() / np.abs(single[mask]).max())
"""


@pytest.mark.slow
def test_the_model_on_four_devices_equals_one():
    lines = on_four_devices(LOGITS).splitlines()
    assert [line.split()[:2] for line in lines] == [["2", "2"], ["1", "4"], ["4", "1"]]
    for line in lines:
        assert float(line.split()[2]) < 1e-5, line

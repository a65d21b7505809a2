"""Rows of stacked arrays: the same bytes at the same place, and decoding that copies no weights."""

import gc
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from spo_jax.rl import sampling
from spo_jax.rl.lora import LoraConfig, init_adapter
from spo_jax.rl.qwen import Qwen
from spo_jax.rl.qwen.rows import rows
from spo_jax.rl.sampling import SamplingConfig, sample
from tests.rl import tiny
from tests.rl.test_sharding import on_four_devices


def stack(dtype: Any, *shape: int) -> tuple[jax.Array, np.ndarray]:
    """An array and its values, which do not depend on its memory."""
    values = np.random.default_rng(0).standard_normal(shape).astype(jnp.dtype(dtype))
    return jnp.array(values), values


def places(arrays: list[jax.Array]) -> list[int]:
    return [array.unsafe_buffer_pointer() for array in arrays]


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize("shape", [(1, 64), (4, 32, 48), (3, 8, 1, 4), (5, 0)])
def test_rows_are_in_the_memory_of_the_stack(dtype: Any, shape: tuple[int, ...]) -> None:
    stacked, values = stack(dtype, *shape)
    found = rows(stacked)
    assert len(found) == shape[0]
    for one, expected in zip(found, values, strict=True):
        assert one.dtype == dtype
        np.testing.assert_array_equal(one, expected)
        np.testing.assert_array_equal(jax.jit(lambda x: x + 0)(one), expected)
    begin, size = stacked.unsafe_buffer_pointer(), values[0].nbytes
    if size:
        assert places(found) == [begin + i * size for i in range(shape[0])]


def test_rows_keep_the_memory_of_the_stack() -> None:
    stacked, values = stack(jnp.float32, 4, 32, 48)
    place, found = stacked.unsafe_buffer_pointer(), rows(stacked)
    del stacked
    gc.collect()
    others = [jnp.full((4, 32, 48), float(i)) for i in range(50)]  # would lie where it lay
    assert place not in places(others)
    np.testing.assert_array_equal(found, values)


def test_rows_that_begin_anywhere_are_copied() -> None:
    stacked, values = stack(jnp.float32, 3, 5)
    np.testing.assert_array_equal(rows(stacked), values)


SPREAD = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
from spo_jax.rl.qwen.rows import rows
from spo_jax.rl.sharding import make_mesh

mesh = make_mesh(2, 2)
values = np.arange(3 * 64 * 32, dtype=np.float32).reshape(3, 64, 32)
for spec in (P(), P(None, "fsdp"), P(None, None, "fsdp"), P(None, ("data", "fsdp"), None)):
    stacked = jax.device_put(values, NamedSharding(mesh, spec))
    found = rows(stacked)
    for one, expected in zip(found, values, strict=True):
        np.testing.assert_array_equal(one, expected)
        assert one.sharding.is_equivalent_to(NamedSharding(mesh, P(*spec[1:])), 2)
print("done")
"""


@pytest.mark.long
def test_rows_of_what_is_spread_over_devices_are_spread_alike() -> None:
    assert on_four_devices(SPREAD) == "done\n"


@pytest.mark.slow
def test_decoding_copies_no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a compiled segment adds to its arguments is small beside the layers' weights.

    In float32: a CPU widens bfloat16 weights before it computes with them.
    """
    config = tiny.config(hidden_size=256, intermediate_size=512)
    model = Qwen(config, rngs=nnx.Rngs(0))
    lora = LoraConfig(rank=2)
    adapter = init_adapter(jax.random.key(0), lora, config).scaled(lora.scale)
    plans = []
    segment = sampling._segment

    def planned(*arguments: Any) -> Any:
        plans.append(segment.lower(*arguments).compile().memory_analysis())
        return segment(*arguments)

    monkeypatch.setattr(sampling, "_segment", planned)
    prompts = [tiny.tokens(0, 1, 40)[0]]
    sample(model, prompts, 2, jax.random.key(0), SamplingConfig(max_new_tokens=8), adapter)
    layers = sum(leaf.nbytes for leaf in jax.tree.leaves(nnx.state(model.block)))
    assert config.repeats == 2
    assert len(plans) == 1
    assert plans[0].temp_size_in_bytes < 0.1 * layers
    # Nor does it get them twice.
    whole = sum(leaf.nbytes for leaf in jax.tree.leaves(nnx.state(model)))
    assert layers < plans[0].argument_size_in_bytes < 1.2 * whole

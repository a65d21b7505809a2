"""Models of known sizes with random weights, and what a card could do at best."""

import time
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from spo_jax.rl.lora import LoraConfig, shapes
from spo_jax.rl.qwen import Qwen, QwenConfig, named_config
from spo_jax.rl.qwen.config import FULL, LINEAR
from spo_jax.rl.qwen.delta_rule import CHUNK

# For a CPU: the second is as large as one can wait for.
SMALL = {"tiny": (192, 512, 4, 2048), "small": (512, 1536, 8, 8192)}


def config_of(size: str) -> QwenConfig:
    """tiny, small, or a published size such as 9B."""
    if size not in SMALL:
        return named_config(size)
    width, inner, layers, vocabulary = SMALL[size]
    return QwenConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=inner,
        layer_types=tuple(FULL if (i + 1) % 4 == 0 else LINEAR for i in range(layers)),
        num_attention_heads=width // 64,
        num_key_value_heads=1,
        head_dim=64,
        linear_num_key_heads=width // 128 or 1,
        linear_num_value_heads=width // 128 or 1,
        linear_key_head_dim=128,
        linear_value_head_dim=128,
        rotary_dim=16,
        tie_word_embeddings=True,
    )


def compute_dtype() -> jnp.dtype:
    """bfloat16 where the device computes with it, float32 on a CPU."""
    return jnp.dtype(jnp.float32 if jax.default_backend() == "cpu" else jnp.bfloat16)


def random_model(config: QwenConfig, dtype: Any) -> Qwen:
    """Drawn on the device in one program, so that float32 copies of the weights do not pile up."""
    return nnx.jit(lambda: Qwen(config, dtype=dtype, rngs=nnx.Rngs(0)))()


def device_name() -> str:
    return jax.devices()[0].device_kind


def seconds(run: Any, repeats: int = 3) -> float:
    """The shortest of some timings of `run`, which returns arrays; once more to warm up."""
    jax.block_until_ready(run())
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(run())
        best = min(best, time.perf_counter() - began)
    return best


def peak_flops(dtype: Any) -> float:
    """FLOP/s of a large matrix product in `dtype`, measured here."""
    size = 2048 if jax.default_backend() == "cpu" else 8192
    a = jax.random.normal(jax.random.key(0), (size, size), dtype)
    product = jax.jit(lambda a: a @ a)
    return 2 * size**3 / seconds(lambda: product(a), repeats=5)


def step_flops(config: QwenConfig, lora: LoraConfig, prompt: int, completion: int) -> float:
    """FLOPs that training an adapter of a frozen base needs for one sample, without recomputation.

    A frozen weight costs 4 a token (forward, and back to its input), an adapter's 6; the head is
    needed for the completion alone; attention sees half of the sequence on average; a delta net
    reads and writes its memory and solves its chunks.
    """
    T = prompt + completion
    total = 4.0 * config.vocab_size * config.hidden_size * completion
    for kind in config.layer_types:
        for name, (out, inputs) in shapes(config, kind).items():
            total += 4 * T * out * inputs
            if name in lora.targets:
                total += 6 * T * lora.rank * (out + inputs)
        if kind == FULL:
            total += 3 * T * 4 * config.num_attention_heads * config.head_dim * (T / 2)
        else:
            key, value = config.linear_key_head_dim, config.linear_value_head_dim
            in_chunk = 2 * (CHUNK / 2) * (2 * key + 2 * value)
            total += 3 * T * config.linear_num_value_heads * (6 * key * value + in_chunk)
    return total

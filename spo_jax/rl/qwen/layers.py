"""Parts of every layer: linear maps with a low-rank correction, norms, the MLP, RoPE.

Parameters of layers have a leading axis, the repeats of a block, over which the model scans;
modules are called without that axis. Weights keep the checkpoints' [out, in].
"""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import nnx

from spo_jax.rl.qwen.config import QwenConfig


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LowRank:
    """A correction B A of a weight matrix (LoRA). a: [r, in], b: [out, r], scale included in b."""

    a: jax.Array
    b: jax.Array


LowRanks = Mapping[str, LowRank]  # of one layer, by the name of the corrected projection


@dataclass(frozen=True)
class Make:
    """Creates parameters: their repeats, dtype and source of initial values."""

    repeats: int
    dtype: jnp.dtype
    rngs: nnx.Rngs

    def normal(self, *shape: int) -> nnx.Param:
        values = 0.02 * jax.random.normal(self.rngs.params(), (self.repeats, *shape), jnp.float32)
        return nnx.Param(values.astype(self.dtype))

    def constant(self, value: float, *shape: int, dtype: jnp.dtype | None = None) -> nnx.Param:
        return nnx.Param(jnp.full((self.repeats, *shape), value, dtype or self.dtype))


class Linear(nnx.Module):
    """x -> x W^T + (x A^T) B^T, plus a bias if there is one. weight: [out, in]; bias: [out]."""

    def __init__(self, make: Make, inputs: int, outputs: int, bias: bool = False):
        self.weight = make.normal(outputs, inputs)
        self.bias = make.constant(0.0, outputs) if bias else None

    def __call__(self, x: jax.Array, low_rank: LowRank | None = None) -> jax.Array:
        """x: [..., in] -> [..., out], in the dtype of x; the adapter is cast to it."""
        out = linear(x, self.weight[...])
        if self.bias is not None:
            out = out + self.bias[...]
        if low_rank is not None:
            inner = linear(x, low_rank.a.astype(x.dtype))
            out = out + linear(inner, low_rank.b.astype(x.dtype))
        return out


def linear(x: jax.Array, weight: jax.Array) -> jax.Array:
    """x [..., in] times weight [out, in] transposed.

    Rows are flattened first: XLA's CPU gradients of a 3-D product run at a third of the speed.
    """
    flat = x.reshape(-1, x.shape[-1])
    out = jax.lax.dot_general(flat, weight, (((1,), (1,)), ((), ())))
    return out.reshape(*x.shape[:-1], weight.shape[0])


class RMSNorm(nnx.Module):
    """x̂ (offset + w), computed in float32. offset: 1 where w is zero-centred, else 0."""

    def __init__(self, config: QwenConfig, make: Make, size: int):
        self.offset, self.eps = config.family.norm_offset, config.rms_norm_eps
        self.weight = make.constant(1.0 - self.offset, size)

    def __call__(self, x: jax.Array) -> jax.Array:
        factor = self.offset + self.weight[...].astype(jnp.float32)
        return rms_norm(x, factor, self.eps).astype(x.dtype)


def rms_norm(x: jax.Array, weight: jax.Array, eps: float) -> jax.Array:
    """float32 x / rms(x) * weight over the last axis."""
    x = x.astype(jnp.float32)
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + eps) * weight


class MLP(nnx.Module):
    """down(silu(gate(x)) * up(x))."""

    def __init__(self, config: QwenConfig, make: Make):
        width, inner = config.hidden_size, config.intermediate_size
        self.gate_proj = Linear(make, width, inner)
        self.up_proj = Linear(make, width, inner)
        self.down_proj = Linear(make, inner, width)

    def __call__(self, x: jax.Array, low_ranks: LowRanks) -> jax.Array:
        gate = self.gate_proj(x, low_ranks.get("gate_proj"))
        up = self.up_proj(x, low_ranks.get("up_proj"))
        return self.down_proj(jax.nn.silu(gate) * up, low_ranks.get("down_proj"))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Rotation:
    """RoPE's angles at some positions. cos, sin: [B, T, rotary_dim / 2] float32."""

    cos: jax.Array
    sin: jax.Array

    @classmethod
    def at(cls, positions: jax.Array, config: QwenConfig) -> "Rotation":
        """positions: [B, T] int32. Text has one position grid, so interleaved mRoPE is plain."""
        pairs = jnp.arange(0, config.rotary_dim, 2, dtype=jnp.float32)
        frequencies = config.rope_theta ** (-pairs / config.rotary_dim)
        angles = positions[..., None].astype(jnp.float32) * frequencies
        return cls(jnp.cos(angles), jnp.sin(angles))

    def __call__(self, x: jax.Array) -> jax.Array:
        """Rotate the leading dimensions of x [B, T, H, head_dim], pairing i with i + half."""
        half = self.cos.shape[-1]
        cos, sin = self.cos[:, :, None], self.sin[:, :, None]
        first, second = (
            x[..., :half].astype(jnp.float32),
            x[..., half : 2 * half].astype(jnp.float32),
        )
        turned = jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
        return jnp.concatenate([turned.astype(x.dtype), x[..., 2 * half :]], axis=-1)

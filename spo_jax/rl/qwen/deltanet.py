"""The gated delta net: linear attention with a decaying memory, corrected token by token."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import nnx

from spo_jax.rl.qwen.config import QwenConfig
from spo_jax.rl.qwen.delta_rule import chunked, normalise_heads, recurrent_step
from spo_jax.rl.qwen.layers import Linear, LowRanks, Make, rms_norm


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class DeltaState:
    """conv: [B, W - 1, conv_dim], the convolution's inputs; memory: [B, Hv, Dk, Dv] float32."""

    conv: jax.Array
    memory: jax.Array


class GatedNorm(nnx.Module):
    """silu(z) * w x̂ over each head, in float32. Unlike RMSNorm not zero-centred."""

    def __init__(self, make: Make, size: int, eps: float):
        self.weight = make.constant(1.0, size, dtype=jnp.float32)
        self.eps = eps

    def __call__(self, x: jax.Array, z: jax.Array) -> jax.Array:
        """x: [..., Hv, Dv] float32, z: the same shape in the model's dtype, as the result."""
        weight = self.weight[...].astype(jnp.float32)
        normed = rms_norm(x, weight, self.eps) * jax.nn.silu(z.astype(jnp.float32))
        return normed.astype(z.dtype)


class Convolution(nnx.Module):
    """A causal depthwise convolution, then silu. weight: [channels, 1, W]."""

    def __init__(self, make: Make, channels: int, width: int):
        self.weight = make.normal(channels, 1, width)

    def __call__(self, x: jax.Array, tail: jax.Array) -> tuple[jax.Array, jax.Array]:
        """x [B, T, C] after tail [B, W - 1, C] -> [B, T, C] float32 and the next tail."""
        taps = self.weight[...][:, 0].astype(jnp.float32)  # [C, W]
        T = x.shape[1]
        longer = jnp.concatenate([tail.astype(x.dtype), x], axis=1)
        wide = longer.astype(jnp.float32)
        mixed = sum(wide[:, i : i + T] * taps[:, i] for i in range(taps.shape[1]))
        return jax.nn.silu(jnp.asarray(mixed)), longer[:, T:]


class GatedDeltaNet(nnx.Module):
    """Queries, keys and values from one projection and a short convolution; see `delta_rule`."""

    def __init__(self, config: QwenConfig, make: Make):
        width = config.hidden_size
        self.key_heads, self.heads = config.linear_num_key_heads, config.linear_num_value_heads
        self.key_size, self.value_size = config.linear_key_head_dim, config.linear_value_head_dim
        self.taps = config.linear_conv_kernel_dim
        self.in_proj_qkv = Linear(make, width, config.conv_dim)
        self.in_proj_z = Linear(make, width, config.value_dim)
        self.in_proj_b = Linear(make, width, self.heads)
        self.in_proj_a = Linear(make, width, self.heads)
        self.conv1d = Convolution(make, config.conv_dim, self.taps)
        # As in transformers: A uniform on (0.01, 16), equal time steps.
        rates = jax.random.uniform(
            make.rngs.params(), (make.repeats, self.heads), jnp.float32, 0.01, 16.0
        )
        self.A_log = nnx.Param(jnp.log(rates))
        self.dt_bias = make.constant(1.0, self.heads)
        self.norm = GatedNorm(make, self.value_size, config.rms_norm_eps)
        self.out_proj = Linear(make, config.value_dim, width)

    def empty_state(self, rows: int, dtype: jnp.dtype) -> DeltaState:
        """The state before the first token."""
        channels = 2 * self.key_heads * self.key_size + self.heads * self.value_size
        return DeltaState(
            jnp.zeros((rows, self.taps - 1, channels), dtype),
            jnp.zeros((rows, self.heads, self.key_size, self.value_size), jnp.float32),
        )

    def __call__(
        self,
        x: jax.Array,
        valid: jax.Array,
        low_ranks: LowRanks,
        past: DeltaState | None = None,
    ) -> tuple[jax.Array, DeltaState]:
        """x [B, T, D], valid [B, T] -> [B, T, D] and the state after T tokens.

        Padding before the first token leaves the state empty; padding after the last one
        invalidates the state but not the output.
        """
        x = jnp.where(valid[..., None], x, 0)
        state = past or self.empty_state(x.shape[0], x.dtype)
        mixed, tail = self.conv1d(self.in_proj_qkv(x, low_ranks.get("in_proj_qkv")), state.conv)
        queries, keys, values = self._heads(mixed)
        decay, beta = self._gates(x, low_ranks)
        out, memory = chunked(queries, keys, values, decay, beta, state.memory)
        return self._output(out, x, low_ranks), DeltaState(tail, memory)

    def step(
        self, x: jax.Array, low_ranks: LowRanks, state: DeltaState
    ) -> tuple[jax.Array, DeltaState]:
        """One token: x [B, D] -> [B, D] and the state after it."""
        qkv = self.in_proj_qkv(x, low_ranks.get("in_proj_qkv"))
        mixed, tail = self.conv1d(qkv[:, None], state.conv)
        queries, keys, values = self._heads(mixed[:, 0])
        decay, beta = self._gates(x, low_ranks)
        out, memory = recurrent_step(queries, keys, values, decay, beta, state.memory)
        return self._output(out, x, low_ranks), DeltaState(tail, memory)

    def _heads(self, mixed: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """[..., conv_dim] -> queries and keys [..., Hk, Dk], unit, and values [..., Hv, Dv]."""
        width = self.key_heads * self.key_size
        queries, keys, values = jnp.split(mixed, [width, 2 * width], axis=-1)
        lead = mixed.shape[:-1]
        queries = normalise_heads(queries.reshape(*lead, self.key_heads, self.key_size))
        keys = normalise_heads(keys.reshape(*lead, self.key_heads, self.key_size))
        values = values.reshape(*lead, self.heads, self.value_size)
        return queries * self.key_size**-0.5, keys, values

    def _gates(self, x: jax.Array, low_ranks: LowRanks) -> tuple[jax.Array, jax.Array]:
        """The log decay g <= 0 and the correction's rate beta, [..., Hv] float32."""
        a = self.in_proj_a(x, low_ranks.get("in_proj_a")).astype(jnp.float32)
        b = self.in_proj_b(x, low_ranks.get("in_proj_b")).astype(jnp.float32)
        rate = jnp.exp(self.A_log[...].astype(jnp.float32))
        return -rate * jax.nn.softplus(a + self.dt_bias[...].astype(jnp.float32)), jax.nn.sigmoid(b)

    def _output(self, out: jax.Array, x: jax.Array, low_ranks: LowRanks) -> jax.Array:
        z = self.in_proj_z(x, low_ranks.get("in_proj_z")).reshape(out.shape)
        normed = self.norm(out, z)
        flat = normed.reshape(*normed.shape[:-2], -1)
        return self.out_proj(flat, low_ranks.get("out_proj"))

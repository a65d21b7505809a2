"""Full attention with grouped queries; in some families with norms, biases and gates.

Keys and values come from the sequence itself and from a past that several sequences may share (the
prompt of a group of samples). A shared past is neither copied nor attended to row by row.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import nnx

from spo_jax.rl.qwen.config import ATTENTION, QwenConfig
from spo_jax.rl.qwen.layers import Linear, LowRanks, Make, RMSNorm, Rotation

QUERY_BLOCK = 512  # queries per block of scores; bounds memory at [B, H, 512, S]
MASKED = -1e30  # finite, so that a row without visible keys stays finite


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class KeyValues:
    """keys, values: [B, Hkv, S, head_dim]."""

    keys: jax.Array
    values: jax.Array


class Attention(nnx.Module):
    """o_proj(attention(q, k, v)), of a gated family o_proj(attention(q, k, v) * sigmoid(gate)).

    q_proj yields the query, and in a gated family the gate, per head.
    """

    def __init__(self, config: QwenConfig, make: Make):
        width, size = config.hidden_size, config.head_dim
        self.heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.gated, self.qk_norm = config.family.gated, config.family.qk_norm
        biased = {name: name in config.biases for name in ATTENTION}
        kv_dim = self.kv_heads * size
        self.q_proj = Linear(make, width, config.query_dim, biased["q_proj"])
        self.k_proj = Linear(make, width, kv_dim, biased["k_proj"])
        self.v_proj = Linear(make, width, kv_dim, biased["v_proj"])
        self.o_proj = Linear(make, self.heads * size, width, biased["o_proj"])
        if self.qk_norm:
            self.q_norm = RMSNorm(config, make, size)
            self.k_norm = RMSNorm(config, make, size)

    def project(
        self, x: jax.Array, rotation: Rotation, low_ranks: LowRanks
    ) -> tuple[jax.Array, jax.Array | None, KeyValues]:
        """x [B, T, D] -> queries [B, H, T, head_dim], gates [B, T, H, head_dim], keys and values.

        Without gates, they are None.
        """
        B, T, _ = x.shape
        queries = self.q_proj(x, low_ranks.get("q_proj")).reshape(B, T, self.heads, -1)
        gates = None
        if self.gated:
            queries, gates = jnp.split(queries, 2, axis=-1)
        keys = self.k_proj(x, low_ranks.get("k_proj")).reshape(B, T, self.kv_heads, -1)
        values = self.v_proj(x, low_ranks.get("v_proj")).reshape(B, T, self.kv_heads, -1)
        if self.qk_norm:
            queries, keys = self.q_norm(queries), self.k_norm(keys)
        queries, keys = rotation(queries), rotation(keys)
        return _heads_first(queries), gates, KeyValues(_heads_first(keys), _heads_first(values))

    def merge_heads(
        self, mixed: jax.Array, gates: jax.Array | None, low_ranks: LowRanks
    ) -> jax.Array:
        """mixed [B, H, T, head_dim], gates [B, T, H, head_dim] or None -> [B, T, D]."""
        mixed = _heads_first(mixed)
        if gates is not None:
            mixed = mixed * jax.nn.sigmoid(gates)
        return self.o_proj(mixed.reshape(*mixed.shape[:2], -1), low_ranks.get("o_proj"))

    def __call__(
        self,
        x: jax.Array,
        valid: jax.Array,
        rotation: Rotation,
        low_ranks: LowRanks,
        past: KeyValues | None = None,
        past_valid: jax.Array | None = None,
    ) -> tuple[jax.Array, KeyValues]:
        """x [B, T, D], valid [B, T], past of G | B rows -> [B, T, D] and the keys and values."""
        queries, gates, own = self.project(x, rotation, low_ranks)
        mixed = causal_attention(queries, own, valid, past, past_valid)
        return self.merge_heads(mixed, gates, low_ranks), own


def _heads_first(x: jax.Array) -> jax.Array:
    """[B, T, H, d] <-> [B, H, T, d]."""
    return x.swapaxes(1, 2)


def causal_attention(
    queries: jax.Array,
    own: KeyValues,
    valid: jax.Array,
    past: KeyValues | None = None,
    past_valid: jax.Array | None = None,
) -> jax.Array:
    """Each query sees the whole past and its own sequence up to itself.

    queries: [B, H, T, d]. own: T keys. valid: [B, T] bool. past: S keys of G rows, G dividing B,
    row g shared by the rows g B/G, ..., (g+1) B/G - 1. past_valid: [G, S] bool.
    Returns [B, H, T, d].
    """
    B, H, T, d = queries.shape
    block = min(T, QUERY_BLOCK)
    count = -(-T // block)
    if count == 1:
        return attend(queries, own, _causal(valid, 0, T), past, past_valid)
    padded = jnp.pad(queries, ((0, 0), (0, 0), (0, count * block - T), (0, 0)))
    blocks = jnp.moveaxis(padded.reshape(B, H, count, block, d), 2, 0)

    @jax.checkpoint
    def one(indexed: tuple[jax.Array, jax.Array]) -> jax.Array:
        index, some = indexed
        return attend(some, own, _causal(valid, index * block, block), past, past_valid)

    out = jax.lax.map(one, (jnp.arange(count), blocks))
    return jnp.moveaxis(out, 0, 2).reshape(B, H, count * block, d)[:, :, :T]


def _causal(valid: jax.Array, start: jax.Array | int, count: int) -> jax.Array:
    """[B, count, T] bool: the keys visible to the queries start, ..., start + count - 1."""
    order = jnp.arange(valid.shape[1])[None, :] <= (start + jnp.arange(count))[:, None]
    return order[None] & valid[:, None, :]


def attend(
    queries: jax.Array,
    own: KeyValues,
    visible: jax.Array,
    past: KeyValues | None = None,
    past_valid: jax.Array | None = None,
) -> jax.Array:
    """Softmax attention over own and past keys together, in float32.

    queries: [B, H, T, d]. own: S keys, of which visible [B, T, S]. past, past_valid: as in
    `causal_attention`. Returns [B, H, T, d] in the dtype of the queries.
    """
    B, H, T, d = queries.shape
    heads = own.keys.shape[1]
    rep = H // heads
    grouped = queries.reshape(B, heads, rep * T, d) * d**-0.5
    scores = _scores(grouped, own.keys).reshape(B, heads, rep, T, -1)
    scores = jnp.where(visible[:, None, None], scores, MASKED).reshape(B, heads, rep * T, -1)
    top = scores.max(axis=-1, keepdims=True)
    if past is None or past_valid is None:
        top = jax.lax.stop_gradient(top)
        weights = jnp.exp(scores - top)
        mixed, total = _mix(weights, own.values), weights.sum(axis=-1, keepdims=True)
        return (mixed / total).reshape(B, H, T, d).astype(queries.dtype)

    G = past.keys.shape[0]
    shared = grouped.reshape(G, B // G, heads, rep * T, d).swapaxes(1, 2)
    shared = shared.reshape(G, heads, -1, d)  # all queries of a group side by side
    past_scores = jnp.where(past_valid[:, None, None], _scores(shared, past.keys), MASKED)

    def by_group(x: jax.Array) -> jax.Array:
        x = x.reshape(G, B // G, heads, rep * T, -1)
        return x.swapaxes(1, 2).reshape(G, heads, -1, x.shape[-1])

    def by_row(x: jax.Array) -> jax.Array:
        x = x.reshape(G, heads, B // G, rep * T, -1)
        return x.swapaxes(1, 2).reshape(B, heads, rep * T, x.shape[-1])

    past_top = by_row(past_scores.max(axis=-1, keepdims=True))
    top = jax.lax.stop_gradient(jnp.maximum(top, past_top))
    weights, past_weights = jnp.exp(scores - top), jnp.exp(past_scores - by_group(top))
    mixed = _mix(weights, own.values) + by_row(_mix(past_weights, past.values))
    total = weights.sum(axis=-1, keepdims=True)
    total = total + by_row(past_weights.sum(axis=-1, keepdims=True))
    return (mixed / total).reshape(B, H, T, d).astype(queries.dtype)


def _scores(queries: jax.Array, keys: jax.Array) -> jax.Array:
    """[B, h, Q, d] with [B, h, S, d] -> float32 [B, h, Q, S]."""
    return jnp.einsum("bhqd,bhsd->bhqs", queries, keys, preferred_element_type=jnp.float32)


def _mix(weights: jax.Array, values: jax.Array) -> jax.Array:
    """float32 [B, h, Q, S] with [B, h, S, d] -> float32 [B, h, Q, d]."""
    return jnp.einsum(
        "bhqs,bhsd->bhqd", weights.astype(values.dtype), values, preferred_element_type=jnp.float32
    )

"""Decoding token by token after a prefill.

The prompts' keys and values are read in place, once for all samples of a prompt. Each row's new
keys and values go into its own buffer, written in place. Layers are unrolled, and their weights are
arguments: a slice of stacked ones would be a copy (`rows`). The sequence is the last axis of keys,
because a product of few queries with rows of keys is much slower on a CPU.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from spo_jax.rl.qwen.attention import MASKED, KeyValues
from spo_jax.rl.qwen.config import FULL
from spo_jax.rl.qwen.deltanet import DeltaState
from spo_jax.rl.qwen.layers import LowRanks, Rotation
from spo_jax.rl.qwen.model import Layer, Past, Qwen


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Cache:
    """keys: [B, Hkv, head_dim, S]; values: [B, Hkv, S, head_dim]."""

    keys: jax.Array
    values: jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class DecodeState:
    """R rows after `steps` tokens; row r continues prompt r // (R / G) of G prompts.

    prompts, own: of each attention layer. valid: [G, S] bool, the prompts' tokens without padding.
    length: [R] int32, their number. deltas: of each delta net, R rows.
    """

    prompts: tuple[Cache, ...]
    valid: jax.Array
    length: jax.Array
    own: tuple[Cache, ...]
    deltas: tuple[DeltaState, ...]
    steps: jax.Array

    @property
    def capacity(self) -> int | None:
        """Capacity for a row's own tokens; None without an attention layer."""
        return self.own[0].values.shape[2] if self.own else None


def start(past: Past, rows: int, capacity: int) -> DecodeState:
    """The state before the first step, after a prefill of G prompts for `rows` rows.

    capacity: tokens per row.
    """
    past = past.repeated(rows)
    prompts, own, deltas = [], [], []
    repeats = jax.tree.leaves(past.layers)[0].shape[0]
    for repeat in range(repeats):
        for stacked in past.layers:
            kept = jax.tree.map(lambda x, r=repeat: x[r], stacked)
            if isinstance(kept, DeltaState):
                deltas.append(kept)
                continue
            prompts.append(Cache(kept.keys.swapaxes(2, 3), kept.values))
            _, heads, _, size = kept.keys.shape
            own.append(
                Cache(
                    jnp.zeros((rows, heads, size, capacity), kept.keys.dtype),
                    jnp.zeros((rows, heads, capacity, size), kept.values.dtype),
                )
            )
    return DecodeState(
        tuple(prompts), past.valid, past.length, tuple(own), tuple(deltas), jnp.int32(0)
    )


def grown(state: DecodeState, capacity: int) -> DecodeState:
    """The same with room for `capacity` tokens per row."""

    def longer(cache: Cache) -> Cache:
        more = capacity - cache.values.shape[2]
        return Cache(
            jnp.pad(cache.keys, ((0, 0), (0, 0), (0, 0), (0, more))),
            jnp.pad(cache.values, ((0, 0), (0, 0), (0, more), (0, 0))),
        )

    return replace(state, own=tuple(longer(cache) for cache in state.own))


def selected(state: DecodeState, rows: jax.Array) -> DecodeState:
    """A selection of rows, each with a copy of its prompt. rows: [R'] int32."""
    of_prompt = rows // (state.length.shape[0] // state.valid.shape[0])
    prompts = jax.tree.map(lambda x: x[of_prompt], state.prompts)
    own, deltas = jax.tree.map(lambda x: x[rows], (state.own, state.deltas))
    valid, length = state.valid[of_prompt], state.length[rows]
    return DecodeState(prompts, valid, length, own, deltas, state.steps)


def low_ranks_by_layer(
    adapter: Sequence[LowRanks] | None, layers: int, repeats: int
) -> list[LowRanks]:
    """An adapter as for `Qwen.hidden`, sliced like `Qwen.unstacked`."""
    if not adapter:
        return [{}] * layers
    return [
        jax.tree.map(lambda x, r=r: x[r], low_ranks)
        for r in range(repeats)
        for low_ranks in adapter
    ]


def step(
    model: Qwen,
    layers: Sequence[Layer],
    low_ranks: Sequence[LowRanks],
    tokens: jax.Array,
    state: DecodeState,
) -> tuple[jax.Array, DecodeState]:
    """One token of each row: tokens [R] int32 -> the normalised output [R, D] and the next state.

    layers, low_ranks: of `Qwen.unstacked` and `low_ranks_by_layer`, made outside the loop.
    """
    x = model.embed_tokens[...][tokens]
    rotation = Rotation.at((state.length + state.steps)[:, None], model.config)
    prompts, before, deltas = iter(state.prompts), iter(state.own), iter(state.deltas)
    own_after: list[Cache] = []
    deltas_after: list[DeltaState] = []
    for layer, low_rank in zip(layers, low_ranks, strict=True):
        normed = layer.input_layernorm(x)
        if layer.kind == FULL:
            attention = layer.self_attn
            queries, gates, new = attention.project(normed[:, None], rotation, low_rank)
            own = _written(next(before), new, state.steps)
            mixed = attend(queries[:, :, 0], next(prompts), state.valid, own, state.steps)
            out = attention.merge_heads(mixed[:, :, None], gates, low_rank)[:, 0]
            own_after.append(own)
        else:
            out, delta = layer.linear_attn.step(normed, low_rank, next(deltas))
            deltas_after.append(delta)
        x = layer.feed_forward(x + out, low_rank)
    state = replace(state, own=tuple(own_after), deltas=tuple(deltas_after), steps=state.steps + 1)
    return model.norm(x), state


def _written(cache: Cache, new: KeyValues, place: jax.Array) -> Cache:
    keys, values = new.keys.swapaxes(2, 3), new.values
    return Cache(
        jax.lax.dynamic_update_slice_in_dim(cache.keys, keys.astype(cache.keys.dtype), place, 3),
        jax.lax.dynamic_update_slice_in_dim(
            cache.values, values.astype(cache.values.dtype), place, 2
        ),
    )


def attend(
    queries: jax.Array, prompts: Cache, valid: jax.Array, own: Cache, last: jax.Array
) -> jax.Array:
    """Softmax attention of one query per row and head, in float32.

    queries: [R, H, d]. prompts: of G prompts, valid [G, S] bool. own: R rows with tokens up to
    `last`. Returns [R, H, d] in the dtype of the queries.
    """
    R, H, d = queries.shape
    heads, G = own.values.shape[1], valid.shape[0]
    queries = queries * d**-0.5
    each = queries.reshape(R, heads, H // heads, d)
    shared = _together(each, G)
    exists = jnp.arange(own.values.shape[2]) <= last
    scores = jnp.where(exists, _scores(each, own.keys), MASKED)
    prompt_scores = jnp.where(valid[:, None, None], _scores(shared, prompts.keys), MASKED)

    prompt_top = _apart(prompt_scores.max(axis=-1, keepdims=True), R)
    top = jnp.maximum(scores.max(axis=-1, keepdims=True), prompt_top)
    weights = jnp.exp(scores - top)
    prompt_weights = jnp.exp(prompt_scores - _together(top, G))
    total = weights.sum(axis=-1, keepdims=True)
    total += _apart(prompt_weights.sum(axis=-1, keepdims=True), R)
    mixed = _mix(weights, own.values) + _apart(_mix(prompt_weights, prompts.values), R)
    return (mixed / total).reshape(R, H, d).astype(queries.dtype)


def _together(x: jax.Array, prompts: int) -> jax.Array:
    """[R, h, q, ...] -> [G, h, R / G * q, ...]: all queries of a prompt side by side."""
    R, heads, count, size = x.shape
    x = x.reshape(prompts, R // prompts, heads, count, size).swapaxes(1, 2)
    return x.reshape(prompts, heads, -1, size)


def _apart(x: jax.Array, rows: int) -> jax.Array:
    """The inverse of `_together`."""
    G, heads, _, size = x.shape
    x = x.reshape(G, heads, rows // G, -1, size).swapaxes(1, 2)
    return x.reshape(rows, heads, -1, size)


def _scores(queries: jax.Array, keys: jax.Array) -> jax.Array:
    """[B, h, q, d] with [B, h, d, S] -> float32 [B, h, q, S]."""
    return jnp.einsum("bhqd,bhds->bhqs", queries, keys, preferred_element_type=jnp.float32)


def _mix(weights: jax.Array, values: jax.Array) -> jax.Array:
    """float32 [B, h, q, S] with [B, h, S, d] -> float32 [B, h, q, d]."""
    return jnp.einsum(
        "bhqs,bhsd->bhqd", weights.astype(values.dtype), values, preferred_element_type=jnp.float32
    )

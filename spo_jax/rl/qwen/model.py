"""Qwen's text models: a scan over blocks of layers, of `config.FAMILIES`.

In Qwen3.5 a block is three delta-net layers and one attention layer, in the others one attention
layer. A block that occurs once is a scan over its delta nets, then the attention layer.

The base is frozen and the adapter is an argument, so that two adapters share one base. A past (the
prompt of a group of samples) is also an argument, and gradients pass through it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import chex
import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import Mesh

from spo_jax.rl.qwen.attention import Attention, KeyValues
from spo_jax.rl.qwen.config import FULL, QwenConfig
from spo_jax.rl.qwen.deltanet import DeltaState, GatedDeltaNet
from spo_jax.rl.qwen.layers import MLP, LowRanks, Make, RMSNorm, Rotation
from spo_jax.rl.qwen.rows import rows
from spo_jax.rl.sharding import gathered, split_rows

Kept = KeyValues | DeltaState  # a layer's state for the following tokens


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Past:
    """The state of a sequence for its continuations.

    layers: of each position in the block, leaves [repeats, G, ...]. valid: [G, S] bool, the tokens
    without padding, which precedes them. length: [G] int32, their number.
    """

    layers: tuple[Kept, ...]
    valid: jax.Array
    length: jax.Array

    def repeated(self, rows: int) -> "Past":
        """The same for `rows` continuations: copies states, shares keys and values."""
        times = rows // self.length.shape[0]

        def copies(kept: Kept) -> Kept:
            if isinstance(kept, KeyValues):
                return kept
            return jax.tree.map(lambda x: jnp.repeat(x, times, axis=1), kept)

        length = jnp.repeat(self.length, times)
        return Past(tuple(copies(kept) for kept in self.layers), self.valid, length)


class Layer(nnx.Module):
    """x += mixer(norm(x)); x += mlp(norm(x)). The mixer is named as in checkpoints."""

    def __init__(self, kind: str, config: QwenConfig, make: Make):
        self.kind = kind
        self.input_layernorm = RMSNorm(config, make, config.hidden_size)
        if kind == FULL:
            self.self_attn = Attention(config, make)
        else:
            self.linear_attn = GatedDeltaNet(config, make)
        self.post_attention_layernorm = RMSNorm(config, make, config.hidden_size)
        self.mlp = MLP(config, make)

    def __call__(
        self,
        x: jax.Array,
        valid: jax.Array,
        rotation: Rotation,
        low_ranks: LowRanks,
        past: Kept | None,
        past_valid: jax.Array | None,
    ) -> tuple[jax.Array, Kept]:
        """x [B, T, D], valid [B, T] -> [B, T, D] and the layer's state."""
        normed = self.input_layernorm(x)
        kept: Kept
        if self.kind == FULL:
            assert not isinstance(past, DeltaState)
            mixed, kept = self.self_attn(normed, valid, rotation, low_ranks, past, past_valid)
        else:
            assert not isinstance(past, KeyValues)
            mixed, kept = self.linear_attn(normed, valid, low_ranks, past)
        return self.feed_forward(x + mixed, low_ranks), kept

    def feed_forward(self, x: jax.Array, low_ranks: LowRanks) -> jax.Array:
        return x + self.mlp(self.post_attention_layernorm(x), low_ranks)


class Block(nnx.Module):
    """The layers that repeat, named layer0, layer1, ...; their parameters are [repeats, ...]."""

    def __init__(self, config: QwenConfig, make: Make):
        for i, kind in enumerate(config.block):
            setattr(self, f"layer{i}", Layer(kind, config, make))
        self.size = len(config.block)

    def layers(self) -> list[Layer]:
        return [getattr(self, f"layer{i}") for i in range(self.size)]


class Qwen(nnx.Module):
    """A dense text model of any family with random weights; `load_pretrained` fills in real ones.

    mesh: devices of the weights (`rl.sharding`); None for one device.
    remat: whether the backward pass recomputes each layer instead of storing its intermediates.
    """

    def __init__(
        self, config: QwenConfig, *, dtype: jnp.dtype = jnp.float32, rngs: nnx.Rngs
    ) -> None:
        make = Make(config.repeats, jnp.dtype(dtype), rngs)
        single = Make(1, jnp.dtype(dtype), rngs)
        self.config = config
        self.mesh: Mesh | None = None
        self.remat = True
        self.embed_tokens = _first(single.normal(config.vocab_size, config.hidden_size))
        self.block = Block(config, make)
        self.norm = RMSNorm(config, single, config.hidden_size)
        self.norm.weight = _first(self.norm.weight)
        if not config.tie_word_embeddings:
            self.lm_head = _first(single.normal(config.vocab_size, config.hidden_size))

    @property
    def dtype(self) -> jnp.dtype:
        return self.embed_tokens[...].dtype

    @property
    def head(self) -> jax.Array:
        """The output embedding [V, D]."""
        tied = self.config.tie_word_embeddings
        return (self.embed_tokens if tied else self.lm_head)[...]

    def __call__(
        self, tokens: jax.Array, mask: jax.Array, adapter: Sequence[LowRanks] | None = None
    ) -> jax.Array:
        """Logits [B, T, V] float32 of tokens [B, T] int32 where mask [B, T] bool is true.

        Padding may precede or follow a sequence. Use `hidden` and `qwen.logprobs` if [B, T, V] is
        too large.
        """
        hidden, _ = self.hidden(tokens, mask, adapter)
        return self.logits(hidden)

    def logits(self, hidden: jax.Array) -> jax.Array:
        """[..., D] -> [..., V] float32."""
        return jnp.einsum("...d,vd->...v", hidden, self.head, preferred_element_type=jnp.float32)

    def hidden(
        self,
        tokens: jax.Array,
        mask: jax.Array,
        adapter: Sequence[LowRanks] | None = None,
        past: Past | None = None,
    ) -> tuple[jax.Array, Past]:
        """The last layer's normalised output [B, T, D], and the tokens' past.

        adapter: one mapping per position in the block, leaves [repeats, ...] (`rl.lora`). past: of
        G sequences, G dividing B; B / G consecutive rows continue each. The returned past covers
        only these tokens, and is valid only if padding precedes the tokens.
        """
        chex.assert_rank([tokens, mask], 2)
        chex.assert_equal_shape([tokens, mask])
        x = split_rows(self.embed_tokens[...][tokens], self.mesh)
        positions = jnp.maximum(jnp.cumsum(mask, axis=1, dtype=jnp.int32) - 1, 0)
        if past is not None:
            past = past.repeated(tokens.shape[0])
            positions = positions + past.length[:, None]
        rotation = Rotation.at(positions, self.config)
        graphs, weights = zip(*map(nnx.split, self.block.layers()), strict=True)
        low_ranks = tuple(adapter) if adapter else ({},) * len(graphs)
        before = past.layers if past else (None,) * len(graphs)
        past_valid = past.valid if past else None

        def layer(i: int, x: jax.Array, *xs: Any) -> tuple[jax.Array, Kept]:
            weights, low_ranks, before = xs
            module = nnx.merge(graphs[i], gathered(weights, self.mesh))
            return module(x, mask, rotation, low_ranks, before, past_valid)

        def applied(i: int, remat: bool, x: jax.Array, *xs: Any) -> tuple[jax.Array, Kept]:
            run: Callable[..., Any] = partial(layer, i)
            if remat:
                run = jax.checkpoint(run, prevent_cse=False)
            return run(split_rows(x, self.mesh), *xs)

        def body(x: jax.Array, xs: Any) -> tuple[jax.Array, tuple[Kept, ...]]:
            kept = []
            for i, own in enumerate(zip(*xs, strict=True)):
                x, left = applied(i, self.remat, x, *own)
                kept.append(left)
            return x, tuple(kept)

        xs = (weights, low_ranks, before)
        if self.config.repeats > 1:
            x, kept = jax.lax.scan(body, x, xs)
        else:
            x, kept = _scan_runs(applied, self.remat, x, self.config.block, xs)
        return self.norm(x), Past(kept, mask, jnp.sum(mask, axis=1, dtype=jnp.int32))

    def unstacked(self) -> list[Layer]:
        """The single layers, with weights in the memory of the stack; for decoding.

        Call it outside jit and pass the layers' weights to the compiled function: see `rows`.
        """
        blocks: list[list[Layer]] = []
        for layer in self.block.layers():
            graph, weights = nnx.split(layer)
            stacks, form = jax.tree.flatten(weights)
            repeats = zip(*map(rows, stacks), strict=True)
            blocks.append([nnx.merge(graph, jax.tree.unflatten(form, own)) for own in repeats])
        return [layer for repeat in zip(*blocks, strict=True) for layer in repeat]


def _scan_runs(
    apply: Callable[..., tuple[jax.Array, Kept]],
    remat: bool,
    x: jax.Array,
    kinds: Sequence[str],
    xs: tuple[Any, ...],
) -> tuple[jax.Array, tuple[Kept, ...]]:
    """A block that occurs once: a scan over each run of layers with equal mixers.

    Three delta nets are traced and compiled as one. A run's weights are copied, which takes too
    much memory for large models; those have a scan over blocks. A run always recomputes its layers
    in the backward pass: to store their intermediates side by side would take as long.
    apply: (place in the block, remat, x, inputs of its layer) -> x and the layer's state. xs: of
    each place, leaves [1, ...]. Returns x and the states, leaves [1, ...].
    """
    kept: list[Kept] = []
    inputs = list(zip(*xs, strict=True))
    for _, run in groupby(range(len(kinds)), key=lambda i: kinds[i]):
        places = list(run)

        def step(
            x: jax.Array, own: Any, first: int = places[0], several: bool = len(places) > 1
        ) -> tuple[jax.Array, Kept]:
            return apply(first, remat or several, x, *own)

        joined = jax.tree.map(lambda *all: jnp.concatenate(all), *(inputs[i] for i in places))
        x, left = jax.lax.scan(step, x, joined)
        kept += [jax.tree.map(lambda one, i=i: one[i : i + 1], left) for i in range(len(places))]
    return x, tuple(kept)


def _first(stacked: nnx.Param) -> nnx.Param:
    """A parameter outside the layers has no axis of repeats."""
    return nnx.Param(stacked[...][0])

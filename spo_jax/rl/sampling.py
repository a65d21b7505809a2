"""Sampling from the policy in JAX: n completions per prompt from one prefill.

A row's random numbers depend only on its prompt's number, its own number and the step, so batches,
padding and other rows affect samples by rounding at most. Rows are decoded in segments, each about
as long as all earlier ones together. Between segments the rows' buffers grow, and stopped rows
leave the batch. Programs are compiled for the sizes of `rl.buckets` and cached by JAX.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from spo_jax.errors import InputError
from spo_jax.rl.buckets import FINE, Ladder, pad_left
from spo_jax.rl.qwen import decode
from spo_jax.rl.qwen.layers import LowRanks
from spo_jax.rl.qwen.model import Qwen

FIRST_SEGMENT = 256  # steps
FEWEST_ROWS = 8  # a smaller batch takes as long per step: reading the weights dominates


@dataclass(frozen=True)
class SamplingConfig:
    """temperature: zero takes the most probable token. top_p: the mass of the nucleus.

    stop_tokens: end a completion, which includes them. context: maximum tokens of a prompt and its
    completion. max_rows: completions decoded together. ladder: how prompts and their number are
    padded. Raises InputError for a value out of range.
    """

    temperature: float = 0.8
    top_p: float = 0.95
    max_new_tokens: int = 1200
    stop_tokens: tuple[int, ...] = ()
    context: int = 8192
    max_rows: int = 64
    ladder: Ladder = FINE

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise InputError(f"the temperature is {self.temperature}; it must be at least 0")
        if not 0 < self.top_p <= 1:
            raise InputError(f"top_p is {self.top_p}; it must be above 0 and at most 1")
        for name in ("max_new_tokens", "context", "max_rows"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; it must be at least 1")


@dataclass(frozen=True, eq=False)
class Sample:
    """One completion: tokens [T] int32, with the stop token if one was sampled.

    logprobs: [T] float32, under the whole distribution at the sampling temperature (at temperature
    1 if that is zero). sampling_logprobs: [T] float32, under the nucleus. finished: a stop token
    ended it, not the maximum length.
    """

    tokens: np.ndarray
    logprobs: np.ndarray
    sampling_logprobs: np.ndarray
    finished: bool


def sample(
    model: Qwen,
    prompts: Sequence[np.ndarray],
    n: int,
    key: jax.Array,
    config: SamplingConfig,
    adapter: Sequence[LowRanks] | None = None,
) -> list[list[Sample]]:
    """n completions of each prompt [T] int32; adapter: as for `Qwen.hidden`.

    Raises InputError for an empty prompt, a token outside the vocabulary, or a prompt that leaves
    less than `max_new_tokens` of the context.
    """
    drawn: list[list[Sample]] = [[] for _ in prompts]
    for part in stream(model, prompts, n, key, config, adapter):
        for place, samples in part.items():
            drawn[place] = samples
    return drawn


def stream(
    model: Qwen,
    prompts: Sequence[np.ndarray],
    n: int,
    key: jax.Array,
    config: SamplingConfig,
    adapter: Sequence[LowRanks] | None = None,
) -> Iterator[dict[int, list[Sample]]]:
    """The results of `sample`, by prompt index, each as soon as its samples are complete."""
    _check(model, prompts, n, config)
    graph, weights = nnx.split(model)
    graphs, layers = zip(*map(nnx.split, model.unstacked()), strict=True)
    run = _Run(graph, graphs, config, weights, layers, tuple(adapter) if adapter else None, key)
    drawn: dict[int, dict[int, Sample]] = {}
    lengths = [len(prompt) for prompt in prompts]
    for pieces, groups, width in _batches(lengths, n, config.max_rows, config.ladder):
        rows = [(prompt, first + i) for prompt, first in pieces for i in range(width)]
        done = run.batch([prompts[i] for i, _ in pieces], rows, groups, n)
        for (prompt, index), completion in zip(rows, done, strict=True):
            if index < n:
                drawn.setdefault(prompt, {})[index] = completion
        whole = [prompt for prompt, samples in drawn.items() if len(samples) == n]
        if whole:
            yield {
                prompt: [one for _, one in sorted(drawn.pop(prompt).items())] for prompt in whole
            }


def _check(model: Qwen, prompts: Sequence[np.ndarray], n: int, config: SamplingConfig) -> None:
    if n < 1:
        raise InputError(f"{n} samples per prompt requested; request at least 1")
    context = min(config.context, model.config.max_position_embeddings)
    for i, prompt in enumerate(prompts):
        if len(prompt) == 0:
            raise InputError(f"prompt {i} is empty; give it at least one token")
        if len(prompt) + config.max_new_tokens > context:
            raise InputError(
                f"prompt {i} has {len(prompt)} tokens, which with {config.max_new_tokens} new "
                f"ones exceeds the context of {context}; shorten it or lower max_new_tokens"
            )
        low, high = int(np.min(prompt)), int(np.max(prompt))
        if low < 0 or high >= model.config.vocab_size:
            raise InputError(
                f"prompt {i} holds token {low if low < 0 else high}, outside the vocabulary of "
                f"{model.config.vocab_size}"
            )


def _batches(
    lengths: Sequence[int], n: int, max_rows: int, ladder: Ladder = FINE
) -> Iterator[tuple[list[tuple[int, int]], int, int]]:
    """Batches of similar lengths: the (prompt, first sample) of each group, the groups with
    padding, and the samples of a group.
    """
    width = min(n, max_rows)
    most = max_rows // width
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    pieces = [(i, first) for i in order for first in range(0, n, width)]
    count = -(-len(pieces) // most)
    for part in range(count):
        own = pieces[part * len(pieces) // count : (part + 1) * len(pieces) // count]
        yield own, min(ladder.rung(len(own)), most), width


def capacities(limit: int) -> list[int]:
    """The token counts at which segments end; the last is `limit`."""
    found = [min(FIRST_SEGMENT, limit)]
    while found[-1] < limit:
        # No segment for a short rest: compiling would take longer than it saves.
        found.append(limit if limit <= 3 * found[-1] else 2 * found[-1])
    return found


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Carry:
    """The state between steps. hidden: [R, D], after the last token. keys: [R]. live: [R], not
    stopped."""

    hidden: jax.Array
    state: decode.DecodeState
    keys: jax.Array
    live: jax.Array


@dataclass(frozen=True)
class _Run:
    """The shared inputs of a call's batches. graphs, layers: of the single layers."""

    graph: Any
    graphs: tuple[Any, ...]
    config: SamplingConfig
    weights: Any
    layers: tuple[Any, ...]
    adapter: tuple[LowRanks, ...] | None
    key: jax.Array

    def batch(
        self, prompts: Sequence[np.ndarray], rows: Sequence[tuple[int, int]], groups: int, n: int
    ) -> list[Sample]:
        """One completion per row; numbers: its prompt and its sample."""
        width = len(rows) // len(prompts)
        numbers = np.zeros((groups * width, 2), np.int32)
        numbers[: len(rows)] = rows
        live = np.arange(len(numbers)) < len(rows)
        live &= numbers[:, 1] < n
        tokens, mask = pad_left(prompts, self.config.ladder.of_prompt(max(map(len, prompts))))
        more = ((0, groups - len(prompts)), (0, 0))
        tokens, mask = np.pad(tokens, more), np.pad(mask, more)

        sizes = capacities(self.config.max_new_tokens)
        capacity, start = sizes[0], 0
        carry = _prefill(
            self.graph, capacity, self.weights, self.adapter, tokens, mask, self.key, numbers, live
        )
        collected: list[list[tuple[np.ndarray, ...]]] = [[] for _ in numbers]
        inside = np.arange(len(numbers))  # the rows still in the batch
        for following in (*sizes[1:], None):
            carry, drawn = _segment(
                (self.graph, self.graphs), self.config, capacity - start,
                self.weights, self.layers, self.adapter, carry,
            )  # fmt: skip
            (*values, emitted), live = jax.device_get((drawn, carry.live))
            for column, row in enumerate(inside):
                collected[row].append(tuple(v[emitted[:, column], column] for v in values))
            if following is None or not live.any():
                break
            capacity, start = following, capacity
            fewer = max(1 << (int(live.sum()) - 1).bit_length(), FEWEST_ROWS)
            kept = None
            if 3 * fewer <= 2 * len(live):
                kept = np.argsort(~live, kind="stable")[:fewer]
                inside = inside[kept]
            carry = _next(capacity, carry, kept)
        return [self._sample(parts) for parts in collected[: len(rows)]]

    def _sample(self, parts: Sequence[tuple[np.ndarray, ...]]) -> Sample:
        tokens, logprobs, sampling = (np.concatenate(part) for part in zip(*parts, strict=True))
        finished = len(tokens) > 0 and int(tokens[-1]) in self.config.stop_tokens
        return Sample(tokens, logprobs, sampling, finished)


@partial(jax.jit, static_argnums=(0, 1))
def _prefill(
    graph: Any,
    capacity: int,
    weights: Any,
    adapter: tuple[LowRanks, ...] | None,
    tokens: jax.Array,
    mask: jax.Array,
    key: jax.Array,
    numbers: jax.Array,
    live: jax.Array,
) -> _Carry:
    """tokens, mask [G, S]; numbers [R, 2]: each row's prompt and sample; live [R]."""
    model = nnx.merge(graph, weights)
    hidden, past = model.hidden(tokens, mask, adapter)
    rows = len(numbers)
    state = decode.start(past, rows, capacity)

    def row_key(number: jax.Array) -> jax.Array:
        return jax.random.fold_in(jax.random.fold_in(key, number[0]), number[1])

    last = jnp.repeat(hidden[:, -1], rows // len(tokens), axis=0)
    return _Carry(last, state, jax.vmap(row_key)(numbers), live)


@partial(jax.jit, static_argnums=0)
def _next(capacity: int, carry: _Carry, rows: jax.Array | None) -> _Carry:
    """The carry with room for more tokens; `rows` [R'] selects rows."""
    state = carry.state
    if rows is None:
        return _Carry(carry.hidden, decode.grown(state, capacity), carry.keys, carry.live)
    state = decode.grown(decode.selected(state, rows), capacity)
    return _Carry(carry.hidden[rows], state, carry.keys[rows], carry.live[rows])


@partial(jax.jit, static_argnums=(0, 1, 2), donate_argnums=(6,))
def _segment(
    graphs: tuple[Any, tuple[Any, ...]],
    config: SamplingConfig,
    steps: int,
    weights: Any,
    own: tuple[Any, ...],
    adapter: tuple[LowRanks, ...] | None,
    carry: _Carry,
) -> tuple[_Carry, tuple[jax.Array, ...]]:
    """At most `steps` tokens of each row, fewer if all rows stop.

    graphs: of the model and of its single layers, whose weights are `own`; the layers in `weights`
    are unused and not sent to the device.
    Returns tokens, logprobs, sampling_logprobs and whether the row was live, each [steps, R].
    """
    model = nnx.merge(graphs[0], weights)
    layers = [nnx.merge(graph, one) for graph, one in zip(graphs[1], own, strict=True)]
    low_ranks = decode.low_ranks_by_layer(adapter, len(layers), model.config.repeats)
    begun, rows = carry.state.steps, carry.live.shape[0]
    uniforms = jax.vmap(lambda i: _uniforms(carry.keys, i))(begun + jnp.arange(steps))
    stops = jnp.asarray(config.stop_tokens, jnp.int32)

    def body(loop: tuple[_Carry, tuple[jax.Array, ...]]) -> tuple[_Carry, tuple[jax.Array, ...]]:
        carry, kept = loop
        place = carry.state.steps - begun
        chosen = choose(model.logits(carry.hidden), uniforms[place], config)
        tokens = chosen[0]
        kept = tuple(
            jax.lax.dynamic_update_index_in_dim(buffer, new, place, 0)
            for buffer, new in zip(kept, (*chosen, carry.live), strict=True)
        )
        live = carry.live & ~(tokens[:, None] == stops).any(axis=1)
        hidden, state = decode.step(model, layers, low_ranks, tokens, carry.state)
        return _Carry(hidden, state, carry.keys, live), kept

    def unfinished(loop: tuple[_Carry, tuple[jax.Array, ...]]) -> jax.Array:
        carry, _ = loop
        return (carry.state.steps < begun + steps) & carry.live.any()

    kept = tuple(
        jnp.zeros((steps, rows), dtype) for dtype in (jnp.int32, jnp.float32, jnp.float32, bool)
    )
    return jax.lax.while_loop(unfinished, body, (carry, kept))


def _uniforms(keys: jax.Array, step: jax.Array) -> jax.Array:
    """One number in [0, 1) per row at a step: keys [R] -> [R]."""
    return jax.vmap(lambda key: jax.random.uniform(jax.random.fold_in(key, step)))(keys)


def choose(
    logits: jax.Array, uniforms: jax.Array, config: SamplingConfig
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """logits [R, V] float32, uniforms [R] -> tokens [R] int32 and the two log-probabilities of
    `Sample`, [R].
    """
    if config.temperature == 0:
        tokens = jnp.argmax(logits, axis=-1).astype(jnp.int32)
        logprobs = _at(jax.nn.log_softmax(logits), tokens)
        return tokens, logprobs, jnp.zeros_like(logprobs)
    logprobs = jax.nn.log_softmax(logits / config.temperature)
    weights = nucleus(jnp.exp(logprobs), config.top_p)
    tokens = draw(weights, uniforms)
    own = _at(logprobs, tokens)
    return tokens, own, own - jnp.log(jnp.sum(weights, axis=-1))


def _at(x: jax.Array, tokens: jax.Array) -> jax.Array:
    return jnp.take_along_axis(x, tokens[:, None], axis=-1)[:, 0]


def nucleus(probabilities: jax.Array, top_p: float) -> jax.Array:
    """The probabilities [R, V] of the smallest set of most probable tokens with mass top_p, zero
    elsewhere; ties stay together.

    A token stays if the more probable tokens have mass below top_p. Bisection over the bits of a
    probability finds the threshold: positive floats order like their bits as integers. It is exact,
    unlike bisection over values, and much cheaper than a sort.
    """
    if top_p == 1:
        return probabilities
    # All tokens below this bound together have half of the mass that may be missing.
    bound = 0.5 * (1 - top_p) / probabilities.shape[-1]
    low, high = (int(np.float32(x).view(np.int32)) for x in (bound, 1.0))
    mass = top_p * jnp.sum(probabilities, axis=-1)

    def halve(_: int, ends: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = ends
        middle = low + (high - low) // 2
        above = jnp.where(probabilities > _value(middle), probabilities, 0)
        enough = jnp.sum(above, axis=-1) >= mass
        return jnp.where(enough, middle, low), jnp.where(enough, high, middle)

    ends = tuple(jnp.full(mass.shape, end, jnp.int32) for end in (low, high))
    _, least = jax.lax.fori_loop(0, (high - low).bit_length(), halve, ends)
    return jnp.where(probabilities >= _value(least), probabilities, 0)


def _value(bits: jax.Array) -> jax.Array:
    """The floats [R, 1] of these bits [R]."""
    return jax.lax.bitcast_convert_type(bits, jnp.float32)[:, None]


def draw(weights: jax.Array, uniforms: jax.Array) -> jax.Array:
    """One token per row in proportion to its weight: weights [R, V], uniforms [R] in [0, 1).

    Inverts the cumulated weights, first of blocks and then within one; rounding never yields a
    token of weight zero.
    """
    R, V = weights.shape
    size = 1 << (math.isqrt(V - 1).bit_length() if V > 1 else 0)
    blocks = jnp.pad(weights, ((0, 0), (0, -V % size))).reshape(R, -1, size)
    masses = jnp.sum(blocks, axis=-1)
    block, rest = _invert(masses, uniforms * jnp.sum(masses, axis=-1))
    within, _ = _invert(jnp.take_along_axis(blocks, block[:, None, None], axis=1)[:, 0], rest)
    return (block * size + within).astype(jnp.int32)


def _invert(weights: jax.Array, target: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The first index at which the cumulated weights [R, K] exceed target [R], else the last with
    positive weight; and the target minus the cumulated weight before that index.
    """
    reached = jnp.cumsum(weights, axis=-1)
    positive = weights > 0
    past = (reached > target[:, None]) & positive
    last = weights.shape[-1] - 1 - jnp.argmax(positive[:, ::-1], axis=-1)
    index = jnp.where(past.any(axis=-1), jnp.argmax(past, axis=-1), last)
    return index, target - (_at(reached, index) - _at(weights, index))

"""Decoding token by token, against whole sequences in our model and in transformers."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from spo_jax.rl.buckets import pad_left
from spo_jax.rl.lora import LoraConfig, init_adapter
from spo_jax.rl.qwen3_5 import decode
from tests.rl import tiny

LENGTHS = (5, 37, 64)
WIDTH, EACH, STEPS, FIRST = 64, 2, 200, 128


@partial(jax.jit, static_argnums=(0, 1))
def prefill(graph, capacity, weights, adapter, tokens, mask):
    model = nnx.merge(graph, weights)
    hidden, past = model.hidden(tokens, mask, adapter)
    return model.logits(hidden[:, -1]), decode.start(past, EACH * len(tokens), capacity)


@partial(jax.jit, static_argnums=0)
def decoded(graph, weights, adapter, state, forced):
    """Logits [T, R, V] after each of forced [T, R], and the state."""
    model = nnx.merge(graph, weights)
    layers = model.unstacked()
    low_ranks = decode.low_ranks_by_layer(adapter, len(layers), model.config.repeats)

    def step(state, tokens):
        hidden, state = decode.step(model, layers, low_ranks, tokens, state)
        return state, model.logits(hidden)

    state, logits = jax.lax.scan(step, state, forced)
    return logits, state


@pytest.fixture(scope="module")
def prompts():
    return [tiny.tokens(i, 1, length)[0] for i, length in enumerate(LENGTHS)]


@pytest.fixture(scope="module")
def forced():
    return tiny.tokens(9, len(LENGTHS) * EACH, STEPS)


@pytest.fixture(scope="module")
def logits(prompts, forced):
    """[R, 1 + STEPS, V] by prefill and decoding, the buffers growing on the way."""
    graph, weights = nnx.split(tiny.pair()[1])
    first, state = prefill(graph, FIRST, weights, None, *pad_left(prompts, WIDTH))
    before, state = decoded(graph, weights, None, state, forced.T[:FIRST])
    state = decode.grown(state, STEPS)
    after, _ = decoded(graph, weights, None, state, forced.T[FIRST:])
    first = np.repeat(np.asarray(first), EACH, axis=0)
    return np.swapaxes(np.concatenate([first[None], before, after]), 0, 1)


def whole(prompts, forced):
    """Each row's prompt and continuation, padded on the left."""
    rows = [np.concatenate([prompts[r // EACH], row]) for r, row in enumerate(forced)]
    return pad_left(rows, WIDTH + STEPS)


def test_decoding_equals_a_prefill_over_200_steps(prompts, forced, logits):
    model = tiny.pair()[1]
    expected = jax.jit(model.__call__)(*whole(prompts, forced))[:, WIDTH - 1 :]
    np.testing.assert_allclose(logits, expected, atol=1e-4)


def test_decoding_equals_transformers_over_200_steps(prompts, forced, logits):
    expected = tiny.torch_logits(tiny.pair()[0], *whole(prompts, forced))[:, WIDTH - 1 :]
    np.testing.assert_allclose(logits, expected, atol=1e-4)


def test_some_rows_alone_continue_as_before(prompts, forced, logits):
    graph, weights = nnx.split(tiny.pair()[1])
    _, state = prefill(graph, FIRST, weights, None, *pad_left(prompts, WIDTH))
    _, state = decoded(graph, weights, None, state, forced.T[:8])
    rows = np.array([4, 1, 5])
    alone, _ = decoded(graph, weights, None, decode.selected(state, rows), forced.T[8:16, rows])
    np.testing.assert_allclose(np.swapaxes(alone, 0, 1), logits[rows, 9:17], atol=1e-4)


def test_an_adapter_is_part_of_every_step(prompts, forced, logits):
    model = tiny.pair()[1]
    lora = LoraConfig(rank=4)
    adapter = init_adapter(jax.random.key(0), lora, model.config)
    adapter = jax.tree.map(
        lambda x: x + 0.1 * jax.random.normal(jax.random.key(1), x.shape), adapter
    )
    scaled = adapter.scaled(lora.scale)
    graph, weights = nnx.split(model)
    _, state = prefill(graph, FIRST, weights, scaled, *pad_left(prompts, WIDTH))
    found, _ = decoded(graph, weights, scaled, state, forced.T[:8])
    expected = jax.jit(model.__call__)(*whole(prompts, forced[:, :8]), scaled)
    expected = expected[:, -8:]
    np.testing.assert_allclose(np.swapaxes(found, 0, 1), expected, atol=1e-4)
    assert np.abs(expected - logits[:, 1:9]).max() > 0.1


def test_bfloat16_stays_near_float32(prompts, forced, logits):
    graph, weights = nnx.split(tiny.pair()[1])
    weights = jax.tree.map(lambda x: x.astype(jnp.bfloat16), weights)
    _, state = prefill(graph, FIRST, weights, None, *pad_left(prompts, WIDTH))
    assert state.own[0].keys.dtype == state.deltas[0].conv.dtype == jnp.bfloat16
    assert state.deltas[0].memory.dtype == jnp.float32
    found, _ = decoded(graph, weights, None, state, forced.T[:16])
    gap = np.abs(np.swapaxes(found, 0, 1) - logits[:, 1:17])
    assert 1e-4 < gap.max() < 0.5

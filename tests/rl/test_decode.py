"""Decoding token by token, against whole sequences in our model and in transformers."""

from functools import partial

import jax
import numpy as np
import pytest
from flax import nnx

from spo_jax.rl.buckets import pad_left
from spo_jax.rl.lora import LoraConfig, init_adapter
from spo_jax.rl.qwen import decode
from tests.rl import tiny

LENGTHS = (5, 37, 48)
WIDTH, EACH, STEPS, FIRST = 64, 2, 200, 128
LEFT = np.array([4, 1, 5])  # the rows that go on after FIRST steps


@partial(jax.jit, static_argnums=(0, 1))
def prefill(graph, capacity, weights, adapter, tokens, mask):
    model = nnx.merge(graph, weights)
    hidden, past = model.hidden(tokens, mask, adapter)
    return model.logits(hidden[:, -1]), decode.start(past, EACH * len(tokens), capacity)


def decoded(graph, weights, adapter, state, forced):
    """Logits [T, R, V] after each of forced [T, R], and the state."""
    layers = nnx.merge(graph, weights).unstacked()
    graphs, own = zip(*map(nnx.split, layers), strict=True)
    return _decoded(graph, graphs, weights, own, adapter, state, forced)


@partial(jax.jit, static_argnums=(0, 1))
def _decoded(graph, graphs, weights, own, adapter, state, forced):
    model = nnx.merge(graph, weights)
    layers = [nnx.merge(graph, one) for graph, one in zip(graphs, own, strict=True)]
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
    """[R, 1 + STEPS, V], NaN where a row was left out; the buffers grow on the way."""
    graph, weights = nnx.split(tiny.pair()[1])
    first, state = prefill(graph, FIRST, weights, None, *pad_left(prompts, WIDTH))
    before, state = decoded(graph, weights, None, state, forced.T[:FIRST])
    state = decode.grown(decode.selected(state, LEFT), STEPS)
    after, _ = decoded(graph, weights, None, state, forced.T[FIRST:, LEFT])
    out = np.full((len(forced), 1 + STEPS, tiny.SHAPE["vocab_size"]), np.nan, np.float32)
    out[:, 0] = np.repeat(np.asarray(first), EACH, axis=0)
    out[:, 1 : 1 + FIRST] = np.swapaxes(before, 0, 1)
    out[LEFT, 1 + FIRST :] = np.swapaxes(after, 0, 1)
    return out


def whole(prompts, forced):
    """Each row's prompt and continuation, padded on the left."""
    rows = [np.concatenate([prompts[r // EACH], row]) for r, row in enumerate(forced)]
    return pad_left(rows, WIDTH + STEPS)


def assert_near(logits, expected):
    expected = np.asarray(expected)[:, WIDTH - 1 :]
    np.testing.assert_allclose(logits[:, : 1 + FIRST], expected[:, : 1 + FIRST], atol=1e-4)
    np.testing.assert_allclose(logits[LEFT], expected[LEFT], atol=1e-4)


@pytest.mark.slow
def test_decoding_equals_a_prefill_over_200_steps(prompts, forced, logits):
    model = tiny.pair()[1]
    assert_near(logits, jax.jit(model.__call__)(*whole(prompts, forced)))


@pytest.mark.long
def test_decoding_equals_transformers_over_200_steps(prompts, forced, logits):
    assert_near(logits, tiny.torch_logits(tiny.pair()[0], *whole(prompts, forced)))


@pytest.mark.long
def test_an_adapter_is_part_of_every_step(prompts, forced, logits):
    model, steps = tiny.pair()[1], 12
    lora = LoraConfig(rank=4)
    adapter = init_adapter(jax.random.key(0), lora, model.config)
    noise = jax.random.key(1)
    adapter = jax.tree.map(lambda x: x + 0.1 * jax.random.normal(noise, x.shape), adapter)
    scaled = adapter.scaled(lora.scale)
    graph, weights = nnx.split(model)
    _, state = prefill(graph, FIRST, weights, scaled, *pad_left(prompts, WIDTH))
    found, _ = decoded(graph, weights, scaled, state, forced.T[:steps])
    longer = [
        np.concatenate([prompt, forced[EACH * i, :steps]]) for i, prompt in enumerate(prompts)
    ]
    expected, _ = prefill(graph, FIRST, weights, scaled, *pad_left(longer, WIDTH))
    np.testing.assert_allclose(found[-1, ::EACH], expected, atol=1e-4)
    assert np.abs(expected - logits[::EACH, steps]).max() > 0.1

"""The sampler, against transformers' logits, warper and greedy search, and against itself."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from spo_jax.errors import InputError
from spo_jax.rl import sampling
from spo_jax.rl.buckets import FEW, FINE
from spo_jax.rl.lora import LoraConfig, init_adapter
from spo_jax.rl.qwen import decode
from spo_jax.rl.sampling import SamplingConfig, choose, draw, nucleus, sample
from tests.oracles import oracle
from tests.rl import tiny

STOPS = tuple(range(12))  # of 256 tokens, so that completions have about twenty
SETTINGS = SamplingConfig(max_new_tokens=24, stop_tokens=STOPS, context=512)
KEY = jax.random.key(5)


@pytest.fixture(scope="module")
def both():
    """A layer of each kind, the same in transformers and in ours."""
    return tiny.pair(num_hidden_layers=2, layer_types=("linear_attention", "full_attention"))


@pytest.fixture(scope="module")
def prompts():
    return [tiny.tokens(i, 1, length)[0] for i, length in enumerate((40, 7, 63))]


@pytest.fixture(scope="module")
def drawn(both, prompts):
    return sample(both[1], prompts, 4, KEY, SETTINGS)


def flat(samples):
    return [one for row in samples for one in row]


def assert_same(found, expected):
    for one, other in zip(flat(found), flat(expected), strict=True):
        assert one.tokens.tolist() == other.tokens.tolist()
        assert one.finished == other.finished
        np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-5)
        np.testing.assert_allclose(one.sampling_logprobs, other.sampling_logprobs, atol=1e-5)


def logits_of(model, prompt, one):
    """transformers' logits [T, V] of the distributions that the tokens of a sample came from."""
    whole = np.concatenate([prompt, one.tokens])[None]
    return tiny.torch_logits(model, whole)[0, len(prompt) - 1 : -1]


def warped(logits, top_p):
    """transformers' logits within the nucleus, minus infinity elsewhere."""
    torch = oracle("torch")
    warper = oracle("transformers").TopPLogitsWarper(top_p)
    return warper(None, torch.tensor(logits)).numpy()


def log_softmax(logits):
    return np.asarray(jax.nn.log_softmax(logits.astype(np.float32)))


@pytest.mark.long
def test_logprobs_are_those_of_transformers(both, prompts, drawn):
    for prompt, row in zip(prompts, drawn, strict=True):
        for one in row:
            logits = logits_of(both[0], prompt, one) / SETTINGS.temperature
            for found, expected in (
                (one.logprobs, log_softmax(logits)),
                (one.sampling_logprobs, log_softmax(warped(logits, SETTINGS.top_p))),
            ):
                expected = expected[np.arange(len(one.tokens)), one.tokens]
                np.testing.assert_allclose(found, expected, atol=1e-4)
            assert (one.sampling_logprobs >= one.logprobs).all()


def test_types_and_shapes(drawn):
    assert [len(row) for row in drawn] == [4, 4, 4]
    for one in flat(drawn):
        assert one.tokens.dtype == np.int32
        assert one.logprobs.dtype == one.sampling_logprobs.dtype == np.float32
        assert one.tokens.shape == one.logprobs.shape == one.sampling_logprobs.shape
        assert type(one.finished) is bool


@pytest.mark.long
def test_a_stop_token_ends_a_completion_and_belongs_to_it(both, prompts, drawn):
    endless = SamplingConfig(max_new_tokens=24, context=512)
    longer = sample(both[1], prompts, 4, KEY, endless)
    for one, other in zip(flat(drawn), flat(longer), strict=True):
        stopped = np.isin(other.tokens, STOPS)
        length = int(stopped.argmax()) + 1 if stopped.any() else 24
        assert one.tokens.tolist() == other.tokens[:length].tolist()
        assert one.finished == stopped.any()
        assert (len(other.tokens), other.finished) == (24, False)
    assert {one.finished for one in flat(drawn)} == {True, False}


@pytest.mark.long
def test_batches_do_not_matter(both, prompts, drawn):
    settings = replace(SETTINGS, max_rows=3)
    assert_same(sample(both[1], prompts, 4, KEY, settings), drawn)


@pytest.mark.long
def test_segments_and_rows_that_leave_do_not_matter(both, prompts, drawn, monkeypatch):
    monkeypatch.setattr(sampling, "FIRST_SEGMENT", 6)
    monkeypatch.setattr(sampling, "FEWEST_ROWS", 1)
    following, rows = sampling._next, []

    def watched(capacity, carry, kept):
        rows.append((capacity, len(carry.live) if kept is None else len(kept)))
        return following(capacity, carry, kept)

    monkeypatch.setattr(sampling, "_next", watched)
    assert_same(sample(both[1], prompts, 4, KEY, SETTINGS), drawn)
    assert [capacity for capacity, _ in rows] == [12, 24]
    assert rows[0][1] == 12 > rows[1][1]


@pytest.mark.long
def test_other_prompts_and_samples_do_not_matter(both, prompts, drawn):
    others = [tiny.tokens(8, 1, 130)[0], prompts[1], tiny.tokens(9, 1, 3)[0]]
    found = sample(both[1], others, 3, KEY, SETTINGS)
    assert_same([found[1]], [drawn[1][:3]])


def test_keys_and_samples_differ(both, prompts, drawn):
    texts = {tuple(one.tokens) for one in flat(drawn)}
    again = sample(both[1], prompts, 4, jax.random.key(6), SETTINGS)
    same = sample(both[1], prompts[:1] * 3, 4, KEY, SETTINGS)
    assert len(texts) == len({tuple(one.tokens) for one in flat(same)}) == 12
    assert not texts & {tuple(one.tokens) for one in flat(again)}


@pytest.mark.long
def test_greedy_equals_transformers(both, prompts):
    torch = oracle("torch")

    settings = SamplingConfig(temperature=0, max_new_tokens=24, context=512)
    found = sample(both[1], prompts, 4, KEY, settings)
    for prompt, (one, *others) in zip(prompts, found, strict=True):
        assert all(other.tokens.tolist() == one.tokens.tolist() for other in others)
        expected = both[0].generate(
            torch.tensor(prompt)[None].long(), max_new_tokens=24, do_sample=False, eos_token_id=None
        )
        assert one.tokens.tolist() == expected[0, len(prompt) :].tolist()
        logprobs = log_softmax(logits_of(both[0], prompt, one))[np.arange(24), one.tokens]
        np.testing.assert_allclose(one.logprobs, logprobs, atol=1e-4)
        assert (one.sampling_logprobs == 0).all()


@pytest.mark.long
def test_an_adapter_is_what_is_sampled(both, prompts, drawn):
    model = both[1]
    lora = LoraConfig(rank=4)
    fresh = init_adapter(jax.random.key(0), lora, model.config)
    assert_same(sample(model, prompts, 4, KEY, SETTINGS, fresh.scaled(lora.scale)), drawn)
    trained = jax.tree.map(
        lambda x: x + 0.1 * jax.random.normal(jax.random.key(1), x.shape), fresh
    ).scaled(lora.scale)
    found = sample(model, prompts, 4, KEY, SETTINGS, trained)
    one, prompt = max(found[0], key=lambda one: len(one.tokens)), prompts[0]
    assert one.tokens.tolist() not in [other.tokens.tolist() for other in drawn[0]]
    whole = np.concatenate([prompt, one.tokens])[None]
    logits = jax.jit(model.__call__)(whole, np.ones_like(whole, bool), trained)
    logits = np.asarray(logits)[0, len(prompt) - 1 : -1] / SETTINGS.temperature
    expected = log_softmax(logits)[np.arange(len(one.tokens)), one.tokens]
    np.testing.assert_allclose(one.logprobs, expected, atol=1e-4)


@pytest.mark.long
def test_programs_are_few(both, monkeypatch):
    """Many lengths and numbers of prompts share programs; the same again compiles nothing."""
    traces = []
    step = decode.step

    def counted(model, layers, low_ranks, tokens, state):
        traces.append((state.valid.shape, tokens.shape))
        return step(model, layers, low_ranks, tokens, state)

    monkeypatch.setattr(decode, "step", counted)
    settings = SamplingConfig(max_new_tokens=2, context=512, max_rows=2)
    rng = np.random.default_rng(0)

    def some() -> list[np.ndarray]:
        lengths = rng.integers(1, 129, rng.integers(1, 8))
        return [rng.integers(0, 256, length, dtype=np.int32) for length in lengths]

    for _ in range(12):
        sample(both[1], some(), 2, KEY, settings)
    assert set(traces) == {((1, 64), (2,)), ((1, 128), (2,))}
    assert len(traces) <= 4  # JAX may trace a loop's body twice
    traces.clear()
    for i in range(4):
        sample(both[1], some(), 2, jax.random.key(i), settings)
    assert not traces


@pytest.mark.parametrize("ladder", [FINE, FEW])
@pytest.mark.parametrize(("n", "max_rows"), [(1, 64), (6, 64), (6, 10), (6, 4), (4, 4), (3, 1)])
def test_batches_hold_every_sample_once(n, max_rows, ladder):
    for count in range(1, 40):
        lengths = [(7 * i) % 31 + 1 for i in range(count)]
        seen, shapes, ends = [], set(), []
        for pieces, groups, width in sampling._batches(lengths, n, max_rows, ladder):
            assert len(pieces) <= groups
            assert groups * width <= max_rows
            shapes.add((groups, width))
            seen += [(i, first + j) for i, first in pieces for j in range(width) if first + j < n]
            ends += [lengths[i] for i, _ in pieces]
        assert sorted(seen) == [(i, j) for i in range(count) for j in range(n)]
        assert ends == sorted(ends)
        assert len(shapes) <= 2


@pytest.mark.long
def test_bfloat16(both, prompts):
    graph, weights = nnx.split(both[1])
    model = nnx.merge(graph, jax.tree.map(lambda x: x.astype(jnp.bfloat16), weights))
    settings = SamplingConfig(temperature=1, top_p=1, max_new_tokens=8, context=512)
    ((one,),) = sample(model, prompts[:1], 1, KEY, settings)
    expected = log_softmax(logits_of(both[0], prompts[0], one))[np.arange(8), one.tokens]
    np.testing.assert_allclose(one.logprobs, expected, atol=0.3)
    assert one.sampling_logprobs.tolist() == pytest.approx(one.logprobs.tolist(), abs=1e-5)


@pytest.mark.parametrize("top_p", [0.001, 0.1, 0.5, 0.8, 0.95, 0.999])
@pytest.mark.parametrize("scale", [0.3, 3.0, 30.0])
def test_nucleus_equals_transformers(top_p, scale):
    logits = scale * np.random.default_rng(0).normal(size=(64, 1000))
    probabilities = jax.nn.softmax(logits.astype(np.float32))
    found = nucleus(probabilities, top_p)
    kept = np.isfinite(warped(logits, top_p))
    exact = np.exp(logits - logits.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    above = np.take_along_axis(
        np.cumsum(-np.sort(-exact, axis=1), axis=1), np.argsort(np.argsort(-exact, axis=1)), axis=1
    )
    clear = np.abs(above - exact - top_p) > 1e-6  # not decided by float32's rounding
    assert clear.mean() > 0.99
    np.testing.assert_array_equal(np.asarray(found)[clear] > 0, kept[clear])
    np.testing.assert_array_equal(found, np.where(found > 0, probabilities, 0))


def test_nucleus_keeps_ties_and_the_token_that_reaches_the_mass():
    table = jnp.array([[0.5, 0.25, 0.25, 0.0], [0.25, 0.125, 0.5, 0.125]])
    assert nucleus(table, 0.5).tolist() == [[0.5, 0, 0, 0], [0, 0, 0.5, 0]]
    assert nucleus(table, 0.6).tolist() == [[0.5, 0.25, 0.25, 0], [0.25, 0, 0.5, 0]]
    assert nucleus(table, 0.76).tolist() == [[0.5, 0.25, 0.25, 0], [0.25, 0.125, 0.5, 0.125]]
    assert nucleus(table, 1.0).tolist() == table.tolist()


@pytest.mark.parametrize("size", [1, 2, 5, 300])
def test_draws_follow_the_weights(size):
    weights = np.random.default_rng(0).gamma(0.5, size=size).astype(np.float32)
    weights[1::3] = 0
    count = 20_000
    uniforms = (np.arange(count, dtype=np.float32) + 0.5) / count
    tokens = draw(jnp.tile(weights, (count, 1)), jnp.asarray(uniforms))
    found = np.bincount(tokens, minlength=size)
    # Evenly spread numbers hit each token in proportion, up to its two ends.
    np.testing.assert_allclose(found, count * weights / weights.sum(), atol=2)
    assert (found[weights == 0] == 0).all()


@pytest.mark.long
def test_draws_at_the_ends():
    """Where the cumulated weights round below the target, a token of positive weight remains."""
    weights = jnp.array([[0, 0.1, 0.7, 0.2, 0, 0]] * 2 + [[0, 1e-30, 0, 1.0, 1e-8, 0]] * 2)
    uniforms = jnp.array([0.0, 1 - 2**-24, 0.0, 1 - 2**-24])
    assert draw(weights, uniforms).tolist() in ([1, 3, 1, 3], [1, 3, 1, 4])


@pytest.mark.long
def test_frequencies_follow_the_distribution(both, prompts):
    """Chi-square of 4,096 rows' choices against transformers' nucleus."""
    logits = tiny.torch_logits(both[0], prompts[0][None])[0, -1:]
    keys = jax.vmap(lambda i: jax.random.fold_in(KEY, i))(jnp.arange(4096))
    settings = SamplingConfig(temperature=0.8, top_p=0.9)
    chosen = jax.jit(choose, static_argnums=2)
    tokens, _, _ = chosen(
        jnp.tile(logits, (4096, 1)), sampling._uniforms(keys, jnp.int32(3)), settings
    )
    expected = 4096 * np.exp(log_softmax(warped(logits / 0.8, 0.9)))[0]
    found = np.bincount(tokens, minlength=256)
    kept = expected > 0
    assert found[~kept].sum() == 0
    freedom = kept.sum() - 1
    statistic = ((found - expected)[kept] ** 2 / expected[kept]).sum()
    assert freedom > 20
    assert abs(statistic - freedom) < 4 * np.sqrt(2 * freedom)


def test_steps_are_independent():
    """The second token does not depend on the first where the distribution does not."""
    keys = jax.vmap(lambda i: jax.random.fold_in(KEY, i))(jnp.arange(4096))
    first, second = (sampling._uniforms(keys, jnp.int32(i)) for i in (0, 1))
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / 64
    for uniforms in (first, second):
        assert abs(uniforms.mean() - 0.5) < 4 / np.sqrt(12 * 4096)


def test_bad_input_is_named(both):
    model, good = both[1], np.ones(5, np.int32)
    cases = [
        ([good, np.array([], np.int32)], 1, {"max_new_tokens": 4}, "prompt 1 is empty"),
        ([good, np.ones(400, np.int32)], 1, {"context": 512, "max_new_tokens": 200},
         "prompt 1 has 400 tokens, which with 200 new ones exceeds the context of 512"),
        ([np.ones(400, np.int32)], 1, {"max_new_tokens": 200}, "exceeds the context of 512"),
        ([np.array([3, 256], np.int32)], 1, {"max_new_tokens": 4},
         "prompt 0 holds token 256, outside the vocabulary of 256"),
        ([good], 0, {"max_new_tokens": 4}, "0 samples per prompt"),
    ]  # fmt: skip
    for prompts, n, settings, message in cases:
        with pytest.raises(InputError, match=message):
            sample(model, prompts, n, KEY, SamplingConfig(**settings))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -1.0}, "temperature is -1.0"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_p": 0.0}, "top_p is 0.0"),
        ({"top_p": 1.1}, "top_p is 1.1"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0"),
        ({"context": 0}, "context is 0"),
        ({"max_rows": 0}, "max_rows is 0"),
    ],
)
def test_settings_out_of_range(settings, message):
    with pytest.raises(InputError, match=message):
        SamplingConfig(**settings)


def test_no_prompts(both):
    assert sample(both[1], [], 3, KEY, SETTINGS) == []

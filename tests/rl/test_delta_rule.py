"""The delta rule in both forms against a plain loop in float64, its gradients against torch's."""

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tf32
import tiny

from spo_jax.rl.qwen.delta_rule import (
    chunked,
    normalise_heads,
    recurrent_step,
    unit_lower_inverse,
)
from tests.oracles import oracle

B, HK, DK, DV = 2, 2, 8, 6
Arrays = tuple[np.ndarray, ...]
run = partial(jax.jit, compiler_options=tiny.QUICK)


@cache
def inputs(length: int, rep: int = 2, hard: bool = False) -> Arrays:
    """queries, keys, values, decay, beta, memory.

    hard: all keys of a head equal, beta near 1 and hardly any decay, where the tokens of a chunk
    undo one another's corrections.
    """
    rng = np.random.default_rng(length)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape)

    def unit(x: np.ndarray) -> np.ndarray:
        return x / np.linalg.norm(x, axis=-1, keepdims=True)

    heads = HK * rep
    keys = unit(normal(B, length, HK, DK))
    decay = -np.exp(normal(B, length, heads) - 2)
    beta = 1 / (1 + np.exp(-normal(B, length, heads)))
    if hard:
        keys = np.broadcast_to(keys[:, :1], keys.shape)
        beta, decay = 1 - 1e-4 * beta, 1e-4 * decay
    queries = unit(normal(B, length, HK, DK)) * DK**-0.5
    values, memory = normal(B, length, heads, DV), normal(B, heads, DK, DV)
    arrays = (queries, keys, values, decay, beta, memory)
    return tuple(np.ascontiguousarray(x.astype(np.float32)) for x in arrays)


def plain(queries, keys, values, decay, beta, memory):  # type: ignore[no-untyped-def]
    """The recurrence of the module's docstring, a head and a token at a time, in torch's float64.

    Returns [B, T, Hv, Dv] and the last memory; torch differentiates it.
    """
    torch = oracle("torch")

    rows, length, heads, _ = values.shape
    rep = heads // keys.shape[2]
    outs, memories = [], []
    for row in range(rows):
        for head in range(heads):
            held = memory[row, head]
            for t in range(length):
                k, q = keys[row, t, head // rep], queries[row, t, head // rep]
                held = torch.exp(decay[row, t, head]) * held
                error = values[row, t, head] - k @ held
                held = held + beta[row, t, head] * torch.outer(k, error)
                outs.append(q @ held)
            memories.append(held)
    out = torch.stack(outs).reshape(rows, heads, length, -1).transpose(1, 2)
    return out, torch.stack(memories).reshape(memory.shape)


@cache
def looped(length: int, rep: int = 2, hard: bool = False) -> tuple[Arrays, Arrays]:
    """(outputs, memory), and the gradients of their product with `weights`."""
    torch = oracle("torch")

    torch.set_num_threads(1)
    given = [torch.tensor(x, dtype=torch.float64) for x in inputs(length, rep, hard)]
    results = plain(*[x.requires_grad_() for x in given])
    sum(
        (x * torch.tensor(w)).sum() for x, w in zip(results, weights(length, rep), strict=True)
    ).backward()
    return tuple(x.detach().numpy() for x in results), tuple(x.grad.numpy() for x in given)


def weights(length: int, rep: int) -> Arrays:
    rng = np.random.default_rng(1)
    return (
        rng.standard_normal((B, length, HK * rep, DV)),
        rng.standard_normal((B, HK * rep, DK, DV)),
    )


CASES = [(1, 2, False), (63, 1, False), (64, 3, False), (65, 2, False), (130, 2, False)]
HARD = [(64, 2, True), (130, 2, True)]


@pytest.mark.long
@pytest.mark.parametrize(("length", "rep", "hard"), CASES + HARD)
def test_chunks_are_the_loop(length: int, rep: int, hard: bool) -> None:
    for got, want in zip(
        run(chunked)(*inputs(length, rep, hard)), looped(length, rep, hard)[0], strict=True
    ):
        assert got.dtype == jnp.float32
        np.testing.assert_allclose(got, want, atol=4e-6)


@pytest.mark.parametrize(("length", "rep", "hard"), [CASES[3], HARD[0]])
def test_steps_are_the_loop(length: int, rep: int, hard: bool) -> None:
    *tokens, memory = inputs(length, rep, hard)

    def step(memory: jax.Array, token: Arrays) -> tuple[jax.Array, jax.Array]:
        out, memory = recurrent_step(*token, memory)
        return memory, out

    over_time = [jnp.swapaxes(x, 0, 1) for x in tokens]
    end, outs = run(lambda m, xs: jax.lax.scan(step, m, xs))(memory, over_time)
    want, want_end = looped(length, rep, hard)[0]
    np.testing.assert_allclose(np.swapaxes(outs, 0, 1), want, atol=4e-6)
    np.testing.assert_allclose(end, want_end, atol=4e-6)


@pytest.mark.parametrize("chunk", [1, 7, 16])
def test_the_size_of_a_chunk_does_not_matter(chunk: int) -> None:
    got, end = run(partial(chunked, chunk=chunk))(*inputs(65))
    np.testing.assert_allclose(got, looped(65)[0][0], atol=4e-6)
    np.testing.assert_allclose(end, looped(65)[0][1], atol=4e-6)


@pytest.mark.long
@pytest.mark.parametrize(("length", "rep", "hard"), [CASES[1], CASES[4], HARD[1]])
def test_gradients_are_those_of_torch_through_the_loop(length: int, rep: int, hard: bool) -> None:
    def loss(*arrays: jax.Array) -> jax.Array:
        both = zip(chunked(*arrays), weights(length, rep), strict=True)
        return sum((jnp.sum(x * w.astype(np.float32)) for x, w in both), jnp.float32(0))

    gradients = run(jax.grad(loss, argnums=range(6)))(*inputs(length, rep, hard))
    for got, want in zip(gradients, looped(length, rep, hard)[1], strict=True):
        assert np.abs(got - want).max() < 5e-6 * np.abs(want).max()


def test_a_fast_decay_neither_overflows_nor_loses_the_rest() -> None:
    queries, keys, values, decay, beta, memory = inputs(65)
    decay = np.where(np.arange(65)[None, :, None] % 20 == 10, np.float32(-200), decay)

    def loss(decay: jax.Array) -> tuple[jax.Array, jax.Array]:
        out, _ = chunked(queries, keys, values, decay, beta, memory)
        return jnp.sum(out), out

    gradient, out = run(jax.grad(loss, has_aux=True))(decay)
    torch = oracle("torch")

    arrays = (queries, keys, values, decay, beta, memory)
    want, _ = plain(*[torch.tensor(x, dtype=torch.float64) for x in arrays])
    np.testing.assert_allclose(out, want.numpy(), atol=1e-4)
    assert np.isfinite(gradient).all()


def test_heads_are_normalised_and_zero_stays_zero() -> None:
    x = np.array([[3.0, 4.0], [0.0, 0.0]], np.float32)
    np.testing.assert_allclose(normalise_heads(jnp.asarray(x)), [[0.6, 0.8], [0, 0]], atol=1e-6)
    assert normalise_heads(jnp.asarray(x, jnp.bfloat16)).dtype == jnp.float32


def strict_lower(size: int, kind: str) -> np.ndarray:
    rng = np.random.default_rng(size)
    if kind == "ones":  # identical keys, beta 1: the powers of this matrix reach 1e17 at 64
        full = np.ones((3, size, size))
    elif kind == "opposite":  # keys k, -k, k, ...
        signs = (-1.0) ** np.arange(size)
        full = np.broadcast_to(np.outer(signs, signs), (3, size, size)) * 0.999
    else:
        keys = rng.standard_normal((3, size, 8))
        keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
        full = keys @ keys.swapaxes(-1, -2) * rng.random((3, size, 1))
    return np.tril(full, -1).astype(np.float32)


@pytest.mark.parametrize("kind", ["random", "ones", "opposite"])
@pytest.mark.parametrize("size", [1, 2, 5, 63, 64])
def test_the_inverse_is_that_of_numpy(size: int, kind: str) -> None:
    strict = strict_lower(size, kind)
    want = np.linalg.inv(np.eye(size) + strict.astype(np.float64))
    got = run(unit_lower_inverse)(strict)
    np.testing.assert_allclose(got, want, atol=2e-6 * np.abs(want).max())


@pytest.mark.parametrize("kind", ["random", "ones"])
def test_the_gradient_of_the_inverse_is_that_of_torch(kind: str) -> None:
    torch = oracle("torch")

    strict = strict_lower(37, kind)
    direction = np.random.default_rng(0).standard_normal(strict.shape)
    ours = run(jax.grad(lambda x: jnp.sum(unit_lower_inverse(x) * direction.astype(np.float32))))
    theirs = torch.tensor(strict, dtype=torch.float64, requires_grad=True)
    inverse = torch.linalg.inv(torch.eye(37, dtype=torch.float64) + torch.tril(theirs, -1))
    (inverse * torch.tensor(direction)).sum().backward()
    want = theirs.grad.numpy()
    assert np.abs(ours(strict) - want).max() < 1e-5 * np.abs(want).max()


# --- on a card that shortens operands -------------------------------------------------------------


def over_tokens(queries, keys, values, decay, beta, memory):  # type: ignore[no-untyped-def]
    def step(memory: jax.Array, token: Arrays) -> tuple[jax.Array, jax.Array]:
        out, memory = recurrent_step(*token, memory)
        return memory, out

    tokens = [jnp.swapaxes(x, 0, 1) for x in (queries, keys, values, decay, beta)]
    end, outs = jax.lax.scan(step, memory, tokens)
    return jnp.swapaxes(outs, 0, 1), end


@pytest.mark.parametrize("form", [chunked, over_tokens])
@pytest.mark.parametrize(("length", "rep", "hard"), [CASES[3], HARD[1]])
def test_the_rule_is_exact_on_a_card(form: Any, length: int, rep: int, hard: bool) -> None:
    """Correlated keys at default precision would cost 1e-3, as the next test shows."""
    for got, want in zip(
        tf32.emulated(form)(*inputs(length, rep, hard)),
        looped(length, rep, hard)[0],
        strict=True,
    ):
        np.testing.assert_allclose(got, want, atol=4e-6)


@pytest.mark.long
def test_what_the_emulation_does_to_products_at_default_precision() -> None:
    """One product, in a loop and in its gradient, and a chunk whose precision was left open."""
    fine = np.float32(1 + 2**-12)

    def twice(x: jax.Array, precision: Any) -> jax.Array:
        once = partial(jnp.dot, precision=precision)
        return jax.lax.fori_loop(0, 2, lambda _, y: once(y, jnp.ones((1, 1))), x)[0, 0]

    for precision, kept in ((None, 1.0), ("default", 1.0), ("highest", fine)):
        product = partial(twice, precision=precision)
        assert tf32.emulated(product)(jnp.full((1, 1), fine)) == kept
        weight = partial(lambda w, x, p: jnp.dot(x, w, precision=p)[0, 0], p=precision)
        gradient = tf32.emulated(jax.grad(weight))(jnp.ones((1, 1)), jnp.full((1, 1), fine))
        assert gradient == kept

    def careless(*arrays: jax.Array) -> Any:
        program = jax.make_jaxpr(chunked)(*arrays)
        return tf32.careless(program)(*arrays)

    given = inputs(130, 2, True)
    out, _ = tf32.emulated(careless)(*given)
    assert np.abs(out - looped(130, 2, True)[0][0]).max() > 3e-4


def test_every_product_of_the_rule_and_of_its_gradient_asks_for_all_bits() -> None:
    def loss(form: Any, *arrays: jax.Array) -> jax.Array:
        return sum((jnp.sum(x * x) for x in form(*arrays)), jnp.float32(0))

    highest = (jax.lax.Precision.HIGHEST,) * 2
    for form, forward in ((chunked, 6 + 2 * 6), (over_tokens, 1)):
        assert tf32.products(form, *inputs(65)) == [highest] * forward
        gradient = jax.grad(partial(loss, form), argnums=range(6))
        both = tf32.products(gradient, *inputs(65))
        assert len(both) > 1.5 * forward
        assert set(both) == {highest}

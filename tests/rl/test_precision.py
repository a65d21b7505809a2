"""Which products are exact on a card, and what the others cost: the decision in delta_rule.py."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from spo_jax.rl.qwen import Qwen
from spo_jax.rl.qwen.layers import rms_norm
from spo_jax.rl.qwen.logprobs import token_logprobs
from spo_jax.rl.updates.grpo import clipped_objective
from tests.rl import tf32, tiny

TOKENS = tiny.tokens(0, 2, 96)


def model(dtype: Any) -> Qwen:
    """Matrices keep the size of what passes through them, so that rounding shows."""
    graph, weights = nnx.split(nnx.eval_shape(lambda: Qwen(tiny.config(), rngs=nnx.Rngs(0))))
    rng = np.random.default_rng(0)

    def drawn(leaf: Any) -> jax.Array:
        scale = leaf.shape[-1] ** -0.5 if leaf.ndim > 1 else 0.3
        return jnp.asarray(scale * rng.standard_normal(leaf.shape), leaf.dtype).astype(dtype)

    return nnx.merge(graph, jax.tree.map(drawn, weights))


def logprobs(dtype: Any) -> Callable[[jax.Array], jax.Array]:
    """Of tokens [B, T], each but the first, as a trainer computes them: [B, T - 1]."""
    own = model(dtype)

    def compute(tokens: jax.Array) -> jax.Array:
        hidden, _ = own.hidden(tokens, jnp.ones(tokens.shape, bool))
        return token_logprobs(hidden[:, :-1], tokens[:, 1:], own.head, 0.8)

    return compute


@pytest.mark.slow
def test_short_operands_cost_a_float32_model_less_than_bfloat16_would() -> None:
    exact = np.asarray(jax.jit(logprobs(jnp.float32))(TOKENS))
    short = np.asarray(tf32.emulated(logprobs(jnp.float32))(TOKENS))
    narrow = np.asarray(jax.jit(logprobs(jnp.bfloat16))(TOKENS))
    cost, other = (np.abs(x - exact).mean() for x in (short, narrow))
    assert 0 < cost < 0.25 * other
    assert cost < 0.02


@pytest.mark.long
def test_only_the_rules_products_are_in_float32_where_the_model_is_in_bfloat16() -> None:
    found = tf32.products(logprobs(jnp.bfloat16), TOKENS)
    assert len(found) > 0
    assert set(found) == {(jax.lax.Precision.HIGHEST,) * 2}


def test_norms_and_the_objective_have_no_products() -> None:
    x = jnp.ones((3, 8))
    assert tf32.products(lambda x: rms_norm(x, x[0], 1e-6), x) == []
    mask, advantage = jnp.ones((3, 8), bool), jnp.arange(3.0)

    def objective(logprobs: jax.Array, old: jax.Array) -> jax.Array:
        return clipped_objective(logprobs, old, mask, advantage, 0.2).value.sum()

    assert tf32.products(jax.value_and_grad(objective), x, x) == []

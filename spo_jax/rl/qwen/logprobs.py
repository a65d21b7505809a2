"""Log-probabilities of given tokens without an array [B, T, vocabulary]."""

import chex
import jax
import jax.numpy as jnp

BLOCK = 512  # tokens per block of logits: 0.5 GB in float32 at a vocabulary of 248,320


def token_logprobs(
    hidden: jax.Array, targets: jax.Array, head: jax.Array, temperature: float
) -> jax.Array:
    """log softmax(hidden head^T / temperature) at the targets, float32 [B, T].

    hidden: [B, T, D], the output at the token before each target. targets: [B, T] int32.
    head: [V, D]. Logits are computed for `BLOCK` tokens at a time, and again in the backward pass.
    """
    chex.assert_rank([hidden, targets, head], [3, 2, 2])
    B, T, D = hidden.shape
    width = max(1, min(T, BLOCK // B))  # blocks divide the time axis, so rows stay sharded
    count = -(-T // width)
    padding = count * width - T
    hidden = jnp.pad(hidden, ((0, 0), (0, padding), (0, 0))).reshape(B, count, width, D)
    targets = jnp.pad(targets, ((0, 0), (0, padding))).reshape(B, count, width)

    @jax.checkpoint
    def block(some: tuple[jax.Array, jax.Array]) -> jax.Array:
        hidden, targets = some
        logits = jnp.einsum("btd,vd->btv", hidden, head, preferred_element_type=jnp.float32)
        logits = logits / temperature
        chosen = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
        return chosen - jax.nn.logsumexp(logits, axis=-1)

    out = jax.lax.map(block, (hidden.swapaxes(0, 1), targets.swapaxes(0, 1)))
    return out.swapaxes(0, 1).reshape(B, count * width)[:, :T]

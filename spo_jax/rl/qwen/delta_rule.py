"""The gated delta rule, token by token and in chunks.

A head's memory S [Dk, Dv] decays by exp(g) and is then corrected at each token:
S <- exp(g) S + k (beta (v - k^T exp(g) S))^T, o = q^T S. Within a chunk the corrections solve a
unit lower triangular system; its inverse reduces them to a few matrix products. Only the memory
passes from chunk to chunk (Yang et al., Gated Delta Networks, 2024).
Heads: Hk of queries and keys, each serving Hv / Hk heads of values.

Everything is float32, and every product here has `EXACT` precision: all 24 bits of its operands.
By default a GPU uses 11 of them (TF32), a TPU 8 (bfloat16). With similar keys the system is far
from the identity, and its inverse and the memory amplify such errors from token to token, to 1,000
times those of float32. Gradients inherit the precision. The rest of the model has the device's
default: projections, attention and logits do not feed errors back, operands in bfloat16 lose
nothing, and those of a float32 model lose less than in a bfloat16 model. Norms, gates, softmax and
the objective have no matrix products.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

CHUNK = 64
EXACT = jax.lax.Precision.HIGHEST
exact = partial(jnp.einsum, precision=EXACT)
product = partial(jnp.matmul, precision=EXACT)


def normalise_heads(x: jax.Array) -> jax.Array:
    """x / |x| over the last axis in float32; a zero vector stays zero."""
    x = x.astype(jnp.float32)
    return x * jax.lax.rsqrt(jnp.sum(x * x, axis=-1, keepdims=True) + 1e-6)


def recurrent_step(
    queries: jax.Array,
    keys: jax.Array,
    values: jax.Array,
    decay: jax.Array,
    beta: jax.Array,
    memory: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """One token. queries, keys: [B, Hk, Dk], queries scaled; values: [B, Hv, Dv];
    decay (the log g), beta: [B, Hv]; memory: [B, Hv, Dk, Dv]. Returns [B, Hv, Dv] and the memory.

    The queries' reads of the new memory follow from the reads of the old one by queries and keys.
    So the old memory is read once for both, and once for the update.
    """
    rep = values.shape[1] // keys.shape[1]
    queries, keys = (jnp.repeat(x, rep, axis=1) for x in (queries, keys))
    kept = jnp.exp(decay)[..., None]
    both = jnp.stack([queries, keys], axis=2) * kept[..., None]
    read, held = jnp.moveaxis(exact("bhik,bhkv->bhiv", both, memory), 2, 0)
    change = beta[..., None] * (values - held)
    out = read + jnp.sum(queries * keys, axis=-1, keepdims=True) * change
    return out, memory * kept[..., None] + keys[..., None] * change[..., None, :]


def chunked(
    queries: jax.Array,
    keys: jax.Array,
    values: jax.Array,
    decay: jax.Array,
    beta: jax.Array,
    memory: jax.Array,
    chunk: int = CHUNK,
) -> tuple[jax.Array, jax.Array]:
    """A whole sequence. queries, keys: [B, T, Hk, Dk], queries scaled; values: [B, T, Hv, Dv];
    decay (the log g <= 0), beta: [B, T, Hv]; memory: [B, Hv, Dk, Dv]; all float32.
    Returns [B, T, Hv, Dv] and the memory after the last token.
    """
    B, T, Hk, Dk = keys.shape
    rep, Dv = values.shape[2] // Hk, values.shape[3]
    chunk = min(chunk, T)
    count = -(-T // chunk)

    def split(x: jax.Array, heads: tuple[int, ...]) -> jax.Array:
        """[B, T, h, ...] -> [N, B, *heads, C, ...]; added tokens are zero and change nothing."""
        x = jnp.pad(x, ((0, 0), (0, count * chunk - T)) + ((0, 0),) * (x.ndim - 2))
        x = x.reshape(B, count, chunk, *heads, *x.shape[3:])
        return jnp.moveaxis(x, (1, 2), (0, 2 + len(heads)))

    q, k = split(queries, (Hk,)), split(keys, (Hk,))  # [N, B, Hk, C, Dk]
    v = split(values, (Hk, rep))  # [N, B, Hk, rep, C, Dv]
    g, b = split(decay, (Hk, rep)), split(beta, (Hk, rep))  # [N, B, Hk, rep, C]
    g = jnp.cumsum(g, axis=-1)
    within, solve = _inside(q, k, g, b)

    start = memory.reshape(B, Hk, rep, Dk, Dv)
    end, (out, change) = jax.lax.scan(jax.checkpoint(_pass_on), start, (q, k, v, g, solve))
    out = out + product(within, change)
    out = jnp.moveaxis(out, (0, 4), (1, 2)).reshape(B, count * chunk, Hk * rep, Dv)
    return out[:, :T], end.reshape(B, Hk * rep, Dk, Dv)


def _inside(q: jax.Array, k: jax.Array, g: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """What does not depend on the memory, of all chunks at once; q, k [N, B, Hk, C, Dk], g (summed
    within the chunk), b [N, B, Hk, rep, C].

    Returns two [N, B, Hk, rep, C, C]: how much of each earlier change a token reads, and what turns
    the errors of a chunk into its changes.
    """
    chunk = k.shape[-2]
    lower = jnp.tril(jnp.ones((chunk, chunk), bool))
    # Masked before exp: above the diagonal the difference is positive and could overflow.
    ratio = jnp.exp(jnp.where(lower, g[..., :, None] - g[..., None, :], -jnp.inf))
    products = exact("...ik,...jk->...ij", k, k)[:, :, :, None]
    system = jnp.where(jnp.tril(lower, -1), products * ratio * b[..., None], 0.0)
    within = exact("...ik,...jk->...ij", q, k)[:, :, :, None] * ratio
    return within, unit_lower_inverse(system) * b[..., None, :]


def _pass_on(held: jax.Array, xs: tuple[jax.Array, ...]) -> tuple[jax.Array, Any]:
    """A chunk's part that needs the memory, held [B, Hk, rep, Dk, Dv]: three products in a row.

    Returns the memory after the chunk; what its queries read of the one before, and the changes,
    both [B, Hk, rep, C, Dv].
    """
    q, k, v, g, solve = xs
    grown = jnp.exp(g)[..., None]
    read = exact("bhik,bhrkv->bhriv", jnp.concatenate([k, q], axis=-2), held)
    known, out = jnp.split(read, 2, axis=-2)
    change = product(solve, v - grown * known)
    last = g[..., -1:, None]
    faded = change * jnp.exp(last - g[..., None])
    return held * jnp.exp(last) + exact("bhik,bhriv->bhrkv", k, faded), (grown * out, change)


@jax.custom_vjp
def unit_lower_inverse(strict: jax.Array) -> jax.Array:
    """(I + L)^-1 for strictly lower triangular L [..., C, C], by doubling.

    The inverse of two diagonal blocks and the block below them follows from the blocks' inverses,
    so log2(C) levels of matrix products replace a loop over rows. Unlike in the series of powers of
    L, no terms cancel.
    """
    return _unit_lower_inverse(strict)


def _unit_lower_inverse(strict: jax.Array) -> jax.Array:
    size = strict.shape[-1]
    whole = 1 << (size - 1).bit_length()
    lead = strict.shape[:-2]
    strict = jnp.pad(strict, ((0, 0),) * len(lead) + ((0, whole - size),) * 2)
    inverse = jnp.ones((*lead, whole, 1, 1), strict.dtype)  # of the diagonal blocks of width 1
    width = 1
    while width < whole:
        pairs = whole // (2 * width)
        blocks = strict.reshape(*lead, pairs, 2, width, pairs, 2, width)
        diagonal = jnp.diagonal(blocks[..., :, 1, :, :, 0, :], axis1=-4, axis2=-2)
        below = jnp.moveaxis(diagonal, -1, -3)  # [..., pairs, width, width]
        halves = inverse.reshape(*lead, pairs, 2, width, width)
        first, second = halves[..., 0, :, :], halves[..., 1, :, :]
        corner = product(-second, product(below, first))
        inverse = jnp.concatenate(
            [
                jnp.concatenate([first, jnp.zeros_like(first)], axis=-1),
                jnp.concatenate([corner, second], axis=-1),
            ],
            axis=-2,
        )
        width *= 2
    return inverse.reshape(*lead, whole, whole)[..., :size, :size]


def _inverse_forward(strict: jax.Array) -> tuple[jax.Array, jax.Array]:
    inverse = _unit_lower_inverse(strict)
    return inverse, inverse


def _inverse_backward(inverse: jax.Array, cotangent: jax.Array) -> tuple[jax.Array]:
    """d(X^-1) = -X^-1 dX X^-1."""
    transposed = inverse.swapaxes(-1, -2)
    return (jnp.tril(product(product(-transposed, cotangent), transposed), -1),)


unit_lower_inverse.defvjp(_inverse_forward, _inverse_backward)

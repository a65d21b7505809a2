"""What rollouts are worth: objectives, utilities, gaps and credits, in JAX.

Every public function takes and returns NumPy arrays in float64; NaN means "there is none". Axes:
P pair, I instance, S seed, T step, L walk, N node, D destroy, R repair, M panel member.

What is deliberately different from a plain jitted sum:

- JAX computes in float32 unless told otherwise, and the switch is global. `_jit` turns 64 bits on
  around its own calls only, so a training loop beside it keeps its precision.
- Arrays are padded to power-of-two buckets, so that a run whose batches all differ in size
  compiles a few programs per function instead of one per size.
- Sums run one column at a time, in order, and padding adds exact zeros at the end. So a result has
  the same bits whatever else is in its batch, and the same as a plain loop from left to right:
  neither the order of the pairs nor the number of workers can break a tie between two scores.
  Division by one common count happens outside the compiled function for the same reason: XLA
  would multiply by a rounded reciprocal.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from spo_jax.errors import InputError

Array = np.ndarray


def _jit(function: Callable[..., Any], **options: Any) -> Callable[..., Array]:
    """`function` compiled for float64, returning NumPy; the global precision stays as it is."""
    compiled = jax.jit(function, **options)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Array:
        with jax.enable_x64(True):
            return np.asarray(compiled(*args, **kwargs))

    return call


def _bucket(size: int) -> int:
    """The smallest power of two that holds `size`; at least 1."""
    return 1 << max(size - 1, 0).bit_length()


def _pad(array: Array, shape: Sequence[int], fill: float | None = None) -> Array:
    """`array` grown at its ends to `shape`, with `fill` or, without one, its own last entries."""
    extra = [(0, new - old) for old, new in zip(array.shape, shape, strict=True)]
    if fill is None:
        return np.pad(array, extra, mode="edge")
    return np.pad(array, extra, constant_values=fill)


def _float64(array: Any) -> Array:
    return np.asarray(array, dtype=np.float64)


def _sum_in_order(terms: jax.Array) -> jax.Array:
    """[..., K] -> [...]: ((terms[0] + terms[1]) + terms[2]) + ..., starting from zero."""
    columns = jnp.moveaxis(terms, -1, 0)
    start = jnp.zeros(columns.shape[1:], terms.dtype)
    total, _ = lax.scan(lambda so_far, column: (so_far + column, None), start, columns)
    return total


# --- objectives -----------------------------------------------------------------------------------


@_jit
def _walk_costs(dist: jax.Array, walk: jax.Array) -> jax.Array:
    """dist [I, N, N], walk [I, B, L] -> [I, B]; never holds more than one step of every walk."""
    rows = jnp.arange(walk.shape[0])[:, None]
    nodes = walk.shape[-1]

    def step(k: jax.Array, total: jax.Array) -> jax.Array:
        return total + dist[rows, walk[..., k - 1], walk[..., k]]

    missing = ((walk < 0) | (walk >= dist.shape[-1])).any(-1)
    total = lax.fori_loop(1, nodes, step, jnp.zeros(walk.shape[:2], dist.dtype))
    return jnp.where(missing, jnp.nan, total)


def objectives(dist: Array, walk: Array) -> Array:
    """The objective of every returned solution, recomputed from the instance's own matrix.

    dist: [I, N, N] float64; pad instances of different sizes with `pad_dist`.
    walk: [P, I, S, L] int32 as in Rollouts: consecutive nodes are the edges, the last node is
        repeated as padding, -1 marks a missing rollout.
    Returns [P, I, S] float64, NaN where the walk has an entry that is no node of its instance.
    The sum runs along the walk, so it may differ from a correctly rounded one in the last bits.
    """
    dist, walk = _float64(dist), np.asarray(walk, np.int32)
    chex.assert_rank([dist, walk], [3, 4])
    pairs, instances, seeds, length = walk.shape
    chex.assert_shape(dist, (instances, None, None))
    chex.assert_equal(dist.shape[1], dist.shape[2])
    if length == 0 or dist.shape[1] == 0:
        raise InputError("a walk needs at least one node, and an instance too")
    batch = walk.transpose(1, 0, 2, 3).reshape(instances, pairs * seeds, length)
    if batch.size == 0:
        return np.full((pairs, instances, seeds), np.nan)
    slots = _bucket(instances)
    size = _bucket(dist.shape[1])
    cost = _walk_costs(
        _pad(dist, (slots, size, size), np.nan),
        _pad(batch, (slots, _bucket(pairs * seeds), _bucket(length))),
    )
    cost = cost[:instances, : pairs * seeds]
    return cost.reshape(instances, pairs, seeds).transpose(1, 0, 2)


def pad_dist(matrices: Sequence[Array]) -> Array:
    """[I, N, N] float64 of matrices of different sizes, NaN outside each one's own nodes.

    A walk that leaves its instance therefore costs NaN.
    """
    size = max((len(matrix) for matrix in matrices), default=0)
    padded = [_pad(_float64(matrix), (size, size), np.nan) for matrix in matrices]
    return np.stack(padded) if padded else np.zeros((0, 0, 0))


def recompute(matrices: Sequence[Array], walk: Array) -> Array:
    """`objectives` for instances of different sizes: matrices [I] of [N_i, N_i] float64.

    Instances are grouped by bucket, so a folder with one huge instance does not blow up the rest.
    """
    chex.assert_rank(walk, 4)
    chex.assert_equal(len(matrices), walk.shape[1])
    cost = np.full(walk.shape[:3], np.nan)
    sizes = [_bucket(len(matrix)) for matrix in matrices]
    for size in sorted(set(sizes)):
        group = [i for i, other in enumerate(sizes) if other == size]
        cost[:, group] = objectives(pad_dist([matrices[i] for i in group]), walk[:, group])
    return cost


# --- utility and gap ------------------------------------------------------------------------------


@_jit
def _total_improvement(start: jax.Array, best: jax.Array, eps: jax.Array) -> jax.Array:
    """start, best [P, K] -> [P]; padded columns improve nothing."""
    return _sum_in_order((start - best) / jnp.maximum(jnp.abs(start), eps))


def utility(best_cost: Array, eps: float = 1e-12) -> Array:
    """Pair utility J (eq:pair-performance): the mean relative improvement over the start.

    best_cost: [P, I, S, T+1] float64, best-so-far objectives; its first and last entries count.
    eps: the equation's small denominator, > 0.
    Returns [P] float64, NaN where any of the pair's rollouts is missing.
    """
    best_cost = _float64(best_cost)
    chex.assert_rank(best_cost, 4)
    pairs, instances, seeds, times = best_cost.shape
    rollouts = instances * seeds
    if rollouts == 0 or times == 0:
        raise InputError("a utility needs at least one instance, one seed and the starting cost")
    if not eps > 0:
        raise InputError(f"eps is {eps}: the denominator's guard must be positive")
    ends = best_cost[..., [0, -1]].reshape(pairs, rollouts, 2)
    padded = _pad(ends, (_bucket(pairs), _bucket(rollouts), 2), 1.0)
    total = _total_improvement(padded[..., 0], padded[..., 1], float(eps))
    return total[:pairs] / rollouts


@_jit
def _gap(cost: jax.Array, reference: jax.Array) -> jax.Array:
    gap = 100.0 * (cost - reference) / reference
    return jnp.where(reference > 0, gap, jnp.nan)


def reference_gap(cost: Array, reference: Array) -> Array:
    """Gap in percent, 100 (f - f_ref) / f_ref (Section 5.1); the shapes broadcast as in NumPy.

    Returns float64, NaN where either is missing or the reference is not positive.
    """
    cost, reference = np.broadcast_arrays(_float64(cost), _float64(reference))
    slots = (_bucket(cost.size),)
    gap = _gap(_pad(cost.ravel(), slots, np.nan), _pad(reference.ravel(), slots, np.nan))
    return gap[: cost.size].reshape(cost.shape)


# --- credits --------------------------------------------------------------------------------------


def follower_credit(payoff: Array) -> Array:
    """Follower credits (eq:follower-credit): a repair earns its pair's utility.

    payoff: [D, R] float64. Returns [D, R] float64, NaN where there is no finite utility.
    """
    payoff = _float64(payoff)
    chex.assert_rank(payoff, 2)
    return np.where(np.isfinite(payoff), payoff, np.nan)


@_jit
def _mean_of_best(payoff: jax.Array, top: jax.Array) -> jax.Array:
    """payoff [D, R] -> [D]; top is an integer scalar."""
    finite = jnp.isfinite(payoff)
    best = jnp.sort(jnp.where(finite, payoff, -jnp.inf), axis=-1, descending=True)
    taken = jnp.minimum(top, finite.sum(-1))
    kept = jnp.where(jnp.arange(payoff.shape[-1]) < taken[:, None], best, 0.0)
    return jnp.where(taken > 0, _sum_in_order(kept) / taken, jnp.nan)


def leader_credit(payoff: Array, top: int = 2) -> Array:
    """Leader credits (eq:leader-credit): the mean of a destroy's `top` best utilities.

    payoff: [D, R] float64, NaN where there is none. A row with fewer finite utilities than `top`
    averages those it has, so that a destroy is not charged for repairs that never ran.
    Returns [D] float64, NaN for a row without any.
    """
    payoff = _float64(payoff)
    chex.assert_rank(payoff, 2)
    if top < 1:
        raise InputError(f"top is {top}: a leader is judged by at least one response")
    leaders, responses = payoff.shape
    padded = _pad(payoff, (_bucket(leaders), _bucket(responses)), np.nan)
    return _mean_of_best(padded, np.int64(top))[:leaders]


_panel_total = _jit(_sum_in_order)


def cross_play(payoff: Array) -> Array:
    """Cross-play scores (eq:repair-population-credit): a repair's mean over the leader panel.

    payoff: [M, R] float64. Returns [R] float64; a repair that fails with one leader fails, so a
    missing entry makes the score NaN, and so does an empty panel.
    """
    payoff = _float64(payoff)
    chex.assert_rank(payoff, 2)
    members, repairs = payoff.shape
    if members == 0:
        return np.full(repairs, np.nan)
    total = _panel_total(_pad(payoff.T, (_bucket(repairs), _bucket(members)), 0.0))
    score = total[:repairs] / members
    return np.where(np.isfinite(score), score, np.nan)

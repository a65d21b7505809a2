"""Schemes that ask which program of a pair earned its J, by pairs with others.

One that needs pairs beside the round's own has `asks`.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from spo_jax.envs.metrics import follower_credit, leader_credit
from spo_jax.program import Pair, Program
from spo_jax.search.credit.arrays import (
    Array,
    Earned,
    PayoffArrays,
    of_arrays,
    parents_of,
    references_of,
)
from spo_jax.search.credit.plain import by_source, mean_of_round
from spo_jax.search.credit.types import Payoff, asking


@of_arrays
def two_way(rounds: PayoffArrays, top: int) -> Earned:
    """The paper's credit of J less what the repair adds to other destroys: a two-way analysis.

    m_i is the mean of row i, and the effect b_ij of a repair on others than destroy i is the sum of
    u_hj - m_h over the pairs of its source with other destroys h, in the round and in the
    cross-play, by their number plus 1; 0 without any. leader = mean of the `top` highest
    u_ij - b_ij: its main effect and its best interactions. follower = u_ij - m_i: the repair's main
    effect and the interaction. No pair is asked for. Selection is the paper's.
    """
    utility, other = follower_credit(rounds.utility), follower_credit(rounds.other_utility)
    row, over = _over_row(utility)
    _, other_over = _over_row(other)  # what a repair adds to its destroy
    # One table: what is missing is filled up to as many slots.
    wide = max(utility.shape[-1], other.shape[-1])
    table = jnp.concatenate([_widened(over, wide), _widened(other_over, wide)], axis=-2)
    source = jnp.concatenate(
        [_widened(rounds.source, wide, -1), _widened(rounds.other_source, wide, -1)], axis=-2
    )
    elsewhere = _elsewhere(table, source, rounds.sources)
    leader = leader_credit(utility - elsewhere[..., : utility.shape[-2], : utility.shape[-1]], top)
    return leader, utility - row, (leader_credit(utility, top), utility)


def _over_row(utility: Array) -> tuple[jax.Array, jax.Array]:
    """The means of rows [..., D, 1], and utilities less them."""
    row = leader_credit(utility, max(utility.shape[-1], 1))[..., None]
    return row, jnp.asarray(utility - row)


def _widened(values: Array, slots: int, fill: float = math.nan) -> jax.Array:
    values = jnp.asarray(values)
    ends = [(0, 0)] * (values.ndim - 1) + [(0, slots - values.shape[-1])]
    return jnp.pad(values, ends, constant_values=fill)


def _asks_counterfactual(payoff: Payoff, *, top: int = 2) -> list[Pair]:
    reference, _ = references_of(payoff)
    least = np.sort(np.where(np.isfinite(payoff.utility), -payoff.utility, np.inf), axis=1)[:, :top]
    bars = -least.max(axis=1, initial=-np.inf, keepdims=True)  # those of equal J are all asked for
    best = np.isfinite(payoff.utility) & (payoff.utility >= bars)
    return _with_destroy(payoff, reference, best)


def _asks_shapley(payoff: Payoff, *, top: int = 2) -> list[Pair]:
    destroy, repair = references_of(payoff)
    valid = np.isfinite(payoff.utility)
    pairs = _with_destroy(payoff, destroy, valid)
    if repair is not None:
        others = [each for each, row in zip(payoff.destroys, valid, strict=True) if row.any()]
        others += [] if destroy is None else [destroy]
        pairs += [Pair(each, repair) for each in others]
    return pairs


def asks_fair_parent(payoff: Payoff, *, top: int = 2) -> list[Pair]:
    """Each destroy with each parent of its valid repairs."""
    found: dict[tuple[str, str], Pair] = {}
    for i, j in np.argwhere(np.isfinite(payoff.utility)):
        for parent in parents_of(payoff, payoff.repairs[i][j]):
            destroy = payoff.destroys[i]
            found.setdefault((destroy.digest, parent.digest), Pair(destroy, parent))
    return list(found.values())


def _with_destroy(payoff: Payoff, destroy: Program | None, which: np.ndarray) -> list[Pair]:
    """A destroy with the repairs in some places [D, R], each source once."""
    found: dict[str, Pair] = {}
    for i, j in np.argwhere(which if destroy is not None else np.zeros(which.shape, bool)):
        repair = payoff.repairs[i][j]
        assert destroy is not None
        assert repair is not None  # it has a J
        found.setdefault(repair.digest, Pair(destroy, repair))
    return list(found.values())


@asking(_asks_counterfactual)
@of_arrays
def counterfactual(rounds: PayoffArrays, top: int) -> Earned:
    """Leaders by what their best repairs lose without them, on a reference destroy.

    leader = mean over the `top` best responses of u_ij - J(d0, r_ij): a difference reward with the
    reference in the place of the destroy (Wolpert and Tumer 2001; as a baseline COMA, arXiv
    1705.08926). follower = u_ij: what the reference repair earns on this destroy is the same for
    its whole row, and no advantage would show it, so it is not asked for. Selection is the paper's.

    The reference destroy is the first of the population, in the first round a classical one. Costs
    `top` pairs a destroy. A pair with it that failed counts as the mean of the others.
    """
    utility = follower_credit(rounds.utility)
    without = _filled(rounds.reference.follower, utility, 2)
    chosen = best_responses(utility, without, top)
    return _mean_of(utility - without, chosen, top), utility, (leader_credit(utility, top), utility)


@asking(_asks_shapley)
@of_arrays
def shapley(rounds: PayoffArrays, top: int) -> Earned:
    """The Shapley values of two roles: main effects, and half of the interaction for each.

    A coalition that lacks a role has the reference in its place, so for a pair
    leader = (J(d_i, r0) - J(d0, r0) + u_ij - J(d0, r_ij)) / 2 and
    follower = (J(d0, r_ij) - J(d0, r0) + u_ij - J(d_i, r0)) / 2, which add up to u_ij - J(d0, r0)
    (Shapley 1953). A leader earns the mean over its `top` best responses. Selection is the paper's.

    The references are the first of each population; in the first round there is no repair, and its
    terms are 0. Costs a pair for each destroy and each repair, and one. As `counterfactual` else.
    """
    utility, reference = follower_credit(rounds.utility), rounds.reference
    without = _filled(reference.follower, utility, 2)
    valid = jnp.isfinite(utility).any(axis=-1)
    alone = _filled(reference.leader, jnp.where(valid, 0.0, math.nan), 1)
    none = jnp.where(jnp.isfinite(reference.pair), reference.pair, 0.0)[..., None]
    chosen = best_responses(utility, without, top)
    leader = (alone - none + _mean_of(utility - without, chosen, top)) / 2
    follower = (without - none[..., None] + utility - alone[..., None]) / 2
    return leader, follower, (leader_credit(utility, top), utility)


@asking(asks_fair_parent)
@of_arrays
def fair_parent(rounds: PayoffArrays, top: int) -> Earned:
    """As `improvement` for followers, against the best parent's J with the very same destroy.

    follower = max(0, u_ij - max J(d_i, parent)) over the parents in the repair's prompt; without
    one, and where all failed, u_ij. leader = the paper's. Without the 0 the bar would be the same
    for the whole group, and no advantage would show it. Selection is the paper's. Costs a pair for
    each destroy and each distinct parent in the prompts of its repairs.
    """
    leader, utility = leader_credit(rounds.utility, top), follower_credit(rounds.utility)
    bar = rounds.parent
    gain = jnp.where(jnp.isfinite(bar), jnp.maximum(utility - bar, 0.0), utility)  # NaN stays NaN
    return leader, gain, (leader, utility)


def best_responses(utility: Array, second: Array, top: int) -> jax.Array:
    """[..., D, R] bool: the `top` highest of each row, of equal ones those with less of `second`.

    Those that are equal in both are in the order of their slots.
    """
    finite = jnp.isfinite(utility)
    value, bar = jnp.where(finite, utility, -math.inf), jnp.where(finite, second, math.inf)
    other, own = value[..., None, :], value[..., :, None]
    less, mine = bar[..., None, :], bar[..., :, None]
    before = np.tri(utility.shape[-1], k=-1, dtype=bool)
    ahead = (other > own) | ((other == own) & ((less < mine) | ((less == mine) & before)))
    return finite & (jnp.sum(ahead, axis=-1) < top)


def _mean_of(values: Array, chosen: Array, top: int) -> jax.Array:
    """[..., D]: the mean of the chosen ones of each row, at most `top`; NaN without any."""
    return leader_credit(jnp.where(chosen, values, math.nan), top)


def _filled(values: Array, like: Array, axes: int) -> jax.Array:
    """`values` where `like` is finite, else NaN; what is missing is the mean of the round's others.

    0 where the round has none. So a pair with a reference that failed moves nobody. axes: how many
    of the last ones are the round's.
    """
    wanted = jnp.isfinite(like)
    known = wanted & jnp.isfinite(values)
    there = jnp.where(known, values, math.nan)
    mean = mean_of_round(there if axes == 2 else there[..., None])
    mean = mean.reshape(mean.shape + (1,) * axes)
    return jnp.where(wanted, jnp.where(known, values, mean), math.nan)


def _elsewhere(over: Array, source: Array, sources: int) -> jax.Array:
    """[..., D, R]: the mean of what a repair of this source adds to the other destroys.

    over: NaN for no pair. One more pair, which adds nothing, is in the mean: 0 for a repair without
    others.
    """
    rows, slots = over.shape[-2:]
    values, group, groups = by_source(over, source, sources)
    row = jnp.arange(values.size) // max(slots, 1) % max(rows, 1)
    own = group * rows + row
    total, many = (jnp.zeros(groups + 1).at[group].add(each)[group] for each in (values, 1.0))
    mine, here = (jnp.zeros((groups + 1) * rows).at[own].add(each)[own] for each in (values, 1.0))
    rest = many - here
    found = jnp.where((rest > 0) & (group < groups), (total - mine) / (rest + 1), 0.0)
    return found.reshape(over.shape)

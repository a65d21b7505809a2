"""How many of a round's best repairs should enter cross-play, and against how many leaders?

The round's repairs are ranked by follower credit; the best C of them play with a panel of M
destroys, and those with the highest mean J there are kept (eq:repair-population-credit). That costs
C x M pairs, less those that the round has already. In a round of a payoff table the worth of each
repair is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spo_jax.errors import InputError
from spo_jax.search.lab.measured.replay import Replayed
from spo_jax.search.lab.measured.tables import Table, floored
from spo_jax.search.lab.schemes import Scheme

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Crossed:
    """Of each round, [N]. regret: the mean worth of the round's best repairs, as many as are kept,
    less that of those that are, in J. pairs: that cross-play evaluated anew.
    """

    regret: Array
    pairs: Array


def cross_play(
    scheme: Scheme, table: Table, rounds: Replayed, candidates: Sequence[int],
    panels: Sequence[int], kept: int,
) -> dict[tuple[int, int], Crossed]:  # fmt: skip
    """By (C, M), for all C and M that a round can have, and (0, 0): by follower credit alone.

    A repair counts once in a round, with the best credit of its pairs; of equal credits the higher
    J comes first, as in a run. The panel is the round's best destroys by what they are selected by.
    A candidate's score is its mean J with them, as the round sees it. A C above the round's
    repairs is all of them. Left out are panels larger than a round, and a C of at most `kept`, for
    which all candidates are kept. Raises InputError for a number below 1, and where a round has
    fewer repairs with a credit than are kept.
    """
    if min((kept, *candidates, *panels)) < 1:
        raise InputError("candidates, panels and repairs that are kept are 1 or more")
    seeds, leaders = rounds.leaders.shape
    followers = table.utility.shape[1]
    earned = scheme(rounds.utility, rounds.source, rounds.reference, rounds.scores)
    order = ordered(earned.order, rounds, followers)  # [N, M'] columns, the best first
    count = (order >= 0).sum(axis=1)
    if count.min() < kept:
        raise InputError(f"{kept} repairs are kept: a round has {count.min()}")
    worth = np.where(order >= 0, np.take_along_axis(rounds.worth, order, axis=1), -np.inf)
    best = -np.sort(-worth, axis=1)[:, :kept].mean(axis=1)

    def regret(score: Array) -> Array:
        """score: [N, C] of the first candidates, in their order."""
        chosen = np.argsort(-score, axis=1, kind="stable")[:, :kept]
        return np.asarray(best - np.take_along_axis(worth, chosen, axis=1).mean(axis=1))

    by_credit = np.where(order >= 0, -np.arange(followers), -np.inf)
    found = {(0, 0): Crossed(regret(by_credit), np.zeros(seeds))}
    sizes = [size for size in sorted(set(panels)) if size <= leaders]
    if not sizes:
        return found
    score = np.where(np.isnan(earned.score), -np.inf, earned.score)
    places = np.argsort(-score, axis=1, kind="stable")[:, : sizes[-1]]
    panel = np.take_along_axis(rounds.leaders, places, axis=1)  # [N, M]
    utility = np.zeros((seeds, sizes[-1], followers))  # of candidates in their order
    for column in rounds.seen.T:
        utility += table.scores[panel[..., None], order[:, None], column[:, None, None]]
    utility /= rounds.seen.shape[1]
    known = np.zeros((seeds, leaders, followers), bool)
    np.put_along_axis(known, rounds.source, True, axis=2)
    mine = np.take_along_axis(known, places[..., None], axis=1)
    fresh = ~np.take_along_axis(mine, np.maximum(order, 0)[:, None], axis=2)
    fresh &= (order >= 0)[:, None]
    spent = fresh.cumsum(axis=1).cumsum(axis=2)  # [N, M, C]
    total = utility.cumsum(axis=1)
    for many in sorted({min(each, int(count.max())) for each in candidates if each > kept}):
        for size in sizes:
            scored = floored(total[:, size - 1])  # a repair that fails with one leader fails
            means = np.where(order >= 0, scored / size, -np.inf)[:, :many]
            found[many, size] = Crossed(regret(means), spent[:, size - 1, many - 1].astype(float))
    return found


def ordered(credits: Array, rounds: Replayed, followers: int) -> Array:
    """[N, followers] int: each round's repairs once, the best credit first; then -1."""
    seeds = len(credits)
    flat, source = credits.reshape(seeds, -1), rounds.source.reshape(seeds, -1)
    finite = np.isfinite(flat)
    utility = rounds.utility.reshape(seeds, -1)
    place = np.lexsort((-utility, -np.where(finite, flat, -np.inf)), axis=-1)
    rank = np.empty_like(place)
    np.put_along_axis(rank, place, np.broadcast_to(np.arange(flat.shape[1]), place.shape), axis=1)
    rank = np.where(finite, rank, flat.shape[1])
    first = np.full((seeds, followers), flat.shape[1])
    np.minimum.at(first, (np.arange(seeds)[:, None], source), rank)
    order = np.argsort(first, axis=1, kind="stable")
    return np.where(np.take_along_axis(first, order, axis=1) < flat.shape[1], order, -1)

"""Discovery rounds replayed from a payoff table: no program runs, and the truth is known.

The table is the world. A round sees some evaluations of a pair, the same for all its pairs, as a
run has its training instances; the truth is the mean over the instances of which the round saw
nothing, because a maximum over what it saw would count its own luck. Where a table says which
instances are for testing, a round sees the others, and the truth is of these. That truth is noisy
itself (`reliability`). A pair that fails on what a round sees has no J in it; as a truth it is
worth the table's lowest (`tables.floored`). A seed draws the destroys of a round without
replacement and for each its responses: first the repair that was written for it, where there is
one, then others of the table, without replacement. The draws are nested: more responses are the
same ones and further ones.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spo_jax.advantages import centred
from spo_jax.errors import InputError
from spo_jax.search.credit.arrays import Reference
from spo_jax.search.lab.estimators import SURVIVORS, rank_correlation
from spo_jax.search.lab.measured.tables import Table, floored
from spo_jax.search.lab.power import interval
from spo_jax.search.lab.schemes import Scheme
from spo_jax.search.lab.study import Row, compared
from spo_jax.seeding import numpy_rng

Array = np.ndarray
GROUP = 30  # destroys of a round
PROVEN = 10  # leaders on which a repair's worth is taken
PANELS = (1, 2, 4, 8, 16)
SPLITS = 100  # random halves of evaluations
MEASURES = {"rank": "rank correlation", "regret": "regret of survivors"}


@dataclass(frozen=True, eq=False)
class Replayed:
    """N rounds. leaders: [N, D] int and source: [N, D, R] int, rows and columns of the table.

    utility: [N, D, R] float64, J as the round sees it, the mean over the evaluations that it has;
    NaN, and so its `scores`, where one of them failed.
    scores: [N, D, R, E] float64, these evaluations.
    reference: such J with the table's best leader and best follower.
    seen: [N, E] int, the evaluations.
    value: [N, D] float64, the truth of leaders, J with the best response of the table. worth:
    [N, M] float64, that of all repairs, their mean J with the PROVEN best leaders of the table.
    A pair that failed counts as the lowest, so a leader is judged by its valid responses.
    Both over the instances that the round does not see; over all, where it sees something of all.
    """

    leaders: Array
    source: Array
    utility: Array
    scores: Array
    reference: Reference
    seen: Array
    value: Array
    worth: Array


def replay(
    table: Table, responses: int, seeds: int, *, group: int = GROUP, evaluations: int = 0,
    seed: int = 0,
) -> Replayed:  # fmt: skip
    """`seeds` rounds of `group` destroys, or of all, with so many responses each.

    evaluations: how many of the table's a round sees, 0 for `Table.seen`. Raises
    InputError for more responses than the table has followers, or more evaluations than it has.
    """
    leaders, followers, known = table.scores.shape
    evaluations = evaluations or table.seen
    if not 1 <= responses <= followers:
        raise InputError(f"{responses} responses: the table has {followers} repairs")
    if not 1 <= evaluations <= known:
        raise InputError(f"{evaluations} evaluations: the table has {known} of a pair")
    rng = numpy_rng(seed, "laboratory", "replay")
    first = rng.random((seeds, leaders)).argsort(axis=1)[:, : min(group, leaders)]
    order = rng.random((*first.shape, followers))
    answer = table.answer[first]  # [N, D]
    there = np.nonzero(answer >= 0)
    order[(*there, answer[there])] = -1.0  # before all others
    if responses < followers:
        order_of = np.argpartition(order, responses - 1, axis=-1)[..., :responses]
    else:
        order_of = np.argsort(order, axis=-1)
    # The order of the slots is that of the draw, whatever the partition left.
    drawn = np.take_along_axis(order, order_of, axis=-1).argsort(axis=-1)
    source = np.take_along_axis(order_of, drawn, axis=-1)
    per = table.per_instance
    drawn_at = rng.random((seeds, known // per))
    if table.test.any():
        drawn_at = drawn_at + table.test[::per]  # after all others
    instances = drawn_at.argsort(axis=1)
    columns = (instances[..., None] * per + np.arange(per)).reshape(seeds, known)
    seen, unseen = columns[:, :evaluations], columns[:, -(-evaluations // per) * per :]
    floor = floored(table.utility)
    best = int(floor.max(axis=1).argmax())
    general = int(floor.mean(axis=0).argmax())
    scores = np.empty((*source.shape, evaluations))
    mine, others = np.zeros(first.shape), np.zeros((seeds, followers))
    for place, column in enumerate(seen.T):
        scores[..., place] = table.scores[first[..., None], source, column[:, None, None]]
        mine += table.scores[first, general, column[:, None]]
        others += table.scores[best, :, column]
    utility = scores.sum(axis=-1)
    utility, mine, others = (each / evaluations for each in (utility, mine, others))
    scores[np.isnan(utility)] = math.nan  # as in a run: all of a pair that failed
    flat = np.take_along_axis(others, source.reshape(seeds, -1), axis=1)
    reference = Reference(mine, flat.reshape(source.shape), others[:, general])
    value, worth = _truth(table, first, unseen if unseen.size else columns)
    return Replayed(first, source, utility, scores, reference, seen, value, worth)


def _truth(table: Table, leaders: Array, evaluations: Array) -> tuple[Array, Array]:
    """`value` and `worth` of rounds with these leaders [N, D], by these evaluations [N, E]."""
    proven = np.argsort(-floored(table.utility).max(axis=1), kind="stable")[:PROVEN]
    value, worth = np.empty(leaders.shape), np.empty((len(leaders), table.utility.shape[1]))
    for n, (rows, columns) in enumerate(zip(leaders, evaluations, strict=True)):
        utility = floored(table.scores[..., columns].mean(axis=2))
        value[n] = utility.max(axis=1)[rows]
        worth[n] = utility[proven].mean(axis=0)
    return value, worth


def reliability(table: Table, evaluations: int = 0, seed: int = 0) -> float:
    """How far `Replayed.value` is reliable: of its rank correlation with itself, measured anew.

    The mean rank correlation over all leaders between two halves of the instances, over SPLITS
    random halves, by the Spearman-Brown formula for as many instances as a round does not see. The
    rank correlation of a perfect estimator with the truth is about the square root of this.
    evaluations: that a round sees, 0 for `Table.seen`. NaN for fewer than two instances.
    """
    per = table.per_instance
    known = table.scores.shape[2] // per
    half = known // 2
    if not half:
        return math.nan
    left = known - -(-(evaluations or table.seen) // per) or known
    rng = numpy_rng(seed, "laboratory", "reliability")
    by_instance = table.scores.reshape(*table.utility.shape, known, per).mean(axis=3)
    found = []
    for _ in range(SPLITS):
        order = rng.permutation(known)
        one, two = (floored(by_instance[..., part].mean(axis=2)).max(axis=1)
                    for part in (order[:half], order[half : 2 * half]))  # fmt: skip
        found.append(float(rank_correlation(one, two)))
    mean, times = float(np.mean(found)), left / half
    return times * mean / (1 + (times - 1) * mean)


def measured(scheme: Scheme, rounds: Replayed) -> dict[str, Array]:
    """MEASURES of a scheme by round, [N] each.

    rank: of leaders' advantages with their true value. regret: the value of the round's best
    SURVIVORS less that of those that the scheme keeps, means over them, in J's unit. The best are
    chosen by the truth, with its luck, which is the same for all schemes.
    """
    value = rounds.value
    earned = scheme(rounds.utility, rounds.source, rounds.reference, rounds.scores)
    score = np.where(np.isnan(earned.score), -np.inf, earned.score)
    kept = np.argsort(-score, axis=-1, kind="stable")[:, :SURVIVORS]
    best = np.sort(value, axis=-1)[:, -SURVIVORS:].mean(axis=-1)
    return {
        "rank": rank_correlation(np.asarray(centred(earned.leader)), value),
        "regret": best - np.take_along_axis(value, kept, axis=-1).mean(axis=-1),
    }


def panel_ranks(table: Table, panel: int, rounds: Replayed) -> Array:
    """[N] rank correlation of repairs' scores on a panel with their worth.

    The candidates are the repairs of a round, each once. The panel is the `panel` destroys of the
    round with the highest Stackelberg credit; a score is the mean J with them, as the round sees it
    (eq:repair-population-credit), the lowest for a repair that fails with one. Raises InputError
    for a panel larger than a round.
    """
    if not 1 <= panel <= rounds.leaders.shape[1]:
        raise InputError(f"a panel of {panel}: a round has {rounds.leaders.shape[1]} destroys")
    credit = Scheme("stackelberg")(rounds.utility, rounds.source).leader
    order = np.argsort(-credit, axis=-1, kind="stable")[:, :panel]
    members = np.take_along_axis(rounds.leaders, order, axis=1)
    found = np.empty(len(members))
    for n, (rows, seen) in enumerate(zip(members, rounds.seen, strict=True)):
        candidates = np.unique(rounds.source[n])
        score = floored(table.scores[np.ix_(rows, candidates, seen)].mean(axis=(0, 2)))
        found[n] = rank_correlation(score, rounds.worth[n, candidates])
    return found


def compare(
    schemes: Sequence[Scheme], table: Table, responses: Sequence[int], seeds: int, seed: int = 0,
    evaluations: int = 0,
) -> list[Row]:  # fmt: skip
    """MEASURES by number of pairs per leader and scheme, over rounds; differences by round.

    A scheme that asks for pairs has fewer responses.
    """
    found = []
    for pairs in responses:
        drawn: dict[int, Replayed] = {}
        by_scheme = {}
        for scheme in schemes:
            count = scheme.responses(pairs)
            if count not in drawn:
                drawn[count] = replay(table, count, seeds, evaluations=evaluations, seed=seed)
            by_scheme[scheme.label] = measured(scheme, drawn[count])
        found += compared(by_scheme, {"pairs": pairs})
    return found


def own_answers(table: Table) -> tuple[float, float, float]:
    """What a repair gains with the destroy that it was written for, above what the two earn with
    others: the mean over destroys and its 95% interval, in J. NaN where no answer is known. Of the
    table without failures.
    """
    table = table.whole
    rows = np.flatnonzero(table.answer >= 0)
    utility = table.utility
    leaders, followers = utility.shape
    # A gain is also in the means of its row, its column and the table, which are taken off.
    kept = 1 - 1 / leaders - 1 / followers + len(rows) / utility.size
    apart = utility - utility.mean(axis=1, keepdims=True) - utility.mean(axis=0) + utility.mean()
    return interval(apart[rows, table.answer[rows]] / kept)

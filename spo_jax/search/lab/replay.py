"""Discovery rounds replayed from a payoff table: no program runs, and the truth is known.

The table is the world: J of a pair is the mean over all its evaluations, and a round sees some of
them, the same for all its pairs, as a run has its training instances. A seed draws the destroys of
a round without replacement and for each its responses: first the repair that was written for it,
where there is one, then others of the table, without replacement.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spo_jax.errors import InputError
from spo_jax.search.formulas.plain import ranks
from spo_jax.search.formulas.seen import Reference
from spo_jax.search.lab.estimators import SURVIVORS, correlation
from spo_jax.search.lab.power import interval
from spo_jax.search.lab.schemes import Scheme, centred
from spo_jax.search.lab.study import Row, compared
from spo_jax.search.lab.tables import Table
from spo_jax.seeding import numpy_rng

Array = np.ndarray
GROUP = 30  # destroys of a round
PROVEN = 10  # leaders on which a repair's worth is taken
PANELS = (1, 2, 4, 8, 16)
MEASURES = {"rank": "rank correlation", "regret": "regret of survivors"}


@dataclass(frozen=True, eq=False)
class Replayed:
    """N rounds. leaders: [N, D] int and source: [N, D, R] int, rows and columns of the table.

    utility: [N, D, R] float64, J as the round sees it, the mean over the evaluations that it has.
    scores: [N, D, R, E] float64, these evaluations.
    reference: such J with the table's best leader and best follower.
    seen: [N, E] int, the evaluations.
    """

    leaders: Array
    source: Array
    utility: Array
    scores: Array
    reference: Reference
    seen: Array


def replay(
    table: Table, responses: int, seeds: int, *, group: int = GROUP, evaluations: int = 0,
    seed: int = 0,
) -> Replayed:  # fmt: skip
    """`seeds` rounds of `group` destroys, or of all, with so many responses each.

    evaluations: how many of the table's a round sees, 0 for half of them, at least one. Raises
    InputError for more responses than the table has followers, or more evaluations than it has.
    """
    leaders, followers, known = table.scores.shape
    evaluations = evaluations or max(1, known // 2)
    if not 1 <= responses <= followers:
        raise InputError(f"{responses} responses: the table has {followers} repairs")
    if not 1 <= evaluations <= known:
        raise InputError(f"{evaluations} evaluations: the table has {known} of a pair")
    rng = numpy_rng(seed, "laboratory", "replay", responses, evaluations)
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
    seen = rng.random((seeds, known)).argsort(axis=1)[:, :evaluations]
    best = int(table.utility.max(axis=1).argmax())
    general = int(table.utility.mean(axis=0).argmax())
    scores = np.empty((*source.shape, evaluations))
    mine, others = np.zeros(first.shape), np.zeros((seeds, followers))
    for place, column in enumerate(seen.T):
        scores[..., place] = table.scores[first[..., None], source, column[:, None, None]]
        mine += table.scores[first, general, column[:, None]]
        others += table.scores[best, :, column]
    utility = scores.sum(axis=-1)
    utility, mine, others = (each / evaluations for each in (utility, mine, others))
    flat = np.take_along_axis(others, source.reshape(seeds, -1), axis=1)
    reference = Reference(mine, flat.reshape(source.shape), others[:, general])
    return Replayed(first, source, utility, scores, reference, seen)


def measured(scheme: Scheme, table: Table, rounds: Replayed) -> dict[str, Array]:
    """MEASURES of a scheme by round, [N] each.

    rank: of leaders' advantages with J of the leader and its best response of the whole table.
    regret: such J of the round's best SURVIVORS less that of those that the scheme keeps, means
    over them, in J's unit.
    """
    value = table.utility.max(axis=1)[rounds.leaders]  # [N, D]
    earned = scheme(rounds.utility, rounds.source, rounds.reference, rounds.scores)
    score = np.where(np.isnan(earned.score), -np.inf, earned.score)
    kept = np.argsort(-score, axis=-1, kind="stable")[:, :SURVIVORS]
    best = np.sort(value, axis=-1)[:, -SURVIVORS:].mean(axis=-1)
    return {
        "rank": correlation(ranks(centred(earned.leader)), ranks(value)),
        "regret": best - np.take_along_axis(value, kept, axis=-1).mean(axis=-1),
    }


def worth_of(table: Table) -> Array:
    """[M]: what each repair is worth, its mean J with the PROVEN best leaders of the table."""
    proven = np.argsort(-table.utility.max(axis=1), kind="stable")[:PROVEN]
    return np.asarray(table.utility[proven].mean(axis=0))


def panel_ranks(table: Table, panel: int, rounds: Replayed) -> Array:
    """[N] rank correlation of repairs' scores on a panel with their worth.

    The candidates are the repairs of a round, each once. The panel is the `panel` destroys of the
    round with the highest Stackelberg credit; a score is the mean J with them, as the round sees it
    (eq:repair-population-credit). Worth is that of `worth_of`. Raises InputError for a panel larger
    than a round.
    """
    if not 1 <= panel <= rounds.leaders.shape[1]:
        raise InputError(f"a panel of {panel}: a round has {rounds.leaders.shape[1]} destroys")
    worth = worth_of(table)
    credit = Scheme("stackelberg")(rounds.utility, rounds.source).leader
    order = np.argsort(-credit, axis=-1, kind="stable")[:, :panel]
    members = np.take_along_axis(rounds.leaders, order, axis=1)
    found = np.empty(len(members))
    for n, (rows, seen) in enumerate(zip(members, rounds.seen, strict=True)):
        candidates = np.unique(rounds.source[n])
        score = table.scores[np.ix_(rows, candidates, seen)].mean(axis=(0, 2))
        found[n] = correlation(ranks(score), ranks(worth[candidates]))
    return found


def compare(
    schemes: Sequence[Scheme], table: Table, responses: Sequence[int], seeds: int, seed: int = 0,
    evaluations: int = 0,
) -> list[Row]:  # fmt: skip
    """MEASURES by number of pairs a leader and scheme, over rounds; differences by round.

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
            by_scheme[scheme.label] = measured(scheme, table, drawn[count])
        found += compared(by_scheme, {"pairs": pairs})
    return found


def own_answers(table: Table) -> tuple[float, float, float]:
    """What a repair gains with the destroy that it was written for, above what the two earn with
    others: the mean over destroys and its 95% interval, in J. NaN where no answer is known.
    """
    rows = np.flatnonzero(table.answer >= 0)
    utility = table.utility
    leaders, followers = utility.shape
    # A gain is also in the means of its row, its column and the table, which are taken off.
    kept = 1 - 1 / leaders - 1 / followers + len(rows) / utility.size
    apart = utility - utility.mean(axis=1, keepdims=True) - utility.mean(axis=0) + utility.mean()
    return interval(apart[rows, table.answer[rows]] / kept)

"""Races in rounds of a payoff table: pairs that look bad on their first evaluations get no more.

A rule sees the scores so far and says which pairs go on. All pairs of a round have their
evaluations on the same instances with the same seeds, in the same order, so that rules compare like
with like. J of a pair that is out is estimated (`completed`): too low on average,
because it is out for being low, and the tables say by how much.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from spo_jax.errors import InputError
from spo_jax.search.lab.power import interval, quantile
from spo_jax.search.lab.replay import Replayed, measured
from spo_jax.search.lab.schemes import Scheme
from spo_jax.search.lab.tables import Table

Array = np.ndarray
# scores so far [N, P, e], NaN for pairs that are out -> [N, P] bool, who goes on
Rule = Callable[[Array], Array]
QUARTER = 0.25


@dataclass(frozen=True)
class WorstOut:
    """After `after` evaluations the worst `share` of a round's pairs is out, rounded down."""

    after: int
    share: float

    def __post_init__(self) -> None:
        if self.after < 1 or not 0 <= self.share < 1:
            raise InputError("WorstOut is after 1 evaluation or more, for a share of 0 to below 1")

    def __str__(self) -> str:
        return f"after {self.after}, the worst {self.share:.0%}"

    def __call__(self, scores: Array) -> Array:
        means = scores.mean(axis=-1)
        if scores.shape[-1] != self.after:
            return np.isfinite(means)
        out = int(means.shape[-1] * self.share)
        order = np.argsort(means, axis=-1, kind="stable")
        going = np.ones(means.shape, bool)
        np.put_along_axis(going, order[..., :out], False, axis=-1)
        return going


@dataclass(frozen=True)
class Bounded:
    """A pair is out once a paired t test, one-sided, says that it is worse than the best so far.

    level: of one test. With every further evaluation there is another test, so that more good pairs
    are lost than 1 - level.
    """

    level: float = 0.95

    def __post_init__(self) -> None:
        if not 0.5 < self.level < 1:
            raise InputError(f"level is {self.level}; it is between 0.5 and 1")

    def __str__(self) -> str:
        return f"t test at {self.level:g}"

    def __call__(self, scores: Array) -> Array:
        means, count = scores.mean(axis=-1), scores.shape[-1]
        alive = np.isfinite(means)
        if count < 2:
            return alive
        best = np.where(alive, means, -np.inf).argmax(axis=-1)[..., None, None]
        behind = np.take_along_axis(scores, best, axis=-2) - scores
        error = behind.std(axis=-1, ddof=1) / math.sqrt(count)
        return alive & ~(behind.mean(axis=-1) > quantile(self.level, count - 1) * error)


RULES: tuple[Rule, ...] = (
    WorstOut(1, 0.25), WorstOut(2, 0.25), WorstOut(2, 0.5), Bounded(0.95), Bounded(0.99)
)  # fmt: skip


def race(rule: Rule, scores: Array) -> Array:
    """[N, P, E] bool, the evaluations that are made, of all in `scores` [N, P, E], in their order.

    Raises InputError where a rule returns something else than bools, or no pair goes on.
    """
    made = np.ones(scores.shape, bool)
    alive = np.ones(scores.shape[:2], bool)
    for count in range(1, scores.shape[2]):
        seen = np.where(alive[..., None], scores[..., :count], np.nan)
        going = np.asarray(rule(seen))
        if going.shape != alive.shape or going.dtype != bool:
            raise InputError(f"rule {rule} returned no bools of shape {alive.shape}")
        alive &= going
        if not alive.any(axis=1).all():
            raise InputError(f"rule {rule} leaves no pair of a round")
        made[..., count] = alive
    return made


def completed(scores: Array, made: Array) -> Array:
    """[N, P]: J of every pair, the mean over all E evaluations or an estimate of it.

    Instances differ in their level. So of a pair that is out the estimate is the mean J of those
    that have all evaluations, plus how far the pair is from them on the evaluations that it has.
    scores: [N, P, E]. made: [N, P, E] bool.
    """
    finished = np.asarray(made.all(axis=2))
    level = np.where(finished[..., None], scores, 0.0).sum(axis=1) / finished.sum(axis=1)[:, None]
    away = np.where(made, scores - level[:, None], 0.0).sum(axis=2) / made.sum(axis=2)
    return np.asarray(level.mean(axis=1)[:, None] + away)


@dataclass(frozen=True, eq=False)
class Raced:
    """Of each round, [N]. spent: share of the evaluations. best, quarter: whether the pair with the
    highest J on all evaluations had all of them, and how many of the best quarter had. bias: the
    estimated J of those that are out less their J on all, in standard deviations of J; NaN where
    none is out. rank, regret: as in `replay.measured`, with the scheme's credits.
    """

    spent: Array
    best: Array
    quarter: Array
    bias: Array
    rank: Array
    regret: Array


def raced(rule: Rule | None, scheme: Scheme, table: Table, rounds: Replayed) -> Raced:
    """Races of the rounds' pairs; without a rule all evaluations are made."""
    flat = scores_of(table, rounds)
    made = np.ones(flat.shape, bool) if rule is None else race(rule, flat)
    known = completed(flat, made)
    whole = flat.mean(axis=-1)
    finished = np.asarray(made.all(axis=-1))
    order = np.argsort(-whole, axis=-1, kind="stable")
    best = order[:, : max(1, int(whole.shape[1] * QUARTER))]
    out = ~finished
    away = np.where(out, known - whole, 0.0).sum(axis=1) / whole.std(axis=1)
    bias = np.where(out.any(axis=1), away / np.maximum(out.sum(axis=1), 1), np.nan)
    kept = np.take_along_axis(finished, best, axis=1)
    seen = Replayed(
        rounds.leaders, rounds.source, known.reshape(rounds.utility.shape), rounds.reference,
        rounds.seen,
    )  # fmt: skip
    found = measured(scheme, table, seen)
    return Raced(
        made.mean(axis=(1, 2)), kept[:, 0].astype(float), kept.mean(axis=1), bias,
        found["rank"], found["regret"],
    )  # fmt: skip


def scores_of(table: Table, rounds: Replayed) -> Array:
    """[N, D R, E]: the evaluations that a round sees, in its order."""
    pairs = rounds.leaders[..., None], rounds.source
    flat = [table.scores[(*pairs, column[:, None, None])] for column in rounds.seen.T]
    return np.stack(flat, axis=-1).reshape(len(rounds.source), -1, len(flat))


def races(
    table: Table, rounds: Replayed, scheme: Scheme, rules: Sequence[Rule] = RULES
) -> list[list[str]]:
    """A row of texts for each rule, and first without one: means over the rounds.

    Columns: rule, spent, best, quarter, bias, rank, and regret, with a * where the interval of its
    difference from the first row excludes 0.
    """
    rows = []
    first = raced(None, scheme, table, rounds)
    for rule in (None, *rules):
        own = first if rule is None else raced(rule, scheme, table, rounds)
        texts = [str(rule or "all evaluations"), f"{own.spent.mean():.2f}"]
        texts += [f"{each.mean():.0%}" for each in (own.best, own.quarter)]
        texts.append(f"{np.nanmean(own.bias):+.2f}" if np.isfinite(own.bias).any() else "")
        for name, digits in (("rank", 2), ("regret", 5)):
            each = getattr(own, name)
            _, low, high = interval(each - getattr(first, name))
            texts.append(f"{each.mean():.{digits}f}" + "*" * bool(low > 0 or high < 0))
        rows.append(texts)
    return rows

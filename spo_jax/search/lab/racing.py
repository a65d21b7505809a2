"""Races replayed from a payoff table, with the rules and estimates of `spo_jax.search.racing`.

As in a run, the responses of one destroy race with each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from spo_jax.errors import InputError
from spo_jax.search.lab.power import interval
from spo_jax.search.lab.replay import Replayed, measured
from spo_jax.search.lab.schemes import Scheme, centred
from spo_jax.search.lab.tables import Table
from spo_jax.search.racing import FRace, Rule, TTest, WorstOut, completed, decided, stages

Array = np.ndarray
RACED: tuple[Rule, ...] = (
    WorstOut(2, 0.25), WorstOut(3, 0.5), WorstOut(2, 0.5),
    TTest(0.95), TTest(0.99), FRace(0.95), FRace(0.99),
)  # fmt: skip
QUARTER = 0.25


def race(rule: Rule, scores: Array) -> Array:
    """[N, P, E] bool, the evaluations that are made, of all in `scores` [N, P, E], in their order.

    The P pairs of each of N races are compared. Raises InputError as `stages` and `decided` do.
    """
    made = np.ones(scores.shape, bool)
    for count in stages(rule, scores.shape[2]):
        seen = np.where(made[..., count - 1 : count], scores, np.nan)
        seen[..., count:] = np.nan
        made[..., count:] = decided(rule, seen[..., None])[..., None]
    return made


@dataclass(frozen=True, eq=False)
class Raced:
    """Of each round, [N]. spent: share of the evaluations. best, quarter: whether the pair with the
    highest J on all evaluations had all of them, and how many of the best quarter had. bias: the
    estimated J of those that are out less their J on all, in standard deviations of J. alike: the
    cosine of followers' advantages with those from all evaluations. off: how far the advantages of
    those that are out are from these, on average, in standard deviations of them. Both compare the
    answers to one destroy; bias and off are NaN where none is out. rank, regret: as in
    `replay.measured`, with the scheme's credits.
    """

    spent: Array
    best: Array
    quarter: Array
    bias: Array
    alike: Array
    off: Array
    rank: Array
    regret: Array


def raced(rule: Rule | None, scheme: Scheme, table: Table, rounds: Replayed) -> Raced:
    """Races among the responses of each destroy; without a rule all evaluations are made."""
    count, evaluations = len(rounds.source), rounds.scores.shape[-1]
    flat = rounds.scores.reshape(count, -1, evaluations)
    rows = flat.reshape(-1, rounds.source.shape[2], evaluations)
    own = np.ones(rows.shape, bool) if rule is None else race(rule, rows)
    known = completed(rows, own).reshape(count, -1)
    made, whole = own.reshape(flat.shape), flat.mean(axis=-1)
    finished = np.asarray(made.all(axis=-1))
    order = np.argsort(-whole, axis=-1, kind="stable")
    best = order[:, : max(1, int(whole.shape[1] * QUARTER))]
    kept = np.take_along_axis(finished, best, axis=1)

    def of_those_out(away: Array, unit: Array) -> Array:
        out = ~finished
        mean = np.where(out, away, 0.0).sum(axis=1) / np.maximum(out.sum(axis=1), 1)
        return np.where(out.any(axis=1), mean / unit, np.nan)

    def seen_with(utility: Array) -> Replayed:
        own = utility.reshape(rounds.utility.shape)
        return replace(rounds, utility=own, scores=own[..., None])  # J alone, as estimated

    def advantages(seen: Replayed) -> Array:
        earned = scheme(seen.utility, seen.source, seen.reference, seen.scores)
        return np.asarray(centred(earned.follower).reshape(count, -1))

    seen = seen_with(known)
    moved, due = advantages(seen), advantages(seen_with(whole))
    length = np.sqrt((moved**2).sum(axis=1) * (due**2).sum(axis=1))
    found = measured(scheme, table, seen)
    return Raced(
        made.mean(axis=(1, 2)), kept[:, 0].astype(float), kept.mean(axis=1),
        of_those_out(known - whole, whole.std(axis=1)),
        (moved * due).sum(axis=1) / np.where(length > 0, length, 1.0),
        of_those_out(moved - due, due.std(axis=1)),
        found["rank"], found["regret"],
    )  # fmt: skip


def races(
    table: Table, rounds: Replayed, scheme: Scheme, rules: Sequence[Rule] = RACED
) -> list[list[str]]:
    """A row of texts for each rule, and first without one: means over the rounds.

    Columns: rule, spent, best, quarter, bias, alike, off, rank, and regret, the last two with a *
    where the interval of the difference from the first row excludes 0. A rule that would never be
    asked has no row.
    """
    rows = []
    first = raced(None, scheme, table, rounds)
    known = [rule for rule in rules if _asked(rule, rounds.seen.shape[1])]
    for rule in (None, *known):
        own = first if rule is None else raced(rule, scheme, table, rounds)
        texts = [str(rule or "all evaluations"), f"{own.spent.mean():.2f}"]
        texts += [f"{each.mean():.0%}" for each in (own.best, own.quarter)]
        texts.append(_signed(own.bias))
        texts += [f"{own.alike.mean():.2f}", _signed(own.off)]
        for name, digits in (("rank", 2), ("regret", 5)):
            each = getattr(own, name)
            _, low, high = interval(each - getattr(first, name))
            texts.append(f"{each.mean():.{digits}f}" + "*" * bool(low > 0 or high < 0))
        rows.append(texts)
    return rows


def _signed(values: Array) -> str:
    return f"{np.nanmean(values):+.2f}" if np.isfinite(values).any() else ""


def _asked(rule: Rule, evaluations: int) -> bool:
    try:
        return bool(stages(rule, evaluations))
    except InputError:
        return False

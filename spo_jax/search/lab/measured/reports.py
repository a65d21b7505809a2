"""Reports of measured tables: what J is made of, and rounds replayed from them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from spo_jax.errors import InputError
from spo_jax.search.lab.measured import survival
from spo_jax.search.lab.measured.crossplay import cross_play
from spo_jax.search.lab.measured.replay import (
    MEASURES,
    PANELS,
    compare,
    own_answers,
    panel_ranks,
    reliability,
    replay,
)
from spo_jax.search.lab.measured.shares import bootstrap
from spo_jax.search.lab.measured.survival import compare_rules
from spo_jax.search.lab.measured.tables import Table
from spo_jax.search.lab.power import interval
from spo_jax.search.lab.schemes import Scheme
from spo_jax.search.lab.show import markdown
from spo_jax.search.lab.study import Row, distinct

PARTS = ("leader", "follower", "interaction", "noise")
# Schemes in every replay.
ALWAYS_COMPARED = ("stackelberg@1", "stackelberg@4", "stackelberg@8", "lower-bound")
RESPONSES = 6  # to a destroy, where these are not what is compared
ROUNDS = 4
RUNS = 400  # at most, through which survivors pass: a rule is called in each round of each
POPULATION, PART = 10, 12  # the paper's ten; in four rounds a third of a round's destroys


@dataclass(frozen=True)
class Trials:
    """What is tried in replayed rounds beside schemes, L and numbers of responses.

    rules: of survivors. population: programs that are kept; 0: one in PART of the table's, from 2
    to POPULATION. rounds: of a run; 0: ROUNDS, or as many as there are destroys. candidates:
    repairs that enter cross-play; none: 2, 4 and 8 times the population. panels: numbers of
    destroys. Raises InputError for a number that cannot be.
    """

    rules: tuple[survival.Rule, ...] = survival.RULES
    population: int = 0
    rounds: int = 0
    candidates: tuple[int, ...] = ()
    panels: tuple[int, ...] = PANELS

    def __post_init__(self) -> None:
        fewest = min((*self.candidates, *self.panels), default=1)
        if min(self.population, self.rounds) < 0 or fewest < 1:
            raise InputError(
                "--population, --replayed-rounds, --candidates and --panels are at least 1"
            )

    def kept(self, table: Table) -> int:
        return self.population or min(POPULATION, max(2, min(table.utility.shape) // PART))


def made_of(tables: Mapping[str, Table]) -> str:
    """Shares of the variance of J, with bootstrap intervals, and where they lie in the picture."""
    heads = ["table", "programs", "step", "failed pairs", "without failures",
             "at the lowest cost", "mean J", "sd of J", *PARTS, "gamma", "noise / leader",
             "spread", "own answer"]  # fmt: skip
    rows = []
    for name, table in tables.items():
        whole = table.whole
        shares, ends = whole.shares, bootstrap(whole.scores)
        parts = [
            f"{getattr(shares, part) / (shares.total or 1):.0%} ({low:.0%} to {high:.0%})"
            for part, (low, high) in ((part, ends[part]) for part in PARTS)
        ]
        parameters = [
            f"{value:.2f} ({ends[each][0]:.2f} to {ends[each][1]:.2f})"
            for each, value in (
                ("gamma", shares.gamma), ("noise_in_leaders", shares.noise_in_leaders),
            )
        ]  # fmt: skip
        unit = np.sqrt(shares.leader) or 1.0
        gain = [each / unit for each in own_answers(table)]
        own = f"{gain[0]:+.2f} ({gain[1]:+.2f} to {gain[2]:+.2f})" if np.isfinite(gain[1]) else ""
        rows.append([
            name, _sides(table), str(table.step or ""), f"{np.isnan(table.utility).mean():.1%}",
            _sides(whole) if whole is not table else "",
            f"{table.lowest:.0%}" if np.isfinite(table.lowest) else "",
            f"{whole.utility.mean():.4f}", f"{whole.utility.std():.4f}", *parts, *parameters,
            f"{shares.spread:.2f}", own,
        ])  # fmt: skip
    title = "What J of real programs is made of, of the table without programs that fail"
    return f"{title}\n\n{markdown(heads, rows)}\n"


def _sides(table: Table) -> str:
    return " x ".join(map(str, table.utility.shape))


def replayed(
    name: str, table: Table, schemes: Sequence[Scheme], responses: Sequence[int], seeds: int,
    seed: int, trials: Trials | None = None,
) -> str:  # fmt: skip
    """All that rounds of a table tell: schemes with L and numbers of responses, and then for the
    first scheme rules of survivors, panels and candidates of cross-play.
    """
    trials = trials or Trials()
    first = schemes[0]
    parts = [
        _schemes(name, table, schemes, responses, seeds, seed),
        _survivors(name, table, first, seeds, seed, trials),
        _panels(name, table, seeds, seed, trials.panels),
        _candidates(name, table, first, seeds, seed, trials),
    ]
    return "\n".join(parts)


def _schemes(
    name: str, table: Table, schemes: Sequence[Scheme], responses: Sequence[int], seeds: int,
    seed: int,
) -> str:  # fmt: skip
    known = [count for count in responses if count <= table.utility.shape[1]]
    tried = distinct(schemes)
    labels = {scheme.label for scheme in tried}
    tried += [Scheme.of(name) for name in ALWAYS_COMPARED if name not in labels]
    rows = compare(tried, table, known, seeds, seed)
    reliable = reliability(table)
    root = math.sqrt(reliable) if reliable > 0 else math.nan
    lines = []
    for scheme in tried:
        cells = []
        for measure in MEASURES:
            for count in known:
                [own] = [
                    row for row in rows
                    if (row.scheme, row.measure, row.where["pairs"])
                    == (scheme.label, measure, count)
                ]  # fmt: skip
                cells.append(_cell(own, root if measure == "rank" else 1.0))
        lines.append([scheme.label, *cells])
    heads = [f"{text}, {count}" for text in MEASURES.values() for count in known]
    return (
        f"Rounds replayed from {name}, {seeds} seeds: by evaluated pairs per leader; * apart from "
        f"{tried[0].label}. The truth is of instances that a round did not see; its reliability is "
        f"{reliable:.2f}, and rank correlations are divided by the root of that\n\n"
        f"{markdown(['scheme', *heads], lines)}\n"
    )


def _survivors(
    name: str, table: Table, scheme: Scheme, seeds: int, seed: int, trials: Trials
) -> str:
    size, runs = trials.kept(table), min(seeds, RUNS)
    last = trials.rounds or min(ROUNDS, len(table.utility))
    title = f"Rules of survivors, {name}"
    if not table.destroys:
        return f"{title}: left out, there are no programs beside the table\n"
    rows = compare_rules(
        trials.rules, scheme, table, _responses(table), runs, rounds=last, size=size, seed=seed
    )
    own = {(row.scheme, row.measure, row.where["round"]): row for row in rows}
    first, *_ = labels = [rule.label for rule in trials.rules]
    lines = []
    for label in labels:
        means = [_cell(own[label, "mean", k]) for k in range(1, last + 1)]
        away = own[label, "mean", last]
        difference = f"{away.difference:+.5f} ({away.start:+.5f} to {away.end:+.5f})"
        lines.append([
            label, *means, difference if label != first else "", _cell(own[label, "best", last]),
            f"{own[label, 'diversity', last].mean:.2f}", f"{own[label, 'shared', last].mean:.0%}",
        ])  # fmt: skip
    heads = ["rule@weight", *(f"mean regret, round {k}" for k in range(1, last + 1)),
             f"- {first}, round {last}", f"regret of the best, round {last}", "diversity",
             f"in common with {first}"]  # fmt: skip
    group = survival.round_of(table, last)
    return (
        f"{title}, {runs} seeds: populations of {size} after rounds of {group} new destroys with "
        f"{_responses(table)} responses, by {scheme.label}; * apart from {first}\n\n"
        f"{markdown(heads, lines)}\n"
    )


def _panels(name: str, table: Table, seeds: int, seed: int, panels: Sequence[int]) -> str:
    rounds = replay(table, _responses(table), seeds, seed=seed)
    sizes = [size for size in panels if size <= rounds.leaders.shape[1]]
    found = [interval(panel_ranks(table, size, rounds)) for size in sizes]
    cells = [f"{mean:.2f} ({low:.2f} to {high:.2f})" for mean, low, high in found]
    text = markdown(["panel", *map(str, sizes)], [["rank correlation of repairs", *cells]])
    return f"Repairs judged on a panel of destroys, {name}\n\n{text}\n"


def _candidates(
    name: str, table: Table, scheme: Scheme, seeds: int, seed: int, trials: Trials
) -> str:
    """Rows in the order of C x M, which is what cross-play costs at most."""
    kept = trials.kept(table)
    rounds = replay(table, _responses(table), seeds, seed=seed)
    tried = trials.candidates or tuple(kept * factor for factor in (2, 4, 8))
    found = cross_play(scheme, table, rounds, tried, trials.panels, kept)
    places = sorted(found, key=lambda place: (place[0] * place[1], place))
    lines = []
    for cost, same in groupby(places, key=lambda place: place[0] * place[1]):
        equal = list(same)
        best = found[min(equal, key=lambda place: found[place].regret.mean())].regret
        for many, size in equal:
            own = found[many, size]
            mean, low, high = interval(own.regret)
            away, start, end = interval(own.regret - best)
            difference = (
                f"{away:+.5f} ({start:+.5f} to {end:+.5f})" if own.regret is not best else "best"
            )
            lines.append([
                str(cost), str(many), str(size), f"{own.pairs.mean():.0f}",
                f"{mean:.5f} ({low:.5f} to {high:.5f})", difference if len(equal) > 1 else "",
            ])  # fmt: skip
    heads = ["C x M", "candidates C", "panel M", "new pairs", "regret of repairs",
             "- the best of equal C x M"]  # fmt: skip
    pairs = rounds.source[0].size
    return (
        f"Candidates of cross-play, {name}, {seeds} seeds: the {kept} best repairs are kept, by "
        f"mean J with M destroys, of the C best by the credit of {scheme.label}; a round has "
        f"{pairs} pairs of its own\n\n{markdown(heads, lines)}\n"
    )


def _responses(table: Table) -> int:
    return min(RESPONSES, table.utility.shape[1])


def _cell(row: Row, unit: float = 1.0) -> str:
    apart = row.start > 0 or row.end < 0
    digits = f"{row.mean / unit:.2f}" if row.measure == "rank" else f"{row.mean:.5f}"
    return f"{digits}*" if apart else digits

"""What the laboratory measures: schemes in many worlds, each against the first of them."""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from spo_jax.search.lab.bandit import ADVANTAGES, Training, train
from spo_jax.search.lab.estimators import measure
from spo_jax.search.lab.measured.tables import Table, sub_tables
from spo_jax.search.lab.power import interval, p_of, seeds_needed
from spo_jax.search.lab.schemes import Scheme
from spo_jax.search.lab.worlds import Rounds, Worlds, WorldSpec, draw_rounds, make_worlds

LEARNED = {
    "pair": "J of a sampled pair",
    "leader": "best response to a sampled leader",
    "found": "the pair that was measured best",
}
# For leaders the same: in the picture the first is left out if the second is there.
SAME = {
    "mean": "shared", "regret": "max", "pkpo": "max-at-k", "maxpo": "max-at-k",
    "fair-parent": "stackelberg",
}  # fmt: skip


@dataclass(frozen=True)
class Budget:
    """worlds: of each kind. rounds: of each world. The map's: of each cell, over these values.

    seeds: rounds that are replayed from a table. learners: leaders and followers of the worlds in
    which policies learn. rate, writer and copies: of these policies, as in
    `spo_jax.search.lab.bandit.Training`. failing, tie: failures in worlds of tables, see
    `spo_jax.search.lab.worlds.failing_chances`.
    """

    worlds: int = 100
    rounds: int = 8
    steps: int = 100
    map_worlds: int = 100
    map_rounds: int = 2
    gammas: tuple[float, ...] = (0, 0.25, 0.5, 1, 2, 4)
    noises: tuple[float, ...] = (0, 0.25, 0.5, 1, 2)
    spreads: tuple[float, ...] = (0, 0.5, 1)
    responses: tuple[int, ...] = (3, 6, 12, 30)
    seeds: int = 1000
    learners: tuple[int, int] = (16, 32)
    rate: float = Training.rate
    writer: str = "table"
    copies: str = "paid"
    failing: float = 0.0
    tie: float = 0.0


QUICK = Budget(30, 4, 40, 30, 1, (0, 1, 4), (0, 0.5, 2), (0, 1), (6, 30), 200)


@dataclass(frozen=True)
class Row:
    """A measure of a scheme, over worlds: its mean and the ends of its 95% interval.

    difference, start, end: to the first scheme, by world, with its interval; NaN for the first.
    p: of a paired t test. needed: so many worlds would show it. where: what world it was, and how
    many pairs per leader.
    """

    scheme: str
    measure: str
    mean: float
    low: float
    high: float
    difference: float
    start: float
    end: float
    p: float
    needed: float
    where: Mapping[str, Any] = field(default_factory=dict)


def estimators(
    schemes: Sequence[Scheme], specs: Mapping[str, WorldSpec | Table], pairs: Sequence[int],
    budget: Budget, seed: int,
) -> list[Row]:  # fmt: skip
    """MEASURES by world, evaluated pairs per leader, and scheme."""
    found = []
    for name, own in specs.items():
        worlds = made(own, budget, WorldSpec.leaders, WorldSpec.followers, seed)
        for count in pairs:
            where = {"world": name, "pairs": count}
            measured = _measured(schemes, worlds, count, budget.rounds, seed)
            found += compared(measured, where)
    return found


def learning(
    schemes: Sequence[Scheme],
    specs: Mapping[str, WorldSpec | Table],
    budget: Budget,
    seed: int,
) -> list[Row]:
    """LEARNED by world, advantage and scheme, a run in each of the worlds.

    With all ADVANTAGES, because which scheme is ahead can depend on them.
    """
    found = []
    leaders, followers = budget.learners
    for name, own in specs.items():
        smaller = own
        if isinstance(own, WorldSpec):
            smaller = replace(own, leaders=leaders, followers=followers)
        worlds = made(smaller, budget, leaders, followers, seed)
        for advantage in ADVANTAGES:
            training = Training(
                steps=budget.steps,
                rate=budget.rate,
                advantage=advantage,
                writer=budget.writer,
                copies=budget.copies,
            )
            runs = train(schemes, worlds, training, seed)
            measured = {
                scheme.label: {each: getattr(learned, each) for each in LEARNED}
                for scheme, learned in zip(schemes, runs, strict=True)
            }
            found += compared(measured, {"world": name, "advantage": advantage})
    return found


def distinct(schemes: Sequence[Scheme]) -> list[Scheme]:
    """Those whose credits of leaders are no other scheme's; the first two stay in any case."""
    labels = {scheme.label for scheme in schemes}
    return [
        scheme for i, scheme in enumerate(schemes) if i < 2 or SAME.get(scheme.label) not in labels
    ]


def made(own: WorldSpec | Table, budget: Budget, leaders: int, followers: int, seed: int) -> Worlds:
    """Worlds of a spec, or of so many programs of a table, drawn anew for each."""
    if isinstance(own, WorldSpec):
        return make_worlds(own, budget.worlds, seed)
    return sub_tables(
        own, budget.worlds, leaders, followers, seed, failing=budget.failing, tie=budget.tie
    )


def map_cells(schemes: Sequence[Scheme], budget: Budget, seed: int) -> list[Row]:
    """Rank correlations by spread, gamma, noise and evaluated pairs per leader."""
    drawn = distinct(schemes)

    def cell(place: tuple[float, float, float]) -> list[Row]:
        spread, gamma, noise = place
        spec = WorldSpec(spread=spread, gamma=gamma, noise=noise)
        worlds = make_worlds(spec, budget.map_worlds, seed)
        found = []
        for count in budget.responses:
            measured = _measured(drawn, worlds, count, budget.map_rounds, seed)
            where = {"spread": spread, "gamma": gamma, "noise": noise, "pairs": count}
            ranks = {label: {"rank": values["rank"]} for label, values in measured.items()}
            found += compared(ranks, where)
        return found

    places = list(product(budget.spreads, budget.gammas, budget.noises))
    with ThreadPoolExecutor(2) as threads:
        return [row for rows in threads.map(cell, places) for row in rows]


def _measured(
    schemes: Sequence[Scheme], worlds: Worlds, pairs: int, rounds: int, seed: int
) -> dict[str, dict[str, np.ndarray]]:
    """MEASURES by scheme, each with as many responses as so many pairs per leader leave it."""
    drawn: dict[int, Rounds] = {}
    found = {}
    for scheme in schemes:
        count = scheme.responses(pairs)
        if count not in drawn:
            drawn[count] = draw_rounds(worlds, count, rounds, seed)
        found[scheme.label] = measure(scheme, worlds, drawn[count])
    return found


def compared(found: Mapping[str, Mapping[str, np.ndarray]], where: Mapping[str, Any]) -> list[Row]:
    """A row for each scheme and measure, by worlds [W]; differences are paired by world."""
    first = next(iter(found.values()))
    rows = []
    for scheme, values in found.items():
        for each, own in values.items():
            away = own - first[each] if values is not first else np.zeros(0)
            away = away[np.isfinite(away)]
            p = needed = math.nan
            if away.size > 1:
                mean, deviation = float(away.mean()), float(away.std(ddof=1))
                p, needed = p_of(mean, deviation, away.size), seeds_needed(mean, deviation)
            rows.append(Row(scheme, each, *interval(own), *interval(away), p, needed, where))
    return rows

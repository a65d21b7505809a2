"""Rules of survivors in rounds of a payoff table: the very functions that `--survivors` takes.

A seed is a run without evolution: each round draws destroys that no earlier round had, a scheme
credits them, and the rule selects the next population from the old one and the new destroys. So
what is compared is the selection alone, over rounds, with the true worth of what it keeps.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from spo_jax.config import Settings
from spo_jax.config.groups import SearchSettings
from spo_jax.errors import InputError
from spo_jax.registry import known_by
from spo_jax.search.credit.arrays import Reference
from spo_jax.search.lab.measured.replay import GROUP, Replayed, replay
from spo_jax.search.lab.measured.tables import Table
from spo_jax.search.lab.schemes import Scheme
from spo_jax.search.lab.study import Row, compared
from spo_jax.search.population import (
    SURVIVORS,
    Member,
    Population,
    SurvivorContext,
    Survivors,
    jaccard,
)
from spo_jax.seeding import python_rng

Array = np.ndarray
NOBODY = -1
WEIGHT = SearchSettings().diversity
SHIPPED = ("diverse", "ranked")
MEASURES = ("best", "mean", "diversity", "shared")


def drawn(candidates: Sequence[Member], context: SurvivorContext) -> Population:
    """A rule that sees nothing: survivors drawn at random. What others gain is seen against it."""
    known = [member for member in candidates if math.isfinite(member.score)]
    return tuple(context.rng.sample(known, min(context.size, len(known))))


@dataclass(frozen=True)
class Rule:
    """A rule of survivors with its weight of distances. name: as `--survivors` takes it, or of the
    function `own`.

    Raises InputError for a name under which there is none, and a weight that is no number of 0 or
    more.
    """

    name: str
    weight: float = WEIGHT
    own: Survivors | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.weight < math.inf:
            raise InputError(f"survivors {self.label!r}: a weight of distances is 0 or more")
        self.function  # noqa: B018  the name is checked where it is given

    @classmethod
    def of(cls, text: str | Survivors) -> "Rule":
        """NAME or NAME@WEIGHT, or a function, which goes by its own name."""
        if callable(text):
            name = getattr(text, "__name__", type(text).__name__)
            if name in SHIPPED:
                raise InputError(f"{name!r} is a rule that ships: give the function another name")
            return cls(name, own=text)
        name, at, weight = text.partition("@")
        try:
            number = float(weight) if at else WEIGHT
        except ValueError:
            raise InputError(
                f"survivors {text!r}: {weight!r} is no number; use NAME@WEIGHT"
            ) from None
        return cls(name, number)

    @property
    def label(self) -> str:
        return self.name if self.weight == WEIGHT else f"{self.name}@{self.weight:g}"

    @cached_property
    def function(self) -> Survivors:
        with known_by({} if self.own is None else {self.name: self.own}):
            return SURVIVORS[self.name]


# The paper's rule, then scores alone, other weights, the presets' rule, its weights, and chance.
RULES = (
    *map(Rule.of, ("diverse", "diverse@0", "diverse@0.001", "diverse@0.01", "ranked@0.3", "ranked",
                   "ranked@1")),
    Rule.of(drawn),
)  # fmt: skip


def sequences(
    table: Table, responses: int, seeds: int, rounds: int, seed: int = 0, evaluations: int = 0
) -> Replayed:
    """`seeds` runs of T `rounds`: a `Replayed` with [N, T, D] leaders, and so on.

    Each round has as many destroys as the table has for it, at most GROUP, and none that an earlier
    round had. All rounds of a run see the same evaluations. Raises InputError for fewer destroys
    than rounds.
    """
    group = round_of(table, rounds)
    whole = replay(
        table, responses, seeds, group=group * rounds, evaluations=evaluations, seed=seed
    )
    leaders, source, utility, scores, value, mine, others = (
        np.reshape(each, (seeds, rounds, group, *each.shape[2:]))
        for each in (whole.leaders, whole.source, whole.utility, whole.scores, whole.value,
                     whole.reference.leader, whole.reference.follower)
    )  # fmt: skip
    pair = np.broadcast_to(whole.reference.pair[:, None], (seeds, rounds))
    return replace(
        whole, leaders=leaders, source=source, utility=utility, scores=scores, value=value,
        reference=Reference(mine, others, pair),
    )  # fmt: skip


def round_of(table: Table, rounds: int) -> int:
    """The destroys of each of so many rounds. Raises InputError where there is none."""
    group = min(GROUP, len(table.utility) // rounds) if rounds > 0 else 0
    if not group:
        raise InputError(f"{rounds} rounds: the table has {len(table.utility)} destroys")
    return group


def survivors(
    rule: Rule, scores: Array, runs: Replayed, table: Table, size: int, seed: int = 0
) -> Array:
    """[N, T, size] int: the table's rows that survive each round, NOBODY where there are fewer.

    scores: [N, T, D], what destroys are selected by. The table must have its programs.
    """
    programs = table.destroys
    row_of = {program.digest: row for row, program in enumerate(programs)}
    settings = Settings(search=SearchSettings(population_size=size, diversity=rule.weight))
    kept = np.full((*scores.shape[:2], size), NOBODY)
    for n, (rows, values) in enumerate(zip(runs.leaders.tolist(), scores.tolist(), strict=True)):
        population: Population = ()
        for k, (own, credits) in enumerate(zip(rows, values, strict=True), 1):
            rng = python_rng(seed, "laboratory", "survivors", n, k)
            context = SurvivorContext(size, rule.weight, k, "destroy", rng, settings)
            new = [Member(programs[row], c, k) for row, c in zip(own, credits, strict=True)]
            population = rule.function((*population, *new), context)
            for place, member in enumerate(population):
                kept[n, k - 1, place] = row_of[member.program.digest]
    return kept


def measured(kept: Array, runs: Replayed, table: Table) -> dict[str, Array]:
    """What populations are worth after each round, [N, T] each; NaN for one without a program.

    best: J of the best destroy so far with its best response, less that of the population's best.
    mean: the same of means, over the population and over the best so far, as many as could be kept.
    diversity: mean Jaccard distance between the strategies of two survivors; NaN below two.
    """
    there = kept != NOBODY
    count = there.sum(axis=2)
    value = np.full((len(kept), len(table.utility)), np.nan)  # of the run's destroys alone
    rows, values = (each.reshape(len(kept), -1) for each in (runs.leaders, runs.value))
    np.put_along_axis(value, rows, values, axis=1)
    own = np.where(there, np.take_along_axis(value[:, None], kept, axis=2), 0.0)
    found = np.where(there, own, -np.inf).max(axis=2)
    best, mean = np.empty(count.shape), np.empty(count.shape)
    for t in range(kept.shape[1]):
        so_far = np.sort(runs.value[:, : t + 1].reshape(len(kept), -1), axis=1)
        best[:, t] = so_far[:, -1]
        mean[:, t] = so_far[:, -kept.shape[2] :].mean(axis=1)
    away = distances(table)[kept[..., :, None], kept[..., None, :]]
    pairs = there[..., :, None] & there[..., None, :]  # a program is no distance from itself
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "best": np.where(count > 0, best - found, np.nan),
            "mean": mean - own.sum(axis=2) / count,
            "diversity": np.where(pairs, away, 0.0).sum(axis=(2, 3)) / (count * (count - 1)),
        }


def distances(table: Table) -> Array:
    """[K, K] Jaccard distances between the strategies of the table's destroys."""
    words = [program.strategy for program in table.destroys]
    return np.array([[jaccard(a, b) for b in words] for a in words])


def compare_rules(
    rules: Sequence[Rule], scheme: Scheme, table: Table, responses: int, seeds: int, *,
    rounds: int, size: int, seed: int = 0,
) -> list[Row]:  # fmt: skip
    """MEASURES by round and rule; differences from the first rule, by run.

    shared: the part of the population that the first rule's has, too. Raises InputError for a table
    without programs.
    """
    if not table.destroys:
        raise InputError("a rule of survivors sees strategies: the table has no programs beside it")
    runs = sequences(table, responses, seeds, rounds, seed)
    scores = scheme(runs.utility, runs.source, runs.reference).score
    found = {}
    kept_by = {rule.label: survivors(rule, scores, runs, table, size, seed) for rule in rules}
    first = next(iter(kept_by.values()))
    for label, kept in kept_by.items():
        found[label] = measured(kept, runs, table) | {"shared": common(kept, first)}
    return [
        row
        for t in range(rounds)
        for row in compared(
            {label: {name: each[:, t] for name, each in values.items()}
             for label, values in found.items()},
            {"round": t + 1},
        )
    ]  # fmt: skip


def common(kept: Array, other: Array) -> Array:
    """[N, T]: the part of a population that is in the other one, too; NaN for an empty one."""
    there = kept != NOBODY
    same = (kept[..., :, None] == other[..., None, :]).any(axis=-1) & there
    with np.errstate(invalid="ignore"):
        return np.asarray(same.sum(axis=2) / there.sum(axis=2))

"""EoH, Evolution of Heuristics (Liu et al. 2024): thoughts and programs, five operators, N survive.

`version` says which of three that differ, each as its source has it (github.com/FeiLiu36/EoH, tags
v0.1 and v0.2):

    paper  a generation is N pairs by each of E1, E2, M1, M2 and M3 from one population, and the N
           best of old and new survive it; N first pairs; p = 5
    v0.1   N pairs by E1, then E2, M1 and M2, and the N best survive each operator; 2N first pairs;
           p = 2; parents with replacement; a copy of a member is tried again once
    v0.2   a generation is N pairs, each by an operator drawn from E1, E2, M1 and M2; the N best
           survive it; 2N first pairs; p = 2; with replacement; a copy is tried again twice

The thought is the strategy sentence. A writer of prose is asked by the forms eoh-i1 to eoh-m3, and
states the thought in braces. For any other the operators are SPO's nearest forms:

    I1  a first pair                                     initialization
    E1  unlike all of p parents                          divergent crossover
    E2  on the backbone that p parents share             shared-principle crossover
    M1  a modified parent                                mechanism replacement
    M2  a parent with other parameters                   state-control redesign
    M3  a parent without what may be overfitted          simplification

Those forms show two parents, so p is 2 there. N is `population_size`. The released code asks again
where it cannot read an answer; here such an answer counts. Answers that try a copy again are
programs that were written, and no budget counts them.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, groupby, islice
from typing import Annotated, Any, Literal

from pydantic import Field

from spo_jax.config import Settings
from spo_jax.envs.problem import Instance
from spo_jax.errors import InputError
from spo_jax.peers.pairs import (
    Budget,
    Offspring,
    Request,
    describe_operators,
    generate,
    members,
    record,
)
from spo_jax.search.parts import Parts
from spo_jax.search.payoffs import Table
from spo_jax.search.rounds import Individual, Round, State
from spo_jax.search.writing.prompts import INITIALIZATION
from spo_jax.seeding import python_rng

# In this order, so that a last generation that is cut short has equal numbers of each.
OPERATORS = {
    "e1": "divergent-crossover",
    "e2": "shared-principle-crossover",
    "m1": "mechanism-replacement",
    "m2": "state-control-redesign",
    "m3": "simplification",
}
DECIMALS = 5  # objectives that agree to so many decimals count as equal


@dataclass(frozen=True)
class Version:
    """What the sources say differently.

    operators: of a generation. first: how many times N first pairs there are. select: when the N
    best survive. drawn: whether an operator is drawn for each of N pairs, where else each operator
    makes N. parents: p. replacement: whether a parent may be drawn twice. retries: how often a copy
    of a member of the population is tried again. source: for the sentence that names it.
    """

    operators: tuple[str, ...]
    first: int
    select: Literal["operator", "generation"]
    drawn: bool
    parents: int
    replacement: bool
    retries: int
    source: str


RELEASED = ("e1", "e2", "m1", "m2")
VERSIONS = {
    "paper": Version((*OPERATORS,), 1, "generation", False, 5, False, 0, "as in the paper"),
    "v0.1": Version(RELEASED, 2, "operator", False, 2, True, 1, "as released, v0.1"),
    "v0.2": Version(RELEASED, 2, "generation", True, 2, True, 2, "as released, v0.2"),
}


@dataclass(frozen=True)
class Eoh:
    """version: a name of VERSIONS. In place of what it says: operators, as "e1 e2 m3"; parents: p,
    of E1 and E2; replacement: whether a parent may be drawn twice; retries: of a copy.
    """

    version: Literal["paper", "v0.1", "v0.2"] = "paper"
    operators: str | None = None
    parents: Annotated[int | None, Field(ge=2, le=10)] = None
    replacement: bool | None = None
    retries: Annotated[int | None, Field(ge=0, le=100)] = None

    def __post_init__(self) -> None:
        names = None if self.operators is None else self.operators.split()
        if names is not None and not (names and set(names) <= OPERATORS.keys()):
            raise InputError(
                f"method_settings: operators is {self.operators!r}; it must be names of "
                f"{', '.join(OPERATORS)} with spaces between them"
            )

    @property
    def rules(self) -> Version:
        """The version with the settings that were given."""
        own: dict[str, Any] = {
            "operators": None if self.operators is None else tuple(self.operators.split()),
            "parents": self.parents, "replacement": self.replacement, "retries": self.retries,
        }  # fmt: skip
        return replace(
            VERSIONS[self.version], **{n: value for n, value in own.items() if value is not None}
        )

    def variant(self, prose: bool) -> str:
        rules = self.rules
        names = ", ".join(rules.operators).upper()
        made = f"N pairs, each by one drawn from {names}" if rules.drawn else f"N pairs by {names}"
        twice = f"; a copy is tried again up to {rules.retries} times" if rules.retries else ""
        return (
            f"EoH (Liu et al. 2024) {rules.source}: {made}; parents by rank, "
            f"with{'' if rules.replacement else 'out'} replacement, p = {_shown(rules, prose)}; "
            f"the N best survive every {rules.select}{twice}; {describe_operators(prose)}"
        )

    def rounds(self, config: Settings) -> int:
        return self._budget(config).rounds

    def one_round(self, parts: Parts, instances: Sequence[Instance], k: int, state: State) -> Round:
        config, rules = parts.config, self.rules
        size = config.search.population_size
        table = Table(parts, instances, state.payoffs)
        population = survivors(state.individuals, size)
        rng = python_rng(config.seed, "round", k, "parents")
        offspring: list[Offspring] = []
        for stream, names in self._batches(k, self._budget(config).of(k), size, rng):
            new = self._written(parts, k, table, population, names, stream, rng)
            born = [each for batch in new for each in batch.individuals]
            population = survivors((*population, *born), size)
            offspring += new
        metrics = {}
        if rules.retries:
            asked = sum(len(batch.destroys) for batch in offspring)
            metrics["retries"] = float(asked - self._budget(config).of(k))
        return record(parts, k, state, table, offspring, members(population), metrics=metrics)

    def _batches(
        self, k: int, count: int, size: int, rng: random.Random
    ) -> list[tuple[tuple[str, ...], list[str]]]:
        """The operators of a round's pairs by population, each with the name of its stream."""
        rules = self.rules
        if k == 1:
            return [((), ["i1"] * count)]
        if rules.drawn:
            return [((), rng.choices(rules.operators, k=count))]
        if rules.select == "generation":
            return [((), list(islice(cycle(rules.operators), count)))]
        names = [name for name in rules.operators for _ in range(size)][:count]
        groups = enumerate(groupby(names))
        return [((name, str(place)), list(group)) for place, (name, group) in groups]

    def _written(
        self,
        parts: Parts,
        k: int,
        table: Table,
        population: Sequence[Individual],
        names: Sequence[str],
        stream: tuple[str, ...],
        rng: random.Random,
    ) -> list[Offspring]:
        """A pair by each operator; copies of members are tried again, the last try is kept."""
        rules, known = self.rules, {each.pair.digest for each in population}
        prose = parts.generator.writes_prose
        p = _shown(rules, prose)
        found: list[Offspring] = []
        for attempt in range(1 + rules.retries):
            asked = [request(name, population, p, rng, rules.replacement, prose) for name in names]
            again = ("again", str(attempt)) if attempt else ()
            new = generate(parts, k, table, asked, stream=(*stream, *again))
            copies = [each for each in new.individuals if each.pair.digest in known]
            if not copies or attempt == rules.retries:
                return [*found, new]
            kept = tuple(each for each in new.individuals if each.pair.digest not in known)
            found.append(replace(new, individuals=kept))
            names = [each.operator for each in copies]
        return found

    def _budget(self, config: Settings) -> Budget:
        size, rules = config.search.population_size, self.rules
        each = size if rules.drawn else size * len(rules.operators)
        return Budget(config.search.nominal_pairs, size * rules.first, each)


def _shown(rules: Version, prose: bool) -> int:
    return rules.parents if prose else 2


def request(
    operator: str,
    population: Sequence[Individual],
    p: int,
    rng: random.Random,
    replacement: bool = False,
    prose: bool = False,
) -> Request:
    """A request by an operator, parent-free where the population is too small for it."""
    form = f"eoh-{operator}" if prose else OPERATORS.get(operator, INITIALIZATION)
    wanted = 0 if operator == "i1" else p if operator in ("e1", "e2") else 1
    there = wanted if replacement and population else min(wanted, len(population))
    parents = draw(population, there, rng, replacement)
    if len(parents) < min(wanted, 2):
        return Request("eoh-i1" if prose else INITIALIZATION, (), operator)
    return Request(form, tuple(each.pair for each in parents), operator)


def draw(
    population: Sequence[Individual], count: int, rng: random.Random, replacement: bool = False
) -> list[Individual]:
    """`count` individuals, one after another with p ~ 1 / (rank + N).

    population: N individuals, the best first; its rank is 1. replacement: whether one may be drawn
    again. Raises ValueError for too few.
    """
    left = list(range(len(population)))
    weight = [1 / (place + 1 + len(population)) for place in left]
    drawn: list[Individual] = []
    while len(drawn) < count:
        place = rng.choices(left, [weight[each] for each in left])[0]
        if not replacement:
            left.remove(place)
        drawn.append(population[place])
    return drawn


def survivors(individuals: Iterable[Individual], size: int) -> list[Individual]:
    """The `size` best, the best first; of equal objectives, the oldest."""
    different: dict[float, Individual] = {}
    for each in individuals:
        different.setdefault(round(each.utility, DECIMALS), each)
    return sorted(different.values(), key=lambda each: -each.utility)[:size]

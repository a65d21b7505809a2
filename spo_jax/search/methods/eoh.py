"""EoH, Evolution of Heuristics (Liu et al. 2024): thoughts and programs, five operators, N survive.

The variant follows the paper's generation: each of the five operators creates N pairs from one
population, and the N best of old and new survive (the released code selects after every operator).
The thought is the strategy sentence. The operators and their prompt forms:

    I1  a first pair                                     initialization
    E1  unlike all of p parents                          divergent crossover
    E2  on the backbone that p parents share             shared-principle crossover
    M1  a modified parent                                mechanism replacement
    M2  a parent with other parameters                   state-control redesign
    M3  a parent without what is redundant               simplification

p is 5, as in the paper's runs, with a generator that writes prose, else 2, as in the released
default: the forms that the grammar and the model that ships know show two. N is `population_size`.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Annotated

from pydantic import Field

from spo_jax.config import Settings
from spo_jax.envs.problem import Instance
from spo_jax.search.methods.pairs import Budget, Request, generate, members, record
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
class Eoh:
    """parents: p, the parents of E1 and E2."""

    parents: Annotated[int, Field(ge=2, le=10)] = 5

    def variant(self, prose: bool) -> str:
        return (
            "EoH (Liu et al. 2024): generations of N pairs by each of E1, E2, M1, M2 and M3, "
            f"parents by rank, p = {self._p(prose)}; the N best of old and new survive"
        )

    def rounds(self, config: Settings) -> int:
        return _budget(config).rounds

    def one_round(self, parts: Parts, instances: Sequence[Instance], k: int, state: State) -> Round:
        config = parts.config
        size, p = config.search.population_size, self._p(parts.generator.writes_prose)
        table = Table(parts, instances, state.payoffs)
        population = survivors(state.individuals, size)
        rng = python_rng(config.seed, "round", k, "parents")
        names = ["i1"] * size if k == 1 else cycle(OPERATORS)
        requests = [
            request(name, population, p, rng) for name in islice(names, _budget(config).of(k))
        ]
        new = generate(parts, k, table, requests)
        population = survivors((*population, *new.individuals), size)
        return record(parts, k, state, table, [new], members(population))

    def _p(self, prose: bool) -> int:
        return self.parents if prose else 2


def request(operator: str, population: Sequence[Individual], p: int, rng: random.Random) -> Request:
    """A request by an operator, parent-free where the population is too small for it."""
    form = OPERATORS.get(operator, INITIALIZATION)
    wanted = 0 if form == INITIALIZATION else p if operator in ("e1", "e2") else 1
    parents = draw(population, min(wanted, len(population)), rng)
    if len(parents) < min(wanted, 2):
        return Request(INITIALIZATION, (), operator)
    many = "-many" if len(parents) > 2 else ""
    return Request(form + many, tuple(each.pair for each in parents), operator)


def draw(population: Sequence[Individual], count: int, rng: random.Random) -> list[Individual]:
    """`count` different individuals, one after another with p ~ 1 / (rank + N).

    population: N individuals, the best first; its rank is 1. Raises ValueError for too few.
    """
    left = list(range(len(population)))
    weight = [1 / (place + 1 + len(population)) for place in left]
    drawn: list[Individual] = []
    while len(drawn) < count:
        place = rng.choices(left, [weight[each] for each in left])[0]
        left.remove(place)
        drawn.append(population[place])
    return drawn


def survivors(individuals: Iterable[Individual], size: int) -> list[Individual]:
    """The `size` best, the best first; of equal objectives, the oldest."""
    different: dict[float, Individual] = {}
    for each in individuals:
        different.setdefault(round(each.utility, DECIMALS), each)
    return sorted(different.values(), key=lambda each: -each.utility)[:size]


def _budget(config: Settings) -> Budget:
    size = config.search.population_size
    return Budget(config.search.nominal_pairs, size, size * len(OPERATORS))

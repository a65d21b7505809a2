"""ReEvo (Ye et al. 2024): evolution with reflections on what makes one program better.

A generation: draw pairs of parents with unequal objectives uniformly; write a short-term reflection
on each pair; generate a crossover of each pair, the worse first, with its reflection (these replace
the population); merge the new hints into the long-term reflection; and generate mutations of the
elitist, the best so far, with the long-term reflection (these join the population).

A run begins with a seed function, which the first prompts show, and the first population is drawn
at a temperature that is 0.3 higher. A writer of prose gets both, the reflections, and system
messages for the writer and for the reflector (the forms reevo-first to reevo-mutation); it answers
with code alone.

Where the variant differs from the released code (github.com/ai4co/reevo): without parents of
unequal objectives the generation is written anew, where the release stops; reflections are not
counted in the budget of programs, as there. `population_size` is the population. With a generator
that writes no prose there are no reflections, by default no seed and one temperature: crossovers
use the shared-principle form, mutations the mechanism replacement. That is not ReEvo, and it is
called "ReEvo without reflections".
"""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated

from pydantic import Field

from spo_jax.config import Settings
from spo_jax.envs.problem import Instance
from spo_jax.peers.pairs import (
    Budget,
    Request,
    best_of,
    describe_operators,
    generate,
    members,
    record,
)
from spo_jax.peers.prose import Prose, tidy
from spo_jax.peers.seeds import AUTO, SEED, describe_seed, seeded
from spo_jax.search.parts import Parts
from spo_jax.search.payoffs import Table
from spo_jax.search.rounds import Individual, Round, State
from spo_jax.search.writing.prompts import INITIALIZATION
from spo_jax.seeding import python_rng

Match = tuple[Individual, Individual]  # the worse first
WITHOUT = "ReEvo without reflections"


@dataclass(frozen=True)
class ReEvo:
    """initial: pairs of the first population. mutation_rate: mutants to a member of a later one.
    short_words, long_words: that a reflection has fewer of. warmer: what is added to the
    temperature for the first population, with a writer of prose. seed: as `peers.seeds` reads it.
    """

    initial: Annotated[int, Field(ge=2, le=100_000)] = 30
    mutation_rate: Annotated[float, Field(ge=0, le=100)] = 0.5
    short_words: Annotated[int, Field(ge=2, le=1000)] = 20
    long_words: Annotated[int, Field(ge=2, le=1000)] = 50
    warmer: Annotated[float, Field(ge=0, le=2)] = 0.3
    seed: str = AUTO

    def variant(self, prose: bool) -> str:
        name = "ReEvo" if prose else WITHOUT
        how = "with short- and long-term reflections; " if prose else ""
        return (
            f"{name} (Ye et al. 2024): {how}{self.initial} first pairs; then crossovers of "
            f"unequal parents replace the population, and {self.mutation_rate:g} mutants of the "
            f"elitist to each of them join it; {describe_seed(self.seed, prose)}; "
            f"{describe_operators(prose)}"
        )

    def rounds(self, config: Settings) -> int:
        return self._budget(config).rounds

    def one_round(self, parts: Parts, instances: Sequence[Instance], k: int, state: State) -> Round:
        config, count = parts.config, self._budget(parts.config).of(k)
        table = Table(parts, instances, state.payoffs)
        prose = parts.generator.writes_prose
        if k == 1:
            seeds = seeded(parts, k, table, self.seed)
            new = generate(parts, k, table, [self._first(seeds, prose)], n=count)
            return record(parts, k, state, table, [new], members(new.individuals), seeds=seeds)

        reflect = Reflector(self, parts, k, state)
        crossings = min(count, config.search.population_size)
        rng = python_rng(config.seed, "round", k, "parents")
        matches = draw_matches(parents(state, k), crossings, rng)
        hints = reflect.short(matches)
        requests = [
            request("crossover", match, hint, prose)
            for match, hint in zip(matches, hints, strict=True)
        ]
        lacking = crossings - len(requests)
        seeds = [each for each in state.individuals if each.operator == SEED]
        requests += [self._first(seeds, prose)] * lacking
        offspring = [generate(parts, k, table, requests)]

        advice = reflect.long(hints)
        elitist = best_of((*state.individuals, *offspring[0].individuals))
        if mutants := count - crossings:
            best = () if elitist is None else (elitist,)
            requests = [request("mutation", best, advice, prose)]
            offspring.append(generate(parts, k, table, requests, n=mutants, stream=("mutation",)))
        population = members([each for batch in offspring for each in batch.individuals])
        note, metrics = reflect.note, reflect.metrics
        return record(parts, k, state, table, offspring, population, note=note, metrics=metrics)

    def _first(self, seeds: Sequence[Individual], prose: bool) -> Request:
        """The request for a pair of the first population, which shows the seed where it can."""
        if not prose:
            return Request(INITIALIZATION, operator="initialization")
        shown = tuple(each.pair for each in seeds)
        form = "reevo-seeded" if shown else "reevo-first"
        return Request(form, shown, "initialization", warmer=self.warmer)

    def _budget(self, config: Settings) -> Budget:
        size = config.search.population_size
        return Budget(
            config.search.nominal_pairs, self.initial, size + int(size * self.mutation_rate)
        )


def parents(state: State, k: int) -> list[Individual]:
    """The candidates of round k: the last population and the elitist, which may have left it."""
    born = [each for each in state.individuals if each.round == k - 1]
    last = [each for each in born if each.operator != SEED]
    elitist = best_of(state.individuals)
    return last if elitist is None or elitist in last else [elitist, *last]


def draw_matches(population: Sequence[Individual], count: int, rng: random.Random) -> list[Match]:
    """`count` pairs of parents with unequal objectives, uniformly; none if there are none."""
    unequal = [
        (a, b) if a.utility < b.utility else (b, a)
        for a, b in combinations(population, 2)
        if a.utility != b.utility
    ]
    return [rng.choice(unequal) for _ in range(count)] if unequal else []


def request(operator: str, shown: Sequence[Individual], reflection: str, prose: bool) -> Request:
    """A crossover of a match or a mutation of the elitist, with what was reflected on it."""
    pairs = tuple(each.pair for each in shown)
    if prose:
        return Request(f"reevo-{operator}", pairs, operator, reflection=reflection or "(nothing)")
    crossover = operator == "crossover"
    form = "shared-principle-crossover" if crossover else "mechanism-replacement"
    return Request(form, pairs, operator)


class Reflector:
    """The reflections of one round; empty where the generator writes no prose."""

    def __init__(self, rules: ReEvo, parts: Parts, k: int, state: State):
        self._rules, self._prompts, self._prose = rules, parts.prompts, Prose(parts, k)
        before = json.loads(state.note) if state.note else {}
        self._hints: list[str] = []
        self._advice = str(before.get("long", ""))

    @property
    def note(self) -> str:
        """Both kinds, as the run keeps them."""
        if not self._prose.able:
            return ""
        return json.dumps({"short": self._hints, "long": self._advice})

    @property
    def metrics(self) -> dict[str, float]:
        return self._prose.metrics

    def short(self, matches: Sequence[Match]) -> list[str]:
        """A hint on each match."""
        if not self._prose.able:
            return [""] * len(matches)
        make, words = self._prompts.short_reflection, self._rules.short_words
        prompts = [make(worse.pair, better.pair, words) for worse, better in matches]
        self._hints = [tidy(text) for text in self._prose.ask(prompts, "short")]
        return self._hints

    def long(self, hints: Sequence[str]) -> str:
        """The last advice merged with the hints; unchanged without any."""
        if hints := [hint for hint in hints if hint]:
            words = self._rules.long_words
            prompt = self._prompts.long_reflection(self._advice, hints, words)
            [advice] = self._prose.ask([prompt], "long")
            self._advice = tidy(advice) or self._advice
        return self._advice

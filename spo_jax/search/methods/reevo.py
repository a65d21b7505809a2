"""ReEvo (Ye et al. 2024): evolution with reflections on what makes one program better.

A generation: draw pairs of parents with unequal objectives uniformly; write a short-term reflection
on each pair; generate a crossover of each pair, the worse first, with its reflection (these replace
the population); merge the new hints into the long-term reflection; and generate mutations of the
elitist, the best so far, with the long-term reflection (these join the population).

The variant: the elitist may be drawn as a parent even after it left the population. There is no
hand-written seed function, and one sampling temperature throughout, where the released code adds
0.3 for the first population. `population_size` is the population. With a generator that writes no
prose there are no reflections: crossovers use the shared-principle form, mutations the mechanism
replacement. Reflections are not counted in the budget of programs.
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
from spo_jax.program import Prompt
from spo_jax.search.candidates import complete, written
from spo_jax.search.methods.pairs import Budget, Request, best_of, generate, members, record
from spo_jax.search.parts import Parts
from spo_jax.search.payoffs import Table
from spo_jax.search.rounds import Answers, Individual, Round, State
from spo_jax.search.writing.prompts import INITIALIZATION
from spo_jax.seeding import derive, python_rng

Match = tuple[Individual, Individual]  # the worse first
LONGEST = 600  # characters of a reflection that are kept


@dataclass(frozen=True)
class ReEvo:
    """initial: pairs of the first population. mutation_rate: mutants to a member of a later one.
    short_words, long_words: that a reflection has fewer of.
    """

    initial: Annotated[int, Field(ge=2, le=100_000)] = 30
    mutation_rate: Annotated[float, Field(ge=0, le=100)] = 0.5
    short_words: Annotated[int, Field(ge=2, le=1000)] = 20
    long_words: Annotated[int, Field(ge=2, le=1000)] = 50

    def variant(self, prose: bool) -> str:
        how = "with short- and long-term reflections"
        if not prose:
            how = "without reflections, because who writes its programs writes no prose"
        return (
            f"ReEvo (Ye et al. 2024), {how}: {self.initial} first pairs; then crossovers of "
            f"unequal parents replace the population, and {self.mutation_rate:g} mutants of the "
            "elitist to each of them join it"
        )

    def rounds(self, config: Settings) -> int:
        return self._budget(config).rounds

    def one_round(self, parts: Parts, instances: Sequence[Instance], k: int, state: State) -> Round:
        config, count = parts.config, self._budget(parts.config).of(k)
        table = Table(parts, instances, state.payoffs)
        if k == 1:
            requests = [Request(INITIALIZATION, operator="initialization")]
            new = generate(parts, k, table, requests, n=count)
            return record(parts, k, state, table, [new], members(new.individuals))

        reflect = Reflector(self, parts, k, state)
        crossings = min(count, config.search.population_size)
        rng = python_rng(config.seed, "round", k, "parents")
        matches = draw_matches(parents(state, k), crossings, rng)
        hints = reflect.short(matches)
        requests = [
            request("crossover", match, hint) for match, hint in zip(matches, hints, strict=True)
        ]
        lacking = crossings - len(requests)
        requests += [Request(INITIALIZATION, operator="initialization")] * lacking
        offspring = [generate(parts, k, table, requests)]

        advice = reflect.long(hints)
        elitist = best_of((*state.individuals, *offspring[0].individuals))
        if mutants := count - crossings:
            requests = [request("mutation", () if elitist is None else (elitist,), advice)]
            offspring.append(generate(parts, k, table, requests, n=mutants, stream=("mutation",)))
        population = members([each for batch in offspring for each in batch.individuals])
        note, metrics = reflect.note, reflect.metrics
        return record(parts, k, state, table, offspring, population, note=note, metrics=metrics)

    def _budget(self, config: Settings) -> Budget:
        size = config.search.population_size
        return Budget(
            config.search.nominal_pairs, self.initial, size + int(size * self.mutation_rate)
        )


def parents(state: State, k: int) -> list[Individual]:
    """The candidates of round k: the last population and the elitist, which may have left it."""
    last = [each for each in state.individuals if each.round == k - 1]
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


def request(operator: str, shown: Sequence[Individual], reflection: str) -> Request:
    """A crossover of a match or a mutation of the elitist, with a reflection or without."""
    crossover = operator == "crossover"
    if reflection:
        form = "reflected-crossover" if crossover else "reflected-mutation"
    else:
        form = "shared-principle-crossover" if crossover else "mechanism-replacement"
    return Request(form, tuple(each.pair for each in shown), operator, reflection=reflection)


class Reflector:
    """The reflections of one round; empty where the generator writes no prose."""

    def __init__(self, rules: ReEvo, parts: Parts, k: int, state: State):
        self._rules, self._parts, self._k = rules, parts, k
        self._able = parts.generator.writes_prose
        before = json.loads(state.note) if state.note else {}
        self._hints: list[str] = []
        self._advice = str(before.get("long", ""))
        self._answers: list[Answers] = []

    @property
    def note(self) -> str:
        """Both kinds, as the run keeps them."""
        if not self._able:
            return ""
        return json.dumps({"short": self._hints, "long": self._advice})

    @property
    def metrics(self) -> dict[str, float]:
        counted = {"reflections": float(len(self._answers))} if self._able else {}
        return counted | written(self._answers, self._parts.config, "reflection")

    def short(self, matches: Sequence[Match]) -> list[str]:
        """A hint on each match."""
        if not self._able:
            return [""] * len(matches)
        make, words = self._parts.prompts.short_reflection, self._rules.short_words
        prompts = [make(worse.pair, better.pair, words) for worse, better in matches]
        self._hints = self._ask(prompts, "short")
        return self._hints

    def long(self, hints: Sequence[str]) -> str:
        """The last advice merged with the hints; unchanged without any."""
        if hints := [hint for hint in hints if hint]:
            words = self._rules.long_words
            prompt = self._parts.prompts.long_reflection(self._advice, hints, words)
            [advice] = self._ask([prompt], "long")
            self._advice = advice or self._advice
        return self._advice

    def _ask(self, prompts: Sequence[Prompt], term: str) -> list[str]:
        if not prompts:
            return []
        parts, look = self._parts, self._parts.observer
        look.stage(self._k, "reflection", len(prompts))
        seed = derive(parts.config.seed, "round", self._k, "reflections", term)
        with look.working("sampling"):
            completions = complete(parts.generator, prompts, 1, seed)
        self._answers += [
            Answers(prompt, group, (None,) * len(group))
            for prompt, group in zip(prompts, completions, strict=True)
        ]
        return [_tidy(group[0].text) for group in completions]


def _tidy(text: str) -> str:
    """A reflection on one line, without the thinking before it."""
    return " ".join(text.rpartition("</think>")[2].split())[:LONGEST]

"""HSEvo (Dat et al. 2025): ReEvo's operators, one reflection for all parents, harmony search.

A generation: draw pairs of parents with unequal objectives uniformly from the last population and
the elitist, the best so far; write one flash reflection on all of them, ranked, which has an
analysis and an experience; make the experience and those of earlier generations, useful or not,
into a comprehensive reflection; generate a crossover of each pair, the better first, which replace
the population; generate mutations of the elitist, which join it. The experience was useful if the
generation found a new elitist. Then harmony search varies the numbers in the best pair of the
population, and its best harmony joins the population too.

Harmony search (Geem et al. 2001) holds `memory` harmonies, first uniform in the bounds. Each of
`improvisations` new ones takes a parameter's value from a harmony of the memory with probability
`considering`, else a uniform one; a value from memory is moved with probability `adjusting`, by
less than `bandwidth` times the width of the bounds. A new harmony replaces the worst if it is
better. Where a pair has no parameters, or all first harmonies fail, the next best pair is tried, up
to three.

A run begins with a seed function, which the first prompts show, each with one of ten personas, and
the first population is drawn at a temperature that is 0.3 higher. With a writer that writes no
prose there are no reflections and personas, by default no seed and one temperature; crossovers use
the shared-principle form, mutations the mechanism replacement. It is called "HSEvo without
reflections" then. Harmony search needs no writer: the parameters are the numbers in the two
programs (`spo_jax.program.constants`), from half to twice their value.

Where the variant differs from the released code (github.com/datphamvn/HSEvo): a writer of prose
names the parameters among the numbers of the programs and gives their bounds, where the release has
it write the function anew with the parameters as default arguments; whole numbers stay whole, where
the release makes floats of all; its choice of the second pair after a failure takes an index of one
list in another, here it is the best pair not tried; without parents of unequal objectives the
generation is written anew, where the release stops; the last `kept` experiences of a kind are
shown, there all. `population_size` is the population.
"""

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import Field

from spo_jax.config import Settings
from spo_jax.envs.problem import Instance
from spo_jax.errors import Rejection
from spo_jax.peers.pairs import (
    Budget,
    Offspring,
    Request,
    best_of,
    describe_operators,
    generate,
    members,
    record,
    scores_of,
)
from spo_jax.peers.prose import Prose, tidy
from spo_jax.peers.reevo import Match, draw_matches
from spo_jax.peers.seeds import AUTO, SEED, describe_seed, seeded
from spo_jax.program import ROLES, Pair, Program, Role
from spo_jax.program.constants import Constant, around, constants_of, with_values
from spo_jax.search.parts import Parts
from spo_jax.search.payoffs import Table
from spo_jax.search.rounds import RESPONSE, Individual, Round, State
from spo_jax.search.writing.prompts import INITIALIZATION
from spo_jax.search.writing.reflecting import read_flash, read_ranges
from spo_jax.seeding import python_rng

WITHOUT = "HSEvo without reflections"
HARMONY = "harmony"  # the operator of what harmony search found
OUTSIDE = 0  # the place of a harmony that did not join the population, and of the seed
ATTEMPTS = 3  # pairs of a generation that harmony search tries
PERSONAS = (
    "an expert of optimization heuristics", "Albert Einstein", "Isaac Newton", "Marie Curie",
    "Nikola Tesla", "Galileo Galilei", "Stephen Hawking", "Richard Feynman", "Rosalind Franklin",
    "Ada Lovelace",
)  # fmt: skip
Share = Annotated[float, Field(ge=0, le=1)]
Parameter = tuple[Role, Constant]
Bounds = Mapping[Parameter, tuple[float, float]]
Values = dict[Parameter, float]


@dataclass(frozen=True)
class HsEvo:
    """initial, mutation_rate, warmer, seed: as ReEvo's. memory: harmonies. improvisations: new ones
    of a generation. considering, adjusting, bandwidth: of a new one. flash_words,
    comprehensive_words: that a reflection has fewer of. kept: experiences of a kind that are shown.
    """

    initial: Annotated[int, Field(ge=2, le=100_000)] = 30
    mutation_rate: Annotated[float, Field(ge=0, le=100)] = 0.5
    memory: Annotated[int, Field(ge=1, le=10_000)] = 5
    improvisations: Annotated[int, Field(ge=0, le=10_000)] = 5
    considering: Share = 0.7
    adjusting: Share = 0.5
    bandwidth: Annotated[float, Field(ge=0, le=1000)] = 0.2
    flash_words: Annotated[int, Field(ge=2, le=1000)] = 60
    comprehensive_words: Annotated[int, Field(ge=2, le=1000)] = 100
    warmer: Annotated[float, Field(ge=0, le=2)] = 0.3
    kept: Annotated[int, Field(ge=0, le=1000)] = 20
    seed: str = AUTO

    def variant(self, prose: bool) -> str:
        name = "HSEvo" if prose else WITHOUT
        how = "with flash reflections; " if prose else ""
        bounds = "bounds by the writer" if prose else "from half to twice the value"
        return (
            f"{name} (Dat et al. 2025): {how}{self.initial} first pairs; then crossovers of "
            f"unequal parents replace the population, {self.mutation_rate:g} mutants of the "
            f"elitist to each of them join it, and so does the best of {self.memory} + "
            f"{self.improvisations} harmonies of its best pair's numbers ({bounds}); "
            f"{describe_seed(self.seed, prose)}; {describe_operators(prose)}"
        )

    def rounds(self, config: Settings) -> int:
        return self._budget(config).rounds

    def one_round(self, parts: Parts, instances: Sequence[Instance], k: int, state: State) -> Round:
        table, budget = Table(parts, instances, state.payoffs), self._budget(parts.config)
        evolution = Evolution(self, parts, k, table, state, budget.total)
        seeds = seeded(parts, k, table, self.seed)
        if k == 1:
            evolution.begin(seeds, budget.of(k))
        else:
            evolution.run(budget.before(k + 1))
        return record(
            parts, k, state, table, evolution.offspring, members(evolution.population),
            note=evolution.note, metrics=evolution.metrics, seeds=(*seeds, *evolution.harmonies),
        )  # fmt: skip

    def _budget(self, config: Settings) -> Budget:
        size = config.search.population_size
        each = size + int(size * self.mutation_rate) + self.memory + self.improvisations
        return Budget(config.search.nominal_pairs, self.initial, each)


@dataclass
class Memory:
    """What the run's note keeps. spent: pairs. good, bad: experiences. advice: the last
    comprehensive reflection.
    """

    spent: int = 0
    good: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    advice: str = ""


class Evolution:
    """The generations of round k. The place of an individual is its generation, from 1 on."""

    def __init__(self, rules: HsEvo, parts: Parts, k: int, table: Table, state: State, total: int):
        self._rules, self._parts, self._k, self._table = rules, parts, k, table
        self._total, self._kept = total, Memory(**json.loads(state.note or "{}"))
        self._known = list(state.individuals)
        self._rng = python_rng(parts.config.seed, "round", k, "parents")
        self._prose = Prose(parts, k)
        self._generation = max((each.place for each in self._known), default=0)
        self.population = self._born(self._generation)
        self.offspring: list[Offspring] = []
        self.harmonies: list[Individual] = []
        self._searched = 0

    @property
    def note(self) -> str:
        return json.dumps(vars(self._kept))

    @property
    def metrics(self) -> dict[str, float]:
        return self._prose.metrics | {"harmonies": float(self._searched)}

    def begin(self, seeds: Sequence[Individual], count: int) -> None:
        """The first population. seeds: what the prompts show, if anything."""
        self._known += seeds
        self._generation = 1
        self._write([self._first(n) for n in range(count)], "first")
        self.population = self._born(1)

    def run(self, until: int) -> None:
        """Generations, until so many pairs have been spent since the run began."""
        while self._kept.spent < until:
            self._next()

    def _next(self) -> None:
        rules, size = self._rules, self._parts.config.search.population_size
        elitist = best_of(self._known)
        living = self.population
        if elitist is not None and elitist not in living:
            living = [elitist, *living]
        count = min(size, self._left)
        matches = draw_matches(living, count, self._rng)
        analysis, experience = self._reflect(matches)
        self._generation += 1
        lesson = "\n".join(filter(None, (analysis, self._kept.advice)))
        requests = [self._request("crossover", match[::-1], lesson) for match in matches]
        requests += [self._first(n) for n in range(count - len(requests))]
        self._write(requests, "crossover")
        best = best_of(self._known)
        mutants = min(int(size * rules.mutation_rate), self._left)
        shown = () if best is None else (best,)
        self._write([self._request("mutation", shown, self._kept.advice)] * mutants, "mutation")
        if experience:
            new = best_of(self._known) is not elitist
            own = self._kept.good if new else self._kept.bad
            own.append(experience)
            del own[: max(len(own) - rules.kept, 0)]
        self.population = self._born(self._generation)
        self._harmonize()

    @property
    def _left(self) -> int:
        return self._total - self._kept.spent

    def _born(self, generation: int) -> list[Individual]:
        """The population of a generation."""
        return [each for each in self._known if each.place == generation]

    def _write(self, requests: Sequence[Request], stream: str) -> None:
        if not requests:
            return
        names = (stream, str(len(self.offspring)))
        new = generate(self._parts, self._k, self._table, requests, stream=names)
        self._kept.spent += len(requests)
        self._known += new.individuals
        self.offspring.append(new)

    def _first(self, number: int) -> Request:
        if not self._prose.able:
            return Request(INITIALIZATION, (), "initialization", self._generation)
        shown = tuple(each.pair for each in self._known if each.operator == SEED)
        form = "hsevo-seeded" if shown else "hsevo-first"
        persona = f"Think as {PERSONAS[number % len(PERSONAS)]} would."
        return Request(form, shown, "initialization", self._generation, persona, self._rules.warmer)

    def _request(self, operator: str, shown: Sequence[Individual], lesson: str) -> Request:
        pairs = tuple(each.pair for each in shown)
        if self._prose.able:
            form = f"hsevo-{operator}"
            return Request(form, pairs, operator, self._generation, lesson or "(nothing)")
        crossover = operator == "crossover"
        form = "shared-principle-crossover" if crossover else "mechanism-replacement"
        return Request(form, pairs, operator, self._generation)

    def _reflect(self, matches: Sequence[Match]) -> tuple[str, str]:
        """(analysis, experience) of the parents; renews the advice."""
        if not (self._prose.able and matches):
            return "", ""
        rules, prompts, kept = self._rules, self._parts.prompts, self._kept
        parents = {each.pair.digest: each for match in matches for each in match}
        ranked = sorted(parents.values(), key=lambda each: -each.utility)
        stream = str(len(self.offspring))
        asked = prompts.flash([each.pair for each in ranked], rules.flash_words)
        [text] = self._prose.ask([asked], "flash", stream)
        analysis, experience = map(tidy, read_flash(text))
        asked = prompts.comprehensive(experience, kept.good, kept.bad, rules.comprehensive_words)
        [text] = self._prose.ask([asked], "comprehensive", stream)
        kept.advice = tidy(text) or kept.advice
        return analysis, experience

    # --- harmony search ---------------------------------------------------------------------------

    def _harmonize(self) -> None:
        """Vary the numbers of the population's best pair; the best harmony joins."""
        untried = sorted(self.population, key=lambda each: -each.utility)
        for base in untried[:ATTEMPTS]:
            bounds = self._bounds(base.pair)
            first = min(self._rules.memory, self._left)
            if not (bounds and first):
                continue
            values = [uniform(bounds, self._rng) for _ in range(first)]
            found = self._evaluated(base, values)
            if not any(found):
                continue  # no budget counts them, as in the release
            self._kept.spent += first
            for _ in range(min(self._rules.improvisations, self._left)):
                new = improvised(values, bounds, self._rules, self._rng)
                [each] = self._evaluated(base, [new])
                self._kept.spent += 1
                remember(values, found, new, each)
            best = max(found, key=worth)
            self._join(best)
            return

    def _join(self, best: Individual | None) -> None:
        """Let a harmony be of this generation."""
        assert best is not None
        place = next(n for n, each in enumerate(self.harmonies) if each is best)
        joined = replace(best, place=self._generation)
        self.harmonies[place] = joined
        self._known[next(n for n, each in enumerate(self._known) if each is best)] = joined
        self.population.append(joined)

    def _bounds(self, pair: Pair) -> Bounds:
        """The parameters of both programs with their bounds."""
        halves = {"destroy": pair.destroy, "repair": pair.repair}
        numbers = {role: constants_of(halves[role].source) for role in ROLES}
        known = {role: around(numbers[role]) for role in ROLES if numbers[role]}
        if self._prose.able and known:
            asked = [self._parts.prompts.ranges(halves[role], numbers[role]) for role in known]
            texts = self._prose.ask(asked, "ranges", str(len(self.offspring)), pair.digest)
            known = {
                role: dict(read_ranges(text, numbers[role]))
                for role, text in zip(known, texts, strict=True)
            }
        return {(role, each): own for role in known for each, own in known[role].items()}

    def _evaluated(self, base: Individual, values: Sequence[Values]) -> list[Individual | None]:
        """Harmonies of a pair, None for one that fails."""
        pairs = [harmony(base.pair, each) for each in values]
        programs = [program for pair in pairs if pair for program in (pair.destroy, pair.repair)]
        refused = dict(
            zip(
                (program.digest for program in programs),
                self._parts.evaluator.check(programs),
                strict=True,
            )
        )
        fine = [
            pair
            for pair in pairs
            if pair and not (refused[pair.destroy.digest] or refused[pair.repair.digest])
        ]
        self._table.play(fine, RESPONSE)
        self._searched += len(values)
        found: list[Individual | None] = []
        for pair in pairs:
            value = self._table.utility(pair.destroy, pair.repair) if pair in fine else math.nan
            if pair is None or math.isnan(value):
                found.append(None)
                continue
            scores = scores_of(pair, self._table)
            found.append(Individual(pair, value, self._k, HARMONY, OUTSIDE, scores))
        new = [each for each in found if each is not None]
        self.harmonies += new
        self._known += new
        return found


def worth(harmony: Individual | None) -> float:
    """J of a harmony, less than any for one that failed."""
    return -math.inf if harmony is None else harmony.utility


def remember(
    memory: list[Values], found: list[Individual | None], new: Values, each: Individual | None
) -> None:
    """Put a new harmony in the place of the worst, the first of equals, if it is better.

    found: what became of the memory's harmonies; each: of the new one.
    """
    worst = min(range(len(found)), key=lambda n: worth(found[n]))
    if worth(each) > worth(found[worst]):
        memory[worst], found[worst] = new, each


def uniform(bounds: Bounds, rng: random.Random) -> Values:
    """A harmony of the first memory."""
    return {each: rng.uniform(*own) for each, own in bounds.items()}


def improvised(
    memory: Sequence[Values], bounds: Bounds, rules: HsEvo, rng: random.Random
) -> Values:
    """A new harmony. A value that is moved may leave the bounds, as in the release."""
    new = {}
    for each, (low, high) in bounds.items():
        if rng.random() < rules.considering:
            new[each] = rng.choice(memory)[each]
            if rng.random() < rules.adjusting:
                new[each] += rng.uniform(-1, 1) * (high - low) * rules.bandwidth
        else:
            new[each] = rng.uniform(low, high)
    return new


def harmony(pair: Pair, values: Values) -> Pair | None:
    """A pair with other numbers; None where that makes no program."""
    halves = []
    for program in (pair.destroy, pair.repair):
        own = {each: value for (role, each), value in values.items() if role == program.role}
        source = with_values(program.source, own)
        try:
            halves.append(
                Program.from_source(
                    program.role, source, program.strategy, parents=(program.digest,), form=HARMONY
                )
            )
        except Rejection:
            return None
    return Pair(*halves)

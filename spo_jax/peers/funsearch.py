"""FunSearch (Romera-Paredes et al. 2024): islands of programs, and prompts for the next version.

Islands do not exchange programs. On each, programs with the same scores on all tests form a
cluster. A prompt draws an island uniformly; on it two clusters by softmax(score / T), where T falls
as the island fills; and from each cluster one program, shorter ones with higher probability. It
shows them, the weaker first, and asks for the next version. New programs join their prompt's
island, and none is dropped, but from time to time the worse half of the islands is reset, each to
the best program of a surviving island.

Where the variant differs from the released code:

- Islands are reset after every fifth (`reset`) of the run's pairs, there every four hours: nothing
  here may depend on a clock, and a count of pairs would never be reached in a small run. It is
  checked after each round but the last.
- The score of a cluster is J, the mean over the tests, in per cent, the unit of T. There it is the
  score of the last and largest test; ours are of one size. `score=last` takes the last one's.
- With a `seed` every island begins with that program, as there. Without one prompts of an empty
  island ask for a first version.
- The answer is a whole function; there the model completes the body behind its head.
- `prompts` prompts are drawn from the database before any is answered, as with that many samplers.

A writer of prose sees functions destroy_v0, destroy_v1 and the head of destroy_v2 and answers with
code alone (the forms funsearch-first and funsearch-version). By default it has the problem's
trivial program as the seed. Generators that write no prose know SPO's forms only. For them the
prompt is the shared-principle crossover for two programs, the mechanism replacement for one, and by
default there is no seed.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from pydantic import Field

from spo_jax.config import Settings
from spo_jax.envs.problem import Instance
from spo_jax.peers.pairs import Budget, Request, describe_operators, generate, members, record
from spo_jax.peers.seeds import AUTO, SEED, describe_seed, seeded
from spo_jax.search.parts import Parts
from spo_jax.search.payoffs import Table
from spo_jax.search.rounds import Individual, Round, State
from spo_jax.search.writing.prompts import INITIALIZATION
from spo_jax.seeding import python_rng

SHOWN = 2  # versions in a prompt, at most
TIE_NOISE = 1e-6
Signature = tuple[float, ...]
Count = Annotated[int, Field(ge=1, le=10**9)]


@dataclass(frozen=True)
class FunSearch:
    """islands: how many. prompts: of a round; samples: of a prompt. temperature, period: T is
    temperature (1 - (n mod period) / period) on an island of n programs. reset: the share of the
    run's pairs between two resets. score: what a cluster is worth, "mean" or "last". seed: the
    program that all islands begin with, as `peers.seeds` reads it.
    """

    islands: Annotated[int, Field(ge=1, le=10_000)] = 10
    prompts: Count = 5
    samples: Count = 4
    temperature: Annotated[float, Field(ge=1e-9, le=1e9)] = 0.1
    period: Count = 30_000
    reset: Annotated[float, Field(ge=0.001, le=1)] = 0.2
    score: Literal["mean", "last"] = "mean"
    seed: str = AUTO

    def variant(self, prose: bool) -> str:
        return (
            f"FunSearch (Romera-Paredes et al. 2024): {self.islands} islands, prompts with {SHOWN} "
            f"pairs of one of them, {self.samples} samples each; the worse half of the islands "
            f"begins again after every {self.reset:.3g} of the budget; "
            f"{describe_seed(self.seed, prose)}; {describe_operators(prose)}"
        )

    def rounds(self, config: Settings) -> int:
        return self._budget(config).rounds

    def one_round(self, parts: Parts, instances: Sequence[Instance], k: int, state: State) -> Round:
        config = parts.config
        prose = parts.generator.writes_prose
        table = Table(parts, instances, state.payoffs)
        seeds = seeded(parts, k, table, self.seed)
        islands = self.database((*state.individuals, *seeds), config, k)
        rng = python_rng(config.seed, "round", k, "parents")
        requests = []
        for _ in range(self._budget(config).of(k) // self.samples):
            place = rng.randrange(self.islands)
            requests.append(request(islands[place].draw(self, rng), place, prose))
        new = generate(parts, k, table, requests, n=self.samples)
        after = self.database((*state.individuals, *seeds, *new.individuals), config, k + 1)
        if due := self.resets(config, k):
            done = sum(self.resets(config, number) for number in range(1, k + 1))
            parts.observer.remark(f"round {k}: the worse half of the islands is reset ({done})")
        best = [island.best for island in after if island.best is not None]
        metrics = {"resets": float(due)}
        return record(parts, k, state, table, [new], members(best), metrics=metrics, seeds=seeds)

    def _budget(self, config: Settings) -> Budget:
        """Whole prompts, at least one."""
        total = max(config.search.nominal_pairs // self.samples, 1) * self.samples
        each = self.prompts * self.samples
        return Budget(total, each, each)

    def database(
        self, individuals: Sequence[Individual], config: Settings, k: int
    ) -> list["Island"]:
        """The islands that round k begins with, from the individuals of the rounds before."""
        islands = [Island() for _ in range(self.islands)]
        by_round: dict[int, list[Individual]] = {}
        for each in individuals:
            if each.operator == SEED:
                for place, island in enumerate(islands):
                    island.register(replace(each, place=place), self)
            else:
                by_round.setdefault(each.round, []).append(each)
        for number in range(1, k):
            for each in by_round.get(number, ()):
                islands[each.place].register(each, self)
            if self.resets(config, number):
                reset(islands, self, python_rng(config.seed, "round", number, "reset"))
        return islands

    def resets(self, config: Settings, number: int) -> bool:
        """Whether a round ends with a reset. One at the end of the run would change nothing."""
        budget = self._budget(config)
        every = max(1, round(self.reset * budget.total))
        before, after = budget.before(number), budget.before(number + 1)
        return before // every < after // every and after < budget.total

    def worth(self, individual: Individual) -> float:
        """What a cluster with this individual scores, in per cent."""
        return 100 * (individual.utility if self.score == "mean" else individual.scores[-1])


@dataclass
class Island:
    """Clusters by the scores that their programs share, the oldest first."""

    clusters: dict[Signature, list[Individual]] = field(default_factory=dict)
    best: Individual | None = None
    programs: int = 0

    def register(self, individual: Individual, rules: FunSearch) -> None:
        self.clusters.setdefault(individual.scores, []).append(individual)
        self.programs += 1
        if self.best is None or rules.worth(individual) > rules.worth(self.best):
            self.best = individual

    def draw(self, rules: FunSearch, rng: random.Random) -> list[Individual]:
        """The individuals of a prompt, the weakest first; none on an empty island.

        A cluster may be drawn twice, as in the released code.
        """
        if not self.clusters:
            return []
        clusters = list(self.clusters.values())
        worth = [rules.worth(cluster[0]) for cluster in clusters]
        temperature = rules.temperature * (1 - self.programs % rules.period / rules.period)
        count = min(len(clusters), SHOWN)
        chosen = rng.choices(range(len(clusters)), softmax(worth, temperature), k=count)
        drawn = [(worth[place], draw_short(clusters[place], rng)) for place in chosen]
        return [individual for _, individual in sorted(drawn, key=lambda each: each[0])]


def draw_short(cluster: Sequence[Individual], rng: random.Random) -> Individual:
    """One of a cluster, the shorter the likelier."""
    lengths = [len(each.pair.destroy.source) + len(each.pair.repair.source) for each in cluster]
    shortest, longest = min(lengths), max(lengths)
    relative = [-(length - shortest) / (longest + 1e-6) for length in lengths]
    return rng.choices(cluster, softmax(relative, 1.0))[0]


def softmax(values: Sequence[float], temperature: float) -> list[float]:
    """Probabilities that go with exp(value / temperature)."""
    highest = max(values)
    weights = [math.exp((value - highest) / temperature) for value in values]
    total = sum(weights)
    return [weight / total for weight in weights]


def reset(islands: list[Island], rules: FunSearch, rng: random.Random) -> None:
    """The worse half of the islands begins again, each from the best of a survivor."""

    def rank_key(island: Island) -> float:
        worth = -math.inf if island.best is None else rules.worth(island.best)
        return worth + TIE_NOISE * rng.gauss(0.0, 1.0)

    ranked = sorted(range(len(islands)), key=[rank_key(island) for island in islands].__getitem__)
    worse, kept = ranked[: len(islands) // 2], ranked[len(islands) // 2 :]
    for place in worse:
        founder = islands[rng.choice(kept)].best
        islands[place] = Island()
        if founder is not None:
            islands[place].register(replace(founder, place=place), rules)


def request(shown: Sequence[Individual], place: int, prose: bool) -> Request:
    """The request for the next version of what is shown."""
    if not shown:
        return Request("funsearch-first" if prose else INITIALIZATION, (), "initialization", place)
    known = {1: "mechanism-replacement", 2: "shared-principle-crossover"}
    form = "funsearch-version" if prose else known[len(shown)]
    return Request(form, tuple(each.pair for each in shown), "version", place)

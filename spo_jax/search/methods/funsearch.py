"""FunSearch (Romera-Paredes et al. 2024): a database of islands, whose programs beget versions.

Islands live apart. On each, programs with the same scores on all tests form a cluster. A prompt is
drawn on one island, uniformly: two clusters by softmax(score / T), with T falling as the island
fills; of each cluster one program, the shorter the likelier; shown with the weaker first, with the
request for the next version. Children go to their prompt's island, and nothing is ever dropped,
but from time to time the worse half of the islands begins again from a survivor's best.

The variant, where it is not the released code:

- Islands are reset by evaluations (every `reset` pairs, checked after each round) where that has
  four hours: nothing here may depend on a clock.
- The score of a cluster is J, the mean over the tests, in per cent. (There it is the last test's,
  the largest; ours are alike. `score=last` takes the last one's.) The unit is what T refers to.
- There is no first program by hand: an empty island is asked for first pairs.
- `prompts` prompts are drawn from the database before any is answered, as with that many samplers.

A writer that knows SPO's forms alone is asked for the next version of two by the shared-principle
crossover, and of one by the mechanism replacement.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from spo_jax.config import Config
from spo_jax.envs.problem import Instance
from spo_jax.errors import InputError
from spo_jax.search.methods import check_range
from spo_jax.search.methods.pairs import Budget, Request, breed, round_of, table_of
from spo_jax.search.parts import Parts
from spo_jax.search.rounds import Individual, Round, State
from spo_jax.search.writing.prompts import INITIALIZATION
from spo_jax.seeding import python_rng

SHOWN = 2  # versions in a prompt, at most
TIE_NOISE = 1e-6
Signature = tuple[float, ...]


@dataclass(frozen=True)
class FunSearch:
    """islands: how many. prompts: of a round; samples: of a prompt. temperature, period: T is
    temperature (1 - (n mod period) / period) on an island of n programs. reset: pairs between two
    resets. score: what a cluster is worth, "mean" or "last".
    """

    islands: int = 10
    prompts: int = 5
    samples: int = 4
    temperature: float = 0.1
    period: int = 30_000
    reset: int = 1_000
    score: str = "mean"

    def __post_init__(self) -> None:
        check_range("islands", self.islands, 1, 10_000)
        for name in ("prompts", "samples", "period", "reset"):
            check_range(name, getattr(self, name), 1, 10**9)
        check_range("temperature", self.temperature, 1e-9, 1e9)
        if self.score not in ("mean", "last"):
            raise InputError(f"score is {self.score!r} in method_settings; it must be mean or last")

    def variant(self, prose: bool) -> str:
        asked = "the next version" if prose else "a crossover in place of the next version"
        return (
            f"FunSearch (Romera-Paredes et al. 2024): {self.islands} islands, prompts with {SHOWN} "
            f"pairs of one of them that ask {self.samples} times for {asked}; the worse half of "
            f"the islands begins again every {self.reset} pairs"
        )

    def rounds(self, config: Config) -> int:
        return self._budget(config).rounds

    def one_round(self, parts: Parts, instances: Sequence[Instance], k: int, state: State) -> Round:
        config = parts.config
        prose = parts.generator.writes_prose
        table = table_of(parts, instances, state)
        islands = self.database(state.individuals, config, k)
        rng = python_rng(config.seed, "round", k, "parents")
        requests = []
        for _ in range(self._budget(config).of(k) // self.samples):
            place = rng.randrange(self.islands)
            requests.append(request(islands[place].draw(self, rng), place, prose))
        brood = breed(parts, k, state, table, requests, n=self.samples)
        after = self.database((*state.individuals, *brood.individuals), config, k + 1)
        best = [island.best for island in after if island.best is not None]
        return round_of(parts, k, state, table, [brood], best)

    def _budget(self, config: Config) -> Budget:
        """Whole prompts, at least one."""
        total = max(config.nominal_pairs // self.samples, 1) * self.samples
        each = self.prompts * self.samples
        return Budget(total, each, each)

    def database(self, individuals: Sequence[Individual], config: Config, k: int) -> list["Island"]:
        """The islands that round k begins with, from the individuals of the rounds before."""
        budget = self._budget(config)
        islands = [Island() for _ in range(self.islands)]
        born: dict[int, list[Individual]] = {}
        for each in individuals:
            born.setdefault(each.round, []).append(each)
        for number in range(1, k):
            for each in born.get(number, ()):
                islands[each.place].register(each, self)
            if budget.before(number) // self.reset < budget.before(number + 1) // self.reset:
                reset(islands, self, python_rng(config.seed, "round", number, "reset"))
        return islands

    def worth(self, individual: Individual) -> float:
        """What a cluster with this individual scores, in per cent."""
        return 100 * (individual.utility if self.score == "mean" else individual.scores[-1])


@dataclass
class Island:
    """Clusters by the scores that their programs have in common, in the order of their birth."""

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

    def standing(island: Island) -> float:
        worth = -math.inf if island.best is None else rules.worth(island.best)
        return worth + TIE_NOISE * rng.gauss(0.0, 1.0)

    ranked = sorted(range(len(islands)), key=[standing(island) for island in islands].__getitem__)
    worse, kept = ranked[: len(islands) // 2], ranked[len(islands) // 2 :]
    for place in worse:
        founder = islands[rng.choice(kept)].best
        islands[place] = Island()
        if founder is not None:
            islands[place].register(replace(founder, place=place), rules)


def request(shown: Sequence[Individual], place: int, prose: bool) -> Request:
    """The request for the next version of what is shown."""
    if not shown:
        return Request(INITIALIZATION, (), "initialization", place)
    known = {1: "mechanism-replacement", 2: "shared-principle-crossover"}
    form = "next-version" if prose else known[len(shown)]
    return Request(form, tuple(each.pair for each in shown), "version", place)

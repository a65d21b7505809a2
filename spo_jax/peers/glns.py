"""G-LNS (Zhao et al. 2026): a population of each role, scored by how well operators work together.

An epoch: adaptive searches draw operators of both populations by weights that follow what they
achieve (`spo_jax.envs.run.adaptive` has their rules), ten generations of one search per training
instance; then the worst two of each population are pruned and replaced by new ones: with
probability 0.5 each from one parent, with 0.4 each from two parents of its role, else both together
from the pair that worked best in the last generation. A run begins with the problem's simple
operators, and a first round fills the populations up.

A writer of prose is asked by the forms glns-first to glns-crossover, and for a joint pair in one
answer (`spo_jax.search.writing.joint`); a further try is told what was wrong. For any other the
forms are SPO's: control redesign of the best operator, mechanism replacement of the worst, one of
the two of others, the shared-principle form for crossovers, and for joint pairs mechanism
replacement of both, the repair to the new destroy.

docs/research/published_methods.md says what differs from the released code
(github.com/ZBoyn/G-LNS).
"""

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
from pydantic import Field

from spo_jax.config import Settings
from spo_jax.envs.problem import Instance
from spo_jax.envs.run.adaptive import Adaptation
from spo_jax.envs.run.evaluator import require_searches
from spo_jax.envs.run.jobs.operators import AdaptiveRuns
from spo_jax.envs.run.lns import Outcome
from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError
from spo_jax.peers.operator_writing import Asked, Plan, Request, Writing
from spo_jax.peers.pairs import Budget, Offspring, describe_operators, record, scores_of
from spo_jax.peers.seeds import first_operators
from spo_jax.program import Pair, Program, Role
from spo_jax.search.parts import Parts
from spo_jax.search.payoffs import Table
from spo_jax.search.population import Member, Population
from spo_jax.search.rounds import Digests, Individual, Round, State
from spo_jax.search.sampling.sample import counts_of, distinct
from spo_jax.seeding import python_rng

RULES = Adaptation()
Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True)
class Glns:
    """size: operators of each population. prune: how many of them are replaced after an epoch.
    generations: of an epoch, each with one search of `iterations` steps on each instance. mutation,
    crossover: shares of the new operators. retries: of an answer that gives no operator. seed:
    whether the populations begin with the problem's operators. temperature, cooling, scaled: of
    annealing, as `Adaptation` has them.
    """

    size: Annotated[int, Field(ge=2, le=1000)] = 5
    prune: Annotated[int, Field(ge=1, le=999)] = 2
    generations: Annotated[int, Field(ge=1, le=10_000)] = 10
    iterations: Annotated[int, Field(ge=1, le=10_000)] = 100
    mutation: Share = 0.5
    crossover: Share = 0.4
    retries: Annotated[int, Field(ge=0, le=100)] = 3
    seed: bool = True
    temperature: Annotated[float, Field(ge=0)] = RULES.temperature
    cooling: Annotated[float, Field(gt=0, le=1)] = RULES.cooling
    scaled: bool = False

    def __post_init__(self) -> None:
        if self.prune >= self.size:
            raise InputError(f"prune is {self.prune}; it must be less than size ({self.size})")
        if self.mutation + self.crossover > 1:
            raise InputError(
                f"mutation and crossover are {self.mutation} and {self.crossover}; "
                "their sum is at most 1"
            )

    @property
    def rules(self) -> Adaptation:
        return replace(
            RULES, temperature=self.temperature, cooling=self.cooling, scaled=self.scaled
        )

    def variant(self, prose: bool) -> str:
        fixed = f"T = {self.temperature:g}"
        start = "a temperature scaled to the instance" if self.scaled else fixed
        return (
            f"G-LNS (Zhao et al. 2026): {self.size} destroys and {self.size} repairs, scored in "
            f"{self.generations} generations of adaptive searches with annealing from {start}; the "
            f"worst {self.prune} of each are then written anew; {describe_operators(prose)}"
        )

    def rounds(self, config: Settings) -> int:
        each = self.cost(config)
        return Budget(config.search.nominal_pairs, each, each).rounds

    def cost(self, config: Settings) -> int:
        """An epoch in pairs: those with as many steps in their rollouts, and its own one."""
        steps = config.evaluation.rollouts * config.evaluation.steps
        return math.ceil(self.generations * self.iterations / steps) + 1

    def one_round(self, parts: Parts, instances: Sequence[Instance], k: int, state: State) -> Round:
        config, table = parts.config, Table(parts, instances, state.payoffs)
        seeds = first_operators(parts.problem) if k == 1 and self.seed else {}
        old = (state.destroys, state.repairs)
        if k == 1:
            old = (self._seeded(seeds, "destroy"), self._seeded(seeds, "repair"))
        rng = python_rng(config.seed, "round", k, "parents")
        writing = Writing(parts, instances, k, self.retries)
        living = [member.program for member in old[0]]
        new = writing.write(self.plans(k, old, state.note, rng), living)
        destroys = _extended(old[0], distinct(new.destroys), k)
        repairs = _extended(old[1], distinct(new.repairs), k)

        runs = self._play(parts, instances, k, destroys, repairs)
        tally = Tally.of(destroys, repairs, runs, self.rules)
        kept = self.size - self.prune
        survivors = (_pruned(destroys, tally.destroys, kept), _pruned(repairs, tally.repairs, kept))
        born = _chosen(parts, k, survivors, tally, table)
        counts = counts_of(
            new.destroys, new.repairs, table,
            destroys=len(distinct(new.destroys)), repairs=len(distinct(new.repairs)),
            valid_repairs=sum(
                program is not None and program.digest in tally.useful
                for answers in new.repairs for program in answers.programs
            ),
            utilities=[each.utility for each in born],
        )  # fmt: skip
        counts = replace(counts, pairs=counts.pairs + self.cost(config) - 1)
        metrics = {"retries": float(new.retries), **tally.metrics}
        note = json.dumps(best_together(*survivors, tally.last))
        offspring = Offspring(born, tuple(new.destroys), tuple(new.repairs), tuple(new.failures))
        known = [member.program for each in old for member in each] if k == 1 else []
        done = record(
            parts, k, state, table, [offspring], survivors,
            note=note, counts=counts, metrics=metrics,
        )  # fmt: skip
        return replace(done, programs=tuple(dict.fromkeys((*known, *done.programs))))

    def _seeded(self, seeds: Mapping[Role, Sequence[Program]], role: Role) -> Population:
        return tuple(Member(program, 0.0, 1) for program in seeds.get(role, ())[: self.size])

    def plans(
        self, k: int, old: tuple[Population, Population], note: str, rng: random.Random
    ) -> list[Plan]:
        """What round k asks for. old: both populations; note: that of the round before."""
        destroys, repairs = old
        if k == 1 or not (destroys and repairs):
            missing = [self.size - len(population) for population in old]
            shown = [tuple(member.program for member in population) for population in old]
            return [
                Plan(
                    "initialization",
                    Request("first", shown[0]) if n < missing[0] else None,
                    Request("first", shown[1]) if n < missing[1] else None,
                )
                for n in range(max(missing))
            ]
        return [self.plan(destroys, repairs, note, rng) for _ in range(self.prune)]

    def plan(
        self, destroys: Population, repairs: Population, note: str, rng: random.Random
    ) -> Plan:
        """Plan one new destroy and one new repair."""
        draw = rng.random()
        if draw < self.mutation:
            return Plan("mutation", mutated(destroys, rng), mutated(repairs, rng))
        if draw < self.mutation + self.crossover:
            return Plan("crossover", crossed(destroys, rng), crossed(repairs, rng))
        destroy, repair = json.loads(note)
        return Plan(
            "joint",
            Request("joint", (_named(destroys, destroy),)),
            Request("joint", (_named(repairs, repair),)),
        )

    def _play(
        self,
        parts: Parts,
        instances: Sequence[Instance],
        k: int,
        destroys: Population,
        repairs: Population,
    ) -> AdaptiveRuns | None:
        """The adaptive searches of an epoch; None where a population is empty."""
        if not (destroys and repairs):
            return None
        look, first = parts.observer, (k - 1) * self.generations
        look.stage(k, "adaptive search", self.generations * len(instances))
        with look.working("cross-play"):
            found = parts.evaluator.adaptive(
                [member.program for member in destroys],
                [member.program for member in repairs],
                instances,
                range(first, first + self.generations),
                self.iterations,
                self.rules,
                progress=lambda done, total: look.advance(done),
            )
        require_searches(found, len(instances), self.generations, self.iterations)
        return found


# --- the scores of operators ----------------------------------------------------------------------


@dataclass(frozen=True)
class Tally:
    """Sums of rewards by digest: of every destroy and repair, of the pairs that were drawn, and of
    those in the last generation.

    failed: pairs of which a step failed. useful: programs of which a step did not.
    """

    destroys: Mapping[str, float]
    repairs: Mapping[str, float]
    pairs: Mapping[Digests, float] = field(default_factory=dict)
    last: Mapping[Digests, float] = field(default_factory=dict)
    failed: frozenset[Digests] = frozenset()
    useful: frozenset[str] = frozenset()
    metrics: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        destroys: Population,
        repairs: Population,
        runs: AdaptiveRuns | None,
        rules: Adaptation = RULES,
    ) -> "Tally":
        """What the searches of an epoch say; a search that could not be had says nothing."""
        rows = [member.program.digest for member in destroys]
        columns = [member.program.digest for member in repairs]
        sums: dict[tuple[int, int], float] = {}
        last: dict[tuple[int, int], float] = {}
        failed: set[tuple[int, int]] = set()
        fine: set[tuple[int, int]] = set()
        steps = lost = 0
        shape = runs.outcomes.shape[:2] if runs else (0, 0)
        for i, s in np.ndindex(shape):
            assert runs is not None
            if runs.rollouts.status[0, i, s] != Status.OK:
                continue
            for drawn, outcome in zip(
                map(tuple, runs.drawn[i, s].tolist()), runs.outcomes[i, s].tolist(), strict=True
            ):
                score = rules.score(outcome)
                sums[drawn] = sums.get(drawn, 0.0) + score
                if s == shape[1] - 1:
                    last[drawn] = last.get(drawn, 0.0) + score
                (failed if outcome == Outcome.FAILED else fine).add(drawn)
                steps, lost = steps + 1, lost + (outcome == Outcome.FAILED)
        by_row, by_column = dict.fromkeys(rows, 0.0), dict.fromkeys(columns, 0.0)
        for (d, r), score in sums.items():
            by_row[rows[d]] += score
            by_column[columns[r]] += score
        return cls(
            by_row,
            by_column,
            {(rows[d], columns[r]): score for (d, r), score in sums.items()},
            {(rows[d], columns[r]): score for (d, r), score in last.items()},
            frozenset((rows[d], columns[r]) for d, r in failed),
            frozenset(digest for d, r in fine for digest in (rows[d], columns[r])),
            {"adaptive_steps": float(steps), "failed_steps": float(lost)},
        )


def best_together(
    destroys: Population, repairs: Population, pairs: Mapping[Digests, float]
) -> tuple[str, ...]:
    """Digests of the two survivors with the highest score as a pair; without one, the best two."""
    left = [(d.program.digest, r.program.digest) for d in destroys for r in repairs]
    return max(left, key=lambda pair: pairs.get(pair, 0.0), default=())


def _chosen(
    parts: Parts, k: int, survivors: tuple[Population, Population], tally: Tally, table: Table
) -> tuple[Individual, ...]:
    """The epoch's own pair, with its J: of the survivors' pairs that no epoch has evaluated and
    that never failed, the one with the highest score.
    """
    pairs = [Pair(d.program, r.program) for d in survivors[0] for r in survivors[1]]
    scored = [
        (tally.pairs[digests], pair)
        for pair in table.missing(pairs)
        if (digests := (pair.destroy.digest, pair.repair.digest)) in tally.pairs
        and digests not in tally.failed
    ]
    if not scored:
        return ()
    _, pair = max(scored, key=lambda each: each[0])
    table.play([pair], "response")
    value = table.utility(pair.destroy, pair.repair)
    if math.isnan(value):
        return ()
    return (Individual(pair, value, k, "adaptive", scores=scores_of(pair, table)),)


# --- requests for new operators -------------------------------------------------------------------


def mutated(population: Population, rng: random.Random) -> Request:
    """One parent, drawn uniformly; the form depends on its rank. The best comes first."""
    place = rng.randrange(len(population))
    either: Asked = rng.choice(("replace", "tune"))
    if place == 0:
        return Request("tune", (population[0].program,), "This operator does well.")
    if place == len(population) - 1:
        return Request("replace", (population[place].program,), "This operator does poorly.")
    return Request(either, (population[place].program,), "This operator was picked by chance.")


def crossed(population: Population, rng: random.Random) -> Request:
    """Two different parents, drawn by their scores; a mutation where there is only one."""
    if len(population) < 2:
        return mutated(population, rng)
    left = list(population)
    drawn = []
    for _ in range(2):
        weights = [member.score for member in left]
        [member] = rng.choices(left, weights if any(weights) else None)
        left.remove(member)
        drawn.append(member.program)
    return Request("crossover", tuple(drawn))


# --- populations ----------------------------------------------------------------------------------


def _extended(population: Population, new: Sequence[Program], k: int) -> Population:
    """The population with the new programs whose source it does not have yet."""
    known = {member.program.digest for member in population}
    return (*population, *(Member(p, 0.0, k) for p in new if p.digest not in known))


def _pruned(population: Population, scores: Mapping[str, float], size: int) -> Population:
    """The `size` best by score, the best first; of equals the older."""
    scored = [Member(m.program, scores[m.program.digest], m.round) for m in population]
    return tuple(sorted(scored, key=lambda member: -member.score)[:size])


def _named(population: Population, digest: str) -> Program:
    return next(member.program for member in population if member.program.digest == digest)

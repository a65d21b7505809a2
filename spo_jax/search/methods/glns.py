"""G-LNS (Zhao et al. 2026): a population of each role, scored by how well operators work together.

An epoch: adaptive LNS runs draw operators of both populations by weights that follow their scores;
after ten generations the worst two of each population are pruned and replaced by new ones: with
probability 0.5 each from one parent, with 0.4 each from two parents of its role, else both together
from the pair that worked best.

Where the variant differs from the released code:

- Programs cannot report single steps, and no state outlives a call of them. So pairs are evaluated,
  as everywhere here: each new pair of the two populations gets the rollouts of J, and the adaptive
  runs are simulated on those payoffs. One iteration draws a destroy and a repair by their weights;
  its outcome is the pair's utility on the run's instance. The scores are the published ones: 1.5
  for a new best, 1.2 for better than the draw before, 0.8 for a valid pair that is no better (at
  the released temperature nearly every such step is accepted), 0.1 for one that fails; weights keep
  0.5 of themselves, and begin at 1 in every run.
- An epoch is a round. Its cost is the pairs that it evaluates, 25 and then 16, not the programs.
- There are no hand-written first operators, and no second try with an error message.
- The result is the pair with the highest J, not the populations.

The prompt of a repair shows a destroy: in the first round the new destroy at the same index, for a
joint pair the new destroy, else the best one. As published, mutations redesign the control of the
best operator, replace a mechanism of the worst, and do one of the two to others. Joint pairs
replace a mechanism in both programs; crossovers have the shared-principle form.
"""

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from spo_jax.config import Settings
from spo_jax.envs.problem import Instance
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program, Prompt, Role
from spo_jax.search.candidates import counts_of, distinct, sample
from spo_jax.search.methods.pairs import Budget, Offspring, record, scores_of
from spo_jax.search.parts import Parts
from spo_jax.search.payoffs import Table
from spo_jax.search.population import Member, Population
from spo_jax.search.rounds import Answers, Counts, Digests, Individual, Round, State
from spo_jax.search.writing.prompts import INITIALIZATION
from spo_jax.seeding import python_rng

REPLACE, REDESIGN = "mechanism-replacement", "state-control-redesign"
SHARE = "shared-principle-crossover"
NEW_BEST, IMPROVED, ACCEPTED, FAILED = 1.5, 1.2, 0.8, 0.1
KEPT = 0.5  # lambda: what a weight keeps of itself

Share = Annotated[float, Field(ge=0, le=1)]
Request = tuple[str, tuple[Program, ...]]  # a form, and the parents that it shows
Scores = Mapping[Digests, tuple[float, ...]]  # of each valid pair, on each training instance


@dataclass(frozen=True)
class Glns:
    """size: operators of each population. prune: how many of them are replaced after an epoch.
    generations: of an epoch, each with one run of `iterations` draws on each instance. mutation,
    crossover: shares of the new operators.
    """

    size: Annotated[int, Field(ge=2, le=1000)] = 5
    prune: Annotated[int, Field(ge=1, le=999)] = 2
    generations: Annotated[int, Field(ge=1, le=10_000)] = 10
    iterations: Annotated[int, Field(ge=1, le=10_000)] = 100
    mutation: Share = 0.5
    crossover: Share = 0.4

    def __post_init__(self) -> None:
        if self.prune >= self.size:
            raise InputError(f"prune is {self.prune}; it must be less than size ({self.size})")
        if self.mutation + self.crossover > 1:
            raise InputError(
                f"mutation and crossover are {self.mutation} and {self.crossover}; "
                "their sum is at most 1"
            )

    def variant(self, prose: bool) -> str:
        return (
            f"G-LNS (Zhao et al. 2026) on the payoffs of pairs: {self.size} destroys and "
            f"{self.size} repairs, scored in {self.generations} generations of adaptive runs; the "
            f"worst {self.prune} of each are then written anew"
        )

    def rounds(self, config: Settings) -> int:
        kept = self.size - self.prune
        return Budget(config.search.nominal_pairs, self.size**2, self.size**2 - kept**2).rounds

    def one_round(self, parts: Parts, instances: Sequence[Instance], k: int, state: State) -> Round:
        config, table = parts.config, Table(parts, instances, state.payoffs)
        rng = python_rng(config.seed, "round", k, "parents")
        plans = [self.plan(state, rng) for _ in range(self.size if k == 1 else self.prune)]
        leaders, failures = sample(
            parts, k, [_prompt(parts, "destroy", plan.destroy) for plan in plans], n=1
        )
        answered = [
            _answered(plan, answers, leaders, state.destroys)
            for plan, answers in zip(plans, leaders, strict=True)
        ]
        prompts = [
            _prompt(parts, "repair", plan.repair, destroy)
            for plan, destroy in zip(plans, answered, strict=True)
            if destroy is not None
        ]
        followers, refused = sample(parts, k, prompts, n=1)

        destroys = _extended(state.destroys, distinct(leaders), k)
        repairs = _extended(state.repairs, distinct(followers), k)
        new = _play(parts, k, destroys, repairs, table)
        scores = {
            (each.pair.destroy.digest, each.pair.repair.digest): each.scores
            for each in (*state.individuals, *new)
        }
        tally = self.judge(destroys, repairs, scores, python_rng(config.seed, "round", k, "draws"))
        kept = self.size - self.prune
        survivors = (_pruned(destroys, tally.destroys, kept), _pruned(repairs, tally.repairs, kept))
        offspring = Offspring(new, tuple(leaders), tuple(followers), (*failures, *refused))
        counts = _counts(leaders, followers, new, scores, table)
        note = json.dumps(best_together(*survivors, tally.pairs))
        return record(parts, k, state, table, [offspring], survivors, note=note, counts=counts)

    def plan(self, state: State, rng: random.Random) -> "Plan":
        """Plan one new destroy and one new repair."""
        draw = rng.random()
        if not (state.destroys and state.repairs):
            return Plan("initialization", (INITIALIZATION, ()), (INITIALIZATION, ()))
        if draw < self.mutation:
            return Plan("mutation", mutated(state.destroys, rng), mutated(state.repairs, rng))
        if draw < self.mutation + self.crossover:
            return Plan("crossover", crossed(state.destroys, rng), crossed(state.repairs, rng))
        destroy, repair = json.loads(state.note)
        return Plan(
            "joint",
            (REPLACE, (_named(state.destroys, destroy),)),
            (REPLACE, (_named(state.repairs, repair),)),
        )

    def judge(
        self, destroys: Population, repairs: Population, scores: Scores, rng: random.Random
    ) -> "Tally":
        """The scores of operators and pairs in an epoch's adaptive runs on their payoffs."""
        tally = Tally(
            {member.program.digest: 0.0 for member in destroys},
            {member.program.digest: 0.0 for member in repairs},
        )
        pairs = [(d, r) for d in tally.destroys for r in tally.repairs if (d, r) in scores]
        if not pairs:
            return tally
        for _ in range(self.generations):
            for instance in range(len(scores[pairs[0]])):
                value = {pair: scores[pair][instance] for pair in pairs}
                adaptive_run(value, self.iterations, rng, tally)
        return tally


# --- the scores of operators ----------------------------------------------------------------------


@dataclass
class Tally:
    """Sums of scores by digest, of every destroy and repair and of the pairs that were drawn."""

    destroys: dict[str, float]
    repairs: dict[str, float]
    pairs: dict[Digests, float] = field(default_factory=dict)


def adaptive_run(
    value: Mapping[Digests, float], iterations: int, rng: random.Random, tally: Tally
) -> None:
    """One run: draws by weights, whose scores are added to `tally`.

    value: what a draw of the pair is worth; a pair without one fails.
    """
    destroys, repairs = dict.fromkeys(tally.destroys, 1.0), dict.fromkeys(tally.repairs, 1.0)
    best = current = -math.inf
    for _ in range(iterations):
        [d] = rng.choices(list(destroys), list(destroys.values()))
        [r] = rng.choices(list(repairs), list(repairs.values()))
        found = value.get((d, r))
        if found is None:
            score = FAILED
        else:
            score = NEW_BEST if found > best else IMPROVED if found > current else ACCEPTED
            best, current = max(best, found), found
        destroys[d] = KEPT * destroys[d] + (1 - KEPT) * score
        repairs[r] = KEPT * repairs[r] + (1 - KEPT) * score
        tally.destroys[d] += score
        tally.repairs[r] += score
        tally.pairs[d, r] = tally.pairs.get((d, r), 0.0) + score


def best_together(
    destroys: Population, repairs: Population, pairs: Mapping[Digests, float]
) -> tuple[str, ...]:
    """Digests of the two survivors with the highest score as a pair; without one, the best two."""
    left = [(d.program.digest, r.program.digest) for d in destroys for r in repairs]
    return max(left, key=lambda pair: pairs.get(pair, 0.0), default=())


# --- requests for new operators -------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """A new destroy and a new repair: the operator that creates them, and the request for each."""

    operator: str
    destroy: Request
    repair: Request


def mutated(population: Population, rng: random.Random) -> Request:
    """One parent, drawn uniformly; the form depends on its rank. The best comes first."""
    place = rng.randrange(len(population))
    either = rng.choice((REPLACE, REDESIGN))
    form = REDESIGN if place == 0 else REPLACE if place == len(population) - 1 else either
    return form, (population[place].program,)


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
    return SHARE, tuple(drawn)


def _prompt(parts: Parts, role: Role, request: Request, destroy: Program | None = None) -> Prompt:
    return parts.prompts.fitted(role, *request, destroy)


def _answered(
    plan: Plan, own: Answers, leaders: Sequence[Answers], survivors: Population
) -> Program | None:
    """The destroy that a plan's repair answers; None where there is none at all."""
    [new] = own.programs
    others = [*(member.program for member in survivors), *distinct(leaders)]
    best = others[0] if others else None
    return new or best if plan.operator in ("initialization", "joint") else best


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


def _play(
    parts: Parts, k: int, destroys: Population, repairs: Population, table: Table
) -> tuple[Individual, ...]:
    """Evaluate the pairs that no round has evaluated; return the valid ones."""
    missing = table.missing([Pair(d.program, r.program) for d in destroys for r in repairs])
    look, count = parts.observer, len(missing)
    look.stage(k, "cross-play", count)
    table.play(missing, "response", lambda done, total: look.advance(count * done // total))
    values = [(pair, table.utility(pair.destroy, pair.repair)) for pair in missing]
    return tuple(
        Individual(pair, value, k, "cross-play", scores=scores_of(pair, table))
        for pair, value in values
        if not math.isnan(value)
    )


def _counts(
    leaders: Sequence[Answers],
    followers: Sequence[Answers],
    new: Sequence[Individual],
    scores: Scores,
    table: Table,
) -> Counts:
    """A repair answer is valid if its program is valid with any destroy."""
    valid = {repair for _, repair in scores}
    programs = [program for answers in followers for program in answers.programs]
    return counts_of(
        leaders,
        followers,
        table,
        destroys=len(distinct(leaders)),
        repairs=len(distinct(followers)),
        valid_repairs=sum(each is not None and each.digest in valid for each in programs),
        utilities=[each.utility for each in new],
    )

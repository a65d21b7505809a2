"""What the baselines share: their individuals are pairs, generated in two steps.

A generator answers for one role at a time. The destroy of a pair is generated first, then its
repair, in a prompt that shows the destroy and has the same form and parents. A pair costs two
answers; one whose destroy is refused counts against the budget, as if one answer held both.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from spo_jax.program import Pair, Program, Prompt, Role
from spo_jax.search.parts import Parts
from spo_jax.search.payoffs import Table, better
from spo_jax.search.population import Member, Population
from spo_jax.search.rounds import Answers, Counts, Failure, Individual, Round, State
from spo_jax.search.sampling.sample import counts_of, distinct, play_responses, sample, written
from spo_jax.search.writing.languages import LANGUAGES

NOTHING: dict[str, float] = {}


@dataclass(frozen=True)
class Request:
    """The context of new pairs.

    Attributes:
        form: Of the prompts for both programs; without parents it is the first one of its language.
        parents: Pairs whose programs are shown.
        operator: Recorded with the individuals.
        place: Likewise.
        reflection: For the forms that show one.
        warmer: What is added to the temperature of sampling.
    """

    form: str
    parents: tuple[Pair, ...] = ()
    operator: str = ""
    place: int = 0
    reflection: str = ""
    warmer: float = 0.0


def describe_operators(prose: bool) -> str:
    """What a method says of its operators, for the sentence that names it.

    Args:
        prose: Whether it asks in its own language, of a generator that writes prose.
    """
    if prose:
        return "asks in its own language"
    return (
        "asks by SPO's nearest prompt forms, so it compares rules of selection with one specialist "
        "as writer"
    )


@dataclass(frozen=True, eq=False)
class Offspring:
    """The result of some requests.

    Attributes:
        individuals: The valid pairs, in the order of the requests.
        destroys: The answers with destroy programs.
        repairs: The answers with repair programs.
        failures: What was refused or failed.
    """

    individuals: tuple[Individual, ...]
    destroys: tuple[Answers, ...]
    repairs: tuple[Answers, ...]
    failures: tuple[Failure, ...]


@dataclass(frozen=True)
class Budget:
    """How many pairs each round has.

    Attributes:
        total: Pairs of all rounds.
        first: Pairs of round 1.
        each: Pairs of every later round.
    """

    total: int
    first: int
    each: int

    @property
    def rounds(self) -> int:
        """How many rounds the pairs make, at least 1."""
        return 1 + math.ceil(max(self.total - self.first, 0) / self.each)

    def before(self, k: int) -> int:
        """The number of pairs of the rounds before k."""
        return min(self.total, self.first + (k - 2) * self.each) if k > 1 else 0

    def of(self, k: int) -> int:
        """The number of pairs of round k; the last one has what is left."""
        return self.before(k + 1) - self.before(k)


def generate(
    parts: Parts,
    k: int,
    table: Table,
    requests: Sequence[Request],
    *,
    n: int = 1,
    stream: Sequence[str] = (),
) -> Offspring:
    """Sample pairs for requests, check them by the gate, and evaluate them.

    Args:
        parts: The run's.
        k: The number of the round.
        table: The payoff that pairs are evaluated in.
        requests: What to ask for.
        n: Pairs for each request.
        stream: Names the random stream, for a round that calls this more than once.

    Returns:
        The valid pairs and all answers.
    """
    prompts = [_prompt(parts, "destroy", request) for request in requests]
    trial = table.first_instance
    destroys, failures = sample(parts, k, prompts, n=n, stream=stream, trial=trial)
    asked = [
        (request, destroy)
        for request, answers in zip(requests, destroys, strict=True)
        for destroy in answers.programs
        if destroy is not None
    ]
    prompts = [_prompt(parts, "repair", request, destroy) for request, destroy in asked]
    play = partial(play_responses, table)
    repairs, refused = sample(parts, k, prompts, play, n=1, stream=stream, trial=trial)
    pairs = [
        _individual(Pair(destroy, repair), request, k, table)
        for (request, destroy), answers in zip(asked, repairs, strict=True)
        for repair in answers.programs
        if repair is not None
    ]
    valid = tuple(each for each in pairs if not math.isnan(each.utility))
    return Offspring(valid, tuple(destroys), tuple(repairs), (*failures, *refused))


def _prompt(parts: Parts, role: Role, request: Request, destroy: Program | None = None) -> Prompt:
    halves = tuple(_half(pair, role) for pair in request.parents)
    language = LANGUAGES[parts.prompts.templates.form(request.form).language]
    form = request.form if halves else language.first
    prompt = parts.prompts.fitted(role, form, halves, destroy, request.reflection)
    return replace(prompt, warmer=request.warmer)


def _half(pair: Pair, role: Role) -> Program:
    return pair.destroy if role == "destroy" else pair.repair


def _individual(pair: Pair, request: Request, k: int, table: Table) -> Individual:
    value = table.utility(pair.destroy, pair.repair)
    return Individual(pair, value, k, request.operator, request.place, scores_of(pair, table))


def scores_of(pair: Pair, table: Table) -> tuple[float, ...]:
    """The utility of a pair on each training instance, [I]."""
    return tuple(map(float, table.scores(pair.destroy, pair.repair).mean(axis=1)))


def best_of(individuals: Sequence[Individual]) -> Individual | None:
    """The individual with the highest J; of equals, the oldest.

    Returns:
        None if there are no individuals.
    """
    return max(individuals, key=lambda each: each.utility, default=None)


# --- the record -----------------------------------------------------------------------------------


def record(
    parts: Parts,
    k: int,
    state: State,
    table: Table,
    offspring: Sequence[Offspring],
    populations: tuple[Population, Population],
    *,
    note: str = "",
    metrics: dict[str, float] = NOTHING,
    counts: Counts | None = None,
    seeds: Sequence[Individual] = (),
) -> Round:
    """The record of round k, which created `offspring` and ended with `populations`.

    Args:
        parts: The run's.
        k: The number of the round.
        state: What the round before left.
        table: The payoff that pairs were evaluated in.
        offspring: What `generate` returned, call by call.
        populations: The destroys and the repairs.
        note: What the method keeps of the round for the next ones; see `Round`.
        metrics: Numbers of the round by name, besides those of all methods.
        counts: By default of pairs that are valid themselves.
        seeds: Pairs that nobody sampled, such as what the run began with.
    """
    born = [each for batch in offspring for each in batch.individuals]
    new = [*seeds, *born]
    destroys = [answers for batch in offspring for answers in batch.destroys]
    repairs = [answers for batch in offspring for answers in batch.repairs]
    failures = [failure for batch in offspring for failure in batch.failures]
    halves = [program for each in new for program in (each.pair.destroy, each.pair.repair)]
    return Round(
        number=k,
        programs=tuple(dict.fromkeys((*distinct(destroys), *distinct(repairs), *halves))),
        pairs=tuple(table.played),
        failures=(*failures, *table.failures()),
        destroys=populations[0],
        repairs=populations[1],
        best=better(state.best, [each.pair for each in new], table, k),
        counts=counts or _counts(destroys, repairs, born, table),
        metrics=written(destroys, parts.config) | written(repairs, parts.config) | metrics,
        individuals=tuple(new),
        note=note,
        answers=(*destroys, *repairs),
    )


def members(population: Sequence[Individual]) -> tuple[Population, Population]:
    """The destroys and the repairs of some pairs; both programs of a pair have its rank."""
    destroys = [Member(each.pair.destroy, each.utility, each.round) for each in population]
    repairs = [Member(each.pair.repair, each.utility, each.round) for each in population]
    return tuple(destroys), tuple(repairs)


def _counts(
    destroys: Sequence[Answers],
    repairs: Sequence[Answers],
    new: Sequence[Individual],
    table: Table,
) -> Counts:
    """new: the valid pairs."""
    answered = {
        (answers.prompt.destroy.digest, program.digest)
        for answers in repairs
        for program in answers.programs
        if program is not None and answers.prompt.destroy is not None
    }
    values = list({each.pair.digest: each.utility for each in new}.values())
    return counts_of(
        destroys,
        repairs,
        table,
        destroys=len(distinct(destroys)),
        repairs=len(answered),
        valid_repairs=len(new),
        utilities=values,
    )

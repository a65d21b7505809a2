"""From a population to new programs: generation contexts, sampling, reading and gating.

Contexts follow Appendix D: a form and as many parents as it needs, drawn from the population.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import cast

from spo_jax.config import Config
from spo_jax.envs.rollouts import Status
from spo_jax.errors import InputError, Rejection
from spo_jax.program import Completion, Program, Prompt, Role, parse_response
from spo_jax.search.population import Population
from spo_jax.search.prompts import (
    CROSSOVERS,
    INITIALIZATION,
    MUTATIONS,
    ShowDestroy,
    parents_of,
    render,
)
from spo_jax.search.rounds import UNPARSABLE, Failure, Generator

Gate = Callable[[Sequence[Program]], Sequence[str | None]]


@dataclass(frozen=True, eq=False)
class Answers:
    """The samples of one context. programs: one a completion, None where it was refused."""

    prompt: Prompt
    completions: tuple[Completion, ...]
    programs: tuple[Program | None, ...]


# --- contexts -------------------------------------------------------------------------------------


def contexts(
    config: Config,
    problem: str,
    role: Role,
    population: Population,
    rng: random.Random,
    *,
    groups: int,
    first: int = 0,
    destroy: Program | None = None,
) -> list[Prompt]:
    """`groups` prompts for one role: the mutation and crossover forms in turn, from the `first` on.

    A form with too few eligible parents in the population becomes parent-free (Appendix A.5), as
    all of them do in the first round. `destroy` is the program that repairs are to answer.
    """
    prompts = []
    for form in islice(cycle(_forms(config)), first, first + groups):
        parents = draw_parents(population, parents_of(form), config.parents, rng)
        prompts.append(
            render(
                problem,
                role,
                form if parents else INITIALIZATION,
                parents,
                destroy,
                state=config.state,
                show_destroy=cast(ShowDestroy, config.show_destroy),
                folder=config.prompts,
            )
        )
    return prompts


def _forms(config: Config) -> list[str]:
    """One role's forms: mutations, then crossovers (Table 3)."""
    mutations = islice(cycle(MUTATIONS), config.mutation_groups)
    crossovers = islice(cycle(CROSSOVERS), config.crossover_groups)
    return [*mutations, *crossovers]


def draw_parents(
    population: Population, needed: int, how: str, rng: random.Random
) -> tuple[Program, ...]:
    """`needed` parents with different sources, or none if there are not as many.

    how: "uniform", or "rank" with weights 1, 1/2, 1/3, ... from the best score down.
    """
    pool = sorted(population, key=lambda member: (-member.score, member.program.digest))
    weights = {id(m): 1.0 if how == "uniform" else 1 / (k + 1) for k, m in enumerate(pool)}
    parents: list[Program] = []
    while pool and len(parents) < needed:
        parent = rng.choices(pool, [weights[id(member)] for member in pool])[0].program
        parents.append(parent)
        pool = [member for member in pool if member.program.digest != parent.digest]
    return tuple(parents) if len(parents) == needed else ()


# --- answers --------------------------------------------------------------------------------------


def ask(
    generator: Generator, gate: Gate, prompts: Sequence[Prompt], n: int, seed: int
) -> tuple[list[Answers], list[Failure]]:
    """Sample `n` answers to each prompt, read the programs in them and pass them by the gate.

    Returns one Answers for each prompt, and a Failure for every answer that was refused.
    Raises InputError for a generator that does not return `n` answers to each prompt.
    """
    if not prompts:
        return [], []
    sampled = generator.generate(prompts, n, seed)
    if len(sampled) != len(prompts) or any(len(group) != n for group in sampled):
        raise InputError(
            f"the generator answered {len(prompts)} prompts with "
            f"{[len(group) for group in sampled]} answers; it must give {n} to each"
        )
    failures: list[Failure] = []
    parsed = [
        [_read(prompt, completion, failures) for completion in group]
        for prompt, group in zip(prompts, sampled, strict=True)
    ]
    distinct = {p.digest: p for programs in parsed for p in programs if p is not None}
    verdicts = dict(zip(distinct, gate(list(distinct.values())), strict=True))
    answers = []
    for prompt, completions, programs in zip(prompts, sampled, parsed, strict=True):
        for completion, program in zip(completions, programs, strict=True):
            reason = verdicts[program.digest] if program is not None else None
            if program is not None and reason is not None:
                failures.append(_rejected(program, reason, completion))
        passed = tuple(
            program if program is not None and verdicts[program.digest] is None else None
            for program in programs
        )
        answers.append(Answers(prompt, tuple(completions), passed))
    return answers, failures


def _read(prompt: Prompt, completion: Completion, failures: list[Failure]) -> Program | None:
    """The program in one answer; a refusal goes to `failures`."""
    try:
        return parse_response(
            prompt.role,
            completion.text,
            parents=tuple(parent.digest for parent in prompt.parents),
            form=prompt.form,
            condition=prompt.destroy.strategy_digest if prompt.destroy else "",
            derivation=completion.derivation,
        )
    except Rejection as error:
        failures.append(Failure(prompt.role, UNPARSABLE, error.reason, text=completion.text))
        return None


def _rejected(program: Program, reason: str, completion: Completion) -> Failure:
    return Failure(
        program.role,
        Status.REJECTED.label,
        reason,
        destroy=program.digest if program.role == "destroy" else "",
        repair=program.digest if program.role == "repair" else "",
        text=completion.text,
    )


def distinct(answers: Sequence[Answers]) -> tuple[Program, ...]:
    """The programs in some answers, each source once, in the order of generation."""
    found: dict[str, Program] = {}
    for group in answers:
        for program in group.programs:
            if program is not None:
                found.setdefault(program.digest, program)
    return tuple(found.values())

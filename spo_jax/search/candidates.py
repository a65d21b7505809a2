"""From a population to new programs: generation contexts, sampling, reading and gating.

Contexts follow Appendix D: a form and as many parents as it needs, drawn from the population.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import cast

from spo_jax.config import Config
from spo_jax.envs.run.rollouts import Refusal, Status
from spo_jax.errors import InputError, Rejection
from spo_jax.program import Completion, Program, Prompt, Role, Usage, parse_response
from spo_jax.search.beside import ahead
from spo_jax.search.population import Population
from spo_jax.search.rounds import UNPARSABLE, Failure, Generator
from spo_jax.search.writing.prompts import (
    CROSSOVERS,
    INITIALIZATION,
    MUTATIONS,
    ShowDestroy,
    parents_of,
    render,
)

Gate = Callable[[Sequence[Program]], Sequence[Refusal | None]]
Fits = Callable[[str], bool]


@dataclass(frozen=True, eq=False)
class Answers:
    """The samples of one context.

    programs: one a completion, None where it was refused. unjudged: the places of those that were
    not refused, but lost by a fault of our side.
    """

    prompt: Prompt
    completions: tuple[Completion, ...]
    programs: tuple[Program | None, ...]
    unjudged: frozenset[int] = frozenset()


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
    fits: Fits = lambda text: True,
    texts: Mapping[str, str] | None = None,
) -> list[Prompt]:
    """`groups` prompts for one role: the mutation and crossover forms in turn, from the `first` on.

    A form with too few eligible parents in the population becomes parent-free (Appendix A.5), as
    all of them do in the first round. `destroy` is the program that repairs are to answer. A prompt
    that does not fit shows less, see `fitted`. texts: the run's prompt templates.
    """
    prompts = []
    for form in islice(cycle(_forms(config)), first, first + groups):
        parents = draw_parents(population, parents_of(form), config.parents, rng)
        prompts.append(fitted(config, problem, role, form, parents, destroy, fits, texts=texts))
    return prompts


def fitted(
    config: Config,
    problem: str,
    role: Role,
    form: str,
    parents: tuple[Program, ...],
    destroy: Program | None,
    fits: Fits,
    reflection: str = "",
    texts: Mapping[str, str] | None = None,
) -> Prompt:
    """The first of these that fits, else the last: everything; parents without their sources; no
    parents; and the destroy program without its source.

    reflection: for the forms that show one. texts: the run's prompt templates.
    """
    wanted = cast(ShowDestroy, config.show_destroy)
    tries: list[tuple[str, tuple[Program, ...], ShowDestroy, ShowDestroy]] = [
        ("", parents, "both", wanted)
    ]
    if parents:
        tries += [("sources", parents, "strategy", wanted), ("parents", (), "both", wanted)]
    if destroy and wanted != "strategy":
        tries += [("all", (), "both", "strategy")]
    for shortened, shown, show_parents, show_destroy in tries:
        prompt = render(
            problem,
            role,
            form if shown else INITIALIZATION,
            shown,
            destroy,
            state=config.state,
            show_destroy=show_destroy,
            show_parents=show_parents,
            reflection=reflection,
            texts=texts,
        )
        prompt = replace(prompt, shortened=shortened)
        if fits(prompt.text):
            break
    return prompt


def shortage(prompts: Sequence[Prompt]) -> str:
    """A sentence on prompts that had to leave something out; an empty one where none had."""
    short = Counter(prompt.shortened for prompt in prompts if prompt.shortened)
    if not short:
        return ""
    words = {
        "sources": "show their parents' strategies alone",
        "parents": "no parents",
        "all": "no parents and only the strategy of their destroy",
    }
    left = ", ".join(f"{short[name]} {text}" for name, text in words.items() if short[name])
    return (
        f"{sum(short.values())} of {len(prompts)} {prompts[0].role} prompts are too long for the "
        f"context: {left}"
    )


def _forms(config: Config) -> list[str]:
    """One role's forms: mutations, then crossovers (Table 3)."""
    mutations = islice(cycle(MUTATIONS), config.mutation_groups)
    crossovers = islice(cycle(CROSSOVERS), config.crossover_groups)
    return [*mutations, *crossovers]


def draw_parents(
    population: Population, needed: int, how: str, rng: random.Random
) -> tuple[Program, ...]:
    """`needed` parents with different sources, or none if there are not as many.

    how: "uniform", "rank" with weights 1, 1/2, 1/3, ... from the best score down, or "none".
    """
    if how == "none":
        return ()
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
    generator: Generator,
    gate: Gate,
    prompts: Sequence[Prompt],
    n: int,
    seed: int,
    *,
    then: Callable[[list[Answers]], None] = lambda new: None,
    around: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> tuple[list[Answers], list[Failure]]:
    """Sample `n` answers to each prompt, read the programs in them and pass them by the gate.

    Returns one Answers for each prompt, and a Failure for every answer that was refused. `then` is
    called with the answers in the parts that the generator makes, while it makes the next one;
    `around` wraps the making of each.
    Raises InputError for a generator that does not return `n` answers to each prompt.
    """
    answers: dict[int, Answers] = {}
    failures: list[Failure] = []
    verdicts: dict[str, Refusal | None] = {}
    with closing(ahead(_parts(generator, prompts, n, seed), around)) as parts:
        for part in parts:
            if not part:
                continue
            new, refused = _gated(gate, prompts, part, verdicts)
            answers |= new
            failures += refused
            then(list(new.values()))
    return [answers[place] for place in range(len(prompts))], failures


def complete(
    generator: Generator, prompts: Sequence[Prompt], n: int, seed: int
) -> list[tuple[Completion, ...]]:
    """`n` completions of each prompt, whatever they say. Raises InputError as `ask` does."""
    found: dict[int, tuple[Completion, ...]] = {}
    for part in _parts(generator, prompts, n, seed):
        found |= part
    return [found[place] for place in range(len(prompts))]


def _parts(
    generator: Generator, prompts: Sequence[Prompt], n: int, seed: int
) -> Iterator[Mapping[int, tuple[Completion, ...]]]:
    """The completions by their prompts' places, in one part unless the generator streams them."""
    if not prompts:
        return
    stream = getattr(generator, "stream", None)
    given: dict[int, int] = {}
    for part in (
        stream(prompts, n, seed) if stream is not None else _whole(generator, prompts, n, seed)
    ):
        _require_completions(part)
        given |= {place: len(group) for place, group in part.items()}
        if not (set(given.values()) <= {n} and given.keys() <= set(range(len(prompts)))):
            break
        yield part
    if given != dict.fromkeys(range(len(prompts)), n):
        raise InputError(
            f"the generator answered {len(prompts)} prompts with "
            f"{[given[place] for place in sorted(given)]} answers; it must give {n} to each"
        )


def _whole(
    generator: Generator, prompts: Sequence[Prompt], n: int, seed: int
) -> Iterator[Mapping[int, tuple[Completion, ...]]]:
    """What `generate` returns, as a stream of one part."""
    found = generator.generate(prompts, n, seed)
    if not isinstance(found, Sequence):
        raise InputError(
            f"the generator returned {found!r:.80}; {_DUE}, in a list in the order of the prompts"
        )
    yield dict(enumerate(found))


_DUE = "its answers to a prompt must be a tuple of spo_jax.program.Completion"


def _require_completions(part: object) -> None:
    """Raises InputError unless a part is completions by the places of their prompts."""
    if not isinstance(part, Mapping):
        raise InputError(f"the generator's stream gave {part!r:.80}; it must give a dict: {_DUE}")
    for group in part.values():
        if not isinstance(group, Sequence) or isinstance(group, str):
            raise InputError(f"the generator answered with {group!r:.80}; {_DUE}")
        for each in group:
            if not isinstance(each, Completion) or not isinstance(each.text, str):
                raise InputError(f"the generator answered with {each!r:.80}; {_DUE}")


def _gated(
    gate: Gate,
    prompts: Sequence[Prompt],
    part: Mapping[int, tuple[Completion, ...]],
    verdicts: dict[str, Refusal | None],
) -> tuple[dict[int, Answers], list[Failure]]:
    """A part as answers, and its refusals; what the gate says of programs goes to `verdicts`."""
    failures: list[Failure] = []
    parsed = {
        place: [_read(prompts[place], completion, failures) for completion in group]
        for place, group in part.items()
    }
    met = {p.digest: p for programs in parsed.values() for p in programs if p is not None}
    new = [program for digest, program in met.items() if digest not in verdicts]
    verdicts |= zip((p.digest for p in new), gate(new), strict=True)
    answers = {}
    for place, programs in parsed.items():
        passed: list[Program | None] = []
        unjudged = set()
        for i, (completion, program) in enumerate(zip(part[place], programs, strict=True)):
            refusal = verdicts[program.digest] if program is not None else None
            if program is not None and refusal is not None:
                failures.append(_refused(program, refusal, completion))
                if refusal.status == Status.HOST_FAULT:
                    unjudged.add(i)
            passed.append(program if refusal is None else None)
        answers[place] = Answers(
            prompts[place], tuple(part[place]), tuple(passed), frozenset(unjudged)
        )
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


def _refused(program: Program, refusal: Refusal, completion: Completion) -> Failure:
    return Failure(
        program.role,
        refusal.status.label,
        refusal.reason,
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


def written(answers: Sequence[Answers], config: Config, what: str = "") -> dict[str, float]:
    """What a language model wrote for a role, for the record; nothing of another generator.

    what: the record's name for it, by default the role. The numbers:
    tokens: of all answers. cut: answers that ended at `max_new_tokens`, most likely unfinished.
    shortened: prompts that had to leave something out. Of an endpoint also prompt_tokens, cost (at
    the config's prices), lost (answers that could not be had) and uncounted (answers whose tokens
    it did not count).
    """
    completions = [completion for group in answers for completion in group.completions]
    lengths = [len(completion.tokens) for completion in completions]
    usages = [completion.usage for completion in completions if completion.usage is not None]
    if usages:
        numbers = _charged(usages, config)
    elif any(lengths):
        cut = sum(
            length >= config.max_new_tokens if each.finished is None else not each.finished
            for each, length in zip(completions, lengths, strict=True)
        )
        numbers = {"tokens": sum(lengths), "cut": cut}
    else:
        return {}
    numbers["shortened"] = sum(bool(group.prompt.shortened) for group in answers)
    what = what or answers[0].prompt.role
    return {f"{what}/{name}": float(value) for name, value in numbers.items()}


def _charged(usages: Sequence[Usage], config: Config) -> dict[str, float]:
    prompt = sum(usage.prompt_tokens or 0 for usage in usages)
    completion = sum(usage.completion_tokens or 0 for usage in usages)
    uncounted = sum(not u.lost and None in (u.prompt_tokens, u.completion_tokens) for u in usages)
    return {
        "tokens": completion,
        "prompt_tokens": prompt,
        "cost": (prompt * config.prompt_price + completion * config.completion_price) / 1e6,
        "cut": sum(usage.cut for usage in usages),
        "lost": sum(usage.lost for usage in usages),
        "uncounted": uncounted,
    }

"""Answers: sampling them, reading the programs in them, and passing these by the gate."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from statistics import median

from spo_jax.config import Settings
from spo_jax.envs.run.evaluator import Progress
from spo_jax.envs.run.rollouts import Refusal, Status
from spo_jax.errors import InputError, Rejection
from spo_jax.generator import Generator
from spo_jax.program import Completion, Pair, Program, Prompt, Usage, parse_answer
from spo_jax.search.beside import ahead
from spo_jax.search.contexts import shortage
from spo_jax.search.parts import Parts
from spo_jax.search.payoffs import Table
from spo_jax.search.rounds import UNPARSABLE, Answers, Counts, Failure
from spo_jax.seeding import derive

Gate = Callable[[Sequence[Program]], Sequence[Refusal | None]]


def sample(
    parts: Parts,
    k: int,
    prompts: Sequence[Prompt],
    play: Callable[[Sequence[Answers], Progress], None] = lambda new, progress: None,
    *,
    n: int | None = None,
    stream: Sequence[str] = (),
) -> tuple[list[Answers], list[Failure]]:
    """The answers to the prompts of one role, parsed and checked by the gate.

    Returns one Answers per prompt, and a Failure for every answer that was refused. play: called
    with the answers in the parts that the generator makes, while it makes the next one. n: answers
    to each prompt, by default `responses`. stream: names the random stream besides round and role,
    for a round that samples one role more than once.
    Raises InputError for a generator that does not return `n` answers to each prompt.
    """
    if not prompts:
        return [], []
    config, look, role = parts.config, parts.observer, prompts[0].role
    n = config.search.responses if n is None else n
    if short := shortage(prompts):
        look.remark(f"round {k}: {short}")
    look.stage(k, role, len(prompts) * n)
    seed = derive(config.seed, "round", k, "answers", role, *stream)
    answers: dict[int, Answers] = {}
    failures: list[Failure] = []
    verdicts: dict[str, Refusal | None] = {}

    def played(done: int, total: int) -> None:
        look.advance(n * len(answers) + n * len(new) * done // total)

    streamed = _streamed(parts.generator, prompts, n, seed)
    with closing(ahead(streamed, partial(look.working, "sampling"))) as found:
        for part in found:
            if not part:
                continue
            new, refused = _gated(parts.evaluator.check, prompts, part, verdicts)
            failures += refused
            play(list(new.values()), played)
            answers |= new
            look.advance(n * len(answers))
    return [answers[place] for place in range(len(prompts))], failures


def play_responses(table: Table, new: Sequence[Answers], progress: Progress) -> None:
    """Evaluate every repair in some answers with the destroy that it answers."""
    pairs = [
        Pair(answers.prompt.destroy, repair)
        for answers in new
        for repair in answers.programs
        if answers.prompt.destroy is not None and repair is not None
    ]
    table.play(pairs, "response", progress)


def complete(
    generator: Generator, prompts: Sequence[Prompt], n: int, seed: int
) -> list[tuple[Completion, ...]]:
    """`n` completions of each prompt, whatever they say. Raises InputError as `sample` does."""
    found: dict[int, tuple[Completion, ...]] = {}
    for part in _streamed(generator, prompts, n, seed):
        found |= part
    return [found[place] for place in range(len(prompts))]


def _streamed(
    generator: Generator, prompts: Sequence[Prompt], n: int, seed: int
) -> Iterator[Mapping[int, tuple[Completion, ...]]]:
    """The completions by their prompts' places, in one part unless the generator streams them."""
    if not prompts:
        return
    given: dict[int, int] = {}
    for part in generator.stream(prompts, n, seed):
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
    every = {p.digest: p for programs in parsed.values() for p in programs if p is not None}
    new = [program for digest, program in every.items() if digest not in verdicts]
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
        return parse_answer(
            prompt.answer,
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


def counts_of(
    leaders: Sequence[Answers],
    followers: Sequence[Answers],
    table: Table,
    *,
    destroys: int,
    repairs: int,
    valid_repairs: int,
    utilities: Sequence[float],
) -> Counts:
    """A round in numbers, see `Counts`. leaders, followers: the answers of each role.

    utilities: finite, of the round's new pairs.
    """
    return Counts(
        destroy_answers=sum(len(answers.completions) for answers in leaders),
        destroys=destroys,
        valid_destroys=sum(program is not None for each in leaders for program in each.programs),
        repair_answers=sum(len(answers.completions) for answers in followers),
        repairs=repairs,
        valid_repairs=valid_repairs,
        pairs=table.evaluated,
        reused=table.reused,
        top=max(utilities, default=None),
        median=median(utilities) if utilities else None,
    )


def written(answers: Sequence[Answers], config: Settings, what: str = "") -> dict[str, float]:
    """Metrics of what a language model wrote for a role; none for other generators.

    what: the prefix of their names, by default the role. The numbers:
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
            length >= config.generator.max_new_tokens
            if each.finished is None
            else not each.finished
            for each, length in zip(completions, lengths, strict=True)
        )
        numbers = {"tokens": sum(lengths), "cut": cut}
    else:
        return {}
    numbers["shortened"] = sum(bool(group.prompt.shortened) for group in answers)
    what = what or answers[0].prompt.role
    return {f"{what}/{name}": float(value) for name, value in numbers.items()}


def _charged(usages: Sequence[Usage], config: Settings) -> dict[str, float]:
    prompt = sum(usage.prompt_tokens or 0 for usage in usages)
    completion = sum(usage.completion_tokens or 0 for usage in usages)
    uncounted = sum(not u.lost and None in (u.prompt_tokens, u.completion_tokens) for u in usages)
    return {
        "tokens": completion,
        "prompt_tokens": prompt,
        "cost": (
            prompt * config.endpoint.prompt_price + completion * config.endpoint.completion_price
        )
        / 1e6,
        "cut": sum(usage.cut for usage in usages),
        "lost": sum(usage.lost for usage in usages),
        "uncounted": uncounted,
    }

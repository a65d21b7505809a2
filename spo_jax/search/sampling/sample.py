"""Answers: sampling them, part by part, with what reads, gates and mends them; their numbers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from itertools import islice
from statistics import median
from threading import Lock

from spo_jax.config import Settings
from spo_jax.envs.problem import Instance
from spo_jax.envs.run.evaluator import Progress
from spo_jax.envs.run.rollouts import Refusal
from spo_jax.errors import InputError
from spo_jax.generator import Generator
from spo_jax.program import Completion, Pair, Program, Prompt, Usage
from spo_jax.search.parts import Parts
from spo_jax.search.payoffs import Table
from spo_jax.search.rounds import Answers, Counts, Failure, State
from spo_jax.search.sampling.gating import gated
from spo_jax.search.sampling.mending import Mending
from spo_jax.search.sampling.mends import COPY
from spo_jax.search.sampling.prefetch import ahead
from spo_jax.search.writing.contexts import shortage
from spo_jax.seeding import derive

Part = Mapping[int, tuple[Completion, ...]]
Alone = AbstractContextManager[object]  # held while the generator is asked


def sample(
    parts: Parts,
    k: int,
    prompts: Sequence[Prompt],
    play: Callable[[Sequence[Answers], Progress], None] = lambda new, progress: None,
    *,
    n: int | None = None,
    stream: Sequence[str] = (),
    trial: Instance | None = None,
    mend: bool = True,
) -> tuple[list[Answers], list[Failure]]:
    """The answers to the prompts of one role, parsed, checked by the gate, and mended.

    Returns one Answers per prompt, and a Failure for every answer that was refused. play: called
    with the answers in the parts that the generator makes, while it makes the next one. n: answers
    to each prompt, by default `responses`. stream: names the random stream besides round and role,
    for a round that samples one role more than once. trial: the instance on which programs are
    tried, where answers are mended; without one they are not tried. mend: False leaves all answers
    as they are, whatever the settings say.
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

    alone: Alone = nullcontext()
    mending = None
    if mend and config.generator.mend and parts.generator.writes_prose:
        alone = Lock()  # a generator need not be able to answer two calls at the same time
        names = (config.seed, "round", k, "mends", role, *stream)
        ask = partial(_asked, parts, alone)
        mending = Mending(parts, prompts, names, trial, ask, verdicts)
    streamed = _alone(_streamed(parts.generator, prompts, n, seed), alone)
    with closing(ahead(streamed, partial(look.working, "sampling"))) as found:
        for part in found:
            if not part:
                continue
            new, refused = gated(parts.evaluator.check, prompts, part, verdicts)
            failures += [fault.failure for fault in refused]
            if mending is not None:
                new, more = mending.mend(new, refused)
                failures += more
            play(list(new.values()), played)
            answers |= new
            look.advance(n * len(answers))
    return [answers[place] for place in range(len(prompts))], failures


def sample_rows(
    parts: Parts, k: int, rows: Sequence[Sequence[Prompt]], table: Table
) -> tuple[list[list[Answers]], list[Failure]]:
    """As `sample`, with prompts and answers in rows; repairs are played with what they answer."""
    prompts = [prompt for row in rows for prompt in row]
    play = partial(play_responses, table)
    answers, failures = sample(parts, k, prompts, play, trial=table.first_instance)
    left = iter(answers)
    return [list(islice(left, len(row))) for row in rows], failures


def _asked(parts: Parts, alone: Alone, prompts: Sequence[Prompt], seed: int) -> list[Completion]:
    """One completion of each prompt, between two parts of what is being sampled."""
    with parts.observer.working("mending"), alone:
        return [group[0] for group in complete(parts.generator, prompts, 1, seed)]


def _alone(items: Iterator[Part], alone: Alone) -> Iterator[Part]:
    """The items; each is made while `alone` is held."""
    while True:
        with alone:
            item = next(items, None)
        if item is None:
            return
        yield item


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


def _streamed(generator: Generator, prompts: Sequence[Prompt], n: int, seed: int) -> Iterator[Part]:
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


def distinct(answers: Sequence[Answers]) -> tuple[Program, ...]:
    """The programs in some answers, each source once, in the order of generation."""
    found: dict[str, Program] = {}
    for group in answers:
        for program in group.programs:
            if program is not None:
                found.setdefault(program.digest, program)
    return tuple(found.values())


def fresh(answers: Sequence[Answers], state: State, config: Settings) -> tuple[Program, ...]:
    """As `distinct`; with deduplicate = "run", no destroy that an earlier round played."""
    programs = distinct(answers)
    if config.search.deduplicate == "round":
        return programs
    seen = {destroy for destroy, _ in state.payoffs}
    return tuple(program for program in programs if program.digest not in seen)


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
        pairs=len(table.played),
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
    it did not count). Where answers are mended, also the numbers of `_mending`, which are no part
    of these.
    """
    what = what or (answers[0].prompt.role if answers else "")
    completions = [completion for group in answers for completion in group.completions]
    numbers = _counted(completions, config)
    if numbers:
        numbers["shortened"] = sum(bool(group.prompt.shortened) for group in answers)
    numbers |= _mending(answers, config)
    return {f"{what}/{name}": float(value) for name, value in numbers.items()}


def _mending(answers: Sequence[Answers], config: Settings) -> dict[str, float]:
    """mend_asked: requests that sent an answer back. mended: programs that took the place of an
    original. copies: answers with a parent's program. mend_unfit: conversations that were too long.
    Also mend_tokens and all else that is counted of first answers.
    """
    if not any(group.mended for group in answers):
        return {}
    mends = [mend for group in answers for mend in group.mends]
    attempts = [attempt for mend in mends for attempt in mend.attempts]
    found = {
        "mend_asked": len(attempts),
        "mended": sum(mend.program is not None for mend in mends),
        "copies": sum(mend.status == COPY for mend in mends),
        "mend_unfit": sum(not mend.attempts for mend in mends),
    }
    counted = _counted([attempt.completion for attempt in attempts], config)
    return found | {f"mend_{name}": value for name, value in counted.items()}


def _counted(completions: Sequence[Completion], config: Settings) -> dict[str, float]:
    """What was written, in numbers; empty where no language model did."""
    lengths = [len(completion.tokens) for completion in completions]
    usages = [completion.usage for completion in completions if completion.usage is not None]
    if usages:
        return _charged(usages, config)
    if not any(lengths):
        return {}
    cut = sum(
        length >= config.generator.max_new_tokens if each.finished is None else not each.finished
        for each, length in zip(completions, lengths, strict=True)
    )
    return {"tokens": sum(lengths), "cut": cut}


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

"""What is in answers: reading programs, and passing these by the gate."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from spo_jax.envs.run.rollouts import Refusal, Status
from spo_jax.errors import Rejection
from spo_jax.program import Completion, Program, Prompt, parse_answer
from spo_jax.search.rounds import UNPARSABLE, Answers, Failure

Gate = Callable[[Sequence[Program]], Sequence[Refusal | None]]
Place = tuple[int, int]  # of an answer: the index of its prompt, and its own among those to it


@dataclass(frozen=True)
class Fault:
    """What is wrong with the answer at a place. program: the one that it has, if any."""

    place: Place
    failure: Failure
    program: Program | None = None

    @property
    def ours(self) -> bool:
        """Whether the fault is on our side."""
        return self.failure.status == Status.HOST_FAULT.label


def gated(
    gate: Gate,
    prompts: Sequence[Prompt],
    part: Mapping[int, tuple[Completion, ...]],
    verdicts: dict[str, Refusal | None],
) -> tuple[dict[int, Answers], list[Fault]]:
    """A part as answers, and what was refused; what the gate says goes to `verdicts`."""
    faults: list[Fault] = []
    parsed: dict[int, list[Program | None]] = {}
    for place, group in part.items():
        parsed[place] = []
        for i, completion in enumerate(group):
            found = _read(prompts[place], completion)
            if isinstance(found, Failure):
                faults.append(Fault((place, i), found))
            parsed[place].append(found if isinstance(found, Program) else None)
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
                failure = failed(program, refusal.status, refusal.reason, completion)
                faults.append(Fault((place, i), failure, program))
                if refusal.status == Status.HOST_FAULT:
                    unjudged.add(i)
            passed.append(program if refusal is None else None)
        answers[place] = Answers(
            prompts[place], tuple(part[place]), tuple(passed), frozenset(unjudged)
        )
    return answers, faults


def _read(prompt: Prompt, completion: Completion) -> Program | Failure:
    """The program in one answer, or why there is none."""
    try:
        return parse_answer(
            prompt.answer,
            prompt.role,
            completion.text,
            prompt.function,
            parents=tuple(parent.digest for parent in prompt.parents),
            form=prompt.form,
            condition=prompt.destroy.strategy_digest if prompt.destroy else "",
            derivation=completion.derivation,
        )
    except Rejection as error:
        return Failure(prompt.role, UNPARSABLE, error.reason, text=completion.text)


def failed(program: Program, status: Status, reason: str, completion: Completion) -> Failure:
    """The record of a program that is not evaluated."""
    return Failure(
        program.role,
        status.label,
        reason,
        destroy=program.digest if program.role == "destroy" else "",
        repair=program.digest if program.role == "repair" else "",
        text=completion.text,
    )

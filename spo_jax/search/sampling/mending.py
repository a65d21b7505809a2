"""Mending: an answer that is nearly right goes back to the model, with what is wrong with it.

Four kinds of answers go back: without a program, with one that the gate refuses, with one that
fails its trial, and with a parent's program again. A trial is one short rollout on the first
training instance beside the problem's plain program, or a repair's own destroy; it is there for
this alone and gives no J. Of a program that ran the model reads no word of the program's making
(`spo_jax.envs.run.rollouts.Failed.redacted_reason`).

The answers to a part of the prompts are mended before the part is played. The calls to the
generator depend on the run's seed, the round, the role and the part, and on no timing.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from spo_jax.envs.problem import Instance
from spo_jax.envs.run.evaluator import require_rollouts
from spo_jax.envs.run.rollouts import Failed, Refusal, Status
from spo_jax.program import Completion, Pair, Program, Prompt, load_pair
from spo_jax.search.parts import Parts
from spo_jax.search.rounds import UNPARSABLE, Answers, Failure
from spo_jax.search.sampling.gating import Fault, Place, failed, gated
from spo_jax.search.sampling.mends import AGAIN, COPY, Attempt, Mend, is_copy
from spo_jax.seeding import derive

TRIAL_STEPS = 20  # at most; in fewer a program that prepares a lot would use up its CPU time
MOST_SHOWN = 16_000  # characters of an answer that goes back
QUOTED = 200  # characters of a line
_LINE = re.compile(r"\bline (\d{1,6})\b")

# Completions of prompts, one each, by a seed.
Ask = Callable[[Sequence[Prompt], int], list[Completion]]


@dataclass(frozen=True)
class Wrong:
    """What is wrong with an answer, as its writer may read it.

    status: as an `Attempt`'s. program: the one that it has, if any.
    """

    status: str
    explanation: str = ""
    program: Program | None = None


@dataclass
class _Case:
    """An answer that goes back, and what has become of it."""

    place: Place
    first: Wrong
    prompt: Prompt
    completion: Completion
    wrong: Wrong
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def open(self) -> bool:
        """Whether there is still something to mend; a copy is asked for once."""
        return bool(self.wrong.status) and not (self.first.status == COPY and self.attempts)


@dataclass(eq=False)
class Mending:
    """The mending of one role's answers in a round.

    names: of the random stream. instance: for trials; None: there are none. ask: the generator.
    verdicts: what the gate said of programs, by their digests.
    """

    parts: Parts
    prompts: Sequence[Prompt]
    names: Sequence[int | str]
    instance: Instance | None
    ask: Ask
    verdicts: dict[str, Refusal | None]
    _tried: dict[str, Failed | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problem = self.parts.problem
        plain = problem.simple or problem.pair
        self._partner = load_pair(plain, problem.interface.game) if plain else None

    def mend(
        self, new: Mapping[int, Answers], faults: Sequence[Fault]
    ) -> tuple[dict[int, Answers], list[Failure]]:
        """The answers of a part with those mended that could be, and what failed besides `faults`.

        new: by the places of their prompts, as the gate left them. faults: what it refused.
        """
        answers = dict(new)
        wrong = {fault.place: self._refused(new, fault) for fault in faults if not fault.ours}
        passed = {
            (place, i): program
            for place, each in answers.items()
            for i, program in enumerate(each.programs)
            if program is not None
        }
        failures: list[Failure] = []
        for place, (failure, why) in self._trials(answers, passed).items():
            failures.append(failure)
            wrong[place] = why
            answers[place[0]] = _with_program(answers[place[0]], place[1], None)
        for place, program in passed.items():
            if place not in wrong and is_copy(program, self.prompts[place[0]]):
                wrong[place] = Wrong(COPY, program=program)
        cases = [self._case(answers, place, why) for place, why in sorted(wrong.items())]
        cases = [case for case in cases if not _lost(case.completion)]
        for number in range(1, 1 + (self.parts.config.generator.mend or 0)):
            failures += self._again(cases, min(new), number)
        for case in cases:
            k, i = case.place
            own, mend = answers[k], Mend(case.first.status, tuple(case.attempts))
            mended = own.mended or (None,) * len(own.completions)
            own = replace(own, mended=(*mended[:i], mend, *mended[i + 1 :]))
            answers[k] = own if mend.program is None else _with_program(own, i, mend.program)
        return answers, failures

    def _case(self, answers: Mapping[int, Answers], place: Place, why: Wrong) -> _Case:
        own = answers[place[0]]
        return _Case(place, why, own.prompt, own.completions[place[1]], why)

    # --- further answers --------------------------------------------------------------------------

    def _again(self, cases: Sequence[_Case], part: int, number: int) -> list[Failure]:
        """Send the cases that are open back for the `number`-th time; what failed."""
        asked = [(case, self._prompt(case)) for case in cases if case.open]
        fitting = [each for each in asked if self.parts.generator.takes(each[1])]
        if not fitting:
            return []
        seed = derive(*self.names, "part", part, "mend", number)
        prompts = [prompt for _, prompt in fitting]
        given = self.ask(prompts, seed)
        pieces = {i: (completion,) for i, completion in enumerate(given)}
        found, faults = gated(self.parts.evaluator.check, prompts, pieces, self.verdicts)
        failures = [fault.failure for fault in faults]
        wrong = {fault.place[0]: self._refused(found, fault) for fault in faults}
        passed = {
            (i, 0): each.programs[0] for i, each in found.items() if each.programs[0] is not None
        }
        for (i, _), (failure, why) in self._trials(found, passed).items():
            failures.append(failure)
            wrong[i] = why
        for i, (case, prompt) in enumerate(fitting):
            program = found[i].programs[0]
            why = wrong.get(i, Wrong(""))
            another = not why.status and case.first.status == COPY
            if another and program is not None and is_copy(program, prompt):
                why = Wrong(COPY, program=program)
            own = program if program is not None else why.program
            case.attempts.append(Attempt(prompt, given[i], own, why.status))
            case.prompt, case.completion, case.wrong = prompt, given[i], why
            if _lost(given[i]) or why.status == Status.HOST_FAULT.label:
                case.wrong = Wrong("")  # nothing to go back with
        return [replace(each, reason=AGAIN.format(number + 1) + each.reason) for each in failures]

    def _prompt(self, case: _Case) -> Prompt:
        """The conversation so far, and what is wrong with its last answer."""
        templates = self.parts.templates
        assert templates is not None
        prompt, wrong = case.prompt, case.wrong
        message = templates.mending(
            wrong.explanation, quoted(wrong), self._interface(prompt), copy=wrong.status == COPY
        )
        return replace(prompt, turns=(*prompt.turns, (sent_back(case.completion.text), message)))

    def _interface(self, prompt: Prompt) -> str:
        """The head of the function that is asked for, as the contract has it if it has one."""
        interface = self.parts.problem.interface
        name = interface.function(prompt.role)
        head = rf"(?m)^[ \t]*({name}\(.*\)[ \t]*(?:->|returns)[ \t]*\S.*)$"
        given = re.search(head, prompt.text)
        if given:
            return given[1].strip()
        leads = prompt.role == "destroy"
        returned = interface.game.returned if leads else "the complete solution"
        return f"{name}({', '.join(interface.parameters(prompt.role))}) -> {returned}"

    # --- what is wrong ----------------------------------------------------------------------------

    def _refused(self, answers: Mapping[int, Answers], fault: Fault) -> Wrong:
        """What a text says of the answer that it was read from has no word of a running program."""
        status, reason = fault.failure.status, fault.failure.reason
        if status != UNPARSABLE:
            return Wrong(status, f"the program breaks the rules ({reason})", fault.program)
        explanation = f"no program could be read in it ({reason})"
        if _cut(answers[fault.place[0]].completions[fault.place[1]]):
            most = self.parts.config.generator.max_new_tokens
            explanation += f"; it was cut off after {most} tokens, so write a shorter one"
        return Wrong(status, explanation)

    def _trials(
        self, answers: Mapping[int, Answers], programs: Mapping[Place, Program | None]
    ) -> dict[Place, tuple[Failure, Wrong]]:
        """The programs that fail their trial, by their places."""
        pairs = {
            place: pair
            for place, program in programs.items()
            if program is not None and (pair := self._pair(answers[place[0]].prompt, program))
        }
        self._try(pairs.values())
        found, game = {}, self.parts.problem.interface.game
        for place, pair in pairs.items():
            program, end = programs[place], self._tried[pair.digest]
            if program is None or end is None or end.status == Status.HOST_FAULT:
                continue
            if end.role not in ("", program.role):  # the other's fault
                continue
            completion = answers[place[0]].completions[place[1]]
            failure = failed(program, end.status, end.reason, completion)
            explanation = f"the program fails when it runs ({game.told(end.redacted_reason)})"
            found[place] = (failure, Wrong(end.status.label, explanation, program))
        return found

    def _pair(self, prompt: Prompt, program: Program) -> Pair | None:
        """What a program is tried in; None where there is nothing to try it with."""
        plain = self._partner
        if program.role == "destroy":
            return None if plain is None else Pair(program, plain.repair)
        destroy = prompt.destroy or (plain.destroy if plain else None)
        return None if destroy is None else Pair(destroy, program)

    def _try(self, pairs: Iterable[Pair]) -> None:
        """Run the trials that no earlier part of this role made, all in one batch."""
        new = {pair.digest: pair for pair in pairs if pair.digest not in self._tried}
        if not new or self.instance is None:
            self._tried |= dict.fromkeys(new)
            return
        steps = min(TRIAL_STEPS, self.parts.config.evaluation.steps)
        with self.parts.observer.working("trial"):
            rollouts = self.parts.evaluator.run(
                list(new.values()), [self.instance], seeds=(0,), steps=steps
            )
        require_rollouts(rollouts, len(new), 1, 1, steps)
        self._tried |= {digest: rollouts.failure(p) for p, digest in enumerate(new)}


def _with_program(answers: Answers, i: int, program: Program | None) -> Answers:
    programs = (*answers.programs[:i], program, *answers.programs[i + 1 :])
    return replace(answers, programs=programs)


def _lost(completion: Completion) -> bool:
    return completion.usage is not None and completion.usage.lost


def _cut(completion: Completion) -> bool:
    """Whether an answer is known to have reached its maximum length."""
    return completion.finished is False or (completion.usage is not None and completion.usage.cut)


def quoted(wrong: Wrong) -> str:
    """The line of the program that a reason names, in a sentence; "" where it names none."""
    found = _LINE.search(wrong.explanation)
    if found is None or wrong.program is None:
        return ""
    lines, number = wrong.program.source.split("\n"), int(found[1])
    if not (1 <= number <= len(lines) and lines[number - 1].strip()):
        return ""
    return f"Line {number} of the program is `{lines[number - 1].strip()[:QUOTED]}`."


def sent_back(text: str) -> str:
    """An answer as it goes back: without thinking, cut, and without what cannot be sent."""
    text = text.rpartition("</think>")[2].strip() or text.strip()
    if len(text) > MOST_SHOWN:
        text = text[:MOST_SHOWN] + "\n[...]"
    text = text.encode("utf-8", "replace").decode().replace("\0", "")
    return text or "(nothing)"

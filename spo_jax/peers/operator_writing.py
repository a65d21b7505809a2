"""How G-LNS has its operators written: requests, checks, and further tries.

A new operator is checked as its authors do before it joins: by the gate, and in a few steps beside
the problem's trivial program of the other role, where the problem brings one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template
from typing import Literal

from spo_jax.envs.problem import Instance
from spo_jax.envs.run.rollouts import Status
from spo_jax.envs.run.states import HIDDEN_STATE
from spo_jax.errors import Rejection
from spo_jax.program import Completion, Pair, Program, Prompt, Role, load_pair, parse_answer
from spo_jax.search.parts import Parts
from spo_jax.search.rounds import UNPARSABLE, Answers, Failure
from spo_jax.search.sampling.sample import sample
from spo_jax.search.writing.joint import JOINT, joint_prompt
from spo_jax.search.writing.prompts import INITIALIZATION

Asked = Literal["first", "replace", "tune", "crossover", "joint"]
FORMS: dict[Asked, str] = {  # for a writer that knows SPO's forms alone
    "first": INITIALIZATION,
    "replace": "mechanism-replacement",
    "tune": "state-control-redesign",
    "crossover": "shared-principle-crossover",
    "joint": "mechanism-replacement",
}
CHECK_STEPS = 3  # as many as the authors' check has cases


@dataclass(frozen=True)
class Request:
    """What a new operator is asked for. shown: the operators in the prompt. remark: on a parent."""

    asked: Asked
    shown: tuple[Program, ...] = ()
    remark: str = ""


@dataclass(frozen=True)
class Plan:
    """A new destroy and a new repair, or one of them: the operator that creates them, and the
    request for each.
    """

    operator: str
    destroy: Request | None
    repair: Request | None


@dataclass
class Written:
    """Answers of all tries, and their failures. retries: how many were further tries."""

    destroys: list[Answers] = field(default_factory=list)
    repairs: list[Answers] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    retries: int = 0


class Writing:
    """Writes the operators of round k."""

    def __init__(self, parts: Parts, instances: Sequence[Instance], k: int, retries: int):
        self._parts, self._k, self._retries = parts, k, retries
        self._instances = instances[:1]
        self._prose = parts.generator.writes_prose
        simple = parts.problem.simple
        self._partner = load_pair(Path(simple)) if simple else None

    def write(self, plans: Sequence[Plan], destroys: Sequence[Program] = ()) -> Written:
        """The operators of some plans. destroys: those that live, the best first.

        The repair of a pair is written to its destroy, any other to the best destroy there is; a
        writer of prose is shown none, as in the release.
        """
        found = Written()
        joint = {place: prompt for place, plan in enumerate(plans) if (prompt := self._joint(plan))}
        asked = {
            place: joint.get(place) or self._prompt("destroy", plan.destroy)
            for place, plan in enumerate(plans)
            if plan.destroy is not None
        }
        new = self._tried("destroy", asked, found)
        others = [*destroys, *(program for program in new.values() if program is not None)]
        asked = {}
        for place, plan in enumerate(plans):
            if plan.repair is None or place in joint:
                continue
            own = new.get(place) if plan.operator in ("initialization", "joint") else None
            shown = own or (others[0] if others else None)
            if self._prose:
                asked[place] = self._prompt("repair", plan.repair)
            elif shown is not None:
                asked[place] = self._prompt("repair", plan.repair, shown)
        self._tried("repair", asked, found)
        return found

    def _prompt(self, role: Role, request: Request, destroy: Program | None = None) -> Prompt:
        asked = request.asked
        if not self._prose:
            shown = () if asked == "first" else request.shown
            return self._parts.prompts.fitted(role, FORMS[asked], shown, destroy)
        form = "glns-replace" if asked == "joint" else f"glns-{asked}"  # a pair that does not fit
        return self._parts.prompts.fitted(role, form, request.shown, None, request.remark)

    def _joint(self, plan: Plan) -> Prompt | None:
        """The prompt for both programs in one answer, where that can be asked for."""
        if not self._prose or plan.operator != "joint":
            return None
        assert plan.destroy is not None
        assert plan.repair is not None
        pair = Pair(plan.destroy.shown[0], plan.repair.shown[0])
        parts = self._parts
        assert parts.templates is not None
        state = parts.config.generator.state != HIDDEN_STATE
        prompt = joint_prompt(parts.templates, parts.problem.name, pair, state)
        return prompt if parts.generator.fits(prompt.whole) else None

    def _tried(
        self, role: Role, prompts: Mapping[int, Prompt], found: Written
    ) -> dict[int, Program | None]:
        """The program of each prompt, asked for again where an answer gives none.

        What was sampled is added to `found`, with the repairs of joint answers.
        """
        programs: dict[int, Program | None] = dict.fromkeys(prompts)
        pending = dict(prompts)
        for attempt in range(1 + self._retries):
            if not pending:
                break
            found.retries += len(pending) if attempt else 0
            stream = ("again", str(attempt)) if attempt else ()
            asked = list(pending.values())
            # Its own further tries are this method's mending.
            answers, failures = sample(self._parts, self._k, asked, n=1, stream=stream, mend=False)
            halves = [self._half(each, failures) for each in answers]
            faults = self._faults([each for each in (*answers, *halves) if each is not None])
            # Of a program that ran, a model may not read all.
            wrong = {failure.text: failure.reason for failure in failures}
            wrong |= {failure.text: redacted for failure, redacted in faults}
            failures += [failure for failure, _ in faults]
            again = {}
            for place, own, half in zip(pending, answers, halves, strict=True):
                text = own.completions[0].text
                if text in wrong or own.programs[0] is None:
                    again[place] = self._again(pending[place], wrong.get(text, "it was lost"))
                    own = replace(own, programs=(None,))
                    half = half and replace(half, programs=(None,))
                programs[place] = own.programs[0]
                if role == "destroy":
                    found.destroys.append(own)
                    found.repairs += [half] if half is not None else []
                else:
                    found.repairs.append(own)
            found.failures += failures
            pending = again
        return programs

    def _again(self, prompt: Prompt, reason: str) -> Prompt:
        """The prompt of a further try, which says what was wrong to a writer of prose."""
        templates = self._parts.templates
        if not self._prose or templates is None:
            return prompt
        note = Template(templates.texts["glns-again.txt"]).substitute(reason=reason)
        longer = replace(prompt, text=f"{prompt.text}\n{note}")
        return longer if self._parts.generator.fits(longer.whole) else prompt

    def _faults(self, answers: Sequence[Answers]) -> list[tuple[Failure, str]]:
        """Failures of the programs in some answers that do not stand the check, each with its
        reason as a model may read it.
        """
        new = [(each, each.programs[0]) for each in answers if each.programs[0] is not None]
        if not new or self._partner is None:
            return []
        pairs = [
            Pair(program, self._partner.repair)
            if program.role == "destroy"
            else Pair(self._partner.destroy, program)
            for _, program in new
            if program is not None
        ]
        rollouts = self._parts.evaluator.run(pairs, self._instances, (0,), CHECK_STEPS)
        found = []
        for p, (each, program) in enumerate(new):
            failed = rollouts.failure(p)
            if program is None or failed is None or failed.status == Status.HOST_FAULT:
                continue
            own = {program.role: program.digest}
            text = each.completions[0].text
            label = failed.status.label
            failure = Failure(program.role, label, failed.reason, text=text, **own)
            found.append((failure, failed.redacted_reason))
        return found

    def _half(self, own: Answers, failures: list[Failure]) -> Answers | None:
        """The repair of a joint answer, whose tokens are its destroy's; a refusal is a failure."""
        if own.prompt.answer != "joint" or own.programs[0] is None:
            return None
        text = own.completions[0].text
        prompt = replace(own.prompt, role="repair")
        parents = tuple(parent.digest for parent in prompt.parents)
        try:
            program = parse_answer("joint", "repair", text, parents=parents, form=JOINT)
        except Rejection as error:
            failures.append(Failure("repair", UNPARSABLE, error.reason, text=text))
            return None
        [refusal] = self._parts.evaluator.check([program])
        if refusal is not None:
            label, digest = refusal.status.label, program.digest
            failures.append(Failure("repair", label, refusal.reason, repair=digest, text=text))
            return None
        return Answers(prompt, (Completion(text),), (program,))

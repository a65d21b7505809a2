"""Prompts: the generation contexts gamma_D and gamma_R (Section 4.4, Appendix D).

A prompt is assembled from the contract of the problem and role, which the problem brings, and text
files in this package: the rules of the language, the request of the prompt form with its parents,
and the format of the answer (`layout.txt` says in which order). All of them are
`string.Template`s: `$name` is a placeholder, `$$` a dollar sign. A folder of the user's may replace
any of them by a file of the same name, and the contracts by `NAME-destroy.txt` and
`NAME-repair.txt`, NAME being the problem's; it may have those of other problems beside them.
A run reads it once, when it is opened (`Templates.read`), and makes all of its prompts of it.

The texts are written for destroy and repair. In another game (`spo_jax.program.game`) its words
take their places, and the folder `game` has the texts that would speak of removals.

A prompt form is a file whose first line declares it, so that a new file in the user's folder is a
new form:

    #form kind=mutation parents=1 [role=destroy|repair|both] [turn=1] [language=eoh]

kind: mutations and crossovers are asked in turn, `mutation_groups` and `crossover_groups` of them
in a round; "other" is for methods that ask by name. parents: how many the form shows, as 2 or 1-2.
role: whose prompts it is for, by default both. turn: its place among its kind, by default the last;
equal ones go by name. language: of another method (`spo_jax.search.writing.languages`).
The grammar refuses forms that are not the paper's; the model that ships was
not trained on others. `FORM-stateless.txt` takes the form's place in runs without state.

Without state (the paper's ablation "w/o State Conditioning") `steps_since_improvement` stays in
the interface, described as always 0 and not to be used, so that all programs remain
interchangeable; nothing else in a prompt mentions it.

Where a run offers the problem's kit, contracts have `$kit`, which describes it, and what else the
problem says differently then (`Problem.kit_texts`); a contract of the user's may have them too.
"""

import hashlib
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from string import Template
from typing import Literal, cast, get_args

from spo_jax.config.groups import GeneratorSettings
from spo_jax.constants import GRAMMAR, KIT, WITH_MODEL
from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.states import SHOWN, SINCE, parts_shown
from spo_jax.errors import InputError, SpoError
from spo_jax.program import DESTROY_REPAIR, ROLES, Game, Pair, Program, Prompt, Role
from spo_jax.program.types import one_line
from spo_jax.program.versions import header, version
from spo_jax.registry import imported
from spo_jax.search.writing.forms import (
    CONTRACT,
    KIT_MODULE,
    MATRIX_RULE,
    STATELESS,
    Form,
    Kind,
    declaration,
    files_of,
    identifiers,
    matrix_rule,
    of_another,
    require_placeholders,
    require_same,
    text_of,
    with_values,
)
from spo_jax.search.writing.languages import LANGUAGES, Language

INITIALIZATION = "initialization"  # the form that shows no parents

MOST_SHOWN = 200  # characters of the strategy of a destroy that a short prompt shows
FRAME = "frame"  # in output.txt of the style "frame": the function to complete
Style = Literal["paper", "frame"]
ShowDestroy = Literal["strategy", "source", "both"]
SHOW_DESTROY: tuple[ShowDestroy, ...] = get_args(ShowDestroy)


@dataclass(frozen=True, eq=False)
class Templates:
    """All prompt templates of a run.

    texts: by file name, without the line that declares a form. forms: by name. own_forms: whether
    the user's folder declares forms. kit: whether they offer the problem's kit. game: whose
    programs they ask for.
    """

    texts: Mapping[str, str]
    forms: Mapping[str, Form]
    own_forms: bool = False
    kit: bool = False
    game: Game = DESTROY_REPAIR

    @classmethod
    def read(
        cls,
        folder: str | Path | None = None,
        problem: Problem | None = None,
        kit: bool = False,
        style: Style = "paper",
        unread: bool = False,
    ) -> "Templates":
        """The package's templates and the contracts of `problem`, and in their place or beside them
        those of the user's `folder`. kit: whether they offer the problem's kit. style: "frame" for
        the short texts with a frame to complete, where the problem has frames. unread: the
        generator does not read prompts, so there need not be a contract.

        Raises InputError for a folder or file that cannot be read, a file that neither has a known
        name nor declares a form (a misspelt one would silently change nothing), a wrong
        declaration, placeholders that are missing, unknown or malformed, and a contract that
        neither the problem nor the folder has.
        """
        frames = _frames(problem) if style == "frame" and problem is not None else {}
        game = DESTROY_REPAIR
        if problem is not None and hasattr(problem, "interface"):
            game = problem.interface.game
        ours, contracts = _in_words("frame" if frames else "paper", game), dict[str, Role]()
        kit = kit and problem is not None and bool(problem.kit)
        if problem is not None:
            contracts = {f"{problem.name}-{role}.txt": role for role in ROLES}
        found = {
            path: declaration(path, text_of(path))
            for path in ([] if folder is None else files_of(Path(folder)))
        }
        forms = {**ours.forms, **{form.name: form for form, _ in found.values() if form}}
        for path, (form, text) in [*found.items()]:
            known = CONTRACT[contracts[path.name]] if path.name in contracts else None
            if path.name in ours.texts:
                known = identifiers(ours.texts[path.name])
            request = forms.get(path.name.removesuffix(".txt").removesuffix(STATELESS))
            if known is None and request is None:
                if of_another(path, text, contracts):
                    del found[path]
                    continue
                names = ", ".join(sorted({*ours.texts, *contracts}))
                raise InputError(
                    f"{path} is no prompt template: name it one of {names}; or declare a new "
                    "prompt form in its first line, as in '#form kind=mutation parents=1'"
                )
            if form and (known is not None or path.stem.endswith(STATELESS)):
                require_same(path, form, ours.forms.get(form.name))
            extra = {KIT_MODULE, MATRIX_RULE} if path.name == "rules.txt" else set()
            extra |= {FRAME} if FRAME in identifiers(ours.texts.get(path.name, "")) else set()
            if problem is not None and path.name in contracts:
                extra = set(problem.kit_texts(contracts[path.name], kit))
            require_placeholders(f"prompt template {path}", text, known, request, extra)
        texts = {**ours.texts, **{path.name: text for path, (_, text) in found.items()}}
        if problem is not None:
            for name, role in contracts.items():
                values = problem.kit_texts(role, kit)
                texts[f"frame-{role}.txt"] = ""
                if name not in texts and name in frames:
                    texts[name], texts[f"frame-{role}.txt"] = frames[name]
                elif name not in texts and unread and not problem.offers("contract"):
                    texts[name] = "\n".join(f"${each}" for each in sorted(CONTRACT[role]))
                elif name not in texts:
                    texts[name] = text = problem.contract(role)
                    what = f"contract({role!r}) of problem {problem.name}"
                    if not isinstance(text, str):
                        raise InputError(f"{what} returned {text!r:.80}: it must return a text")
                    require_placeholders(what, text, CONTRACT[role], None, values)
                texts[name] = with_values(texts[name], values)
        module = f", and {KIT}" if kit else ""
        values = {KIT_MODULE: module, MATRIX_RULE: matrix_rule(problem)}
        texts["rules.txt"] = with_values(texts["rules.txt"], values)
        return cls(texts, forms, any(name not in ours.forms for name in forms), kit, game)

    @classmethod
    def of(
        cls, settings: GeneratorSettings, problem: Problem, instances: Sequence[Instance] = ()
    ) -> "Templates":
        """The templates of a run with these settings, on these training instances.

        Raises InputError as `read`.
        """
        kit, style = settings.kit != "none", cast(Style, settings.prompts_style)
        found = cls.read(settings.prompts, problem, kit, style, unread(settings.name))
        return found.with_limits(problem, instances).with_state(settings.state)

    def with_limits(self, problem: Problem, instances: Sequence[Instance]) -> "Templates":
        """Those whose contracts end with what bounds solutions of some instances besides."""
        texts = dict(self.texts)
        for role in ROLES:
            if said := problem.limits(role, instances, self.kit).replace("$", "$$"):
                name = f"{problem.name}-{role}.txt"
                texts[name] = f"{texts[name].rstrip()}\n\n{said}\n"
        return replace(self, texts=texts)

    def with_state(self, state: str) -> "Templates":
        """Those for programs that are shown another state than the paper's: a name of STATES.

        The parameter is called SHOWN in them, and what it is follows from the state's parts, unless
        the user's folder says that.
        """
        parts, name = parts_shown(state), "state-input.txt"
        if not parts:
            return self
        texts = {file: re.sub(rf"\b{SINCE}\b", SHOWN, text) for file, text in self.texts.items()}
        ours = (_in_words(style, self.game).texts[name] for style in get_args(Style))
        if self.texts[name] in ours:
            if len(parts) > 1:
                head = f"- {SHOWN}: a tuple of numbers, ({', '.join(parts)}):"
                lines = [head, *(f"    {part}: {about}." for part, about in parts.items())]
            else:
                lines = [f"- {SHOWN}: a number: {about}." for about in parts.values()]
            texts[name] = "\n".join(lines).replace("$", "$$") + "\n"
        return replace(self, texts=texts)

    @cached_property
    def digest(self) -> str:
        """Hex digest of texts and forms; equal digests make equal prompts."""
        found = hashlib.blake2b(digest_size=16)
        for name, text in sorted(self.texts.items()):
            if name in ("mend.txt", "mend-copy.txt") and text == built_in().texts[name]:
                continue  # so that a run from before there was one goes on
            form = str(self.forms.get(name.removesuffix(".txt"), ""))
            found.update(f"{name}\0{form}\0{len(text)}\0{text}".encode())
        return found.hexdigest()

    def form(self, name: str) -> Form:
        """A form by name. Raises InputError where there is none."""
        if name not in self.forms:
            raise InputError(f"unknown prompt form {name!r}: use {', '.join(self.forms)}")
        return self.forms[name]

    def in_turn(self, kind: Kind, role: Role) -> list[str]:
        """The forms of a kind for one role, in the order in which they are asked; at least one."""
        forms = self.forms.values()
        due = [form for form in forms if form.kind == kind and form.role in ("both", role)]
        return [form.name for form in sorted(due, key=lambda form: (form.turn, form.name))]

    def render(
        self,
        problem: str,
        role: Role,
        form: str,
        parents: Sequence[Program] = (),
        destroy: Program | None = None,
        *,
        state: bool = True,
        show_destroy: ShowDestroy = "strategy",
        show_parents: ShowDestroy = "both",
        reflection: str = "",
    ) -> Prompt:
        """The prompt that asks for one program.

        problem: its name. form: one of `forms`; parents: as many programs of the same
        role as the form shows, each shown as `show_parents` says. destroy: for a repair, the
        program it answers, shown as `show_destroy` says. state: whether the program may use
        steps_since_improvement. reflection: for the forms that show one.
        Raises InputError where these do not fit together.
        """
        self._check(role, form, parents, destroy)
        for name, how in (("show_destroy", show_destroy), ("show_parents", show_parents)):
            if how not in SHOW_DESTROY:
                raise InputError(f"{name} is {how!r}: use {', '.join(SHOW_DESTROY)}")
        fill, variant = self._fill, "" if state else STATELESS
        language = LANGUAGES[self.form(form).language]
        asked = language.asked(len(parents))
        side = self.game.side(role)
        name = side.function if asked is None else f"{side.function}_v{asked}"
        paired = ""
        if destroy:
            paired = fill("paired-destroy.txt", program=self._shown(destroy, show_destroy))
        elif role == "repair":
            paired = fill("unpaired-destroy.txt")
        family = self._family(language, parents, show_parents)
        request = f"{form}{variant}.txt" if f"{form}{variant}.txt" in self.texts else f"{form}.txt"
        text = fill(
            "layout.txt",
            contract=fill(
                f"{problem}-{role}.txt",
                state_input=fill(f"state-input{variant}.txt"),
                adaptation=fill(f"adaptation-{role}.txt" if state else "adaptation-stateless.txt"),
                paired_destroy=paired,
            ),
            rules=fill("rules.txt", role=name),
            request=fill(
                request,
                role=side.noun,
                name=name,
                parents="\n\n".join(family),
                reflection=reflection,
            ),
            output=fill(
                language.file("output.txt"),
                role=side.function,
                name=name,
                frame=self.texts.get(f"frame-{role}.txt", "").strip("\n"),
            ),
        )
        return Prompt(
            problem,
            role,
            form,
            text + "\n",
            tuple(parents),
            destroy,
            state,
            kit=self.kit,
            system=self._system(language.file("system.txt")),
            answer=language.answer,
            function="" if side.function == role else side.function,
        )

    def short_reflection(
        self, problem: str, worse: Pair, better: Pair, words: int, show: ShowDestroy = "both"
    ) -> Prompt:
        """The prompt that asks for one hint, of under `words` words, on what makes a difference.

        Its answer is prose. show: what it shows of the programs.
        """

        def both(pair: Pair) -> str:
            return "\n".join(self._shown(program, show) for program in (pair.destroy, pair.repair))

        values = {"problem": problem.upper(), "words": str(words)}
        text = self._fill("short-reflection.txt", worse=both(worse), better=both(better), **values)
        return self._reflection(problem, "short-reflection", text)

    def long_reflection(
        self, problem: str, before: str, hints: Sequence[str], words: int
    ) -> Prompt:
        """The prompt that asks for advice of fewer than `words` words. Its answer is prose.

        before: the advice of the round before, if there was any. hints: of this round.
        """
        text = self._fill(
            "long-reflection.txt",
            problem=problem.upper(),
            words=str(words),
            before=before or "(nothing yet)",
            hints="\n".join(f"- {hint}" for hint in hints) or "(none)",
        )
        return self._reflection(problem, "long-reflection", text)

    def aligned_thought(self, problem: str, program: Program) -> Prompt:
        """The prompt of MCTS-AHD that has a program's strategy rewritten, from its code.

        Its answer is prose.
        """
        text = self._fill(
            "mcts-thought.txt",
            problem=problem.upper(),
            role=self.game.named(program.role),
            strategy=_strategy(program),
            source=program.source.strip("\n"),
        )
        return Prompt(problem, program.role, "mcts-thought", text + "\n")

    def mending(self, reason: str, line: str, interface: str, *, copy: bool = False) -> str:
        """The message that sends an answer back.

        reason: what is wrong with it; line: a sentence on the line of the program, where that is
        known. interface: of the function. copy: whether it repeats a parent, which needs no reason.
        """
        if copy:
            return self._fill("mend-copy.txt", interface=interface)
        text = with_values(self.texts["mend.txt"], {"line": line})
        return Template(text).substitute(reason=reason, interface=interface).strip("\n")

    def _reflection(self, problem: str, form: str, text: str) -> Prompt:
        system = self._system("reevo-system-reflector.txt")
        return Prompt(problem, "destroy", form, text + "\n", system=system)

    def _family(
        self, language: Language, parents: Sequence[Program], how: ShowDestroy
    ) -> list[str]:
        """The parents as a language shows them, in their order."""
        asked, shown = language.asked(len(parents)), []
        for place, parent in enumerate(parents):
            source = parent.source
            if asked is not None:
                source = version(source, self._entry(parent), asked - len(parents) + place)
            values = {"number": str(place + 1), "program": self._shown(parent, how)}
            values |= {"strategy": _strategy(parent), "source": source.strip("\n")}
            shown.append(self._fill(language.file("parent.txt"), **values))
        if language.header and parents and asked is not None:
            shown.append(header(parents[-1].source, self._entry(parents[-1]), asked))
        return shown

    def _entry(self, program: Program) -> str:
        return self.game.side(program.role).function

    def _system(self, name: str) -> str:
        return self._fill(name) if name in self.texts else ""

    def _fill(self, file: str, /, **values: str) -> str:
        text = self.texts[file]
        if values.get("role", "")[:1] in tuple("aeiou"):
            text = re.sub(r"\b([Aa]) (?=\$role\b)", r"\1n ", text)
        return Template(text).substitute(values).strip("\n")

    @property
    def _framed(self) -> bool:
        """Whether prompts are short, with a frame to complete."""
        return any(self.texts.get(f"frame-{role}.txt") for role in ROLES)

    def _shown(self, program: Program, how: ShowDestroy) -> str:
        strategy, source = _strategy(program), program.source.strip("\n")
        if self._framed:
            if how == "both" and one_line(strategy) in one_line(source):  # it is the docstring
                how = "source"
            strategy = _first_sentence(strategy)
        return self._fill(f"shown-{how}.txt", strategy=strategy, source=source)

    def _check(
        self, role: Role, form: str, parents: Sequence[Program], destroy: Program | None
    ) -> None:
        if role not in ROLES:
            raise InputError(f"unknown role {role!r}: a role is 'destroy' or 'repair'")
        declared = self.form(form)
        if declared.role not in ("both", role):
            raise InputError(f"form {form!r} is for {declared.role} prompts only")
        fewest, most = declared.parents
        if not fewest <= len(parents) <= most:
            few = str(most) if fewest == most else f"{fewest} to {most}"
            raise InputError(f"form {form!r} shows {few} parents, not {len(parents)}")
        if any(parent.role != role for parent in parents):
            raise InputError(f"the parents of a {role} program must be {role} programs")
        paired = LANGUAGES[declared.language].paired
        if (destroy is None) != (role == "destroy" or not paired):
            raise InputError("a repair prompt needs its paired destroy, a destroy prompt has none")
        if destroy is not None and destroy.role != "destroy":
            raise InputError("the paired program of a repair prompt must be a destroy program")


def _strategy(program: Program) -> str:
    return program.strategy or "(none given)"


def _first_sentence(text: str) -> str:
    """The first sentence of a text, cut at MOST_SHOWN characters."""
    first, dot, _ = one_line(text).partition(". ")
    return textwrap.shorten(first + dot.strip(), MOST_SHOWN, placeholder=" ...")


def _frames(problem: Problem) -> dict[str, tuple[str, str]]:
    """The contract and the frame of each role by the contract's file; {} without frames."""
    texts = {f"{problem.name}-{role}.txt": problem.frame(role) for role in ROLES}
    if not all(texts.values()):
        return {}
    parts = {name: text.partition("#frame\n") for name, text in texts.items()}
    return {name: (contract, frame) for name, (contract, _, frame) in parts.items()}


@cache
def built_in(style: Style = "paper") -> Templates:
    """The package's own templates, without the contracts of any problem. Those of the style "frame"
    are the paper's but for the files of its folder.
    """
    ours = resources.files(__name__)
    folders = [ours] if style == "paper" else [ours, ours / style]
    files = {
        path.name: path
        for folder in folders
        for path in folder.iterdir()
        if path.name.endswith(".txt")
    }
    found = {
        name: declaration(Path(name), path.read_text("utf-8"))
        for name, path in sorted(files.items())
    }
    forms = {form.name: form for form, _ in found.values() if form}
    return Templates({name: text for name, (_, text) in found.items()}, forms)


@cache
def _in_words(style: Style, game: Game) -> Templates:
    """The package's own templates in the words of a game. For another game than destroy and repair
    some are those of the folder `game`, whatever the style.
    """
    ours = built_in(style)
    if game == DESTROY_REPAIR:
        return ours
    folder = resources.files(__name__) / "game"
    others = {path.name: path.read_text("utf-8") for path in folder.iterdir()}
    texts = {name: game.words(text) for name, text in {**ours.texts, **others}.items()}
    return replace(ours, texts=texts, game=game)


@cache
def templates_of(problem: str, kit: bool = False, style: Style = "paper") -> Templates:
    """The package's own templates with the contracts of a problem, with its kit or without."""
    return Templates.read(None, get_problem(problem), kit, style)


def unread(generator: str) -> bool:
    """Whether the generator of that name does not read prompts; False where there is none."""
    if generator in (*WITH_MODEL, GRAMMAR):
        return generator == GRAMMAR
    try:
        found = imported("generator", generator, GRAMMAR, call=False)
    except SpoError:  # with which the run is refused when it makes one
        return False
    return not getattr(found, "reads_prompts", True)

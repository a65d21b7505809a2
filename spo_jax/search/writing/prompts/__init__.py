"""Prompts: the generation contexts gamma_D and gamma_R (Section 4.4, Appendix D).

A prompt is assembled from the contract of the problem and role, which the problem brings, and text
files in this package: the rules of the language, the request of the prompt form with its parents,
and the format of the answer (`layout.txt` says in which order). All of them are
`string.Template`s: `$name` is a placeholder, `$$` a dollar sign. A folder of the user's may replace
any of them by a file of the same name, and the contracts by `NAME-destroy.txt` and
`NAME-repair.txt`, NAME being the problem's.
A run reads it once, when it is opened (`templates`), and makes all of its prompts of those texts.

Without state (the paper's ablation "w/o State Conditioning") `steps_since_improvement` stays in
the interface, described as always 0 and not to be used, so that all programs remain
interchangeable; nothing else in a prompt mentions it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from string import Template
from typing import Literal, get_args

from spo_jax.envs.problem import Problem
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError
from spo_jax.program import ROLES, Pair, Program, Prompt, Role

INITIALIZATION = "initialization"
MUTATIONS = ("mechanism-replacement", "state-control-redesign", "simplification")
CROSSOVERS = ("divergent-crossover", "shared-principle-crossover")
FORMS = (INITIALIZATION, *MUTATIONS, *CROSSOVERS)

# What only the baselines ask, and only of a model that reads prose: the grammar and the model that
# ships know FORMS alone.
NEXT_VERSION = "next-version"
REFLECTED = ("reflected-crossover", "reflected-mutation")
_PARENTS: dict[str, tuple[int, ...]] = {
    INITIALIZATION: (0,),
    **dict.fromkeys(MUTATIONS, (1,)),
    **dict.fromkeys(CROSSOVERS, (2,)),
    NEXT_VERSION: (1, 2),
    **{f"{form}-many": (3, 4, 5, 6, 7, 8, 9, 10) for form in CROSSOVERS},
    "reflected-crossover": (2,),
    "reflected-mutation": (1,),
}

ShowDestroy = Literal["strategy", "source", "both"]
SHOW_DESTROY: tuple[ShowDestroy, ...] = get_args(ShowDestroy)

# The placeholders of each file. A template must have them all and no other.
_CONTRACT: dict[Role, set[str]] = {
    "destroy": {"state_input", "adaptation"},
    "repair": {"state_input", "adaptation", "paired_destroy"},
}
_FORM = {"role", "parents"}
PLACEHOLDERS: dict[str, set[str]] = {
    "layout.txt": {"contract", "rules", "request", "output"},
    "rules.txt": {"role"},
    "output.txt": {"role"},
    "state-input.txt": set(),
    "state-input-stateless.txt": set(),
    "adaptation-destroy.txt": set(),
    "adaptation-repair.txt": set(),
    "adaptation-stateless.txt": set(),
    "shown-strategy.txt": {"strategy"},
    "shown-source.txt": {"source"},
    "shown-both.txt": {"strategy", "source"},
    "paired-destroy.txt": {"program"},
    "parent.txt": {"number", "program"},
    "initialization.txt": {"role"},
    "mechanism-replacement.txt": _FORM,
    "state-control-redesign.txt": _FORM,
    "state-control-redesign-stateless.txt": _FORM,
    "simplification.txt": _FORM,
    "divergent-crossover.txt": _FORM,
    "shared-principle-crossover.txt": _FORM,
    "next-version.txt": _FORM,
    "divergent-crossover-many.txt": _FORM,
    "shared-principle-crossover-many.txt": _FORM,
    "reflected-crossover.txt": _FORM | {"reflection"},
    "reflected-mutation.txt": _FORM | {"reflection"},
    "short-reflection.txt": {"problem", "worse", "better", "words"},
    "long-reflection.txt": {"problem", "before", "hints", "words"},
}


def parents_of(form: str) -> int:
    """How many parents a prompt form shows (Table 3): none, one or two."""
    if form not in FORMS:
        raise InputError(f"unknown prompt form {form!r}: use {', '.join(FORMS)}")
    return 0 if form == INITIALIZATION else 1 if form in MUTATIONS else 2


def templates(folder: str | Path | None = None, problem: Problem | None = None) -> dict[str, str]:
    """Every template by file name: ours, the contracts of `problem` where it has any, and in their
    place those of the user's `folder`.

    Raises InputError for a folder or file that cannot be read, an unknown file name (a misspelt
    one would silently change nothing), and placeholders that are missing, unknown or malformed.
    """
    texts, allowed = dict(_built_in()), dict(PLACEHOLDERS)
    if problem is not None:
        allowed |= {f"{problem.name}-{role}.txt": names for role, names in _CONTRACT.items()}
        if problem.offers("contract"):
            texts |= {f"{problem.name}-{role}.txt": problem.contract(role) for role in ROLES}
    if folder is None:
        return texts
    for path in _files(Path(folder)):
        if path.name not in allowed:
            known = ", ".join(sorted(allowed))
            raise InputError(f"{path} is no prompt template: name it one of {known}")
        texts[path.name] = _read(path, allowed[path.name])
    return texts


def digest(texts: Mapping[str, str]) -> str:
    """Hex digest of some templates: equal ones ask alike."""
    found = hashlib.blake2b(digest_size=16)
    for name, text in sorted(texts.items()):
        found.update(f"{name}\0{len(text)}\0{text}".encode())
    return found.hexdigest()


def render(
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
    texts: Mapping[str, str] | None = None,
) -> Prompt:
    """The prompt that asks for one program.

    problem: its name. form: one of FORMS, or of the baselines' own; parents: as many
    programs of the same role as the form needs, shown as `show_parents` says. destroy: for a
    repair, the program it answers, shown as `show_destroy` says. state: whether the program may use
    steps_since_improvement. reflection: for the forms that show one. texts: all templates, see
    `templates`; without a folder by default.
    Raises InputError where these do not fit together.
    """
    _check(role, form, parents, destroy)
    for name, how in (("show_destroy", show_destroy), ("show_parents", show_parents)):
        if how not in SHOW_DESTROY:
            raise InputError(f"{name} is {how!r}: use {', '.join(SHOW_DESTROY)}")
    texts = templates(problem=get_problem(problem)) if texts is None else texts
    contract = f"{problem}-{role}.txt"
    if contract not in texts:
        raise InputError(
            f"no prompt for the {role} role of problem {problem!r}: "
            f"write {contract} into a folder of prompt templates"
        )
    variant = "" if state else "-stateless"

    def fill(name: str, **values: str) -> str:
        return _fill(texts, name, **values)

    paired = ""
    if destroy:
        paired = fill("paired-destroy.txt", program=_shown(texts, destroy, show_destroy))
    family = [
        fill("parent.txt", number=str(number), program=_shown(texts, parent, show_parents))
        for number, parent in enumerate(parents, 1)
    ]
    extra = {"reflection": reflection} if form in REFLECTED else {}
    request = f"{form}{variant if form == 'state-control-redesign' else ''}.txt"
    text = fill(
        "layout.txt",
        contract=fill(
            contract,
            state_input=fill(f"state-input{variant}.txt"),
            adaptation=fill(f"adaptation-{role}.txt" if state else "adaptation-stateless.txt"),
            paired_destroy=paired,
        ),
        rules=fill("rules.txt", role=role),
        request=fill(request, role=role, parents="\n\n".join(family), **extra),
        output=fill("output.txt", role=role),
    )
    return Prompt(problem, role, form, text + "\n", tuple(parents), destroy, state)


def short_reflection(
    problem: str,
    worse: Pair,
    better: Pair,
    words: int,
    show: ShowDestroy = "both",
    texts: Mapping[str, str] | None = None,
) -> Prompt:
    """The prompt that asks for one hint, of fewer than `words` words, on what makes a difference.

    Its answer is prose. show: what it shows of the programs.
    """
    texts = _built_in() if texts is None else texts

    def both(pair: Pair) -> str:
        return "\n".join(_shown(texts, program, show) for program in (pair.destroy, pair.repair))

    values = {"problem": problem.upper(), "words": str(words)}
    text = _fill(texts, "short-reflection.txt", worse=both(worse), better=both(better), **values)
    return Prompt(problem, "destroy", "short-reflection", text + "\n")


def long_reflection(
    problem: str,
    before: str,
    hints: Sequence[str],
    words: int,
    texts: Mapping[str, str] | None = None,
) -> Prompt:
    """The prompt that asks for advice of fewer than `words` words. Its answer is prose.

    before: the advice of the round before, if there was any. hints: of this round.
    """
    values = {"problem": problem.upper(), "words": str(words), "before": before or "(nothing yet)"}
    listed = "\n".join(f"- {hint}" for hint in hints) or "(none)"
    texts = _built_in() if texts is None else texts
    text = _fill(texts, "long-reflection.txt", hints=listed, **values)
    return Prompt(problem, "destroy", "long-reflection", text + "\n")


def _fill(texts: Mapping[str, str], name: str, **values: str) -> str:
    return Template(texts[name]).substitute(values).strip("\n")


def _shown(texts: Mapping[str, str], program: Program, how: ShowDestroy) -> str:
    return _fill(
        texts,
        f"shown-{how}.txt",
        strategy=program.strategy or "(none given)",
        source=program.source.strip("\n"),
    )


def _check(role: Role, form: str, parents: Sequence[Program], destroy: Program | None) -> None:
    if role not in ROLES:
        raise InputError(f"unknown role {role!r}: a role is 'destroy' or 'repair'")
    if form not in _PARENTS:
        parents_of(form)  # says which there are
    if len(parents) not in _PARENTS[form]:
        few = " or ".join(str(count) for count in _PARENTS[form])
        raise InputError(f"form {form!r} shows {few} parents, not {len(parents)}")
    if any(parent.role != role for parent in parents):
        raise InputError(f"the parents of a {role} program must be {role} programs")
    if (destroy is None) != (role == "destroy"):
        raise InputError("a repair prompt needs its paired destroy, a destroy prompt has none")
    if destroy is not None and destroy.role != "destroy":
        raise InputError("the paired program of a repair prompt must be a destroy program")


@cache
def _built_in() -> dict[str, str]:
    ours = resources.files(__name__)
    return {name: ours.joinpath(name).read_text("utf-8") for name in PLACEHOLDERS}


def _files(folder: Path) -> list[Path]:
    """The entries of a user's folder, hidden ones aside (editors leave them behind)."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise InputError(
            f"cannot read the folder of prompt templates {folder}: {error.strerror}"
        ) from None


def _read(path: Path, names: set[str]) -> str:
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise InputError(f"cannot read prompt template {path}: not a regular file")
        text = path.read_text("utf-8")
    except OSError as error:
        raise InputError(f"cannot read prompt template {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"prompt template {path} is not UTF-8 text") from None
    if "\0" in text:
        raise InputError(f"prompt template {path} holds a null character")
    template = Template(text)
    if not template.is_valid():
        raise InputError(f"prompt template {path} has a stray $: write $$ for a dollar sign")
    found = set(template.get_identifiers())
    for problem, wrong in (("lacks", names - found), ("has unknown", found - names)):
        if wrong:
            listed = ", ".join(f"${name}" for name in sorted(wrong))
            raise InputError(f"prompt template {path} {problem} placeholder {listed}")
    return text

"""The files of prompt templates: what a form declares, placeholders, a folder of the user's."""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from string import Template
from typing import Literal, cast, get_args

from spo_jax.envs.problem import Problem
from spo_jax.errors import InputError
from spo_jax.program import ROLES, Role
from spo_jax.search.writing.languages import LANGUAGES

Kind = Literal["mutation", "crossover", "other"]

HEADER = "#form "
STATELESS = "-stateless"
CONTRACT: dict[Role, set[str]] = {
    "destroy": {"state_input", "adaptation"},
    "repair": {"state_input", "adaptation", "paired_destroy"},
}
NEAR = 0.6  # of 1: names of contracts that are as much alike may be misspelt
# In rules.txt: what the list of modules goes on with, and how a matrix is read, if there is one.
KIT_MODULE, MATRIX_RULE = "kit_module", "matrix_rule"


@dataclass(frozen=True)
class Form:
    """A prompt form as its file declares it. parents: the fewest and the most that it shows.

    language: a name of LANGUAGES, "" for SPO's.
    """

    name: str
    kind: Kind
    parents: tuple[int, int]
    role: Role | Literal["both"] = "both"
    turn: float = math.inf
    language: str = ""


def declaration(path: Path, text: str) -> tuple[Form | None, str]:
    """The declaration of a form, if a template begins with one, and the text after it."""
    if not text.startswith(HEADER) or path.suffix != ".txt":
        return None, text
    header, _, text = text.partition("\n")
    given = dict(part.partition("=")[::2] for part in header.removeprefix(HEADER).split())
    few = re.fullmatch(r"(\d{1,3})(?:-(\d{1,3}))?", given.get("parents", ""))
    fewest = int(few[1]) if few else -1
    most = int(few[2] or few[1]) if few else -1
    role, turn = given.get("role", "both"), given.get("turn", "")
    language = given.get("language", "")
    if not (
        given.keys() <= {"kind", "parents", "role", "turn", "language"}
        and given.get("kind") in get_args(Kind)
        and (0 if given["kind"] == "other" else 1) <= fewest <= most
        and role in (*ROLES, "both")
        and ("turn" not in given or turn.isdecimal())
        and language in LANGUAGES
    ):
        raise InputError(
            f"prompt template {path} begins with {header!r}; write '#form kind=mutation|crossover|"
            "other parents=N or N-M [role=destroy|repair|both] [turn=N] [language=eoh]', where "
            "mutations and crossovers show at least 1 parent"
        )
    kind, rank = cast(Kind, given["kind"]), float(turn or math.inf)
    return Form(path.stem, kind, (fewest, most), cast(Role, role), rank, language), text


def require_same(path: Path, form: Form, ours: Form | None) -> None:
    """Raises InputError for a declaration that methods which ask for a form could not follow."""
    if ours is None:
        raise InputError(f"prompt template {path} is no prompt form: leave out its line {HEADER}")
    if replace(form, turn=ours.turn) != ours:
        raise InputError(
            f"prompt template {path} declares a form of the package anew: leave out its line "
            f"{HEADER}, or give the file another name"
        )


def with_values(text: str, values: Mapping[str, str]) -> str:
    """A template with some of its placeholders filled. Where a value is empty, the line that is
    nothing but its placeholder goes, and the empty line after it.
    """
    filled = {name: value.strip("\n").replace("$", "$$") for name, value in values.items()}
    names = "|".join(map(re.escape, values))
    empty = "|".join(re.escape(name) for name, value in filled.items() if not value)
    if empty:
        text = re.sub(rf"(?m)^\$(?:({empty})|\{{({empty})\}})\n\n?", "", text)
    if not names:
        return text
    # A pair of dollar signs is one sign, not the beginning of a placeholder.
    places = rf"\$\$|\$(?:({names})\b|\{{({names})\}})"
    return re.sub(places, lambda m: filled[m[1] or m[2]] if m[1] or m[2] else m[0], text)


def matrix_rule(problem: Problem | None) -> str:
    """How programs read a matrix of the problem; "" where it has none."""
    names = ["dist"]
    if problem is not None and hasattr(problem, "interface"):
        names = [each.name for each in problem.interface.arguments if each.kind == "matrix"]
    if not names:
        return ""
    name, what = ("dist", "distances") if "dist" in names else (names[0], "numbers")
    return (
        f"- Single {what} are fastest as row = {name}[i] and then row[j]; len({name}) and numpy "
        f"functions on {name} work as well, for code that is vectorised throughout."
    )


def require_placeholders(
    what: str,
    text: str,
    known: set[str] | None,
    form: Form | None,
    extra: Collection[str] = (),
) -> None:
    """what: names the text. known: what the file must have, where it replaces one; else it is a
    request of `form`. extra: what it may have besides.
    """
    template = Template(text)
    if not template.is_valid():
        raise InputError(f"{what} has a stray $: write $$ for a dollar sign")
    needed = (known or set()).difference(extra)
    allowed = needed.union(extra) if known is not None else set()
    if known is None and form is not None:
        needed = {"parents"} if form.parents[1] else set()
        allowed = needed | {"role"} | ({"reflection"} if form.kind == "other" else set())
        allowed |= {"name"} if form.language else set()
    found = identifiers(text)
    for problem, wrong in (("lacks", needed - found), ("has unknown", found - allowed)):
        if wrong:
            listed = ", ".join(f"${name}" for name in sorted(wrong))
            raise InputError(f"{what} {problem} placeholder {listed}")


def identifiers(text: str) -> set[str]:
    return set(Template(text).get_identifiers())


def files_of(folder: Path) -> list[Path]:
    """The entries of a user's folder, hidden ones aside (editors leave them behind)."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise InputError(
            f"cannot read the folder of prompt templates {folder}: {error.strerror}"
        ) from None


def text_of(path: Path) -> str:
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
    return text


def of_another(path: Path, text: str, ours: Mapping[str, Role]) -> bool:
    """Whether a file is the contract of another problem, and not ours with a wrong name."""
    if not ours or path.suffix != ".txt":
        return False
    for own, role in ours.items():
        end = f"-{role}.txt"
        if path.name.endswith(end) and CONTRACT[role] <= identifiers(text):
            name, known = path.name.removesuffix(end), own.removesuffix(end)
            misspelt = SequenceMatcher(None, name, known).ratio() > NEAR
            return path.with_name(own).exists() or not misspelt
    return False

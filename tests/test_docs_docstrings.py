"""Docstrings of what is public are in Google's style, and name the parameters that are there."""

import builtins
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import spo_jax
from spo_jax import errors

DOCS = Path(__file__).parents[1] / "docs"
# What those of public things take, return or are held to.
RELATED = (
    "spo_jax.envs.files.reading.Reading",
    "spo_jax.envs.run.adaptive",
    "spo_jax.envs.run.observation.Shown",
    "spo_jax.envs.run.jobs.operators.AdaptiveRuns",
    "spo_jax.registry",
)
HEADING = re.compile(r"(Args|Returns|Yields|Raises|Attributes):")
ENTRY = re.compile(r" {4}(\*{0,2}\w+): \S")


# --- what is public -------------------------------------------------------------------------------


def found(dotted: str) -> Any:
    """A module, or what is in one."""
    try:
        return import_module(dotted)
    except ModuleNotFoundError:
        module, _, name = dotted.rpartition(".")
        return getattr(found(module), name)


def members(thing: Any) -> Iterator[Any]:
    """Public functions, classes, methods and properties of a module or class, and itself."""
    if isinstance(thing, ModuleType):
        own = (name for name, each in vars(thing).items() if whose(each) == thing.__name__)
        for name in getattr(thing, "__all__", own):
            if not name.startswith("_"):
                yield from members(getattr(thing, name))
    elif isinstance(thing, type):
        yield thing
        for name, each in vars(thing).items():
            if not name.startswith("_"):
                plain = each.__func__ if isinstance(each, staticmethod | classmethod) else each
                if inspect.isfunction(plain) or isinstance(plain, property):
                    yield plain
    elif inspect.isfunction(inspect.unwrap(thing)):  # also where a cache is around it
        yield thing


def whose(thing: Any) -> str:
    return getattr(thing, "__module__", None) or ""


def path_of(thing: Any) -> str:
    plain = thing.fget if isinstance(thing, property) else thing
    return f"{plain.__module__}.{plain.__qualname__}"


def surface() -> dict[str, Any]:
    text = (DOCS / "extending.md").read_text("utf-8")
    pages = "\n".join(each.read_text("utf-8") for each in (DOCS / "reference").glob("*.md"))
    named = {f"spo_jax.{name}" for name in spo_jax.__all__} | {*RELATED}
    named |= {*re.findall(r"\bspo_jax(?:\.[A-Za-z]\w*)+", text)}
    named |= {*re.findall(r"^::: (\S+)$", pages, re.MULTILINE)}
    return {path_of(each): each for name in sorted(named) for each in members(found(name))}


PUBLIC = surface()


# --- the style ------------------------------------------------------------------------------------


def sections(doc: str) -> tuple[str, dict[str, list[str]]]:
    """The prose of a docstring, and the lines of each section without continuations."""
    prose: list[str] = []
    parts: dict[str, list[str]] = {}
    now = ""
    for line in inspect.cleandoc(doc).split("\n"):
        if HEADING.fullmatch(line):
            now = line[:-1]
            assert now not in parts, f"{now} twice"
            parts[now] = []
        elif line and not line.startswith(" "):
            now = ""
        if not now:
            prose.append(line)
        elif line.startswith("    ") and not line.startswith("     "):
            parts[now].append(line)
    return "\n".join(prose), parts


def parameters_of(thing: Any) -> list[str]:
    """As a docstring names them: with the asterisks of those that take several."""
    if isinstance(thing, property):
        return []
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    try:
        given = inspect.signature(thing).parameters.values()
    except ValueError:  # an enumeration has none
        return []
    return [stars.get(p.kind, "") + p.name for p in given if p.name not in ("self", "cls")]


def attributes_of(thing: Any) -> tuple[list[str], bool]:
    """The names that may be attributes, and whether all of them are to be there."""
    if is_dataclass(thing):
        return [each.name for each in fields(thing)], True
    if hasattr(thing, "_fields"):  # a named tuple
        return list(thing._fields), True
    source = inspect.getsource(thing) if isinstance(thing, type) else ""
    return [*inspect.get_annotations(thing), *re.findall(r"self\.([a-z]\w*)\b", source)], False


def faults(thing: Any) -> list[str]:
    """What is wrong with a docstring, in words."""
    prose, parts = sections((thing.fget if isinstance(thing, property) else thing).__doc__ or "")
    wrong = [] if prose or not parts else ["no summary"]
    own = parameters_of(thing)
    entries = {name: [ENTRY.match(line) for line in lines] for name, lines in parts.items()}
    named: dict[str, list[str]] = {}
    for part in ("Args", "Raises", "Attributes"):
        matches = [match for match in entries.get(part, []) if match]
        named[part] = [match[1] for match in matches]
        if len(matches) < len(entries.get(part, [])):
            wrong.append(f"a line of {part} has no name")
    wrong += [f"nothing under {part}" for part, lines in parts.items() if not lines]
    if "Args" in parts and named["Args"] != own:
        wrong.append(f"Args are {named['Args']}, parameters {own}")
    known, all_of_them = attributes_of(thing) if isinstance(thing, type) else ([], False)
    if "Attributes" in parts:
        if named["Attributes"] != known if all_of_them else set(named["Attributes"]) - {*known}:
            wrong.append(f"Attributes are {named['Attributes']}, of {known}")
    elif all_of_them and {"Attributes", "Args"} & {*parts}:
        wrong.append("Args of a dataclass are Attributes")
    module = import_module(thing.fget.__module__ if isinstance(thing, property) else whose(thing))
    for name in named["Raises"]:
        kind = next((vars(m)[name] for m in (module, errors, builtins) if name in vars(m)), None)
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            wrong.append(f"{name} is raised, which is no exception")
    # "size: what it counts. shape: [N, 2].", where a name begins a line or follows a full stop.
    names = {name.lstrip("*") for name in own} | {*known}
    for match in re.finditer(r"(?:^|(?<=[.;] ))([a-z_]\w*(?:, [a-z_]\w*)*): ", prose, re.MULTILINE):
        if {*match[1].split(", ")} <= names:
            wrong.append(f"{match[1]} is explained in the prose")
    if found := re.search(r"\bRaises [A-Z]\w+", prose):
        wrong.append(f"{found[0]!r} is in the prose")
    return wrong


@pytest.mark.parametrize("path", PUBLIC)
def test_a_public_docstring_is_in_the_style(path: str) -> None:
    assert not faults(PUBLIC[path])


# --- the test itself ------------------------------------------------------------------------------


def good(size: int, *more: int, seed: int = 0, **rest: Any) -> int:
    """Do it.

    It is done so: at once.

    Args:
        size: What it counts,
            in nodes: all.
        *more: Others.
        seed: Of the stream.
        **rest: Ignored.

    Returns:
        How many.

    Raises:
        InputError: It is not done.
        ValueError: Likewise.
    """
    return 0


def missing(size: int, seed: int) -> None:
    """Do it.

    Args:
        size: What it counts.
    """


def renamed(size: int) -> None:
    """Do it.

    Args:
        shape: What it counts.
    """


def joined(size: int, seed: int) -> None:
    """Do it.

    Args:
        size, seed: What it counts.
    """


def old(size: int, seed: int) -> None:
    """Do it.

    size: what it counts.
    """


def old_within(size: int, seed: int) -> None:
    """Do it. seed: of the stream."""


def old_raises(size: int) -> None:
    """Do it. Raises InputError where it is not done."""


def unknown(size: int) -> None:
    """Do it.

    Raises:
        InptError: It is not done.
    """


def empty(size: int) -> None:
    """Do it.

    Returns:
    """


@dataclass
class Fields:
    """What it is.

    Attributes:
        size: What it counts.
    """

    size: int
    seed: int


class Loose:
    """What it is.

    Attributes:
        seed: Of the stream.
    """

    size: int


def test_the_style_has_no_fault() -> None:
    assert not faults(good)


@pytest.mark.parametrize(
    ("thing", "fault"),
    [
        (missing, "Args are"),
        (renamed, "Args are"),
        (joined, "has no name"),
        (old, "size is explained in the prose"),
        (old_within, "seed is explained in the prose"),
        (old_raises, "'Raises InputError' is in the prose"),
        (unknown, "InptError"),
        (empty, "nothing under Returns"),
        (Fields, "Attributes are"),
        (Loose, "Attributes are"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_fault_is_found(thing: Any, fault: str) -> None:
    assert any(fault in each for each in faults(thing))


def test_the_surface_has_what_it_should() -> None:
    for path in (
        "spo_jax.program.types.Program.from_source",
        "spo_jax.envs.problem.Problem.spec",
        "spo_jax.search.population.tokens",
        "spo_jax.runs.pairs.solve",
        "spo_jax.runs.tracking.Tracker.check",
        "spo_jax.rl.gradients.Objective.loss",
    ):
        assert path in PUBLIC

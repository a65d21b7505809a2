"""The layout of a pair file: order of statements, import lines, docstrings and the file's head."""

import ast
import random
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from spo_jax.program.game import DESTROY_REPAIR
from spo_jax.program.interface import Argument, Interface
from spo_jax.program.scopes import Import, Statement, checked, offset
from spo_jax.program.syntax import parse_tree
from spo_jax.program.types import one_line

WIDTH = 96  # columns of a docstring's lines
_WARNING = (
    "A search generated these programs. This file runs them without a sandbox, with all rights of "
    "its user: read them first. `spo solve` and `spo evaluate` run them in a sandbox."
)

_SIDES = re.compile(r"^Its functions: (\w+) leads, (\w+) follows\.$", re.MULTILINE)
TERMS_FOLLOW = "The pair was discovered for this search, which spo-jax gives it:"


def layout(
    imports: Iterable[Import],
    statements: Sequence[Statement],
    entries: tuple[str, ...],
    block: tuple[str, Collection[str]] = ("", ()),
) -> str:
    """A module's text: imports, constants, helpers, the entry functions in their order.

    block: a text and the names that it binds. It comes last, so that the programs come first; or
    after the imports, where a statement needs it when the module is read.
    """

    def rank(statement: Statement) -> int:
        for position, entry in enumerate(entries):
            if defines(statement, entry):
                return 2 + position
        return int(statement.is_function)

    bound = [name for each in statements for name in each.binds]
    if len(bound) == len(set(bound)):  # if a name is bound twice, the order matters
        statements = _after_needs(sorted(statements, key=rank))
    text, names = block
    first = any(not each.needs.isdisjoint(names) for each in statements)
    parts = [_import_lines(imports), f"\n\n{text}" if text and first else ""]
    for index, each in enumerate(statements):
        tight = index > 0 and not each.is_function and not statements[index - 1].is_function
        parts.append(("\n" if tight else "\n\n\n" if each.is_function else "\n\n") + each.text)
    if text and not first:
        parts.append(f"\n\n\n{text}")
    return "".join(parts).strip("\n") + "\n"


def _after_needs(statements: list[Statement]) -> list[Statement]:
    """The statements in their order, but each after the statements that it needs at run time.

    No name may be bound twice.
    """
    binder = {name: place for place, each in enumerate(statements) for name in each.binds}

    def needed(place: int) -> Iterator[int]:
        return iter(sorted({binder[name] for name in statements[place].needs if name in binder}))

    placed: list[Statement] = []
    begun: set[int] = set()
    for first in range(len(statements)):
        waiting = [] if first in begun else [(first, needed(first))]
        begun.add(first)
        while waiting:
            place, before = waiting[-1]
            following = next((each for each in before if each not in begun), None)
            if following is None:
                waiting.pop()
                placed.append(statements[place])
            else:
                begun.add(following)
                waiting.append((following, needed(following)))
    return placed


def _import_lines(imports: Iterable[Import]) -> str:
    """Sorted import statements, the members of one module in one line."""
    plain: set[str] = set()
    members: dict[str, set[str]] = {}
    for each in imports:
        if each.member is not None:
            suffix = f" as {each.name}" if each.name != each.member else ""
            members.setdefault(each.module, set()).add(each.member + suffix)
        elif each.name == each.module.partition(".")[0]:
            plain.add(f"import {each.module}")
        else:
            plain.add(f"import {each.module} as {each.name}")
    lines = [
        f"from {module} import {', '.join(sorted(names))}" for module, names in members.items()
    ]
    lines.sort(key=lambda line: (not line.startswith("from __future__"), line))
    future = [line for line in lines if line.startswith("from __future__")]
    return "\n".join([*future, *sorted(plain), *lines[len(future) :]])


def acts_unnamed(each: Import) -> bool:
    """Whether an import has an effect beyond its name."""
    return each.name == "*" or each.module == "__future__"


def defines(statement: Statement, name: str) -> bool:
    return isinstance(statement.node, ast.FunctionDef) and statement.node.name == name


def with_docstring(function: Statement, strategy: str) -> Statement:
    """The function with the strategy as its docstring; an older docstring becomes a comment."""
    node = function.node
    assert isinstance(node, ast.FunctionDef)
    old = ast.get_docstring(node)
    strategy = one_line(strategy)
    if not strategy:
        return function
    # Python 3.13 compiles no docstring with an unpaired surrogate, not even an escaped one.
    if old is not None and one_line(old) == strategy and not re.search("[\ud800-\udfff]", old):
        return function
    lines = function.text.encode().split(b"\n")
    body = node.body
    indent = " " * (body[0].col_offset if body[0].lineno > node.lineno else 4)
    quoted = _quoted(strategy, indent)
    if old is not None:
        start = offset(lines, body[0].lineno, body[0].col_offset)
        end = offset(lines, body[0].end_lineno or 0, body[0].end_col_offset or 0)
        kept = (_printable(line) for line in old.split("\n"))
        comment = "".join(f"\n{indent}# {line}".rstrip() for line in kept)
        new, body = quoted + comment, body[1:]
    else:
        first = body[0]
        line = min([first.lineno, *(each.lineno for each in getattr(first, "decorator_list", []))])
        while line > 1 and lines[line - 2].lstrip().startswith(b"#"):
            line -= 1
        start = end = offset(lines, line, 0)
        new = f"{indent}{quoted}\n"
    raw = function.text.encode()
    text = (raw[:start] + new.encode() + raw[end:]).decode("utf-8", "replace")
    tree = parse_tree(function.text)
    documented = tree.body[0]
    assert isinstance(documented, ast.FunctionDef)
    docstring = parse_tree(quoted).body[0]
    documented.body = [docstring, *documented.body[len(documented.body) - len(body) :]]
    return checked(text, tree)


def _quoted(text: str, indent: str) -> str:
    """A wrapped triple-quoted literal, equal to one-line `text` up to white space."""
    body, last = (text[:-1], '\\"') if text.endswith('"') else (text, "")
    escaped = body.replace("\\", "\\\\").replace('"""', '\\"\\"\\"') + last
    lines = textwrap.wrap(
        _printable(escaped), WIDTH - len(indent) - 6, break_long_words=False, break_on_hyphens=False
    )
    return '"""' + f"\n{indent}".join(lines) + '"""'


def _printable(text: str) -> str:
    """`text` with escapes for invisible and unwritable characters."""
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in text)


_RANDOM = frozenset(
    name for name in dir(random.Random) if not name.startswith("_") and name != "seed"
)
_NUMPY_WORDS = frozenset({"size", "p", "replace", "axis", "endpoint", "dtype"})


def head(
    destroy: Statement,
    statements: Sequence[Statement],
    about: str,
    interface: Interface | None,
    uses: Sequence[str] = (),
    terms: Mapping[str, str] | None = None,
    shown: Mapping[str, str] | None = None,
) -> str:
    """The module's docstring: its purpose and its use in one step.

    destroy: the leader's function; its own names serve if the interface is unknown.
    statements: of both programs. uses: paragraphs on what else the module is for. terms: the
    settings of its discovery that differ from the paper's. shown: of another state than the paper's
    what its parts are, by name.
    """
    steps = "state" if shown else "steps"
    names, current = _arguments(destroy.node, interface)
    instance = "".join(f"{name}, " for name in names)
    game = DESTROY_REPAIR if interface is None else interface.game
    (leads, follows), handed = game.functions, ", ".join(game.handed)
    title = _quotable(
        about or game.words("A destroy and a repair program for large neighbourhood search.")
    )
    notes = " ".join(
        [
            *(_note(each) for each in (interface.arguments if interface else ()) if each.about),
            _state_note(shown)
            if shown
            else "steps counts the steps since the best cost last fell.",
            f"rng is {drawn_from(statements)}.",
            "The file needs nothing of spo_jax; `spo solve` reads it.",
        ]
    )
    paragraphs = (
        *textwrap.wrap(title, WIDTH - 3),
        "",
        *textwrap.wrap(_WARNING, WIDTH),
        "",
        "One step of the search makes a candidate from the current solution:",
        "",
        f"    {handed} = {leads}({instance}{current}, {steps}, rng)",
        f"    candidate = {follows}({instance}{handed}, {steps}, rng)",
        "",
        *(
            ()
            if game == DESTROY_REPAIR
            else (f"Its functions: {leads} leads, {follows} follows.", "")
        ),
        *textwrap.wrap(notes, WIDTH),
        *(("", TERMS_FOLLOW, "") if terms else ()),
        *(f"    {name} = {value}" for name, value in (terms or {}).items()),
        *(line for use in uses for line in ("", *use.split("\n"))),
    )
    return '"""' + "\n".join(paragraphs) + '\n"""'


def sides_in(text: str) -> tuple[str, str]:
    """The names of the leader's and the follower's function in the text of a pair file."""
    found = _SIDES.search(ast.get_docstring(parse_tree(text), clean=False) or "")
    return DESTROY_REPAIR.functions if found is None else (found[1], found[2])


def _arguments(destroy: ast.stmt, interface: Interface | None) -> tuple[list[str], str]:
    """Names for the instance's arguments and for the current solution."""
    if interface is not None:
        return [each.name for each in interface.arguments], interface.current
    assert isinstance(destroy, ast.FunctionDef)
    names = [each.arg for each in (*destroy.args.posonlyargs, *destroy.args.args)]
    return (names[:-3], names[-3]) if len(names) > 3 else (["*instance"], "current")


def _state_note(parts: Mapping[str, str]) -> str:
    """A sentence that describes a state that is not the paper's."""
    names = f"({', '.join(parts)})" if len(parts) > 1 else ", ".join(parts)
    text = f"state is {names}: {'; '.join(f'{name}, {about}' for name, about in parts.items())}."
    return _quotable(text)


def _quotable(text: str) -> str:
    """One line that a docstring may hold."""
    return _printable(one_line(text)).replace("\\", "/").replace('"', "'")


def _note(argument: Argument) -> str:
    """A sentence that describes an argument."""
    name = argument.name
    if argument.kind == "matrix":
        view = f"a NumPy array, or nested lists where the code only writes {name}[i][j]"
        return f"{name} is {argument.about}: {view}."
    entry = f"{name}[i]" if argument.kind == "row" else name
    return f"{entry} is {argument.about}."


def drawn_from(statements: Iterable[Statement]) -> str:
    """The generator that the programs need, from the methods they call on `rng`."""
    used: set[str] = set()
    numpy = False
    for node in (each for statement in statements for each in ast.walk(statement.node)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id == "rng":
                used.add(node.func.attr)
                numpy |= any(word.arg in _NUMPY_WORDS for word in node.keywords)
    if used <= _RANDOM and not numpy:
        return "a random.Random"
    if not used & (_RANDOM - {"random", "uniform", "choice", "shuffle"}):
        return "a numpy.random.Generator"
    return f"an object with the methods {', '.join(sorted(used))}"

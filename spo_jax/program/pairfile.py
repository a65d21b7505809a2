"""Pair files: a Python file with two functions, `destroy` and `repair` (or those of another game,
which its head names), their strategies in their docstrings, and the helpers, constants and imports
that they share.

`load_pair` splits a file into two programs, each with only the names it reaches. `format_pair`
merges two programs into one self-contained module. It keeps equal helpers once, and renames names
with different meanings in the two programs, by scope, so that both behave as before.
"""

import ast
import builtins
import keyword
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from spo_jax.constants import KIT, TERMS
from spo_jax.errors import InputError, Rejection, require_path
from spo_jax.program import kitfile
from spo_jax.program.game import DESTROY_REPAIR, Game
from spo_jax.program.interface import Interface
from spo_jax.program.pairtext import (
    TERMS_FOLLOW,
    acts_unnamed,
    defines,
    head,
    layout,
    sides_in,
    with_docstring,
)
from spo_jax.program.scopes import Import, Statement, identifiers, module_names, rename, split
from spo_jax.program.syntax import parse_tree
from spo_jax.program.types import MAX_SOURCE, ROLES, Pair, Program, entry_function

NONE: Mapping[str, str] = MappingProxyType({})
MAX_FILE = 6 * MAX_SOURCE  # bytes; two programs, the kit and what surrounds them


class Unwritable(InputError):
    """A pair that no pair file can hold."""


@dataclass(frozen=True)
class _Module:
    """The top of one program or pair file, in source order."""

    imports: tuple[Import, ...]
    statements: tuple[Statement, ...]

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that it binds."""
        return frozenset(each.name for each in self.imports).union(
            *(each.binds for each in self.statements)
        )

    @cached_property
    def uses(self) -> frozenset[str]:
        return frozenset().union(*(each.uses for each in self.statements))

    @cached_property
    def binders(self) -> Mapping[str, list[int]]:
        """The indices of the statements that bind each name."""
        return _places(each.binds for each in self.statements)

    def rename(self, names: dict[str, str]) -> "_Module":
        return _Module(
            tuple(replace(each, name=names.get(each.name, each.name)) for each in self.imports),
            tuple(rename(each, names) for each in self.statements),
        )

    def function(self, name: str) -> Statement:
        return next(each for each in self.statements if defines(each, name))


# --- reading --------------------------------------------------------------------------------------


def load_pair(path: str | Path, game: Game | None = None) -> Pair:
    """Read the pair in a pair file. The sandbox checks the contract later.

    Args:
        path: The file.
        game: Whose functions it has to have; by default that which its head names, else `destroy`
            and `repair`.

    Returns:
        The pair; the strategy of each program is its function's docstring.

    Raises:
        InputError: It is missing, unreadable, too large, not UTF-8, not Python, or lacks a role.
    """
    require_path("path", path)
    path = Path(path)
    return parse_pair(read_file(path), str(path), game)


def load_terms(path: str | Path) -> dict[str, str]:
    """Read the settings in the head of a pair file: how its pair was discovered.

    Args:
        path: The file, which `load_pair` reads.

    Returns:
        Those of `TERMS` that are not the paper's, by name.
    """
    document = ast.get_docstring(parse_tree(read_file(Path(path))), clean=False) or ""
    block = re.search(f"^{TERMS_FOLLOW}\n\n((?:    .+\n?)*)", document, re.MULTILINE)
    lines = block[1].splitlines() if block else []
    pairs = (line.strip().partition(" = ") for line in lines)
    return {name: value for name, _, value in pairs if name in TERMS}


def read_file(path: Path) -> str:
    """The text of a file of programs; it raises as `load_pair` does."""
    try:
        with open(path, "rb") as file:
            raw = file.read(MAX_FILE + 1)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: a folder, where a pair file (Python) is expected") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{str(path)!r}: not a file name") from None
    if len(raw) > MAX_FILE:
        raise InputError(f"{path}: larger than a pair file may be ({MAX_FILE // 1024} KiB)")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from None


def parse_pair(text: str, where: str, game: Game | None = None) -> Pair:
    """The pair in a pair file's text; `where` names it in errors. It raises as `load_pair` does."""
    try:
        module = _Module(*split(kitfile.plain(text)))
        nodes = [each.node for each in module.statements]
        functions = [node.name for node in nodes if isinstance(node, ast.FunctionDef)]
        names = sides_in(text) if game is None else game.functions
        if names[0] == names[1]:
            raise Rejection(f"not a pair file: by its head {names[0]} leads and follows")
        for name in names:
            if functions.count(name) != 1:
                found = ", ".join(functions[:5]) or "none"
                count = "no" if name not in functions else "more than one"
                raise Rejection(f"not a pair file: {count} function named {name} (found: {found})")
        parts = {name: _reached(module, name) for name in names}
        sources = {
            name: layout(part.imports, part.statements, (name,)) for name, part in parts.items()
        }
        return Pair(
            *(
                Program.from_source(role, sources[name], function=name)
                for role, name in zip(ROLES, names, strict=True)
            )
        )
    except Rejection as error:
        raise InputError(f"{where}: {error.reason}") from None


def _reached(module: _Module, function: str) -> _Module:
    """The part of a module that one of its functions reaches.

    A statement that binds no name acts on import; it stays, and the sandbox's gate refuses it.
    """
    reached: set[str] = {function}
    taken: set[int] = set()
    pending = [k for k, each in enumerate(module.statements) if not each.binds]
    pending += module.binders.get(function, ())
    while pending:
        index = pending.pop()
        if index not in taken:
            taken.add(index)
            new = module.statements[index].uses - reached
            reached |= new
            pending += [place for name in new for place in module.binders.get(name, ())]
    imports = (each for each in module.imports if each.name in reached or acts_unnamed(each))
    return _Module(tuple(imports), tuple(module.statements[index] for index in sorted(taken)))


# --- writing --------------------------------------------------------------------------------------


def format_pair(
    pair: Pair,
    about: str = "",
    interface: Interface | None = None,
    kit: str = "",
    tail: str = "",
    terms: Mapping[str, str] = NONE,
    shown: Mapping[str, str] = NONE,
) -> str:
    """Write a module with both programs, independent of spo_jax, as a text.

    Args:
        pair: The programs.
        about: Origin and quality, for the head of the module's docstring.
        interface: The problem's, whose descriptions of arguments go there as well, and whose game
            says what the functions are called.
        kit: The module of the problem's kit (`Problem.kit`), of which the file gets what the
            programs use; without it their imports of `lns` stay as they are.
        tail: Code to put behind the pair, which calls it; its docstrings go to the head, and names
            in the programs give way to its own.
        terms: How the pair was discovered, as `load_terms` returns it.
        shown: What the parts of its state are, by name, where that is not the paper's.

    Returns:
        The text, which `load_pair` reads from a file.

    Raises:
        Unwritable: The contract forbids a program: no such function, nested too deeply.
    """
    modules: list[_Module] = []
    names = DESTROY_REPAIR.functions if interface is None else interface.game.functions
    for program, name in zip((pair.destroy, pair.repair), names, strict=True):
        try:
            modules.append(_named(program, name))
        except Rejection as error:
            raise Unwritable(f"the {name} program cannot be written: {error.reason}") from None
    try:
        behind = _Module(*split(tail))
        programs = _apart(*_giving_way(modules[0], modules[1], behind), names)
        return _joined(*programs, about, interface, kit, behind, _docstrings(tail), terms, shown)
    except Rejection as error:
        raise Unwritable(f"the pair cannot be written: {error.reason}") from None


def _joined(
    destroy: _Module,
    repair: _Module,
    about: str,
    interface: Interface | None,
    kit: str,
    behind: _Module,
    uses: Sequence[str],
    terms: Mapping[str, str],
    shown: Mapping[str, str],
) -> str:
    shared = _shared(destroy, repair)
    imports = {*destroy.imports, *repair.imports}
    acts = {each.flat for each in destroy.statements if not each.binds}
    statements = list(destroy.statements)
    for each in repair.statements:
        is_shared = each.binds and each.binds <= shared
        if not is_shared and each.flat not in acts:
            statements.append(each)
    ours = sorted((each for each in imports if kit and each.module == KIT), key=str)
    block = kitfile.block(kit, ours, statements) if ours else ""
    imports = imports.difference(ours) | {*behind.imports}
    names = DESTROY_REPAIR.functions if interface is None else interface.game.functions
    body = layout(imports, statements, names, (block, {e.name for e in ours}))
    top = head(destroy.function(names[0]), statements, about, interface, uses, terms, shown)
    last = "".join(f"\n\n{each.text}\n" for each in behind.statements)
    return f"{top}\n\n{body}{last}"


def save_pair(
    path: str | Path,
    pair: Pair,
    about: str = "",
    interface: Interface | None = None,
    kit: str = "",
    tail: str = "",
    terms: Mapping[str, str] = NONE,
    shown: Mapping[str, str] = NONE,
    *,
    overwrite: bool = False,
) -> Path:
    """Write a pair file atomically, and return its path.

    Args:
        path: The file.
        pair: The programs.
        about: As `format_pair` has it.
        interface: Likewise.
        kit: Likewise.
        tail: Likewise.
        terms: Likewise.
        shown: Likewise.
        overwrite: Whether a file that exists is replaced.

    Raises:
        InputError: The file exists, or cannot be written.
        Unwritable: As `format_pair`.
    """
    path = Path(path)
    text = format_pair(pair, about, interface, kit, tail, terms, shown)
    if path.is_dir():
        raise InputError(f"{path}: a folder; give the name of a file")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}")
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists already: choose another name, or remove it first")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, "utf-8")
        os.replace(part, path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return path


def _named(program: Program, name: str) -> _Module:
    """A program's module with its entry function of this name, the strategy in it.

    Raises Rejection for a text without such a program.
    """
    module = _Module(*split(program.source))
    entry = entry_function(parse_tree(program.source), name).name
    taken = set(identifiers(program.source))
    if entry != name:
        if name in module.names:  # a constant or an import of that name
            module = module.rename({name: _fresh(name, "own", taken)})
        function = module.function(entry)
        hidden = any(_calls(each, entry) and name in each.local_names for each in module.statements)
        if hidden:
            # A local variable has the name where the function is called: keep its own name.
            module = replace(module, statements=(*module.statements, _call(function, name)))
        else:
            module = module.rename({entry: name})
    function = module.function(name)
    documented = with_docstring(function, program.strategy)
    statements = tuple(documented if each is function else each for each in module.statements)
    return _reached(replace(module, statements=statements), name)


def _calls(statement: Statement, name: str) -> bool:
    places = module_names(statement.node)
    return any(isinstance(node, ast.Name) and used == name for node, used in places)


def _call(function: Statement, name: str) -> Statement:
    """A function called `name` that passes its positional arguments to `function`."""
    node = function.node
    assert isinstance(node, ast.FunctionDef)
    names = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
    arguments = ", ".join(names[: len(names) - len(node.args.defaults)])
    return Statement(f"def {name}({arguments}):\n    return {node.name}({arguments})")


def _giving_way(destroy: _Module, repair: _Module, behind: _Module) -> tuple[_Module, _Module]:
    """Both modules without the names that the code behind them binds to something else."""
    taken = set().union(
        *(identifiers(each.text) for part in (destroy, repair, behind) for each in part.statements),
        *(part.names for part in (destroy, repair, behind)),
    )
    meant = {each.name: each.target for each in behind.imports}
    clashing = {
        name
        for module in (destroy, repair)
        for name in module.names & behind.names
        if {each.target for each in module.imports if each.name == name} != {meant.get(name)}
    }
    fresh = {name: _fresh(name, "own", taken) for name in sorted(clashing)}
    return destroy.rename(fresh), repair.rename(fresh)


def _docstrings(text: str) -> list[str]:
    """The texts that stand alone at the top of a module."""
    values = (node.value for node in parse_tree(text).body if isinstance(node, ast.Expr))
    return [
        each.value.strip()
        for each in values
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]


def _apart(
    destroy: _Module, repair: _Module, functions: tuple[str, str]
) -> tuple[_Module, _Module]:
    """Both modules, renamed so that no name changes its meaning when they are merged."""
    taken = set().union(
        *(identifiers(each.text) for each in (*destroy.statements, *repair.statements)),
        destroy.names,
        repair.names,
    )
    shared = _shared(destroy, repair)
    leads, follows = functions
    first: dict[str, str] = {}
    second: dict[str, str] = {}
    for name in sorted((destroy.names | repair.names) - shared):
        in_repair = name in repair.names or name in repair.uses
        if name == leads:
            if name in repair.names:
                second[name] = _fresh(name, follows, taken)
        elif name == follows or name not in repair.names:
            if name in destroy.names and in_repair:
                first[name] = _fresh(name, leads, taken)
        elif name in destroy.names or name in destroy.uses:
            second[name] = _fresh(name, follows, taken)
    return destroy.rename(first), repair.rename(second)


def _shared(first: _Module, second: _Module) -> frozenset[str]:
    """Names with the same meaning in both: recursively equal definitions."""
    ours, theirs = _meanings(first), _meanings(second)
    shared = {name for name in ours.keys() & theirs.keys() if ours[name] == theirs[name]}
    # A name is excluded if something it uses, or is bound together with, differs.
    mentions = _places(each.uses | each.binds for each in first.statements)
    differing = list((first.names | second.names) - shared)
    seen: set[int] = set()
    while differing:
        for place in mentions.get(differing.pop(), ()):
            if place not in seen:
                seen.add(place)
                lost = first.statements[place].binds & shared
                shared -= lost
                differing += lost
    return frozenset(shared)


def _meanings(module: _Module) -> dict[str, object]:
    """The definition of each name that is bound once."""
    targets: dict[str, set[object]] = defaultdict(set)
    for each in module.imports:
        targets[each.name].add(each.target)
    found: dict[str, object] = {}
    for name in module.names:
        places = module.binders.get(name, ())
        if len(targets[name]) + len(places) == 1:
            found[name] = module.statements[places[0]].flat if places else targets[name].pop()
    return found


def _places(names: Iterable[Iterable[str]]) -> dict[str, list[int]]:
    """The indices of the sets that contain each name."""
    found: dict[str, list[int]] = defaultdict(list)
    for place, each in enumerate(names):
        for name in each:
            found[name].append(place)
    return found


def _fresh(name: str, prefix: str, taken: set[str]) -> str:
    """An unused name for `name`; marks it as used."""
    stem = f"{prefix}_{name.lstrip('_')}"
    fresh, number = stem, 1
    while fresh in taken or keyword.iskeyword(fresh) or hasattr(builtins, fresh):
        number += 1
        fresh = f"{stem}_{number}"
    taken.add(fresh)
    return fresh

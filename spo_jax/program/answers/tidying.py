"""Makes one program of the blocks of code in a model's answer, which stands on its own.

The last complete function with the asked name counts. What it needs of other blocks comes along;
what surrounds it and does nothing to it goes: examples, tests, prints, other drafts. Modules that
it uses without an import are imported, as in the prompt that it was shown.
"""

import ast
import builtins
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module

from spo_jax.constants import KIT
from spo_jax.program.answers.blocks import Block
from spo_jax.program.scopes import Import, Statement, module_names, split
from spo_jax.program.syntax import parse_tree
from spo_jax.program.versions import renamed

# How a program imports a module that it uses by this name.
_IMPORTS = {
    name: f"import {name}"
    for name in (
        *("math", "random", "heapq", "itertools", "functools", "collections", "bisect"),
        *("operator", "copy", "numpy", KIT),
    )
} | {"np": "import numpy as np"}
_BUILTIN = frozenset(dir(builtins))
_FUTURE = "__future__"


def program_of(blocks: Sequence[Block], name: str) -> tuple[str, Block] | None:
    """The source of a program, and the block with its function; None if there is none.

    The function has the name, destroy_v2 and the like included. One of another name is taken where
    it is the only one that no other calls; beside helpers it gets the name.
    """
    named = re.compile(rf"{name}(?:_v\d{{1,9}})?")
    fits = [each for each in blocks if any(map(named.fullmatch, each.functions))]
    block = fits[-1] if fits else _nameless(blocks)
    if block is None:
        return None
    entries = [each for each in block.functions if named.fullmatch(each)] or _uncalled(block)
    others = [each for each in blocks if each is not block]
    source = standalone(block.source, entries, [each.source for each in others])
    if not fits and len(block.functions) > 1:
        source = renamed(source, {entries[0]: name})
    return source, block


def _nameless(blocks: Sequence[Block]) -> Block | None:
    """The last block with functions, where one of them is called by no other, in no block."""
    found = [each for each in blocks if each.functions]
    return found[-1] if len({name for each in found for name in _uncalled(each)}) == 1 else None


def _uncalled(block: Block) -> list[str]:
    """The names of the functions of a block that its other functions do not use."""
    used = {
        name
        for each in block.tree.body
        for _, name in module_names(each)
        if isinstance(each, ast.FunctionDef) and name != each.name
    }
    return [name for name in dict.fromkeys(block.functions) if name not in used]


def standalone(source: str, entries: Sequence[str], others: Iterable[str] = ()) -> str:
    """A source with what its functions `entries` need, and without what does nothing to them.

    others: further sources, which may have it. A source that needs no change stays as it is, to the
    letter.
    """
    whole = _Module.of(source)
    module = _Module(whole.imports, _last_drafts(whole.statements, entries))
    changed = len(module.statements) < len(whole.statements) or _has_idle(source)
    reached, missing = module.reached(entries)
    for other in map(_Module.of, others):
        if taken := missing & other.names:
            found, _ = other.reached(taken)
            # Not another draft of the same function.
            found = [each for each in found if not each.binds & {*entries}]
            module = _Module(
                (*module.imports, *(each for each in other.imports if each.name in missing)),
                (*(each for each in found if not each.binds & module.names), *module.statements),
            )
            reached, missing = module.reached(entries)
            changed = True
    if any(not _is_harmless(each) for each in module.statements if each not in reached):
        idle = frozenset().union(*(e.uses for e in module.statements if e not in reached))
        idle = idle.difference(*(each.uses for each in reached))
        kept = tuple(each for each in module.imports if each.name not in idle)
        module, changed = _Module(kept, tuple(reached)), True
    bare = tuple(_without_hints(each, missing) for each in module.statements)
    if bare != module.statements:
        module, changed = _Module(module.imports, bare), True
        _, missing = module.reached(entries)
    imports = _resolved(module.imports, missing)
    if imports != module.imports:
        module, changed = _Module(imports, module.statements), True
        _, missing = module.reached(entries)
    added = sorted(_IMPORTS[name] for name in missing & _IMPORTS.keys())
    if not changed and not (added and any(each.module == _FUTURE for each in module.imports)):
        return "".join(f"{line}\n" for line in added) + source
    return module.text(added)


@dataclass(frozen=True)
class _Module:
    imports: tuple[Import, ...]
    statements: tuple[Statement, ...]

    @classmethod
    def of(cls, source: str) -> "_Module":
        return cls(*split(source))

    @property
    def names(self) -> frozenset[str]:
        """What it binds."""
        return frozenset(each.name for each in self.imports).union(
            *(each.binds for each in self.statements)
        )

    def reached(self, names: Iterable[str]) -> tuple[list[Statement], frozenset[str]]:
        """The statements that some names need, in order, and what they need and nobody binds."""
        known = frozenset(names)
        found: set[int] = set()
        while True:
            new = {
                k for k, each in enumerate(self.statements)
                if k not in found and each.binds & known
            }  # fmt: skip
            if not new:
                break
            found |= new
            known = known.union(*(self.statements[k].uses for k in new))
        return [self.statements[k] for k in sorted(found)], known - self.names - _BUILTIN

    def text(self, added: Sequence[str]) -> str:
        imports = sorted(self.imports, key=lambda each: each.module != _FUTURE)  # those are first
        first = sum(each.module == _FUTURE for each in imports)
        lines = [*map(_line, imports[:first]), *added, *map(_line, imports[first:])]
        head = "\n".join(dict.fromkeys(lines))
        parts = [head] if head else []
        return "\n\n\n".join([*parts, *(each.text for each in self.statements)]) + "\n"


def _last_drafts(
    statements: tuple[Statement, ...], entries: Sequence[str]
) -> tuple[Statement, ...]:
    """The statements without definitions of `entries` that a later one replaces."""
    places = {name: k for k, each in enumerate(statements) for name in each.binds & {*entries}}
    return tuple(
        each
        for k, each in enumerate(statements)
        if all(places[name] == k for name in each.binds & {*entries})
    )


def _line(each: Import) -> str:
    if each.member is None:
        plain = each.name == each.module.partition(".")[0]
        return f"import {each.module}" + ("" if plain else f" as {each.name}")
    renamed = "" if each.member == each.name else f" as {each.name}"
    return f"from {each.module} import {each.member}{renamed}"


def _has_idle(source: str) -> bool:
    """Whether `if __name__ == ...` or the like stands at the top, which `split` leaves out."""
    return any(isinstance(node, ast.If | ast.Pass) for node in parse_tree(source).body)


def _is_harmless(statement: Statement) -> bool:
    """Whether a statement that does nothing to the program may stay: a plain constant."""
    node = statement.node
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)


def _without_hints(statement: Statement, unknown: frozenset[str]) -> Statement:
    """A function without those annotations of its own that use an unknown name."""
    node = statement.node
    if not isinstance(node, ast.FunctionDef) or not unknown & statement.needs:
        return statement
    lines = statement.text.encode().split(b"\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    raw = b"\n".join(lines)
    cuts: list[tuple[int, int]] = []
    arguments = node.args
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    given += [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    for each in given:
        if each.annotation is not None and _uses(each.annotation) & unknown:
            begin = starts[each.lineno - 1] + each.col_offset + len(each.arg.encode())
            cuts.append((begin, _end(starts, each.annotation)))
    if node.returns is not None and _uses(node.returns) & unknown:
        begin = raw.rindex(b"->", 0, starts[node.returns.lineno - 1] + node.returns.col_offset)
        end = raw.index(b":", _end(starts, node.returns))  # past a closing bracket
        cuts.append((begin, end))
    for begin, end in sorted(cuts, reverse=True):
        raw = raw[:begin].rstrip() + raw[end:]
    return Statement(raw.decode())


def _uses(node: ast.expr) -> frozenset[str]:
    return frozenset(name for _, name in module_names(node))


def _end(starts: Sequence[int], node: ast.expr) -> int:
    return starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)


def _resolved(imports: tuple[Import, ...], missing: frozenset[str]) -> tuple[Import, ...]:
    """Imports with the names that a star stands for."""
    found: list[Import] = []
    left = set(missing)
    for each in sorted(imports, key=lambda each: each.module == KIT and each.member == "*"):
        if each.member == "*":
            members = sorted(left & _members(each.module, left))
            left.difference_update(members)
            found += [Import(name, each.module, name) for name in members]
        else:
            found.append(each)
    return tuple(found) if found != [*imports] else imports


def _members(module: str, asked: set[str]) -> set[str]:
    """Which of the names a module offers. The kit is not known here: all but other modules."""
    if module == KIT:
        return asked - _IMPORTS.keys()
    if module not in _IMPORTS and module != "typing":
        return set()
    return asked & {*dir(import_module(module))}

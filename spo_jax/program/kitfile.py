"""How a pair file holds the kit that its programs import as `lns`.

In place of the import, the file has a block: the compiled kit where spo_jax is installed, else the
functions that the programs use, written in Python. The block's first line keeps the import, which
`plain` puts back when the file is read.
"""

import ast
import builtins
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence
from functools import lru_cache
from types import FunctionType, ModuleType
from typing import Any

from spo_jax.constants import KIT
from spo_jax.errors import InputError
from spo_jax.program.scopes import Import, Statement, identifiers

_BEGIN = "# --- the kit: "
_END = "# --- end of the kit"
_BLOCK = re.compile(rf"(?ms)^{_BEGIN}(?P<imports>[^\n]*)\n.*?^{_END}$")


def plain(text: str) -> str:
    """The text of a pair file with the imports of the kit in place of its block.

    The statement keeps to one line, and the lines after the block move up.
    """
    return _BLOCK.sub(lambda found: found["imports"], text)


def block(kit: str, imports: Sequence[Import], statements: Sequence[Statement]) -> str:
    """What a pair file has in place of its imports of the kit.

    kit: the module of the problem's kit. imports: of the module `lns`.
    Raises InputError where the kit has no source to write.
    """
    names = sorted(_used(imports, statements))
    reference = _reference(kit)
    missing = [name for name in names if not hasattr(reference, name)]
    if missing:
        raise InputError(f"the kit {kit} has no function {missing[0]!r}")
    written = textwrap.indent(_source_of(reference, names), " " * 8)
    module = KIT
    if not any(each.name == KIT and not each.member for each in imports):
        taken = {name for each in statements for name in identifiers(each.text)}
        while module in taken:  # the name of something else
            module = f"_{module}"
    bound = [
        f"{each.name} = {module}" + (f".{each.member}" if each.member else "")
        for each in imports
        if each.member or each.name != module
    ]
    package, _, last = kit.rpartition(".")
    members = "".join(f"            {name}={name},\n" for name in names)
    return "\n".join(
        [
            f"{_BEGIN}{'; '.join(map(_statement, imports))}",
            "try:",
            f"    {f'from {package} ' if package else ''}import {last} as {module}",
            "except ImportError:  # the same in Python, slower",
            "",
            "    def python_kit():",
            "        from types import SimpleNamespace",
            "",
            written,
            "",
            f"        return SimpleNamespace(\n{members}        )",
            "",
            f"    {module} = python_kit()",
            *bound,
            _END,
        ]
    )


def _statement(each: Import) -> str:
    renamed = f" as {each.name}" if each.name != (each.member or each.module) else ""
    if each.member:
        return f"from {each.module} import {each.member}{renamed}"
    return f"import {each.module}{renamed}"


def _used(imports: Sequence[Import], statements: Iterable[Statement]) -> set[str]:
    """The functions of the kit that programs name."""
    used = {each.member for each in imports if each.member}
    modules = {each.name for each in imports if not each.member}
    for statement in statements:
        for node in ast.walk(statement.node):
            match node:
                case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in modules:
                    used.add(attr)
    return used


def _reference(kit: str) -> ModuleType:
    """The kit in Python: its module `reference`, or itself if it has none."""
    try:
        return importlib.import_module(f"{kit}.reference")
    except ImportError:
        return importlib.import_module(kit)


def _source_of(reference: ModuleType, names: Iterable[str]) -> str:
    """The source of functions and of all that they need, each before its first use at import."""
    parts: dict[str, str] = {}
    imports: dict[str, set[str]] = {}

    def take(name: str, value: Any) -> None:
        if name in parts:
            return
        if not isinstance(value, FunctionType):
            if isinstance(value, list):  # what calls keep
                value = []
            elif not isinstance(value, bool | int | float | str):
                raise InputError(f"the kit's {name} is a {type(value).__name__}: it has no source")
            parts[name] = f"{name} = {value!r}"
            return
        if value.__module__ == "math":
            imports.setdefault("math", set()).add(name)
            return
        parts[name] = ""  # keeps its place before those that use it, and ends recursion
        source, read = _function(value)
        for used in read:
            if used in value.__globals__:
                found = value.__globals__[used]
                owner = getattr(found, "__module__", None)
                if isinstance(found, ModuleType):
                    parts.setdefault(used, f"import {found.__name__} as {used}")
                elif isinstance(found, float) and found == float("inf"):
                    parts.setdefault(used, f'{used} = float("inf")')
                elif callable(found) and not isinstance(found, FunctionType):
                    imports.setdefault(str(owner), set()).add(used)
                else:
                    take(used, found)
        parts[name] = source

    for name in names:
        take(name, getattr(reference, name))
    constants = [text for text in parts.values() if not text.startswith("def ")]
    functions = [text for text in parts.values() if text.startswith("def ")]
    lines = [f"from {module} import {', '.join(sorted(each))}" for module, each in imports.items()]
    head = "\n".join([*sorted(lines), *constants])
    return "\n\n".join([*([head] if head else []), *functions])


@lru_cache(maxsize=256)
def _function(value: FunctionType) -> tuple[str, tuple[str, ...]]:
    """The source of a function, and the names that it reads. A pair is written in every round."""
    source = textwrap.dedent(inspect.getsource(value)).strip()
    return source, tuple(_globals(source))


def _globals(source: str) -> list[str]:
    """The names that a function reads, in the order of the text."""
    names = (node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name))
    return [name for name in dict.fromkeys(names) if not hasattr(builtins, name)]

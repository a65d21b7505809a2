"""Programs that differ in local names, comments, docstrings and layout alone."""

import ast
import builtins
from collections.abc import Iterable

from spo_jax.errors import Rejection
from spo_jax.program.syntax import flat, parse_tree

_BUILTIN = frozenset(dir(builtins))


def canonical(source: str, entry: str) -> tuple[object, ...] | None:
    """Equal for programs of a role that are the same but for what they call their own things, for
    comments, docstrings and layout, and for no others; None for a source that cannot be read.

    Names are numbered in the order of their appearance, those of the module and of each of its
    functions apart. A name keeps its text where a number could hide a difference: `entry`, that of
    the role's function, what Python has, names of arguments in calls, and names of both a function
    and the module.
    """
    try:
        tree = parse_tree(source)
    except Rejection:
        return None
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    others = [node for node in tree.body if not isinstance(node, ast.FunctionDef)]
    inner = [_bound(_inside(function)) for function in functions]
    outer = _bound(others) | {function.name for function in functions}
    kept = {entry, *_BUILTIN, *_fixed(tree), *(outer & set[str]().union(*inner))}
    module = _numbered(tree, outer - kept, "module")
    for function, names in zip(functions, inner, strict=True):
        own = _numbered(function, names - kept, "local")
        _rename(_inside(function), module | own)
        function.name = module.get(function.name, function.name)
    _rename(others, module)
    _drop_docstrings(tree)
    return flat(tree)


def _inside(function: ast.FunctionDef) -> list[ast.AST]:
    return list(ast.iter_child_nodes(function))


def _walk(nodes: Iterable[ast.AST]) -> Iterable[ast.AST]:
    for node in nodes:
        yield from ast.walk(node)


def _bound(nodes: Iterable[ast.AST]) -> set[str]:
    """Every name that is bound in some nodes, in whichever scope."""
    return {
        name
        for node in _walk(nodes)
        if not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
        for name in _names(node)
    }


def _names(node: ast.AST) -> list[str]:
    """The names that a node itself has."""
    match node:
        case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name):
            return [name]
        case ast.alias(name=module, asname=name):
            return [name or module]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            return [name]
        case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            return [name]
        case ast.Nonlocal(names=names):
            return names
    return []


def _fixed(tree: ast.Module) -> set[str]:
    """Names that stand for more than one thing, or for something outside the program."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg is not None:
            found.add(node.arg)
        elif isinstance(node, ast.Global):
            found.update(node.names)
        elif isinstance(node, ast.ClassDef | ast.AsyncFunctionDef):
            found.update(name for each in ast.walk(node) for name in _names(each))
            found.add(node.name)
        elif isinstance(node, ast.alias) and not node.asname and "." in node.name:
            found.update((node.name, node.name.partition(".")[0]))
    return found


def _numbered(node: ast.AST, names: set[str], what: str) -> dict[str, str]:
    """New names for `names`, in the order of their appearance; no program has such names."""
    found: dict[str, str] = {}
    pending = [node]
    while pending:
        each = pending.pop()
        for name in _names(each):
            if name in names and name not in found:
                found[name] = f"<{what} {len(found)}>"
        pending += reversed(list(ast.iter_child_nodes(each)))
    return found


def _rename(nodes: Iterable[ast.AST], new: dict[str, str]) -> None:
    for node in _walk(nodes):
        match node:
            case ast.Name(id=name):
                node.id = new.get(name, name)
            case ast.arg(arg=name):
                node.arg = new.get(name, name)
            case ast.FunctionDef(name=name) | ast.ExceptHandler(name=str(name)):
                node.name = new.get(name, name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                node.name = new.get(name, name)
            case ast.MatchMapping(rest=str(name)):
                node.rest = new.get(name, name)
            case ast.alias(name=module, asname=name):
                node.asname = new.get(name or module, name or module)
            case ast.Nonlocal(names=names):
                node.names = [new.get(each, each) for each in names]


def _drop_docstrings(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.FunctionDef) or not node.body:
            continue
        match node.body[0]:
            case ast.Expr(value=ast.Constant(value=str())):
                needed = not node.body[1:] and isinstance(node, ast.FunctionDef)
                node.body[:1] = [ast.Pass()] if needed else []

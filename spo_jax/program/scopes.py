"""Finds the module names of a Python text and renames them without touching locals.

`pairfile` uses it to split pair files into programs and to merge two programs. All functions work
on top-level statements with their texts, which preserves comments and layout; the syntax tree gives
the positions to edit.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from spo_jax.errors import Rejection
from spo_jax.program.syntax import flat, parse_tree, unparse

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Import:
    """One imported name: `import module [as name]` or `from module import member [as name]`.

    name is the name it binds; "*" for a star import. A dotted `import a.b` binds "a".
    """

    name: str
    module: str
    member: str | None = None

    @property
    def target(self) -> tuple[str, str | None]:
        """The imported object: equal targets are the same object."""
        dotted = self.member is None and self.name == self.module.partition(".")[0]
        return (self.name if dotted else self.module, self.member)


@dataclass(frozen=True)
class Statement:
    """One top-level statement other than an import; `text` includes its comments."""

    text: str

    @cached_property
    def node(self) -> ast.stmt:
        return parse_tree(self.text).body[0]

    @property
    def is_function(self) -> bool:
        return isinstance(self.node, _DEFINITIONS)

    @cached_property
    def flat(self) -> tuple[object, ...]:
        """The statement without its layout and comments."""
        return flat(self.node)

    @cached_property
    def binds(self) -> frozenset[str]:
        """Module names that it binds."""
        return frozenset(_bound([self.node])[0])

    @cached_property
    def uses(self) -> frozenset[str]:
        """Module and built-in names that occur anywhere in it, its own included."""
        return frozenset(name for _, name in module_names(self.node))

    @cached_property
    def needs(self) -> frozenset[str]:
        """Module names that must exist before it runs: for a function, in its header only."""
        if not isinstance(self.node, _FUNCTIONS):
            return self.uses - self.binds
        return frozenset(name for part in _header(self.node) for _, name in module_names(part))

    @cached_property
    def local_names(self) -> frozenset[str]:
        """Names bound in some scope inside it, at any depth."""
        inner: set[str] = set()
        for node in ast.walk(self.node):
            if isinstance(node, (*_FUNCTIONS, ast.Lambda)):
                body = [node.body] if isinstance(node, ast.Lambda) else node.body
                bound, declared_global = _bound(body)
                inner |= (bound - declared_global) | _parameters(node.args)
            elif isinstance(node, _COMPREHENSIONS):
                inner |= _targets(node)
        return frozenset(inner)


def split(text: str) -> tuple[tuple[Import, ...], tuple[Statement, ...]]:
    """The imports and the other top-level statements of a module, docstrings left out.

    Raises Rejection as `parse_tree` does.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    tree = parse_tree(text)
    lines = text.encode().split(b"\n")
    imports: list[Import] = []
    statements: list[Statement] = []
    previous_end = 0  # lines already taken
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.extend(_imported(node))
        elif not _is_idle(node):
            alone = ast.Module([node], [])
            statements.append(checked(_slice(lines, node, previous_end), alone))
        previous_end = node.end_lineno or previous_end
    return tuple(imports), tuple(statements)


def module_names(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """(node, name) of every occurrence of a name that no scope inside `node` binds.

    The node is a Name, a definition (its own name) or a Global statement.
    """
    pending: list[tuple[ast.AST, frozenset[str]]] = [(node, frozenset())]  # with the local names

    def visit(nodes: Iterable[ast.AST], local: frozenset[str]) -> None:
        pending.extend((each, local) for each in nodes)

    while pending:
        node, local = pending.pop()
        if isinstance(node, ast.Name):
            if node.id not in local:
                yield node, node.id
        elif isinstance(node, ast.Global):
            yield from ((node, name) for name in node.names)
        elif isinstance(node, ast.Lambda):
            visit(_defaults(node.args), local)
            visit([node.body], local | _parameters(node.args) | _bound([node.body])[0])
        elif isinstance(node, _DEFINITIONS):
            if node.name not in local:
                yield node, node.name
            visit(_header(node), local)
            bound, declared_global = _bound(node.body)
            if not isinstance(node, ast.ClassDef):
                bound |= _parameters(node.args)
            visit(node.body, (local | bound) - declared_global)
        elif isinstance(node, _COMPREHENSIONS):
            first = node.generators[0].iter  # evaluated outside the comprehension's own scope
            visit([first], local)
            inner = local | _targets(node)
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.comprehension):
                    parts = [child.target, *child.ifs]
                    visit(parts if child.iter is first else [*parts, child.iter], inner)
                else:
                    visit([child], inner)
        else:
            visit(ast.iter_child_nodes(node), local)


def identifiers(text: str) -> frozenset[str]:
    """Every identifier-like word of a text, also in strings and comments: names to avoid."""
    return frozenset(re.findall(r"\w+", text))


def rename(statement: Statement, names: Mapping[str, str]) -> Statement:
    """The statement with its module names renamed; the new names must be free in its scopes."""
    if not (statement.uses & names.keys()):
        return statement
    tree = parse_tree(statement.text)
    places = list(module_names(tree.body[0]))
    text = _edit(statement.text, places, names)
    for node, name in places:
        if isinstance(node, ast.Name):
            node.id = names.get(name, name)
        elif isinstance(node, ast.Global):
            node.names = [names.get(each, each) for each in node.names]
        elif isinstance(node, _DEFINITIONS):
            node.name = names.get(name, name)
    return checked(text, tree)


def checked(text: str, tree: ast.Module) -> Statement:
    """`text` if it parses to `tree`, else `tree` unparsed, without comments.

    Python 3.11 gives wrong positions inside f-strings, and a decorator may begin below its "@", so
    a text edited by positions needs this check. Raises Rejection if `tree` cannot be unparsed.
    """
    try:
        if flat(parse_tree(text)) == flat(tree):
            return Statement(text)
    except Rejection:
        pass
    return Statement(unparse(tree))


def offset(lines: list[bytes], line: int, column: int) -> int:
    """Byte offset of a node's (line from 1, column in bytes)."""
    return sum(len(each) + 1 for each in lines[: line - 1]) + column


def _edit(text: str, places: list[tuple[ast.AST, str]], names: Mapping[str, str]) -> str:
    raw = text.encode()
    starts = list(accumulate((len(each) + 1 for each in raw.split(b"\n")), initial=0))
    edits: set[tuple[int, int, bytes]] = set()
    for node, name in places:
        if name not in names:
            continue
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        start = starts[min(max(line, 1), len(starts)) - 1] + column
        if isinstance(node, ast.Name):
            edits.add((start, start + len(name.encode()), names[name].encode()))
            continue
        # The name of a definition or a global statement: the first match after the start.
        found = re.compile(rb"\b" + re.escape(name.encode()) + rb"\b").search(raw, start)
        if found:
            edits.add((*found.span(), names[name].encode()))
    parts, at = [], 0
    for start, end, new in sorted(edits):
        parts += [raw[at:start], new]
        at = end
    return b"".join([*parts, raw[at:]]).decode("utf-8", "replace")


_COMMENT = re.compile(rb"[ \t\f]*#.*")


def _slice(lines: list[bytes], node: ast.stmt, previous_end: int) -> str:
    """A statement's text, with comments directly above, behind and indented below it."""
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(each.lineno for each in decorators)])
    column = node.col_offset if not decorators else 0
    last, end = node.end_lineno or node.lineno, node.end_col_offset or 0
    above = first - 1
    while column == 0 and above > previous_end and lines[above - 1].startswith(b"#"):
        above -= 1
    behind = _COMMENT.match(lines[last - 1], end)
    comment = behind[0].rstrip() if behind else b""
    body = [lines[last - 1][column if first == last else 0 : end] + comment]
    if first < last:
        body = [lines[first - 1][column:], *lines[first : last - 1], *body]
    below = last
    while below < len(lines) and re.match(rb"[ \t]+#", lines[below]):
        below += 1
    around = [line.rstrip() for line in lines[above : first - 1]]
    taken = [*around, *body, *(line.rstrip() for line in lines[last:below])]
    return b"\n".join(taken).decode("utf-8", "replace")


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[Import]:
    for alias in node.names:
        if isinstance(node, ast.Import):
            name = alias.asname or alias.name.partition(".")[0]
            yield Import(name, alias.name)
        else:
            module = "." * node.level + (node.module or "")
            yield Import(alias.asname or alias.name, module, alias.name)


def _is_idle(node: ast.stmt) -> bool:
    """Does nothing on import: a string, an ellipsis, `pass`, or `if __name__ == ...`."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If):
        test = node.test
        return (
            isinstance(test, ast.Compare)
            and isinstance(test.left, ast.Name)
            and test.left.id == "__name__"
        )
    return isinstance(node, ast.Pass)


def _defaults(args: ast.arguments) -> list[ast.AST]:
    return [*args.defaults, *(each for each in args.kw_defaults if each is not None)]


def _all_parameters(args: ast.arguments) -> list[ast.arg]:
    rest = [each for each in (args.vararg, args.kwarg) if each is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *rest]


def _parameters(args: ast.arguments) -> frozenset[str]:
    return frozenset(each.arg for each in _all_parameters(args))


def _header(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> list[ast.AST]:
    """The parts of a definition that are evaluated outside its scope, when it is defined."""
    parts: list[ast.AST] = list(node.decorator_list)
    if isinstance(node, ast.ClassDef):
        return [*parts, *node.bases, *node.keywords]
    annotations = [each.annotation for each in _all_parameters(node.args)] + [node.returns]
    return [*parts, *_defaults(node.args), *(each for each in annotations if each is not None)]


def _targets(node: ast.AST) -> frozenset[str]:
    """Names bound by the `for` clauses of a comprehension."""
    return frozenset(
        name.id
        for generator in node.generators  # type: ignore[attr-defined]
        for name in ast.walk(generator.target)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    )


def _bound(nodes: Iterable[ast.AST]) -> tuple[set[str], set[str]]:
    """(names bound, names declared global) in one scope, not in the scopes inside it."""
    bound: set[str] = set()
    declared_global: set[str] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, _DEFINITIONS):
            bound.add(node.name)
            stack.extend(_header(node))
        elif isinstance(node, ast.Lambda):
            stack.extend(_defaults(node.args))
        elif isinstance(node, _COMPREHENSIONS):
            # Its targets are local to it; a walrus inside binds in this scope.
            walruses = (each for each in ast.walk(node) if isinstance(each, ast.NamedExpr))
            bound.update(each.target.id for each in walruses)
        else:
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                bound.add(node.id)
            elif isinstance(node, ast.alias):
                bound.add(node.asname or node.name.partition(".")[0])
            elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
                bound.add(node.name)
            elif isinstance(node, ast.MatchMapping) and node.rest:
                bound.add(node.rest)
            elif isinstance(node, ast.Global):
                declared_global.update(node.names)
            stack.extend(ast.iter_child_nodes(node))
    return bound, declared_global

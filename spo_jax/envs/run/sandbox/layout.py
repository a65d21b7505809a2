"""Chooses a program's view of the distances: tuples of floats ("rows") or an ndarray ("array").

Rows give the same scalars, four times faster. They differ from an ndarray in arithmetic (`+` joins,
`*` repeats), comparison and methods, so a program gets rows only if the two agree in every use of
the matrix and of its rows. An undetected case (an index that is an array at run time) raises
TypeError on a tuple, and the child repeats the rollout with the array. No difference is silent.
The kit's functions take either view and return the same.
"""

import ast
from typing import Literal

from spo_jax.constants import KIT
from spo_jax.envs.problem import Layout
from spo_jax.program import Interface

_Kind = Literal["matrix", "row"]

# Builtins that treat a tuple and a 1-D array alike.
_ROW_CONSUMERS = {"len", "min", "max", "sum", "sorted", "enumerate", "zip", "list", "map", "filter"}
_ROW_CONSUMERS |= {"any", "all", "iter", "reversed"}


class _NeedsArray(Exception):
    pass


def choose_layout(tree: ast.Module, entry: ast.FunctionDef, interface: Interface) -> Layout:
    """Rows if every use of every parameter declared a matrix or a row allows it, else the array;
    also the array if one of them has no own parameter (`*args`).
    """
    parameters = [a.arg for a in (*entry.args.posonlyargs, *entry.args.args)]
    kinds: dict[str, _Kind] = {}
    for place, argument in enumerate(interface.arguments):
        if argument.kind == "matrix" or argument.kind == "row":
            if place >= len(parameters):
                return "array"
            kinds[parameters[place]] = argument.kind
    try:
        _Flow(tree, kinds).run()
    except _NeedsArray:
        return "array"
    return "rows"


class _Flow:
    """The names that hold matrices and their rows.

    Names are tracked for the whole module at once: a name that is a row anywhere counts as one
    everywhere, which errs on the safe side.
    """

    def __init__(self, tree: ast.Module, kinds: dict[str, _Kind]):
        self.kinds = kinds
        self.nodes = list(ast.walk(tree))
        self.parent = {c: node for node in self.nodes for c in ast.iter_child_nodes(node)}
        functions = [n for n in self.nodes if isinstance(n, ast.FunctionDef)]
        self.functions = {n.name: n.args for n in functions}
        imports = [n for n in self.nodes if isinstance(n, ast.Import)]
        self.numpy = {a.asname for n in imports for a in n.names if a.name == "numpy"} | {"numpy"}
        self.kits = {a.asname or KIT for n in imports for a in n.names if a.name == KIT}
        members = [
            a.asname or a.name
            for n in self.nodes
            if isinstance(n, ast.ImportFrom) and n.module == KIT
            for a in n.names
        ]
        self.members = {name for name in members if members.count(name) == 1}
        # A name bound more than once, or in an unknown way, cannot be tracked.
        bound = [
            n.id for n in self.nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        ]
        bound += [n.arg for n in self.nodes if isinstance(n, ast.arg)]
        bound += [
            alias.asname or alias.name
            for n in self.nodes
            if isinstance(n, ast.Import | ast.ImportFrom)
            and not (isinstance(n, ast.ImportFrom) and n.module == KIT)
            for alias in n.names
            if alias.name not in ("numpy", KIT)
        ]
        names = [n.name for n in functions]
        self.doubtful = set(bound) | {name for name in names if names.count(name) > 1}
        self.doubtful |= self.members.intersection(names)

    def run(self) -> None:
        """Track every name that the matrix or a row reaches. Raises _NeedsArray."""
        uses: dict[str, list[ast.Name]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                uses.setdefault(node.id, []).append(node)
        pending = list(self.kinds)
        while pending:
            name = pending.pop()
            known = len(self.kinds)
            for use in uses.get(name, []):
                self.follow(use, self.kinds[name])
            pending += list(self.kinds)[known:]
        for node in self.nodes:
            if isinstance(node, ast.AugAssign) and getattr(node.target, "id", "") in self.kinds:
                raise _NeedsArray

    def bind(self, target: ast.expr | ast.arg, kind: _Kind) -> None:
        name = target.id if isinstance(target, ast.Name) else getattr(target, "arg", None)
        if name is None or self.kinds.setdefault(name, kind) != kind:
            raise _NeedsArray

    def follow(self, node: ast.expr, kind: _Kind) -> None:
        """Check the context of an expression that is the matrix or a row."""
        up = self.parent[node]
        match up:
            case ast.Subscript(value=value, slice=index, ctx=ast.Load()) if value is node:
                if isinstance(index, ast.Tuple | ast.List):
                    raise _NeedsArray
                if isinstance(index, ast.Slice) and kind == "matrix":
                    raise _NeedsArray
                if isinstance(index, ast.Slice) or kind == "matrix":
                    self.follow(up, "row")
            case ast.Assign(targets=[target], value=value) if value is node:
                self.bind(target, kind)
            case ast.Tuple(elts=values):  # row_a, row_b = dist[a], dist[b]
                match self.parent[up]:
                    case ast.Assign(targets=[ast.Tuple(elts=targets)]) if len(targets) == len(
                        values
                    ):
                        self.bind(targets[values.index(node)], kind)
                    case _:
                        raise _NeedsArray
            case ast.NamedExpr(target=target, value=value) if value is node:
                self.bind(target, kind)
                self.follow(up, kind)
            case ast.For(target=target, iter=it) | ast.comprehension(target=target, iter=it) if (
                it is node
            ):
                if kind == "matrix":
                    self.bind(target, "row")
            case ast.keyword() if self.is_kit(self.parent[up]):
                pass
            case ast.Call(func=func, args=args) if node in args:
                self.follow_call(up, func, args, args.index(node), kind)
            case _:
                raise _NeedsArray

    def is_kit(self, call: ast.AST) -> bool:
        """Whether a call is of a function of the kit."""
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name))):
                return name in self.kits and name not in self.doubtful
            case ast.Call(func=ast.Name(id=name)):
                return name in self.members and name not in self.doubtful
        return False

    def follow_call(
        self, call: ast.Call, func: ast.expr, args: list[ast.expr], position: int, kind: _Kind
    ) -> None:
        match func:
            case _ if self.is_kit(call):
                pass
            case ast.Name(id=name) if name in self.doubtful:
                raise _NeedsArray
            case ast.Name(id=name) if name in self.functions:
                accepted = self.functions[name]
                names = [*accepted.posonlyargs, *accepted.args]
                if position >= len(names) or any(isinstance(a, ast.Starred) for a in args):
                    raise _NeedsArray
                self.bind(names[position], kind)
            case ast.Name(id="len"):
                pass
            case ast.Name(id="enumerate") if kind == "matrix":
                match self.parent[call]:  # for i, row in enumerate(dist)
                    case ast.For(target=ast.Tuple(elts=[_, row])):
                        self.bind(row, "row")
                    case ast.comprehension(target=ast.Tuple(elts=[_, row])):
                        self.bind(row, "row")
                    case _:
                        raise _NeedsArray
            case ast.Name(id=name) if kind == "row" and name in _ROW_CONSUMERS:
                pass
            case ast.Attribute(value=ast.Name(id=name)) if (
                # NumPy converts a row; a whole matrix in a NumPy function means vectorised code.
                kind == "row" and name in self.numpy and name not in self.doubtful
            ):
                pass
            case _:
                raise _NeedsArray

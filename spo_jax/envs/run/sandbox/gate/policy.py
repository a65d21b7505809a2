"""The static gate: an allow-list of syntax, names and attributes.

It costs nothing at run time. It checks identifiers on the syntax tree, where the parser has already
normalised Unicode, in every field that can hold one.
"""

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from spo_jax.constants import KIT
from spo_jax.envs.problem import Layout
from spo_jax.envs.run.sandbox.gate.names import (
    ATTRIBUTES,
    BUILTINS,
    FROZEN_DICT,
    FROZEN_SET,
    MODULES,
)
from spo_jax.envs.run.sandbox.layout import choose_layout
from spo_jax.errors import Rejection
from spo_jax.program import Interface, Role, entry_function, parse_tree

MAX_NODES = 20_000

_NODES = {
    *(ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Lambda),
    *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.Delete, ast.Nonlocal),
    *(ast.For, ast.While, ast.If, ast.With, ast.withitem, ast.Raise, ast.Try, ast.ExceptHandler),
    *(ast.Assert, ast.Import, ast.ImportFrom, ast.alias, ast.Expr),
    *(ast.Pass, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom),
    *(ast.Match, ast.match_case, ast.MatchValue, ast.MatchSingleton, ast.MatchSequence),
    *(ast.MatchStar, ast.MatchAs, ast.MatchOr, ast.MatchMapping),
    *(ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.Call, ast.keyword),
    *(ast.Dict, ast.Set, ast.List, ast.Tuple, ast.Starred, ast.Subscript, ast.Slice),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.comprehension),
    *(ast.JoinedStr, ast.FormattedValue, ast.Constant, ast.Attribute, ast.Name),
}
_ANNOTATION = {
    *(ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Tuple, ast.List, ast.BinOp),
}
_REDUCTIONS = {"sum", "prod", "mean", "std", "var", "min", "max", "any", "all", "amin", "amax"}
_CATEGORIES = (ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)

_CLEARER = {
    ast.ClassDef: "classes are not allowed",
    ast.AsyncFunctionDef: "async functions are not allowed",
    ast.Await: "await is not allowed",
    ast.Global: "global is not allowed (no state may outlive a call)",
    ast.MatchClass: "class patterns are not allowed",
}


@dataclass(frozen=True)
class Verdict:
    """The gate's result for a program that passed.

    tree: the checked module. entry: its function's name. layout: its fastest view of the distances.
    kit: whether it imports the kit.
    """

    tree: ast.Module
    entry: str
    layout: Layout
    kit: bool


def check(source: str, role: Role, interface: Interface, kit: Collection[str] = ()) -> Verdict:
    """Check a program of a problem with `interface`. kit: the names that `import lns` offers.

    Raises Rejection that names the first refused part.
    """
    tree = parse_tree(source)
    entry = entry_function(tree, interface.function(role))
    gate = _Gate(MODULES | {KIT: frozenset(kit)} if kit else MODULES)
    gate.run(tree)
    _check_module_level(tree, gate.own)
    _freeze_constants(tree)
    _check_arity(entry, interface.arity(role))
    layout = choose_layout(tree, entry, interface)
    return Verdict(tree, entry.name, layout, KIT in gate.imported)


class _Gate:
    def __init__(self, modules: Mapping[str, Collection[str]]):
        self.modules = modules
        self.imported: set[str] = set()
        self.bound = set(BUILTINS)
        self.own: set[str] = set()  # names the program binds
        self.loads: list[ast.Name] = []
        self.aliases: dict[str, str] = {}  # local name -> module
        self.attributes: list[ast.Attribute] = []
        self.isinstance_arguments: set[int] = set()

    def run(self, tree: ast.Module) -> None:
        nodes = list(ast.walk(tree))
        if len(nodes) > MAX_NODES:
            raise Rejection(f"more than {MAX_NODES} syntax nodes")
        annotated = [
            node
            for node in nodes
            if getattr(node, "annotation", None) or getattr(node, "returns", None)
        ]
        if annotated:
            for node in annotated:
                self.take_annotations(node)
            nodes = list(ast.walk(tree))
        for node in nodes:
            kind = type(node)
            if kind not in _NODES and not isinstance(node, _CATEGORIES):
                raise _refuse(node, _CLEARER.get(kind, f"{kind.__name__} is not allowed"))
            for visit in _VISITS.get(kind, ()):
                visit(self, node)
        for name in self.loads:
            if name.id not in self.bound:
                raise _refuse(name, f"name {name.id!r} is not defined or not available")
        for attribute in self.attributes:
            self.check_attribute(attribute)

    def bind(self, node: ast.AST, name: str | None) -> None:
        if name is None:
            return
        if name.startswith("__"):
            raise _refuse(node, f"name {name!r} is not allowed")
        if not name.isascii():
            raise _refuse(node, f"name {name!r} is not ASCII")
        if name == "isinstance":  # its arguments are trusted
            raise _refuse(node, "isinstance cannot be redefined")
        self.bound.add(name)
        self.own.add(name)

    def visit_name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            if node.id.startswith("__"):
                raise _refuse(node, f"name {node.id!r} is not allowed")
            self.loads.append(node)
        else:
            self.bind(node, node.id)

    def visit_attribute(self, node: ast.Attribute) -> None:
        if not isinstance(node.ctx, ast.Load):
            raise _refuse(node, f"cannot set attribute {node.attr!r}")
        self.attributes.append(node)

    def module_of(self, node: ast.expr) -> str | None:
        """The module that an expression names: `np`, `np.linalg`, `collections.abc`."""
        match node:
            case ast.Name(id=name):
                return self.aliases.get(name)
            case ast.Attribute(value=value, attr=attr):
                path = f"{self.module_of(value)}.{attr}"
                return path if path in self.modules else None
        return None

    def check_attribute(self, node: ast.Attribute) -> None:
        """Check attributes of a module against that module, others against one list."""
        module = self.module_of(node.value)
        if module is not None:
            if node.attr not in self.modules[module]:
                raise _refuse(node, f"{module}.{node.attr} is not available")
        elif node.attr not in ATTRIBUTES:
            raise _refuse(node, f"attribute {node.attr!r} is not allowed")
        if node.attr == "ndarray" and id(node) not in self.isinstance_arguments:
            raise _refuse(node, "numpy.ndarray is available to isinstance and annotations only")

    def visit_call(self, node: ast.Call) -> None:
        keywords = {keyword.arg for keyword in node.keywords}
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if "where" in keywords and "out" not in keywords and called not in _REDUCTIONS:
            raise _refuse(node, "where= without out= leaves entries that nobody wrote")
        if isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            pending = node.args[1:]
            while pending:
                match pending.pop():
                    case ast.Tuple(elts=elements):
                        pending.extend(elements)
                    case ast.BinOp(left=left, right=right):
                        pending += [left, right]
                    case argument:
                        self.isinstance_arguments.add(id(argument))

    def take_annotations(self, node: ast.AST) -> None:
        """Check annotations for side effects, then remove them: nothing reads them here.

        So their names need not exist. A pair file keeps them, and whoever imports it runs them.
        """
        for field in ("annotation", "returns"):
            annotation = getattr(node, field, None)
            if annotation is None:
                continue
            for part in ast.walk(annotation):
                if type(part) not in _ANNOTATION and not isinstance(part, _CATEGORIES):
                    raise _refuse(annotation, f"{type(part).__name__} in an annotation")
                if isinstance(part, ast.Attribute) and part.attr.startswith("_"):
                    raise _refuse(annotation, f"attribute {part.attr!r} is not allowed")
            required = isinstance(node, ast.AnnAssign)
            setattr(node, field, ast.copy_location(ast.Constant(None), node) if required else None)

    def visit_function(self, node: ast.FunctionDef) -> None:
        self.bind(node, node.name)
        if node.decorator_list:
            raise _refuse(node, "decorators are not allowed")

    def visit_arg(self, node: ast.arg | ast.keyword) -> None:
        self.bind(node, node.arg)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg is not None and (node.arg.startswith("__") or not node.arg.isascii()):
            raise _refuse(node, f"keyword {node.arg!r} is not allowed")

    def visit_named(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar) -> None:
        self.bind(node, node.name)

    def visit_mapping(self, node: ast.MatchMapping) -> None:
        self.bind(node, node.rest)

    def visit_nonlocal(self, node: ast.Nonlocal) -> None:
        for name in node.names:
            self.bind(node, name)

    def visit_import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name not in self.modules or alias.name == "__future__":
                raise _refuse(node, f"module {alias.name!r} is not available")
            name = alias.asname or alias.name.split(".")[0]
            self.imported.add(alias.name)
            self.bind(alias, name)
            self.aliases[name] = alias.name if alias.asname else name

    def visit_import_from(self, node: ast.ImportFrom) -> None:
        if node.level or not node.module or node.module not in self.modules:
            raise _refuse(node, f"module {'.' * node.level + (node.module or '')!r} not available")
        self.imported.add(node.module)
        for alias in node.names:
            if alias.name not in self.modules[node.module] or alias.name == "ndarray":
                raise _refuse(node, f"{node.module}.{alias.name} is not available")
            self.bind(alias, alias.asname or alias.name)
            if (path := f"{node.module}.{alias.name}") in self.modules:
                self.aliases[alias.asname or alias.name] = path

    def visit_with(self, node: ast.With) -> None:
        for item in node.items:
            call = item.context_expr
            if not (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute | ast.Name)
                and (call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id)
                == "errstate"
            ):
                raise _refuse(node, "with is available for numpy.errstate only")


_VISITS: dict[type, tuple] = {
    ast.Name: (_Gate.visit_name,),
    ast.Attribute: (_Gate.visit_attribute,),
    ast.Call: (_Gate.visit_call,),
    ast.FunctionDef: (_Gate.visit_function,),
    ast.arg: (_Gate.visit_arg,),
    ast.keyword: (_Gate.visit_keyword,),
    ast.ExceptHandler: (_Gate.visit_named,),
    ast.MatchAs: (_Gate.visit_named,),
    ast.MatchStar: (_Gate.visit_named,),
    ast.MatchMapping: (_Gate.visit_mapping,),
    ast.Nonlocal: (_Gate.visit_nonlocal,),
    ast.Import: (_Gate.visit_import,),
    ast.ImportFrom: (_Gate.visit_import_from,),
    ast.With: (_Gate.visit_with,),
}


def _refuse(node: ast.AST, what: str) -> Rejection:
    line = getattr(node, "lineno", None)
    return Rejection(f"line {line}: {what}" if line else what)


def _check_module_level(tree: ast.Module, own: set[str]) -> None:
    """Allow imports, functions and immutable constants: no state that survives a call.

    own: the names that the program binds; they can hold any value.
    """
    for node in tree.body:
        match node:
            case ast.Import() | ast.ImportFrom():
                continue
            case ast.FunctionDef(args=args):
                _check_defaults(args, own)
                continue
            case ast.Expr(value=ast.Constant(value=str())):
                continue
            case ast.Assign(value=value, targets=targets):
                if not all(isinstance(target, ast.Name | ast.Tuple) for target in targets):
                    raise _refuse(node, "a module-level assignment needs a plain name")
            case ast.AnnAssign(value=value, target=ast.Name()):
                pass
            case _:
                raise _refuse(
                    node, "only imports, functions and constants are allowed at module level"
                )
        if value is not None and not _is_constant(value, own):
            raise _refuse(node, "a module-level constant must be immutable")


def _is_constant(node: ast.expr, own: set[str]) -> bool:
    """Whether `_frozen` makes a constant of an expression."""
    match node:
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            parts: list[ast.expr | None] = [*elements]
        case ast.Dict(keys=keys, values=values):
            parts = [*keys, *values]
        case _:
            return _is_immutable(node, own)
    return all(part is not None and _is_constant(part, own) for part in parts)


def _check_defaults(args: ast.arguments, own: set[str]) -> None:
    """Check a default: it is evaluated once, so a mutable one would keep state between calls."""
    for default in [*args.defaults, *args.kw_defaults]:
        if default is not None and not _is_immutable(default, own):
            raise _refuse(default, "a default argument must be an immutable constant")


def _is_immutable(node: ast.expr, own: set[str]) -> bool:
    def fine(*nodes: ast.expr) -> bool:
        return all(_is_immutable(n, own) for n in nodes)

    match node:
        case ast.Constant() | ast.Name():
            return True
        case ast.Lambda(args=args):
            _check_defaults(args, own)
            return True
        case ast.UnaryOp(operand=operand):
            return fine(operand)
        case ast.BinOp(left=left, right=right):
            return fine(left, right)
        case ast.Tuple(elts=elements):
            return fine(*elements)
        case ast.Attribute(value=value):
            return fine(value)
        case ast.Subscript(value=value, slice=ast.List(elts=elements)):  # Callable[[int], int]
            return fine(value, *elements)
        case ast.Subscript(value=value, slice=index):  # a type alias, or one entry of a tuple
            return fine(value, index)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            elements = [
                e for a in args for e in (a.elts if isinstance(a, ast.List | ast.Set) else [a])
            ]
            return name in _CONSTANT_MAKERS and name not in own and fine(*elements)
    return False


def _freeze_constants(tree: ast.Module) -> None:
    """Make lists, sets and dicts at the top immutable: no call may leave anything in them."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            node.value = _frozen(node.value)
            ast.fix_missing_locations(node)


def _frozen(node: ast.expr) -> ast.expr:
    """A constant's expression with tuples in place of lists, and the like."""
    made: ast.expr
    match node:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            made = ast.Tuple([*map(_frozen, elements)], ast.Load())
        case ast.Set():
            made = ast.Call(ast.Name(FROZEN_SET, ast.Load()), [node], [])
        case ast.Dict(keys=keys, values=values):
            made = ast.Dict(keys, [*map(_frozen, values)])
            made = ast.Call(ast.Name(FROZEN_DICT, ast.Load()), [made], [])
        case _:
            return node
    return ast.copy_location(made, node)


_CONSTANT_MAKERS = {"float", "int", "frozenset", "tuple", "range"}


def _check_arity(entry: ast.FunctionDef, arity: int) -> None:
    """Check that the function accepts `arity` positional arguments."""
    a = entry.args
    most = len(a.posonlyargs) + len(a.args)
    least = most - len(a.defaults)
    required_keywords = [k.arg for k, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if not d]
    if required_keywords:
        raise _refuse(entry, f"{entry.name} has a keyword-only argument {required_keywords[0]!r}")
    if arity < least or (arity > most and a.vararg is None):
        raise _refuse(entry, f"{entry.name} takes {most} arguments, the interface passes {arity}")
    if _yields(entry):
        raise _refuse(entry, f"{entry.name} is a generator: it must return its result")


def _yields(function: ast.FunctionDef) -> bool:
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            pending.extend(ast.iter_child_nodes(node))
    return False

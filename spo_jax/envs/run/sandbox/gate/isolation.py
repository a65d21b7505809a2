"""Decides which programs may run all rollouts of a job in one process.

A fork per rollout separates rollouts. It costs milliseconds, as much as a cheap rollout, so
programs that cannot observe the difference skip it: those that see neither memory freed by an
earlier rollout nor the addresses of their own objects. Seeing freed memory takes arrays or the
amount of free memory; seeing an address takes the text or the hash of an object with identity: a
function, an iterator, an exception.

The decision is a narrow allow-list on the syntax tree of a program that has passed the gate.
Anything not clearly harmless gets a fork per rollout, which changes no result. The allow-list
misses one case: the order of a set with several computed NaNs.
"""

import ast
from collections.abc import Sequence

from spo_jax.constants import KIT
from spo_jax.envs.run.sandbox.gate.names import BUILTINS
from spo_jax.envs.run.sandbox.gate.policy import Verdict

# Modules that return only plain values, except the members below.
_MODULES = {"math", "random", "heapq", "bisect", "collections", "operator", "copy", "itertools"}
_MODULES |= {"functools", "typing", "collections.abc", "__future__", KIT}
_REFUSED_MEMBERS = {"nan", "partial", "cache", "lru_cache", "cmp_to_key", "merge", "ChainMap"}
_REFUSED_NAMES = {"hash", "object", "repr", "str", "chr", "hex", "callable", "nan"}
_REFUSED_NAMES |= {"NotImplemented", "Ellipsis"}
_REFUSED_NODES = (ast.Try, ast.JoinedStr, ast.Yield, ast.YieldFrom, ast.With)

# These make iterators, which have identity, so they must be consumed where they are made.
_ITERATORS = {"zip", "map", "filter", "enumerate", "reversed", "iter", "values"}
_ITERATORS |= {"elements"}
_USED_UP_BY = {"list", "tuple", "set", "frozenset", "dict", "sorted", "sum", "min", "max", "any"}
_USED_UP_BY |= {"all", "next", "deque", "extend", "update", "join", "Counter", "fsum", "prod"}
_USED_UP_BY |= _ITERATORS - {"values", "elements"}
_ANY_PLACE = {
    "zip",
    "map",
    "chain",
    "product",
}  # not the first place alone
_TAKES_FUNCTIONS = {"map", "filter", "reduce", "defaultdict"}  # and calls or keeps them
_TAKES_KEYS = {"sort", "sorted", "min", "max", "nsmallest", "nlargest"}  # and calls them
_TAKES_KEYS |= {"bisect", "bisect_left", "bisect_right", "insort", "insort_left", "insort_right"}
_MEANT = _USED_UP_BY | _ANY_PLACE | _TAKES_FUNCTIONS | _TAKES_KEYS | {"itemgetter", "float"}


_PLAIN = {int, float, bool, str, type(None)}


def is_plain(arguments: Sequence[object]) -> bool:
    """Whether the arguments of programs are only numbers, strings and tuples of these."""
    kinds = set(map(type, arguments)) - _PLAIN
    return not kinds or (
        kinds == {tuple} and all(is_plain(each) for each in arguments if type(each) is tuple)
    )


def is_closed(verdict: Verdict) -> bool:
    """Whether a program's rollouts may share a process."""
    return verdict.layout == "rows" and _Judge(verdict.tree).closed()


def _bound(node: ast.AST) -> tuple[str | None, ...]:
    """The names that a node binds, except members of modules."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return (name,)
        case ast.arg(arg=name) | ast.FunctionDef(name=name):
            return (name,)
        case ast.MatchAs(name=name) | ast.MatchStar(name=name) | ast.MatchMapping(rest=name):
            return (name,)
        case ast.Import(names=aliases):
            return tuple(alias.asname for alias in aliases)
    return ()


class _Judge:
    def __init__(self, tree: ast.Module):
        self.nodes = list(ast.walk(tree))
        self.parent = {c: node for node in self.nodes for c in ast.iter_child_nodes(node)}
        self.modules: dict[str, str] = {}  # local name -> module
        self.functions = {n.name for n in self.nodes if isinstance(n, ast.FunctionDef)}
        self.docstrings = {id(n.value) for n in self.nodes if isinstance(n, ast.Expr)}

    def closed(self) -> bool:
        for node in self.nodes:
            if isinstance(node, _REFUSED_NODES):
                return False
            if isinstance(node, ast.Import | ast.ImportFrom) and not self.import_(node):
                return False
            if not _MEANT.isdisjoint(_bound(node)):
                return False  # it rebinds a name of the allow-lists
        # Names of functions: the program's own, and variables they are assigned to.
        for node in self.nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    if isinstance(value, ast.Lambda) or self.is_method(value):
                        self.functions.add(name)
        return all(map(self.harmless, self.nodes))

    def import_(self, node: ast.Import | ast.ImportFrom) -> bool:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.modules[alias.asname or alias.name.split(".")[0]] = alias.name
            return all(alias.name in _MODULES for alias in node.names)
        names = {alias.name for alias in node.names}
        if node.module == "random":
            self.functions |= names
        renamed = any(alias.asname for alias in node.names)
        plain = names.isdisjoint(_REFUSED_MEMBERS) and node.module != "itertools"
        return node.module in _MODULES and plain and not renamed

    def harmless(self, node: ast.AST) -> bool:
        match node:
            case ast.Constant(value=str(text)):
                return id(node) in self.docstrings or self.is_text_place(node, text)
            case ast.arguments(kwarg=kwarg):
                return kwarg is None  # its keys are texts
            case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
                return not keywords
            case ast.Lambda():
                return self.is_function_place(node)
            case ast.GeneratorExp():
                return self.is_used_up(node)
            case ast.Name(id=name, ctx=ast.Load()):
                return self.harmless_name(node, name)
            case ast.Attribute(value=value, attr=attr):
                return self.harmless_attribute(node, value, attr)
        return True

    def harmless_name(self, node: ast.Name, name: str) -> bool:
        if name in _REFUSED_NAMES:
            return False
        if name in BUILTINS and name.endswith(("Error", "Exception", "StopIteration")):
            up = self.parent[node]
            return isinstance(up, ast.Raise) or isinstance(self.parent[up], ast.Raise)
        if name in _ITERATORS:
            return self.is_iterator_call(node)
        if name == "itemgetter":
            return self.is_getter_call(node)
        if name in self.functions:
            return self.is_function_place(node)
        if name in self.modules:
            return isinstance(self.parent[node], ast.Attribute)
        return True

    def harmless_attribute(self, node: ast.Attribute, value: ast.expr, attr: str) -> bool:
        module = self.modules.get(value.id) if isinstance(value, ast.Name) else None
        if module == "itertools" or attr in _ITERATORS:
            return self.is_iterator_call(node)
        if attr == "itemgetter":
            return self.is_getter_call(node)
        if module is None or module == "random":
            return self.is_function_place(node)
        return attr not in _REFUSED_MEMBERS  # a number, or a function created before any program

    def is_method(self, node: ast.expr) -> bool:
        """Whether an expression is, or may be, a method of a program's object."""
        match node:
            case ast.Attribute(value=ast.Name(id=name)):
                return self.modules.get(name, "random") == "random"
        return isinstance(node, ast.Attribute)

    def is_getter_call(self, node: ast.expr) -> bool:
        call = self.parent[node]
        return isinstance(call, ast.Call) and call.func is node and self.is_function_place(call)

    def is_iterator_call(self, node: ast.expr) -> bool:
        call = self.parent[node]
        return isinstance(call, ast.Call) and call.func is node and self.is_used_up(call)

    def is_used_up(self, node: ast.expr) -> bool:
        """Whether an iterator is consumed at once and goes nowhere else."""
        match self.parent[node]:
            case ast.For(iter=it) | ast.comprehension(iter=it):
                return it is node
            case ast.Starred():
                return True
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args):
                if name in _ANY_PLACE:
                    return node in args
                alone = name not in ("min", "max") or len(args) == 1
                return node is args[0] and alone and name in _USED_UP_BY if args else False
        return False

    def is_text_place(self, node: ast.Constant, text: str) -> bool:
        """Whether a string is only a message or a number: concatenated strings can make a NaN, or a
        format that shows an address.
        """
        up = self.parent[node]
        match up:
            case ast.Assert(msg=message):
                return message is node
            case ast.Call(func=ast.Name(id="float"), args=[argument]):
                return argument is node and "nan" not in text.lower()
            case ast.Call():
                return isinstance(self.parent[up], ast.Raise)
        return False

    def is_function_place(self, node: ast.expr) -> bool:
        """Whether a function is only called, passed on to be called, or named."""
        match self.parent[node]:
            case ast.Call(func=func) if func is node:
                return True
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args):
                return node in args[:1] and name in _TAKES_FUNCTIONS
            case ast.keyword(arg="key") as keyword:
                match self.parent[keyword]:
                    case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                        return name in _TAKES_KEYS
            case ast.Assign(targets=[ast.Name()]):
                return isinstance(node, ast.Lambda) or self.is_method(node)
        return False

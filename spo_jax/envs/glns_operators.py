"""Operators written to the interface of G-LNS (Zhao et al. 2026) as programs of ours.

    destroy(x, destroy_cnt, problem_data) -> (removed, partial)
    repair(x, removed, problem_data) -> solution

x is a solution and problem_data a dict with distance_matrix, coordinates and the problem's other
data; each problem has a template that makes programs of operators (`Problem.operators`). Random
numbers come from the global generators of `random` and `numpy.random`. A file may hold several
operators of a role, with names that begin with destroy, and with repair or insert: each call then
draws one of them.

Deliberate differences: the global generators become the rollout's generator, and calls that seed do
nothing. Of a destroy's result only `removed` counts, at most 35% of the nodes, and the rest keeps
its order, as our contract requires (some of the published operators remove more). Our interface has
no coordinates: they are recovered from the distances, up to a rotation, shift or reflection, and
are inexact where distances are rounded or not planar. KMeans of scikit-learn, which one published
operator uses, becomes Lloyd's algorithm in plain code, from points far apart instead of from random
ones.
"""

import ast
from collections.abc import Mapping
from pathlib import Path

from spo_jax.envs.problem import Problem
from spo_jax.envs.run.sandbox.gate.names import MODULES
from spo_jax.errors import InputError, Rejection
from spo_jax.program import ROLES, Pair, Program, Role, parse_tree
from spo_jax.program.pairfile import parse_pair, read_file
from spo_jax.program.scopes import rename, split
from spo_jax.program.syntax import flat, unparse

FRACTION = 0.2  # of the nodes: destroy_cnt, as published
PREFIXES: dict[Role, tuple[str, ...]] = {"destroy": ("destroy",), "repair": ("repair", "insert")}
_RNG = "adapter_random"  # the name of the `random` module, which stands for the rollout's rng

# Members of numpy.random that the rollout's generator has under another name.
_SAME_AS = {
    "randint": "integers", "random_sample": "random", "ranf": "random", "random_integers": "randint"
}  # fmt: skip
_SHAPED = {"rand": "random", "randn": "standard_normal"}  # their arguments are a shape
_GENERATORS = {"default_rng", "RandomState", "Random", "SystemRandom", "Generator"}

_COMMON = """
def adapter_taken(removed, nodes, rng):
    known = set(nodes)
    limit = max(1, 35 * len(nodes) // 100)
    taken = []
    for node in removed:
        if node in known and len(taken) < limit:
            known.discard(node)
            taken.append(int(node))
    return taken or [rng.choice(nodes)]


def adapter_coordinates(matrix):
    origin = matrix[0]
    other = int(origin.argmax())
    base = max(float(origin[other]), 1e-12)
    x = (origin**2 + base**2 - matrix[other] ** 2) / (2 * base)
    y = adapter_np.sqrt(adapter_np.maximum(origin**2 - x**2, 0.0))
    third = int(y.argmax())
    same = adapter_np.abs(adapter_np.hypot(x - x[third], y - y[third]) - matrix[third])
    mirrored = adapter_np.abs(adapter_np.hypot(x - x[third], -y - y[third]) - matrix[third])
    return adapter_np.column_stack((x, adapter_np.where(mirrored < same, -y, y)))
"""


_KMEANS = """
def adapter_fit(model, points):
    points = adapter_np.asarray(points, dtype=float)
    count = max(1, min(int(model["clusters"]), len(points)))
    centers = points[:1]
    while len(centers) < count:
        apart = ((points[:, None, :] - centers[None]) ** 2).sum(axis=2).min(axis=1)
        centers = adapter_np.concatenate([centers, points[[int(apart.argmax())]]])
    for turn in range(100):
        labels = ((points[:, None, :] - centers[None]) ** 2).sum(axis=2).argmin(axis=1)
        moved = centers.copy()
        for k in range(count):
            if (labels == k).any():
                moved[k] = points[labels == k].mean(axis=0)
        if (moved == centers).all():
            break
        centers = moved
    model["labels_"], model["cluster_centers_"] = labels, centers
    return model
"""


def is_operators(path: str | Path) -> bool:
    """Whether a file holds operators of that interface: three parameters, both roles."""
    path = Path(path)
    if not path.is_file():
        return False
    try:
        found = _operators(parse_tree(read_file(path)))
    except (InputError, Rejection):
        return False
    return all(found[role] for role in ROLES)


def load_operators(path: str | Path, problem: Problem) -> Pair:
    """The operators in a file as a pair of programs for `problem`.

    Raises InputError for a file that cannot be read or holds no such operators, and for a problem
    without a template. The sandbox checks the programs, as those of every pair.
    """
    path, adapter = Path(path), problem.operators()
    try:
        return parse_pair(_wrapped(parse_tree(read_file(path)), path, adapter), str(path))
    except Rejection as error:
        raise InputError(f"{path}: {error.reason}") from None


def load_each(path: str | Path, problem: Problem) -> dict[Role, list[Program]]:
    """Every operator in a file as a program of its own, for an adaptive search over them.

    Raises InputError as `load_operators` does, and names the operator that is too long.
    """
    path, adapter = Path(path), problem.operators()
    programs: dict[Role, list[Program]] = {role: [] for role in ROLES}
    try:
        names = _operators(parse_tree(read_file(path)))
        for role in ROLES:
            for name in names[role]:
                chosen = {each: names[each][:1] for each in ROLES} | {role: [name]}
                # The tree is changed while it is wrapped, so each operator has one of its own.
                text = _wrapped(parse_tree(read_file(path)), path, adapter, chosen)
                pair = parse_pair(text, f"{path}: {name}")
                programs[role].append(pair.destroy if role == "destroy" else pair.repair)
    except Rejection as error:
        raise InputError(f"{path}: {error.reason}") from None
    return programs


def _wrapped(
    tree: ast.Module,
    path: Path,
    adapter: str,
    chosen: Mapping[Role, list[str]] | None = None,
) -> str:
    """The text of a pair file that uses the operators in `tree`; chosen: only these.

    Raises Rejection if the tree cannot be unparsed, else as `load_operators`.
    """
    every = _operators(tree)
    found = dict(chosen or every)
    for role in ROLES:
        if not found[role]:
            names = " or ".join(f"{prefix}..." for prefix in PREFIXES[role])
            raise InputError(f"{path} has no {role} of G-LNS: a function {names} of 3 parameters")
    _check_imports(tree)
    coordinates = any(
        isinstance(node, ast.Constant) and node.value == "coordinates" for node in ast.walk(tree)
    )
    own = {name: f"operator_{name}" for names in every.values() for name in names}
    rewriter = _Rewriter(tree)
    text = _narrow(_without_collisions(unparse(rewriter.run()), own))
    wrapper = (
        _COMMON
        + (_KMEANS if rewriter.kmeans else "")
        + adapter.format(
            fraction=FRACTION,
            coordinates=', "coordinates": adapter_coordinates(matrix)' if coordinates else "",
            **{role: _drawn([own[name] for name in found[role]]) for role in ROLES},
            **{f"{role}_strategy": _strategy(path, found[role]) for role in ROLES},
        )
    )
    imports = f"import random as {_RNG}\n\nimport numpy as adapter_np\n"
    return f"{imports}\n{text}\n{wrapper}"


def _operators(tree: ast.Module) -> dict[Role, list[str]]:
    """Names of the top-level functions of each role that take the three arguments."""
    found: dict[Role, list[str]] = {role: [] for role in ROLES}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and _takes_three(node.args):
            for role, prefixes in PREFIXES.items():
                if node.name.startswith(prefixes):
                    found[role].append(node.name)
    return found


def _takes_three(args: ast.arguments) -> bool:
    return len(args.posonlyargs) + len(args.args) == 3 and not args.vararg


def _check_imports(tree: ast.Module) -> None:
    """Raises Rejection that names a forbidden import, which some published operators have."""
    for top in tree.body:
        for node in ast.walk(top):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                modules = [node.module or "."]
            for module in modules:
                if module not in MODULES and module != "numpy.random" and not _is_kmeans(node):
                    where = f"function {top.name}" if isinstance(top, ast.FunctionDef) else "file"
                    raise Rejection(
                        f"its {where} imports {module}, which programs may not use; "
                        "take that out of the file"
                    )


def _is_kmeans(node: ast.AST) -> bool:
    """`from sklearn.cluster import KMeans`, which is rewritten."""
    return (
        isinstance(node, ast.ImportFrom)
        and node.module == "sklearn.cluster"
        and all(alias.name == "KMeans" for alias in node.names)
    )


def _narrow(text: str) -> str:
    """The text indented by single spaces: the published operators together are long."""
    lines = [(line.lstrip(" "), len(line) - len(line.lstrip(" "))) for line in text.split("\n")]
    narrow = "\n".join(" " * (indent // 4) + line for line, indent in lines)
    return narrow if flat(parse_tree(narrow)) == flat(parse_tree(text)) else text


def _drawn(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"rng.choice(({', '.join(names)}))"


def _strategy(path: Path, names: list[str]) -> str:
    one = "one of " if len(names) > 1 else ""
    file = "".join(c if c.isalnum() or c in "-_. " else "_" for c in path.name)
    return f"The G-LNS operators of {file}: {one}{', '.join(names)}."


def _without_collisions(text: str, own: dict[str, str]) -> str:
    """A module's text with its operators under names that leave `destroy` and `repair` free."""
    imports = "\n".join(
        unparse(node)
        for node in parse_tree(text).body
        if isinstance(node, ast.Import | ast.ImportFrom)
    )
    _, statements = split(text)
    return "\n\n\n".join([imports, *(rename(each, own).text for each in statements)])


class _Rewriter(ast.NodeTransformer):
    """Replaces the global generators by the rollout's and drops the statements of a script."""

    def __init__(self, tree: ast.Module):
        self.tree = tree
        self.numpy: set[str] = set()  # names of numpy, of numpy.random and of random
        self.numpy_random: set[str] = set()
        self.random: set[str] = set()
        self.kmeans: set[str] = set()  # of scikit-learn's class
        self.models: set[str] = set()  # what it is called into
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.asname or alias.name
                    if alias.name == "numpy.random" and alias.asname:
                        self.numpy_random.add(name)
                    elif alias.name.partition(".")[0] == "numpy":
                        self.numpy.add(name.partition(".")[0])
                    elif alias.name == "random":
                        self.random.add(name)
            elif isinstance(node, ast.ImportFrom) and node.module == "numpy":
                self.numpy_random |= {a.asname or a.name for a in node.names if a.name == "random"}
            elif isinstance(node, ast.ImportFrom) and _is_kmeans(node):
                self.kmeans |= {alias.asname or alias.name for alias in node.names}
        for node in ast.walk(tree):
            match node:
                case ast.Assign(
                    targets=[ast.Name(id=model)], value=ast.Call(func=ast.Name(id=name))
                ) if name in self.kmeans:
                    self.models.add(model)

    def run(self) -> ast.Module:
        self.tree.body = [node for node in self.tree.body if not _is_script(node)]
        return self.visit(self.tree)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> ast.AST:
        kept = [alias for alias in node.names if alias.name != "numpy.random"]
        return ast.Import(kept) if kept else ast.Pass()

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if _is_kmeans(node):
            return ast.Pass()
        if node.module != "numpy":
            return node
        kept = [alias for alias in node.names if alias.name != "random"]
        return ast.ImportFrom(node.module, kept, node.level) if kept else ast.Pass()

    def visit_Call(self, node: ast.Call) -> ast.AST:
        member, numpy = self.member(node.func)
        arguments = [self.visit(each) for each in node.args]
        keywords = [ast.keyword(each.arg, self.visit(each.value)) for each in node.keywords]
        match node.func:
            case ast.Name(id=name) if name in self.kmeans:
                counts = [each.value for each in keywords if each.arg == "n_clusters"]
                count = [*arguments, *counts, ast.Constant(8)][0]
                return ast.Dict([ast.Constant("clusters")], [count])
            case ast.Attribute(value=ast.Name(id=name) as model, attr=attr) if name in self.models:
                fitted = ast.Call(ast.Name("adapter_fit", ast.Load()), [model, *arguments], [])
                return fitted if attr == "fit" else _item(fitted, "labels_")
        if member is None:
            return ast.Call(self.visit(node.func), arguments, keywords)
        if member == "seed":
            return ast.Constant(None)
        if member in _GENERATORS:
            return ast.Name(_RNG, ast.Load())
        if numpy and member in _SHAPED:
            shape = arguments if len(arguments) < 2 else [ast.Tuple(arguments, ast.Load())]
            return ast.Call(_method(_SHAPED[member]), shape, keywords)
        return ast.Call(self.visit(node.func), arguments, keywords)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id in self.models:
            return _item(node.value, node.attr)
        member, numpy = self.member(node)
        if member is not None and numpy:
            return _method(_SAME_AS.get(member, member))
        return self.generic_visit(node)

    def member(self, node: ast.expr) -> tuple[str | None, bool]:
        """The member of a global generator that an expression names; whether it is NumPy's."""
        match node:
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name(id=name), attr="random"), attr=attr
            ):
                return (attr, True) if name in self.numpy else (None, False)
            case ast.Attribute(value=ast.Name(id=name), attr=attr):
                if name in self.numpy_random:
                    return attr, True
                return (attr, False) if name in self.random else (None, False)
        return None, False


def _method(name: str) -> ast.Attribute:
    return ast.Attribute(ast.Name(_RNG, ast.Load()), name, ast.Load())


def _item(value: ast.expr, name: str) -> ast.Subscript:
    return ast.Subscript(value, ast.Constant(name), ast.Load())


def _is_script(node: ast.stmt) -> bool:
    """`if __name__ == "__main__":`, and calls that only act when the file is run."""
    if isinstance(node, ast.If):
        return any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(node.test))
    return isinstance(node, ast.Expr)

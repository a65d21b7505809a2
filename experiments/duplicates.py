"""How many evaluations of a run were of pairs that it knew already under another text?

    python experiments/duplicates.py runs/tsp-quick-seed0 runs/other --probe-steps 20

Two programs are the same text after local names are renamed and constants folded (`canonical`);
then their rollouts are the same. Two pairs look the same if so many steps on the first training
instance with the first seed give the same costs, states and solution; that proves nothing of the
steps after it, so the last column says how many of these differ in J. For each run a line: its
valid pairs, and how many of them have the text of an earlier one, its J to the bit (what no probe
can exceed without an error), and its probe.
"""

import ast
import operator
import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

from common import cli
from common.tables import markdown
from spo_jax.envs.problem import Instance
from spo_jax.envs.problems import get_problem
from spo_jax.program import Pair
from spo_jax.runs.run import Run, load_run
from spo_jax.search.instances import training_instances
from spo_jax.search.plugins import evaluator_of

OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.USub: operator.neg, ast.UAdd: operator.pos,
}  # fmt: skip


def canonical(source: str, entry: str) -> str:
    """The program's tree as a text, without docstrings and annotations, constants folded and local
    names numbered. entry: the name of its function.

    One name has one number throughout, so no scope is confused. Names that Python looks up
    elsewhere (imports, built-ins, attributes, keywords of calls) and texts stay. Constants are
    folded by the operators that would run, so a float has the same bits.
    """
    tree = _Folded().visit(ast.parse(source))
    kept = {entry, *(n.arg for n in ast.walk(tree) if isinstance(n, ast.keyword) and n.arg)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            kept |= {(name.asname or name.name).partition(".")[0] for name in node.names}
    bound = {name for node in ast.walk(tree) for name in _bound(node)} - kept
    numbers: dict[str, str] = {}
    _rename(tree, lambda name: numbers.setdefault(name, f"${len(numbers)}")
            if name in bound else name)  # fmt: skip
    return ast.dump(tree)


class _Folded(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.returns = None
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            node.body = node.body[1:] or [ast.Pass()]
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _folded(node, node.op, node.left, node.right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return _folded(node, node.op, node.operand)


def _folded(node: ast.AST, op: ast.AST, *operands: ast.AST) -> ast.AST:
    values = [n.value for n in operands if isinstance(n, ast.Constant)]
    numbers = all(type(value) in (int, float) for value in values)
    if len(values) < len(operands) or not numbers or type(op) not in OPERATORS:
        return node
    try:
        return ast.Constant(OPERATORS[type(op)](*values))
    except ArithmeticError:  # what raises in a run raises in it
        return node


def _bound(node: ast.AST) -> list[str]:
    """The names that a node binds."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        return [node.id]
    if isinstance(node, ast.arg):
        return [node.arg]
    if isinstance(node, ast.FunctionDef | ast.ExceptHandler) and node.name:
        return [node.name]
    return []


def _rename(node: ast.AST, new: Callable[[str], str]) -> None:
    """Rename what the nodes below name, in the order of the text."""
    for field in ("id", "arg", "name"):
        old = getattr(node, field, None)
        if isinstance(old, str) and not isinstance(node, ast.keyword | ast.alias):
            setattr(node, field, new(old))
    if isinstance(node, ast.Global | ast.Nonlocal):
        node.names = [new(name) for name in node.names]
    for child in ast.iter_child_nodes(node):
        _rename(child, new)


def repeated(keys: Iterable[Hashable]) -> list[bool]:
    """Whether an equal key came before."""
    seen: set[Hashable] = set()
    found = []
    for key in keys:
        found.append(key in seen)
        seen.add(key)
    return found


def probes(run: Run, pairs: Sequence[Pair], instance: Instance, steps: int) -> list[Hashable]:
    """What some steps of each pair come to."""
    config = run.config
    with evaluator_of(config, get_problem(config.problem)) as evaluator:
        found = evaluator.run(pairs, [instance], seeds=(0,), steps=steps)
    return [
        (found.best_cost[p].tobytes(), found.state[p].tobytes(), found.code[p].tobytes())
        for p in range(len(pairs))
    ]


def row(folder: str, steps: int) -> list[str]:
    """A run's line of the table."""
    run = load_run(folder)
    known = [each for each in run.pairs if each.status == "ok"]
    pairs = [run.pair(each.destroy, each.repair) for each in known]
    texts = {
        program.digest: canonical(program.source, program.role)
        for pair in pairs
        for program in (pair.destroy, pair.repair)
    }
    same_text = repeated((texts[p.destroy.digest], texts[p.repair.digest]) for p in pairs)
    own = [each.utility for each in known]
    cells = [Path(folder).name, str(len(pairs)), _share(same_text), _share(repeated(own))]
    if steps:
        first = training_instances(run.config, get_problem(run.config.problem))[0]
        keys = probes(run, pairs, first, steps)
        same_probe = repeated(keys)
        as_first: dict[Hashable, float] = {}
        wrong = [as_first.setdefault(k, mine) != mine for k, mine in zip(keys, own, strict=True)]
        cells += [_share(same_probe), f"{sum(wrong)} of {sum(same_probe)}"]
    return cells


def _share(which: Sequence[bool]) -> str:
    return f"{sum(which)} ({sum(which) / max(len(which), 1):.1%})"


def main() -> int:
    parser = cli.plain_parser(__doc__)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folders of runs")
    parser.add_argument("--probe-steps", type=int, default=0, help="steps of a probe (0: none)")

    def report(args: Any) -> None:
        heads = ["run", "valid pairs", "same text", "same J"]
        heads += ["same probe", "of these, another J"] if args.probe_steps else []
        print(markdown(heads, [row(each, args.probe_steps) for each in args.runs]))

    return cli.main(parser, report)


if __name__ == "__main__":
    sys.exit(main())

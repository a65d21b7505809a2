"""What to say of pairs on instances whose distances depend on the direction.

Feasibility and cost are judged by the harness, and the kit's functions count every way as it is, so
a pair can only search worse: where its own loops take a way for the way back.
"""

import ast
from collections.abc import Iterable, Mapping

from spo_jax.constants import KIT
from spo_jax.envs.problem import DIST, Instance, Problem
from spo_jax.errors import Rejection
from spo_jax.program import Pair, Program, parse_tree


def remarks_on_pairs(
    problem: Problem, instances: Iterable[Instance], pairs: Mapping[str, Pair]
) -> list[str]:
    """A line for each pair, by name, that may be misled on one of the instances."""
    first = next((each for each in instances if problem.directed and each.directed), None)
    if first is None:
        return []
    return [
        f"{name} reads distances in loops of its own: where these take a way for the way back, it "
        f"searches worse on {first.name}; what it finds is checked and summed up by direction"
        for name, pair in pairs.items()
        if _reads(pair.repair)
    ]


def _reads(program: Program) -> bool:
    """Whether a program reads single distances, and does not leave that to the kit.

    The sum of a row, which stands for how remote a node is, does not count.
    """
    try:
        tree = parse_tree(program.source)
    except Rejection:  # which the gate will say
        return False
    kit = {KIT}  # what it and its functions are called
    handed: set[int] = set()  # uses of `dist` that read no single distance
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            kit.update(each.asname or each.name for each in node.names if each.name == KIT)
        if isinstance(node, ast.ImportFrom) and node.module == KIT:
            kit.update(each.asname or each.name for each in node.names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Attribute(value=ast.Name(id=name)) if name in kit:
                    handed.update(map(id, node.args))
                case ast.Name(id=name) if name in {"len", *kit}:
                    handed.update(map(id, node.args))
                case ast.Name(id="sum"):
                    rows = [each.value for each in node.args if isinstance(each, ast.Subscript)]
                    handed.update(map(id, rows))
    return any(
        isinstance(node, ast.Name) and node.id == DIST.name and id(node) not in handed
        for node in ast.walk(tree)
    )

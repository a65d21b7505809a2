"""Counts the work of programs, so that a rollout can end by it in place of by time.

Seconds differ from call to call, counts do not. A unit is about the time in which the compiled kit
looks at one place of insertion. Counted are each iteration of a program's loops and comprehensions
and each call of its functions, as LOOP units, and what the kit counts of itself
(`spo_jax/envs/problems/kit.h`). What built-in functions and NumPy do is not: the CPU limit stays.
"""

import ast
from collections.abc import Callable
from itertools import count

LOOP = 60
TICK = "__tick__"  # no name of a program has two underscores at its beginning


class Meter:
    """The work of one rollout so far.

    tick: what a metered program calls under the name TICK; it is never false. kit: the work of the
    kit's functions since its process began, where there is one.
    """

    def __init__(self, kit: Callable[[], int] = lambda: 0):
        self._ticks = count(1)
        self.tick = self._ticks.__next__
        self._reads = 0
        self._kit, self._before = kit, kit()

    def work(self) -> int:
        """Units since it was made."""
        self._reads += 1  # each looks by one more tick
        return LOOP * (next(self._ticks) - self._reads) + self._kit() - self._before


def metered(tree: ast.Module) -> ast.Module:
    """The program, changed in place, with a tick in each loop, comprehension and function."""
    return ast.fix_missing_locations(_Metering().visit(tree))


def _call(near: ast.AST) -> ast.Call:
    call = ast.Call(ast.Name(TICK, ast.Load()), [], [])
    return ast.fix_missing_locations(ast.copy_location(call, near))


class _Metering(ast.NodeTransformer):
    def _loop(self, node: ast.For | ast.While) -> ast.AST:
        self.generic_visit(node)
        node.body.insert(0, ast.copy_location(ast.Expr(_call(node)), node))
        return node

    visit_For = visit_While = _loop

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        after = int(ast.get_docstring(node, clean=False) is not None)
        node.body.insert(after, ast.copy_location(ast.Expr(_call(node)), node))
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.generic_visit(node)
        node.body = ast.copy_location(ast.BoolOp(ast.And(), [_call(node), node.body]), node)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.ifs.insert(0, _call(node.iter))
        return node

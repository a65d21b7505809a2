"""Counts the work of programs, so that a rollout can end by it in place of by time.

Seconds differ from call to call, counts do not. A unit is about the time in which the compiled kit
looks at one place of insertion. Counted are each iteration of a program's loops and comprehensions
and each call of its functions, as LOOP units, and what the kit counts of itself
(`spo_jax/envs/problems/kit.h`). What built-in functions and NumPy do is not: the CPU limit stays.
"""

import ast
import sys
from collections.abc import Callable
from itertools import repeat
from operator import length_hint

LOOP = 60
TICK = "__tick__"  # no name of a program has two underscores at its beginning


class Meter:
    """The work of one rollout so far.

    ticks: what a metered program has under the name TICK. `None in ticks` is one tick, and true.
    kit: the work of the kit's functions since its process began, where there is one.
    """

    def __init__(self, kit: Callable[[], int] = lambda: 0):
        self.ticks = repeat(None, sys.maxsize)
        self._kit, self._before = kit, kit()

    def work(self) -> int:
        """Units since it was made."""
        ticks = sys.maxsize - length_hint(self.ticks)
        return LOOP * ticks + self._kit() - self._before


def metered(tree: ast.Module) -> ast.Module:
    """The program, changed in place, with a tick in each loop, comprehension and function."""
    return ast.fix_missing_locations(_Metering().visit(tree))


def _tick(near: ast.AST) -> ast.Compare:
    """No call: up to Python 3.11 one takes a level of the recursion that the program may use."""
    tick = ast.Compare(ast.Constant(None), [ast.In()], [ast.Name(TICK, ast.Load())])
    return ast.fix_missing_locations(ast.copy_location(tick, near))


class _Metering(ast.NodeTransformer):
    def _loop(self, node: ast.For | ast.While) -> ast.AST:
        self.generic_visit(node)
        node.body.insert(0, ast.copy_location(ast.Expr(_tick(node)), node))
        return node

    visit_For = visit_While = _loop

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        after = int(ast.get_docstring(node, clean=False) is not None)
        node.body.insert(after, ast.copy_location(ast.Expr(_tick(node)), node))
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.generic_visit(node)
        node.body = ast.copy_location(ast.BoolOp(ast.And(), [_tick(node), node.body]), node)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.ifs.insert(0, _tick(node.iter))
        return node

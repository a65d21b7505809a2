"""An evaluator that spoils a part of the repairs, as a writer does that fails often.

    spo discover tsp --evaluator common.spoilt:Spoilt ...      # with experiments/ on PYTHONPATH

SHARE of the pairs run with a repair that returns nothing, so they fail by a fault of the repair.
Which ones depends on the two programs alone: neither on their quality, nor on the round or the
number of workers.
"""

import ast
from collections.abc import Sequence
from typing import Any

from spo_jax.envs.problem import Instance
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Rollouts
from spo_jax.program import Pair, Program, entry_function, parse_tree
from spo_jax.seeding import derive

SHARE = 0.34  # as in the laboratory's prediction: docs/research/lab_failures.md


class Spoilt(LocalEvaluator):
    """This machine's evaluator for programs of which a part is spoilt."""

    def run(
        self,
        pairs: Sequence[Pair],
        instances: Sequence[Instance],
        seeds: Sequence[int] = (0, 1),
        steps: int = 100,
        **how: Any,
    ) -> Rollouts:
        return super().run([as_played(pair) for pair in pairs], instances, seeds, steps, **how)


def as_played(pair: Pair) -> Pair:
    """The pair, or one of its destroy and a repair that returns nothing."""
    drawn = derive("spoilt", pair.destroy.digest, pair.repair.digest) / 2**64
    return Pair(pair.destroy, spoilt(pair.repair)) if drawn < SHARE else pair


def spoilt(program: Program) -> Program:
    """A program with the same signature that returns nothing."""
    tree = parse_tree(program.source)
    function = entry_function(tree, program.role)
    function.body = [ast.Return(ast.Constant(None))]
    return Program.from_source(program.role, ast.unparse(function), program.strategy)

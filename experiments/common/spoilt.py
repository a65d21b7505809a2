"""An evaluator that spoils a part of the repairs, as a writer does that fails often.

    spo discover tsp --evaluator common.spoilt:Spoilt ...      # with experiments/ on PYTHONPATH

SHARE of the pairs, on average, run with a repair that returns nothing, so they fail by a fault of
the repair. A pair fails with the chance of its destroy, from 0 to 2 SHARE, as in the laboratory
(`spo_jax.search.lab.worlds.failing_chances`). Which pairs fail depends on their two programs alone:
neither on their quality, nor on the round or the number of workers.
"""

import ast
from collections.abc import Sequence
from typing import Any

from spo_jax.envs.problem import Instance
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Rollouts
from spo_jax.program import Pair, Program, entry_function, parse_tree
from spo_jax.seeding import derive

SHARE = 0.34  # docs/research/lab_failures.md


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
    chance = 2 * SHARE * drawn("chance", pair.destroy.digest)
    failed = drawn("pair", pair.destroy.digest, pair.repair.digest) < chance
    return Pair(pair.destroy, spoilt(pair.repair)) if failed else pair


def drawn(*name: str) -> float:
    """A number from 0 to 1 that depends on its name alone."""
    return derive("spoilt", *name) / 2**64


def spoilt(program: Program) -> Program:
    """A program with the same signature that returns nothing."""
    tree = parse_tree(program.source)
    function = entry_function(tree, program.role)
    function.body = [ast.Return(ast.Constant(None))]
    return Program.from_source(program.role, ast.unparse(function), program.strategy)

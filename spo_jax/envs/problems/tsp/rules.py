"""The travelling salesperson problem in a worker (Appendix B.1)."""

import random
from operator import getitem, itemgetter
from typing import Any

from spo_jax.envs.problem import Infeasible, Instance, Rules
from spo_jax.envs.problems.tsp import kit
from spo_jax.envs.rules import exact_sum
from spo_jax.envs.views import node_list

NEAR = 8  # neighbours that the local search after a repair looks at
MOVES = 1 << 30  # as many as gain


class TSPRules(Rules):
    """One TSP instance; a solution is a list of the N nodes."""

    partial, item = "partial_tour", "node"

    def __init__(self, instance: Instance):
        super().__init__(instance, instance.dist)
        self._nodes = frozenset(range(instance.size))
        [self._rows] = self.arguments("rows")
        self._sum = exact_sum(instance.dist, self.size)

    def start(self, rng: random.Random) -> list[int]:
        tour = list(range(self.size))
        rng.shuffle(tour)
        return tour

    def repaired(self, output: Any) -> list[int]:
        tour = node_list(output)
        if tour is None:
            raise Infeasible("complete_tour must be a list of integers")
        if len(tour) != self.size or self._nodes != set(tour):
            raise Infeasible("complete_tour does not visit every node exactly once")
        return tour

    def polished(self, before: list[int], after: list[int]) -> list[int]:
        """Lin and Kernighan's search from the nodes whose edges changed, where it is compiled."""
        if not kit.NATIVE:
            return after
        nexts = dict(zip(before, before[1:] + before[:1], strict=True))
        changed: dict[int, None] = {}
        for a, b in zip(after, after[1:] + after[:1], strict=True):
            if nexts[a] != b and nexts[b] != a:
                changed[a] = changed[b] = None
        return kit.lin_kernighan(self._rows, after, [*changed], near=NEAR, moves=MOVES)

    def cost(self, solution: list[int]) -> float:
        return self._sum(
            map(getitem, itemgetter(*solution)(self._rows), solution[1:] + solution[:1])
        )

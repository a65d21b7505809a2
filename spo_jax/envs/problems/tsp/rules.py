"""The travelling salesperson problem in a worker (Appendix B.1)."""

import random
from math import fsum
from operator import getitem, itemgetter
from typing import Any

from spo_jax.envs.problem import Infeasible, Instance, Rules
from spo_jax.envs.views import node_list


class TSPRules(Rules):
    """One TSP instance; a solution is a list of the N nodes."""

    partial, item = "partial_tour", "node"

    def __init__(self, instance: Instance):
        super().__init__(instance, instance.dist)
        self._nodes = frozenset(range(instance.size))
        [self._rows] = self.arguments("rows")

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

    def cost(self, solution: list[int]) -> float:
        return fsum(map(getitem, itemgetter(*solution)(self._rows), solution[1:] + solution[:1]))

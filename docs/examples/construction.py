"""Another game of two programs, on the TSP: a construction leads, an improvement follows.

In each step `construct` builds a complete tour, of nothing or of the current one, and `improve`
makes it shorter by local search. The result is kept unless it is longer. Which of the two leads,
what they are called and what is handed from one to the other is said in GAME.
"""

import math
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from spo_jax.envs.problem import DIST, Infeasible, Problem, Rules
from spo_jax.envs.problems import get_problem
from spo_jax.envs.views import node_list
from spo_jax.program import Game, Interface, Side

HERE = Path(__file__).parent
TSP = get_problem("tsp")  # for instances, files of tours and pictures

GAME = Game(
    leader=Side("construct", "construction", "constructions"),
    follower=Side("improve", "improvement", "improvements"),
    handed=("built_tour",),
    search="iterated local search",
)


class ConstructionRules(Rules):
    """The worker's half: where a rollout starts, what programs may return, what that costs."""

    def start(self, rng):
        tour = list(range(self.size))
        rng.shuffle(tour)
        return tour

    def destroyed(self, current, output):
        """What the leader returned, checked; a tuple of what the follower gets, here of one."""
        return (self.repaired(output),)

    def repaired(self, output):
        """What the follower returned, checked."""
        tour = node_list(output)  # None unless it is a list of integers
        if tour is None or sorted(tour) != list(range(self.size)):
            raise Infeasible("the tour does not visit every node exactly once")
        return tour

    def cost(self, solution):
        [dist] = self.arguments("rows")
        ends = zip(solution, solution[1:] + solution[:1], strict=True)
        return math.fsum(dist[a][b] for a, b in ends)


class Construction(Problem):
    """The parent's half: instances and files as the TSP has them, and what prompts say."""

    name = "tsp-construction"
    suffixes = TSP.suffixes
    solution_suffix = TSP.solution_suffix
    interface = Interface((DIST,), "current_tour", GAME)
    pair = str(HERE / "construction_pair.py")
    baselines = MappingProxyType({name: TSP.baselines[name] for name in ("2-opt", "or-tools")})
    quick_reference = TSP.quick_reference
    cpu_seconds = 30.0  # of 500 steps: an improvement takes longer than a repair

    def sample(self, size, count, seed):
        return [replace(each, problem=self.name) for each in TSP.sample(size, count, seed)]

    def read(self, path):
        return replace(TSP.read(path), problem=self.name)

    def rules(self, instance):
        return ConstructionRules(instance, instance.dist)

    def construct(self, instance, until=math.inf):
        """Always on to the nearest of the nodes that are left."""
        tour, left = [0], set(range(1, instance.size))
        while left:
            near = instance.dist[tour[-1]]
            tour.append(min(left, key=lambda node: (near[node], node)))
            left.remove(tour[-1])
        return tour

    def rewritten(self, solution, rng):
        return TSP.rewritten(solution, rng)

    def solve_reference(self, instance, effort):
        return TSP.solve_reference(instance, effort)

    def write(self, path, instance, solution):
        TSP.write(path, instance, solution)

    def read_solution(self, path, instance):
        return TSP.read_solution(path, instance)

    def draw(self, axes, instance, solution):
        TSP.draw(axes, instance, solution)

    def frame(self, role):
        return (HERE / f"construction-{self.interface.function(role)}.txt").read_text("utf-8")

    def contract(self, role):
        return self.frame(role).partition("#frame")[0]

"""A third problem is a module: it is found by name and evaluated without touching the rest."""

import itertools

import third_problem

from spo_jax.envs import get_problem
from spo_jax.envs.evaluator import Evaluator
from spo_jax.program import Pair, Program

DESTROY = """
def destroy(dist, order, z, rng):
    removed = rng.sample(order, 3)
    return [v for v in order if v not in removed], removed
"""
REPAIR = """
def repair(dist, order, removed, z, rng):
    for v in removed:
        places = range(len(order) + 1)
        def length(k):
            walk = [0] + order[:k] + [v] + order[k:]
            return sum(dist[a][b] for a, b in zip(walk, walk[1:]))
        order.insert(min(places, key=length), v)
    return order
"""


def test_a_third_problem_needs_no_change_elsewhere() -> None:
    problem = get_problem("third_problem:PathProblem")
    assert isinstance(problem, third_problem.PathProblem)
    instances = problem.sample(7, 2, 0)
    pair = Pair(Program.from_source("destroy", DESTROY), Program.from_source("repair", REPAIR))
    with Evaluator(problem, workers=2) as evaluator:
        rollouts = evaluator.run([pair], instances, seeds=(0, 1), steps=150)
    assert rollouts.ok.all(), rollouts.failure(0)
    for i, instance in enumerate(instances):
        best = min(problem.cost(instance, list(p)) for p in itertools.permutations(range(1, 7)))
        assert abs(rollouts.final_cost[0, i].min() - best) < 1e-9

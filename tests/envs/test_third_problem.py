"""A third problem is a module: it is found by name and evaluated without touching the rest."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import third_problem

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program, format_pair

DESTROY = """
def destroy(dist, order, z, rng):
    removed = rng.sample(order, 2)
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
    with LocalEvaluator(problem, workers=2) as evaluator:
        rollouts = evaluator.run([pair], instances, seeds=(0, 1), steps=150)
    assert rollouts.ok.all(), rollouts.failure(0)
    for i, instance in enumerate(instances):
        best = min(problem.cost(instance, list(p)) for p in itertools.permutations(range(1, 7)))
        assert abs(rollouts.final_cost[0, i].min() - best) < 1e-9


TIMED_DESTROY = """
def destroy(dist, times, limit, order, z, rng):
    both = VIEW
    worst = sorted(order, key=lambda v: -both[v])[:2]
    return [v for v in order if v not in worst], worst
"""
TIMED_REPAIR = """
def repair(dist, times, limit, order, removed, z, rng):
    for v in removed:
        order.insert(rng.randrange(len(order) + 1), v)
    return order
"""


def timed(view: str) -> Pair:
    destroy = Program.from_source("destroy", TIMED_DESTROY.replace("VIEW", view))
    return Pair(destroy, Program.from_source("repair", TIMED_REPAIR))


def test_a_second_matrix_is_handed_as_it_is_used() -> None:
    """A tuple would join where an array adds: the results would differ, and nothing say so."""
    problem = get_problem("third_problem:TimedPath")
    instances = problem.sample(8, 2, 0)
    views = (
        "[s + t for s, t in zip(times[0], times[1])]",
        "[times[0][k] + times[1][k] for k in range(len(times))]",
        "times[0] + times[1]",
        "sum(times[:2])",
    )
    pairs = [timed(view) for view in views]
    with LocalEvaluator(problem, workers=1) as evaluator:
        found = evaluator.run(pairs, instances, seeds=(0, 1), steps=30)
    assert found.ok.all(), found.reason
    for k in range(1, len(pairs)):
        np.testing.assert_array_equal(found.best_cost[k], found.best_cost[0])


@pytest.mark.parametrize("workers", [1, 2])
def test_instances_that_differ_in_extra_alone_are_each_scored_with_their_own(workers: int) -> None:
    problem = get_problem("third_problem:TimedPath")
    [first] = problem.sample(8, 1, 0)
    times = first.extra["times"]
    instances = [first, replace(first, extra=first.extra | {"times": 10 * times})]
    with LocalEvaluator(problem, workers=workers) as evaluator:
        found = evaluator.run([timed("times[0]")], instances, seeds=(0, 1, 2), steps=20)
    assert found.ok.all(), found.reason
    for i, instance in enumerate(instances):
        for s in range(3):
            solution = problem.decode(instance, found.code_of(0, i, s))
            assert found.final_cost[0, i, s] == problem.cost(instance, solution)
    assert (found.final_cost[0, 1] > 2 * found.final_cost[0, 0]).all()


def test_a_pair_file_says_what_the_problem_declares() -> None:
    text = format_pair(timed("times[0]"), "A pair.", third_problem.TimedPath.interface)
    assert "rest, removed = destroy(dist, times, limit, order, steps, rng)" in text
    assert "candidate = repair(dist, times, limit, rest, removed, steps, rng)" in text
    assert "times is minutes: a NumPy array, or nested lists" in " ".join(text.split())


def test_a_problem_that_declares_nothing_is_refused_in_a_sentence(monkeypatch) -> None:
    monkeypatch.delattr(third_problem.PathProblem, "interface")
    with pytest.raises(InputError, match="has no attribute interface"):
        get_problem("third_problem:PathProblem")

"""A game of a user's own in the sandbox: three values are handed on, checked and counted."""

import random

import numpy as np
import pytest

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.jobs.onestep import take_step
from spo_jax.envs.run.jobs.selfcheck import require_sound
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program

PROBLEM = "own_game:Turning"
TURN = '''
def further(first, n):
    return (first + 3) % n


def turn(dist, now, steps, rng):
    """By how long nothing was found."""
    n = len(now)
    k = steps % n
    tour = now[k:] + now[:k]
    return tour, steps % 5, further(steps, n)
'''
SWAP = '''
def swap(dist, tour, first, last, steps, rng):
    """The nodes at both places change places."""
    tour[first], tour[last] = tour[last], tour[first]
    return tour
'''


def pair_of(turn: str = TURN, swap: str = SWAP) -> Pair:
    return Pair(
        Program.from_source("destroy", turn, function="turn"),
        Program.from_source("repair", swap, function="swap"),
    )


def test_a_rollout_is_the_loop_that_a_game_says() -> None:
    problem, steps = get_problem(PROBLEM), 60
    [instance] = problem.sample(12, 1, 0)
    programs: dict = {}  # type: ignore[type-arg]
    exec(TURN + SWAP, programs)
    start = list(range(12))
    current, dist, z = start, instance.dist.tolist(), 0
    costs = [problem.cost(instance, current)]
    for _ in range(steps):
        handed = programs["turn"](dist, current[:], z, None)
        found = programs["swap"](dist, *handed, z, None)
        cost, before = problem.cost(instance, found), problem.cost(instance, current)
        z = 0 if cost < min(costs) else z + 1
        current = found if cost <= before else current
        costs.append(min(costs[-1], cost))
    assert costs[-1] < costs[0]
    with LocalEvaluator(problem, workers=1, start="own_game:in_order") as evaluator:
        rollouts = evaluator.run([pair_of()], [instance], seeds=(0,), steps=steps)
        step = take_step(evaluator, pair_of(), instance, start, 4)
    assert rollouts.ok.all(), rollouts.failure(0)
    np.testing.assert_allclose(rollouts.best_cost[0, 0, 0], costs, rtol=1e-12)
    assert step.handed == (start[4:] + start[:4], 4, 7)
    assert step.candidate == programs["swap"](dist, *step.handed, 4, None)


REFUSED = [
    (pair_of(turn=TURN.replace("def turn(dist, now", "def turn(now")), Status.REJECTED,
     "destroy", "turn takes 3 arguments, the interface passes 4"),
    (pair_of(swap="def swap(dist, tour, steps, rng):\n    return tour\n"), Status.REJECTED,
     "repair", "swap takes 4 arguments, the interface passes 6"),
    (pair_of(turn=TURN.replace("def turn(", "def other(")), Status.REJECTED, "destroy",
     "no function named turn (found: further, other)"),
    (pair_of(turn=TURN.replace("return tour,", "return [tour],")), Status.INVALID, "destroy",
     "complete_tour must be a list of integers"),
    (pair_of(turn=TURN.replace("steps % 5", "-1")), Status.INVALID, "destroy",
     "first and last are places"),
    (pair_of(swap=SWAP.replace("return tour", "return tour[1:]")), Status.INVALID, "repair",
     "does not visit every node"),
    (pair_of(swap=SWAP.replace("return tour", "return 1 // 0")), Status.CRASH, "repair",
     "ZeroDivisionError"),
]  # fmt: skip


def test_what_a_game_refuses() -> None:
    problem = get_problem(PROBLEM)
    with LocalEvaluator(problem, workers=1) as evaluator:
        pairs = [pair for pair, *_ in REFUSED]
        rollouts = evaluator.run(pairs, problem.sample(12, 1, 0), seeds=(0,), steps=3)
    for k, (_, status, role, why) in enumerate(REFUSED):
        failure = rollouts.failure(k)
        assert failure is not None
        assert (failure.status, failure.role) == (status, role)
        assert why in failure.reason


def test_a_game_checks_what_its_leader_returns() -> None:
    problem = get_problem("own_game:Inherited")
    [instance] = problem.sample(12, 1, 0)
    rules = problem.rules(instance)
    with pytest.raises(InputError, match="what turn returns, and gives a tuple of tour and first"):
        require_sound(problem, instance, rules, lambda: random.Random(0))


@pytest.mark.parametrize(
    ("returned", "found"),
    [
        ("tour, 1", "2 values"),
        ("(tour, 1, 2, 3)", "4 values"),
        ("None", "a value of type NoneType"),
        ("(each for each in (tour, 1, 2))", "a value of type generator"),
        ("iter((tour, 1, 2))", "a value of type tuple_iterator"),
    ],
)
def test_rules_that_hand_on_what_they_are_given(returned: str, found: str) -> None:
    """No program is at fault, least of all the follower; and no iterator of the leader's runs."""
    problem = get_problem("own_game:Unchecked")
    instances = problem.sample(12, 1, 0)
    pair = pair_of(f"def turn(dist, tour, steps, rng):\n    return {returned}\n")
    why = f"Rules.destroyed gives {found}, where a tuple of tour and first and last is due"
    with LocalEvaluator(problem, workers=1) as evaluator:
        for ask in (
            lambda: evaluator.run([pair], instances, seeds=(0,), steps=3),
            lambda: take_step(evaluator, pair, instances[0], list(range(12)), 0),
        ):
            with pytest.raises(InputError, match=why):
                ask()

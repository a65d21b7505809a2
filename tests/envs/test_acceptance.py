"""Acceptance and starts of rollouts: beside `spo solve`, beside a plain loop, and a user's own."""

import random
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.evaluation import evaluate
from spo_jax.envs.report.solve import shipped_pair, solve
from spo_jax.envs.run import lns
from spo_jax.envs.run.acceptance import ACCEPTANCES
from spo_jax.envs.run.adaptive import Adaptation
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.starts import STARTS, Starts
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program

TSP, CVRP = get_problem("tsp"), get_problem("cvrp")
DESTROY = '''
def destroy(dist, current_tour, steps_since_improvement, rng):
    """Take some out."""
    removed = rng.sample(current_tour, 1 + steps_since_improvement % 3)
    return [v for v in current_tour if v not in removed], removed
'''
REPAIR = '''
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    """Anywhere."""
    for v in removed_nodes:
        partial_tour.insert(rng.randrange(len(partial_tour) + 1), v)
    return partial_tour
'''
PAIR = Pair(Program.from_source("destroy", DESTROY), Program.from_source("repair", REPAIR))


@pytest.mark.long
@pytest.mark.parametrize("acceptance", ["annealing", "record-to-record", "own_parts:Late"])
@pytest.mark.parametrize("start", ["random", "construction", "own_parts:shuffled"])
def test_a_rollout_is_the_search_of_solve(acceptance, start):
    [instance] = TSP.sample(12, 1, 3)
    with LocalEvaluator(TSP, acceptance=acceptance, start=start) as evaluator:
        rollouts = evaluator.run([PAIR], [instance], seeds=(0, 1), steps=60)
    for s in (0, 1):
        found = solve(
            instance, PAIR, TSP, start=start, acceptance=acceptance, steps=60, seed=s, workers=1
        )
        assert found.initial_cost == rollouts.best_cost[0, 0, s, 0]
        assert found.cost == rollouts.final_cost[0, 0, s]
        if found.seed is not None:
            assert found.solution == TSP.decode(instance, rollouts.code_of(0, 0, s))


def test_beside_a_plain_loop():
    """Costs on a line, whose programs draw the next place."""
    draws = [3, 5, 4, 4, 1, 9, 1, 2]
    accept = {  # by hand, from 6: the first temperature or threshold is 2 x 6 / 3 = 4, falling to 0
        "improving": [3, 3, 3, 3, 1, 1, 1, 1],
        "record-to-record": [3, 5, 4, 4, 1, 1, 1, 1],
        "own_parts:all_of": draws,
    }
    for name, current in accept.items():
        seen, coming = [], iter(draws)
        rules = SimpleNamespace(
            size=3, arguments=lambda layout: (), copy=lambda x: x, minimised=float,
            start=lambda rng: 6, destroyed=lambda now, out: out, repaired=lambda out: out,
            polished=lambda before, after: after, hands=("rest", "removed"),
        )  # fmt: skip

        def destroy(now, z, rng, seen=seen):
            seen.append((now, z))
            return now, [0]

        pair = lns.OperatorPair(
            lns.Operator(destroy),
            lns.Operator(lambda rest, removed, z, rng, coming=coming: next(coming)),
        )
        trace = lns.rollout(rules, pair, random.Random(0), None, 8, acceptance=name)
        assert [now for now, _ in seen] == [6, *current[:-1]], name
        lowest = np.minimum.accumulate([6, *current])
        assert trace.best_cost == lowest.tolist()
        assert trace.best == lowest[-1]
        since = [0]
        for before, after in pairwise(lowest[:-1].tolist()):
            since.append(0 if after < before else since[-1] + 1)
        assert [z for _, z in seen] == trace.state == since


@pytest.mark.long
def test_the_same_with_several_workers_and_for_g_lns():
    instances = CVRP.sample(12, 2, 0)
    found = []
    for workers in (1, 2):
        with LocalEvaluator(
            CVRP, workers, acceptance="annealing", start="construction"
        ) as evaluator:
            run = evaluator.run([shipped_pair(CVRP)], instances, seeds=(0, 1), steps=30)
        found.append(run)
    np.testing.assert_array_equal(found[0].best_cost, found[1].best_cost)
    for i, each in enumerate(instances):
        cost = CVRP.cost(each, CVRP.construct(each))
        assert (found[0].initial_cost[0, i] == cost).all()
    with LocalEvaluator(CVRP, start="construction") as evaluator:
        pair = shipped_pair(CVRP)
        runs = evaluator.adaptive([pair.destroy], [pair.repair], instances, (0,), 5, Adaptation())
    np.testing.assert_array_equal(runs.rollouts.initial_cost[0], found[0].initial_cost[0, :, :1])


def test_a_start_that_raises_is_named_below_its_traceback():
    [instance] = TSP.sample(5, 1, 0)
    with pytest.raises(AttributeError) as caught:
        STARTS["own_parts:lost"](TSP, instance, random.Random(0))
    assert caught.value.__notes__ == [f"start 'own_parts:lost' raised this on {instance.name}"]
    assert caught.traceback[-1].name == "lost"


def test_starts():
    [instance] = TSP.sample(9, 1, 0)
    assert Starts(TSP).sent(instance, 0) is None
    assert Starts(TSP, 0, "own_parts:backwards").sent(instance, 0) == [*range(9)][::-1]
    mine = Starts(TSP, 5, "own_parts:shuffled")
    assert mine.sent(instance, 0) != mine.sent(instance, 1)
    assert mine.sent(instance, 0) == Starts(TSP, 5, "own_parts:shuffled").sent(instance, 0)
    assert Starts(TSP, 0, "construction").sent(instance, 3) == TSP.construct(instance)
    with pytest.raises(InputError, match="'own_parts:lacking' returned no solution of"):
        Starts(TSP, 0, "own_parts:lacking").sent(instance, 0)
    assert set(STARTS) == {"random", "construction"}


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"acceptance": "greedy"}, "unknown acceptance 'greedy': use improving, annealing"),
        ({"acceptance": "own_parts:none"}, "cannot import acceptance 'own_parts:none'"),
        ({"acceptance": "own_parts:wrong"}, r"must take \(first, luck\); it takes"),
        ({"start": "greedy"}, "unknown start 'greedy': use random, construction"),
        ({"start": "own_parts:wrong"}, r"must take \(instance, rng\)"),
    ],
)  # fmt: skip
def test_what_is_none(terms, message):
    with pytest.raises(InputError, match=message):
        LocalEvaluator(TSP, **terms)


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("raising", "its rule raised ValueError: too late"),
        ("leaving", "its rule raised SystemExit: 3"),
        ("unclear", "its rule returned nan, where True or False is due"),
        ("unmade", "raised KeyError: 'rule'"),
    ],
)
def test_a_rule_that_is_wrong_is_named(rule, why):
    [instance] = TSP.sample(9, 1, 0)
    name = f"own_parts:{rule}"
    why = f"acceptance '{name}'{':' * why.startswith('its')} {why}"
    with (
        LocalEvaluator(TSP, acceptance=name) as evaluator,
        pytest.raises(InputError, match=why),
    ):
        evaluator.run([PAIR], [instance], steps=10)
    with pytest.raises(InputError, match=f"host_fault: {why}"):
        solve(instance, PAIR, TSP, acceptance=name, steps=10, workers=1)


def test_evaluate_says_it():
    report = evaluate(
        PAIR, TSP, ["uniform:9x1"], steps=5, references="none",
        acceptance="annealing", start="construction",
    )  # fmt: skip
    assert report.settings["acceptance"] == "annealing"
    assert report.settings["start"] == "construction"
    assert set(ACCEPTANCES) == {"improving", "annealing", "record-to-record"}

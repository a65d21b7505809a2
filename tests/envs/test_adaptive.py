"""Adaptive searches over several operators: draws, rewards, temperatures, and in the sandbox."""

import math
import random

import numpy as np
import pytest
from test_evaluation import DESTROY, REPAIR

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.adaptive import PLAIN, Adaptation, Roulettes, spun
from spo_jax.envs.run.lns import Operator, OperatorPair, Outcome
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.search import Search, Terms
from spo_jax.program import Program
from spo_jax.seeding import derive

TSP = get_problem("tsp")
RULES = Adaptation()


def test_the_numbers_are_the_published_ones():
    """ZBoyn/G-LNS: examples/tsp/run_tsp.py and method/evaluate.py."""
    assert (RULES.best, RULES.improved, RULES.accepted, RULES.other) == (1.5, 1.2, 0.8, 0.1)
    assert (RULES.kept, RULES.temperature, RULES.cooling) == (0.5, 100.0, 0.97)
    scores = [RULES.score(outcome) for outcome in Outcome]
    # Failed, rejected, of equal cost, worse but accepted, better, a new best.
    assert scores == [0.1, 0.1, 0.1, 0.8, 1.2, 1.5]


def test_acceptance_by_hand():
    """T = 100 * 0.97 ** t: 100 at first, 100 * 0.97 ** 10 = 73.742 after ten steps."""
    luck = iter([0.904, 0.906, 0.872, 0.874])
    accept = RULES.acceptance(1000.0, lambda: next(luck))
    assert accept(99.0, 100.0, 50.0, 0)
    assert not accept(100.0, 100.0, 50.0, 0)  # of equal cost: neither needs luck
    assert accept(110.0, 100.0, 50.0, 0)  # exp(-10 / 100) = 0.9048
    assert not accept(110.0, 100.0, 50.0, 0)
    assert accept(110.0, 100.0, 50.0, 10)  # exp(-10 / 73.742) = 0.8732
    assert not accept(110.0, 100.0, 50.0, 10)
    assert not accept(110.0, 100.0, 50.0, 10**6)  # the temperature is 0
    luck = iter([0.499, 0.501])
    scaled = Adaptation(scaled=True).acceptance(1000.0, lambda: next(luck))
    assert scaled(1050.0, 1000.0, 50.0, 0)  # a twentieth of the start worse: 1/2
    assert not scaled(1050.0, 1000.0, 50.0, 0)


def test_weights_by_hand():
    events = []
    roulettes = Roulettes(RULES, 2, 3, tell=lambda *news: events.append(news))
    roulettes.begin([None] * 6, random.Random(1), 70.0, 3)
    outcomes = [Outcome.BEST, Outcome.FAILED, Outcome.WORSE]
    expected = [1.0, 1.0], [1.0, 1.0, 1.0]
    for outcome, score in zip(outcomes, (1.5, 0.1, 0.8), strict=True):
        for weights, place in zip(expected, roulettes.drawn, strict=True):
            weights[place] = (weights[place] + score) / 2
        roulettes.reward(None, outcome, 60.0)
        assert roulettes.weights == (pytest.approx(expected[0]), pytest.approx(expected[1]))
    assert [news[2:] for news in events] == [(0, 70.0), (5, 60.0), (0, 60.0), (3, 60.0)]
    assert events[-1][:2] == (-1, -1)
    assert all(0 <= d < 2 and 0 <= r < 3 for d, r, *_ in events[:-1])


def test_the_plain_rules_draw_uniformly_and_accept_what_is_not_worse():
    roulettes = Roulettes(PLAIN, 2, 2)
    roulettes.begin([None] * 4, random.Random(1), 70.0, len(Outcome))
    for outcome in Outcome:
        roulettes.reward(None, outcome, 60.0)
    assert roulettes.weights == ([1.0, 1.0], [1.0, 1.0])
    accept = PLAIN.acceptance(1000.0, lambda: 0.0)
    assert [accept(cost, 100.0, 50.0, 0) for cost in (99.0, 100.0, 100.1)] == [True, True, False]


def test_a_roulette_is_fair():
    stream = random.Random(3)
    counts = np.bincount([spun([1.0, 0.0, 3.0], stream) for _ in range(4000)], minlength=3)
    assert counts[1] == 0
    assert counts[0] / 4000 == pytest.approx(0.25, abs=0.03)
    assert {spun([0.0, 0.0], stream) for _ in range(50)} == {0, 1}


# --- in the sandbox -------------------------------------------------------------------------------


def programs(role, *sources):
    return [Program(role, source) for source in sources]


LAST = "def destroy(dist, tour, z, rng):\n    return tour[:-3], tour[-3:]\n"
BACK = "def repair(dist, tour, removed, z, rng):\n    return tour + removed\n"
SHUFFLED = (
    "def repair(dist, tour, removed, z, rng):\n    found = tour + removed\n"
    "    rng.shuffle(found)\n    return found\n"
)


def adapt(destroys, repairs, *, workers=1, seeds=(0, 1), steps=30, rules=RULES, **more):
    instances = TSP.sample(20, 2, 1)
    with LocalEvaluator(TSP, workers, cpu_seconds=20) as evaluator:
        found = evaluator.adaptive(
            programs("destroy", *destroys), programs("repair", *repairs), instances, seeds, steps,
            rules, **more,
        )  # fmt: skip
    return instances, found


@pytest.mark.parametrize("carry", [True, False])
def test_what_is_reported_is_what_the_rules_say(carry):
    """The same search in this process, with the draws that were reported."""
    instances, found = adapt([DESTROY, LAST], [REPAIR, BACK, SHUFFLED], carry=carry)
    assert found.rollouts.status.max() == 0
    assert found.drawn.shape == (2, 2, 30, 2)
    assert (found.drawn.min(), found.drawn[..., 0].max(), found.drawn[..., 1].max()) == (0, 1, 2)
    best = found.rollouts.best_cost[0]
    fell = np.diff(best) < 0
    assert (fell == (found.outcomes == Outcome.BEST)).all()
    back = (found.drawn == [1, 1]).all(axis=-1)  # puts back what it took
    assert set(found.outcomes[back]) == {Outcome.REJECTED}
    assert Outcome.FAILED not in found.outcomes
    for i, instance in enumerate(instances):
        for s in range(2):
            tour = TSP.decode(instance, found.rollouts.code_of(0, i, s))
            assert TSP.cost(instance, tour) == pytest.approx(best[i, s, -1], rel=1e-12)


@pytest.mark.parametrize("carry", [True, False])
def test_where_weights_begin_anew(carry):
    """The draws replayed from the outcomes: a seed's weights go on from instance to instance, or
    begin at 1 in each of its searches. At T = 0 a search draws nothing but operators.
    """
    cold = Adaptation(temperature=0.0)
    instances, found = adapt([DESTROY, LAST], [REPAIR, BACK, SHUFFLED], rules=cold, carry=carry)
    for s in range(2):
        weights = [1.0] * 2, [1.0] * 3
        for i, instance in enumerate(instances):
            weights = weights if carry else ([1.0] * 2, [1.0] * 3)
            luck = random.Random(derive("adaptive", derive("start", 0, instance.digest, s)))
            for drawn, outcome in zip(
                found.drawn[i, s].tolist(), found.outcomes[i, s].tolist(), strict=True
            ):
                assert drawn == [luck.choices(range(len(w)), w)[0] for w in weights]
                reward = {Outcome.BEST: 1.5, Outcome.BETTER: 1.2, Outcome.WORSE: 0.8}
                for w, place in zip(weights, drawn, strict=True):
                    w[place] = (w[place] + reward.get(outcome, 0.1)) / 2
    # Each seed has a start of its own.
    starts = found.rollouts.best_cost[0, :, :, 0]
    assert (starts[:, 0] != starts[:, 1]).all()


@pytest.mark.long
def test_the_draws_follow_the_weights():
    """One that always fails has the weight 0.1 + 0.9 / 2 ** n after n draws."""
    crash = "def destroy(dist, tour, z, rng):\n    return 1 / 0\n"
    _, found = adapt([DESTROY, crash], [REPAIR], steps=200, seeds=range(3))
    assert set(found.outcomes[found.drawn[..., 0] == 1]) == {Outcome.FAILED}
    share = (found.drawn[..., 0] == 1).mean()
    assert 0 < share < 0.5
    _, again = adapt([DESTROY, crash], [REPAIR], steps=200, seeds=range(3), workers=2)
    assert (again.drawn == found.drawn).all()
    assert (again.rollouts.best_cost == found.rollouts.best_cost).all()


@pytest.mark.parametrize(
    "bad",
    [
        "def destroy(dist, tour, z, rng):\n    while z > 2 or len(tour): pass\n",
        "def destroy(dist, tour, z, rng):\n    return [0] * 10**10, []\n",
        "def destroy(dist, tour, z, rng):\n    return tour, []\n",
        "HALF = 1 // 0\ndef destroy(dist, tour, z, rng):\n    return tour[1:], tour[:1]\n",
    ],
    ids=["endless", "memory", "invalid", "import"],
)  # fmt: skip
def test_an_operator_that_ends_its_process_fails_its_steps_alone(bad):
    _, found = adapt([DESTROY, bad], [REPAIR, BACK], steps=20, seeds=(0,))
    assert found.rollouts.status.max() == 0
    assert set(found.outcomes[found.drawn[..., 0] == 1]) == {Outcome.FAILED}
    assert Outcome.FAILED not in found.outcomes[found.drawn[..., 0] == 0]
    assert Outcome.BEST in found.outcomes


def test_a_program_that_the_gate_refuses():
    _, found = adapt(["import os\n" + DESTROY], [REPAIR], steps=5, seeds=(0,))
    assert [str(each) for each in found.rollouts.reason.ravel()]
    assert set(found.rollouts.status.ravel()) == {1}
    assert np.isnan(found.rollouts.best_cost).all()
    assert (found.drawn == -1).all()


def test_a_search_in_this_process_agrees_with_the_release_by_hand():
    """One operator of each role: the outcomes of the steps, recomputed from the costs."""
    names: dict = {}
    exec(DESTROY + SHUFFLED, names)
    [instance] = TSP.sample(12, 1, 4)
    rules = TSP.rules(instance.seen())
    start, luck, events = rules.start(random.Random(0)), random.Random(1), []
    costs = [TSP.cost(instance, start)]
    inner = rules.repaired

    def repaired(output):
        tour = inner(output)
        costs.append(rules.cost(tour))
        return tour

    rules.repaired = repaired
    own = [OperatorPair(Operator(names["destroy"]), Operator(names["repair"]))]
    roulettes = Roulettes(RULES, 1, 1, tell=lambda *news: events.append(news))
    cold = Adaptation(temperature=1.0)
    terms = Terms("improving", 0.0, 0, 0, skip_infeasible=True, tolerant=True)
    search = Search(
        TSP, instance, roulettes, start, terms, luck, random.Random(2),
        accept=cold.acceptance(costs[0], luck.random),
    )  # fmt: skip
    search.problem = type("P", (type(TSP),), {"rules": lambda self, i: rules})()
    roulettes.begin(own, luck, costs[0], 60)
    search.leg(60, math.inf, lambda steps, now: float(steps))
    replay, at, best = random.Random(1), costs[0], costs[0]
    replay.random(), replay.random()  # the first draw
    for t, cost in enumerate(costs[1:]):
        if cost < at:
            due, at = (Outcome.BEST if cost < best else Outcome.BETTER), cost
        elif cost > at and replay.random() < math.exp(-(cost - at) / 0.97**t):
            due, at = Outcome.WORSE, cost
        else:
            due = Outcome.REJECTED
        best = min(best, cost)
        assert events[t + 1][2:] == (due, pytest.approx(best, rel=1e-12))
        replay.random(), replay.random()
    assert {Outcome.BEST, Outcome.WORSE, Outcome.REJECTED} <= {news[2] for news in events}

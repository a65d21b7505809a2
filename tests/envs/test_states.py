"""States of a search: what programs are shown, by a program that tells what it sees."""

import re
from math import exp
from random import Random

import numpy as np
import pytest

from spo_jax.config import Settings
from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.evaluation import evaluate
from spo_jax.envs.report.solve import solve
from spo_jax.envs.run import lns
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.observation import HIDDEN, OBSERVED, given, shown_with
from spo_jax.envs.run.search import Search, Terms
from spo_jax.envs.run.states import KEPT, STATES, History, SearchState
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program

TSP = get_problem("tsp")


class Line:
    """Costs on a line: the next place is what is drawn."""

    size = 3

    def __init__(self, draws, seen):
        self.draws, self.seen = iter(draws), seen

    def arguments(self, layout):
        return ()

    def start(self, rng):
        return 6

    def copy(self, solution):
        return solution

    def minimised(self, solution):
        return float(solution)

    def destroyed(self, now, output):
        self.seen.append(output)
        return now, [0]

    def repaired(self, output):
        return next(self.draws)

    hands = ("rest", "removed")

    def polished(self, before, after):
        return after


def trace_of(state, draws, seen, acceptance="improving"):
    rules = Line(draws, seen)
    tell = lns.Operator(lambda now, z, rng: z)
    pair = lns.OperatorPair(tell, lns.Operator(lambda *_: None), shown_with(state))
    return lns.rollout(rules, pair, lns.random.Random(0), None, len(draws), acceptance=acceptance)


def played(state, draws, acceptance="improving"):
    seen = []
    trace_of(state, draws, seen, acceptance)
    return seen


def test_progress_by_hand():
    seen = played("progress", [3, 5, 2, 2], "own_parts:all_of")
    assert seen == [(0, 0.0, 0.0), (0, 0.25, -0.5), (1, 0.5, 2 / 3), (0, 0.75, -0.6)]
    assert played("progress", [3, 5, 2, 2]) == [  # 5 is not accepted
        (0, 0.0, 0.0), (0, 0.25, -0.5), (1, 0.5, 0.0), (0, 0.75, -1 / 3),
    ]  # fmt: skip


def test_one_of_ones_own_by_hand():
    # The first threshold is 2 x 6 / 3 = 4; it falls to 0.
    assert played("own_parts:PHASE", [3, 5, 9, 4], "record-to-record") == [
        (6, 6, 0, 4.0), (3, 3, 1, 3.0), (3, 5, 2, 2.0), (3, 5, 2, 1.0),
    ]  # fmt: skip
    heat = [0.3 * 2 * 0.01 ** (k / 2) for k in range(2)]
    told = [z[3] for z in played("own_parts:PHASE", [3, 3], "annealing")]
    assert told == pytest.approx(heat, rel=1e-12)
    assert exp(-1 / heat[1]) < exp(-1 / heat[0])
    assert played("own_parts:HALF", [1, 1, 1, 1, 1]) == [0, 0, 1, 1, 2]
    assert played("stagnation", [7, 5, 5, 4]) == [0, 1, 0, 1]
    assert played("none", [7, 5, 5, 4]) == [0] * 4


def test_shown_with():
    assert (shown_with("stagnation"), shown_with("none")) == (OBSERVED, HIDDEN)
    assert not OBSERVED.observes
    assert not HIDDEN.observes
    assert shown_with("progress").observes
    assert set(STATES) == {"stagnation", "progress"}


def test_a_history_keeps_the_latest():
    history = History(-1.0, None)
    for k in range(3 * KEPT + 7):
        history.add(float(k), k % 3)
    assert KEPT <= len(history.outcomes) < 2 * KEPT
    assert history.cost == history.costs[-1] == 3 * KEPT + 6
    assert list(np.diff(history.costs)) == [1.0] * (len(history.costs) - 1)
    assert len(history.costs) == len(history.outcomes) + 1
    assert history.temperature == 0.0


def test_a_search_that_goes_on_elsewhere_says_so():
    search = Search(
        TSP, TSP.sample(9, 1, 0)[0], None, list(range(9)),
        Terms("improving", 0.0, region=0, stay=1, rewrite=False, skip_infeasible=False,
              tolerant=False), Random(0), None, observed=True,
    )  # fmt: skip
    other = [0, 2, 1, *range(3, 9)]
    search.adopt(other)
    cost = TSP.cost(search.instance, other)
    assert search.history.cost == search.history.best == search.lowest == cost


# Takes out as many nodes as the parts of its state say.
DESTROY = '''
def destroy(dist, current_tour, search_state, rng):
    """By the state."""
    since, share, change = search_state
    count = 1 + (since > 1) + (share > 0.5) + (change < 0)
    removed = rng.sample(current_tour, count)
    return [v for v in current_tour if v not in removed], removed
'''
REPAIR = '''
def repair(dist, partial_tour, removed_nodes, search_state, rng):
    """Anywhere."""
    since, share, change = search_state
    for v in removed_nodes:
        partial_tour.insert(rng.randrange(len(partial_tour) + 1), v)
    return partial_tour
'''
PAIR = Pair(Program.from_source("destroy", DESTROY), Program.from_source("repair", REPAIR))


@pytest.mark.long
@pytest.mark.parametrize("acceptance", ["improving", "record-to-record"])
def test_the_same_in_rollouts_and_in_solve_for_any_workers(acceptance):
    instances = TSP.sample(12, 2, 3)
    terms = {"shown": shown_with("progress"), "acceptance": acceptance}
    found = []
    for workers in (1, 2):
        with LocalEvaluator(TSP, workers, **terms) as evaluator:
            found.append(evaluator.run([PAIR], instances, seeds=(0, 1), steps=40))
    assert (found[0].status == 0).all()
    np.testing.assert_array_equal(found[0].best_cost, found[1].best_cost)
    for s in (0, 1):
        solved = solve(
            instances[0], PAIR, TSP, start="random", acceptance=acceptance, steps=40, seed=s,
            workers=1, state="progress",
        )  # fmt: skip
        assert solved.cost == found[0].final_cost[0, 0, s]
    with LocalEvaluator(TSP, acceptance=acceptance) as evaluator:
        assert (evaluator.run([PAIR], instances, steps=40).status > 0).all()


def test_rollouts_record_what_was_shown():
    """Programs that are shown the record do the same again; it is the paper's state in its part."""
    seen = []
    trace = trace_of("progress", [3, 5, 2, 2], seen, "own_parts:all_of")
    assert trace.shown == seen
    seen.clear()
    trace = trace_of("own_parts:HALF", [1, 1, 1], seen)
    assert trace.shown == [(each,) for each in seen]
    assert trace_of("stagnation", [1, 1, 1], []).shown == []
    [instance] = TSP.sample(12, 1, 3)
    with LocalEvaluator(TSP, shown=shown_with("progress")) as evaluator:
        found = evaluator.run([PAIR, PAIR], [instance], seeds=(0, 1), steps=40)
    np.testing.assert_array_equal(found.shown[..., 0], found.state)
    np.testing.assert_array_equal(found.shown[0, 0, 0, :, 1], np.arange(40) / 40)
    again = {
        (instance.digest, s): given([*map(tuple, found.shown[0, 0, s].tolist())], "progress")
        for s in (0, 1)
    }
    with LocalEvaluator(TSP, shown=again) as evaluator:
        twice = evaluator.run([PAIR], [instance], seeds=(0, 1), steps=40)
    assert twice.shown.shape == (1, 1, 2, 40, 0)
    np.testing.assert_array_equal(twice.best_cost, found.best_cost[:1])
    with LocalEvaluator(TSP, work=20.0, shown=shown_with("progress")) as evaluator:
        cut = evaluator.run([PAIR], [instance], seeds=(0,), steps=40)
    np.testing.assert_array_equal(np.isnan(cut.shown[..., 0]), cut.state < 0)
    assert (cut.state < 0).any()


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("own_parts:PHASE", "state 'own_parts:PHASE' raised ValueError: no phase"),
        ("own_parts:TWO", r"state 'own_parts:TWO' returned \(0.0, 'late'\), where numbers"),
    ],
)  # fmt: skip
def test_what_a_state_may_not_is_named(state, why):
    silent = Pair(
        Program.from_source("destroy", re.sub("since, share.*|count = .*", "count = 1", DESTROY)),
        Program.from_source("repair", re.sub("since, share.*", "", REPAIR)),
    )
    with pytest.raises(InputError, match=why):
        evaluate(silent, TSP, ["uniform:9x1"], steps=40, state=state, references="none")


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("own_parts:shuffled", "is of type function, not a spo_jax.envs.run.states.SearchState"),
        ("stagnatoin", "unknown state 'stagnatoin': use none, stagnation, progress, or 'package"),
    ],
)
def test_what_is_no_state(state, why):
    with pytest.raises(InputError, match=why):
        LocalEvaluator(TSP, shown=shown_with(state))
    with pytest.raises(InputError, match="a state names its parts by identifiers"):
        SearchState(lambda history: 0, {})


def test_settings_that_were_true_or_false():
    assert Settings.make(state=True) == Settings.make(state="stagnation") == Settings()
    assert Settings.make(state=False).generator.state == "none"
    assert Settings.make(state=False).terms == {"state": "none"}
    assert not Settings().changed({"state": True})
    assert Settings().changed({"state": False}) == ["state"]
    assert Settings.make(state="none").replace(state=True).generator.state == "stagnation"
    with pytest.raises(
        InputError, match="state is 3; it must be one of stagnation, progress, none"
    ):
        Settings.make(state=3)

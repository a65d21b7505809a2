"""spo solve without the command line: starts, acceptance, parts, several searches, failures."""

import itertools
import math
import os
import random
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_evaluation import DESTROY, FUSSY, REPAIR, pair_of
from third_problem import PathProblem

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.cvrp.baselines.heuristics import clarke_wright, near_savings
from spo_jax.envs.problems.tsp import kit
from spo_jax.envs.problems.tsp.baselines.heuristics import nearest_neighbor
from spo_jax.envs.report.searched import solved_lines
from spo_jax.envs.report.solve import shipped_pair, solve
from spo_jax.envs.run.acceptance import ACCEPTANCES
from spo_jax.envs.run.adaptive import Portfolio
from spo_jax.envs.run.lns import Operator, OperatorPair
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.sandbox.jobs import Order, SearchJob
from spo_jax.envs.run.sandbox.process import confine
from spo_jax.envs.run.sandbox.worker import Worker
from spo_jax.envs.run.search import Search, Terms
from spo_jax.errors import InputError

TSP, CVRP = get_problem("tsp"), get_problem("cvrp")
PAPER = {"start": "random", "acceptance": "improving"}
ENDLESS = REPAIR.replace("    tour = list", "    while True: pass\n    tour = list")


# --- one search -----------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("problem", [TSP, CVRP], ids=lambda problem: problem.name)
def test_the_papers_search_is_a_rollout(problem):
    """From a random start, improving, one worker: what the evaluator does with that seed."""
    [instance] = problem.sample(30, 1, 5)
    pair = shipped_pair(problem)
    with LocalEvaluator(problem) as evaluator:
        rollout = evaluator.run([pair], [instance], (3,), 230)
    found = solve(instance, pair, problem, steps=230, seed=3, **PAPER)
    assert found.cost == rollout.final_cost[0, 0, 0]
    assert found.initial_cost == rollout.initial_cost[0, 0, 0]
    assert found.solution == problem.decode(instance, rollout.code_of(0, 0, 0))
    assert (found.steps, found.seed, found.searches, found.restarts) == (230, 3, 1, 0)


def searched(problem, instance, programs, steps=200, **terms):
    """A search in this process."""
    known = {"acceptance": "improving", "warmth": 0.0, "region": 0, "stay": 10} | terms
    pairs = Portfolio([OperatorPair(Operator(d), Operator(r)) for d, r in programs])
    start = problem.rules(instance.seen()).start(random.Random(0))
    search = Search(
        problem, instance, pairs, start, Terms(**known), random.Random(1), random.Random(2)
    )
    assert search.leg(steps, math.inf, lambda done, now: done / steps) == steps
    return search, pairs


def functions(destroy=DESTROY, repair=REPAIR):
    names: dict = {}
    exec(destroy + repair, names)
    return names["destroy"], names["repair"]


@pytest.mark.parametrize("acceptance", ACCEPTANCES)
@pytest.mark.parametrize("region", [0, 30])
def test_the_best_is_kept_whatever_is_accepted(acceptance, region):
    [instance] = TSP.sample(40, 1, 1)
    search, _ = searched(
        TSP, instance, [functions()], acceptance=acceptance, warmth=1.0, region=region
    )
    assert sorted(search.best) == sorted(search.current) == list(range(40))
    assert search.lowest == pytest.approx(TSP.cost(instance, search.best), rel=1e-12)
    assert search.cost == pytest.approx(TSP.cost(instance, search.current), rel=1e-12)
    assert search.lowest <= search.cost
    assert search.lowest < 0.8 * TSP.cost(instance, TSP.rules(instance).start(random.Random(0)))
    if acceptance == "improving":
        assert search.cost == search.lowest


def test_acceptance_by_hand():
    """From 20: the temperature falls from 20 to 0.2, the threshold from 20 to 0."""
    luck = iter([0.60, 0.61, 0.006, 0.007])
    annealing = ACCEPTANCES["annealing"][0](20.0, lambda: next(luck))
    assert annealing(99.0, 100.0, 50.0, 0.0)  # better: no luck is needed
    assert annealing(110.0, 100.0, 50.0, 0.0)  # exp(-10 / 20) = 0.6065
    assert not annealing(110.0, 100.0, 50.0, 0.0)
    assert annealing(101.0, 100.0, 50.0, 1.0)  # exp(-1 / 0.2) = 0.00674
    assert not annealing(101.0, 100.0, 50.0, 1.0)
    record = ACCEPTANCES["record-to-record"][0](20.0, lambda: 0.0)
    assert record(119.9, 105.0, 100.0, 0.0)
    assert not record(120.0, 105.0, 100.0, 0.0)
    assert not record(110.0, 105.0, 100.0, 0.5)
    assert record(105.0, 105.0, 100.0, 1.0)
    improving = ACCEPTANCES["improving"][0](20.0, lambda: 0.0)
    assert improving(5.0, 5.0, 1.0, 0.0)
    assert not improving(5.1, 5.0, 1.0, 0.0)


def test_weights_follow_success():
    """A pair that puts back what it took finds nothing."""
    [instance] = TSP.sample(60, 1, 1)
    idle = "def repair(dist, tour, removed, z, rng):\n    return tour + removed\n"
    last = "def destroy(dist, tour, z, rng):\n    return tour[:-1], tour[-1:]\n"
    _, pairs = searched(TSP, instance, [functions(last, idle), functions()], steps=400)
    idle_weight, good_weight = pairs.weights
    assert idle_weight < 1.0 < good_weight
    assert idle_weight == pytest.approx(0.9**4)  # four segments without a score


def test_a_pair_that_fails_on_parts_alone_goes_on_with_the_whole():
    [instance] = TSP.sample(40, 1, 1)
    small = REPAIR.replace("    tour = list", "    assert len(dist) == 40\n    tour = list")
    search, _ = searched(TSP, instance, [functions(repair=small)], region=12)
    assert search.steps == 200
    assert search.lowest < 0.8 * TSP.cost(instance, list(range(40)))


# --- parts ----------------------------------------------------------------------------------------


def edges(tour):
    return {frozenset(pair) for pair in pairwise([*tour, tour[0]])}


@given(st.integers(0, 2**31), st.integers(8, 40), st.integers(1, 30))
def test_parts_of_a_tour(seed, n, size):
    rng = random.Random(seed)
    [instance] = TSP.sample(n, 1, seed % 1000)
    tour = TSP.rules(instance).start(rng)
    size = min(size, n - 1)
    part = TSP.part(instance, tour, rng.randrange(n), size)
    assert part.instance.size == max(5, size)
    rules = TSP.rules(part.instance)
    same = part.whole(part.solution)
    assert edges(same) == edges(tour)
    for _ in range(5):
        turned = part.solution[:]
        i, j = sorted(rng.sample(range(len(turned) + 1), 2))
        turned[i:j] = turned[i:j][::-1]
        whole = part.whole(turned)
        kept = part.instance.dist.min() < 0  # whether there is any fixed edge
        broken = rules.cost(turned) - rules.cost(part.solution) > instance.dist.max() * len(turned)
        fixed = {
            frozenset((a, b)) for a, b in np.argwhere(part.instance.dist < 0).tolist()
        }  # uniform instances have no distance below 0 of their own
        assert (whole is None) == (not fixed <= edges(turned)), (kept, broken)
        if whole is not None:
            assert sorted(whole) == list(range(n))
            gain = TSP.cost(instance, whole) - TSP.cost(instance, tour)
            assert gain == pytest.approx(rules.cost(turned) - rules.cost(part.solution), abs=1e-9)


@given(st.integers(0, 2**31), st.integers(8, 40), st.integers(1, 30))
def test_parts_of_routes(seed, n, size):
    rng = random.Random(seed)
    [instance] = CVRP.sample(n, 1, seed % 1000)
    routes = CVRP.rules(instance).start(rng)
    center = rng.randrange(n)
    part = CVRP.part(instance, routes, center, size)
    rules = CVRP.rules(part.instance)
    assert rules.repaired(part.solution) == part.solution
    assert len(part.solution) == min(2, len(routes)) or part.instance.size <= max(size, 1)
    same = part.whole(part.solution)
    assert sorted(map(tuple, same)) == sorted(map(tuple, routes))
    other = rules.start(rng)  # any routes of the part
    whole = part.whole(other)
    CVRP.rules(instance).repaired(whole)
    gain = CVRP.cost(instance, whole) - CVRP.cost(instance, routes)
    assert gain == pytest.approx(rules.cost(other) - rules.cost(part.solution), abs=1e-9)
    [home] = [route for route in routes if center + 1 in route]
    assert tuple(home) not in set(map(tuple, whole)) or tuple(home) in {
        tuple(route) for route in whole[len(routes) - len(part.solution) :]
    }


def test_a_tour_is_rewritten_from_another_node_on():
    rng = random.Random(0)
    ways = {tuple(TSP.rewritten([0, 1, 2, 3], rng)) for _ in range(40)}
    assert ways == {(0, 1, 2, 3), (1, 2, 3, 0), (2, 3, 0, 1), (3, 0, 1, 2)}
    assert CVRP.rewritten([[1], [2]], rng) == [[1], [2]]


@pytest.mark.skipif(not kit.NATIVE, reason="the native kit is not built")
@given(seed=st.integers(0, 2**32), n=st.integers(8, 40))
def test_a_repaired_tour_is_searched_where_its_edges_changed(seed, n):
    [instance] = TSP.sample(n, 1, seed % 1000)
    rules, rng = TSP.rules(instance.seen()), random.Random(seed)
    before = TSP.construct(instance)
    turned = before[::-1]
    assert rules.polished(before, turned) == turned  # nothing changed
    after = before[:]
    i, j = rng.sample(range(n), 2)
    after[i], after[j] = after[j], after[i]
    polished = rules.polished(before, after[:])
    assert sorted(polished) == list(range(n))
    assert rules.cost(polished) <= rules.cost(after)


# --- starts ---------------------------------------------------------------------------------------


def test_a_start_has_no_long_way_between_clusters_that_a_brute_force_would_mend():
    """Near nodes alone leave these: each node's nearest are all in its own cluster of 20."""
    rng, corners = np.random.default_rng(3), [(0, 0), (0, 9), (9, 0), (9, 9), (20, 4)]
    coords = np.concatenate([rng.random((20, 2)) + corner for corner in corners])
    dist = np.linalg.norm(coords[:, None] - coords, axis=-1)
    instance = Instance("tsp", "clusters", len(dist), coords, dist)
    tour = TSP.construct(instance)
    assert sorted(tour) == list(range(len(dist)))
    cost = TSP.cost(instance, tour)
    for i, j in itertools.combinations(range(len(tour)), 2):
        assert TSP.cost(instance, tour[:i] + tour[i:j][::-1] + tour[j:]) > cost - 1e-9


@pytest.mark.parametrize("n", [3, 4, 8, 60])
def test_constructions(n):
    [instance] = TSP.sample(n, 1, 2)
    tour = TSP.construct(instance)
    assert sorted(tour) == list(range(n))
    assert TSP.cost(instance, tour) <= TSP.cost(instance, nearest_neighbor(instance))
    [instance] = CVRP.sample(n, 1, 2)
    routes = CVRP.rules(instance).repaired(CVRP.construct(instance))
    assert CVRP.cost(instance, routes) <= CVRP.cost(instance, clarke_wright(instance))


def test_savings_of_near_customers():
    """With all as near it is Clarke and Wright's; with few it is not much worse."""
    [instance] = CVRP.sample(60, 1, 2)
    whole = clarke_wright(instance)
    assert near_savings(instance, 59) == near_savings(instance, 1000) == whole
    few = CVRP.rules(instance).repaired(near_savings(instance, 10))
    assert CVRP.cost(instance, whole) <= CVRP.cost(instance, few) < 1.2 * CVRP.cost(instance, whole)


def test_constructions_of_nodes_on_one_spot():
    spot = Instance("tsp", "spot", 9, dist=np.zeros((9, 9)))
    assert sorted(TSP.construct(spot)) == list(range(9))
    with_demands = Instance(
        "cvrp", "spot", 8, dist=np.zeros((9, 9)), demands=np.array([0, *[2] * 8]), capacity=4
    )
    assert CVRP.rules(with_demands).repaired(CVRP.construct(with_demands))


@pytest.mark.parametrize("problem", [TSP, CVRP], ids=lambda problem: problem.name)
def test_a_start_from_a_file(problem, tmp_path):
    [instance] = problem.sample(20, 1, 3)
    start = problem.rules(instance).start(random.Random(4))
    path = tmp_path / f"start{problem.solution_suffix}"
    problem.write(path, instance, start)
    found = solve(instance, shipped_pair(problem), problem, start=path, steps=5)
    assert found.initial_cost == problem.cost(instance, start)
    assert found.cost < found.initial_cost
    [other] = problem.sample(21, 1, 3)
    with pytest.raises(InputError, match="start"):
        solve(other, shipped_pair(problem), problem, start=path, steps=5)


def test_a_problem_without_a_construction():
    problem = PathProblem()
    [instance] = problem.sample(9, 1, 0)
    pair = pair_of(
        "def repair(dist, partial, removed, z, rng):\n    return partial + removed\n",
        "def destroy(dist, order, z, rng):\n    return order[1:], order[:1]\n",
    )
    assert sorted(solve(instance, pair, problem, steps=4).solution) == list(range(1, 9))
    with pytest.raises(InputError, match="problem path has no construction: implement construct"):
        solve(instance, pair, problem, start="construction", steps=4)
    with pytest.raises(InputError, match="neither construction, random nor the file of a solution"):
        solve(instance, pair, problem, start="nowhere.json", steps=4)
    with pytest.raises(InputError, match="no pair comes with the problem path"):
        shipped_pair(problem)


# --- several searches -----------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(("problem", "region"), [(TSP, 20), (CVRP, 25)], ids=["tsp", "cvrp"])
def test_the_same_seed_and_workers_give_the_same_result(problem, region):
    [instance] = problem.sample(60, 1, 6)
    pair = shipped_pair(problem)
    terms = {"steps": 230, "workers": 2, "region": region, "start": "random"}
    one, two, other = (solve(instance, pair, problem, seed=s, **terms) for s in (1, 1, 2))
    assert (one.cost, one.solution, one.seed) == (two.cost, two.solution, two.seed)
    assert one.solution != other.solution
    assert (one.steps, one.searches) == (460, 2)
    assert one.cost == problem.cost(instance, one.solution)


@pytest.mark.long
def test_searches_of_the_cvrp_accept_by_turns(monkeypatch):
    seen, submit = [], Worker.submit

    def noted(self, job, *rest):
        if isinstance(job, SearchJob):
            seen.append(job.terms.acceptance)
        submit(self, job, *rest)

    monkeypatch.setattr(Worker, "submit", noted)
    [instance] = CVRP.sample(10, 1, 6)
    pair = shipped_pair(CVRP)
    solve(instance, pair, CVRP, steps=3, workers=3)
    assert seen == ["record-to-record", "annealing", "record-to-record"]
    solve(instance, pair, CVRP, steps=3, workers=2, acceptance="improving")
    assert seen[3:] == ["improving", "improving"]


@pytest.mark.long
def test_a_search_that_has_cooled_down_is_restarted():
    [instance] = TSP.sample(10, 1, 6)
    found = solve(instance, pair_of(), TSP, steps=6100, workers=2)
    assert (found.restarts, found.steps) == (2, 12200)
    assert "each restarted 2 times" in solved_lines(found)[1]


@pytest.mark.long
def test_by_time():
    [instance] = TSP.sample(20, 1, 6)
    for clock in ("wall", "cpu"):
        found = solve(
            instance, pair_of(), TSP, seconds=3.0 if clock == "wall" else 0.3, clock=clock
        )
        assert found.steps > 20
        assert found.cost < found.initial_cost * 1.0001


def test_a_user_who_stops_it_gets_the_best_so_far():
    [instance] = TSP.sample(20, 1, 6)

    def stop(news):
        raise KeyboardInterrupt

    found = solve(instance, pair_of(), TSP, steps=100_000, progress=stop, **PAPER)
    assert isinstance(found.stop, KeyboardInterrupt)
    assert found.steps == 200
    assert found.cost == TSP.cost(instance, found.solution) < found.initial_cost
    assert "stopped early" in solved_lines(found)[2]


@pytest.mark.long
def test_several_pairs():
    [instance] = TSP.sample(30, 1, 6)
    pairs = [shipped_pair(TSP), pair_of()]
    one, two = (solve(instance, pairs, TSP, steps=150, state=[True, False]) for _ in range(2))
    assert one.solution == two.solution
    with pytest.raises(InputError, match="no pair"):
        solve(instance, [], TSP)


# --- failures -------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_failing_pair_is_one_sentence():
    [instance] = TSP.sample(20, 1, 0)
    for pair, words in (
        (pair_of(FUSSY), "^the pair gave no solution: invalid: repair: complete_tour does not"),
        (pair_of(REPAIR.replace("tour = list", "tour = [][0]; list")), "crash: repair: IndexError"),
        (pair_of("import os\n" + REPAIR), "os"),
    ):
        with pytest.raises(InputError, match=words) as caught:
            solve(instance, pair, TSP, steps=5, workers=2)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"timeout: .*--cpu-seconds"):
        solve(instance, pair_of(ENDLESS), TSP, steps=5, cpu_seconds=30.0)
    with pytest.raises(InputError, match=r"timeout: used up .*--cpu-seconds"):
        solve(instance, pair_of(ENDLESS), TSP, seconds=0.2, clock="cpu", cpu_seconds=0.3)
    found = solve(instance, pair_of(FUSSY), TSP, steps=5, on_invalid="skip")
    assert found.cost == found.initial_cost


@pytest.mark.long
def test_a_step_that_does_not_end_ends_with_the_time():
    [instance] = TSP.sample(20, 1, 0)
    began = time.monotonic()
    found = solve(instance, pair_of(ENDLESS), TSP, seconds=3.0)
    assert time.monotonic() - began < 30.0  # PATIENCE is more
    assert (found.steps, found.failed) == (0, ())
    assert found.solution == TSP.construct(instance)
    assert "no step ended in time: this is the start" in solved_lines(found)


def test_a_pair_that_fails_late_keeps_what_it_found():
    [instance] = TSP.sample(20, 1, 0)
    late = REPAIR.replace("    tour = list", "    if rng.random() < 0.004: [][0]\n    tour = list")
    found = solve(instance, pair_of(late), TSP, steps=100_000, **PAPER)
    assert found.failed[0][0] == "crash"
    assert 0 < found.steps < 100_000
    assert found.cost == TSP.cost(instance, found.solution) < found.initial_cost
    assert "1 of 1 searches failed: crash: repair: IndexError" in solved_lines(found)[2]


def test_a_layout_that_was_guessed_wrongly_is_mended():
    """`row[k]` with an array k fails on a tuple; the paper's rollouts start again with arrays."""
    body = "    k = rng.permutation(2)\n    row = dist[0]\n    row[k[0] if z > 3 else k]\n"
    destroy = DESTROY.replace("steps_since_improvement", "z").replace(
        "    removed =", body + "    removed ="
    )
    [instance] = TSP.sample(20, 1, 0)
    with LocalEvaluator(TSP) as evaluator:
        assert evaluator.run([pair_of(destroy=destroy)], [instance], (0,), 5).ok.all()
    assert solve(instance, pair_of(destroy=destroy), TSP, steps=40, **PAPER).steps == 40


def test_what_a_search_reports_is_checked(monkeypatch):
    class Strict(type(TSP)):
        spec = TSP.spec  # the worker has the usual one

        def decode(self, instance, code):
            raise ValueError("no")

    instance = replace(TSP.sample(20, 1, 0)[0])
    with pytest.raises(InputError, match="tampered: the best solution is infeasible: no"):
        solve(instance, pair_of(), Strict(), steps=5)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"steps": 0}, "steps must be from 1"),
        ({"steps": 10**9}, "steps must be from 1"),
        ({"seconds": 0.0}, "the time must be"),
        ({"seconds": math.nan}, "the time must be"),
        ({"steps": 5, "seconds": 1.0}, "not both"),
        ({"acceptance": "all"}, "improving, annealing, record-to-record, not 'all'"),
        ({"warmth": -1.0}, "the warmth must be"),
        ({"region": -1}, "the region must be"),
        ({"workers": 0}, "workers must be at least 1"),
    ],
)
def test_senseless_terms_are_refused(options, says):
    with pytest.raises(InputError, match=says):
        solve(TSP.sample(10, 1, 0)[0], pair_of(), TSP, **options)


# --- orders ---------------------------------------------------------------------------------------


def test_orders():
    for code in ([], [3, 0, 1]):
        order = Order(7, math.inf, 1.5, 10.0, 30.0, False, code)
        packed = order.packed(5)
        assert len(packed) == Order.size(5)
        known = Order.unpacked(packed)
        assert (known.steps, known.until, known.cpu_seconds) == (7, math.inf, 1.5)
        assert list(known.code) == code
        assert [known.progress(steps, 1e9) for steps in (5, 10, 15, 30, 40)] == [0, 0, 0.25, 1, 1]
    timed = Order(7, 9.0, 1.5, 10.0, 30.0, True)
    assert timed.progress(10**6, 20.0) == 0.5


def test_a_search_may_read_its_orders_and_nothing_else():
    ours, theirs = os.pipe()
    other, _ = os.pipe()
    os.write(theirs, b"order")
    pid = os.fork()
    if pid == 0:
        code = 9
        try:
            os.dup2(ours, confine.RESULT_FD)
            confine._prctl(confine._PR_SET_NO_NEW_PRIVS, 1)
            program = confine.seccomp_filter(asks=True)
            if program is not None and confine.try_seccomp(program):
                code = 0 if os.read(confine.RESULT_FD, 5) == b"order" else 1
                try:
                    os.read(other, 1)
                    code = 2
                except PermissionError:
                    pass
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

"""Searches of a large instance that divide it: shares, what they join to, and what can go wrong."""

import math
import random
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_evaluation import pair_of

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.cvrp.limits import limits_of
from spo_jax.envs.report.solve import shipped_pair, solve
from spo_jax.envs.run.jobs import parallel_search
from spo_jax.envs.run.jobs.division import can_divide, divide, join
from spo_jax.envs.run.sandbox.jobs import Order

CVRP, VRPTW = get_problem("cvrp"), get_problem("vrptw")
ROUTING = pytest.mark.parametrize("problem", [CVRP, VRPTW], ids=lambda problem: problem.name)
CHEAPEST = """
def repair(dist, demands, capacity, routes, removed, steps, rng):
    routes = [list(route) for route in routes]
    for node in removed:
        best = (2.0 * dist[0][node], -1, 0)
        for r, route in enumerate(routes):
            if sum(demands[i] for i in route) + demands[node] <= capacity:
                for k in range(len(route) + 1):
                    a, b = (route[k - 1] if k else 0), (route[k] if k < len(route) else 0)
                    best = min(best, (dist[a][node] + dist[node][b] - dist[a][b], r, k))
        if best[1] >= 0:
            routes[best[1]].insert(best[2], node)
        else:
            routes.append([node])
    return routes
"""
DIVIDED = {"workers": 2, "region": 20, "steps": 300}


@ROUTING
@given(seed=st.integers(0, 2**31), n=st.integers(4, 60), count=st.integers(2, 5))
def test_shares_are_whole_routes(problem, seed, n, count):
    [instance] = problem.sample(n, 1, seed % 1000)
    routes = problem.rules(instance).start(random.Random(seed))
    shares = problem.shares(instance, routes, count, random.Random(seed))
    assert sorted(chain.from_iterable(shares)) == list(range(n))
    assert all(shares)
    assert len(shares) == max(1, min(count, len(routes) // 2))
    for route in routes:
        assert any({node - 1 for node in route} <= set(share) for share in shares)
    assert shares == problem.shares(instance, routes, count, random.Random(seed))
    joined = problem.joined(shares, [routes] * len(shares))
    assert sorted(map(tuple, joined)) == sorted(map(tuple, routes))


def test_shares_hold_about_as_many_and_lie_apart():
    [instance] = CVRP.sample(400, 1, 3)
    routes = CVRP.construct(instance)
    longest = max(map(len, routes))
    borders = set()
    for seed in range(20):
        shares = CVRP.shares(instance, routes, 4, random.Random(seed))
        assert all(abs(len(share) - 100) <= 2 * longest for share in shares)
        borders.add(frozenset(map(frozenset, shares)))
    assert len(borders) > 10  # each drawing has others
    clusters = replace(instance, coords=None)  # a matrix is enough
    assert CVRP.shares(clusters, routes, 4, random.Random(19)) == shares


def test_a_cut_lies_between_two_towns():
    """Two clusters far from one another come apart, wherever the draw begins."""
    coords = [(0.0, 0.0), *((x + k / 10, 5.0) for k in range(8) for x in (-50.0, 50.0))]
    dist = [[math.dist(a, b) for b in coords] for a in coords]
    instance = Instance(
        "cvrp", "towns", 16, dist=np.array(dist), demands=np.array([0] + [1] * 16), capacity=4
    )
    routes = [[1, 3, 5, 7], [9, 11, 13, 15], [2, 4, 6, 8], [10, 12, 14, 16]]
    west = {0, 2, 4, 6, 8, 10, 12, 14}
    for seed in range(10):
        shares = CVRP.shares(instance, routes, 2, random.Random(seed))
        assert west in map(set, shares)


@ROUTING
@given(seed=st.integers(0, 2**31), n=st.integers(6, 60))
def test_what_searches_change_within_their_shares_joins(problem, seed, n):
    """The cost of what is joined differs by what each search gained, and it is feasible."""
    rng = random.Random(seed)
    [instance] = problem.sample(n, 1, seed % 1000)
    rules = problem.rules(instance)
    routes = rules.start(rng)
    shares = problem.shares(instance, routes, 3, rng)
    changed = []
    for share in shares:
        part = problem.part(instance, routes, rng.choice(share), 1 + n // 4, within=share)
        assert part.instance.size <= len(share)
        changed.append(part.whole(problem.rules(part.instance).start(rng)))
        outside = {tuple(r) for r in routes if r[0] - 1 not in share}
        assert outside <= {*map(tuple, changed[-1])}
    joined = rules.repaired(problem.joined(shares, changed))
    gained = sum(problem.cost(instance, each) - problem.cost(instance, routes) for each in changed)
    assert problem.cost(instance, joined) == pytest.approx(
        problem.cost(instance, routes) + gained, abs=1e-9
    )


def made(problem, instance, solution):
    return problem.cost(instance, solution), problem.encode(instance, solution), solution


def test_what_does_not_fit_beside_the_rest_is_left_out():
    """A search that left its share, and two that took the last vehicle: the other gains count."""
    [instance] = CVRP.sample(60, 1, 1)
    routes = CVRP.construct(instance)
    division = divide(CVRP, instance, 0.0, CVRP.encode(instance, routes), 3, 5)
    assert len(division.shares) == 3
    same = made(CVRP, instance, routes)
    assert sorted(join(CVRP, instance, division, [same] * 3)[2]) == sorted(routes)
    single = next(route for route in routes if len(route) > 1)
    astray = [route for route in routes if route != single] + [[node] for node in single]
    share = next(k for k, items in enumerate(division.shares) if single[0] - 1 not in items)
    news = [same] * 3
    news[share] = made(CVRP, instance, astray)  # has changed another share: nothing of its own
    joined = join(CVRP, instance, division, news)
    assert sorted(joined[2]) == sorted(routes)

    limited = replace(instance, extra=instance.extra | {"max_vehicles": len(routes) + 1})
    split = []
    for items in division.shares:
        own = next(route for route in routes if route[0] - 1 in items and len(route) > 1)
        rest = [route for route in routes if route != own]
        split.append(made(CVRP, limited, [*rest, own[:1], own[1:]]))
    split = [(cost - 10 * k, code, routes) for k, (cost, code, routes) in enumerate(split)]
    joined = join(CVRP, limited, division, split)
    assert len(joined[2]) == len(routes) + 1
    assert {tuple(route) for route in split[2][2]} == {tuple(route) for route in joined[2]}


def test_the_parent_joins_without_rules(monkeypatch):
    """They hold all distances as tuples: to make them takes seconds for thousands of customers."""
    [instance] = CVRP.sample(60, 1, 1)
    routes = CVRP.construct(instance)
    code = CVRP.rules(instance).encode(routes)

    def rules(self, instance):
        raise AssertionError

    monkeypatch.setattr(type(CVRP), "rules", rules)
    assert CVRP.encode(instance, routes) == code
    division = divide(CVRP, instance, 0.0, code, 2, 5)
    found = join(CVRP, instance, division, [(0.0, code, routes)] * len(division.shares))
    assert sorted(found[2]) == sorted(routes)


def test_solutions_that_cannot_be_divided():
    [instance] = CVRP.sample(9, 1, 0)
    whole = replace(instance, capacity=10_000)
    for routes in (
        [[*range(1, 10)]],
        [[1, 2, 3, 4], [5, 6, 7, 8, 9]],
        [[1], [2], [3, 4, 5, 6, 7, 8, 9]],
    ):
        assert len(CVRP.shares(whole, routes, 3, random.Random(0))) == 1
        assert divide(CVRP, whole, 0.0, CVRP.encode(whole, routes), 3, 0) is None


def test_a_problem_that_has_another_part_is_not_divided():
    class Own(type(CVRP)):
        def part(self, instance, solution, center, size):
            return super().part(instance, solution, center, size)

    assert can_divide(CVRP)
    assert can_divide(VRPTW)
    assert not can_divide(Own())
    assert not can_divide(get_problem("tsp"))


def test_a_share_has_the_vehicles_that_others_leave():
    [instance] = CVRP.sample(30, 1, 1)
    routes = CVRP.construct(instance)
    limited = replace(instance, extra=instance.extra | {"max_vehicles": len(routes) + 1})
    [first, second] = CVRP.shares(limited, routes, 2, random.Random(0))
    for share in (first, second):
        part = CVRP.part(limited, routes, share[0], 30, within=share)
        own = [route for route in routes if route[0] - 1 in share]
        assert limits_of(part.instance).max_vehicles == len(own) + 1


# --- searches -------------------------------------------------------------------------------------


def divisions(monkeypatch):
    """What each division of a search had: (shares asked, shares)."""
    seen = []
    real = parallel_search.Team._divide

    def divide(self, cost, code):
        real(self, cost, code)
        if self._division is not None:
            seen.append((self._division.asked, len(self._division.shares)))

    monkeypatch.setattr(parallel_search.Team, "_divide", divide)
    return seen


@pytest.mark.long
@ROUTING
def test_two_searches_divide_an_instance(problem, monkeypatch):
    """The same seed and workers give the same result, which both have made."""
    seen = divisions(monkeypatch)
    [instance] = problem.sample(90, 1, 4)
    pair = shipped_pair(problem)
    news = []
    found = solve(instance, pair, problem, progress=news.append, **DIVIDED)
    assert seen == [(2, 2)] * parallel_search.EXCHANGES
    assert found.cost == problem.cost(instance, found.solution) < found.initial_cost
    assert found.steps == 600
    costs = [each.cost for each in news]
    assert costs == sorted(costs, reverse=True)
    again = solve(instance, pair, problem, **DIVIDED)
    assert (again.cost, again.solution, again.seed) == (found.cost, found.solution, found.seed)


def test_both_shares_are_improved(monkeypatch):
    """At the end of the first leg the best of all has the routes of both searches."""
    made = []
    real = parallel_search.Team._join

    def join(self, division):
        real(self, division)
        made.append((self._joined[0], min(m.best[0] for m in self._members)))

    monkeypatch.setattr(parallel_search.Team, "_join", join)
    [instance] = CVRP.sample(90, 1, 4)
    solve(instance, shipped_pair(CVRP), CVRP, start="random", acceptance="improving", **DIVIDED)
    assert made[0][0] < made[0][1]
    assert all(joined <= alone for joined, alone in made)


def test_more_searches_than_shares_take_turns_in_them(monkeypatch):
    seen = divisions(monkeypatch)
    [instance] = CVRP.sample(90, 1, 4)
    found = solve(instance, shipped_pair(CVRP), CVRP, workers=3, region=20, steps=100)
    assert set(seen) == {(2, 2)}
    assert found.searches == 3
    assert found.cost < found.initial_cost


@pytest.mark.parametrize("options", [{"workers": 1}, {"region": 0}, {"region": 60}])
def test_what_is_not_divided(options, monkeypatch):
    seen = divisions(monkeypatch)
    [instance] = CVRP.sample(90, 1, 4)
    solve(instance, shipped_pair(CVRP), CVRP, **DIVIDED | {"steps": 60} | options)
    assert not seen


def test_a_program_that_fails_on_parts_leaves_its_share(monkeypatch):
    """Then it sees the whole, what it makes joins with nothing, and the best search counts."""
    whole = """
def repair(dist, demands, capacity, routes, removed, steps, rng):
    assert len(dist) == 91
    routes = [list(route) for route in routes]
    for node in removed:
        routes.append([node])
    return routes
"""
    near = """
def destroy(dist, demands, capacity, routes, steps, rng):
    flat = [node for route in routes for node in route]
    removed = rng.sample(flat, 3)
    return [[n for n in route if n not in removed] for route in routes], removed
"""
    [instance] = CVRP.sample(90, 1, 4)
    pair = pair_of(whole, near)
    found = solve(instance, pair, CVRP, start="random", acceptance="annealing", **DIVIDED)
    assert not found.failed
    assert found.steps == 600
    assert found.cost == CVRP.cost(instance, found.solution) <= found.initial_cost


@pytest.mark.long
def test_a_search_that_ends_leaves_what_it_made():
    """The programs fail once in 500 steps: the other searches go on, the last one undivided."""
    destroy = """
def destroy(dist, demands, capacity, routes, steps, rng):
    if rng.random() < 0.002:
        raise ValueError("enough")
    flat = [node for route in routes for node in route]
    removed = rng.sample(flat, 3)
    return [[n for n in route if n not in removed] for route in routes], removed
"""
    [instance] = CVRP.sample(90, 1, 4)
    pair = pair_of(CHEAPEST, destroy)
    found = solve(instance, pair, CVRP, workers=3, region=12, steps=1500, start="random")
    assert len(found.failed) >= 1
    assert found.cost == CVRP.cost(instance, found.solution) < found.initial_cost


def test_orders_name_a_share():
    order = Order(7, math.inf, 1.5, 10.0, 30.0, False, [2, 1], 3, 5, 2**64 - 1)
    known = Order.unpacked(order.packed(4))
    assert (known.share, known.asked, known.division) == (3, 5, 2**64 - 1)
    assert list(known.code) == [2, 1]


def test_progress_is_that_of_the_cycle(monkeypatch):
    """A search that begins cooler shows its programs what share of the budget is used."""
    destroy = """
def destroy(dist, demands, capacity, routes, state, rng):
    since, used, change = state
    assert used > 0.5 or since < 200
    assert used < 0.97
    flat = [node for route in routes for node in route]
    removed = rng.sample(flat, 3)
    return [[n for n in route if n not in removed] for route in routes], removed
"""
    [instance] = CVRP.sample(90, 1, 4)
    options = DIVIDED | {"steps": 20, "state": "progress"}
    found = solve(instance, pair_of(CHEAPEST, destroy), CVRP, start="random", **options)
    assert not found.failed
    assert found.steps == 40


def test_a_search_that_has_ended_leaves_the_next_division():
    [instance] = CVRP.sample(90, 1, 4)
    routes = CVRP.construct(instance)
    cost, code, _ = made(CVRP, instance, routes)
    team = object.__new__(parallel_search.Team)
    team._problem, team._instance, team._seed = CVRP, instance, 0
    team._cycle, team._mark = 0, 0
    team._most_shares, team._best = 2, (cost, routes, None)
    team._members = [parallel_search._Member(None) for _ in range(3)]
    team._divide(cost, code)
    assert [member.share for member in team._members] == [0, 1, 0]
    team._members[0].ended = True
    team._members[0].best = (0.5 * cost, code)
    team._divide(cost, code)
    assert [member.share for member in team._members] == [-1, 0, 1]
    team._join(team._division)
    assert team._joined[0] == cost
    assert team._best[2] is None
    team._members[1].ended = True
    team._divide(cost, code)
    assert team._division is None

"""The kit of the VRPTW against exhaustive search; `test_kit` compares it with its reference."""

import itertools
import math
import random
import textwrap
from typing import Any

import kit_cases
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spo_jax.envs.problems.vrptw.kit as kit
import spo_jax.envs.problems.vrptw.kit.reference as reference
from spo_jax.envs.kits import load_kit
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems import kit as python_kit
from spo_jax.envs.problems.cvrp.kit import routes as python_routes
from spo_jax.envs.problems.cvrp.limits import Limits
from spo_jax.program import Pair, Program, format_pair

PROBLEM = get_problem("vrptw")
KITS = pytest.mark.parametrize("lns", [reference, kit], ids=["python", "package"])
SEEDS = st.integers(0, 2**32)
INF = math.inf


def drawn(seed: int, size: int, capacity: int = 50) -> tuple[Any, ...]:
    """What programs get of a sampled instance."""
    [instance] = PROBLEM.sample(size, 1, seed)
    given = PROBLEM.rules(instance.seen()).arguments("rows")
    return (*given[:2], capacity, *given[3:])


def feasible(given: tuple[Any, ...], route: list[int]) -> bool:
    dist, demands, capacity, ready, due, service = given
    clock, last = ready[0], 0
    for node in [*route, 0]:
        clock = max(clock + service[last] + dist[last][node], ready[node])
        if clock > due[node] + 1e-12 * due[0]:
            return False
        last = node
    return sum(demands[node] for node in route) <= capacity


def length(dist: Any, routes: list[list[int]]) -> float:
    return sum(dist[a][b] for route in routes for a, b in itertools.pairwise([0, *route, 0]))


def started(given: tuple[Any, ...], seed: int, customers: list[int]) -> list[list[int]]:
    """Feasible routes of some customers, in no good order."""
    rng = random.Random(seed)
    routes: list[list[int]] = []
    for node in rng.sample(customers, len(customers)):
        place = next((r for r, route in enumerate(routes) if feasible(given, [*route, node])), None)
        if place is None:
            routes.append([node])
        else:
            routes[place] = [*routes[place], node]
    return [route for route in routes if route]


def places(given: tuple[Any, ...], routes: list[list[int]], node: int) -> list[tuple[Any, ...]]:
    """(added, route, index) of all feasible places, routes of their own included."""
    dist, found = given[0], []
    for r, route in enumerate(routes):
        stops = [0, *route, 0]
        for i in range(len(route) + 1):
            if feasible(given, [*route[:i], node, *route[i:]]):
                a, b = stops[i : i + 2]
                found.append((dist[a][node] + dist[node][b] - dist[a][b], r, i))
    return [*found, (dist[0][node] + dist[node][0], len(routes), 0)]


@KITS
@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, size=st.integers(3, 9), capacity=st.integers(9, 50))
def test_the_cheapest_place_is_the_cheapest_that_is_feasible(lns, seed, size, capacity) -> None:
    given = drawn(seed, size, capacity)
    routes = started(given, seed, list(range(2, size + 1)))
    added, r, index = lns.best_position(*given, routes, 1)
    assert added == pytest.approx(min(place[0] for place in places(given, routes, 1)))
    grown = [[*routes, []][r][:index], [1], [*routes, []][r][index:]]
    longer = [*grown[0], 1, *grown[2]]
    assert feasible(given, longer)
    paid = length(given[0], [longer]) - length(given[0], [[*routes, []][r]])
    assert paid == pytest.approx(added)


@KITS
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, size=st.integers(3, 9), capacity=st.integers(9, 50))
def test_insertions_choose_among_all_feasible_places(lns, seed, size, capacity) -> None:
    """Ordered: the cheapest of each in turn. Greedy and regret: who comes first, too."""
    given = drawn(seed, size, capacity)
    rest = list(range(1, size + 1, 2))
    start = started(given, seed, list(range(2, size + 1, 2)))
    waiting, routes, total = list(rest), [list(route) for route in start], 0.0
    for node in waiting:
        added, r, index = min(places(given, routes, node), key=lambda each: each[0])
        routes = [*routes, []] if r == len(routes) else routes
        routes[r].insert(index, node)
        total += added
    found, paid = lns.ordered_insertion(*given, start, rest)
    assert paid == pytest.approx(total)
    assert found == routes
    for k, insert in ((1, lns.greedy_insertion), (2, lns.regret_insertion)):
        waiting, routes = list(rest), [list(route) for route in start]
        while waiting:
            best = -INF, 0, (0.0, 0, 0)
            for node in waiting:
                cheapest = {}
                for place in places(given, routes, node):
                    if place[1] not in cheapest or place[0] < cheapest[place[1]][0]:
                        cheapest[place[1]] = place
                missing = max(0, min(2, len(routes) + 1) - (len(cheapest) - 1))
                own = [cheapest[len(routes)]] * missing  # besides the one that is there
                ranked = sorted([*cheapest.values(), *own], key=lambda each: each[0])
                score = -ranked[0][0] if k == 1 else ranked[1][0] - ranked[0][0]
                if score > best[0]:
                    best = score, node, ranked[0]
            _, node, (_, r, index) = best
            routes = [*routes, []] if r == len(routes) else routes
            routes[r].insert(index, node)
            waiting.remove(node)
        assert insert(*given, start, rest)[0] == routes


@KITS
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, size=st.integers(4, 24), near=st.integers(1, 12), steps=st.integers(1, 3))
def test_what_the_kit_returns_is_feasible_and_no_longer(lns, seed, size, near, steps) -> None:
    given = drawn(seed, size)
    customers = list(range(1, size + 1))
    routes = started(given, seed, customers)
    before = length(given[0], routes)
    for name in ("or_opt", "two_opt_star", "exchange", "two_opt", "or_opt"):
        routes = getattr(lns, name)(*given, routes, customers, near=near)
        after = length(given[0], routes)
        assert after <= before + 1e-9
        assert all(feasible(given, route) for route in routes)
        assert sorted(itertools.chain(*routes)) == customers
        before = after
    partial, removed = lns.timely_removal(given[0], given[3], given[5], routes, 1, size // 2)
    grown, _ = lns.regret_insertion(*given, partial, removed, near=near, k=steps)
    assert all(feasible(given, route) for route in grown)
    assert sorted(itertools.chain(*grown)) == customers


# The depot and four customers on a line, the windows such that 1 and 3 are served at once.
LINE = tuple(tuple(float(abs(a - b)) for b in (0, 1, 2, -1, -2)) for a in (0, 1, 2, -1, -2))
OPEN, SERVICE, ONES = (0.0,) * 5, (0.0,) * 5, (0, 1, 1, 1, 1)


@KITS
def test_two_routes_exchange_customers_that_are_on_the_wrong_side(lns) -> None:
    wide = (100.0,) * 5
    given = LINE, ONES, 2, OPEN, wide, SERVICE
    crossed = [[1, 4], [3, 2]]  # 2 and -2 are in the route of the other side
    found = lns.exchange(*given, crossed, [1, 2, 3, 4])
    assert sorted(map(sorted, found)) == [[1, 2], [3, 4]]
    late = (100.0, 100.0, 1.5, 100.0, 100.0)  # nobody is at 2 by then
    assert lns.exchange(*given[:4], late, SERVICE, crossed, [1, 2, 3, 4]) == crossed
    full = (0, 1, 2, 1, 1)
    assert lns.exchange(LINE, full, 2, *given[3:], [[1, 4], [3], [2]], [2], moves=5) == [
        [1, 4],
        [3],
        [2],
    ]


@KITS
def test_times_decide_where_a_customer_may_go(lns) -> None:
    due = (10.0, 1.0, 9.0, 9.0, 9.0)
    given = LINE, ONES, 9, OPEN, due, SERVICE
    assert lns.best_position(*given, [[2]], 1) == (0.0, 0, 0)  # behind 2 it would be at 3
    service = (0.0, 8.0, 0.0, 0.0, 0.0)
    assert lns.best_position(*given[:5], service, [[2]], 1) == (2.0, 1, 0)  # 2 would be late
    ready = (0.0, 0.0, 0.0, 0.0, 8.0)
    assert lns.begins(LINE, ready, service, [[1, 2], [], [3, 4]]) == [[1.0, 10.0], [], [1.0, 8.0]]
    late = [[2, 1]]  # 1 is late as it is given: its route takes nobody
    assert lns.best_position(*given, late, 3) == (2.0, 1, 0)
    assert lns.ordered_insertion(*given, late, [3, 4]) == ([[2, 1], [4, 3]], 4.0)


@KITS
def test_sums_in_another_order_are_not_late(lns) -> None:
    dist = tuple(tuple(0.1 * abs(a - b) for b in range(4)) for a in range(4))
    due = (dist[0][1] + dist[1][2] + dist[2][3] + dist[3][0], *(dist[0][k] for k in (1, 2, 3)))
    given = dist, (0, 1, 1, 1), 9, (0.0,) * 4, due, (0.0,) * 4
    for node in (1, 2, 3):
        rest = [each for each in (1, 2, 3) if each != node]
        assert lns.best_position(*given, [rest], node)[1] == 0


@KITS
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, size=st.integers(3, 12), count=st.integers(0, 12), by_time=st.floats(0, 3))
def test_removal_by_place_and_time_takes_the_nearest(lns, seed, size, count, by_time) -> None:
    given = drawn(seed, size)
    dist, ready, service = given[0], given[3], given[5]
    routes = started(given, seed, list(range(1, size + 1)))
    begin = {}
    for route in routes:
        for i, node in enumerate(route):
            before = route[i - 1] if i else 0
            leaves = begin[before] + service[before] if i else ready[0]
            begin[node] = max(leaves + dist[before][node], ready[node])
    assert lns.begins(dist, ready, service, routes) == [
        [begin[node] for node in route] for route in routes
    ]
    apart = {node: dist[2][node] + by_time * abs(begin[node] - begin[2]) for node in begin}
    removed = lns.timely_removal(dist, ready, service, routes, 2, count, by_time)[1]
    assert sorted(removed) == sorted(sorted(begin, key=lambda node: apart[node])[:count])
    if count > 0:
        # One after the other with power inf: the nearest to the one before, of the rest.
        args = dist, given[1], ready, service, routes, 2, 2, random.Random(seed)
        second = lns.related_removal(*args, power=1e9, by_time=by_time)[1]
        assert sorted(second) == sorted(
            sorted(begin, key=lambda node: (node != 2, apart[node]))[:2]
        )


def test_limits_of_a_prepared_matrix_hold_with_windows_too() -> None:
    given = drawn(1, 8)
    customers = list(range(1, 9))
    most = 1.3 * 2 * max(given[0][0])
    limits = Limits(most, INF, 1 << 30, (0.0,) * 9)
    kit.prepare(*given, limits)
    python_kit.prepare(given[0])
    python_routes.limit(given[0], *limits.arguments)
    try:
        found = [lns.regret_insertion(*given, [], customers) for lns in (reference, kit)]
        assert found[0] == found[1]
        assert all(length(given[0], [route]) <= most for route in found[0][0])
    finally:
        kit.release(*given, limits)
        python_kit.release(given[0])


def test_what_an_exported_pair_has_of_the_kit_is_the_same() -> None:
    """In one file all functions share their names."""
    calls = "".join(f"    lns.{name}\n" for name in kit_cases.VRPTW)
    programs = [
        Program.from_source("destroy", f"import lns\n\ndef destroy(x):\n{calls}    return x\n", ""),
        Program.from_source("repair", "def repair(x):\n    return x\n", ""),
    ]
    text = format_pair(Pair(*programs), "", PROBLEM.interface, PROBLEM.kit)
    block = text[text.index("    def python_kit():") :].partition("    lns = python_kit()")[0]
    space: dict[str, Any] = {}
    exec(textwrap.dedent(block), space)
    alone = space["python_kit"]()
    for seed, name in enumerate(kit_cases.VRPTW * 3):
        results = []
        for lns in (alone, kit):
            draw = random.Random(seed)
            call = kit_cases.vrptw(draw, name, kit_cases.matrix(draw, 9), random.Random(seed))
            results.append(kit_cases.outcome(lns, call))
        assert results[0] == results[1]


def test_programs_find_the_kit() -> None:
    found = load_kit(PROBLEM)
    assert found is not None
    assert found.names == tuple(kit_cases.VRPTW)

"""Limits of a CVRP's routes: against exhaustive search, PyVRP, and the kit in plain Python."""

import itertools
import math
import random
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import kit_cases
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spo_jax
import spo_jax.envs.problems.cvrp.kit as kit
import spo_jax.envs.problems.cvrp.kit.reference as reference
from spo_jax.envs.problem import Infeasible, Instance
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems import kit as python_kit
from spo_jax.envs.problems.cvrp.baselines import heuristics
from spo_jax.envs.problems.cvrp.baselines.alns import alns
from spo_jax.envs.problems.cvrp.baselines.alns_example import alns_example
from spo_jax.envs.problems.cvrp.baselines.or_tools import or_tools
from spo_jax.envs.problems.cvrp.baselines.references import pyvrp
from spo_jax.envs.problems.cvrp.files import cvrplib
from spo_jax.envs.problems.cvrp.fleets import Fleet
from spo_jax.envs.problems.cvrp.kit import routes as python_routes
from spo_jax.envs.problems.cvrp.limits import limits_of
from spo_jax.envs.problems.tsp.files.weights import euclidean
from spo_jax.errors import InputError

CVRP = get_problem("cvrp")
NATIVE = pytest.mark.skipif(not kit.NATIVE, reason="the native kit is not built")
SEEDS = st.integers(0, 2**32)


def drawn(seed: int, size: int = 5, *, whole: bool = True, vehicles: int = 0) -> Instance:
    """Limits that bind: between the longest way there and back and twice that."""
    rng = np.random.default_rng(seed)
    coords = rng.random((size + 1, 2)) * 50
    dist = np.rint(euclidean(coords)) if whole else euclidean(coords)
    demands = np.array([0, *rng.integers(1, 6, size)])
    service = np.array([0.0, *rng.integers(0, 12, size)])
    kinds = rng.integers(1, 4)
    extra: dict[str, Any] = {}
    if kinds & 1:
        extra["max_distance"] = float(math.ceil(2 * dist[0].max() * rng.uniform(1, 2)))
    if kinds & 2:
        lone = (2 * dist[0] + service).max()
        extra |= {"max_duration": float(math.ceil(lone * rng.uniform(1, 2))), "service": service}
    if vehicles:
        extra["max_vehicles"] = vehicles
    return Instance("cvrp", f"l{seed}", size, coords, dist, demands, 12, extra=extra)


def lawful(instance: Instance, route: Any) -> bool:
    """Written apart from what is tested: exact sums of Python."""
    walk = [0, *route, 0]
    length = math.fsum(instance.dist[a, b] for a, b in itertools.pairwise(walk))
    stay = (
        sum(instance.extra["service"][node] for node in route) if "service" in instance.extra else 0
    )
    most = (
        instance.extra.get("max_distance", math.inf),
        instance.extra.get("max_duration", math.inf),
    )
    load = sum(int(instance.demands[node]) for node in route)
    return (
        load <= instance.capacity and length <= most[0] + 1e-9 and length + stay <= most[1] + 1e-9
    )


def keeps(instance: Instance, routes: Any) -> bool:
    if len(routes) > instance.extra.get("max_vehicles", math.inf):
        return False
    served = sorted(node for route in routes for node in route)
    return served == list(range(1, instance.size + 1)) and all(
        lawful(instance, route) for route in routes
    )


def cheapest(instance: Instance) -> dict[int, float]:
    """By number of routes: the best lawful order of each set of customers, the best partition."""
    n, d = instance.size, instance.dist
    best_route = {}
    for members in range(1, 1 << n):
        chosen = [k + 1 for k in range(n) if members >> k & 1]
        costs = [
            sum(d[a, b] for a, b in itertools.pairwise([0, *order, 0]))
            for order in itertools.permutations(chosen)
            if lawful(instance, order)
        ]
        if costs:
            best_route[members] = min(costs)
    best: dict[tuple[int, int], float] = {(0, 0): 0.0}
    for members in range(1, 1 << n):
        low = members & -members
        for part, cost in best_route.items():
            if part & low and part & members == part:
                for count in range(n):
                    rest = best.get((members ^ part, count), math.inf)
                    key = members, count + 1
                    best[key] = min(best.get(key, math.inf), float(cost + rest))
    whole = (1 << n) - 1
    return {k: best[whole, k] for k in range(1, n + 1) if best.get((whole, k), math.inf) < math.inf}


def partitions(nodes: list[int]) -> list[list[list[int]]]:
    """All sets of routes: every order of the customers, cut everywhere."""
    found = []
    for order in itertools.permutations(nodes):
        for cuts in range(1 << (len(order) - 1)):
            routes: list[list[int]] = [[order[0]]]
            for k, node in enumerate(order[1:]):
                if cuts >> k & 1:
                    routes.append([])
                routes[-1].append(node)
            found.append(routes)
    return found


# --- rules ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("whole", [True, False])
def test_worker_parent_file_and_batch_judge_alike(seed: int, whole: bool) -> None:
    instance = drawn(seed, 4, whole=whole, vehicles=seed % 2 * 3)
    rules, verdicts, codes = CVRP.rules(instance.seen()), [], []
    for routes in partitions([1, 2, 3, 4]):
        right = keeps(instance, routes)
        verdicts.append(right)
        codes.append(rules.encode(routes))
        if right:
            assert rules.repaired(routes) == routes
            assert CVRP.decode(instance, codes[-1]) == routes
            cvrplib.check_routes(instance, routes)
            continue
        with pytest.raises(Infeasible):
            rules.repaired(routes)
        with pytest.raises(Infeasible):
            CVRP.decode(instance, codes[-1])
        with pytest.raises(InputError, match="no solution of l"):
            cvrplib.check_routes(instance, routes)
    assert len(set(verdicts)) == 2
    longest = max(map(len, codes))
    batch = np.array([[*code, *[-1] * (longest - len(code))] for code in codes], np.int32)
    costs = CVRP.costs([instance], batch, np.zeros(len(batch), int))
    assert (~np.isnan(costs)).tolist() == verdicts
    prices = [CVRP.cost(instance, CVRP.decode(instance, code)) for code, right in
              zip(codes, verdicts, strict=True) if right]  # fmt: skip
    assert costs[~np.isnan(costs)].tolist() == prices


def test_a_batch_of_instances_with_and_without_limits() -> None:
    free, bound = CVRP.sample(size=5, count=1, seed=1)[0], drawn(3)
    routes = [[1], [2], [3], [4], [5]]
    code = CVRP.rules(free).encode(routes)
    found = CVRP.costs([free, bound], np.array([code, code], np.int32), np.array([0, 1]))
    assert found.tolist() == [CVRP.cost(each, routes) for each in (free, bound)]


@given(seed=SEEDS)
@settings(max_examples=40, deadline=None)
def test_starts_and_baselines_keep_the_limits(seed: int) -> None:
    instance = drawn(seed, 9)
    assert keeps(instance, CVRP.rules(instance.seen()).start(random.Random(seed)))
    assert keeps(instance, CVRP.construct(instance))
    assert keeps(instance, heuristics.near_savings(instance, 3))
    assert keeps(instance, heuristics.local_search(instance))
    assert keeps(instance, alns(instance, 1, steps=30))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_searches_reach_the_optimum_of_exhaustive_search(seed: int) -> None:
    pytest.importorskip("pyvrp")
    pytest.importorskip("ortools")
    pytest.importorskip("alns")
    instance = drawn(seed, 6)
    costs = cheapest(instance)
    fewest, best = min(costs), min(costs.values())
    few = replace(instance, extra=instance.extra | {"max_vehicles": fewest})
    for each, cost in ((instance, best), (few, costs[fewest])):
        for routes in (
            pyvrp(each, iterations=200),
            or_tools(each, seconds=1),
            alns(each, 0, steps=300),
        ):
            assert keeps(each, routes)
            assert CVRP.cost(each, routes) == cost
    assert keeps(instance, alns_example(instance, steps=50))


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["A/A-n45-k6", "A/A-n61-k9", "B/B-n45-k5", "P/P-n50-k8", "X/X-n233-k16"]
)
def test_starts_with_the_vehicles_and_the_longest_route_of_an_optimum(
    name: str, spo_data: Path
) -> None:
    path = spo_data / "cvrplib" / f"{name}.vrp"
    free = CVRP.read(path)
    best = CVRP.read_solution(path.with_suffix(".sol"), free)
    service = np.array([0.0, *np.random.default_rng(0).integers(5, 20, free.size)])
    lasts = [CVRP.cost(free, [route]) + float(service[route].sum()) for route in best]
    extra = {"max_duration": max(lasts), "service": service, "max_vehicles": len(best)}
    tight = replace(free, extra=extra)
    assert keeps(tight, best)
    assert keeps(tight, CVRP.construct(tight))
    assert keeps(tight, CVRP.rules(tight.seen()).start(random.Random(1)))


@pytest.mark.parametrize("seed", range(20))
def test_starts_with_as_few_vehicles_as_can_be(seed: int) -> None:
    instance = drawn(seed, 6)
    few = replace(instance, extra=instance.extra | {"max_vehicles": min(cheapest(instance))})
    assert keeps(few, CVRP.rules(few.seen()).start(random.Random(seed)))
    assert keeps(few, CVRP.construct(few))


@pytest.mark.parametrize("seed", range(4))
def test_a_vehicle_for_each_village(seed: int) -> None:
    """Six villages far apart: routes are short enough only where each stays in one."""
    angles = np.arange(6) * np.pi / 3
    centers = 100 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    around = np.random.default_rng(seed).uniform(-20, 20, (72, 2))
    coords = np.vstack([[0, 0], np.repeat(centers, 12, axis=0) + around])
    demands = np.array([0, *[1] * 72])
    limits = {"max_distance": 340.0, "max_vehicles": 6}
    instance = Instance(
        "cvrp", "villages", 72, coords, euclidean(coords), demands, 15, extra=limits
    )
    bounds = limits_of(instance)
    assert bounds is not None
    fleet = Fleet(instance.dist, demands.tolist(), 15, bounds)
    found = fleet.reduced([], random.Random(seed), steps=500)
    assert found is not None
    assert keeps(instance, found)
    assert fleet.reduced([], random.Random(seed), steps=500) == found


@pytest.mark.long
def test_no_start_with_few_vehicles_is_one_sentence() -> None:
    given = drawn(3)
    tight = Instance("cvrp", "tight", 5, given.coords, given.dist, np.array([0, 4, 4, 4, 4, 4]), 6,
                     extra={"max_vehicles": 4})  # fmt: skip
    for start in (CVRP.construct, CVRP.require):
        with pytest.raises(InputError, match="tight: no start with 4 routes or fewer was found"):
            start(tight)


FIFTY = """NAME : fifty
TYPE : CVRP
DIMENSION : 51
EDGE_WEIGHT_TYPE : EUC_2D
CAPACITY : 160
{}
NODE_COORD_SECTION
{}
DEMAND_SECTION
{}
DEPOT_SECTION
1
-1
EOF
"""
TERMS = [
    "DISTANCE : 200\nSERVICE_TIME : 10",  # as CMT6 has them
    "VEHICLES_MAX_DISTANCE : 110\nVEHICLES : 9",
]


@pytest.mark.long
@pytest.mark.parametrize("terms", TERMS)
def test_pyvrp_finds_what_solve_writes_feasible(tmp_path: Path, terms: str) -> None:
    """Also with programs that know nothing of limits, and with parts of the instance."""
    library = pytest.importorskip("pyvrp")
    rng = np.random.default_rng(6)
    places = "\n".join(f"{k} {x} {y}" for k, (x, y) in enumerate(rng.integers(0, 70, (51, 2)), 1))
    needs = "\n".join(f"{k} {0 if k == 1 else rng.integers(3, 40)}" for k in range(1, 52))
    path = tmp_path / "fifty.vrp"
    path.write_text(FIFTY.format(terms, places, needs))
    instance = CVRP.read(path)
    assert instance.extra
    known = tmp_path / "known.vrp"  # PyVRP does not read DISTANCE
    known.write_text(path.read_text().replace("\nDISTANCE", "\nVEHICLES_MAX_DURATION"))
    data = library.read(known, round_func="round")
    plain = Path(__file__).parents[2] / "docs/pairs/cvrp-standard.py"
    for pair, more in ((None, {}), (plain, {"steps": 40}), (None, {"region": 20})):
        solved = spo_jax.solve(path, pair, workers=1, **{"steps": 200, "seed": 1} | more)
        judged = library.Solution(data, [[v - 1 for v in route] for route in solved.solution])
        assert judged.is_feasible()
        assert judged.distance() == solved.cost


def test_limits_are_digested_and_an_instance_without_them_is_as_it_was() -> None:
    bound = drawn(3)
    free = Instance("cvrp", "l3", 5, bound.coords, bound.dist, bound.demands, 12)
    assert bound.digest != free.digest
    assert limits_of(free) is None
    layout = CVRP.rules(free)
    assert layout.prepared("rows") == layout.arguments("rows")


def test_a_customer_whom_no_route_serves_is_named() -> None:
    given = drawn(3)
    extra = {"max_distance": float(2 * given.dist[0].max() - 1)}
    short = Instance("cvrp", "short", 5, given.coords, given.dist, given.demands, 12, extra=extra)
    far = int(given.dist[0].argmax())
    with pytest.raises(InputError, match=f"short has no solution: customer {far} cannot be served"):
        CVRP.require(short)


@given(seed=SEEDS)
@settings(max_examples=20, deadline=None)
def test_a_part_has_the_limits_of_the_whole(seed: int) -> None:
    instance = drawn(seed, 12)
    routes = CVRP.construct(instance)
    part = CVRP.part(instance, routes, seed % 12, 4)
    assert keeps(part.instance, part.solution)
    assert part.instance.extra.keys() == instance.extra.keys()
    alone = [[node] for node in range(1, part.instance.size + 1)]
    assert keeps(instance, part.whole(alone))


# --- the kit --------------------------------------------------------------------------------------

BOUND = ["best_position", "greedy_insertion", "or_opt", "ordered_insertion", "regret_insertion",
         "slack", "two_opt", "two_opt_star", "vehicles"]  # fmt: skip


def limited(draw: Random, dist: Any) -> list[Any]:
    top = max([1.0, *(2 * abs(each) for row in dist for each in row)])
    return [
        draw.choice([math.inf, top, top * 2, top * 3]),
        draw.choice([math.inf, top, top * 2, top * 3]),
        draw.choice([1, 2, 4, 1 << 30]),
        [0.0, *(draw.choice([0.0, draw.random() * top / 9]) for _ in dist[1:])][: len(dist)],
    ]


@NATIVE
@pytest.mark.parametrize("name", BOUND)
@settings(max_examples=150, deadline=None)
@given(seed=SEEDS, size=st.integers(0, 12))
def test_the_compiled_kit_equals_the_reference(name: str, seed: int, size: int) -> None:
    results = []
    for module, prepare, limit in (
        (reference, python_kit.prepare, python_routes.limit),
        (kit._native, kit._native.prepare, kit._native.limit),
    ):
        draw, rng = Random(seed), Random(seed)
        dist: Any = kit_cases.matrix(draw, size)
        prepare(dist)
        limit(dist, *limited(draw, dist))
        call = kit_cases.cvrp(draw, name, dist, rng)
        results.append((kit_cases.outcome(module, call), rng.getstate()))
    assert results[0] == results[1]


@given(seed=SEEDS)
@settings(max_examples=60, deadline=None)
def test_what_the_kit_returns_keeps_the_limits(seed: int) -> None:
    instance, draw = drawn(seed, 10), Random(seed)
    rules = CVRP.rules(instance.seen())
    given = rules.arguments("rows")
    start = rules.start(draw)
    out = draw.sample(range(1, 11), 4)
    for module in (reference, kit):
        kit.prepare(*rules.prepared("rows"))
        python_kit.prepare(given[0])
        python_routes.limit(given[0], *limits_of(instance).arguments)
        partial, _ = module.remove(start, out)
        for routes, _ in (
            module.ordered_insertion(*given, partial, out, near=draw.choice([0, 3])),
            module.regret_insertion(*given, partial, out, k=3, noise=0.1, rng=draw),
            module.greedy_insertion(*given, partial, out, fresh=math.inf),
        ):
            assert keeps(instance, routes)
        _, r, place = module.best_position(*given, partial, out[0])
        grown = [list(route) for route in [*partial, []]]
        grown[r].insert(place, out[0])
        assert lawful(instance, grown[r])
        everyone = list(range(1, 11))
        for routes in (
            module.or_opt(*given, start, everyone),
            module.two_opt_star(*given, start, everyone),
            module.two_opt(given[0], start, everyone),
        ):
            assert keeps(instance, routes)


@given(seed=SEEDS)
@settings(max_examples=60, deadline=None)
def test_a_place_is_lawful_where_it_adds_no_more_than_the_slack(seed: int) -> None:
    instance = replace(drawn(seed, 7, vehicles=6), capacity=100)
    rules, d = CVRP.rules(instance.seen()), instance.dist
    given, routes = rules.arguments("rows"), [[1, 2], [3], [], [4, 5]]
    for module in (reference, kit):
        kit.prepare(*rules.prepared("rows"))
        python_kit.prepare(given[0])
        python_routes.limit(given[0], *limits_of(instance).arguments)
        assert module.vehicles(given[0]) == 6
        for customer in (6, 7):
            for route, most in zip(routes, module.slack(given[0], routes, customer), strict=True):
                for k in range(len(route) + 1):
                    a, b = [0, *route, 0][k : k + 2]
                    added = d[a, customer] + d[customer, b] - d[a, b]
                    assert (added <= most) == lawful(instance, [*route[:k], customer, *route[k:]])
        kept = module.slack(given[0], routes)
        assert [each >= 0 for each in kept] == [lawful(instance, route) for route in routes]


@NATIVE
def test_limits_go_with_what_was_prepared() -> None:
    dist, demands = ((0.0, 1.0, 1.0), (1.0, 0.0, 1.0), (1.0, 1.0, 0.0)), (0, 1, 1)
    for insert in (reference.ordered_insertion, kit.ordered_insertion):
        assert insert(dist, demands, 9, [[1]], [2])[0] == [[2, 1]]
    instance = Instance(
        "cvrp", "three", 2, None, np.array(dist), np.array(demands), 9, extra={"max_distance": 2.5}
    )
    rules = CVRP.rules(instance)
    for layout in ("rows", "array"):
        given = rules.prepared(layout)
        kit.prepare(*given)
        assert kit.ordered_insertion(*given[:3], [[1]], [2])[0] == [[1], [2]]
        kit.release(*given)
        assert kit.ordered_insertion(*given[:3], [[1]], [2])[0] == [[2, 1]]
    for wrong in ([-1.0, 1.0, 1, [0.0] * 3], [1.0, 1.0, 0, [0.0] * 3], [1.0, 1.0, 1, [0.0] * 2],
                  [1.0, math.nan, 1, [0.0] * 3], [1.0, 1.0, 1, [0.0, -1.0, 0.0]]):  # fmt: skip
        for limit in (python_routes.limit, kit._native.limit):
            with pytest.raises(ValueError):  # noqa: PT011
                limit(dist, *wrong)

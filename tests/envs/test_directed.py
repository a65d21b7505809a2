"""Instances whose distances depend on the direction, against brute force and other solvers."""

import hashlib
import math
from dataclasses import replace
from itertools import combinations, pairwise, permutations
from random import Random

import kit_cases
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import spo_jax
from spo_jax.cli import main
from spo_jax.envs.problem import Instance
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.alns import Settings
from spo_jax.envs.problems.cvrp import kit as cvrp_kit
from spo_jax.envs.problems.cvrp.baselines import alns as cvrp_alns
from spo_jax.envs.problems.cvrp.baselines import heuristics as cvrp_heuristics
from spo_jax.envs.problems.cvrp.kit import reference as cvrp_reference
from spo_jax.envs.problems.tsp import kit as tsp_kit
from spo_jax.envs.problems.tsp import parts
from spo_jax.envs.problems.tsp.baselines import alns as tsp_alns
from spo_jax.envs.problems.tsp.baselines import heuristics
from spo_jax.envs.problems.tsp.baselines.branch_and_cut import prove
from spo_jax.envs.problems.tsp.files import tsplib
from spo_jax.envs.problems.tsp.kit import reference as tsp_reference
from spo_jax.envs.report.directed import remarks_on_pairs
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.errors import InputError
from spo_jax.program import Pair, load_pair

TSP, CVRP = get_problem("tsp"), get_problem("cvrp")
SEEDS = st.integers(0, 2**32)
TSP_KITS = [tsp_reference, tsp_kit] if tsp_kit.NATIVE else [tsp_reference]
CVRP_KITS = [cvrp_reference, cvrp_kit] if cvrp_kit.NATIVE else [cvrp_reference]


def distances(size, seed, spread=0.5):
    """Places in the plane, each way between two of them longer or shorter by up to `spread`."""
    rng = np.random.default_rng(seed)
    places = rng.random((size, 2))
    dist = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
    dist *= rng.uniform(1 - spread, 1 + spread, dist.shape)
    np.fill_diagonal(dist, 0.0)
    return dist


def tsp(size, seed):
    return Instance("tsp", f"d{size}", size, dist=distances(size, seed))


def cvrp(size, seed, capacity=15):
    demands = np.random.default_rng(seed + 1).integers(1, 10, size + 1)
    demands[0] = 0
    dist = distances(size + 1, seed)
    return Instance("cvrp", f"d{size}", size, dist=dist, demands=demands, capacity=capacity)


def length(dist, walk):
    """Of a closed walk, edge by edge in its direction."""
    return math.fsum(dist[a][b] for a, b in pairwise([*walk, walk[0]]))


def total(dist, routes):
    return math.fsum(length(dist, [0, *route]) for route in routes)


def held_karp(dist):
    """The length of a shortest tour, by dynamic programming over sets of nodes."""
    n = len(dist)
    best = {(1 << k, k): dist[0][k] for k in range(1, n)}
    for count in range(2, n):
        for nodes in combinations(range(1, n), count):
            every = sum(1 << k for k in nodes)
            for k in nodes:
                rest = every ^ 1 << k
                best[every, k] = min(best[rest, j] + dist[j][k] for j in nodes if j != k)
    every = (1 << n) - 2
    return min(best[every, k] + dist[k][0] for k in range(1, n))


def best_routes(instance):
    """The length of the cheapest routes: over all orders, each cut where that is cheapest."""
    dist, demands = instance.dist.tolist(), instance.demands.tolist()
    least = math.inf
    for order in permutations(range(1, instance.size + 1)):
        upto = [0.0] + [math.inf] * len(order)
        for i in range(len(order)):
            for j in range(i + 1, len(order) + 1):
                if sum(demands[v] for v in order[i:j]) > instance.capacity:
                    break
                upto[j] = min(upto[j], upto[i] + length(dist, [0, *order[i:j]]))
        least = min(least, upto[-1])
    return least


# --- the kit --------------------------------------------------------------------------------------


def settled(search, start):
    """What a search leaves as it is: what is turned can matter for moves that were tried before."""
    while (after := search(start)) != start:
        start = after
    return start


def worth_trying(dist, tour, near):
    """All tours by one move of 2-opt, of or-3opt, or of up to 3 nodes, whose first new edge is
    shorter than the edge (for a stretch: than what it saves) that it stands for.
    """
    n = len(tour)
    for i in range(n):
        walk = tour[i:] + tour[:i]
        a, b = walk[0], walk[1]
        for k in range(2, n):  # a to c in place of b; d follows c
            c = walk[k]
            head, tail = walk[1 : k + 1], [*walk[k + 1 :], a]
            if dist[a][c] < dist[a][b]:
                yield head[::-1] + tail
                yield head + tail[::-1]
                for m in range(k + 1, n + 1):
                    f = walk[m % n]
                    gain = dist[a][b] - dist[a][c] + dist[walk[k - 1]][c]
                    if dist[walk[k - 1]][f] < gain and f != b:
                        yield walk[k:m] + walk[1:k] + [*walk[m:], a]
        b = walk[-1]
        for k in range(1, n - 1):  # c to a in place of b; d precedes c
            if dist[walk[k]][a] < dist[b][a]:
                yield walk[:k][::-1] + walk[k:]


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, size=st.integers(4, 9))
def test_two_opt_leaves_no_gain_by_direction(seed, size):
    dist, tour = distances(size, seed).tolist(), [*range(size)]
    Random(seed).shuffle(tour)
    for kit in TSP_KITS:
        found = settled(
            lambda now, kit=kit: kit.two_opt(dist, now, now, near=size, moves=10**6), tour
        )
        assert sorted(found) == [*range(size)]
        for other in worth_trying(dist, found, size):
            assert sorted(other) == [*range(size)]
            assert length(dist, other) > length(dist, found) * (1 - 1e-8)


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, size=st.integers(5, 9))
@example(seed=203147, size=5)
def test_or_opt_leaves_no_gain_by_direction(seed, size):
    dist, tour = distances(size, seed).tolist(), [*range(size)]
    Random(seed).shuffle(tour)
    for kit in TSP_KITS:
        found = settled(
            lambda now, kit=kit: kit.or_opt(dist, now, now, length=2, near=size, moves=10**6), tour
        )
        now = length(dist, found)
        for i in range(size):
            for count in (1, 2):
                walk = found[i:] + found[:i]
                stretch, rest = walk[:count], walk[count:]
                saved = length(dist, walk) - length(dist, rest)
                saved += sum(-dist[a][b] for a, b in pairwise(stretch))
                for k in range(1, len(rest)):  # at 0 it would only be turned, as 2-opt does
                    for part in (stretch, stretch[::-1]):
                        c, x = rest[k - 1], rest[k]
                        other = rest[:k] + part + rest[k:]
                        if dist[c][part[0]] < saved or dist[part[-1]][x] < saved:
                            assert length(dist, other) > now * (1 - 1e-8)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, size=st.integers(4, 40))
def test_each_move_of_the_tsp_gains_by_direction(seed, size):
    dist, tour = distances(size, seed).tolist(), [*range(size)]
    Random(seed).shuffle(tour)
    for kit in TSP_KITS:
        for move in (kit.two_opt, kit.or_opt):
            now = tour
            while (after := move(dist, now, now, moves=1)) != now:
                assert sorted(after) == [*range(size)]
                assert length(dist, after) < length(dist, now)
                now = after
            assert kit.cost(dist, now) == pytest.approx(length(dist, now))


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, size=st.integers(4, 30))
def test_each_move_of_the_cvrp_gains_by_direction(seed, size):
    instance, draw = cvrp(size, seed % 10**6, capacity=60), Random(seed)
    dist, demands = instance.dist.tolist(), instance.demands.tolist()
    order = [*range(1, size + 1)]
    draw.shuffle(order)
    start = [order[k : k + 5] for k in range(0, size, 5)]
    for kit in CVRP_KITS:
        moves = [
            lambda routes, kit=kit: kit.two_opt(dist, routes, order, moves=1),
            lambda routes, kit=kit: kit.or_opt(dist, demands, 60, routes, order, moves=1),
            lambda routes, kit=kit: kit.two_opt_star(dist, demands, 60, routes, order, moves=1),
        ]
        for move in moves:
            now = start
            while (after := move(now)) != now:
                CVRP.rules(instance).repaired(after)
                assert total(dist, after) < total(dist, now)
                now = after
            assert kit.cost(dist, now) == pytest.approx(total(dist, now))


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, size=st.integers(3, 8))
def test_two_opt_of_a_route_leaves_no_gain_by_direction(seed, size):
    dist, route = distances(size + 1, seed).tolist(), [*range(1, size + 1)]
    Random(seed).shuffle(route)
    for kit in CVRP_KITS:
        found = settled(
            lambda now, kit=kit: kit.two_opt(dist, [now], route, near=size, moves=10**6)[0], route
        )
        cycle = [0, *found]
        for i in range(len(cycle)):
            walk = cycle[i:] + cycle[:i]
            for k in range(2, len(cycle)):
                if walk[0] and walk[k] and dist[walk[0]][walk[k]] < dist[walk[0]][walk[1]]:
                    for other in (
                        walk[1 : k + 1][::-1] + walk[k + 1 :] + walk[:1],
                        walk[1 : k + 1] + (walk[k + 1 :] + walk[:1])[::-1],
                    ):
                        assert length(dist, other) > length(dist, cycle) * (1 - 1e-8)


def answers(kit, problem):
    """A digest of what the kit does where all ways are as long as the ways back."""
    draw = Random(1)
    digest = hashlib.blake2b(digest_size=8)
    for size in (5, 9, 30, 60):
        points = [(draw.randrange(100), draw.randrange(100)) for _ in range(size)]
        dist = tuple(tuple(0.37 * (abs(a - c) + abs(b - d)) for c, d in points) for a, b in points)
        nodes = list(range(problem == "cvrp", size))
        demands = [draw.randrange(1, 10) for _ in range(size)]
        for _ in range(8):
            draw.shuffle(nodes)
            if problem == "tsp":
                head, start = [dist], nodes[size // 3 :]
                results = [
                    kit.two_opt(dist, nodes, nodes),
                    kit.or_opt(dist, nodes, nodes, length=4),
                ]
            else:
                head, half = [dist, demands, 50], nodes[size // 3 :]
                start = [half[k : k + 5] for k in range(0, len(half), 5)]
                results = [kit.two_opt(dist, start, half)]
                results += [kit.or_opt(*head, start, half), kit.two_opt_star(*head, start, half)]
            for near in (0, 2, 9):
                left = nodes[: size // 3]
                results.append(kit.ordered_insertion(*head, start, left, near=near))
                results.append(
                    kit.regret_insertion(*head, start, left, k=3, near=near, noise=0.1, rng=draw)
                )
            digest.update(repr(results).encode())
    return digest.hexdigest()


@pytest.mark.parametrize("kit", TSP_KITS)
def test_symmetric_results_of_the_tsp_are_those_of_before_directions_counted(kit):
    assert answers(kit, "tsp") == "7596b3fa50a86983"


@pytest.mark.parametrize("kit", CVRP_KITS)
def test_symmetric_results_of_the_cvrp_are_those_of_before_directions_counted(kit):
    assert answers(kit, "cvrp") == "233b82001d8b9ef2"


def test_matrices_of_the_comparison_with_the_reference_depend_on_the_direction():
    kinds = [kit_cases.matrix(Random(seed), 6) for seed in range(60)]
    assert sum(dist != tuple(zip(*dist, strict=True)) for dist in kinds) > 20


# --- searches and constructions -------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_search_finds_the_shortest_tour(seed):
    instance = tsp(9, seed)
    found = spo_jax.solve(instance, steps=60, workers=1)
    assert found.cost == pytest.approx(held_karp(instance.dist.tolist()))
    assert found.cost == length(instance.dist, found.solution)


@pytest.mark.parametrize("seed", range(2))
def test_a_search_finds_the_cheapest_routes(seed):
    instance = cvrp(6, seed)
    found = spo_jax.solve(instance, steps=60, workers=1)
    assert found.cost == pytest.approx(best_routes(instance))
    assert found.cost == pytest.approx(total(instance.dist, found.solution))


@pytest.mark.parametrize("size", [3, 4, 8, 12, 40])
def test_constructions_are_tours_above_the_bounds(size):
    for seed in range(2):
        instance = tsp(size, seed)
        for make in (
            heuristics.nearest_neighbor,
            heuristics.farthest_insertion,
            heuristics.patched,
            heuristics.two_opt,
            lambda instance: tsp_alns.alns(instance, steps=20),
            parts.construct,
        ):
            tour = make(instance)
            tsplib.check_tour(instance, tour)
            assert TSP.cost(instance, tour) >= tsplib.lower_bound(instance) - 1e-9
        if size <= 12:
            assert tsplib.lower_bound(instance) <= held_karp(instance.dist.tolist()) + 1e-9


def test_patched_cycles_are_joined_where_that_adds_least():
    # Two cycles of three, 1 apart each way, whose crossing costs 5 but for one pair of edges.
    dist = np.full((6, 6), 5.0)
    for a, b in [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)]:
        dist[a, b] = 1.0
    dist[1, 5], dist[4, 2] = 2.0, 3.0
    np.fill_diagonal(dist, 0.0)
    tour = heuristics.patched(Instance("tsp", "two", 6, dist=dist))
    assert length(dist, tour) == 4 * 1 + 2 + 3


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, size=st.integers(4, 12))
def test_two_opt_moves_are_best_by_direction(seed, size):
    dist, tour = distances(size, seed), [*range(size)]
    found, _ = heuristics.two_opt_moves(dist, tour, 1)
    others = [tour[:i] + tour[i:j][::-1] + tour[j:] for i, j in combinations(range(size + 1), 2)]
    inner = [other for other in others if other[0] == tour[0]]
    least = min(length(dist, other) for other in inner)
    assert length(dist, found) == pytest.approx(min(least, length(dist, tour)))


def test_three_opt_refuses():
    with pytest.raises(InputError, match="3-opt is for distances that are alike both ways"):
        heuristics.three_opt(tsp(6, 0))
    with pytest.raises(InputError, match="symmetric TSP alone"):
        prove(tsp(6, 0), [*range(6)])


def test_the_command_refuses_3_opt_before_anything_runs(tmp_path, capsys):
    (tmp_path / "d.csv").write_text("0,1,2,3\n2,0,1,4\n3,2,0,1\n1,2,3,0\n", "utf-8")
    argv = ["baseline", "3-opt", "--problem", "tsp", "--json", str(tmp_path / "found.json"), "--on"]
    assert main([*argv, "uniform:6x1", str(tmp_path / "d.csv")]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("spo: d: 3-opt is for distances that are alike both ways; use nearest-")
    assert not (tmp_path / "found.json").exists()


@pytest.mark.parametrize("seed", range(4))
def test_savings_count_by_direction(seed):
    """Against a merge of lists that looks at every pair again after each merge."""
    instance = cvrp(9, seed, capacity=25)
    dist, demands = instance.dist, instance.demands
    routes = [[k] for k in range(1, 10)]
    while True:
        found = [
            (dist[one[-1], 0] + dist[0, two[0]] - dist[one[-1], two[0]], one, two)
            for one in routes
            for two in routes
            if one is not two and demands[one].sum() + demands[two].sum() <= 25
        ]
        saving, one, two = max(found, key=lambda each: each[0], default=(0.0, [], []))
        if saving <= 0:
            break
        routes = [route for route in routes if route is not one and route is not two]
        routes.append(one + two)
    assert sorted(cvrp_heuristics.clarke_wright(instance)) == sorted(routes)
    near = cvrp_heuristics.near_savings(instance, 8)
    assert sorted(near) == sorted(routes)


@pytest.mark.parametrize("seed", range(4))
def test_route_moves_gain_by_direction(seed):
    instance = cvrp(12, seed, capacity=30)
    order = [*range(1, 13)]
    Random(seed).shuffle(order)
    routes = [order[k : k + 3] for k in range(0, 12, 3)]
    while True:
        after, moves = cvrp_heuristics.route_moves(instance, routes, 1)
        if not moves:
            break
        CVRP.rules(instance).repaired(after)
        assert total(instance.dist, after) < total(instance.dist, routes)
        routes = after
    for r, route in enumerate(routes):  # no reversal is left that gains
        for i, j in combinations(range(len(route) + 1), 2):
            turned = route[:i] + route[i:j][::-1] + route[j:]
            assert total(instance.dist, [*routes[:r], turned, *routes[r + 1 :]]) >= total(
                instance.dist, routes
            ) * (1 - 1e-9)


def test_alns_counts_and_tells_tours_apart_by_direction():
    instance = tsp(8, 1)
    operators = tsp_alns.TourOperators(instance, Settings())
    tour = np.array([3, 1, 0, 2, 4, 7, 6, 5])
    assert operators.key(tour) == operators.key(np.roll(tour, 3))
    assert operators.key(tour) != operators.key(tour[::-1])
    rest, node = [3, 1, 0, 2, 4], 7
    found = operators.insert(np.array(rest), [node], 0.0, np.random.default_rng(0), 1).tolist()
    tries = [[*rest[:k], node, *rest[k:]] for k in range(1, 6)]
    assert length(instance.dist, found) == pytest.approx(
        min(length(instance.dist, each) for each in tries)
    )
    routed = cvrp_alns.RouteOperators(cvrp(5, 1), Settings())
    assert routed.key([[1, 2, 3], [4, 5]]) != routed.key([[3, 2, 1], [4, 5]])
    places = routed.places([1, 2], np.array([3]))[0]
    walks = [[0, 3, 1, 2], [0, 1, 3, 2], [0, 1, 2, 3]]
    base = length(routed.dist, [0, 1, 2])
    assert places == pytest.approx([length(routed.dist, walk) - base for walk in walks])


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, size=st.integers(5, 9), center=st.integers(0, 29))
def test_a_part_costs_what_the_whole_does(seed, size, center):
    instance, draw = tsp(30, seed), Random(seed)
    tour = [*range(30)]
    draw.shuffle(tour)
    part = parts.part(instance, tour, center, size)
    fixed = {
        (a, b)
        for a, b in pairwise([*part.solution, part.solution[0]])
        if part.instance.dist[a, b] < 0
    }
    for _ in range(20):
        draw.shuffle(other := [*part.solution])
        edges = {*pairwise([*other, other[0]])}
        whole = part.whole(other)
        assert (whole is not None) == (fixed <= edges)
        if whole is not None:
            gain = length(part.instance.dist, other) - length(part.instance.dist, part.solution)
            assert TSP.cost(instance, whole) - TSP.cost(instance, tour) == pytest.approx(gain)


# --- other solvers --------------------------------------------------------------------------------


def test_other_solvers_find_the_same_optimum():
    pytest.importorskip("elkai")
    pytest.importorskip("ortools")
    from spo_jax.envs.problems.tsp.baselines.or_tools import or_tools_default
    from spo_jax.envs.problems.tsp.baselines.references import lkh, solve_reference

    for seed in range(3):
        instance = tsp(9, seed)
        least = held_karp(instance.dist.tolist())
        assert TSP.cost(instance, lkh(instance)) == pytest.approx(least)
        assert TSP.cost(instance, or_tools_default(instance)) >= least - 1e-9
        tour, source, proven = solve_reference(instance, "standard")
        assert TSP.cost(instance, tour) == pytest.approx(least)
        assert (proven, "branch" in source) == (False, False)


def test_pyvrp_counts_the_same_routes_alike():
    pytest.importorskip("pyvrp")
    from spo_jax.envs.problems.cvrp.baselines.references import data_of, pyvrp

    instance = cvrp(6, 0)
    assert CVRP.cost(instance, pyvrp(instance)) == pytest.approx(best_routes(instance))
    from pyvrp import Solution

    whole = np.rint(instance.dist * 1000)
    rounded = Instance("cvrp", "whole", 6, dist=whole, demands=instance.demands, capacity=60)
    routes = [[1, 2, 3], [6, 5, 4]]
    distance = Solution(data_of(rounded), [[v - 1 for v in route] for route in routes]).distance()
    assert distance == CVRP.cost(rounded, routes) != CVRP.cost(rounded, [[3, 2, 1], [4, 5, 6]])


# --- files and commands ---------------------------------------------------------------------------

DIRECTION = "distances depend on the direction: there and back differ by"
MATRIX = "EDGE_WEIGHT_TYPE : EXPLICIT\nEDGE_WEIGHT_FORMAT : FULL_MATRIX\nEDGE_WEIGHT_SECTION\n"
ROWS = "9999 1 5 2\n4 9999 1 6\n3 7 9999 1\n1 2 8 9999\n"


def atsp_file(folder, kind="ATSP", name="four.atsp"):
    path = folder / name
    path.write_text(f"NAME : four\nTYPE : {kind}\nDIMENSION : 4\n{MATRIX}{ROWS}EOF\n")
    return path


def test_an_atsp_file_is_read_and_solved(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = atsp_file(tmp_path)
    instance = TSP.read(path)
    assert (instance.name, instance.size, instance.directed) == ("four", 4, True)
    assert instance.dist.tolist() == [[0, 1, 5, 2], [4, 0, 1, 6], [3, 7, 0, 1], [1, 2, 8, 0]]
    assert main(["solve", str(path), "--steps", "5", "--workers", "1"]) == 0
    captured = capsys.readouterr()
    assert (
        "four: distances depend on the direction: there and back differ by 112% on average"
        in captured.err
    )
    assert "cost 4," in captured.out
    tour = TSP.read_solution("four.spo.tour", instance)
    assert tour[tour.index(0) :] + tour[: tour.index(0)] == [0, 1, 2, 3]
    # The same nodes the other way are a start, and another solution.
    TSP.write("back.tour", instance, [3, 2, 1, 0])
    assert TSP.cost(instance, TSP.read_solution("back.tour", instance)) == 8 + 7 + 4 + 2


def test_a_type_that_says_symmetric_is_held_to_it(tmp_path):
    with pytest.raises(InputError, match=r"line 2: 1 to 2 is 1 and back 4, .* write TYPE: ATSP"):
        TSP.read(atsp_file(tmp_path, "TSP", "four.tsp"))


def test_a_matrix_of_a_cvrp_file_may_depend_on_the_direction(tmp_path):
    for kind in ("CVRP", "ACVRP"):
        path = atsp_file(tmp_path, kind, "four.vrp")
        text = path.read_text().replace("EOF\n", "DEMAND_SECTION\n1 0\n2 4\n3 4\n4 4\n")
        text = text.replace("DIMENSION", "CAPACITY : 8\nDIMENSION")
        path.write_text(text + "DEPOT_SECTION\n2\n-1\nEOF\n".replace("2\n-1", "1\n-1"))
        instance = CVRP.read(path)
        assert instance.directed
        assert CVRP.cost(instance, [[1, 2], [3]]) == 1 + 1 + 3 + 2 + 1
        assert CVRP.cost(instance, [[2, 1], [3]]) == 5 + 7 + 4 + 2 + 1
        assert CVRP.lower_bound(instance) <= best_routes(instance)
        path.with_suffix(".sol").write_text("Route #1: 2 1\nRoute #2: 3\nCost 19\n")
        assert CVRP.read(path).reference == 19
        path.with_suffix(".sol").unlink()


def test_a_depot_that_is_not_first_keeps_the_directions(tmp_path):
    path = atsp_file(tmp_path, "CVRP", "four.vrp")
    tail = "DEMAND_SECTION\n1 4\n2 4\n3 0\n4 4\nDEPOT_SECTION\n3\n-1\nEOF\n"
    path.write_text(path.read_text().replace("EOF\n", tail) + "CAPACITY : 8\n")
    path.write_text(path.read_text().replace("DIMENSION", "CAPACITY : 8\nDIMENSION", 1))
    text = path.read_text()
    path.write_text(text[: text.rindex("CAPACITY")])
    instance = CVRP.read(path)
    # Nodes 3, 1, 2, 4 of the file: from the depot 3 to 1 is 3, and back 5.
    assert (instance.dist[0, 1], instance.dist[1, 0]) == (3, 5)


def test_a_table_may_depend_on_the_direction(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text(",A,B,C\nA,0,3,4\nB,3,0,5\nC,4,6,0\n")
    instance = TSP.read(path)
    assert (instance.dist[1, 2], instance.dist[2, 1]) == (5, 6)
    assert (
        "distances depend on the direction: there and back differ by 8.0% on average"
        in instance.file["remarks"]
    )
    path.write_text("0,3,4\n3,0,5\n4,5.0000000001,0\n")
    assert not TSP.read(path).directed


def test_a_pair_that_reads_distances_itself_is_named():
    kit, own = load_pair(TSP.pair), load_pair("docs/pairs/tsp-standard.py")
    [line] = remarks_on_pairs(TSP, [tsp(5, 0)], {"shipped": kit, "own.py": own})
    assert line.startswith("own.py reads distances in loops of its own")
    assert line.count("\n") == 0
    assert remarks_on_pairs(TSP, [TSP.sample(5, 1, 0)[0]], {"own.py": own}) == []
    for text in ("-" * 5_000 + "1", "dist" + "[0]" * 5_000, "no code", "\0"):
        unread = Pair(own.destroy, replace(own.repair, source=text))
        assert remarks_on_pairs(TSP, [tsp(5, 0)], {"unread": unread}) == []
    assert remarks_on_pairs(CVRP, [cvrp(5, 0)], {"shipped": load_pair(CVRP.pair)}) == []


def test_the_vrptw_refuses():
    problem = get_problem("vrptw")
    [instance] = problem.sample(5, 1, 0)
    dist = instance.dist * np.random.default_rng(0).uniform(0.9, 1, instance.dist.shape)
    directed = Instance("vrptw", "d", 5, None, dist, instance.demands, 50, extra=instance.extra)
    with pytest.raises(InputError, match="d: distances of the VRPTW must be alike both ways"):
        spo_jax.solve(directed, steps=1)
    # In workers, where rules are made, it would be a fault of ours.
    with (
        LocalEvaluator(problem, 1) as evaluator,
        pytest.raises(InputError, match="d: distances of the VRPTW must be alike both ways"),
    ):
        evaluator.run([load_pair(problem.pair)], [instance, directed], [0], 1)

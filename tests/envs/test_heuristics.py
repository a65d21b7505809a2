"""Constructions and local searches against naive versions of their definitions."""

import math
import random
import time
from itertools import combinations, pairwise

import numpy as np
import pytest
from exhaustive import cheapest_routes, cvrp, shortest_tour, tsp

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.cvrp.baselines.heuristics import clarke_wright, local_search, route_moves
from spo_jax.envs.problems.tsp.baselines.heuristics import (
    farthest_insertion,
    nearest_neighbor,
    three_opt,
    three_opt_moves,
    two_opt,
    two_opt_moves,
)
from spo_jax.envs.problems.tsp.files import tsplib
from spo_jax.errors import InputError

TSP, CVRP = get_problem("tsp"), get_problem("cvrp")
TOURS = [nearest_neighbor, farthest_insertion, two_opt, three_opt]
ROUTES = [clarke_wright, local_search]


def on_a_line(*places: float) -> Instance:
    coords = np.array([[x, 0.0] for x in places])
    return Instance("tsp", "line", len(places), coords, tsplib.euclidean(coords))


def length(instance, tour):
    return math.fsum(instance.dist[a, b] for a, b in pairwise([*tour, tour[0]]))


# --- constructions --------------------------------------------------------------------------------


def test_the_nearest_neighbor_goes_first():
    # From 0: 1 is at distance 2, then 3 at 3 and 2 at 4 from there, and so on.
    assert nearest_neighbor(on_a_line(0, 2, -2.5, 5, 4)) == [0, 1, 4, 3, 2]


def test_nearest_neighbor_is_as_defined():
    for seed in range(5):
        instance = tsp(12, seed)
        tour, left = [0], set(range(1, 12))
        while left:
            tour.append(min(left, key=lambda node: instance.dist[tour[-1], node]))
            left.remove(tour[-1])
        assert nearest_neighbor(instance) == tour


def test_farthest_insertion_is_as_defined():
    for seed in range(5):
        instance = tsp(12, seed)
        d = instance.dist
        tour = list(max(combinations(range(12), 2), key=lambda pair: d[pair]))
        while len(tour) < 12:
            left = set(range(12)) - set(tour)
            node = max(left, key=lambda node: min(d[node, other] for other in tour))
            tours = [[*tour[:k], node, *tour[k:]] for k in range(1, len(tour) + 1)]
            tour = min(tours, key=lambda each: length(instance, each))
        found = farthest_insertion(instance)
        assert length(instance, found) == pytest.approx(length(instance, tour), abs=1e-12)


def test_clarke_wright_by_hand():
    # A depot at 0 and customers at 3, 4 and -2 on a line. Savings: 6 for (1, 2), 0 else.
    coords = np.array([[0.0, 0], [3, 0], [4, 0], [-2, 0]])
    instance = Instance("cvrp", "x", 3, coords, tsplib.euclidean(coords), np.array([0, 2, 2, 2]), 6)
    assert sorted(map(sorted, clarke_wright(instance))) == [[1, 2], [3]]
    tight = Instance("cvrp", "x", 3, coords, instance.dist, np.array([0, 2, 2, 2]), 3)
    assert sorted(clarke_wright(tight)) == [[1], [2], [3]]


def test_clarke_wright_is_as_defined():
    """The best feasible joining of two routes at their ends, until none saves anything."""
    for seed in range(6):
        instance = cvrp(9, seed)
        d, routes = instance.dist, [[k] for k in range(1, 10)]
        while True:
            best = (0.0, None)
            for first, second in combinations(routes, 2):
                if instance.demands[first + second].sum() > instance.capacity:
                    continue
                for a in (first, first[::-1]):
                    for b in (second, second[::-1]):
                        saving = d[a[-1], 0] + d[0, b[0]] - d[a[-1], b[0]]
                        best = max(best, (saving, (first, second, a + b)), key=lambda x: x[0])
            if best[1] is None:
                break
            first, second, joined = best[1]
            routes = [route for route in routes if route not in (first, second)] + [joined]
        found = clarke_wright(instance)
        assert CVRP.cost(instance, found) == pytest.approx(CVRP.cost(instance, routes), abs=1e-12)
        assert {frozenset(route) for route in found} == {frozenset(route) for route in routes}


# --- every solution is one ------------------------------------------------------------------------


@pytest.mark.parametrize("method", TOURS)
@pytest.mark.parametrize("n", [3, 4, 5, 8])
def test_tours_are_complete_and_no_shorter_than_the_shortest(method, n):
    for seed in range(3):
        instance = tsp(n, seed)
        tour = TSP.rules(instance).repaired(method(instance))
        assert TSP.cost(instance, tour) >= shortest_tour(instance) - 1e-12
        assert method(instance, 1) == method(instance, 2)  # the seed changes nothing


@pytest.mark.parametrize("method", TOURS)
def test_nodes_on_one_spot(method):
    coords = np.zeros((6, 2))
    instance = Instance("tsp", "spot", 6, coords, tsplib.euclidean(coords))
    assert sorted(method(instance)) == list(range(6))


@pytest.mark.parametrize("method", ROUTES)
@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_routes_are_feasible_and_no_cheaper_than_the_cheapest(method, n):
    for seed in range(3):
        instance = cvrp(n, seed)
        routes = CVRP.rules(instance).repaired(method(instance))  # covers capacities
        assert CVRP.cost(instance, routes) >= cheapest_routes(instance) - 1e-12
        assert method(instance, 1) == method(instance, 2)


def test_routes_need_demands():
    with pytest.raises(InputError, match="no CVRP instance"):
        clarke_wright(tsp(5))


# --- 2-opt and 3-opt ------------------------------------------------------------------------------


def reversals(tour):
    """All tours that one 2-opt move makes."""
    for i, j in combinations(range(1, len(tour) + 1), 2):
        yield [*tour[:i], *tour[i:j][::-1], *tour[j:]]


def exchanges(tour):
    """All tours that replace at most three edges: cut into three, reorder and turn the parts."""
    for i, j, k in combinations(range(len(tour)), 3):
        rest, a, b = tour[k:] + tour[:i], tour[i:j], tour[j:k]
        for first, second in ((a, b), (b, a)):
            for x in (first, first[::-1]):
                for y in (second, second[::-1]):
                    yield rest + x + y


def convex(n, seed):
    """Nodes on a circle in random order, and their only optimum."""
    rng = np.random.default_rng(seed)
    angles = rng.random(n) * 2 * math.pi
    coords = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    instance = Instance("tsp", "circle", n, coords, tsplib.euclidean(coords))
    return instance, length(instance, np.argsort(angles).tolist())


SEARCHES = [(two_opt_moves, reversals), (three_opt_moves, exchanges)]


@pytest.mark.parametrize(("search", "neighbors"), SEARCHES)
def test_a_step_is_the_best_of_all_moves(search, neighbors):
    rng = np.random.default_rng(3)
    for seed in range(8):
        instance = tsp(9, seed)
        tour = rng.permutation(9).tolist()
        found, moves = search(instance.dist, tour, 1)
        assert moves == 1
        best = min(length(instance, each) for each in neighbors(tour))
        assert length(instance, found) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize(("search", "neighbors"), SEARCHES)
def test_no_improving_move_is_left(search, neighbors):
    for seed in range(4):
        instance = tsp(14, seed)
        start = np.random.default_rng(seed).permutation(14).tolist()
        tour, moves = search(instance.dist, start, 1000)
        assert 0 < moves < 1000
        assert length(instance, tour) < length(instance, start)
        least = min(length(instance, each) for each in neighbors(tour))
        assert least >= length(instance, tour) - 1e-12
        assert search(instance.dist, tour, 1000) == (tour, 0)


@pytest.mark.parametrize("search", [two_opt_moves, three_opt_moves])
def test_a_tour_around_a_circle_is_found(search):
    """A tour without crossings is what 2-opt ends in, and of convex nodes there is but one."""
    for seed in range(4):
        instance, optimum = convex(25, seed)
        tour, _ = search(instance.dist, list(range(25)), 10_000)
        assert length(instance, tour) == pytest.approx(optimum, abs=1e-12)


def test_moves_are_counted_and_limited():
    instance = TSP.sample(40, 1, 0)[0]
    start = nearest_neighbor(instance)
    whole, moves = two_opt_moves(instance.dist, start, 1600)
    assert moves > 3
    steps = [start]
    for _ in range(moves):
        tour, made = two_opt_moves(instance.dist, steps[-1], 1)
        assert made == 1
        steps.append(tour)
    lengths = [TSP.cost(instance, tour) for tour in steps]
    assert all(b < a for a, b in pairwise(lengths))
    assert steps[-1] == whole
    assert two_opt_moves(instance.dist, start, 3) == (steps[3], 3)
    assert two_opt(instance) == whole


def test_each_search_starts_from_the_one_before():
    for instance in TSP.sample(60, 3, 1):
        costs = [TSP.cost(instance, method(instance)) for method in (nearest_neighbor, two_opt)]
        tour, _ = three_opt_moves(instance.dist, two_opt(instance), 500)
        assert three_opt(instance) == tour
        assert TSP.cost(instance, tour) <= costs[1] <= costs[0]


def test_equal_lengths_are_no_improvement():
    """On a grid of whole numbers most moves gain exactly nothing: that must not go on for ever."""
    side = np.arange(6.0)
    coords = np.array([[x, y] for x in side for y in side])
    instance = Instance("tsp", "grid", 36, coords, np.rint(tsplib.euclidean(coords)))
    tour = three_opt(instance)
    assert length(instance, tour) <= length(instance, nearest_neighbor(instance))


# --- the CVRP's local search ----------------------------------------------------------------------


def neighbors_of(routes):
    """All that one move makes of some routes, feasible or not."""
    for r, route in enumerate(routes):
        for i, j in combinations(range(len(route) + 1), 2):
            turned = [*route[:i], *route[i:j][::-1], *route[j:]]
            yield [*routes[:r], turned, *routes[r + 1 :]]
    nodes = [(r, k) for r, route in enumerate(routes) for k in range(len(route))]
    for r, k in nodes:
        without = [list(route) for route in [*routes, []]]
        node = without[r].pop(k)
        for to, route in enumerate(without):
            for place in range(len(route) + 1):
                new = [list(each) for each in without]
                new[to].insert(place, node)
                yield [each for each in new if each]
    for (r, k), (s, m) in combinations(nodes, 2):
        new = [list(route) for route in routes]
        new[r][k], new[s][m] = new[s][m], new[r][k]
        yield new


def cheapest_neighbor(instance, routes):
    def fits(each):
        return all(instance.demands[route].sum() <= instance.capacity for route in each)

    return min(CVRP.cost(instance, each) for each in neighbors_of(routes) if fits(each))


def random_routes(instance, seed):
    return CVRP.rules(instance).start(random.Random(seed))


def test_a_route_step_is_the_best_of_all_moves():
    for seed in range(12):
        instance = cvrp(8, seed)
        routes = random_routes(instance, seed)
        found, moves = route_moves(instance, routes, 1)
        best = cheapest_neighbor(instance, routes)
        if moves:
            assert CVRP.cost(instance, found) == pytest.approx(best, abs=1e-12)
            CVRP.rules(instance).repaired(found)
        else:
            assert best >= CVRP.cost(instance, routes) - 1e-12


def test_no_improving_route_move_is_left():
    for seed in range(6):
        instance = cvrp(10, seed)
        start = random_routes(instance, seed)
        routes, moves = route_moves(instance, start, 500)
        assert 0 < moves < 500
        CVRP.rules(instance).repaired(routes)
        assert CVRP.cost(instance, routes) < CVRP.cost(instance, start)
        assert cheapest_neighbor(instance, routes) >= CVRP.cost(instance, routes) - 1e-12
        assert route_moves(instance, start, 2)[1] == min(2, moves)


def test_a_customer_may_get_a_route_of_its_own():
    # 3 lies next to the depot, but between two far customers in the only route there is.
    coords = np.array([[0.0, 0], [10, 0], [10.1, 0], [-0.1, 0]])
    instance = Instance("cvrp", "x", 3, coords, tsplib.euclidean(coords), np.array([0, 1, 1, 1]), 9)
    routes, _ = route_moves(instance, [[1, 3, 2]], 1)
    assert CVRP.cost(instance, routes) == pytest.approx(20.4)


def test_local_search_starts_from_clarke_wright():
    for instance in CVRP.sample(40, 3, 2):
        start = clarke_wright(instance)
        assert local_search(instance) == route_moves(instance, start, 500)[0]
        assert CVRP.cost(instance, local_search(instance)) <= CVRP.cost(instance, start)


@pytest.mark.parametrize(("problem", "methods"), [(TSP, TOURS), (CVRP, ROUTES)])
def test_five_hundred_nodes_take_seconds(problem, methods):
    instance = problem.sample(500, 1, 0)[0]
    for method in methods:
        start = time.process_time()
        problem.rules(instance).repaired(method(instance))
        assert time.process_time() - start < 5

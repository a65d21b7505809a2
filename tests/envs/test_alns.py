"""ALNS: weights and temperatures by hand, operators against naive ones, results against optima."""

import math
from itertools import pairwise

import numpy as np
import pytest
from exhaustive import cheapest_routes, cvrp, shortest_tour, tsp

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.alns import (
    Roulette,
    Settings,
    accepts,
    related,
    search,
    skewed,
    temperatures,
    worst,
)
from spo_jax.envs.problems.cvrp.baselines import alns as alns_cvrp
from spo_jax.envs.problems.tsp.baselines import alns as alns_tsp
from spo_jax.envs.problems.tsp.files import tsplib

TSP, CVRP = get_problem("tsp"), get_problem("cvrp")


class Fixed:
    """A generator whose random() always gives the same."""

    def __init__(self, value: float):
        self.value = value

    def random(self) -> float:
        return self.value

    def integers(self, low: int, high: int | None = None, endpoint: bool = False) -> int:
        return 0 if high is None else low


# --- weights, temperatures, sizes -----------------------------------------------------------------


def test_the_published_parameters():
    settings = Settings()
    assert (settings.iterations, settings.segment, settings.reaction) == (500, 100, 0.1)
    assert settings.scores == (33, 9, 13)
    assert (settings.worse, settings.noise, settings.share) == (0.05, 0.025, 0.4)
    assert (settings.shaw, settings.worst) == (6, 3)


def test_weights_by_hand():
    wheel = Roulette(["a", "b", "c"], reaction=0.1)
    wheel.reward(0, 33)
    wheel.reward(0, 0)
    wheel.reward(1, 0)
    wheel.end_segment()
    # 0.9 * 1 + 0.1 * 33 / 2, 0.9 * 1 + 0.1 * 0 / 1; c was not used.
    assert wheel.weights == pytest.approx([2.55, 0.9, 1.0])
    wheel.reward(1, 13)
    wheel.end_segment()  # scores of the first segment are gone
    assert wheel.weights == pytest.approx([2.55, 0.9 * 0.9 + 1.3, 1.0])


def test_names_are_drawn_by_weight():
    wheel = Roulette(["a", "b", "c"], reaction=1.0)
    wheel.reward(0, 1)
    wheel.reward(1, 6)
    wheel.reward(2, 3)
    wheel.end_segment()
    assert [wheel.draw(Fixed(x)) for x in (0, 0.099, 0.101, 0.69, 0.71, 0.999)] == [
        0, 0, 1, 1, 2, 2,
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    drawn = np.bincount([wheel.draw(rng) for _ in range(4000)]) / 4000
    assert drawn == pytest.approx([0.1, 0.6, 0.3], abs=0.03)


def test_the_cooling_schedule():
    cost, settings = 7.5, Settings()
    found = temperatures(cost, settings)
    assert len(found) == 500
    # A solution 5% worse than the first is accepted every other time.
    assert math.exp(-0.05 * cost / found[0]) == pytest.approx(0.5)
    ratio = found[1:] / found[:-1]
    assert ratio == pytest.approx(np.full(499, 0.99975**50))  # 25,000 iterations in 500
    assert found[-1] * ratio[0] / found[0] == pytest.approx(0.99975**25_000)


def test_acceptance():
    assert accepts(-1.0, 0.5, 0.999)
    assert accepts(0.0, 0.5, 0.999)
    assert accepts(1.0, 2.0, math.exp(-0.5) - 1e-9)
    assert not accepts(1.0, 2.0, math.exp(-0.5) + 1e-9)
    assert not accepts(1.0, 0.0, 0.0)  # all nodes on one spot cost nothing and cool to nothing


@pytest.mark.parametrize(
    ("n", "counts"), [(3, (1, 1)), (9, (3, 3)), (10, (4, 4)), (50, (4, 20)), (500, (4, 100))]
)
def test_how_many_are_removed(n, counts):
    assert Settings().removals(n) == counts


# --- the search, on scripted solutions ------------------------------------------------------------


class Script:
    """A problem whose candidates come in a fixed order; a solution is (name, cost)."""

    size, longest = 10, 0.0

    def __init__(self, *solutions: tuple[str, float]):
        self.first, *self.rest = solutions
        self.destroyed: list[tuple[str, float]] = []
        self.removals = {"only": self.remove}
        self.insertions = {"only": lambda partial, removed, noise, rng: self.rest.pop(0)}

    def start(self):
        return self.first

    def cost(self, solution):
        return solution[1]

    def key(self, solution):
        return solution[0].encode()

    def remove(self, solution, count, rng):
        self.destroyed.append(solution)
        return None, []


def test_scores_and_best_costs():
    first, best, worse, middle = ("first", 100.0), ("best", 90.0), ("worse", 90.1), ("mid", 90.05)
    awful = ("awful", 1e9)
    script = Script(first, best, worse, best, worse, middle, awful)
    settings = Settings(iterations=6, segment=6, cooled=1.0)
    found = search(script, np.random.default_rng(0), settings)
    # A new best, then accepted though worse; both again, which earns nothing; better than the
    # current one and new; refused.
    assert script.destroyed == [first, best, worse, best, worse, middle]
    assert found.best_cost.tolist() == [100, 90, 90, 90, 90, 90, 90]
    assert found.solution == best
    weight = 0.9 + 0.1 * (33 + 13 + 0 + 0 + 9 + 0) / 6
    assert found.weights[0] == found.weights[1] == {"only": pytest.approx(weight)}
    assert set(found.weights[2]) == {"exact", "noisy"}


def test_weights_stay_until_a_segment_ends():
    script = Script(("first", 100.0), *((f"{k}", 90.0 - k) for k in range(5)))
    found = search(script, np.random.default_rng(0), Settings(iterations=5, segment=6))
    assert found.weights[0] == {"only": 1.0}
    script = Script(("first", 100.0), *((f"{k}", 90.0 - k) for k in range(5)))
    found = search(script, np.random.default_rng(0), Settings(iterations=5, segment=2))
    assert found.weights[0] == {"only": pytest.approx((0.9 + 3.3) * 0.9 + 3.3)}


# --- removals -------------------------------------------------------------------------------------


def test_positions_are_skewed_to_the_first():
    assert skewed(10, 3.0, Fixed(0.5)) == 1  # 10 / 8
    assert skewed(10, 1.0, Fixed(0.999)) == 9
    rng = np.random.default_rng(0)
    drawn = np.bincount([skewed(4, 3.0, rng) for _ in range(8000)]) / 8000
    edges = (np.arange(5) / 4) ** (1 / 3)  # y^3 < k/4 for y < (k/4)^(1/3)
    assert drawn == pytest.approx(np.diff(edges), abs=0.02)


def test_worst_removal_without_luck_takes_the_costliest_each_time():
    instance = tsp(12, 4)
    d, tour = instance.dist, np.random.default_rng(1).permutation(12).tolist()
    left, expected = list(tour), []
    for _ in range(5):
        around = {node: (left[k - 1], left[(k + 1) % len(left)]) for k, node in enumerate(left)}
        node = max(left, key=lambda v: d[around[v][0], v] + d[v, around[v][1]] - d[around[v]])
        left.remove(node)
        expected.append(node)
    before, after = [0] * 12, [0] * 12
    for a, b in pairwise([*tour, tour[0]]):
        after[a], before[b] = b, a
    found = worst(d, (before, after), np.arange(12), 5, 3.0, Fixed(0.0))
    assert found == expected


def test_worst_removal_leaves_the_depot():
    instance = cvrp(8, 1)
    operators = alns_cvrp.RouteOperators(instance, Settings())
    routes = operators.start()
    for seed in range(20):
        partial, removed = operators.removals["worst"](routes, 4, np.random.default_rng(seed))
        assert len(set(removed)) == 4
        assert 0 not in removed
        assert partial == [
            kept for route in routes if (kept := [v for v in route if v not in removed])
        ]


def test_shaw_removal_without_luck_takes_the_nearest_to_the_first():
    places = [0.0, 1.0, 2.5, 4.5, 7.0, 10.0]
    apart = np.abs(np.subtract.outer(places, places))
    # Fixed draws position 0 for the first and always relates to it.
    assert related(apart, np.arange(6), 4, 6.0, Fixed(0.0)) == [0, 1, 2, 3]
    assert related(apart, np.arange(2, 6), 2, 6.0, Fixed(0.0)) == [2, 3]


def test_relatedness_weighs_distance_and_demand():
    coords = np.array([[0.0, 0], [3, 0], [0, 4], [3, 4]])
    demands = np.array([0, 1, 5, 2])
    instance = Instance("cvrp", "x", 3, coords, tsplib.euclidean(coords), demands, 9)
    found = alns_cvrp.RouteOperators(instance, Settings()).relatedness
    assert found[1, 2] == pytest.approx(9 * 5 / 5 + 2 * 4 / 5)
    assert found[1, 3] == pytest.approx(9 * 4 / 5 + 2 * 1 / 5)


# --- insertions -----------------------------------------------------------------------------------


def naive_tour(d, tour, nodes, compared):
    """Regret over places, by the definition."""
    tour, nodes = list(tour), list(nodes)
    compared = min(compared, len(tour))
    while nodes:
        choices = []
        for node in nodes:
            places = sorted(
                (d[tour[k - 1], node] + d[node, tour[k]] - d[tour[k - 1], tour[k]], k)
                for k in range(len(tour))
            )[:compared]
            regret = sum(cost - places[0][0] for cost, _ in places)
            choices.append((-regret, places[0][0], node, places[0][1]))
        _, _, node, k = min(choices)
        tour.insert(k, node)
        nodes.remove(node)
    return tour


@pytest.mark.parametrize("compared", [1, 2, 3, 4])
def test_tour_insertion_is_as_defined(compared):
    for seed in range(6):
        instance = tsp(16, seed)
        order = np.random.default_rng(seed).permutation(16).tolist()
        tour, nodes = order[:7], order[7:]
        found = alns_tsp.inserted(instance.dist, instance.dist, np.array(tour), nodes, compared)
        expected = naive_tour(instance.dist, tour, nodes, compared)
        at = expected.index(int(found[0]))
        assert found.tolist() == expected[at:] + expected[:at]


def naive_routes(instance, routes, nodes, compared):
    """Regret over routes, by the definition; a route without room counts as very dear."""
    d, routes, nodes = instance.dist, [list(r) for r in routes], list(nodes)
    while nodes:
        choices = []
        for node in nodes:
            offers = []
            for r, route in enumerate([*routes, []]):
                walk = [0, *route, 0]
                full = instance.demands[[*route, node]].sum() > instance.capacity
                cost, k = min(
                    (d[a, node] + d[node, b] - d[a, b], k)
                    for k, (a, b) in enumerate(pairwise(walk))
                )
                offers.append((1e6 if full else cost, r, k))
            offers = sorted(offers)[:compared]
            regret = sum(cost - offers[0][0] for cost, *_ in offers)
            choices.append((-regret, offers[0][0], node, *offers[0][1:]))
        _, _, node, r, k = min(choices)
        if r == len(routes):
            routes.append([])
        routes[r].insert(k, node)
        nodes.remove(node)
    return routes


@pytest.mark.parametrize(
    ("name", "compared"),
    [("greedy", 1), ("regret-2", 2), ("regret-3", 3), ("regret-4", 4), ("regret-m", None)],
)
def test_route_insertion_is_as_defined(name, compared):
    for seed in range(6):
        instance = cvrp(12, seed)
        operators = alns_cvrp.RouteOperators(instance, Settings())
        rng = np.random.default_rng(seed)
        routes, removed = operators.removals["random"](operators.start(), 6, rng)
        before = [list(route) for route in routes]
        found = operators.insertions[name](routes, removed, 0.0, rng)
        assert routes == before  # nothing is changed in place
        assert found == naive_routes(instance, routes, removed, compared)


def test_noise_changes_choices_and_nothing_else():
    instance = CVRP.sample(30, 1, 0)[0]
    operators = alns_cvrp.RouteOperators(instance, Settings())
    rng = np.random.default_rng(0)
    routes, removed = operators.removals["shaw"](operators.start(), 10, rng)
    made = {
        operators.key(operators.insertions["regret-2"](routes, removed, 0.2, rng)) for _ in range(8)
    }
    assert len(made) > 1
    tours = alns_tsp.TourOperators(TSP.sample(30, 1, 0)[0], Settings())
    tour, removed = tours.removals["shaw"](tours.start(), 10, rng)
    made = {tours.key(tours.insertions["regret-3"](tour, removed, 0.2, rng)) for _ in range(8)}
    assert len(made) > 1


# --- keys -----------------------------------------------------------------------------------------


def test_a_key_is_that_of_the_solution_not_of_its_writing():
    key = alns_tsp.TourOperators(tsp(5), Settings()).key
    tour = np.array([3, 1, 4, 0, 2])
    assert key(tour) == key(np.roll(tour, 2)) == key(tour[::-1])
    assert key(tour) != key(np.array([3, 4, 1, 0, 2]))
    assert tour.tolist() == [3, 1, 4, 0, 2]
    key = alns_cvrp.RouteOperators(cvrp(5), Settings()).key
    assert key([[1, 2, 3], [5, 4]]) == key([[4, 5], [3, 2, 1]])
    assert key([[1, 2, 3], [5, 4]]) != key([[1, 2], [3, 5, 4]])


# --- all of it ------------------------------------------------------------------------------------

BOTH = [(TSP, alns_tsp), (CVRP, alns_cvrp)]


@pytest.mark.parametrize(("problem", "module"), BOTH)
def test_a_search_is_repeatable_and_keeps_its_books(problem, module):
    instance = problem.sample(60, 1, 3)[0]
    settings = Settings(iterations=60)
    found = module.alns_search(instance, 1, settings)
    assert found.best_cost.shape == (61,)
    assert (np.diff(found.best_cost) <= 0).all()
    assert found.best_cost[-1] < found.best_cost[0]
    solution = found.solution if problem is CVRP else found.solution.tolist()
    assert problem.cost(instance, problem.rules(instance).repaired(solution)) == found.best_cost[-1]
    again = module.alns_search(instance, 1, settings)
    assert again.best_cost.tolist() == found.best_cost.tolist()
    assert again.weights == found.weights
    other = module.alns_search(instance, 2, settings)
    assert other.best_cost[0] == found.best_cost[0]  # the start draws nothing at random
    assert other.best_cost.tolist() != found.best_cost.tolist()
    assert module.alns(instance, 1, steps=60) == solution


def test_the_start_is_regret_2():
    instance = CVRP.sample(12, 1, 0)[0]
    operators = alns_cvrp.RouteOperators(instance, Settings())
    assert operators.start() == naive_routes(instance, [], range(1, 13), 2)
    instance = tsp(12, 1)
    far = divmod(int(instance.dist.argmax()), 12)
    left = [node for node in range(12) if node not in far]
    found = alns_tsp.TourOperators(instance, Settings()).start()
    assert TSP.cost(instance, found) == pytest.approx(
        TSP.cost(instance, naive_tour(instance.dist, far, left, 2)), abs=1e-12
    )


def test_tiny_instances_are_solved():
    for seed in range(3):
        instance = tsp(7, seed)
        tour = alns_tsp.alns(instance, seed, steps=60)
        assert TSP.cost(instance, tour) == pytest.approx(shortest_tour(instance))
        instance = cvrp(7, seed)
        routes = alns_cvrp.alns(instance, seed, steps=200)
        assert CVRP.cost(instance, routes) == pytest.approx(cheapest_routes(instance))


def test_the_tiniest():
    for n in (3, 4):
        assert sorted(alns_tsp.alns(tsp(n), steps=20)) == list(range(n))
    spot = np.zeros((6, 2))
    instance = Instance("tsp", "spot", 6, spot, tsplib.euclidean(spot))
    assert sorted(alns_tsp.alns(instance, steps=20)) == list(range(6))
    for n in (1, 2, 3):
        instance = cvrp(n)
        CVRP.rules(instance).repaired(alns_cvrp.alns(instance, steps=20))
    instance = Instance(
        "cvrp", "spot", 5, spot, tsplib.euclidean(spot), np.array([0, 3, 3, 3, 3, 3]), 7
    )
    CVRP.rules(instance).repaired(alns_cvrp.alns(instance, steps=20))

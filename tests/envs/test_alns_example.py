"""ALNS and OR-Tools as their own examples run them."""

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spo_jax.envs.problems import alns_example, get_problem
from spo_jax.envs.problems.cvrp.baselines import alns_example as routes
from spo_jax.envs.problems.tsp.baselines import alns_example as tours

TSP, CVRP = get_problem("tsp"), get_problem("cvrp")


def test_the_numbers_are_those_of_the_examples():
    """N-Wouda/ALNS: examples/travelling_salesman_problem.ipynb, capacitated_vehicle_routing_..."""
    assert (tours.SHARE, tours.SCORES) == (0.1, (3, 2, 1, 0.5))
    assert (routes.STRINGS, routes.LONGEST) == (2, 12)
    assert (routes.SCORES, routes.THRESHOLD) == ((25, 5, 1, 0), 0.02)
    assert (alns_example.DECAY, alns_example.STEPS) == (0.8, 3000)
    for function in (tours.alns_example, routes.alns_example):
        assert inspect.signature(function).parameters["steps"].default == 3000


@given(st.integers(0, 10_000), st.integers(3, 12), st.integers(0, 12))
def test_links_make_one_tour_as_by_brute_force(seed, n, kept):
    """Each node without a successor gets the nearest that closes no smaller cycle."""
    rng = np.random.default_rng(seed)
    dist = rng.random((n, n))
    tour = rng.permutation(n)
    after = np.full(n, -1)
    for k in rng.choice(n, min(kept, n - 1), replace=False):
        after[tour[k]] = tour[(k + 1) % n]
    order = rng.permutation(n)
    found = tours.linked(dist, after, order)
    assert sorted(tours.tour_of(found)) == list(range(n))
    expected = after.copy()
    for node in order:
        if expected[node] >= 0:
            continue

        def closes(to, node=node):
            walked = 1
            while expected[to] >= 0:
                to, walked = expected[to], walked + 1
            return to == node and walked < n

        free = [v for v in range(n) if v not in expected and not closes(v)]
        expected[node] = min(free, key=lambda v: dist[node, v])
    assert found.tolist() == expected.tolist()


@given(st.integers(0, 10_000), st.integers(1, 15), st.integers(1, 12))
def test_a_string_follows_the_route(seed, length, longest):
    rng = np.random.default_rng(seed)
    route = list(range(10, 10 + length))
    node = int(rng.integers(10, 10 + length))
    whole = list(route)
    taken = routes.string(route, node, longest, rng)
    assert node in taken
    assert sorted(route + taken) == whole
    assert 1 <= len(taken) <= min(length, longest)
    places = sorted(whole.index(v) for v in taken)
    gaps = [(b - a) % length for a, b in zip(places, places[1:] + places[:1], strict=True)]
    assert sum(gap != 1 for gap in gaps) <= 1  # one stretch, perhaps over the end


@pytest.mark.parametrize("problem", [TSP, CVRP], ids=lambda problem: problem.name)
def test_it_repeats_and_improves(problem):
    pytest.importorskip("alns")
    module = tours if problem is TSP else routes
    [instance] = problem.sample(60, 1, 3)
    found = [module.alns_example(instance, seed, steps=300) for seed in (0, 0, 1)]
    assert found[0] == found[1]
    first = module.alns_example(instance, 0, steps=1)
    costs = [problem.cost(instance, each) for each in (*found, first)]
    assert max(costs[:3]) < 0.95 * costs[3]


@pytest.mark.parametrize("problem", [TSP, CVRP], ids=lambda problem: problem.name)
def test_or_tools_without_a_metaheuristic_ends_by_itself(problem):
    pytest.importorskip("ortools")
    module = pytest.importorskip(f"spo_jax.envs.problems.{problem.name}.or_tools")
    [instance] = problem.sample(30, 1, 3)
    found = module.or_tools_default(instance)
    assert found == module.or_tools_default(instance, 1)
    guided = module.or_tools(instance, seconds=1.0)
    cost = problem.cost(instance, found)
    assert problem.cost(instance, guided) <= cost
    nodes = found if problem is TSP else [node for route in found for node in route]
    assert len(set(nodes)) == len(nodes) == instance.size
    if problem is CVRP:
        assert cost < 0.7 * problem.cost(instance, [[node] for node in nodes])

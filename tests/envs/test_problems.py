"""TSP and CVRP: generators, seeded starts, interfaces, feasibility and objective (Appendix B)."""

import itertools
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spo_jax.envs.problem import Infeasible, Instance, Problem, Rules, decoded
from spo_jax.envs.problems import get_problem
from spo_jax.envs.views import node_list
from spo_jax.errors import InputError

TSP, CVRP = get_problem("tsp"), get_problem("cvrp")


# --- generators -----------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", [TSP, CVRP])
def test_an_instance_does_not_depend_on_how_many_are_asked_for(problem: Any) -> None:
    many, few = problem.sample(20, 5, 3), problem.sample(20, 2, 3)
    assert [i.digest for i in many[:2]] == [i.digest for i in few]
    assert len({i.digest for i in many}) == 5
    assert problem.sample(20, 1, 4)[0].digest != few[0].digest
    assert many[1].name == "uniform-20-1@3"


def test_uniform_instances_are_those_of_the_paper() -> None:
    tsp = TSP.sample(400, 1, 0)[0]
    assert tsp.coords.shape == (400, 2)
    assert tsp.coords.min() >= 0
    assert tsp.coords.max() < 1
    assert abs(tsp.coords.mean() - 0.5) < 0.05
    a, b = tsp.coords[3], tsp.coords[7]
    assert tsp.dist[3, 7] == pytest.approx(((a - b) ** 2).sum() ** 0.5, rel=1e-15)
    assert (tsp.dist == tsp.dist.T).all()
    cvrp = CVRP.sample(400, 1, 0)[0]
    assert cvrp.coords[0].tolist() == [0.5, 0.5]
    assert cvrp.demands is not None
    assert cvrp.demands[0] == 0
    assert set(cvrp.demands[1:].tolist()) == set(range(1, 10))
    assert cvrp.capacity == 50


@pytest.mark.parametrize("problem", [TSP, CVRP])
def test_arrays_are_read_only_and_sizes_checked(problem: Any) -> None:
    instance = problem.sample(5, 1, 0)[0]
    with pytest.raises(ValueError, match="read-only"):
        instance.dist[0, 1] = 0
    with pytest.raises(InputError, match="at least 3"):
        problem.sample(2, 1, 0)


def test_problems_are_found_by_name() -> None:
    assert get_problem("spo_jax.envs.problems.tsp:TSP").name == "tsp"
    for name in ("vrp", "spo_jax.envs.problems.tsp:Nothing", "no.such.module:X"):
        with pytest.raises(InputError):
            get_problem(name)


# --- objective and encoding ----------------------------------------------------------------------


@given(st.integers(3, 30), st.integers(0, 10**6))
def test_tsp_cost_is_exact_and_does_not_depend_on_where_a_tour_starts(n: int, seed: int) -> None:
    instance = TSP.sample(n, 1, seed % 7)[0]
    rules = TSP.rules(instance)
    tour = rules.start(random.Random(seed))
    assert sorted(tour) == list(range(n))
    plain = sum(instance.dist[tour[k - 1], tour[k]] for k in range(n))
    assert rules.cost(tour) == pytest.approx(plain, rel=1e-12)
    k = seed % n
    assert rules.cost(tour[k:] + tour[:k]) == rules.cost(tour[::-1]) == rules.cost(tour)
    assert TSP.cost(instance, tour) == rules.cost(tour)
    assert TSP.decode(instance, rules.encode(tour)) == tour


@given(st.integers(3, 30), st.integers(0, 10**6))
def test_cvrp_starts_are_feasible_and_costs_include_the_depot(n: int, seed: int) -> None:
    instance = CVRP.sample(n, 1, seed % 7)[0]
    rules = CVRP.rules(instance)
    routes = rules.start(random.Random(seed))
    assert sorted(itertools.chain(*routes)) == list(range(1, n + 1))
    assert instance.demands is not None
    assert all(instance.demands[route].sum() <= 50 for route in routes)
    plain = 0.0
    for route in routes:
        for a, b in zip([0, *route], [*route, 0], strict=True):
            plain += instance.dist[a, b]
    assert rules.cost(routes) == pytest.approx(plain, rel=1e-12)
    assert CVRP.cost(instance, routes) == rules.cost(routes) == rules.cost(routes[::-1])
    code = rules.encode(routes)
    assert len(code) <= CVRP.code_length(instance)
    assert CVRP.decode(instance, [*code, 0, 0]) == routes


def test_a_forged_code_is_not_decoded() -> None:
    tsp, cvrp = TSP.sample(4, 1, 0)[0], CVRP.sample(30, 1, 0)[0]
    for code in ([1, 2, 3, 3], [1, 2, 3, 9], [1, 2, 3, 0], [0, 1, 2, 3], [1, 2, 3, 4, 1], [1], []):
        with pytest.raises(Infeasible):
            TSP.decode(tsp, code)
    everything_in_one_route = [*range(2, 32), 0]
    each = [v for c in range(2, 32) for v in (c, 0)]
    assert CVRP.decode(cvrp, each) == [[c] for c in range(1, 31)]
    no_depot = [1, *each[1:]]
    for code in (everything_in_one_route, each[2:], each[:-1], no_depot, [*each, 2, 0], [0], []):
        with pytest.raises(Infeasible):
            CVRP.decode(cvrp, code)


LISTS = st.lists(st.integers(0, 2**31 - 2), max_size=5)


@given(LISTS | st.lists(LISTS, min_size=1, max_size=5))
def test_codes_of_lists_and_lists_of_lists(solution: Any) -> None:
    code = Rules(TSP.sample(3, 1, 0)[0]).encode(solution)
    assert all(0 <= number < 2**31 for number in code)
    assert decoded(code) == solution


@given(st.lists(st.integers(0, 3), max_size=8))
def test_any_code_is_decoded_to_all_of_its_items(code: list[int]) -> None:
    found = decoded(code)
    flat = list(itertools.chain(*found)) if 0 in code else found
    assert flat == [number - 1 for number in code if number]


# --- what a problem offers ------------------------------------------------------------------------


class Bare(Problem):
    name = "bare"


def test_what_a_problem_does_not_have_is_a_sentence(tmp_path: Path) -> None:
    bare, instance = Bare(), Instance("bare", "a", 3)
    for call, says in (
        (lambda: bare.read("a"), "no instance files"),
        (lambda: bare.draw(None, instance, []), "no picture"),
        (lambda: bare.contract("repair"), "no contract of a repair: .*bare-repair.txt"),
        (lambda: bare.grammar("destroy"), "no grammar"),
        (lambda: bare.solve_reference(instance, "quick"), "no reference solver"),
    ):
        with pytest.raises(InputError, match=f"problem bare has {says}"):
            call()  # type: ignore[no-untyped-call]
    assert not any(map(bare.offers, ("draw", "read", "grammar", "baselines", "settings")))
    assert TSP.offers("read")
    assert CVRP.offers("classical_destroys")
    bare.write(tmp_path / "a.json", instance, [[np.int64(1), 2], []])
    assert (tmp_path / "a.json").read_text() == "[[1, 2], []]\n"
    with pytest.raises(ValueError, match="not JSON"):
        bare.write(tmp_path / "b.json", instance, [float("nan")])
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


# --- what programs may return ---------------------------------------------------------------------

TOUR = [4, 2, 0, 1, 3, 5, 7, 6]  # 8 nodes: at most floor(2.8) = 2 may go


@pytest.mark.parametrize(
    "output",
    [
        ([2, 0, 1, 3, 5, 7], [4, 6]),
        [[2, 0, 1, 3, 5, 7], (6, 4)],
        ((2, 0, 1, 3, 5, 7, 6), (4,)),
        (np.array([2, 0, 1, 3, 5, 7]), np.array([4, 6], dtype=np.int32)),
        ([np.int64(2), 0, 1, 3, 5, 7], [np.uint8(4), np.int16(6)]),
    ],
)
def test_lawful_tsp_destructions(output: Any) -> None:
    partial, removed = TSP.rules(TSP.sample(8, 1, 0)[0]).destroyed(TOUR, output)
    assert set(map(type, partial + removed)) == {int}
    assert sorted(partial + removed) == list(range(8))


@pytest.mark.parametrize(
    "output",
    [
        None,
        ([2, 0, 1, 3, 5, 7],),
        ([2, 0, 1, 3, 5, 7], [4, 6], 0),
        {"partial": 1, "removed": 2},
        ([2, 0, 1, 3, 5, 7], {4.0, 6}),
        ([2, 0, 1, 3, 5, 7], {4: 6}),
        ([2, 0, 1, 3, 5, 7], [4, 4]),
        (TOUR, []),
        ([0, 1, 3, 5, 7], [4, 2, 6]),  # three of eight
        ([2, 0, 1, 3, 7, 5], [4, 6]),  # order
        ([0, 1, 3, 5, 7, 2], [4, 6]),  # rotated
        ([2, 0, 1, 3, 5], [4, 6]),  # one lost
        ([2, 0, 1, 3, 5, 7, 6], [4, 6]),  # one twice
        ([2, 0, 1, 3, 5, 7], [4, 8]),  # one invented
        ([2, 0, True, 3, 5, 7], [4, 6]),
        ([2, 0, 1.0, 3, 5, 7], [4, 6]),
        ([2, 0, 1, 3, 5, 7], [4.0, 6]),
        ([2, 0, 1, 3, 5, 7], [float("nan"), 6]),
        ([2, 0, 1, 3, 5, 7], np.array([4.0, 6.0])),
        ([2, 0, 1, 3, 5, 7], np.array([[4, 6]])),
        ([2, 0, 1, 3, 5, 7], np.array([4, 6], dtype=object)),
        ("201357", "46"),
        ([2, 0, 1, 3, 5, 7], [10**400, 6]),
    ],
)
def test_unlawful_tsp_destructions(output: Any) -> None:
    with pytest.raises(Infeasible):
        TSP.rules(TSP.sample(8, 1, 0)[0]).destroyed(TOUR, output)


@pytest.mark.parametrize(
    "tour", [TOUR[:-1], [*TOUR, 4], [*TOUR[:-1], 4], [*TOUR[:-1], 8], None, {}]
)
def test_unlawful_tours(tour: Any) -> None:
    with pytest.raises(Infeasible):
        TSP.rules(TSP.sample(8, 1, 0)[0]).repaired(tour)


ROUTES = [[4, 2], [1, 3, 5], [8, 6, 7]]


@pytest.mark.parametrize(
    "output",
    [
        ([[2], [1, 3, 5], [8, 6]], [4, 7]),
        (([2], (1, 3, 5), np.array([8, 6])), np.array([4, 7])),
        ([[], [1, 3, 5], [8, 6, 7]], [4, 2]),
        ([[1, 3, 5], [8, 6, 7]], [2, 4]),  # the emptied route dropped
    ],
)
def test_lawful_cvrp_destructions(output: Any) -> None:
    partial, removed = CVRP.rules(CVRP.sample(8, 1, 0)[0]).destroyed(ROUTES, output)
    assert sorted([*itertools.chain(*partial), *removed]) == list(range(1, 9))


@pytest.mark.parametrize(
    "output",
    [
        ([[2], [1, 3, 5], [8, 6]], [4, 7, 0]),
        ([[2], [3, 1, 5], [8, 6]], [4, 7]),
        ([[1, 3, 5], [2], [8, 6]], [4, 7]),  # routes in another order
        ([[2, 1, 3, 5], [8, 6]], [4, 7]),
        ([[2], [1, 3, 5], [8, 6]], [4]),
        ([[0, 2, 0], [1, 3, 5], [8, 6]], [4, 7]),
        ([[2], [1, 3, 5], [8, 6]], [[4, 7]]),
        ([2, 1, 3, 5, 8, 6], [4, 7]),
        ({0: [2]}, [4, 7]),
        (None, None),
    ],
)
def test_unlawful_cvrp_destructions(output: Any) -> None:
    with pytest.raises(Infeasible):
        CVRP.rules(CVRP.sample(8, 1, 0)[0]).destroyed(ROUTES, output)


def test_repaired_routes_obey_the_capacity() -> None:
    instance = CVRP.sample(30, 1, 0)[0]
    rules = CVRP.rules(instance)
    routes = rules.start(random.Random(0))
    assert rules.repaired([[], *routes, []]) == routes
    assert rules.repaired(tuple(map(tuple, routes))) == routes
    merged = [[c for route in routes for c in route]]
    for bad in (merged, routes[1:], [*routes, [1]], [*routes, [0]], [[0, *r, 0] for r in routes]):
        with pytest.raises(Infeasible):
            rules.repaired(bad)


@given(st.lists(st.integers(-5, 5)))
def test_node_lists_keep_integers_and_nothing_else(values: list[int]) -> None:
    assert node_list(values) == values
    assert node_list(tuple(values)) == values
    assert node_list(np.array(values, dtype=np.int64)) == values
    assert node_list([np.int32(v) for v in values]) == values
    for lie in (True, np.True_, 1.0, None, "1", [1], np.array(1), np.float64(1)):
        assert node_list([*values, lie]) is None

    class Sneaky(list):
        pass

    assert node_list(Sneaky(values)) is None
    assert node_list(iter(values)) is None

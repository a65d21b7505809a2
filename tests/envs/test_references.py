"""Reference solvers against exhaustive search, and their cache."""

import json
import math
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from exhaustive import cheapest_routes, cvrp, shortest_tour, tsp

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.cvrp.baselines import references as routing
from spo_jax.envs.problems.tsp.baselines import references as lkh
from spo_jax.envs.problems.tsp.files import tsplib
from spo_jax.envs.report import references
from spo_jax.envs.report.reference_files import ReferenceFile, Row
from spo_jax.errors import InputError, MissingExtra


def reference(instance, *options, **named):
    return references.reference(get_problem(instance.problem), instance, *options, **named)


def cost_of(instance, solution):
    return get_problem(instance.problem).cost(instance, solution)


@pytest.fixture
def unsolved(monkeypatch):
    """No solver can be called."""
    for each in (lkh, routing):
        monkeypatch.setattr(each, "solve_reference", None)


@pytest.fixture
def elkai():
    return pytest.importorskip("elkai")


@pytest.fixture
def pyvrp():
    return pytest.importorskip("pyvrp")


# --- LKH ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("scale", [1e-7, 1.0, 1e7])
def test_lkh_finds_the_optimum_of_tiny_instances(elkai, n, scale):
    instance = tsp(n, seed=n, scale=scale)
    tour = lkh.lkh(instance)
    cost = cost_of(instance, tour)
    assert sorted(tour) == list(range(n))
    length = sum(
        math.dist(instance.coords[tour[k]], instance.coords[tour[k - 1]]) for k in range(n)
    )
    assert cost == pytest.approx(length, rel=1e-14)
    assert cost == pytest.approx(shortest_tour(instance), rel=1e-12)


def test_lkh_is_repeatable_and_a_seed_reorders_the_nodes(elkai):
    instance = tsp(60)
    first = lkh.lkh(instance, runs=1)
    lkh.lkh(tsp(30), runs=1)  # whatever was solved in between
    assert lkh.lkh(instance, runs=1) == first
    other = lkh.lkh(instance, seed=1, runs=1)
    assert other != first
    assert cost_of(instance, other) == pytest.approx(cost_of(instance, first), rel=0.01)


def test_the_solvers_say_nothing(elkai, pyvrp, capfd, recwarn):
    lkh.lkh(tsp(20), runs=2)
    routing.pyvrp(cvrp(20), iterations=1500)
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list


def test_lkh_on_degenerate_instances(elkai):
    same = replace(tsp(6), dist=np.zeros((6, 6)))
    assert cost_of(same, lkh.lkh(same)) == 0
    doubled = np.repeat(tsp(4).coords, 2, axis=0)
    instance = Instance("tsp", "doubled", 8, doubled, tsplib.euclidean(doubled))
    cost = cost_of(instance, lkh.lkh(instance))
    assert cost == pytest.approx(shortest_tour(instance), rel=1e-12)


@pytest.mark.parametrize("name", ["burma14", "att48", "berlin52", "gr137"])
def test_lkh_reaches_recorded_optima(elkai, spo_data, name):
    path = spo_data / "tsplib" / f"{name}.tsp"
    if not path.exists():
        pytest.skip(f"{name}.tsp is not in SPO_DATA")
    instance = tsplib.read(path)
    assert cost_of(instance, lkh.lkh(instance)) == instance.reference


# --- PyVRP --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 5, 6])
@pytest.mark.parametrize("scale", [1e-7, 1.0, 1e7])
def test_pyvrp_finds_the_optimum_of_tiny_instances(pyvrp, n, scale):
    instance = cvrp(n, seed=n, scale=scale)
    routes = routing.pyvrp(instance, iterations=300)
    cost = cost_of(instance, routes)
    assert sorted(c for route in routes for c in route) == list(range(1, n + 1))
    assert all(instance.demands[route].sum() <= 15 for route in routes)
    length = 0.0
    for route in routes:
        walk = [0, *route, 0]
        length += sum(math.dist(instance.coords[a], instance.coords[b]) for a, b in pairwise(walk))
    assert cost == pytest.approx(length, rel=1e-14)
    assert cost == pytest.approx(cheapest_routes(instance), rel=1e-12)


def test_pyvrp_may_use_a_vehicle_for_each_customer(pyvrp):
    instance = replace(cvrp(5), demands=np.array([0, 15, 15, 15, 15, 15]))
    assert sorted(routing.pyvrp(instance, iterations=50)) == [[1], [2], [3], [4], [5]]


def test_pyvrp_is_repeatable(pyvrp):
    instance = cvrp(40)
    first = routing.pyvrp(instance, seed=3, iterations=200)
    assert routing.pyvrp(instance, seed=3, iterations=200) == first
    costs = {cost_of(instance, routing.pyvrp(instance, s, iterations=1)) for s in range(4)}
    assert len(costs) > 1


# --- scaling ------------------------------------------------------------------------------------


def test_integers_stay_and_floats_are_spread_over_the_range():
    whole = np.array([[0.0, 7], [7, 0]])
    assert tsplib.scaled(whole, 1000).tolist() == [[0, 7], [7, 0]]
    assert tsplib.scaled(whole * 1e6, 1000).tolist() == [[0, 1000], [1000, 0]]
    parts = np.array([[0.0, 0.25], [0.25, 0]])
    assert tsplib.scaled(parts, 1000).tolist() == [[0, 1000], [1000, 0]]
    assert tsplib.scaled(np.zeros((2, 2)), 1000).tolist() == [[0, 0], [0, 0]]


# --- references and their cache -----------------------------------------------------------------


def test_a_known_reference_stays(unsolved):
    known = replace(tsp(10), reference=1.0, reference_source="file")
    assert reference(known) is known


def test_the_sources_name_their_solver(elkai, pyvrp):
    tour = reference(tsp(8), "quick")
    assert tour.reference == pytest.approx(shortest_tour(tsp(8)), rel=1e-12)
    assert tour.reference_source.startswith("LKH (elkai 2.")
    assert "proven by branch and cut (scipy 1." in tour.reference_source
    assert tour.certified
    routes = reference(cvrp(6), "quick")
    assert routes.reference == pytest.approx(cheapest_routes(cvrp(6)), rel=1e-12)
    assert routes.reference_source.startswith("PyVRP 0.")
    assert "120 iterations" in routes.reference_source
    assert not routes.certified


def test_the_best_of_several_seeds_is_kept(pyvrp, monkeypatch):
    instance = cvrp(40)
    monkeypatch.setitem(routing.EFFORTS, "quick", (1, 4))
    found = reference(instance, "quick")
    each = [cost_of(instance, routing.pyvrp(instance, seed, 40)) for seed in range(4)]
    assert len(set(each)) > 1
    assert found.reference == min(each)
    assert "best of 4 seeds, 40 iterations each" in found.reference_source


def test_a_tour_that_is_not_the_shortest_is_improved(elkai, monkeypatch):
    instance = tsp(8)
    in_order = list(range(8))
    monkeypatch.setattr(lkh, "lkh", lambda instance, runs: in_order)
    found = reference(instance, "quick")
    assert found.reference == pytest.approx(shortest_tour(instance), rel=1e-12)
    assert found.reference < cost_of(instance, in_order)
    assert ", improved, proven" in found.reference_source


def test_a_tour_that_is_too_large_is_not_proven(elkai, monkeypatch):
    monkeypatch.setitem(lkh.EFFORTS, "quick", (1, 7))
    assert reference(tsp(7), "quick").certified
    found = reference(tsp(8), "quick")
    assert not found.certified
    assert "proven" not in found.reference_source


@pytest.mark.parametrize("make", [tsp, cvrp])
def test_the_cache_answers_the_second_time(elkai, pyvrp, tmp_path, monkeypatch, make):
    cache = tmp_path / "made" / "on demand"
    first = reference(make(7), "quick", cache)
    assert len(list(cache.iterdir())) == 1
    for each in (lkh, routing):
        monkeypatch.setattr(each, "solve_reference", None)
    again = reference(replace(make(7), name="another name"), "quick", cache)
    assert (again.reference, again.reference_source) == (first.reference, first.reference_source)
    assert again.certified == first.certified == (make is tsp)


@pytest.mark.parametrize(
    "damage",
    [
        lambda record: "",
        lambda record: "{",
        lambda record: "[]",
        lambda record: "null",
        lambda record: json.dumps({**record, "code": record["code"][:-1]}),
        lambda record: json.dumps({**record, "code": "abc"}),
        lambda record: json.dumps({**record, "code": [float(k) for k in range(1, 8)]}),
        lambda record: json.dumps({"cost": 0.0, "source": "?"}),
        lambda record: json.dumps({**record, "version": "0"}),
    ],
)
def test_a_damaged_entry_is_made_anew(elkai, tmp_path, damage):
    first = reference(tsp(7), "quick", tmp_path)
    (entry,) = tmp_path.iterdir()
    whole = entry.read_text()
    entry.write_text(damage(json.loads(whole)))
    assert reference(tsp(7), "quick", tmp_path).reference == first.reference
    assert entry.read_text() == whole


def test_a_cached_cost_is_not_believed(elkai, tmp_path):
    first = reference(tsp(7), "quick", tmp_path)
    (entry,) = tmp_path.iterdir()
    entry.write_text(json.dumps({**json.loads(entry.read_text()), "cost": 0.001}))
    assert reference(tsp(7), "quick", tmp_path).reference == first.reference


def test_efforts_and_instances_do_not_share_entries(elkai, tmp_path):
    for instance in (tsp(7), tsp(7, seed=1)):
        for effort in ("quick", "standard"):
            reference(instance, effort, tmp_path)
    assert len(list(tmp_path.iterdir())) == 4


def test_what_the_caller_did_wrong(tmp_path):
    with pytest.raises(InputError, match="unknown effort 'huge': use quick, standard, paper"):
        reference(tsp(5), "huge")
    with pytest.raises(InputError, match="no CVRP instance"):
        routing.pyvrp(tsp(5))
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot make the folder"):
        reference(tsp(3), "quick", tmp_path / "file" / "cache")


def test_a_problem_without_a_solver_says_so():
    path = get_problem("third_problem:PathProblem")
    (instance,) = path.sample(5, 1, 0)
    found = references.reference(path, instance)
    assert found.reference is None
    assert found.reference_source == "no reference solver for path"
    with pytest.raises(InputError, match="problem path has no reference solver"):
        references.solved(path, instance)


@pytest.mark.parametrize(("module", "make"), [("elkai", tsp), ("pyvrp", cvrp)])
def test_a_missing_solver_says_how_to_get_it(monkeypatch, module, make):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"{module}.*pip install 'spo-jax\[solvers\]'"):
        reference(make(6))


# --- what ships, and what the user brings ---------------------------------------------------------


def shipping(monkeypatch, *rows):
    monkeypatch.setattr(references, "shipped", lambda problem: ReferenceFile("shipped.csv", rows))


def row_of(instance, cost, **fields):
    return Row(instance.problem, instance.name, instance.digest, cost, **fields)


def mine(instance, cost, **fields):
    return ReferenceFile(
        "my.csv", [Row("", instance.name, "", cost, **fields, where="my.csv, line 2")]
    )


def test_what_ships_is_found_by_content_alone(monkeypatch, unsolved):
    instance = replace(tsp(8), name="a")
    shipping(monkeypatch, row_of(instance, 3.0, certified=True, source="Solver 1.0"))
    found = reference(replace(instance, name="b"))
    assert (found.reference, found.certified) == (3.0, True)
    assert found.reference_source == "Solver 1.0 (shipped)"
    assert references.known(get_problem("tsp"), replace(tsp(8, seed=1), name="a")) is None


def test_what_ships_counts_by_its_effort(elkai, monkeypatch):
    instance = tsp(8)
    best = shortest_tour(instance)
    for cost, asked, expected in [
        (2 * best, "quick", 2 * best),  # made with enough effort
        (2 * best, "standard", 2 * best),
        (2 * best, "paper", best),  # not enough, and worse than what is found
        (0.5 * best, "paper", 0.5 * best),  # not enough, but better
    ]:
        shipping(monkeypatch, row_of(instance, cost, effort="standard"))
        assert reference(instance, asked).reference == pytest.approx(expected)
    monkeypatch.setitem(sys.modules, "elkai", None)
    shipping(monkeypatch, row_of(instance, 2 * best, effort="quick"))
    assert reference(instance, "paper").reference == 2 * best  # better than none


def test_the_users_references_come_first(monkeypatch, unsolved):
    instance = tsp(8)
    shipping(monkeypatch, row_of(instance, 9.0, effort="paper", source="Solver 1.0"))
    better = reference(instance, own=mine(instance, 8.0, certified=True, source="Mine"))
    assert (better.reference, better.certified) == (8.0, True)
    assert better.reference_source == "Mine (my.csv, line 2)"
    same = reference(instance, own=mine(instance, 9.0000001))
    assert (same.reference, same.reference_source) == (9.0, "Solver 1.0 (shipped)")
    worse = reference(instance, own=mine(instance, 9.5))
    assert worse.reference == 9.0
    assert worse.reference_source == "Solver 1.0 (shipped) (my.csv, line 2 says 9.5)"
    of_file = replace(instance, reference=7.0, reference_source="x.sol")
    assert reference(of_file, own=mine(instance, 6.5)).reference == 6.5
    assert reference(of_file, own=mine(instance, 7.5)).reference == 7.0
    shipping(monkeypatch)
    assert reference(instance, own=mine(instance, 9.5)).reference == 9.5


def test_nothing_is_below_a_proven_optimum(monkeypatch):
    instance = tsp(8)
    shipping(monkeypatch, row_of(instance, 9.0, certified=True))
    rounded = reference(instance, own=mine(instance, 8.999999))
    assert (rounded.reference, rounded.certified) == (9.0, True)
    with pytest.raises(InputError, match=r"my\.csv, line 2: 8\.9 is below 9, .* the optimum of t8"):
        reference(instance, own=mine(instance, 8.9))

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
from spo_jax.envs.problems.tsp import files as tsplib
from spo_jax.envs.report import references
from spo_jax.envs.report.reference_files import ReferenceFile, Row
from spo_jax.errors import InputError, MissingExtra


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
    tour, cost = references.lkh(instance)
    assert sorted(tour) == list(range(n))
    length = sum(
        math.dist(instance.coords[tour[k]], instance.coords[tour[k - 1]]) for k in range(n)
    )
    assert cost == pytest.approx(length, rel=1e-14)
    assert cost == pytest.approx(shortest_tour(instance), rel=1e-12)


def test_lkh_is_repeatable_and_a_seed_reorders_the_nodes(elkai):
    instance = tsp(60)
    first = references.lkh(instance, runs=1)
    references.lkh(tsp(30), runs=1)  # whatever was solved in between
    assert references.lkh(instance, runs=1) == first
    other, cost = references.lkh(instance, seed=1, runs=1)
    assert other != first[0]
    assert cost == pytest.approx(first[1], rel=0.01)


def test_the_solvers_say_nothing(elkai, pyvrp, capfd, recwarn):
    references.lkh(tsp(20), runs=2)
    references.pyvrp(cvrp(20), iterations=1500)
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list


def test_lkh_on_degenerate_instances(elkai):
    same = replace(tsp(6), dist=np.zeros((6, 6)))
    assert references.lkh(same)[1] == 0
    doubled = np.repeat(tsp(4).coords, 2, axis=0)
    instance = Instance("tsp", "doubled", 8, doubled, tsplib.euclidean(doubled))
    assert references.lkh(instance)[1] == pytest.approx(shortest_tour(instance), rel=1e-12)


@pytest.mark.parametrize("name", ["burma14", "att48", "berlin52", "gr137"])
def test_lkh_reaches_recorded_optima(elkai, spo_data, name):
    path = spo_data / "tsplib" / f"{name}.tsp"
    if not path.exists():
        pytest.skip(f"{name}.tsp is not in SPO_DATA")
    instance = tsplib.read(path)
    assert references.lkh(instance)[1] == instance.reference


# --- PyVRP --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 5, 6])
@pytest.mark.parametrize("scale", [1e-7, 1.0, 1e7])
def test_pyvrp_finds_the_optimum_of_tiny_instances(pyvrp, n, scale):
    instance = cvrp(n, seed=n, scale=scale)
    routes, cost = references.pyvrp(instance, iterations=300)
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
    routes, cost = references.pyvrp(instance, iterations=50)
    assert sorted(routes) == [[1], [2], [3], [4], [5]]
    assert cost == pytest.approx(2 * instance.dist[0].sum(), rel=1e-14)


def test_pyvrp_is_repeatable(pyvrp):
    instance = cvrp(40)
    first = references.pyvrp(instance, seed=3, iterations=200)
    assert references.pyvrp(instance, seed=3, iterations=200) == first
    costs = {references.pyvrp(instance, seed=s, iterations=1)[1] for s in range(4)}
    assert len(costs) > 1


# --- scaling ------------------------------------------------------------------------------------


def test_integers_stay_and_floats_are_spread_over_the_range():
    whole = np.array([[0.0, 7], [7, 0]])
    assert references.scaled(whole, 1000).tolist() == [[0, 7], [7, 0]]
    assert references.scaled(whole * 1e6, 1000).tolist() == [[0, 1000], [1000, 0]]
    parts = np.array([[0.0, 0.25], [0.25, 0]])
    assert references.scaled(parts, 1000).tolist() == [[0, 1000], [1000, 0]]
    assert references.scaled(np.zeros((2, 2)), 1000).tolist() == [[0, 0], [0, 0]]


# --- references and their cache -----------------------------------------------------------------


def test_a_known_reference_stays(monkeypatch):
    monkeypatch.setattr(references, "lkh", None)
    known = replace(tsp(10), reference=1.0, reference_source="file")
    assert references.reference(known) is known


def test_the_sources_name_their_solver(elkai, pyvrp):
    tour = references.reference(tsp(8), "quick")
    assert tour.reference == pytest.approx(shortest_tour(tsp(8)), rel=1e-12)
    assert tour.reference_source.startswith("LKH (elkai 2.")
    assert "proven by branch and cut (scipy 1." in tour.reference_source
    assert tour.certified
    routes = references.reference(cvrp(6), "quick")
    assert routes.reference == pytest.approx(cheapest_routes(cvrp(6)), rel=1e-12)
    assert routes.reference_source.startswith("PyVRP 0.")
    assert "120 iterations" in routes.reference_source
    assert not routes.certified


def test_the_best_of_several_seeds_is_kept(pyvrp, monkeypatch):
    instance = cvrp(40)
    monkeypatch.setitem(references.EFFORTS, "several", references.Effort(1, 1, 4, 0))
    found = references.reference(instance, "several")
    each = [references.pyvrp(instance, seed, 40)[1] for seed in range(4)]
    assert len(set(each)) > 1
    assert found.reference == min(each)
    assert "best of 4 seeds, 40 iterations each" in found.reference_source


def test_a_tour_that_is_not_the_shortest_is_improved(elkai, monkeypatch):
    instance = tsp(8)
    monkeypatch.setattr(references, "lkh", lambda instance, runs: in_order(instance))
    found = references.reference(instance, "quick")
    assert found.reference == pytest.approx(shortest_tour(instance), rel=1e-12)
    assert found.reference < in_order(instance)[1]
    assert ", improved, proven" in found.reference_source


def in_order(instance):
    tour = list(range(instance.size))
    return tour, tsplib.tour_cost(instance.dist, tour)


def test_a_tour_that_is_too_large_is_not_proven(elkai, monkeypatch):
    monkeypatch.setitem(references.EFFORTS, "tiny", references.Effort(1, 1, 1, 7))
    assert references.reference(tsp(7), "tiny").certified
    found = references.reference(tsp(8), "tiny")
    assert not found.certified
    assert "proven" not in found.reference_source


@pytest.mark.parametrize("make", [tsp, cvrp])
def test_the_cache_answers_the_second_time(elkai, pyvrp, tmp_path, monkeypatch, make):
    cache = tmp_path / "made" / "on demand"
    first = references.reference(make(7), "quick", cache)
    assert len(list(cache.iterdir())) == 1
    monkeypatch.setattr(references, "_solve", None)
    again = references.reference(replace(make(7), name="another name"), "quick", cache)
    assert (again.reference, again.reference_source) == (first.reference, first.reference_source)
    assert again.certified == first.certified == (make is tsp)


@pytest.mark.parametrize(
    "damage",
    [
        lambda record: "",
        lambda record: "{",
        lambda record: "[]",
        lambda record: "null",
        lambda record: json.dumps({**record, "solution": record["solution"][:-1]}),
        lambda record: json.dumps({**record, "solution": "abc"}),
        lambda record: json.dumps({**record, "solution": [float(k) for k in range(7)]}),
        lambda record: json.dumps({"cost": 0.0, "source": "?"}),
        lambda record: json.dumps({**record, "effort": {**record["effort"], "lkh_runs": 0}}),
    ],
)
def test_a_damaged_entry_is_made_anew(elkai, tmp_path, damage):
    first = references.reference(tsp(7), "quick", tmp_path)
    (entry,) = tmp_path.iterdir()
    whole = entry.read_text()
    entry.write_text(damage(json.loads(whole)))
    assert references.reference(tsp(7), "quick", tmp_path).reference == first.reference
    assert entry.read_text() == whole


def test_a_cached_cost_is_not_believed(elkai, tmp_path):
    first = references.reference(tsp(7), "quick", tmp_path)
    (entry,) = tmp_path.iterdir()
    entry.write_text(json.dumps({**json.loads(entry.read_text()), "cost": 0.001}))
    assert references.reference(tsp(7), "quick", tmp_path).reference == first.reference


def test_efforts_and_instances_do_not_share_entries(elkai, tmp_path):
    for instance in (tsp(7), tsp(7, seed=1)):
        for effort in ("quick", "standard"):
            references.reference(instance, effort, tmp_path)
    assert len(list(tmp_path.iterdir())) == 4


def test_what_the_caller_did_wrong(tmp_path):
    with pytest.raises(InputError, match="unknown effort 'huge': use quick, standard, paper"):
        references.reference(tsp(5), "huge")
    with pytest.raises(InputError, match="no CVRP instance"):
        references.pyvrp(tsp(5))
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot make the folder"):
        references.reference(tsp(3), "quick", tmp_path / "file" / "cache")


def test_a_problem_without_a_solver_says_so():
    knapsack = replace(tsp(5), problem="knapsack")
    found = references.reference(knapsack)
    assert found.reference is None
    assert found.reference_source == "no reference solver for knapsack"


@pytest.mark.parametrize(("module", "make"), [("elkai", tsp), ("pyvrp", cvrp)])
def test_a_missing_solver_says_how_to_get_it(monkeypatch, module, make):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"{module}.*pip install 'spo-jax\[solvers\]'"):
        references.reference(make(6))


# --- what ships, and what the user brings ---------------------------------------------------------


def shipping(monkeypatch, *rows):
    monkeypatch.setattr(references, "shipped", lambda: ReferenceFile("shipped.csv", rows))


def row_of(instance, cost, **said):
    return Row(instance.problem, instance.name, instance.digest, cost, **said)


def mine(instance, cost, **said):
    return ReferenceFile(
        "my.csv", [Row("", instance.name, "", cost, **said, where="my.csv, line 2")]
    )


def test_what_ships_is_found_by_content_alone(monkeypatch):
    instance = replace(tsp(8), name="a")
    shipping(monkeypatch, row_of(instance, 3.0, certified=True, source="Solver 1.0"))
    monkeypatch.setattr(references, "_solve", None)
    found = references.reference(replace(instance, name="b"))
    assert (found.reference, found.certified) == (3.0, True)
    assert found.reference_source == "Solver 1.0 (shipped)"
    assert references.known(replace(tsp(8, seed=1), name="a")) is None


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
        assert references.reference(instance, asked).reference == pytest.approx(expected)
    monkeypatch.setitem(sys.modules, "elkai", None)
    shipping(monkeypatch, row_of(instance, 2 * best, effort="quick"))
    assert references.reference(instance, "paper").reference == 2 * best  # better than none


def test_the_users_references_come_first(monkeypatch):
    monkeypatch.setattr(references, "_solve", None)
    instance = tsp(8)
    shipping(monkeypatch, row_of(instance, 9.0, effort="paper", source="Solver 1.0"))
    better = references.reference(instance, own=mine(instance, 8.0, certified=True, source="Mine"))
    assert (better.reference, better.certified) == (8.0, True)
    assert better.reference_source == "Mine (my.csv, line 2)"
    same = references.reference(instance, own=mine(instance, 9.0000001))
    assert (same.reference, same.reference_source) == (9.0, "Solver 1.0 (shipped)")
    worse = references.reference(instance, own=mine(instance, 9.5))
    assert worse.reference == 9.0
    assert worse.reference_source == "Solver 1.0 (shipped) (my.csv, line 2 says 9.5)"
    of_file = replace(instance, reference=7.0, reference_source="x.sol")
    assert references.reference(of_file, own=mine(instance, 6.5)).reference == 6.5
    assert references.reference(of_file, own=mine(instance, 7.5)).reference == 7.0
    shipping(monkeypatch)
    assert references.reference(instance, own=mine(instance, 9.5)).reference == 9.5


def test_nothing_is_below_a_proven_optimum(monkeypatch):
    instance = tsp(8)
    shipping(monkeypatch, row_of(instance, 9.0, certified=True))
    rounded = references.reference(instance, own=mine(instance, 8.999999))
    assert (rounded.reference, rounded.certified) == (9.0, True)
    with pytest.raises(InputError, match=r"my\.csv, line 2: 8\.9 is below 9, .* the optimum of t8"):
        references.reference(instance, own=mine(instance, 8.9))

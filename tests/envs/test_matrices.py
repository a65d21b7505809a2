"""EXPLICIT files in every layout, other distances than the file's, limits and fractional demands.

Layouts are written here entry by entry, from the definitions in the TSPLIB report.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spo_jax.envs.files.reading import Reading, remarks_of
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.cvrp.files import cvrplib
from spo_jax.envs.problems.cvrp.files.loads import longest_route
from spo_jax.envs.problems.tsp.baselines.heuristics import two_opt
from spo_jax.envs.problems.tsp.files import tsplib
from spo_jax.errors import InputError

EXACT = Reading("exact")


def entries(format, n):
    """The (row, column) of each number of a section, in the order of the file."""
    if format == "FULL_MATRIX":
        return [(i, j) for i in range(n) for j in range(n)]
    side, *diagonal, by = format.split("_")

    def there(i, j):
        return (j > i if side == "UPPER" else j < i) or (bool(diagonal) and i == j)

    pairs = itertools.product(range(n), repeat=2)
    if by == "COL":
        pairs = ((i, j) for j, i in pairs)
    return [(i, j) for i, j in pairs if there(i, j)]


FORMATS = [
    "FULL_MATRIX",
    *(f"{s}_{d}{b}" for s in ("UPPER", "LOWER") for d in ("", "DIAG_") for b in ("ROW", "COL")),
]


def head(kind, n, format, *more):
    fields = (f"TYPE : {kind}", f"DIMENSION : {n}", "EDGE_WEIGHT_TYPE : EXPLICIT")
    return [*fields, f"EDGE_WEIGHT_FORMAT : {format}", *more, "EDGE_WEIGHT_SECTION"]


def words(dist, format):
    return [repr(float(dist[at])) for at in entries(format, len(dist))]


def tsp_file(path, dist, format="FULL_MATRIX", tail=()):
    lines = [*head("TSP", len(dist), format), " ".join(words(dist, format)), *tail, "EOF"]
    path.write_text("\n".join(lines))
    return path


def cvrp_file(path, dist, demands, capacity, *more, format="LOWER_ROW", depot=1):
    lines = head("CVRP", len(dist), format, f"CAPACITY : {capacity}", *more)
    lines += [" ".join(words(dist, format)), "DEMAND_SECTION"]
    lines += [f"{k} {demand}" for k, demand in enumerate(demands, 1)]
    path.write_text("\n".join([*lines, "DEPOT_SECTION", str(depot), "-1", "EOF"]))
    return path


def plane(n, seed=0):
    """Whole distances between random places, with a random diagonal that nobody may read."""
    places = np.random.default_rng(seed).integers(0, 1000, (n, 2))
    dist = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1)).round()
    dist[np.arange(n), np.arange(n)] = 9999
    return dist


# --- layouts --------------------------------------------------------------------------------------


def test_there_are_nine_layouts():
    from spo_jax.envs.problems.tsp.files.matrices import EDGE_WEIGHT_FORMATS

    assert set(FORMATS) == set(EDGE_WEIGHT_FORMATS)
    assert len(FORMATS) == 9
    assert entries("UPPER_COL", 3) == [(0, 1), (0, 2), (1, 2)]
    assert entries("LOWER_DIAG_ROW", 2) == [(0, 0), (1, 0), (1, 1)]


@settings(max_examples=90, deadline=None)
@given(st.data())
def test_every_layout_reads_back_however_its_lines_are_cut(tmp_path_factory, data):
    n, format = data.draw(st.integers(3, 9)), data.draw(st.sampled_from(FORMATS))
    numbers = st.floats(0, 1e9, allow_nan=False, allow_subnormal=False)
    upper = data.draw(st.lists(numbers, min_size=n * n, max_size=n * n))
    dist = np.triu(np.array(upper).reshape(n, n), 1)
    dist = dist + dist.T
    diagonal = data.draw(st.sampled_from([0.0, 9999.0, -1.0]))
    written = words(dist + np.diag([diagonal] * n), format)
    cut = data.draw(st.integers(1, 2 * n))
    rows = [" ".join(written[k : k + cut]) for k in range(0, len(written), cut)]
    path = tmp_path_factory.mktemp("m") / "m.tsp"
    path.write_text("\n".join([*head("TSP", n, format), *rows, "EOF"]))
    read = tsplib.read(path)
    assert (read.dist == dist).all()
    assert (read.coords, read.file["ids"]) == (None, list(range(1, n + 1)))
    assert remarks_of(read) == ()


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["burma14", "ulysses16", "att48", "berlin52"])
def test_benchmarks_as_matrices_have_their_optima(spo_data, tmp_path, name, format):
    """Their optimal tours are as long in every layout, and the digest is that of the original."""
    original = tsplib.read(spo_data / "tsplib" / f"{name}.tsp")
    instance = tsplib.read(tsp_file(tmp_path / f"{name}.tsp", original.dist, format))
    tour = tsplib.read_tour(spo_data / "tsplib" / f"{name}.opt.tour", instance)
    optimum = {"burma14": 3323, "ulysses16": 6859, "att48": 10628, "berlin52": 7542}[name]
    assert tsplib.tour_cost(instance.dist, tour) == optimum
    assert instance.digest == original.digest


def test_a_routing_benchmark_as_a_matrix_has_its_optimum(spo_data, tmp_path):
    original = cvrplib.read(spo_data / "cvrplib/P/P-n19-k2.vrp")
    path = cvrp_file(tmp_path / "p.vrp", original.dist, original.demands, original.capacity)
    instance = cvrplib.read(path)
    routes = cvrplib.read_solution(spo_data / "cvrplib/P/P-n19-k2.sol", instance)
    assert cvrplib.routes_cost(instance.dist, routes) == 212
    assert instance.digest == original.digest


def test_the_depot_comes_first_in_a_matrix_too(tmp_path):
    dist = plane(5)
    instance = cvrplib.read(cvrp_file(tmp_path / "d.vrp", dist, [3, 3, 0, 3, 3], 6, depot=3))
    order = [2, 0, 1, 3, 4]
    assert instance.file["ids"] == [k + 1 for k in order]
    for a, b in itertools.permutations(range(5), 2):
        assert instance.dist[a, b] == dist[order[a], order[b]]


def test_a_tour_of_a_matrix_is_as_short_as_brute_force_finds(tmp_path):
    instance = tsplib.read(tsp_file(tmp_path / "m.tsp", plane(8), "UPPER_DIAG_COL"))
    best = min(
        tsplib.tour_cost(plane(8), (0, *rest)) for rest in itertools.permutations(range(1, 8))
    )
    assert tsplib.tour_cost(instance.dist, two_opt(instance, 0)) >= best
    lkh = pytest.importorskip("elkai")
    assert lkh is not None
    tour = get_problem("tsp").solve_reference(instance, "quick")[0]
    assert tsplib.tour_cost(instance.dist, tour) == best


def test_places_for_the_picture(tmp_path):
    tail = ["DISPLAY_DATA_SECTION", "1 0 0", "2 0 1.5", "3 1 0"]
    instance = tsplib.read(tsp_file(tmp_path / "m.tsp", plane(3), tail=tail))
    assert instance.coords.tolist() == [[0, 0], [0, 1.5], [1, 0]]
    assert (instance.dist[0, 1], instance.digest) == (
        plane(3)[0, 1],
        tsplib.read(tsp_file(tmp_path / "n.tsp", plane(3))).digest,
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("FULL_MATRIX", "FUNCTION"), "EDGE_WEIGHT_FORMAT 'FUNCTION' is not supported"),
        (("FULL_MATRIX", "UPPER_ROW"), "has 9 numbers, but UPPER_ROW of 3 nodes has 3"),
        (("0.0 7.0", "0.0 7.0 1"), "has 10 numbers, but FULL_MATRIX of 3 nodes has 9"),
        (("0.0 7.0", "0.0 nan"), "line 6: distance nan is not a finite number"),
        (("0.0 7.0", "0.0 1e999"), "line 6: distance '1e999' is out of range"),
        (("0.0 7.0", "0.0 7_0"), "line 6: distance '7_0' is not a number"),
        (("0.0 7.0", "0.0 -7"), "the distance from 1 to 2 is -7, but no distance may be negative"),
        (("0.0 7.0", "0.0 8"), "line 1: 1 to 2 is 8 and back 7, but TYPE TSP says"),
        (("EDGE_WEIGHT_SECTION", "EDGE_WEIGHT_SECTION\nEOF"), "EDGE_WEIGHT_SECTION is empty"),
        (("EDGE_WEIGHT_FORMAT : FULL_MATRIX\n", ""), "EDGE_WEIGHT_FORMAT is missing"),
    ],
)
def test_bad_matrices_are_one_sentence(tmp_path, change, message):
    dist = np.array([[0.0, 7, 2], [7, 0, 3], [2, 3, 0]])
    path = tsp_file(tmp_path / "m.tsp", dist)
    assert change[0] in path.read_text()
    path.write_text(path.read_text().replace(*change, 1))
    with pytest.raises(InputError, match=message) as caught:
        tsplib.read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_ways_that_differ_by_rounding_only_are_made_equal(tmp_path):
    dist = np.array([[0, 1 / 3, 1], [1 / 3 + 1e-16, 0, 1], [1 + 3e-15, 1, 0]])
    assert dist[0, 2] != dist[2, 0]
    read = tsplib.read(tsp_file(tmp_path / "m.tsp", dist)).dist
    assert (read == read.T).all()


@pytest.mark.long
def test_more_numbers_than_nodes_may_stand_on_lines_of_their_own(tmp_path):
    n = 210  # more lines than a section of nodes may have
    dist = np.ones((n, n)) - np.eye(n)
    path = tmp_path / "m.tsp"
    path.write_text("\n".join([*head("TSP", n, "FULL_MATRIX"), *words(dist, "FULL_MATRIX")]))
    assert (tsplib.read(path).dist == dist).all()


# --- distances ------------------------------------------------------------------------------------

CITIES = [(48.85, 2.35), (45.76, 4.84), (43.3, 5.37), (47.22, -1.55), (50.63, 3.06)]


def cities_file(path, kind="EUC_2D"):
    lines = ["TYPE : TSP", "DIMENSION : 5", f"EDGE_WEIGHT_TYPE : {kind}", "NODE_COORD_SECTION"]
    lines += [f"{k} {x} {y}" for k, (x, y) in enumerate(CITIES, 1)]
    path.write_text("\n".join(lines))
    return path


def test_rounding_that_changes_the_problem_is_reported(tmp_path):
    path = cities_file(tmp_path / "cities.tsp")
    rounded, exact = tsplib.read(path), tsplib.read(path, EXACT)
    pairs = list(itertools.permutations(range(5), 2))
    true = [math.dist(CITIES[i], CITIES[j]) for i, j in pairs]
    assert [exact.dist[at] for at in pairs] == pytest.approx(true, rel=1e-15)
    moved = 100 * sum(abs(int(d + 0.5) - d) for d in true) / sum(true)
    [remark] = remarks_of(rounded)
    assert remark == (
        f"cities: rounding, as EUC_2D says, changes distances by {moved:.1f}% on average: "
        "--distances exact keeps them"
    )
    assert remarks_of(exact) == ()
    assert exact.digest != rounded.digest == tsplib.read(path, Reading("round")).digest
    ceiled = cities_file(tmp_path / "ceiled.tsp", "CEIL_2D")
    assert tsplib.read(path, Reading("ceil")).digest == tsplib.read(ceiled).digest
    assert tsplib.read(ceiled, EXACT).digest == exact.digest


def test_places_in_one_town_cost_nothing_with_a_warning(tmp_path):
    path = tmp_path / "town.tsp"
    text = cities_file(path).read_text()
    for k, (x, y) in enumerate(CITIES, 1):
        text = text.replace(f"{k} {x} {y}", f"{k} 48.85{k} 2.35{k * k % 7}")
    path.write_text(text)
    assert not tsplib.read(path).dist.any()
    assert "changes distances by 100% on average" in remarks_of(tsplib.read(path))[0]
    assert tsplib.read(path, EXACT).dist[0, 1] > 0


def test_short_distances_count_where_the_mean_hides_them(tmp_path):
    """Pairs of places that lie close together, far from each other pair."""
    rng = np.random.default_rng(1)
    centres = rng.uniform(0, 1000, (50, 2))
    places = np.concatenate([centres, centres + 0.4])
    lines = ["TYPE : TSP", "DIMENSION : 100", "EDGE_WEIGHT_TYPE : EUC_2D", "NODE_COORD_SECTION"]
    path = tmp_path / "pairs.tsp"
    path.write_text("\n".join([*lines, *(f"{k} {x} {y}" for k, (x, y) in enumerate(places))]))
    assert "changes short distances by" in remarks_of(tsplib.read(path))[0]


def test_no_benchmark_is_warned_about(spo_data):
    for path in (spo_data / "tsplib").glob("*.tsp"):
        if path.stat().st_size < 20_000:
            assert remarks_of(tsplib.read(path)) == ()
    for path in (spo_data / "cvrplib").glob("[ABP]/*.vrp"):
        assert remarks_of(cvrplib.read(path)) == ()


def test_recorded_costs_are_not_those_of_other_distances(spo_data):
    path = spo_data / "tsplib/berlin52.tsp"
    exact = tsplib.read(path, EXACT)
    assert exact.reference == pytest.approx(7544.3659, abs=1e-4)  # as the literature has it
    assert "recorded optima are for the distances that the file asks for" in exact.reference_source
    assert tsplib.read(path, Reading("round")).reference == 7542
    path = spo_data / "cvrplib/A/A-n32-k5.vrp"
    exact = cvrplib.read(path, EXACT)
    assert exact.reference == pytest.approx(787.81, abs=0.01)
    assert "index.json" not in exact.reference_source


@pytest.mark.parametrize("distances", ["exact", "round", "ceil"])
def test_a_matrix_can_be_rounded(tmp_path, distances):
    dist = np.array([[0, 1.5, 2.25], [1.5, 0, 3], [2.25, 3, 0]])
    read = tsplib.read(tsp_file(tmp_path / "m.tsp", dist), Reading(distances))
    due = {"exact": [1.5, 2.25], "round": [2, 2], "ceil": [2, 3]}[distances]
    assert read.dist[0, 1:].tolist() == due
    assert bool(remarks_of(read)) == (distances != "exact")


def test_unknown_distances_are_refused():
    with pytest.raises(InputError, match="--distances is 'exakt'; it must be one of file, exact"):
        Reading("exakt")


# --- demands and limits ---------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(st.decimals("0.01", 99, places=2), min_size=3, max_size=6), st.integers(0, 9))
def test_fractional_demands_keep_their_proportions(tmp_path_factory, demands, tenths):
    path = tmp_path_factory.mktemp("d") / "d.vrp"
    capacity = Fraction(990 + tenths, 10)
    cvrp_file(path, plane(len(demands) + 1), [0, *demands], float(capacity))
    instance = cvrplib.read(path)
    scale = Fraction(instance.capacity) / capacity
    assert scale.denominator == 1
    assert [Fraction(int(each)) for each in instance.demands[1:]] == [
        scale * Fraction(each) for each in demands
    ]
    remarked = "multiplied by" in " ".join(remarks_of(instance))
    assert remarked == (scale != 1)
    if scale > 1:  # no smaller factor will do
        whole = [capacity, *map(Fraction, demands)]
        for less in range(1, int(scale)):
            assert any((less * each).denominator > 1 for each in whole)


def test_a_capacity_for_a_file_without_one(tmp_path):
    path = cvrp_file(tmp_path / "c.vrp", plane(4), [0, 1, 2, 3], 7)
    with pytest.raises(InputError, match="CAPACITY is '7': --capacity is for files that have none"):
        cvrplib.read(path, Reading(capacity=9))
    stated = cvrplib.read(path)
    path.write_text(path.read_text().replace("CAPACITY : 7\n", ""))
    with pytest.raises(InputError, match="CAPACITY is missing: add it to the file, or give --cap"):
        cvrplib.read(path)
    assert cvrplib.read(path, Reading(capacity=7.0)).digest == stated.digest
    assert cvrplib.read(path, Reading(capacity=7.5)).capacity == 15
    with pytest.raises(InputError, match="exceeds CAPACITY 2"):
        cvrplib.read(path, Reading(capacity=2))


def test_limits_that_cannot_bind_are_accepted(tmp_path):
    plain = cvrplib.read(cvrp_file(tmp_path / "p.vrp", plane(4), [0, 1, 2, 3], 4))
    for limits in (["DISTANCE : 99999"], ["DISTANCE : 0"], ["SERVICE_TIME : 10"],
                   ["DURATION : 9e9", "SERVICE_TIME : 10"]):  # fmt: skip
        path = cvrp_file(tmp_path / "l.vrp", plane(4), [0, 1, 2, 3], 4, *limits)
        assert cvrplib.read(path).digest == plain.digest


@given(st.integers(2, 5), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_no_route_is_longer_than_the_bound(n, seed):
    rng = np.random.default_rng(seed)
    dist, demands = plane(n + 1, seed), np.array([0, *rng.integers(1, 6, n)])
    np.fill_diagonal(dist, 0.0)
    capacity, service = int(rng.integers(5, 15)), rng.integers(0, 50, n + 1)
    longest = 0.0
    for size in range(1, n + 1):
        for route in itertools.permutations(range(1, n + 1), size):
            if demands[list(route)].sum() <= capacity:
                cost = cvrplib.routes_cost(dist, [route]) + service[list(route)].sum()
                longest = max(longest, cost)
    assert longest <= longest_route(dist, demands, capacity, service)

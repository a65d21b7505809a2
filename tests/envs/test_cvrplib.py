"""CVRPLIB reading and writing, against the index of the data and against `vrplib` itself."""

import json
import math
import re
from itertools import pairwise

import numpy as np
import pytest
import vrplib
from hypothesis import given, settings
from hypothesis import strategies as st

from spo_jax.cli import main
from spo_jax.envs.files.reading import Reading
from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.cvrp.files import cvrplib
from spo_jax.envs.problems.tsp.files import tsplib
from spo_jax.errors import InputError

SMALL = """NAME : small
COMMENT : one depot, four customers
TYPE : CVRP
DIMENSION : 5
EDGE_WEIGHT_TYPE : EUC_2D
CAPACITY : 10
NODE_COORD_SECTION
1 0 0
2 0 3
3 4 3
4 4 0
5 -6 -8
DEMAND_SECTION
1 0
2 5
3 5
4 5
5 10
DEPOT_SECTION
1
-1
EOF
"""
SOLUTION = "Route #1: 1 2\nRoute #2: 3\nRoute #3: 4\nCost 40\n"  # 3 + 4 + 5, 4 + 4, 10 + 10


def instance_file(folder, text=SMALL, name="small.vrp"):
    path = folder / name
    path.write_text(text)
    return path


# --- the real files -----------------------------------------------------------------------------


@pytest.mark.long
def test_every_instance_parses_and_every_solution_has_the_recorded_cost(spo_data):
    folder = spo_data / "cvrplib"
    index = json.loads((folder / "index.json").read_text())
    files = sorted(folder.glob("*/*.vrp"))
    assert files
    for path in files:
        entry = index[path.stem]
        instance = cvrplib.read(path)
        assert (instance.size, instance.capacity) == (entry["customers"], entry["capacity"])
        routes = cvrplib.read_solution(path.with_suffix(".sol"), instance)
        served = sorted(customer for route in routes for customer in route)
        assert served == list(range(1, instance.size + 1))
        assert all(instance.demands[route].sum() <= instance.capacity for route in routes)
        cost = 0.0
        for route in routes:
            walk = [0, *route, 0]
            cost += sum(instance.dist[walk[k], walk[k + 1]] for k in range(len(walk) - 1))
        assert cost == entry["sol_cost"]
        assert len(routes) == entry["sol_routes"]
        assert instance.reference == entry["bks"] <= cost
        if entry["bks"] < cost:
            assert instance.reference_source == f"index.json ({path.stem}.sol says {int(cost)})"
        elif "free_fleet_cost_found" in entry:
            note = f"a free fleet reaches {entry['free_fleet_cost_found']}"
            assert instance.reference_source == f"{path.stem}.sol ({note})"
        else:
            assert instance.reference_source == f"{path.stem}.sol"


def test_instances_and_solutions_read_as_vrplib_reads_them(spo_data):
    for path in sorted((spo_data / "cvrplib").glob("*/*.vrp"))[::7]:
        ours, theirs = cvrplib.read(path), vrplib.read_instance(path)
        assert ours.name == theirs["name"]
        assert (ours.coords == theirs["node_coord"]).all()
        assert (ours.demands == theirs["demand"]).all()
        assert ours.demands.dtype == np.int64
        assert ours.capacity == theirs["capacity"]
        assert type(ours.capacity) is int
        assert theirs["depot"].tolist() == [0]
        # Theirs is unrounded and not accurate to the last bit, so halves may fall either way.
        assert np.abs(ours.dist - theirs["edge_weight"]).max() <= 0.5 + 1e-6
        assert (ours.dist == np.rint(ours.dist)).all()
        solution = vrplib.read_solution(path.with_suffix(".sol"))
        assert cvrplib.read_solution(path.with_suffix(".sol"), ours) == solution["routes"]


# --- instances ----------------------------------------------------------------------------------


def test_a_small_instance(tmp_path):
    instance = cvrplib.read(instance_file(tmp_path))
    assert (instance.problem, instance.name, instance.size) == ("cvrp", "small", 4)
    assert instance.dist[0].tolist() == [0, 3, 5, 4, 10]
    assert instance.demands.tolist() == [0, 5, 5, 5, 10]
    assert instance.file["ids"] == [1, 2, 3, 4, 5]
    assert instance.reference is None
    assert instance.reference_source == "no .sol or index.json beside the file"


def test_a_depot_that_is_not_the_first_node_comes_first(tmp_path):
    text = SMALL.replace("\n1 0\n2 5\n", "\n1 5\n2 5\n").replace("\n3 5\n", "\n3 0\n")
    text = text.replace("DEPOT_SECTION\n1\n", "DEPOT_SECTION\n3\n")
    instance = cvrplib.read(instance_file(tmp_path, text))
    assert instance.file["ids"] == [3, 1, 2, 4, 5]
    assert instance.coords.tolist() == [[4, 3], [0, 0], [0, 3], [4, 0], [-6, -8]]
    assert instance.demands.tolist() == [0, 5, 5, 5, 10]
    assert instance.dist[0].tolist() == [0, 5, 4, 3, 15]


def test_rounding_is_to_the_nearest_with_halves_up(tmp_path):
    text = SMALL.replace("2 0 3", "2 0 2.5").replace("4 4 0", "4 3.4 0")
    assert cvrplib.read(instance_file(tmp_path, text)).dist[0, [1, 3]].tolist() == [3, 3]


SIX = """NAME : six
TYPE : CVRP
DIMENSION : 6
EDGE_WEIGHT_TYPE : EUC_2D
CAPACITY : 10
NODE_COORD_SECTION
1 10 10
2 52 13
3 47 61
4 12 58
5 30 35
6 71 40
DEMAND_SECTION
1 0
2 4
3 6
4 5
5 3
6 7
DEPOT_SECTION
1
-1
EOF
"""
LIMITS = [
    "VEHICLES_MAX_DISTANCE",
    "VEHICLES_MAX_DURATION",
    "MAX_DISTANCE",
    "MAX_ROUTE_LENGTH",
    "DISTANCE",
    "DURATION",
    "MAX_DURATION",
    "DISTANCE_LIMIT",
    "MAX_ROUTE_DURATION",
    "ROUTE_LENGTH",
    "VEHICLE_MAX_DISTANCE",
    "ROUTE_DURATION",
    "MAX_TOUR_LENGTH",
    "DURATION_LIMIT",
    "MAXIMUM_DISTANCE",
    "MAXDISTANCE",
    "VEHICLES_SHIFT_DURATION",
]
UNKNOWN_LIMITS = ["TIME_LIMIT", "VEHICLES_MAX_OVERTIME", "VEHICLE_RANGE_MAX", "MAX_TRAVEL_TIME"]


@pytest.mark.parametrize("key", [*LIMITS, *UNKNOWN_LIMITS])
def test_limits_on_routes_are_read_where_they_may_bind(tmp_path, key):
    text = SIX.replace("CAPACITY", f"{key} : 150\nCAPACITY")
    # Of these six nodes a vehicle of 10 loads two at most: 4, 3 and 5 are the smallest demands.
    if key in UNKNOWN_LIMITS:
        says = f"line 5: {key} 150 may bind, as a route can be up to 199"
        with pytest.raises(InputError, match=says):
            cvrplib.read(instance_file(tmp_path, text))
    else:
        alone = key != "DISTANCE" and ("DIST" in key or "LENGTH" in key)
        name = "max_distance" if alone else "max_duration"
        assert cvrplib.read(instance_file(tmp_path, text)).extra == {name: 150.0}
    free = cvrplib.read(instance_file(tmp_path, text.replace("150", "199")))
    assert "remarks" not in free.file
    assert free.digest == cvrplib.read(instance_file(tmp_path, SIX)).digest


OTHERS = ["MAX_STOPS", "MIN_ROUTES", "MIN_VEHICLES", "LIMIT_OF_LOADS", "TIME_WINDOW", "TW", "TMAX"]
OTHERS += [
    "OPEN",
    "OPEN_ROUTES",
    "BACKHAULS",
    "PRECEDENCE",
    "FORBIDDEN",
    "SKILLS",
    "SPLIT",
    "DEPOTS",
]
OTHERS += ["OBJECTIVE", "DEADLINE", "HORIZON", "RANGE", "VEHICLE_CAPACITY", "CAPACITY2"]


@pytest.mark.parametrize("key", OTHERS)
def test_other_bounds_are_refused(tmp_path, key):
    text = SIX.replace("CAPACITY", f"{key} : 2\nCAPACITY")
    with pytest.raises(InputError, match=f"line 5: {key} 2 is a constraint that is not supported"):
        cvrplib.read(instance_file(tmp_path, text))


@pytest.mark.parametrize(
    ("old", "new", "remark"),
    [
        ("CAPACITY", "NUM_VEHICLES : 5\nCAPACITY", None),  # as many as customers
        ("CAPACITY", "VEHICLES_FIXED_COST : 1000\nCAPACITY",
         "VEHICLES_FIXED_COST 1000 is not counted: the cost is the length of the routes"),
        ("CAPACITY", "COLOUR : red\nSPEED : 2\nCAPACITY", "not used: COLOUR, SPEED"),
        ("CAPACITY", "OPEN : no\nOBJECTIVE : MINSUM\nCAPACITY", "not used: OPEN, OBJECTIVE"),
        ("CAPACITY", "DISTANCE : 0\nCAPACITY", "DISTANCE is 0, which is taken as no limit"),
        ("1 0\n2 4", "1 9\n2 4", "the depot's demand of 9 is not counted"),
        ("1 0\n2 4", "2 4", None),  # the depot is not listed
        ("EOF\n", "EOF\n7 1 1\n", "not read: line 24, which follows EOF"),
    ],
)  # fmt: skip
def test_what_says_nothing_here_is_named(tmp_path, old, new, remark):
    assert old in SIX
    instance = cvrplib.read(instance_file(tmp_path, SIX.replace(old, new, 1)))
    assert instance.file.get("remarks", [None]) == [remark]
    assert instance.digest == cvrplib.read(instance_file(tmp_path, SIX)).digest


FLEET = """NAME : fleet2
TYPE : CVRP
DIMENSION : 5
VEHICLES : 2
CAPACITY : 10
EDGE_WEIGHT_TYPE : EUC_2D
NODE_COORD_SECTION
1 50 50
2 10 50
3 12 52
4 90 50
5 88 48
DEMAND_SECTION
1 0
2 6
3 5
4 5
5 4
DEPOT_SECTION
1
-1
EOF
"""


def test_solve_keeps_to_the_fleet_and_counts_routes(tmp_path, monkeypatch, capsys):
    """Two vehicles take 312, as PyVRP finds; three take 237."""
    monkeypatch.chdir(tmp_path)
    instance_file(tmp_path, FLEET, "fleet2.vrp")
    given = ["--steps", "40", "--workers", "1", "--json", "f.json"]
    assert main(["solve", "fleet2.vrp", *given]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("fleet2: cost 312 in 2 routes, gap")
    record = json.loads((tmp_path / "f.json").read_text())
    assert len(record["walks"]) == 2
    assert main(["solve", "fleet2.vrp", *given, "--vehicles", "3", "--force"]) == 0
    assert capsys.readouterr().out.startswith("fleet2: cost 237 in 3 routes, gap")
    assert main(["solve", "fleet2.vrp", *given, "--vehicles", "1"]) == 2
    says = "there is no solution: the demands fill 2 vehicles, more than --vehicles 1"
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("key", ["VEHICLES", "NUM_VEHICLES", "SALESMEN", "FLEET_SIZE"])
def test_the_number_of_vehicles(tmp_path, key):
    text = SIX.replace("CAPACITY", f"{key} : 4\nCAPACITY")
    assert cvrplib.read(instance_file(tmp_path, text)).extra == {"max_vehicles": 4}
    asked = cvrplib.read(instance_file(tmp_path, text), Reading(vehicles=3))
    assert asked.extra == {"max_vehicles": 3}
    for few, says in (
        (2, f"the demands fill 3 vehicles, more than {key} 2"),
        (0, f"{key} must be positive, not 0"),
    ):
        with pytest.raises(InputError, match=f"line 5: .*{says}"):
            cvrplib.read(instance_file(tmp_path, text.replace(f"{key} : 4", f"{key} : {few}")))


@pytest.mark.parametrize(
    ("kind", "way"),
    [("EXACT_2D", math.hypot(42, 3)), ("FLOOR_2D", 42), ("CEIL_2D", 43), ("MAN_2D", 45),
     ("MAX_2D", 42)],
)  # fmt: skip
def test_other_distances(tmp_path, kind, way):
    instance = cvrplib.read(instance_file(tmp_path, SIX.replace("EUC_2D", kind)))
    assert instance.dist[0, 1] == pytest.approx(way, rel=1e-15)
    exact = cvrplib.read(instance_file(tmp_path, SIX), Reading("exact"))
    assert (instance.digest == exact.digest) == (kind == "EXACT_2D")


def test_time_windows_name_the_format_that_has_them(tmp_path):
    says = r"\(the VRP with time windows: --problem vrptw\)"
    for old, new in [("CVRP\n", "CVRPTW\n"), ("EOF", "TIME_WINDOW_SECTION\n1 0 9\nEOF")]:
        with pytest.raises(InputError, match=says):
            cvrplib.read(instance_file(tmp_path, SIX.replace(old, new, 1)))


def test_a_stop_without_demand(tmp_path):
    instance = cvrplib.read(instance_file(tmp_path, SIX.replace("\n5 3\n", "\n5 0\n")))
    assert instance.demands.tolist() == [0, 4, 6, 5, 0, 7]
    cvrplib.check_routes(instance, [[1, 4, 2], [3], [5]])  # 4 + 0 + 6 fill a vehicle
    limit = SIX.replace("\n5 3\n", "\n5 0\n").replace("CAPACITY", "DISTANCE : 199\nCAPACITY")
    bound = cvrplib.read(instance_file(tmp_path, limit))
    assert bound.extra == {"max_duration": 199.0}  # it adds a stop to each route


@pytest.mark.parametrize(
    ("capacity", "demands", "scaled"),
    [
        ("10", ["3.3333333333333335"] * 3, ([10, 10, 10], 30)),
        ("0.9", [repr(0.1 + 0.2)] * 3, ([3, 3, 3], 9)),
        ("0.9", [repr(0.9 - 0.6), "0.3", repr(0.1 * 3)], ([3, 3, 3], 9)),
        ("2", ["0.666666666666667", "0.66666666666667", "0.6666666666666666"], None),
        ("2", ["0.666666666666667"] * 3, ([2, 2, 2], 6)),  # 15 digits, as spreadsheets write them
        (repr(0.7 + 0.1), ["0.7999999999999999", "0.5", "0.3"], ([8, 5, 3], 8)),
        ("1", ["0.5", repr(1 / 7), repr(5 / 14)], ([7, 2, 5], 14)),
        ("10", ["5", "1e-99", "5.0000000000001"], None),
        ("12.34567890123456", ["5.7891234567891234", "6.555555444445437", "1"], None),
    ],
)
def test_loads_that_fill_a_vehicle_fit(tmp_path, capacity, demands, scaled):
    """Sums of floats, and quotients: their exact values are others than what they stand for."""
    text = SIX.replace("DIMENSION : 6", "DIMENSION : 4").replace("5 30 35\n6 71 40\n", "")
    head, _ = text.replace("CAPACITY : 10", f"CAPACITY : {capacity}").split("1 0\n")
    rows = "".join(f"{k} {word}\n" for k, word in enumerate(demands, 2))
    instance = cvrplib.read(instance_file(tmp_path, f"{head}{rows}DEPOT_SECTION\n1\n-1\n"))
    if scaled:
        assert (instance.demands[1:].tolist(), instance.capacity) == scaled
        if sum(scaled[0]) <= scaled[1]:
            cvrplib.check_routes(instance, [[1, 2, 3]])
        return
    cvrplib.check_routes(instance, [[1, 2], [3]])
    assert "are cut to 1" in " ".join(instance.file["remarks"])
    share = instance.demands[1:] / instance.capacity
    assert share == pytest.approx([float(word) / float(capacity) for word in demands], abs=1e-11)


def test_lawful_variations(tmp_path):
    text = SMALL.replace("CAPACITY : 10", "VEHICLES : 3\nSERVICE_TIME : 0\nCAPACITY:10.0")
    text = text.replace("DEMAND_SECTION\n1 0\n2 5\n", "DEMAND_SECTION\n2 5\n1 0\n")
    text = text.replace("3 4 3", "3 0 3").replace("1\n-1\nEOF\n", "  1  -1")
    instance = cvrplib.read(instance_file(tmp_path, text))
    assert instance.capacity == 10
    assert instance.dist[1, 2] == 0
    assert instance.demands.tolist() == [0, 5, 5, 5, 10]


blank = st.sampled_from(["", " ", "\t", "  \t "])
gap = st.sampled_from([" ", "\t", "   "])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_white_space_does_not_matter(tmp_path_factory, data):
    draw = data.draw
    lines = []
    for line in SMALL.splitlines():
        line = re.sub(r" : ", lambda _: f"{draw(blank)}:{draw(blank)}", line)
        if ":" not in line:
            line = re.sub(r" ", lambda _: draw(gap), line)
        lines += [draw(blank) + line + draw(blank), *[""] * draw(st.integers(0, 1))]
    if draw(st.booleans()):
        lines = [line for line in lines if line.strip() != "EOF"]
    text = draw(st.sampled_from(["\n", "\r\n"])).join(lines)
    folder = tmp_path_factory.mktemp("t")
    spaced = cvrplib.read(instance_file(folder, text))
    assert spaced.digest == cvrplib.read(instance_file(folder, SMALL, "plain.vrp")).digest
    assert spaced.name == "small"


BAD = {
    "type": ("TYPE : CVRP", "TYPE : VRPTW", "line 3: TYPE is 'VRPTW'"),
    "tsp": ("TYPE : CVRP", "TYPE : TSP", "expected CVRP"),
    "weights": ("EUC_2D", "FUNCTION", "line 5: EDGE_WEIGHT_TYPE 'FUNCTION' is not supported"),
    "no format": ("EUC_2D", "EXPLICIT", "EDGE_WEIGHT_FORMAT is missing"),
    "length": (
        "CAPACITY",
        "MAX_DISTANCE : 19\nSERVICE_TIME : 10\nCAPACITY",
        "line 6: there is no solution: node 5 cannot be served within MAX_DISTANCE 19, as a route "
        "to it alone takes 20",
    ),
    "service": (
        "CAPACITY",
        "SERVICE_TIME : 10\nDISTANCE : 29\nCAPACITY",
        "line 7: there is no solution: node 5 .* DISTANCE 29, as a route to it alone takes 30",
    ),
    "service by node": (
        "DEMAND_SECTION",
        "DISTANCE : 21\nSERVICE_TIME_SECTION\n5 2\nDEMAND_SECTION",
        "node 5 cannot be served within DISTANCE 21, as a route to it alone takes 22",
    ),
    "negative limit": ("CAPACITY", "DISTANCE : -1\nCAPACITY", "DISTANCE must not be negative"),
    "worded limit": ("CAPACITY", "DISTANCE : far\nCAPACITY", "line 6: DISTANCE 'far' is not a num"),
    "negative service": ("CAPACITY", "SERVICE_TIME : -1\nCAPACITY", "must not be negative"),
    "backhauls": ("EOF", "BACKHAUL_SECTION\n1\nEOF", r"not supported \(the VRP with backhauls\)"),
    "windows": ("EOF", "TIME_WINDOW_SECTION\n1 0 9\nEOF", "TIME_WINDOW_SECTION is not supported"),
    "no capacity": ("CAPACITY : 10\n", "", "CAPACITY is missing"),
    "zero capacity": ("CAPACITY : 10", "CAPACITY : 0", "line 6: CAPACITY must be positive"),
    "negative capacity": ("CAPACITY : 10", "CAPACITY : -3", "CAPACITY must be positive"),
    "worded capacity": (
        "CAPACITY : 10",
        "CAPACITY : ten",
        "line 6: CAPACITY 'ten' is not a number",
    ),
    "huge capacity": ("CAPACITY : 10", "CAPACITY : 1e15", "1e12 at most"),
    "nan capacity": ("CAPACITY : 10", "CAPACITY : nan", "CAPACITY nan is not a finite number"),
    "no dimension": ("DIMENSION : 5\n", "", "DIMENSION is missing"),
    "dimension": ("DIMENSION : 5", "DIMENSION : 6", "DIMENSION is 6, but .* 5 nodes"),
    "few": ("DIMENSION : 5", "DIMENSION : 1", "at least 2 nodes"),
    "absurd": ("DIMENSION : 5", "DIMENSION : 20001", "GB of memory"),
    "nan": ("3 4 3", "3 4 NaN", "line 10: coordinate NaN is not a finite number"),
    "repeated id": ("3 4 3", "2 4 3", "line 10: node id 2 was already used in line 9"),
    "no nodes": ("NODE_COORD_SECTION", "DISPLAY_DATA_SECTION", "NODE_COORD_SECTION is missing"),
    "no demands": ("DEMAND_SECTION", "DISPLAY_DATA_SECTION", "DEMAND_SECTION is missing"),
    "no depot section": ("DEPOT_SECTION", "DISPLAY_DATA_SECTION", "DEPOT_SECTION is missing"),
    "missing demand": ("\n3 5\n", "\n", "DEMAND_SECTION has no demand for node 3"),
    "second demand": ("\n3 5\n", "\n2 5\n", "line 16: a second demand for node 2"),
    "stray demand": ("\n3 5\n", "\n9 5\n", "line 16: demand for node 9"),
    "negative demand": ("\n3 5\n", "\n3 -5\n", "line 16: .* must not be negative, but is -5"),
    "large demand": ("\n3 5\n", "\n3 11\n", "line 16: the demand 11 .* exceeds CAPACITY 10"),
    "worded demand": ("\n3 5\n", "\n3 few\n", "line 16: demand 'few' is not a number"),
    "half demand": ("\n3 5\n", "\n3 10.5\n", "the demand 10.5 of node 3 exceeds CAPACITY 10"),
    "bare demand": ("\n3 5\n", "\n3\n", "line 16: expected 'id demand'"),
    "depots": ("\n1\n-1", "\n1\n-1\n2", "line 22: DEPOT_SECTION goes on with 2 after -1"),
    "two depots": ("\n1\n-1", "\n1\n2\n-1", r"line 21: 2 depots are not supported.*\(MDVRP\)"),
    "no depot": ("\n1\n-1", "\n-1", "DEPOT_SECTION names no depot"),
    "strange depot": ("\n1\n-1", "\n8\n-1", "line 20: depot 8 is not a node"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_content_is_one_sentence(tmp_path, case):
    old, new, message = BAD[case]
    assert old in SMALL
    path = instance_file(tmp_path, SMALL.replace(old, new, 1))
    with pytest.raises(InputError, match=message) as caught:
        cvrplib.read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_files(tmp_path):
    (tmp_path / "binary.vrp").write_bytes(b"\x00\x01\x02")
    (tmp_path / "empty.vrp").touch()
    for path, message in {
        tmp_path / "absent.vrp": "does not exist",
        tmp_path: "is a folder",
        tmp_path / "binary.vrp": "not a text file",
        tmp_path / "empty.vrp": "is empty",
    }.items():
        with pytest.raises(InputError, match=message):
            cvrplib.read(path)


# --- references ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("solution", "index", "reference", "source"),
    [
        (SOLUTION, None, 40, "small.sol"),
        (SOLUTION, {"bks": 40}, 40, "small.sol"),
        (SOLUTION, {"bks": 39}, 39, "index.json (small.sol says 40)"),
        (SOLUTION, {"bks": 41}, 40, "small.sol (index.json says 41)"),
        (SOLUTION.replace("40", "38"), None, 40, "small.sol (its Cost line says 38)"),
        (SOLUTION.replace("Cost 40\n", ""), None, 40, "small.sol"),
        (SOLUTION.replace("Cost", "Cost :"), None, 40, "small.sol"),
        (None, {"bks": 40}, 40, "index.json"),
        (None, {"bks": None}, None, "index.json records no cost for it"),
        (SOLUTION, {}, 40, "small.sol"),
        (SOLUTION.replace("1 2", "1"), {"bks": 40}, 40, "customer 2 is not visited"),
        (SOLUTION.replace("1 2", "1"), None, None, "unusable"),
        (SOLUTION.replace("1 2", "one"), None, None, "not a CVRPLIB solution"),
    ],
)
def test_where_a_reference_comes_from(tmp_path, solution, index, reference, source):
    folder = tmp_path / "set"
    folder.mkdir()
    if solution:
        instance_file(folder, solution, "small.sol")
    if index is not None:
        (tmp_path / "index.json").write_text(json.dumps({"small": index}))
    instance = cvrplib.read(instance_file(folder))
    assert instance.reference == reference
    assert source in instance.reference_source


# --- solutions ----------------------------------------------------------------------------------


def test_solutions_round_trip_and_vrplib_reads_them(tmp_path):
    instance = cvrplib.read(instance_file(tmp_path))
    routes = [[1, 2], [], np.array([3]), (4,)]
    cvrplib.write_solution(tmp_path / "out.sol", instance, routes)
    assert (tmp_path / "out.sol").read_text() == SOLUTION
    assert cvrplib.read_solution(tmp_path / "out.sol", instance) == [[1, 2], [3], [4]]
    theirs = vrplib.read_solution(tmp_path / "out.sol")
    assert theirs == {"routes": [[1, 2], [3], [4]], "cost": 40}


def test_a_solution_of_an_unrounded_instance(tmp_path):
    coords = np.array([[0.5, 0.5], [0.1, 0.2], [0.9, 0.3]])
    demands = np.array([0, 1, 2])
    instance = Instance("cvrp", "u", 2, coords, tsplib.euclidean(coords), demands, 3)
    cvrplib.write_solution(tmp_path / "u.sol", instance, [[2, 1]])
    expected = sum(np.hypot(*(coords[a] - coords[b])) for a, b in [(0, 2), (2, 1), (1, 0)])
    assert vrplib.read_solution(tmp_path / "u.sol")["cost"] == pytest.approx(expected, rel=1e-15)


SPELLINGS = {
    "a remark": "# best known\nRoute #1: 2 1 # 153\nRoute #2: 5 4\nRoute #3: 3\nCost 390\n",
    "the depot": "Route #1: 0 2 1 0\nRoute #2: 0 5 4 0\nRoute #3: 0 3 0\nCost 390\n",
    "small": "route #1 : 2 1\nroute #2 : 5 4\nroute #3 : 3\ncost 390\n",
    "tabs": "Route #1:\t2\t1\nRoute #2:\t5\t4\nRoute #3:\t3\nCost\t390\n",
    "no number sign": "Route 1: 2 1\r\nRoute 2: 5 4\r\nRoute 3: 3\r\nCost: 390.0\r\n",
    "SINTEF": "Instance name : six\nAuthors : A, B\nDate : 1.1.2020\nReference : R 2\nSolution\n"
    "Route 1 : 2 1\nRoute 2 : 5 4\nRoute 3 : 3\n",
    "an empty route": "ROUTE #1: 2 1\nRoute #2:\nRoute #3: 5 4\nRoute #4: 3\nCOST = 390 # found\n",
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_solutions_as_programs_spell_them(tmp_path, name):
    instance_file(tmp_path, SPELLINGS[name], "six.sol")
    instance = cvrplib.read(instance_file(tmp_path, SIX, "six.vrp"))
    routes = cvrplib.read_solution(tmp_path / "six.sol", instance)
    assert routes == [[2, 1], [5, 4], [3]]
    assert (instance.reference, instance.reference_source) == (390, "six.sol")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<html><body>404 Not Found</body></html>\n", "there is no line 'Route #k: ...'"),
        ("Cost 390\n", "there is no line 'Route #k: ...'"),
        (
            "Route #1: 2 1\nRoute #2: 5 4\nRoute #3: 3\nGap 0.1\n",
            "line 4: expected 'Route #k: ...'",
        ),
        ("Route #1: 2 1\n5 4\nRoute #3: 3\n", "line 2: expected 'Route #k: ...' or 'Cost ...', n"),
        ("Route #1: 2 1\nRoute #2: 5 4 x\nRoute #3: 3\n", "line 2: 'x' is no customer"),
        ("Route #1: 2 1\nRoute #2: 5 4.5\nRoute #3: 3\n", "line 2: '4.5' is no customer"),
        ("Route #1: 2 1\nRoute #2: 5 4\nRoute #3: 3\nCost 390\nCost 1\n", "line 5: a second cost"),
        ("Route #1: 2 1\nRoute #2: 5 4\nRoute #3: 3\nCost few\n", "line 4: expected "),
        ("Route #1: 0 2 1\nRoute #2: 5 4\nRoute #3: 3\n", "there is no customer 0"),
        ("Route #1: 0 2 0 1 0\nRoute #2: 5 4\nRoute #3: 3\n", "there is no customer 0"),
    ],
)
def test_bad_solutions_are_one_sentence(tmp_path, text, message):
    instance_file(tmp_path, text, "six.sol")
    instance = cvrplib.read(instance_file(tmp_path, SIX, "six.vrp"))
    assert message in instance.reference_source
    assert instance.reference is None
    with pytest.raises(InputError) as caught:
        cvrplib.read_solution(tmp_path / "six.sol", instance)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_cost_without_rounding_is_reported(tmp_path):
    """As the sets tai, CMT, Golden and Li have them: EUC_2D, and unrounded costs."""
    walk = [
        (10, 10),
        (47, 61),
        (52, 13),
        (10, 10),
        (71, 40),
        (30, 35),
        (10, 10),
        (12, 58),
        (10, 10),
    ]
    exact = sum(math.dist(a, b) for a, b in pairwise(walk))
    path = instance_file(tmp_path, SIX, "six.vrp")
    for cost, hint in [
        (f"{exact:.2f}", True),
        (f"{exact:.7f}", True),
        (f"{exact + 0.02:.2f}", False),
    ]:
        instance_file(tmp_path, SPELLINGS["small"].replace("390", cost), "six.sol")
        source = cvrplib.read(path).reference_source
        holds = ", which holds with --distances exact" if hint else ""
        assert source == f"six.sol (its Cost line says {cost}{holds})"
    (tmp_path / "index.json").write_text(json.dumps({"six": {"bks": round(exact, 2)}}))
    instance = cvrplib.read(path)
    assert instance.reference == 390  # the recorded cost is of other distances
    assert "which no sum of whole distances is: --distances exact" in instance.reference_source


@pytest.mark.parametrize(
    ("routes", "message"),
    [
        ([[1, 2], [3]], "customer 4 is not visited"),
        ([[1, 2], [3], [4], [1]], "customer 1 is visited twice"),
        ([[1, 2, 3], [4]], "route 1 carries 15, more than the capacity 10"),
        ([[1, 2], [3], [4, 0]], "there is no customer 0"),
        ([[1, 2], [3], [5]], "there is no customer 5"),
        ([[1, 2], [3], [-1]], "there is no customer -1"),
        ([], "customer 1 is not visited"),
    ],
)
def test_infeasible_solutions_are_neither_written_nor_read(tmp_path, routes, message):
    instance = cvrplib.read(instance_file(tmp_path))
    with pytest.raises(InputError, match=message):
        cvrplib.write_solution(tmp_path / "bad.sol", instance, routes)
    assert not (tmp_path / "bad.sol").exists()
    vrplib.write_solution(tmp_path / "bad.sol", routes, {"Cost": 1})
    with pytest.raises(InputError, match=message if routes else "no line 'Route #k: ...'"):
        cvrplib.read_solution(tmp_path / "bad.sol", instance)


def test_a_tsp_instance_has_no_routes(tmp_path):
    coords = np.zeros((3, 2))
    instance = Instance("tsp", "t", 3, coords, tsplib.euclidean(coords))
    with pytest.raises(InputError, match="no CVRP instance"):
        cvrplib.write_solution(tmp_path / "t.sol", instance, [[1], [2]])


def test_customers_count_by_ids_whatever_the_order_of_their_lines(tmp_path):
    """As LKH reads such a file, and as the .sol of it counts them: customer k is node k + 1."""
    rows = ["1 0 0", "2 100 0", "3 100 100", "4 0 100", "5 50 200"]
    text = (
        "TYPE : CVRP\nDIMENSION : 5\nEDGE_WEIGHT_TYPE : EUC_2D\nCAPACITY : 10\nNODE_COORD_SECTION\n"
        "ROWS\nDEMAND_SECTION\n1 0\n2 5\n3 5\n4 5\n5 5\nDEPOT_SECTION\n1\n-1\nEOF\n"
    )
    costs = set()
    for order in (rows, [rows[0], rows[1], rows[3], rows[2], rows[4]], rows[::-1]):
        path = instance_file(tmp_path, text.replace("ROWS", "\n".join(order)))
        path.with_suffix(".sol").write_text("Route #1: 1 2\nRoute #2: 3 4\nCost 759\n")
        instance = cvrplib.read(path)
        assert instance.file["ids"] == [1, 2, 3, 4, 5]
        costs.add((instance.digest, instance.reference, instance.reference_source))
    assert len(costs) == 1
    assert costs.pop()[1] == 759

"""TSPLIB reading and writing, against recorded optima and scalar formulas written out here."""

import json
import math
import os
import stat
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spo_jax.envs.files import textfiles
from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.tsp.files import tsplib
from spo_jax.envs.problems.tsp.files.weights import weights
from spo_jax.errors import InputError

SQUARE = """NAME : square
COMMENT : four corners
TYPE : TSP
DIMENSION : 4
EDGE_WEIGHT_TYPE : EUC_2D
NODE_COORD_SECTION
1 0 0
2 10 0
3 10 10
4 0 10
EOF
"""


def instance_file(folder, text=SQUARE, name="square.tsp"):
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# --- the real files -----------------------------------------------------------------------------


@pytest.mark.long
def test_every_instance_parses_and_every_tour_has_the_recorded_length(spo_data):
    folder = spo_data / "tsplib"
    optima = json.loads((folder / "solutions.json").read_text())
    index = json.loads((folder / "index.json").read_text())
    files = sorted(folder.glob("*.tsp"))
    assert files
    for path in files:
        instance = tsplib.read(path)
        entry = index[path.stem]
        assert instance.size == entry["n"]
        assert instance.file["edge_weight_type"] == entry["edge_weight_type"]
        assert instance.reference == optima[path.stem] == entry["optimum"]
        off_diagonal = instance.dist[~np.eye(instance.size, dtype=bool)]
        assert (np.diagonal(instance.dist) == 0).all()
        assert (off_diagonal == np.rint(off_diagonal)).all()
        assert (instance.dist == instance.dist.T).all()
        tour_file = path.with_name(path.stem + ".opt.tour")
        if tour_file.exists():
            tour = tsplib.read_tour(tour_file, instance)
            length = sum(instance.dist[a, b] for a, b in pairwise([*tour, tour[0]]))
            assert length == optima[path.stem]
            assert instance.reference_source == tour_file.name
        else:
            assert instance.reference_source == "solutions.json"


# --- edge weights -------------------------------------------------------------------------------


def scalar_weight(kind, a, b):
    """The formulas of the TSPLIB report, of LKH and of Concorde for one pair, in plain Python."""
    gaps = [abs(x - y) for x, y in zip(a, b, strict=True)]
    # Not by `sum`, which rounds its result once from Python 3.12 on.
    straight = math.sqrt(reduce(add, [gap * gap for gap in gaps]))
    if kind[:-3] in ("EUC", "CEIL", "FLOOR", "EXACT"):
        rounding = {"EUC": lambda x: int(x + 0.5), "CEIL": math.ceil, "FLOOR": math.floor}
        return rounding.get(kind[:-3], float)(straight)
    if kind[:-3] == "MAN":
        return int(reduce(add, gaps) + 0.5)
    if kind[:-3] == "MAX":
        return max(int(gap + 0.5) for gap in gaps)
    if kind == "GEOM":
        (lat1, lon1), (lat2, lon2) = (tuple(math.pi * x / 180 for x in p) for p in (a, b))
        q1 = math.cos(lat2) * math.sin(lon1 - lon2)
        q3, q4 = math.sin((lon1 - lon2) / 2), math.cos((lon1 - lon2) / 2)
        q2 = math.sin(lat1 + lat2) * q3 * q3 - math.sin(lat1 - lat2) * q4 * q4
        q5 = math.cos(lat1 - lat2) * q4 * q4 - math.cos(lat1 + lat2) * q3 * q3
        return int(6378388.0 * math.atan2(math.sqrt(q1 * q1 + q2 * q2), q5) + 1.0)
    dx, dy = gaps
    if kind == "ATT":
        exact = math.sqrt((dx * dx + dy * dy) / 10)
        near = int(exact + 0.5)
        return near + 1 if near < exact else near

    def radians(x):
        whole = int(x)
        return 3.141592 * (whole + 5.0 * (x - whole) / 3.0) / 180.0

    (lat1, lon1), (lat2, lon2) = (tuple(map(radians, p)) for p in (a, b))
    q1, q2, q3 = math.cos(lon1 - lon2), math.cos(lat1 - lat2), math.cos(lat1 + lat2)
    angle = math.acos(min(1.0, 0.5 * ((1 + q1) * q2 - (1 - q1) * q3)))
    return int(6378.388 * angle + 1.0)


@pytest.mark.parametrize("kind", tsplib.EDGE_WEIGHT_TYPES)
def test_weights_equal_the_scalar_formulas(kind):
    rng = np.random.default_rng(3)
    axes = 3 if kind.endswith("_3D") else 2
    coords = np.round(rng.uniform(-90, 90, (40, axes)), 2) * (1 if "GEO" in kind else 10)
    coords[7] = coords[3]
    dist = tsplib.distance_matrix(coords, kind)
    points = coords.tolist()
    for i, a in enumerate(points):
        for j, b in enumerate(points):
            assert dist[i, j] == (0 if i == j else scalar_weight(kind, a, b))
    assert (dist == dist.T).all()


def test_known_weights():
    assert tsplib.distance_matrix(np.array([[0, 0], [3, 4.0]]), "EUC_2D")[0, 1] == 5
    half = np.array([[0.0, 0.0], [2.5, 0.0]])
    assert tsplib.distance_matrix(half, "EUC_2D")[0, 1] == 3  # half goes up, not to even
    assert tsplib.distance_matrix(np.array([[0.0, 0], [2.1, 0]]), "CEIL_2D")[0, 1] == 3
    assert (
        tsplib.distance_matrix(np.array([[0.0, 0], [10, 0]]), "ATT")[0, 1] == 4
    )  # 3.162 -> 3 -> 4
    same = np.array([[16.47, 96.10], [16.47, 96.10]])
    assert tsplib.distance_matrix(same, "GEO").tolist() == [[0, 1], [1, 0]]
    pole = np.array([[90.0, 0], [-90, 0], [0, 0], [0, 180]])  # a half, and a quarter of a circle
    assert tsplib.distance_matrix(pole, "GEOM")[0, [1, 2]].tolist() == [20038297, 10019149]
    assert tsplib.distance_matrix(pole, "GEOM")[2, 3] == int(math.pi * 6378388) + 1
    solid = np.array([[0.0, 0, 0], [1, 2, 2]])
    assert tsplib.distance_matrix(solid, "EUC_3D")[0, 1] == 3
    assert tsplib.degrees(np.array([-10.30, 10.30])).tolist() == pytest.approx([-10.5, 10.5])


@given(st.lists(st.tuples(*[st.floats(-1e6, 1e6)] * 2), min_size=1, max_size=12))
def test_euclidean_is_symmetric_and_exact(points):
    coords = np.array(points)
    dist = tsplib.euclidean(coords)
    assert dist.dtype == np.float64
    assert (dist == dist.T).all()
    assert (np.diagonal(dist) == 0).all()
    for i, a in enumerate(points):
        for j, b in enumerate(points):
            assert dist[i, j] == pytest.approx(math.dist(a, b), rel=1e-15, abs=1e-150)


def test_blocks_of_rows_join_seamlessly():
    coords = np.random.default_rng(0).random((1500, 2))  # several blocks
    dist = tsplib.euclidean(coords)
    for i, j in [(0, 1499), (173, 174), (175, 1), (1499, 1498), (700, 700)]:
        assert dist[i, j] == pytest.approx(math.dist(coords[i], coords[j]), rel=1e-15)


@pytest.mark.parametrize(
    ("kind", "distances", "rounded"),
    [("EXACT_2D", "exact", True), ("EXACT_2D", "round", False), ("FLOOR_2D", "round", False),
     ("MAN_2D", "round", True), ("EUC_2D", "exact", False), ("GEOM", "exact", False)],
)  # fmt: skip
def test_recorded_costs_hold_where_the_option_says_what_the_file_says(kind, distances, rounded):
    coords = np.random.default_rng(0).uniform(0, 60, (9, 2))
    found = weights(coords, kind, distances)
    assert found.as_stated == rounded
    assert (found.dist == tsplib.distance_matrix(coords, kind)).all() == rounded


SOLID = """NAME : solid
TYPE : TSP
DIMENSION : 3
EDGE_WEIGHT_TYPE : EUC_3D
NODE_COORD_TYPE : THREED_COORDS
NODE_COORD_SECTION
1 0 0 0
2 1 2 2
3 0 0 9
EOF
"""


def test_three_dimensions(tmp_path):
    instance = tsplib.read(instance_file(tmp_path, SOLID))
    assert instance.dist.tolist() == [[0, 3, 9], [3, 0, 7], [9, 7, 0]]  # the root of 54 is 7.35
    assert instance.coords.tolist() == [[0, 0], [1, 2], [0, 0]]  # for pictures
    flat = instance_file(tmp_path, SOLID.replace("3D", "2D", 1))
    with pytest.raises(InputError, match="line 7: expected 'id x y', not '1 0 0 0'"):
        tsplib.read(flat)
    with pytest.raises(InputError, match="line 7: expected 'id x y z', not '1 0 0'"):
        tsplib.read(instance_file(tmp_path, SQUARE.replace("EUC_2D", "MAN_3D")))


def test_two_nodes_are_a_tour(tmp_path):
    text = SQUARE.replace("DIMENSION : 4", "DIMENSION : 2").replace("3 10 10\n4 0 10\n", "")
    instance = tsplib.read(instance_file(tmp_path, text))
    assert (instance.size, tsplib.tour_cost(instance.dist, [0, 1])) == (2, 20)


# --- what nobody reads is refused or named --------------------------------------------------------


def geographic(kind, *places):
    rows = "".join(f"{k} {lat} {lon}\n" for k, (lat, lon) in enumerate(places, 1))
    head = SQUARE.split("1 0 0")[0].replace("EUC_2D", kind)
    return head.replace("DIMENSION : 4", f"DIMENSION : {len(places)}") + rows


def test_decimal_degrees_in_a_file_of_degrees_and_minutes_are_reported(tmp_path):
    places = [(40.62, 13.11), (-33.75, -70.95), (-0.30, -0.30), (59.99, -179.59), (-59.59, 179.59)]
    instance = tsplib.read(instance_file(tmp_path, geographic("GEO", *places)))
    [remark] = instance.file["remarks"]
    assert remark.startswith("40.62 has minutes above 59: GEO reads degrees and minutes")
    decimal = tsplib.read(instance_file(tmp_path, geographic("GEOM", *places)))
    assert "remarks" not in decimal.file
    assert decimal.file["degrees"].tolist() == [[lon, lat] for lat, lon in places]


@pytest.mark.parametrize(
    ("old", "new", "remark"),
    [
        ("COMMENT", "GRID_SIZE : 100\nSCALE : 1000\nCOMMENT", "not used: GRID_SIZE, SCALE"),
        ("COMMENT", "CAPACITY : 5\nCOMMENT", "not used: CAPACITY"),
        ("EOF\n", "EOF\n\n5 5 5\n6 6 6\n", "not read: line 13, which follows EOF"),
        ("COMMENT", "SALESMEN : 1\nDISPLAY_DATA_TYPE : NO_DISPLAY\nCOMMENT", None),
        ("EOF", "DISPLAY_DATA_SECTION\n1 0 0\nEOF", "not used: DISPLAY_DATA_SECTION"),
    ],
)
def test_what_a_file_has_besides_is_named(tmp_path, old, new, remark):
    plain = tsplib.read(instance_file(tmp_path))
    instance = tsplib.read(instance_file(tmp_path, SQUARE.replace(old, new, 1)))
    assert instance.dist.tolist() == plain.dist.tolist()
    assert instance.file.get("remarks") == (remark and [remark])


# --- the parser's tolerance ---------------------------------------------------------------------

blank = st.sampled_from(["", " ", "\t", "  \t "])
gap = st.sampled_from([" ", "\t", "   "])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_white_space_does_not_matter(tmp_path_factory, data):
    draw = data.draw
    coords = draw(
        st.lists(st.tuples(*[st.floats(-1e5, 1e5, allow_nan=False)] * 2), min_size=3, max_size=6)
    )
    ids = draw(
        st.lists(st.integers(0, 999), min_size=len(coords), max_size=len(coords), unique=True)
    )
    number = st.sampled_from([repr, "{:.17e}".format, "{:+.17E}".format])
    lines = [
        f"{draw(blank)}{key}{draw(blank)}:{draw(blank)}{value}{draw(blank)}"
        for key, value in [
            ("NAME", "x"),
            ("TYPE", "TSP"),
            ("DIMENSION", len(ids)),
            ("EDGE_WEIGHT_TYPE", "CEIL_2D"),
        ]
    ]
    lines.append(draw(blank) + "NODE_COORD_SECTION" + draw(st.sampled_from(["", " ", ":", " : "])))
    for node, (x, y) in zip(ids, coords, strict=True):
        words = [str(node), draw(number)(x), draw(number)(y)]
        lines.append(draw(blank) + draw(gap).join(words) + draw(blank))
        lines += [""] * draw(st.integers(0, 1))
    lines += draw(st.sampled_from([[], ["EOF"], ["EOF", "left over"], ["", ""]]))
    text = draw(st.sampled_from(["\n", "\r\n"])).join(lines)
    instance = tsplib.read(instance_file(tmp_path_factory.mktemp("t"), text))
    assert instance.coords.tolist() == [list(point) for point in coords]
    assert instance.file["ids"] == ids
    assert (instance.name, instance.size) == ("x", len(ids))


def test_old_files(tmp_path):
    text = SQUARE.replace("NAME : square", "NAME: square.tsp").replace("EOF\n", "")
    text = text.replace("four corners", "vier Ecken, J\u00fcnger : 1\nCOMMENT : second line")
    instance = tsplib.read(instance_file(tmp_path, text.encode("latin-1")))
    assert instance.name == "square"
    assert tsplib.read(instance_file(tmp_path, b"\xef\xbb\xbf" + SQUARE.encode())).size == 4
    assert tsplib.read(instance_file(tmp_path, SQUARE.encode("utf-16"))).size == 4


def test_name_comes_from_the_file_if_not_given(tmp_path):
    text = SQUARE.replace("NAME : square\n", "")
    assert tsplib.read(instance_file(tmp_path, text, "corner.tsp")).name == "corner"


def test_equal_coordinates_are_lawful(tmp_path):
    instance = tsplib.read(instance_file(tmp_path, SQUARE.replace("2 10 0", "2 0 0")))
    assert instance.dist[0, 1] == 0


# --- bad input ----------------------------------------------------------------------------------

BAD = {
    "type": (
        "TYPE : TSP",
        "TYPE : SOP",
        r"line 3: TYPE is 'SOP' \(the sequential ordering problem\), expected TSP or ATSP",
    ),
    "no type": ("TYPE : TSP\n", "", "TYPE is missing"),
    "weights": ("EUC_2D", "XRAY1", "line 5: EDGE_WEIGHT_TYPE 'XRAY1' is not supported"),
    "no format": ("EUC_2D", "EXPLICIT", "EDGE_WEIGHT_FORMAT is missing"),
    "stray matrix": ("EOF", "EDGE_WEIGHT_SECTION\n1\nEOF", "is for EXPLICIT .*, not for EUC_2D"),
    "no weights": ("EDGE_WEIGHT_TYPE : EUC_2D\n", "", "EDGE_WEIGHT_TYPE is missing"),
    "blank": ("DIMENSION : 4", "DIMENSION :", "DIMENSION is missing"),
    "no dimension": ("DIMENSION : 4\n", "", "DIMENSION is missing"),
    "too many": ("DIMENSION : 4", "DIMENSION : 3", "DIMENSION is 3, but .* 4 nodes"),
    "too few": ("DIMENSION : 4", "DIMENSION : 5", "DIMENSION is 5, but .* 4 nodes"),
    "one node": ("DIMENSION : 4", "DIMENSION : 1", "at least 2 nodes"),
    "negative": ("DIMENSION : 4", "DIMENSION : -4", "at least 2 nodes"),
    "absurd": ("DIMENSION : 4", "DIMENSION : 1000000", "GB of memory"),
    "endless": ("DIMENSION : 4", "DIMENSION : " + "9" * 5000, "whole number"),
    "worded": ("DIMENSION : 4", "DIMENSION : four", "line 4: DIMENSION must be a whole number"),
    "half": ("DIMENSION : 4", "DIMENSION : 4.5", "whole number"),
    "nan": ("2 10 0", "2 nan 0", "line 8: coordinate nan is not a finite"),
    "inf": ("2 10 0", "2 10 -inf", "line 8: coordinate -inf is not a finite"),
    "overflow": ("2 10 0", "2 1e999 0", "line 8: coordinate '1e999' is out of range"),
    "large": ("2 10 0", "2 1e200 0", "out of range"),
    "letters": ("2 10 0", "2 ten 0", "line 8: coordinate 'ten' is not a number"),
    "underscore": ("2 10 0", "2 1_0 0", "is not a number"),
    "2 words": ("2 10 0", "2 10", "line 8: expected 'id x y'"),
    "4 words": ("2 10 0", "2 10 0 5", "line 8: expected 'id x y'"),
    "repeated id": ("2 10 0", "1 10 0", "line 8: node id 1 was already used in line 7"),
    "id": ("2 10 0", "2.5 10 0", "line 8: a node id must be a whole number"),
    "no section": ("NODE_COORD_SECTION", "DISPLAY_DATA_SECTION", "NODE_COORD_SECTION is missing"),
    "empty section": ("NODE_COORD_SECTION", "NODE_COORD_SECTION\nEOF", "is empty"),
    "fixed edges": ("EOF", "FIXED_EDGES_SECTION\n1 2\n-1\nEOF", "FIXED_EDGES_SECTION is not supp"),
    "twice": ("TYPE : TSP", "TYPE : TSP\nTYPE : TSP", "line 4: TYPE is given twice"),
    "prose": ("COMMENT : four", "once upon a time", "line 2: expected 'KEY: value'"),
    "early row": ("COMMENT : four corners", "1 2 3", "line 2: expected 'KEY: value'"),
    "salesmen": (
        "COMMENT",
        "SALESMEN : 3\nCOMMENT",
        r"line 2: SALESMEN 3: several salesmen \(mTSP",
    ),
    "vehicles": ("COMMENT", "VEHICLES : 2\nCOMMENT", "line 2: VEHICLES 2: several salesmen"),
    "of salesmen": (
        "COMMENT",
        "MTSP_MAX_SIZE : 2\nCOMMENT",
        "MTSP_MAX_SIZE 2 is a constraint that",
    ),
    "longest": (
        "COMMENT",
        "DISTANCE : 9\nCOMMENT",
        "line 2: DISTANCE 9 is a constraint that is not",
    ),
    "inline": ("NODE_COORD_SECTION\n", "NODE_COORD_SECTION : 1 0 0\n", "stand alone"),
    "below 0": ("2 10 0", "-1 10 0", "line 8: a node id must not be negative, as -1 is"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_content_is_one_sentence(tmp_path, case):
    old, new, message = BAD[case]
    assert old in SQUARE
    path = instance_file(tmp_path, SQUARE.replace(old, new))
    with pytest.raises(InputError, match=message) as caught:
        tsplib.read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < len(str(path)) + 240


def test_bad_files(tmp_path):
    cases = {
        tmp_path / "absent.tsp": "does not exist",
        tmp_path: "is a folder",
        instance_file(tmp_path, b"", "empty.tsp"): "is empty",
        instance_file(tmp_path, b" \n\n ", "blank.tsp"): "is empty",
        instance_file(tmp_path, bytes(range(256)), "binary.tsp"): "not a text file",
        instance_file(tmp_path, SQUARE.encode("utf-16-le"), "wide.tsp"): "not a text file",
        instance_file(tmp_path, b"\xff\xfe\x00\xd8\x00", "odd.tsp"): "not a text file",
        instance_file(tmp_path, b"\x89PNG\r\n\x1a\n rest", "picture.tsp"): "not a text file",
        "nul\0.tsp": "cannot read|does not exist",
        "x" * 5000: "cannot read|does not exist",
    }
    for path, message in cases.items():
        with pytest.raises(InputError, match=message):
            tsplib.read(path)


def test_a_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe.tsp")
    with pytest.raises(InputError, match="not a regular file"):
        tsplib.read(tmp_path / "pipe.tsp")


def test_huge_files_are_refused(tmp_path):
    path = tmp_path / "huge.tsp"
    with path.open("wb") as stream:
        stream.truncate(textfiles.MAX_BYTES + 1)
    with pytest.raises(InputError, match="larger than 64 MB"):
        tsplib.read(path)
    rows = "".join(f"{k} 0 0\n" for k in range(textfiles.MAX_NODES + 5))
    with pytest.raises(InputError, match="more than 20000 rows"):
        tsplib.read(instance_file(tmp_path, SQUARE.replace("EOF\n", rows)))


# --- references ---------------------------------------------------------------------------------

TOUR = "TYPE : TOUR\nDIMENSION : 4\nTOUR_SECTION\n1\n2 3\n4\n-1\nEOF\n"
CROSSED = TOUR.replace("2 3", "3 2")


@pytest.mark.parametrize(
    ("tour", "recorded", "reference", "source"),
    [
        (TOUR, None, 40, "square.opt.tour"),
        (TOUR, '{"square": 40}', 40, "square.opt.tour"),
        (None, '{"square": 40}', 40, "solutions.json"),
        (CROSSED, '{"square": 40}', 40, "solutions.json (square.opt.tour says 48)"),
        (TOUR, '{"square": 41}', 40, "square.opt.tour (solutions.json says 41)"),
        (None, None, None, "no .opt.tour or solutions.json beside the file"),
        (None, '{"other": 40}', None, "solutions.json records no cost for it"),
        (None, '{"square": NaN}', None, "solutions.json records no cost for it"),
        (None, '{"square": true}', None, "solutions.json records no cost for it"),
        (None, "[40]", None, "solutions.json records no cost for it"),
        (None, "{", None, "solutions.json is not valid JSON"),
        (TOUR.replace("4", "9"), None, None, "unusable"),
        (TOUR.replace("\n4\n", "\n"), '{"square": 40}', 40, "visits 3 of the 4 nodes"),
    ],
)
def test_where_a_reference_comes_from(tmp_path, tour, recorded, reference, source):
    if tour:
        instance_file(tmp_path, tour, "square.opt.tour")
    if recorded:
        instance_file(tmp_path, recorded, "solutions.json")
    instance = tsplib.read(instance_file(tmp_path))
    assert instance.reference == reference
    assert source in instance.reference_source


# --- tours --------------------------------------------------------------------------------------


def test_tours_round_trip_with_the_ids_of_the_file(tmp_path):
    text = SQUARE.replace("1 0 0", "70 0 0").replace("4 0 10", "0 0 10")
    instance = tsplib.read(instance_file(tmp_path, text))
    tsplib.write_tour(tmp_path / "out.tour", instance, np.array([2, 0, 3, 1]))
    written = (tmp_path / "out.tour").read_text()
    assert written.split("\n") == [
        "NAME : square.tour",
        "COMMENT : length 48",
        "TYPE : TOUR",
        "DIMENSION : 4",
        "TOUR_SECTION",
        *("3", "70", "0", "2", "-1", "EOF", ""),
    ]
    assert tsplib.read_tour(tmp_path / "out.tour", instance) == [2, 0, 3, 1]
    assert stat.S_IMODE((tmp_path / "out.tour").stat().st_mode) & 0o400
    assert sorted(f.name for f in tmp_path.iterdir()) == ["out.tour", "square.tsp"]


def test_a_tour_of_an_instance_without_ids(tmp_path):
    coords = np.random.default_rng(0).random((6, 2))
    instance = Instance("tsp", "u", 6, coords, tsplib.euclidean(coords))
    tsplib.write_tour(tmp_path / "u.tour", instance, [5, 4, 3, 2, 1, 0])
    assert tsplib.read_tour(tmp_path / "u.tour", instance) == [5, 4, 3, 2, 1, 0]
    length = sum(math.dist(coords[k], coords[k - 1]) for k in range(6))
    stated = (tmp_path / "u.tour").read_text().split("length ")[1].split("\n")[0]
    assert float(stated) == pytest.approx(length, rel=1e-15)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("TOUR_SECTION", "NODE_SECTION", "TOUR_SECTION is missing"),
        ("TYPE : TOUR", "TYPE : TSP", "expected TOUR"),
        ("DIMENSION : 4", "DIMENSION : 5", "DIMENSION differs"),
        ("2 3", "2 2", "line 5: node 2 is visited twice"),
        ("2 3", "2 7", "line 5: square has no node 7"),
        ("2 3", "2 x", "line 5: a node id must be a whole number"),
        ("2 3", "2", "visits 3 of the 4 nodes"),
        ("EOF", "1 2 4 3 -1\nEOF", "line 8: a second tour begins here"),
        ("TOUR_SECTION", "SALESMEN : 2\nTOUR_SECTION", "line 3: SALESMEN is no field of a tour"),
        ("EOF", "DEPOT_SECTION\n1\nEOF", "DEPOT_SECTION is no section of a tour"),
        ("2 3", "-1", "line 6: a second tour begins here"),
    ],
)
def test_bad_tours(tmp_path, old, new, message):
    instance = tsplib.read(instance_file(tmp_path))
    path = instance_file(tmp_path, TOUR.replace(old, new), "bad.tour")
    with pytest.raises(InputError, match=message):
        tsplib.read_tour(path, instance)


def test_what_cannot_be_written(tmp_path):
    instance = tsplib.read(instance_file(tmp_path))
    for tour in ([0, 1, 2], [0, 1, 2, 2], [0, 1, 2, 4], []):
        with pytest.raises(InputError, match="every node exactly once"):
            tsplib.write_tour(tmp_path / "x.tour", instance, tour)
    for path in (tmp_path / "no" / "x.tour", tmp_path, tmp_path / "square.tsp" / "x"):
        with pytest.raises(InputError, match="cannot write"):
            tsplib.write_tour(path, instance, [0, 1, 2, 3])
    assert [f.name for f in tmp_path.iterdir()] == ["square.tsp"]


def test_what_is_written_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    events = []
    fsync, rename = os.fsync, os.replace
    named = "/proc/self/fd/{}".format
    monkeypatch.setattr(os, "fsync", lambda fd: (events.append(os.readlink(named(fd))), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda a, b: (events.append("rename"), rename(a, b)))
    textfiles.write_atomically(tmp_path / "a.txt", "new")
    part, renamed, folder = events
    assert part.startswith(str(tmp_path / ".a.txt."))
    assert (renamed, folder) == ("rename", str(tmp_path))


def test_writing_replaces_files_but_follows_links_and_keeps_pipes(tmp_path):
    real = instance_file(tmp_path, "old", "real.txt")
    (tmp_path / "link.txt").symlink_to(real)
    textfiles.write_atomically(tmp_path / "link.txt", "new")
    assert real.read_text() == "new"
    assert (tmp_path / "link.txt").is_symlink()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    textfiles.write_atomically(pipe, "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


EXPLICIT = """NAME : y
TYPE : TSP
DIMENSION : 4
EDGE_WEIGHT_TYPE : EXPLICIT
EDGE_WEIGHT_FORMAT : FULL_MATRIX
EDGE_WEIGHT_SECTION
0 10 1 10
10 0 10 1
1 10 0 1
10 1 1 0
NODE_COORD_SECTION
1 0 0
2 0 1
4 1 1
3 1 0
EOF
"""


def test_rows_of_a_matrix_are_nodes_whatever_the_order_of_their_places(tmp_path):
    path = tmp_path / "y.tsp"
    path.write_text(EXPLICIT)
    instance = tsplib.read(path)
    assert instance.file["ids"] == [1, 2, 3, 4]
    assert instance.coords.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    path.write_text(EXPLICIT.replace("4 1 1", "40 1 1"))
    with pytest.raises(InputError, match="the ids of NODE_COORD_SECTION are not 1 to 4"):
        tsplib.read(path)


@pytest.mark.parametrize(("weight", "place"), [("GEO", "10.2 1000"), ("GEOM", "91 0")])
def test_places_that_are_not_on_earth(tmp_path, weight, place):
    path = tmp_path / "far.tsp"
    path.write_text(
        f"TYPE : TSP\nDIMENSION : 3\nEDGE_WEIGHT_TYPE : {weight}\nNODE_COORD_SECTION\n"
        f"1 10 20\n2 {place}\n3 0 5\nEOF\n"
    )
    with pytest.raises(InputError, match=f"node 2, latitude .* is no place on earth.*{weight}"):
        tsplib.read(path)

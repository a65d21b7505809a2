"""CSV files of places and of distances, for both problems."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spo_jax.envs.files.reading import Reading, remarks_of
from spo_jax.envs.files.specs import parse_spec, read_instance
from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.solve import problem_of
from spo_jax.errors import InputError

TSP, CVRP = get_problem("tsp"), get_problem("cvrp")
TRIANGLE = [[0, 3, 4], [3, 0, 5], [4, 5, 0]]


def table(folder, text, name="t.csv"):
    path = folder / name
    path.write_text(text)
    return path


def remarks(instance):
    return " | ".join(remarks_of(instance))


# --- places ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("x,y\n0,0\n0,3\n4,0\n", [1, 2, 3]),
        ("id,x,y\n7,0,0\n5,0,3\n6,4,0\n", [7, 5, 6]),
        ("Y;X;Node\n0;0;7\n3;0;5\n0;4;6\n", [7, 5, 6]),
        ("x\ty\n0\t0\n\n0\t3\n4\t0", [1, 2, 3]),
        ("\ufeff# places\nx, y\r\n0, 0\r\n0, 3e0\r\n+4., .0\r\n", [1, 2, 3]),
        ('id,"x","y"\n"0","0","0"\n"1","0","3"\n"2","4","0"\n', [0, 1, 2]),
    ],
)
def test_a_table_of_places(tmp_path, text, ids):
    instance = TSP.read(table(tmp_path, text))
    assert instance.dist.tolist() == TRIANGLE
    assert (instance.name, instance.file["ids"], remarks_of(instance)) == ("t", ids, ())
    assert instance.reference is None
    TSP.write(tmp_path / "t.tour", instance, [2, 0, 1])
    assert TSP.read_solution(tmp_path / "t.tour", instance) == [2, 0, 1]


def test_names_and_other_columns_are_reported(tmp_path):
    path = table(tmp_path, "city,x,y,note\nA,0,0,u\nB,0,3,v\nC,4,0,w\n")
    instance = TSP.read(path)
    assert instance.file["names"] == ["A", "B", "C"]
    assert instance.file["ids"] == [1, 2, 3]
    assert remarks(instance) == (
        "t: nodes have the numbers of their rows, from 1 | t: not used: the columns 'note'"
    )


def great_circle(a, b):
    """The spherical law of cosines, in kilometres."""
    (lat1, lon1), (lat2, lon2) = (tuple(map(math.radians, place)) for place in (a, b))
    cosine = math.sin(lat1) * math.sin(lat2)
    cosine += math.cos(lat1) * math.cos(lat2) * math.cos(lon1 - lon2)
    return 6371.0088 * math.acos(min(1.0, cosine))


@pytest.mark.parametrize("header", ["lat,lon", "Latitude,Longitude", "lat,lng"])
def test_geographic_places_are_great_circles_apart(tmp_path, header):
    places = [(48.8566, 2.3522), (40.7128, -74.006), (-33.8688, 151.2093), (90, 0)]
    text = "\n".join([header, *(f"{lat},{lon}" for lat, lon in places)])
    instance = TSP.read(table(tmp_path, text))
    for i, a in enumerate(places):
        for j, b in enumerate(places):
            if i != j:
                assert instance.dist[i, j] == pytest.approx(great_circle(a, b), rel=1e-9)
    assert instance.dist[0, 1] == pytest.approx(5837, abs=5)  # Paris to New York
    assert (instance.dist == instance.dist.T).all()
    assert remarks(instance) == "t: distances are great circles in kilometres"
    assert instance.file["degrees"].tolist() == [[lon, lat] for lat, lon in places]
    rounded = TSP.read(table(tmp_path, text), distances="round")
    assert (rounded.dist == np.floor(instance.dist + 0.5)).all()


def test_rounding_is_warned_about_here_too(tmp_path):
    path = table(tmp_path, "x,y\n0,0\n0,0.3\n0.4,0\n")
    assert "as --distances ceil says, changes distances by 150%" in remarks(
        TSP.read(path, distances="ceil")
    )


BAD_PLACES = {
    "ragged": ("x,y\n0,0\n0,3,1\n4,0\n", "line 3: the row has 3 columns, where line 1 has 2"),
    "short": ("x,y\n0,0\n0\n4,0\n", "line 3: the row has 1 columns, where line 1 has 2"),
    "no y": ("x,z\n0,0\n0,3\n4,0\n", "line 1: there is no column y: name x and y, or lat and lon"),
    "no lon": ("lat,x\n0,0\n0,3\n4,0\n", "there is no column y"),
    "two": ("x,X,y\n0,0,0\n0,3,1\n4,0,1\n", "line 1: two columns are called x"),
    "nan": ("x,y\n0,0\n0,nan\n4,0\n", "line 3: y nan is not a finite number"),
    "blank": ("x,y\n0,0\n0,\n4,0\n", "line 3: y is missing"),
    "word": ("x,y\n0,0\nfar,3\n4,0\n", "line 3: x 'far' is not a number"),
    "comma": ("x;y\n0;0\n0,5;3\n4;0\n", "line 3: x '0,5' is not a number: decimals have a point"),
    "few": ("x,y\n0,0\n", "line 1: rows of nodes: 1, but at least 2"),
    "header": ("x,y\n", "line 1: rows of nodes: 0"),
    "twice": ("id,x,y\na,0,0\nb,0,3\na,4,0\n", "line 4: 'a' was already used in line 2"),
    "no id": ("id,x,y\na,0,0\n,0,3\nc,4,0\n", "line 3: the id is missing"),
    "pole": ("lat,lon\n0,0\n2.35,148.85\n148.85,2\n", "line 4: lat 148.85, lon 2 is no place on"),
    "quote": ('x,y\n0,0\n"0,3\n4,0\n', "this is no CSV"),
    "headless": (
        "0,0\n0,3\n4,0\n",
        "3 rows of 2 columns are no square matrix, and no header names",
    ),
    "strange": ("a,b\n0,0\n0,3\n4,0\n", "no square matrix, and no header names x and y"),
    "comments": ("# a\n# b\n", "there are no rows"),
}


@pytest.mark.parametrize("case", BAD_PLACES)
@pytest.mark.parametrize("problem", [TSP, CVRP], ids=["tsp", "cvrp"])
def test_bad_tables_are_one_sentence(tmp_path, case, problem):
    text, message = BAD_PLACES[case]
    if problem is CVRP:  # the same, with what it asks for besides
        head, *rows = text.splitlines()
        delimiter = ";" if ";" in head else ","
        if case in ("headless", "comments", "quote", "strange"):
            return
        rows = [f"{row}{delimiter}{int(k > 0)}" for k, row in enumerate(rows)]
        text = "\n".join([f"{head}{delimiter}demand", *rows])
    path = table(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_instance(problem, path, Reading(capacity=9) if problem is CVRP else Reading())
    assert str(path) in str(caught.value)
    if problem is TSP:
        assert message in str(caught.value)
    assert "\n" not in str(caught.value)


# --- matrices -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "0,3,4\n3,0,5\n4,5,0\n",
        "0;3;4\n3;0.0;5\n4;5;0\n",
        ",A,B,C\nA,0,3,4\nB,3,0,5\nC,4,5,0\n",
        "km,A,B,C\nA,,3,4\nB,3,,5\nC,4,5,\n",
        "A,B,C\n0,3,4\n3,0,5\n4,5,0\n",
        ",1,2,3\n1,0,3,4\n2,3,0,5\n3,4,5,0\n",
    ],
)
def test_a_matrix(tmp_path, text):
    instance = TSP.read(table(tmp_path, text))
    assert instance.dist.tolist() == TRIANGLE
    assert instance.coords is None
    assert instance.file.get("names", ["A", "B", "C"]) == ["A", "B", "C"]
    if text.startswith(",1"):
        assert instance.file["ids"] == [1, 2, 3]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_matrices_read_back(tmp_path_factory, data):
    n = data.draw(st.integers(3, 7))
    numbers = st.floats(0, 1e9, allow_nan=False, allow_subnormal=False)
    dist = np.array(data.draw(st.lists(numbers, min_size=n * n, max_size=n * n))).reshape(n, n)
    dist = np.triu(dist, 1) + np.triu(dist, 1).T
    labels = [f"n{k}" for k in range(n)] if data.draw(st.booleans()) else None
    rows = [[repr(float(d)) for d in row] for row in dist]
    if labels:
        rows = [["", *labels], *([name, *row] for name, row in zip(labels, rows, strict=True))]
    delimiter = data.draw(st.sampled_from(",;\t"))
    path = tmp_path_factory.mktemp("m") / "m.csv"
    path.write_text("\n".join(delimiter.join(row) for row in rows))
    assert (TSP.read(path).dist == dist).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,3,4\n3,0,5\n4,5,1\n", "line 3: the distance of 3 to itself is 1, not 0"),
        ("0,3,-4\n3,0,5\n-4,5,0\n", "the distance from 1 to 3 is -4, but no distance may be neg"),
        ("0,3,4\n3,0,\n4,5,0\n", "line 2, column 3: the distance to 3 is missing"),
        ("0,3,4\n3,0,NaN\n4,5,0\n", "the distance to 3 NaN is not a finite number"),
        ("0,3,4\n3,0,5\n", "2 rows of 3 columns are no square matrix"),
        (",A,B,C\nA,0,3,4\nC,3,0,5\nB,4,5,0\n", "line 3: the row is of 'C', the column of 'B'"),
        ("0\n", "line 1: rows of nodes: 1, but at least 2"),
    ],
)
def test_bad_matrices_are_one_sentence(tmp_path, text, message):
    with pytest.raises(InputError) as caught:
        TSP.read(table(tmp_path, text))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "word",
    ["null", "inf", "-inf", "NaN", "N/A", "NA", "#N/A", "None", "-", "?", "9223372036854775807",
     "4294967295000000", "7,5", "1,234.5", "1.234.567", "far", "5 km", "1e13", "", "0x10", "1_0"],
)  # fmt: skip
@pytest.mark.parametrize("place", [(0, 3), (0, 1), (0, 0), (1, 3), (3, 2)])
@pytest.mark.parametrize("symmetric", [True, False])
def test_a_word_in_a_matrix_without_names_takes_no_row_away(tmp_path, word, place, symmetric):
    rows = [["0", "7", "9", "5"], ["7", "0", "4", "6"], ["9", "4", "0", "3"], ["5", "6", "3", "0"]]
    if not symmetric:
        rows[2][1] = "4.5"
    i, j = place
    rows[i][j] = word
    if symmetric:
        rows[j][i] = word
    path = table(tmp_path, "\n".join(";".join(row) for row in rows))
    if word in ("", "far") and i == j:
        named = TSP.read(path)  # a corner, and nodes that are called 7, 9 and 5: it is told
        assert "'7', '9', '5' of the first row and column are names of nodes" in remarks(named)
        return
    with pytest.raises(InputError) as caught:
        TSP.read(path)
    first = min((i, j), (j, i)) if symmetric else (i, j)
    assert f", line {first[0] + 1}, column {first[1] + 1}: " in str(caught.value)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("0,7,9,null\n7,0,4,6\n9,4,0,3\nnull,6,3,0\n", "where there is no way, write a length t"),
        ("0,7,null,12\n8,0,4,6\n10,5,0,3\n11,6,2,0\n", "line 1, column 3: the distance to 3 'nu"),
        ("0;7,5;9\n7,5;0;4\n9;4;0\n", "decimals have a point, and thousands no separator"),
        ('0,"1,234",9\n"1,234",0,4\n9,4,0\n', "line 1, column 2: .* thousands no separator"),
        (
            ",7,null,5\n7,0,4,6\nnull,4,0,3\n5,6,3,0\n",
            "line 1, column 1: the distance to 1 is miss",
        ),
        (",1,2,3\n1,,4,6\n2,4,,3\n3,6,3,\n", "line 1: it is unclear whether .* write 0 on the dia"),
        ("from,to,km\n0,1,5\n0,2,7\n1,2,4\n", "line 1: a list of ways is not read: write them as"),
        ("0 3 4\n3 0 5\n4 5 0\n", "line 1: columns are separated by commas, semicolons or tabs"),
        (",A,B,T\nA,0,3,3\nB,3,0,3\nT,3,3,6\n", "line 4: the distance of T to itself is 6, not 0"),
    ],
)
def test_the_likely_cause_is_reported(tmp_path, text, hint):
    with pytest.raises(InputError, match=hint) as caught:
        TSP.read(table(tmp_path, text))
    assert "\n" not in str(caught.value)


WAYS = [[0, 7, 9, 12], [8, 0, 4, 6], [10, 5, 0, 3], [11, 6, 2, 0]]  # by direction
BODY = ["0,7,9,12", "8,0,4,6", "10,5,0,3", "11,6,2,0"]
DIALECTS = {
    "pandas without an index": "0,1,2,3\n" + "\n".join(BODY),
    "pandas without a header": "\n".join(f"{k},{row}" for k, row in enumerate(BODY)),
    "pandas": ",0,1,2,3\n" + "\n".join(f"{k},{row}" for k, row in enumerate(BODY)),
    "an index from 1": ",1,2,3,4\n" + "\n".join(f"{k},{row}" for k, row in enumerate(BODY, 1)),
    "names of columns": "A,B,C,D\n" + "\n".join(BODY),
    "names of rows": "\n".join(f"{name},{row}" for name, row in zip("ABCD", BODY, strict=True)),
    "a comma at the end": ",\n".join(BODY) + ",",
    "a comma at some ends": ",\n".join(BODY),
    "empty columns": "\n".join(f",{row.replace(',', ',,')},," for row in BODY),
    "empty rows": ",,,\n" + "\n,,,\n\n".join(BODY) + "\n,,,\n",
    "Excel": "\ufeffsep=;\r\n" + "\r\n".join(row.replace(",", ";") for row in BODY) + "\r\n",
    "quotes": "\n".join(",".join(f'"{word}"' for word in row.split(",")) for row in BODY),
    "quotes and spaces": "\n".join(", ".join(f'"{w}"' for w in row.split(",")) for row in BODY),
    "old Macs": "\r".join(BODY),
    "floats": "\n".join(",".join(f"{int(w):.18e}" for w in row.split(",")) for row in BODY),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_matrices_as_programs_write_them(tmp_path, name):
    assert TSP.read(table(tmp_path, DIALECTS[name])).dist.tolist() == WAYS


def test_unicode_text_of_excel(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("\n".join(BODY).replace(",", "\t").encode("utf-16"))
    assert TSP.read(path).dist.tolist() == WAYS


@pytest.mark.parametrize("name", ["LON", "lat", "X", "y", "Long", "total"])
def test_names_of_a_matrix_that_look_like_columns(tmp_path, name):
    rows = [["PAR", 0, 344, 5837], [name, 344, 0, 5570], ["NYC", 5837, 5570, 0]]
    text = f",PAR,{name},NYC\n" + "\n".join(",".join(map(str, row)) for row in rows)
    instance = TSP.read(table(tmp_path, text))
    assert instance.file["names"] == ["PAR", name, "NYC"]
    assert instance.dist[0].tolist() == [0, 344, 5837]
    bare = f"PAR,{name},NYC\n" + "\n".join(",".join(map(str, row[1:])) for row in rows)
    assert TSP.read(table(tmp_path, bare)).file["names"] == ["PAR", name, "NYC"]


@pytest.mark.parametrize("text", ["id,x,y\n7,0,0\n#8,1,1\n5,0,3\n", "# x,y\n0,1\n2,0\n"])
def test_a_row_is_no_comment(tmp_path, text):
    with pytest.raises(
        InputError, match=r"line [13]: this begins with # and has the columns of a r"
    ):
        TSP.read(table(tmp_path, text))


def test_comments_may_have_commas(tmp_path):
    head = "# places, from a map\n# in km, by air, as of 2020\n"
    text = f"{head}id,x,y\n7,0,0\n# north, the pier\n5,0,3\n6,4,0\n"
    assert TSP.read(table(tmp_path, text)).dist.tolist() == TRIANGLE


def test_names_may_be_numbers_and_words(tmp_path):
    text = ",12,12A,NA\n12,0,3,4\n12A,3,0,5\nNA,4,5,0\n"
    with pytest.raises(InputError, match="line 1, column 1"):  # NA beside a number is a gap
        TSP.read(table(tmp_path, text))
    instance = TSP.read(table(tmp_path, text.replace("NA", "13")))
    assert instance.dist.tolist() == TRIANGLE
    assert "'12', '12A', '13' of the first row and column are names of nodes" in remarks(instance)
    assert TSP.read(table(tmp_path, text.replace("12", "NL"))).file["names"] == ["NL", "NLA", "NA"]


@pytest.mark.parametrize(
    "text",
    [
        "id,x,y,demand\nD,0,0,\nA,0,3,2\nB,4,0,3\nTotal,4,3,5\n",
        "x,y,note\n0,0,\n0,3,\n4,0,\n4,3,SUM:\n",
        "x,y,demand\n0,0,\n0,3,1\n4,0,1\n1,1,1\n2,7,1\n3,1,1\n10,12,5\n",
    ],
)
def test_a_row_of_totals_is_no_place(tmp_path, text):
    with pytest.raises(InputError, match="this looks like a row of totals, and not a place"):
        TSP.read(table(tmp_path, text))
    *rows, _ = text.splitlines()
    assert TSP.read(table(tmp_path, "\n".join(rows))).size == len(rows) - 1


# --- customers ------------------------------------------------------------------------------------

CUSTOMERS = "id,x,y,demand\n0,0,0,\n1,0,3,5\n2,4,0,2.5\n3,4,3,10\n"


def test_customers(tmp_path):
    instance = CVRP.read(table(tmp_path, CUSTOMERS), capacity=10)
    assert instance.dist[0].tolist() == [0, 3, 4, 5]
    assert (instance.demands.tolist(), instance.capacity) == ([0, 10, 5, 20], 20)
    assert remarks(instance) == (
        "t: the depot is the first row (0) | t: demands and the capacity are multiplied by 2, "
        "which makes them whole numbers"
    )
    CVRP.write(tmp_path / "t.sol", instance, [[1, 2], [3]])
    assert CVRP.read_solution(tmp_path / "t.sol", instance) == [[1, 2], [3]]
    assert TSP.read(table(tmp_path, CUSTOMERS)).size == 4  # of the same places
    assert "not used: the columns 'demand'" in remarks(TSP.read(table(tmp_path, CUSTOMERS)))


@pytest.mark.parametrize(
    "text",
    [
        CUSTOMERS.replace("demand", "demand,capacity").replace("0,0,0,", "0,0,0,,10")
        .replace(",5\n", ",5,\n").replace("2.5\n", "2.5,\n").replace(",10\n2", ",10\n2")
        .replace("3,10\n", "3,10,\n"),
        "x,y,demands,capacity\n0,0,0,10\n0,3,5,10\n4,0,2.5,10\n4,3,10,10\n",
        ",D,A,B,C,demand,capacity\nD,0,3,4,5,,10\nA,3,0,5,4,5,\nB,4,5,0,3,2.5,\nC,5,4,3,0,10,\n",
    ],
)  # fmt: skip
def test_a_column_of_the_capacity(tmp_path, text):
    instance = CVRP.read(table(tmp_path, text))
    assert instance.digest == CVRP.read(table(tmp_path, CUSTOMERS), capacity=10).digest


@pytest.mark.parametrize(
    ("change", "capacity", "message"),
    [
        ((",5\n", ",-5\n"), 10, "line 3: the demand of 1 must not be negative, but is -5"),
        ((",5\n", ",\n"), 10, "line 3: the demand is missing"),
        ((",5\n", ",nan\n"), 10, "line 3: demand nan is not a finite number"),
        ((",5\n", ",few\n"), 10, "demand 'few' is not a number"),
        (("demand", "load"), 10, "there is no column demand"),
        (("x", "x"), 9.5, "line 5: the demand 10 of 3 exceeds --capacity 9.5"),
        (("x", "x"), None, "there is no capacity: give --capacity, or add a column capacity"),
    ],
)
def test_bad_customers_are_one_sentence(tmp_path, change, capacity, message):
    path = table(tmp_path, CUSTOMERS.replace(*change, 1))
    with pytest.raises(InputError) as caught:
        CVRP.read(path, capacity=capacity)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_stops_without_demand_and_a_depot_with_one(tmp_path):
    text = "city,lat,lon,demand\nDepot,48.85,2.35,{}\nLyon,45.76,4.84,3\nNantes,47.22,-1.55,0\n"
    text += "Lille,50.63,3.06,2\nNice,43.7,7.27,5\n"
    instance = CVRP.read(table(tmp_path, text.format(0)), capacity=10)
    assert instance.demands.tolist() == [0, 3, 0, 2, 5]
    other = CVRP.read(table(tmp_path, text.format(12)), capacity=10)
    assert other.digest == instance.digest
    assert "the depot's demand of 12 is not counted" in remarks(other)


def test_demands_that_a_spreadsheet_sums(tmp_path):
    text = "city,lat,lon,demand\nDepot,48.85,2.35,\nA,48.9,2.3,0.1\nB,48.8,2.4,"
    text += "0.30000000000000004\nC,48.7,2.2,0.7\n"
    instance = CVRP.read(table(tmp_path, text), capacity=1)
    assert (instance.demands.tolist(), instance.capacity) == ([0, 1, 3, 7], 10)
    CVRP.write(tmp_path / "t.sol", instance, [[1], [2, 3]])  # 0.3 and 0.7 fill it
    assert CVRP.read(table(tmp_path, text), capacity=0.1 + 0.7).capacity == 8


def test_two_capacities(tmp_path):
    text = "x,y,demand,capacity\n0,0,0,10\n0,3,5,10\n4,0,2,12\n"
    with pytest.raises(InputError, match="line 4: a second capacity 12: all vehicles"):
        CVRP.read(table(tmp_path, text))
    with pytest.raises(InputError, match="--capacity is for files without one"):
        CVRP.read(table(tmp_path, text.replace("12", "10")), capacity=4)


# --- which problem, which files -------------------------------------------------------------------


def test_the_sentence_on_suffixes_has_those_of_tables():
    with pytest.raises(InputError, match=r"not \.tsp, \.atsp, \.vrp, \.txt or \.csv, so say which"):
        problem_of("a.dat")


def test_options_tell_the_problem_of_a_table():
    assert problem_of("a.csv") == "tsp"
    assert problem_of("a.csv", ["distances"]) == "tsp"
    assert problem_of("a.csv", ["capacity"]) == "cvrp"


def test_tables_in_a_folder_count_where_nothing_else_is(tmp_path):
    table(tmp_path, "x,y\n0,0\n0,3\n4,0\n", "b.csv")
    table(tmp_path, "x,y\n0,0\n0,3\n4,1\n", "a.CSV")
    assert [path.name for path in parse_spec(str(tmp_path), TSP).paths] == ["a.CSV", "b.csv"]
    table(tmp_path, "any text", "c.tsp")
    assert [path.name for path in parse_spec(str(tmp_path), TSP).paths] == ["c.tsp"]


def test_numbers_that_are_not_written_as_such_are_names(tmp_path):
    """007 and 7 are two stops; a tour of both by number would visit node 7 twice."""
    for text in ("id,x,y\n007,0,0\n7,3,4\n3,5,0\n", ",7,07,3\n7,0,1,2\n07,1,0,5\n3,2,5,0\n"):
        path = tmp_path / "stops.csv"
        path.write_text(text)
        instance = TSP.read(path)
        assert instance.file["ids"] == [1, 2, 3]
        assert len(set(instance.file["names"])) == 3

"""Files with one change: the same instance, a sentence that refuses it, or a remark on it."""

import random
import re
from itertools import chain

import numpy as np
import pytest
from test_cvrplib import SIX

from spo_jax.envs.files.reading import remarks_of
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError

PLACES = SIX[SIX.index("NODE_COORD_SECTION") : SIX.index("DEMAND_SECTION")]
ROOM = f"""NAME : room
COMMENT : six places
TYPE : TSP
DIMENSION : 6
EDGE_WEIGHT_TYPE : EUC_2D
{PLACES}EOF
"""
HALF = """NAME : half
TYPE : TSP
DIMENSION : 4
EDGE_WEIGHT_TYPE : EXPLICIT
EDGE_WEIGHT_FORMAT : UPPER_ROW
EDGE_WEIGHT_SECTION
7 9 5
4 6
3
EOF
"""
MORE = "DISTANCE : 400\nSERVICE_TIME : 10\nVEHICLES : 5\n"  # which no routes exceed
LOADS = SIX.replace("NAME : six", "NAME : loads").replace(PLACES, MORE + PLACES)
TIMES = """TIMES

VEHICLE
NUMBER     CAPACITY
  4         10

CUSTOMER
CUST NO.  XCOORD.   YCOORD.    DEMAND   READY TIME  DUE DATE   SERVICE   TIME

    0       10         11          0          0        700          0
    1       52         13          4          0        250          2
    2       47         61          6         20        325          2
    3       12         58          5         11        130          1
    4       30         35          3         50        380          5
"""
FILES = {"room.tsp": ROOM, "half.tsp": HALF, "loads.vrp": LOADS, "times.txt": TIMES}
PROBLEMS = {".tsp": "tsp", ".vrp": "cvrp", ".txt": "vrptw"}
WORDS = ["x", "", "nan", "1e400", "-1", "99", "0x1", "1,5", "7.5.", "--", "1 2", "\u00e9", "'"]
FIELDS = ["COLOUR : 7", "MAX_DISTANCE : 5", "VEHICLES : 2", "SALESMEN : 2", "FLEET_SIZE : 4",
          "VEHICLES_FIXED_COST : 9", "RANDOM_SECTION", "TIME_WINDOW_SECTION", "SCALE : 10",
          "MTSP_MIN_SIZE : 1", "GRID_SIZE : 3", "DURATION : 3", "ROUTE_TIME_LIMIT : 2"]  # fmt: skip


def read(path, text):
    """The instance, or None where it is refused in one sentence."""
    path.write_text(text)
    return unless_refused(path, get_problem(PROBLEMS[path.suffix]).read, path)


def unless_refused(path, function, *given):
    try:
        return function(*given)
    except InputError as error:
        message = str(error)
    assert str(path) in message
    assert "\n" not in message
    assert len(message) < len(str(path)) + 300
    return None


def places(instance):
    """What an instance is, whatever the order of its nodes and their numbers."""
    needs = np.zeros(len(instance.dist)) if instance.demands is None else instance.demands
    rows = {k: v for k, v in instance.extra.items() if isinstance(v, np.ndarray)}
    bounds = {k: v for k, v in instance.extra.items() if k not in rows}
    times = [[*row] for row in zip(*(rows[k] for k in sorted(rows)), strict=True)]
    times = times or [[]] * len(needs)
    rows = [
        (*sorted(row.tolist()), need, *more)
        for row, need, more in zip(instance.dist, needs.tolist(), times, strict=True)
    ]
    return instance.capacity, bounds, rows[0] if instance.demands is not None else (), sorted(rows)


@pytest.mark.parametrize("name", FILES)
def test_a_line_is_missing_or_there_twice_or_elsewhere(tmp_path, name):
    text = FILES[name]
    whole = read(tmp_path / name, text)
    lines = text.splitlines()
    matrix = "EDGE_WEIGHT_SECTION" in text
    changed, rng = 0, random.Random(5)
    for k in range(len(lines)):
        for other in (0, *rng.sample(range(1, len(lines)), 7)):
            for kind in ("drop", "twice", "swap"):
                new = list(lines)
                if kind == "drop":
                    del new[k]
                elif kind == "twice":
                    new.insert(other, new[k])
                else:
                    new[k], new[other] = new[other], new[k]
                if (kind == "drop" and other) or new == lines:
                    continue
                found = read(tmp_path / name, "\n".join(new))
                if found is None:
                    changed += 1
                    continue
                last = name == "times.txt" and kind == "drop" and k == len(lines) - 1
                if last:  # nothing in the file says how many customers there are
                    assert found.size == whole.size - 1
                    continue
                if places(found) == places(whole):
                    continue
                if matrix and kind == "swap":  # numbers in another order, which are all lawful
                    upper = np.triu_indices(4, 1)
                    assert sorted(found.dist[upper]) == sorted(whole.dist[upper])
                    continue
                raise AssertionError((kind, k, other, new))
    assert changed > len(lines)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("field", FIELDS)
def test_a_field_or_section_that_nobody_knows(tmp_path, name, field):
    lines = FILES[name].splitlines()
    whole = read(tmp_path / name, FILES[name])
    key, _, value = field.partition(" : ")
    reported = refused = 0
    for k in range(len(lines) + 1):
        found = read(tmp_path / name, "\n".join([*lines[:k], field, *lines[k:]]))
        if found is None:
            refused += 1
            continue
        if found.extra.keys() - whole.extra.keys() == {"max_vehicles"}:  # known here, and kept
            assert field == f"FLEET_SIZE : {found.extra['max_vehicles']}"
            reported += 1
            continue
        assert places(found) == places(whole)
        remarks = " ".join(remarks_of(found))
        assert key in remarks or f"the {value} vehicle" in remarks or "follows EOF" in remarks or (
            name == "times.txt" and found.name == field
        )  # fmt: skip
        reported += 1
    assert reported + refused == len(lines) + 1
    if name == "times.txt" or key.endswith("_SECTION") or re.search("MAX|LIMIT|DURATION|MIN", key):
        assert reported <= 2  # after EOF, or as the name


def plainly(name, text):
    """The numbers of a file by node, as its columns have them: without any check."""
    parts = re.split(r"[A-Z_]+_SECTION|CUST NO.*|EOF", text)
    rows = [[[float(w) for w in line.split()] for line in part.splitlines()] for part in parts[1:]]
    rows = [[row for row in part if row] for part in rows]
    if name == "half.tsp":
        return sorted(chain.from_iterable(rows[0]))
    found = {int(row[0]): row[1:] for row in rows[0]}
    if name == "loads.vrp":
        for node, demand in rows[1]:
            found[int(node)].append(demand / 10)
        found[int(rows[2][0][0])][2] = 0.0
    if name == "times.txt":
        capacity = float(text.splitlines()[4].split()[1])
        for row in found.values():
            row[2] /= capacity
        found[0][2] = 0.0
    return found


def as_plainly(name, instance):
    if name == "half.tsp":
        return sorted(instance.dist[np.triu_indices(4, 1)].tolist())
    rows = instance.coords.tolist()
    if instance.demands is not None:
        rows = [
            [*row, d / instance.capacity] for row, d in zip(rows, instance.demands, strict=True)
        ]
    for time in ("ready", "due", "service"):
        if time in instance.extra:
            rows = [[*row, each] for row, each in zip(rows, instance.extra[time], strict=True)]
    return dict(zip(instance.file["ids"], rows, strict=True))


@pytest.mark.parametrize("name", FILES)
def test_a_word_that_is_another(tmp_path, name):
    """What is read after a change is what a plain reading of the columns gives."""
    text = FILES[name]
    rng = random.Random(7)
    lines = text.splitlines()
    rows = [k for k, line in enumerate(lines) if re.fullmatch(r"\s*-?[0-9][-0-9 ]*", line)]
    whole = read(tmp_path / name, text)
    assert as_plainly(name, whole) == plainly(name, text)
    kept = 0
    for k in rows:
        words = lines[k].split()
        for j in range(len(words)):
            for word in [*WORDS, str(rng.randrange(1, 80)), "10.5"]:
                row = " ".join([*words[:j], word, *words[j + 1 :]])
                new = "\n".join([*lines[:k], row, *lines[k + 1 :]])
                found = read(tmp_path / name, new)
                if found is not None:
                    kept += 1
                    assert as_plainly(name, found) == plainly(name, new), (row, word)
    assert kept


SOL = "Route #1: 2 1\nRoute #2: 5 4\nRoute #3: 3\nCost 390\n"
TOUR = "NAME : t\nTYPE : TOUR\nDIMENSION : 6\nTOUR_SECTION\n1\n2\n6\n3\n4\n5\n-1\nEOF\n"


@pytest.mark.parametrize(("name", "solution"), [("loads.vrp", SOL), ("room.tsp", TOUR)])
def test_a_solution_with_a_change(tmp_path, name, solution):
    instance = read(tmp_path / name, FILES[name])
    problem = get_problem(instance.problem)
    path = tmp_path / f"s{problem.solution_suffix}"

    def solved(text):
        path.write_text(text)
        found = unless_refused(path, problem.read_solution, path, instance)
        if found is None:
            return None
        return sorted(map(tuple, found)) if problem.name == "cvrp" else found

    whole = solved(solution)
    lines = solution.splitlines()
    added = ["Gap 3", "7", "LIMIT : 3", "DEPOT_SECTION", "<p>", "Rute #4: 1", "Route #4 1", "4 4"]
    for k in range(len(lines) + 1):
        for extra in added:
            assert solved("\n".join([*lines[:k], extra, *lines[k:]])) is None or k == len(lines)
        for other in range(len(lines)):
            if k < len(lines):
                new = list(lines)
                new[k], new[other] = new[other], new[k]
                found = solved("\n".join(new))
                if problem.name == "tsp" and found is not None:  # nodes in another order
                    order = [int(line) - 1 for line in new if re.fullmatch("[0-9]+", line)]
                    assert found == order
                else:
                    assert found in (None, whole)
        if k < len(lines):
            for new in ([*lines[:k], *lines[k + 1 :]], [*lines[: k + 1], *lines[k:]]):
                assert solved("\n".join(new)) in (None, whole)
            for word in WORDS[:-3]:
                words = lines[k].split()
                for j in range(len(words)):
                    changed = " ".join([*words[:j], word, *words[j + 1 :]])
                    assert solved("\n".join([*lines[:k], changed, *lines[k + 1 :]])) in (
                        None,
                        whole,
                    )

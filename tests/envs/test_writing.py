"""What `spo solve` writes, and what it leaves alone."""

import json
from pathlib import Path

import numpy as np
import pytest

from spo_jax.envs.problem import Infeasible, Instance, Problem, Rules
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.tsp.files import tsplib
from spo_jax.envs.report.writing import Outputs, mark_of
from spo_jax.errors import InputError

TSP, CVRP = get_problem("tsp"), get_problem("cvrp")
SHORT, LONG = [0, 1, 2, 3], [0, 2, 1, 3]  # around a square, and across it twice
CORNERS = np.array([[0.0, 0.0], [10.0, 0.0], [10.0, 10.0], [0.0, 10.0]])


def square(name="square"):
    return Instance("tsp", name, 4, CORNERS, tsplib.distance_matrix(CORNERS, "EUC_2D"))


def routes_of(capacity=2):
    demands = np.array([0, 1, 1, 1])
    return Instance("cvrp", "s", 3, CORNERS, tsplib.euclidean(CORNERS), demands, capacity)


def outputs(path, plot=None, *, instance=None, force=False):
    return Outputs(TSP, instance or square(), path, plot, force=force)


def write(path, tour, **more):
    instance = more.get("instance") or square()
    return outputs(path, **more).write(tour, tsplib.tour_cost(instance.dist, tour))


def test_a_better_solution_stays_and_a_worse_one_goes(tmp_path):
    path = tmp_path / "a.tour"
    assert write(path, LONG) == [f"solution: {path}"]
    assert write(path, SHORT) == [f"solution: {path} (in place of one of cost 48)"]
    short = path.read_bytes()
    [line] = write(path, LONG)
    assert line == f"kept: {path}, whose cost 40 is below 48 (--force overwrites it)"
    assert path.read_bytes() == short
    assert write(path, SHORT) == [f"solution: {path}"]  # as good: the same file again
    assert path.read_bytes() == short
    assert write(path, LONG, force=True) == [f"solution: {path}"]
    assert tsplib.read_tour(path, square()) == LONG


def test_the_problem_judges_and_not_what_a_file_says_of_itself(tmp_path):
    path = tmp_path / "a.tour"
    write(path, LONG)
    path.write_text(path.read_text().replace("length 48", "length 1"))
    assert "in place of one of cost 48" in write(path, SHORT)[0]
    routes = tmp_path / "a.sol"
    routes.write_text("Route #1: 1 2\nRoute #2: 3\nCost 0\n")
    first = Outputs(CVRP, routes_of(), routes)
    assert "in place of" in first.write([[1], [2, 3]], 0.0)[0]
    routes.write_text("Route #1: 1 2 3\nCost 0\n")  # one vehicle too few
    with pytest.raises(InputError, match="is there and is no solution of s"):
        Outputs(CVRP, routes_of(), routes)


@pytest.mark.parametrize(
    "text",
    [
        "notes of mine\n",
        "{}",
        "\0",
        "Route #1: one\n",
        "TYPE : TOUR\nTOUR_SECTION\n1 2 3\n-1\n",  # of another instance
        "# a comment, and no more\n",
    ],
)
@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_other_files_are_never_overwritten_unasked(tmp_path, text, problem):
    path = tmp_path / "mine"
    path.write_text(text)
    instance = square() if problem == "tsp" else routes_of()
    with pytest.raises(InputError, match=r"is there and is no solution of .*, or add --force"):
        Outputs(get_problem(problem), instance, path)
    assert path.read_text() == text
    solution = SHORT if problem == "tsp" else [[1, 2], [3]]
    Outputs(get_problem(problem), instance, path, force=True).write(solution, 40.0)
    assert path.read_text() != text


def test_what_appears_during_the_search_counts_too(tmp_path):
    path = tmp_path / "a.tour"
    before = outputs(path)
    write(path, SHORT)
    assert "kept" in before.write(LONG, 48.0)[0]
    assert tsplib.read_tour(path, square()) == SHORT


def test_empty_files_and_devices_hold_nothing(tmp_path):
    path = tmp_path / "a.tour"
    path.touch()
    assert write(path, LONG) == [f"solution: {path}"]
    assert write(Path("/dev/null"), LONG) == ["solution: /dev/null"]


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_a_picture_shows_the_solution_that_is_there_afterwards(tmp_path, suffix):
    path, picture = tmp_path / "a.tour", tmp_path / f"a{suffix}"
    write(path, SHORT, plot=picture)
    short = picture.read_bytes()
    assert mark_of(square(), 40.0).encode() in short
    lines = write(path, LONG, plot=picture)
    assert lines[0].startswith("kept: ")
    assert lines[1] == f"picture: {picture}"
    assert picture.read_bytes() == short  # the one that was kept, again
    path.unlink()
    lines = write(path, LONG, plot=picture)
    assert lines[0] == f"solution: {path}"
    assert lines[1].startswith(f"kept: {picture}, whose cost 40 is below 48")
    assert picture.read_bytes() == short
    write(path, LONG, plot=picture, force=True)
    assert mark_of(square(), 48.0).encode() in picture.read_bytes()


def test_a_picture_of_something_else_stays(tmp_path):
    picture = tmp_path / "a.png"
    picture.write_bytes(b"\x89PNG a photograph")
    with pytest.raises(InputError, match="nothing that spo solve wrote of square"):
        outputs(tmp_path / "a.tour", picture)
    other = Instance("tsp", "other", 4, 2 * CORNERS, tsplib.euclidean(2 * CORNERS))
    write(tmp_path / "o.tour", SHORT, instance=other, plot=tmp_path / "o.png")
    with pytest.raises(InputError, match="nothing that spo solve wrote of square"):
        outputs(tmp_path / "a.tour", tmp_path / "o.png")
    assert not (tmp_path / "a.tour").exists()


# --- JSON and maps --------------------------------------------------------------------------------

STOPS = "city,lat,lon,demand\nDepot,48.85,2.35,\nA,45.76,4.84,2.5\nB,43.3,5.37,4\nC,50.63,3.06,9\n"


def stops(folder):
    (folder / "stops.csv").write_text(STOPS)
    return CVRP.read(folder / "stops.csv", capacity=9)


def test_json_tells_walks_by_ids_and_names(tmp_path):
    instance = stops(tmp_path)
    path = tmp_path / "out.json"
    routes = [[1, 2], [], [3]]
    lines = Outputs(CVRP, instance, tmp_path / "a.sol", json=path).write(routes, 1.0)
    assert lines[1] == f"JSON: {path}"
    found = json.loads(path.read_text())
    assert (found["problem"], found["instance"], found["size"]) == ("cvrp", "stops", 3)
    assert [walk["names"] for walk in found["walks"]] == [
        ["Depot", "A", "B", "Depot"],
        ["Depot", "C", "Depot"],
    ]
    assert [walk["nodes"] for walk in found["walks"]] == [[0, 1, 2, 0], [0, 3, 0]]
    assert [walk["load"] for walk in found["walks"]] == [13, 18]  # in halves, as a remark says
    assert found["capacity"] == 18
    assert "multiplied by 2" in " ".join(found["remarks"])
    assert sum(walk["length"] for walk in found["walks"]) == pytest.approx(found["cost"])
    assert found["cost"] == CVRP.cost(instance, routes)
    assert found["solution"] == routes


def test_json_of_a_problem_without_walks_is_its_solution(tmp_path):
    path, instance = tmp_path / "out.json", Instance("plain", "p", 3)
    Outputs(_Plain(), instance, tmp_path / "a", json=path).write(np.array([0, 2, 1]).tolist(), 0.0)
    found = json.loads(path.read_text())
    assert found["solution"] == [0, 2, 1]
    assert "walks" not in found


def test_a_map_has_routes_and_the_depot_longitude_first(tmp_path):
    instance = stops(tmp_path)
    path = tmp_path / "out.geojson"
    Outputs(CVRP, instance, tmp_path / "a.sol", geojson=path).write([[1, 2], [3]], 1.0)
    found = json.loads(path.read_text())
    assert found["type"] == "FeatureCollection"
    depot, first, second = found["features"]
    assert depot["geometry"] == {"type": "Point", "coordinates": [2.35, 48.85]}
    assert first["geometry"] == {
        "type": "LineString",
        "coordinates": [[2.35, 48.85], [4.84, 45.76], [5.37, 43.3], [2.35, 48.85]],
    }
    assert second["properties"]["names"] == ["Depot", "C", "Depot"]
    assert second["properties"]["route"] == 2


def test_a_map_of_a_tour_of_tsplib(spo_data, tmp_path):
    instance = TSP.read(spo_data / "tsplib/ulysses16.tsp")
    path = tmp_path / "out.geojson"
    tour = list(range(16))
    Outputs(TSP, instance, tmp_path / "a.tour", geojson=path).write(tour, 1.0)
    [feature] = json.loads(path.read_text())["features"]
    line = feature["geometry"]["coordinates"]
    assert len(line) == 17
    assert line[0] == line[-1] == [20.7, 38.4]  # 38.24 and 20.42 in degrees and minutes
    assert feature["properties"]["ids"] == [*range(1, 17), 1]


def test_without_places_there_is_no_map_and_no_picture(tmp_path):
    with pytest.raises(InputError, match="square has no geographic coordinates, which --geojson"):
        Outputs(TSP, square(), tmp_path / "a.tour", geojson=tmp_path / "a.geojson")
    matrix = Instance("tsp", "m", 4, None, square().dist)
    with pytest.raises(InputError, match="m has no coordinates: leave --plot out"):
        outputs(tmp_path / "a.tour", tmp_path / "a.png", instance=matrix)
    assert not list(tmp_path.iterdir())


def test_json_follows_the_solution_that_stays(tmp_path):
    path, other = tmp_path / "a.tour", tmp_path / "a.json"
    Outputs(TSP, square(), path, json=other).write(SHORT, 40.0)
    known = other.read_bytes()
    assert json.loads(known)["made_by"] == mark_of(square(), 40.0)
    Outputs(TSP, square(), path, json=other).write(LONG, 48.0)
    assert other.read_bytes() == known
    other.write_text('{"mine": 1}')
    with pytest.raises(InputError, match="nothing that spo solve wrote"):
        Outputs(TSP, square(), path, json=other)


class _Rules(Rules):
    def repaired(self, output):
        if sorted(output) != [0, 1, 2]:
            raise Infeasible("not an order of three")
        return output

    def cost(self, solution):
        return float(solution[0])


class _Plain(Problem):
    """Writes JSON, as problems do that define no format."""

    name = "plain"

    def rules(self, instance):
        return _Rules(instance)


class _Format(_Plain):
    def write(self, path, instance, solution):
        path.write_text("mine")


def test_a_problem_without_a_format_is_read_by_its_rules(tmp_path):
    path, instance = tmp_path / "a.json", Instance("plain", "p", 3)
    Outputs(_Plain(), instance, path).write([0, 2, 1], 0.0)
    assert "kept" in Outputs(_Plain(), instance, path).write([1, 0, 2], 1.0)[0]
    assert json.loads(path.read_text()) == [0, 2, 1]
    path.write_text("[0, 1]")
    with pytest.raises(InputError, match="no solution of p"):
        Outputs(_Plain(), instance, path)


def test_a_problem_that_cannot_read_its_format_overwrites_nothing(tmp_path):
    path, instance = tmp_path / "a.mine", Instance("plain", "p", 3)
    Outputs(_Format(), instance, path).write([0, 1, 2], 0.0)
    with pytest.raises(InputError, match="--force"):
        Outputs(_Format(), instance, path)

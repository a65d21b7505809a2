"""What `spo solve` writes, and what it leaves alone."""

import json
from pathlib import Path

import numpy as np
import pytest

from spo_jax.envs.problem import Infeasible, Instance, Problem, Rules
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.tsp import files as tsplib
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


@pytest.mark.parametrize("suffix", [".png", ".pdf"])
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

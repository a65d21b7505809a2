"""VRPTW instances in CVRPLIB's format: against PyVRP's reading, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from spo_jax.cli import main
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.vrptw.files import solomon
from spo_jax.errors import InputError

VRPTW = get_problem("vrptw")
SIX = """NAME : six
TYPE : VRPTW
DIMENSION : 6
VEHICLES : 3
CAPACITY : 10
SERVICE_TIME : 5
EDGE_WEIGHT_TYPE : EUC_2D
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
TIME_WINDOW_SECTION
1 0 500
2 0 100
3 50 200
4 0 400
5 0 400
6 0 400
DEPOT_SECTION
1
-1
EOF
"""


def written(folder: Path, old: str = "", new: str = "") -> Path:
    path = folder / "six.vrp"
    path.write_text(SIX.replace(old, new, 1))
    return path


@pytest.mark.parametrize(("distances", "scale"), [("file", 1), ("dimacs", 10), ("exact", 1)])
@pytest.mark.parametrize("service", ["", "SERVICE_TIME_SECTION\n1 0\n2 9\n3 9\n4 2\n5 1\n6 20\n"])
def test_an_instance_is_what_pyvrp_reads(tmp_path, distances, scale, service) -> None:
    pyvrp = pytest.importorskip("pyvrp")
    path = tmp_path / "six.vrp"
    text = SIX.replace("SERVICE_TIME : 5\n", "") if service else SIX
    path.write_text(text.replace("DEPOT_SECTION", f"{service}DEPOT_SECTION"))
    instance = VRPTW.read(path, distances=distances)
    rule = {"file": "round", "dimacs": "dimacs", "exact": "none"}[distances]
    data = pyvrp.read(path, round_func=rule)
    if distances != "exact":  # which it has in whole numbers
        assert np.array_equal(np.rint(instance.dist * scale), data.distance_matrix(0))
    clients = data.clients()
    for name, theirs in (
        ("ready", [each.tw_early for each in clients]),
        ("due", [each.tw_late for each in clients]),
        ("service", [each.service_duration for each in clients]),
    ):
        assert (instance.extra[name][1:] * scale).tolist() == theirs
    assert (instance.demands[1:] * scale).tolist() == [each.delivery[0] for each in clients]
    best = VRPTW.trivial(instance)
    solomon.check_routes(instance, best)
    if distances != "exact":
        found = pyvrp.solve(data, stop=pyvrp.stop.MaxIterations(200), seed=1, display=False)
        assert found.cost() == pytest.approx(VRPTW.cost(instance, best) * scale)


def test_the_fleet_is_free_and_the_depot_may_stand_anywhere(tmp_path) -> None:
    instance = VRPTW.read(written(tmp_path))
    assert "the 3 vehicles of the file are no limit" in instance.file["remarks"]
    other = VRPTW.read(written(tmp_path, "DEPOT_SECTION\n1", "DEPOT_SECTION\n4"))
    assert other.file["ids"] == [4, 1, 2, 3, 5, 6]
    assert other.extra["due"].tolist() == [400, 500, 100, 200, 400, 400]
    assert other.extra["service"][0] == 0


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("2 0 100\n", "", "TIME_WINDOW_SECTION has no times for node 2"),
        ("2 0 100", "2 0 100\n2 0 100", "second times for node 2"),
        ("2 0 100", "2 0", "expected 'id ready due'"),
        ("2 0 100", "9 0 100", "times for node 9, which is no node"),
        ("2 0 100", "2 100 99", "due date 99 is before the ready time 100"),
        ("2 0 100", "2 -1 99", "must not be negative"),
        ("2 0 100", "2 0 41", "customer 1 cannot be reached in its window"),
        ("1 0 500", "1 0 130", "customer 2 cannot be served in time"),
        ("DEPOT", "SERVICE_TIME_SECTION\n1 4\nDEPOT", "the depot's service time must be 0"),
        ("CAPACITY", "DISTANCE : 150\nCAPACITY", "is not supported beside time windows"),
        ("DEPOT", "BACKHAUL_SECTION\n2\nDEPOT", "BACKHAUL_SECTION is not supported"),
        ("EUC_2D", "GEO", "EDGE_WEIGHT_TYPE 'GEO' is not supported"),
    ],
)
def test_what_is_refused(tmp_path, old, new, says) -> None:
    with pytest.raises(InputError, match=says):
        VRPTW.read(written(tmp_path, old, new))


def test_rounding_that_makes_a_detour_shorter_is_refused_where_service_does_not_cover_it(
    tmp_path,
) -> None:
    """Three on a line, 0.5 apart: 1 each by rounding up, and 1 from end to end; 0.4: 0 and 1."""
    line = SIX.replace("2 52 13", "2 10.4 10").replace("3 47 61", "3 10.8 10")
    path = tmp_path / "line.vrp"
    path.write_text(line.replace("SERVICE_TIME : 5", "SERVICE_TIME : 0"))
    with pytest.raises(InputError, match="from 0 to 2 takes 1, longer than by customer 1 with its"):
        VRPTW.read(path)
    assert VRPTW.read(path, distances="ceil").dist[0, 2] == 1
    path.write_text(line)
    assert VRPTW.read(path).dist[0, :3].tolist() == [0, 0, 1]


def test_solve_takes_it(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path)
    assert main(["solve", "six.vrp"]) == 2
    assert "--problem vrptw" in capsys.readouterr().err
    assert main(["solve", "six.vrp", "--problem", "vrptw", "--distances", "dimacs"]) == 0
    assert VRPTW.read_solution("six.spo.sol", VRPTW.read("six.vrp", distances="dimacs"))

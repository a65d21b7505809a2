"""Pictures exist, have the asked format and show the solution."""

import itertools
import sys

import numpy as np
import pytest

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.cvrp.picture import route_colour
from spo_jax.envs.problems.tsp.files import tsplib
from spo_jax.envs.report import plot
from spo_jax.errors import InputError


def tsp(n, **file):
    coords = np.random.default_rng(n).random((n, 2))
    return Instance("tsp", f"t{n}", n, coords, tsplib.euclidean(coords), file=file)


def cvrp(n):
    coords = np.random.default_rng(n).random((n + 1, 2))
    demands = np.array([0] + [1] * n)
    return Instance("cvrp", f"c{n}", n, coords, tsplib.euclidean(coords), demands, 10)


def draw(instance, *what, **named):
    plot.plot_solution(get_problem(instance.problem), instance, *what, **named)


def pixels(path):
    from matplotlib.image import imread

    return imread(path)[..., :3]


@pytest.mark.parametrize("suffix", [".png", ".PNG", ".pdf", ".svg"])
def test_the_suffix_decides_the_format(tmp_path, suffix):
    path = tmp_path / f"tour{suffix}"
    draw(tsp(12), list(range(12)), path)
    magic = {".pdf": b"%PDF", ".svg": b"<?xml"}.get(suffix, b"\x89PNG")
    assert path.read_bytes().startswith(magic)
    assert [f.name for f in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("name", ["tour.jpg", "tour", "tour.png.txt", ".png"])
def test_other_suffixes_are_refused(tmp_path, name):
    with pytest.raises(InputError, match=r"a picture ends in \.png, \.svg or \.pdf"):
        draw(tsp(5), list(range(5)), tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_equal_pictures_are_equal_files(tmp_path, suffix):
    routes = [[1, 2, 3, 4], [5, 6], [7]]
    for name in ("a", "b"):
        draw(cvrp(7), routes, tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


def test_another_tour_is_another_picture(tmp_path):
    draw(tsp(12), list(range(12)), tmp_path / "a.png", title="")
    draw(tsp(12), [1, 0, *range(2, 12)], tmp_path / "b.png", title="")
    assert (pixels(tmp_path / "a.png") != pixels(tmp_path / "b.png")).any()


def test_a_title_takes_room_and_an_empty_one_takes_none(tmp_path):
    for name, title in (("none", ""), ("own", "my title"), ("default", None)):
        draw(tsp(12), list(range(12)), tmp_path / f"{name}.png", title=title)
    heights = {name: len(pixels(tmp_path / f"{name}.png")) for name in ("none", "own", "default")}
    assert heights["none"] < heights["own"] == heights["default"]
    assert (pixels(tmp_path / "own.png") != pixels(tmp_path / "default.png")).any()


def test_unusual_input_is_drawn(tmp_path):
    draw(cvrp(3), [[1], [], (2, 3)], tmp_path / "a.png", title="50$ of $ {x}_")
    draw(tsp(5), np.arange(5), tmp_path / "b.png")
    draw(cvrp(3), [[1], (2, 3)], tmp_path / "c.png", title="50$ of $ {x}_")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "c.png").read_bytes()


def test_one_unit_is_as_long_in_both_directions(tmp_path):
    coords = np.array([[0.0, 0], [4, 0], [4, 1], [0, 1]])
    instance = Instance("tsp", "flat", 4, coords, tsplib.euclidean(coords))
    draw(instance, [0, 1, 2, 3], tmp_path / "flat.png", title="")
    dark = (pixels(tmp_path / "flat.png") < 0.9).any(axis=2)
    rows, columns = np.flatnonzero(dark.any(axis=1)), np.flatnonzero(dark.any(axis=0))
    marker = 14  # pixels that the outermost markers add, roughly
    wide, high = np.ptp(columns) - marker, np.ptp(rows) - marker
    assert wide / high == pytest.approx(4, rel=0.05)


def test_geographic_instances_have_north_up(tmp_path):
    """Nodes are (latitude, longitude); the lone node far in the north must be at the top."""
    coords = np.array([[10.0, 20.0], [10.0, 30.0], [12.0, 25.0], [40.0, 25.0]])
    dist = tsplib.distance_matrix(coords, "GEO")
    instance = Instance("tsp", "geo", 4, coords, dist, file={"edge_weight_type": "GEO"})
    draw(instance, [0, 1, 2, 3], tmp_path / "geo.png", title="")
    dark = (pixels(tmp_path / "geo.png") < 0.9).any(axis=2)
    rows = np.flatnonzero(dark.any(axis=1))
    third = len(rows) // 3
    assert dark[rows[:third]].sum() < dark[rows[-third:]].sum()


@pytest.mark.long
@pytest.mark.parametrize("n", [3, 50, 2000])
def test_any_size(tmp_path, n):
    draw(tsp(n), list(range(n)), tmp_path / "t.png")
    customers = list(range(1, n + 1))
    routes = [customers[k : k + 10] for k in range(0, n, 10)]
    draw(cvrp(n), routes, tmp_path / "c.png")
    for name in ("t", "c"):
        shown = pixels(tmp_path / f"{name}.png")
        assert 0.001 < (shown < 0.9).any(axis=2).mean() < 0.9  # neither empty nor a blot


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "coords",
    [
        [[0, 0]] * 4,
        [[0, 0], [1, 0], [2, 0], [3, 0]],
        [[1e9, 1e9], [1e9, 1e9 + 1], [1e9, 1e9], [0, 0]],
    ],
)
def test_degenerate_shapes(tmp_path, coords):
    places = np.array(coords, float)
    instance = Instance("tsp", "d", 4, places, tsplib.euclidean(places))
    draw(instance, [0, 1, 2, 3], tmp_path / "d.png")
    assert max(pixels(tmp_path / "d.png").shape) < 4000


def test_what_cannot_be_drawn(tmp_path):
    with pytest.raises(InputError, match="every node exactly once"):
        draw(tsp(5), [0, 1, 2], tmp_path / "x.png")
    with pytest.raises(InputError, match="customer 2 is not visited"):
        draw(cvrp(2), [[1]], tmp_path / "x.png")
    with pytest.raises(InputError, match="cannot write"):
        draw(tsp(5), list(range(5)), tmp_path / "no" / "x.png")
    path = get_problem("third_problem:PathProblem")
    (instance,) = path.sample(5, 1, 0)
    with pytest.raises(InputError, match="no picture is defined for the problem path: leave"):
        plot.plot_solution(path, instance, [], tmp_path / "x.png")
    assert not list(tmp_path.iterdir())


def test_no_global_figure_is_left_behind(tmp_path):
    draw(tsp(5), list(range(5)), tmp_path / "x.png")
    assert "matplotlib.pyplot" not in sys.modules or not (
        sys.modules["matplotlib.pyplot"].get_fignums()
    )


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_colours_are_lawful_and_neighbours_differ(count):
    colours = [route_colour(rank, count) for rank in range(count)]
    assert all(0 <= part <= 1 for colour in colours for part in colour)
    assert len(set(colours)) == count
    for a, b in itertools.pairwise(colours):
        assert sum(abs(x - y) for x, y in zip(a, b, strict=True)) > 0.25

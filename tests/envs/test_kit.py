"""The kits: the compiled one against the reference, the reference against exhaustive search, and
what hostile arguments do."""

import itertools
import math
import resource
import shutil
import subprocess
import sys
from collections import Counter
from importlib import import_module
from random import Random
from typing import Any

import kit_cases
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kit_disguises import disguised
from kit_hostile import Generator, Index, Nested, hostile, spoil

import spo_jax.envs.problems.cvrp.kit as cvrp_kit
import spo_jax.envs.problems.cvrp.kit.reference as cvrp
import spo_jax.envs.problems.kit as python_kit
import spo_jax.envs.problems.tsp.kit as tsp_kit
import spo_jax.envs.problems.tsp.kit.reference as tsp
import spo_jax.envs.problems.vrptw.kit as vrptw_kit
import spo_jax.envs.problems.vrptw.kit.reference as vrptw

REFERENCES: dict[str, Any] = {"tsp": tsp, "cvrp": cvrp, "vrptw": vrptw}
CASES = {"tsp": kit_cases.tsp, "cvrp": kit_cases.cvrp, "vrptw": kit_cases.vrptw}
FUNCTIONS = [(problem, name) for problem, kit in REFERENCES.items() for name in kit.__all__]

native = pytest.mark.skipif(not tsp_kit.NATIVE, reason="the native kit is not built")


def native_of(problem: str) -> Any:
    return import_module(f"spo_jax.envs.problems.{problem}.kit._native")


def as_array(dist: Any) -> Any:
    array = np.array(dist, dtype=np.float64).reshape(len(dist), len(dist))
    array.setflags(write=False)
    return array


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_compiler_builds_the_native_kits() -> None:
    """Or all that compares the two would be skipped where the build is broken."""
    assert tsp_kit.NATIVE
    assert cvrp_kit.NATIVE
    assert vrptw_kit.NATIVE


def test_the_package_offers_what_the_reference_does() -> None:
    for kit, reference, names in (
        (tsp_kit, tsp, kit_cases.TSP),
        (cvrp_kit, cvrp, kit_cases.CVRP),
        (vrptw_kit, vrptw, kit_cases.VRPTW),
    ):
        assert kit.__all__ == reference.__all__ == names
        assert all(callable(getattr(kit, name)) for name in names)
    matrix = ((0.0, 1.0), (1.0, 0.0))
    assert tsp_kit.prepare(matrix) is None
    assert cvrp_kit.prepare(matrix, (0, 1), 1) is None
    assert tsp_kit.NATIVE == cvrp_kit.NATIVE
    if tsp_kit.NATIVE:
        assert tsp_kit.cost is native_of("tsp").cost
        assert cvrp_kit.cost is native_of("cvrp").cost


# --- the native kit equals the reference ----------------------------------------------------------


def compare(problem: str, name: str, seed: int, size: int, layout: str) -> None:
    """One call of both: the same bits, or errors of a kind, and the same draws."""
    results = []
    for kit in (REFERENCES[problem], native_of(problem)):
        draw, rng = Random(seed), Random(seed)
        dist: Any = kit_cases.matrix(draw, size)
        if layout != "rows":
            dist = as_array(dist)
        if layout == "prepared":
            native_of(problem).prepare(dist)
        call = CASES[problem](draw, name, dist, rng)
        results.append((kit_cases.outcome(kit, call), rng.getstate()))
    assert results[0] == results[1]


LAYOUTS = st.sampled_from(["rows", "rows", "array", "prepared"])


@native
@pytest.mark.parametrize(("problem", "name"), FUNCTIONS)
@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(0, 12), layout=LAYOUTS)
def test_equals_the_reference(problem: str, name: str, seed: int, size: int, layout: str) -> None:
    compare(problem, name, seed, size, layout)


@native
@pytest.mark.parametrize(("problem", "name"), FUNCTIONS)
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(55, 80), layout=LAYOUTS)
def test_equals_the_reference_on_more_nodes(
    problem: str, name: str, seed: int, size: int, layout: str
) -> None:
    compare(problem, name, seed, size, layout)


@native
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("problem", "name"), FUNCTIONS)
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(0, 9))
def test_equals_the_reference_for_arguments_of_any_kind(
    problem: str, name: str, seed: int, size: int
) -> None:
    """Both convert them alike, or refuse them with errors of one kind, after as many draws."""
    results = []
    for kit in (REFERENCES[problem], native_of(problem)):
        draw, rng = Random(seed), Random(seed)
        call = disguised(draw, CASES[problem](draw, name, kit_cases.matrix(draw, size), rng))
        results.append((kit_cases.outcome(kit, call), rng.getstate()))
    assert results[0] == results[1], call


@native
def test_what_is_no_float_matrix_no_list_and_no_draw() -> None:
    """What once differed without a word, or never ended."""
    points = np.random.default_rng(1).random((6, 2))
    exact = np.linalg.norm(points[:, None] - points, axis=-1)
    single = exact.astype(np.float32)
    tour = [3, 1, 4, 0, 5, 2]
    for kit in (tsp, native_of("tsp")):
        assert kit.cost(single, tour) == tsp.cost(single.astype(np.float64), tour)
        assert kit.cost(exact, Counter(tour)) == tsp.cost(exact, tour)
        assert kit.remove(set(tour), {1, 9}) == ([0, 2, 3, 4, 5], [1])
        assert kit.two_opt(exact, np.array(tour), {5, 2}) == tsp.two_opt(exact, tour, [2, 5])
        for drawn in (1e18, 2.0, math.nan, 1.0):
            with pytest.raises(ValueError, match=r"rng\.random\(\) is not from 0 to below 1"):
                kit.string_removal(exact, tour, 0, 5, Generator([drawn]))
        with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
            kit.string_removal(exact, tour, 0, 2.0, Generator([0.5]))


@pytest.mark.long
@native
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(3, 7))
def test_every_search_ends(seed: int, size: int) -> None:
    """Also with distances that are no distances, where moves can go round in circles."""
    draw = Random(seed)
    numbers = [1e300, -1e300, 1e-300, 1.0, -1.0, 0.0, 1e16, -1e16, draw.uniform(-1, 1)]
    dist = tuple(tuple(draw.choice(numbers) for _ in range(size)) for _ in range(size))
    nodes = list(range(size))
    for kit in (tsp, native_of("tsp")):
        for search in (kit.two_opt, kit.or_opt, kit.lin_kernighan):
            assert sorted(search(dist, nodes, nodes, moves=10**30)) == nodes
    routes, demands = [nodes[1:3], nodes[3:]], [0] + [1] * (size - 1)
    for kit in (cvrp, native_of("cvrp")):
        kit.two_opt(dist, routes, nodes[1:], moves=10**30)
        for search in (kit.or_opt, kit.two_opt_star):
            search(dist, demands, size, routes, nodes[1:], moves=10**30)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(5, 8), directed=st.booleans())
def test_no_exchange_of_two_edges_shortens_what_lin_and_kernighan_leave(
    seed: int, size: int, directed: bool
) -> None:
    """Up to 8 nodes all exchanges are among the five that are tried: a brute force finds none."""
    points = np.random.default_rng(seed).random((size, 2))
    dist = np.linalg.norm(points[:, None] - points, axis=-1)
    if directed:
        dist[:, 0] *= 1.5
    nodes = list(range(size))
    tour, before = nodes, []
    while tour != before:
        before, tour = tour, tsp.lin_kernighan(dist, tour, nodes, near=64)
        assert sorted(tour) == nodes
        assert tsp.cost(dist, tour) <= tsp.cost(dist, before)
        if tsp.cost(dist, tour) == tsp.cost(dist, before):
            break
    for low, high in itertools.combinations(range(size + 1), 2):
        turned = tour[:low] + tour[low:high][::-1] + tour[high:]
        assert tsp.cost(dist, turned) > tsp.cost(dist, tour) - 1e-9


def test_lin_and_kernighan_find_a_hexagon_from_every_tour() -> None:
    places = [(0, 0), (4, 0), (6, 3), (4, 6), (0, 6), (-2, 3)]
    dist = [[math.dist(a, b) for b in places] for a in places]
    best = min(
        ([0, *rest] for rest in itertools.permutations(range(1, 6))),
        key=lambda tour: tsp.cost(dist, tour),
    )
    for rest in itertools.permutations(range(1, 6)):
        found = tsp.lin_kernighan(dist, [0, *rest], range(6))
        assert tsp.cost(dist, found) == pytest.approx(tsp.cost(dist, best))


@native
def test_a_list_of_lists_and_arrays_of_nodes_do_as_well() -> None:
    draw = Random(1)
    dist = kit_cases.matrix(draw, 12)
    nodes = np.array([3, 1, 2, 0, 7])
    for kit in (tsp, native_of("tsp")):
        expected = tsp.cost(dist, [3, 1, 2, 0, 7])
        assert kit.cost([list(row) for row in dist], nodes) == pytest.approx(expected)
        assert kit.cost(dist, tuple(nodes)) == expected
    demands = np.arange(12)
    routes = [[3, 1], [2, 7]]
    assert native_of("cvrp").loads(demands, routes) == cvrp.loads(tuple(range(12)), routes)
    assert native_of("cvrp").loads(demands[::-1], routes) == cvrp.loads(demands[::-1], routes)


@native
def test_a_matrix_that_changes_is_read_again_unless_prepared() -> None:
    kit = native_of("tsp")
    dist = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert kit.cost(dist, [0, 1]) == 2.0
    dist[0, 1] = 5.0
    assert kit.cost(dist, [0, 1]) == 6.0
    kit.prepare(dist)
    dist[0, 1] = 7.0
    assert kit.cost(dist, [0, 1]) == 6.0
    kit.prepare(dist)
    assert kit.cost(dist, [0, 1]) == 8.0
    for i in range(20):  # the table is small: the oldest goes
        kit.prepare(np.full((2, 2), float(i)))
    dist[0, 1] = 9.0
    assert kit.cost(dist, [0, 1]) == 10.0


# --- errors ---------------------------------------------------------------------------------------

D4 = tuple(tuple(float(abs(i - j)) for j in range(4)) for i in range(4))
Q4 = (0, 1, 2, 3)
RNG = Generator([0.5])

WRONG: list[tuple[str, str, list[Any], dict[str, Any]]] = [
    ("tsp", "cost", [D4, [0, 0]], {}),
    ("tsp", "cost", [D4, [-1]], {}),
    ("tsp", "cost", [D4, [4]], {}),
    ("tsp", "cost", [D4, [10**30]], {}),
    ("tsp", "remove", [[1, 1], []], {}),
    ("tsp", "remove", [[-1], []], {}),
    ("tsp", "nearest", [D4, -1, [0], 1], {}),
    ("tsp", "nearest", [D4, 0, [4], 1], {}),
    ("tsp", "nearest", [D4, 0, [1], -1], {}),
    ("tsp", "neighbors", [D4, -1], {}),
    ("tsp", "neighbors", [D4, -(10**30)], {}),
    ("tsp", "radial_removal", [D4, [0, 1], 9, 1], {}),
    ("tsp", "segment_removal", [[0, 1], 2, 1], {}),
    ("tsp", "string_removal", [D4, [0, 1], 2, 1, RNG], {"length": 0}),
    ("tsp", "related_removal", [D4, [0, 1], 2, 1, RNG], {}),
    ("tsp", "related_removal", [D4, [0, 1], 0, 2, RNG], {"power": 0}),
    ("tsp", "worst_removal", [D4, [0, 1], 1, RNG], {"power": math.nan}),
    ("tsp", "worst_removal", [D4, [0, 1], -1, RNG], {}),
    ("tsp", "random_removal", [[0, 1], -5, RNG], {}),
    ("tsp", "best_position", [D4, [0, 1], 1], {}),
    ("tsp", "ordered_insertion", [D4, [0, 1], [1]], {}),
    ("tsp", "ordered_insertion", [D4, [0, 1], [2]], {"bound": math.nan}),
    ("tsp", "ordered_insertion", [D4, [0, 1], [2]], {"blink": 1.5}),
    ("tsp", "ordered_insertion", [D4, [0, 1], [2]], {"noise": -1}),
    ("tsp", "ordered_insertion", [D4, [0, 1], [2]], {"noise": 10**400}),
    ("tsp", "ordered_insertion", [D4, [0, 1], [2]], {"near": -1}),
    ("tsp", "regret_insertion", [D4, [0, 1], [2]], {"k": 0}),
    ("tsp", "regret_insertion", [D4, [0, 1], [2]], {"weight": 1e7}),
    ("tsp", "greedy_insertion", [D4, [0, 1], [2, 2]], {}),
    ("tsp", "two_opt", [D4, [0, 1], [2]], {}),
    ("tsp", "two_opt", [D4, [0, 1], [1, 1]], {}),
    ("tsp", "two_opt", [D4, [0, 1], [1]], {"moves": -1}),
    ("tsp", "or_opt", [D4, [0, 1], [1]], {"length": 0}),
    ("tsp", "lin_kernighan", [D4, [0, 1], [2]], {}),
    ("tsp", "lin_kernighan", [D4, [0, 1], [1]], {"near": -1}),
    ("cvrp", "cost", [D4, [[0]]], {}),
    ("cvrp", "cost", [D4, [[1], [1]]], {}),
    ("cvrp", "loads", [Q4, [[4]]], {}),
    ("cvrp", "best_position", [D4, Q4, 5, [[1]], 0], {}),
    ("cvrp", "ordered_insertion", [D4, Q4, 5, [[1]], [2]], {"fresh": math.nan}),
    ("cvrp", "regret_insertion", [D4, Q4, 5, [[1]], [2]], {"fresh": -1}),
    ("cvrp", "regret_insertion", [D4, Q4, 5, [[1]], [1]], {}),
    ("cvrp", "route_removal", [D4, [[1]], 4, 1], {}),
    ("cvrp", "string_removal", [D4, [[1]], 1, 1, RNG], {"gap": -1}),
    ("cvrp", "related_removal", [D4, Q4, [[1]], 2, 1, RNG], {}),
    ("cvrp", "related_removal", [D4, Q4, [[1]], 1, 1, RNG], {"by_route": math.inf}),
    ("cvrp", "segment_removal", [[[1]], 2, 1], {}),
    ("cvrp", "two_opt_star", [D4, Q4, 5, [[1]], [2]], {}),
    ("vrptw", "begins", [D4, Q4, Q4[:3], [[1]]], {}),
    ("vrptw", "best_position", [D4, Q4, 5, Q4[:3], Q4, Q4, [[1]], 2], {}),
    ("vrptw", "ordered_insertion", [D4, Q4, 5, Q4, (0, 1, 2, math.nan), Q4, [[1]], [2]], {}),
    ("vrptw", "regret_insertion", [D4, Q4, 5, Q4, Q4, (0, 1, 2, 10**400), [[1]], [2]], {}),
    ("vrptw", "exchange", [D4, Q4, 5, Q4, Q4, Q4, [[1]], [2]], {}),
    ("vrptw", "exchange", [D4, Q4, 5, Q4, Q4, Q4, [[1]], [1]], {"length": 0}),
    ("vrptw", "timely_removal", [D4, Q4, Q4, [[1]], 2, 1], {}),
    ("vrptw", "timely_removal", [D4, Q4, Q4, [[1]], 1, 1], {"by_time": -1}),
    ("vrptw", "related_removal", [D4, Q4, Q4, Q4, [[1]], 1, 1, RNG], {"by_time": math.inf}),
]


@pytest.mark.parametrize(("problem", "name", "args", "named"), WRONG)
def test_what_is_wrong_is_a_value_error_in_both(
    problem: str, name: str, args: list[Any], named: dict[str, Any]
) -> None:
    for kit in (REFERENCES[problem], import_module(f"spo_jax.envs.problems.{problem}.kit")):
        with pytest.raises(ValueError):  # noqa: PT011
            getattr(kit, name)(*args, **named)


@native
@pytest.mark.parametrize(
    "dist",
    [
        ((0.0, 1.0), (1.0,)),
        ((0.0, math.nan), (1.0, 0.0)),
        ((0.0, math.inf), (1.0, 0.0)),
        np.zeros((2, 3)),
        np.full((2, 2), np.nan),
    ],
)
def test_a_matrix_must_be_square_and_finite(dist: Any) -> None:
    for problem in ("tsp", "cvrp"):
        for function in (native_of(problem).cost, lambda d, _, p=problem: native_of(p).prepare(d)):
            with pytest.raises(ValueError, match="dist"):
                function(dist, [])


@native
def test_demands_must_be_integers_whose_sums_are_exact() -> None:
    kit = native_of("cvrp")
    for demands in ((0, 2**53, 2**53), (0, 10**30, 1), (0, -(2**62), 1)):
        with pytest.raises(ValueError, match="large"):
            kit.loads(demands, [[1, 2]])
    with pytest.raises(TypeError):
        kit.loads((0, 1.5, 1), [[1, 2]])
    with pytest.raises(ValueError, match="no demand"):
        kit.best_position(D4, (0, 1), 5, [], 3)


@native
def test_wrong_types_and_arguments_are_type_errors() -> None:
    kit = native_of("tsp")
    calls: list[tuple[list[Any], dict[str, Any]]] = [
        ([], {}), ([D4], {}), ([D4, [0], 1], {}), ([D4, [0]], {"tour": [0]}), ([D4, [0]], {"x": 1}),
        ([D4, [0.0]], {}), ([D4, ["0"]], {}), ([D4, None], {}), ([D4, iter([0])], {}),
        ([3, []], {}),
        ([(None,), []], {}),
    ]  # fmt: skip
    for args, named in calls:
        with pytest.raises(TypeError):
            kit.cost(*args, **named)
    assert kit.cost(tour=[0, 1], dist=D4) == 2.0


# --- hostile programs -----------------------------------------------------------------------------


@native
@pytest.mark.parametrize(("problem", "name"), FUNCTIONS)
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(0, 9))
def test_hostile_arguments_do_no_harm(problem: str, name: str, seed: int, size: int) -> None:
    """No crash, no result with an exception pending, and a plain result if there is one."""
    kit, draw = native_of(problem), Random(seed)
    call = CASES[problem](draw, name, kit_cases.matrix(draw, size), Random(seed))
    _, args, named = hostile(draw, kit, call)
    try:
        result = getattr(kit, name)(*args, **named)
    except SystemError:
        raise
    except Exception:
        return
    assert plain(result)


def plain(value: Any) -> bool:
    if type(value) in (list, tuple):
        return all(plain(each) for each in value)
    return value is None or type(value) in (int, float)


@native
@pytest.mark.parametrize("drawn", [2.0, 1.0, -0.1, math.nan, math.inf, "x", None, 1, KeyError("r")])
def test_an_rng_that_is_none_is_refused(drawn: Any) -> None:
    kind = KeyError if isinstance(drawn, KeyError) else ValueError
    kind = kind if isinstance(drawn, (float, KeyError)) else TypeError
    for draws in ([drawn], [0.5, drawn]):
        with pytest.raises(kind):
            native_of("tsp").random_removal([3, 1, 2], 3, Generator(draws))
        with pytest.raises(kind):
            native_of("cvrp").regret_insertion(
                D4, Q4, 9, [[1]], [2, 3], noise=0.5, rng=Generator(draws)
            )


@native
def test_lists_that_change_during_a_call_change_nothing() -> None:
    """The arguments are copied before the first draw."""
    routes, customers = [[1, 2]], [3]
    changing = Generator([0.2, 0.7], [routes, customers])
    result = native_of("cvrp").ordered_insertion(
        D4, Q4, 9, routes, customers, noise=0.5, rng=changing
    )
    assert routes != [[1, 2]]
    assert result == cvrp.ordered_insertion(
        D4, Q4, 9, [[1, 2]], [3], noise=0.5, rng=Generator([0.2, 0.7])
    )
    tour: Any = [0, 1]
    tour.append(Index(2, tour))
    assert native_of("tsp").cost(D4, tour) == 4.0
    assert len(tour) != 3


EMPTIED = """
import gc
from spo_jax.envs.problems.tsp.kit import remove

nodes = []


def hold(box):
    try:
        yield box
    finally:
        nodes.clear()


gc.set_threshold(100)
for shift in range(12):
    nodes[:] = range(18_000)  # more than 128 KiB, so that what is freed is unmapped
    box = []
    holder = hold(box)
    next(holder)
    box.append(holder)
    del holder, box
    kept = [[] for _ in range(8 * shift)]
    while nodes:
        try:
            kept.append(remove(nodes, nodes))
        except ValueError as error:
            assert "changed while it was read" in str(error)
print("alive")
"""


@pytest.mark.long
@native
def test_a_list_that_the_collector_empties_while_it_is_copied() -> None:
    """Up to Python 3.11 the collector runs where a container is made, and closes generators."""
    done = subprocess.run([sys.executable, "-c", EMPTIED], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


@native
def test_what_calls_leave_is_forgotten() -> None:
    """The matrix of a call, which can be a gigabyte, goes; one that was prepared stays."""
    for problem, nodes in (("tsp", [0, 1]), ("cvrp", [[1]])):
        kit = native_of(problem)
        own = ((0.0, 1.0), (1.0, 0.0))
        before = sys.getrefcount(own)
        kit.cost(own, nodes)
        assert sys.getrefcount(own) == before + 1
        kit.forget()
        assert sys.getrefcount(own) == before
        kit.prepare(own)
        assert kit.neighbors(own, 1) is not None
        kit.forget()
        assert sys.getrefcount(own) == before + 1
        assert kit.neighbors(own, 5) == REFERENCES[problem].neighbors(own, 5)
        kit.forget()


def test_the_reference_keeps_what_the_native_kit_keeps() -> None:
    python_kit.KEPT.clear()
    own, changing = ((0.0, 1.0), (1.0, 0.0)), np.array([[0.0, 1.0], [1.0, 0.0]])
    before = sys.getrefcount(own)
    assert tsp.cost(own, [0, 1]) == 2.0
    assert sys.getrefcount(own) > before
    python_kit.forget()
    assert sys.getrefcount(own) == before
    assert tsp.cost(changing, [0, 1]) == 2.0
    changing[0, 1] = 5.0
    assert tsp.cost(changing, [0, 1]) == 6.0
    python_kit.prepare(changing)
    changing[0, 1] = 7.0
    python_kit.forget()
    assert tsp.cost(changing, [0, 1]) == 6.0
    for i in range(8):
        python_kit.prepare(np.full((2, 2), float(i)))
    assert tsp.cost(changing, [0, 1]) == 8.0
    python_kit.KEPT.clear()


@native
def test_a_call_within_a_call_keeps_its_matrix() -> None:
    for problem, base in (("tsp", [D4, [0, 1]]), ("cvrp", [D4, Q4, 9, [[1]]])):
        kit = native_of(problem)
        args = [tuple(map(tuple, np.array(base[0]) + 0.25)), *base[1:]]
        inner = Nested(kit, Random(3))
        plain_draw = Random(3)
        result = kit.ordered_insertion(*args, [2, 3], noise=0.5, rng=inner)
        again = []
        for _ in range(40):
            for _ in range(25):
                plain_draw.random()
            again.append(plain_draw.random())
        expected = REFERENCES[problem].ordered_insertion(
            *args, [2, 3], noise=0.5, rng=Generator(again)
        )
        assert result == expected


@native
def test_error_paths_hold_no_memory() -> None:
    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    dist = kit_cases.matrix(Random(5), 60)
    tour = list(range(40))
    calls: list[tuple[Any, list[Any], dict[str, Any]]] = [
        (native_of("tsp").regret_insertion, [dist, tour, [50, 51, 50]], {}),
        (native_of("tsp").ordered_insertion, [dist, tour, [50, 51]], {"noise": 1.0}),
        (native_of("tsp").cost, [[list(row) for row in dist], [*tour, "x"]], {}),
        (native_of("tsp").cost, [as_array(dist), [*tour, 70]], {}),
        (native_of("tsp").prepare, [[*map(list, dist), 5]], {}),
        (
            native_of("cvrp").related_removal,
            [dist, [1] * 60, [tour[1:]], 1, 9, Generator(["x"])],
            {},
        ),
        (native_of("cvrp").loads, [[1, 2, "x"], [[1]]], {}),
    ]

    def run(times: int) -> None:
        for function, args, named in calls:
            for _ in range(times):
                with pytest.raises((ValueError, TypeError, AttributeError)):
                    function(*args, **named)

    run(100)
    before = peak()
    run(1500)
    assert peak() - before < 4096  # KiB; a block of a matrix at each call would be 300 MB


# --- the reference against exhaustive search ------------------------------------------------------


def length(dist: Any, tour: list[int]) -> float:
    return sum(dist[a][b] for a, b in itertools.pairwise([*tour, *tour[:1]]))


def routes_length(dist: Any, routes: list[list[int]]) -> float:
    return sum(length(dist, [0, *route]) for route in routes if route)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(2, 8))
@example(seed=0, size=2)
def test_the_cheapest_place_is_the_cheapest(seed: int, size: int) -> None:
    draw = Random(seed)
    dist = kit_cases.matrix(draw, size)
    tour = list(range(1, size))
    draw.shuffle(tour)
    added, index = tsp.best_position(dist, tour, 0)
    grown = [length(dist, [*tour[:i], 0, *tour[i:]]) for i in range(1, size)]
    assert length(dist, tour) + added == pytest.approx(min(grown))
    assert length(dist, [*tour[:index], 0, *tour[index:]]) == pytest.approx(min(grown))
    demands = (0, *(draw.randrange(1, 5) for _ in tour))
    routes = [route for route in kit_cases.split(draw, tour[1:]) if route]
    added, r, index = cvrp.best_position(dist, demands, 9, routes, tour[0])
    possible = [routes_length(dist, [*routes, [tour[0]]])]
    for at, route in enumerate(routes):
        if sum(demands[node] for node in [*route, tour[0]]) <= 9:
            possible += [
                routes_length(
                    dist, [*routes[:at], [*route[:i], tour[0], *route[i:]], *routes[at + 1 :]]
                )
                for i in range(len(route) + 1)
            ]
    assert routes_length(dist, routes) + added == pytest.approx(min(possible), abs=1e-5)
    if r < len(routes):
        routes[r].insert(index, tour[0])
    else:
        routes.append([tour[0]])
    assert routes_length(dist, routes) == pytest.approx(min(possible), abs=1e-5)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(3, 8))
def test_insertions_are_the_places_one_after_the_other(seed: int, size: int) -> None:
    draw = Random(seed)
    dist = kit_cases.matrix(draw, size)
    tour, rest = [0, 1], list(range(2, size))
    draw.shuffle(rest)
    expected, added = list(tour), 0.0
    for node in rest:
        price, index = tsp.best_position(dist, expected, node)
        expected.insert(index, node)
        added += price
    assert tsp.ordered_insertion(dist, tour, rest) == (expected, added)
    assert tsp.ordered_insertion(dist, tour, rest, bound=added) == (None, math.inf)
    above = math.nextafter(added, math.inf)
    partial = max(itertools.accumulate(prices(dist, tour, rest)), default=0.0)
    if partial < above:
        assert tsp.ordered_insertion(dist, tour, rest, bound=above) == (expected, added)
    greedy, waiting = list(tour), list(rest)
    while waiting:
        best = min(waiting, key=lambda node: tsp.best_position(dist, greedy, node)[0])
        greedy.insert(tsp.best_position(dist, greedy, best)[1], best)
        waiting.remove(best)
    assert tsp.greedy_insertion(dist, tour, rest)[0] == greedy


def prices(dist: Any, tour: list[int], rest: list[int]) -> list[float]:
    grown, paid = list(tour), []
    for node in rest:
        price, index = tsp.best_position(dist, grown, node)
        grown.insert(index, node)
        paid.append(price)
    return paid


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(2, 9))
def test_results_are_complete_and_within_the_capacity(seed: int, size: int) -> None:
    draw = Random(seed)
    dist = kit_cases.matrix(draw, size)
    demands = (0, *(draw.randrange(1, 6) for _ in range(size - 1)))
    customers = list(range(1, size))
    draw.shuffle(customers)
    routes, added = cvrp.regret_insertion(dist, demands, 8, [], customers, k=3)
    assert sorted(itertools.chain(*routes)) == sorted(customers)
    assert max(cvrp.loads(demands, routes)) <= 8
    assert routes_length(dist, routes) == pytest.approx(added, abs=1e-4)
    for improve in (cvrp.or_opt, cvrp.two_opt_star):
        better = improve(dist, demands, 8, routes, customers, moves=20)
        assert sorted(itertools.chain(*better)) == sorted(customers)
        assert max(cvrp.loads(demands, better)) <= 8
    for destroy in (cvrp.string_removal, cvrp.related_removal):
        args = (dist, demands) if destroy is cvrp.related_removal else (dist,)
        partial, removed = destroy(*args, routes, customers[0], 2, draw)
        assert 1 <= len(removed) <= 2  # strings: up to as many, one from each route
        assert [node for route in routes for node in route if node not in removed] == [
            node for route in partial for node in route
        ]


def test_spoiling_ends() -> None:
    """The hostile arguments of these tests stay small."""
    lists: list[Any] = [[1, 2], [[3], 4, 5]]
    for _ in range(100):
        spoil(lists)
    assert len(lists) < 200

"""The VRPTW: rules, Solomon's files, places and programs against brute force and PyVRP."""

import contextlib
import itertools
import json
import math
import random
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spo_jax.cli import main
from spo_jax.envs.exports import tail
from spo_jax.envs.problem import Infeasible
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.cvrp.files import cvrplib
from spo_jax.envs.problems.tsp.files import tsplib
from spo_jax.envs.problems.vrptw.baselines.alns import alns
from spo_jax.envs.problems.vrptw.baselines.heuristics import Places, insertion_i1
from spo_jax.envs.problems.vrptw.files import solomon
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program, load_pair, save_pair

PROBLEM = get_problem("vrptw")
# Written for this test: whole distances, so that all times can be worked out by hand.
SMALL = """SMALL-1

VEHICLE
NUMBER     CAPACITY
   2          10

CUSTOMER
CUST NO.  XCOORD.   YCOORD.    DEMAND   READY TIME  DUE DATE   SERVICE   TIME

    0       0          0          0          0        100          0
    1       0          3          5          0         50          2
    2       4          3          5         20         25          2
    3       4          0          4          0         30          1
    4      -6         -8         10         50         80          5
"""
# Route 1 2: at 3, leaves 5; at 9, waits to 20, leaves 22; back at 27.
SOLUTION = "Route #1: 1 2\nRoute #2: 3\nRoute #3: 4\nCost 40\n"


def instance_file(folder: Path, text: str = SMALL, name: str = "small.txt") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def in_time(instance, route, slack=1e-9) -> bool:
    """Whether a vehicle can drive the route, from the coordinates, by its own account of time."""
    ready, due, service = (instance.extra[k] for k in ("ready", "due", "service"))
    clock, at = ready[0], 0
    for v in [*route, 0]:
        clock += service[at] + math.dist(instance.coords[at], instance.coords[v])
        if v and clock < ready[v]:
            clock = ready[v]
        if clock > due[v] + slack:
            return False
        at = v
    return sum(instance.demands[v] for v in route) <= instance.capacity


def length(instance, routes) -> float:
    walks = ([0, *route, 0] for route in routes)
    legs = itertools.chain.from_iterable(map(itertools.pairwise, walks))
    return math.fsum(math.dist(instance.coords[a], instance.coords[b]) for a, b in legs)


def solutions(size):
    """All ways to serve the customers 1 to `size`: orders of them, cut everywhere."""
    for order in itertools.permutations(range(1, size + 1)):
        for cuts in itertools.product((False, True), repeat=size - 1):
            routes = [[order[0]]]
            for v, cut in zip(order[1:], cuts, strict=True):
                if cut:
                    routes.append([])
                routes[-1].append(v)
            yield routes


def optimum(instance) -> float:
    return min(
        length(instance, routes)
        for routes in solutions(instance.size)
        if all(in_time(instance, route) for route in routes)
    )


# --- rules ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_rules_accept_what_is_feasible_and_nothing_else(seed: int) -> None:
    [instance] = PROBLEM.sample(5, 1, seed)
    instance = replace(instance, capacity=15)
    rules = PROBLEM.rules(instance.seen())
    verdicts = set()
    for routes in solutions(5):
        feasible = all(in_time(instance, route) for route in routes)
        verdicts.add(feasible)
        if feasible:
            assert rules.repaired([list(r) for r in routes]) == routes
            assert rules.cost(routes) == pytest.approx(length(instance, routes), rel=1e-12)
            assert PROBLEM.cost(instance, routes) == rules.cost(routes)
            assert PROBLEM.decode(instance, rules.encode(routes)) == routes
            solomon.check_routes(instance, routes)
        else:
            with pytest.raises(Infeasible, match=r"late|capacity"):
                rules.repaired(routes)
            with pytest.raises(Infeasible, match=r"late|capacity"):
                PROBLEM.decode(instance, rules.encode(routes))
            with pytest.raises(InputError, match=r"late|capacity"):
                solomon.check_routes(instance, routes)
    assert verdicts == {True, False}


@pytest.mark.parametrize(
    "output",
    [None, [[1, 2], [3]], [[1, 2], [3], [4, 1]], [[1, 2], [3], [0, 4]], [[1, 2], [3], [4.0]]],
)
def test_rules_refuse_what_is_no_solution(tmp_path, output) -> None:
    rules = PROBLEM.rules(PROBLEM.read(instance_file(tmp_path)).seen())
    with pytest.raises(Infeasible):
        rules.repaired(output)


def test_late_means_later_than_sums_may_differ_by_rounding(tmp_path) -> None:
    """In tenths: 0.1 + 0.2 is not 0.3 in binary, and a program may add in another order."""
    rows = ["0 0 0 0 0 9 0", "1 0.1 0 1 0 9 0.2", "2 0.1 0 1 0 0.3 0"]
    text = SMALL[: SMALL.index("    0 ")] + "\n".join(rows) + "\n"
    instance = PROBLEM.read(instance_file(tmp_path, text))
    assert instance.extra["service"][1] + instance.dist[0, 1] > 0.3
    assert PROBLEM.rules(instance).repaired([[1, 2]]) == [[1, 2]]
    solomon.check_routes(instance, [[1, 2]])
    due = instance.extra["due"].copy()
    due[2] -= 1e-9
    later = replace(instance, extra={**instance.extra, "due": due})
    with pytest.raises(Infeasible, match="late at a customer"):
        PROBLEM.rules(later).repaired([[1, 2]])


@pytest.mark.parametrize("late", [0.0, 1e-9])
def test_what_rounding_alone_misses_is_no_reason_to_refuse_a_file(tmp_path, late) -> None:
    """A route of one customer is then in time to the bit, as programs are told."""
    closes, due = 0.3 - late, 0.2
    rows = [f"0 0 0 0 0 {closes!r} 0", f"1 0.1 0 1 0 {due} 0.1"]
    path = instance_file(tmp_path, SMALL[: SMALL.index("    0 ")] + "\n".join(rows) + "\n")
    assert 0.1 + 0.1 + 0.1 > 0.3
    if late:
        with pytest.raises(InputError, match="customer 1 cannot be served in time"):
            PROBLEM.read(path)
        return
    instance = PROBLEM.read(path)
    assert instance.extra["due"].tolist() == [0.1 + 0.1 + 0.1, 0.2]
    assert PROBLEM.construct(instance) == [[1]]
    assert PROBLEM.rules(instance).start(random.Random(0)) == [[1]]


def test_rules_need_times() -> None:
    [instance] = PROBLEM.sample(5, 1, 0)
    with pytest.raises(InputError, match="needs ready, due, service"):
        PROBLEM.rules(replace(instance, extra={}))


@settings(max_examples=30, deadline=None)
@given(st.integers(3, 25), st.integers(0, 10**6))
def test_sampled_instances_are_feasible_and_the_same_whatever_the_count(size, seed) -> None:
    first, second = PROBLEM.sample(size, 2, seed)
    assert PROBLEM.sample(size, 1, seed)[0].digest == first.digest
    for instance in (first, second):
        rules = PROBLEM.rules(instance.seen())
        assert all(in_time(instance, [v]) for v in range(1, size + 1))
        for routes in (rules.start(random.Random(seed)), PROBLEM.construct(instance)):
            assert rules.repaired(routes) == routes
            assert all(in_time(instance, route) for route in routes)
            solomon.check_routes(instance, routes)
    assert rules.start(random.Random(1)) == rules.start(random.Random(1))


def test_a_part_is_an_instance_whose_solutions_fit_back() -> None:
    [instance] = PROBLEM.sample(40, 1, 3)
    routes = insertion_i1(instance)
    part = PROBLEM.part(instance, routes, 7, 15)
    inner = PROBLEM.rules(part.instance)
    assert inner.repaired(part.solution) == part.solution
    whole = PROBLEM.rules(instance).repaired(part.whole(part.solution))
    assert sorted(whole) == sorted(routes)
    alone = part.whole([[v] for v in range(1, part.instance.size + 1)])
    PROBLEM.rules(instance).repaired(alone)


# --- places ---------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 1.0]))
def test_places_are_those_where_the_longer_route_is_in_time(seed, mu) -> None:
    [instance] = PROBLEM.sample(12, 1, seed)
    instance = replace(instance, capacity=1000)
    rng = random.Random(seed)
    route = rng.choice(PROBLEM.rules(instance).start(rng))
    others = np.array([v for v in range(1, 13) if v not in route])
    if not len(others):
        return
    added, pushed = Places(instance).of(route, others, mu)
    dist, walk = instance.dist, [0, *route, 0]
    before = [begins for _, begins, _ in solomon.schedule(instance, route)]
    for k, v in enumerate(others.tolist()):
        for i in range(len(route) + 1):
            longer = [*route[:i], v, *route[i:]]
            assert np.isfinite(added[k, i]) == in_time(instance, longer)
            if np.isfinite(added[k, i]):
                a, b = walk[i], walk[i + 1]
                assert added[k, i] == pytest.approx(dist[a, v] + dist[v, b] - mu * dist[a, b])
                after = [begins for _, begins, _ in solomon.schedule(instance, longer)][i + 1]
                assert pushed[k, i] == pytest.approx(max(0, after - before[i]), abs=1e-9)
            else:
                assert pushed[k, i] == np.inf


# --- files ----------------------------------------------------------------------------------------


def test_a_small_file(tmp_path) -> None:
    instance = PROBLEM.read(instance_file(tmp_path, name="SMALL.TXT"))
    assert (instance.problem, instance.name, instance.size) == ("vrptw", "SMALL-1", 4)
    assert instance.dist[0].tolist() == [0, 3, 5, 4, 10]
    assert instance.demands.tolist() == [0, 5, 5, 4, 10]
    assert instance.capacity == 10
    assert instance.extra["ready"].tolist() == [0, 0, 20, 0, 50]
    assert instance.extra["due"].tolist() == [100, 50, 25, 30, 80]
    assert instance.extra["service"].tolist() == [0, 2, 2, 1, 5]
    assert instance.file["vehicles"] == 2  # three routes are allowed all the same
    assert (instance.reference, instance.reference_source) == (None, "no .sol beside the file")
    assert list(solomon.schedule(instance, [1, 2])) == [(1, 3, 50), (2, 20, 25), (0, 27, 100)]
    assert PROBLEM.cost(instance, [[1, 2], [3], [4]]) == 40
    assert optimum(instance) == 38  # 3 2, 1, 4: 12 + 6 + 20


def test_a_written_instance_is_read_as_the_same(tmp_path) -> None:
    for instance in (PROBLEM.read(instance_file(tmp_path)), PROBLEM.sample(9, 1, 4)[0]):
        solomon.write_instance(tmp_path / "again.txt", instance)
        again = PROBLEM.read(tmp_path / "again.txt")
        assert (again.digest, again.name) == (instance.digest, instance.name)
        assert (again.coords == instance.coords).all()
    with pytest.raises(InputError, match="has no coordinates"):
        solomon.write_instance(tmp_path / "none.txt", instance.seen())


def test_fractions_of_demands_are_scaled_and_distances_can_be_rounded_up(tmp_path) -> None:
    text = SMALL.replace("5          0         50", "2.5        0         50")
    text = text.replace("  -6         -8", "  -6         -8.5")
    instance = PROBLEM.read(instance_file(tmp_path, text))
    assert instance.capacity == 20
    assert instance.demands.tolist() == [0, 5, 10, 8, 20]
    assert "multiplied by 2" in instance.file["remarks"][1]
    assert instance.dist[0, 4] == math.hypot(6, 8.5)
    path = tmp_path / "small.txt"
    assert PROBLEM.read(path, distances="exact").digest == instance.digest
    assert PROBLEM.read(path, distances="ceil").dist[0].tolist() == [0, 3, 5, 4, 11]
    with pytest.raises(InputError, match="--distances round may lengthen"):
        PROBLEM.read(path, distances="round")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("VEHICLE\n", "", "line 3: expected the section VEHICLE, not 'NUMBER     CAPACITY': this"),
        ("CUSTOMER\n", "", "the section CUSTOMER is missing|line 7: expected a row of numbers"),
        (SMALL, "hello\n", "the section VEHICLE is missing: this is not Solomon's format"),
        ("CUSTOMER\n", "VEHICLE\n", "line 7: a second section VEHICLE"),
        ("   2          10", "   2", "line 5: expected 'number capacity', not '2'"),
        ("   2          10\n", "", "VEHICLE needs one row, 'number capacity', and has 0"),
        ("   2          10", "   2.5        10", "line 5: the number of vehicles is 2.5"),
        ("   2          10", "   2          0", "line 5: the capacity must be positive"),
        ("   2          10", "   2          x", "line 5: the capacity 'x' is not a number"),
        ("    1       0", "    7       0", "line 11: expected customer 1, not 7"),
        ("    4      -6", "    4     nan", "line 14: the x nan is not a finite number"),
        ("    4      -6", "    4      six", "line 14: the x 'six' is not a number"),
        ("    4      -6", "  four      -6", "line 14: expected a row of numbers, not 'four"),
        ("         80          5", "         80", r"line 14: expected 7 columns \(number, x, "),
        ("     50         80", "     80         50", "the due date 50 is before the ready time 80"),
        ("     50         80", "     -1         80", "line 14: ready time, due date and service"),
        ("10         50", "11         50", "demand 11 of customer 4 exceeds the capacity 10"),
        ("10         50", "-1         50", "the demand of customer 4 must not be negative"),
        ("VEHICLE\n", "VEHICLE\nSPEED : 2\n", "line 4: expected a row of numbers, not 'SPEED : 2'"),
        ("CUSTOMER\n", "CUSTOMER\nMAX_DURATION 90\n", "line 8: expected a row of numbers"),
        ("100          0", "100          3", "line 10: the depot's service time must be 0, not 3"),
        ("   50         80", "    0          9", "line 14: customer 4 cannot be reached in its "
         "window: a vehicle that comes from the depot is there at 10, and it is due at 9"),
        ("   50         80", "   50         97", ""),
        ("80          5", "80         45", "line 14: customer 4 cannot be served in time: the "
         "vehicle would be back at 105, and the depot closes at 100"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_one_sentence(tmp_path, old, new, says) -> None:
    assert old in SMALL
    path = instance_file(tmp_path, SMALL.replace(old, new, 1))
    if not says:
        assert PROBLEM.read(path).size == 4
        return
    with pytest.raises(InputError, match=says) as caught:
        PROBLEM.read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_heads_tell_of_columns_in_another_order(tmp_path) -> None:
    for old, new in [("DEMAND   READY TIME", "READY TIME   DEMAND"), ("XCOORD.   Y", "YCOORD.   X"),
                     ("NUMBER     CAPACITY", "CAPACITY     NUMBER")]:  # fmt: skip
        with pytest.raises(InputError, match="expected a row of numbers, not "):
            PROBLEM.read(instance_file(tmp_path, SMALL.replace(old, new)))
    for old, new in [("NUMBER     CAPACITY\n", ""), ("CUST NO.  X", "CUSTOMER  X")]:
        assert PROBLEM.read(instance_file(tmp_path, SMALL.replace(old, new))).size == 4


def test_stops_without_demand_and_a_depot_with_one(tmp_path) -> None:
    plain = PROBLEM.read(instance_file(tmp_path))
    assert plain.file["remarks"] == ["the 2 vehicles of the file are no limit"]
    text = SMALL.replace("10         50", " 0         50").replace("   2          10", "   1  10")
    text = text.replace("0          0        100", "7          0        100")
    instance = PROBLEM.read(instance_file(tmp_path, text))
    assert instance.demands.tolist() == [0, 5, 5, 4, 0]
    assert instance.file["remarks"] == [
        "the 1 vehicle of the file is no limit", "the depot's demand of 7 is not counted"
    ]  # fmt: skip
    solomon.check_routes(instance, [[1, 2], [3, 4]])


def test_a_depot_alone_is_no_instance(tmp_path) -> None:
    text = SMALL[: SMALL.index("    1 ")]
    with pytest.raises(InputError, match="CUSTOMER needs a row for the depot and one for each"):
        PROBLEM.read(instance_file(tmp_path, text))


@pytest.mark.parametrize("reader", [cvrplib.read, tsplib.read])
def test_readers_of_other_problems_name_this_one(tmp_path, reader) -> None:
    with pytest.raises(InputError, match="this is a VRPTW file in Solomon's format: --problem vr"):
        reader(instance_file(tmp_path))


def test_solutions(tmp_path) -> None:
    path, solution = instance_file(tmp_path), tmp_path / "small.sol"
    instance = PROBLEM.read(path)
    PROBLEM.write(solution, instance, [[1, 2], [], [3], [4]])
    assert solution.read_text() == SOLUTION
    assert PROBLEM.read_solution(solution, instance) == [[1, 2], [3], [4]]
    again = PROBLEM.read(path)
    assert (again.reference, again.reference_source) == (40, "small.sol")
    solution.write_text(SOLUTION.replace("Cost 40", "Cost 40.00001"))  # as rounded costs are
    assert PROBLEM.read(path).reference_source == "small.sol"
    solution.write_text(SOLUTION.replace("Cost 40", "Cost 39"))
    assert PROBLEM.read(path).reference_source == "small.sol (its Cost line says 39)"
    for routes, says in (
        ("Route #1: 1 3\nRoute #2: 2\n", "customer 4 is not visited"),
        ("Route #1: 1 2 3\nRoute #2: 4\n", "route 1 carries 14, more than the capacity 10"),
        ("Route #1: 2 1\nRoute #2: 3 4\n", "route 2 carries 14"),
        ("Route #1: 2 3\nRoute #2: 1 1\nRoute #3: 4\n", "customer 1 is visited twice"),
    ):
        solution.write_text(routes)
        with pytest.raises(InputError, match=f"{solution}: no solution of SMALL-1: .*{says}"):
            PROBLEM.read_solution(solution, instance)
        assert PROBLEM.read(path).reference is None
        assert says in PROBLEM.read(path).reference_source
    early = instance_file(tmp_path, SMALL.replace("0         30", "0         24"))
    solution.write_text("Route #1: 2 3\nRoute #2: 1\nRoute #3: 4\n")
    with pytest.raises(InputError, match="route 1 is late at customer 3, at 25 in place of 24"):
        PROBLEM.read_solution(solution, PROBLEM.read(early))
    with pytest.raises(InputError, match="late"):
        PROBLEM.write(tmp_path / "late.sol", PROBLEM.read(early), [[2, 3], [1], [4]])
    assert not (tmp_path / "late.sol").exists()


# --- programs -------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9), st.integers(3, 22), st.booleans())
def test_programs_of_the_grammar_keep_routes_feasible(seed, size, state) -> None:
    rng = random.Random(seed)
    functions = []
    for role in ("destroy", "repair"):
        grammar = PROBLEM.grammar(role)
        names: dict = {}
        exec(grammar.render(grammar.sample(rng, state))[1], names)
        functions.append(names[role])
    [instance] = PROBLEM.sample(size, 1, seed)
    rules = PROBLEM.rules(instance.seen())
    given, current = rules.arguments("rows"), rules.start(rng)
    for step in range(4):
        output = functions[0](*given, rules.copy(current), step, rng)
        partial, removed = rules.destroyed(current, output)
        current = rules.repaired(
            functions[1](*given, [r[:] for r in partial], removed[:], step, rng)
        )
        assert all(in_time(instance, route) for route in current)


@pytest.mark.parametrize("role", ["destroy", "repair"])
def test_the_grammar_knows_time(role) -> None:
    grammar = PROBLEM.grammar(role)
    texts = [grammar.render(grammar.sample(random.Random(k))) for k in range(300)]
    words = {"destroy": ("time window",), "repair": ("due time", "width of their time windows")}
    for word in words[role]:
        assert any(word in strategy for strategy, _ in texts)
    assert len({source for _, source in texts}) > 290


def pairs() -> list[Pair]:
    """The pair that ships, and each classical destroy with the repair of that pair."""
    own = load_pair(PROBLEM.pair)
    return [own, *(Pair(each, own.repair) for each in PROBLEM.classical_destroys())]


@pytest.mark.long
def test_the_pair_that_ships_and_the_classical_destroys_find_the_optimum() -> None:
    instances = PROBLEM.sample(6, 2, 0)
    several = pairs()
    assert len({pair.destroy.digest for pair in several}) == 6
    with LocalEvaluator(PROBLEM, workers=2) as evaluator:
        found = evaluator.run(several, instances, seeds=range(3), steps=60)
    assert found.ok.all(), found.reason
    for i, instance in enumerate(instances):
        best = optimum(instance)
        assert found.final_cost[:, i].min(axis=1) == pytest.approx(best, rel=1e-9)
        assert found.final_cost.min() >= 0
        routes = PROBLEM.decode(instance, found.code_of(0, i, 0))
        assert all(in_time(instance, route) for route in routes)


def test_the_contracts_have_the_interface() -> None:
    names = ", ".join(each.name for each in PROBLEM.interface.arguments)
    for role, rest in (("destroy", "current_routes"), ("repair", "partial_routes, removed_cust")):
        assert f"{role}({names}, {rest}" in PROBLEM.contract(role)
        for name in ("ready", "due", "service"):
            assert f"- {name}: {name}[i]" in PROBLEM.contract(role)


def test_the_pair_works_as_a_function(tmp_path) -> None:
    pair = load_pair(PROBLEM.pair)
    behind = tail(PROBLEM, pair, "function")
    path = save_pair(tmp_path / "pair.py", pair, "", PROBLEM.interface, PROBLEM.kit, behind)
    names: dict = {}
    exec(path.read_text(), names)
    solve = names["solve"]
    [instance] = PROBLEM.sample(6, 1, 8)
    rest = [instance.capacity, *instance.extra.values()]
    found = solve(instance.coords, instance.demands, *rest, steps=60)
    assert all(in_time(instance, route) for route in found)
    assert length(instance, found) == pytest.approx(optimum(instance), rel=1e-9)
    early = rest[2].copy()
    early[0] = 0.3  # when the depot closes
    with pytest.raises(ValueError, match="cannot be served in time"):
        solve(instance.coords, instance.demands, *rest[:2], early, rest[3])
    with pytest.raises(ValueError, match="one finite number for each place"):
        solve(instance.coords, instance.demands, *rest[:3], rest[3][1:])
    for wrong in (math.nan, "many"):
        with pytest.raises(ValueError, match="must be finite numbers"):
            solve(instance.coords, instance.demands, wrong, *rest[1:])
    # As in a file: three times 0.1 is later than 0.3 by rounding alone.
    assert solve([[0, 0], [0.1, 0]], [0, 1], 1, [0, 0], [0.3, 0.2], [0, 0.1], steps=2) == [[1]]


# --- other solvers --------------------------------------------------------------------------------


@pytest.mark.long
def test_alns_and_the_insertion_are_feasible_and_no_better_than_the_optimum() -> None:
    for instance in PROBLEM.sample(6, 3, 2):
        best = optimum(instance)
        found = alns(instance, seed=1, steps=60)
        assert all(in_time(instance, route) for route in found)
        assert length(instance, found) == pytest.approx(best, rel=1e-9)
        assert found == alns(instance, seed=1, steps=60)
        assert length(instance, insertion_i1(instance)) >= best - 1e-9


def test_pyvrp_agrees_on_costs_and_feasibility() -> None:
    library = pytest.importorskip("pyvrp")
    from spo_jax.envs.problems.cvrp.baselines.references import data_of
    from spo_jax.envs.problems.vrptw.baselines.references import scaled_times

    [drawn] = PROBLEM.sample(8, 1, 11)
    # On whole numbers, where both are exact. Ceilings keep the triangle inequality.
    dist = np.ceil(100 * drawn.dist)
    extra = {name: np.ceil(100 * row) for name, row in drawn.extra.items()}
    instance = replace(drawn, dist=dist, extra=extra, capacity=25)
    data = data_of(instance, scaled_times(instance))
    [scale] = np.unique(scaled_times(instance).weights[dist > 0] / dist[dist > 0])
    rules, rng, verdicts = PROBLEM.rules(instance.seen()), random.Random(0), set()
    for _ in range(400):
        order = rng.sample(range(1, 9), 8)
        cuts = sorted(rng.sample(range(1, 8), rng.randint(2, 6)))
        routes = [order[a:b] for a, b in itertools.pairwise([0, *cuts, 8])]
        theirs = library.Solution(
            data, [library.Route(data, [library.Activity(f"C{v - 1}") for v in r], 0)
                   for r in routes]
        )  # fmt: skip
        try:
            rules.repaired(routes)
            ours = True
        except Infeasible:
            ours = False
        assert theirs.is_feasible() == ours
        assert theirs.distance() == scale * rules.cost(routes)
        verdicts.add(ours)
    assert verdicts == {True, False}


@pytest.mark.long
@pytest.mark.parametrize("name", ["pyvrp", "or_tools"])
def test_solvers_find_the_optimum(name) -> None:
    pytest.importorskip({"pyvrp": "pyvrp", "or_tools": "ortools"}[name])
    from spo_jax.envs.problems.vrptw.baselines.or_tools import or_tools
    from spo_jax.envs.problems.vrptw.baselines.references import pyvrp

    for instance in PROBLEM.sample(6, 2, 5):
        found = pyvrp(instance) if name == "pyvrp" else or_tools(instance, seconds=0.2)
        assert all(in_time(instance, route) for route in found)
        assert length(instance, found) == pytest.approx(optimum(instance), rel=1e-9)


@pytest.mark.parametrize("horizon", [1e2, 1e8, 1e12])
@pytest.mark.parametrize("largest", [150_000, 1_000_000])
def test_times_of_solvers_fit_whatever_the_horizon_is(horizon, largest) -> None:
    """An overflow would end OR-Tools' process."""
    from spo_jax.envs.problems.vrptw.baselines.references import scaled_times

    [drawn] = PROBLEM.sample(6, 1, 5)
    due = np.full(7, horizon)
    small = replace(drawn, dist=drawn.dist * 1e-5, extra={**drawn.extra, "due": due})
    times = scaled_times(small, largest)
    assert largest / 10 < times.weights.max() <= largest
    assert times.late.min() == times.late.max() <= 2**53
    for rows in (times.durations, times.early, times.service):
        assert rows.min() >= 0
    clock = times.late[0] / horizon  # ways take no less time than they are long
    assert (times.durations >= small.dist * clock * (1 - 1e-9)).all()


# --- commands -------------------------------------------------------------------------------------


def spo(capsys, *arguments: object) -> tuple[int, str, str]:
    code = main([*map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.long
def test_solve_finds_the_problem_by_the_suffix(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("spo_jax.envs.problems.vrptw.MOST", 2)  # four are searched, too
    instance_file(tmp_path)
    code, output, errors = spo(
        capsys, "solve", "small.txt", "--steps", 30, "--workers", 1, "--plot", "small.png",
        "--json", "small.json",
    )  # fmt: skip
    assert code == 0, errors
    assert "cost 38" in output
    text = (tmp_path / "small.spo.sol").read_text()
    assert re.search("^Cost 38$", text, re.MULTILINE)
    assert (tmp_path / "small.png").stat().st_size > 1000
    record = json.loads((tmp_path / "small.json").read_text())
    assert sorted(walk["load"] for walk in record["walks"]) == [5, 9, 10]
    code, output, _ = spo(
        capsys, "solve", "small.txt", "--steps", 5, "--workers", 1, "--start", "small.spo.sol",
        "--out", "again.sol",
    )  # fmt: skip
    assert code == 0
    assert "started at 38" in output
    (tmp_path / "bad.sol").write_text(SOLUTION.replace("1 2", "1"))
    code, _, errors = spo(capsys, "solve", "small.txt", "--start", "bad.sol")
    assert code == 2
    assert "customer 2 is not visited" in errors


@pytest.mark.parametrize("size", [1, 2])
def test_very_small_instances_are_solved(tmp_path, monkeypatch, capsys, size) -> None:
    """35% of their customers are less than one."""
    monkeypatch.chdir(tmp_path)
    rows = SMALL.splitlines(keepends=True)
    end = rows.index("CUSTOMER\n") + 4 + size  # after the depot and so many customers
    path = instance_file(tmp_path, "".join(rows[:end]))
    code, out, errors = spo(capsys, "solve", path, "--steps", 5, "--workers", 1)
    assert code == 0, errors
    assert re.search(r"cost (\d+) in 1 route,", out)[1] == {1: "6", 2: "12"}[size]
    assert "too small to search: this is the best of all solutions" in out


def test_the_best_of_two_customers_is_in_time(tmp_path) -> None:
    """A vehicle that comes from 1 is late at 2, and two vehicles take a longer way."""
    rows = SMALL.splitlines(keepends=True)
    end = rows.index("CUSTOMER\n") + 5
    other = "    2       1         -3          1          0          9          2\n"
    instance = PROBLEM.read(instance_file(tmp_path, "".join([*rows[:end], other])))
    assert PROBLEM.trivial(instance) == [[2, 1]]


@pytest.mark.parametrize("seed", range(40))
def test_the_best_of_a_handful_of_customers_is_that_of_every_order_cut_everywhere(seed) -> None:
    size = 4 + seed % 2 if seed < 38 else 6
    [instance] = PROBLEM.sample(size, 1, seed)
    found = PROBLEM.trivial(instance)
    solomon.check_routes(instance, found)
    best = math.inf
    for order in itertools.permutations(range(1, size + 1)):
        for cuts in range(1 << size - 1):
            routes = [[order[0]]]
            for k, node in enumerate(order[1:]):
                if cuts >> k & 1:
                    routes.append([])
                routes[-1].append(node)
            cost = PROBLEM.cost(instance, routes)
            if cost < best:
                with contextlib.suppress(InputError):
                    solomon.check_routes(instance, routes)
                    best = cost
    assert PROBLEM.cost(instance, found) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("size", [7, 8])
def test_the_best_of_eight_customers_is_no_worse_than_what_searches_find(size) -> None:
    for instance in PROBLEM.sample(size, 5, 3):
        found = PROBLEM.cost(instance, PROBLEM.trivial(instance))
        assert found <= PROBLEM.cost(instance, alns(instance, 0, steps=200)) + 1e-12
    assert PROBLEM.trivial(PROBLEM.sample(9, 1, 0)[0]) is None


@pytest.mark.long
def test_a_discovery_with_the_grammar(tmp_path, capsys) -> None:
    run = tmp_path / "run"
    tiny = "--size 8 --instances 1 --rollouts 1 --steps 10 --workers 1 --preset smoke --rounds 1"
    argv = ["discover", "vrptw", "--generator", "grammar", *tiny.split(), "--out", run]
    code, _, errors = spo(capsys, *argv)
    assert code == 0, errors
    best = load_pair(run / "best.py")
    assert "ready, due, service" in best.repair.source
    file = instance_file(tmp_path)
    options = ["--seeds", 1, "--steps", 20, "--workers", 1, "--references", "none"]
    code, output, errors = spo(capsys, "evaluate", run, "--on", file, "uniform:6x2", *options)
    assert code == 0, errors
    assert "small.txt" in output
    code, output, errors = spo(
        capsys, "baseline", "insertion-i1", "--problem", "vrptw", "--on", file, "--references",
        "none",
    )  # fmt: skip
    assert code == 0, errors


def test_the_model_that_ships_is_refused_with_what_to_do(tmp_path, capsys) -> None:
    code, _, errors = spo(capsys, "discover", "vrptw", "--out", tmp_path / "run")
    assert code == 2
    assert "not vrptw: use --generator grammar, an endpoint (--base-url)" in errors
    assert not (tmp_path / "run").exists()
    assert isinstance(PROBLEM.classical_destroys()[0], Program)

"""Exported files at work: solutions are feasible and better than where a search begins, with the
library alns and as a function, with and without spo-jax and its compiled kit."""

import ast
import json
import math
import random
import subprocess
import sys
import types
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from third_problem import PathProblem

from spo_jax import InputError, Pair, Program, get_problem, load_pair, save_pair
from spo_jax.envs.exports import PURPOSES, tail
from spo_jax.envs.report.solve import shipped_pair
from spo_jax.program.grammar.base import Grammar
from spo_jax.program.pairfile import parse_pair

PROBLEMS = ("tsp", "cvrp")
DEMANDS = [0, *(1 + k % 7 for k in range(29))]
CAPACITY = 20


def places(size: int = 30) -> np.ndarray:
    return np.random.default_rng(7).random((size, 2))


def given(problem: str, size: int = 30) -> tuple[Any, ...]:
    return (places(size), DEMANDS[:size], CAPACITY) if problem == "cvrp" else (places(size),)


def loaded(text: str) -> Any:
    module = types.ModuleType("exported")
    exec(compile(text, "exported.py", "exec"), module.__dict__)
    return module


def exported(folder: Path, problem: str, purpose: str, pair: Pair | None = None) -> Any:
    known = get_problem(problem)
    pair = shipped_pair(known) if pair is None else pair
    behind = tail(known, pair, purpose)
    path = save_pair(folder / "pair.py", pair, "", known.interface, known.kit, behind)
    return loaded(path.read_text())


@pytest.mark.parametrize("purpose", [None, *PURPOSES])
@pytest.mark.parametrize("problem", [*PROBLEMS, "vrptw"])
def test_the_head_says_that_there_is_no_sandbox(
    tmp_path: Path, problem: str, purpose: str | None
) -> None:
    known = get_problem(problem)
    pair = shipped_pair(known)
    behind = "" if purpose is None else tail(known, pair, purpose)
    path = save_pair(tmp_path / "pair.py", pair, "Of a run.", known.interface, known.kit, behind)
    first, second, *_ = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")
    assert first == "Of a run."
    assert "generated" in second
    assert "without a sandbox" in second
    assert load_pair(path).digest == pair.digest  # and it is no part of the programs


def walk(problem: str, solution: Any) -> list[int]:
    """The nodes of a feasible solution in the order of the visits, closed. Fails on others."""
    if problem == "tsp":
        assert sorted(solution) == list(range(30))
        return [*solution, solution[0]]
    assert sorted(chain.from_iterable(solution)) == list(range(1, 30))
    assert all(route and sum(DEMANDS[node] for node in route) <= CAPACITY for route in solution)
    return [0] + [node for route in solution for node in [*route, 0]]


def cost(problem: str, solution: Any) -> float:
    xy = places()
    nodes = walk(problem, solution)
    return sum(math.dist(xy[a], xy[b]) for a, b in pairwise(nodes))


def greedy(problem: str) -> Any:
    """To the nearest place, as long as there is room; by NumPy, in another way than the file."""
    xy, left, routes, here, room = places(), set(range(1, 30)), [[]], 0, CAPACITY
    while left:
        near = [n for n in left if problem == "tsp" or DEMANDS[n] <= room]
        if not near:
            routes.append([])
            here, room = 0, CAPACITY
            continue
        here = min(near, key=lambda n: np.hypot(*(xy[n] - xy[here])))
        routes[-1].append(here)
        room -= DEMANDS[here]
        left.remove(here)
    return [0, *routes[0]] if problem == "tsp" else routes


# --- a function -----------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_function_finds_good_feasible_solutions(problem: str, tmp_path: Path) -> None:
    module = exported(tmp_path, problem, "function")
    found = module.solve(*given(problem), steps=60, seed=3)
    assert cost(problem, found) < 0.95 * cost(problem, greedy(problem))
    assert module.solve(*given(problem), steps=60, seed=3) == found
    again = module.solve(*given(problem), steps=1, start=found)
    assert cost(problem, again) <= cost(problem, found) + 1e-9


@pytest.mark.parametrize("problem", PROBLEMS)
def test_distances_coordinates_and_frames_are_the_same_instance(
    problem: str, tmp_path: Path
) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed (the extra study)")
    module = exported(tmp_path, problem, "function")
    xy, *rest = given(problem)
    found = module.solve(xy, *rest, steps=8)
    dist = np.hypot(*(xy[:, None] - xy[None]).transpose(2, 0, 1))
    frame = pandas.DataFrame({"x": xy[:, 0], "y": xy[:, 1], "demand": DEMANDS}, index=range(5, 35))
    wanted = [*rest]
    if rest:
        wanted[0] = frame["demand"]
    assert module.solve(frame[["x", "y"]], *wanted, steps=8) == found
    assert module.solve(dist, *rest, steps=8) == found
    assert module.solve(dist.tolist(), *rest, steps=8) == found
    assert module.solve(pandas.DataFrame(dist), *rest, steps=8) == found


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_function_needs_nothing_of_spo_jax(problem: str, tmp_path: Path) -> None:
    module = exported(tmp_path, problem, "function")
    script = (
        "import sys, json\n"
        "for name in ('spo_jax', 'pandas', 'alns', 'jax'): sys.modules[name] = None\n"
        "import numpy as np\nfrom pair import lns, solve\n"
        "assert type(lns).__name__ == 'SimpleNamespace'\n"
        "given = json.loads(sys.stdin.read())\n"
        "print(json.dumps(solve(*given, steps=5, seed=1)))\n"
    )
    xy, *rest = given(problem)
    done = subprocess.run(
        [sys.executable, "-c", script], input=json.dumps([xy.tolist(), *rest]),
        capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    found = json.loads(done.stdout)
    walk(problem, found)
    assert found == module.solve(*given(problem), steps=5, seed=1)  # with the compiled kit


def test_the_time_limit_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = exported(tmp_path, "tsp", "function")
    ticks = iter(range(1000))
    monkeypatch.setattr(module, "time", types.SimpleNamespace(monotonic=lambda: next(ticks)))
    module.solve(*given("tsp"), seconds=10)
    assert next(ticks) == 11  # began at 0; ten steps, and 10 s were over


@pytest.mark.parametrize(
    ("problem", "change", "sentence"),
    [
        ("tsp", lambda xy: (xy[:, :1],), "distances .N, N. or coordinates"),
        ("tsp", lambda xy: (xy[0],), "distances .N, N. or coordinates"),
        ("tsp", lambda xy: (np.full((3, 3), np.nan),), "finite"),
        ("tsp", lambda xy: (-np.ones((3, 3)),), "not below 0"),
        ("tsp", lambda xy: (np.triu(np.ones((3, 3))),), "same in both directions"),
        ("cvrp", lambda xy: (xy, DEMANDS[1:], 20), "one number for each place"),
        ("cvrp", lambda xy: (xy, [1, *DEMANDS[1:]], 20), "0 for the depot alone"),
        ("cvrp", lambda xy: (xy, [0, 0, *DEMANDS[2:]], 20), "0 for the depot alone"),
        ("cvrp", lambda xy: (xy, [d / 2 for d in DEMANDS], 20), "whole numbers"),
        ("cvrp", lambda xy: (xy, DEMANDS, 20.5), "whole numbers"),
        ("cvrp", lambda xy: (xy, DEMANDS, 6), "more than a vehicle carries"),
        ("cvrp", lambda xy: (xy, DEMANDS, None), "must be finite numbers"),
        ("cvrp", lambda xy: (xy, DEMANDS, math.inf), "must be finite numbers"),
        ("cvrp", lambda xy: ({1: 2}, DEMANDS, 20), "places must be numbers"),
        ("tsp", lambda xy: ({1: 2},), "places must be numbers"),
    ],
)
def test_what_is_no_instance_is_refused(
    problem: str, change: Any, sentence: str, tmp_path: Path
) -> None:
    module = exported(tmp_path, problem, "function")
    with pytest.raises(ValueError, match=sentence):
        module.solve(*change(places()))


def test_a_search_ends_whatever_it_may_take(tmp_path: Path) -> None:
    solve = exported(tmp_path, "tsp", "function").solve
    first = solve(places(), seconds=0)
    assert first == solve(places(), steps=0)
    walk("tsp", first)
    for limit in ({"seconds": -1}, {"seconds": math.nan}, {"steps": -1}):
        with pytest.raises(ValueError, match="must be 0 or more"):
            solve(places(), **limit)
    with pytest.raises(ValueError, match="start is not a solution"):
        solve(places(), steps=1, start=[math.inf] * 30)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_smallest_instances(problem: str, tmp_path: Path) -> None:
    module = exported(tmp_path, problem, "function")
    for size in range(1, 7):
        found = module.solve(*given(problem, size), steps=5)
        flat = found if problem == "tsp" else list(chain.from_iterable(found))
        assert sorted(flat) == list(range(problem == "cvrp", size))
    bad = [0, 0, 1] if problem == "tsp" else [[1, 1]]
    with pytest.raises(ValueError, match="start is not a solution"):
        module.solve(*given(problem, 3), start=bad)


# --- alns -----------------------------------------------------------------------------------------


def searched(module: Any, problem: str, steps: int = 60, seed: int = 1, extra: Any = None) -> Any:
    alns = pytest.importorskip("alns", reason="alns is not installed (the extra bench)")
    from alns.accept import HillClimbing
    from alns.select import RandomSelect
    from alns.stop import MaxIterations

    search = alns.ALNS(np.random.default_rng(seed))
    search.add_destroy_operator(module.destroy_operator)
    search.add_repair_operator(module.repair_operator)
    if extra is not None:
        search.add_destroy_operator(extra)
    first = module.first_state(*given(problem))
    select = RandomSelect(1 + (extra is not None), 1)
    return first, search.iterate(first, select, HillClimbing(), MaxIterations(steps))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_operators_plug_into_alns(problem: str, tmp_path: Path) -> None:
    module = exported(tmp_path, problem, "alns")
    first, result = searched(module, problem)
    assert first.objective() == pytest.approx(cost(problem, greedy(problem)))
    best = result.best_state
    assert best.objective() == pytest.approx(cost(problem, best.solution))
    assert best.objective() < 0.95 * first.objective()
    _, again = searched(module, problem)
    assert again.best_state.solution == best.solution


@pytest.mark.parametrize("problem", PROBLEMS)
def test_an_operator_of_the_users_own_goes_beside_it(problem: str, tmp_path: Path) -> None:
    module = exported(tmp_path, problem, "alns")
    used = []

    def one(state: Any, rng: Any) -> Any:
        """Removes the second item of the first route, or of the tour."""
        left = state.copy()
        part = left.solution if problem == "tsp" else left.solution[0]
        left.removed, left.whole = [part.pop(0)], state.solution
        used.append(left)
        return left

    _, result = searched(module, problem, extra=one)
    assert len(used) > 10
    cost(problem, result.best_state.solution)


def test_programs_see_the_steps_since_the_best_fell(tmp_path: Path) -> None:
    seen = []
    module = exported(tmp_path, "tsp", "alns")
    module.destroy = lambda dist, tour, steps, rng: (
        seen.append((steps, module.cost_of(dist, tour))) or (tour[1:], tour[:1])
    )
    costs = iter([5, 5, 3, 4, 2, 2, 2, 1])
    module.repair = lambda dist, rest, removed, steps, rng: [*removed, *rest]
    module.cost_of = lambda dist, tour: next(costs)
    state = module.first_state(places())
    for _ in range(4):  # each step: the objective, then what the destroy noted
        state = module.repair_operator(
            module.destroy_operator(state, np.random.default_rng(0)), np.random.default_rng(0)
        )
    assert seen == [(0, 5), (0, 4), (0, 2), (1, 1)]


def test_a_copy_is_a_copy(tmp_path: Path) -> None:
    module = exported(tmp_path, "cvrp", "alns")
    state = module.first_state(*given("cvrp"))
    other = state.copy()
    other.solution[0].clear()
    other.removed.append(3)
    walk("cvrp", state.solution)
    assert state.removed == []
    assert other.instance is state.instance


def test_a_repair_that_breaks_the_rules_changes_nothing(tmp_path: Path) -> None:
    module = exported(tmp_path, "tsp", "alns")
    rng = np.random.default_rng(0)
    state = module.first_state(places())
    left = module.destroy_operator(state, rng)
    for bad in ([0, 0], None, ["a"], [*range(29), 30]):
        module.repair = lambda *given, bad=bad: bad
        assert module.repair_operator(left, rng).solution == state.solution
    left.whole = None
    with pytest.raises(ValueError, match="not a solution"):
        module.repair_operator(left, rng)


# --- the file -------------------------------------------------------------------------------------

CLASH = """
import numpy as time
from math import fsum as random

State = 2

def solve(n):
    return max(1, n // 4)

def complete(nodes):
    return list(nodes)

def {role}(dist, {first}, steps_since_improvement, rng):
    cost_of = time.zeros(State)
    {body}
"""
DESTROY = (
    "k = solve(len(tour)) + int(random([cost_of[0]]))\n    return complete(tour[k:]), tour[:k]"
)
REPAIR = "prepared = complete(rest)\n    return prepared + complete(removed)[::-1]"


def clashing() -> Pair:
    return Pair(
        Program("destroy", CLASH.format(role="destroy", first="tour", body=DESTROY)),
        Program("repair", CLASH.format(role="repair", first="rest, removed", body=REPAIR)),
    )


@pytest.mark.parametrize("purpose", PURPOSES)
def test_names_of_the_programs_give_way(purpose: str, tmp_path: Path) -> None:
    pair = clashing()
    module = exported(tmp_path, "tsp", purpose, pair)
    plain = loaded(save_pair(tmp_path / "plain.py", pair).read_text())
    tour = list(range(30))
    rng = random.Random(0)
    rest, removed = module.destroy(np.ones((30, 30)), tour[:], 0, rng)
    assert (rest, removed) == plain.destroy(np.ones((30, 30)), tour[:], 0, rng)
    args = (np.ones((30, 30)), rest, removed, 0, rng)
    assert module.repair(*args) == plain.repair(*args)
    if purpose == "function":
        walk("tsp", module.solve(places(), steps=20))
    else:
        searched(module, "tsp", steps=20)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("purpose", PURPOSES)
def test_the_file_still_holds_the_pair(problem: str, purpose: str, tmp_path: Path) -> None:
    known = get_problem(problem)
    pair = shipped_pair(known)
    exported(tmp_path, problem, purpose)
    plain = save_pair(tmp_path / "plain.py", pair, "", known.interface, known.kit)
    assert load_pair(tmp_path / "pair.py") == load_pair(plain)


@pytest.mark.long
@pytest.mark.parametrize("kit", [True, False])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_pairs_of_the_grammar_work_as_functions_and_operators(
    problem: str, kit: bool, tmp_path: Path
) -> None:
    known = get_problem(problem)
    for seed in range(4):
        rng = random.Random(seed)
        programs = []
        for role in ("destroy", "repair"):
            grammar: Grammar = known.grammar(role, kit)
            strategy, source = grammar.render(grammar.sample(rng))
            programs.append(Program(role, source, strategy))
        folder = tmp_path / str(seed)
        folder.mkdir()
        found = exported(folder, problem, "function", Pair(*programs)).solve(
            *given(problem), steps=10
        )
        assert cost(problem, found) <= cost(problem, greedy(problem)) + 1e-9
        (folder / "pair.py").unlink()
        module = exported(folder, problem, "alns", Pair(*programs))
        walk(problem, searched(module, problem, steps=10)[1].best_state.solution)


def drawing(call: str) -> Pair:
    destroy = (
        f"def destroy(dist, tour, steps, rng):\n    k = {call}\n    return tour[1:], tour[:1]\n"
    )
    repair = "def repair(dist, rest, removed, steps, rng):\n    return rest + removed\n"
    return parse_pair(destroy + repair, "pair.py")


def test_a_pair_that_draws_as_numpy_does_gets_its_generator(tmp_path: Path) -> None:
    pair = drawing("int(rng.integers(3)) + len(rng.permutation(4))")
    walk("tsp", exported(tmp_path, "tsp", "function", pair).solve(places(), steps=5))
    (tmp_path / "pair.py").unlink()
    searched(exported(tmp_path, "tsp", "alns", pair), "tsp", steps=5)


def test_a_pair_that_draws_in_both_ways_is_refused() -> None:
    pair = drawing("rng.integers(3) + rng.randrange(4)")
    with pytest.raises(InputError, match="methods integers, randrange, which neither"):
        tail(get_problem("tsp"), pair, "function")


def test_an_array_goes_to_programs_that_compute_with_it(tmp_path: Path) -> None:
    pair = drawing("int((dist + 1).sum())")
    module = exported(tmp_path, "tsp", "function", pair)
    [dist] = module.instance_of(places())
    assert isinstance(dist, np.ndarray)
    assert not dist.flags.writeable
    walk("tsp", module.solve(places(), steps=5))


def test_a_problem_without_an_export_says_so() -> None:
    with pytest.raises(InputError, match="problem path has no export for other programs"):
        tail(PathProblem(), drawing("1"), "function")

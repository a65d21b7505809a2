"""Rollouts: the search itself, and that workers and order cannot be seen in a result."""

import os
import random
import resource
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.jobs.job_evaluator import TRIES
from spo_jax.envs.run.jobs.results import Results
from spo_jax.envs.run.lns import Failure, Operator, OperatorPair, rollout
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.observation import OBSERVED
from spo_jax.envs.run.rollouts import Refusal, Rollouts, Status
from spo_jax.envs.run.sandbox.gate.namespace import make_rng
from spo_jax.envs.run.sandbox.jobs import JOB_BYTES, Task, portions
from spo_jax.envs.run.sandbox.outcome import ChildReport, Ended
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program
from spo_jax.seeding import python_rng

TSP = get_problem("tsp")

DESTROY = """
def destroy(dist, tour, z, rng):
    removed = rng.sample(tour, 3 + z % 2)
    return [v for v in tour if v not in removed], removed
"""
REPAIR = """
def repair(dist, partial, removed, z, rng):
    for v in removed:
        before = partial[-1:] + partial[:-1]
        extra = [dist[a][v] + dist[v][b] - dist[a][b] for a, b in zip(before, partial)]
        partial.insert(extra.index(min(extra)), v)
    return partial
"""


def pair(destroy: str = DESTROY, repair: str = REPAIR) -> Pair:
    return Pair(Program.from_source("destroy", destroy), Program.from_source("repair", repair))


def same(a: Rollouts, b: Rollouts, order: list[int] | None = None) -> None:
    for name in ("best_cost", "state", "status", "code", "reason", "role"):
        left, right = getattr(a, name), getattr(b, name)
        np.testing.assert_array_equal(left if order is None else left[order], right)


# --- the search -----------------------------------------------------------------------------------


def pair_of(destroy: Any, repair: Any) -> OperatorPair:
    return OperatorPair(Operator(destroy), Operator(repair))


def test_a_rollout_follows_the_definition() -> None:
    """Against a plain loop: accept if not worse, z since the last strict improvement."""
    instance = TSP.sample(12, 1, 0)[0]
    rules = TSP.rules(instance)
    namespace: dict[str, Any] = {}
    exec(DESTROY + REPAIR, namespace)
    destroy, repair = namespace["destroy"], namespace["repair"]
    trace = rollout(rules, pair_of(destroy, repair), random.Random(5), make_rng(6), 60)
    rng = make_rng(6)
    tour = list(range(12))
    random.Random(5).shuffle(tour)
    cost, best, z = rules.cost(tour), [rules.cost(tour)], 0
    states = []
    for _ in range(60):
        states.append(z)
        partial, removed = destroy(instance.dist.tolist(), list(tour), z, rng)
        candidate = repair(instance.dist.tolist(), partial, removed, z, rng)
        new = rules.cost(candidate)
        z = 0 if new < cost else z + 1
        if new <= cost:
            tour, cost = candidate, new
        best.append(min(best[-1], cost))
    assert trace.state == states
    assert trace.best_cost == best
    assert trace.best == tour
    assert trace.state[0] == 0
    assert 0 in trace.state[1:]
    assert max(trace.state) > 1


def test_an_equal_tour_is_accepted_but_is_no_improvement() -> None:
    """A rotation or reversal costs exactly the same, so stagnation goes on counting."""
    rules = TSP.rules(TSP.sample(40, 1, 0)[0])

    def destroy(dist: Any, tour: list, z: int, rng: Any) -> Any:
        return tour[1:], tour[:1]

    def repair(dist: Any, partial: list, removed: list, z: int, rng: Any) -> Any:
        return (partial + removed)[:: -1 if z % 2 else 1]

    trace = rollout(rules, pair_of(destroy, repair), random.Random(0), None, 80)
    assert trace.state == list(range(80))
    assert len(set(trace.best_cost)) == 1


def test_failures_name_the_role_and_infeasible_steps_can_be_skipped() -> None:
    rules = TSP.rules(TSP.sample(12, 1, 0)[0])

    def keep_everything(dist: Any, tour: list, z: int, rng: Any) -> Any:
        return tour, []

    def bad(*arguments: Any) -> Any:
        raise KeyError("x" * 10_000)

    with pytest.raises(Failure, match="removed no node") as caught:
        rollout(rules, pair_of(keep_everything, bad), random.Random(0), None, 3)
    assert (caught.value.status, caught.value.role) == (Status.INVALID, "destroy")
    with pytest.raises(Failure, match="KeyError"):
        rollout(rules, pair_of(bad, bad), random.Random(0), None, 3)
    idle = pair_of(keep_everything, bad)
    trace = rollout(rules, idle, random.Random(0), None, 3, skip_infeasible=True)
    assert trace.state == [0, 1, 2]


# --- the evaluator --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mixed() -> list[Pair]:
    """Good pairs, a duplicate in another layout, and one of each quick failure."""
    return [
        pair(),
        pair(DESTROY.replace("3 + z % 2", "2")),
        pair(DESTROY.replace("    ", "  ")),  # the first again, but for white space
        pair("def destroy(dist, tour, z, rng):\n    import os\n"),
        pair("def destroy(dist, tour, z, rng):\n    return tour, []\n"),
        pair(DESTROY.replace("    removed =", "    assert z < 7\n    removed =")),
        pair(repair="def repair(dist, partial, removed, z, rng):\n    return [0] * 10**10\n"),
        pair(repair="def repair(dist, partial, removed, z, rng):\n    while True: pass\n"),
    ]


@pytest.fixture(scope="module")
def alone(mixed: list[Pair]) -> Rollouts:
    with LocalEvaluator(TSP, workers=1, cpu_seconds=5) as e:
        return e.run(mixed, TSP.sample(14, 2, 0), seeds=(0, 1), steps=40)


def test_statuses_and_shapes(alone: Rollouts) -> None:
    expected = ["OK", "OK", "OK", "REJECTED", "INVALID", "CRASH", "MEMORY", "TIMEOUT"]
    assert [Status(s).name for s in alone.status[:, -1, -1]] == expected
    assert alone.best_cost.shape == (8, 2, 2, 41)
    assert alone.state.shape == (8, 2, 2, 40)
    assert alone.code.shape == (8, 2, 2, 14)
    assert alone.ok.tolist() == [True] * 3 + [False] * 5
    failed = ~alone.ok
    assert np.isnan(alone.best_cost[6:]).all()
    assert (alone.code[3] == -1).all()
    assert np.isfinite(alone.best_cost[~failed]).all()
    assert (np.diff(alone.best_cost[~failed]) <= 0).all()
    assert alone.failure(0) is None
    assert alone.failure(3) == (
        Status.REJECTED,
        "destroy: line 2: module 'os' is not available",
        "destroy",
    )
    same(replace_pairs(alone, [0]), replace_pairs(alone, [2]))


def replace_pairs(rollouts: Rollouts, keep: list[int]) -> Rollouts:
    return Rollouts(**{name: value[keep] for name, value in vars(rollouts).items()})


@pytest.mark.long
@pytest.mark.parametrize("workers", [2, 3])
def test_results_do_not_depend_on_workers_or_order(
    mixed: list[Pair], alone: Rollouts, workers: int
) -> None:
    order = [5, 0, 7, 3, 1, 6, 2, 4]
    instances = TSP.sample(14, 2, 0)
    with LocalEvaluator(TSP, workers=workers, cpu_seconds=5) as e:
        same(alone, e.run([mixed[k] for k in order], instances, seeds=(0, 1), steps=40), order)
        first = e.run(mixed[:1], instances, seeds=(0, 1), steps=40)
        same(alone, first, [0])
        # A rollout is seeded by what it is, not by where it stands.
        swapped = e.run(mixed[:1], instances[::-1], seeds=(1, 0), steps=40)
        np.testing.assert_array_equal(swapped.best_cost[:, ::-1, ::-1], first.best_cost)


def test_reported_costs_are_those_of_the_reported_solutions(alone: Rollouts) -> None:
    for i, instance in enumerate(TSP.sample(14, 2, 0)):
        for s in range(2):
            tour = TSP.decode(instance, alone.code_of(0, i, s))
            assert TSP.cost(instance, tour) == alone.final_cost[0, i, s]
            start = TSP.rules(instance).start(python_rng("start", 0, instance.digest, s))
            assert TSP.cost(instance, start) == alone.initial_cost[0, i, s]


@pytest.mark.long
def test_without_fail_fast_each_rollout_has_its_own_status() -> None:
    """This pair fails where the first distance is large, so on some instances only."""
    instances = TSP.sample(14, 6, 0)
    middle = float(np.median([i.dist[0][1] for i in instances]))
    choosy = pair(
        DESTROY.replace("    removed =", f"    assert dist[0][1] < {middle!r}\n    removed =")
    )
    expected = [Status.OK if i.dist[0][1] < middle else Status.CRASH for i in instances]
    for workers in (1, 2):
        with LocalEvaluator(TSP, workers=workers) as e:
            slow = e.run([choosy], instances, seeds=(0,), steps=5, fail_fast=False)
            assert slow.status[0, :, 0].tolist() == expected
            fast = e.run([choosy], instances, seeds=(0,), steps=5)
            first = expected.index(Status.CRASH)
            assert fast.status[0, :, 0].tolist() == expected[: first + 1] + [Status.CRASH] * (
                5 - first
            )
            assert np.isnan(fast.best_cost[0, first:]).all()


def test_a_time_limit_ends_a_rollout_normally() -> None:
    with LocalEvaluator(TSP) as e:
        r = e.run([pair()], TSP.sample(30, 1, 0), seeds=(0,), steps=10**6, seconds=0.2)
    assert r.status[0, 0, 0] == Status.OK
    taken = int((r.state[0, 0, 0] >= 0).sum())
    assert 10 < taken < 10**6
    assert r.best_cost[0, 0, 0, -1] == r.best_cost[0, 0, 0, taken]


def test_on_invalid_skip_goes_on() -> None:
    sometimes = pair(
        DESTROY.replace("    removed =", "    if z == 3: return tour, []\n    removed =")
    )
    with LocalEvaluator(TSP, on_invalid="skip") as e:
        assert e.run([sometimes], TSP.sample(12, 1, 0), steps=60).ok[0]
    with LocalEvaluator(TSP) as e:
        assert e.run([sometimes], TSP.sample(12, 1, 0), steps=60).failure(0) is not None


def test_the_gate_answers_for_many_programs() -> None:
    good, bad = pair().destroy, Program.from_source("destroy", "def destroy(a, b, c):\n    pass\n")
    deep = Program.from_source(
        "destroy", "def destroy(a, b, c, d):\n    return " + "-" * 9000 + "1"
    )
    with LocalEvaluator(TSP, workers=2) as e:
        verdicts = e.check([good, bad, deep] * 30)
    assert verdicts[0] is None
    assert "takes 3 arguments" in str(verdicts[1])
    assert verdicts[2]
    assert verdicts == verdicts[:3] * 30


def test_progress_reaches_the_total(mixed: list[Pair]) -> None:
    seen = []
    with LocalEvaluator(TSP, workers=2, cpu_seconds=5) as e:
        e.run(mixed[:6], TSP.sample(14, 2, 0), steps=10, progress=lambda *now: seen.append(now))
    assert seen[-1] == (20, 20)  # two of the six are one
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


@pytest.mark.long
def test_a_dead_zygote_is_replaced() -> None:
    instances = TSP.sample(14, 2, 0)
    with LocalEvaluator(TSP, workers=2) as e:
        before = e.run([pair()], instances)
        for worker in e._pool.workers:
            assert worker._zygote is not None
            worker._zygote.process.kill()
            worker._zygote.process.wait()
        same(before, e.run([pair()], instances))


@pytest.mark.parametrize("first", [198, 199, 1100])
def test_descriptors_of_any_number_do(first: int) -> None:
    """As the last of many workers has them."""
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < first + 100:
        pytest.skip("this process may not open so many files")
    held = [os.open(os.devnull, os.O_RDONLY)]
    try:
        while held[-1] + 1 < first:
            held.append(os.open(os.devnull, os.O_RDONLY))
        with LocalEvaluator(TSP, workers=1) as e:
            assert e.run([pair()], TSP.sample(14, 1, 0), (0,), 5).ok.all()
    finally:
        for descriptor in held:
            os.close(descriptor)


def test_the_gate_tells_a_fault_of_the_host_from_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalEvaluator(TSP, workers=1) as e:
        [worker] = e._pool.workers
        finish, tries = worker.finish, []

        def no_fork() -> Ended:
            tries.append(len(worker.reports))
            finish()
            fault = ChildReport(0, Status.HOST_FAULT, "cannot fork: try again", 0.0, again=True)
            return Ended([], fault)

        monkeypatch.setattr(worker, "finish", no_fork)
        refusal = Refusal(Status.HOST_FAULT, "cannot fork: try again")
        assert e.check([pair().destroy]) == [refusal]
        assert len(tries) == TRIES > 1
        monkeypatch.setattr(worker, "finish", finish)
        [missing] = e.check([Program.from_source("destroy", "def destroy(a):\n    pass\n")])
    assert missing is not None
    assert missing.status == Status.REJECTED


@pytest.mark.parametrize(
    "call",
    [
        lambda e, i: e.run([pair()], [], steps=5),
        lambda e, i: e.run([pair()], i, seeds=()),
        lambda e, i: e.run([pair()], i, steps=0),
        lambda e, i: e.run([pair()], i, seconds=0.0),
        lambda e, i: e.run([pair()], get_problem("cvrp").sample(5, 1, 0)),
        lambda e, i: LocalEvaluator(TSP, workers=0),
        lambda e, i: LocalEvaluator(TSP, on_invalid="ignore"),
        lambda e, i: LocalEvaluator(TSP, cpu_seconds=-1),
    ],
)
def test_wrong_arguments_are_named(call: Any) -> None:
    with pytest.raises(InputError):
        call(LocalEvaluator(TSP), TSP.sample(5, 1, 0))


def test_no_pairs_give_empty_rollouts() -> None:
    with LocalEvaluator(TSP) as e:
        r = e.run([], TSP.sample(5, 1, 0), steps=7)
    assert r.best_cost.shape == (0, 1, 2, 8)


# --- forged results -------------------------------------------------------------------------------


def test_forged_reports_are_tampered() -> None:
    """What a broken sandbox could send: each lie is found out by recomputing."""
    instance = TSP.sample(6, 1, 0)[0]
    rules = TSP.rules(instance)
    start = rules.start(python_rng("start", 0, instance.digest, 0))
    true = rules.cost(start)

    def record(best: list[float], code: list[int]) -> Status:
        results = Results(TSP, 1, [instance], (0,), 2, 0)
        payload = (
            np.array(best, "<f8").tobytes()
            + np.array([0, 1], "<i4").tobytes()
            + np.array(code, "<i4").tobytes()
        )
        results.record(0, ChildReport(0, Status.OK, "", 0.0, payload))
        return Status(int(results.rollouts([0], fail_fast=True).status[0, 0, 0]))

    code = rules.encode(start)
    assert record([true] * 3, code) == Status.OK
    lies = [
        ([true, true, true - 0.1], code),
        ([true + 1, true, true], code),
        ([true, true - 0.1, true], code),
        ([true, float("nan"), true], code),
        ([true] * 3, [*code[:-1], code[0]]),
        ([true] * 3, [*code[:-1], 0]),
        ([true] * 3, [*code[:-1], -1]),
        ([true] * 3, [-1, *code[1:]]),
        ([true] * 3, [99, *code[1:]]),
        ([true] * 3, [2**31 - 1] * 6),
    ]
    for best, forged in lies:
        assert record(best, forged) == Status.TAMPERED


def test_malformed_reports_mark_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    from spo_jax.envs.run.sandbox import jobs
    from spo_jax.envs.run.sandbox.worker import Worker

    def header(index: int, status: int, length: int = 0, seconds: float = 0.1, role: int = 0):
        return jobs.HEADER.pack(index, status, role, length, seconds)

    task = jobs.Task(0, "x", 7, 0, 0, OBSERVED)
    job = jobs.RunJob("", "", (task,), 2, 1.0, 1, 1.0)
    good = header(0, 0) + bytes(8 * 3 + 4 * 2 + 4 * 7)
    refused = header(jobs.WHOLE_JOB, 1, 2, role=1) + b"no"
    step = replace(job, tasks=(jobs.StepTask("x", 7, 6, [], 0, 0),))
    whole = header(0, 0) + bytes(6 + 4 * 7)
    gate = jobs.CheckJob((("destroy", ""),), 1.0, 1)
    passed = header(0, 0)
    judged = header(jobs.JUDGED, 0)
    for kind, data, broken, reports in [
        (job, good, False, 1),
        (job, judged + good, False, 1),
        (job, judged + judged + good, True, 0),
        (job, good + judged, True, 1),
        (gate, judged, True, 0),
        (job, good[:-1], False, 0),
        (job, good + good, True, 1),
        (job, header(5, 0), True, 0),
        (job, header(0, 77), True, 0),
        (job, header(0, 6), True, 0),
        (job, header(0, 3, role=3), True, 0),
        (job, header(0, 3, 9999), True, 0),
        (job, header(0, 3, seconds=float("nan")), True, 0),
        (job, header(jobs.WHOLE_JOB, 3), True, 0),
        (job, refused, False, 1),
        (step, whole, False, 1),
        (step, whole[:-1], False, 0),
        (step, whole + whole, True, 1),
        (step, refused, False, 1),
        (gate, passed, False, 1),
        (gate, passed + header(1, 0), True, 1),
        (gate, refused, True, 0),
    ]:
        worker = Worker("spo_jax.envs.problems.tsp:TSP", -1)
        worker.job, worker._buffer, worker._broken = kind, bytearray(data), False
        worker._judged = False
        worker._parse()
        assert (worker._broken, len(worker.reports)) == (broken, reports), data[:16]


def test_a_job_holds_few_large_instances() -> None:
    tasks = [Task(k, "abcde"[k // 2], 0, 0, 0, OBSERVED) for k in range(10)]

    def shared(size: int, weight: int) -> list[list[int]]:
        weights = dict.fromkeys("abcde", weight)
        return [[task.index for task in part] for part in portions(tasks, size, weights)]

    assert shared(10, 1) == [list(range(10))]
    assert shared(4, 1) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert shared(10, JOB_BYTES // 2) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert shared(10, JOB_BYTES * 2) == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    assert shared(1, JOB_BYTES * 2) == [[k] for k in range(10)]


def test_an_instance_may_be_larger_than_what_a_program_may_have() -> None:
    instances = TSP.sample(600, 1, 0)  # tuples of 360,000 floats
    with LocalEvaluator(TSP, memory_mb=8) as e:
        assert e.run([pair()], instances, seeds=(0,), steps=2).ok.all()

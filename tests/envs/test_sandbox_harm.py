"""What hostile programs leave behind: nothing outside, no time, no trace in the next result."""

import ctypes
import os
import select
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from program_collection import (
    PROBLEMS,
    SEEDS,
    SHORT_CPU_SECONDS,
    SHORT_ROLLOUT_SECONDS,
    SIZE,
    STEPS,
    Specimen,
    good_pair,
    specimens,
)

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Rollouts, Status
from spo_jax.program import Pair, Program

HOSTILE = specimens("hostile")
LAWFUL = [s for s in specimens("lawful") if s.expect == "ok"]
# What reaches for the outside world or breaks its own process, and ends quickly.
ATTACKS = [
    s
    for s in HOSTILE
    if s.expect not in ("timeout", "rejected")
    and s.name.startswith(("walk_", "numpy_", "forge_", "flood_", "raise_", "state_", "recursion_"))
]
REACHING = [s for s in HOSTILE if "@TMP@" in s.text or "@PORT@" in s.text]
ENDLESS = [s for s in HOSTILE if s.expect == "timeout"]
PR_SET_CHILD_SUBREAPER = 36


def parents_of_all() -> dict[int, int]:
    """The parent of every living process."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text(errors="replace")
            except OSError:
                continue
            state, parent = stat.rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(entry.name)] = int(parent)
    return parents


def children(root: int) -> set[int]:
    return {p for p, q in parents_of_all().items() if q == root}


def descendants(root: int) -> set[int]:
    """All living processes below `root`."""
    parents = parents_of_all()
    found: set[int] = set()
    while fresh := {p for p, q in parents.items() if q in found | {root}} - found:
        found |= fresh
    return found


@pytest.fixture(scope="module", autouse=True)
def orphans_come_to_us() -> Iterator[None]:
    """A process that outlives its parent becomes ours, and so is found."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    yield
    libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def of(problem: str, collection: list[Specimen]) -> list[Specimen]:
    return [s for s in collection if s.fields["problem"] == problem]


def pairs_of(collection: list[Specimen], tmp: str = "/nowhere", port: int = 9) -> list[Pair]:
    return [pair for s in collection if (pair := s.pair(tmp, port)) is not None]


def run(e: LocalEvaluator, pairs: list[Pair], **options: object) -> Rollouts:
    instances = e.problem.sample(SIZE, 1, 7)
    return e.run(pairs, instances, seeds=SEEDS, steps=STEPS, **options)  # type: ignore[arg-type]


def assert_equal(a: Rollouts, b: Rollouts, order: np.ndarray | None = None) -> None:
    """Equal in everything but time; `order` are the rows of `b` that belong to those of `a`."""
    rows = slice(None) if order is None else order
    ok = a.status == Status.OK
    assert np.array_equal(ok, b.status[rows] == Status.OK)
    assert np.array_equal(a.best_cost, b.best_cost[rows], equal_nan=True)
    assert np.array_equal(a.state, b.state[rows])
    assert np.array_equal(a.code, b.code[rows])


@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", PROBLEMS)
def test_nothing_reaches_the_outside_or_a_good_pair(
    name: str, every: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A good pair is run before, among, between and after them, in one process and in a new one."""
    forbidden = tmp_path / "forbidden"
    forbidden.mkdir()
    here = set(os.listdir("."))
    good = good_pair(name)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        attacks = of(name, REACHING + [s for s in ATTACKS if s not in REACHING])[::every]
        pairs = pairs_of(attacks, str(forbidden), port)
        with LocalEvaluator(get_problem(name), workers=1, cpu_seconds=SHORT_CPU_SECONDS) as e:
            before = run(e, [good])
            assert before.ok.all()
            for k in range(0, len(pairs), 10):
                batch = pairs[k : k + 10]
                among = run(e, [*batch[:5], good, *batch[5:]])
                assert_equal(before, among, np.array([min(5, len(batch))]))
                assert_equal(before, run(e, [good]))
        connected, _, _ = select.select([server], [], [], 0)
    with LocalEvaluator(get_problem(name), workers=1, cpu_seconds=SHORT_CPU_SECONDS) as e:
        assert_equal(before, run(e, [good]))
    assert not connected
    assert list(forbidden.iterdir()) == []
    assert set(os.listdir(".")) == here
    assert list(tmp_path.iterdir()) == [forbidden]
    assert not list(Path("/").glob("core*"))
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


@pytest.mark.long
@pytest.mark.parametrize("name", PROBLEMS)
def test_no_process_or_descriptor_is_left(name: str) -> None:
    me = os.getpid()
    before, old = descendants(me), children(me)
    descriptors = set(os.listdir("/proc/self/fd"))
    with LocalEvaluator(get_problem(name), workers=2, cpu_seconds=SHORT_CPU_SECONDS) as e:
        zygotes = children(me) - old
        run(e, [good_pair(name)] * 2 + pairs_of(of(name, LAWFUL[:8])))
        served, open_while = descendants(me) - before, set(os.listdir("/proc/self/fd"))
        run(e, pairs_of(of(name, ATTACKS[::2] + ENDLESS[:4])))
        assert children(me) - old == zygotes, "a zygote was lost, or an orphan came to us"
        # A zygote may keep one unused child at hand, but none that has seen a program.
        left = descendants(me) - before
        assert len(left) <= 2 * len(zygotes)
        assert left & served <= zygotes
        assert set(os.listdir("/proc/self/fd")) == open_while
    patience = time.monotonic() + 2.0
    # Those of before may end meanwhile: another test's unused child does so by itself.
    while descendants(me) - before and time.monotonic() < patience:
        time.sleep(0.05)  # an unused child ends by itself once its zygote is gone
    assert not descendants(me) - before
    assert set(os.listdir("/proc/self/fd")) == descriptors


@pytest.mark.long
@pytest.mark.parametrize("specimen", ENDLESS, ids=lambda s: s.name)
def test_endless_programs_cost_the_limit_and_no_more(
    specimen: Specimen, clocked: dict[str, LocalEvaluator]
) -> None:
    e = clocked[specimen.fields["problem"]]
    pair = specimen.pair()
    assert pair is not None
    before = time.process_time()
    outcomes: list[Rollouts] = []
    assert fastest(lambda: outcomes.append(run(e, [pair]))) < SHORT_ROLLOUT_SECONDS + 1.0
    assert time.process_time() - before < 1.5, "the parent itself was busy"
    assert outcomes[-1].status[0, 0, 0] == Status.TIMEOUT


def fastest(action: Callable[[], object]) -> float:
    """Wall-clock seconds of the quickest of three tries, in units of an idle machine.

    Other processes may slow this one down, the sandbox's own CPU limit does not count them.
    """
    best = float("inf")
    for _ in range(3):
        slowdown = 1.0
        for _ in range(2):
            began, cpu = time.monotonic(), time.process_time()
            while time.process_time() - cpu < 0.05:
                pass
            slowdown = max(slowdown, (time.monotonic() - began) / 0.05)
        began = time.monotonic()
        action()
        best = min(best, (time.monotonic() - began) / slowdown)
        if best < SHORT_ROLLOUT_SECONDS + 1.0:
            break
    return best


@pytest.fixture(scope="module")
def clocked() -> Iterator[dict[str, LocalEvaluator]]:
    evaluators = {
        name: LocalEvaluator(get_problem(name), workers=1, cpu_seconds=SHORT_CPU_SECONDS)
        for name in PROBLEMS
    }
    for name, e in evaluators.items():
        e.__enter__()
        run(e, [good_pair(name)])
    yield evaluators
    for e in evaluators.values():
        e.close()


def test_a_failure_in_one_rollout_costs_the_limit_once(clocked: dict[str, LocalEvaluator]) -> None:
    problem = get_problem("tsp")
    endless = next(s for s in ENDLESS if s.name == "endless_python").pair()
    assert endless is not None
    instances = problem.sample(SIZE, 3, 7)
    outcomes: list[Rollouts] = []

    def act() -> None:
        outcomes.append(clocked["tsp"].run([endless], instances, seeds=(0, 1), steps=STEPS))

    assert fastest(act) < SHORT_ROLLOUT_SECONDS + 1.0
    assert (outcomes[-1].status == Status.TIMEOUT).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_results_do_not_depend_on_workers_or_order(name: str) -> None:
    """Lawful programs, those that look at hashes among them, beside attacks."""
    quick = [s for s in of(name, ATTACKS) if not s.name.startswith("recursion_")][::6]
    pairs = pairs_of(of(name, LAWFUL) + quick)
    orders = [np.arange(len(pairs)), np.arange(len(pairs))[::-1]]
    orders.append(np.random.default_rng(5).permutation(len(pairs)))
    first: Rollouts | None = None
    for workers, order in zip((1, 2, 3), orders, strict=True):
        with LocalEvaluator(get_problem(name), workers=workers, cpu_seconds=SHORT_CPU_SECONDS) as e:
            rollouts = run(e, [pairs[k] for k in order])
        inverse = np.argsort(order)
        if first is None:
            first = rollouts
        else:
            assert_equal(first, rollouts, inverse)


@pytest.mark.long
@pytest.mark.parametrize("name", PROBLEMS)
def test_results_do_not_depend_on_what_a_worker_did_before(name: str) -> None:
    """The same programs after other instances were learnt, and with other rollouts beside."""
    problem = get_problem(name)
    pairs = pairs_of([s for s in of(name, LAWFUL) if s.name.startswith(("hash_", "np_empty"))])
    with LocalEvaluator(problem, workers=1, cpu_seconds=SHORT_CPU_SECONDS) as e:
        fresh = run(e, pairs)
    with LocalEvaluator(problem, workers=2, cpu_seconds=SHORT_CPU_SECONDS) as e:
        e.run([good_pair(name)], problem.sample(50, 4, 3), seeds=(0, 1), steps=STEPS)
        run(e, pairs_of(of(name, ATTACKS)[:10]))
        assert_equal(fresh, run(e, pairs[::-1]), np.arange(len(pairs))[::-1])
        others = [*problem.sample(33, 2, 1), *problem.sample(SIZE, 1, 7)]
        among = e.run(pairs, others, seeds=(1, 0), steps=STEPS)
    assert np.array_equal(among.best_cost[:, 2:, 1:], fresh.best_cost)


@pytest.mark.long
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_gate_survives_what_it_refuses(name: str) -> None:
    """check() gives the verdicts of a run, and the programs after a hostile text still pass."""
    texts = [s for s in of(name, HOSTILE) if s.name.startswith(("text_", "unicode_", "name_"))]
    lawful = [s for s in of(name, LAWFUL) if s.name.startswith("base_")]
    programs = []
    for s in texts:
        pair = s.pair()
        if pair is not None:
            programs += [getattr(pair, s.fields["role"]), lawful[len(programs) // 2 % 2].program()]
    with LocalEvaluator(get_problem(name), workers=2, cpu_seconds=SHORT_CPU_SECONDS) as e:
        verdicts = e.check(programs)
    assert set(verdicts[1::2]) == {None}
    assert sum(verdict is not None for verdict in verdicts[::2]) > len(verdicts) // 4


@pytest.mark.long
def test_a_verdict_does_not_depend_on_the_company() -> None:
    """A text that is slow to judge costs its own time, not that of its neighbours."""
    chain = "".join(f"        a{i} = a{i + 1}\n" for i in range(1400))
    slow = (
        "def destroy(dist, current_tour, steps_since_improvement, rng):\n    if 0:\n"
        f"{chain}        a1400 = dist\n    return current_tour[2:], current_tour[:2]\n"
    )
    programs = [Program.from_source("destroy", slow + f"# {k}\n") for k in range(6)]
    quick = [s.program() for s in of("tsp", LAWFUL) if s.name == "base_tsp_destroy"]
    with LocalEvaluator(get_problem("tsp"), workers=1) as e:
        verdicts = e.check([*programs, *quick])
    assert len(set(verdicts[:6])) == 1
    assert verdicts[6] is None

"""One verdict on a program that ends its process: at any load, with any number of workers."""

import time

import numpy as np
import pytest
from program_collection import good_pair

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.jobs.job_evaluator import Work, _settle
from spo_jax.envs.run.jobs.results import Results
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Failed, Rollouts, Status
from spo_jax.envs.run.sandbox.gate.isolation import is_closed
from spo_jax.envs.run.sandbox.gate.policy import check
from spo_jax.envs.run.sandbox.outcome import ChildReport, Ended, fault
from spo_jax.envs.run.sandbox.worker import Worker
from spo_jax.program import Pair, Program

TSP = get_problem("tsp")
HEADER = "def destroy(dist, current_tour, steps_since_improvement, rng):\n"
END = "    return current_tour[1:], current_tour[:1]\n"
# Nested arrays of objects overflow the stack of C where they are freed.
NESTED = """    import numpy as np
    x = None
    for _ in range(60_000):
        x = np.array([x, None], dtype=object)
"""
DYING = {
    "during the call": NESTED + "    x = None\n" + END,
    "as the call returns": NESTED + END,
    "as the result is checked": NESTED + "    return x, x\n",
    "as an exception is freed": NESTED + "    raise ValueError(x)\n",
    "in the collector": NESTED + "    y = [x]\n    y.append(y)\n    del x, y\n" + END,
    "while it is read": "    x = [1]\n    for _ in range(200_000):\n        x = map(abs, x)\n"
    "    next(x)\n" + END,
}
ENDLESS = "    while True:\n        pass\n"


def pair_of(body: str) -> Pair:
    return Pair(Program.from_source("destroy", HEADER + body), good_pair("tsp").repair)


def run(
    bodies: list[str], workers: int = 1, cpu_seconds: float = 2500.0, count: int = 2
) -> Rollouts:
    with LocalEvaluator(TSP, workers, cpu_seconds=cpu_seconds) as e:
        pairs = [pair_of(body) for body in bodies]
        return e.run(pairs, TSP.sample(12, count, 7), range(count), 1, fail_fast=False)


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_the_rollout_that_kills_its_process_has_crashed(workers: int) -> None:
    """Each of them, at whichever moment: no rollout passes, and none before or after is blamed."""
    found = run(list(DYING.values()), workers)
    for p, moment in enumerate(DYING):
        assert (found.status[p] == Status.CRASH).all(), (moment, found.status[p], found.reason[p])
        assert set(found.reason[p].ravel()) == {"the process died of SIGSEGV"}, moment


@pytest.mark.long
def test_one_rollout_that_kills_a_shared_process_is_blamed_alone() -> None:
    instances = TSP.sample(12, 3, 7)
    fatal = float(sorted(each.dist[0][1] for each in instances)[1])
    body = f"""    from collections import defaultdict
    if dist[0][1] == {fatal!r}:
        x = 1
        for _ in range(200_000):
            x = defaultdict(int, {{1: x}})
"""
    pair = pair_of(body + END)
    verdict = check(pair.destroy.source, "destroy", TSP.interface)
    assert is_closed(verdict), "it shares a process with other rollouts"
    expected = [[Status.CRASH if each.dist[0][1] == fatal else Status.OK] * 2 for each in instances]
    for workers in (1, 2, 3):
        with LocalEvaluator(TSP, workers, cpu_seconds=2500) as e:
            found = e.run([pair], instances, (0, 1), 1, fail_fast=False)
        np.testing.assert_array_equal(found.status[0], expected)


def test_a_report_that_is_read_late_makes_no_fault_of_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The child uses up its time before a busy parent reads that it has begun."""
    read = Worker._read_reports

    def late(self: Worker) -> None:
        if not self._judged:
            time.sleep(0.4)
        read(self)

    monkeypatch.setattr(Worker, "_read_reports", late)
    found = run([ENDLESS], cpu_seconds=0.1 * 500, count=1)
    assert (found.status == Status.TIMEOUT).all(), found.reason


@pytest.mark.long
def test_a_status_that_comes_late_makes_no_fault_of_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The child has died, and the time is over before a busy zygote says how."""
    read, began = Worker._read_statuses, time.monotonic()

    def late(self: Worker) -> None:
        if self._open or time.monotonic() > self._began + 1.5:
            read(self)

    monkeypatch.setattr(Worker, "_read_statuses", late)
    found = run([DYING["while it is read"]], cpu_seconds=0.4 * 500, count=1)
    assert time.monotonic() > began + 1.5
    assert (found.status == Status.CRASH).all(), found.reason


CRASHED = ChildReport(0, Status.CRASH, "the process died of SIGSEGV", 0.1, again=True)
FAULT = fault("killed from outside by SIGKILL (out of memory?)", 0.1)


@pytest.mark.parametrize(
    ("ends", "status"),
    [
        ([CRASHED, CRASHED], Status.CRASH),
        ([FAULT, CRASHED, FAULT], Status.CRASH),
        ([CRASHED, FAULT, FAULT], Status.CRASH),
        ([FAULT, FAULT, FAULT], Status.HOST_FAULT),
        ([FAULT, FAULT, CRASHED], Status.CRASH),
    ],
)
def test_a_fault_of_the_host_hides_no_crash(ends: list[ChildReport], status: Status) -> None:
    instances = TSP.sample(12, 1, 7)
    with LocalEvaluator(TSP) as e:
        [(p, job)] = e._planner.jobs(
            [pair_of(END)], instances, (0,), 1, seconds=None, fail_fast=False, workers=1
        )
    results = Results(TSP, 1, instances, (0,), 1, 0)
    left = [Work(job, p)]
    for end in ends:
        [work] = left
        left = _settle(work, Ended([], end), results, False)
    assert left == []
    assert results.status[0, 0] == status


# --- what a model may read ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "reason", "redacted_reason"),
    [
        (Status.CRASH, "destroy: KeyError at line 7: 0.25", "destroy: KeyError at line 7"),
        (Status.CRASH, "destroy: ValueError at line 7", "destroy: ValueError at line 7"),
        (Status.CRASH, "destroy: TypeError at import", "destroy: TypeError at import"),
        (Status.INVALID, "destroy: removed too many: 9 of 20", "destroy: removed too many"),
        (Status.INVALID, "destroy: node 418592 is not there", "destroy: node"),
        (Status.INVALID, "destroy: no such 'zero, one'", "destroy: no such"),
        (Status.TAMPERED, "the best solution costs 3.25, not 3.5", "the best solution costs"),
        (Status.TIMEOUT, "used up 10 s of CPU time", "used up 10 s of CPU time"),
        (Status.REJECTED, "destroy: line 3: name 'os' is not", "destroy: line 3: name 'os' is not"),
    ],
)  # fmt: skip
def test_a_model_reads_nothing_of_the_programs_making(
    status: Status, reason: str, redacted_reason: str
) -> None:
    role = "destroy" if reason.startswith("destroy") else ""
    assert Failed(status, reason, role).redacted_reason == redacted_reason

"""What is done to a worker from outside is never held against a program."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from program_collection import good_pair

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Status
from spo_jax.envs.run.sandbox import worker as worker_module
from spo_jax.envs.run.sandbox.process import starting
from spo_jax.envs.run.sandbox.process.confine import LAYERS
from spo_jax.errors import SandboxUnavailable
from spo_jax.program import Pair, Program

TSP = get_problem("tsp")
ARRAYS = "\nimport numpy as np  # so that each rollout has a process of its own\n"


def below(pid: int) -> list[int]:
    """All descendants of a process."""
    found = []
    with suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            found += [int(child), *below(int(child))]
    return found


def zygotes() -> list[int]:
    me = os.getpid()
    tasks = Path(f"/proc/{me}/task").iterdir()
    found = []
    for task in tasks:
        with suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


@contextmanager
def killing(
    targets: Callable[[], list[int]], number: int, pause: float, most: int = 10**6
) -> Iterator[list[int]]:
    """Send a signal to one of `targets` after another, `most` times or until the body ends."""
    over = threading.Event()
    killed: list[int] = []
    draw = random.Random(0)

    def kill() -> None:
        while len(killed) < most and not over.wait(pause):
            if found := targets():
                victim = draw.choice(found)
                with suppress(ProcessLookupError):
                    os.kill(victim, number)
                    killed.append(victim)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "arrays"),
    [
        (signal.SIGKILL, False),
        (signal.SIGKILL, True),
        (signal.SIGTERM, False),
        (signal.SIGPROF, True),
    ],
)
def test_a_killed_child_is_no_fault_of_its_program(number: int, arrays: bool) -> None:
    good = good_pair("tsp")
    pairs = [
        Pair(Program.from_source("destroy", good.destroy.source + f"# {k}\n"), good.repair)
        for k in range(20)
    ]
    if arrays:
        sources = [pair.destroy.source + ARRAYS for pair in pairs]
        pairs = [Pair(Program.from_source("destroy", s), good.repair) for s in sources]
    instances = TSP.sample(20, 2, 0)
    with LocalEvaluator(TSP, 2, cpu_seconds=100) as e:
        expected = e.run(pairs, instances, (0, 1), 40)
        children = lambda: [c for z in zygotes() for c in below(z)]  # noqa: E731
        with killing(children, number, 0.02) as killed:
            found = e.run(pairs, instances, (0, 1), 40)
    assert len(killed) > 2  # a busy machine leaves the killer few turns
    assert expected.ok.all()
    assert set(np.unique(found.status)) <= {Status.OK, Status.HOST_FAULT}
    fine = found.status == Status.OK
    assert fine.mean() > 0.5
    np.testing.assert_array_equal(found.best_cost[fine], expected.best_cost[fine])
    reasons = set(found.reason[~fine])
    assert all("killed" in reason or "died" in reason for reason in reasons), reasons


@pytest.mark.long
def test_zygotes_that_are_killed_are_started_again() -> None:
    instances = TSP.sample(20, 2, 0)
    pairs = [good_pair("tsp")]
    with LocalEvaluator(TSP, 2, cpu_seconds=100) as e:
        expected = e.run(pairs, instances)
        with killing(zygotes, signal.SIGKILL, 0.4, most=6) as killed:
            began = time.monotonic()
            while len(killed) < 6 and time.monotonic() - began < 60.0:
                e.run(pairs, instances)
        assert len(killed) == 6
        assert e.run(pairs, instances).ok.all()
        np.testing.assert_array_equal(e.run(pairs, instances).best_cost, expected.best_cost)


DYING = """
import json, os, sys
control = int(sys.argv[1].split(",")[0])
with open({log!r}, "a") as log:
    log.write("started\\n")
os.write(control, json.dumps(dict.fromkeys({layers!r}, True)).encode() + b"\\n")
sys.exit("cannot fork: Resource temporarily unavailable")
"""


def test_a_zygote_that_dies_when_it_is_ready_is_not_started_for_ever(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    (tmp_path / "launch.py").write_text(DYING.format(log=str(log), layers=LAYERS))
    monkeypatch.setattr(worker_module, "PAUSE", 0.01)
    evaluator = LocalEvaluator(TSP, 1)
    good = good_pair("tsp")
    sources = [good.destroy.source + f"# {k}\n" for k in range(10)]
    programs = [Program.from_source("destroy", source) for source in sources]
    words = "died 6 times before a program could run: cannot fork: Resource temporarily unavail"
    with monkeypatch.context() as patch:
        patch.setattr(starting, "LAUNCHER", tmp_path / "launch.py")
        for ask in (
            lambda: evaluator.run(
                [Pair(each, good.repair) for each in programs], TSP.sample(9, 1, 0)
            ),
            lambda: evaluator.check([*programs] * 20),
        ):
            log.unlink(missing_ok=True)
            with pytest.raises(SandboxUnavailable, match=words):
                ask()
            assert len(log.read_text().splitlines()) == worker_module.STARTS
    assert evaluator.check(programs) == [None] * 10  # it starts afresh
    evaluator.close()


def test_a_sandbox_that_is_always_killed_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "launch.py").write_text("import os\nos.kill(os.getpid(), 9)\n")
    monkeypatch.setattr(worker_module, "PAUSE", 0.01)
    monkeypatch.setattr(starting, "LAUNCHER", tmp_path / "launch.py")
    words = r"did not start \(6 times\): killed .* SIGKILL"
    with pytest.raises(SandboxUnavailable, match=words), LocalEvaluator(TSP):
        pass

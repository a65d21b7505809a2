"""Evaluation on real Ray clusters of several nodes on this machine."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from program_collection import good_pair

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.adaptive import Adaptation
from spo_jax.envs.run.cluster import evaluator as module
from spo_jax.envs.run.factory import get_evaluator
from spo_jax.envs.run.jobs.operators import AdaptiveRuns
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Rollouts
from spo_jax.errors import InputError, MissingExtra
from spo_jax.program import Pair, Program
from spo_jax.runs.database.store import dump

pytestmark = pytest.mark.skipif(
    find_spec("ray") is None, reason="Ray is not installed: pip install 'spo-jax[ray]'"
)

TSP = get_problem("tsp")
STORE = 80_000_000  # bytes of each node's object store
LONG = 6_000  # steps of a rollout that takes about a second


def varied(count: int) -> list[Pair]:
    good = good_pair("tsp")
    return [
        Pair(Program.from_source("destroy", good.destroy.source + f"# {k}\n"), good.repair)
        for k in range(count)
    ]


def same(a: Rollouts, b: Rollouts) -> None:
    for name in ("best_cost", "state", "status", "code", "reason", "role"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def processes(mark: str) -> dict[int, str]:
    """Processes whose command line holds a text."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            if mark in line and int(folder.name) != os.getpid():
                found[int(folder.name)] = line
    return found


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def joined() -> bool:
    """Whether this process is still part of a cluster."""
    import ray

    return bool(ray.is_initialized())


def wait_until(true: Callable[[], object], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.1)


@pytest.fixture(scope="module", autouse=True)
def secured() -> Iterator[None]:
    """Every cluster of this file asks for a token, which is never written to a file.

    Ray reads this when it is first imported, so nothing else in this process may import it before.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", "0123456789abcdef" * 4)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.delenv("RAY_ADDRESS", raising=False)
        yield


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A text in the command line of every zygote of this test."""
    monkeypatch.syspath_prepend(tmp_path)
    return str(tmp_path)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Ray's in place of /tmp/ray, which may be somebody else's. Sockets need a short path."""
    places = ("/tmp", "/dev/shm", tempfile.gettempdir())
    usable = [each for each in places if os.access(each, os.W_OK) and len(each) <= 20]
    if not usable:
        pytest.skip("Ray's sockets need a folder with a short path that can be written, as /tmp")
    found = tempfile.mkdtemp(prefix="spo-ray-", dir=usable[0])
    monkeypatch.setenv("RAY_TMPDIR", found)
    made_for_ray(found)
    yield found
    shutil.rmtree(found, ignore_errors=True)


def made_for_ray(folder: str) -> None:
    """Where Ray notes its address; it does not make that folder."""
    (Path(folder) / "ray").mkdir(parents=True)


@pytest.fixture
def cluster(folder: str) -> Iterator[Any]:
    """A head without CPUs."""
    from ray.cluster_utils import Cluster

    made = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 0,
            "object_store_memory": STORE,
            "include_dashboard": False,
            "temp_dir": folder,
        },
    )
    yield made
    made.shutdown()
    wait_until(lambda: not processes(folder), 30)  # nothing of Ray's is left


def add(cluster: Any, cpus: int) -> Any:
    return cluster.add_node(num_cpus=cpus, object_store_memory=STORE)


def evaluator(cluster: Any, **settings: Any) -> Any:
    return get_evaluator("ray", cluster.address)(TSP, cpu_seconds=1000, **settings)


def adaptive(evaluator: Any) -> AdaptiveRuns:
    """Adaptive searches over two destroys and two repairs."""
    pairs, instances = varied(2), TSP.sample(20, 2, 1)
    back = "def repair(dist, tour, removed, z, rng):\n    return tour + removed\n"
    repairs = [pairs[0].repair, Program("repair", back)]
    destroys = [each.destroy for each in pairs]
    return evaluator.adaptive(destroys, repairs, instances, (0, 1), 30, Adaptation())


@pytest.mark.slow
def test_several_nodes_give_what_one_machine_gives(cluster: Any, mark: str) -> None:
    for cpus in (1, 2, 1):
        add(cluster, cpus)
    pairs = [*varied(12), Pair(Program("destroy", "x = 1\n"), good_pair("tsp").repair)]
    instances, others = TSP.sample(20, 3, 0), TSP.sample(15, 1, 1)
    programs = [each.destroy for each in pairs]
    with LocalEvaluator(TSP, 2, cpu_seconds=1000) as local:
        expected = local.run(pairs, instances, (0, 1), 60)
        further = local.run(pairs[:1], others, range(9), 200, fail_fast=False)
        refusals = local.check(programs)
        searched = adaptive(local)
    messages: list[str] = []
    with evaluator(cluster) as spread:
        spread.listen(messages.append)
        same(spread.run(pairs, instances, (0, 1), 60), expected)
        same(spread.run(pairs[:1], others, range(9), 200, fail_fast=False), further)
        assert spread.check(programs) == refusals
        again = adaptive(spread)
        same(again.rollouts, searched.rollouts)
        np.testing.assert_array_equal(again.drawn, searched.drawn)
        np.testing.assert_array_equal(again.outcomes, searched.outcomes)
        assert len(processes(mark)) >= 4  # a zygote for each worker
        records = spread.record()
        assert spread.layers["seccomp"]
    ready = [each for each in records if each["state"] == "ready"]
    assert sorted(each["workers"] for each in ready) == [1, 1, 2]
    assert all(each["rollouts"] > 0 for each in ready)
    assert [each["why"] for each in records if each["state"] == "refused"] == ["it offers no CPU"]
    assert sum(" takes programs: " in line for line in messages) == 3
    wait_until(lambda: not processes(mark), 20)
    assert not joined()


@pytest.mark.slow
def test_nodes_that_die_or_come_cost_only_their_jobs(cluster: Any, mark: str) -> None:
    first, _ = add(cluster, 2), add(cluster, 1)
    pairs, instances = varied(24), TSP.sample(20, 1, 0)
    with LocalEvaluator(TSP, 1, cpu_seconds=1000) as local:
        expected = local.run(pairs, instances, (0,), LONG)
    messages: list[str] = []
    changes = [lambda: add(cluster, 1), lambda: cluster.remove_node(first, allow_graceful=False)]

    def progress(done: int, total: int) -> None:
        if done and changes:
            changes.pop()()

    with evaluator(cluster) as spread:
        spread.listen(messages.append)
        same(spread.run(pairs, instances, (0,), LONG, progress=progress), expected)
        records = spread.record()
    assert not changes
    assert [each["state"] for each in records if each["workers"] == 2] == ["lost"]
    assert sum("done again elsewhere" in line for line in messages) == 1, messages
    assert sum(each["state"] == "ready" for each in records) == 2, messages
    wait_until(lambda: not processes(mark), 20)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_host_that_dies_or_hangs_costs_only_its_jobs(
    cluster: Any, mark: str, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setattr(module, "HANG", 6.0)
    add(cluster, 1)
    add(cluster, 1)
    pairs, instances = varied(16), TSP.sample(20, 1, 0)
    with LocalEvaluator(TSP, 1, cpu_seconds=1000) as local:
        expected = local.run(pairs, instances, (0,), LONG)
    messages: list[str] = []
    struck: list[int] = []

    def progress(done: int, total: int) -> None:
        if done and not struck:
            host = parent_of(min(processes(mark)))
            assert host != os.getpid()
            struck.append(host)
            os.kill(host, number)

    with evaluator(cluster) as spread:
        spread.listen(messages.append)
        same(spread.run(pairs, instances, (0,), LONG, progress=progress), expected)
    assert sum("done again elsewhere" in line for line in messages) == 1, messages
    wait_until(lambda: not processes(mark) and not Path(f"/proc/{struck[0]}").exists(), 20)


@pytest.mark.slow
def test_a_run_that_is_killed_leaves_nothing_on_the_nodes(
    cluster: Any, mark: str, tmp_path: Path
) -> None:
    add(cluster, 2)
    script, good = tmp_path / "endless.py", good_pair("tsp")
    script.write_text(
        f"import sys; sys.path.insert(0, {mark!r})\n"
        "from spo_jax.envs.problems import get_problem\n"
        "from spo_jax.envs.run.factory import get_evaluator\n"
        "from spo_jax.program import Pair, Program\n"
        f"destroy, repair = {(good.destroy.source, good.repair.source)!r}\n"
        "pair = Pair(Program('destroy', destroy), Program('repair', repair))\n"
        "tsp = get_problem('tsp')\n"
        f"with get_evaluator('ray', {cluster.address!r})(tsp, cpu_seconds=1e5) as e:\n"
        "    print('ready', flush=True)\n"
        "    e.run([pair], tsp.sample(20, 1, 0), range(99), 50_000)\n"
    )
    run = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE)
    assert run.stdout is not None
    assert run.stdout.readline() == b"ready\n"
    zygotes = lambda: [p for p, line in processes(mark).items() if "launch.py" in line]  # noqa: E731
    wait_until(lambda: len(zygotes()) >= 2, 20)
    time.sleep(1.0)
    run.kill()
    run.wait()
    run.stdout.close()
    wait_until(lambda: not processes(mark), 30)


# --- whole runs, by the commands a user gives -----------------------------------------------------

RUN = ["--preset", "smoke", "--generator", "grammar", "--seed", "5"]


def spo(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "spo_jax", *arguments]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """`ray start` until the end of the block, with all that it starts."""
    from_here = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block"]
    process = subprocess.Popen(
        [*from_here, "--object-store-memory", str(STORE), "--disable-usage-stats", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)
        process.kill()
        process.wait()


def answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
        return True
    return False


@contextmanager
def head(port: int, folder: str, cpus: int = 1) -> Iterator[subprocess.Popen[bytes]]:
    with started(
        "--head", f"--port={port}", f"--num-cpus={cpus}", "--include-dashboard=false",
        "--node-ip-address=127.0.0.1", f"--temp-dir={folder}",
    ) as process:  # fmt: skip
        wait_until(lambda: answers(port), 60)
        yield process


def results(path: Path) -> dict[str, Any]:
    """All tables; of the settings those that name no machines."""
    tables = dump(path)
    machines = ("evaluator", "ray_address", "workers")
    return tables | {"config": [row for row in tables["config"] if row[0] not in machines]}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A run on this machine alone."""
    path = tmp_path_factory.mktemp("local") / "run"
    subprocess.run(spo("discover", "tsp", *RUN, "--out", str(path)), check=True, timeout=300)
    return results(path)


@pytest.mark.slow
def test_a_discovery_by_the_command_line_on_nodes_that_ray_started(
    tmp_path: Path, folder: str, expected: Any
) -> None:
    port, path = free_port(), tmp_path / "run"
    address = f"127.0.0.1:{port}"
    with head(port, folder), started(f"--address={address}", "--num-cpus=2"):
        wait_until(lambda: len(processes("raylet/raylet")) >= 2, 60)
        time.sleep(3.0)
        done = subprocess.run(
            spo("discover", "tsp", *RUN, "--out", str(path),
                "--evaluator", "ray", "--ray-address", address),
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        pair = subprocess.run(
            spo("evaluate", str(path), "--on", "uniform:12x2", "--steps", "20", "--references",
                "none", "--evaluator", "ray", "--ray-address", address),
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert pair.returncode == 0, pair.stderr
        assert "takes programs: 2 workers" in pair.stdout + pair.stderr
    assert results(path) == expected
    manifest = json.loads((path / "manifest.json").read_text())
    nodes = manifest["nodes"]
    assert sorted(each["workers"] for each in nodes) == [1, 2]
    for each in nodes:
        assert each["state"] == "ready"
        assert each["sandbox"]["seccomp"] is True
        assert {"python", "numpy", "spo_jax"} <= each["versions"].keys()
    assert sum(each["rollouts"] for each in nodes) > 0
    assert done.stdout.count("takes programs") == 2
    assert "round 1 nodes so far: " in done.stdout
    wait_until(lambda: not processes(folder), 30)


@pytest.mark.slow
def test_a_head_that_dies_ends_the_run_and_it_resumes(
    tmp_path: Path, folder: str, expected: Any
) -> None:
    port, path = free_port(), tmp_path / "run"
    address = f"127.0.0.1:{port}"
    command = spo("discover", "tsp", *RUN, "--evaluator", "ray", "--ray-address", address)
    with head(port, folder):
        run = subprocess.Popen(
            [*command, "--out", str(path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True,
        )  # fmt: skip
        lines: list[str] = []
        reader = threading.Thread(target=lambda: lines.extend(run.stdout or ()))
        reader.start()
        wait_until(lambda: any(line.startswith("round 1/") for line in lines), 120)
        for pid in processes(f"--gcs_server_port={port}") or processes("gcs_server"):
            if folder in processes("gcs_server").get(pid, ""):
                os.kill(pid, signal.SIGKILL)
        assert run.wait(120) != 0
        reader.join()
    assert not any("Traceback" in line for line in lines), lines
    wait_until(lambda: not processes(folder), 30)
    shutil.rmtree(folder)
    made_for_ray(folder)
    # On another cluster, and from there on this machine alone.
    port = free_port()
    with head(port, folder, cpus=2):
        done = subprocess.run(
            spo("discover", "--resume", str(path), "--ray-address", f"127.0.0.1:{port}"),
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert results(path) == expected
    nodes = json.loads((path / "manifest.json").read_text())["nodes"]
    assert len({each["id"] for each in nodes}) == 2  # of both sessions


# --- what a user does wrong -----------------------------------------------------------------------


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"^ray is not installed: pip install 'spo-jax\[ray\]'$"):
        get_evaluator("ray")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:1", r"^nothing answers at 127.0.0.1:1: give the address of a Ray cluster's he"),
        ("nowhere", r"^ray-address is nowhere; it must be HOST:PORT"),
        ("ray://127.0.0.1:10001", r"^ray-address is ray://.* Ray's client is not supported"),
    ],
)
def test_an_address_that_cannot_be_reached(address: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        get_evaluator("ray", address)(TSP).__enter__()
    assert not joined()


def test_an_address_is_for_ray_alone() -> None:
    with pytest.raises(InputError, match="ray_address is given, but evaluator is local"):
        get_evaluator("local", "127.0.0.1:1")

"""The whole way as a user goes it: discover, kill, resume, export, evaluate, solve.

The golden numbers are those of the smoke preset with the grammar and seed 0; a change of them is a
change of the method, of a random stream or of the grammar, and is meant or is a bug.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spo_jax.cli import main
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.cvrp.files import cvrplib
from spo_jax.envs.problems.tsp.files import tsplib
from spo_jax.runs.database.store import dump
from spo_jax.runs.folders import BEST
from spo_jax.runs.run import load_run

SMOKE = ["--preset", "smoke", "--generator", "grammar"]
GOLDEN = {"tsp": 0.720337068967869, "cvrp": 0.6329362005423541}
PAPERS = {"tsp": 0.720337068967869, "cvrp": 0.6306634538697673}
# The same of a run that takes a second or two.
SMALL = ["--rounds", "1", "--size", "12", "--instances", "1", "--rollouts", "1", "--steps", "20"]
SMALL += ["--validation-size", "9", "--validation-instances", "1", "--validation-steps", "9"]
SMALL += ["--mutation-groups", "1", "--responses", "2", "--repairs-per-destroy", "2"]
SMALL_GOLDEN = {"tsp": 0.4321274526755226}

READ = {"tsp": tsplib.read_tour, "cvrp": cvrplib.read_solution}


class Runs(dict[str, Path]):
    """The golden runs, each made where it is first asked for."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __missing__(self, problem: str) -> Path:
        out = self.folder / problem
        assert main(["discover", problem, *SMOKE, "--workers", "2", "--out", str(out)]) == 0
        self[problem] = out
        return out


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return Runs(tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize("problem", SMALL_GOLDEN)
def test_golden_of_a_small_run(tmp_path: Path, problem: str) -> None:
    out = tmp_path / problem
    assert main(["discover", problem, *SMOKE, *SMALL, "--workers", "1", "--out", str(out)]) == 0
    found = load_run(out).best_by_round[-1].utility
    assert found == pytest.approx(SMALL_GOLDEN[problem], rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("problem", GOLDEN)
def test_golden(runs: dict[str, Path], problem: str) -> None:
    run = load_run(runs[problem])
    assert run.status == "finished"
    assert run.best is not None
    assert run.best_by_round[-1].utility == pytest.approx(GOLDEN[problem], rel=1e-9)
    assert run.best.validation is not None


@pytest.mark.slow
@pytest.mark.parametrize("problem", PAPERS)
def test_golden_of_the_papers_contract(tmp_path: Path, problem: str) -> None:
    """Without the kit and with the paper's rule of survivors: as before there was a kit."""
    own = ["--kit", "none", "--survivors", "diverse", "--diversity", "0.1"]
    out = tmp_path / problem
    assert main(["discover", problem, *SMOKE, *own, "--workers", "2", "--out", str(out)]) == 0
    found = load_run(out).best_by_round[-1].utility
    assert found == pytest.approx(PAPERS[problem], rel=1e-9)


@pytest.mark.slow
def test_one_worker_and_a_kill_change_nothing(runs: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "killed"
    command = [sys.executable, "-m", "spo_jax", "discover", "tsp", "--workers", "1"]
    run = subprocess.Popen([*command, *SMOKE, "--out", str(out)], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (out / BEST).exists():
        time.sleep(0.02)  # the first round is committed
    time.sleep(0.3)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    assert load_run(out).status == "interrupted"
    subprocess.run([*command, "--resume", str(out)], check=True, stdout=subprocess.DEVNULL)
    assert dump(out) == dump(runs["tsp"])
    ours, theirs = ((path / BEST).read_text().split('"""', 2)[2] for path in (out, runs["tsp"]))
    assert ours == theirs


@pytest.mark.long
@pytest.mark.parametrize("problem", GOLDEN)
def test_export_evaluate_solve(runs: dict[str, Path], tmp_path: Path, problem: str) -> None:
    pair, report = tmp_path / "pair.py", tmp_path / "report.json"
    assert main(["export", str(runs[problem]), "--out", str(pair)]) == 0
    alone = [sys.executable, "-I", "-c", f"exec(open({str(pair)!r}).read()); destroy, repair"]
    subprocess.run(alone, check=True, cwd=tmp_path)
    line = ["evaluate", str(pair), "--problem", problem, "--on", "uniform:12x2", "uniform:9x1@4"]
    line += ["--steps", "40", "--seeds", "2", "--json", str(report), "--references", "none"]
    assert main(line) == 0
    groups = json.loads(report.read_text())["groups"]
    assert [len(group["instances"]) for group in groups] == [2, 1]
    tools = get_problem(problem)
    instance = tools.sample(12, 2, 0)[1]
    for rollout in groups[0]["instances"][1]["rollouts"]:
        assert rollout["status"] == "ok"
        assert rollout["gap"] is None
        assert rollout["best_cost"] == pytest.approx(tools.cost(instance, rollout["solution"]))


@pytest.mark.long
@pytest.mark.parametrize(
    ("problem", "path"), [("tsp", "tsplib/burma14.tsp"), ("cvrp", "cvrplib/P/P-n19-k2.vrp")]
)
def test_solving_a_known_instance(
    runs: dict[str, Path], spo_data: Path, tmp_path: Path, problem: str, path: str
) -> None:
    out, picture = tmp_path / "solution", tmp_path / "picture.png"
    line = ["solve", str(spo_data / path), "--pair", str(runs[problem]), "--steps", "500"]
    assert main([*line, "--out", str(out), "--plot", str(picture)]) == 0
    tools = get_problem(problem)
    instance = tools.read(spo_data / path)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert instance.reference is not None
    solution = READ[problem](out, instance)
    assert instance.reference <= tools.cost(instance, solution) <= 1.05 * instance.reference

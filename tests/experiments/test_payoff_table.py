"""The table of every destroy with every repair: its parts, and that a kill changes nothing."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import payoff_table
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.program import Pair, Program
from spo_jax.search.lab.tables import load_table
from spo_jax.seeding import derive
from writers import Written, by_grammar

ROOT = Path(__file__).parents[2]
TINY = ("--size", "8", "--instances", "2", "--rollouts", "1", "--steps", "12")


@pytest.fixture
def drafts(monkeypatch):
    """The grammar writes in the place of a model; counts its chunks."""
    chunks = []

    def by_model(problem, kit, writer, count, seed):
        chunks.append(seed)
        found = by_grammar(problem, kit, False, count, seed)
        found.repairs[0] = None  # no program
        found.destroys[1] = Program("destroy", "import os\ndef destroy(): pass\n")  # refused
        return Written(found.destroys, [*found.repairs[:-1], found.repairs[-2]])  # repeated

    monkeypatch.setattr(payoff_table, "by_model", by_model)
    monkeypatch.setattr(payoff_table, "Writer", lambda *arguments: None)
    monkeypatch.setattr(payoff_table, "CHUNK", 12)
    monkeypatch.setattr(payoff_table, "FEWEST", 4)
    return chunks


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["payoff_table.py", *map(str, arguments)])
    return payoff_table.main()


def test_blocks_are_squares_that_grow():
    order = list(payoff_table.places(40))
    assert order == [(0, 0), (0, 16), (16, 0), (16, 16), (0, 32), (16, 32), (32, 0), (32, 16),
                     (32, 32)]  # fmt: skip
    assert list(payoff_table.places(32)) == order[:4]


@pytest.mark.slow
def test_a_table_is_what_the_evaluator_finds_and_grows(tmp_path, monkeypatch, drafts):
    flags = (*TINY, "--out", tmp_path)
    assert run(monkeypatch, *flags, "--programs", 5) == 0
    held = json.loads((tmp_path / "tsp.json").read_text())
    pairs = [(Program("destroy", p["destroy"]["source"]), Program("repair", p["repair"]["source"]))
             for p in held["pairs"]]  # fmt: skip
    texts = [each.source for pair in pairs for each in pair]
    assert len(set(texts)) == len(texts) >= 12  # of 12 prompts, three are left out
    assert not any("import os" in text for text in texts)
    problem = get_problem("tsp")
    with np.load(tmp_path / "tsp.npz") as known:
        small = {name: known[name] for name in known.files}
    assert small["cost"].shape == (5, 5, 2, 1, 2)
    assert small["at"].tolist() == [10, 12]
    with LocalEvaluator(problem, seed=0) as evaluator:
        rollouts = evaluator.run(
            [Pair(pairs[i][0], pairs[j][1]) for i in range(5) for j in range(5)],
            problem.sample(8, 2, derive("payoff table", 0)), (0,), 12,
        )  # fmt: skip
    expected = rollouts.best_cost[..., [10, 12]].reshape(5, 5, 2, 1, 2)
    np.testing.assert_allclose(small["cost"], expected, rtol=1e-6)
    np.testing.assert_array_equal(small["start"], rollouts.best_cost[0, ..., 0])
    np.testing.assert_array_equal(small["status"], 0)
    assert small["destroys"].tolist() == [pair[0].digest for pair in pairs[:5]]
    table = load_table(tmp_path / "tsp.npz")
    assert table.answer.tolist() == [0, 1, 2, 3, 4]
    # More programs: the first ones stay, and the chunks go on.
    assert run(monkeypatch, *flags, "--programs", 17) == 0
    assert len(drafts) == len(set(drafts)) == 2
    with np.load(tmp_path / "tsp.npz") as known:
        np.testing.assert_array_equal(known["cost"][:5, :5], small["cost"])
        assert known["cost"].shape[:2] == known["seconds"].shape == (17, 17)
    assert run(monkeypatch, *flags, "--programs", 5) == 0
    with np.load(tmp_path / "tsp.npz") as known:
        np.testing.assert_array_equal(known["cost"], small["cost"])
    assert len(drafts) == 2


@pytest.mark.slow
def test_a_killed_table_goes_on_with_the_next_block(tmp_path, monkeypatch, drafts):
    flags = (*TINY, "--programs", "17", "--out")
    assert run(monkeypatch, *flags, tmp_path / "whole") == 0
    out = tmp_path / "killed"
    out.mkdir()
    (out / "tsp.json").write_bytes((tmp_path / "whole" / "tsp.json").read_bytes())
    command = [sys.executable, ROOT / "experiments" / "payoff_table.py", *flags, out]
    paths = os.pathsep.join([str(ROOT), str(ROOT / "experiments")])
    for number in (signal.SIGTERM, signal.SIGKILL):
        process = subprocess.Popen(
            list(map(str, command)), stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": paths}
        )
        assert process.stdout is not None
        process.stdout.readline()  # the first block is there
        process.send_signal(number)
        process.communicate()
        assert process.returncode == -number
        assert not (out / "tsp.npz").exists()
    blocks = {block: block.stat().st_mtime_ns for block in out.rglob("*.npz")}
    assert 1 <= len(blocks) < 4
    assert run(monkeypatch, *flags, out) == 0
    assert all(block.stat().st_mtime_ns == at for block, at in blocks.items())
    tables = [np.load(folder / "tsp.npz") for folder in (tmp_path / "whole", out)]
    for name in ("cost", "start", "status", "destroys", "repairs", "at"):
        np.testing.assert_array_equal(tables[0][name], tables[1][name])


def test_what_it_refuses(tmp_path, monkeypatch, capsys, drafts):
    assert run(monkeypatch, "--programs", 1) == 2
    assert "at least 2" in capsys.readouterr().err
    (tmp_path / "tsp.json").write_text('{"settings": {}, "pairs": [], "chunks": 0}')
    assert run(monkeypatch, *TINY, "--out", tmp_path) == 2
    assert "is of other settings" in capsys.readouterr().err
    (tmp_path / "tsp.json").unlink()
    monkeypatch.setattr(payoff_table, "written", lambda *arguments: [])
    assert run(monkeypatch, *TINY, "--out", tmp_path) == 2
    assert "wrote 0 new pairs in 12" in capsys.readouterr().err

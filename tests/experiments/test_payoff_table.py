"""The table of every destroy with every repair: its parts, and that a kill changes nothing."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import payoff_table
import spo_jax
from common.payoffs import of_runs, of_table
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program
from spo_jax.search.lab.measured.dataset import load_data
from spo_jax.search.lab.measured.tables import load_table
from spo_jax.seeding import derive
from writers import Written, by_grammar

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "experiments/data/payoff/tsp.npz"
TINY = (
    "--size",
    "8",
    "--instances",
    "2",
    "--test-instances",
    "1",
    "--rollouts",
    "1",
    "--steps",
    "12",
)

WRONG = """STRATEGY: fail
CODE:
```python
def destroy(dist, current_tour, steps_since_improvement, rng):
    raise ValueError("secret of the program")
```
"""
REFUSED = """```python
def destroy(dist, current_tour, steps_since_improvement, rng):
    os.remove("x")
```
"""


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
    order = list(payoff_table.places(40, 40))
    assert order == [(0, 0), (0, 16), (16, 0), (16, 16), (0, 32), (16, 32), (32, 0), (32, 16),
                     (32, 32)]  # fmt: skip
    assert list(payoff_table.places(32, 32)) == order[:4]
    assert list(payoff_table.places(10, 20)) == [(0, 0), (0, 16)]


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
    small = load_data(tmp_path / "tsp.npz")
    assert small.scores.shape == (5, 5, 3, 1, 2)
    assert small.at.tolist() == [10, 12]
    assert small.test.tolist() == [False, False, True]
    instances = [*problem.sample(8, 2, derive("payoff table", 0)),
                 *problem.sample(8, 1, derive("payoff test", 0))]  # fmt: skip
    assert [each.digest for each in small.instances] == [each.digest for each in instances]
    with LocalEvaluator(problem, seed=0) as evaluator:
        rollouts = evaluator.run(
            [Pair(pairs[i][0], pairs[j][1]) for i in range(5) for j in range(5)],
            instances, (0,), 12,
        )  # fmt: skip
    cost = rollouts.best_cost.reshape(5, 5, 3, 1, 13)
    expected = 1 - cost[..., [10, 12]] / cost[..., :1]
    np.testing.assert_allclose(small.scores, expected, rtol=1e-6)
    np.testing.assert_array_equal(small.start, rollouts.best_cost[0, ..., 0])
    np.testing.assert_array_equal(small.status, 0)
    assert small.reasons == ("",)
    assert [each.program.digest for each in small.destroys] == [p[0].digest for p in pairs[:5]]
    assert {each.origin for each in small.repairs} == {"embedded"}
    assert load_table(tmp_path / "tsp.npz").answer.tolist() == [0, 1, 2, 3, 4]
    # More programs: the first ones stay, and the chunks go on.
    assert run(monkeypatch, *flags, "--programs", 17) == 0
    assert len(drafts) == len(set(drafts)) == 2
    larger = load_data(tmp_path / "tsp.npz")
    np.testing.assert_array_equal(larger.scores[:5, :5], small.scores)
    assert larger.scores.shape[:2] == larger.seconds.shape[:2] == (17, 17)
    assert run(monkeypatch, *flags, "--programs", 5) == 0
    np.testing.assert_array_equal(load_data(tmp_path / "tsp.npz").scores, small.scores)
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
    tables = [load_data(folder / "tsp.npz") for folder in (tmp_path / "whole", out)]
    for name in ("scores", "start", "status", "destroys", "repairs", "at"):
        np.testing.assert_array_equal(getattr(tables[0], name), getattr(tables[1], name))


# --- of runs --------------------------------------------------------------------------------------

ANSWERS = [
    {"model": "mine", "role": "destroy", "answer": WRONG},
    {"model": "mine", "role": "repair", "answer": "no program"},
    {"role": "destroy", "answer": "STRATEGY: x\nCODE:\n```python\nimport os\n```"},
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs of the grammar."""
    folder = tmp_path_factory.mktemp("runs")
    found = []
    for seed, name in enumerate(("one", "two")):
        found.append(spo_jax.discover(
            "tsp", path=folder / name, rounds=2, size=8, instances=2, rollouts=1, steps=3,
            finalists=0, select="utility", generator="grammar", workers=1, seed=seed,
            mutation_groups=1, crossover_groups=1, responses=2, repairs_per_destroy=2,
        ))  # fmt: skip
    return found


@pytest.mark.slow
def test_a_data_set_of_runs(runs, tmp_path, monkeypatch, capsys):
    answers = tmp_path / "answers.jsonl"
    answers.write_text("\n".join(map(json.dumps, ANSWERS)))
    out = tmp_path / "out"
    flags = (*TINY, "--programs", 7, "--run", *(run.path for run in runs), "--answers", answers,
             "--out", out, "--name", "mine")  # fmt: skip
    assert run(monkeypatch, *flags) == 0
    data = load_data(out / "mine.npz")
    first = (out / "mine.npz").read_bytes()
    places = {(each.origin, each.round) for each in data.destroys}
    assert places >= {("run one", 1), ("run one", 2), ("run two", 1), ("run two", 2)}
    [bad] = [k for k, each in enumerate(data.destroys) if each.origin == "answers of mine"]
    assert data.failed[bad].all()
    assert (data.status[bad] == Status.CRASH).all()
    reasons = {data.reasons[k] for k in np.unique(data.reason[bad])}
    assert reasons == {"destroy: ValueError at line 2"}  # without the program's own words
    assert np.isnan(data.scores[bad]).all()
    assert (data.seconds[bad] >= 0).all()
    by_name = {each.path.name: each for each in runs}
    for d, j in enumerate(data.answer):
        if j >= 0:
            one, two = data.destroys[d], data.repairs[j]
            found = by_name[one.origin.removeprefix("run ")]
            assert (one.program.digest, two.program.digest) in {
                (found[p.destroy].digest, found[p.repair].digest)
                for p in found.pairs if p.kind == "response"
            }  # fmt: skip
    assert (data.answer >= 0).sum() >= 2
    text = (out / "mine.md").read_text()
    assert f"{data.failed.sum()} of {data.failed.size}" in text
    assert "| destroys of answers of mine |  | 1 | 100.0% | 1 |" in text
    assert "destroy: ValueError at line 2" in text
    assert "--programs 7" in text
    assert "secret" not in text
    made = dict(data.made)
    assert (made["problem"], made["size"], made["test_instances"]) == ("tsp", 8, 1)
    # Stopped before the last file: no block is made again.
    (out / "mine.npz").unlink()
    monkeypatch.setattr(LocalEvaluator, "run", None)
    assert run(monkeypatch, *flags) == 0
    assert (out / "mine.npz").read_bytes() == first
    capsys.readouterr()
    assert run(monkeypatch, *flags, "--problem", "cvrp") == 2
    assert "the runs and tables are of tsp" in capsys.readouterr().err
    # Its programs, and those of a table of before, in another one.
    pools = [of_table(each) for each in (out / "mine.npz", SHIPPED)]
    assert [len(pool.destroys) for pool in pools] == [7, 157]
    both = of_runs([], pools, 6, 0, 0)
    assert [each.origin for each in both.destroys[1::2]] == ["table tsp"] * 3
    assert list(both.repairs[::2]) == list(data.repairs[:3])
    assert both.answer[1::2] == (1, 3, 5)
    answers.write_text('{"role": "neither", "answer": ""}')
    assert run(monkeypatch, *flags) == 2
    assert "is no file of answers" in capsys.readouterr().err


def programs_like(role, text, count, number):
    return [
        SimpleNamespace(
            name=f"{text}{k}", role=role, round=number,
            program=Program(role, f"def {role}(): return {text!r}, {k}"),
        )
        for k in range(count)
    ]  # fmt: skip


def test_programs_that_failed_come_first_then_answers_to_the_chosen():
    destroys = [*programs_like("destroy", "d", 6, 1), *programs_like("destroy", "e", 6, 4)]
    repairs = programs_like("repair", "r", 9, 1)
    named = {each.name: each for each in (*destroys, *repairs)}
    for each in named.values():
        each.digest = each.program.digest
    pairs = [
        SimpleNamespace(destroy="d3", repair="r8", kind="response", failed="destroy"),
        SimpleNamespace(destroy="e5", repair="r0", kind="response", failed="destroy"),
        SimpleNamespace(destroy="d1", repair="r7", kind="response", failed=""),
        SimpleNamespace(destroy="d1", repair="r4", kind="response", failed="repair"),
    ]
    refused = [SimpleNamespace(
        subject="destroy", status="rejected", round=2, text="STRATEGY: s\nCODE:\n" + REFUSED
    )]  # fmt: skip

    class Fake(SimpleNamespace):
        def __getitem__(self, name):
            return named[name]

    fake = Fake(path=Path("runs/fake"), rounds=4, failures=refused, pairs=pairs,
                programs=[*destroys, *repairs])  # fmt: skip
    found = of_runs([fake], [], 8, 2, 0)
    early = [each for each in found.destroys if each.round < 4]
    assert early[0].program is named["d3"].program
    assert (early[1].round, "os.remove" in early[1].program.source) == (2, True)
    late = [each for each in found.destroys if each.round == 4]
    assert late[0].program is named["e5"].program
    assert len(found.destroys) == len({each.program.source for each in found.destroys}) == 8
    first, *_ = found.repairs
    assert first.program is named["r4"].program  # failed
    chosen = {each.program.digest for each in found.destroys}
    own = [p.repair for p in pairs if named[p.destroy].digest in chosen and p.repair != "r4"]
    places = {each.program.digest: k for k, each in enumerate(found.repairs)}
    assert {places[named[name].digest] for name in dict.fromkeys(own)} == set(
        range(1, 1 + len(set(own)))
    )
    for d, each in enumerate(found.destroys):
        answers = [p.repair for p in pairs if named[p.destroy].digest == each.program.digest]
        due = places.get(named[answers[0]].digest, -1) if answers else -1
        assert found.answer[d] == due
    again = of_runs([fake], [], 8, 2, 0)
    assert again == found
    assert of_runs([fake], [], 8, 2, 1) != found
    with pytest.raises(InputError, match="a table takes three"):
        of_runs([fake], [], 2, 2, 0)


def test_what_it_refuses(tmp_path, monkeypatch, capsys, drafts):
    assert run(monkeypatch, "--programs", 2) == 2
    assert "at least 3" in capsys.readouterr().err
    assert run(monkeypatch, "--test-instances", -1) == 2
    assert "0 or more" in capsys.readouterr().err
    assert run(monkeypatch, "--run", "nosuch") == 2
    assert "no such run folder" in capsys.readouterr().err
    (tmp_path / "tsp.json").write_text('{"settings": {}, "pairs": [], "chunks": 0}')
    assert run(monkeypatch, *TINY, "--out", tmp_path) == 2
    assert "is of other settings" in capsys.readouterr().err
    (tmp_path / "tsp.json").unlink()
    monkeypatch.setattr(payoff_table, "written", lambda *arguments: [])
    assert run(monkeypatch, *TINY, "--out", tmp_path) == 2
    assert "wrote 0 new pairs in 12" in capsys.readouterr().err


def test_reasons_are_indexes_and_have_no_name_of_a_program():
    shape = (2, 3, 4, 1)
    reason = np.full(shape, "", "U90")
    reason[0, 1] = "repair: line 3: name 'alpha' is not defined"
    reason[1, 2, 0] = "repair: line 3: name 'beta' is not defined"
    reason[1, 0] = "destroy: removed no node"
    reason[0, 0] = "repair: line 1: gamma takes 4 arguments, the interface passes 6"
    reason[0, 2] = "repair: line 1: math.delta is not available"
    block = {"reason": reason, "start": np.ones(shape), "status": np.zeros(shape)}
    found = payoff_table.packed([[block]])
    assert found["reasons"] == (
        "", "destroy: removed no node", "repair: line 1: '...' is not available",
        "repair: line 1: '...' takes 4 arguments, the interface passes 6",
        "repair: line 3: name '...' is not defined",
    )  # fmt: skip
    words = np.array(found["reasons"])[found["reason"]]
    np.testing.assert_array_equal(words == "", reason == "")
    assert {words[0, 1, 0, 0], words[1, 2, 0, 0]} == {found["reasons"][4]}
    block["reason"] = np.full(shape, "x")
    with pytest.raises(InputError, match="no evaluation succeeded"):
        payoff_table.packed([[block]])

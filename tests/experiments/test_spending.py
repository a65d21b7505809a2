"""What runs spent, and methods with the budget that SPO spent."""

import csv
import json
import math
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import main_tables
from common import compared, contenders, spending
from common.budgets import BUDGETS, Budget
from common.cli import Context
from common.compared import Measured
from common.contenders import CONTENDERS, SPO
from common.runs import CPU
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError
from spo_jax.runs.run import load_run


@pytest.fixture
def context(tmp_path):
    return Context(get_problem("tsp"), BUDGETS["small"], tmp_path)


def run(name, answers, pairs, **metrics):
    return SimpleNamespace(
        path=SimpleNamespace(name=name), best_by_round=[SimpleNamespace(answers=answers)],
        evaluated=pairs, metrics={key: np.array(values) for key, values in metrics.items()},
        best=None, config=SimpleNamespace(), manifest={},
    )  # fmt: skip


def test_what_runs_spent_by_hand(context, capsys):
    (context.out / CPU).mkdir()
    for name, seconds in {"spo-seed0": 10.0, "reevo-seed0": 7.5, "reevo-seed1": 8.5}.items():
        (context.out / CPU / f"{name}.json").write_text(json.dumps({"seconds": seconds}))
    measured = [
        Measured(CONTENDERS["alns"]),
        Measured(
            CONTENDERS["reevo"],
            [
                run("reevo-seed0", 540, 200, reflections=[math.nan, 11.0, 11.0]),
                run("reevo-seed1", 536, 220, reflections=[0.0, 11.0, 10.0]),
            ],
        ),
        Measured(SPO, [run("spo-seed0", 540, 640), run("spo-seed1", 520, 620)]),
    ]
    found = spending.spent(measured, context)
    assert list(found.programs) == [540, 536, 540, 520]
    assert list(found.other) == [22, 21, 0, 0]
    assert list(found.pairs) == [200, 220, 640, 620]
    assert list(found.cpu_seconds[:3]) == [7.5, 8.5, 10.0]
    assert math.isnan(found.cpu_seconds[3])  # a run that was made elsewhere
    paths = spending.write(found, f"{context.out}/t")
    assert {path.name for path in paths} == {"t-spent.csv", "t-spent.md"}
    text = (context.out / "t-spent.md").read_text()
    assert "| ReEvo | 2 | 538 | 22 | 210 | 8 |" in text
    assert "| SPO | 2 | 530 | 0 | 630 | 10 |" in text
    assert text in capsys.readouterr().out
    assert spending.write(spending.spent(measured[:1], context), f"{context.out}/t") == []


def test_methods_with_the_pairs_that_spo_evaluated(context, monkeypatch):
    asked = [CONTENDERS[name] for name in ("alns", "eoh", "g-lns", "spo")]
    assert spending.matched(asked, "programs", context) == asked
    runs = [run("a", 540, 631), run("b", 540, 642)]
    monkeypatch.setattr(spending, "runs_of", lambda contender, context: runs)
    both = spending.matched(asked, "both", context)
    assert [each.label for each in both] == [
        "ALNS", "EoH", "EoH (equal pairs)", "G-LNS", "G-LNS (equal pairs)", "SPO",
    ]  # fmt: skip
    eoh = both[2]
    assert (eoh.name, eoh.settings) == ("eoh-636-pairs", {"method": "eoh", "pairs": 636})
    assert eoh.note == "given the 636 pairs that SPO evaluated"
    assert "released operators; given the 636 pairs" in both[4].note
    alone = spending.matched(asked, "pairs", context)
    assert [each.name for each in alone] == ["alns", "eoh-636-pairs", "g-lns-636-pairs", "spo"]
    with pytest.raises(InputError, match="--match both needs SPO's own runs: add spo"):
        spending.matched(asked[:-1], "both", context)


def rounds_of(*evaluated):
    return SimpleNamespace(
        best_by_round=[SimpleNamespace(evaluations=pairs) for pairs in evaluated],
        evaluated=evaluated[-1],
    )


def test_spo_with_as_few_pairs_as_the_others(context, monkeypatch):
    made = {
        "spo": [rounds_of(80, 160, 240, 640), rounds_of(70, 150, 260, 660)],
        "eoh": [rounds_of(100, 220), rounds_of(240)],  # with reevo's 235 on average
        "reevo": [rounds_of(250), rounds_of(230)],
    }
    monkeypatch.setattr(spending, "runs_of", lambda contender, context: made[contender.name])
    asked = [CONTENDERS[name] for name in ("alns", "eoh", "reevo", "spo")]
    found = spending.matched(asked, "rounds", context)
    assert found[:-1] == asked
    short = found[-1]
    assert (short.name, short.label) == ("spo-3-rounds", "SPO (equal pairs)")  # 250 is nearest
    assert short.settings == {"rounds": 3}
    assert short.note == "ends after 3 rounds, as the other methods evaluate 235 pairs"
    made["spo"][0].best_by_round.pop()
    with pytest.raises(InputError, match="runs of as many rounds each: leave out --minutes"):
        spending.matched(asked, "rounds", context)
    with pytest.raises(InputError, match="--match rounds needs another method that discovers"):
        spending.matched([CONTENDERS["alns"], SPO], "rounds", context)
    with pytest.raises(InputError, match="--match rounds needs SPO's own runs"):
        spending.matched(asked[:-1], "rounds", context)


def test_a_table_says_how_many_resets_there_were():
    runs = [run("f0", 1, 1, resets=[0.0, 1.0, 1.0]), run("f1", 1, 1, resets=[0.0, 1.0, 2.0])]
    for each in runs:
        each.config = SimpleNamespace(
            generator=SimpleNamespace(name="grammar"), search=SimpleNamespace(select="utility")
        )
    note = compared.Measured(contenders.CONTENDERS["funsearch"], runs).note()
    assert "resets in each run: 2, 3" in note


@pytest.mark.slow
def test_spo_with_fewer_rounds_end_to_end(tmp_path, monkeypatch, capsys):
    longer = replace(TINY, settings={**TINY.settings, "rounds": 3}, discovery_seeds=2)
    monkeypatch.setitem(BUDGETS, "smoke", longer)
    monkeypatch.setenv("SPO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SPO_DATA", raising=False)
    out = tmp_path / "out"
    line = ["main_tables.py", "--budget", "smoke", "--workers", "1", "--out", str(out),
            "--contenders", "farthest-insertion,best-of-n,spo", "--match", "rounds"]  # fmt: skip
    monkeypatch.setattr("sys.argv", line)
    assert main_tables.main() == 0
    with open(out / "tables" / "tsp-spent.csv") as file:
        rows = list(csv.DictReader(file))
    pairs = {row["run"]: int(row["pairs"]) for row in rows}
    rounds = {name: int(name.split("-")[2]) for name in pairs if "rounds" in name}
    (few,) = set(rounds.values())
    assert few < 3
    # A run of fewer rounds is the beginning of the longer one with its seed.
    for name in rounds:
        long = load_run(out / "discovery" / name.replace(f"-{few}-rounds", ""))
        short = load_run(out / "discovery" / name)
        assert long.best_by_round[few - 1].evaluations == short.evaluated == pairs[name]
        assert long.best_by_round[few - 1].pair == short.best_by_round[-1].pair
    for kind in ("significance", "runs"):
        with open(out / "tables" / f"tsp-{kind}.csv") as file:
            assert {row["against"] for row in csv.DictReader(file)} == {"SPO"}
        with open(out / "tables" / f"tsp-equal-pairs-{kind}.csv") as file:
            tests = list(csv.DictReader(file))
        assert {row["against"] for row in tests} == {"SPO (equal pairs)"}
        assert {row["method"] for row in tests} == {"FI", "Best-of-N"}
    # A table without that row leaves no tests of an earlier one behind.
    monkeypatch.setattr("sys.argv", line[:-2])
    assert main_tables.main() == 0
    assert not list((out / "tables").glob("*equal-pairs*"))


TINY = Budget(
    "smoke",
    presets={"tsp": "smoke"},
    settings={
        "generator": "grammar", "update": "none", "rounds": 1, "size": 8, "instances": 1,
        "rollouts": 1, "steps": 4, "mutation_groups": 1, "crossover_groups": 1,
        "finalists": 0, "select": "utility",
    },
    uniform={"tsp": {8: 1}},
    evaluation_seeds=1,
    steps=4,
)  # fmt: skip


@pytest.mark.slow
def test_both_matchings_end_to_end(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(BUDGETS, "smoke", TINY)
    monkeypatch.setenv("SPO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SPO_DATA", raising=False)
    out = tmp_path / "out"
    line = ["main_tables.py", "--budget", "smoke", "--workers", "1", "--out", str(out),
            "--contenders", "best-of-n,spo", "--match", "both"]  # fmt: skip
    monkeypatch.setattr("sys.argv", line)
    assert main_tables.main() == 0
    with open(out / "tables" / "tsp-spent.csv") as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    assert list(rows) == ["Best-of-N", "Best-of-N (equal pairs)", "SPO"]
    target = int(rows["SPO"]["pairs"])
    assert f"best-of-n-{target}-pairs" in rows["Best-of-N (equal pairs)"]["run"]
    # Not more than SPO evaluated, and short of it by failures and repetitions alone.
    assert target / 2 < int(rows["Best-of-N (equal pairs)"]["pairs"]) <= target
    assert int(rows["Best-of-N"]["pairs"]) < int(rows["Best-of-N (equal pairs)"]["pairs"])
    assert all(float(row["cpu_seconds"]) > 0 for row in rows.values())
    assert "programs written" in capsys.readouterr().out


@pytest.mark.slow
def test_machines_that_share_the_runs(tmp_path, monkeypatch, capsys):
    """Each makes some seeds; copied together, their folders give the table of one machine."""
    monkeypatch.setitem(BUDGETS, "smoke", TINY)
    monkeypatch.setenv("SPO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SPO_DATA", raising=False)

    def table(name, *seeds):
        line = ["main_tables.py", "--budget", "smoke", "--workers", "1",
                "--out", str(tmp_path / name), "--contenders", "best-of-n,spo", *seeds]  # fmt: skip
        monkeypatch.setattr("sys.argv", line)
        assert main_tables.main() == 0
        return capsys.readouterr().out

    table("whole", "--seeds", "2")
    table("first", "--seeds", "1")
    assert "discovery runs per method: 1 from seed 1" in table("second", "--first-seed", "1")
    names = {path.name for path in (tmp_path / "second" / "discovery").iterdir()}
    assert names == {"tsp-best-of-n-seed1", "tsp-spo-seed1"}
    for name in ("first", "second"):
        for folder in ("discovery", "evaluations", "cpu"):
            own, joined = tmp_path / name / folder, tmp_path / "joined" / folder
            shutil.copytree(own, joined, dirs_exist_ok=True)
    assert "Discovering" not in table("joined", "--seeds", "2")
    for name in ("tsp.csv", "tsp-runs.csv"):
        tables = [(tmp_path / out / "tables" / name).read_text() for out in ("whole", "joined")]
        assert tables[0] == tables[1]
    with open(tmp_path / "joined" / "tables" / "tsp-spent.csv") as file:
        assert all(float(row["cpu_seconds"]) > 0 for row in csv.DictReader(file))

"""Tables by hand, what their notes say, and the scripts of tables end to end."""

import csv
import math
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import ablations
import efficiency
import main_tables
from common import compared, contenders, tables
from common.budgets import BUDGETS, Budget, Group
from common.cli import Context
from common.compared import Measured
from common.contenders import CONTENDERS
from common.evaluated import Evaluated
from common.tables import CELL, Table
from spo_jax.config import Settings
from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.intervals import mean_interval
from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import MissingExtra

NAN = math.nan
TSP = get_problem("tsp")
INSTANCES = [
    replace(each, reference=100.0, reference_source="LKH, 3 runs") for each in TSP.sample(9, 3, 1)
]
ON = {"uniform-50": INSTANCES}


def made(who, gaps):
    """An `Evaluated` with these gaps [I][S] to references of 100."""
    cost = 100 + np.array(gaps, dtype=float)
    shape = cost.shape
    statuses = np.where(np.isnan(cost), Status.TIMEOUT, Status.OK).astype(np.int8)
    return Evaluated(
        who, INSTANCES, cost[..., None], np.zeros((*shape, 0), np.int32), np.ones(shape), statuses,
        np.where(np.isnan(cost), "slow", ""),
    )  # fmt: skip


def finished(pair, pairs, variant=None, **settings):
    """What `measure` knows of a run."""
    manifest = {} if variant is None else {"variant": variant}
    best = SimpleNamespace(pair=SimpleNamespace(digest=pair))
    config = Settings.make(generator="grammar", **settings)
    return SimpleNamespace(
        best=best, config=config, evaluated=pairs, manifest=manifest, metrics={},
    )  # fmt: skip


@pytest.fixture
def measured():
    spo = Measured(CONTENDERS["spo"], [finished("p", 60), finished("q", 1062)])
    # Two runs: instance means 1, 3, 5 and 3, NaN, 5; so 2, 3, 5.
    spo.results["uniform-50"] = [
        made("spo-seed0", [[1, 1], [2, 4], [5, 5]]),
        made("spo-seed1", [[2, 4], [NAN, NAN], [5, NAN]]),
    ]
    nearest = Measured(CONTENDERS["nearest-neighbor"])
    nearest.results["uniform-50"] = [made("nearest-neighbor", [[4], [4], [4]])]
    variant = "ReEvo without reflections (2024)"
    runs = [finished("p", 30, variant, select="validation")]
    reevo = Measured(compared.called(CONTENDERS["reevo"], runs), runs)
    reevo.results["uniform-50"] = [made("reevo-seed0", [[9, 9], [9, 9], [9, 9]])]
    return [nearest, Measured(CONTENDERS["alns"], missing="no such package"), reevo, spo]


@pytest.fixture
def context(tmp_path, monkeypatch):
    monkeypatch.delenv("SPO_DATA", raising=False)
    return Context(TSP, BUDGETS["small"], tmp_path)


def test_the_table_by_hand(measured, context):
    shown = compared.table("Gaps.", measured, ON, context)
    cells = shown.cells[shown.cells.column == "uniform-50"].set_index("row")
    assert list(cells.index) == ["NN", "ALNS", "ReEvo without reflections", "SPO"]
    assert math.isnan(cells["mean"]["ALNS"])
    assert (cells["mean"]["NN"], cells.instances["NN"]) == (4.0, 3)
    assert cells["mean"]["SPO"] == pytest.approx((2 + 3 + 5) / 3)
    assert (cells.low["SPO"], cells.high["SPO"]) == mean_interval(np.array([2.0, 3.0, 5.0]))
    assert cells.failed["SPO"] == 3
    # SPO is lower than NN, but not on the same rollouts.
    assert list(shown.cells[shown.best].row) == ["NN"]
    text = shown.markdown()
    for part in (
        "| NN | **4.000** (4.000 to 4.000) | – |",
        "| SPO | 3.333† (",
        "Instances: Uniform 50 3.",
        "LKH, 3 runs; best known values of files; 0 of 3 are certified.",
        "Empty: Uniform 100",
        "ALNS is missing: no such package.",
        "ReEvo without reflections: ReEvo without reflections (2024); programs by the grammar; "
        "pair chosen by validation of 30 evaluated.",
        "SPO: programs by the grammar; pair chosen by utility of 60, 1,062 evaluated.",
        "† failed rollouts: SPO uniform-50 3.",
    ):
        assert part in text
    assert "same pair" not in text
    measured[3].runs = measured[2].runs
    assert "The same pair was chosen by ReEvo without reflections and SPO." in compared.notes(
        measured, ON, context
    )


def test_a_note_has_the_number_of_resets():
    runs = [finished("p", 30, "FunSearch (2024)"), finished("q", 40, "FunSearch (2024)")]
    for own, resets in zip(runs, ([0, 1, 1], [NAN, 1, 0]), strict=True):
        own.metrics = {"resets": np.array(resets)}
    assert "resets in each run: 2, 1;" in Measured(CONTENDERS["funsearch"], runs).note()


def test_what_prints_alike_is_best_alike():
    rows = [("A", 1.0004), ("B", 1.0), ("C", 1.001), ("D", -0.0001)]
    cells = [(row, "f", "ours", "x", mean, NAN, NAN, 1, int(row == "D")) for row, mean in rows]
    shown = Table("100% & more.", [Group("x", ">200", "TSPLIB")], pd.DataFrame(cells, columns=CELL))
    assert list(shown.cells.row[shown.best]) == ["A", "B"]
    latex = shown.latex()
    assert r"A & \textbf{1.000} \\" in latex
    assert r"D & 0.000$^\dagger$ \\" in latex  # never -0.000
    assert r"$>$200" in latex
    assert r"\toprule" in latex


def test_the_papers_rows(measured, context, tmp_path):
    shown = compared.with_paper(compared.table("Gaps.", measured, ON, context), "tsp", measured)
    labels = list(shown.cells.row.unique())
    assert labels == [
        "NN", "NN (paper)", "ALNS", "ALNS (paper)", "ReEvo without reflections", "ReEvo (paper)",
        "SPO", "SPO (paper)",
    ]  # fmt: skip
    assert "| *SPO (paper)* | *0.212* | *0.642* |" in shown.markdown()
    assert list(shown.cells[shown.best].row) == ["NN"]  # the paper's are never bold
    glns = Measured(CONTENDERS["g-lns"], results=measured[0].results)
    file = contenders.replace(contenders.SPO, name="g-lns-released", label="G-LNS (released)")
    both = [glns, Measured(file, results=measured[0].results)]
    shown = compared.with_paper(compared.table("Gaps.", both, ON, context), "tsp", both)
    assert list(shown.cells.row.unique()) == ["G-LNS (ours)", "G-LNS", "G-LNS (paper)"]


def test_what_is_written(measured, context, tmp_path, capsys):
    shown = compared.table("Gaps.", measured, ON, context)
    compared.report(shown, measured, f"{tmp_path}/t")
    assert {path.name for path in tmp_path.iterdir()} == {
        "t.csv", "t.md", "t.tex", "t-significance.csv", "t-significance.md", "t-instances.csv",
        "t-runs.csv", "t-runs.md",
    }  # fmt: skip
    tests = {row["method"]: row for row in csv.DictReader((tmp_path / "t-significance.csv").open())}
    assert [tests["NN"][name] for name in ("failed", "failed_of_against")] == ["0", "3"]
    # 4 - 2, 4 - 3 and 4 - 5: ranks 2, 1 and 1 with a tie.
    assert float(tests["NN"]["difference"]) == pytest.approx(2 / 3)
    assert (tests["NN"]["instances"], set(tests)) == ("3", {"NN", "ReEvo without reflections"})
    each = list(csv.DictReader((tmp_path / "t-instances.csv").open()))
    assert len(each) == 12
    assert [each[10][k] for k in ("run", "mean_cost", "mean_gap", "failed", "first_failure")] == [
        "spo-seed1", "", "", "2", "slow",
    ]  # fmt: skip
    runs = {row["method"]: row for row in csv.DictReader((tmp_path / "t-runs.csv").open())}
    assert runs["NN"]["runs"] == "1", "SPO's second run has an instance without a gap"
    assert float(runs["NN"]["difference"]) == 4 - 3
    # Tests of another table do not stay beside one that has none.
    compared.report(shown, measured[:1], f"{tmp_path}/t")
    assert not [*tmp_path.glob("*significance*"), *tmp_path.glob("*runs*")]


def test_a_package_that_is_not_installed_is_reported(context, monkeypatch, capsys):
    def none(*arguments, **more):
        raise MissingExtra("ortools", "solvers")

    monkeypatch.setattr(compared, "evaluate", none)
    (found,) = compared.measure([CONTENDERS["alns"]], ON, context)
    assert "ortools is not installed" in found.missing
    assert "ALNS is left out: ortools" in capsys.readouterr().out


def test_equal_budgets_by_hand():
    def run(who, seed, gaps, failed=(0, 0)):
        numbers = np.array([10, 20])
        return efficiency.Discovery(
            CONTENDERS[who], seed, numbers, numbers * 1.0, np.array(gaps), np.array(failed)
        )

    runs = [
        run("spo", 0, [[1.0, 3.0], [1.0, 1.0]], (0, 1)),
        run("spo", 1, [[NAN, NAN], [3.0, 5.0]]),
        run("eoh", 0, [[2.0, 4.0], [2.0, 4.0]]),
    ]
    cells = efficiency.equal_budgets(runs, "").cells.set_index(["row", "column"])
    assert cells["mean"]["EoH", "0.5"] == 3.0
    assert math.isnan(cells["mean"]["SPO", "0.5"])  # one of its two runs had no pair by then
    assert (cells["mean"]["SPO", "1"], cells.failed["SPO", "1"]) == (2.5, 1)
    # Before the first round is over there is nothing.
    assert not len(efficiency.gaps_after(runs[2:], 9)[0])


def test_intervals_leave_out_what_lacks():
    low, high = mean_interval(np.array([1.0, 2.0, 6.0]))
    assert tables.interval(np.array([1.0, NAN, 2.0, 6.0])) == (3, 3.0, low, high)
    count, mean, low, high = tables.interval(np.array([4.0]))
    assert (count, mean, math.isnan(low), math.isnan(high)) == (1, 4.0, True, True)
    assert tables.interval([NAN])[0] == 0


# --- the scripts ----------------------------------------------------------------------------------

TINY = Budget(
    "smoke",
    presets={"tsp": "smoke", "cvrp": "smoke"},
    settings={
        "generator": "grammar", "update": "none", "rounds": 2, "size": 8, "instances": 1,
        "rollouts": 1, "steps": 4, "mutation_groups": 1, "crossover_groups": 1,
        "finalists": 0, "select": "utility",
    },
    uniform={"tsp": {8: 2, 9: 2}, "cvrp": {8: 2, 9: 2}},
    evaluation_seeds=1,
    steps=4,
    solver_seconds=0.05,
)  # fmt: skip


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Runs a script with arguments and a tiny budget; its exit code."""
    monkeypatch.setitem(BUDGETS, "smoke", TINY)
    monkeypatch.setenv("SPO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SPO_DATA", raising=False)

    def main(module, *arguments):
        line = ["script", "--budget", "smoke", "--workers", "1", "--out", str(tmp_path / "out")]
        monkeypatch.setattr(sys, "argv", [*line, *arguments])
        return module.main()

    return main


@pytest.mark.slow
def test_scripts_end_to_end(script, tmp_path, capsys):
    few = ("--contenders", "nearest-neighbor,alns,reevo,spo")
    assert script(main_tables, "--problem", "tsp", "--paper", *few) == 0
    out = tmp_path / "out"
    text = (out / "tables" / "tsp.md").read_text()
    assert "without reflections" in text
    assert "set SPO_DATA" in text

    # The same command does nothing again, and another experiment uses what is there.
    before = {path: path.stat().st_mtime_ns for path in out.glob("discovery/*/spo.sqlite")}
    assert len(before) == 2
    assert script(main_tables, "--problem", "tsp", "--paper", *few) == 0
    assert (out / "tables" / "tsp.md").read_text() == text
    assert script(efficiency, "--group", "uniform-8", *few) == 0
    assert before == {path: path.stat().st_mtime_ns for path in before}
    for name in ("efficiency-tsp-discovery.png", "efficiency-tsp-search.pdf", "efficiency-tsp.tex"):
        assert (out / name).stat().st_size > 300
    rounds = list(csv.DictReader((out / "efficiency-tsp-discovery.csv").open()))
    assert {row["method"] for row in rounds} == {"ReEvo without reflections", "SPO"}
    evaluations = [int(row["evaluations"]) for row in rounds if row["method"] == "SPO"]
    assert len(evaluations) == 2
    assert evaluations == sorted(evaluations)
    search = list(csv.DictReader((out / "efficiency-tsp-search.csv").open()))
    assert [row["step"] for row in search if row["method"] == "NN"] == ["0"]
    assert [row["step"] for row in search if row["method"] == "SPO"] == ["1", "2", "3", "4"]

    assert script(main_tables, "--problem", "tsp", "--discovery", "--rounds 3", *few) == 2
    assert "cannot be resumed with other settings: rounds is 2" in capsys.readouterr().err


@pytest.mark.slow
def test_ablations_end_to_end(script, tmp_path):
    assert script(ablations, "--both", "--paper", "--seeds", "2") == 0
    out = tmp_path / "out"
    names = {path.name for path in (out / "discovery").iterdir()}
    variants = ("spo", "spo-neither", "spo-no-state", "spo-shared")
    assert names == {f"tsp-{name}-seed{seed}" for name in variants for seed in (0, 1)}
    text = (out / "tables" / "ablations-tsp.md").read_text()
    assert "| *w/o State Conditioning (paper)* |" in text


def test_the_ablation_of_learning_alone_needs_a_model_that_learns(script, tmp_path, capsys):
    assert script(ablations, "--learning-alone") == 2
    assert "learning_credit is shared, and update is none" in capsys.readouterr().err
    assert not (tmp_path / "out" / "discovery").exists()


OPERATORS = """
import random


def destroy_random(x, destroy_cnt, problem_data):
    removed = random.sample([node for route in x for node in route], destroy_cnt)
    return removed, [[node for node in route if node not in removed] for route in x]


def insert_alone(x, removed, problem_data):
    return x + [[node] for node in removed]
"""


@pytest.mark.slow
def test_all_contenders_of_the_cvrp(script, tmp_path):
    """Every contender runs, from OR-Tools to operators of G-LNS in a file."""
    operators = tmp_path / "operators.py"
    operators.write_text(OPERATORS)
    assert script(main_tables, "--problem", "cvrp", "--glns", str(operators)) == 0
    rows = list(csv.DictReader((tmp_path / "out" / "tables" / "cvrp.csv").open()))
    known = {row["row"]: row["mean"] for row in rows if row["column"] == "uniform-8"}
    assert list(known) == [
        "CW", "OR-Tools", "OR-Tools (default)", "LS", "ALNS", "ALNS (example)", "EoH",
        "FunSearch", "ReEvo without reflections", "G-LNS", "MCTS-AHD without thought alignment",
        "HSEvo without reflections", "Best-of-N",
        "G-LNS (released, its ALNS)", "G-LNS (released)", "SPO",
    ]  # fmt: skip
    assert all(known.values())

"""The main tables and the ablations: cells by hand, what is said, and the scripts end to end."""

import csv
import math
import sys
from dataclasses import replace
from types import SimpleNamespace

import ablations
import efficiency
import main_tables
import numpy as np
import pytest
from common import budgets, compared, contenders, evaluated
from common.budgets import BUDGETS, Budget, Group
from common.compared import Ground, Measured
from common.contenders import CONTENDERS
from common.evaluated import Evaluated

from spo_jax.config import Settings
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import MissingExtra

NAN = math.nan
TSP = get_problem("tsp")
UNIFORM = Group("uniform-50", "50", "Uniform instances", ("uniform:9x3@1",), 3)
FILES = Group("tsplib-200-", ">200", "TSPLIB", (), missing="no files")


def made(who, gaps):
    """An `Evaluated` with these gaps [I][S] to references of 100."""
    cost = 100 + np.array(gaps, dtype=float)
    shape = cost.shape
    statuses = np.where(np.isnan(cost), Status.TIMEOUT, Status.OK).astype(np.int8)
    return Evaluated(
        who, tuple(f"i{k}" for k in range(shape[0])), ("file",) * shape[0],
        np.full(shape[0], 9), cost[..., None], np.zeros((*shape, 0), np.int32), np.ones(shape),
        np.full(shape[0], 100.0), statuses, np.full(shape, "slow"),
    )  # fmt: skip


def finished(pair, pairs, variant=None, **settings):
    """What `measure` knows of a run."""
    manifest = {} if variant is None else {"variant": variant}
    best = SimpleNamespace(pair=SimpleNamespace(digest=pair))
    config = Settings.make(generator="grammar", **settings)
    return SimpleNamespace(best=best, config=config, evaluated=pairs, manifest=manifest)


@pytest.fixture
def measured():
    spo = Measured(CONTENDERS["spo"], [finished("p", 60), finished("q", 62)])
    # Two runs: instance means 1, 3, 5 and 3, NaN, 5; so 2, 3, 5.
    spo.results["uniform-50"] = [
        made("spo-seed0", [[1, 1], [2, 4], [5, 5]]),
        made("spo-seed1", [[2, 4], [NAN, NAN], [5, NAN]]),
    ]
    nearest = Measured(CONTENDERS["nearest-neighbor"])
    nearest.results["uniform-50"] = [made("nearest-neighbor", [[4], [4], [4]])]
    told = "ReEvo (2024), without reflections"
    reevo = Measured(CONTENDERS["reevo"], [finished("p", 30, told, select="validation")])
    reevo.results["uniform-50"] = [made("reevo-seed0", [[9, 9], [9, 9], [9, 9]])]
    missing = Measured(CONTENDERS["alns"], missing="no such package")
    return [nearest, missing, reevo, spo]


@pytest.fixture
def on():
    instances = [
        replace(each, reference=100.0, reference_source="LKH, 3 runs")
        for each in TSP.sample(9, 3, 1)
    ]
    return Ground(TSP, [UNIFORM, FILES], {"uniform-50": instances})


def test_the_table_by_hand(measured, on):
    shown = compared.table("Gaps.", measured, on, [], "Method")
    assert [row.label for row in shown.rows] == ["NN", "ALNS", "ReEvo", "SPO"]
    cells = [row.cells.get("uniform-50") for row in shown.rows]
    assert cells[1] is None
    assert (cells[0].mean, cells[0].count) == (4.0, 3)
    assert cells[3].mean == pytest.approx((2 + 3 + 5) / 3)
    assert cells[3].failed == 3
    assert shown.is_best(shown.rows[0], "uniform-50")  # SPO is lower, but not on the same rollouts


def test_the_small_print(measured, on):
    notes = compared.notes(measured, on, BUDGETS["small"])
    text = "\n".join(notes)
    for part in (
        "Instances: Uniform 50: 3, none above 500.",
        "References of uniform instances: LKH, 3 runs. 0 of 3 are proven optimal.",
        "Empty: TSPLIB >200 (no files).",
        "ALNS is missing: no such package.",
        "Programs were written by the grammar; a run's pair is chosen by utility (SPO) and by "
        "validation (ReEvo).",
        "Pairs evaluated in discovery: ReEvo 30; SPO 60 to 62.",
        "By discovery run, lowest to highest: SPO 3.000 to 4.000.",
        "ReEvo (2024), without reflections.",
        "intervals are of 95% over the instances (Student's t, widened for skewness by Hall's",
    ):
        assert part in text
    assert "same pair" not in text
    measured[3].runs = measured[2].runs
    assert "a run's pair is chosen by validation. Pairs" in "\n".join(
        compared.notes(measured, on, BUDGETS["small"])
    )
    assert "The same pair was found by ReEvo and SPO." in compared.notes(
        measured, on, BUDGETS["small"]
    )


def test_references_that_are_not_there_and_free_fleets(on):
    first, second, third = on.loaded["uniform-50"]
    loaded = {
        "uniform-50": [
            replace(first, certified=True),
            replace(second, reference=None, reference_source="no solver"),
        ],
        "cvrplib-B": [replace(third, reference_source="x.sol (a free fleet reaches 1016)")],
    }
    told = compared._references(Ground(TSP, [], loaded))
    assert "LKH, 3 runs. 1 of 1 are proven optimal. References of files: their optimal" in told
    assert f"in no mean: {second.name} (no solver)." in told
    assert f"gaps can be negative: {third.name} have known cheaper solutions." in told


def test_what_is_written(measured, on, tmp_path, capsys):
    shown = compared.table("Gaps.", measured, on, [], "Method")
    paths = compared.report(shown, measured, tmp_path / "t", base="SPO")
    assert [path.name for path in paths] == [
        "t.csv", "t.md", "t.tex", "t-significance.csv", "t-significance.md", "t-runs.csv",
        "t-instances.csv",
    ]  # fmt: skip
    tests = {row["method"]: row for row in csv.DictReader((tmp_path / "t-significance.csv").open())}
    assert [tests["NN"][name] for name in ("failed", "failed_of_against")] == ["0", "3"]
    # 4 - 2, 4 - 3 and 4 - 5: ranks 2, 1 and 1 with a tie.
    assert float(tests["NN"]["difference"]) == pytest.approx(2 / 3)
    assert (tests["NN"]["instances"], set(tests)) == ("3", {"NN", "ReEvo"})
    runs = list(csv.DictReader((tmp_path / "t-runs.csv").open()))
    assert [run["run"] for run in runs] == [
        "nearest-neighbor", "reevo-seed0", "spo-seed0", "spo-seed1",
    ]  # fmt: skip
    assert (runs[3]["mean_gap"], runs[3]["instances"], runs[3]["failed"]) == ("4.0", "2", "3")
    assert runs[3]["first_failure"] == "i1 seed 0: timeout: slow"
    each = list(csv.DictReader((tmp_path / "t-instances.csv").open()))
    assert len(each) == 12
    assert (each[10]["mean_cost"], each[10]["mean_gap"], each[10]["failed"]) == ("", "", "2")
    assert "| SPO |" in capsys.readouterr().out


def test_an_extra_that_is_not_installed_is_said(on, tmp_path, monkeypatch, capsys):
    def none(*arguments, **more):
        raise MissingExtra("ortools", "solvers")

    monkeypatch.setattr(evaluated, "evaluate", none)
    (found,) = compared.measure([CONTENDERS["alns"]], on, BUDGETS["smoke"], tmp_path)
    assert "ortools is not installed" in found.missing
    assert "ALNS is left out: ortools" in capsys.readouterr().out


def test_what_a_search_cost_names_what_it_cannot_show(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(efficiency.figures, "publish", lambda *given: told.append(given[2]))
    ends = {"alns": [3.0, -0.5], "eoh": [2.0, 1.0], "reevo": [NAN, NAN]}
    two = np.array([1, 2]), np.array([0.1, 0.2])
    searches = [
        efficiency.Search(CONTENDERS[name], *two, np.array(gaps), 6, failed=6 * math.isnan(gaps[0]))
        for name, gaps in ends.items()
    ]
    about = efficiency.Told("tsp", UNIFORM, 3, BUDGETS["small"], ())
    efficiency.tell_search(searches, about, tmp_path / "x")
    assert "where a logarithmic axis shows nothing: ALNS." in told[0]
    assert "ReEvo: 6 of 6 rollouts failed and are left out." in told[0]
    assert "EoH: " not in told[0]


def test_equal_budgets_leave_no_run_and_no_failure_out_unsaid():
    def run(who, seed, utilities, gaps, failed=(0, 0)):
        numbers = np.array([10, 20])
        return efficiency.Discovery(
            CONTENDERS[who], seed, numbers, numbers, numbers * 1.0, np.array(utilities),
            np.array(gaps), np.array(failed),
        )  # fmt: skip

    runs = [
        run("spo", 0, [0.5, 0.6], [[1.0, 3.0], [1.0, 1.0]], (0, 1)),
        run("spo", 1, [NAN, 0.6], [[NAN, NAN], [3.0, 5.0]]),
        run("eoh", 0, [0.4, 0.4], [[2.0, 4.0], [2.0, 4.0]]),
    ]
    about = efficiency.Told("tsp", UNIFORM, 2, BUDGETS["small"], ())
    spo, eoh = efficiency.equal_budgets(runs, about).rows
    half, whole = "0.5", "1"
    assert eoh.cells[half].mean == 3.0
    assert math.isnan(spo.cells[half].mean)  # one of its two runs had no pair by then
    assert (spo.cells[whole].mean, spo.cells[whole].failed) == (2.5, 1)
    # Before the first round is over there is nothing.
    assert not efficiency.mean_at(runs[2:], 9).known


def test_the_papers_g_lns_stands_beneath_its_own_operators(measured, on):
    shown = compared.table("Gaps.", measured, on, [], "Method")
    labels = [row.label for row in main_tables.beside_the_paper(shown, "tsp", measured).rows]
    assert labels == [
        "NN", "NN (paper)", "ALNS", "ALNS (paper)", "ReEvo", "ReEvo (paper)", "SPO", "SPO (paper)",
    ]  # fmt: skip
    released = Measured(contenders.released_glns("f.py"))
    ours = Measured(CONTENDERS["g-lns"])
    for each in (ours, released):
        each.results["uniform-50"] = measured[0].results["uniform-50"]
    both = [ours, released]
    shown = compared.table("Gaps.", both, on, [], "Method")
    told = main_tables.beside_the_paper(shown, "tsp", both)
    assert [row.label for row in told.rows] == [
        "G-LNS", "G-LNS (released)", "G-LNS (released) (paper)",
    ]  # fmt: skip
    assert told.rows[-1].cells["uniform-500"].mean == 6.305
    assert "Not comparable:" in told.notes[-1]


# --- the scripts ----------------------------------------------------------------------------------

TINY = Budget(
    "smoke",
    presets={"tsp": "smoke", "cvrp": "smoke"},
    settings={
        problem: {
            "generator": "grammar", "update": "none", "rounds": 2, "size": 8, "instances": 1,
            "rollouts": 1, "steps": 4, "mutation_groups": 1, "crossover_groups": 1,
            "finalists": 0, "select": "utility",
        }
        for problem in budgets.PROBLEMS
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


@pytest.mark.long
def test_scripts_end_to_end(script, tmp_path, capsys):
    few = ("--contenders", "nearest-neighbor,alns,reevo,spo")
    assert script(main_tables, "--problem", "tsp", "--paper", *few) == 0
    out = tmp_path / "out"
    text = (out / "tables" / "tsp.md").read_text()
    assert [line.split(" | ")[0] for line in text.splitlines()[2:10]] == [
        "| NN", "| *NN (paper)*", "| ALNS", "| *ALNS (paper)*", "| ReEvo", "| *ReEvo (paper)*",
        "| SPO", "| *SPO (paper)*",
    ]  # fmt: skip
    assert "without reflections" in text
    assert "TSPLIB" in text
    assert "set SPO_DATA" in text

    # The same command does nothing again, and another experiment uses what is there.
    before = {path: path.stat().st_mtime_ns for path in out.glob("discovery/*/spo.sqlite")}
    assert len(before) == 2
    assert script(main_tables, "--problem", "tsp", "--paper", *few) == 0
    assert (out / "tables" / "tsp.md").read_text() == text
    key = "uniform-8"
    assert script(efficiency, "--group", key, *few) == 0
    assert before == {path: path.stat().st_mtime_ns for path in before}
    for name in ("efficiency-tsp-discovery.png", "efficiency-tsp-search.pdf", "efficiency-tsp.tex"):
        assert (out / name).stat().st_size > 500
    rounds = list(csv.DictReader((out / "efficiency-tsp-discovery.csv").open()))
    assert {row["method"] for row in rounds} == {"ReEvo", "SPO"}
    evaluations = [int(row["evaluations"]) for row in rounds if row["method"] == "SPO"]
    assert len(evaluations) == 2
    assert evaluations == sorted(evaluations)
    assert compared.ONCE in (out / "efficiency-tsp-search.txt").read_text()
    search = list(csv.DictReader((out / "efficiency-tsp-search.csv").open()))
    assert [row["step"] for row in search if row["method"] == "NN"] == ["0"]
    assert [row["step"] for row in search if row["method"] == "SPO"] == ["1", "2", "3", "4"]

    # Tests of another table do not stay beside one that has none.
    assert (out / "tables" / "tsp-significance.md").exists()
    assert script(main_tables, "--problem", "tsp", "--contenders", "nearest-neighbor,alns") == 0
    assert not list((out / "tables").glob("*significance*"))

    assert script(main_tables, "--problem", "tsp", "--discovery", "--rounds 3", *few) == 2
    assert "differs in rounds: choose another --out" in capsys.readouterr().err
    assert script(main_tables, "--problem", "tsp", "--contenders", "sqo") == 2
    assert "no contender 'sqo'" in capsys.readouterr().err


@pytest.mark.long
def test_ablations_end_to_end(script, tmp_path):
    assert script(ablations, "--both", "--paper", "--seeds", "2") == 0
    out = tmp_path / "out"
    names = {path.name for path in (out / "discovery").iterdir()}
    variants = ("spo", "spo-neither", "spo-no-state", "spo-shared")
    assert names == {f"tsp-{name}-seed{seed}" for name in variants for seed in (0, 1)}
    text = (out / "tables" / "ablations-tsp.md").read_text()
    assert "| *w/o State Conditioning (paper)* |" in text
    assert "By discovery run, lowest to highest: SPO" in text
    assert "One discovery run" not in text


def test_the_ablation_of_learning_alone_takes_a_writer_that_learns(script, tmp_path, capsys):
    assert script(ablations, "--learning-alone") == 2
    assert "learning_credit is shared, and update is none" in capsys.readouterr().err
    assert not (tmp_path / "out" / "discovery").exists()  # nothing was run before that is said


@pytest.mark.slow
def test_all_contenders_of_the_cvrp(script, tmp_path):
    """Every contender runs, from OR-Tools to operators of G-LNS in a file."""
    operators = tmp_path / "operators.py"
    operators.write_text(OPERATORS)
    assert script(main_tables, "--problem", "cvrp", "--glns", str(operators)) == 0
    rows = list(csv.DictReader((tmp_path / "out" / "tables" / "cvrp.csv").open()))
    known = {row["row"]: row["mean"] for row in rows if row["column"] == "uniform-8"}
    assert list(known) == [
        "CW", "OR-Tools", "LS", "ALNS", "EoH", "FunSearch", "ReEvo", "G-LNS", "Best-of-N",
        "G-LNS (released)", "SPO",
    ]  # fmt: skip
    assert all(known.values())


OPERATORS = """
import random


def destroy_random(x, destroy_cnt, problem_data):
    removed = random.sample([node for route in x for node in route], destroy_cnt)
    return removed, [[node for node in route if node not in removed] for route in x]


def insert_alone(x, removed, problem_data):
    return x + [[node] for node in removed]
"""

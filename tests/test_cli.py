"""The command line: what it refuses, what it writes, how fast it answers."""

import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

import spo_jax
from spo_jax import __version__, cli, stopping
from spo_jax.cli import main
from spo_jax.envs.problems import get_problem, known_problems
from spo_jax.envs.run.sandbox.process import starting
from spo_jax.errors import InputError
from spo_jax.program import Completion

PAIR = '''"""A pair for the TSP."""


def destroy(dist, current_tour, steps_since_improvement, rng):
    """Remove three."""
    removed = rng.sample(current_tour, 3)
    return [node for node in current_tour if node not in removed], removed


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    """Insert each where it is cheapest."""
    tour = list(partial_tour)
    for node in removed_nodes:
        row = dist[node]
        costs = [row[tour[k - 1]] + row[tour[k]] - dist[tour[k - 1]][tour[k]]
                 for k in range(len(tour))]
        tour.insert(costs.index(min(costs)), node)
    return tour
'''

TSP = """NAME : ten
TYPE : TSP
DIMENSION : 10
EDGE_WEIGHT_TYPE : EUC_2D
NODE_COORD_SECTION
1 0 0
2 10 0
3 20 0
4 30 0
5 30 10
6 30 20
7 20 20
8 10 20
9 0 20
10 0 10
EOF
"""

VRP = """NAME : four
TYPE : CVRP
DIMENSION : 4
EDGE_WEIGHT_TYPE : EUC_2D
CAPACITY : 5
NODE_COORD_SECTION
1 0 0
2 1 0
3 0 1
4 1 1
DEMAND_SECTION
1 0
2 3
3 3
4 2
DEPOT_SECTION
1
-1
EOF
"""

FILES: dict[str, str | bytes] = {
    "pair.py": PAIR,
    "ten.tsp": TSP,
    "four.vrp": VRP,
    # malformed or unlawful instances
    "empty.tsp": "",
    "noise.tsp": "these are no coordinates\n",
    "cut.tsp": TSP[: TSP.index("7 20")],
    "explicit.tsp": TSP.replace("EUC_2D", "EXPLICIT"),
    "a_sop.tsp": TSP.replace("TYPE : TSP", "TYPE : SOP"),
    "one.tsp": TSP.replace("DIMENSION : 10", "DIMENSION : 1").replace(
        TSP[TSP.index("2 10") : -4], ""
    ),
    "nan.tsp": TSP.replace("4 30 0", "4 nan 0"),
    "infinite.tsp": TSP.replace("4 30 0", "4 inf 0"),
    "repeated.tsp": TSP.replace("4 30 0", "3 30 0"),
    "words.tsp": TSP.replace("4 30 0", "4 thirty 0"),
    "heavy.vrp": VRP.replace("2 3\n", "2 6\n"),
    "no_demand.vrp": VRP.replace("DEMAND_SECTION\n1 0\n2 3\n3 3\n4 2\n", ""),
    "no_capacity.vrp": VRP.replace("CAPACITY : 5\n", ""),
    "explicit.vrp": VRP.replace("EUC_2D", "EXPLICIT"),
    "ten.txt": TSP,
    "photo.png": b"\x89PNG a photograph",
    # files that are no pairs, and pairs that are no good
    "half.py": PAIR[: PAIR.index("def repair")],
    "syntax.py": PAIR.replace("removed = ", "removed == = "),
    "binary.py": b"\xff\xfe\x00",
    "import.py": "import os\n" + PAIR.replace("removed = ", "os.getpid()\n    removed = "),
    "cvrp.py": PAIR.replace("(dist, ", "(dist, demands, capacity, "),
    "crash.py": PAIR.replace("tour = list(partial_tour)", "tour = [][0]"),
    "wrong.py": PAIR.replace("return tour", "return tour[1:]"),
}

SOLVE = ["solve", "ten.tsp", "--pair", "pair.py", "--steps", "5"]
EVALUATE = ["evaluate", "pair.py", "--problem", "tsp", "--steps", "5", "--references", "none"]
ROOT = str(Path(cli.__file__).parent.parent)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with all FILES, where nothing else may appear."""
    work = tmp_path / "work"
    work.mkdir()
    for name, text in FILES.items():
        (work / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    monkeypatch.chdir(work)
    monkeypatch.setenv("SPO_CACHE", str(tmp_path / "cache"))
    return work


def listing(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def refused(folder, capsys):
    """Run a command that must fail as a user's mistake does, leaving nothing behind."""

    def run(*argv: str) -> str:
        before = listing(folder)
        assert main(list(argv)) == 2
        out, err = capsys.readouterr()
        lines = err.splitlines(keepends=True)
        assert len(lines) == 1, err
        assert lines[0].startswith("spo: ")
        assert lines[0].endswith("\n")
        assert out == ""
        assert listing(folder) == before
        return err

    return run


def solve(instance: str = "ten.tsp", pair: str = "pair.py", *more: str) -> list[str]:
    return ["solve", instance, "--pair", pair, "--steps", "5", *more]


# --- bad input ------------------------------------------------------------------------------------

BAD = [
    # instances
    (solve("missing.tsp"), "missing.tsp does not exist"),
    (solve("missing.vrp"), "missing.vrp does not exist"),
    (solve("uniform:9x1@7"), "spo compare also draws instances"),
    (solve("empty.tsp"), "empty.tsp is empty"),
    (solve("noise.tsp"), "noise.tsp"),
    (solve("cut.tsp"), "cut.tsp"),
    (solve("explicit.tsp"), "EDGE_WEIGHT_FORMAT is missing"),
    (solve("a_sop.tsp"), "SOP"),
    (solve("one.tsp"), "at least 2"),
    (solve("nan.tsp"), "nan"),
    (solve("infinite.tsp"), "inf"),
    (solve("repeated.tsp"), "node id 3"),
    (solve("words.tsp"), "thirty"),
    (solve("heavy.vrp", "cvrp.py"), "demand 6"),
    (solve("no_demand.vrp", "cvrp.py"), "DEMAND_SECTION"),
    (solve("no_capacity.vrp", "cvrp.py"), "CAPACITY"),
    (solve("explicit.vrp", "cvrp.py"), "EDGE_WEIGHT_FORMAT is missing"),
    (solve("ten.txt"), "--problem"),
    (solve("four.vrp", "pair.py", "--problem", "tsp"), "CVRP"),
    (solve("."), "--problem"),
    (solve(".", "pair.py", "--problem", "tsp"), "folder"),
    (
        solve("ten.tsp", "pair.py", "--start", "no.tour"),
        "neither construction, random nor the file",
    ),
    (solve("ten.tsp", "pair.py", "--start", "four.vrp"), "four.vrp"),
    (solve("ten.tsp", "pair.py", "--start", "a.tour", "--out", "ten.tsp"), "input"),
    ([*EVALUATE, "--on", "nan.tsp"], "nan"),
    ([*EVALUATE, "--on", "ten.tsp", "."], "a_sop.tsp"),  # the folder's first bad one
    # pairs
    (solve("ten.tsp", "missing.py"), "missing.py: no such file"),
    (solve("ten.tsp", "half.py"), "no function named repair"),
    (solve("ten.tsp", "syntax.py"), "syntax error in line 6"),
    (solve("ten.tsp", "binary.py"), "not UTF-8"),
    (solve("ten.tsp", "ten.tsp"), "ten.tsp: syntax error"),
    (solve("ten.tsp", "import.py"), "os"),
    (solve("ten.tsp", "cvrp.py"), "the destroy program cannot run on tsp"),
    (solve("ten.tsp", "."), "holds no run"),
    (["evaluate", "half.py", "--problem", "tsp", "--on", "ten.tsp"], "repair"),
    (["evaluate", "import.py", "--problem", "tsp", "--on", "ten.tsp"], "os"),
    # specs and problems
    ([*EVALUATE, "--on", "uniform:5"], "uniform:SIZExCOUNT"),
    ([*EVALUATE, "--on", "uniform:2x2"], "3 nodes"),
    ([*EVALUATE, "--on", "uniform:20x0"], "COUNT"),
    ([*EVALUATE, "--on", "uniform:9x9", "--steps", str(10**9)], "memory"),
    ([*EVALUATE, "--on", "nowhere"], "nowhere does not exist"),
    (["evaluate", "pair.py", "--on", "uniform:5x1"], "--problem"),
    (["evaluate", "pair.py", "--problem", "knapsack", "--on", "uniform:5x1"], "knapsack"),
    (solve("ten.tsp", "pair.py", "--problem", "no.module:X"), "no.module"),
    # outputs
    (solve("ten.tsp", "pair.py", "--out", "no/where.tour"), "no folder"),
    (solve("ten.tsp", "pair.py", "--out", "."), "folder"),
    (solve("ten.tsp", "pair.py", "--out", "ten.tsp"), "input"),
    (solve("ten.tsp", "pair.py", "--out", "pair.py"), "input"),
    (solve("ten.tsp", "pair.py", "--plot", "pair.py"), "picture"),
    (solve("ten.tsp", "pair.py", "--plot", "no/where.png"), "no folder"),
    (solve("ten.tsp", "pair.py", "--plot", "a.jpg"), "picture"),
    (solve("ten.tsp", "pair.py", "--out", "a.png", "--plot", "a.png"), "twice"),
    (solve("ten.tsp", "pair.py", "--out", "x" * 300), "too long"),
    (solve("ten.tsp", "pair.py", "--out", "a\0b"), "not a file name"),
    ([*EVALUATE, "--on", "ten.tsp", "--json", "no/where.json"], "no folder"),
    ([*EVALUATE, "--on", "ten.tsp", "--json", "."], "folder"),
    ([*EVALUATE, "--on", "ten.tsp", "--json", "ten.tsp"], "input"),
    # runs
    (["discover"], "which problem"),
    (["discover", "knapsack"], "knapsack"),
    (["discover", "tsp", "--preset", "quickest"], "did you mean 'quick'"),
    (["discover", "tsp", "--preset", "missing.toml"], "missing.toml"),
    (["discover", "tsp", "--preset", "paper-cvrp"], "cvrp"),
    (["discover", "tsp", "--rounds", "0"], "rounds"),
    (["discover", "tsp", "--size", "many"], "size"),
    (["discover", "tsp", "--credit", "no.module:function"], "no.module"),
    (["discover", "tsp", "--out", "."], "not empty"),
    (["discover", "tsp", "--out", "ten.tsp"], "ten.tsp"),
    (["discover", "tsp", "--resume", "nowhere"], "no such run"),
    (["discover", "--resume", "."], "no run"),
    (["export", "nowhere", "--out", "new.py"], "no such run"),
    (["export", ".", "--out", "new.py"], "no run"),
    (["export", "."], "--out FILE.py, --adapters DIR"),
    (["export", "shipped"], "--out FILE.py, --adapters DIR"),
    (["export", "shipped", "--out", "new.py"], "add --problem (tsp, cvrp, vrptw)"),
    (["export", "shipped", "--problem", "knapsack", "--out", "new.py"], "knapsack"),
    (["export", "shipped", "--problem", "tsp", "--adapters", "new"], "shipped is a pair: leave"),
    (["export", "pair.py", "--select", "utility", "--out", "new.py"], "pair.py is a pair: leave"),
    (["report", "shipped"], "shipped: no such run folder; spo evaluate, spo solve, spo compare"),
    (["watch", "pair.py"], "pair.py: no such run folder; spo evaluate, spo solve, spo compare"),
    (["discover", "--resume", "shipped"], "shipped: no such run folder; spo evaluate"),
    (["evaluate", "shipped", "--on", "uniform:9x2"], "add --problem (tsp, cvrp, vrptw)"),
    (["evaluate", "shipped", "--on", "ten.tsp", "four.vrp"], "on one problem at a time"),
    (["export", ".", "--adapters", "new", "--for", "alns"], "--for is about a file"),
    (["export", ".", "--out", "new.py", "--for", "excel"], "unknown --for 'excel'"),
    (["task", "openevolve"], "--out"),
    (["task", "openevolve", "--out", "new"], "which problem"),
    (["task", "evolve", "tsp", "--out", "new"], "unknown framework 'evolve': did you mean"),
    (["task", "shinka", "tsp", "--out", "."], "not an empty folder"),
    (["task", "shinka", "tsp", "--out", "new", "--start", "nowhere.py"], "no such file"),
    (["task", "shinka", "tsp", "--out", "new", "--rounds", "3"], "unknown option --rounds"),
    (["runs", "nowhere"], "no such folder"),
    (["evaluate", "nowhere", "--problem", "tsp", "--on", "ten.tsp"], "no such file"),
]


@pytest.mark.parametrize(
    ("argv", "says"), BAD, ids=[" ".join(argv)[:70].replace("\0", "0") for argv, _ in BAD]
)
def test_bad_input_is_one_sentence(refused, argv, says):
    assert says in refused(*argv)


@pytest.mark.parametrize(("pair", "says"), [("crash.py", "crash"), ("wrong.py", "every node")])
def test_a_failing_pair_is_one_sentence(refused, pair, says):
    error = refused(*solve("ten.tsp", pair))
    assert error.startswith("spo: the pair gave no solution: ")
    assert says in error


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A tiny finished run."""
    path = tmp_path_factory.mktemp("runs") / "run"
    options = ["--rounds", "1", "--responses", "2", "--repairs-per-destroy", "2", "--size", "10"]
    options += ["--mutation-groups", "1", "--crossover-groups", "0", "--instances", "1"]
    options += ["--generator", "grammar", "--steps", "5", "--workers", "1"]
    argv = ["discover", "tsp", "--preset", "smoke", *options]
    assert main([*argv, "--out", str(path)]) == 0
    return path


@pytest.mark.long
def test_runs_are_not_overwritten_and_not_resumed_as_others(finished, refused):
    run = str(finished)
    before = listing(finished)
    assert "holds a run already" in refused("discover", "tsp", "--out", run)
    assert "size is 10 there and 12 here" in refused("discover", "--resume", run, "--size", "12")
    assert "cvrp" in refused("discover", "cvrp", "--resume", run)
    assert "exists already" in refused("export", run, "--out", "pair.py")
    assert "no folder" in refused("export", run, "--out", "no/pair.py")
    assert "run for tsp" in refused("evaluate", run, "--problem", "cvrp", "--on", "four.vrp")
    assert "run for tsp" in refused("solve", "four.vrp", "--pair", run)
    assert listing(finished) == before


def test_a_finished_run_is_not_another_run(finished, refused, folder, capsys):
    again = ["discover", "--resume", str(finished)]
    before = listing(finished)
    (folder / "mine").mkdir()
    ours = Path(spo_jax.__file__).parent / "search" / "writing" / "prompts" / "initialization.txt"
    (folder / "mine" / "initialization.txt").write_text(ours.read_text() + "\nBe brief.\n")
    for options, message in (
        (["--on", "uniform:9x1"], "began with other training instances (1 then, 1 now)"),
        (["--validate-on", "uniform:9x1"], "began with other validation instances"),
        (["--on", "nowhere"], "nowhere does not exist"),
        (["--prompts", "nowhere"], "nowhere"),
        (["--prompts", "mine"], "began with the package's prompt templates; leave out --prompts"),
    ):
        assert message in refused(*again, *options)
    capsys.readouterr()
    assert main([*again, "--on", "uniform:10x1", "--workers", "2"]) == 0  # the same instances
    assert "is finished: 1 of 1 rounds" in capsys.readouterr().out
    assert listing(finished) == before


class Silent:
    """A generator whose answers hold no program."""

    def generate(self, prompts, n, seed):
        return [(Completion("I would rather not."),) * n for _ in prompts]


def test_a_run_without_a_valid_pair_exits_with_1(folder, capsys):
    options = ["--rounds", "1", "--generator", f"{__name__}:Silent", "--workers", "1"]
    argv = ["discover", "tsp", "--preset", "smoke", *options, "--out", "run"]
    for line in (argv, ["discover", "--resume", "run"]):  # also as a finished run
        assert main(line) == 1
        output = capsys.readouterr().out
        assert "No valid pair was found; the failures table of run/spo.sqlite says why" in output
        assert "The most frequent reason" in output
    assert spo_jax.load_run("run").status == "finished"
    assert not Path("run/best.py").exists()


def test_a_damaged_run_is_one_sentence(refused, folder):
    (folder / "run").mkdir()
    (folder / "run" / "manifest.json").write_text("{}")
    (folder / "run" / "spo.sqlite").write_text("")
    assert "manifest.json" in refused("discover", "--resume", "run")
    assert "manifest.json" in refused("export", "run", "--out", "new.py")
    assert "manifest.json" in refused("solve", "ten.tsp", "--pair", "run")


@pytest.mark.long
def test_a_run_is_listed_exported_evaluated_and_solves(finished, folder, capsys):
    run = str(finished)
    assert main(["runs", str(finished.parent)]) == 0
    assert "1/1" in capsys.readouterr().out
    assert main(["export", run, "--out", "best.py"]) == 0
    assert main(["export", run, "--out", "function.py", "--for", "function"]) == 0
    assert "\ndef solve(places, *, seconds=10.0" in Path("function.py").read_text()
    assert main(["solve", "ten.tsp", "--pair", "best.py", "--out", "a.tour", "--steps", "5"]) == 0
    assert main(["solve", "ten.tsp", "--pair", run, "--out", "b.tour", "--steps", "5"]) == 0
    assert Path("a.tour").read_text() == Path("b.tour").read_text()
    argv = ["evaluate", run, "--on", "ten.tsp", "--steps", "5", "--json", "report.json"]
    assert main(argv) == 0
    assert json.loads(Path("report.json").read_text())["problem"] == "tsp"


@pytest.mark.parametrize("problem", known_problems())
@pytest.mark.parametrize("more", [[], ["--for", "function"], ["--for", "alns"]], ids=str)
def test_the_pair_that_ships_is_exported(problem, more, folder, capsys):
    assert main(["export", "shipped", "--problem", problem, "--out", "new.py", *more]) == 0
    assert capsys.readouterr().out == f"new.py: shipped, for {problem}\n"
    text = Path("new.py").read_text()
    assert f"ships with spo-jax {__version__} for the problem {problem}." in text
    ships = spo_jax.load_pair(get_problem(problem).pair)
    assert spo_jax.load_pair("new.py").digest == ships.digest
    assert main(["export", "new.py", "--problem", problem, "--out", "again.py", *more]) == 0
    assert spo_jax.load_pair("again.py").digest == ships.digest


@pytest.mark.parametrize("file", ["ten.tsp", "four.vrp"])
def test_a_pair_is_evaluated_on_the_problem_of_the_files(file, folder, capsys):
    terms = ["--on", file, "--steps", "5", "--seeds", "1", "--workers", "1", "--json", "r.json"]
    assert main(["evaluate", "shipped", *terms]) == 0
    problem = {".tsp": "tsp", ".vrp": "cvrp"}[Path(file).suffix]
    assert json.loads(Path("r.json").read_text())["problem"] == problem


@pytest.mark.long
def test_a_runs_pair_runs_as_it_was_discovered(finished, folder, capsys):
    """A file does not say how it was; and what is asked for stands above what a run says."""
    shutil.copytree(finished, "run")
    manifest = json.loads(Path("run/manifest.json").read_text())
    manifest["config"] |= {"state": False, "on_invalid": "skip"}
    Path("run/manifest.json").write_text(json.dumps(manifest))
    with contextlib.closing(sqlite3.connect("run/spo.sqlite", isolation_level=None)) as db:
        db.execute("UPDATE config SET value = 'false' WHERE name = 'state'")
        db.execute("UPDATE config SET value = '\"skip\"' WHERE name = 'on_invalid'")
        db.execute("DROP TABLE digests")  # as in a run from before there was one
    argv = ["--on", "ten.tsp", "--steps", "5", "--json", "report.json"]
    known = []
    for pair in (["run"], ["run", "--on-invalid", "fail"], ["pair.py", "--problem", "tsp"]):
        assert main(["evaluate", *pair, *argv]) == 0
        settings = json.loads(Path("report.json").read_text())["settings"]
        known.append((settings["state"], settings["on_invalid"]))
    assert known == [("none", "skip"), ("none", "fail"), ("stagnation", "fail")]
    capsys.readouterr()
    assert main(["solve", "ten.tsp", "--pair", "run", "--steps", "5"]) == 0
    output = capsys.readouterr().out
    assert "steps_since_improvement is 0 at every step" in output
    assert "an infeasible candidate is a rejected step" in output


# --- the file system ------------------------------------------------------------------------------


def test_a_report_replaces_nothing_but_a_report(refused):
    assert "is an input" in refused(*EVALUATE, "--on", "ten.tsp", "--json", "pair.py")
    assert "is no report" in refused(*EVALUATE, "--on", "ten.tsp", "--json", "half.py")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "argv", [[*SOLVE, "--out", "/dev/full"], [*EVALUATE, "--on", "ten.tsp", "--json", "/dev/full"]]
)
def test_no_space_is_one_sentence(folder, capsys, argv):
    before = listing(folder)
    assert main(argv) == 2
    assert capsys.readouterr().err == "spo: cannot write /dev/full: No space left on device\n"
    assert listing(folder) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_no_permission_is_one_sentence(folder, refused):
    (folder / "locked").mkdir(mode=0o500)
    assert "permission" in refused(*SOLVE, "--out", "locked/a.tour")


@pytest.mark.long
def test_a_failure_half_way_leaves_no_file(folder, monkeypatch, capsys):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "x.part")

    monkeypatch.setattr(os, "replace", full)
    before = listing(folder)
    for argv in (SOLVE, [*EVALUATE, "--on", "ten.tsp", "--json", "r.json"]):
        assert main(argv) == 2
        assert "No space left" in capsys.readouterr().err
    assert listing(folder) == before


# --- what works -----------------------------------------------------------------------------------


def test_solve_writes_a_tour_and_a_picture(folder, capsys):
    argv = ["solve", "ten.tsp", "--pair", "pair.py", "--steps", "60", "--workers", "2"]
    assert main([*argv, "--plot", "ten.png"]) == 0
    out = capsys.readouterr().out
    assert "ten: cost 100, gap unknown" in out
    assert "120 steps in 2 searches" in out
    lines = Path("ten.spo.tour").read_text().split("\n")
    nodes = lines[lines.index("TOUR_SECTION") + 1 : lines.index("-1")]
    assert sorted(map(int, nodes)) == list(range(1, 11))
    assert Path("ten.png").read_bytes().startswith(b"\x89PNG")
    assert set(listing(folder)) - set(FILES) == {"ten.spo.tour", "ten.png"}


@pytest.mark.long
def test_a_second_solve_keeps_the_better_solution(folder, capsys, refused):
    assert main([*SOLVE, "--steps", "60"]) == 0
    best = Path("ten.spo.tour").read_bytes()
    worse = [*SOLVE, "--steps", "1", "--start", "random", "--workers", "1"]
    worse += ["--acceptance", "improving"]  # without the local search, which finds the best
    assert main(worse) == 0
    assert "kept: ten.spo.tour, whose cost 100 is below" in capsys.readouterr().out
    assert Path("ten.spo.tour").read_bytes() == best
    assert main([*worse, "--force"]) == 0
    assert Path("ten.spo.tour").read_bytes() != best
    Path("other.json").write_text('{"a": 1}')
    capsys.readouterr()
    assert "is no solution of ten" in refused(*SOLVE, "--out", "other.json")
    assert "nothing that spo solve wrote" in refused(*SOLVE, "--plot", "photo.png")
    assert "is no report" in refused(*EVALUATE, "--on", "ten.tsp", "--json", "other.json")


@pytest.mark.long
def test_rounding_is_reported_and_can_be_turned_off(folder, capsys, refused):
    rows = [f"{k} 48.85{k} 2.3{k * k % 10}" for k in range(1, 11)]
    Path("near.tsp").write_text(TSP[: TSP.index("1 0 0")] + "\n".join(rows) + "\nEOF\n")
    argv = ["solve", "near.tsp", "--pair", "pair.py", "--steps", "5", "--out", "near.tour"]
    assert main(argv) == 0
    out, err = capsys.readouterr()
    assert "ten: cost 0," in out
    warning = "ten: rounding, as EUC_2D says, changes distances by 100% on average"
    assert err == f"{warning}: --distances exact keeps them\n"
    assert main([*argv, "--distances", "exact", "--force"]) == 0
    out, err = capsys.readouterr()
    assert "ten: cost 0," not in out
    assert err == ""
    argv = [*EVALUATE, "--on", "near.tsp", "--json", "near.json"]
    assert main(argv) == 0
    assert warning in capsys.readouterr().out
    assert any(warning in line for line in json.loads(Path("near.json").read_text())["remarks"])
    assert main([*argv, "--distances", "ceil"]) == 0
    report = json.loads(Path("near.json").read_text())
    assert report["settings"]["distances"] == "ceil"
    assert report["groups"][0]["summary"]["mean_cost"] == 10.0
    argv = ["baseline", "2-opt", "--problem", "tsp", "--on", "near.tsp", "--distances", "exact"]
    assert main([*argv, "--json", "near.json"]) == 0
    assert 0 < json.loads(Path("near.json").read_text())["groups"][0]["summary"]["mean_cost"] < 10
    capsys.readouterr()
    message = refused(*EVALUATE, "--on", "uniform:10x1", "--distances", "exact")
    assert "--distances is for instance files, and none is named" in message
    assert "take no --capacity" in refused(*SOLVE, "--capacity", "5")


@pytest.mark.long
def test_tables_are_solved_and_written_in_every_form(folder, capsys, refused):
    rows = [f"c{k},{40 + k},{k * k % 7},{k}" for k in range(10)]
    Path("towns.csv").write_text("\n".join(["name,lat,lon,demand", *rows]))
    argv = ["solve", "towns.csv", "--pair", "pair.py", "--steps", "5"]
    assert main([*argv, "--json", "t.json", "--geojson", "t.geojson", "--plot", "t.svg"]) == 0
    out, err = capsys.readouterr()
    assert "towns: distances are great circles in kilometres" in err
    for line in ("solution: towns.spo.tour", "picture: t.svg", "JSON: t.json", "GeoJSON: t.geoj"):
        assert line in out
    assert len(json.loads(Path("t.json").read_text())["walks"][0]["names"]) == 11
    assert Path("t.svg").read_bytes().startswith(b"<?xml")
    assert "take no --capacity" in refused(*SOLVE, "--problem", "tsp", "--capacity", "9")
    assert "exceeds --capacity 8" in refused(*argv, "--capacity", "8")  # so it is a CVRP
    assert "no geographic" in refused(*SOLVE, "--geojson", "u.geojson")
    assert "twice" in refused(*SOLVE, "--json", "u.json", "--plot", "u.svg", "--out", "u.json")
    assert "input" in refused(*SOLVE, "--json", "ten.tsp", "--force")


@pytest.mark.long
def test_solve_without_a_pair_and_from_a_file(folder, capsys):
    """The pair that ships; then two pairs, from what that found, which nothing is better than."""
    assert main(["solve", "ten.tsp", "--steps", "30", "--workers", "1"]) == 0
    output = capsys.readouterr().out
    again = ["--steps", "3", "--workers", "1", "--start", "ten.spo.tour", "--out", "b.tour"]
    assert main(["solve", "ten.tsp", "--pair", "pair.py", "pair.py", *again]) == 0
    both = capsys.readouterr().out
    assert "ten: cost 100," in output
    assert "started at 100;" in both
    assert main(["solve", "four.vrp", "--steps", "5", "--workers", "1"]) == 0


def test_solve_by_time_counts_from_the_start_of_the_command(folder, capsys):
    """The second that it has is over before its workers are there: the start is what it writes."""
    assert main(["solve", "ten.tsp", "--time", "0.01", "--workers", "1"]) == 0
    assert "; 0 steps in 1 search" in capsys.readouterr().out
    assert Path("ten.spo.tour").exists()
    assert 0 < cli.age() < 1e6


def test_solve_cvrp(folder, capsys):
    Path("routes.py").write_text(
        "def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):\n"
        "    gone = rng.choice([c for route in current_routes for c in route])\n"
        "    return [[c for c in route if c != gone] for route in current_routes], [gone]\n"
        "def repair(dist, demands, capacity, partial_routes, removed_customers, z, rng):\n"
        "    return partial_routes + [removed_customers]\n"
    )
    assert main(["solve", "four.vrp", "--pair", "routes.py", "--steps", "3"]) == 0
    assert Path("four.spo.sol").read_text().startswith("Route #1: ")
    argv = ["solve", "no_capacity.vrp", "--pair", "routes.py", "--steps", "3"]
    assert main(argv) == 2
    assert "or give --capacity" in capsys.readouterr().err
    assert main([*argv, "--capacity", "5"]) == 0
    assert Path("no_capacity.spo.sol").read_text() == Path("four.spo.sol").read_text()


@pytest.mark.long
def test_evaluate_prints_a_table_and_writes_strict_json(folder, capsys):
    argv = [*EVALUATE, "--on", "uniform:10x2@5", "ten.tsp", "--seeds", "2", "--json", "r.json"]
    assert main(argv) == 0
    out, err = capsys.readouterr()
    assert "uniform:10x2@5: rollouts: 4 done\n" in out
    assert "no reference" in out
    assert err == ""
    report = json.loads(Path("r.json").read_text(), parse_constant=pytest.fail)
    assert [len(group["instances"]) for group in report["groups"]] == [2, 1]
    instance = report["groups"][0]["instances"][0]
    fields = "name size reference reference_source certified rollouts"
    assert set(instance) == set(fields.split())
    fields = "seed status reason initial_cost best_cost gap seconds solution"
    assert set(instance["rollouts"][0]) == set(fields.split())


@pytest.mark.long
def test_failures_are_printed(folder, capsys):
    argv = ["evaluate", "wrong.py", "--problem", "tsp", "--on", "ten.tsp", "--steps", "5"]
    assert main(argv) == 1
    out = capsys.readouterr().out
    assert "3/3" in out
    assert "3 of 3 rollouts failed" in out


@pytest.mark.long
def test_doctor_is_ready_here(folder, capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for word in (
        *("seccomp", "landlock", "namespaces", "python", "jax", "cores", "elkai", "ortools"),
        *("pyvrp", "matplotlib", "alns", "cache", "ready"),
    ):
        assert word in out


@pytest.mark.long
def test_doctor_survives_a_broken_jax(folder, tmp_path):
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "jax.py").write_text("raise RuntimeError('jaxlib is from another age')\n")
    done = spo("doctor", path=[str(broken)])
    assert done.returncode == 2
    assert "jaxlib is from another age" in done.stdout
    assert "pip install" in done.stdout
    assert "seccomp" in done.stdout
    assert done.stderr == ""


def test_doctor_says_what_to_do_about_a_missing_layer(monkeypatch):
    from spo_jax.cli import doctor
    from spo_jax.envs.run import local

    class Bare(local.LocalEvaluator):
        layers = property(lambda self: {"seccomp": False, "landlock": False})

    monkeypatch.setattr(local, "LocalEvaluator", Bare)
    found = {each.name: each for each in doctor.sandbox()}
    assert found["seccomp"].ok is False  # nothing runs without
    assert found["landlock"].ok is None  # the others stand
    assert all(each.remedy for each in found.values())
    assert not doctor.healthy(found.values())


# --- the process ----------------------------------------------------------------------------------


def environment(path: list[str] | None = None) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*(path or []), ROOT])}


def spo(*argv: str, path: list[str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "spo_jax", *argv]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment(path), timeout=120
    )


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from spo_jax.cli import main; code = main(['--help']); "
        "heavy = {'jax', 'numpy', 'rich', 'matplotlib', 'scipy'} & set(sys.modules); "
        "sys.exit(repr(heavy) if heavy else code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment()
    )
    assert done.returncode == 0, done.stderr
    for name in ("discover", "runs", "report", "export", "evaluate", "baseline", "solve", "doctor"):
        assert name in done.stdout


def test_help_names_every_problem_and_what_it_takes(capsys):
    """Those that ship, their baselines and the suffixes of their files."""
    help = {}
    for command in ("", *cli.COMMANDS):
        assert main([*filter(None, [command]), "--help"]) == 0
        help[command] = " ".join(capsys.readouterr().out.split())
    for name in known_problems():
        problem = get_problem(name)
        assert f"the {name.upper()}" in help[""]
        for command, text in help.items():  # one that names several names all
            words = set(re.findall(r"\w+", text))
            assert name.upper() in words or not {"TSP", "CVRP"} <= words, command
            assert name in words or not {"tsp", "cvrp"} <= words, command
        listed = help["baseline"].partition(f"For the {name.upper()}: ")[2].partition(". ")[0]
        listed = listed.replace("farthest- insertion", "farthest-insertion")
        assert set(re.split(", | and ", listed)) == set(problem.baselines)
        assert all(f"{suffix}" in help["solve"] for suffix in problem.suffixes + problem.tables)


@pytest.mark.parametrize("name", sorted(cli.COMMANDS))
def test_every_command_has_help_with_an_example(name, capsys):
    assert main([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert f"Example: spo {name}" in out
    assert len(out.split("\n\n")[1]) > 100  # the paragraph


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ([*SOLVE[:4], "--steps", "0"], "--steps: '0' is not a whole number from 1 to 1000000000;"),
        ([*SOLVE[:4], "--seed", "-1"], "--seed: '-1' is not a whole number from 0 to 46116860184"),
        ([*SOLVE[:4], "--time", "1e9"], "--time: '1e9' is not a number from 1e-06 to 1000000.0"),
        ([*SOLVE[:4], "--workers", "0"], "workers is '0'; it must be a whole number from 1 to"),
        (["discover", "--rewind", "-1"], "--rewind: '-1' is not a whole number from 0 to"),
    ],
)
def test_a_number_out_of_range_is_answered_with_the_range(argv, says, refused):
    assert says in refused(*argv)


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"spo-jax {__version__}\n"


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["dance"],
        ["solve"],
        [*SOLVE, "--time", "1"],
        [*SOLVE, "--unknown"],
        [*SOLVE, "--see", "1"],  # no guessing at what an abbreviation means
        ["solve", "ten.tsp", "--pair", "pair.py", "--time", "nan"],
        ["solve", "ten.tsp", "--pair", "pair.py", "--seed", "-1"],
        ["solve", "ten.tsp", "--pair", "pair.py", "--seed", "9" * 5000],
        *([*SOLVE[:4], f"--{name}", "9" * 20] for name in ("steps", "time", "seed", "seeds")),
        *([*EVALUATE, "--on", "ten.tsp", f"--{name}", "9" * 20] for name in ("steps", "seeds")),
        [*EVALUATE, "--on", "ten.tsp", "--steps", "x"],
        ["export"],
        ["discover", "tsp", "--unknown", "1"],
        ["doctor", "now"],
    ],
)
def test_wrong_options_are_one_sentence(argv, refused):
    refused(*argv)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["discover", "tsp", "--round", "3"], "option --round of spo discover: did you mean --rou"),
        (["discover", "tsp", "--url=http://x"], "unknown option --url .*did you mean --vllm-url?"),
        (["discover", "tsp", "rounds=3"], "spo discover takes no 'rounds=3' here"),
        (["evaluate", "x", "--on", "y", "--step", "3"], "of spo evaluate: did you mean --steps?"),
        (["dicover", "tsp"], "unknown command 'dicover': did you mean 'discover'?"),
        (["solve"], "the following arguments are required: INSTANCE; see spo solve --help"),
        ([*SOLVE, "--seed", "x"], "--seed: 'x' is not a whole number from 0 to"),
    ],
)
def test_unknown_options_are_answered_with_the_closest(argv, message, refused):
    assert re.search(message.replace("?", "[?]"), refused(*argv))


@pytest.mark.parametrize(
    ("name", "value"), [("workers", "9" * 20), ("cpu-seconds", "9" * 20), ("on-invalid", "ignore")]
)
def test_wrong_settings_are_one_sentence(name, value, capsys):
    for command in ([*SOLVE[:4]], [*EVALUATE, "--on", "ten.tsp"], ["discover", "tsp"]):
        assert main([*command, f"--{name}", value]) == 2
        err = capsys.readouterr().err
        assert err.startswith(f"spo: {name.replace('-', '_')} is '{value}'; it must be ")
        assert err.count("\n") == 1


def test_the_sentence_is_one_line_whatever_it_quotes(monkeypatch, capsys):
    def fail(args: object) -> int:
        raise InputError("two\nlines")

    monkeypatch.setitem(cli.COMMANDS, "doctor", fail)
    assert main(["doctor"]) == 2
    assert capsys.readouterr().err == "spo: two lines\n"


@pytest.mark.parametrize(
    "bug", [ZeroDivisionError(), OSError(9, "Bad file descriptor"), KeyError()]
)
def test_a_bug_keeps_its_traceback(monkeypatch, bug):
    def command(args: object) -> int:
        raise bug

    monkeypatch.setitem(cli.COMMANDS, "doctor", command)
    with pytest.raises(type(bug)):
        main(["doctor"])


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupt(folder, number):
    argv = ["evaluate", "pair.py", "--problem", "tsp", "--references", "none"]
    argv += ["--on", "uniform:40x1", "uniform:90x9", "--steps", "5000", "--json", "r.json"]
    with subprocess.Popen(
        [sys.executable, "-m", "spo_jax", *argv, "--cpu-seconds", "100"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        # Whoever runs the tests in the background may have had Ctrl-C ignored, which is inherited.
        preexec_fn=partial(signal.signal, number, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "uniform:40x1: rollouts: 3 done\n"
        while not Path("r.json").exists():
            time.sleep(0.01)
        workers = children(process.pid)
        process.send_signal(number)
        rest = process.stderr.read()
    assert process.returncode == 128 + number
    assert len(workers) == len(os.sched_getaffinity(0))
    wait_for_the_end_of(workers)
    assert rest == "spo: stopped\n"
    report = json.loads(Path("r.json").read_text())  # the first group, whole
    assert (len(report["groups"]), report["complete"]) == (1, False)


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_a_baseline_that_the_deadline_ends_says_no_more(folder, workers):
    """On a busy machine the grace is over before everything is closed."""
    code = "from spo_jax import cli, stopping; stopping.GRACE = 0.0; raise SystemExit(cli.main())"
    argv = ["baseline", "alns", "--problem", "tsp", "--on", "ten.tsp", "--references", "none"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *argv, "--steps", "1000000", "--workers", "2"],
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        while len(begun := children(process.pid)) < workers:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        rest = process.stderr.read()
    if rest:  # nothing at all: it had not come to handle signals
        assert rest == "spo: stopped\n"
    assert workers == 0 or rest
    wait_for_the_end_of(begun)


@pytest.mark.parametrize("argv", [["no.tsp"], ["a.tsp", "--pair", "no.py"], ["uniform:9x1"]])
def test_a_search_that_cannot_begin_ends_the_workers_that_were_started_for_it(
    argv, folder, monkeypatch, capsys
):
    started = []
    launched = starting.launched
    monkeypatch.setattr(
        starting, "launched", lambda *a: started.append(launched(*a)) or started[-1]
    )
    assert main(["solve", *argv, "--workers", "2"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert len(started) == 2
    assert all(each.process.returncode is not None for each in started)
    assert all(each.control.fileno() == -1 for each in started)


def children(pid):
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def wait_for_the_end_of(processes):
    """Nobody is left; the test's own time limit is the only one."""

    def alive(pid):
        with contextlib.suppress(OSError):
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        return False

    while any(map(alive, processes)):
        time.sleep(0.02)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_search_or_a_baseline_that_is_stopped_leaves_nobody(folder, number):
    big = TSP[: TSP.index("1 0 0")].replace(": 10", ": 300")
    rows = "".join(f"{k} {37 * k % 211} {53 * k % 199}\n" for k in range(1, 301))
    Path("big.tsp").write_text(f"{big}{rows}EOF\n")
    solve = ["solve", "big.tsp", "--pair", "pair.py", "--time", "200"]
    on = ["--problem", "tsp", "--on", "big.tsp", "--references", "none", "--steps", "1000000"]
    for argv, others in ((solve, 0), (["baseline", "alns", *on], 1)):  # one tracks resources
        with subprocess.Popen(
            [sys.executable, "-m", "spo_jax", *argv, "--workers", "2"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            preexec_fn=partial(signal.signal, number, signal.SIG_DFL),
        ) as process:
            while len(workers := children(process.pid)) < 2 + others:
                time.sleep(0.02)
            process.send_signal(number)
            out, rest = process.communicate()
        assert process.returncode == 128 + number
        wait_for_the_end_of(workers)
        if others or not out:  # a search that has not begun has found nothing
            assert (out, rest) == ("", "spo: stopped\n")
            assert not list(Path().glob("*.tour"))
        else:
            assert "stopped early: this is the best so far" in out
            assert Path("big.spo.tour").exists()
            Path("big.spo.tour").unlink()


@pytest.mark.parametrize(
    ("mebibytes", "argv"),
    [
        (600, [*EVALUATE, "--on", "ten.tsp"]),  # what one core needs is above
        (1200, ["discover", "tsp", "--preset", "smoke", "--out", "run"]),
        (600, ["baseline", "2-opt", "--problem", "tsp", "--on", "ten.tsp"]),
        (400, SOLVE),
        (400, ["runs", "."]),
    ],
)
def test_too_little_address_space_is_one_sentence(folder, mebibytes, argv):
    before = listing(folder)
    limit = f"ulimit -v {mebibytes * 1024}; exec {sys.executable} -m spo_jax {' '.join(argv)}"
    done = subprocess.run(
        ["bash", "-c", limit], capture_output=True, text=True, env=environment(), timeout=120
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"spo: this shell limits address space to {mebibytes} MiB, and")
    assert done.stderr.count("\n") == 1
    assert listing(folder) == before


def test_memory_that_runs_out_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setitem(cli.COMMANDS, "doctor", lambda args: bytearray(2**62))
    assert main(["doctor"]) == 2
    assert "not enough memory" in capsys.readouterr().err


def test_a_hangup_that_nohup_ignores_stays_ignored(folder):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stopping.stoppable(lambda: None):
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.long
def test_a_closed_pipe_is_quiet(folder):
    command = f"{sys.executable} -m spo_jax doctor | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env=environment()
    )
    assert done.stdout in ("1\n", "141\n")  # rich gives up with 1 when it is the one to notice
    assert done.stderr == ""

"""spo compare: calls in processes of their own, tables, curves, files, Ctrl-C."""

import csv
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from program_collection import good_pair

import spo_jax
from spo_jax.cli import main
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.alns import Settings, cooling
from spo_jax.envs.problems.cvrp.baselines import alns as cvrp_alns
from spo_jax.envs.problems.tsp.baselines import alns as tsp_alns
from spo_jax.envs.report.compare import BEST_HERE, Attempt, Comparison, compare
from spo_jax.envs.report.comparison.compared import (
    TABLES,
    Folder,
    by_instance,
    by_method,
    file_names,
    markdown,
    notes,
    searches,
)
from spo_jax.envs.report.comparison.curves import curve, plot_curves
from spo_jax.envs.report.comparison.methods import Method, methods_of
from spo_jax.envs.report.comparison.timed import Call, Timed, timed
from spo_jax.envs.report.reference_files import ReferenceFile, Row
from spo_jax.errors import InputError

TSP, CVRP = get_problem("tsp"), get_problem("cvrp")

MINE = '''
import json
import os
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

HERE = Path(__file__).parent


def forward(instance, seed):
    """The nodes by their number."""
    return [*range(instance.size)]


def telling(instance, seed, *, seconds=1.0, report=print):
    """A tour, then one that is reversed, then a better one."""
    tour = [*range(instance.size)]
    report(tour)
    report(tour[::-1])
    report(by_x(instance))
    return tour


def by_x(instance):
    return [int(node) for node in instance.coords[:, 0].argsort()]


def shuffled(instance, seed):
    import random
    tour = [*range(instance.size)]
    random.Random(seed).shuffle(tour)
    (HERE / f"seed-{seed}").write_text(json.dumps(sorted(os.sched_getaffinity(0))))
    return tour


def together(instance, seed, *, seconds=1.0, workers=1):
    (HERE / f"together-{seed}").write_text(json.dumps([seconds, workers]))
    return [*range(instance.size)]


def talkative(instance, seed):
    print("I am here")
    os.write(1, b"and here\\n")
    return forward(instance, seed)


def lying(instance, seed, *, report=print):
    report([0] * instance.size)
    return forward(instance, seed)


def short(instance, seed):
    return [*range(instance.size - 1)]


def crashing(instance, seed):
    return [][instance.size]


def dying(instance, seed):
    os._exit(3)


def killed(instance, seed):
    os.kill(os.getpid(), 9)


def endless(instance, seed):
    (HERE / "endless").write_text(str(os.getpid()))
    while True:
        time.sleep(0.01)


def busy(instance, seed):
    """0.3 seconds of CPU time in a process whose parent has ended."""
    read, write = os.pipe()
    if not (middle := os.fork()):
        if not os.fork():
            while time.process_time() < 0.3:
                pass
        os._exit(0)
    os.close(write)
    os.waitpid(middle, 0)
    os.read(read, 1)  # returns when all have ended
    return forward(instance, seed)


def leaving(instance, seed, *, then=forward):
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    (HERE / "left").write_text(str(process.pid))
    return then(instance, seed)


def crashing_then(instance, seed):
    return leaving(instance, seed, then=crashing)


def killed_then(instance, seed):
    return leaving(instance, seed, then=killed)


def endless_then(instance, seed):
    return leaving(instance, seed, then=endless)


def anonymous(instance, seed):
    return lambda: forward(instance, seed)


class Unreadable:
    def __reduce__(self):
        return int, ("no number",)


def unreadable(instance, seed):
    return Unreadable()
'''


def tsp(n=8, seed=0):
    return TSP.sample(n, 1, seed)[0]


def length(instance, tour):
    """The length of a closed tour, summed here."""
    return math.fsum(instance.dist[a, b] for a, b in pairwise([*tour, tour[0]]))


def call(name, instance, **options):
    cores = frozenset(os.sched_getaffinity(0))
    reports = name in ("telling", "lying")
    return Call(f"mine:{name}", instance, 0, options, (), reports, cores)


def compared(names, instances, **more):
    terms = {"seconds": 1.0} | more
    return compare(TSP, instances, methods_of(TSP, {}, names), **terms)


def gone(pid):
    """Whether a process has ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


# --- one call -------------------------------------------------------------------------------------


def test_costs_are_the_problems_and_the_best_counts(mine):
    instance = tsp()
    found = timed(TSP, [call("telling", instance, seconds=1.0)], 60)
    assert found.status == "ok"
    by_x = instance.coords[:, 0].argsort().tolist()
    tours = [[*range(8)], by_x]
    assert found.cost == min(length(instance, tour) for tour in tours)
    assert found.cost == length(instance, found.solution)
    costs = [cost for _, cost in found.curve]
    assert costs == sorted(set(costs), reverse=True)
    assert costs[0] == length(instance, tours[0])
    seconds = [second for second, _ in found.curve]
    assert 0 <= seconds[0] <= seconds[-1] <= found.seconds


@pytest.mark.parametrize(
    ("name", "status", "says"),
    [
        ("lying", "invalid", "does not visit every node exactly once"),
        ("short", "invalid", "does not visit every node exactly once"),
        ("crashing", "crash", "IndexError: list index out of range (mine.py, line"),
        ("dying", "crash", "its process ended early (exit code 3)"),
        ("killed", "crash", "its process ended early (signal 9)"),
        ("anonymous", "invalid", "cannot be taken over (AttributeError: Can't "),
        ("unreadable", "invalid", "cannot be taken over (ValueError: invalid literal"),
    ],
)
def test_failures_are_reported(mine, capfd, name, status, says):
    found = timed(TSP, [call(name, tsp())], 60)
    assert capfd.readouterr().err == ""
    assert found.status == status
    assert says in found.reason
    assert (found.solution, found.cost, found.curve) == (None, math.inf, ())


@pytest.mark.long
def test_one_that_does_not_end_is_killed(mine):
    found = timed(TSP, [call("endless", tsp())], 3.0)
    assert (found.status, found.reason) == ("timeout", "it did not end within 3 s")
    assert not (mine / "endless").exists() or gone(int((mine / "endless").read_text()))


def test_a_failure_is_that_of_all_side_by_side(mine):
    found = timed(TSP, [call("forward", tsp()), call("crashing", tsp())], 60)
    assert found.status == "crash"


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("leaving", "ok"),
        ("crashing_then", "crash"),
        ("killed_then", "crash"),
        ("endless_then", "timeout"),
    ],
)
def test_what_a_solver_leaves_in_a_session_of_its_own_ends(mine, name, status):
    assert timed(TSP, [call(name, tsp())], 5.0).status == status
    left = int((mine / "left").read_text())
    end = time.monotonic() + 5
    while not gone(left) and time.monotonic() < end:
        time.sleep(0.02)
    assert gone(left)


def test_what_a_solver_prints_is_not_ours(mine, capfd):
    assert timed(TSP, [call("talkative", tsp())], 60).status == "ok"
    assert capfd.readouterr().out == ""


def test_cpu_time_of_processes_left_behind_counts(mine):
    found = timed(TSP, [call("busy", tsp())], 60)
    assert found.cpu_seconds >= 0.3
    assert found.seconds < 60


# --- methods --------------------------------------------------------------------------------------


def test_all_is_the_construction_and_the_baselines():
    names = [each.name for each in methods_of(CVRP, {})]
    assert names == ["construction", *CVRP.baselines]
    both = methods_of(CVRP, {}, ("alns", "all"))
    assert [each.name for each in both] == ["alns", *(n for n in names if n != "alns")]
    by_name = {each.name: each for each in both}
    assert by_name["alns"].takes == {"seconds", "report"}
    assert by_name["clarke-wright"].takes == set()
    assert [each.name for each in both if not each.seeded] == [
        "construction", "clarke-wright", "local-search", "or-tools", "or-tools-default"
    ]  # fmt: skip


def test_a_pair_whose_kit_is_stale_is_refused_before_anything_runs(monkeypatch):
    monkeypatch.setattr("spo_jax.envs.kits.changed_sources", lambda kit: Path("there"))
    terms = {"state": True, "on_invalid": "skip"}
    with pytest.raises(InputError, match="build it again"):
        methods_of(TSP, {"pair": (good_pair("tsp"), terms)}, ("alns",))
    assert methods_of(TSP, {}, ("alns",)), "no pair, no kit"


def test_how_pairs_search_is_said_where_it_is_not_alike():
    pair = good_pair("tsp")
    several = {
        "pair": (pair, {"on_invalid": "fail", "state": "stagnation"}),
        "mine": (pair, {"on_invalid": "skip", "state": "progress", "acceptance": "annealing"}),
    }

    def told(**pairs):
        methods = methods_of(TSP, pairs, ("construction",))
        return searches(SimpleNamespace(problem=TSP, methods=methods))

    assert told(**several) == [
        "pair searches with acceptance record-to-record, state stagnation",
        "mine searches with acceptance annealing, state progress",
    ]
    alike = {"start": "construction", "state": "stagnation"}  # as where nothing is said
    assert told(pair=several["pair"], other=(pair, alike)) == []


def test_what_is_no_method(mine):
    with pytest.raises(InputError, match="'tabu' is no baseline of tsp"):
        methods_of(TSP, {}, ("tabu",))
    with pytest.raises(InputError, match="cannot import baseline 'mine:missing'"):
        methods_of(TSP, {}, ("mine:missing",))
    with pytest.raises(InputError, match="there is nothing to compare"):
        methods_of(TSP, {}, ())


def test_one_that_is_not_installed_is_a_row_that_says_so(mine, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "elkai", None)
    found = compared(["mine:forward", "lkh"], [tsp()])
    assert [each.found.status for each in found.attempts] == ["ok", "missing"]
    assert any(re.search(r"lkh: elkai .*pip install 'spo-jax\[solvers\]'", n) for n in notes(found))
    assert ("uniform-8-0@0", "lkh", "missing", "-", "-", "-", "-", "-") in by_instance(found).rows
    assert next(row for row in by_method(found).rows if row[0] == "lkh")[4] == "missing"
    folder = Folder(tmp_path / "out", TSP, found.instances, found.methods)
    folder.make()
    for each in found.attempts:
        folder.keep(each)
    folder.write(found)
    assert [path.name for path in (tmp_path / "out").glob("*.tour")] == [
        "uniform-8-0@0".replace("@", "-") + ".mine-forward.tour"
    ]


@pytest.mark.long
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
def test_several_cores_are_used_by_each(mine):
    """By itself, or by a run on each with a seed of its own; never by more."""
    found = compared(["mine:shuffled", "mine:together"], [tsp()], workers=2, seeds=2)
    assert [(a.method.name, a.seed, a.cores) for a in found.attempts] == [
        ("mine:shuffled", 0, 2), ("mine:together", 0, 2),
        ("mine:shuffled", 1, 2), ("mine:together", 1, 2),
    ]  # fmt: skip
    used = {seed: json.loads((mine / f"seed-{seed}").read_text()) for seed in range(4)}
    assert all(len(cores) == 1 for cores in used.values())
    assert used[0] != used[1]
    assert used[2] != used[3]
    assert json.loads((mine / "together-2").read_text()) == [1.0, 2]
    assert not (mine / "together-1").exists()
    best = min(length(tsp(), _shuffled(seed)) for seed in (0, 1))
    assert found.attempts[0].found.cost == best


def _shuffled(seed):
    import random

    tour = [*range(8)]
    random.Random(seed).shuffle(tour)
    return tour


# --- a comparison ---------------------------------------------------------------------------------


@pytest.mark.long
def test_gaps_and_intervals(mine):
    """To known costs where there are any, else to the best found here."""
    instances = [tsp(8, seed) for seed in range(3)]
    rows = [Row("tsp", "", instances[0].digest, 2.2, where="mine")]
    found = compared(["mine:forward", "mine:telling"], instances, own=ReferenceFile("mine", rows))
    assert found.instances[0].reference == 2.2
    assert [each.reference_source for each in found.instances[1:]] == [BEST_HERE] * 2
    forward, telling = found.methods
    by_hand = []
    for instance, known in zip(instances, found.instances, strict=True):
        by_x = length(instance, instance.coords[:, 0].argsort().tolist())
        plain = length(instance, range(8))
        if known.reference != 2.2:
            assert known.reference == min(by_x, plain)
        by_hand.append(100 * (plain - known.reference) / known.reference)
    assert found.summary(forward).mean_gap == pytest.approx(np.mean(by_hand))
    low, high = found.summary(forward).gap_interval
    assert low < np.mean(by_hand) < high
    assert found.ranked() == [telling, forward]
    assert any(BEST_HERE in line and "uniform-8-0@1" in line for line in notes(found))


@pytest.mark.long
def test_what_draws_nothing_runs_once(mine):
    found = compared(["nearest-neighbor", "mine:forward"], [tsp()], seeds=3)
    assert [(each.method.name, each.seed) for each in found.attempts] == [
        ("nearest-neighbor", 0), ("mine:forward", 0), ("mine:forward", 1), ("mine:forward", 2)
    ]  # fmt: skip


def test_a_failure_is_in_no_mean(mine):
    found = compared(["mine:forward", "mine:crashing"], [tsp()])
    crashed = found.methods[1]
    assert found.summary(crashed).mean_gap is None
    assert found.ranked()[-1] is crashed
    assert by_method(found).rows[-1][4] == "1/1"
    [line] = [line for line in notes(found) if "mine:crashing" in line]
    assert line.startswith("mine:crashing on uniform-8-0@0, seed 0: crash: IndexError")


def test_a_stop_keeps_what_is_finished(mine):
    kept = []

    def keep(attempt):
        kept.append(attempt)
        if len(kept) == 2:
            raise KeyboardInterrupt

    found = compared(["mine:forward", "mine:telling"], [tsp(8, 0), tsp(8, 1)], keep=keep)
    assert isinstance(found.stop, KeyboardInterrupt)
    assert list(found.attempts) == kept
    assert found.instances[1].reference is None
    assert [row[1] for row in by_method(found).rows] == ["1/2", "1/2"]
    assert notes(found)[0].startswith("stopped early: 2 attempts")
    assert "stopped early" in markdown(found)


def test_a_stop_before_anything_is_finished_leaves_the_tables_that_are_there(mine):
    def read():
        return {each.name: each.read_bytes() for each in Path("out").iterdir()}

    methods = methods_of(TSP, {}, ["mine:forward"])
    folder = Folder("out", TSP, [tsp()], methods)
    folder.make()
    folder.write(compare(TSP, [tsp()], methods, seconds=1, keep=folder.keep))
    before = read()

    def stop(what, done, total):
        raise KeyboardInterrupt

    found = compare(TSP, [tsp()], methods, seconds=1, progress=stop)
    [line] = Folder("out", TSP, [tsp()], methods).write(found)
    assert line == "nothing is finished, so nothing is written to out"
    assert read() == before


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"seconds": 0.0}, "the time must be between"),
        ({"seconds": math.nan}, "the time must be between"),
        ({"seeds": 0}, "at least 1"),
        ({"workers": 10_000}, "--workers is 10000, but this process may use"),
    ],
)
def test_senseless_numbers_are_refused(mine, more, says):
    with pytest.raises(InputError, match=says):
        compared(["mine:forward"], [tsp()], **more)


# --- curves ---------------------------------------------------------------------------------------


def made(curves, seconds=10.0):
    """A comparison with such curves, {method: {instance: points}}, and references of 100."""
    names = list(next(iter(curves.values())))
    instances = [replace(tsp(5, k), name=name, reference=100.0) for k, name in enumerate(names)]
    methods = [Method(name, "") for name in curves]
    attempts = []
    for method in methods:
        for instance in instances:
            points = tuple(curves[method.name][instance.name])
            timed = Timed("ok", "", [*range(5)], points[-1][1], points, seconds, seconds)
            attempts.append(Attempt(instance, method, 0, 1, timed))
    return Comparison(TSP, tuple(instances), tuple(methods), tuple(attempts), seconds, 1, 1)


def test_a_curve_is_the_mean_over_instances_once_all_have_a_solution():
    found = made({"a": {"x": [(1.0, 120.0), (4.0, 110.0)], "y": [(2.0, 104.0), (3.0, 100.0)]}})
    seconds, gaps = curve(found, found.methods[0])
    assert seconds.tolist() == [2.0, 3.0, 4.0]
    assert gaps.tolist() == pytest.approx([12.0, 10.0, 5.0])


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_the_picture(tmp_path, suffix):
    many = {f"m{k}$_{{": {"x": [(0.1, 100.0 + k), (0.2 + k, 99.5 + k)]} for k in range(10)}
    found = made(many)
    assert plot_curves(found, tmp_path / f"a{suffix}")
    assert plot_curves(found, tmp_path / f"b{suffix}")
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()
    if suffix == ".svg":
        assert "<svg" in (tmp_path / "a.svg").read_text()


def test_without_a_gap_there_is_no_picture(tmp_path):
    found = made({"a": {"x": [(1.0, 120.0)]}})
    bare = replace(found, instances=(replace(found.instances[0], reference=None),))
    assert not plot_curves(bare, tmp_path / "a.svg")
    assert not (tmp_path / "a.svg").exists()


# --- files ----------------------------------------------------------------------------------------


def write_tsp(path, seed=0, n=8, name=None):
    coords = np.random.default_rng(seed).integers(0, 100, (n, 2))
    rows = "\n".join(f"{k + 1} {x} {y}" for k, (x, y) in enumerate(coords))
    path.write_text(
        f"NAME : {name or path.stem}\nTYPE : TSP\nDIMENSION : {n}\n"
        f"EDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n{rows}\nEOF\n"
    )
    return path


ON = ["--against", "mine:forward", "mine:telling", "--time", "0.5"]


def rows_of(folder):
    with open(folder / "table.csv", newline="") as file:
        return list(csv.DictReader(file))


def ours(monkeypatch):
    """No pair: what these tests are about needs no sandbox."""
    monkeypatch.setattr(type(TSP), "pair", "")


@pytest.mark.long
def test_the_command(mine, capsys, monkeypatch):
    ours(monkeypatch)
    files = [write_tsp(mine / f"i{k}.tsp", k) for k in range(2)]
    (mine / "i0.sol.json").write_text("{}")
    argv = ["compare", *map(str, files), *ON, "--seeds", "2", "--out", "a/b"]
    assert main(argv) == 0
    out, err = capsys.readouterr()
    assert "2 instances, 2 methods, 2 seeds, 0.5 s each" in err
    assert "solutions and tables: a/b" in out
    folder = mine / "a" / "b"
    assert {path.name for path in folder.iterdir()} == {
        *TABLES, "curves.svg",
        *(f"i{k}.mine-{who}.tour" for k in range(2) for who in ("forward", "telling")),
    }  # fmt: skip
    rows = rows_of(folder)
    assert len(rows) == 8
    for row in rows:
        instance = TSP.read(mine / f"{row['instance']}.tsp")
        tour = TSP.read_solution(folder / row["solution"], instance)
        assert float(row["cost"]) == length(instance, tour)
        assert float(row["gap"]) >= 0
        assert float(row["seconds"]) >= 0
        assert (row["status"], row["cores"]) == ("ok", "1")
    record = json.loads((folder / "table.json").read_text())
    assert len(record["attempts"]) == 8
    assert record["stopped"] is False
    assert record["summary"][0]["gap"] <= record["summary"][1]["gap"]
    assert "| i0 | mine:telling |" in (folder / "table.md").read_text()
    # Again: the same but for the seconds.
    assert main(argv) == 0
    timeless = [{k: v for k, v in row.items() if "seconds" not in k} for row in rows]
    assert [{k: v for k, v in row.items() if "seconds" not in k} for row in rows_of(folder)] == (
        timeless
    )


@pytest.mark.long
def test_instances_of_one_name_are_rows_of_their_own(mine, capsys, monkeypatch):
    ours(monkeypatch)
    for k, day in enumerate(("mon", "tue")):
        (mine / day).mkdir()
        write_tsp(mine / day / "route.tsp", k, name="route")
    write_tsp(mine / "late.tsp", 2, name="route")
    (mine / "best.csv").write_text("name,cost\nroute,1000\n")
    argv = ["compare", "mon", "tue", "late.tsp", "--problem", "tsp", "--references", "best.csv"]
    assert main([*argv, "--against", "mine:forward", "--time", "0.5", "--out", "out"]) == 0
    out = capsys.readouterr().out
    files = ["mon/route.tsp", "tue/route.tsp", "./late.tsp"]
    costs = {}
    for row in rows_of(mine / "out"):
        [file] = [each for each in files if row["instance"] == f"route ({Path(each)})"]
        instance = TSP.read(mine / file)
        assert float(row["cost"]) == length(instance, range(instance.size))
        assert TSP.read_solution(mine / "out" / row["solution"], instance) is not None
        assert float(row["reference"]) == 1000, "found by the name that is in the file"
        costs[file] = float(row["cost"])
    assert len(set(costs.values())) == 3
    curves = (mine / "out" / "curves.csv").read_text()
    for file, cost in costs.items():
        assert re.search(rf"^route \({Path(file)}\) +mine:forward +{cost:g} ", out, re.MULTILINE)
        assert f"route ({Path(file)}),mine:forward,0," in curves
    assert "route (mon/route.tsp), route (tue/route.tsp)" in out  # of the negative gaps


@pytest.mark.long
def test_a_better_solution_stays(mine, capsys, monkeypatch):
    ours(monkeypatch)
    file = write_tsp(mine / "i.tsp")
    instance = TSP.read(file)
    best = TSP.construct(instance)
    assert length(instance, best) < length(instance, range(8))
    (mine / "out").mkdir()
    TSP.write(mine / "out" / "i.mine-forward.tour", instance, best)
    argv = ["compare", str(file), "--against", "mine:forward", "--out", "out"]
    assert main(argv) == 0
    assert "kept: out/i.mine-forward.tour" in capsys.readouterr().out
    assert TSP.read_solution(mine / "out" / "i.mine-forward.tour", instance) == best
    assert main([*argv, "--force"]) == 0
    assert TSP.read_solution(mine / "out" / "i.mine-forward.tour", instance) == [*range(8)]


@pytest.mark.parametrize("name", [*TABLES, "curves.svg", "i.mine-forward.tour"])
def test_what_something_else_wrote_is_left_alone(mine, capsys, monkeypatch, name):
    ours(monkeypatch)
    file = write_tsp(mine / "i.tsp")
    (mine / "out").mkdir()
    (mine / "out" / name).write_text("a diary\n")
    argv = ["compare", str(file), "--against", "mine:forward", "--out", "out"]
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert name in err
    assert [path.name for path in (mine / "out").iterdir()] == [name]
    assert (mine / "out" / name).read_text() == "a diary\n"
    assert main([*argv, "--force"]) == 0
    assert (mine / "out" / name).read_text() != "a diary\n"


HOSTILE = ["../../escape", "a|b", "line\u2028break", "$x^{", "-rf", ".hidden", "ü" * 200,
           "back\\slash", "con:1?*", "twice", "twice"]  # fmt: skip


@pytest.mark.long
def test_hostile_names_stay_in_the_folder(mine, capsys, monkeypatch):
    ours(monkeypatch)
    files = [write_tsp(mine / f"f{k}.tsp", k, name=name) for k, name in enumerate(HOSTILE)]
    argv = ["compare", *map(str, files), "--against", "mine:forward", "nearest-neighbor"]
    before = {path for path in mine.iterdir() if path.name != "__pycache__"}
    assert main([*argv, "--out", "out"]) == 0
    made = {path for path in mine.iterdir() if path.name != "__pycache__"} - before
    assert made == {mine / "out"}
    tours = [path.name for path in (mine / "out").iterdir() if path.suffix == ".tour"]
    assert len(tours) == len({each.casefold() for each in tours}) == 2 * len(HOSTILE)
    assert all(re.fullmatch(r"[^\W_][\w.-]*", name) for name in tours), tours
    table = (mine / "out" / "table.md").read_text()
    assert "a\\|b" in table
    lines = [line for line in table.splitlines() if "nearest" in line]
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
    assert widths == {9}  # by instance, by method


def test_file_names():
    assert file_names(["a", "A", "a", "", "..", "x" * 500]) == [
        "a", "A-2", "a-3", "unnamed", "unnamed-2", "x" * 120
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["nothing.tsp"], "nothing.tsp does not exist"),
        (["i.tsp", "j.vrp"], "compare on one problem at a time"),
        (["i.dat"], "so say which --problem it is of"),
        (["i.tsp", "--against", "tabu"], "'tabu' is no baseline of tsp"),
        (["i.tsp", "--pair", "no.py"], "no.py"),
        (["i.tsp", "--out", "i.tsp"], "i.tsp is a file: give the name of a folder"),
        (["i.tsp", "--plot", "curves.gif"], "a picture ends in .png, .svg, .pdf"),
        (["i.tsp", "--plot", "no/where.svg"], "no folder"),
        (["i.tsp", "--workers", "9999"], "--workers is 9999, but this process may use"),
        (["i.tsp", "--references", "no.csv"], "no.csv does not exist"),
        (["i.tsp", "--time", "0"], "is not a number from"),
        (["i.tsp", "--pari", "x"], "did you mean --pair?"),
    ],
)
def test_bad_input_is_one_sentence(mine, capsys, argv, says):
    write_tsp(mine / "i.tsp")
    before = sorted(mine.iterdir())
    assert main(["compare", *argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("spo: ")
    assert err.count("\n") == 1
    assert says in err
    assert [path for path in sorted(mine.iterdir()) if path.name != "__pycache__"] == before


def test_where_all_fail_the_exit_code_says_so(mine, capsys, monkeypatch):
    ours(monkeypatch)
    write_tsp(mine / "i.tsp")
    assert main(["compare", "i.tsp", "--against", "mine:crashing"]) == 1
    assert "IndexError" in capsys.readouterr().out
    assert not (mine / "comparison" / "curves.svg").exists()


@pytest.mark.long
def test_ctrl_c_writes_what_is_finished(mine):
    """As a person does it: exit code 130, the table of what is done, no process left."""
    write_tsp(mine / "i.tsp")
    process = subprocess.Popen(
        [sys.executable, "-m", "spo_jax", "compare", "i.tsp", "--pair", "shipped", "--time", "0.6",
         "--against", "mine:forward", "mine:endless"],
        cwd=mine, env={**os.environ, "PYTHONPATH": f"{mine}:{os.environ.get('PYTHONPATH', '')}"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    try:
        end = time.monotonic() + 120
        while not (mine / "endless").exists() and time.monotonic() < end:
            time.sleep(0.05)
            assert process.poll() is None, process.communicate()
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, (out, err)
    assert "Traceback" not in err
    assert "picture: comparison/curves.svg" in out, (out, err)
    assert "stopped early: 2 attempts are finished" in out
    assert "mine:forward" in out
    folder = mine / "comparison"
    assert {path.name for path in folder.iterdir()} == {
        *TABLES, "curves.svg", "i.pair.tour", "i.mine-forward.tour"
    }  # fmt: skip
    assert [row["method"] for row in rows_of(folder)] == ["pair", "mine:forward"]
    assert gone(int((mine / "endless").read_text()))


# --- our own methods under a limit of time --------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "alns"), [(TSP, tsp_alns), (CVRP, cvrp_alns)], ids=["tsp", "cvrp"]
)
def test_alns_tells_each_new_best(problem, alns):
    reported = []
    instance = problem.sample(20, 1, 3)[0]
    found = alns.alns(instance, 0, steps=60, report=reported.append)
    assert found == alns.alns(instance, 0, steps=60)
    costs = [problem.cost(instance, problem.rules(instance).repaired(each)) for each in reported]
    history = alns.alns_search(instance, 0, Settings(iterations=60)).best_cost
    assert costs == sorted(set(history.tolist()), reverse=True)
    assert reported[-1] == found
    timely = alns.alns(instance, 0, seconds=0.2)
    assert problem.cost(instance, problem.rules(instance).repaired(timely)) <= costs[0]
    # The start alone, where the time is over at once.
    assert alns.alns(instance, 0, seconds=1e-9) == reported[0]


def test_the_temperature_by_time_is_that_by_iterations():
    settings = Settings(iterations=10)
    by_time = list(zip(range(10), cooling(100.0, settings, 30.0), strict=False))
    first = settings.worse * 100.0 / math.log(2)
    assert by_time[0][1] == pytest.approx(first, rel=1e-3)
    assert list(cooling(100.0, settings, 1e-9)) == []


@pytest.mark.long
@pytest.mark.parametrize("problem", [TSP, CVRP], ids=lambda each: each.name)
def test_everything_that_is_declared_runs(problem, tmp_path):
    """From Python: each row is feasible, and no worse than the start where it begins there."""
    for package in ("elkai", "ortools", "pyvrp"):
        pytest.importorskip(package, reason="the solvers extra is not installed")
    [instance] = problem.sample(15, 1, 1)
    found = spo_jax.compare(instance, seconds=0.3, out=tmp_path / "out")
    assert [each.found.status for each in found.attempts] == ["ok"] * (2 + len(problem.baselines))
    by_name = {each.method.name: each for each in found.attempts}
    assert list(by_name) == ["pair", "construction", *problem.baselines]
    for name, each in by_name.items():
        solution = problem.rules(instance).repaired(each.found.solution)
        assert each.found.cost == problem.cost(instance, solution)
        file = tmp_path / "out" / f"uniform-15-0-1.{name}{problem.solution_suffix}"
        written = problem.read_solution(file, instance)
        assert problem.cost(instance, written) == pytest.approx(each.found.cost)
    assert by_name["pair"].found.cost <= by_name["construction"].found.cost
    assert by_name["pair"].found.cpu_seconds > 0
    best = min(each.found.cost for each in found.attempts)
    assert found.instances[0].reference == pytest.approx(best)
    assert (tmp_path / "out" / "curves.svg").exists()


def test_from_python_errors_name_arguments(mine):
    with pytest.raises(InputError, match=r"^workers is 9999"):
        spo_jax.compare(tsp(), against="mine:forward", workers=9999)
    with pytest.raises(InputError, match="is an instance of cvrp, not of tsp"):
        spo_jax.compare(CVRP.sample(5, 1, 0)[0], problem="tsp")
    with pytest.raises(InputError, match="there is nothing to compare on"):
        spo_jax.compare([])


def test_the_example_of_the_page(monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "comparing.md").read_text("utf-8")
    [text] = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    names: dict = {}
    exec(text, names)
    reported: list = []
    instance = tsp(30)
    tour = names["solve"](instance, 0, seconds=0.3, report=lambda each: reported.append([*each]))
    costs = [TSP.cost(instance, TSP.rules(instance).repaired(each)) for each in reported]
    assert costs == sorted(costs, reverse=True)
    assert TSP.cost(instance, tour) == costs[-1] < length(instance, range(30))

"""spo evaluate and spo solve, without the command line: groups, gaps, failures, references."""

import io
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spo_jax.cache import cache_folder
from spo_jax.envs.files.specs import parse_spec
from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.evaluation import (
    GroupResult,
    InstanceResult,
    Report,
    RolloutResult,
    evaluate,
    summarise,
)
from spo_jax.envs.report.reporting import (
    below_references,
    console,
    notes,
    proven,
    show_report,
)
from spo_jax.envs.report.searched import conditions
from spo_jax.envs.report.solve import cpu_limit, default_output, problem_of, solve
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program

TSP = get_problem("tsp")

DESTROY = """
def destroy(dist, current_tour, steps_since_improvement, rng):
    removed = rng.sample(current_tour, 3)
    return [node for node in current_tour if node not in removed], removed
"""
REPAIR = """
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    for node in removed_nodes:
        costs = [
            dist[tour[k - 1]][node] + dist[node][tour[k]] - dist[tour[k - 1]][tour[k]]
            for k in range(len(tour))
        ]
        tour.insert(costs.index(min(costs)), node)
    return tour
"""
# Fails on every instance of more than 12 nodes.
FUSSY = REPAIR.replace(
    "    tour = list", "    if len(dist) > 12:\n        return []\n    tour = list"
)


def pair_of(repair: str = REPAIR, destroy: str = DESTROY) -> Pair:
    return Pair(
        Program.from_source("destroy", destroy, "Remove three."),
        Program.from_source("repair", repair, "Insert cheaply."),
    )


def write_tsp(path: Path, coords: list[tuple[int, int]]) -> Path:
    lines = [f"NAME : {path.stem}", "TYPE : TSP", f"DIMENSION : {len(coords)}"]
    lines += ["EDGE_WEIGHT_TYPE : EUC_2D", "NODE_COORD_SECTION"]
    lines += [f"{k} {x} {y}" for k, (x, y) in enumerate(coords, 1)]
    path.write_text("\n".join([*lines, "EOF"]) + "\n")
    return path


@pytest.fixture
def square(tmp_path: Path) -> Path:
    """Twelve nodes around a square of side 30, whose optimum, 120, is recorded beside it."""
    side = [(0, 0), (10, 0), (20, 0)]
    around = [*side, *((30, x) for x, _ in side), *((30 - x, 30) for x, _ in side)]
    around += [(0, 30 - x) for x, _ in side]
    path = write_tsp(tmp_path / "square.tsp", around)
    (tmp_path / "solutions.json").write_text('{"square": 120}')
    return path


# --- specs ----------------------------------------------------------------------------------------


def test_uniform_specs():
    spec = parse_spec("uniform:20x3@7", TSP)
    assert spec.uniform == (20, 3, 7)
    assert [each.digest for each in spec.load(TSP)] == [i.digest for i in TSP.sample(20, 3, 7)]
    assert parse_spec("uniform:20x3", TSP).uniform == (20, 3, None)


@pytest.mark.parametrize(
    "text",
    ["uniform:20", "uniform:x3", "uniform:20x0", "uniform:2x3", "uniform:20x3@", "uniform:20x3@-1",
     "uniform:-5x3", "uniform:5.5x3", "uniform:99999x9999", "uniform:", "nothing.tsp", "a\0b"],
)  # fmt: skip
def test_bad_specs(text):
    with pytest.raises(InputError) as caught:
        parse_spec(text, TSP)
    assert "\n" not in str(caught.value)


def test_folders_are_read_in_order_and_in_depth(tmp_path):
    corners = [(0, 0), (1, 0), (1, 1), (0, 1)]
    (tmp_path / "deep").mkdir()
    for name in ("b.tsp", "a.TSP", "deep/c.tsp"):
        write_tsp(tmp_path / name, corners)
    (tmp_path / "c.vrp").write_text("not looked at")
    spec = parse_spec(str(tmp_path), TSP)
    assert [path.name for path in spec.paths] == ["a.TSP", "b.tsp", "c.tsp"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no instance of tsp"):
        parse_spec(str(tmp_path / "empty"), TSP)


def test_the_cache_folder_can_be_named(monkeypatch):
    monkeypatch.setenv("SPO_CACHE", "/somewhere")
    assert cache_folder() == Path("/somewhere")
    monkeypatch.delenv("SPO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder() == Path("/caches/spo-jax")


# --- evaluate -------------------------------------------------------------------------------------


def test_a_report_recomputes(square):
    saved: list[Report] = []
    report = evaluate(
        pair_of(), TSP, [str(square), "uniform:10x2@3"], steps=60, seeds=2, references="none",
        save=saved.append,
    )  # fmt: skip
    assert [each.complete for each in saved] == [False, True]
    assert saved[-1] is report
    read = json.loads(report.to_json(), parse_constant=pytest.fail)
    assert [group["name"] for group in read["groups"]] == [str(square), "uniform:10x2@3"]
    instances = [TSP.read(square), *TSP.sample(10, 2, 3)]
    results = [each for group in read["groups"] for each in group["instances"]]
    assert [each["name"] for each in results] == ["square", "uniform-10-0@3", "uniform-10-1@3"]
    for instance, result in zip(instances, results, strict=True):
        assert result["size"] == instance.size
        assert [each["seed"] for each in result["rollouts"]] == [0, 1]
        for rollout in result["rollouts"]:
            tour = rollout["solution"]
            assert sorted(tour) == list(range(instance.size))
            cost = math.fsum(
                instance.dist[a, b] for a, b in zip(tour, tour[1:] + tour[:1], strict=True)
            )
            assert rollout["best_cost"] == pytest.approx(cost, abs=1e-9)
            assert rollout["best_cost"] <= rollout["initial_cost"]
            assert (rollout["status"], rollout["reason"]) == ("ok", "")
            if instance.name == "square":
                assert result["reference"] == 120
                assert rollout["gap"] == pytest.approx(100 * (cost - 120) / 120, abs=1e-9)
            else:
                assert result["reference"] is rollout["gap"] is None
                assert result["reference_source"]
    summary = read["groups"][1]["summary"]
    assert summary["mean_gap"] is summary["gap_interval"] is None
    assert "no reference" in notes(report.groups[1])[0]


def test_failures_are_counted_and_in_no_mean():
    report = evaluate(
        pair_of(FUSSY), TSP, ["uniform:12x1", "uniform:13x2"], steps=5, seeds=2, references="none"
    )
    fine, bad = report.groups
    assert (fine.summary.failed, bad.summary.failed) == (0, 4)
    assert (bad.summary.mean_cost, bad.summary.rollouts) == (None, 4)
    rollout = bad.instances[1].rollouts[1]
    assert rollout.status == "invalid"
    assert "every node" in rollout.reason
    assert rollout.best_cost is rollout.initial_cost is rollout.solution is None
    assert "4 of 4 rollouts failed" in notes(bad)[0]
    json.loads(report.to_json(), parse_constant=pytest.fail)


@pytest.mark.long
def test_programs_may_see_no_state(square):
    """Then they see 0 at every step, which is said; `spo solve` does likewise."""
    blind = DESTROY.replace("current_tour, 3", "current_tour, 3 + (steps_since_improvement > 0)")
    pair = pair_of(destroy=blind)
    options = {"steps": 60, "seeds": 2}
    reports = [
        evaluate(each, TSP, [str(square)], state=state, **options)
        for each, state in ((pair, True), (pair, False), (pair_of(), True))
    ]
    ends = [
        [each.solution for each in report.groups[0].instances[0].rollouts] for report in reports
    ]
    assert ends[0] != ends[1] == ends[2]
    assert [report.settings["state"] for report in reports] == ["stagnation", "none", "stagnation"]
    remarked = []
    for report in reports[:2]:
        out = io.StringIO()
        show_report(report, console(out))
        remarked.append("steps_since_improvement is 0 at every step" in out.getvalue())
    assert remarked == [False, True]
    tours = [
        solve(
            TSP.read(square),
            each,
            TSP,
            start="random",
            acceptance="improving",
            steps=60,
            state=state,
        ).solution
        for each, state in ((pair, True), (pair, False), (pair_of(), True))
    ]
    assert tours[0] != tours[1] == tours[2]
    assert conditions("stagnation", "fail") == []
    assert "rejected step" in conditions("stagnation", "skip")[0]


def test_workers_change_nothing_but_the_seconds():
    def costs(workers: int) -> list[float | None]:
        report = evaluate(
            pair_of(), TSP, ["uniform:15x2"], steps=20, seeds=2, references="none", workers=workers
        )
        return [r.best_cost for i in report.groups[0].instances for r in i.rollouts]

    assert costs(1) == costs(2)


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        (pair_of(DESTROY.replace("destroy(", "repair(")), "the repair program cannot run on tsp"),
        (pair_of(destroy="import os\n" + DESTROY), "the destroy program cannot run on tsp"),
    ],
)
def test_a_refused_program_is_the_users_to_mend(pair, says):
    with pytest.raises(InputError, match=says):
        evaluate(pair, TSP, ["uniform:10x1"], steps=5, references="none")


def test_a_bad_file_is_found_before_anything_runs(tmp_path):
    (tmp_path / "bad.tsp").write_text("NAME : bad\n")
    done: list[str] = []
    with pytest.raises(InputError, match=r"bad\.tsp"):
        evaluate(
            pair_of(), TSP, ["uniform:10x1", str(tmp_path)], steps=5, references="none",
            progress=lambda what, *_: done.append(what),
        )  # fmt: skip
    assert not done


def test_references_are_solved_once(tmp_path):
    pytest.importorskip("elkai")
    for _ in range(2):
        report = evaluate(pair_of(), TSP, ["uniform:10x2"], steps=50, seeds=1, cache=tmp_path)
        assert "LKH" in report.groups[0].instances[0].reference_source
        assert all(i.rollouts[0].gap >= -1e-9 for i in report.groups[0].instances)
    assert len(list(tmp_path.iterdir())) == 2


def own_references(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mine.csv"
    path.write_text(text)
    return str(path)


def test_references_of_the_user(square, tmp_path):
    pytest.importorskip("elkai")
    mine = own_references(tmp_path, "name,cost,source\nuniform-10-1@3,2.0,Sol\nsquare,125,old\n")
    report = evaluate(
        pair_of(), TSP, ["uniform:10x2@3", str(square)], steps=5, seeds=1, cache=tmp_path,
        references=mine, effort="quick",
    )  # fmt: skip
    assert report.settings["references"] == mine
    assert report.settings["reference_effort"] == "quick"
    (first, second), (third,) = (group.instances for group in report.groups)
    assert first.certified
    assert "LKH" in first.reference_source
    assert (second.reference, second.certified) == (2.0, False)
    assert second.reference_source == f"Sol ({mine}, line 2)"
    assert third.reference == 120
    assert f"solutions.json ({mine}, line 3 says 125)" in third.reference_source
    assert report.remarks == (
        "mine.csv has references of 2 of 3 instances",
        "1 of them are worse than what is known and are not used; the first, "
        f"{mine}, line 3: 125 for square, where 120 is known",
    )
    assert json.loads(report.to_json())["remarks"] == list(report.remarks)


def test_a_reference_of_another_instance_is_found_before_anything_runs(square, tmp_path):
    done: list[str] = []
    for row, says in [
        (f"square,{'0' * 32},120", "digest is of another"),
        ("square,,1", "any solu"),
    ]:
        mine = own_references(tmp_path, f"name,digest,cost\n{row}\n")
        with pytest.raises(InputError, match=says):
            evaluate(
                pair_of(), TSP, ["uniform:10x1", str(square)], steps=5, references=mine,
                cache=tmp_path, progress=lambda what, *_: done.append(what),
            )  # fmt: skip
    with pytest.raises(
        InputError, match="sovle does not exist: references are solve, none or a file"
    ):
        evaluate(pair_of(), TSP, ["uniform:10x1"], steps=5, references="sovle")
    with pytest.raises(InputError, match="unknown effort 'much'"):
        evaluate(pair_of(), TSP, ["uniform:10x1"], steps=5, effort="much")
    assert not done


def test_reports_say_what_is_proven_and_why_gaps_are_negative():
    def named(name: str, gap: float, source: str, certified: bool = False) -> InstanceResult:
        return replace(result([gap]), name=name, reference_source=source, certified=certified)

    solver = "LKH (elkai 2.0.1), runs=3"
    exact = f"{solver}, proven by branch and cut"
    groups = [
        [named("u0", 1.0, exact, True), named("u1", 1.0, exact, True)],
        [named("v0", 1.0, solver), named("v1", -0.5, solver)],
        [named("P-n22-k8", -2.0, "P-n22-k8.sol"), named("A-n32-k5", 0.1, "A-n32-k5.sol")],
        [named("X-n101-k25", -1e-12, "X-n101-k25.sol"), named("B-n51-k7", -1.0, "index.json")],
    ]
    found = [
        GroupResult(name, summarise(group), tuple(group))
        for name, group in zip("abcd", groups, strict=True)
    ]
    assert [proven(group) for group in found] == [
        f"a: references by {exact}; 2 of 2 are proven optimal",
        f"b: references by {solver}; 0 of 2 are proven optimal",
        "",
        "",
    ]
    report = Report("0", "tsp", None, {}, groups=tuple(found), remarks=("of the user",))
    fixed, others = below_references(report)
    assert fixed.startswith("Negative gaps on P-n22-k8, B-n51-k7: the recorded optima of the sets")
    assert others.startswith("Negative gaps on v1: the reference is the best known cost")
    assert below_references(replace(report, groups=(found[0],))) == []
    text = io.StringIO()
    show_report(report, console(text))
    below = text.getvalue().split("\n")[5:]
    assert below == [proven(found[0]), proven(found[1]), "of the user", fixed, others, ""]


def test_without_a_solver_the_gap_is_null_and_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "elkai", None)  # as if not installed
    report = evaluate(pair_of(), TSP, ["uniform:10x1"], steps=5, seeds=1, cache=tmp_path)
    instance = report.groups[0].instances[0]
    assert instance.reference is instance.rollouts[0].gap is None
    assert "pip install" in instance.reference_source


def test_instances_of_one_name_are_told_apart(tmp_path):
    """Files of one name: a row for each, and the line on a failure says whose it is."""
    (tmp_path / "days").mkdir()
    for day, size in (("mon", 10), ("tue", 14)):
        coords = [(k * k % 17, 3 * k) for k in range(size)]
        text = write_tsp(tmp_path / f"{day}.tsp", coords).read_text()
        head, _, rest = text.partition("\n")
        assert head.startswith("NAME")
        (tmp_path / "days" / f"{day}.tsp").write_text(f"NAME : route\n{rest}")
    report = evaluate(pair_of(FUSSY), TSP, [str(tmp_path / "days")], steps=5, seeds=1)
    [group] = report.groups
    found = {each.name: (each.size, each.rollouts[0].status) for each in group.instances}
    assert found == {"route (mon.tsp)": (10, "ok"), "route (tue.tsp)": (14, "invalid")}
    assert any("the first, route (tue.tsp) seed 0" in line for line in notes(group))


# --- summaries by hand ----------------------------------------------------------------------------


def result(gaps: list[float | None]) -> InstanceResult:
    return InstanceResult(
        "x", 10, 100.0, "file", False,
        tuple(
            RolloutResult(s, "ok", "", 200.0, 100 + gap, gap, 1.0, [])
            if gap is not None
            else RolloutResult(s, "timeout", "too slow", None, None, None, 2.0, None)
            for s, gap in enumerate(gaps)
        ),
    )  # fmt: skip


def test_an_instance_counts_once_however_many_of_its_rollouts_failed():
    found = summarise([result([1.0, 3.0]), result([8.0, None]), result([None, None])])
    assert found.mean_gap == pytest.approx((2.0 + 8.0) / 2)
    assert (found.rollouts, found.failed, found.with_gap) == (6, 3, 2)
    assert found.mean_cost == pytest.approx((101 + 103 + 108) / 3)
    assert found.mean_seconds == 1.0
    # Of two means Student's t is 12.7062, and the standard error 3.
    assert found.gap_interval == pytest.approx((5 - 38.1186, 5 + 38.1186), abs=1e-3)


def test_the_interval_is_over_instances_or_the_rollouts_of_one():
    many = summarise([result([0.0, 10.0]) for _ in range(8)])
    assert many.gap_interval == (5.0, 5.0)  # all instances have the same mean
    one = summarise([result([0.0, 10.0])])
    assert one.gap_interval == pytest.approx((5 - 63.531, 5 + 63.531), abs=1e-3)
    assert summarise([result([4.0])]).gap_interval is None
    spread = np.random.default_rng(0).normal(3, 1, 64)
    low, high = summarise([result([gap]) for gap in spread]).gap_interval or (0, 0)
    half = 1.96 * spread.std() / 8  # the normal approximation
    assert low == pytest.approx(spread.mean() - half, abs=0.1)
    assert high == pytest.approx(spread.mean() + half, abs=0.1)


def test_no_interval_is_below_zero_where_references_are_proven():
    """A gap to an optimum is never negative but for rounding; one to a best known cost may be."""
    known, proven = result([1.0]), replace(result([3.0]), certified=True)
    unknown = result([None])
    high = pytest.approx(2 + 12.7062, abs=1e-3)
    assert summarise([proven, replace(known, certified=True), unknown]).gap_interval == (0.0, high)
    assert summarise([proven, known]).gap_interval == (pytest.approx(2 - 12.7062, abs=1e-3), high)
    rounded = replace(result([-1e-13, 0.0]), certified=True)
    low, _ = summarise([rounded]).gap_interval or (1, 1)
    assert low == -1e-13


# --- solve ----------------------------------------------------------------------------------------


def test_names():
    assert problem_of("a/b.TSP") == "tsp"
    assert problem_of("b.vrp") == "cvrp"
    assert problem_of("R101.TXT") == "vrptw"
    with pytest.raises(InputError, match="--problem"):
        problem_of("b.dat")
    assert default_output("/data/a280.tsp", get_problem("tsp")) == Path("a280.spo.tour")
    assert default_output("A-n32-k5.vrp", get_problem("cvrp")) == Path("A-n32-k5.spo.sol")
    small, large = TSP.sample(10, 1, 0)[0], TSP.sample(1000, 1, 0)[0]
    assert cpu_limit(TSP, large) == 4 * cpu_limit(TSP, small) == 40 * TSP.cpu_seconds

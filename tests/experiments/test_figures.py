"""Figures: numbers by hand, equal files for equal data, and each script once on a tiny run."""

import ast
import contextlib
import csv
import itertools
import json
import math
import shutil
import sqlite3
import sys
import warnings
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import anytime
import case_study
import cross_play
import dynamics
import interventions
import spo_jax
from common import budgets, contenders, figures
from common import evaluated as evaluation
from common import runs as rounds
from common.budgets import Budget
from common.evaluated import Evaluated
from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.intervals import mean_interval
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.observation import INVERTED, fixed, given
from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError
from spo_jax.program import load_pair, save_pair
from spo_jax.runs.database.store import dump
from spo_jax.runs.folders import DATABASE
from spo_jax.runs.run import load_run

NAN = math.nan
TSP, CVRP = get_problem("tsp"), get_problem("cvrp")


def test_edges_of_tours_and_routes():
    tsp, cvrp = TSP.sample(4, 1, 0)[0], CVRP.sample(4, 1, 0)[0]
    assert figures.edges_of(tsp, [2, 0, 3, 1]) == {(0, 2), (0, 3), (1, 3), (1, 2)}
    assert figures.edges_of(tsp, [2, 0]) == {(0, 2)}
    assert figures.edges_of(cvrp, [[3, 1], [], [2]]) == {(0, 3), (1, 3), (0, 1), (0, 2)}


@pytest.mark.slow
def test_equal_figures_are_equal_files(tmp_path):
    def drawn(stem):
        figure, panels = figures.new(2, 1.5)
        figures.log_axis(panels[0, 0], "y")
        panels[0, 0].plot([1, 2], [3, 400])
        figures.publish(figure, str(stem), "A line.", [(1, NAN), (None, 0.5)], ("x", "y"))
        return [Path(f"{stem}{s}").read_bytes() for s in (".png", ".pdf", ".csv", ".txt")]

    png, pdf, table, text = drawn(tmp_path / "a")
    assert png.startswith(b"\x89PNG")
    assert pdf.startswith(b"%PDF")
    assert (table, text) == (b"x,y\n1.0,\n,0.5\n", b"A line.\n")
    assert drawn(tmp_path / "b") == [png, pdf, table, text]


# --- the numbers of each figure -------------------------------------------------------------------


def test_a_mean_gap_and_its_band_by_hand():
    instances = [
        replace(i, reference=r) for i, r in zip(TSP.sample(4, 2, 0), (2.0, 4.0), strict=True)
    ]
    cost = np.array([[[2.0, 3.0], [5.0, 4.0]], [[2.0, NAN], [4.0, 4.0]]])
    # 0, 50, 25 and 0 percent; the second pair failed once.
    np.testing.assert_allclose(dynamics.mean_gaps(cost, instances), [18.75, NAN])
    mean, spread = dynamics.summary([[4.0, 2.0, 1.0], [2.0, 1.0]])
    np.testing.assert_allclose(mean, [3.0, 1.5])
    np.testing.assert_allclose(spread, [math.sqrt(2), math.sqrt(0.5)])
    assert np.isnan(dynamics.summary([[1.0]])[1]).all()


def evaluated(best_cost, references):
    cost = np.array(best_cost, float)
    shape = cost.shape[:2]
    sampled = TSP.sample(9, len(cost), 0)
    return Evaluated(
        "it",
        [replace(i, reference=float(r)) for i, r in zip(sampled, references, strict=True)],
        best_cost=cost,
        state=np.zeros((*shape, cost.shape[2] - 1), int),
        seconds=np.ones(shape),
        statuses=np.where(np.isfinite(cost[..., -1]), 0, 3).astype(np.int8),
        reasons=np.full(shape, "", object),
    )


def test_curves_by_hand():
    # Two runs, two instances with references 1 and 2, two rollouts of two steps; one failed.
    first = evaluated(
        [[[3, 2, 1.5], [3, 2, 1.25]], [[4, 3, 2], [NAN, NAN, NAN]]], references=[1, 2]
    )
    second = evaluated([[[3, 3, 1], [3, 1, 1]], [[4, 4, 3], [4, 2, 2]]], references=[1, 2])
    curve = anytime.curve_of(contenders.SPO, [first, second])
    assert curve.steps.tolist() == [1, 2]
    # Instance 0: run means 100, 37.5 and 100, 0. Instance 1: 50, 0 and 50, 25.
    np.testing.assert_allclose(curve.by_instance, [[100, 18.75], [50, 12.5]])
    assert (curve.rollouts, curve.failed) == (8, 1)
    np.testing.assert_allclose(curve.band()[:, 1], [75, 15.625])
    level = anytime.curve_of(contenders.CONTENDERS["2-opt"], [evaluated([[[3]], [[3]]], [2, 3])])
    assert (level.steps.tolist(), level.by_instance.tolist()) == ([0], [[50], [0]])


def test_interventions_by_hand():
    instances = TSP.sample(5, 2, 0)
    state = np.array([[[0, 1, 2, 0]], [[0, 1, -1, -1]]])
    found = interventions.interventions(instances, state)
    assert list(found) == ["fixed 0", "fixed 5", "fixed 10", "shuffled", "inverted"]
    assert [found[f"fixed {k}"] for k in (0, 5, 10)] == [fixed(0), fixed(5), fixed(10)]
    assert found["inverted"] == INVERTED
    shuffled = found["shuffled"]
    assert set(shuffled) == {(i.digest, 0) for i in instances}
    own = shuffled[instances[0].digest, 0]
    assert own.by_step
    assert sorted(own.values) == [0, 0, 1, 2]
    assert own == given(interventions.permuted(state[0, 0], instances[0].digest, 0))
    # Long enough, no two rollouts are permuted alike, and neither is left as it was.
    orders = [interventions.permuted(np.arange(50), d, s) for d in "ab" for s in (0, 1)]
    assert all(sorted(order) == list(range(50)) for order in orders)
    assert all(a != b for a, b in itertools.combinations([list(range(50)), *orders], 2))
    effect = interventions.Effect("it", np.array([[0.5, NAN], [-0.1, 0.2]]))
    count, mean, low, high = effect.interval()
    # An instance counts once, whatever is left of its rollouts: 0.5, and the mean of -0.1 and 0.2.
    assert (count, mean) == (2, pytest.approx(0.275))
    assert (low, high) == mean_interval(np.array([0.5, 0.05]))


def test_interventions_on_another_state_by_hand():
    instances = TSP.sample(5, 2, 0)
    shown = np.full((2, 1, 4, 2), NAN)
    shown[0, 0] = [[0, 0.0], [1, 0.25], [0, 0.5], [1, 0.75]]
    found = interventions.interventions_on("progress", instances, shown)
    assert list(found) == ["first", "middle", "last", "shuffled", "reversed"]
    seen = {what: each[instances[0].digest, 0].values for what, each in found.items()}
    assert seen["first"] == ((0, 0),) * 4
    assert seen["middle"] == ((0, 0.5),) * 4
    assert seen["last"] == ((1, 0.75),) * 4
    assert seen["reversed"] == ((1, 0.75), (0, 0.5), (1, 0.25), (0, 0))
    assert sorted(seen["shuffled"]) == [(0, 0), (0, 0.5), (1, 0.25), (1, 0.75)]
    assert all(type(since) is int for since, _ in seen["shuffled"])
    assert found["last"][instances[1].digest, 0].values == ((0, 0),) * 4  # of a failed rollout
    assert {each.state for each in found["last"].values()} == {"progress"}


@pytest.mark.long
def test_an_intervention_is_judged_over_instances():
    """Rollouts of an instance are alike: as many independent ones would say too much."""
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(400):
        differences = rng.normal(size=(8, 1)) + 0.3 * rng.normal(size=(8, 4))
        _, _, low, high = interventions.Effect("it", differences).interval()
        held += low <= 0 <= high
    assert 0.92 <= held / 400 <= 0.99


def test_cross_play_by_hand():
    gaps = np.arange(16, dtype=float).reshape(4, 4)
    gaps[0, 1] = gaps[2:, 2:] = NAN
    table = cross_play.tabled(gaps, (1, 4), 2)
    # Top left 0, 4 and 5, without the failed pair; top right 2, 3, 6, 7; below left 8, 9, 12, 13.
    np.testing.assert_allclose(table.gaps, [[3, 4.5], [10.5, NAN]])
    assert table.failed.tolist() == [[1, 0], [0, 4]]
    run = Namespace(rounds=30, path=Path("r"))
    assert cross_play.listed(None, run) == (1, 7, 13, 18, 24, 30)
    assert cross_play.listed(None, Namespace(rounds=2)) == (1, 2)
    assert cross_play.listed("1,5", run) == (1, 5)
    for text in ("1,x", "5,1", "2,2"):
        with pytest.raises(InputError, match="--rounds"):
            cross_play.listed(text, run)


def test_the_spread_by_hand():
    square = replace(
        TSP.sample(4, 1, 0)[0],
        dist=np.array([[0, 1, 2, 1], [1, 0, 1, 2], [2, 1, 0, 1], [1, 2, 1, 0]], float),
    )
    # The six distances are four of 1 and two of 2.
    assert case_study.spread(square, [0, 1]) == pytest.approx(1 / (8 / 6))
    assert case_study.spread(square, [0, 2]) == pytest.approx(2 / (8 / 6))
    assert case_study.spread(square, [0, 1, 2, 3]) == pytest.approx(1)
    assert case_study.spread(square, [3]) == 0


# --- each script, once ----------------------------------------------------------------------------

TINY = {
    "mutation_groups": 1, "crossover_groups": 1, "size": 8, "instances": 1, "rollouts": 1,
    "steps": 4, "finalists": 0, "select": "utility", "generator": "grammar", "update": "none",
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of two rounds on 8 nodes, and the folder that it lies in."""
    out = tmp_path_factory.mktemp("out")
    path = out / "run"
    spo_jax.discover("tsp", preset="smoke", path=path, workers=1, **TINY, rounds=2, seed=3)
    return path


@pytest.fixture
def script(run, monkeypatch):
    """Runs a script with the tiny budget on the tiny run; its exit code.

    References are 2, and of the effort that the budget says.
    """
    tiny = Budget(
        "smoke", {"tsp": "smoke", "cvrp": "smoke"}, {"tsp": {9: 2}, "cvrp": {9: 2}},
        evaluation_seeds=2, steps=12, effort="quick",
    )  # fmt: skip
    monkeypatch.setitem(budgets.BUDGETS, "smoke", tiny)

    def referenced(problem, instances, cache, progress, effort="standard", own=None):
        assert effort == "quick"
        return [replace(each, reference=2.0, reference_source="two") for each in instances]

    monkeypatch.setattr(evaluation, "with_references", referenced)

    def main(which, *line):
        arguments = [*line, "--budget", "smoke", "--workers", "1", "--out", str(run.parent)]
        monkeypatch.setattr(sys, "argv", [which.__name__, *map(str, arguments)])
        return which.main()

    return main


def rows(path):
    with open(path) as file:
        return list(csv.DictReader(file))


@pytest.mark.long
def test_rounds_are_read_as_they_were(run):
    table = dump(run)
    valid = [row for row in table["pairs"] if row[3] == "response" and row[4] == "ok"]
    for number, pair in enumerate(rounds.typical_pairs(load_run(run)), 1):
        values = sorted(row[5] for row in valid if row[2] == number)
        at = {row[:2]: row[5] for row in valid}[pair.destroy.digest, pair.repair.digest]
        assert at == values[(len(values) - 1) // 2]
    for role, place in (("destroy", 0), ("repair", 1)):
        best = rounds.best_programs(load_run(run), 1, role, 2)
        earned = {}
        for row in valid:
            if row[2] == 1:
                earned.setdefault(row[place], []).append(row[5])
        worth = {d: np.mean(sorted(v)[-2:]) if role == "destroy" else max(v)
                 for d, v in earned.items()}  # fmt: skip
        assert [each.credit for each in best] == pytest.approx(sorted(worth.values())[:-3:-1])
        assert all(worth[each.digest] == pytest.approx(each.credit) for each in best)
    with pytest.raises(InputError, match="rounds 1 to 2, and no round 3"):
        rounds.best_programs(load_run(run), 3, "repair", 1)
    with pytest.raises(InputError, match="valid repair programs, not 999"):
        rounds.best_programs(load_run(run), 1, "repair", 999)


def test_dynamics_repeats_the_discovery(run, script, capsys):
    assert script(dynamics, "--run", run) == 0
    output = capsys.readouterr().out
    assert "J differs" not in output  # what was retained is worth what it was
    out = run.parent
    found = rows(out / "dynamics-tsp.csv")
    assert [row["round"] for row in found] == ["1", "2"]
    known = load_run(run).best_by_round.column("utility")
    assert [float(row["utility"]) for row in found] == list(known)
    # J is 1 - f / f0 on the only instance and rollout, so the gap to 2 is known from f0.
    start = {(float(row["gap_percent"]) / 50 + 2) / (1 - float(row["utility"])) for row in found}
    assert max(start) == pytest.approx(min(start))
    assert all(float(row["median_gap_percent"]) >= float(row["gap_percent"]) for row in found)
    assert (out / "dynamics-tsp.png").exists()


READING = """
def destroy(dist, current_tour, steps_since_improvement, rng):
    '''One node, or two that lie apart.'''
    n = len(current_tour)
    first = rng.randrange(n)
    gone = {current_tour[first]}
    if steps_since_improvement > 4:
        gone.add(current_tour[(first + n // 2) % n])
    return [v for v in current_tour if v not in gone], sorted(gone)


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    '''{where}.'''
    tour = list(partial_tour)
    for v in removed_nodes:
        before = tour[-1:] + tour[:-1]
        extra = [dist[a][v] + dist[v][b] - dist[a][b] for a, b in zip(before, tour)]
        tour.insert(extra.index({where}(extra)), v)
    return tour
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two pair files that read the state: at the cheapest place, and at the dearest."""
    folder = tmp_path_factory.mktemp("pairs")
    for name, where in (("mine", "min"), ("other", "max")):
        (folder / f"{name}.py").write_text(READING.replace("{where}", where))
    return folder


@pytest.mark.long
def test_interventions_on_a_pair_that_reads_and_one_that_does_not(run, script, files, monkeypatch):
    monkeypatch.setattr(interventions, "FIXED", (0,))
    out = run.parent
    line = ("--group", "uniform-9", "--pair")
    assert script(interventions, *line, files / "mine.py") == 0
    found = rows(out / "interventions-tsp-uniform-9-mine.csv")
    assert len(found) == 3 * 4
    assert any(float(row["difference_pp"]) for row in found)
    assert {row["intervention"] for row in found} == {"fixed 0", "shuffled", "inverted"}

    blind = files / "blind.py"
    blind.write_text(
        (files / "mine.py").read_text().replace("if steps_since_improvement > 4:", "if 1:")
    )
    monkeypatch.setattr(interventions, "FIXED", ())
    assert script(interventions, *line, blind) == 0
    found = rows(out / "interventions-tsp-uniform-9-blind.csv")
    assert [float(row["difference_pp"]) for row in found] == [0.0] * 8


@pytest.fixture(scope="module")
def watching(files):
    """The first of these files, whose destroy reads the share of the budget instead."""
    path = files / "watching.py"
    text = READING.replace("{where}", "min").replace("steps_since_improvement > 4", "z[1] > 0.5")
    draft = files / "draft.py"
    draft.write_text(text.replace("steps_since_improvement", "z"))
    save_pair(path, load_pair(draft), "", TSP.interface, "", terms={"state": "progress"})
    return path


@pytest.mark.long
def test_interventions_on_a_pair_that_reads_another_state(run, script, watching):
    assert script(interventions, "--group", "uniform-9", "--pair", watching) == 0
    found = rows(run.parent / "interventions-tsp-uniform-9-watching.csv")
    assert len(found) == 5 * 4
    changed = {row["intervention"] for row in found if float(row["difference_pp"])}
    assert changed <= {"first", "last", "middle", "shuffled", "reversed"}
    assert changed


def test_anytime_on_a_pair_and_a_descent(run, script, files):
    line = ("--group", "uniform-9", "--contenders", "spo,2-opt,alns", "--pair", files / "mine.py")
    assert script(anytime, *line) == 0
    found = rows(run.parent / "anytime-tsp-uniform-9.csv")
    steps = {m: [int(r["step"]) for r in found if r["method"] == m] for m in ("SPO", "2-opt")}
    assert steps == {"SPO": evaluation.milestones(12).tolist(), "2-opt": [0]}
    curve = [float(r["gap_percent"]) for r in found if r["method"] == "SPO"]
    assert curve == sorted(curve, reverse=True)
    assert curve[-1] < curve[0]


def test_what_a_logarithmic_axis_has_no_room_for():
    """A free fleet beats some references: such curves end, and take no others with them."""
    steps = np.array([1, 2, 4])

    def curve(name, *means):
        by_instance = np.array(means)[None] + np.array([[-0.1], [0.1]])
        return anytime.Curve(contenders.CONTENDERS[name], steps, by_instance, 2, 0)

    curves = [curve("alns", 9.0, 3.0, 1.0), curve("spo", 5.0, 0.0, -2.0), curve("eoh", 8, 2, 0.01)]
    curves.append(curve("g-lns", 8, 2, 0.02))
    curves.append(replace(curve("or-tools"), steps=np.zeros(1, int), by_instance=-np.ones((2, 1))))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what matplotlib says when a layout collapses
        figure = anytime.draw(curves)
        figure.canvas.draw()
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["ALNS", "G-LNS", "EoH", "OR-Tools", "SPO"]  # as high as they end
    assert figure.axes[0].get_ylim()[0] > 1e-4


def copied(run, folder, **settings):
    """The run, as if it had been discovered with these settings."""
    shutil.copytree(run, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["config"] |= settings
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with contextlib.closing(sqlite3.connect(folder / DATABASE, isolation_level=None)) as db:
        for name, value in settings.items():
            db.execute("UPDATE config SET value = ? WHERE name = ?", (json.dumps(value), name))
        db.execute("DROP TABLE digests")  # as in a run from before there was one
    return folder


@pytest.mark.long
def test_programs_run_as_they_were_discovered(run, script, tmp_path, monkeypatch):
    asked = []

    def evaluate_pair(pair, config, context, instances, **more):
        asked.append((config.generator.state, config.evaluation.on_invalid))
        return Namespace(gaps=np.ones((1, 1)))

    monkeypatch.setattr(cross_play, "evaluate_pair", evaluate_pair)
    hidden = copied(run, tmp_path / "hidden", state=False, on_invalid="skip")
    line = ("--group", "uniform-9", "--programs", "1", "--run")
    assert script(cross_play, *line, hidden) == script(cross_play, *line, run) == 0
    assert asked == [("none", "skip")] * 4 + [("stagnation", "fail")] * 4


@pytest.mark.long
def test_cross_play_on_a_run(run, script):
    line = ("--run", run, "--rounds", "1,2", "--group", "uniform-9", "--instances", "1")
    assert script(cross_play, *line, "--programs", "1") == 0
    pairs = rows(run.parent / "cross-play-tsp-run.csv")
    assert [(p["destroy_round"], p["repair_round"]) for p in pairs] == [
        ("1", "1"), ("1", "2"), ("2", "1"), ("2", "2"),
    ]  # fmt: skip
    first = rounds.best_programs(load_run(run), 1, "repair", 1)[0]
    assert pairs[0]["repair"] == pairs[2]["repair"] == first.name


@pytest.mark.long
def test_a_case_study_of_two_files(run, script, files, monkeypatch):
    monkeypatch.setattr(case_study, "ROUGH", 10.0)  # a tour of 12 nodes is far above 2
    line = ("--pair", files / "mine.py", "--other", files / "other.py", "--size", "12")
    assert script(case_study, *line) == 0
    stem = run.parent / "case-study-tsp-mine"
    first, second, third = rows(f"{stem}.csv")
    assert (first["removed"], second["removed"], third["removed"]) == ("1", "2", "2")
    assert second["removed_nodes"] == third["removed_nodes"]
    assert first["incumbent"] == second["incumbent"] == third["incumbent"]
    assert float(second["candidate_cost"]) < float(third["candidate_cost"])
    assert Path(f"{stem}-pair.py").exists()


@pytest.mark.long
def test_a_case_study_of_another_state(run, script, files, watching, monkeypatch):
    """Two nodes are removed late in the rollout and one early, whatever the other parts are."""
    monkeypatch.setattr(case_study, "ROUGH", 10.0)
    line = ("--pair", watching, "--other", files / "other.py", "--size", "12", "--counter", "0")
    assert script(case_study, *line) == 0
    found = rows(run.parent / "case-study-tsp-watching.csv")
    shares = [ast.literal_eval(row["state"])[1] for row in found]
    assert [row["removed"] for row in found] == [str(1 + (share > 0.5)) for share in shares]


FALTERING = """
def destroy(dist, current_tour, steps_since_improvement, rng):
    return [v for v in current_tour if v != rng.choice(current_tour)], []


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return partial_tour
"""


def test_a_case_without_a_reference_and_with_failures(files):
    """The best of what was found is the goal, and a beginning that fails is no point."""
    instance = TSP.sample(12, 1, 5)[0]
    good = load_pair(files / "mine.py")
    bad = replace(good, repair=replace(good.repair, source=FALTERING.partition("\n\n\n")[2]))
    with LocalEvaluator(TSP) as evaluator:
        with pytest.raises(InputError, match="all these pairs fail here"):
            case_study.points(evaluator, instance, [bad], 2)
        found = case_study.points(evaluator, instance, [good, bad], 2)
        assert found
        assert {point.pair for point in found} == {good}
        real = LocalEvaluator.run

        def slow(self, pairs, instances, seeds, steps, **more):
            ran = real(self, pairs, instances, seeds, steps, **more)
            if steps < case_study.STEPS:
                ran.status[:], ran.code[:] = Status.TIMEOUT, -1
            return ran

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LocalEvaluator, "run", slow)
            assert case_study.points(evaluator, instance, [good], 2) == []


def test_trouble_is_one_sentence(run, script, files, tmp_path, capsys):
    hidden = copied(run, tmp_path / "hidden", state=False)
    other = copied(run, tmp_path / "other", problem="spo_jax.envs.problems.tsp:TSP")
    complaints = [
        (dynamics, ("--run", run / "none"), "no such run folder"),
        (anytime, ("--group", "uniform-9", "--contenders", "spi"), "no contender 'spi'"),
        (interventions, ("--group", "uniform-10"), "use one of uniform-9"),
        (cross_play, ("--run", run, "--rounds", "9", "--group", "uniform-9"), "no round 9"),
        (case_study, ("--pair", files / "mine.py"), "--pair needs --other"),
        (case_study, ("--run", hidden), "hidden was discovered without the LNS state"),
        (interventions, ("--group", "uniform-9", "--pair", hidden), "there is none to change"),
        (cross_play, ("--run", other), "must be of the same problem, tsp or cvrp"),
    ]
    for which, line, complaint in complaints:
        assert script(which, *line) == 2
        assert complaint in capsys.readouterr().err

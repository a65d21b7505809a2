"""Gaps of a run: by hand, what they are measured from, and that no result depends on them."""

import math
import sqlite3
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from spo_fakes import Evaluator, Generator, number, small

import spo_jax
from spo_jax.cli import commands
from spo_jax.envs.problem import Problem
from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.reference_files import Row, write_references
from spo_jax.envs.run.rollouts import Rollouts, Status
from spo_jax.errors import MissingExtra
from spo_jax.program import Pair
from spo_jax.runs import references
from spo_jax.runs.database.store import Store, dump
from spo_jax.runs.discovery.loop import discover
from spo_jax.runs.display import lines, progress
from spo_jax.runs.gaps import (
    SEEN,
    GapTracker,
    Measured,
    ReferenceCosts,
    RoundGaps,
    middle,
    sentence,
)
from spo_jax.runs.manifest import instances_of
from spo_jax.runs.references import FILE, Found, References, find
from spo_jax.runs.report.write import html
from spo_jax.runs.run import load_run
from spo_jax.search.instances import training_instances, validation_instances
from spo_jax.search.parts import Parts
from spo_jax.search.rounds import Best, Observer, Round
from spo_jax.search.validation import Finals

TSP = get_problem("tsp")
CONFIG = small(generator="grammar")  # two instances, two rollouts, four rounds
INSTANCES = training_instances(CONFIG, TSP)
DIGESTS = [each.digest for each in INSTANCES]


def row(digest: str, cost: float, certified: bool = False) -> Row:
    return Row("tsp", f"of {digest[:4]}", digest, cost, certified, "quick", "by hand")


KNOWN = Found({digest: row(digest, 512.0, True) for digest in DIGESTS})


# --- by hand --------------------------------------------------------------------------------------


def test_a_gap_by_hand() -> None:
    # Two instances with two rollouts each: 10% and 20% above 100, 50% and 0% above 4.
    assert ReferenceCosts([100, 4]).gap([110, 120, 6, 4]) == pytest.approx((10 + 20 + 50 + 0) / 4)
    assert ReferenceCosts([100, 4]).gap([99, 100, 4, 4]) == pytest.approx(-0.25)
    assert math.isnan(ReferenceCosts([100, 4]).gap([]))
    assert math.isnan(ReferenceCosts([]).gap([1.0]))


def test_the_best_that_was_seen_takes_the_place_of_a_reference() -> None:
    measure = ReferenceCosts([100, math.nan])
    assert math.isnan(measure.gap([110, 120, 6, 5]))
    measure.see([90, 95, 6, 5])
    measure.see([110, 120, 8, 4])
    measure.see([])
    assert measure.costs.tolist() == [100, 4]  # a reference stays, though the run has done better
    assert measure.gap([90, 95, 6, 5]) == pytest.approx((-10 - 5 + 50 + 25) / 4)


def test_a_reference_of_0_has_no_gap_and_one_below_it_has() -> None:
    assert math.isnan(ReferenceCosts([0.0, 1.0]).gap([1.0, 1.0]))
    # the mean of (1 + 4) / 4 and of 0
    assert ReferenceCosts([-4.0, 1.0]).gap([1.0, 1.0]) == 62.5
    measure = ReferenceCosts([math.nan])
    measure.see([-5.0, -3.0])
    assert measure.gap([-3.0, -3.0]) == 40.0


def test_costs_of_a_pair() -> None:
    paid = [[[8.0, 4.0], [9.0, 5.0]], [[7.0, 3.0], [6.0, 2.0]]]  # two instances, two seeds
    cost, status = np.array([paid, paid, paid]), np.zeros((3, 2, 2), np.int8)
    cost[1, 0, 1] = math.nan  # an evaluator of the user's without costs
    status[2, 1, 0] = Status.CRASH
    none = np.zeros((3, 2, 2, 0))
    rollouts = Rollouts(cost, none, status, none, none, none, none)
    assert [rollouts.costs_of(p) for p in range(3)] == [(4.0, 5.0, 3.0, 2.0), (), ()]


def test_the_middle_of_what_is_known() -> None:
    assert middle([3.0, math.nan, 1.0, 8.0]) == 3.0
    assert middle([1.0, 2.0]) == 1.5
    assert math.isnan(middle([math.nan]))


def test_what_gaps_are_measured_from_is_reported() -> None:
    proven, other = row("a", 1.0, True), row("b", 1.0)
    assert sentence([proven, proven, other]) == (
        "Gaps of the training instances are to 2 proven optima and 1 best known cost"
    )
    assert sentence([None, None], "nobody can solve it") == (
        "Gaps of the training instances are to 2 best costs that this run has seen so far "
        "(nobody can solve it)"
    )


# --- what a run prints ----------------------------------------------------------------------------


def verdict(pair: Pair) -> tuple[Status, float | None]:
    """Some pairs crash; of the others few are good, so that later rounds have better ones."""
    draw = number("gaps", pair.destroy.digest, pair.repair.digest)
    return (Status.CRASH, None) if draw < 0.1 else (Status.OK, round(512 * draw**20) / 1024)


class Watch(Observer):
    """Keeps where a run stands after each round."""

    def __init__(self, gaps: GapTracker):
        self.gaps, self.seen = gaps, list[RoundGaps]()
        self.rounds = list[Round]()

    def finished(self, done: Round) -> None:
        self.rounds.append(done)
        self.seen.append(self.gaps(done))


def played(path: Path, found: Found, rounds: int = 4, watched: bool = True) -> Watch:
    """A run of the fakes up to a round, or the rest of one. Each cost is 1024 (1 - J)."""
    if path.exists():
        store = Store.reopen(path)
    else:
        known = instances_of(INSTANCES, [])
        store = Store.create(path, {"config": CONFIG.flat(), "preset": "smoke", **known})
    with store:
        look = Watch(GapTracker(DIGESTS, lambda: found, store.paid))
        parts = Parts(
            CONFIG.replace(rounds=rounds), TSP, Evaluator(verdict), Generator(),
            observer=look if watched else Observer(),
        )  # fmt: skip
        discover(parts, store.state(), store.commit, instances=INSTANCES)
    return look


def by_hand(rounds: list[Round], reference: list[float]) -> list[tuple[float, float]]:
    """(gap of the best pair so far, median of the new responses) from J alone."""
    found = []
    for done, bar in zip(rounds, reference, strict=True):
        assert done.best is not None
        new = sorted(p.utility for p in done.pairs if p.kind == "response" and p.status == "ok")
        half = (new[(len(new) - 1) // 2] + new[len(new) // 2]) / 2
        best, middle = (100 * (1024 * (1 - u) - bar) / bar for u in (done.best.utility, half))
        found.append((best, middle))
    return found


def test_gaps_of_a_run_are_those_of_its_costs(tmp_path: Path) -> None:
    look = played(tmp_path / "run", KNOWN)
    gaps = [(each.best, each.median) for each in look.seen]
    np.testing.assert_allclose(gaps, by_hand(look.rounds, [512.0] * 4))
    assert [bool(each.basis) for each in look.seen] == [True, False, False, False]
    assert look.seen[-1].medians == tuple(each.median for each in look.seen)


def test_without_references_gaps_are_to_the_best_so_far(tmp_path: Path) -> None:
    look = played(tmp_path / "run", Found({}))
    least, bars = math.inf, []
    for done in look.rounds:
        least = min(least, *(1024 * (1 - p.utility) for p in done.pairs if p.status == "ok"))
        bars.append(least)
    assert len(set(bars)) > 1  # the bar moves, so that this tests something
    gaps = [(each.best, each.median) for each in look.seen]
    np.testing.assert_allclose(gaps, by_hand(look.rounds, bars))
    # The tables of the run measure every round from the best of all.
    run = load_run(tmp_path / "run")
    after = [(each.best, each.median) for each in run.gaps]
    np.testing.assert_allclose(after, by_hand(look.rounds, [least] * 4))
    assert [(each.cost, each.source) for each in run.references] == [(least, SEEN)] * 2


@pytest.mark.parametrize("found", [KNOWN, Found({}), Found({DIGESTS[0]: row(DIGESTS[0], 600.0)})])
def test_a_run_that_goes_on_prints_the_same_gaps(tmp_path: Path, found: Found) -> None:
    whole = played(tmp_path / "whole", found)
    first, rest = (played(tmp_path / "cut", found, rounds) for rounds in (2, 4))
    assert [replace(each, basis="") for each in first.seen + rest.seen] == [
        replace(each, basis="") for each in whole.seen
    ]
    assert rest.seen[0].basis == whole.seen[0].basis


def test_no_result_depends_on_references(tmp_path: Path) -> None:
    played(tmp_path / "with", KNOWN)
    played(tmp_path / "without", Found({}))
    played(tmp_path / "blind", KNOWN, watched=False)
    assert dump(tmp_path / "with") == dump(tmp_path / "without") == dump(tmp_path / "blind")


def test_a_run_without_costs_tells_j_and_goes_on_without(tmp_path: Path) -> None:
    path = tmp_path / "old"
    played(path, KNOWN, rounds=2)
    with sqlite3.connect(path / "spo.sqlite") as db:
        db.execute("DROP TABLE costs")
        db.execute("DROP TABLE digests")
    run = load_run(path)
    assert run.rounds == 2
    assert len(run.references) == 0
    assert all(math.isnan(each.best) and math.isnan(each.median) for each in run.gaps)
    assert "no curve of gaps" in html(run, "not played")
    look = played(path, KNOWN)
    assert list(map(repr, look.seen)) == [repr(RoundGaps())] * 2  # NaN equals no NaN
    assert load_run(path).rounds == 4
    line = lines.round_line(look.rounds[-1], 4, None)
    assert line.startswith(f"round 4/4   best J {look.rounds[-1].best.utility:.4f}   median J ")  # type: ignore[union-attr]


def test_the_line_of_a_round(tmp_path: Path) -> None:
    look = played(tmp_path / "run", KNOWN, rounds=1)
    gaps = RoundGaps(2.104, (4.0, 1.96))
    line = lines.round_line(look.rounds[0], 4, None, {}, "D1.01 R1.02", gaps, "█▄  ")
    assert line.startswith("round 1/4   gap of the best  2.10%  median  1.96% █▄     pairs ")
    assert line.endswith("   D1.01 R1.02")
    assert "J" not in line


def test_bars() -> None:
    assert lines.spark([5.0, 2.5, 0.0, math.nan, -1.0]) == "█▅▁ ▁"
    assert lines.spark([0.0, math.nan]) == "▁ "
    assert lines.spark([]) == ""


@pytest.mark.parametrize(("width", "bars"), [(200, True), (60, False)])
def test_bars_are_left_out_where_they_do_not_fit(tmp_path: Path, width: int, bars: bool) -> None:
    look = played(tmp_path / "run", KNOWN, rounds=1)
    console = Console(force_terminal=True, width=width, soft_wrap=True, record=True)
    printed: list[str] = []
    display = progress.Display(CONFIG, printed.append, console, gaps=lambda done: look.seen[0])
    display.finished(look.rounds[0])
    [line] = [each for each in printed if "gap of the best" in each]
    assert ("█" in line) == bars
    assert any("round 1 best J" in each for each in printed)  # the log keeps J


# --- what a run's folder says ---------------------------------------------------------------------


def test_validated_gaps_need_every_reference() -> None:
    manifest = {"validation": [{"name": "a", "size": 3, "digest": d} for d in "ab"]}
    rows = {"a": row("a", 10.0), "b": row("b", 20.0)}
    assert Measured(manifest, rows, {}).validated([11, 22]) == pytest.approx(10)
    assert math.isnan(Measured(manifest, {"a": rows["a"]}, {}).validated([11, 22]))
    assert math.isnan(Measured(manifest, rows, {}).validated([]))
    assert math.isnan(Measured({}, rows, {}).validated([11, 22]))


def test_the_closing_lines_have_gaps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    look = played(tmp_path / "run", KNOWN)
    run = load_run(tmp_path / "run")
    own = f"gap {run.gap(run.best.pair if run.best else None):.2f}% to the best costs of this run"
    assert lines.gap_in_words(run) == own  # its folder has no references
    write_references(tmp_path / "run" / FILE, [KNOWN.rows[DIGESTS[0]]])
    assert "% partly to the best costs" in lines.gap_in_words(load_run(tmp_path / "run"))
    write_references(tmp_path / "run" / FILE, KNOWN.rows.values())
    run = load_run(tmp_path / "run")
    assert lines.gap_in_words(run) == f"gap {look.seen[-1].best:.2f}%"
    commands.runs(Namespace(folder=str(tmp_path)))
    heads, values = capsys.readouterr().out.splitlines()
    assert heads.split()[-2:] == ["gap", "state"]
    assert values.split()[-2:] == [f"{look.seen[-1].best:.2f}%", "finished"]
    assert run.best is not None
    best = replace(run.best, validation=0.5, costs=(11.0, 22.0))
    printed = lines.choice(best, Finals((best,)), lambda each: 7.125)
    assert printed[0].endswith("validated     gap")
    assert printed[1].endswith("0.5000   7.12%")
    [first, *_] = lines.closing(best, CONFIG, Path("runs/x"), "pair.py", gap="gap 7.12%")
    assert first == f"Best J {best.utility:.4f} (round {best.round}), gap 7.12%: pair.py"


# --- where references come from -------------------------------------------------------------------


class Solving(type(TSP)):  # type: ignore[misc]
    """The TSP with a solver of its own, which counts what it is asked."""

    def __init__(self, asked: list[str], error: Exception | None = None):
        self.asked, self.error = asked, error

    def solve_reference(self, instance: Any, effort: str) -> tuple[list[int], str, bool]:
        self.asked.append(instance.name)
        assert effort == "quick"
        if self.error is not None:
            raise self.error
        return list(range(instance.size)), "in order", False


def test_the_order_of_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    problem = Solving(asked)
    [shipped] = TSP.sample(50, 1, 2026)  # a reference of it ships
    [solved, *more] = TSP.sample(8, 4, 1)
    given = replace(TSP.sample(8, 1, 2)[0], reference=3.5, reference_source="its file")
    [large] = TSP.sample(problem.quick_reference + 1, 1, 1)
    monkeypatch.setattr(references, "MOST", 2)
    found = find(problem, [shipped, given, large, solved, *more], Event())
    assert asked == [solved.name, more[0].name]  # neither the large one, nor more than MOST
    assert found.rows.keys() == {each.digest for each in (shipped, given, solved, more[0])}
    assert found.rows[given.digest].source == "its file"
    first, fourth = found.rows[shipped.digest], found.rows[solved.digest]
    assert first.source.endswith("branch and cut (scipy 1.17.1) (shipped)")
    assert first.certified
    assert fourth.cost == TSP.cost(solved, list(range(8)))
    assert not found.remark


@pytest.mark.parametrize(
    ("error", "remark"),
    [
        (MissingExtra("elkai", "solvers"), "elkai is not installed: pip install"),
        (ZeroDivisionError("oh"), "uniform-8-0@1: ZeroDivisionError: oh"),
    ],
)
def test_a_solver_that_fails_is_asked_once_and_ends_nothing(error: Exception, remark: str) -> None:
    asked: list[str] = []
    given = replace(TSP.sample(8, 1, 2)[0], reference=3.5)
    found = find(Solving(asked, error), [*TSP.sample(8, 3, 1), given], Event())
    assert len(asked) == 1
    assert found.rows.keys() == {given.digest}
    assert found.remark.startswith(remark)


def test_a_problem_that_says_no_size_is_not_asked() -> None:
    class Slow(Solving):
        quick_reference = Problem.quick_reference

    asked: list[str] = []
    assert find(Slow(asked), TSP.sample(8, 2, 1), Event()) == Found({})
    assert not asked


def test_references_are_found_once_and_kept(tmp_path: Path) -> None:
    asked: list[str] = []
    instances = TSP.sample(8, 2, 1)
    with References(tmp_path, Solving(asked), instances) as first:
        found = first.found()
        assert first.found() is found
    with References(tmp_path, Solving(asked), instances) as second:
        again = second.found()
    assert len(asked) == 2
    assert {digest: each.cost for digest, each in again.rows.items()} == {
        digest: each.cost for digest, each in found.rows.items()
    }


def test_a_folder_without_references_has_no_file(tmp_path: Path) -> None:
    with References(tmp_path, Solving([], MissingExtra("x", "y")), TSP.sample(8, 1, 1)) as none:
        assert not none.found().rows
    assert not (tmp_path / FILE).exists()


# --- real runs ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_real_run_with_and_without_a_solver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings: dict[str, Any] = {"preset": "smoke", "generator": "grammar", "workers": 1, "size": 12,
                                "repairs_per_destroy": 2, "validation_size": 12}  # fmt: skip
    run = spo_jax.discover("tsp", path=tmp_path / "with", verbose=True, **settings)
    output = capsys.readouterr().out
    assert run.best is not None
    # Against the costs that the evaluator finds, and the optima that LKH and branch and cut prove.
    costs: list[list[float]] = []
    from spo_jax.envs.run.local import LocalEvaluator

    config = run.config
    for instances, steps in (
        (training_instances(config, TSP), config.evaluation.steps),
        (validation_instances(config, TSP), config.evaluation.validation_steps),
    ):
        with LocalEvaluator(TSP, 1, seed=config.seed, kit=True) as evaluator:
            seeds = range(config.evaluation.rollouts)
            end = evaluator.run([run.best.pair], instances, seeds, steps).final_cost[0]
        optima = [TSP.cost(i, TSP.solve_reference(i, "standard")[0]) for i in instances]
        each = [100 * (c / o - 1) for row, o in zip(end, optima, strict=True) for c in row]
        costs.append(each)
    training, validation = (sum(each) / len(each) for each in costs)
    assert run.gap(run.best.pair) == pytest.approx(training, abs=1e-9)
    assert run.validated_gap(run.best) == pytest.approx(validation, abs=1e-9)
    assert "to 2 proven optima" in output
    assert f"gap {training:.2f}%, {validation:.2f}% in validation" in output
    monkeypatch.setattr(references, "find", lambda *args: Found({}, "nobody is here"))
    other = spo_jax.discover("tsp", path=tmp_path / "without", verbose=True, **settings)
    assert "2 best costs that this run has seen so far (nobody is here)" in capsys.readouterr().out
    assert dump(run.path) == dump(other.path)
    assert other.best == Best(run.best.pair, run.best.utility, run.best.round,
                              run.best.validation, run.best.fresh, run.best.costs)  # fmt: skip

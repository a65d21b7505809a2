"""The choice among finalists: who they are, what they are measured on, who wins, what it says."""

import math
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from spo_fakes import Evaluator, Generator, quick_page, small

import spo_jax
from spo_jax import presets
from spo_jax.cli import main
from spo_jax.config import Settings
from spo_jax.envs.files.specs import parse_spec
from spo_jax.envs.problem import Baseline, Instance, Problem
from spo_jax.envs.problems import get_problem
from spo_jax.envs.rules import Rules
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.errors import InputError
from spo_jax.presets import PRESETS
from spo_jax.program import Pair, Program
from spo_jax.runs.database.store import Store
from spo_jax.runs.discovery.loop import discover
from spo_jax.runs.display import lines
from spo_jax.runs.folders import DATABASE
from spo_jax.runs.report.write import html
from spo_jax.runs.run import load_run
from spo_jax.search.instances import (
    FRESH,
    fresh_instances,
    other_sizes,
    training_instances,
    validation_instances,
)
from spo_jax.search.parts import Parts
from spo_jax.search.rounds import Best, Observer
from spo_jax.search.validation import Finals, loss_of, validate
from spo_jax.search.writing.grammar import GrammarGenerator
from spo_jax.seeding import derive

TSP = get_problem("tsp")
DESTROY = "def destroy(dist, tour, z, rng):\n    return tour[2:], tour[:2]\n"
BACK = "def repair(dist, tour, removed, z, rng):\n    return removed + tour\n"
SHUFFLED = """
def repair(dist, tour, removed, z, rng):
    for node in removed:
        tour.insert(rng.randint(0, len(tour)), node)
    return tour
"""
BROKEN = "def repair(dist, tour, removed, z, rng):\n    return tour\n"


def best(repair: str, utility: float, number: int = 1) -> Best:
    pair = Pair(Program.from_source("destroy", DESTROY), Program.from_source("repair", repair))
    return Best(pair, utility, number)


def mean_improvement(evaluator, pair, instances, steps):  # type: ignore[no-untyped-def]
    rollouts = evaluator.run([pair], instances, (0, 1), steps)
    return np.mean((rollouts.initial_cost - rollouts.final_cost) / rollouts.initial_cost)


def test_finalists_meet_on_instances_no_round_has_seen() -> None:
    config = small(
        validation_size=14, validation_instances=2, validation_steps=30, rollouts=2, steps=20
    )
    finalists = [best(BACK, 0.9), best(SHUFFLED, 0.8), best(BROKEN, 0.7)]
    control = best(SHUFFLED, 0.3, 2)
    with LocalEvaluator(TSP) as evaluator:
        finals = validate(config, TSP, evaluator, finalists, [control], Observer())
        pair, size = finalists[1].pair, config.evaluation.size
        final = TSP.sample(14, 2, derive(config.seed, "validation"))
        fresh = TSP.sample(size, FRESH * config.evaluation.instances, derive(config.seed, "fresh"))
        in_validation = mean_improvement(evaluator, pair, final, 30)
        paid = tuple(evaluator.run([pair], final, (0, 1), 30).final_cost[0].ravel())
        afresh = mean_improvement(evaluator, pair, fresh, 20)
    back, shuffled, broken = finals.finalists
    # Putting nodes back where they were never improves; a broken pair has no utility.
    assert (back.validation, back.fresh) == (0.0, 0.0)
    assert shuffled.validation == pytest.approx(in_validation)
    assert shuffled.fresh == pytest.approx(afresh)
    assert math.isnan(broken.validation or 0.0)
    assert math.isnan(broken.fresh or 0.0)
    assert finals.controls == (replace(control, fresh=shuffled.fresh),)
    bare = [replace(f, validation=None, fresh=None, costs=()) for f in finals.finalists]
    assert bare == finalists
    assert broken.costs == ()
    assert shuffled.costs == paid
    assert validate(config, TSP, evaluator, [], [], Observer()) == Finals()


def measured(*values: tuple[float, float | None, float | None]) -> tuple[Best, ...]:
    return tuple(replace(best(BACK, j), fresh=f, validation=v) for j, f, v in values)


def test_the_two_rules() -> None:
    finals = Finals(measured((0.9, 0.5, 0.6), (0.8, 0.6, 0.7), (0.7, 0.1, math.nan)))
    assert finals.chosen("utility") == finals.highest == finals.finalists[0]
    assert finals.chosen("validation") == finals.finalists[1]
    tied = Finals(measured((0.9, None, 0.5), (0.8, None, 0.5)))
    assert tied.chosen("validation") == tied.finalists[0]
    failed = Finals(measured((0.9, 0.5, math.nan), (0.8, 0.5, None)))
    assert failed.chosen("validation") is None
    negative = Finals(measured((0.9, 0.5, -0.5), (0.8, 0.5, -0.25)))
    assert negative.chosen("validation") == negative.finalists[1]
    assert Finals().chosen("utility") is Finals().chosen("validation") is None


def test_over_promise_is_what_the_best_loses_beyond_pairs_drawn_blindly() -> None:
    finalists = measured((0.9, 0.6, None), (0.8, 0.7, None))
    controls = measured((0.5, 0.4, None), (0.4, 0.1, None), (0.6, math.nan, None), (0.9, 0.7, None))
    finals = Finals(finalists, controls)
    assert loss_of(finalists[0]) == pytest.approx(0.3)
    assert finals.drift == pytest.approx(0.2)  # of 0.1, 0.3, 0.2; one is unknown
    assert finals.over_promise == pytest.approx(0.3 - 0.2)
    assert Finals(finalists).over_promise is None
    assert Finals(measured((0.9, math.nan, 0.1)), controls).over_promise is None


# --- pairs that fit their training instances alone ------------------------------------------------

HONEST = ((0.50, 0.49), (0.52, 0.50), (0.55, 0.54), (0.40, 0.41))  # J found, J on fresh instances


def pairs(*values: tuple[float, float | None, float | None]) -> tuple[Best, ...]:
    """As `measured`, each pair another one."""
    return tuple(
        replace(best(f"{BACK}# {k} {j}\n", j), fresh=f, validation=v)
        for k, (j, f, v) in enumerate(values)
    )


CONTROLS = pairs(*((j, f, None) for j, f in HONEST))


@pytest.mark.parametrize("select", ["utility", "validation"])
def test_a_pair_that_falls_by_more_than_pairs_do_is_refused(select: str) -> None:
    found = pairs((0.9, 0.1, 0.8), (0.85, math.nan, 0.7), (0.6, 0.58, 0.55), (0.59, 0.57, 0.5))
    finals = Finals(found, CONTROLS)
    assert finals.chosen(select) == finals.best(select) == found[2]
    (first, falls), (second, fails) = finals.refused(select)
    assert (first, second) == (found[0], found[1])
    assert "its J falls by 0.8000 on fresh instances, that of 4 other pairs by 0.0100" in falls
    assert "it failed on fresh instances" in fails
    [line] = lines.refused(finals, select, lambda pair: ("D1.02", "R1.07"))
    assert line.startswith("The pair D1.02 with R1.07 (J 0.9000) is refused: its J falls by 0.8000")
    assert line.endswith("; and 1 more finalist.")


def test_what_all_pairs_lose_refuses_none() -> None:
    """Other instances change every J; only what a pair loses beyond that counts."""
    harder = pairs(*((j, f - 0.3, None) for j, f in HONEST))
    found = pairs((0.9, 0.58, 0.5), (0.8, 0.49, 0.4))
    assert Finals(found, harder).chosen("utility") == found[0]
    assert Finals(found, CONTROLS).chosen("utility") is None  # by the others' falls they would be
    wide = pairs((0.5, 0.6, None), (0.5, 0.4, None), (0.5, 0.3, None), (0.5, 0.5, None))
    assert Finals(found, wide).chosen("utility") == found[0]  # where pairs differ by as much


@pytest.mark.parametrize("select", ["utility", "validation"])
def test_where_all_finalists_are_refused_the_best_control_is_next(select: str) -> None:
    finals = Finals(pairs((0.9, 0.1, 0.8), (0.8, math.nan, 0.7)), CONTROLS)
    assert finals.chosen(select) is None
    assert finals.best(select) == CONTROLS[2]
    assert len(finals.refused(select)) == 2


def test_with_nothing_to_compare_with_none_is_refused() -> None:
    [alone] = found = pairs((0.9, 0.1, 0.8))
    assert Finals(found).best("utility") == Finals(found).best("validation") == alone
    unmeasured = pairs((0.9, None, 0.8), (0.8, None, 0.9))
    assert Finals(unmeasured).best("utility") == unmeasured[0]
    assert Finals(unmeasured).best("validation") == unmeasured[1]
    [failed] = nothing = pairs((0.9, math.nan, math.nan))
    assert Finals(nothing).best("validation") == failed


def test_few_controls_are_joined_by_the_other_finalists() -> None:
    found = pairs((0.9, 0.1, 0.3), (0.6, 0.59, 0.5))
    for finals in (Finals(found), Finals(found, CONTROLS[:1])):
        assert finals.best("utility") == found[1]
    alike = pairs((0.9, 0.1, 0.3), (0.8, 0.05, 0.2), (0.7, 0.0, 0.1))
    assert Finals(alike).best("utility") == alike[0]


def test_the_refused_are_the_same_from_the_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A failure is stored as no value, as what was not measured is; the choice is the same."""
    with finished(tmp_path, select="utility") as store:
        named = store.candidates(3)
        others = store.controls(4, named)
        fresh = (named[0].utility - 0.9, math.nan, named[2].utility)
        finals = Finals(
            tuple(replace(f, fresh=v) for f, v in zip(named, fresh, strict=True)),
            tuple(replace(each, fresh=each.utility) for each in others),
        )
        store.commit_finals(finals)
        assert store.best() == finals.best("utility") == finals.finalists[2]
        assert [why for _, why in store.finals().refused("utility")] == [
            why for _, why in finals.refused("utility")
        ]
        assert store.export_best(store.best()) == ""
        assert main(["export", str(store.path), "--select", "validation", "--out", "x.py"]) == 2
        assert "every finalist failed or is refused" in capsys.readouterr().err
    assert load_run(tmp_path / "run").best == finals.finalists[2]


# --- other sizes ----------------------------------------------------------------------------------


def only_for(condition: str) -> str:
    """A repair that fails on instances for which a condition does not hold."""
    return BACK.replace("    return", f"    assert {condition}\n    return")


@pytest.mark.parametrize("training", [(4,), (10,), (30,), (12, 40), (300,), (600,)])
def test_other_sizes_are_below_and_above_those_of_the_training(training: tuple[int, ...]) -> None:
    config = small()
    sets = [instance for size in training for instance in TSP.sample(size, 2, 1)]
    found = [each.size for each in other_sizes(config, TSP, sets)]
    assert found == sorted(set(found))
    assert not set(found) & set(training)
    assert min(*found, *training) <= 10
    assert max(found) == max(10, min(2 * max(training), 500)) or max(training) >= 500
    assert max(found) <= max(500, *training)
    digests = [each.digest for each in other_sizes(config, TSP, sets)]
    assert digests == [each.digest for each in other_sizes(config, TSP, sets)]


@pytest.mark.parametrize("problem", ["tsp", "cvrp", "vrptw"])
def test_every_problem_has_other_sizes(problem: str) -> None:
    found = get_problem(problem)
    sizes = other_sizes(small(problem=problem), found, found.sample(20, 1, 1))
    assert [each.size for each in sizes] == [10, 40]


def test_a_size_that_a_problem_cannot_have_is_left_out() -> None:
    class Even(type(TSP)):  # type: ignore[misc]
        def sample(self, size: int, count: int, seed: int) -> list[Instance]:
            if size % 4:
                raise InputError("no such size")
            return super().sample(size, count, seed)  # type: ignore[no-any-return]

    sizes = other_sizes(small(), Even(), TSP.sample(20, 1, 1))
    assert [each.size for each in sizes] == [40]


@pytest.mark.long
def test_a_pair_that_fails_on_another_size_is_refused() -> None:
    config = small(size=12, validation_size=12)
    instances = training_instances(config, TSP)
    finalists = [
        best(only_for("len(dist) != 24"), 0.9), best(only_for("len(dist) > 10"), 0.8),
        best(SHUFFLED, 0.7), best(BACK, 0.6),
    ]  # fmt: skip
    control = best(only_for("len(dist) != 6"), 0.3)
    sizes = other_sizes(config, TSP, instances)
    assert [each.size for each in sizes] == [6, 10, 24]
    with LocalEvaluator(TSP) as evaluator:
        finals = validate(config, TSP, evaluator, finalists, [control], Observer(), sizes=sizes)
    why = "repair: AssertionError at line 2"
    assert [f.misfit for f in finals.finalists] == [
        f"at 24 nodes, {why}", f"at 6 nodes, {why}", "", "",
    ]  # fmt: skip
    assert finals.controls[0].misfit == f"at 6 nodes, {why}"
    for select in ("utility", "validation"):
        assert finals.best(select) == finals.chosen(select) == finals.finalists[2]
    refused = finals.refused("utility")
    assert [each for each, _ in refused] == list(finals.finalists[:2])
    assert refused[0][1] == f"it fails on a size that it was not trained on: at 24 nodes, {why}"


def test_where_all_fail_on_other_sizes_the_highest_j_stays() -> None:
    wrong = [replace(each, misfit="at 6 nodes, x") for each in measured((0.9, 0.9, 0.9))]
    finals = Finals(tuple(wrong), (replace(best(BACK, 0.5), fresh=0.5, misfit="at 6 nodes, y"),))
    for select in ("utility", "validation"):
        assert finals.chosen(select) is None
        assert finals.best(select) == finals.highest


@pytest.mark.long
def test_misfits_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with finished(tmp_path, select="utility") as store:
        named = store.candidates(3)
        wrong = replace(named[0], fresh=named[0].utility, misfit="at 6 nodes, crash")
        others = [replace(each, fresh=each.utility) for each in named[1:]]
        controls = [replace(each, fresh=each.utility) for each in store.controls(4, named)]
        controls[0] = replace(controls[0], misfit="at 24 nodes, timeout")
        finals = Finals((wrong, *others), tuple(controls))
        store.commit_finals(finals)
        assert store.finals() == finals
        assert store.best() == finals.finalists[1]
    run = load_run(tmp_path / "run")
    assert (run.best, run.finals) == (finals.finalists[1], finals)
    assert "it fails on a size that it was not trained on: at 6 nodes, crash" in html(
        run, "not played here"
    )
    with closing(sqlite3.connect(tmp_path / "run" / DATABASE)) as db:
        for table in ("misfits", "digests"):  # as in a run from before there was one
            db.execute(f"DROP TABLE {table}")
    assert load_run(tmp_path / "run").best == replace(wrong, misfit="")


@pytest.mark.long
@pytest.mark.parametrize("method", ["spo", "eoh", "reevo", "best-of-n"])
def test_every_method_passes_over_a_misfit(tmp_path: Path, method: str) -> None:
    """Programs of the grammar with a line that fails beyond the sizes of training."""
    more: dict[str, Any] = {
        "preset": "smoke", "seed": 5, "generator": "test_validation:Misfits", "workers": 1,
        "rounds": 1, "size": 12, "validation_size": 12, "validation_instances": 1, "instances": 1,
        "rollouts": 1, "steps": 5, "validation_steps": 5, "finalists": 8, "method": method,
        "kit": "none",
    }  # fmt: skip
    if method != "spo":
        more |= {"pairs": 12}
    run = spo_jax.discover("tsp", **more, path=tmp_path / "run")
    assert run.best is not None
    marked = [f for f in run.finals.finalists if "!= 24" in f.pair.repair.source]
    assert marked
    assert all(f.misfit.startswith("at 24 nodes, repair: AssertionError") for f in marked)
    assert "!= 24" not in run.best.pair.repair.source


class Misfits(GrammarGenerator):
    """Every other repair of the grammar fails at 24 nodes."""

    def generate(self, prompts: Any, n: int, seed: int) -> Any:
        found = super().generate(prompts, n, seed)
        return [
            tuple(
                replace(each, text=_marked(each.text)) if len(each.text) % 2 else each
                for each in group
            )
            for group in found
        ]


def _marked(text: str) -> str:
    head, colon, body = text.partition("def repair(")
    signature, end, rest = body.partition("):\n")
    return text if not colon else f"{head}{colon}{signature}{end}    assert len(dist) != 24\n{rest}"


def memoriser(problem: Problem, config: Settings) -> str:
    """A pair file that knows good tours of a run's training instances, and is bad at any other."""
    known = {}
    for each in training_instances(config, problem):
        tour = spo_jax.solve(each, steps=200, workers=1).solution
        known[float(each.dist[0, 1])] = list(map(int, tour))
    stored = ", ".join(f"({key!r}, {tuple(tour)!r})" for key, tour in known.items())
    return (
        f"KNOWN = ({stored},)\n\n\n{DESTROY}\n\n"
        "def repair(dist, tour, removed, z, rng):\n"
        "    for key, stored in KNOWN:\n"
        "        if dist[0][1] == key:\n"
        "            return list(stored)\n"
        "    return removed + tour\n"
    )


@pytest.mark.long
@pytest.mark.parametrize(("select", "files"), [("utility", False), ("validation", True)])
def test_a_memorised_tour_does_not_win(
    tmp_path: Path,
    select: str,
    files: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quick_page(monkeypatch)
    more: dict[str, Any] = {
        "preset": "smoke", "seed": 5, "generator": "grammar", "workers": 1, "rounds": 1,
        "size": 12, "validation_size": 12, "validation_instances": 1, "rollouts": 1, "steps": 20,
        "validation_steps": 20, "finalists": 3, "select": select,
    }  # fmt: skip
    if files:  # the training is of files, so that there are no instances like them
        for k, each in enumerate(TSP.sample(12, 2, 99)):
            text = "\n".join(f"{n} {x:.6f} {y:.6f}" for n, (x, y) in enumerate(each.coords, 1))
            (tmp_path / f"{k}.tsp").write_text(
                f"NAME: t{k}\nTYPE: TSP\nDIMENSION: 12\nEDGE_WEIGHT_TYPE: EUC_2D\n"
                f"NODE_COORD_SECTION\n{text}\nEOF\n"
            )
        more |= {"on": (str(tmp_path),), "distances": "exact"}
    config = spo_jax.settings("tsp", **more)
    learnt = tmp_path / "learnt.py"
    learnt.write_text(memoriser(TSP, config))
    run = spo_jax.discover(
        "tsp", **more, start_pairs=(str(learnt),), path=tmp_path / "run", verbose=True
    )
    highest = run.finals.highest
    assert highest is not None
    assert highest.pair.repair.source.count("KNOWN")
    assert run.best is not None
    assert "KNOWN" not in (tmp_path / "run/best.py").read_text()
    assert run.best.pair.digest == (run.finals.best(select) or highest).pair.digest
    assert run.best.pair.digest in {f.pair.digest for f in run.finals.finalists[1:]}
    output = capsys.readouterr().out
    assert "is refused: its J falls by" in output
    best = (tmp_path / "run/best.py").read_bytes()
    again = spo_jax.discover(path=tmp_path / "run", resume=True)
    assert again.best == run.best
    assert (tmp_path / "run/best.py").read_bytes() == best
    assert "refused" in html(run, "not played here")


@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_no_instance_is_in_two_sets(problem: str) -> None:
    """Discovery, validation, fresh, and what `spo evaluate` samples, all of one size."""
    tools = get_problem(problem)
    sets = []
    for seed in range(4):
        own = {"seed": seed, "size": 50, "instances": 6, "validation_size": 50}
        own |= {"validation_instances": 4}
        config = presets.settings(problem, "standard", **own)
        sets.append(
            tools.sample(
                config.evaluation.size, config.evaluation.instances, derive(seed, "instances")
            )
        )
        sets += [validation_instances(config, tools), fresh_instances(config, tools)]
    for text in ("uniform:50x64", "uniform:50x64@1", "uniform:50x64@2026"):
        sets.append(parse_spec(text, tools).load(tools))
    digests = [instance.digest for each in sets for instance in each]
    assert len(digests) == len(set(digests)) == 4 * (6 + 4 + FRESH * 6) + 3 * 64


def test_no_stream_of_a_run_is_one_of_evaluate_or_of_another_run() -> None:
    names = ("instances", "validation", "fresh")
    seeds = [derive(seed, name) for seed in range(1000) for name in names]
    assert len(set(seeds)) == len(seeds)
    assert not set(seeds) & set(range(10**6))


def finished(tmp_path: Path, **changes: object) -> Store:
    """A run whose rounds are over; not yet validated."""
    config = small(**({"finalists": 3, "rounds": 2} | changes))
    store = Store.create(tmp_path / "run", {"config": config.flat()})
    discover(Parts(config, TSP, Evaluator(), Generator()), store.state(), store.commit)
    return store


@pytest.mark.parametrize("select", ["utility", "validation"])
def test_a_run_ends_with_the_pair_that_its_rule_chooses(tmp_path: Path, select: str) -> None:
    with finished(tmp_path, select=select) as store:
        highest = store.best()
        assert load_run(store.path).status == "running"  # this process has it
        named = store.candidates(3)
        assert named[0] == highest
        values = [finalist.utility for finalist in named]
        assert values == sorted(values, reverse=True)
        assert len({finalist.pair.destroy.digest for finalist in named}) == 3
        others = store.controls(3, named)
        assert others == store.controls(3, named)
        assert not {each.pair.digest for each in others} & {each.pair.digest for each in named}
        scores = [0.1, 0.3, 0.2]
        finals = Finals(
            tuple(replace(f, validation=v, fresh=0.4) for f, v in zip(named, scores, strict=True)),
            tuple(replace(each, fresh=0.2) for each in others),
        )
        store.commit_finals(finals)
        winner = finals.finalists[0 if select == "utility" else 1]
        assert store.best() == winner
        assert store.finals() == finals
    run = load_run(tmp_path / "run")
    assert (run.status, run.best, run.finals) == ("finished", winner, finals)
    assert run.best_by_round[-1].utility == highest.utility  # type: ignore[union-attr]


def test_where_every_finalist_fails_in_validation_the_highest_j_is_the_runs_pair(
    tmp_path: Path,
) -> None:
    with finished(tmp_path, select="validation") as store:
        finals = Finals(tuple(replace(f, fresh=0.4) for f in store.candidates(3)))
        store.commit_finals(finals)
        assert store.best() == finals.highest
    assert load_run(tmp_path / "run").status == "finished"


def test_controls_are_drawn_from_all_valid_pairs(tmp_path: Path) -> None:
    with finished(tmp_path) as store:
        named = store.candidates(2)
        every = store.controls(10_000, named)
        played = [p for p in store.state().payoffs.values() if p.kind == "response"]
        good = {p.digests: p.utility for p in played if p.status == "ok"}
        found = {(b.pair.destroy.digest, b.pair.repair.digest): b.utility for b in every}
        named_digests = {(b.pair.destroy.digest, b.pair.repair.digest) for b in named}
        assert found == {d: u for d, u in good.items() if d not in named_digests}
        assert {each.pair.digest for each in store.controls(3, named)} != {
            each.pair.digest for each in sorted(every, key=lambda b: -b.utility)[:3]
        }


def test_a_validation_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    with finished(tmp_path) as store:
        named = store.candidates(3)
        unwritable = replace(named[1], round=None)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="database cannot be used"):
            store.commit_finals(Finals((named[0], unwritable)))
        assert store.finals() == Finals()
    assert load_run(tmp_path / "run").status == "interrupted"


def test_presets_and_flags() -> None:
    rules = {
        name: presets.settings(
            "cvrp" if name == "paper-cvrp" else "tsp", name, generator="grammar"
        ).search.select
        for name in PRESETS
    }
    assert rules == {
        "smoke": "validation", "quick": "validation", "standard": "validation",
        "real-small": "validation", "hosted": "validation",
        "paper-tsp": "utility", "paper-cvrp": "utility",
    }  # fmt: skip
    assert (Settings().search.select, Settings().search.finalists) == ("utility", 10)
    with pytest.raises(InputError, match="finalists is 0; select = validation needs at least 1"):
        Settings.make(select="validation", finalists=0)


def test_what_a_run_says_of_its_choice() -> None:
    finalists = measured((0.9, 0.6, 0.1), (0.8, 0.75, 0.3))
    finals = Finals(finalists, measured((0.5, 0.4, None)))
    config = small(select="validation", finalists=2)
    printed = lines.closing(finalists[1], config, Path("runs/x"), Path("runs/x/best.py"), finals)
    assert printed[:5] == [
        "Validated best, J 0.8000 (round 1): runs/x/best.py",
        "               J found  J fresh  validated",
        "  chosen        0.8000   0.7500     0.3000",
        "  highest J     0.9000   0.6000     0.1000",
        "From discovery's instances to fresh ones the highest J moves by -0.3000, 1 pair drawn at "
        "random by -0.1000 (median): it over-promised 0.2000.",
    ]
    assert printed[-4:] == [
        "  spo evaluate runs/x --on uniform:6x8",
        "  spo baseline alns --problem tsp --on uniform:6x8",
        "To solve an instance with it:",
        "  spo solve FILE.tsp --pair runs/x",
    ]
    assert "J is the share of a random start's cost that the search saves." in printed
    one = lines.choice(finalists[0], Finals(finalists))
    assert [line.split()[0] for line in one] == ["J", "chosen"]
    assert lines.choice(finalists[0], Finals()) == []


def early(rollouts, instances):
    """Early gains count. Later ones do, too."""


class Bare(Problem):
    """A problem that reads no files, and whose one baseline needs a package."""

    name, interface = "bare", TSP.interface
    baselines = {"far": Baseline("nowhere:far", needs=("nowhere_to_be_found", "far"))}  # noqa: RUF012

    def sample(self, size: int, count: int, seed: int) -> list[Instance]:
        return []

    def rules(self, instance: Instance) -> Rules:
        return TSP.rules(instance)


def test_closing_lines_name_only_what_exists() -> None:
    """Commands that the problem has, with the meaning of the run's J, and paths for a shell."""
    [found] = measured((0.9, 0.6, 0.1))

    def closing(path: str = "runs/x", importable: bool = True, **changes: Any) -> list[str]:
        config = small(finalists=1, **changes)
        return lines.closing(found, config, Path(path), "pair.py", importable=importable)

    bare = closing(problem=f"{__name__}:Bare")
    assert bare[-2:] == [
        "What the pair costs on the same instances:",
        "  spo evaluate runs/x --on uniform:6x8",
    ]
    assert (
        closing(importable=False)[-1]
        == "J is the share of a random start's cost that the search saves."
    )
    assert "  spo evaluate 'my runs/x' --on uniform:6x8" in closing("my runs/x")
    assert lines.stopped(small(), Path("my runs/x"), 1).endswith("--resume 'my runs/x'")
    told = f"J is what the utility {__name__}:early makes of a pair's rollouts: Early gains count."
    assert told in closing(utility=f"{__name__}:early")
    unread = "J is what the utility nowhere:early makes of a pair's rollouts."
    assert unread in closing(utility="nowhere:early")
    [anytime] = [line for line in closing(utility="anytime") if line.startswith("J is")]
    assert anytime.endswith("saves, as a mean over its steps.")
    assert lines.closing(None, small(), Path("x"), "", failed=False) == ["No valid pair was found."]


@pytest.mark.long
def test_the_page_says_what_its_j_is(tmp_path: Path) -> None:
    with finished(tmp_path, utility="anytime") as store:
        page = html(load_run(store.path), "not played here")
    assert "saves, as a mean over its steps" in page
    assert "that is saved" not in page

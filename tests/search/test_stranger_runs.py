"""What a run of a problem of one's own says and refuses; a finished run that gets more rounds."""

import types
from pathlib import Path
from typing import Any

import pytest

import spo_jax
from spo_jax import InputError, get_problem
from spo_jax.cli import main
from spo_jax.envs.report.comparison.compared import NO_STEP, steps_text
from spo_jax.envs.report.solve import Solved
from spo_jax.runs.report import write
from spo_jax.search.plugins import require_parts
from spo_jax.search.utility import UTILITIES, meaning, reads_seconds, utility_of
from spo_jax.search.writing.prompts import Templates, unread

SMALL = ["--preset", "smoke", "--generator", "grammar", "--size", "10", "--steps", "10",
         "--responses", "2", "--instances", "1", "--rollouts", "1"]  # fmt: skip


def by_time(rollouts, instances):
    """Cost saved by second. And more."""
    costs = rollouts.best_cost
    return (costs[..., 0] - costs[..., -1]) / [each + 1e-9 for each in rollouts.seconds]


def by_name(rollouts, instances):
    return getattr(rollouts, "seconds") * 0.0  # noqa: B009


def nested(rollouts, instances):
    return (lambda: rollouts.seconds)() * 0.0


class Timed:
    def __call__(self, rollouts, instances):
        return rollouts.seconds * 0.0


timed = Timed()


def by_cost(rollouts, instances):
    return rollouts.best_cost[..., 0] - rollouts.best_cost[..., -1]


@pytest.mark.parametrize("name", ["by_time", "by_name", "nested", "timed"])
def test_a_utility_that_reads_seconds_is_seen(name: str) -> None:
    assert reads_seconds(utility_of(f"{__name__}:{name}", get_problem("tsp")))


def test_others_read_none() -> None:
    for name in (*UTILITIES, f"{__name__}:by_cost"):
        assert not reads_seconds(utility_of(name, get_problem("tsp")))


def test_what_j_is_in_the_words_of_the_utility() -> None:
    assert meaning(f"{__name__}:by_time").endswith("a pair's rollouts: Cost saved by second")
    assert meaning(f"{__name__}:by_cost").endswith("makes of a pair's rollouts")
    assert meaning("anytime", maximise=True) == (
        "the share of a random start's value that the search adds, as a mean over its steps"
    )


def test_classical_destroys_that_are_none_are_refused() -> None:
    config = spo_jax.settings(
        f"{__name__}:Bare", "smoke", generator="grammar", panel_classical=True
    )
    with pytest.raises(InputError, match=r"--panel-classical adds .* and bare has none: leave it"):
        require_parts(config)


class Bare(type(get_problem("tsp"))):  # type: ignore[misc]
    name = "bare"

    def classical_destroys(self) -> tuple[Any, ...]:
        return ()


@pytest.mark.long
def test_a_finished_run_gets_more_rounds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends as a run that had as many from the start."""
    grown, whole = tmp_path / "grown", tmp_path / "whole"
    assert main(["discover", "tsp", *SMALL, "--rounds", "1", "--out", str(grown)]) == 0
    assert main(["discover", "--resume", str(grown), "--rounds", "2"]) == 0
    assert main(["discover", "tsp", *SMALL, "--rounds", "2", "--out", str(whole)]) == 0
    one, other = spo_jax.load_run(grown), spo_jax.load_run(whole)
    assert one.status == "finished"
    assert one.progress == other.progress == "2 of 2"
    assert one.config.search.rounds == one.planned == 2  # those that it has, not had
    assert repr(one).endswith(f"tsp, rounds 2 of 2, finished, best J {one.best.utility:.4f})")
    assert one.best.pair.digest == other.best.pair.digest
    for table in ("pairs", "best_by_round"):
        ours, theirs = ([replaced(each) for each in getattr(run, table)] for run in (one, other))
        assert ours == theirs
    assert [each.validation for each in one.finals.finalists] == [
        each.validation for each in other.finals.finalists
    ]
    assert main(["discover", "--resume", str(grown)]) == 0
    assert "is finished: 2 of 2 rounds" in capsys.readouterr().out
    assert main(["discover", "--resume", str(grown), "--rounds", "1"]) == 2
    assert "rounds is 2 there and 1 here" in capsys.readouterr().err


def replaced(each: Any) -> tuple[Any, ...]:
    """What does not depend on time."""
    fields = {n: v for n, v in vars(each).items() if "seconds" not in n}
    return tuple(map(repr, fields.values()))


def test_a_page_that_stays_old_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> Any:
        raise InputError("the disk is full; report.html is an older page")

    monkeypatch.setattr(write, "report", fail)
    run = spo_jax.runs.run.Run.__new__(spo_jax.runs.run.Run)
    object.__setattr__(run, "path", tmp_path)
    remarks: list[str] = []
    write.keep_page(run, remarks.append)
    assert remarks == ["no report.html, because the disk is full; report.html is an older page"]
    (tmp_path / "report.html").write_text("older")
    with pytest.raises(InputError, match="older page"):
        write.keep_page(run, remarks.append)


def test_a_search_without_a_step_is_marked() -> None:
    assert steps_text([0, 40]) == f"20{NO_STEP}"
    assert steps_text([3]) == "3"
    assert steps_text([None]) == steps_text([]) == "-"


def test_a_solution_in_a_line() -> None:
    instance = types.SimpleNamespace(name="bag")
    found = Solved(instance, [1], 12.0, 0.5, 3.0, 0, 7, 0.1, 1, 0, ())  # type: ignore[arg-type]
    assert repr(found) == "Solved(bag: 12, gap 0.500%, 7 steps)"


# --- contracts ------------------------------------------------------------------------------------


def test_a_folder_of_prompts_serves_several_problems(tmp_path: Path) -> None:
    for name in ("tsp", "knapsack"):
        for role in ("destroy", "repair"):
            paired = "$paired_destroy" * (role == "repair")
            text = f"Of {name}. $state_input $adaptation {paired}\n"
            (tmp_path / f"{name}-{role}.txt").write_text(text)
    found = Templates.read(tmp_path, get_problem("tsp"))
    assert found.texts["tsp-destroy.txt"].startswith("Of tsp.")
    assert not any("knapsack" in name for name in found.texts)
    assert Templates.read(tmp_path, get_problem("cvrp")).texts["cvrp-destroy.txt"].count("CVRP")
    (tmp_path / "tsp-destroy.txt").rename(tmp_path / "tsb-destroy.txt")
    with pytest.raises(InputError, match=r"tsb-destroy\.txt is no prompt template"):
        Templates.read(tmp_path, get_problem("tsp"))


class Deaf(spo_jax.generator.Generator):
    reads_prompts = False

    def generate(self, prompts: Any, n: int, seed: int) -> Any:
        return [() for _ in prompts]


def test_a_generator_that_reads_no_prompts_needs_no_contract() -> None:
    problem = type("Own", (spo_jax.Problem,), {"name": "own"})()
    assert unread("grammar")
    assert unread(f"{__name__}:Deaf")
    assert not unread("model")
    assert not unread("nowhere:Writer")
    texts = Templates.read(None, problem, unread=True).texts
    assert set(texts["own-repair.txt"].split()) == {
        "$state_input", "$adaptation", "$paired_destroy",
    }  # fmt: skip
    with pytest.raises(InputError, match="no contract of a destroy"):
        Templates.read(None, problem)

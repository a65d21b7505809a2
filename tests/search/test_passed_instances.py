"""Training instances that are passed in memory: kept in the run's folder, and found there again."""

import json
import shutil
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from spo_fakes import Stop, quick_page

import spo_jax
from spo_jax import InputError, Instance
from spo_jax.cli import main
from spo_jax.envs.problems import get_problem
from spo_jax.runs.database.store import dump
from spo_jax.runs.folders import INSTANCES, MANIFEST

TSP = get_problem("tsp")
TINY: dict[str, Any] = {
    "preset": "smoke", "rounds": 2, "rollouts": 1, "steps": 4, "finalists": 0, "select": "utility",
    "generator": "grammar", "update": "none", "workers": 1, "seed": 3, "mutation_groups": 1,
    "crossover_groups": 1, "responses": 2, "repairs_per_destroy": 2,
}  # fmt: skip
FINALS: dict[str, Any] = TINY | {
    "finalists": 2, "select": "validation", "validation_size": 8, "validation_instances": 1,
    "validation_steps": 5,
}  # fmt: skip


def skewed(k: int) -> Instance:
    """An instance that no file of the TSP and no seed gives."""
    rng = np.random.default_rng(k)
    return Instance("tsp", "mine", 8, dist=rng.random((8, 8)) * (1 - np.eye(8)), file={"id": (k,)})


@pytest.mark.long
def test_it_is_the_run_of_a_set_of_the_same_instances(tmp_path):
    named = spo_jax.discover("tsp", path=tmp_path / "named", on=["uniform:8x2@5"], **TINY)
    passed = spo_jax.discover("tsp", path=tmp_path / "passed", on=TSP.sample(8, 2, 5), **TINY)
    assert dump(passed.path) == dump(named.path)
    assert passed.manifest["instances"] == named.manifest["instances"]
    assert passed.references == named.references


@pytest.mark.slow
def test_a_stopped_run_goes_on_from_the_command_line_wherever_it_lies(
    tmp_path, monkeypatch, capsys
):
    quick_page(monkeypatch)
    mine = [skewed(1), skewed(2)]
    whole = spo_jax.discover("tsp", path=tmp_path / "whole", on=mine, **FINALS)
    assert whole.manifest["config"]["on"] == [INSTANCES]
    assert [each["name"] for each in whole.manifest["instances"]] == ["mine", "mine (2)"]
    for number, name in ((1, "repair"), (2, "cross-play")):
        with pytest.raises(KeyboardInterrupt):
            spo_jax.discover("tsp", path=tmp_path / "begun", on=mine, resume=True,
                             observer=Stop(number, name), **FINALS)  # fmt: skip
        shutil.move(tmp_path / "begun", tmp_path / "moved")
        shutil.move(tmp_path / "moved", tmp_path / "begun")
    shutil.move(tmp_path / "begun", tmp_path / "moved")
    assert main(["discover", "--resume", str(tmp_path / "moved")]) == 0
    assert dump(tmp_path / "moved") == dump(tmp_path / "whole")
    # The manifest says what it said, and the page shows a rollout on the instances.
    run = spo_jax.load_run(tmp_path / "moved")
    assert run.manifest["config"] == whole.manifest["config"]
    assert run.config.evaluation.on == (str(tmp_path / "moved" / INSTANCES),)
    assert "not played" not in spo_jax.report(run, tmp_path / "page.html").read_text()
    output = capsys.readouterr().out
    assert f"--on {tmp_path / 'moved' / INSTANCES}" in output
    again = ["evaluate", str(run.path), "--on", str(run.path / INSTANCES), "--steps", "4"]
    assert main([*again, "--seeds", "1", "--references", "none"]) == 0
    assert "2/2" not in capsys.readouterr().out  # none failed
    assert spo_jax.discover(path=run.path, resume=True).best == whole.best
    assert main(["discover", "--resume", str(run.path), "--rewind", "1"]) == 0
    assert dump(run.path) == dump(whole.path)


@pytest.mark.long
def test_a_run_takes_its_instances_again_and_no_others(tmp_path):
    mine = [skewed(1), skewed(2)]
    given: dict[str, Any] = {"path": tmp_path / "run", "resume": True} | TINY
    with pytest.raises(KeyboardInterrupt):
        spo_jax.discover("tsp", on=mine, observer=Stop(2, "destroy"), **given)
    for _ in ("unfinished", "finished"):
        for other in ([skewed(1)], [skewed(2), skewed(1)], ["uniform:8x2@1"]):
            with pytest.raises(InputError, match="began with other training instances"):
                spo_jax.discover("tsp", on=other, **given)
        assert spo_jax.discover("tsp", on=mine, **given).status == "finished"
    (tmp_path / "run" / INSTANCES).write_bytes(b"")
    with pytest.raises(InputError, match=rf"{INSTANCES} cannot be read"):
        spo_jax.discover(path=tmp_path / "run", resume=True, rewind=1)
    (tmp_path / "run" / INSTANCES).unlink()
    with pytest.raises(InputError, match=rf"{INSTANCES} does not exist"):
        spo_jax.discover(path=tmp_path / "run", resume=True, rewind=1)
    # The caller still has them.
    assert spo_jax.discover("tsp", on=mine, rewind=1, **given).status == "finished"


@pytest.mark.long
def test_a_run_of_files_goes_on_with_the_same_in_memory(tmp_path):
    given: dict[str, Any] = {"path": tmp_path / "run", "resume": True} | TINY
    with pytest.raises(KeyboardInterrupt):
        spo_jax.discover("tsp", on=["uniform:8x2@5"], observer=Stop(2, "destroy"), **given)
    run = spo_jax.discover("tsp", on=TSP.sample(8, 2, 5), **given)
    assert run.status == "finished"
    assert not (run.path / INSTANCES).exists()
    assert run.config.evaluation.on == ("uniform:8x2@5",)


@pytest.mark.long
def test_with_another_problem_and_one_instance(tmp_path):
    vrptw = get_problem("vrptw")
    [instance] = vrptw.sample(8, 1, 4)
    one = TINY | {"rounds": 1}
    run = spo_jax.discover("vrptw", path=tmp_path / "run", on=instance, **one)
    assert run.manifest["instances"] == [
        {"name": instance.name, "size": 8, "digest": instance.digest}
    ]
    assert run.status == "finished"


class Copied(Instance):
    """An instance of a class of its own."""


[ONE, TWO] = TSP.sample(8, 2, 5)
[OTHER] = get_problem("cvrp").sample(8, 1, 5)
WRONG: list[tuple[Any, str]] = [
    ([], "on is an empty list"),
    ([ONE, "uniform:8x1"], "not both: 'uniform:8x1' is no Instance"),
    ([ONE, 3], "not both: 3 is no Instance"),
    ([ONE, OTHER], "is an instance of cvrp, not of tsp"),
    ([ONE, TWO, replace(ONE, name="b")], f"b is the same instance as {ONE.name}"),
    ([replace(ONE, size=8.0)], "of size 8.0: it must be an Instance itself"),
    ([Copied("tsp", "c", 8, dist=ONE.dist)], "c is a Copied of size 8: it must be an Instance"),
    ([replace(ONE, extra={"x": {1}})], "holds a set"),
]


@pytest.mark.parametrize(("on", "message"), WRONG, ids=[message[:20] for _, message in WRONG])
def test_what_cannot_be_trained_on_is_one_sentence_and_nothing_is_written(tmp_path, on, message):
    with pytest.raises(InputError, match=message) as error:
        spo_jax.discover("tsp", path=tmp_path / "run", on=on, **TINY)
    assert "\n" not in str(error.value)
    assert "--" not in str(error.value)
    assert not any(tmp_path.iterdir())
    pair = TSP.pair
    assert pair is not None
    with pytest.raises(InputError, match="nothing to evaluate on" if on == [] else message):
        spo_jax.evaluate(pair, "tsp", on=on)


def test_what_a_file_cannot_hold_is_reported_before_the_run(tmp_path):
    odd = replace(ONE, file={"x": {1}})
    with pytest.raises(InputError, match=r"`file` of the instance .* holds a set"):
        spo_jax.discover("tsp", path=tmp_path / "run", on=[odd], **TINY)
    assert not any(tmp_path.iterdir())


def test_options_of_files_are_for_files(tmp_path):
    for ask in (
        lambda: spo_jax.discover("tsp", path=tmp_path / "run", on=[ONE], distances="exact", **TINY),
        lambda: spo_jax.evaluate("shipped", "tsp", on=[ONE], distances="exact"),
    ):
        with pytest.raises(InputError, match="distances is for instance files, and none is named"):
            ask()
    assert not any(tmp_path.iterdir())
    with pytest.raises(InputError, match=r"validate_on is .* must be texts"):
        spo_jax.discover("tsp", path=tmp_path / "run", validate_on=[ONE], **TINY)


# --- evaluating -----------------------------------------------------------------------------------


@pytest.mark.long
def test_evaluating_in_memory_is_evaluating_a_set(tmp_path):
    terms: dict[str, Any] = {"steps": 5, "seeds": 2, "workers": 1, "references": "none"}
    [named] = spo_jax.evaluate("shipped", "tsp", "uniform:9x2@3", **terms).groups
    instances = TSP.sample(9, 2, 3)
    [group] = spo_jax.evaluate("shipped", on=instances, **terms).groups  # they know their problem
    [one] = spo_jax.evaluate("shipped", on=instances[0], **terms).groups
    costs = [[[r.best_cost for r in i.rollouts] for i in g.instances] for g in (named, group, one)]
    assert costs[0] == costs[1] == [*costs[2], costs[1][1]]
    assert [each.name for each in group.instances] == [each.name for each in instances]
    assert (named.name, group.name) == ("uniform:9x2@3", "instances")


@pytest.mark.long
def test_references_are_their_own_or_found(tmp_path):
    best = 1000.0
    mine = [replace(ONE, reference=best, reference_source="me"), TWO]
    report = spo_jax.evaluate(
        "shipped", on=mine, steps=5, seeds=1, workers=1, cache=tmp_path, effort="quick"
    )
    own, found = report.groups[0].instances
    assert (own.reference, own.reference_source) == (best, "me")
    named = spo_jax.evaluate(
        "shipped", "tsp", "uniform:8x2@5", steps=5, seeds=1, workers=1, cache=tmp_path,
        effort="quick",
    )  # fmt: skip
    assert (found.reference, found.reference_source) == (
        named.groups[0].instances[1].reference,
        named.groups[0].instances[1].reference_source,
    )


@pytest.mark.long
def test_the_manifest_of_a_passed_run_can_be_read_as_it_is(tmp_path):
    run = spo_jax.discover("tsp", path=tmp_path / "run", on=[ONE], **(TINY | {"rounds": 1}))
    kept = json.loads((run.path / MANIFEST).read_text())
    assert kept["config"]["on"] == [INSTANCES]
    assert kept["instances"][0]["digest"] == ONE.digest

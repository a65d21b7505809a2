"""The public API: the page docs/api.md as it stands, and what `spo_jax.discover` promises."""

import inspect
import json
import math
import os
import pickle
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spo_jax
from spo_jax import Credits, InputError
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.runs.argument_errors import in_arguments
from spo_jax.runs.database.store import dump
from spo_jax.runs.folders import MANIFEST
from spo_jax.search.credit import CREDITS
from spo_jax.search.rounds import Observer, Round, Updater

ROOT = Path(__file__).parents[1]
BUILT = shutil.ignore_patterns("*.so", "__pycache__")
SMALL: dict[str, Any] = {
    "preset": "smoke", "rounds": 2, "size": 8, "instances": 2, "rollouts": 1, "steps": 4,
    "finalists": 2, "validation_size": 8, "validation_instances": 1, "validation_steps": 5,
    "generator": "grammar", "update": "none", "workers": 1, "seed": 3,
    "mutation_groups": 1, "responses": 2, "repairs_per_destroy": 2, "population_size": 2,
    "cross_play_candidates": 2, "panel_evolved": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> spo_jax.Run:
    return spo_jax.discover("tsp", path=tmp_path_factory.mktemp("api") / "run", **SMALL)


# --- the page -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "api.md").read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        exec(block, names)
    [line] = [line for line in text.splitlines() if line.startswith("| the nouns ")]
    assert {"Instance", "Observer"} < set(re.findall(r"`(\w+)`", line)) < set(dir(spo_jax))


@pytest.mark.slow
def test_the_page_is_typed(tmp_path: Path) -> None:
    """As a caller's own script, with all checks on; a mistake in it is found."""
    pytest.importorskip("mypy")
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    script = "\n".join(re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE))
    (tmp_path / "page.py").write_text(script)
    (tmp_path / "wrong.py").write_text("import spo_jax\nspo_jax.load_run(3).best.pair\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir=cache"]
    command += ["--follow-imports=silent", "page.py", "wrong.py"]
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    found = [line.partition(": error: ")[::2] for line in done.stdout.splitlines()[:-1]]
    assert [place for place, _ in found] == ["wrong.py:2"] * 2, done.stdout + done.stderr


def test_every_name_is_there_and_documented() -> None:
    for name in spo_jax.__all__:
        assert inspect.getdoc(getattr(spo_jax, name)), name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        spo_jax.nothing  # noqa: B018


def test_importing_it_loads_nothing() -> None:
    script = "import sys, spo_jax; dir(spo_jax); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert not {"numpy", "jax", "rich"} & set(done.stdout.split())


@pytest.mark.long
def test_the_wheel_has_the_types_and_the_runs(tmp_path: Path) -> None:
    """All files of the package but the C sources; built in a copy, since a build leaves folders."""
    pytest.importorskip("setuptools", "77")
    shutil.copytree(ROOT / "spo_jax", tmp_path / "spo_jax", ignore=BUILT)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    script = "from setuptools import build_meta; build_meta.build_wheel('made')"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr
    [wheel] = (tmp_path / "made").glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    # What a package index shows: the README, in which no link or picture leads into the repository.
    [metadata] = (name for name in names if name.endswith(".dist-info/METADATA"))
    shown = zipfile.ZipFile(wheel).read(metadata).decode()
    assert "Description-Content-Type: text/markdown\n" in shown
    assert "Get started (`docs/get_started.md`)" in shown
    assert "run = spo_jax.discover(" in shown
    assert not re.findall(r"\]\((?!https?:)", shown)
    files = {path for path in (tmp_path / "spo_jax").rglob("*") if path.is_file()}
    sources = {path for path in files if path.suffix in (".c", ".h")}
    assert sources
    wanted = {path.relative_to(tmp_path).as_posix() for path in files - sources}
    built = {name for name in names if name.endswith(".abi3.so")}
    assert {name for name in names if name.startswith("spo_jax/")} - built == wanted
    assert {"spo_jax/py.typed", "spo_jax/runs/discover.py"} <= names
    if shutil.which("cc"):
        assert len(built) == 3
        assert "-cp311-abi3-" in wheel.name


# --- what a run says ------------------------------------------------------------------------------


def test_credits_are_those_of_the_scheme(run: spo_jax.Run) -> None:
    """Computed again from the payoff: credits kept are what the paper's scheme pays."""
    for k in (1, 2):
        scores = run.credits(k)
        again = CREDITS["stackelberg"](
            spo_jax.Payoff(
                scores.utility,
                tuple(run[name].program for name in scores.destroys),
                tuple(
                    tuple(run[name].program if name else None for name in row)
                    for row in scores.repairs
                ),
            ),
            top=run.config.search.top_responses,
        )
        np.testing.assert_array_equal(scores.leader, again.leader)
        np.testing.assert_array_equal(scores.follower, again.follower)
        np.testing.assert_array_equal(scores.leader_selection, again.leader)
        known = {(p.destroy, p.repair): p.utility for p in run.pairs}
        for i, j in np.argwhere(scores.repairs != ""):
            d, r = (run[name].digest for name in (scores.destroys[i], scores.repairs[i, j]))
            [value] = [v for (a, b), v in known.items() if (run[a].digest, run[b].digest) == (d, r)]
            np.testing.assert_equal(value, scores.utility[i, j])


def test_cross_play_is_what_chose_the_repairs(run: spo_jax.Run) -> None:
    for k in (1, 2):
        played = run.cross_play(k)
        assert played.utility.shape == (len(played.destroys), len(played.repairs))
        scores = dict(zip(played.repairs, played.scores, strict=True))
        whole = np.isfinite(played.utility).all(axis=0)
        np.testing.assert_allclose(played.scores[whole], played.utility.mean(axis=0)[whole])
        for member in run.populations[k, "repair"]:
            assert scores[member.name] == member.score
        destroys = {m.name for m in run.populations[k, "destroy"]}
        assert {name for name in played.destroys if run[name].form} <= destroys


def test_programs_prompts_and_samples_belong_together(run: spo_jax.Run) -> None:
    assert len({each.name for each in run.programs}) == len(run.programs)
    for each in run.programs:
        assert re.fullmatch(rf"{each.role[0].upper()}{each.round}\.\d\d+", each.name)
        assert run[each.name].program.digest == each.digest
    prompts = {(p.round, p.role, p.number): p for p in run.prompts}
    assert {(s.round, s.role, s.prompt) for s in run.samples} == prompts.keys()
    assert len(run.samples) == sum(c.destroy_answers + c.repair_answers for c in run.counts)
    for sample in run.samples:
        prompt = prompts[sample.round, sample.role, sample.prompt]
        if sample.program:
            assert run[sample.program].role == prompt.role
        if prompt.destroy:
            assert run[prompt.destroy].strategy in prompt.text
        for parent in prompt.parents:
            assert run[parent].strategy in prompt.text
    assert any(p.parents for p in run.prompts)
    first = [s for s in run.samples if (s.round, s.role) == (1, "destroy") and s.program]
    leaders = dict(zip(run.credits(1).destroys, run.credits(1).leader, strict=True))
    assert [s.credit for s in first] == [leaders[s.program] for s in first]


def test_what_is_no_number_is_missing(run: spo_jax.Run) -> None:
    assert all(math.isnan(each.advantage) for each in run.samples)  # nothing was learned
    assert run.metrics == {}
    with pytest.raises(InputError, match="has rounds 1 to 2, and no round 3"):
        run.credits(3)
    with pytest.raises(InputError, match=r"has no program D9\.01"):
        run["D9.01"]


@pytest.mark.long
def test_timings_are_kept_apart(run: spo_jax.Run, tmp_path: Path) -> None:
    again = spo_jax.discover("tsp", path=tmp_path / "again", **SMALL)
    assert dump(again.path) == dump(run.path)
    for each in (run, again):
        spent = {(t.round, t.stage): t.seconds for t in each.timings}
        assert {k for k, stage in spent if stage == "all"} == {1, 2}
        assert spent[1, "all"] >= spent[1, "response"] > 0
        assert spent[2, "validation"] > 0
        assert each.best_by_round[1].seconds == spent[1, "all"] + spent[2, "all"]
    assert [t.seconds for t in run.timings] != [t.seconds for t in again.timings]
    assert run.best is not None
    head = (run.path / "best.py").read_text()
    assert " with ".join(run.names(run.best.pair)) in head.replace("\n", " ")


def test_tables_are_data_frames(run: spo_jax.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    frame = run.pairs.to_pandas()
    assert frame.shape == (len(run.pairs), 10)
    np.testing.assert_array_equal(frame["utility"], run.pairs.column("utility"))
    assert run.failures.to_pandas().shape[0] == len(run.failures)
    assert list(run.counts.to_pandas()["round"]) == [1, 2]
    assert [each.round for each in run.counts] == [1, 2]
    for table in ("programs", "pairs", "failures", "prompts", "samples", "timings", "counts",
                  "best_by_round"):  # fmt: skip
        full = getattr(run, table)
        empty = type(full)(full.kind, ()).to_pandas()
        assert (len(empty), list(empty)) == (0, list(full.to_pandas())), table
        assert list(empty) == [field.name for field in fields(full.kind)]
    assert pickle.loads(pickle.dumps(run.timings)).to_pandas().equals(run.timings.to_pandas())
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pandas is not installed: pip install 'spo-jax\[study"):
        run.pairs.to_pandas()


class Learner(Updater):
    """Says advantages as the trainer does: credits less their mean."""

    def update(self, groups: Any) -> dict[str, float]:
        return {"groups": float(len(groups["repair"]))}

    def advantages(self, groups: Any) -> Any:
        return {
            role: [g.credits - np.nanmean(g.credits) for g in own] for role, own in groups.items()
        }


@pytest.mark.long
def test_advantages_of_the_update_are_kept(tmp_path: Path) -> None:
    run = spo_jax.discover("tsp", path=tmp_path / "run", **(SMALL | {"update": Learner()}))
    assert run.metrics["groups"].shape == (2,)
    groups: dict[Any, list[tuple[float, float]]] = {}
    for s in run.samples:
        groups.setdefault((s.round, s.role, s.prompt), []).append((s.credit, s.advantage))
    for group in groups.values():
        credits, moved = np.array(group).T
        np.testing.assert_array_equal(moved, credits - np.nanmean(credits))


# --- what is passed -------------------------------------------------------------------------------


def halved(payoff: spo_jax.Payoff, *, top: int) -> Credits:
    found = CREDITS["stackelberg"](payoff, top=top)
    return Credits(found.leader / 2, found.follower / 2)


@pytest.mark.long
def test_objects_in_the_place_of_names(tmp_path: Path) -> None:
    """What can be imported is a name; what cannot is asked for again."""
    named = spo_jax.discover("tsp", path=tmp_path / "named", **SMALL, credit=halved)
    assert named.config.search.credit == f"{__name__}:halved"
    assert "objects" not in named.manifest
    scale = 0.5

    def scaled(payoff: spo_jax.Payoff, *, top: int) -> Credits:
        found = CREDITS["stackelberg"](payoff, top=top)
        return Credits(found.leader * scale, found.follower * scale)

    path = tmp_path / "passed"

    class Cut(Observer):
        def finished(self, done: Round) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        spo_jax.discover("tsp", path=path, **SMALL, credit=scaled, observer=Cut())
    assert spo_jax.load_run(path).status == "interrupted"
    manifest = json.loads((path / MANIFEST).read_text())
    assert manifest["objects"]["credit"].endswith("<locals>.scaled")
    with pytest.raises(InputError, match=r"began with objects .*resume=True, credit=.*scaled\)"):
        spo_jax.discover(path=path, resume=True)
    with pytest.raises(InputError, match=r"credit is .*scaled there and .*halved here"):
        spo_jax.discover(path=path, resume=True, credit=halved)
    whole = spo_jax.discover(path=path, resume=True, credit=scaled)
    same = {table: rows for table, rows in dump(path).items() if table != "config"}
    assert same == {table: rows for table, rows in dump(named.path).items() if table != "config"}
    assert whole.status == "finished"
    assert spo_jax.discover(path=path, resume=True, credit=scaled).best == whole.best


@pytest.mark.long
def test_an_evaluator_of_ones_own(tmp_path: Path, run: spo_jax.Run) -> None:
    class Counting(LocalEvaluator):
        pairs = 0

        def run(self, pairs: Any, *args: Any, **more: Any) -> Any:
            Counting.pairs += len(pairs)
            return super().run(pairs, *args, **more)

    def counting(problem: Any, workers: int = 1, **more: Any) -> Any:
        return Counting(problem, workers, **more)

    own = spo_jax.discover("tsp", path=tmp_path / "own", **SMALL, evaluator=counting)
    assert Counting.pairs >= own.evaluated
    rows, other = dump(own.path), dump(run.path)
    assert rows.pop("config") != other.pop("config")  # it names the evaluator
    assert rows == other
    with pytest.raises(InputError, match=r"began with objects .*resume=True, evaluator=.*counting"):
        spo_jax.discover(path=own.path, resume=True, rewind=1)


@pytest.mark.long
def test_settings_are_given_whole_or_one_by_one(tmp_path: Path, run: spo_jax.Run) -> None:
    small = {name: value for name, value in SMALL.items() if name != "preset"}
    whole = spo_jax.settings("tsp", "smoke", **small)
    assert whole == run.config
    with pytest.raises(InputError, match="did you mean 'rounds'"):
        spo_jax.settings("tsp", runds=3)
    with pytest.raises(InputError, match="which problem"):
        spo_jax.discover()
    with pytest.raises(InputError, match="resume needs the path"):
        spo_jax.discover("tsp", resume=True)
    other = spo_jax.discover("tsp", whole, rounds=1, path=tmp_path / "run", resume=True)
    assert (other.rounds, other.preset) == (1, "own")
    with pytest.raises(InputError, match="steps is 4 there and 5 here"):
        spo_jax.discover("tsp", whole, steps=5, rounds=1, path=tmp_path / "run", resume=True)
    longer = spo_jax.discover("tsp", whole, path=tmp_path / "run", resume=True)
    assert (longer.rounds, longer.planned) == (2, 2)


@pytest.mark.long
@pytest.mark.parametrize("kind", [list, tuple])
def test_a_setting_of_several_values_is_a_list_or_a_tuple(tmp_path: Path, kind: Any) -> None:
    on = kind(["uniform:8x1", "uniform:9x1"])
    own = {name: value for name, value in SMALL.items() if name not in ("size", "instances")}
    small = own | {"rounds": 1, "on": on}
    found = spo_jax.discover("tsp", path=tmp_path / "run", **small)
    assert found.config.evaluation.on == ("uniform:8x1", "uniform:9x1")


@pytest.mark.long
def test_nothing_is_printed_unless_asked(tmp_path: Path, capsys: Any) -> None:
    once = SMALL | {"rounds": 1}
    spo_jax.discover("tsp", path=tmp_path / "quiet", **once)
    assert capsys.readouterr().out == ""
    spo_jax.discover("tsp", path=tmp_path / "loud", **once, verbose=True)
    assert "round 1/1" in capsys.readouterr().out
    assert "round 1/1" in (tmp_path / "quiet" / "log.txt").read_text()


@pytest.mark.long
def test_a_problem_may_be_an_object(tmp_path: Path) -> None:
    cvrp = spo_jax.get_problem("cvrp")
    run = spo_jax.discover(cvrp, path=tmp_path / "run", **(SMALL | {"rounds": 1}))
    assert run.config.problem == "cvrp"


# --- evaluating and solving -----------------------------------------------------------------------


@pytest.mark.long
def test_a_pair_from_anywhere(run: spo_jax.Run, tmp_path: Path) -> None:
    assert run.best is not None
    file = spo_jax.save_pair(tmp_path / "pair.py", run.best.pair)
    terms: dict[str, Any] = {"steps": 5, "seeds": 2, "references": "none", "workers": 1}
    costs = {
        spo_jax.evaluate(pair, "tsp", "uniform:9x2", **terms).groups[0].summary.mean_cost
        for pair in (run, run.path, str(run.path), file, run.best.pair)
    }
    assert len(costs) == 1
    [instance] = spo_jax.get_problem("tsp").sample(9, 1, seed=1)
    assert spo_jax.solve(instance, run.best.pair, steps=5).instance is instance
    with pytest.raises(InputError, match="a pair does not say which problem"):
        spo_jax.evaluate(run.best.pair, on="uniform:9x2")


@pytest.mark.long
def test_the_pair_that_ships_by_name(
    run: spo_jax.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ships = spo_jax.get_problem("tsp").pair
    assert ships is not None
    terms: dict[str, Any] = {"steps": 1, "seeds": 1, "references": "none", "workers": 1}

    def cost(pair: Any) -> float | None:
        return spo_jax.evaluate(pair, "tsp", "uniform:60x2", **terms).groups[0].summary.mean_cost

    assert run.best is not None
    assert cost("shipped") == cost(ships) != cost(run)
    [instance] = spo_jax.get_problem("tsp").sample(30, 1, seed=1)
    both = spo_jax.solve(instance, ["shipped", run], steps=5, workers=1)
    assert both.cost == spo_jax.solve(instance, [ships, run], steps=5, workers=1).cost
    with pytest.raises(InputError, match="shipped does not say which problem"):
        spo_jax.evaluate("shipped", on="uniform:30x2")
    spo_jax.save_pair(tmp_path / "shipped", run.best.pair)  # a file of that name goes before it
    assert cost("shipped") == cost(run)


def bad_survivors(candidates: Any, context: Any) -> list[Any]:
    return [1]


@pytest.mark.long
def test_a_run_refused_in_its_first_round_leaves_no_folder(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(InputError, match="survivors"):
            spo_jax.discover("tsp", path=tmp_path / "run", survivors=bad_survivors, **SMALL)
        assert not any(tmp_path.iterdir())
    later = SMALL | {"rounds": 1}
    spo_jax.discover("tsp", path=tmp_path / "run", **later)


def test_wrong_kinds_are_one_sentence(run: spo_jax.Run, tmp_path: Path) -> None:
    calls: list[tuple[str, Any]] = [
        ("problem is 3", lambda **more: spo_jax.discover(3, **more)),  # type: ignore[arg-type]
        ("settings is", lambda **more: spo_jax.discover("tsp", {"rounds": 3}, **more)),  # type: ignore[arg-type]
        ("observer has no method", lambda **more: spo_jax.discover("tsp", observer=3, **more)),
        ("no round '2'", lambda **_: run.credits("2")),  # type: ignore[arg-type]
        ("no population", lambda **_: run.populations[9, "repair"]),
        ("on takes", lambda **_: spo_jax.evaluate(run, on=[3])),  # type: ignore[list-item]
    ]
    due = "must be a path"
    wrong: list[tuple[str, Any]] = [
        ("problem is 3", lambda: spo_jax.get_problem(3)),  # type: ignore[arg-type]
        ("problem is None", lambda: spo_jax.get_problem(None)),  # type: ignore[arg-type]
        ("preset is 3", lambda: spo_jax.settings("tsp", 3)),  # type: ignore[arg-type]
        (due, lambda: spo_jax.discover("tsp", path=3)),  # type: ignore[arg-type]
        (due, lambda: spo_jax.load_run(3)),  # type: ignore[arg-type]
        (due, lambda: spo_jax.load_pair(None)),  # type: ignore[arg-type]
        ("pair is 3", lambda: spo_jax.evaluate(3, "tsp", "uniform:9x2")),  # type: ignore[arg-type]
        ("problem is 3", lambda: spo_jax.evaluate(run, 3, "uniform:9x2")),  # type: ignore[arg-type]
        ("on takes", lambda: spo_jax.evaluate(run, on=3)),  # type: ignore[arg-type]
        ("instance is 3", lambda: spo_jax.solve(3, run)),  # type: ignore[arg-type]
        ("there is no pair", lambda: spo_jax.solve("a.tsp", [])),
        ("a.tsp does not exist", lambda: spo_jax.solve("a.tsp")),
    ]
    for words, ask in wrong:
        with pytest.raises(InputError, match=words):
            ask()
    for words, call in calls:
        with pytest.raises(InputError, match=words):
            call(path=tmp_path / "new")
        assert not any(tmp_path.iterdir())
    [instance] = spo_jax.get_problem("cvrp").sample(8, 1, seed=1)
    with pytest.raises(InputError, match="of cvrp, not of tsp"):
        spo_jax.solve(instance, run, steps=5)


@pytest.mark.long
def test_errors_name_arguments_and_not_options(run: spo_jax.Run, tmp_path: Path) -> None:
    slow = "def destroy(a, b, c, d):\n    while True:\n        pass\n"
    assert run.best is not None
    pair = replace(run.best.pair, destroy=spo_jax.Program.from_source("destroy", slow))
    held = str(run.path)
    calls: list[tuple[str, Any]] = [
        (r"the folder of a run to resume \(resume=True and path=RUN\)", spo_jax.settings),
        ("name it with resume=True and path=RUN", lambda: spo_jax.discover("tsp", rewind=3)),
        (
            "holds a run already; use resume=True, or another path$",
            lambda: spo_jax.discover("tsp", path=held, **SMALL),
        ),
        (
            "give either vllm_python of an environment .* or vllm_url of one that runs",
            lambda: spo_jax.settings("tsp", generator="vllm"),
        ),
        (
            "give both base_url and model$",
            lambda: spo_jax.discover("tsp", generator="openai", path=tmp_path / "new"),
        ),
        ("say which problem it is of", lambda: spo_jax.solve("a.foo", pair)),
        (
            r"which problem it is for: add problem \(tsp",
            lambda: spo_jax.evaluate(run.path / "best.py", on="uniform:9x2"),
        ),
        (
            r"timeout: .*\(cpu_seconds raises the limit\)",
            lambda: spo_jax.solve(
                spo_jax.get_problem("tsp").sample(8, 1, seed=1)[0], pair, cpu_seconds=0.5, workers=1
            ),
        ),
    ]
    for words, ask in calls:
        with pytest.raises(InputError, match=words) as error:
            ask()
        assert "--" not in str(error.value)
    others = "^vllm wants --enable-lora and vllm_args$"  # an option of a server stays
    with pytest.raises(InputError, match=others), in_arguments():
        raise InputError("vllm wants --enable-lora and --vllm-args")
    from_the_command = inspect.unwrap(spo_jax.evaluate)
    with pytest.raises(InputError, match="add --problem"):
        from_the_command(run.path / "best.py", on="uniform:9x2")


def test_settings_of_a_problem_object_and_its_class() -> None:
    tsp = spo_jax.get_problem("tsp")
    known = spo_jax.settings("tsp", "smoke")
    assert spo_jax.settings(tsp, "smoke") == spo_jax.settings(type(tsp), "smoke") == known


@pytest.mark.long
def test_a_metric_that_is_nan_stays(tmp_path: Path) -> None:
    given = SMALL | {"rounds": 1, "update": lambda groups: {"a": math.nan, "b": 3}}
    metrics = spo_jax.discover("tsp", path=tmp_path / "run", **given).metrics
    assert math.isnan(metrics["a"][0])
    assert metrics["b"][0] == 3

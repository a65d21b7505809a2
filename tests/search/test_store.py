import contextlib
import io
import json
import math
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from argparse import Namespace
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
import spo_fakes
from rich.console import Console
from spo_fakes import Evaluator, Generator, small

from spo_jax.cli import commands
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program
from spo_jax.program.pairfile import load_pair, save_pair
from spo_jax.rl.backend import SAME_BITS, ask_same_bits
from spo_jax.runs.database.store import Store, dump
from spo_jax.runs.discover import prepare, resumed
from spo_jax.runs.discovery.loop import discover
from spo_jax.runs.display import lines, progress
from spo_jax.runs.folders import BEST, MANIFEST, check_new, default_folder, list_runs
from spo_jax.runs.manifest import (
    check_model,
    check_prompts,
    idle_devices,
    inexact_resume,
    manifest,
    model_of,
    other_software,
    versions,
)
from spo_jax.runs.pairs import resolve
from spo_jax.runs.run import load_run
from spo_jax.search.parts import Parts
from spo_jax.search.rounds import Best, Failure
from spo_jax.search.validation import Finals
from spo_jax.search.writing.prompts import Templates

ROOT = Path(spo_fakes.__file__).parents[2]


def start(path, config=None, preset="smoke"):
    config = config or small()
    return Store.create(path, {"config": config.flat(), "preset": preset})


def fill(store, rounds=None, state=None):
    """Run the fake discovery in a store up to `rounds`; the rounds it committed."""
    config = store.config if rounds is None else store.config.replace(rounds=rounds)
    done = []

    def commit(each):
        store.commit(each)
        store.export_best(each.best)
        done.append(each)

    parts = Parts(config, get_problem("tsp"), Evaluator(), Generator(broken=0.2))
    discover(parts, state or store.state(), commit)
    return done


# --- what is written is what is read --------------------------------------------------------------


def test_a_state_survives_the_database(tmp_path):
    with start(tmp_path / "run") as store:
        rounds = fill(store)
    state = None
    with Store.reopen(tmp_path / "run") as store:
        state = store.state()
    assert state.round == 4
    assert state.destroys == rounds[-1].destroys
    assert state.repairs == rounds[-1].repairs
    assert state.best == rounds[-1].best
    played = {p.digests: p for done in rounds for p in done.pairs}
    assert state.payoffs.keys() == played.keys()
    for digests, each in played.items():
        kept = state.payoffs[digests]
        assert replace(kept, utility=0.0) == replace(each, utility=0.0)
        assert kept.utility == each.utility or math.isnan(kept.utility) == math.isnan(each.utility)


def test_a_host_fault_is_kept_as_a_record_but_is_no_verdict(tmp_path):
    with start(tmp_path / "run", small(rounds=1)) as store:
        [done] = fill(replace_commit(store))
        fault = replace(done.pairs[0], status="host_fault", utility=math.nan)
        store.commit(replace(done, pairs=(fault, *done.pairs[1:])))
        assert store.state().payoffs.keys() == {p.digests for p in done.pairs[1:]}
        store.commit(replace(done, number=2))  # played again, with a verdict
        assert store.state().payoffs.keys() == {p.digests for p in done.pairs}


def test_tables_hold_everything_of_a_round(tmp_path):
    with start(tmp_path / "run") as store:
        rounds = fill(store)
    tables = dump(tmp_path / "run")
    assert len(tables["rounds"]) == 4
    assert len(tables["pairs"]) == sum(len(r.pairs) for r in rounds)
    assert len(tables["failures"]) == sum(len(r.failures) for r in rounds)
    assert len(tables["members"]) == sum(len(r.destroys) + len(r.repairs) for r in rounds)
    assert len(tables["programs"]) == len({p for r in rounds for p in r.programs})
    counted = dict(sqlite3.connect(tmp_path / "run" / "spo.sqlite").execute(
        "SELECT round, pairs FROM rounds"))  # fmt: skip
    assert counted == {r.number: r.counts.pairs for r in rounds}


def test_best_pair_file_is_the_best_pair(tmp_path):
    with start(tmp_path / "run") as store:
        rounds = fill(store)
    pair = load_pair(tmp_path / "run" / BEST)
    best = rounds[-1].best.pair
    assert (pair.destroy.digest, pair.repair.digest) != ("", "")
    assert pair.destroy.strategy == best.destroy.strategy
    assert pair.repair.strategy == best.repair.strategy


def test_hostile_text_can_be_kept(tmp_path):
    with start(tmp_path / "run") as store:
        done = fill(store, rounds=1)[0]
        text = "\ud800 \x00 '; DROP TABLE pairs; -- \u2028"
        extra = replace(
            done, number=2, failures=(Failure("destroy", "unparsable", text, text=text),)
        )
        store.commit(replace(extra, pairs=()))
    rows = [row for row in dump(tmp_path / "run")["failures"] if row[0] == 2]
    assert len(rows) == 1
    assert "DROP TABLE" in rows[0][-1]


def test_a_round_that_cannot_be_written_leaves_nothing(tmp_path):
    with start(tmp_path / "run") as store:
        fill(store, rounds=2)
        before = dump(tmp_path / "run")
        [third] = fill(replace_commit(store), rounds=3)
        bad = replace(third, number=3, metrics={"loss": object()})
        with pytest.raises(TypeError):
            Store.commit(store, bad)
        assert dump(tmp_path / "run") == before
        Store.commit(store, third)  # and the store still works
        assert len(dump(tmp_path / "run")["rounds"]) == 3


def test_a_reader_of_the_database_is_waited_for(tmp_path):
    with start(tmp_path / "run") as store:
        fill(store, rounds=2)
        [third] = fill(replace_commit(store), rounds=3)
        store._connection.execute("PRAGMA busy_timeout = 10")
        reader = sqlite3.connect(tmp_path / "run" / "spo.sqlite")
        rows = reader.execute("SELECT * FROM pairs")
        rows.fetchone()  # half-way through
        remarks = []

        def remark(line):
            remarks.append(line)
            if len(remarks) == 2:
                rows.close()
                reader.close()

        store.commit(third, remark)
        assert len(remarks) == 2
        assert "another process is reading" in remarks[0]
        assert store.last_round() == 3


def replace_commit(store):
    """The store, with a commit that writes nothing."""

    class Dry:
        config = store.config
        state = store.state
        export_best = staticmethod(lambda best: None)
        commit = staticmethod(lambda done: None)

    return Dry()


# --- folders --------------------------------------------------------------------------------------


def test_existing_folders_are_refused(tmp_path):
    path = tmp_path / "run"
    start(path).__exit__()
    with pytest.raises(InputError, match=r"holds a run already; use --resume .*run"):
        start(path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("mine")
    with pytest.raises(InputError, match="not empty"):
        start(tmp_path / "other")
    with pytest.raises(InputError, match="not a folder"):
        check_new(tmp_path / "other" / "file")
    assert (tmp_path / "other" / "file").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    start(tmp_path / "empty").__exit__()
    assert load_run(tmp_path / "empty").rounds == 0


def test_a_folder_appears_complete_or_not_at_all(tmp_path):
    with pytest.raises(TypeError):
        Store.create(tmp_path / "run", {"config": object()})
    assert list(tmp_path.iterdir()) == []


def test_places_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        start(tmp_path / "file" / "run")


def test_two_processes_cannot_have_one_run(tmp_path):
    with start(tmp_path / "run"):
        with pytest.raises(InputError, match="being run by another process"):
            Store.reopen(tmp_path / "run")
        assert load_run(tmp_path / "run").status == "running"
    assert load_run(tmp_path / "run").status == "interrupted"
    Store.reopen(tmp_path / "run").__exit__()


def test_default_names_take_the_next_free_suffix(tmp_path):
    config = small(seed=3)
    assert default_folder(config, "quick", tmp_path).name == "tsp-quick-seed3"
    (tmp_path / "tsp-quick-seed3").mkdir()
    assert default_folder(config, "quick", tmp_path).name == "tsp-quick-seed3-2"
    (tmp_path / "tsp-quick-seed3-2").write_text("")
    assert default_folder(config, "quick", tmp_path).name == "tsp-quick-seed3-3"
    assert default_folder(config, "paper-tsp", tmp_path).name == "paper-tsp-seed3"
    assert default_folder(config, "my/own.toml", tmp_path).name == "tsp-own-seed3"
    third = small(problem="my.module:Thing")
    assert default_folder(third, "smoke", tmp_path).name == "thing-smoke-seed0"


def test_folders_that_hold_no_run(tmp_path):
    with pytest.raises(InputError, match="no such run folder"):
        load_run(tmp_path / "none")
    with pytest.raises(InputError, match="holds no run"):
        load_run(tmp_path)
    start(tmp_path / "run").__exit__()
    (tmp_path / "run" / MANIFEST).write_text("{")
    with pytest.raises(InputError, match=r"manifest.json cannot be read"):
        load_run(tmp_path / "run")
    (tmp_path / "run" / MANIFEST).write_text(json.dumps({"config": small().flat()}))
    (tmp_path / "run" / "spo.sqlite").write_bytes(b"not a database, but long enough" * 100)
    with pytest.raises(InputError, match="database cannot be used"):
        load_run(tmp_path / "run")


def test_a_run_as_its_folder_tells_it(tmp_path):
    with start(tmp_path / "b", small(rounds=5), "quick") as store:
        rounds = fill(store, rounds=3)
    start(tmp_path / "a").__exit__()
    (tmp_path / "junk").mkdir()
    assert [p.name for p in list_runs(tmp_path)] == ["a", "b"]
    assert list_runs(tmp_path / "none") == []
    run = load_run(tmp_path / "b")
    assert (run.status, run.rounds, run.preset) == ("interrupted", 3, "quick")
    assert [each.utility for each in run.best_by_round] == [r.best.utility for r in rounds]
    assert run.evaluated == sum(r.counts.pairs for r in rounds)
    assert run.best == rounds[-1].best
    empty = load_run(tmp_path / "a")
    assert (empty.best, empty.best_by_round, empty.evaluated) == (None, (), 0)


def test_a_pair_from_a_file_or_a_run(tmp_path):
    with start(tmp_path / "run") as store:
        rounds = fill(store, rounds=1)
    best = rounds[-1].best.pair
    for given in (tmp_path / "run", load_run(tmp_path / "run")):
        problem, pair, config = resolve(given)
        assert (problem.name, pair, config) == ("tsp", best, store.config)
    save_pair(tmp_path / "pair.py", best)
    assert resolve(tmp_path / "pair.py", "tsp")[1].destroy.strategy == best.destroy.strategy
    start(tmp_path / "new").__exit__()
    with pytest.raises(InputError, match="no valid pair yet"):
        resolve(tmp_path / "new")
    with pytest.raises(InputError, match=r"run is a run for tsp, not for cvrp"):
        resolve(tmp_path / "run", "cvrp")
    for given in (best, tmp_path / "pair.py"):
        with pytest.raises(InputError, match="does not say which problem it is for"):
            resolve(given)


# --- killed at any moment -------------------------------------------------------------------------

# In the order in which a run comes by them.
MOMENTS = ["1:cross-play", "2:saved", "2:sql:failures", "2:committed", "3:sql:rounds",
           "3:sql:digests", "3:export"]  # fmt: skip


def digests(folder):
    with contextlib.closing(sqlite3.connect(folder / "spo.sqlite")) as db:
        return db.execute("SELECT * FROM digests").fetchall()


def script(folder, rounds, moment=""):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, spo_fakes.__file__, str(folder), str(rounds), moment]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "run"
    spo_fakes.main(folder, 3)
    return folder


@pytest.mark.long
def test_sigkill_in_many_moments_ends_like_the_uninterrupted_run(tmp_path, uninterrupted):
    """One run, killed at each moment; every process goes on where the last one was killed."""
    folder = tmp_path / "run"
    for moment in MOMENTS:
        assert script(folder, 3, moment).returncode == -signal.SIGKILL
    assert list(folder.glob(f".{BEST}*"))  # the last one was killed with half of it written
    finish = script(folder, 3)
    assert finish.returncode == 0, finish.stderr
    assert dump(folder) == dump(uninterrupted)
    assert digests(folder) == digests(uninterrupted)
    assert (folder / BEST).read_bytes() == (uninterrupted / BEST).read_bytes()
    assert not list(folder.glob(f".{BEST}*"))


@pytest.mark.long
def test_a_run_that_goes_back_ends_as_it_would_have(tmp_path, uninterrupted):
    shutil.copytree(uninterrupted, folder := tmp_path / "run")
    with Store.reopen(folder) as store:
        store.commit_finals(Finals((store.best(),)))
        for number in (0, 4):
            with pytest.raises(InputError, match=f"cannot go back to round {number}: it has 3 rou"):
                store.last_round(number)
        assert (store.last_round(1), store.last_round()) == (1, 3)
        store.rewind(1)
        assert store.last_round() == 1
        assert store.finals() == Finals()
    assert script(folder, 3).returncode == 0
    assert dump(folder) == dump(uninterrupted)


# --- the display ----------------------------------------------------------------------------------


def test_time_left():
    seconds = [0.0]
    clock = progress.Clock(rounds=3, now=lambda: seconds[0])
    assert clock.left() is None
    clock.stage(1, 100)
    assert clock.left() is None
    seconds[0] = 10.0
    clock.advance(50)  # 0.2 s a pair; 50 left here and two rounds of 100 to come
    assert clock.left() == pytest.approx(0.2 * 250)
    clock.advance(100)
    clock.stage(1, 20)
    seconds[0] = 24.0
    clock.advance(20)
    clock.finished()
    assert clock.left() == pytest.approx(24 / 120 * 240)
    clock.stage(2, 0)
    clock.stage(2, 100)
    clock.advance(60)
    seconds[0] = 36.0
    assert clock.left() == pytest.approx(36 / 180 * (60 + 120))


def test_time_left_before_the_first_pair_is_that_of_writing():
    seconds = [0.0]
    clock = progress.Clock(rounds=3, now=lambda: seconds[0], answers=40)
    clock.stage(1, 0)
    seconds[0] = 50.0
    assert clock.left() is None
    for _ in range(5):
        clock.answered()
    assert clock.left() == pytest.approx(10.0 * 35)
    resumed = progress.Clock(rounds=4, now=lambda: seconds[0], answers=40)
    resumed.stage(4, 0)
    seconds[0] += 20.0
    for _ in range(2):
        resumed.answered()
    assert resumed.left() == pytest.approx(10.0 * 8)  # of the last of four rounds
    seconds[0] -= 20.0
    clock.stage(1, 20)
    clock.advance(10)  # from now on by pairs
    assert clock.left() == pytest.approx(5.0 * 50)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (309, "5:09"), (3909, "1:05:09")]
)
def test_durations(seconds, text):
    assert lines.duration(seconds) == text


def test_lines_of_a_run(tmp_path, capsys):
    with start(tmp_path / "run") as store:
        display = progress.Display(store.config, store.log)
        parts = Parts(store.config, get_problem("tsp"), Evaluator(), Generator(), observer=display)
        with display:
            end = discover(parts)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("round 1/4   best J ")
    assert f"best J {end.best.utility:.4f}" in lines[-1]
    assert "left" in lines[0]
    assert "left" not in lines[-1]
    log = (tmp_path / "run" / "log.txt").read_text()
    assert all(line in log for line in lines)
    assert "round 1 failures: " in log


def test_a_fault_of_the_machine_is_reported(capsys):
    evaluator = Evaluator(verdict=lambda pair: (Status.HOST_FAULT, None))
    with progress.Display(small(), lambda line: None) as display:
        parts = Parts(
            small(rounds=1), get_problem("tsp"), evaluator, Generator(broken=0), observer=display
        )
        discover(parts)
    [line] = [line for line in capsys.readouterr().out.splitlines() if "Warning" in line]
    assert "could not be judged, by a fault of this machine (because host_fault)" in line


def test_a_terminal_gets_a_live_bar():
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120)
    with progress.Display(small(), lambda line: None, console) as display:
        discover(Parts(small(), get_problem("tsp"), Evaluator(), Generator(), observer=display))
    text = screen.getvalue()
    assert "round 4/4" in text
    assert any(name in text for name in progress.STAGES.values())
    assert "\x1b[" in text


def test_a_live_bar_shows_the_last_failure():
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=160)
    evaluator = Evaluator(verdict=lambda pair: (Status.CRASH, None))
    with progress.Display(small(), lambda line: None, console) as display:
        parts = Parts(small(), get_problem("tsp"), evaluator, Generator(broken=0), observer=display)
        discover(parts)
        display._bar.refresh()
    assert "last failure: pair, crash: because crash" in screen.getvalue()


def test_the_last_failure_is_text_that_can_be_seen():
    reason = "\x1b]0;title\x07\u202e[bold]" + "x" * 99
    done = SimpleNamespace(failures=(Failure("destroy", "crash", reason),))
    text = lines.last_failure(done)
    assert text.startswith("last failure: destroy, crash: ⟨U+001B⟩]0;title⟨U+0007⟩")
    assert len(text) == 60
    assert text.isprintable()
    assert lines.last_failure(SimpleNamespace(failures=())) == ""


def test_a_round_at_its_ceiling_is_said():
    def said(*values):
        pairs = [SimpleNamespace(utility=value) for value in values]
        return lines.ceiling_line(SimpleNamespace(number=2, pairs=pairs))

    assert "round 2: 9 of 10 pairs have the same J" in said(0.1, *[0.2] * 9, math.nan)
    assert said(0.1, 0.1, *[0.2] * 8) == ""
    assert said(*[0.1] * 9, 0.2) == ""  # level, and not at the highest
    assert said(*[0.2] * 9) == ""  # too few to say
    assert said() == ""


def test_a_run_without_a_pair_says_where_to_look():
    text = lines.closing(None, small(), Path("runs/x"), Path("runs/x/best.py"))
    assert "failures" in text[0]


# --- commands -------------------------------------------------------------------------------------


def args(**given):
    names = "problem preset search out resume rewind folder adapters purpose trust_pair"
    fields = dict.fromkeys(names.split())
    return Namespace(**(fields | given))


def export(**given):
    return commands.export(args(**({"select": None} | given)))


def test_a_finished_run_says_so(tmp_path, capsys):
    with start(tmp_path / "run") as store:
        fill(store)
    assert commands.discover(args(problem="tsp", resume=str(tmp_path / "run"))) == 0
    out = capsys.readouterr().out
    assert "is finished: 4 of 4 rounds" in out
    assert "best.py" in out


def test_resume_keeps_its_settings(tmp_path):
    path = tmp_path / "run"
    start(path).__exit__()
    stored = load_run(path).config
    for given, words in [
        ({"problem": "cvrp"}, "problem is tsp there and cvrp here"),
        ({"rounds": 9}, "rounds is 4 there and 9 here"),
        ({"preset": "quick"}, "the preset is smoke there and quick here"),
        ({"rounds": 9, "credit": "shared"}, "rounds is .*; credit is stackelberg there"),
        ({"learning_credit": "shared"}, "learning_credit is None there and shared here"),
    ]:
        with pytest.raises(InputError, match=rf"cannot be resumed with other settings: .*{words}"):
            commands.discover(args(resume=str(path), **given))
    same = resumed(stored, "smoke", {"workers": 7, "rounds": 4}, "smoke", path)
    assert same == stored.replace(workers=7)
    with pytest.raises(InputError, match="generator is grammar there and model here"):
        commands.discover(args(resume=str(path), model="folder"))
    with pytest.raises(InputError, match="--rewind goes back in a run: name it with --resume"):
        commands.discover(args(rewind=1))
    with pytest.raises(InputError, match="cannot go back to round 9: it has 0 rounds"):
        commands.discover(args(resume=str(path), rewind=9))
    with pytest.raises(InputError, match="leave out --out"):
        commands.discover(args(resume=str(path), out="x"))
    with pytest.raises(InputError, match="no such run folder"):
        commands.discover(args(resume=str(tmp_path / "none")))


def test_trouble_is_found_before_anything_is_written(tmp_path):
    for given, words in [
        ({"credit": "stackelbreg"}, "unknown credit 'stackelbreg'"),
        ({"learning_credit": "shraed", "update": "math:floor"}, "unknown credit 'shraed'"),
        ({"generator": "no.such:Thing"}, "cannot import generator"),
        ({"generator": "grammar", "update": "grpo"}, "update is grpo, which trains a model"),
        ({"model": "no/such/folder"}, "model no/such/folder: no such folder"),
        ({"update": "math:pi"}, "neither Updater nor function"),
        ({"prompts": str(tmp_path / "none")}, "none"),
        ({"preset": "quik"}, "'quick'"),
    ]:
        with pytest.raises(InputError, match=words):
            commands.discover(args(problem="tsp", out=str(tmp_path / "run"), **given))
    assert list(tmp_path.iterdir()) == []


def test_drafts_that_a_kill_left_are_no_runs(tmp_path):
    start(tmp_path / "run").__exit__()
    shutil.copytree(tmp_path / "run", tmp_path / ".run.abc")
    assert list_runs(tmp_path) == [tmp_path / "run"]


def test_runs_lists_every_folder(tmp_path, capsys):
    with start(tmp_path / "one") as store:
        fill(store, rounds=2)
    start(tmp_path / "two").__exit__()
    (tmp_path / "two" / "spo.sqlite").write_bytes(b"")
    assert commands.runs(args(folder=str(tmp_path))) == 0
    lines = capsys.readouterr().out.splitlines()
    one = load_run(tmp_path / "one")
    assert [word for word in lines[1].split() if word] == [
        "one", "tsp", "spo", "smoke", "2/4", str(one.evaluated), f"{one.best.utility:.4f}",
        "interrupted",
    ]  # fmt: skip
    assert lines[2].startswith("two")
    assert "unreadable" in lines[2]
    assert commands.runs(args(folder=str(tmp_path / "two"))) == 0
    assert "no runs in" in capsys.readouterr().out


def test_export_writes_a_pair_file_once(tmp_path, capsys):
    with start(tmp_path / "run") as store:
        fill(store, rounds=1)
    out = tmp_path / "pair.py"
    assert export(pair=str(tmp_path / "run"), out=str(out)) == 0
    assert load_pair(out).repair.strategy == load_run(tmp_path / "run").best.pair.repair.strategy
    with pytest.raises(InputError, match="exists"):
        export(pair=str(tmp_path / "run"), out=str(out))
    capsys.readouterr()


def test_export_gives_the_finalist_of_either_rule(tmp_path, capsys):
    out = tmp_path / "pair.py"
    with start(tmp_path / "run") as store:
        fill(store, rounds=1)
        first, second = store.candidates(2)
        with pytest.raises(InputError, match="no pair of this run was measured for --select util"):
            export(pair=str(tmp_path / "run"), out=str(out), select="utility")
        finals = (replace(first, validation=0.6), replace(second, validation=0.7))
        store.commit_finals(Finals(finals))
    for rule, best in (("utility", first), ("validation", second)):
        assert export(pair=str(tmp_path / "run"), out=str(out), select=rule) == 0
        assert load_pair(out).repair.strategy == best.pair.repair.strategy
        out.unlink()


def test_the_manifest_says_what_a_run_ran_on():
    found = manifest(small(), "smoke", {"seccomp": True})
    assert found["sandbox"] == {"seccomp": True}
    assert {"numpy", "jax", "flax", "optax", "orbax-checkpoint"} <= found["versions"].keys()
    assert "model" not in found
    assert found["machine"]["usable_cpus"] >= 1
    assert found["config"] == small().flat()
    json.dumps(found)


MODEL = {"folder": "/models/a", "weights": "12", "tokenizer": "34", "devices": "1 x cpu"}


def test_a_run_goes_on_with_the_model_it_began_with():
    assert manifest(small(), "smoke", {}, model=MODEL)["model"] == MODEL
    check_model(None, None, Path("runs/x"))
    check_model(MODEL, {**MODEL, "folder": "/moved"}, Path("runs/x"))
    for what in ("weights", "tokenizer"):
        now = {**MODEL, what: "56", "folder": "/models/b"}
        with pytest.raises(InputError, match=rf"{what} in /models/b differ .* in /models/a"):
            check_model(MODEL, now, Path("runs/x"))


def test_a_run_goes_on_with_the_prompts_it_began_with(tmp_path):
    def folder(name, text):
        (path := tmp_path / name).mkdir()
        (path / "rules.txt").write_text(text)
        return path

    mine, same, other = (
        Templates.read(folder(name, text)).digest
        for name, text in (("a", "$role"), ("b", "$role"), ("c", "$role!"))
    )
    assert mine == same != other
    stored = manifest(small(prompts="a"), "smoke", {}, prompts=mine)
    check_prompts(stored, same, Path("run"))
    for now in (other, None):
        with pytest.raises(InputError, match="began with other prompt templates"):
            check_prompts(stored, now, Path("run"))
    with pytest.raises(InputError, match="leave out --prompts"):
        check_prompts(manifest(small(), "smoke", {}), mine, Path("run"))
    check_prompts(manifest(small(), "smoke", {}), None, Path("run"))


def test_prompts_are_found_from_any_folder(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    asked = prepare("tsp", preset="smoke", given={"prompts": "mine"}).config
    assert asked.generator.prompts == str(tmp_path / "mine")
    with start(tmp_path / "run", asked) as store:
        stored = store.config
    assert (
        resumed(stored, "smoke", {"prompts": "moved"}, None, Path("run")).generator.prompts
        == "moved"
    )


def test_other_software_and_devices_are_named():
    stored = {"versions": versions(), "model": MODEL}
    assert other_software(stored, MODEL) == ""
    assert other_software({"versions": {**versions(), "flax": "0.1"}}).count(" -> ") == 1
    assert "flax 0.1 -> " in other_software({"versions": {**versions(), "flax": "0.1"}})
    older = {name: version for name, version in versions().items() if name != "flax"}
    assert (
        other_software({"versions": older}) == ""
    )  # of what a run did not record, nothing is said
    gpu = {**MODEL, "devices": "1 x H100"}
    assert "devices 1 x cpu -> 1 x H100" in other_software(stored, gpu)


def test_code_that_was_changed_since_its_commit_is_other_code(monkeypatch):
    now = {}
    monkeypatch.setattr("spo_jax.runs.manifest._checkout", lambda: now)

    def warns(then, **changes):
        now.clear()
        now.update(commit="c" * 40, **changes)
        return bool(other_software({"versions": versions(), "code": {"commit": "c" * 40, **then}}))

    clean, mine = {"changed": False}, {"changed": True, "edits": "ab"}
    assert not warns(clean, **clean)
    assert not warns(mine, **mine)
    assert warns(clean, **mine)
    assert warns(mine, **clean)
    assert warns(mine, changed=True, edits="cd")
    assert warns({"changed": True}, **mine)  # of an older run, whose changes nobody knows


def test_devices_that_lie_idle_are_named(monkeypatch):
    import jax

    settings = small(generator="model", update="none")
    one = model_of(settings)
    assert one["devices"] == f"1 x {jax.devices()[0].device_kind}"
    assert idle_devices(one) == idle_devices(None) == ""
    devices = jax.devices() * 2
    monkeypatch.setattr(jax, "devices", lambda: devices)
    two = model_of(settings)
    assert two["devices"].startswith("1 of 2 x ")
    assert two["devices"] in idle_devices(two)


def test_a_card_that_does_not_repeat_itself_is_named(monkeypatch):
    import jax

    settings = small(generator="model", update="none")
    monkeypatch.setenv("XLA_FLAGS", "--xla_other=1")
    on_cpu = model_of(settings)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    on_gpu = model_of(settings)
    ask_same_bits()
    asked = model_of(settings)
    found = [model["repeats"] for model in (on_cpu, on_gpu, asked)]
    assert found == ["bit for bit", "to rounding", "bit for bit"]
    assert os.environ["XLA_FLAGS"] == "--xla_other=1 --xla_gpu_deterministic_ops=true"
    assert "not bit for bit; --deterministic" in inexact_resume(on_gpu)
    assert inexact_resume(on_cpu) == inexact_resume(asked) == inexact_resume(None) == ""


def test_the_same_bits_are_asked_for_before_anything_looks_at_a_device(tmp_path, monkeypatch):
    """By a new run, and by every resume of one that began so."""
    import_module("spo_jax.search.plugins")  # first imported below, it would keep `look`
    seen = []

    def look(name):
        seen.append(os.environ.get("XLA_FLAGS", ""))
        raise InputError("enough")

    monkeypatch.setattr("spo_jax.envs.problems.get_problem", look)
    flag, path = "--xla_gpu_deterministic_ops=true", tmp_path / "run"
    with start(path, small(deterministic=True)) as store:
        stored = store.config
    with start(tmp_path / "plain", small()):
        pass
    for resume, times in ((path, 1), (tmp_path / "plain", 0)):
        monkeypatch.setenv("XLA_FLAGS", "")
        with pytest.raises(InputError, match="enough"):
            commands.discover(args(resume=str(resume)))
        assert seen.pop().split().count(flag) == times
    monkeypatch.setenv("XLA_FLAGS", "")
    with pytest.raises(InputError, match="enough"):
        commands.discover(args(problem="tsp", deterministic=True, out=str(tmp_path / "new")))
    assert flag in seen.pop()
    kept = [n for n, m in [*sys.modules.items()] if vars(m).get("get_problem") is look]
    assert kept == ["spo_jax.envs.problems"]
    with pytest.raises(InputError, match="deterministic is True there and False here"):
        resumed(stored, "smoke", {"deterministic": False}, None, path)


@pytest.mark.long
def test_xla_knows_what_is_asked_of_it():
    """It ends a process that gives it an unknown flag."""
    environment = {**os.environ, "XLA_FLAGS": SAME_BITS, "JAX_PLATFORMS": "cpu"}
    program = [sys.executable, "-c", "import jax; print(jax.jit(lambda x: x + 1)(1))"]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=200)
    assert done.stdout == "2\n", done.stderr


def test_the_manifest_says_the_peaks_of_memory(tmp_path):
    def recorded_peaks():
        return json.loads((tmp_path / "run" / MANIFEST).read_text())["peak_memory_gb"]

    with start(tmp_path / "run", small(rounds=2)) as store:
        first, second = fill(replace_commit(store), rounds=2)
        store.commit(replace(first, metrics={"memory/update_card": 30.0, "reward": 99.0}))
        assert recorded_peaks() == {"update_card": 30.0}
        metrics = {"memory/update_card": 29.0, "memory/sampling_card": 38.5}
        store.commit(replace(second, metrics=metrics))
    peaks = {"update_card": 30.0, "sampling_card": 38.5}
    assert recorded_peaks() == peaks
    assert load_run(tmp_path / "run").rounds == 2


def test_a_metric_that_is_no_number_is_null(tmp_path):
    with start(tmp_path / "run", small(rounds=1)) as store:
        [done] = fill(replace_commit(store))
        store.commit(replace(done, metrics={"destroy/kl": math.nan, "repair/kl": 0.25}))
    assert json.loads(dump(tmp_path / "run")["rounds"][0][-1]) == {
        "destroy/kl": None, "repair/kl": 0.25
    }  # fmt: skip


def test_where_a_round_spends_its_time(tmp_path):
    with start(tmp_path / "run", small(rounds=1)) as store:
        [done] = fill(replace_commit(store))
        done = replace(done, metrics={"destroy/tokens": 500.0, "repair/tokens": 4500.0})
        line = lines.round_line(done, 1, None, {"sampling": 2.0})
        assert line.endswith("   2,500 tokens/s")
        assert "tokens" not in lines.round_line(replace(done, metrics={}), 1, None, {"x": 2.0})
        display = progress.Display(store.config, store.log, Console(file=io.StringIO()))
        with display:
            for name in ("sampling", "update", "sampling"):
                with display.working(name):
                    pass
            display.finished(done)
            with display.working("sampling"):
                pass
            display.finished(done)
            display.ended()
    log = (tmp_path / "run" / "log.txt").read_text()
    assert re.search(r"round 1 took: all \d+\.\d s, sampling 0.0 s, update 0.0 s", log)
    assert re.search(r"these rounds took: all \d+\.\d s, sampling 0.0 s, update 0.0 s$", log, re.M)


def test_adapters_of_a_run_that_has_none(tmp_path):
    with start(tmp_path / "run") as store:
        fill(store, rounds=1)
    with pytest.raises(InputError, match="has trained no adapters"):
        export(pair=str(tmp_path / "run"), adapters=str(tmp_path / "out"))
    with pytest.raises(InputError, match="nothing to export"):
        export(pair=str(tmp_path / "run"))
    assert not (tmp_path / "out").exists()


def test_a_folder_may_have_any_name(tmp_path):
    path = tmp_path / "u\udcff"  # a byte that is no UTF-8
    with start(path, small(rounds=1)) as store:
        rounds = fill(store)
        store.log(f"in {path}")
    assert load_run(path).best == rounds[-1].best
    assert resolve(path / BEST, "tsp")[1].destroy.source
    assert "in " in (path / "log.txt").read_text("utf-8")


def test_ids_tell_programs_apart_that_differ_in_anything():
    from spo_jax.runs.database.tables import program_id

    base = Program("repair", "def repair():\n    pass\n", "a", ("p",), "form", "c", "d")
    others = [
        replace(base, **change)
        for change in (
            {"source": base.source + "\n"}, {"strategy": "b"}, {"parents": ("q",)},
            {"form": "f"}, {"condition": "e"}, {"derivation": "e"}, {"parents": ()},
        )
    ]  # fmt: skip
    assert len({program_id(p) for p in (base, *others)}) == len(others) + 1
    assert program_id(base) == program_id(replace(base))


def test_a_best_pair_without_a_folder_is_no_best_pair(tmp_path):
    with start(tmp_path / "run") as store:
        store.export_best(None)
        assert not (store.path / BEST).exists()
        source = "def {0}(dist):\n    return 1\n"
        pair = Pair(*(Program(role, source.format(role), role) for role in ("destroy", "repair")))
        store.export_best(Best(pair, 0.5, 1))
        assert load_pair(store.path / BEST).destroy.strategy == "destroy"

"""Run folders that somebody edited or damaged: each is one sentence, and none is half read."""

import contextlib
import json
import shutil
import sqlite3
from dataclasses import replace

import pytest
from spo_fakes import Evaluator, Generator, small

from spo_jax.cli import main
from spo_jax.config import FIELDS, Settings
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError
from spo_jax.search.parts import Parts
from spo_jax.search.rounds import Individual
from spo_jax.search.runs.folders import DATABASE, MANIFEST
from spo_jax.search.runs.run import load_run
from spo_jax.search.runs.store import Store
from spo_jax.search.runs.tables import LATER, MENDS, REMEASURED, TIMED
from spo_jax.search.spo import discover
from spo_jax.search.validation import Finals

SETTINGS = small(finalists=2, remeasure=2, mend=1)


class Writer(Generator):
    writes_prose = True


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished run with something in every table."""
    path = tmp_path_factory.mktemp("whole") / "run"
    with Store.create(path, {"config": SETTINGS.flat(), "preset": "smoke"}) as store:

        def commit(done):
            best = done.best
            child = Individual(best.pair, best.utility, done.number, "first", 0, (0.5, 0.5))
            done = replace(done, individuals=(child,), note="[1]", metrics={"a": 1.0})
            store.commit(done, seconds={"all": 1.5})

        parts = Parts(SETTINGS, get_problem("tsp"), Evaluator(), Writer(broken=0.2))
        discover(parts, None, commit)
        named = store.candidates(2)
        named = [replace(each, validation=0.5, fresh=0.25) for each in named]
        misfit = replace(named[-1], misfit="at 6 nodes, it crashes")
        store.commit_finals(Finals((*named[:-1], misfit), tuple(named[:1])))
        store.export_best(store.best())
    return path


@pytest.fixture
def run(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "run")


def edit(path, *commands):
    with sqlite3.connect(path / DATABASE) as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        for command in commands:
            db.execute(*command) if isinstance(command, tuple) else db.execute(command)
    db.close()


def read_all(path):
    """Everything that any command, and anyone from Python, reads of a run."""
    run = load_run(path)
    for name in ("programs", "pairs", "remeasured", "populations", "failures", "prompts", "samples",
                 "mends", "timings", "best_by_round", "counts", "metrics"):  # fmt: skip
        getattr(run, name)
    for number in range(1, run.rounds + 1):
        run.credits(number)
        run.cross_play(number)
    with Store.reopen(path) as store:
        state = store.state()
        store.candidates(3)
        store.controls(3, [])
        store.totals()
        store.best()
        store.finals()
        store.last_round()
        return state


def columns():
    empty = sqlite3.connect(":memory:")
    from spo_jax.search.runs.tables import SCHEMA

    empty.executescript(SCHEMA)
    return [
        (table, row[1]) for table in TIMED for row in empty.execute(f"PRAGMA table_info({table})")
    ]


VALUES = [
    None, "x", "", "[", "{}", '{"a": []}', '{"a": "b"}', "[1e999]", '["a"]', "[[]]", "null",
    "[" * 20_000, "9" * 5000, -1, 0, 10**15, 2**63 - 1, 3.5, 9e999, -9e999, b"\xff\xfe", "\0",
]  # fmt: skip


@pytest.mark.parametrize("scores", ["[]", "[0.5]", "[0.5, 0.5, 0.5]"])
@pytest.mark.parametrize("table", ["pairs", "individuals"])
def test_scores_of_another_length_are_one_sentence(run, table, scores):
    where = "status = 'ok'" if table == "pairs" else "1"
    edit(run, (f"UPDATE {table} SET scores = ? WHERE {where}", (scores,)))
    for reads in (load_run, Store.reopen):
        with pytest.raises(InputError, match=f"table {table} has another number of scores"):
            reads(run)


def some_values():
    """(table, column, values) of every column: a third of the values by turns, and all as slow."""
    found = []
    for k, (table, column) in enumerate(columns()):
        slow = pytest.param(table, column, VALUES, marks=pytest.mark.slow, id=f"{table}-{column}")
        found += [
            pytest.param(table, column, VALUES[k % 3 :: 3], id=f"{table}-{column}-some"),
            slow,
        ]
    return found


@pytest.mark.long
@pytest.mark.parametrize(("table", "column", "values"), some_values())
def test_no_value_is_too_odd_for_a_sentence(whole, tmp_path, table, column, values):
    """Every column, in its first row, by values of every kind: it is refused, or can be read."""
    refused = 0
    for number, value in enumerate(values):
        path = shutil.copytree(whole, tmp_path / str(number))
        with sqlite3.connect(path / DATABASE) as db:
            first = f"SELECT {column} FROM {table} LIMIT 1"
            try:
                db.execute(f"UPDATE {table} SET {column} = ? WHERE {column} IS ({first})", (value,))
            except sqlite3.IntegrityError:
                continue
            finally:
                db.commit()
        db.close()
        try:
            read_all(path)
        except InputError as error:
            refused += 1
            assert str(path) in str(error)  # noqa: PT017
            assert "\n" not in str(error)  # noqa: PT017
    free = {"condition", "form", "strategy", "source", "derivation", "reason", "digest", "status"}
    free |= {"subject", "destroy", "repair", "text", "operator", "shortened", "stage", "name"}
    free |= {"wrong", "message"}
    assert refused or column in free or values != VALUES


def test_a_run_from_before_answers_were_mended_is_read_and_goes_on(run):
    assert len(load_run(run).mends) > 0
    edit(run, f"DROP TABLE {MENDS}", "DELETE FROM config WHERE name IN ('mend', 'mended')")
    manifest = json.loads((run / MANIFEST).read_text())
    for name in ("mend", "mended"):
        del manifest["config"][name]
    (run / MANIFEST).write_text(json.dumps(manifest))
    read_all(run)
    old = load_run(run)
    assert (old.config.generator.mend, old.config.learning.mended) == (0, "original")
    assert len(old.mends) == 0
    assert not any(each.mended for each in old.programs)
    with Store.reopen(run) as store:
        store.rewind(2)
        parts = Parts(store.config, get_problem("tsp"), Evaluator(), Writer(broken=0.2))
        discover(parts, store.state(), store.commit)
    assert load_run(run).rounds == SETTINGS.search.rounds


@pytest.mark.parametrize("table", TIMED)
def test_a_missing_table_or_column_is_named(whole, tmp_path, table):
    path = shutil.copytree(whole, tmp_path / "dropped")
    edit(path, f"DROP TABLE {table}")
    if table in LATER and table not in (REMEASURED, MENDS):  # the run has some of both
        read_all(path)
    else:
        missing = rf"spo\.sqlite: there is no table {table}: .*restore it"
        with pytest.raises(InputError, match=missing):
            read_all(path)
    path = shutil.copytree(whole, tmp_path / "foreign")
    edit(path, f"DROP TABLE {table}", f"CREATE TABLE {table} (mine TEXT)")
    with pytest.raises(InputError, match=rf"the table {table} has no column"):
        read_all(path)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("DELETE FROM programs", r"names a (destroy|repair) program .*that is not there"),
        ("DELETE FROM programs WHERE role = 'repair'", "names a repair program"),
        ("DELETE FROM rounds WHERE round = 1", "lacks a round"),
        ("DELETE FROM rounds WHERE round = (SELECT MAX(round) FROM rounds)", "has a round that"),
        ("UPDATE rounds SET best_round = NULL", "half of a best pair"),
        ("UPDATE pairs SET utility = NULL WHERE status = 'ok'", "is ok and has no utility"),
        ("UPDATE programs SET source = 'import os' || char(10) || source", "is not what it was"),
        ("UPDATE programs SET condition = 'x'", "is not what it was"),
        ("UPDATE programs SET parents = '[\"z\"]'", "is not what it was"),
        ("DELETE FROM config", "config is empty"),
        ("CREATE TRIGGER t AFTER INSERT ON pairs BEGIN DELETE FROM pairs; END", "a trigger t"),
        ("CREATE VIEW v AS SELECT 1", "a view v"),
        ("UPDATE members SET role = 'repair', rank = rank + 99 WHERE role = 'destroy'", "names a"),
        ("UPDATE finalists SET kind = 'mine'", "value of kind that cannot be"),
        ("PRAGMA user_version = 77", "has format 77"),
    ],
)
def test_what_is_missing_is_said(run, command, says):
    edit(run, command)
    with pytest.raises(InputError, match=says):
        read_all(run)


def test_a_file_that_was_cut_or_overwritten_is_one_sentence(whole, tmp_path):
    raw = (whole / DATABASE).read_bytes()
    cuts = [raw[: len(raw) * k // 10] for k in range(10)]
    noise = [raw[: 512 * k] + b"\xa5" * 700 + raw[512 * k + 700 :] for k in range(8)]
    for number, data in enumerate([*cuts, b"x" * 5000, *noise]):
        path = shutil.copytree(whole, tmp_path / str(number))
        (path / DATABASE).write_bytes(data)
        # Noise may lie in a page that holds nothing.
        with pytest.raises(InputError) if data not in noise else contextlib.suppress(InputError):
            read_all(path)
    other = shutil.copytree(whole, tmp_path / "other")
    (other / DATABASE).unlink()
    edit(other, "CREATE TABLE mine (a)")
    with pytest.raises(InputError, match=r"has format 0, .* or no run database"):
        read_all(other)


# --- the manifest ---------------------------------------------------------------------------------


def rewrite(path, change):
    manifest = json.loads((path / MANIFEST).read_text())
    change(manifest)
    (path / MANIFEST).write_text(json.dumps(manifest))


OTHERS = {"steps": 7, "seed": 5, "size": 9, "credit": "shared", "state": False, "rounds": 9}


@pytest.mark.parametrize(("name", "value"), OTHERS.items())
def test_an_edited_setting_is_noticed(run, name, value):
    was = load_run(run).config.flat()[name]
    rewrite(run, lambda manifest: manifest["config"].update({name: value}))
    for read in (load_run, Store.reopen):
        with pytest.raises(InputError, match=rf"\({name} is {value!r} there and was {was!r}\)"):
            read(run)


def test_a_setting_that_was_taken_out_is_noticed(run):
    rewrite(run, lambda manifest: manifest["config"].pop("steps"))
    with pytest.raises(InputError, match="steps is 100 there and was"):
        load_run(run)


def test_what_may_change_may_be_edited(run):
    rewrite(run, lambda manifest: manifest["config"].update(workers=7))
    assert load_run(run).config.workers == 7
    kept = dict(sqlite3.connect(run / DATABASE).execute("SELECT name, value FROM config"))
    assert kept.keys() == {n for n, f in FIELDS.items() if not f.volatile}
    assert {n: json.loads(v) for n, v in kept.items()}.items() <= SETTINGS.flat().items()


MANIFESTS = [
    "", "[]", "3", "null", '"x"', "{}", '{"config": 3}', '{"config": {}, "rounds": "many"}',
    '{"config": {"steps": 1e400}}', '{"config": {"nothing": 1}}', '{"config": {}, "model": {}}',
    '{"config": {}, "versions": 3}', '{"config": {}, "versions": {"jax": 3}}', "[" * 100_000,
    '{"config": {}, "model": {"folder": "x"}}', '{"config": {}, "code": {"commit": 3}}',
    '{"config": {}, "preset": {}}', '{"config": {"steps": ' + "9" * 5000 + "}}",
    '{"config": {"prompts": "\\ud800"}}', '{"config": {"prompts": "a\\u0000"}}', b"\xff\xfe",
]  # fmt: skip


@pytest.mark.parametrize("text", MANIFESTS, ids=lambda text: text[:30])
def test_no_manifest_is_too_odd_for_a_sentence(run, text):
    (run / MANIFEST).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError):
        load_run(run)


@pytest.mark.parametrize("damage", ["database", "manifest"])
def test_every_command_says_it(run, capsys, monkeypatch, damage):
    monkeypatch.chdir(run.parent)
    (run.parent / "ten.tsp").write_text("NAME: a\n")
    if damage == "database":
        edit(run, "UPDATE rounds SET metrics = '['")
    else:
        rewrite(run, lambda manifest: manifest["config"].update(seed=5))
    says = "metrics that is not a JSON object" if damage == "database" else "seed is 5 there"
    for argv in (
        ["discover", "--resume", "run"],
        ["export", "run", "--out", "pair.py"],
        ["evaluate", "run", "--on", "uniform:10x1"],
        ["solve", "ten.tsp", "--pair", "run"],
    ):
        assert main(argv) == 2
        told = capsys.readouterr()
        assert says in told.err
        assert told.err.count("\n") == 1
    assert main(["runs", "."]) == 0
    assert "unreadable" in capsys.readouterr().out


def test_the_config_of_a_run_may_be_any(tmp_path):
    """What the database keeps is what a config says again, for every kind of value."""
    config = Settings.make(
        learning_rate=1e-7, failure_penalty=None, request_extra=None, diversity=0.1
    )
    Store.create(tmp_path / "run", {"config": config.flat()}).__exit__()
    assert load_run(tmp_path / "run").config == config

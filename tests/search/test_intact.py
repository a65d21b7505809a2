"""Run folders that somebody edited or damaged: each is one sentence, and none is half read."""

import contextlib
import json
import math
import shutil
import sqlite3
import zlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spo_fakes import Evaluator, Generator, small

from spo_jax.cli import main
from spo_jax.config import FIELDS, Settings
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError
from spo_jax.runs.database.digests import require_intact
from spo_jax.runs.database.store import Store, dump
from spo_jax.runs.database.tables import CONFIG, DIGESTS, TABLES, TIMINGS
from spo_jax.runs.discovery.loop import discover
from spo_jax.runs.folders import DATABASE, MANIFEST, REMEDY, storage
from spo_jax.runs.run import load_run
from spo_jax.search.parts import Parts
from spo_jax.search.rounds import Individual
from spo_jax.search.validation import Finals

SETTINGS = small(finalists=2, mend=1)
SHORT = SETTINGS.replace(rounds=3, repairs_per_destroy=2, mutation_groups=1, crossover_groups=1)
COVERED = [*TABLES, DIGESTS]  # all but timings
NAMES = [table.name for table in COVERED]


class Writer(Generator):
    writes_prose = True


def play(store, state=None, settings=SETTINGS):
    """The rest of a run with something in every table that rounds write."""

    def commit(done):
        best = done.best
        child = Individual(best.pair, best.utility, done.number, "first", 0, (0.5, 0.5))
        done = replace(done, individuals=(child,), note="[1]", metrics={"a": 1.0})
        done = replace(done, classical=(best.pair.destroy,), asked=(best.pair,))
        store.commit(done, seconds={"all": 1.5})

    parts = Parts(settings, get_problem("tsp"), Evaluator(), Writer(broken=0.2))
    discover(parts, state, commit)


def measure(store):
    """Write what is measured when the rounds are over."""
    named = [replace(each, validation=0.5, fresh=0.25) for each in store.candidates(2)]
    named[0] = replace(named[0], costs=(1.0, 2.0))
    misfit = replace(named[-1], misfit="at 6 nodes, it crashes")
    store.commit_finals(Finals((*named[:-1], misfit), tuple(named[:1])), seconds={"fresh": 1.0})


def finished(path, settings):
    """A finished run with something in every table."""
    with Store.create(path, {"config": settings.flat(), "preset": "smoke"}) as store:
        play(store, settings=settings)
        measure(store)
        store.export_best(store.best())
    assert all(dump(path).values())
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return finished(tmp_path_factory.mktemp("whole") / "run", SETTINGS)


@pytest.fixture
def run(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "run")


def edit(path, *commands):
    with sqlite3.connect(path / DATABASE) as db:
        for command in commands:
            db.execute(*command) if isinstance(command, tuple) else db.execute(command)
    db.close()


def older(path, *commands):
    """The run as a version without digests would have left it, and these edits."""
    edit(path, "DROP TABLE digests", *commands)


def read_all(path):
    """Everything that any command, and anyone from Python, reads of a run."""
    run = load_run(path)
    for name in ("programs", "pairs", "populations", "failures", "prompts", "samples",
                 "mends", "timings", "best_by_round", "counts", "metrics"):  # fmt: skip
        getattr(run, name)
    for number in range(1, run.rounds + 1):
        run.credits(number)
        run.reasons(number)
        run.cross_play(number)
    with Store.reopen(path) as store:
        state = store.state()
        store.candidates(3)
        store.controls(3, [])
        store.totals()
        store.best()
        store.finals()
        store.spent()
        store.last_round()
        return state


# --- any change is noticed ------------------------------------------------------------------------

VALUES = [None, "x", "", "[", "{}", "[0.5]", "9" * 5000, -1, 0, 1, 10**15, 2**63 - 1, 3.5, 9e999,
          -9e999, b"\xff\xfe", "\0"]  # fmt: skip


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """A run with few rows, all of which are read for each of thousands of changes."""
    return finished(tmp_path_factory.mktemp("short") / "run", SHORT)


@pytest.fixture(scope="module")
def database(short):
    """A connection whose every change is taken back."""
    with contextlib.closing(sqlite3.connect(short / DATABASE, isolation_level=None)) as db:
        require_intact(db)
        yield db
        require_intact(db)


@contextlib.contextmanager
def taken_back(db):
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.execute("ROLLBACK")


def noticed(db, path):
    """The sentence about a database that was changed."""
    with pytest.raises(InputError) as caught, storage(path):
        require_intact(db)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(REMEDY)
    return message


def rows_of(db, table):
    return ascii(db.execute(f"SELECT * FROM {table.name} ORDER BY 1, 2").fetchall())


def same_key(table, row):
    """A condition that one row meets, and its parameters."""
    places = [table.columns.index(column) for column in table.key]
    return " AND ".join(f"{c} = ?" for c in table.key), [row[place] for place in places]


def round_of(table, row):
    """How a sentence names the round of a row."""
    number = 0 if table is CONFIG else row[table.columns.index("round")]
    return f"round {number} is" if number else "the record of the settings is"


def some_row(db, table, data):
    rows = db.execute(f"SELECT * FROM {table.name} ORDER BY 1, 2").fetchall()
    return data.draw(st.sampled_from(rows))


@pytest.mark.long
@pytest.mark.parametrize("table", COVERED, ids=NAMES)
@given(data=st.data())
def test_a_cell_that_was_changed_is_noticed(database, short, table, data):
    row = some_row(database, table, data)
    column = data.draw(st.sampled_from(table.columns))
    value = data.draw(st.sampled_from(VALUES) | st.text("ab", max_size=3) | st.integers(0, 9))
    where, key = same_key(table, row)
    with taken_back(database):
        before = rows_of(database, table)
        with contextlib.suppress(sqlite3.IntegrityError):
            database.execute(f"UPDATE {table.name} SET {column} = ? WHERE {where}", (value, *key))
        if rows_of(database, table) == before:
            return
        message = noticed(database, short)
        if column != "round":
            assert message.startswith(round_of(table, row))


@pytest.mark.long
@pytest.mark.parametrize("table", COVERED, ids=NAMES)
@given(data=st.data())
def test_a_row_that_was_taken_out_is_noticed(database, short, table, data):
    row = some_row(database, table, data)
    where, key = same_key(table, row)
    with taken_back(database):
        database.execute(f"DELETE FROM {table.name} WHERE {where}", key)
        assert noticed(database, short).startswith(round_of(table, row))


@pytest.mark.long
@pytest.mark.parametrize("table", COVERED, ids=NAMES)
@given(data=st.data())
def test_a_row_that_was_put_in_is_noticed(database, short, table, data):
    row = list(some_row(database, table, data))
    for column in table.key:
        other = (
            st.integers(0, 99) if isinstance(row[table.columns.index(column)], int) else st.text()
        )
        row[table.columns.index(column)] = data.draw(other)
    with taken_back(database):
        before = rows_of(database, table)
        marks = ", ".join("?" * len(row))
        with contextlib.suppress(sqlite3.IntegrityError, UnicodeEncodeError):
            database.execute(f"INSERT INTO {table.name} VALUES ({marks})", row)
        if rows_of(database, table) != before:
            noticed(database, short)


@pytest.mark.parametrize("table", [*TABLES, TIMINGS], ids=[*NAMES[:-1], "timings"])
def test_a_table_that_was_changed_is_noticed(database, short, table):
    commands = {
        "no": f"DROP TABLE {table.name}",
        "another": f"ALTER TABLE {table.name} ADD COLUMN mine TEXT",
    }
    for which, command in commands.items():
        with taken_back(database):
            database.execute(command)
            if table is TIMINGS and which == "another":
                require_intact(database)  # nobody reads it
            else:
                noticed(database, short)


def test_a_table_in_place_of_another_is_one_sentence(run):
    edit(run, "DROP TABLE pairs", "CREATE TABLE pairs (mine TEXT)")
    with pytest.raises(InputError, match=r"run: the run database cannot be used: no such column"):
        load_run(run)


def test_timings_may_be_edited(run):
    edit(run, "UPDATE timings SET seconds = 3600", "DELETE FROM timings WHERE round = 2")
    read_all(run)
    edit(run, "UPDATE timings SET seconds = 'long'")
    with pytest.raises(InputError, match=rf"table timings has a value that cannot.*{REMEDY}"):
        read_all(run)
    edit(run, "UPDATE timings SET seconds = 1, round = 99 WHERE round = 1")
    with pytest.raises(InputError, match=f"round 99 is not what was written: {REMEDY}"):
        read_all(run)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("CREATE TRIGGER t AFTER INSERT ON pairs BEGIN DELETE FROM pairs; END", "a trigger t,"),
        ("CREATE VIEW v AS SELECT 1", "a view v,"),
        ("PRAGMA user_version = 77", "has format 77"),
        ("UPDATE failures SET text = CAST(x'ff' AS TEXT)", "cannot be used: Could not decode"),
    ],
)
@pytest.mark.parametrize("before", [edit, older])
def test_what_no_run_has_is_reported(run, before, command, says):
    before(run, command)
    with pytest.raises(InputError, match=says):
        read_all(run)


def test_an_index_of_ones_own_is_no_damage(run):
    edit(run, "CREATE INDEX mine ON pairs (utility)", "ANALYZE")
    read_all(run)


@pytest.mark.long
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


# --- what writes keeps the digests ----------------------------------------------------------------


@pytest.mark.long
def test_rounds_that_are_forgotten_and_written_again(whole, run):
    """By going back to each round, the last one too: what was measured at the end goes as well."""
    for number in range(SETTINGS.search.rounds, 0, -1):
        with Store.reopen(run) as store:
            store.rewind(number)
            assert load_run(run).rounds == number
            assert store.finals() == Finals()
            play(store, store.state())
            assert load_run(run).rounds == SETTINGS.search.rounds
            measure(store)
        assert dump(run) == dump(whole)
        read_all(run)
        assert digests(run) == digests(whole)


def digests(path):
    with contextlib.closing(sqlite3.connect(path / DATABASE)) as db:
        return dict(db.execute("SELECT * FROM digests"))


def test_a_round_may_change_the_rows_of_an_earlier_one(tmp_path):
    rounds = []
    parts = Parts(small(rounds=2), get_problem("tsp"), Evaluator(), Generator())
    discover(parts, None, rounds.append)
    with Store.create(tmp_path / "run", {"config": small().flat()}) as store:
        for done in rounds:
            fault = replace(done.pairs[0], status="host_fault", utility=math.nan, scores=())
            store.commit(replace(done, pairs=(fault, *done.pairs[1:])))
        before = digests(store.path)
        last = replace(rounds[1], number=3, pairs=(rounds[0].pairs[0],), programs=())
        store.commit(last)
        after = digests(store.path)
        assert [k for k in before if before[k] != after[k]] == [1]
        assert load_run(store.path).rounds == 3
        old = Individual(last.best.pair, 0.5, 2, "of a method that looks back", 0, (0.5, 0.5))
        store.commit(replace(last, number=4, pairs=(), individuals=(old,)))
        assert [k for k in after if after[k] != digests(store.path)[k]] == [2]
        assert load_run(store.path).rounds == 4


def test_a_run_of_an_earlier_version_is_read_and_gets_digests_when_it_goes_on(run, whole):
    older(run, "DROP TABLE costs", "DROP TABLE misfits", "UPDATE failures SET text = 'mine'")
    kept = (run / DATABASE).read_bytes()
    read_all(run)
    assert (run / DATABASE).read_bytes() == kept
    with Store.reopen(run) as store:
        store.rewind(2)
    assert digests(run).keys() == {0, 1, 2}
    edit(run, "UPDATE failures SET text = 'yours' WHERE round = 2")
    with pytest.raises(InputError, match="round 2 is not what was written"):
        load_run(run)


def test_a_prompt_of_a_run_of_an_earlier_version_that_cannot_be_read(run):
    for text in (b"\0", "x", zlib.compress(b"\xff")):
        shutil.copytree(run, other := run.parent / "other", dirs_exist_ok=True)
        older(other, ("UPDATE prompts SET text = ? WHERE round = 1", (text,)))
        with pytest.raises(InputError, match=f"other: .*prompts has a value that cannot.*{REMEDY}"):
            read_all(other)


@pytest.mark.parametrize(
    "command",
    [
        "DELETE FROM rounds WHERE round = 1",
        "DELETE FROM rounds WHERE round = (SELECT MAX(round) FROM rounds)",
        "UPDATE members SET round = 99 WHERE round = 2",
    ],
)
def test_a_round_that_a_run_of_an_earlier_version_lacks(run, command):
    older(run, command)
    with pytest.raises(InputError, match=r"round \d+ is not what was written"):
        load_run(run)


def test_a_run_from_before_answers_were_mended_is_read_and_goes_on(run):
    assert len(load_run(run).mends) > 0
    older(run, "DROP TABLE mends", "DELETE FROM config WHERE name IN ('mend', 'mended')")
    rewrite(run, lambda manifest: [manifest["config"].pop(n) for n in ("mend", "mended")])
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


# --- the manifest ---------------------------------------------------------------------------------


def rewrite(path, change):
    manifest = json.loads((path / MANIFEST).read_text())
    change(manifest)
    (path / MANIFEST).write_text(json.dumps(manifest))


OTHERS = {"steps": 7, "seed": 5, "size": 9, "credit": "shared", "state": "none", "rounds": 9}


@pytest.mark.parametrize(("name", "value"), OTHERS.items())
def test_an_edited_setting_is_noticed(run, name, value):
    was = load_run(run).config.flat()[name]
    rewrite(run, lambda manifest: manifest["config"].update({name: value}))
    for read in (load_run, Store.reopen):
        with pytest.raises(InputError, match=rf"\({name} is {value!r} there and was {was!r}\)"):
            read(run)


def test_a_run_from_when_the_state_was_true_or_false(run):
    kept = load_run(run).config
    rewrite(run, lambda manifest: [manifest["config"].pop(n) for n in ("acceptance", "start")])
    rewrite(run, lambda manifest: manifest["config"].update(state=True))
    with contextlib.closing(sqlite3.connect(run / DATABASE, isolation_level=None)) as db:
        db.execute("DELETE FROM config WHERE name IN ('acceptance', 'start')")
        db.execute("UPDATE config SET value = 'true' WHERE name = 'state'")
        db.execute("DROP TABLE digests")  # which it may not have had
    assert load_run(run).config == kept
    with Store.reopen(run) as store:
        assert store.config == kept
    rewrite(run, lambda manifest: manifest["config"].update(state=False))
    with pytest.raises(InputError, match=r"\(state is 'none' there and was True\)"):
        load_run(run)


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


@pytest.mark.parametrize("version", ["with digests", "before"])
def test_another_number_of_instances_is_noticed(run, version):
    """Of the manifest; in a run without digests also of scores."""
    if version == "before":
        older(run, "UPDATE pairs SET scores = '[0.5]' WHERE status = 'ok'")
    else:
        rewrite(run, lambda manifest: manifest.update(instances=[{}] * 3))
    for read in (load_run, Store.reopen):
        with pytest.raises(InputError, match="table pairs has another number of scores"):
            read(run)


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


DAMAGES = {
    **{name: f"UPDATE {name} SET {{}} = 'x'" for name in NAMES},
    "manifest": None,
    "deleted": "DELETE FROM samples WHERE round = 2 AND place = 1",
    "view": "CREATE VIEW v AS SELECT 1",
}


@pytest.mark.long
@pytest.mark.parametrize("damage", DAMAGES)
def test_every_command_says_it_and_writes_nothing(run, capsys, monkeypatch, damage):
    monkeypatch.chdir(run.parent)
    (run.parent / "ten.tsp").write_text("NAME: a\n")
    if damage == "manifest":
        rewrite(run, lambda manifest: manifest["config"].update(seed=5))
    else:
        table = dict(zip(NAMES, COVERED, strict=True)).get(damage)
        column = "" if table is None else next(c for c in table.columns if c not in table.key)
        edit(run, DAMAGES[damage].format(column))
    before = contents(run)
    for argv in (
        ["discover", "--resume", "run"],
        ["discover", "--resume", "run", "--rewind", "1"],
        ["export", "run", "--out", "pair.py"],
        ["evaluate", "run", "--on", "uniform:10x1"],
        ["solve", "ten.tsp", "--pair", "run"],
        ["report", "run"],
    ):
        assert main(argv) == 2
        captured = capsys.readouterr()
        assert "seed is 5 there" in captured.err if damage == "manifest" else REMEDY in captured.err
        assert captured.err.count("\n") == 1
    assert contents(run) == before
    assert main(["runs", "."]) == 0
    assert "unreadable" in capsys.readouterr().out


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_config_of_a_run_may_be_any(tmp_path):
    """What the database keeps is what a config says again, for every kind of value."""
    config = Settings.make(
        learning_rate=1e-7, failure_penalty=None, request_extra=None, diversity=0.1
    )
    Store.create(tmp_path / "run", {"config": config.flat()}).__exit__()
    assert load_run(tmp_path / "run").config == config

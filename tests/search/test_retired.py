"""Settings that are no more: each is one sentence, and runs that had them can still be read."""

import json
import sqlite3

import pytest
from spo_fakes import quick_page, small

import spo_jax
from spo_jax.cli import main
from spo_jax.errors import InputError
from spo_jax.runs.folders import DATABASE, MANIFEST
from spo_jax.runs.report.write import report
from spo_jax.runs.run import load_run

LAST = "spo-jax 0.1.0 was the last version that had it"
REMEASURED = """CREATE TABLE remeasured (
    round INTEGER NOT NULL, destroy TEXT NOT NULL, repair TEXT NOT NULL, kind TEXT NOT NULL,
    status TEXT NOT NULL, utility REAL, reason TEXT NOT NULL, role TEXT NOT NULL,
    scores TEXT NOT NULL, PRIMARY KEY (round, destroy, repair)) WITHOUT ROWID"""


def few(rounds):
    # A page plays the pair, and ALNS beside it, for as many steps as a validation has.
    return small(
        rounds=rounds, mutation_groups=1, crossover_groups=1, instances=1, rollouts=1,
        validation_instances=1, validation_steps=5,
    )  # fmt: skip


def old_run(path, rounds=2, **settings):
    """A run as 0.1.0 left it, with these of its settings."""
    run = spo_jax.discover(settings=few(rounds), path=path)
    assert run.pairs
    manifest = json.loads((path / MANIFEST).read_text())
    old = {"racing": "none", "remeasure": 0, "fresh_instances": False} | settings
    manifest["config"] |= old
    (path / MANIFEST).write_text(json.dumps(manifest))
    with sqlite3.connect(path / DATABASE) as db:
        db.execute(REMEASURED)
        db.execute("DROP TABLE digests")
        rows = [(name, json.dumps(value)) for name, value in old.items()]
        db.executemany("INSERT INTO config VALUES (?, ?)", rows)
    db.close()
    return path


def raced(path):
    """With pairs that a race left out, one of them evaluated later."""
    with sqlite3.connect(path / DATABASE) as db:
        best = db.execute("SELECT best_utility FROM rounds ORDER BY round DESC").fetchone()[0]
        db.execute("UPDATE pairs SET status = 'censored', scores = '[]' WHERE utility < ?", (best,))
        db.execute(
            "INSERT INTO remeasured SELECT 2, destroy, repair, kind, 'ok', 0.5, '', '', '[0.5]'"
            " FROM pairs WHERE status = 'censored' AND round = 1 LIMIT 1"
        )
        assert db.execute("SELECT COUNT(*) FROM remeasured").fetchone()[0] == 1
    db.close()


@pytest.mark.parametrize("flag", ["--racing", "--remeasure", "--fresh-instances"])
def test_a_flag_is_one_sentence(flag, capsys):
    assert main(["discover", "tsp", flag, "4"]) == 2
    assert capsys.readouterr().err == f"spo: unknown option {flag} of spo discover: {LAST}\n"


def test_settings_in_files_and_in_python_likewise(tmp_path):
    (tmp_path / "mine.toml").write_text("[search]\nremeasure = 2\n")
    with pytest.raises(InputError, match=rf"^unknown setting 'remeasure' .*: {LAST}$"):
        spo_jax.settings("tsp", str(tmp_path / "mine.toml"))
    with pytest.raises(InputError, match=rf"^unknown setting 'racing': {LAST}$"):
        spo_jax.settings("tsp", racing="none")


@pytest.mark.long
def test_a_run_that_raced_is_read_and_does_not_go_on(tmp_path, monkeypatch, capsys):
    quick_page(monkeypatch)
    path = old_run(tmp_path / "run", racing="worst-half", remeasure=2)
    raced(path)
    run = load_run(path)
    assert {pair.status for pair in run.pairs} >= {"ok", "censored"}
    assert run.best is not None
    assert report(run, tmp_path / "page.html").stat().st_size > 0
    on = ["--on", "uniform:5x1", "--steps", "3", "--seeds", "1", "--references", "none"]
    assert main(["evaluate", str(path), *on]) == 0
    capsys.readouterr()
    assert main(["discover", "--resume", str(path), "--rewind", "1"]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith(f"spo: {path} began with racing = 'worst-half': {LAST}; ")
    assert (path / MANIFEST).read_text().count("worst-half") == 1  # nothing was written
    assert load_run(path).rounds == 2


@pytest.mark.long
def test_a_run_that_did_not_use_them_goes_on(tmp_path):
    path = old_run(tmp_path / "run")
    new = spo_jax.discover(settings=few(2), path=tmp_path / "new")
    again = spo_jax.discover(path=path, resume=True, rewind=1)
    assert again.best.pair == new.best.pair
    assert [p.utility for p in again.pairs] == [p.utility for p in new.pairs]

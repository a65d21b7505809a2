"""The comparison of credit schemes: what it runs, what it reads, what it says."""

import csv
import importlib.util
import math
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest

from spo_jax.envs.metrics import bootstrap_interval
from spo_jax.search import commands
from spo_jax.search.store import DATABASE, dump, load_run

SCRIPT = Path(__file__).parents[2] / "experiments" / "credit_study.py"
NAN = math.nan


@pytest.fixture(scope="module")
def study():
    spec = importlib.util.spec_from_file_location("credit_study", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["credit_study"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["credit_study"]


def made(study, scheme, seed, curve, **numbers):
    values = {"best": 0.5, "median": 0.4, "top_decile": 0.45, "failures": 0.1, "fresh": 0.3}
    return study.Outcome(
        scheme, seed, answers=100, pairs=50, curve=np.array(curve), **(values | numbers)
    )


def test_the_last_third(study):
    found = {rounds: study.first_of_last_third(rounds) for rounds in (1, 2, 3, 4, 6, 30)}
    assert found == {1: 1, 2: 2, 3: 3, 4: 3, 6: 5, 30: 21}


def test_the_table_by_hand(study):
    outcomes = [
        made(study, "a", 0, [0.1], best=0.5),
        made(study, "a", 1, [0.1], best=0.7, fresh=NAN),
        made(study, "b", 0, [0.1], best=0.6, failures=0.3),
        made(study, "b", 1, [0.1], best=0.9, fresh=NAN),
    ]
    rows = study.table(outcomes)
    assert list(rows) == ["a", "b", "b - a"]
    low, high = bootstrap_interval(np.array([0.5, 0.7]))
    assert rows["a"]["best"] == (2, pytest.approx(0.6), low, high)
    # Seed by seed: 0.6 - 0.5 and 0.9 - 0.7.
    assert rows["b - a"]["best"][:2] == (2, pytest.approx(0.15))
    assert rows["b - a"]["best"][2:] == pytest.approx(bootstrap_interval(np.array([0.1, 0.2])))
    count, mean, low, high = rows["b"]["fresh"]
    assert (count, mean, math.isnan(low), math.isnan(high)) == (1, 0.3, True, True)
    text = study.markdown(rows, 2).splitlines()
    assert text[0].startswith("| scheme | best J | median, last third |")
    assert text[2].startswith("| a | 0.6000 (0.5000 to 0.7000) | 0.4000 (0.4000 to 0.4000) |")
    assert text[2].endswith("| 0.3000, 1 of 2 seeds |")
    assert "| 20.0% (10.0% to 30.0%) |" in text[3]
    assert text[4].startswith("| b - a | +0.1500 (+0.1000 to +0.2000) | +0.0000")
    nothing = study.table([made(study, "a", 0, [NAN], best=NAN)])
    assert "| none, 0 of 1 seeds |" in study.markdown(nothing, 1)


def test_seeds_are_aligned_at_round_1(study):
    outcomes = [
        made(study, "a", 0, [0.2, 0.3]), made(study, "a", 1, [0.6, 0.6]),
        made(study, "b", 0, [0.2, 0.1]), made(study, "b", 1, [0.6, NAN]),
    ]  # fmt: skip
    curves = study.aligned(outcomes)
    # The seeds begin at 0.2 and 0.6; in the middle is 0.4.
    np.testing.assert_allclose(curves["a"], [[0.4, 0.5], [0.4, 0.4]])
    np.testing.assert_allclose(curves["b"], [[0.4, 0.3], [0.4, NAN]])


TINY = [
    "--preset", "smoke", "--generator", "grammar", "--workers", "1", "--rounds", "2",
    "--mutation-groups", "1", "--crossover-groups", "1", "--size", "8", "--instances", "1",
    "--rollouts", "1", "--steps", "4", "--finalists", "0", "--select", "utility",
]  # fmt: skip


def forget_round(database, number):
    """What a run looks like that was killed before it committed its last round."""
    db = sqlite3.connect(database)
    with db:
        for table in ("rounds", "pairs", "members", "failures", "programs"):
            db.execute(f"DELETE FROM {table} WHERE round = ?", (number,))
    db.close()


def test_a_study_runs_goes_on_and_tells(study, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(study, "FRESH_INSTANCES", 2)
    out = tmp_path / "study"
    line = ["--out", str(out), "--seeds", "2", *TINY]
    assert study.main(["--schemes", "stackelberg", *line]) == 0
    kept = (out / "stackelberg-seed0" / DATABASE).stat().st_mtime_ns
    whole = dump(out / "stackelberg-seed1")
    forget_round(out / "stackelberg-seed1" / DATABASE, 2)
    assert load_run(out / "stackelberg-seed1").status == "interrupted"

    # What is finished is left alone, what is not is gone on with, and what is new is begun.
    began = []
    real = commands.discover
    monkeypatch.setattr(commands, "discover", lambda args: began.append(args) or real(args))
    assert study.main(["--schemes", "stackelberg,regret", *line]) == 0
    folders = [Path(getattr(args, "resume", None) or args.out).name for args in began]
    assert folders == ["stackelberg-seed1", "regret-seed0", "regret-seed1"]
    assert (out / "stackelberg-seed0" / DATABASE).stat().st_mtime_ns == kept
    assert dump(out / "stackelberg-seed1") == whole
    text = capsys.readouterr().out.split("| scheme |")[-1]
    assert "| regret - stackelberg | +0.0000" in text  # the same answers in round 1, the same best
    assert (out / "table.md").read_text() == "| scheme |" + text.rsplit("written to", 1)[0]
    assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")

    runs = list(csv.DictReader((out / "runs.csv").open()))
    assert [(run["scheme"], run["seed"]) for run in runs] == [
        ("stackelberg", "0"), ("stackelberg", "1"), ("regret", "0"), ("regret", "1"),
    ]  # fmt: skip
    for run in runs:
        path = out / f"{run['scheme']}-seed{run['seed']}"
        known, rows = load_run(path), dump(path)
        late = [p[5] for p in rows["pairs"] if p[2] == 2 and p[3] == "response" and p[4] == "ok"]
        assert late
        assert float(run["median"]) == np.median(late)
        assert float(run["top_decile"]) == pytest.approx(np.quantile(late, 0.9))
        assert float(run["best"]) == known.best.utility
        assert int(run["answers"]) == sum(row[1] + row[4] for row in rows["rounds"])
        last = rows["rounds"][1]
        assert float(run["failures"]) == pytest.approx(
            1 - (last[3] + last[6]) / (last[1] + last[4])
        )
        assert 0 < float(run["fresh"]) < 1
    # Both schemes begin a seed with the same answers.
    assert (
        dump(out / "stackelberg-seed0")["rounds"][0][:9]
        == (dump(out / "regret-seed0")["rounds"][0][:9])
    )

    assert study.main(["--schemes", "regret", *line, "--steps", "5"]) == 2
    assert "differs in steps: choose another --out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--schemes", "regrets"], "unknown credit 'regrets'"),
        (["--schemes", "rank", "--credit", "rank"], "use --schemes and --seeds"),
        (["--schemes", "rank", "--seed", "3"], "use --schemes and --seeds"),
        (["--schemes", "rank,rank"], "different names"),
        (["--schemes", ","], "at least one seed"),
        (["--schemes", "rank", "--seeds", "0"], "at least one seed"),
        (["--schemes", "rank", "--preset", "quik"], "'quick'"),
    ],
)
def test_trouble_is_one_sentence(study, tmp_path, capsys, arguments, complaint):
    assert study.main([*arguments, "--out", str(tmp_path / "none")]) == 2
    assert complaint in capsys.readouterr().err
    assert not (tmp_path / "none").exists()

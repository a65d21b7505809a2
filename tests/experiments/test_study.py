"""Studies: the arms that are compared, what is run and read, and what is said."""

import csv
import math
import sqlite3
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import credit_study
import learning
import spo_jax
from common import heldout, study
from common.runs import STATE, reads_state
from spo_jax.config import Settings
from spo_jax.errors import InputError
from spo_jax.presets import settings
from spo_jax.program import Pair, Program
from spo_jax.runs.database.store import dump
from spo_jax.runs.folders import DATABASE
from spo_jax.runs.run import load_run

NAN = math.nan
NUMBERS = {
    "answers": 100, "pairs": 50, "cpu": 60, "best": 0.5, "top": 0.45, "median": 0.4,
    "top_decile": 0.45, "failures": 0.1, "state_use": 0.5, "survivors": 20, "gap: uniform:9x2": 0.3,
}  # fmt: skip


def made(**arms):
    """Measures of runs: by arm, for each seed what is not as in NUMBERS."""
    rows = {(arm, s): NUMBERS | own for arm, runs in arms.items() for s, own in enumerate(runs)}
    index = pd.MultiIndex.from_tuples(rows, names=["arm", "seed"])
    return pd.DataFrame(list(rows.values()), index=index)


def test_the_last_third():
    found = {rounds: study.first_of_last_third(rounds) for rounds in (1, 2, 3, 4, 6, 30)}
    assert found == {1: 1, 2: 2, 3: 3, 4: 3, 6: 5, 30: 21}


def test_the_table_by_hand():
    found = study.table(made(
        a=[{"best": 0.5}, {"best": 0.7, "gap: uniform:9x2": NAN, "answers": 300}],
        b=[{"best": 0.6, "failures": 0.3}, {"best": 0.9, "gap: uniform:9x2": NAN}],
    ))  # fmt: skip
    rows = found.set_index(["arm", "measure"])[["seeds", "mean", "low", "high"]]
    # t is 12.7062 for two values, and the standard error half of what they are apart.
    assert tuple(rows.loc["a", "best"]) == pytest.approx(
        (2, 0.6, 0.6 - 1.27062, 0.6 + 1.27062), abs=1e-5
    )
    # Seed by seed: 0.6 - 0.5 and 0.9 - 0.7.
    assert tuple(rows.loc["b - a", "best"]) == pytest.approx((2, 0.15, -0.48531, 0.78531), abs=1e-5)
    text = study.table_text(found).splitlines()
    assert text[0].startswith("| arm | answers | pairs evaluated | CPU seconds | best J |")
    assert text[0].endswith("| percentile of survivors | gap on uniform:9x2, % |")
    assert text[2].startswith(
        "| a | 200 (-1,071 to 1,471) | 50 (50 to 50) | 60 (60 to 60) | "
        "0.60000 (-0.67062 to 1.87062) | 0.45000 (0.45000 to 0.45000) |"
    )
    assert text[2].endswith("| 0.300, 1 of 2 seeds |")
    assert "| 20.0% (-107.1% to 147.1%) |" in text[3]
    assert "| +0.15000 (-0.48531 to +0.78531) | +0.00000" in text[4]
    nothing = study.table(made(a=[{"best": NAN}]))
    assert "| none, 0 of 1 seeds |" in study.table_text(nothing)


def test_the_tests_by_hand():
    gap = "gap: uniform:9x2"
    found = study.tests(made(
        a=[{"best": 0.50}, {"best": 0.70}, {"best": 0.60}],
        b=[{"best": 0.51, gap: 0.4}, {"best": 0.72}, {"best": 0.63}],
        c=[{"best": 0.60}, {"best": NAN}, {"best": NAN}],
    )).set_index(["arm", "measure"])  # fmt: skip
    # Differences 0.01, 0.02, 0.03: t = 0.02 / (0.01 / sqrt 3) = 3.4641, p = 0.0742 by t's table.
    row = found.loc["b", "best"]
    assert (row.seeds, row.difference) == (3, pytest.approx(0.02))
    assert row.p == pytest.approx(0.07418, abs=1e-5)
    assert row.detectable == pytest.approx(0.01 * 3.26404, rel=1e-5)
    assert found.loc["b", "median"].p == 1.0
    assert np.isnan(found.loc["c", "best"].p)
    # Of the 15 tests with a p, all but two have 1.
    assert found.p.notna().sum() == 15
    assert row.holm == pytest.approx(15 * row.p) if 15 * row.p < 1 else row.holm == 1
    assert not {"answers", "pairs", "cpu"} & {name for _, name in found.index}
    text = study.tests_text(found.reset_index()).splitlines()
    assert text[0] == "| arm | measure | difference | p | Holm | detectable |"
    assert text[2].startswith("| b | best J | +0.02000 (-0.00484 to +0.04484) | 0.0742 | ")


def test_where_survivors_stand(tmp_path):
    def scores(names, values):
        return SimpleNamespace(destroys=names, leader_selection=values)

    def members(*names):
        return [SimpleNamespace(name=name) for name in names]

    rounds = {1: scores(["a", "b"], [1.0, 2.0]), 2: scores(["c", "d", "a"], [3.0, NAN, 0.5])}
    run = SimpleNamespace(
        rounds=2, credits=rounds.get,
        populations={(1, "destroy"): members("b"), (2, "destroy"): members("c", "a", "panel")},
    )  # fmt: skip
    # Of a 1, b 2 and c 3: none is above c, two are above a; ties with oneself count half.
    assert study.survivors_percentile(run) == pytest.approx((100 / 6 + 100 * 2.5 / 3) / 2)


def test_intervals_of_five_seeds_cover():
    """A percentile bootstrap covers the mean 84 times in 100; 2.776 is t's of four degrees."""
    assert study.interval([1, 2, 3, 4, 5])[2] == pytest.approx(3 - 2.776 * 0.5**0.5, abs=1e-3)
    draws = np.random.default_rng(0).normal(size=(1000, 5))
    found = [study.interval(row)[2:] for row in draws]
    assert np.mean([low < 0 < high for low, high in found]) == pytest.approx(0.95, abs=0.02)


def test_seeds_are_aligned_at_round_1():
    curves = pd.Series({
        ("a", 0, 1): 0.2, ("a", 0, 2): 0.3, ("a", 1, 1): 0.6, ("a", 1, 2): 0.6,
        ("b", 0, 1): 0.2, ("b", 0, 2): 0.1, ("b", 1, 1): 0.6, ("b", 1, 2): NAN,
    })  # fmt: skip
    curves.index.names = ["arm", "seed", "round"]
    # The seeds begin at 0.2 and 0.6; in the middle is 0.4.
    expected = [0.4, 0.5, 0.4, 0.4, 0.4, 0.3, 0.4, NAN]
    np.testing.assert_allclose(study.aligned(curves), expected)


TINY = [
    "--preset", "smoke", "--generator", "grammar", "--workers", "1", "--rounds", "2",
    "--mutation-groups", "1", "--crossover-groups", "1", "--size", "8", "--instances", "1",
    "--rollouts", "1", "--steps", "4", "--finalists", "0", "--select", "utility",
]  # fmt: skip


def forget_round(database, number):
    """What a run looks like that was killed before it committed its last round."""
    db = sqlite3.connect(database)
    with db:
        for table in ("rounds", "pairs", "members", "failures", "programs", "credits", "cross_play",
                      "prompts", "samples", "costs", "timings", "digests"):  # fmt: skip
            db.execute(f"DELETE FROM {table} WHERE round = ?", (number,))
    db.close()


@pytest.fixture
def schemes(monkeypatch):
    """Runs credit_study with arguments; its exit code."""

    def main(arguments):
        monkeypatch.setattr(sys, "argv", ["credit_study.py", *arguments])
        return credit_study.main()

    return main


@pytest.mark.slow
def test_a_study_runs_goes_on_and_tells(schemes, tmp_path, monkeypatch, capsys):
    out = tmp_path / "study"
    held = ["--held-out", "uniform:50x1@2026"]
    line = ["--out", str(out), "--seeds", "2", *held, *TINY]
    assert schemes(["--schemes", "stackelberg", *line]) == 0
    kept = (out / "stackelberg-seed0" / DATABASE).stat().st_mtime_ns
    whole = dump(out / "stackelberg-seed1")
    forget_round(out / "stackelberg-seed1" / DATABASE, 2)
    assert load_run(out / "stackelberg-seed1").status == "interrupted"

    # What is finished is left alone, what is not is gone on with, and what is new is begun.
    began = []
    real = spo_jax.discover
    monkeypatch.setattr(
        spo_jax, "discover", lambda **more: began.append(more["path"].name) or real(**more)
    )
    assert schemes(["--schemes", "stackelberg,regret", *line]) == 0
    assert began == ["stackelberg-seed0", "regret-seed0", "stackelberg-seed1", "regret-seed1"]
    assert (out / "stackelberg-seed0" / DATABASE).stat().st_mtime_ns == kept
    assert dump(out / "stackelberg-seed1") == whole
    _, text, compared = capsys.readouterr().out.rsplit("| arm |", 2)
    assert "| regret - stackelberg |" in text
    # The same answers in round 1, the same best.
    assert text.split("| regret - stackelberg |")[1].split("|")[3].startswith(" +0.00000")
    expected = "| arm |" + text + "| arm |" + compared.rsplit("written to", 1)[0]
    assert (out / "table.md").read_text() == expected
    assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")

    runs = list(csv.DictReader((out / "runs.csv").open()))
    assert [(run["arm"], run["seed"]) for run in runs] == [
        ("stackelberg", "0"), ("stackelberg", "1"), ("regret", "0"), ("regret", "1"),
    ]  # fmt: skip
    for run in runs:
        path = out / f"{run['arm']}-seed{run['seed']}"
        known, rows = load_run(path), dump(path)
        late = [p[5] for p in rows["pairs"] if p[2] == 2 and p[3] == "response" and p[4] == "ok"]
        assert late
        assert float(run["median"]) == np.median(late)
        assert float(run["top_decile"]) == pytest.approx(np.quantile(late, 0.9))
        assert float(run["best"]) == known.best.utility
        assert int(run["pairs"]) == len(rows["pairs"])
        assert int(run["answers"]) == sum(row[1] + row[4] for row in rows["rounds"])
        last = rows["rounds"][1]
        assert float(run["failures"]) == pytest.approx(
            1 - (last[3] + last[6]) / (last[1] + last[4])
        )
        assert 0 <= float(run["gap: uniform:50x1@2026"]) < 100
        assert float(run["cpu"]) > 0
        assert 0 < float(run["survivors"]) < 100
    # Both schemes begin a seed with the same answers.
    assert (
        dump(out / "stackelberg-seed0")["rounds"][0][:9]
        == (dump(out / "regret-seed0")["rounds"][0][:9])
    )

    assert schemes(["--schemes", "regret", *line, "--steps", "5"]) == 2
    assert "cannot be resumed with other settings: steps is 4" in capsys.readouterr().err

    # A file that cannot be written is one sentence.
    (out / "table.csv").unlink()
    (out / "table.csv").mkdir()
    assert schemes(["--schemes", "regret", *line]) == 2
    assert "cannot write" in capsys.readouterr().err


TAKE = """
def destroy(dist, tour, steps_since_improvement, rng):
    gone = tour[steps_since_improvement % len(tour)]
    return [v for v in tour if v != gone], [gone]
"""
PUT = """
def repair(dist, partial, removed, steps_since_improvement, rng):
    if {fails}:
        return partial
    extra = [dist[a][removed[0]] for a in partial]
    place = extra.index(min(extra))
    return partial[:place] + removed + partial[place:]
"""


@pytest.mark.long
def test_a_gap_is_of_the_pair_as_it_was_discovered(tmp_path, monkeypatch):
    monkeypatch.setattr(heldout, "STEPS", 12)
    sets = ["uniform:50x2@2026"]

    def gap(fails, **settings):
        repair = Program.from_source("repair", PUT.replace("{fails}", fails))
        pair = Pair(Program.from_source("destroy", TAKE), repair)
        config = Settings.make(workers=1, **settings)
        run = SimpleNamespace(best=SimpleNamespace(pair=pair), config=config)
        found = heldout.gaps(run, sets, tmp_path, workers=1)
        with monkeypatch.context() as patch:  # what is kept is not evaluated again
            patch.setattr(spo_jax, "evaluate", None)
            np.testing.assert_equal(heldout.gaps(run, sets, tmp_path), found)
        return found[sets[0]]

    falters = "steps_since_improvement == 1"
    assert math.isnan(gap(falters))  # the pair fails where it first sees a 1
    assert math.isfinite(gap(falters, on_invalid="skip"))
    # Without the state it never sees one; and a destroy that sees 0 alone has one node to move.
    assert gap(falters, state=False) == gap("False", state=False)
    assert 0 < gap("False") < gap("False", state=False)
    none = SimpleNamespace(best=None)
    assert math.isnan(heldout.gaps(none, sets, tmp_path)[sets[0]])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--schemes", "regrets"], "unknown credit 'regrets'"),
        (["--schemes", "rank", "--credit", "rank"], "a study sets that itself"),
        (["--schemes", "rank", "--seed", "3"], "a study sets that itself"),
        (["--schemes", "rank", "--learning-credit", "rnk"], "unknown credit 'rnk'"),
        (["--schemes", "rank,rank"], "rank is there twice"),
        (["--schemes", ","], "at least one seed"),
        (["--schemes", "rank", "--seeds", "0"], "at least one seed"),
        (["--schemes", "rank", "--first-seed", "-1"], "seeds begin at 0"),
        (["--schemes", "rank", "--preset", "quik"], "'quick'"),
        (["--schemes", "rank", "--held-out", "uniform"], "uniform"),
    ],
)
def test_trouble_is_one_sentence(schemes, tmp_path, capsys, arguments, complaint):
    assert schemes([*arguments, "--out", str(tmp_path / "none")]) == 2
    assert complaint in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_arms_of_learning():
    def arms(names="grpo,no-update,grammar,best-of-n", own=()):
        return learning.arms(learning.argparse.Namespace(arms=names, arm=list(own)))

    assert arms() == {
        "grpo": {},
        "no-update": {"update": "none"},
        "grammar": {"generator": "grammar"},
        "best-of-n": {"update": "none", "parents": "none"},
    }
    assert arms("shared,shared-learning,shared-selection") == {
        "shared": {"credit": "shared"},
        "shared-learning": {"learning_credit": "shared"},
        "shared-selection": {"credit": "shared", "learning_credit": "stackelberg"},
    }
    own = arms("no-state", ["fast: --learning-rate 0.5 --no-state --credit gap"])
    assert own["fast"] == {"learning_rate": 0.5, "state": False, "credit": "gap"}
    for names, others, complaint in (
        ("grpo,speed", (), "no arm 'speed'; there are grpo"),
        ("grpo", ["grpo: --rounds 3"], "grpo is there twice"),
        ("grpo", ["--rounds 3"], "not of the form"),
        ("grpo", ["x: --rounding 3"], "x: --rounding 3'.*--rounding"),
        ("grpo", ["x: --rounds three"], "rounds is 'three'"),
    ):
        with pytest.raises(InputError, match=complaint):
            arms(names, others)


@pytest.mark.slow
def test_arms_of_learning_run(tmp_path, monkeypatch, capsys):
    out = tmp_path / "study"
    flags = [part for part in TINY if part not in ("--generator", "grammar")]
    names = "grammar,best-of-n,no-state"
    line = ["--arms", names, "--first-seed", "2", "--seeds", "1", "--out", str(out), "--held-out"]
    line += ["--generator", "grammar"]
    monkeypatch.setattr(sys, "argv", ["learning.py", *line, *flags])
    assert learning.main() == 2
    assert "generator: a study sets that itself" in capsys.readouterr().err

    monkeypatch.setitem(learning.ARMS, "best-of-n", {"parents": "none", "generator": "grammar"})
    monkeypatch.setitem(learning.ARMS, "no-state", {"state": False, "generator": "grammar"})
    monkeypatch.setattr(sys, "argv", ["learning.py", *line[:-2], *flags])
    assert learning.main() == 0
    runs = {run["arm"]: run for run in csv.DictReader((out / "runs.csv").open())}
    assert float(runs["no-state"]["state_use"]) == 0.0
    programs = dump(out / "grammar-seed2")["programs"]
    late = [row for row in programs if row[1] == 2]
    reads = [row[8].count(STATE) > 1 for row in late]
    assert float(runs["grammar"]["state_use"]) == pytest.approx(np.mean(reads))
    forms = {row[5] for row in dump(out / "best-of-n-seed2")["programs"]}
    assert forms == {"initialization"}
    assert len({row[5] for row in programs}) > 1
    curves = list(csv.DictReader((out / "curves.csv").open()))
    assert [(row["arm"], row["round"]) for row in curves[:3]] == [
        ("grammar", "1"), ("grammar", "2"), ("best-of-n", "1"),
    ]  # fmt: skip


def test_reading_the_state():
    read = "def repair(dist, steps_since_improvement):\n    return steps_since_improvement + 1\n"
    unread = "def repair(dist, steps_since_improvement):\n    return dist\n"
    assert (reads_state(read), reads_state(unread)) == (True, False)


@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_the_bench_of_learning_is_a_preset(problem):
    preset = str(Path(learning.__file__).parent / "configs/learning.toml")
    assert settings(problem, preset).search.rounds == 8

"""How many seeds a study needs: against simulated studies, and what past studies printed."""

import csv
import math
import statistics

import numpy as np
import pytest

from spo_jax.search.lab import __main__ as command
from spo_jax.search.lab.power import seeds_needed
from spo_jax.search.lab.studies import SHIPPED, past

# Two-sided 5% points of t by degrees of freedom, from a printed table.
T = {4: 2.776445, 5: 2.570582, 6: 2.446912, 7: 2.364624, 8: 2.306004}


def run(capsys, *arguments):
    code = command.main(["power", *map(str, arguments)])
    return code, capsys.readouterr()


@pytest.fixture
def study(tmp_path):
    """Differences from a by seed: 1, 2, 3, 6 of b, one of c, two of d and a missing one."""
    rows = ["arm,seed,best,gap", "a,0,10,1", "a,1,20,1", "a,2,30,1", "a,3,40,1", "b,0,11,1",
            "b,1,22,1", "b,3,46,1", "b,2,33,1", "b,9,7,1", "c,0,3,1", "d,0,11,", "d,1,20,1",
            "d,2,,1"]  # fmt: skip
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_differences_are_paired_by_seed(study):
    b, d = past(study, "best")
    assert (b.arm, b.first, b.seeds, b.difference) == ("b", "a", 4, 3.0)
    assert b.deviation == pytest.approx(statistics.stdev([1, 2, 3, 6]))
    assert (d.arm, d.seeds, d.deviation) == ("d", 2, pytest.approx(statistics.stdev([1, 0])))
    # Chi squared with three degrees: 0.215795 and 9.348404.
    square = 3 * b.deviation**2
    assert (b.low, b.high) == pytest.approx([math.sqrt(square / x) for x in (9.348404, 0.215795)])


def test_the_command_says_how_many_seeds(study, capsys):
    code, out = run(capsys, "--effect", 2, "--study", study)
    assert code == 0
    [line] = [each for each in out.out.splitlines() if each.startswith("| mine | b |")]
    cells = line.strip("| ").split(" | ")
    assert cells[2:5] == ["4", "+3.00000", f"{statistics.stdev([1, 2, 3, 6]):.5f}"]
    needed = seeds_needed(2, statistics.stdev([1, 2, 3, 6]))
    assert cells[6].startswith(f"{needed} (")
    assert f"By the one that varies most: {needed}." in out.out
    _, more = run(capsys, "--effect", 2, "--study", study, "--power", 0.95)
    assert int(more.out.split("varies most: ")[1].split(".")[0]) > needed
    _, gap = run(capsys, "--effect", 2, "--study", study, "--measure", "gap")
    assert "| mine | b | 4 | +0.00000 | 0.00000 | 0.00000 | 2 (2 to 2) |" in gap.out


@pytest.mark.parametrize("effect", [1.2, 1.45])
def test_as_many_seeds_as_it_says_show_the_effect_in_simulated_studies(effect):
    """Studies with normal differences of deviation 1, tested with t from a printed table."""
    needed = seeds_needed(effect, 1.0)
    rng = np.random.default_rng(0)

    def power(pairs):
        apart = effect + rng.standard_normal((100_000, pairs))
        t = apart.mean(axis=1) / (apart.std(axis=1, ddof=1) / math.sqrt(pairs))
        return (np.abs(t) > T[pairs - 1]).mean()

    assert power(needed) > 0.8 - 0.004 > power(needed - 1)


def test_an_effect_far_above_its_deviation_takes_two_seeds():
    for effect in (1e6, 1e9, 1e17, 1e300):  # from 1e9 on this did not end
        assert seeds_needed(effect, 1.0) == 2
    assert seeds_needed(1e-3, 5e-324) == 2


def test_studies_that_ship_have_the_effects_that_they_report(capsys):
    code, out = run(capsys, "--effect", 0.001)
    assert code == 0
    rows = {}
    for path in sorted(SHIPPED.glob("learning-*-tests.csv")):
        with path.open() as file:
            for row in csv.DictReader(file):
                if row["measure"] == "best":
                    rows[path.stem.removesuffix("-tests"), row["arm"]] = row
    lines = [line.strip("| ").split(" | ") for line in out.out.splitlines() if "learning" in line]
    assert len(lines) == len(rows) > 20
    for study, arm, seeds, difference, _, least, _ in lines:
        row = rows[study, arm]
        assert seeds == row["seeds"]
        assert float(difference) == pytest.approx(float(row["difference"]), abs=1e-5)
        assert float(least) == pytest.approx(float(row["detectable"]), abs=1e-5)


@pytest.mark.parametrize(("flags", "message"), [
    (["--effect", "0"], "--effect is 0"),
    (["--effect", "nan"], "--effect is nan"),
    (["--effect", "-1"], "--effect is -1"),
    (["--effect", "inf"], "--effect is inf"),
    (["--effect", "1", "--power", "1"], "--power is 1"),
    (["--effect", "1", "--power", "nan"], "--power is nan"),
    (["--effect", "1", "--measure", "nosuch"], "no study has a measure 'nosuch'; the first has"),
    (["--effect", "1", "--study", "nosuch.csv"], "--study nosuch.csv cannot be read"),
    (["--effect", "1", "--study", "{}", "--measure", "seed"], "has no measure 'seed'"),
])  # fmt: skip
def test_what_it_refuses(study, capsys, flags, message):
    code, out = run(capsys, *(str(study) if flag == "{}" else flag for flag in flags))
    assert code == 2
    assert message in out.err
    assert len(out.err.splitlines()) == 1


@pytest.mark.parametrize(("text", "message"), [
    ("", "has no rows with an arm and a seed"),
    ("a,b\n1,2\n", "has no rows with an arm and a seed"),
    ("arm,seed,best\na,0,1\na,1,2\n", "no two arms"),
    ("arm,seed,best\na,0,1\nb,0,2\n", "no two arms with two seeds"),
    ("arm,seed,best\na,0,x\n", "'x' is no number"),
    ("arm,seed,best\na,0\n", "no two arms"),
    ("arm,seed,best\na,0,1\na,0,2\n", "has the arm 'a' with the seed '0' twice"),
    ("arm,seed,best\na,0,1,2,3\na,1,4\n", "no two arms"),
])  # fmt: skip
def test_files_that_are_no_study(tmp_path, capsys, text, message):
    path = tmp_path / "t.csv"
    path.write_text(text)
    code, out = run(capsys, "--effect", 1, "--study", path)
    assert code == 2
    assert message in out.err
    assert len(out.err.splitlines()) == 1
    path.write_bytes(b"\xff\xfe")
    code, out = run(capsys, "--effect", 1, "--study", path)
    assert (code, "cannot be read" in out.err) == (2, True)


def test_without_studies_beside_the_package_one_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("spo_jax.search.lab.studies.SHIPPED", tmp_path)
    code, out = run(capsys, "--effect", 1)
    assert (code, "name one with --study" in out.err) == (2, True)

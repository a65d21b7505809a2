"""Tests between methods: p-values counted by hand, Holm's adjustment, and what is written."""

import csv
import math

import numpy as np
import pytest
from common import significance
from common.tables import Column

from spo_jax.envs.metrics import bootstrap_interval

NAN = math.nan
COLUMN = Column("uniform-50", "50", "Uniform instances")


def test_wilcoxon_by_counting_signs():
    # All of five on one side: 2 of 2^5 patterns are as extreme.
    assert significance.wilcoxon(np.array([1.0, 2.0, 3.0, 4.0, 5.0])) == pytest.approx(2 / 32)
    # Ranks 1, 2, 3 against 4: seven subsets of {1, 2, 3, 4} sum to at most 4.
    assert significance.wilcoxon(np.array([1.0, 2.0, 3.0, -4.0])) == pytest.approx(2 * 7 / 16)
    assert significance.wilcoxon(np.array([0.0, 1e-12, 0.0])) == 1.0
    assert math.isnan(significance.wilcoxon(np.array([])))


def test_holm_by_hand():
    # 0.01 * 3, then 0.03 * 2, then 0.04 * 1, which may not fall below the one before it.
    assert significance.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert significance.holm([0.9, 0.8]) == [1.0, 1.0]
    found = significance.holm([NAN, 0.02])
    assert math.isnan(found[0])
    assert found[1] == 0.02  # what was not tested does not count
    assert significance.holm([]) == []


def test_a_comparison_is_paired_by_instance():
    base = np.array([1.0, 2.0, NAN, 4.0])
    theirs = np.array([1.5, 3.0, 9.0, NAN])
    found = significance.compare("uniform-50", "A", theirs, base)
    low, high = bootstrap_interval(np.array([0.5, 1.0]))
    assert (found.count, found.difference, found.low, found.high) == (2, 0.75, low, high)
    assert found.p == pytest.approx(2 / 4)
    nothing = significance.compare("uniform-50", "A", np.array([NAN]), np.array([1.0]))
    assert nothing.count == 0
    assert math.isnan(nothing.p)
    assert nothing.verdict == "no difference shown"


def test_all_against_one(tmp_path):
    base = np.arange(12.0)
    gaps = {
        "A": {"uniform-50": base + np.linspace(1, 2, 12)},
        "SPO": {"uniform-50": base},
        "B": {"uniform-50": base - np.linspace(0.5, 1, 12)},
        "C": {"uniform-50": base + np.tile([1.0, -1.0], 6)},
        "D": {},
    }
    none = {name: dict.fromkeys(own, 0) for name, own in gaps.items()}
    columns = [COLUMN, Column("uniform-100", "100", "Uniform")]
    tests = significance.against("SPO", gaps, columns, none)
    assert [test.other for test in tests] == ["A", "B", "C"]
    extreme = 2 / 2**12
    assert [test.p for test in tests][:2] == pytest.approx([extreme, extreme])
    assert [test.holm for test in tests][:2] == pytest.approx([3 * extreme, 3 * extreme])
    assert [test.verdict for test in tests] == ["worse", "better", "no difference shown"]

    table, text = significance.write(tests, "SPO", [COLUMN], tmp_path / "deep" / "tests")
    rows = list(csv.DictReader(table.open()))
    assert [row["verdict"] for row in rows] == ["worse", "better", "no difference shown"]
    assert float(rows[0]["holm_p"]) == pytest.approx(3 * extreme)
    lines = text.read_text().splitlines()
    assert lines[0] == "| minus SPO | Uniform 50 |"
    assert lines[2].startswith("| A | +1.500 (+1.")
    assert lines[2].endswith("**p = 0.0015** |")
    assert "**" not in lines[4]
    assert "Holm" in text.read_text()
    assert "†" not in text.read_text()
    significance.remove(tmp_path / "deep" / "tests")
    significance.remove(tmp_path / "deep" / "tests")
    assert not list((tmp_path / "deep").iterdir())


def test_no_verdict_is_in_favour_of_failures(tmp_path):
    """Both of two methods are as far from SPO on the instances that they solved."""
    base = np.arange(12.0)
    key = COLUMN.key
    gaps = {
        "SPO": {key: base},
        "A": {key: np.where(base < 8, base - 1, NAN)},
        "B": {key: np.where(base < 8, base + 1, NAN)},
        "C": {key: np.full(12, NAN)},
    }

    def made(**failed):
        counts = {name: {key: failed.get(name, 0)} for name in gaps}
        return significance.against("SPO", gaps, [COLUMN], counts)

    assert [t.verdict for t in made()] == ["better", "worse", "no difference shown"]
    tests = made(A=4, B=4, C=12)
    assert [t.verdict for t in tests] == ["failures", "worse", "no difference shown"]
    assert [t.verdict for t in made(SPO=1)][:2] == ["better", "failures"]
    table, text = significance.write(tests, "SPO", [COLUMN], tmp_path / "tests")
    rows = list(csv.DictReader(table.open()))
    assert [(row["failed"], row["failed_of_against"]) for row in rows] == [
        ("4", "0"), ("4", "0"), ("12", "0"),
    ]  # fmt: skip
    lines = text.read_text().splitlines()
    assert lines[2] == "| A | -1.000† (4 failed) (-1.000 to -1.000), p = 0.016 |"
    assert lines[3] == "| B | +1.000† (4 failed) (+1.000 to +1.000), **p = 0.016** |"
    assert lines[4] == "| C | –† (12 failed) |"
    assert "†: rollouts that failed are in no mean" in lines[-1]
    own = significance.markdown(made(SPO=3), "SPO", [COLUMN])
    assert "| B | +1.000† (3 of SPO's failed) (+1.000 to +1.000), p = 0.016 |" in own

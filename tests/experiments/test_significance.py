"""Tests between methods: p-values counted by hand, Holm's adjustment, and what is written."""

import csv
import itertools
import math

import numpy as np
import pytest

from common import significance
from common.budgets import Group
from spo_jax.envs.report.intervals import mean_interval

NAN = math.nan
COLUMN = Group("uniform-50", "50", "Uniform instances")


def test_wilcoxon_by_counting_signs():
    def found(*differences):
        return pytest.approx(significance.signed_ranks(np.array(differences)))

    # All of five on one side: 2 of 2^5 patterns are as extreme.
    assert found(1.0, 2.0, 3.0, 4.0, 5.0) == (2 / 32, 1)
    # Ranks 1, 2, 3 against 4: seven subsets of {1, 2, 3, 4} sum to at most 4.
    assert found(1.0, 2.0, 3.0, -4.0) == (2 * 7 / 16, 0.2)
    assert significance.signed_ranks(np.array([0.0, 1e-12, 0.0])) == (1.0, 0.0)
    assert all(map(math.isnan, significance.signed_ranks(np.array([]))))


def counted(differences):
    """Two-sided p of the sum of signed ranks: all patterns of signs, ties with their mean rank."""
    kept = [d for d in differences if abs(d) > 1e-9]
    sizes = [round(abs(d), 6) for d in kept]
    ranks = [np.mean([k + 1 for k, s in enumerate(sorted(sizes)) if s == size]) for size in sizes]
    seen = abs(sum(math.copysign(r, d) for r, d in zip(ranks, kept, strict=True)))
    patterns = np.array(list(itertools.product((1, -1), repeat=len(kept))))
    return np.mean(abs(patterns @ ranks) >= seen - 1e-9)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_p_is_exact_with_ties_and_zeros(seed):
    """SciPy takes a normal approximation where 14 or more values have zeros or ties."""
    rng = np.random.default_rng(seed)
    differences = np.round(rng.normal(0.2, 1, 11), 1)
    differences[:3] = 0.0
    differences[4] = differences[3]  # a tie at least
    p, _ = significance.signed_ranks(differences + 1e-14 * rng.normal(size=11))
    assert p == pytest.approx(counted(differences))
    assert significance.signed_ranks(np.ones(5))[0] == pytest.approx(2 / 32)
    sixteen = np.append(differences, [0.4, 0.4, -0.1, 0.9, 1.3])  # 13 that count, or fewer
    assert significance.signed_ranks(sixteen)[0] == pytest.approx(counted(sixteen))


def test_the_verdict_has_the_direction_of_the_ranks():
    """15 of 16 instances are worse, and one outlier turns the mean."""
    base = np.full(16, 20.0)
    worse = base + np.append(np.linspace(0.1, 0.5, 15), -10.0)
    gaps = {"SPO": {COLUMN.key: base}, "A": {COLUMN.key: worse}, "B": {COLUMN.key: 40 - worse}}
    none = {name: {COLUMN.key: 0} for name in gaps}
    tests = significance.against("SPO", gaps, [COLUMN], none)
    first = tests.iloc[0]
    assert first.difference < 0 < first.rank_correlation
    # Only rank 16 is negative: as many subsets of {1, ..., 16} sum to at most 16, doubled.
    assert first.wilcoxon_p == pytest.approx(2 * SUBSETS_TO_16 / 2**16)
    assert list(tests.verdict) == [
        "worse by ranks, not by the mean", "better by ranks, not by the mean",
    ]  # fmt: skip
    text = significance.table(tests, [COLUMN])
    assert "**p = 0.01**, worse by ranks |" in text
    # No verdict is in favour of who has failures, by the ranks either.
    lost = {name: {COLUMN.key: 2 * (name != "SPO")} for name in gaps}
    tests = significance.against("SPO", gaps, [COLUMN], lost)
    assert list(tests.verdict) == ["worse by ranks, not by the mean", "failures"]


def _subsets(total):
    """How many subsets of {1, 2, ...} sum to at most `total`: partitions into distinct parts."""
    ways = [1] + [0] * total
    for part in range(1, total + 1):
        for value in range(total, part - 1, -1):
            ways[value] += ways[value - part]
    return sum(ways)


SUBSETS_TO_16 = _subsets(16)


def test_holm_by_hand():
    # 0.01 * 3, then 0.03 * 2, then 0.04 * 1, which may not fall below the one before it.
    assert significance.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert list(significance.holm([0.9, 0.8])) == [1.0, 1.0]
    found = significance.holm([NAN, 0.02])
    assert math.isnan(found[0])
    assert found[1] == 0.02  # what was not tested does not count
    assert not len(significance.holm([]))


def against(base, **others):
    gaps = {"SPO": {COLUMN.key: np.array(base)}}
    gaps |= {name: {COLUMN.key: np.array(own)} for name, own in others.items()}
    return significance.against("SPO", gaps, [COLUMN], {n: {COLUMN.key: 0} for n in gaps})


def test_a_comparison_is_paired_by_instance():
    found = against([1.0, 2.0, NAN, 4.0], A=[1.5, 3.0, 9.0, NAN]).iloc[0]
    low, high = mean_interval(np.array([0.5, 1.0]))
    assert (found.instances, found.difference, found.low, found.high) == (2, 0.75, low, high)
    assert found.wilcoxon_p == pytest.approx(2 / 4)
    nothing = against([1.0], A=[NAN]).iloc[0]
    assert (nothing.instances, nothing.verdict) == (0, "no difference shown")
    assert math.isnan(nothing.wilcoxon_p)


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
    columns = [COLUMN, Group("uniform-100", "100", "Uniform")]
    tests = significance.against("SPO", gaps, columns, none)
    assert list(tests.method) == ["A", "B", "C"]
    extreme = 2 / 2**12
    assert list(tests.wilcoxon_p[:2]) == pytest.approx([extreme, extreme])
    assert list(tests.holm_p[:2]) == pytest.approx([3 * extreme, 3 * extreme])
    assert list(tests.verdict) == ["worse", "better", "no difference shown"]
    assert set(tests.family) == {3}

    table, text = significance.write(tests, columns, f"{tmp_path}/deep/tests")
    rows = list(csv.DictReader(table.open()))
    assert [row["verdict"] for row in rows] == list(tests.verdict)
    assert float(rows[0]["holm_p"]) == pytest.approx(3 * extreme)
    lines = text.read_text().splitlines()
    assert lines[0] == "| minus SPO | Uniform 50 |"
    assert lines[2].startswith("| A | +1.500 (+1.2")
    assert lines[2].endswith("**p = 0.0015** |")
    assert "**" not in lines[4]


def test_no_verdict_is_in_favour_of_failures():
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

    assert list(made().verdict) == ["better", "worse", "no difference shown"]
    tests = made(A=4, B=4, C=12)
    assert list(tests.verdict) == ["failures", "worse", "no difference shown"]
    assert list(made(SPO=1).verdict)[:2] == ["better", "failures"]
    lines = significance.table(tests, [COLUMN]).splitlines()
    assert lines[2] == "| A | -1.000† (4 failed) (-1.000 to -1.000), p = 0.016 |"
    assert lines[3] == "| B | +1.000† (4 failed) (+1.000 to +1.000), **p = 0.016** |"
    assert lines[4] == "| C | –† (12 failed) |"
    own = significance.table(made(SPO=3), [COLUMN])
    assert "| B | +1.000† (3 of SPO's failed) (+1.000 to +1.000), p = 0.016 |" in own

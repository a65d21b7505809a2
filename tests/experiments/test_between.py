"""Tests over discovery runs: a t statistic by hand, Holm's family, and what is written."""

import math

import numpy as np
import pandas as pd
import pytest

from common import between
from common.budgets import Group

NAN = math.nan
COLUMNS = [Group(f"uniform-{n}", str(n), "Uniform instances") for n in (50, 100)]
GAPS = {
    "SPO": {"uniform-50": np.array([1.0, 2.0, 3.0]), "uniform-100": np.array([1.0, 1.0, 1.0])},
    "other": {"uniform-50": np.array([2.0, 4.0, 6.0]), "uniform-100": np.array([1.0, NAN, 1.0])},
    "by hand": {"uniform-50": 2.0, "uniform-100": 0.5},
}


def test_a_t_test_by_hand():
    found = between.against("SPO", GAPS, COLUMNS)
    one = found[(found.column == "uniform-50") & (found.method == "other")].iloc[0]
    # Differences 1, 2, 3: t = 2 / (1 / sqrt(3)) with 2 degrees of freedom, where the share beyond
    # t on either side is 1 - t / sqrt(t^2 + 2).
    t = 2 * math.sqrt(3)
    assert one.p == pytest.approx(1 - t / math.sqrt(t**2 + 2))
    assert (one.runs, one.difference) == (3, 2.0)
    assert one.high - one.low == pytest.approx(2 * 4.302652729911275 / math.sqrt(3))
    assert one.family == 2
    assert one.holm_p == pytest.approx(2 * one.p)
    assert one.detectable > 1 / math.sqrt(3)


def test_a_method_without_runs_is_the_same_for_every_seed():
    found = between.against("SPO", GAPS, COLUMNS).set_index(["column", "method"])
    assert found.loc[("uniform-50", "by hand")].difference == 0
    assert found.loc[("uniform-50", "by hand")].runs == 3
    same = found.loc[("uniform-100", "other")]
    assert (same.runs, same.difference, same.p) == (2, 0, 1), "a run that failed is in no pair"
    always = found.loc[("uniform-100", "by hand")]
    assert (always.difference, always.p) == (-0.5, 0)


def test_a_method_with_one_run_has_no_other_seeds():
    once = {"SPO": GAPS["SPO"], "once": {"uniform-50": np.array([4.0])}}
    one = between.against("SPO", once, COLUMNS).iloc[0]
    assert (one.runs, one.difference) == (1, 3.0), "with the first run of SPO alone"
    assert math.isnan(one.p), "and no test, where three runs against 4.0 would have p = 0.07"
    other = between.against("once", once, COLUMNS).iloc[0]
    assert (other.runs, other.difference) == (1, -3.0)


def test_what_is_equal_but_for_rounding_is_equal():
    gaps = np.array([0.1, 0.2, 0.3])
    found = between.against(
        "SPO",
        {
            "SPO": {"uniform-50": gaps + 0.1 + 0.2},
            "the same": {"uniform-50": gaps + 0.3},
            "worse": {"uniform-50": gaps + 0.4},
        },
        COLUMNS,
    ).set_index("method")
    assert (found.loc["the same"].difference, found.loc["the same"].p) == (0, 1)
    assert (found.loc["worse"].difference, found.loc["worse"].p) == (pytest.approx(0.1), 0)


def test_one_run_is_no_test():
    gaps = {name: {"uniform-50": np.ravel(own["uniform-50"])[:1]} for name, own in GAPS.items()}
    found = between.against("SPO", gaps, COLUMNS)
    assert found.p.isna().all()
    assert found.holm_p.isna().all()
    assert "+1.000 |" in between.table(found, gaps, COLUMNS)


def test_the_mean_over_all_columns_by_hand():
    added = between.with_all("SPO", {**GAPS, "less": {"uniform-50": np.array([1.0])}})
    assert list(added["SPO"]["all"]) == [1.0, 1.5, 2.0]
    assert added["by hand"]["all"] == 1.25
    assert "all" not in added["less"]
    found = between.against("SPO", added, [*COLUMNS, between.ALL]).set_index(["column", "method"])
    pooled = found.loc[("all", "other")]
    assert (pooled.runs, pooled.difference) == (2, 1.0), "a run with a missing column is left out"
    assert pooled.family == 2
    alone = {name: {"uniform-50": own["uniform-50"]} for name, own in GAPS.items()}
    assert between.with_all("SPO", alone) == alone


def test_what_is_written(tmp_path, capsys):
    paths = between.write("SPO", GAPS, COLUMNS, f"{tmp_path}/tsp-runs")
    assert [path.name for path in paths] == ["tsp-runs.csv", "tsp-runs.md"]
    rows = paths[1].read_text().splitlines()
    assert rows[2].split(" | ")[:2] == ["| SPO", "2.000 ± 1.000"]
    assert rows[3].startswith("| other | +2.000 (-0.484 to +4.484), p = 0.15 [")
    assert len(pd.read_csv(paths[0])) == 6  # with the mean over both columns
    assert "All columns" in rows[0]
    assert "p of a paired t test" in capsys.readouterr().out

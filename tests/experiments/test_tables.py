"""Tables by hand: cells, what is bold, the paper's rows, and the three formats."""

import csv
import math

import numpy as np
import pytest
from common import paper_values, tables
from common.tables import PAPER, Cell, Column, Row, Table

from spo_jax.envs.report.intervals import mean_interval

NAN = math.nan
COLUMNS = (
    Column("uniform-50", "50", "Uniform instances (number of nodes n)"),
    Column("uniform-100", "100", "Uniform instances (number of nodes n)"),
    Column("tsplib-200-", ">200", "TSPLIB (instance-size range)"),
)


@pytest.fixture
def table():
    rows = [
        Row("NN", "handcrafted", {"uniform-50": Cell(20.0, 19.0, 21.0, 4)}),
        Row("A_1", "discovery", {
            "uniform-50": Cell(0.1, 0.0, 0.2, 4, failed=2),
            "uniform-100": Cell(0.50049, 0.4, 0.6, 4),
        }),
        Row("SPO", "ours", {
            "uniform-50": Cell(0.25, 0.2, 0.3, 4),
            "uniform-100": Cell(0.5001, 0.4, 0.6, 4),
            "tsplib-200-": Cell(-0.0001),
        }),
    ]  # fmt: skip
    return Table("Gaps (%).", COLUMNS, rows, ["A note."])


def test_a_cell_is_a_mean_over_what_is_there():
    found = tables.cell([1.0, NAN, 3.0, 5.0], failed=3)
    low, high = mean_interval(np.array([1.0, 3.0, 5.0]))
    assert found == Cell(3.0, low, high, 3, 3)
    one = tables.cell([2.0])
    assert (one.mean, one.count) == (2.0, 1)
    assert math.isnan(one.low)
    none = tables.cell([NAN])
    assert not none.known
    assert none.count == 0


def test_the_best_is_without_failures_and_as_printed(table):
    best = [
        (row.label, column.key)
        for row in table.rows
        for column in COLUMNS
        if table.is_best(row, column.key)
    ]
    # A_1 is lower at 50 but failed; at 100 both print 0.500.
    assert best == [
        ("A_1", "uniform-100"),
        ("SPO", "uniform-50"),
        ("SPO", "uniform-100"),
        ("SPO", "tsplib-200-"),
    ]


def test_markdown(table):
    lines = tables.markdown(table).splitlines()
    assert lines[0] == "| Method | Uniform 50 | Uniform 100 | TSPLIB >200 |"
    assert lines[1] == "|---|---:|---:|---:|"
    assert lines[2] == "| NN | 20.000 (19.000 to 21.000) | – | – |"
    assert lines[3] == "| A_1 | 0.100† (0.000 to 0.200) | **0.500** (0.400 to 0.600) | – |"
    assert lines[4].endswith("| **0.000** |")  # and not -0.000
    assert lines[6:] == [
        "Gaps (%).", "", "- A note.",
        "- † failed rollouts, which are in no mean: A_1 Uniform 50 2.",
    ]  # fmt: skip
    plain = tables.markdown(table, intervals=False)
    assert "| NN | 20.000 | – | – |" in plain


def test_the_papers_rows_stand_beneath_ours_and_are_never_bold(table):
    both = tables.with_paper(table, {"SPO": {"uniform-50": 0.2}, "EoH": {"uniform-50": 0.1}})
    assert [row.label for row in both.rows] == ["NN", "A_1", "SPO", "SPO (paper)"]
    last = both.rows[-1]
    assert (last.source, last.family) == (PAPER, "ours")
    assert not both.is_best(last, "uniform-50")
    assert both.best("uniform-50") == 0.25
    assert tables.markdown(both).splitlines()[5] == "| *SPO (paper)* | *0.200* | – | – |"


def test_latex(table):
    text = tables.latex(tables.with_paper(table, {"SPO": {"uniform-50": 0.2}}))
    lines = text.splitlines()
    assert lines[0] == r"\begin{table}[t]"
    assert lines[-1] == r"\end{table}"
    assert r"\caption{Gaps (\%).}" in lines
    assert (
        r" & \multicolumn{2}{c}{Uniform instances (number of nodes n)}"
        r" & \multicolumn{1}{c}{TSPLIB (instance-size range)} \\"
    ) in lines
    assert r"\cmidrule(lr){2-3}\cmidrule(lr){4-4}" in lines
    assert r"Method & 50 & 100 & $>$200 \\" in lines
    assert r"A\_1 & 0.100$^\dagger$ & \textbf{0.500} & -- \\" in lines
    assert r" & {\tiny (0.000, 0.200)} & {\tiny (0.400, 0.600)} &  \\" in lines
    assert r"\textit{SPO (paper)} & \textit{0.200} & -- & -- \\" in lines
    families = [k for k, line in enumerate(lines) if line == r"\midrule"]
    assert [lines[k + 1][:3] for k in families] == ["NN ", r"A\_", "SPO"]
    assert text.count("{") == text.count("}")


def test_csv_and_files(table, tmp_path):
    both = tables.with_paper(table, {"SPO": {"uniform-50": 0.2}})
    paths = tables.write(both, tmp_path / "new" / "t")
    assert [path.name for path in paths] == ["t.csv", "t.md", "t.tex"]
    rows = list(csv.DictReader(paths[0].open()))
    assert len(rows) == 4 * 3
    first = rows[3]
    assert (first["row"], first["column"], first["mean"], first["failed"]) == (
        "A_1", "uniform-50", "0.1", "2",
    )  # fmt: skip
    assert rows[1]["mean"] == ""  # NN has no value at 100
    assert rows[9] == {
        "row": "SPO (paper)", "family": "ours", "source": "paper", "column": "uniform-50",
        "mean": "0.2", "low": "", "high": "", "instances": "", "failed": "",
    }  # fmt: skip


def test_the_papers_numbers():
    """SPO is the best of every column of Table 1, as the paper prints in bold; spots by hand."""
    for problem, rows in paper_values.MAIN.items():
        for key, value in rows["SPO"].items():
            assert value == min(row[key] for row in rows.values()), (problem, key)
    assert paper_values.MAIN["tsp"]["G-LNS"]["tsplib-200-"] == 4.145
    assert paper_values.MAIN["cvrp"]["OR-Tools"]["uniform-200"] == 10.902
    assert paper_values.ABLATIONS["SPO"] == paper_values.MAIN["tsp"]["SPO"]
    assert paper_values.ABLATIONS["w/o State Conditioning"]["uniform-500"] == 6.484

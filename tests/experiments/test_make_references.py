"""The script of the shipped references: what it writes, keeps and refuses."""

from pathlib import Path

import pytest

import make_references as script
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.tsp.baselines import references
from spo_jax.envs.report.reference_files import Row, read_references


def row(cost: float, effort: str = "standard", certified: bool = False) -> Row:
    return Row("tsp", "uniform-50-1@2026", "0" * 32, cost, certified, effort)


@pytest.mark.parametrize(
    ("new", "old", "kept"),
    [
        (row(5.0), None, "new"),
        (row(4.9, "quick"), row(5.0, "paper"), "new"),
        (row(5.1, "paper"), row(5.0, "quick"), "old"),
        (row(5.0, "quick", True), row(5.0, "paper"), "new"),
        (row(5.0, "paper"), row(5.0, "quick", True), "old"),
        (row(5.0, "paper"), row(5.0, "standard"), "new"),
        (row(5.0, "quick"), row(5.0, "standard"), "old"),
        (row(5.0, "quick"), row(5.0, ""), "new"),
    ],
)
def test_which_of_two_values_is_kept(new, old, kept):
    assert script.better(new, old) is {"new": new, "old": old}[kept]


def test_a_set_is_made_once_and_goes_on(tmp_path, monkeypatch, capsys):
    pytest.importorskip("elkai")
    monkeypatch.setattr(script, "COUNT", 2)
    out, cache = tmp_path / "references.csv", tmp_path / "cache"
    argv = ["--effort", "quick", "--out", str(out), "--cache", str(cache)]
    assert script.main(["--sets", "tsp:9", *argv]) == 0
    assert "uniform-9-1@2026: " in capsys.readouterr().out
    first = read_references(out).rows
    instances = get_problem("tsp").sample(9, 2, 2026)
    assert [each.digest for each in first] == [instance.digest for instance in instances]
    assert all(each.certified and each.effort == "quick" for each in first)
    assert "runs=1, proven by branch and cut" in first[0].source
    whole = out.read_text()
    monkeypatch.setattr(references, "solve_reference", None)  # all from the cache from here on
    assert script.main(["--sets", "tsp:9", *argv]) == 0
    assert out.read_text() == whole
    monkeypatch.undo()
    monkeypatch.setattr(script, "COUNT", 1)
    assert script.main(["--sets", "tsp:8", *argv]) == 0
    assert [each.name[:10] for each in read_references(out).rows] == [
        "uniform-8-", "uniform-9-", "uniform-9-",
    ]  # fmt: skip


@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_the_first_discovery_of_a_preset_knows_its_costs(problem):
    _, instances = script.instances_of(f"{problem}:presets")
    assert len(instances) > 10
    known = {row.digest for row in read_references(Path(get_problem(problem).references)).rows}
    assert [each.name for each in instances if each.digest not in known] == []


@pytest.mark.parametrize(
    ("name", "digest", "effort"),
    [("kroA100", "0" * 32, ""), ("uniform-9-0@1", "", ""), ("uniform-9-0@1", "0" * 32, "long")],
)
def test_a_file_of_the_users_own_is_left_alone(name, digest, effort, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(script, "make", None)  # found out before the work
    out = tmp_path / "mine.csv"
    whole = f"name,digest,cost,effort\n{name},{digest},21282,{effort}\n"
    out.write_text(whole)
    assert script.main(["--sets", "tsp:9", "--out", str(out)]) == 2
    assert "line 2: this row is not of the standard test sets" in capsys.readouterr().err
    assert out.read_text() == whole


def test_a_set_that_is_none_is_one_sentence(tmp_path, capsys):
    argv = ["--out", str(tmp_path / "x.csv"), "--sets"]
    for name in ("tsp", "vrp:50", "tsp:x", "tsp:2"):
        assert script.main([*argv, "tsp:9", name]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert not list(tmp_path.iterdir())

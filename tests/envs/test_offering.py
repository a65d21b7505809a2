"""What a problem of the user's offers is used everywhere, and what it lacks is said in time."""

import json
from pathlib import Path

import pytest

from spo_jax.cli import main
from spo_jax.envs.files.specs import parse_spec
from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.reference_files import Row, write_references
from spo_jax.errors import InputError

POINTS = [[0, 0], [3, 0], [1, 0], [2, 0], [5, 0]]
WHOLE, BARE = "offering:Whole", "offering:Readable"
OPERATORS = """
def destroy_first(x, count, data):
    return x[:count], x[count:]


def insert_last(x, removed, data):
    return x + removed
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Where instances and operators lie, and an empty cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPO_CACHE", str(tmp_path / "cache"))
    for name in ("paths/a.path", "paths/b.WAY", "paths/c.tsp"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(json.dumps(POINTS))
    Path("operators.py").write_text(OPERATORS)
    problem = get_problem(WHOLE)
    shipped = tmp_path / "shipped.csv"
    row = Row("path", "x", problem.read("paths/a.path").digest, 5.0, True, "paper", "thought")
    write_references(shipped, [row])
    monkeypatch.setattr(type(problem), "references", str(shipped))
    return tmp_path


def test_a_folder_holds_the_files_of_its_suffixes(folder):
    assert [path.name for path in parse_spec("paths", get_problem(WHOLE)).paths] == [
        "a.path",
        "b.WAY",
    ]
    Path("empty").mkdir()
    with pytest.raises(InputError, match=r"no instance of path \(no \.path or \.way file\)"):
        parse_spec("empty", get_problem(BARE))
    with pytest.raises(InputError, match="name the files, as 'path' has no file suffix"):
        parse_spec("paths", get_problem("third_problem:PathProblem"))


@pytest.mark.long
def test_references_ship_are_solved_and_kept(folder, capsys):
    base = ["evaluate", "operators.py", "--steps", "3", "--seeds", "1", "--workers", "1"]
    argv = [*base, "--problem", WHOLE, "--on", "paths", "uniform:6x2", "--json", "out.json"]
    for cached in (0, 2):
        assert len(list(Path().glob("cache/*.json"))) == cached
        assert main(argv) == 0
        groups = json.loads(Path("out.json").read_text())["groups"]
        sources = [each["reference_source"] for group in groups for each in group["instances"]]
        assert sources[2:] == ["all, standard"] * 2
    assert "2 are proven optimal" in " ".join(capsys.readouterr().out.split())
    Path("mine.csv").write_text("name,cost\na,4.9\n")
    assert main([*argv, "--references", "mine.csv"]) == 2
    assert "below 5, which is proven to be the optimum" in capsys.readouterr().err
    Path("mine.csv").write_text("name,cost\npath-0,0.001\n")
    assert main([*argv, "--references", "mine.csv"]) == 2
    assert "less than any solution of path-0 costs" in capsys.readouterr().err


def test_baselines_are_declared(folder, capsys):
    on = ["--on", "paths", "--workers", "2", "--references", "none"]
    assert main(["baseline", "straight", "--problem", WHOLE, *on]) == 0
    assert "0/2" in capsys.readouterr().out
    for name, problem, says in [
        ("gone", WHOLE, "x is not installed: pip install 'spo-jax[e]'"),
        ("crooked", WHOLE, "'crooked' is no baseline of path: there is straight or gone; name any"),
        ("straight", BARE, "'straight' is no baseline of path: it declares none; name any"),
    ]:
        assert main(["baseline", name, "--problem", problem, *on]) == 2
        assert says in capsys.readouterr().err


def test_it_is_solved_and_drawn(folder, capsys):
    argv = ["solve", "paths/a.path", "--pair", "operators.py", "--steps", "3", "--workers", "1"]
    assert main([*argv, "--problem", WHOLE, "--plot", "a.png"]) == 0
    assert Path("a.png").stat().st_size > 1000
    assert sorted(json.loads(Path("a.spo.json").read_text())) == [1, 2, 3, 4]


def test_what_it_has_not_is_reported_before_the_work(folder, capsys, monkeypatch):
    monkeypatch.setattr("spo_jax.envs.report.solve.solve", None)
    argv = ["solve", "paths/a.path", "--pair", "operators.py", "--problem", BARE]
    assert main(argv) == 2
    assert "problem path has no way to take operators of G-LNS" in capsys.readouterr().err
    Path("pair.py").write_text(
        "def destroy(dist, order, z, rng):\n    return order[1:], order[:1]\n\n\n"
        "def repair(dist, order, removed, z, rng):\n    return order + removed\n"
    )
    argv[3] = "pair.py"
    assert main([*argv, "--plot", "a.png"]) == 2
    assert "no picture is defined for the problem path: leave --plot out" in capsys.readouterr().err
    argv = ["discover", BARE, "--out", "run"]
    endpoint = ["--generator", "openai", "--base-url", "http://127.0.0.1:9", "--model", "any"]
    assert main([*argv, *endpoint]) == 2
    assert "no contract of a destroy: implement contract, or" in capsys.readouterr().err
    assert main([*argv, "--generator", "grammar"]) == 2  # which reads no contract
    needs = "problem path has no grammar, which --generator grammar needs: implement grammar, or"
    assert needs in capsys.readouterr().err
    assert main([*argv, "--generator", "model"]) == 2
    own = "not path: use an endpoint (--base-url) or another --model, which need a contract of the"
    assert own in capsys.readouterr().err
    assert not list(Path().glob("run/*.py"))


@pytest.mark.long
def test_its_grammar_discovers(folder, capsys):
    small = ["--rounds", "1", "--mutation-groups", "1", "--crossover-groups", "0", "--steps", "5"]
    argv = ["discover", WHOLE, "--preset", "smoke", "--generator", "grammar", "--size", "8", *small]
    assert main([*argv, "--responses", "2", "--validation-size", "8", "--out", "run"]) == 0
    assert "spo solve FILE.path --pair run" in capsys.readouterr().out

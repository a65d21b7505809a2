"""Budgets: the columns and their files, what the command line changes, and who is compared."""

import argparse
from dataclasses import replace
from pathlib import Path

import pytest

from common import budgets, cli, contenders
from common.tables import paper_values
from spo_jax import presets
from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.evaluation import parse_specs
from spo_jax.envs.run.adaptive import PLAIN, Adaptation
from spo_jax.errors import InputError


@pytest.fixture
def data(tmp_path):
    """A folder of instance files that have a DIMENSION and nothing else."""
    sizes = {"a51": 51, "b100": 100, "c101": 101, "d200": 200, "e49": 49, "f1002": 1002}
    sizes |= {f"g{n}": n for n in (300, 400, 500, 600, 700)}
    (tmp_path / "tsplib").mkdir()
    for name, n in sizes.items():
        (tmp_path / "tsplib" / f"{name}.tsp").write_text(f"NAME: {name}\nDIMENSION : {n}\n")
    for family in "AX":
        (tmp_path / "cvrplib" / family).mkdir(parents=True)
        file = tmp_path / "cvrplib" / family / f"{family}-n5-k2.vrp"
        file.write_text("NAME : x\nDIMENSION: 5\n")
    return tmp_path


def stems(group):
    return [Path(spec).stem for spec in group.specs]


def test_the_columns_of_tsplib(data):
    budget = replace(budgets.BUDGETS["paper"], files=None, largest=None)
    low, middle, high = budget.benchmark_groups("tsp", data)
    assert (stems(low), stems(middle)) == (["a51", "b100"], ["c101", "d200"])
    assert stems(high) == ["g300", "g400", "g500", "g600", "g700", "f1002"]
    assert (high.key, high.label, high.total) == ("tsplib-200-", ">200", 6)
    # Three of the five that are small enough, spread over the order of sizes.
    few = replace(budget, files=3, largest=1000).benchmark_groups("tsp", data)[2]
    assert stems(few) == ["g300", "g500", "g700"]
    assert few.total == 6
    none = replace(budget, largest=200).benchmark_groups("tsp", data)[2]
    assert (none.specs, none.missing) == ((), "all 6 files are larger than 200")


def test_families_and_what_is_missing(data, monkeypatch):
    monkeypatch.delenv("SPO_DATA", raising=False)
    budget = budgets.BUDGETS["small"]
    found = budget.benchmark_groups("cvrp", data)
    assert [(group.label, stems(group)) for group in found] == [
        ("A", ["A-n5-k2"]), ("B", []), ("P", []), ("X", ["X-n5-k2"]),
    ]  # fmt: skip
    assert "holds none" in found[1].missing
    assert all("set SPO_DATA" in group.missing for group in budget.benchmark_groups("tsp"))
    with pytest.raises(InputError, match=r"mine:KNAPSACK has no columns: use tsp or cvrp"):
        budget.groups("mine:KNAPSACK", data)
    with pytest.raises(InputError, match="is no folder"):
        budget.groups("tsp", data / "nowhere")
    monkeypatch.setenv("SPO_DATA", str(data))
    assert stems(budget.benchmark_groups("cvrp")[0]) == ["A-n5-k2"]


@pytest.mark.parametrize("problem", budgets.PROBLEMS)
@pytest.mark.parametrize("name", budgets.BUDGETS)
def test_every_budget_has_the_papers_columns(name, problem):
    budget = budgets.BUDGETS[name]
    keys = [group.key for group in budget.groups(problem)]
    assert keys == list(paper_values(problem)["SPO"])
    uniform = [group.specs[0] for group in budget.uniform_groups(problem)]
    parse_specs(uniform, get_problem(problem), "none")
    presets.settings(problem, budget.presets[problem], **budget.settings)


def test_the_papers_budget():
    """Table 1 has 32 instances a group, 500 steps; Figure 2 (a1) six runs."""
    paper = budgets.BUDGETS["paper"]
    assert {n for sizes in paper.uniform.values() for n in sizes.values()} == {32}
    assert (paper.steps, paper.discovery_seeds, paper.files) == (500, 6, None)
    config = presets.settings("tsp", paper.presets["tsp"], method="eoh", generator="grammar")
    assert config.search.nominal_pairs == 13_950


def parsed(*arguments):
    parser = cli.parser("A script.")
    contenders.add_arguments(parser)
    return parser.parse_args(arguments)


def test_what_the_command_line_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    context = cli.context(
        parsed("--seeds", "2", "--workers", "3", "--discovery", "--rounds 4 --no-state")
    )
    assert context.budget.seeds == range(2)
    later = cli.context(parsed("--seeds", "2", "--first-seed", "4"))
    assert later.budget.seeds == range(4, 6)
    assert "discovery runs per method: 2 from seed 4;" in later.summary
    assert context.budget.settings == {"rounds": 4, "finalists": 8, "state": False}
    assert "preset standard (rounds 4, finalists 8, state False)" in context.summary
    assert (context.out, context.workers) == (Path("runs/experiments/small"), 3)
    assert context.out.is_dir()
    assert context.group("uniform-50").total == 16
    with pytest.raises(InputError, match="use one of uniform-50"):
        context.group("uniform-51")
    # Another generator than the smoke budget's grammar may learn.
    own = cli.budget_of(parsed("--budget", "smoke", "--discovery", "--generator model"))
    assert presets.settings("tsp", "smoke", **own.settings).learning.update == "grpo"
    for arguments, complaint in (
        (("--seeds", "0"), "at least one discovery run"),
        (("--first-seed", "-1"), "seeds begin at 0"),
        (("--discovery", "--seed 3"), "the experiment's own"),
        (("--discovery", "--ronds 3"), "--discovery: .*--ronds"),
        (("--discovery", "--rounds many"), "rounds is 'many'"),
        (("--discovery", "--model 'x"), "--discovery: No closing quotation"),
        (("--workers", "0"), "--workers is 0"),
    ):
        with pytest.raises(InputError, match=complaint):
            cli.context(parsed(*arguments))


def test_exit_codes(capsys):
    def code(error):
        def run(args):
            raise error

        parser = argparse.ArgumentParser("x")
        return cli.main(parser, run, [])

    assert code(InputError("the file is gone")) == 2
    assert capsys.readouterr().err == "x: the file is gone\n"
    assert code(KeyboardInterrupt()) == 130
    with pytest.raises(RuntimeError):
        code(RuntimeError("a bug"))


# --- contenders -----------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", budgets.PROBLEMS)
def test_contenders_are_the_papers_in_its_order(problem):
    found = contenders.asked(parsed("--problem", problem))
    labels = [each.label for each in found if "not in the paper" not in each.note]
    assert labels == list(paper_values(problem))
    families = [contenders.FAMILIES.index(each.family) for each in found]
    assert families == sorted(families)
    for each in found:
        assert (each.baseline is None) == each.discovered
        if each.baseline is not None:
            assert each.baseline in get_problem(problem).baselines
    ablations = [each.label for each in contenders.ABLATIONS]
    assert ablations == list(paper_values("ablations"))


def test_every_problem_has_a_look_for_each():
    """No two lines of one figure are alike."""
    everyone = {*contenders.CONTENDERS.values(), *contenders.ABLATIONS}
    everyone |= {contenders.NEITHER, contenders.SHARED_LEARNING}
    for problem in budgets.PROBLEMS:
        own = [each for each in everyone if problem in each.problems]
        assert len({(each.colour, each.marker) for each in own}) == len(own)
    assert [each.name for each in everyone if each.width >= contenders.SPO.width] == ["spo"]


def test_asking_for_contenders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def asked(*arguments):
        return contenders.asked(parsed(*arguments))

    file = tmp_path / "operators.py"
    file.write_text("# theirs\n")
    found = asked("--contenders", "spo,alns", "--glns", str(file))
    assert [each.name for each in found] == ["alns", "g-lns-released-alns", "g-lns-released", "spo"]
    assert not any(each.discovered for each in found[:3])
    assert [each.adaptation for each in found[1:3]] == [Adaptation(), PLAIN]
    [given] = asked("--contenders", "spo", "--pair", str(file))
    assert (given.pair, given.discovered, given.colour) == (file, False, contenders.SPO.colour)
    more = asked("--contenders", "alns,spo", "--also", str(file))
    assert [each.label for each in more] == ["ALNS", "SPO", "operators"]
    ships = asked("--contenders", "alns,spo", "--also", "shipped")[-1]
    assert (ships.name, ships.label, ships.pair) == ("given-shipped", "shipped", "shipped")
    assert asked("--contenders", "spo", "--pair", "shipped")[0].pair == "shipped"
    (tmp_path / "ALNS.py").write_text("# mine\n")
    for arguments, complaint in (
        (("--also", file, file), "another row has the label operators"),
        (("--contenders", "spo", "--also", tmp_path / "ALNS.py"), "has the label ALNS"),
        (("--contenders", "or-tools"), "no contender 'or-tools' for tsp: use nearest-neighbor"),
        (("--glns", tmp_path / "none.py"), r"none\.py: there is no such file"),
        (("--glns", "shipped"), "shipped: there is no such file"),
        (("--contenders", "alns", "--pair", file), "add spo to --contenders"),
    ):
        with pytest.raises(InputError, match=complaint):
            asked(*map(str, arguments))

"""Budgets: the columns and their files, what the command line changes, and who is compared."""

import argparse
from dataclasses import replace
from pathlib import Path

import pytest
from common import budgets, commandline, contenders, paper_values

from spo_jax import presets
from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.evaluation import parse_specs
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
    with pytest.raises(InputError, match=r"mine:KNAPSACK has no columns: .* of tsp and cvrp"):
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
    assert keys == list(paper_values.MAIN[problem]["SPO"])
    uniform = [group.specs[0] for group in budget.uniform_groups(problem)]
    parse_specs(uniform, get_problem(problem), "none")
    presets.settings(problem, budget.presets[problem], **budget.given(problem))


def test_the_papers_budget():
    """Table 1 has 32 instances a group, 500 steps; Figure 2 (a1) six runs."""
    paper = budgets.BUDGETS["paper"]
    assert {n for sizes in paper.uniform.values() for n in sizes.values()} == {32}
    assert (paper.steps, paper.discovery_seeds, paper.files) == (500, 6, None)
    config = presets.settings("tsp", paper.presets["tsp"], method="eoh", generator="grammar")
    assert config.search.nominal_pairs == 13_950


def parsed(*arguments):
    parser = argparse.ArgumentParser()
    commandline.add_arguments(parser)
    return parser.parse_args(arguments)


def test_what_the_command_line_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    budget = commandline.chosen(parsed("--seeds", "2", "--discovery", "--rounds 4 --no-state"))
    assert budget.discovery_seeds == 2
    assert budget.given("cvrp") == {"rounds": 4, "finalists": 8, "state": False}
    told = budget.told("tsp")
    assert "preset standard (rounds 4, finalists 8, state False), 2 discovery runs" in told
    assert "500 steps, with 3 times the problem's CPU limit, more above 500 nodes." in told
    assert commandline.folder(parsed()) == Path("runs/experiments/small")
    assert Path("runs/experiments/small").is_dir()
    assert commandline.workers(parsed("--workers", "3")) == 3
    # Another writer than the smoke budget's grammar may learn.
    own = commandline.chosen(parsed("--budget", "smoke", "--discovery", "--generator model"))
    assert presets.settings("tsp", "smoke", **own.given("tsp")).learning.update == "grpo"
    for arguments, complaint in (
        (("--seeds", "0"), "at least one discovery run"),
        (("--discovery", "--seed 3"), "the experiment's own"),
        (("--discovery", "--ronds 3"), "--discovery: .*--ronds"),
        (("--discovery", "--rounds many"), "rounds is 'many'"),
        (("--discovery", "--model 'x"), "--discovery: No closing quotation"),
    ):
        with pytest.raises(InputError, match=complaint):
            commandline.chosen(parsed(*arguments))
    with pytest.raises(InputError, match="--workers is 0"):
        commandline.workers(parsed("--workers", "0"))


def test_exit_codes(capsys):
    def code(error):
        def run(args):
            raise error

        return commandline.script("x", argparse.ArgumentParser(), run, [])

    assert code(InputError("the file is gone")) == 2
    assert capsys.readouterr().err == "x: the file is gone\n"
    assert code(KeyboardInterrupt()) == 130
    with pytest.raises(RuntimeError):
        code(RuntimeError("a bug"))


# --- contenders -----------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", budgets.PROBLEMS)
def test_contenders_are_the_papers_in_its_order(problem):
    found = contenders.contenders(problem)
    labels = [each.label for each in found if each.label != "Best-of-N"]
    assert labels == list(paper_values.MAIN[problem])
    families = [contenders.FAMILIES.index(each.family) for each in found]
    assert families == sorted(families)
    for each in found:
        assert (each.baseline is None) == each.discovered
        if each.baseline is not None:
            assert each.baseline in get_problem(problem).baselines
    ablations = [each.label for each in contenders.ABLATIONS.values()]
    assert ablations == list(paper_values.ABLATIONS)


def test_every_problem_has_a_look_for_each():
    """No two lines of one figure are alike, and the greys can be seen on white."""
    everyone = [*contenders.CONTENDERS.values(), contenders.NEITHER, contenders.SHARED_LEARNING]
    everyone += [*contenders.ABLATIONS.values(), contenders.released_glns("f.py")]
    everyone.append(contenders.given("f.py"))
    for problem in budgets.PROBLEMS:
        looks = {(e.colour, e.marker): e.name for e in everyone if problem in e.problems}
        assert len(looks) == len({e.name for e in everyone if problem in e.problems})
    for each in everyone:
        channels = [int(each.colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        luminance = sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
        assert 1.05 / (luminance + 0.05) > 2, each.name  # contrast with white
    widest = max(everyone, key=lambda each: each.width)
    assert widest is contenders.SPO
    assert {each.name for each in everyone if each.width == widest.width} == {"spo"}


def test_asking_for_contenders(tmp_path):
    file = tmp_path / "operators.py"
    file.write_text("# theirs\n")
    found = contenders.asked("tsp", "spo,alns", glns=str(file))
    assert [each.name for each in found] == ["alns", "g-lns-released", "spo"]
    assert not found[1].discovered
    given = contenders.asked("tsp", "spo", pair=str(file))
    assert (given[0].pair, given[0].discovered, given[0].colour) == (
        file, False, contenders.SPO.colour,
    )  # fmt: skip
    more = contenders.asked("tsp", "alns,spo", also=[str(file)])
    assert [each.label for each in more] == ["ALNS", "SPO", "operators"]
    assert (more[2].pair, more[2].discovered) == (file, False)
    with pytest.raises(InputError, match="another row is called operators"):
        contenders.asked("tsp", also=[str(file), str(file)])
    (tmp_path / "ALNS.py").write_text("# mine\n")
    with pytest.raises(InputError, match="another row is called ALNS"):
        contenders.asked("tsp", "spo", also=[str(tmp_path / "ALNS.py")])
    with pytest.raises(InputError, match="no contender 'or-tools' for tsp: use nearest-neighbor"):
        contenders.asked("tsp", "or-tools")
    with pytest.raises(InputError, match=r"--glns .*none\.py: there is no such file"):
        contenders.asked("tsp", glns=str(tmp_path / "none.py"))
    with pytest.raises(InputError, match="--contenders leaves out spo: add it"):
        contenders.asked("tsp", "alns", pair=str(file))

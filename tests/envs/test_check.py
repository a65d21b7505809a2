"""`spo check`: what works, and one sentence for each thing that does not."""

import json
from dataclasses import replace

import knapsack
import numpy as np
import pytest
import shapes
import third_problem

from spo_jax import Pair, Program, get_problem, save_pair
from spo_jax.cli import main
from spo_jax.envs.files.textfiles import jsonable
from spo_jax.envs.problem import Rules
from spo_jax.program.grammar.base import Grammar


def checked(capsys, *argv):
    """The exit code, the marks of what was tried and the sentence of the error."""
    code = main(["check", *argv])
    printed = capsys.readouterr()
    assert len(printed.err.splitlines()) <= 1
    rows = [line.split(maxsplit=2) for line in printed.out.splitlines()]
    return code, {name: (mark, text) for mark, name, text in rows}, printed.err


def test_a_whole_problem(capsys):
    code, rows, complaint = checked(capsys, "knapsack:Knapsack", "--size", "12")
    assert (code, complaint) == (0, "")
    assert rows["problem"][1] == "knapsack, of items; its cost is maximised"
    assert rows["step"][1] == "takes out 1 of 12 items"
    assert rows["pair-file"] == ("✓", "written and read, also for alns, also for function")
    assert {name for name, (mark, _) in rows.items() if mark == "-"} == {"construct", "draw"}


@pytest.mark.long
def test_what_a_bare_problem_lacks_and_what_that_is_for(capsys):
    code, rows, _ = checked(capsys, "third_problem:PathProblem", "--size", "8")
    assert code == 0
    lacks = {name: text for name, (mark, text) in rows.items() if mark == "-"}
    assert [*lacks] == [
        "contract", "grammar", "read", "construct", "solve_reference", "draw", "export",
    ]  # fmt: skip
    assert "--generator openai or vllm, which need a contract only" in lacks["grammar"]
    assert "implement construct, or start at random" in lacks["construct"]


@pytest.mark.long
def test_routes_and_shapes_of_ones_own(capsys, tmp_path):
    assert checked(capsys, "cvrp")[0] == 0
    code, _, complaint = checked(capsys, "shapes:DictProblem")
    assert code == 2
    assert "no trivial pair is known: name one with --pair FILE.py" in complaint
    for name, texts in (
        ("shapes:DictProblem", (shapes.DICT_DESTROY, shapes.DICT_REPAIR)),
        ("shapes:MatrixProblem", (shapes.MATRIX_DESTROY, shapes.MATRIX_REPAIR)),
    ):
        programs = map(Program.from_source, ("destroy", "repair"), texts)
        path = save_pair(
            tmp_path / f"{name[7:]}.py", Pair(*programs), "", get_problem(name).interface
        )
        code, rows, complaint = checked(capsys, name, "--pair", str(path))
        assert (code, complaint) == (0, "")
        assert rows["step"][1] == "takes out 2 of 20 jobs"
        assert rows["write"][1].endswith("implement read_solution")


@pytest.mark.long
def test_costs_below_0_may_be_a_profit(capsys):
    _, rows, _ = checked(capsys, "knapsack:Debts")
    assert rows["rules"][1].endswith("say maximise = True and leave out the minus")


def one(size, count, seed):
    return [replace(each, name="one") for each in known(size, 1, seed)] * count


known = third_problem.PathProblem().sample


@pytest.mark.parametrize(
    ("where", "name", "value", "says"),
    [
        ("problem", "sample", lambda self, size, count, seed: [], "returned no 1 Instances"),
        ("problem", "sample", lambda self, *asked: one(*asked), "the same instance twice"),
        (
            "problem",
            "sample",
            lambda self, size, count, seed: known(size, count, count),
            "another first instance where the count is 2: seed each by its number",
        ),
        (
            "problem",
            "sample",
            lambda self, *asked: [replace(each, problem="other") for each in known(*asked)],
            "an instance of problem 'other' and size 20",
        ),
        ("problem", "rules", lambda self, instance: None, "returned a NoneType, not Rules"),
        ("rules", "cost", Rules.cost, "its Rules have no method cost, which all rules have"),
        ("rules", "start", Rules.start, "its Rules have no method start"),
        ("rules", "cost", lambda self, solution: float("nan"), "not a finite number"),
        ("problem", "code_length", lambda self, instance: 3, "no list of at most 3 integers"),
        (
            "problem",
            "decode",
            lambda self, i, code: [c - 1 for c in code[::-1]],
            "costs .* once decoded",
        ),
        ("problem", "simple", "nowhere.py", "nowhere.py"),
        ("problem", "maximise", 1, "its maximise is 1, not a bool"),
        (
            "problem",
            "grammar",
            lambda self, role, kit=False: 7,
            "returned 7; it must return a .*Grammar",
        ),
        ("problem", "contract", lambda self, role: "Write it.", r"lacks placeholder \$adaptation"),
        ("problem", "construct", lambda self, instance, until=0.0: [], "its construction is none"),
        ("problem", "export", lambda self: "def instance_of(: pass", "its export is no Python"),
    ],
)
def test_one_sentence_says_what_is_wrong(where, name, value, says, capsys, monkeypatch):
    kind = third_problem.PathProblem if where == "problem" else third_problem.PathRules
    if isinstance(value, type(Rules.cost)) and value.__module__ == "spo_jax.envs.rules":
        monkeypatch.delattr(kind, name)
    else:
        monkeypatch.setattr(kind, name, value, raising=False)
    code, _, complaint = checked(capsys, "third_problem:PathProblem")
    assert code == 2, complaint
    assert __import__("re").search(says, complaint), complaint


def test_a_pair_that_fails_is_named(capsys, tmp_path):
    path = tmp_path / "pair.py"
    path.write_text(
        "def destroy(dist, order, z, rng):\n    return order, []\n\n\n"
        "def repair(dist, order, removed, z, rng):\n    return order\n"
    )
    code, _, complaint = checked(capsys, "third_problem:PathProblem", "--pair", str(path))
    assert code == 2
    assert f"the pair {path} fails (invalid: destroy: removed no item)" in complaint


def test_values_for_json():
    value = {1: (np.int64(2), {3, 1}), (0, 1): np.array([[1.5]])}
    assert jsonable(value) == [[1, [2, [1, 3]]], [[0, 1], [[1.5]]]]
    assert json.loads(json.dumps(jsonable({"a": {"b": None}}))) == {"a": {"b": None}}


def test_a_grammar_is_its_slots_and_what_they_render():
    assert all(isinstance(each, Grammar) for each in knapsack.GRAMMARS.values())

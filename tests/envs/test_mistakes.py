"""Mistakes of a user's own problem are told in one sentence, and never blamed on programs."""

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from offering import Whole
from third_problem import PathRules

from spo_jax.envs.files.specs import read_instance, sampled
from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.references import solved
from spo_jax.envs.run.jobs.results import Results
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError
from spo_jax.program import Argument, Interface, Pair, Program

ORDERS = itertools.cycle([[1, 2, 3, 4, 5], [2, 1, 3, 4, 5]])  # starts that no seed decides


def test_a_reference_is_a_feasible_solution(tmp_path, monkeypatch):
    problem = Whole()
    [instance] = problem.sample(6, 1, 0)
    for answer, says in [
        (([1, 1, 1, 1, 1], "x", False), "its solution of path-0 is none"),
        ((None, "x", False), "its solution of path-0 is none"),
        ([1, 2, 3, 4, 5], "no \\(solution, source"),
    ]:
        monkeypatch.setattr(Whole, "solve_reference", lambda *_, answer=answer: answer)
        with pytest.raises(InputError, match=says):
            solved(problem, instance)
    monkeypatch.setattr(Whole, "solve_reference", lambda *_: ([1, 2, 3, 4, 5], "x", False))
    assert math.isfinite(solved(problem, instance, cache=tmp_path).reference)
    monkeypatch.setattr(Whole, "lower_bound", lambda *_: 1e9)
    with pytest.raises(InputError, match="below the problem's lower_bound"):
        solved(problem, instance)


def test_references_of_other_code_are_not_taken_from_the_cache(tmp_path, monkeypatch):
    for k, text in enumerate(["", "\n# better"]):
        folder = tmp_path / str(k)
        folder.mkdir()
        (folder / "mine.py").write_text(f"from offering import Whole\nclass W(Whole): pass{text}")
        monkeypatch.syspath_prepend(folder)
        monkeypatch.delitem(__import__("sys").modules, "mine", raising=False)
        problem = __import__("mine").W()
        solved(problem, problem.sample(5, 1, 0)[0], cache=tmp_path / "cache")
        assert len(list(tmp_path.glob("cache/*.json"))) == k + 1


DESTROY = Program(
    "destroy",
    """
def destroy(dist, order, z, rng):
    return order[1:], order[:1]
""",
)
REPAIR = """
def repair(dist, order, removed, z, rng):
    return order + removed
"""


class Late(PathRules):
    """Its third method call in a rollout does what `mistake` says."""

    mistake = calls = 0

    def bug(self):
        self.calls += 1
        if self.calls > 5:
            self.mistake()

    def repaired(self, output):
        self.bug()
        return super().repaired(output)


class LateCost(Late):
    def repaired(self, output):
        return PathRules.repaired(self, output)

    def cost(self, solution):
        self.bug()
        return super().cost(solution)


def _raises():
    raise KeyError("a bug of mine")


def _opens():
    Path("/etc/hostname").read_text()


def _imports():
    import this  # noqa: F401


class Buggy(Whole):
    kind, mistake = Late, staticmethod(_raises)

    def rules(self, instance):
        rules = self.kind(instance, instance.dist)
        rules.mistake = self.mistake
        return rules


class BuggyCost(Buggy):
    kind = LateCost


class Opens(BuggyCost):
    mistake = staticmethod(_opens)


class Imports(Buggy):
    mistake = staticmethod(_imports)


@pytest.mark.parametrize(
    ("problem", "says"),
    [
        (Buggy, "the rules raised KeyError: 'a bug of mine' .*repaired, line"),
        (BuggyCost, "the rules raised KeyError: 'a bug of mine' .*cost, line"),
        (Opens, ".*PermissionError.*open no files"),
        (Imports, ".*NotFoundError.*import at the top"),
    ],
)
def test_a_bug_of_rules_ends_the_run(problem, says):
    with (
        LocalEvaluator(problem()) as evaluator,
        pytest.raises(RuntimeError, match=f"problem path: {says}"),
    ):
        evaluator.run(
            [Pair(DESTROY, Program("repair", REPAIR))], problem().sample(8, 1, 0), steps=20
        )


class NaiveRules(PathRules):
    def repaired(self, output):
        return super().repaired(list(output))


class Naive(Whole):
    def rules(self, instance):
        return NaiveRules(instance, instance.dist)


def test_what_a_program_raises_inside_rules_is_its_own_fault():
    lazy = REPAIR.replace("order + removed", "(1 // (v - v) for v in order)")
    pair = Pair(DESTROY, Program("repair", lazy))
    with LocalEvaluator(Naive()) as evaluator:
        failed = evaluator.run([pair], Naive().sample(8, 1, 0), steps=3).failure(0)
    assert failed.status == Status.CRASH
    assert "ZeroDivisionError" in failed.reason


class Own(PathRules):
    """Not `PathRules`, so that a test can change it."""


class Mine(Whole):
    def rules(self, instance):
        return Own(instance, instance.dist)


@pytest.mark.parametrize(
    ("of", "member", "value", "says"),
    [
        (Mine, "code_length", lambda *_: 1.5, "its code_length is 1.5, not a whole"),
        (Mine, "rules", lambda *_: None, "its rules returned a NoneType, not Rules"),
        (Own, "__init__", lambda *_: None, r"do not call super\(\).__init__"),
        (Mine, "interface", Interface(()), "pass 1 arguments to programs, .* declares 0"),
        (Own, "start", lambda *_: np.arange(1, 6), "a start of path-0 is no list of integers"),
        (Own, "start", lambda *_: [(1, 2)], "a start of path-0 is no list of integers"),
        (Own, "start", lambda *_: next(ORDERS), "when it is drawn again"),
        (Own, "encode", lambda *_: None, "a code that is no list of at most"),
        (Own, "copy", lambda *_: None, "is not what its Rules.copy returns"),
        (Own, "cost", lambda *_: math.inf, "costs inf, not a finite number"),
        (Own, "cost", lambda *_: "3", "costs '3', not a finite number"),
        (Own, "cost", lambda *_: np.ones(3), r"costs array\(.*, not a finite number"),
        (Own, "destroyed", lambda *_: None, r"destroyed returned no \(partial, removed\)"),
    ],
)
def test_what_a_problem_returns_is_checked_before_programs_run(
    monkeypatch, of, member, value, says
):
    instances = Mine().sample(6, 1, 0)
    monkeypatch.setattr(of, member, value)
    with pytest.raises(InputError, match=f"problem path: .*{says}"):
        Results(Mine(), 1, instances, (0, 1), 5, 0)


def test_a_whole_cost_becomes_a_float(monkeypatch):
    monkeypatch.setattr(Own, "cost", lambda *_: 3)
    [instance] = Mine().sample(6, 1, 0)
    Results(Mine(), 1, [instance], (0,), 5, 0)
    assert type(Mine().cost(instance, [1, 2, 3, 4, 5])) is float


@pytest.mark.parametrize(
    ("member", "value", "says"),
    [
        ("name", "a/b c", "its name is 'a/b c', not a word"),
        ("suffixes", ".col", "its suffixes is '.col', not a tuple"),
        ("suffixes", ("col",), r"its suffixes is \('col',\), not a tuple"),
        ("acceptances", "annealing", "its acceptances is 'annealing', not a tuple"),
        ("acceptances", (), r"its acceptances is \(\), not a tuple"),
        ("settings", [1], r"its settings is \[1\], not a mapping"),
        ("baselines", {"a": "m:f"}, "its baselines is {'a': 'm:f'}, not a mapping"),
        ("classical_destroys", lambda _: ["def"], "returned no tuple of Programs"),
    ],
)
def test_what_a_problem_declares_is_of_its_kind(monkeypatch, member, value, says):
    monkeypatch.setattr(Whole, member, value)
    with pytest.raises(InputError, match=says):
        get_problem("offering:Whole")


@pytest.mark.parametrize(
    ("arguments", "current"),
    [
        (Argument("n", "object"), "c"),
        ((Argument("my arg", "object"),), "c"),
        ((Argument("rng", "object"),), "c"),
        ((Argument("c", "object"),), "c"),
        (("n",), "c"),
    ],
)
def test_an_interface_is_of_arguments_with_names(arguments, current):
    with pytest.raises(InputError, match="Interface"):
        Interface(arguments, current)


@pytest.mark.parametrize("found", [None, [1], [], iter([])])
def test_sample_and_read_return_instances(monkeypatch, found):
    monkeypatch.setattr(Whole, "sample", lambda *_: found)
    monkeypatch.setattr(Whole, "read", lambda *_: found)
    with pytest.raises(InputError, match=r"path: its sample\(6, 1, 0\) returned"):
        sampled(Whole(), 6, 1, 0)
    with pytest.raises(InputError, match=r"path: its read returned .*, not an Instance"):
        read_instance(Whole(), "x.path")


def test_an_instance_has_a_whole_size(monkeypatch):
    [instance] = Whole().sample(6, 1, 0)
    monkeypatch.setattr(Whole, "read", lambda *_: replace(instance, size=6.0))
    with pytest.raises(InputError, match=r"of size 6\.0"):
        read_instance(Whole(), "x.path")

"""Rehearsals: answers that every method can read, counts as of the real run, extrapolation."""

import argparse
import math
import re
from dataclasses import replace

import numpy as np
import pytest

import main_tables
import spo_jax
from common import cli, contenders, rehearsal
from common.budgets import BUDGETS
from spo_jax.errors import InputError
from spo_jax.program import ROLES, Prompt
from spo_jax.program.answers import parse_answer
from spo_jax.search.writing.grammar import GrammarGenerator
from tests.rl.chat_server import serving

DISCOVERED = [each for each in contenders.CONTENDERS.values() if each.discovered]
SMALL = {"size": 8, "instances": 1, "population_size": 4, "workers": 1, "verbose": False}


@pytest.mark.parametrize("answer", ["labels", "braces", "code", "joint"])
@pytest.mark.parametrize("role", ROLES)
def test_answers_are_in_the_format_that_is_asked_for(answer, role):
    prompt = Prompt("tsp", role, "initialization", f"Name the function {role}_v3.", answer=answer)
    (found,) = rehearsal.Rehearsal().generate([prompt], 2, 7)
    for each in found:
        program = parse_answer(answer, role, each.text)
        assert f"def {role}(" in program.source
        assert each.usage.prompt_tokens == math.ceil(len(prompt.text) / rehearsal.CHARACTERS)
        assert each.usage.completion_tokens == math.ceil(len(each.text) / rehearsal.CHARACTERS)


def test_answers_are_the_grammars():
    prompt = Prompt("tsp", "repair", "initialization", "Write one.")
    (found,) = rehearsal.Rehearsal().generate([prompt], 3, 7)
    plain = GrammarGenerator().generate([prompt], 3, spo_jax.seeding.derive(7, 0))[0]
    assert [each.text for each in found] == [each.text for each in plain]


@pytest.mark.slow
@pytest.mark.parametrize("contender", DISCOVERED, ids=lambda each: each.name)
def test_every_method_reads_its_answers(contender, tmp_path):
    run = spo_jax.discover(
        "tsp", preset="smoke", path=tmp_path / "run", generator="common.rehearsal:Rehearsal",
        steps=2, finalists=0, select="utility", update="none",
        **SMALL, **({"pairs": 45} | contender.settings if contender.name != "spo" else {}),
    )  # fmt: skip
    assert [f.reason for f in run.failures if f.status == "unparsable"] == []
    assert run.best is not None


@pytest.mark.long
def test_a_rehearsal_counts_what_the_run_asks(tmp_path, monkeypatch):
    """Best-of-N's requests depend on nothing that was answered but the destroys."""
    monkeypatch.setenv("SPO_API_KEY", "sk-test")
    asked = []

    def answer(body, _):
        asked.append(sum(len(each["content"]) for each in body["messages"]))
        role = re.search(r"one new (\w+) operator", body["messages"][-1]["content"])[1]
        (found,) = GrammarGenerator().generate([Prompt("tsp", role, "initialization", "")], 1, 3)
        return found[0].text

    best_of_n = contenders.CONTENDERS["best-of-n"]
    args = argparse.Namespace(
        problem="tsp", budget="smoke", seeds=None, first_seed=0, workers=1, out=str(tmp_path),
        data=None, references=None, base_url="http://127.0.0.1:1/v1", model="fake",
        prompt_price=2.0, completion_price=8.0, discovery="--pairs 6 --size 8",
    )  # fmt: skip
    found = rehearsal.bill(best_of_n, cli.context(args))
    with serving(answer) as server:
        spo_jax.discover(
            "tsp", preset="smoke", path=tmp_path / "run", generator="openai", retries=0,
            base_url=server.url(), model="fake", method="best-of-n", pairs=6, steps=2,
            finalists=0, select="utility", **SMALL,
        )  # fmt: skip
    assert found.requests == len(asked) == 12
    assert found.prompt == pytest.approx(sum(asked) / rehearsal.CHARACTERS, rel=0.1)
    assert found.most == 12 * spo_jax.settings("tsp", "smoke").generator.max_new_tokens
    assert found.cost(found.most) == (2 * found.prompt + 8 * found.most) / 1e6


def test_further_rounds_are_as_the_later_half():
    assert rehearsal.whole_run(np.array([1.0, 2.0, 4.0]), 3) == 7
    assert rehearsal.whole_run(np.array([1.0, 9.0, 4.0, 6.0]), 10) == 20 + 6 * 5
    assert rehearsal.whole_run(np.array([3.0]), 4) == 12


def test_a_long_run_is_rehearsed_in_part(tmp_path, monkeypatch):
    seen = []

    def stopped(*, settings, **_):
        seen.append(settings)
        raise InputError("seen")

    monkeypatch.setattr(spo_jax, "discover", stopped)
    args = argparse.Namespace(
        problem="tsp", budget="paper", seeds=None, first_seed=0, workers=1, out=str(tmp_path),
        data=None, references=None, base_url="http://127.0.0.1:1/v1", model="fake", discovery="",
    )  # fmt: skip
    context = cli.context(args)
    assert context.budget.settings["generator"] == "openai"
    for name in ("spo", "eoh", "g-lns"):
        with pytest.raises(InputError, match="seen"):
            rehearsal.bill(contenders.CONTENDERS[name], context)
    spo, eoh, glns = seen
    assert (spo.search.rounds, spo.generator.name) == (2, "common.rehearsal:Rehearsal")
    assert (eoh.search.pairs, eoh.evaluation.size, eoh.evaluation.steps) == (400, 10, 2)
    study = replace(context, budget=replace(BUDGETS["study"], settings=context.budget.settings))
    with pytest.raises(InputError, match="seen"):
        rehearsal.bill(contenders.CONTENDERS["spo"], study)
    assert seen[-1].evaluation.on == ("uniform:10x1", "uniform:11x1"), "no instance twice"
    assert glns.search.method_settings == {"iterations": 2}, "its 100 are of rollouts of 100 steps"


@pytest.mark.long
def test_the_command_line(tmp_path, capsys, monkeypatch):
    def asked(*words):
        monkeypatch.setattr("sys.argv", ["main_tables.py", "--out", str(tmp_path), *words])
        return main_tables.main(), capsys.readouterr()

    there = ["--base-url", "http://127.0.0.1:1/v1", "--model", "fake", "--estimate"]
    code, captured = asked("--budget", "smoke", "--contenders", "best-of-n", *there)
    assert code == 0
    assert re.search(r"\| Best-of-N \| 1 \| 60 \| 0\.\d\d \|", captured.out)
    for words, reason in (
        (["--model", "fake"], "needs --base-url and --model"),
        ([*there, "--match", "both"], "--estimate is of --match programs"),
        (
            [*there, "--contenders", "spo", "--discovery", "--minutes 3"],
            "only a run of so many rounds",
        ),
        (
            [*there, "--contenders", "g-lns", "--discovery", "--method-setting iterations=x"],
            "iterations is 'x'",
        ),
        (
            [*there, "--contenders", "best-of-n", "--discovery", "--on uniform:5"],
            "'uniform:5' is not uniform:SIZExCOUNT",
        ),
        ([*there, "--contenders", "alns"], "none of these methods discovers anything"),
    ):
        code, captured = asked("--budget", "smoke", *words)
        assert (code, reason in captured.err) == (2, True)

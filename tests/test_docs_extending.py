"""The examples of docs/extending.md, as they stand there: one discovery with all of them."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spo_jax.envs.problem import Problem
from spo_jax.envs.run.rollouts import Rollouts
from spo_jax.runs.database.store import dump
from spo_jax.runs.run import load_run
from spo_jax.search.writing.prompts import Templates

TEXT = (Path(__file__).parents[1] / "docs" / "extending.md").read_text("utf-8")

ANSWERS = {
    "destroy-random": """STRATEGY: remove random jobs.
CODE:
def destroy(times, current_order, steps_since_improvement, rng):
    removed = rng.sample(current_order, 2)
    return [v for v in current_order if v not in removed], removed
""",
    "destroy-front": """STRATEGY: remove the first two jobs.
CODE:
def destroy(times, current_order, steps_since_improvement, rng):
    return current_order[2:], current_order[:2]
""",
    "repair-append": """STRATEGY: put long jobs at the end and others anywhere.
CODE:
def repair(times, partial_order, removed_jobs, steps_since_improvement, rng):
    for v in removed_jobs:
        if sum(times[v]) > 300:
            partial_order.append(v)
        else:
            partial_order.insert(rng.randrange(len(partial_order) + 1), v)
    return partial_order
""",
}
# A contract of the least that it may say.
CONTRACTS = {
    "destroy": "Write one destroy function for the flow shop.\n$state_input\n$adaptation\n",
    "repair": "Write one repair function.\n$state_input\n$adaptation\n$paired_destroy\n",
}


def blocks(language: str) -> list[str]:
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    return [text for kind, text in fences if kind == language]


@pytest.mark.long
def test_one_discovery_with_all_of_them(tmp_path: Path) -> None:
    for example in blocks("python"):
        name = re.match(r"# (\w+\.py)\n", example)
        assert name is not None
        (tmp_path / name[1]).write_text(example)
    (tmp_path / "shelf").mkdir()
    for stem, text in ANSWERS.items():
        (tmp_path / "shelf" / f"{stem}.txt").write_text(text)
    (tmp_path / "prompts").mkdir()
    for role, text in CONTRACTS.items():
        (tmp_path / "prompts" / f"flow-shop-{role}.txt").write_text(text)

    [form] = blocks("text")
    (tmp_path / "prompts" / "analogy.txt").write_text(form)
    problem = type("FlowShop", (Problem,), {"name": "flow-shop"})()
    templates = Templates.read(tmp_path / "prompts", problem)
    assert templates.in_turn("mutation", "repair")[3:] == ["analogy"]

    [line] = blocks("")
    setting, command, *arguments = shlex.split(line.replace("\\\n", " "))
    assert (setting, command) == ("PYTHONPATH=.", "spo")
    tiny = "--size 8 --instances 1 --rollouts 1 --steps 10 --finalists 0 --select utility"
    done = subprocess.run(
        [sys.executable, "-m", "spo_jax", *arguments, *tiny.split(), "--workers", "1"],
        cwd=tmp_path, check=True, stdout=subprocess.PIPE, text=True, timeout=120,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([".", str(Path(__file__).parents[1])])},
    )  # fmt: skip
    out = tmp_path / "runs" / "flow-shop"
    assert load_run(out).status == "finished"
    tables = dump(out)
    strategies = {row[7] for row in tables["programs"]}
    assert strategies == {text.split("\n")[0][10:] for text in ANSWERS.values()}
    assert {row[4] for row in tables["pairs"]} == {"ok"}
    assert all('"destroy/spread"' in row[-1] for row in tables["rounds"])
    # One rollout of each pair: its score is J.
    assert [json.loads(row[-1]) for row in tables["pairs"]] == [[row[5]] for row in tables["pairs"]]
    assert f"asked for {len(tables['pairs'])} rollouts" in done.stdout
    assert re.findall(r"^round \d+: 0\.\d+$", done.stdout, re.MULTILINE)
    assert load_run(out).config.search.credit == "my_credit:best_response"


@pytest.mark.parametrize("name", ["my_utility.py", "my_evaluator.py"])
def test_fifteen_lines(name: str) -> None:
    [example] = [text for text in blocks("python") if name in text]
    assert len([line for line in example.splitlines()[1:] if line]) <= 15


def test_what_the_utility_says() -> None:
    [example] = [text for text in blocks("python") if "my_utility.py" in text]
    scope: dict[str, Any] = {}
    exec(example, scope)
    cost = np.array([[[[8.0, 4.0, 4.0], [8.0, 8.0, 4.0]]]])
    rollouts = Rollouts(cost, *[np.zeros((1, 1, 2))] * 6)
    # Half is gained from the first step on; or after the second alone, whose weight is 1 of 3.
    np.testing.assert_allclose(scope["early"](rollouts, ()), [[[0.5, 0.5 / 3]]], rtol=1e-15)


@pytest.mark.long
def test_the_smallest_grammar_writes_lawful_programs(tmp_path: Path) -> None:
    """The example of docs/examples/grammar.md, on the flow shop of docs/extending.md."""
    page = Path(__file__).parents[1] / "docs" / "examples" / "grammar.md"
    for text in (TEXT, page.read_text("utf-8")):
        for name, body in re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", text, re.S | re.M):
            (tmp_path / name).write_text(body)
    done = subprocess.run(
        [sys.executable, "-m", "spo_jax", "discover", "flow_grammar:WithGrammar", "--preset",
         "smoke", "--generator", "grammar", "--rounds", "1", "--size", "8", "--out", "run"],
        cwd=tmp_path, check=True, stdout=subprocess.PIPE, text=True, timeout=120,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([".", str(Path(__file__).parents[1])])},
    )  # fmt: skip
    assert "valid 100%" in done.stdout

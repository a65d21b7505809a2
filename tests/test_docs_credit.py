"""The example of docs/credit_schemes.md, as it stands there: by hand, and in a discovery."""

import json
import math
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from spo_jax.config import Settings
from spo_jax.program import Program
from spo_jax.runs.database.store import dump
from spo_jax.runs.run import load_run
from spo_jax.search.credit import CREDITS, Payoff

TEXT = (Path(__file__).parents[1] / "docs" / "credit_schemes.md").read_text("utf-8")

# Everything once, in a second or two: one round of few answers on one small instance.
TINY = {
    "rounds": 1, "size": 8, "instances": 2, "rollouts": 1, "steps": 3, "finalists": 0,
    "select": "utility", "generator": "grammar", "workers": 1,
}  # fmt: skip


def blocks(language: str) -> list[str]:
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    return [text for kind, text in fences if kind == language]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    [example] = blocks("python")
    name = re.match(r"# (\w+\.py)\n", example)
    assert name is not None
    (tmp_path / name[1]).write_text(example)
    return tmp_path


def test_ten_lines(folder: Path) -> None:
    [example] = folder.iterdir()
    lines = example.read_text().splitlines()
    assert len([line for line in lines if line and not line.startswith("#")]) <= 10
    assert len(lines) <= 12  # with the name of the file and the lines left free before a function


def test_what_the_example_earns(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    scheme = CREDITS["my_credit:steady"]
    # Two instances with two seeds: means 0.5 and 0.5, then 0.75 and 0.25, 0.25 from their mean.
    scores = np.full((2, 2, 2, 2), math.nan)
    scores[0, 0], scores[0, 1] = [[0.25, 0.75], [0.5, 0.5]], [[1.0, 0.5], [0.25, 0.25]]
    utility = scores.mean(axis=(2, 3))
    destroys = (Program("destroy", "d"), Program("destroy", "e"))
    repairs = (Program("repair", "r"), Program("repair", "s"))
    payoff = Payoff(utility, destroys, (repairs, repairs), scores=scores)
    credits = scheme(payoff, top=2)
    np.testing.assert_array_equal(credits.follower, [[0.5, 0.25], [math.nan, math.nan]])
    np.testing.assert_array_equal(credits.leader, [0.375, math.nan])


@pytest.mark.long
def test_the_command_of_the_example(folder: Path) -> None:
    [line] = [block for block in blocks("") if "spo discover" in block and "my_credit" in block]
    setting, command, *arguments = shlex.split(line)
    assert (setting, command) == ("PYTHONPATH=.", "spo")
    flags = [part for name, value in TINY.items() for part in (f"--{name}", str(value))]
    subprocess.run(
        [sys.executable, "-m", "spo_jax", *arguments, *flags, "--out", "run"],
        cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=120,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([".", str(Path(__file__).parents[1])])},
    )  # fmt: skip
    run = load_run(folder / "run")
    assert (run.status, run.config.search.credit) == ("finished", "my_credit:steady")
    # The score of each survivor is the mean of its two best J less their standard deviations.
    rows = dump(folder / "run")
    steady: dict[str, list[float]] = {}
    for destroy, _, _, kind, status, value, _, _, scores in rows["pairs"]:
        if kind == "response" and status == "ok":
            one, other = json.loads(scores)
            assert (one + other) / 2 == pytest.approx(value)
            steady.setdefault(destroy, []).append(value - abs(one - other) / 2)
    digest = {row[0]: row[3] for row in rows["programs"]}
    found = {digest[m[3]]: m[4] for m in rows["members"] if m[1] == "destroy"}
    assert found
    for destroy, score in found.items():
        best = sorted(steady[destroy])[-Settings().search.top_responses :]
        assert score == pytest.approx(sum(best) / len(best))


def test_the_table_names_every_scheme_that_ships() -> None:
    section = TEXT.split("## What ships")[1].split("\n## ")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", section, re.MULTILINE) == list(CREDITS)

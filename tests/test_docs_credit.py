"""The example of docs/credit_schemes.md, as it stands there: by hand, and in a discovery."""

import math
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from spo_jax.config import Config
from spo_jax.program import Program
from spo_jax.search.credit import SCHEMES, Payoff, get_credit
from spo_jax.search.runs.store import dump, load_run

TEXT = (Path(__file__).parents[1] / "docs" / "credit_schemes.md").read_text("utf-8")

# Everything once, in a second or two: one round of few answers on one small instance.
TINY = {
    "rounds": 1, "size": 8, "instances": 1, "rollouts": 1, "steps": 3, "finalists": 0,
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
    scheme = get_credit("my_credit:reliable")
    utility = np.array([[0.5, math.nan, 0.75, 0.25], [math.nan, 0.5, math.nan, math.nan]])
    repairs = tuple(Program("repair", text) for text in "rstu")
    destroys = (Program("destroy", "d"), Program("destroy", "e"))
    payoff = Payoff(utility, destroys, (repairs, repairs))
    np.testing.assert_array_equal(scheme(payoff, top=2).leader, [0.5, math.nan])
    np.testing.assert_array_equal(scheme(payoff, top=1).leader, [0.75, 0.5])
    np.testing.assert_array_equal(scheme(payoff, top=9).leader, [math.nan, math.nan])
    np.testing.assert_array_equal(scheme(payoff, top=2).follower, utility)


def test_the_command_of_the_example(folder: Path) -> None:
    [line] = [block for block in blocks("") if "spo discover" in block]
    setting, command, *arguments = shlex.split(line)
    assert (setting, command) == ("PYTHONPATH=.", "spo")
    flags = [part for name, value in TINY.items() for part in (f"--{name}", str(value))]
    subprocess.run(
        [sys.executable, "-m", "spo_jax", *arguments, *flags, "--out", "run"],
        cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=120,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([".", str(Path(__file__).parents[1])])},
    )  # fmt: skip
    run = load_run(folder / "run")
    assert (run.status, run.config.credit) == ("finished", "my_credit:reliable")
    # The score of each survivor is its second best response: nobody has it with one response.
    rows = dump(folder / "run")
    utilities: dict[str, list[float]] = {}
    for destroy, _, _, kind, status, value, *_ in rows["pairs"]:
        if kind == "response" and status == "ok":
            utilities.setdefault(destroy, []).append(value)
    digest = {row[0]: row[3] for row in rows["programs"]}
    scores = {digest[m[3]]: m[4] for m in rows["members"] if m[1] == "destroy"}
    assert scores
    for destroy, score in scores.items():
        assert score == sorted(utilities[destroy])[-Config().top_responses]


def test_the_table_names_every_scheme_that_ships() -> None:
    section = TEXT.split("## What ships")[1].split("\n## ")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", section, re.MULTILINE) == list(SCHEMES)

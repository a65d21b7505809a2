"""What changed between two programs: the shortest list of changes, for a bounded work."""

import json
import random
import re
import shutil
import subprocess
from importlib.resources import files

import pytest

from spo_jax.program import changes
from spo_jax.program.changes import Changes, differences


def in_common(a: list[str], b: list[str]) -> int:
    """The length of a longest common subsequence, by its table."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, one in enumerate(a):
        for j, other in enumerate(b):
            above = max(table[i][j + 1], table[i + 1][j])
            table[i + 1][j + 1] = table[i][j] + 1 if one == other else above
    return table[-1][-1]


def texts(seed: int) -> tuple[list[str], list[str]]:
    draw = random.Random(seed)
    a, b = ([draw.choice("abc") for _ in range(draw.randrange(1, 12))] for _ in range(2))
    return a, b


def right(a: list[str], b: list[str], found: list[tuple[str, str]]) -> None:
    assert [line for mark, line in found if mark != "+"] == a
    assert [line for mark, line in found if mark != "-"] == b
    assert sum(mark == " " for mark, _ in found) == in_common(a, b)


def patched(old: list[str], lines: tuple[str, ...]) -> list[str]:
    """`old` with a unified diff applied, which is wrong about no line and no place."""
    new, at = [], 0
    for line in lines:
        if found := re.fullmatch(r"@@ -(\d+),\d+ \+(\d+),\d+ @@", line):
            new += old[at : int(found[1]) - 1]
            at = int(found[1]) - 1
            assert len(new) == int(found[2]) - 1
        elif line[0] == "+":
            new.append(line[1:])
        else:
            assert old[at] == line[1:]
            new += [old[at]] if line[0] == " " else []
            at += 1
    return new + old[at:]


@pytest.mark.parametrize("seed", range(200))
def test_as_little_is_changed_as_can_be(seed: int) -> None:
    a, b = texts(seed)
    right(a, b, differences(a, b))


@pytest.mark.parametrize("seed", range(100))
def test_a_diff_turns_the_old_into_the_new(seed: int) -> None:
    draw = random.Random(seed)
    old = [draw.choice("abcdefgh") for _ in range(draw.randrange(1, 40))]
    new = [line for line in old if draw.random() < 0.9] or ["z"]
    new.insert(draw.randrange(len(new) + 1), "z")
    assert patched(old, Changes().between("\n".join(old) + "\n", "\n".join(new))) == new


def test_what_is_far_from_a_change_is_left_out() -> None:
    old = [str(k) for k in range(100)]
    found = Changes().between("\n".join(old), "\n".join([*old[:50], "x", *old[51:]]))
    assert found == ("@@ -49,5 +49,5 @@", " 48", " 49", "-50", "+x", " 51", " 52")
    assert Changes().between("a\nb", "a\nb\n") == ()


def test_no_more_is_compared_than_a_page_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a table takes is known before it is made: lines that differ times lines that differ."""
    made: list[int] = []

    def counted(a: list[str], b: list[str]) -> list[tuple[str, str]]:
        made.append(len(a) * len(b))
        return []

    monkeypatch.setattr(changes, "differences", counted)
    many, others = ("".join(f"{mark}{k % 999}\n" for k in range(10_000)) for mark in "ab")
    page = Changes()
    comparisons = [page.between(many, others) for _ in range(30)]
    assert 0 < sum(made) <= page.spent <= changes.MOST_IN_ALL
    assert comparisons[-1] == ("these 20,000 lines are too many to be compared here",)
    assert len(made) < 30

    made.clear()
    alone = Changes()
    assert alone.between("a\n" * 30_000, "b\n" * 30_000) == (
        "these 60,000 lines are too many to be compared here",
    )
    assert "too many" in alone.between("a" * 70_000, "b")[0]  # which no program is
    assert made == []
    few = many[:30_000]
    alone.between(f"{few}x\n{few}", f"{few}y\n{few}")
    assert made == [1]  # equal ends cost nothing


def test_a_long_diff_is_cut() -> None:
    shown = Changes().between("\n".join("a" * 5000), "x" * 50_000)
    assert sum(len(line) + 1 for line in shown[:-1]) <= changes.MOST_SHOWN
    assert shown[-1] == "… 1 more lines"


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node.js to run the script")
def test_the_script_of_the_page_does_the_same() -> None:
    script = (files("spo_jax.runs.report") / "page.js").read_text()
    functions = script[script.index("const MOST") : script.index("function diff(")]
    asked = [["\n".join(each) for each in texts(seed)] for seed in range(200)]
    asked.append(["a\n" * 100_000, "b\n" * 100_000])
    completed = subprocess.run(
        ["node", "-e", functions + "const all = JSON.parse(require('fs').readFileSync(0));"
         "console.log(JSON.stringify(all.map(([a, b]) => differences(a, b))))"],
        input=json.dumps(asked), capture_output=True, text=True, check=True,
    )  # fmt: skip
    *found, most = json.loads(completed.stdout)
    assert most is None
    for (a, b), each in zip(asked, found, strict=False):
        right(a.split("\n"), b.split("\n"), [(mark, line) for mark, line in each])

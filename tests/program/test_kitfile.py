"""Pair files whose programs use the kit: read back as they were, and run without spo_jax."""

import json
import random
import subprocess
import sys
import textwrap

import pytest

from spo_jax.envs.kits import load_kit
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program, format_pair, load_pair, save_pair
from spo_jax.program.pairfile import parse_pair

DESTROY = """
import lns
import math

def destroy(dist, tour, z, rng):
    return lns.string_removal(dist, tour, rng.choice(tour), int(math.sqrt(len(tour))), rng)
"""
REPAIR = """
import lns

def repair(dist, tour, nodes, z, rng):
    tour, _ = lns.regret_insertion(dist, tour, nodes, k=3, noise=0.5, rng=rng)
    return lns.or_opt(dist, lns.two_opt(dist, tour, nodes, moves=5), nodes)
"""
EARLY = REPAIR.replace("lns\n", "lns\nF = lns.two_opt\n", 1).replace("lns.two_opt(d", "F(d")
TSP = get_problem("tsp")


def pair(destroy: str = DESTROY, repair: str = REPAIR) -> Pair:
    return Pair(
        Program.from_source("destroy", destroy, "Remove strings."),
        Program.from_source("repair", repair, "Insert by regret."),
    )


def written(given: Pair) -> str:
    return format_pair(given, "A test.", TSP.interface, TSP.kit)


FORMS = (
    (DESTROY, REPAIR),
    (DESTROY.replace("import lns", "import lns as kit").replace("lns.s", "kit.s"), REPAIR),
    (
        DESTROY.replace("import lns", "from lns import string_removal as cut").replace(
            "lns.string_removal", "cut"
        ),
        REPAIR,
    ),
    # Names of the kit's own functions and constants, used for other things.
    ("DEPTH = 3\n" + DESTROY.replace("int(", "DEPTH + int("), REPAIR.replace("nodes", "neighbors")),
    (
        DESTROY,
        "def two_opt(x):\n    return x\n"
        + REPAIR.replace("return lns", "return two_opt(lns")
        + "    )\n",
    ),
    ("lns = 3\ndef destroy(dist, tour, z, rng):\n    return tour[lns:], tour[:lns]\n", REPAIR),
    (DESTROY, EARLY),
    ("from __future__ import annotations\n" + DESTROY, REPAIR),
)


@pytest.mark.parametrize(("destroy", "repair"), FORMS)
def test_programs_are_read_back(destroy: str, repair: str) -> None:
    given = pair(destroy, repair)
    text = written(given)
    again = parse_pair(text, "x")
    assert parse_pair(written(again), "x").digest == again.digest
    assert written(again) == text
    for program in (again.destroy, again.repair):
        assert "python_kit" not in program.source


def test_the_kit_comes_after_the_programs() -> None:
    text = written(pair())
    assert text.index("def repair(") < text.index("# --- the kit: import lns")
    early = written(pair(repair=EARLY))
    assert early.index("# --- the kit: import lns") < early.index("F = lns.two_opt")


@pytest.mark.parametrize(("destroy", "repair"), FORMS)
def test_the_file_runs_alone_and_gives_the_same(destroy: str, repair: str, tmp_path) -> None:
    """In an interpreter without spo_jax, against the functions of the kit in this one."""
    path = save_pair(tmp_path / "pair.py", pair(destroy, repair), "", TSP.interface, TSP.kit)
    dist = TSP.sample(20, 1, 3)[0].dist.tolist()
    (tmp_path / "dist.json").write_text(json.dumps(dist))
    steps = textwrap.dedent("""
        def results(destroy, repair, dist, rng):
            tour = list(range(len(dist)))
            for z in range(5):
                tour = repair(dist, *destroy(dist, tour, z, rng), z, rng)
            return tour
        """)
    script = steps + textwrap.dedent("""
        import json, random, sys
        assert not any("spo" in path for path in sys.path[1:]), sys.path
        import pair
        assert "python_kit" in vars(pair)
        dist = json.load(open("dist.json"))
        print(results(pair.destroy, pair.repair, dist, random.Random(5)))
        """)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, '.')\n{script}"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    here: dict = {}
    exec(path.read_text(), here)  # with spo_jax: its own kit
    exec(steps, here)
    assert "python_kit" not in here
    found = here["results"](here["destroy"], here["repair"], dist, random.Random(5))
    assert str(found) == done.stdout.strip()


@pytest.mark.parametrize("name", ["tsp", "cvrp", "vrptw"])
def test_every_function_can_be_written(name: str) -> None:
    """All of a kit in one file, whose functions are those of the reference."""
    problem = get_problem(name)
    kit = load_kit(problem)
    assert kit is not None
    uses = "".join(f"    lns.{function}\n" for function in kit.names)
    destroy = f"import lns\n\ndef destroy(x):\n{uses}    return x\n"
    text = format_pair(pair(destroy), "", problem.interface, problem.kit)
    block = text[text.index("    def python_kit():") :].partition("    lns = python_kit()")[0]
    space: dict = {}
    exec(textwrap.dedent(block), space)
    assert set(vars(space["python_kit"]())) == {*kit.names, "string_removal", "two_opt"}


def test_a_function_that_the_kit_lacks_is_reported() -> None:
    with pytest.raises(InputError, match="no function 'fly'"):
        written(pair(repair=REPAIR.replace("two_opt", "fly")))


def test_without_a_kit_the_import_stays(tmp_path) -> None:
    path = save_pair(tmp_path / "pair.py", pair())
    assert "import lns\n" in path.read_text()
    assert "lns.or_opt" in load_pair(path).repair.source

"""Whatever stands around a program in an answer: the program is found, alone and whole."""

import ast
import time
from contextlib import suppress

import pytest
from answer_shapes import RECORDED, SHAPES, shaped
from hypothesis import given
from hypothesis import strategies as st

from spo_jax.errors import Rejection
from spo_jax.program import parse_response
from spo_jax.program.types import Role

SENTENCE = "Remove a random tenth of the tour."
RETURN = "    return tour[k:], tour[:k]\n"
PROGRAMS: dict[str, tuple[Role, str]] = {
    "short": ("destroy", "def destroy(dist, tour, z, rng):\n    return tour[1:], tour[:1]\n"),
    "helper": (
        "destroy",
        "import math\n\nSHARE = 0.1\n\n\n"
        "def size(n):\n    return max(1, math.floor(SHARE * n))\n\n\n"
        "def destroy(dist, tour, z, rng):\n    # Few at first.\n    k = size(len(tour))\n\n"
        "    removed = rng.sample(tour, k)\n    gone = {*removed}\n"
        "    return [v for v in tour if v not in gone], removed\n",
    ),
    "texts": (
        "repair",
        'def repair(dist, partial, removed, z, rng):\n    """Insert each where it is cheapest.\n\n'
        '    Note: import nothing, return a list.\n    """\n    tour = list(partial)\n'
        "    for node in removed:\n        best = min(\n            range(len(tour) + 1),\n"
        "            key=lambda k: dist[tour[k - 1]][node],\n        )\n"
        "        tour.insert(best, node)\n    return tour\n",
    ),
}


def meaning(source: str) -> str:
    """The text of a program without layout and comments."""
    return ast.unparse(ast.parse(source))


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_no_shape_loses_its_program(shape, program):
    role, source = PROGRAMS[program]
    found = parse_response(role, shaped(shape, SENTENCE, source))
    expected = meaning(source.replace("    ", "\t") if shape == "tabs" else source)
    if shape == "import apart" and program != "short":  # it is there already, or not needed
        expected = expected.removeprefix("import math\n")
    assert (
        meaning(found.source).removeprefix("import math\n" if "import math" not in expected else "")
        == expected
    )
    unlabelled = program == "texts" and shape in ("a comment", "a sentence", "a greeting")
    assert found.strategy.startswith("Insert each" if unlabelled else SENTENCE.rstrip("."))


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["name"])
def test_recorded_answers_have_programs(case):
    program = parse_response(case["role"], case["answer"])
    assert "def " in program.source
    if case["name"] not in ("fence only",):
        assert program.strategy.startswith("Remove a random tenth")


def test_surroundings_go_and_what_is_needed_stays():
    found = parse_response(
        "destroy",
        "```python\nimport matplotlib.pyplot as plt\nfrom scipy import spatial\nSHARES = [0.1]\n"
        "def helper(n):\n    return SHARES[0] * n\n"
        "def plot():\n    plt.show()\n"
        "def destroy(dist, tour, z, rng):\n    k = int(helper(len(tour)))\n"
        "    return tour[k:], tour[:k]\nplot()\n```",
    ).source
    assert meaning(found) == meaning(
        "from scipy import spatial\nSHARES = [0.1]\ndef helper(n):\n    return SHARES[0] * n\n"
        "def destroy(dist, tour, z, rng):\n    k = int(helper(len(tour)))\n"
        "    return tour[k:], tour[:k]\n"
    )


def test_a_function_of_another_name_is_taken_beside_its_helpers():
    helper = "def size(n):\n    return max(1, n // 10)\n\n\n"
    code = f"{helper}def remove(dist, tour, z, rng):\n    k = size(len(tour))\n{RETURN}"
    assert parse_response("destroy", code).source == code.replace("remove", "destroy")
    with pytest.raises(Rejection, match="found: size, other"):
        parse_response("destroy", helper + "def other(dist, tour, z, rng):\n    return tour\n")


@pytest.mark.parametrize(
    ("body", "imports"),
    [
        ("math.floor(1)", "import math"),
        ("np.sum(dist)", "import numpy as np"),
        ("lns.cost(dist, tour)", "import lns"),
        ("heapq.heappop(tour) or random.random()", "import heapq\nimport random"),
        ("[math for math in tour]", ""),
        ("undefined(tour)", ""),
    ],
)
def test_modules_are_imported_where_they_are_used(body, imports):
    code = f"def destroy(dist, tour, z, rng):\n    x = {body}\n    return tour[1:], tour[:1]\n"
    found = parse_response("destroy", code).source
    assert found == (f"{imports}\n" if imports else "") + code


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("(a: np.ndarray, b, c, d) -> Tuple[List[int], list]", "(a, b, c, d)"),
        ("(a: int, b: Tour = 3, *c: X, d: 'Y' = 1) -> (x, y)", "(a: int, b=3, *c, d: 'Y' = 1)"),
        ("(a: list[int], b, c, d) -> tuple[list[int], list[int]]",
         "(a: list[int], b, c, d) -> tuple[list[int], list[int]]"),
    ],
)  # fmt: skip
def test_annotations_with_unknown_names_go(given, kept):
    found = parse_response("destroy", f"def destroy{given}:\n    return a[1:], a[:1]\n").source
    assert meaning(found) == meaning(f"def destroy{kept}:\n    return a[1:], a[:1]\n")


def test_imports_from_the_future_stay_first():
    code = "from __future__ import annotations\ndef destroy(a: X, b, c, d):\n    return np.sum(a)\n"
    found = parse_response("destroy", code).source
    assert found.startswith("from __future__ import annotations\nimport numpy as np\n")
    compile(found, "found", "exec")


def test_a_star_stands_for_the_names_that_are_used():
    code = (
        "from lns import *\nfrom math import *\ndef destroy(a, b, c, d):\n    return f(floor(a))\n"
    )
    found = parse_response("destroy", code).source
    assert found.startswith("from math import floor\nfrom lns import f\n\n\ndef destroy(")


PIECES = [
    *("```python\n", "```", "\n", "def destroy(a):\n", "    return a\n", "STRATEGY:", "CODE:", "{"),
    *("}", "'''", '"', "<think>", "</think>", "<code>", "> ", "import x\n", " ", "x = [", "]"),
    *("| ", "# "),
]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_any_mixture_is_a_program_or_a_rejection(text):
    try:
        found = parse_response("destroy", text)
    except Rejection:
        return
    assert any(isinstance(node, ast.FunctionDef) for node in ast.parse(found.source).body)


LONG = [
    *("```python\n", "<code>", "def destroy(a):\n", "STRATEGY: a ", "'''python\n", "- " * 9),
    *("a b c d ", "```python\ndef destroy(a):\n    return (\n```\n", "{", "[\n", "> ", ">>> "),
    *("x = 1\n", "# a\n"),
]


@pytest.mark.parametrize("piece", LONG)
def test_long_answers_are_read_in_little_time(piece):
    """CPU seconds for 60,000 characters, most of which are no program."""
    began = time.process_time()
    many = piece * (50_000 // len(piece))
    for text in (many, f"def destroy(a):\n{many}"):
        with suppress(Rejection):
            parse_response("destroy", text)
    assert time.process_time() - began < 5.0

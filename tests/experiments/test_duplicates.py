"""Programs that are one after renaming and folding, and those that are not."""

import pytest

from duplicates import canonical, repeated

ONE = """
import math
def helper(nodes, size=2):
    "Some."
    return [node for node in nodes if node % size][: int(0.1 * 2 * len(nodes))]

def destroy(dist, tour, z: int, rng) -> tuple:
    k = helper(tour, size=3)
    return [v for v in tour if v not in k], math.floor(-1.0) or k
"""
SAME = """
import math
def cut(xs, size=2):
    return [x for x in xs if x % size][: int(0.2 * len(xs))]

def destroy(d, t, steps, r):
    out = cut(t, size=3)
    return [a for a in t if a not in out], math.floor(-1.0) or out
"""


def test_names_constants_docstrings_and_annotations_do_not_count():
    assert canonical(ONE, "destroy") == canonical(SAME, "destroy")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("size", "width"),  # by keyword: both places change, so that nothing breaks, and it counts
        ("xs if x % size", "xs if x % 2"),
        ("t if a not in out", "out if a not in t"),
        ("math.floor(-1.0)", "math.ceil(-1.0)"),
        ("0.2 *", "0.20000000000000004 *"),
        ("-1.0", "-1"),  # an integer is no float
        ("import math", "import random as math"),
    ],
)
def test_what_counts(old, new):
    assert old in SAME
    assert canonical(ONE, "destroy") != canonical(SAME.replace(old, new), "destroy")


def test_constants_have_the_bits_of_the_run():
    def of(text):
        return canonical(f"def repair(a):\n    return {text}", "repair")

    assert of("0.1 + 0.2") == of("0.30000000000000004") != of("0.3")
    assert of("7 // 2") == of("3") != of("7 / 2")
    assert of("1 / 0") != of("1")
    assert of("'a' + 'b'") != of("'ab'")  # numbers alone
    assert of("-0.0") != of("0.0")


def test_a_name_that_two_scopes_use_stays_one():
    def of(inner, outer):
        return canonical(
            f"def repair({outer}):\n    def f({inner}):\n        return {inner} + {outer}\n"
            f"    return f({outer})", "repair",
        )  # fmt: skip

    assert of("a", "b") == of("x", "y") != of("a", "a")


def test_repeats():
    assert repeated(["a", "b", "a", "c", "a"]) == [False, False, True, False, True]

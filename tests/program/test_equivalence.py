"""Programs that are the same but for names, comments and layout, and programs that are not."""

import re

import pytest

from spo_jax.program.equivalence import canonical

ONE = '''
import math
import numpy as np


def near(dist, node, count):
    """The nearest nodes."""
    return sorted(range(len(dist)), key=lambda other: dist[node][other])[:count]


def destroy(dist, current_tour, steps_since_improvement, rng):
    n = len(current_tour)
    count = max(1, int(math.sqrt(n)))  # a few
    removed = near(dist, rng.choice(current_tour), count)
    gone = {node for node in removed}
    return [node for node in current_tour if node not in gone], removed
'''
OTHER = '''
import math as m
import numpy


def closest(d, centre, k):
    # in order of distance
    return sorted(range(len(d)), key=lambda x: d[centre][x])[:k]


def destroy(matrix, tour, steps, random):
    """Take out what is near."""
    size = len(tour)
    k = max(1, int(m.sqrt(size)))
    out = closest(matrix,
                  random.choice(tour), k)
    taken = {v for v in out}
    return [v for v in tour if v not in taken], out
'''


def same(one, other, role="destroy"):
    found = canonical(one, role), canonical(other, role)
    assert None not in found
    return found[0] == found[1]


def test_a_program_in_other_words_is_the_same():
    assert same(ONE, OTHER)
    assert same(OTHER, ONE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("max(1,", "max(2,"),
        ("math.sqrt", "math.log"),
        ("[:count]", "[1:count]"),
        ("dist[node][other]", "dist[other][node]"),
        ("if node not in gone], removed", "if node not in gone], current_tour"),
        ("rng.choice(current_tour)", "current_tour[0]"),
    ],
)
def test_any_other_difference_counts(old, new):
    assert old in ONE
    assert not same(ONE, ONE.replace(old, new))


def body(*lines):
    return "def destroy(d, t, s, rng):\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # What a name stands for outside the function.
        (body("return max(t), [x for x in t]"), body("return min(t), [x for x in t]")),
        # A keyword names a parameter, whose place another name may have.
        (
            "def f(a, b):\n    return a - b\n\n\n" + body("return f(a=t, b=s)"),
            "def f(b, a):\n    return b - a\n\n\n" + body("return f(a=t, b=s)"),
        ),
        # Which function is called.
        (
            "def destroy(d, t, s, rng):\n    return 1\n\n\ndef f(d, t, s, rng):\n    return 2\n",
            "def f(d, t, s, rng):\n    return 1\n\n\ndef destroy(d, t, s, rng):\n    return 2\n",
        ),
        # A name of the module that is hidden inside a comprehension.
        (
            "A = 1\nB = 2\n\n\n" + body("return [A for A in t], A"),
            "A = 1\nB = 2\n\n\n" + body("return [B for B in t], B"),
        ),
        # A name of Python's that is hidden inside a comprehension.
        (body("return [max for max in t], max(t)"), body("return [min for min in t], min(t)")),
        (body("x, y = 1, 2", "return x, x"), body("x, y = 1, 2", "return x, y")),
        (body("return t, 1"), body("return t, True")),
        (body("return t, 1"), body("return t, 1.0")),
    ],
)
def test_a_name_is_not_taken_for_another(one, other):
    assert not same(one, other)
    assert same(one, one)


def test_more_kinds_of_names():
    one = body(
        "def inner(a, *b, **c):", "    nonlocal_ = a", "    return nonlocal_, b, c",
        "try:", "    x = inner(t)", "except ValueError as error:", "    raise error",
        "match t:", "    case [first, *rest]:", "        return first, rest",
        "    case {'k': v, **more}:", "        return v, more", "return x, s",
    )  # fmt: skip
    names = ("inner", "a", "b", "c", "nonlocal_", "x", "error", "first", "rest", "v", "more")
    other = one
    for name in names:
        other = re.sub(rf"\b{name}\b", f"{name}_2", other)
    assert one != other
    assert same(one, other)


def test_what_cannot_be_read_is_like_nothing():
    assert canonical("def destroy(:", "destroy") is None

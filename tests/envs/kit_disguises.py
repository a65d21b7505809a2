"""Arguments of the kits' functions in other clothes, lawful and wrong: what a program may hand over
in place of plain lists, matrices of floats, and numbers.
"""

import decimal
import fractions
import math
from collections import ChainMap, Counter, OrderedDict, UserList, defaultdict, deque
from random import Random
from typing import Any

import numpy as np
from kit_cases import Call
from kit_hostile import Generator, Integer, Number

INTEGERS = ["int8", "uint8", "int16", "int32", "int64", "uint64", "intp", ">i4"]
FLOATS = ["float16", "float32", "float64", "longdouble", ">f8", "complex128"]
DTYPES = [*INTEGERS, *FLOATS, "bool", "object", "U8"]


def array(draw: Random, value: Any) -> Any:
    """An array of any dtype, some read-only or not contiguous; the value where none fits."""
    try:
        made = np.array(value, dtype=draw.choice(DTYPES))
    except (ValueError, TypeError, OverflowError):
        return value
    kind = draw.randrange(6)
    if kind == 0:
        made = np.asfortranarray(made)
    elif kind == 1 and made.ndim:
        made = np.repeat(made, 2, axis=0)[::2]
    elif kind == 2 and made.ndim:
        made = np.ascontiguousarray(made[::-1])[::-1]
    elif kind == 3:
        made.setflags(write=False)
    elif kind == 4:
        made = np.ma.masked_array(made) if draw.random() < 0.2 else made
    return made


def listed(draw: Random, nodes: list[Any]) -> Any:
    """A list of nodes, or of what looks like some."""
    hashable = all(isinstance(each, int) for each in nodes)
    other = draw.choice([
        list, tuple, deque, UserList, iter, lambda n: (each for each in n), lambda n: map(int, n),
        lambda n: dict(enumerate(n)), lambda n: range(len(n)), lambda n: np.array(n)[:, None],
        lambda n: [n], lambda n: [np.int64(each) for each in n], lambda n: [np.array(v) for v in n],
        lambda n: [np.array([each]) for each in n], lambda n: [float(each) for each in n],
        lambda n: [Integer(each) for each in n], lambda n: [str(each) for each in n], str, bytes,
        lambda n: [*n, *n], lambda n: [*n, -1], lambda n: [*n, 10**30], lambda n: [*n, 65535],
        lambda n: [*n, 65536], lambda n: [*n, True], lambda n: [*n, None], lambda n: [*n, 1.0],
        lambda n: [*n, math.nan], lambda n: [], lambda n: None, lambda n: len(n), lambda n: (n, n),
        lambda n: array(draw, n), lambda n: array(draw, n), lambda n: array(draw, [n]),
        lambda n: np.array(n, dtype=object), lambda n: np.float64(3.0), lambda n: np.array(3),
        *([set, frozenset, Counter, OrderedDict.fromkeys, dict.fromkeys,
           lambda n: dict.fromkeys(n).keys(), lambda n: defaultdict(int, dict.fromkeys(n, 2)),
           lambda n: ChainMap(dict.fromkeys(n))] if hashable else []),
    ])  # fmt: skip
    try:
        return other(nodes)
    except (ValueError, TypeError, IndexError, OverflowError, KeyError):
        return nodes


def matrix(draw: Random, dist: Any) -> Any:
    """A matrix, or what looks like one."""
    rows = [list(row) for row in dist]
    if not rows:
        return draw.choice([[], (), np.zeros((0, 0)), np.zeros((0, 3)), np.zeros(0), {}, "", None])
    i, j = draw.randrange(len(rows)), draw.randrange(len(rows))
    wrong = [
        math.nan, math.inf, -math.inf, 1e300, 1.0000001e300, -1e301, 10**400, "1", None, True, 7,
        np.float32(0.1), np.float16(0.1), np.int8(3), np.bool_(True), np.longdouble("0.1"), 1j,
        np.complex128(1 + 2j), fractions.Fraction(1, 3), decimal.Decimal("0.1"), Number(0.5),
        Integer(3), [1.0], np.array(0.5), np.array([0.5]), -0.0, 5e-324, 2**53 + 1, -(10**400),
    ]  # fmt: skip
    kind = draw.randrange(14)
    if kind == 0:
        rows[i][j] = draw.choice(wrong)
        return draw.choice([rows, tuple(map(tuple, rows)), np.array(rows, dtype=object)])
    if kind == 1:
        row = rows[i]
        rows[i] = draw.choice([
            row[1:], [*row, 0.0], None, 3, "text", set(row), dict.fromkeys(row), Counter(row),
            iter(row), range(len(rows)), deque(row), np.array(row), np.array(row, dtype="f4"),
        ])  # fmt: skip
        return draw.choice([rows, tuple(rows)])
    if kind == 2:
        return draw.choice([
            rows[1:], dict(enumerate(rows)), deque(rows), iter(rows), UserList(rows), 3, None,
            np.array(rows)[:, :-1], np.array(rows)[None], np.array(rows).ravel(), "text",
            np.array(rows)[..., None], np.float64(1.0),
        ])  # fmt: skip
    if kind == 3:
        return [[np.float32(entry) for entry in row] for row in rows]
    if kind == 4:
        return [[round(entry) for entry in row] for row in rows]
    if kind == 5:
        return memoryview(np.array(rows, dtype=draw.choice(["f8", "f4"])))
    if kind == 6:
        return [np.array(row, dtype=draw.choice(FLOATS)) for row in rows]
    return array(draw, rows)


def number(draw: Random, value: Any) -> Any:
    """A number, or what looks like one."""
    other = draw.choice([
        float, int, str, bool, np.float32, np.float64, np.int64, np.array, lambda v: np.array([v]),
        lambda v: [v], lambda v: None, lambda v: -v, lambda v: 10**400, lambda v: -(10**400),
        lambda v: math.nan, lambda v: math.inf, lambda v: -math.inf, lambda v: v + 0.5, complex,
        lambda v: fractions.Fraction(v), lambda v: decimal.Decimal(v), lambda v: Integer(v),
        lambda v: Number(v), lambda v: np.uint8(v), lambda v: np.bool_(v), lambda v: 2**63,
    ])  # fmt: skip
    try:
        return other(value)
    except (ValueError, TypeError, OverflowError):
        return value


def disguised(draw: Random, call: Call) -> Call:
    """The call with one to three of its arguments in other clothes."""
    name, args, named = call
    args, named = list(args), dict(named)
    places: list[Any] = [*range(len(args)), *named]
    for place in draw.sample(places, min(len(places), draw.choice([1, 1, 2, 3]))):
        into: Any = args if isinstance(place, int) else named
        value = into[place]
        if hasattr(value, "random"):
            odd = [2.0, 1.0, -0.5, math.nan, 1e300, math.inf, 1, "x", None, np.float64(0.5)]
            draws = [0.0, draw.random(), *draw.choices(odd, k=draw.randrange(2))]
            into[place] = draw.choice([Generator(draws), None, object(), 5])
        elif isinstance(value, tuple) and value and isinstance(value[0], tuple):
            into[place] = matrix(draw, value)
        elif isinstance(value, list) and value and isinstance(value[0], list):
            routes = [listed(draw, each) if draw.random() < 0.3 else each for each in value]
            into[place] = draw.choice([routes, routes, tuple(routes), listed(draw, value)])
        elif isinstance(value, (list, tuple)):
            into[place] = listed(draw, list(value))
        elif isinstance(value, (int, float)):
            into[place] = number(draw, value)
    return name, args, named

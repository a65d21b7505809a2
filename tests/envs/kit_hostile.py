"""Arguments that a hostile program could give to a kit: wrong types, wild numbers, objects that
run code while they are read, and lists and generators that change during a call.

Only standard modules, since a fuzzer under a sanitizer imports this file too.
"""

import math
from array import array
from random import Random
from typing import Any

from kit_cases import Call


def spoil(value: Any) -> None:
    """Empties or lengthens every list in a value."""
    if isinstance(value, list):
        for each in list(value):
            spoil(each)
        if len(value) % 2 or len(value) > 60:
            value.clear()
        else:
            value.extend([3, "x", None, 4] * 15)
    elif isinstance(value, (tuple, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            if isinstance(each, (list, dict)):
                spoil(each)


class Index:
    """An integer by __index__ that spoils the arguments when it is asked."""

    def __init__(self, value: Any, victim: Any):
        self.value, self.victim = value, victim

    def __index__(self) -> Any:
        spoil(self.victim)
        return self.value

    def __float__(self) -> Any:
        spoil(self.victim)
        return self.value


class Integer(int):
    def __index__(self) -> Any:
        raise KeyError("index")

    def __eq__(self, other: object) -> bool:
        raise KeyError("eq")

    def __hash__(self) -> int:
        raise KeyError("hash")

    def __lt__(self, other: object) -> bool:
        raise KeyError("lt")


class Number(float):
    def __float__(self) -> Any:
        return "not a float"

    def __eq__(self, other: object) -> bool:
        raise KeyError("eq")

    __hash__ = None  # type: ignore[assignment]


class Sequence(list[Any]):
    """A list whose length and items are other than they are."""

    victim: Any = None

    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Any:
        for each in (0, 1, 2, 3, 5, 4):
            spoil(self.victim)
            yield each


class Generator:
    """An rng: its draws are given, an exception is raised."""

    def __init__(self, draws: list[Any], victim: Any = None):
        self.draws, self.victim, self.at = draws, victim, 0

    def random(self) -> Any:
        spoil(self.victim)
        value = self.draws[self.at % len(self.draws)]
        self.at += 1
        if isinstance(value, BaseException):
            raise value
        return value


class Nested:
    """An rng that calls the kit again, with other matrices."""

    def __init__(self, kit: Any, draw: Random):
        self.kit, self.draw = kit, draw

    def random(self) -> float:
        dist = tuple(tuple(self.draw.random() for _ in range(5)) for _ in range(5))
        self.kit.neighbors(dist, 2)
        self.kit.prepare([list(row) for row in dist])
        return self.draw.random()


def generator(draw: Random, kit: Any, victim: Any) -> Any:
    draws: list[Any] = [0.0, draw.random(), math.nextafter(1, 0), 0.3, draw.random(), 5e-324]
    kind = draw.randrange(6)
    if kind == 0:
        odd = [2.0, 1.0, -0.1, math.nan, math.inf, "x", None, 1, Number(0.5), KeyError("rng")]
        return Generator([*draws[: draw.randrange(4)], draw.choice(odd)])
    if kind == 1:
        return Nested(kit, draw)
    if kind == 2:
        return draw.choice([None, 5, object(), Generator])
    return Generator(draws, victim if kind < 5 else None)


def odd(draw: Random, victim: Any) -> Any:
    """Some value that is wrong in most places."""
    wild = [-1, 10**9, 10**30, -(10**30), 2**31, 2**32, 2**63, 65535, 65536, 0, 1, 2, True]
    numbers = [math.nan, math.inf, -math.inf, -0.0, 1e308, -1.0, 0.5, 5e-324, 1e-300]
    others: list[Any] = [
        None, "text", b"\1\2\0", object(), {}, {1: 2}, {1, 2}, (), [], [[]], [[], []], range(3),
        range(10**12), iter([1]), [0], [1, 1], [-1], [10**30], [1.0], [None], [[1], [1]], [[0]],
        Sequence([1]), [Integer(1)], [Number(1.0)], Integer(1), Number(0.5), (Integer(2), 1),
        Index(1, victim), Index(-1, victim), Index("x", victim), [Index(1, victim), 2, 3],
        [1, 2, Index(4, victim), 3], [[1, Index(2, victim)], [3]], array("q", [1, 2, 3]),
        array("d", [1.0, 2.0]), array("b", [1, 2]), memoryview(b"12345678").cast("q"), [[1], 2],
        ((0.0, 1.0), (1.0,)), ((0.0, math.nan), (1.0, 0.0)), ((0.0,),), [[Index(1.0, victim)]],
        ((0.0, 1e308, 1e308), (1e308, 0.0, -1e308), (1e308, -1e308, 0.0)), ((0.0, "x"), (1, 2)),
        ((0.0, -1e300, 1e300), (1e300, -1e300, 1e300), (1e300, 1e300, 1e300)), 1j, type, spoil,
    ]  # fmt: skip
    return draw.choice(draw.choice([wild, numbers, others]))


def viewed(dist: Any) -> Any:
    """The matrix as a buffer of two dimensions."""
    size = len(dist)
    flat = array("d", [entry for row in dist for entry in row])
    return memoryview(flat).cast("B").cast("d", (size, size)) if size else dist


def hostile(draw: Random, kit: Any, call: Call) -> Call:
    """The call with some arguments replaced. What is given as a list can change during the call."""
    name, args, named = call
    args = [[list(each) if isinstance(each, list) else each for each in arg]
            if isinstance(arg, list) else arg for arg in args]  # fmt: skip
    named = dict(named)
    victim = [arg for arg in args if isinstance(arg, list)]
    for at, arg in enumerate(args):
        if hasattr(arg, "random"):
            args[at] = generator(draw, kit, victim)
    if "rng" in named:
        named["rng"] = generator(draw, kit, victim)
    for _ in range(draw.randrange(3)):
        kind = draw.randrange(12)
        if kind == 0 and args:
            args.pop()
        elif kind == 1:
            args.append(odd(draw, victim))
        elif kind == 2:
            named[draw.choice(["near", "k", "bound", "noise", "x", "dist", "rng"])] = odd(
                draw, victim
            )
        elif kind == 3 and named:
            named[draw.choice(list(named))] = odd(draw, victim)
        elif (
            kind == 4
            and args
            and isinstance(args[0], tuple)
            and len(args[0]) == len(args[0][:1] or [0])
        ):
            args[0] = [list(row) for row in args[0] if isinstance(row, tuple)]
        elif kind == 5:
            lists = [arg for arg in args if type(arg) is list and arg]
            if lists:
                chosen = draw.choice(lists)
                inner = draw.choice(chosen)
                chosen = inner if type(inner) is list and inner else chosen
                chosen[draw.randrange(len(chosen))] = odd(draw, victim)
        elif args:
            args[draw.randrange(len(args))] = odd(draw, victim)
    moves = named.get("moves", 0)
    if isinstance(moves, int) and moves > 1000:
        named["moves"] = 1000  # a matrix that is not symmetric can cycle
    return name, args, named

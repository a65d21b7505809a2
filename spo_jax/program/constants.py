"""Numbers in a program that could have other values: what harmony search and the like vary."""

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spo_jax.program.syntax import parse_tree

SMALLEST, LARGEST = 1e-6, 1e6  # in size; beyond it is a tolerance, or stands for infinity


@dataclass(frozen=True)
class Constant:
    """line: from 1. start, end: of its digits, as offsets into the line's UTF-8."""

    value: int | float
    line: int
    start: int
    end: int


def constants_of(source: str) -> list[Constant]:
    """The numbers in a program that are parameters, in the order of the text.

    These are floats, and whole numbers from 2 on, of a size from 1e-6 to 1e6. Left out are those in
    f-strings, and whole numbers in an index unless they are in a call there. A sign before one is
    not part of it. Raises Rejection for what is not Python.
    """
    lines = source.encode().split(b"\n")
    found = []
    for node in _numbers(parse_tree(source)):
        value = node.value
        assert isinstance(value, int | float)
        small = 2 if isinstance(value, int) else SMALLEST
        if not small <= value <= LARGEST or node.end_lineno != node.lineno:
            continue
        assert node.end_col_offset is not None
        own = Constant(value, node.lineno, node.col_offset, node.end_col_offset)
        if _read(lines[own.line - 1][own.start : own.end]) == value:
            found.append(own)
    return sorted(found, key=lambda each: (each.line, each.start))


def _numbers(tree: ast.AST) -> list[ast.Constant]:
    """Numbers of a tree, but for those in f-strings and whole ones in indices."""
    found = []
    waiting = [(tree, False)]
    while waiting:
        node, index = waiting.pop()
        if isinstance(node, ast.Constant):
            wanted = (float,) if index else (int, float)
            found += [node] if type(node.value) in wanted else []
        elif isinstance(node, ast.Subscript):
            waiting += [(node.value, index), (node.slice, True)]
        elif not isinstance(node, ast.JoinedStr):
            inside = index and not isinstance(node, ast.Call)
            waiting += [(child, inside) for child in ast.iter_child_nodes(node)]
    return found


def _read(text: bytes) -> object:
    try:
        return ast.literal_eval(text.decode())
    except (ValueError, SyntaxError):
        return None


def with_values(source: str, values: Mapping[Constant, float]) -> str:
    """A program with other values for some of its constants.

    A float is written with six significant digits; a whole number stays whole.
    """
    lines = source.encode().split(b"\n")
    for each in sorted(values, key=lambda each: (each.line, each.start), reverse=True):
        text, line = _written(each, values[each]).encode(), lines[each.line - 1]
        lines[each.line - 1] = line[: each.start] + text + line[each.end :]
    return b"\n".join(lines).decode()


def _written(constant: Constant, value: float) -> str:
    if isinstance(constant.value, int):
        text = str(math.floor(value + 0.5))
    else:
        text = repr(float(f"{value:.6g}"))
    return f"({text})" if text.startswith("-") else text


def around(constants: Sequence[Constant]) -> dict[Constant, tuple[float, float]]:
    """From half to twice the value of each."""
    return {each: (each.value / 2, each.value * 2) for each in constants}

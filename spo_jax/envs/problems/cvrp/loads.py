"""Demands and capacities as files write them, and how long a route can be."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NoReturn

import numpy as np

from spo_jax.envs.textfiles import not_a_number, shown

MAX_CAPACITY = 10**12  # so that loads cannot overflow an int64
_LONGEST = 40  # characters of a number whose exact value is taken

Fail = Callable[[str, int | None], NoReturn]  # (what is wrong, the line or None)


def amount(word: str, what: str, line: int | None, fail: Fail) -> Fraction:
    """The exact value of a number as it is written. Calls `fail` for anything else."""
    wrong = not_a_number(word)
    if not wrong and len(word) > _LONGEST:
        wrong = f"{shown(word)} has more than {_LONGEST} characters"
    if wrong:
        fail(f"{what} {wrong}", line)
    return Fraction(word)


def positive(capacity: Fraction, what: str, line: int | None, fail: Fail) -> Fraction:
    """A capacity that vehicles can have."""
    if not 0 < capacity <= MAX_CAPACITY:
        fail(f"{what} must be positive and at most 1e12, not {written(capacity)}", line)
    return capacity


def require_demand(
    demand: Fraction, capacity: Fraction, who: str, line: int, limit: str, fail: Fail
) -> None:
    """Calls `fail` for a demand that is not positive or that no vehicle can carry.

    limit: what the file calls the capacity.
    """
    if demand <= 0:
        fail(f"the demand of {who} must be positive, not {written(demand)}", line)
    if demand > capacity:
        fail(
            f"the demand {written(demand)} of {who} exceeds {limit} {written(capacity)}",
            line,
        )


def whole(
    demands: Sequence[Fraction], capacity: Fraction, fail: Fail
) -> tuple[np.ndarray, int, list[str]]:
    """Demands [N] int64 and a capacity in the largest unit that makes all of them whole.

    Also a remark if that is not the unit of the file.
    """
    scale = math.lcm(capacity.denominator, *(each.denominator for each in demands))
    if max(capacity, *demands) * scale > MAX_CAPACITY:
        fail("the demands have too many decimals: round them", None)
    said = f"demands and the capacity are multiplied by {scale}, which makes them whole numbers"
    remarks = [] if scale == 1 else [said]
    scaled = np.array([int(each * scale) for each in demands], np.int64)
    return scaled, int(capacity * scale), remarks


def longest_route(
    dist: np.ndarray, demands: np.ndarray, capacity: int, service: np.ndarray
) -> float:
    """No route within the capacity is longer than this, with the service times [N] of its stops.

    It has at most as many customers as the smallest demands that fit, and leaves each node by one
    edge.
    """
    stops = int(np.searchsorted(np.cumsum(np.sort(demands[1:])), capacity, side="right"))
    farthest = dist.max(axis=1)
    after = np.sort(farthest[1:] + service[1:])[::-1][:stops]
    return math.fsum([farthest[0], *after.tolist()])


def written(value: Fraction) -> str:
    """A value as a file has it, in short."""
    return str(value) if value.denominator == 1 else f"{float(value):.10g}"

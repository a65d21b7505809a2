"""Demands and capacities as files write them, and how long a route can be."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NoReturn

import numpy as np

from spo_jax.envs.files.textfiles import not_a_number, shown

MAX_CAPACITY = 10**12  # so that loads cannot overflow an int64
_LONGEST = 40  # characters of a number whose exact value is taken
# Significant digits from which on a number is the float64 of a sum or a quotient, such as
# 0.30000000000000004; and the relative error of one, some dozens of roundings.
_FLOAT_DIGITS, _FLOAT_ERROR = 15, Fraction(1, 10**14)

Fail = Callable[[str, int | None], NoReturn]  # (what is wrong, the line or None)


def amount(word: str, what: str, line: int | None, fail: Fail) -> Fraction:
    """The exact value of a number as it is written; of one that has the digits of a float64, the
    simplest fraction that it may stand for: 10/3 of 3.3333333333333335, so that three fill a
    vehicle of 10. Calls `fail` for anything else.
    """
    wrong = not_a_number(word)
    if not wrong and len(word) > _LONGEST:
        wrong = f"{shown(word)} has more than {_LONGEST} characters"
    if wrong:
        fail(f"{what} {wrong}", line)
    value = Fraction(word)
    digits = word.lower().partition("e")[0].lstrip("+-").replace(".", "").strip("0")
    return value if len(digits) < _FLOAT_DIGITS else _simplest(value)


def _simplest(value: Fraction) -> Fraction:
    """A fraction of a small denominator within the error of a float64, else `value`."""
    for power in range(7):
        near = value.limit_denominator(10**power)
        if abs(near - value) <= _FLOAT_ERROR * abs(value):
            return near
    return value


def positive(capacity: Fraction, what: str, line: int | None, fail: Fail) -> Fraction:
    """A capacity that vehicles can have."""
    if not 0 < capacity <= MAX_CAPACITY:
        fail(f"{what} must be positive and at most 1e12, not {written(capacity)}", line)
    return capacity


def require_demand(
    demand: Fraction, capacity: Fraction, who: str, line: int, limit: str, fail: Fail
) -> None:
    """Calls `fail` for a demand that is negative or that no vehicle can carry.

    limit: what the file calls the capacity.
    """
    if demand < 0:
        fail(f"the demand of {who} must not be negative, but is {written(demand)}", line)
    if demand > capacity:
        fail(
            f"the demand {written(demand)} of {who} exceeds {limit} {written(capacity)}",
            line,
        )


def depots_own(demand: Fraction) -> list[str]:
    """A remark on a demand of the depot, which no vehicle carries."""
    return [f"the depot's demand of {written(demand)} is not counted"] if demand else []


def free_fleet(vehicles: int) -> str:
    """A remark on the number of vehicles that a file states."""
    one = vehicles == 1
    return (
        f"the {vehicles} vehicle{'' if one else 's'} of the file {'is' if one else 'are'} no limit"
    )


def vehicle_limit(
    demands: np.ndarray,
    capacity: int,
    vehicles: int | None,
    what: str,
    line: int | None,
    fail: Fail,
) -> dict[str, int]:
    """What `Instance.extra` has of a limit on the number of vehicles, if it is one.

    Calls `fail` where the demands fill more. what: names it.
    """
    if vehicles is None or vehicles >= len(demands) - 1:
        return {}
    least = -(-int(demands.sum()) // capacity)
    if least > vehicles:
        fail(
            f"there is no solution: the demands fill {least} vehicles, more than {what} {vehicles}",
            line,
        )
    return {"max_vehicles": vehicles}


def whole(demands: Sequence[Fraction], capacity: Fraction) -> tuple[np.ndarray, int, list[str]]:
    """Demands [N] int64 and a capacity in the largest unit that makes all of them whole.

    Where that is too small, they are cut to a decimal one: what fits into a vehicle still does.
    Also a remark if it is not the unit of the file.
    """
    remarks, scale, top = [], 1, max(capacity, *demands)
    for each in (capacity, *demands):
        scale = math.lcm(scale, each.denominator)
        if top * scale > MAX_CAPACITY:
            decimals = int(math.log10(MAX_CAPACITY / top))
            scale = 10**decimals
            remarks.append(f"demands and the capacity are cut to {decimals} decimals")
            break
    if scale != 1:
        remarks.append(
            f"demands and the capacity are multiplied by {scale}, which makes them whole numbers"
        )
    scaled = np.array([math.floor(each * scale) for each in demands], np.int64)
    return scaled, math.floor(capacity * scale), remarks


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

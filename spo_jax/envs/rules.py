"""The worker's half of a problem: what programs are given, and what they may return."""

import math
import random
from collections.abc import Callable, Iterable
from itertools import chain, filterfalse
from typing import Any, Literal

import numpy as np

from spo_jax.envs.instance import Instance
from spo_jax.envs.views import frozen, node_list, nodes_of, removed_list, rows
from spo_jax.program import DESTROY_REPAIR

Solution = Any  # a list of integers (a tour), or a list of such lists (routes); or what you like
Layout = Literal["rows", "array"]


class Infeasible(Exception):
    """A program violated its contract; the message says how."""


class OverLimit(Infeasible):
    """A solution breaks a limit that programs are not told of: its step is lost, no more."""


class Rules:
    """One instance inside a worker: arguments of programs, checks and objective, in plain Python.

    A subclass writes `start`, `repaired` and `cost`; the rest is defined for solutions that are
    lists of integers of at least 0, or lists of such lists. All methods run at least once per step,
    so they are written for speed. Checks raise `Infeasible`. Outputs of programs are hostile: check
    exact types first (`spo_jax.envs.views.node_list`, `nodes_of`).

    Args:
        instance: As `Instance.seen` has it.
        *arguments: The instance's leading arguments of both roles, e.g. (dist, demands, capacity),
            as the problem's `interface` declares them: arrays [N, M] or [N], or anything else.
    """

    partial = "the partial solution"  # what destroy returns first, and what it removes: for reasons
    item = "item"
    maximise = False  # as `Problem.maximise`, which sets it
    hands = DESTROY_REPAIR.handed  # as its game has them, which sets it

    def __init__(self, instance: Instance, *arguments: Any):
        self.most = max(1, instance.size * 35 // 100)  # programs must take out one
        self.size = instance.size
        self._arguments: dict[Layout, tuple[Any, ...]] = {
            "rows": tuple(map(rows, arguments)),
            "array": tuple(map(frozen, arguments)),
        }

    def arguments(self, layout: Layout) -> tuple[Any, ...]:
        """The instance's leading arguments in one of their two forms.

        Returns:
            A matrix is a tuple of tuples of Python numbers in "rows" and a read-only ndarray in
            "array", a row a tuple or an ndarray, and anything else the same in both.
        """
        return self._arguments[layout]

    def prepared(self, layout: Layout) -> tuple[Any, ...]:
        """What the kit's `prepare` is called with: the arguments, and what it keeps to besides."""
        return self.arguments(layout)

    def start(self, rng: random.Random) -> Solution:
        """A seeded random feasible solution."""
        raise NotImplementedError

    def repaired(self, output: Any) -> Solution:
        """Check what a repair program returned.

        Returns:
            The complete solution.

        Raises:
            Infeasible: It is no feasible solution.
        """
        raise NotImplementedError

    def polished(self, before: Solution, after: Solution) -> Solution:
        """The candidate after a local search at what a step changed; by default as it is.

        Searches do it before they accept or reject, except with the paper's acceptance.

        Args:
            before: The solution that the step began with.
            after: What its repair made of it, checked; it may be changed.

        Returns:
            A feasible solution.
        """
        return after

    def cost(self, solution: Solution) -> float:
        """Exact float64 objective, of any sign: a sum correctly rounded (math.fsum).

        It is minimised, or maximised if `Problem.maximise` says so.
        """
        raise NotImplementedError

    def minimised(self, solution: Solution) -> float:
        """What searches minimise: the cost, or its negative if the problem maximises."""
        cost = self.cost(solution)
        return 0.0 - cost if self.maximise else cost

    def copy(self, solution: Solution) -> Solution:
        """A copy that a program may mutate."""
        return [part[:] for part in solution] if _nested(solution) else solution[:]

    def destroyed(self, current: Solution, output: Any) -> tuple[Any, ...]:
        """Check what a destroy program returned; in another game, what its leader did.

        Args:
            current: The solution that it was given.
            output: What it returned, which may be anything.

        Returns:
            (partial solution, removed). Removed are 1 to floor(0.35 size) items of the solution, 1
            also where that is 0; the others keep their order. A list that is emptied may stay as []
            or be dropped. In another game (`Interface.game`): what the follower gets, as a tuple.

        Raises:
            Infeasible: It is not that. The message says how.
        """
        if type(output) not in (tuple, list) or len(output) != 2:
            raise Infeasible(f"returned no ({self.partial}, removed_{self.item}s)")
        nested = _nested(current)
        partial = (nodes_of if nested else node_list)(output[0])
        removed = removed_list(output[1])
        if partial is None:
            kind = "a list of lists" if nested else "a list"
            raise Infeasible(f"{self.partial} must be {kind} of integers")
        if removed is None:
            raise Infeasible(f"removed_{self.item}s must be a list of integers")
        gone = set(removed)
        if len(gone) != len(removed):
            raise Infeasible(f"removed_{self.item}s repeats one")
        if not gone:
            raise Infeasible(f"removed no {self.item}")
        if len(gone) > self.most:
            raise Infeasible(
                f"removed too many {self.item}s: {len(gone)} of {self.size} (at most {self.most})"
            )
        kept = without(current, gone)
        # Equality here and in the count leaves no room for an item that is not in the solution.
        if nested:
            same = partial == kept or [*filter(None, partial)] == [*filter(None, kept)]
            count = sum(map(len, current)) - sum(map(len, kept))
        else:
            same, count = partial == kept, len(current) - len(kept)
        if not same or count != len(gone):
            raise Infeasible(
                f"{self.partial} is not the solution without removed_{self.item}s, in its order"
            )
        return partial, removed

    def encode(self, solution: Solution) -> list[int]:
        """Turn a solution into its code.

        Returns:
            At most `Problem.code_length` integers from 0 to 2**31 - 1.
        """
        return encoded(solution)


def _nested(solution: Solution) -> bool:
    return bool(solution) and type(solution[0]) is list


def exact_sum(terms: Any, count: int) -> Callable[[Iterable[float]], float]:
    """What adds up `count` of these terms, or fewer, correctly rounded.

    Args:
        terms: An array, of any shape, of finite numbers.
        count: At most so many are added, each as often as you like.

    Returns:
        `math.fsum`; for whole numbers whose sums are exact the built-in sum, which gives the same
        float in a tenth of the time.
    """
    terms = np.asarray(terms)
    exact = terms.size and np.all(np.rint(terms) == terms)
    return _plain_sum if exact and np.abs(terms).max() * count <= EXACT else math.fsum


EXACT = 2.0**53  # whole numbers up to it are exact as float64


def _plain_sum(terms: Iterable[float]) -> float:
    return sum(terms, 0.0)


def without(solution: Solution, gone: set[int]) -> Solution:
    """A list, or a list of lists, without some items; emptied lists stay."""
    if _nested(solution):
        return [[*filterfalse(gone.__contains__, part)] for part in solution]
    return [*filterfalse(gone.__contains__, solution)]


def encoded(solution: Solution) -> list[int]:
    """The code of a list of items, or of lists of them."""
    if _nested(solution):
        return [*chain.from_iterable([*(v + 1 for v in part), 0] for part in solution)]
    return [v + 1 for v in solution]


def decoded(code: Iterable[int]) -> Solution:
    """The list, or list of lists, that `Rules.encode` writes as `code`."""
    flat: list[int] = []
    nested: list[list[int]] = []
    for number in code:
        if number:
            flat.append(number - 1)
        else:
            nested.append(flat)
            flat = []
    return [*nested, flat] if nested and flat else nested or flat

"""A solution divided among searches side by side, and what they make of it put together."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature

from spo_jax.envs.problem import Instance, Problem, Solution

Found = tuple[float, list[int], Solution]  # the cost, as it is minimised, the code, and itself


@dataclass(frozen=True)
class Division:
    """What searches go on from, each within a share of it.

    start: the whole. shares: the items of each (`Problem.shares`). asked, seed: how many were asked
    for, and what their borders are drawn with; workers divide it by these themselves.
    """

    start: Found
    shares: list[list[int]]
    asked: int
    seed: int


def can_divide(problem: Problem) -> bool:
    """Whether the problem has shares, and parts that keep to them.

    A problem of the user's may inherit the former and have a `part` of its own.
    """
    has = problem.offers("shares") and problem.offers("joined") and problem.offers("part")
    return has and "within" in signature(problem.part).parameters


def divide(
    problem: Problem, instance: Instance, cost: float, code: list[int], count: int, seed: int
) -> Division | None:
    """Divide the solution of a code; None where it cannot be."""
    solution = problem.decode(instance, code)
    shares = problem.shares(instance, solution, count, random.Random(seed))
    return Division((cost, code, solution), shares, count, seed) if len(shares) > 1 else None


def join(
    problem: Problem, instance: Instance, division: Division, made: Sequence[Found]
) -> Found | None:
    """Put together what was made of each share; None if nothing of it can be.

    Where all of it makes no solution, what gained most comes first, and what does not fit beside it
    is left out: a search whose program fails on parts leaves its share, and two may have taken the
    last vehicle.
    """

    def whole(solutions: Sequence[Solution]) -> Found | None:
        try:
            solution = problem.joined(division.shares, solutions)
            code = problem.encode(instance, solution)
            solution = problem.decode(instance, code)
            return problem.minimised(instance, solution), code, solution
        except Exception:  # what a search reports may break any problem's functions
            return None

    found = whole([solution for _, _, solution in made])
    if found is not None:
        return found
    solutions = [division.start[2]] * len(made)
    for k in sorted(range(len(made)), key=lambda k: made[k][0]):
        trial = [*solutions[:k], made[k][2], *solutions[k + 1 :]]
        fits = whole(trial)
        if fits is not None:
            found, solutions = fits, trial
    return found

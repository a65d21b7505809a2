"""Tries the parts of a problem on one instance, before any program runs."""

import random
from collections.abc import Callable
from math import isclose, isfinite
from numbers import Real
from typing import Any

from spo_jax.envs.problem import Infeasible, Instance, Problem, Rules, without
from spo_jax.envs.views import node_list, nodes_of
from spo_jax.errors import InputError
from spo_jax.program import DESTROY_REPAIR


def require_sound(
    problem: Problem, instance: Instance, rules: Rules, rng: Callable[[], random.Random]
) -> None:
    """Raises InputError where what a problem returns is of a wrong kind or contradicts itself.

    rng: makes the generator of a start, the same at each call.
    """
    name = f"problem {problem.name}"
    for method in ("start", "repaired", "cost"):
        if getattr(type(rules), method) is getattr(Rules, method):
            raise InputError(f"{name}: its Rules have no method {method}, which all rules have")
    what = f"{name}: a start of {instance.name}"
    length = problem.code_length(instance)
    if type(length) is not int or length < 0:
        raise InputError(
            f"{name}: its code_length is {length!r:.80}, not a whole number of 0 or more"
        )
    try:
        given = len(rules.arguments("rows"))
    except AttributeError:
        raise InputError(f"{name}: its Rules do not call super().__init__") from None
    due = len(problem.interface.arguments)
    if given != due:
        raise InputError(
            f"{name}: its Rules pass {given} arguments to programs, its interface declares {due}"
        )
    start = rules.start(rng())
    plain = type(rules).encode is Rules.encode or type(rules).copy is Rules.copy
    if plain and not is_listed(start):
        raise InputError(
            f"{what} is no list of integers, or of such lists: override Rules.copy and encode"
        )
    code = rules.encode(start)
    numbers = node_list(code) if type(code) is list else None
    if numbers is None or len(code) > length or any(not 0 <= each < 2**31 for each in numbers):
        raise InputError(
            f"{what} has a code that is no list of at most {length} integers of at least 0"
        )
    if rules.encode(rules.start(rng())) != code:
        raise InputError(f"{what} is another one when it is drawn again with the same seed")
    copied = rules.copy(start)
    if type(copied) is not type(start) or rules.encode(copied) != code:
        raise InputError(f"{what} is not what its Rules.copy returns")
    cost = _cost(what, rules.cost(start))
    try:
        again = _cost(what, problem.cost(instance, problem.decode(instance, numbers)))
    except Infeasible as error:
        raise InputError(f"{what} is infeasible once decoded ({error})") from None
    if not isclose(again, cost, rel_tol=1e-9, abs_tol=1e-9):
        raise InputError(f"{what} costs {cost:.9g} by its rules and {again:.9g} once decoded")
    game = problem.interface.game
    if game != DESTROY_REPAIR:
        if type(rules).destroyed is Rules.destroyed:
            raise InputError(
                f"{name}: its Rules inherit destroyed, which is for removals: write one that "
                f"checks what {game.leader.function} returns, and gives a tuple of "
                f"{' and '.join(game.handed)}"
            )
    elif is_listed(start):
        _require_destroyed(name, rules, start)


def is_listed(solution: Any) -> bool:
    """Whether a solution is of the kind that `Rules` handles."""
    if type(solution) is not list:
        return False
    if solution and type(solution[0]) is list:
        return nodes_of(solution) == solution
    return node_list(solution) is not None


def _cost(what: str, cost: Any) -> float:
    if not isinstance(cost, Real) or not isfinite(cost):
        raise InputError(f"{what} costs {cost!r:.80}, not a finite number")
    return float(cost)


def _require_destroyed(name: str, rules: Rules, start: Any) -> None:
    """A destroy that removes the first item is taken as a pair, or is infeasible."""
    flat = [item for part in start for item in (part if type(part) is list else [part])]
    if flat:
        try:
            found = rules.destroyed(start, (without(start, {flat[0]}), flat[:1]))
        except Infeasible:
            return
        if type(found) is not tuple or len(found) != 2:
            raise InputError(f"{name}: its Rules.destroyed returned no (partial, removed)")

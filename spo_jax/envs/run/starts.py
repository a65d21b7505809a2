"""First solutions of rollouts: random ones (the paper's), the problem's construction, or a user's.

Workers draw random starts themselves. The others are made here, in the parent, and sent to them.
"""

import math
import random
from collections.abc import Callable
from typing import Any

from spo_jax.envs.problem import Infeasible, Instance, Problem, Solution
from spo_jax.errors import InputError
from spo_jax.registry import Registry, require_function
from spo_jax.seeding import python_rng

RANDOM, CONSTRUCTION = "random", "construction"
Start = Callable[[Problem, Instance, random.Random], Solution]


def _example(instance: Instance, rng: random.Random) -> Solution:
    """The signature of a start of the user's."""


def _own(name: str, function: Any) -> Start:
    require_function(f"start {name!r}", function, _example)

    def start(problem: Problem, instance: Instance, rng: random.Random) -> Solution:
        try:
            try:
                made = function(instance, rng)
            except Exception as error:  # it keeps its traceback
                error.add_note(f"start {name!r} raised this on {instance.name}")
                raise
            return problem.rules(instance.seen()).repaired(made)
        except Infeasible as error:
            raise InputError(
                f"start {name!r} returned no solution of {instance.name}: {error}"
            ) from None

    return start


STARTS: Registry[Start] = Registry(
    "start",
    {
        RANDOM: lambda problem, instance, rng: problem.rules(instance.seen()).start(rng),
        CONSTRUCTION: lambda problem, instance, rng: problem.construct(instance, math.inf),
    },
    _own,
)


class Starts:
    """The first solutions of the rollouts of an evaluator.

    problem, seed: of all rollouts. name: one of STARTS. Raises InputError for another name, and for
    a construction where the problem has none.
    """

    def __init__(self, problem: Problem, seed: int = 0, name: str = RANDOM):
        if name == CONSTRUCTION and not problem.offers("construct"):
            raise InputError(
                f"start is {name}, and the problem {problem.name} has none: start at random, or "
                "implement construct"
            )
        self._problem, self._seed, self._make, self._name = problem, seed, STARTS[name], name
        self._known: dict[tuple[str, int], Solution] = {}

    def sent(self, instance: Instance, seed: int) -> Solution | None:
        """What a worker is sent; None where it draws its start itself. seed: of the rollout."""
        if self._name == RANDOM:
            return None
        key = instance.digest, 0 if self._name == CONSTRUCTION else seed
        if key not in self._known:
            rng = python_rng("start", self._seed, instance.digest, seed)
            self._known[key] = self._make(self._problem, instance, rng)
        return self._known[key]

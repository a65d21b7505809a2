"""Acceptance rules of searches: whether a candidate becomes the current solution, by their costs.

A rule is a function `rule(cost, current, lowest, progress) -> bool`: costs of the candidate, of the
current solution and of the best one so far, as they are minimised (negatives where a problem
maximises), and the share of the budget that is used up, from 0 to 1. ACCEPTANCES has what makes
them, for rollouts and for `spo solve`; the paper's is "improving".
"""

from collections.abc import Callable
from math import exp
from typing import Any, NamedTuple

import numpy as np

from spo_jax.envs.run.own import OwnError, guarded
from spo_jax.registry import Registry, require_function

Rule = Callable[[float, float, float, float], bool]
PAPER = "improving"
COOLED = 0.01  # the last temperature as a fraction of the first


class Acceptance(NamedTuple):
    """How a search accepts.

    make: the rule, of its first temperature or threshold and a source of numbers in [0, 1). warmth:
    the default of the former, in mean edges of the start (its cost / the instance's size). left:
    the share of the first one that is left, by progress.
    """

    make: Callable[[float, Callable[[], float]], Rule]
    warmth: float
    left: Callable[[float], float]


def improving(cost: float, current: float, lowest: float, progress: float) -> bool:
    """Not worse than the current solution: the paper's (Section 3.1), as `lns.not_worse`."""
    return cost <= current


def annealing(first: float, luck: Callable[[], float]) -> Rule:
    """Simulated annealing: a solution that is worse by d with probability exp(-d / T).

    T falls from `first` to COOLED of it, by the same factor in every equal share of the budget.
    """

    def accept(cost: float, current: float, lowest: float, progress: float) -> bool:
        worse = cost - current
        return worse <= 0 or annealed(worse, first * cooled(progress), luck)

    return accept


def cooled(progress: float) -> float:
    """The share of the first temperature of annealing that is left."""
    return COOLED**progress


def mean_edge(cost: float, size: int) -> float:
    """The unit of temperatures and thresholds: the size of the start's cost, 1 for 0, per item."""
    return (abs(cost) or 1.0) / max(1, size)


def falling(progress: float) -> float:
    """The share of the first threshold of record-to-record travel that is left."""
    return 1.0 - progress


def annealed(worse: float, temperature: float, luck: Callable[[], float]) -> bool:
    """Metropolis' rule for a solution that is worse by so much."""
    return temperature > 0 and luck() < exp(-worse / temperature)


def record_to_record(first: float, luck: Callable[[], float]) -> Rule:
    """Less than a threshold above the best (Dueck, 1993), which falls from `first` to 0."""

    def accept(cost: float, current: float, lowest: float, progress: float) -> bool:
        return cost <= current or cost < lowest + first * falling(progress)

    return accept


def _own(name: str, make: Any) -> Acceptance:
    """A maker of the user's, which gets one mean edge of the start."""
    what = f"acceptance {name!r}"
    require_function(what, make, annealing)

    def made(first: float, luck: Callable[[], float]) -> Rule:
        rule = guarded(what, make)(first, luck)
        accepts = guarded(f"{what}: its rule", rule)

        def accept(cost: float, current: float, lowest: float, progress: float) -> bool:
            found = accepts(cost, current, lowest, progress)
            if not isinstance(found, bool | np.bool_):
                raise OwnError(
                    f"{what}: its rule returned {found!r:.80}, where True or False is due"
                )
            return bool(found)

        return accept

    return Acceptance(made, 1.0, lambda progress: 1.0)


ACCEPTANCES: Registry[Acceptance] = Registry(
    "acceptance",
    {
        PAPER: Acceptance(lambda first, luck: improving, 0.0, falling),
        "annealing": Acceptance(annealing, 0.3, cooled),
        "record-to-record": Acceptance(record_to_record, 2.0, falling),
    },
    _own,
    call=False,
)

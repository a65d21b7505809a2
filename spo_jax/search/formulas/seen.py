"""What formulas of credit see, and what they return."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

Array = np.ndarray
Selection = tuple[Array, Array] | None
Earned = tuple[Array, Array, Selection]


@dataclass(frozen=True, eq=False)
class Reference:
    """J of pairs with a reference destroy and a reference repair; NaN where it is not known.

    leader: [..., D], each destroy with the reference repair. follower: [..., D, R], each repair
    with the reference destroy. pair: [...], the two references with each other.
    """

    leader: Array
    follower: Array
    pair: Array


@dataclass(frozen=True, eq=False)
class Seen:
    """Rounds as a formula sees them. What few formulas need is a function, called by those alone.

    utility: [..., D, R] float64, J, NaN where there is none. sources: gives [..., D, R] int, equal
    for equal repairs of a round, below 0 where there is none. references: gives J of the pairs with
    the references. parents: gives [..., D, R], J of a row's destroy with the best parent of the
    repair, NaN without one.
    """

    utility: Array
    sources: Callable[[], Array]
    references: Callable[[], Reference]
    parents: Callable[[], Array]

    @cached_property
    def source(self) -> Array:
        return self.sources()

    @cached_property
    def reference(self) -> Reference:
        return self.references()

    @cached_property
    def parent(self) -> Array:
        return self.parents()

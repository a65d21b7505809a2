"""ALNS as the examples of the library `alns` run it (github.com/N-Wouda/ALNS, examples/).

The search, its roulette wheel and its acceptance are the library's own; each problem's
`alns_example` has the operators of its example.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spo_jax.errors import MissingExtra

STEPS = 3000  # of the example of the CVRP; that of the TSP runs for 60 seconds
DECAY = 0.8  # what a weight keeps of itself after a step, in both examples
Operator = Callable[..., "State"]  # of (state, rng)


@dataclass
class State:
    """A solution as the library takes it. cost: of a complete one; left: what is removed."""

    solution: Any
    cost: Callable[[Any], float]
    left: Sequence[int] = ()

    def objective(self) -> float:
        return self.cost(self.solution)


@dataclass(frozen=True)
class Example:
    """scores: of a new best, better, accepted, rejected. threshold: of record-to-record travel at
    the start, as a fraction of the first cost, which falls to 0; None for hill climbing.
    """

    destroys: Sequence[Operator]
    repair: Operator
    scores: tuple[float, float, float, float]
    threshold: float | None


def searched(start: State, example: Example, rng: np.random.Generator, steps: int) -> Any:
    """The best solution of `steps` iterations. Raises MissingExtra without the library."""
    try:
        from alns import ALNS
        from alns.accept import HillClimbing, RecordToRecordTravel
        from alns.select import RouletteWheel
        from alns.stop import MaxIterations
    except ImportError:
        raise MissingExtra("alns", "solvers") from None
    search = ALNS(rng)
    for place, destroy in enumerate(example.destroys):
        search.add_destroy_operator(destroy, name=f"destroy {place}")
    search.add_repair_operator(example.repair, name="repair")
    select = RouletteWheel([*example.scores], DECAY, len(example.destroys), 1)
    accept = HillClimbing()
    if example.threshold is not None:
        first = start.objective()
        accept = RecordToRecordTravel.autofit(first, example.threshold, 0, steps)
    return search.iterate(start, select, accept, MaxIterations(steps)).best_state.solution

"""What programs are shown of a search as their state: functions of its history.

STATES has those that ship, the paper's first; a `SearchState` of a user's own is passed as
"package.module:NAME". Runs inside the sandboxed worker.
"""

import math
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from spo_jax.envs.run.own import OwnError, guarded
from spo_jax.errors import InputError
from spo_jax.registry import Registry, require_function

STAGNATION, HIDDEN_STATE = "stagnation", "none"
SINCE = "steps_since_improvement"  # the paper's z_t
SHOWN = "search_state"  # what prompts call another state
KEPT = 10_000  # steps that a history has at least
Value = int | float | tuple[int | float, ...]


class History:
    """A search before a step. Costs are what it minimises: negatives where the problem maximises.

    Attributes:
        step: How many steps there were.
        steps: How many there will be, None under a limit of time.
        stagnation: The paper's z_t, the steps since the best cost last fell.
        best: The lowest cost so far.
        costs: Of the current solution at the start and after each step: the latest KEPT at least.
        outcomes: What each step came to, as `spo_jax.envs.run.lns.Outcome`: likewise.
        shown: What programs were shown at the last step; 0 before the first.
    """

    def __init__(
        self,
        cost: float,
        steps: int | None,
        progress: Callable[[int], float] = lambda step: 0.0,
        temperature: Callable[[float], float] = lambda share: 0.0,
    ):
        self.step, self.stagnation, self.best, self.steps = 0, 0, cost, steps
        self.costs, self.outcomes = array("d", [cost]), array("b")
        self.progress, self._temperature = progress, temperature
        self.shown: Value = 0

    @property
    def cost(self) -> float:
        """Of the current solution."""
        return self.costs[-1]

    @property
    def share(self) -> float:
        """Of the budget that is used up, from 0 to 1; in `spo solve` of a cycle's."""
        return self.progress(self.step)

    @property
    def temperature(self) -> float:
        """Temperature or threshold of the acceptance now, 0 where nothing worse is accepted; of an
        acceptance of a user's own a mean edge of the start.
        """
        return self._temperature(self.share)

    def adopt(self, cost: float) -> None:
        """Go on from another solution, which counts as the best one."""
        self.costs[-1] = self.best = cost

    def add(self, cost: float, outcome: int) -> None:
        """Note the end of a step.

        Args:
            cost: Of the current solution after it.
            outcome: What it came to.
        """
        self.costs.append(cost)
        self.outcomes.append(outcome)
        if len(self.outcomes) == 2 * KEPT:
            del self.costs[:KEPT], self.outcomes[:KEPT]


@dataclass(frozen=True)
class SearchState:
    """A state that programs are shown in place of the paper's.

    Attributes:
        function: Of a `History`: a number where there is one part, else a tuple of as many numbers.
            It must depend on nothing else.
        parts: What each part is, by its name, for prompts.

    Raises:
        InputError: There is no part, or a name is no identifier.
    """

    function: Callable[[History], Value]
    parts: Mapping[str, str]

    def __post_init__(self) -> None:
        require_function("the function of a state", self.function, _stagnation)
        for name in self.parts or ("",):
            if not (isinstance(name, str) and name.isidentifier()):
                raise InputError(f"a state names its parts by identifiers, not {name!r}")


def _stagnation(history: History) -> int:
    return history.stagnation


def _progress(history: History) -> tuple[int, float, float]:
    costs = history.costs
    change = (costs[-1] - costs[-2]) / abs(costs[-2]) if len(costs) > 1 and costs[-2] else 0.0
    return history.stagnation, history.share, change


def _own(name: str, found: Any) -> SearchState:
    what = f"state {name!r}"
    if not isinstance(found, SearchState):
        raise InputError(
            f"{what} is of type {type(found).__name__}, not a spo_jax.envs.run.states.SearchState"
        )
    function, count = guarded(what, found.function), len(found.parts)

    def checked(history: History) -> Value:
        value = function(history)
        parts = value if type(value) is tuple else (value,)
        plain = all(type(each) in (int, float) and math.isfinite(each) for each in parts)
        if not plain or len(parts) != count or (count > 1) != (type(value) is tuple):
            due = ", ".join(found.parts)
            raise OwnError(f"{what} returned {value!r:.80}, where numbers are due: {due}")
        return value

    return SearchState(checked, found.parts)


_SINCE = "the number of steps since the search last found a strictly better solution"
STATES: Registry[SearchState] = Registry(
    "state",
    {
        STAGNATION: SearchState(_stagnation, {SINCE: _SINCE}),
        "progress": SearchState(
            _progress,
            {
                SINCE: _SINCE,
                "share_of_budget": "the share of the steps that is used up, from 0 to 1",
                "last_change": "how much the last step changed the current solution, relative to "
                "its cost: negative where it became better",
            },
        ),
    },
    _own,
    others=(HIDDEN_STATE,),
    call=False,
)


@cache
def state_of(name: str) -> SearchState:
    """As STATES has it, found once in a process.

    Args:
        name: Of STATES, or "package.module:NAME".
    """
    return STATES[name]


def parts_shown(name: str) -> Mapping[str, str]:
    """The parts of a state that is not the paper's.

    Args:
        name: As for `require_state`.

    Returns:
        What each is by its name; nothing for the paper's, and for "none".
    """
    return {} if name in (STAGNATION, HIDDEN_STATE) else STATES[name].parts


def require_state(name: str) -> None:
    """Check the name of a state.

    Args:
        name: Of STATES, "package.module:NAME", or "none".

    Raises:
        InputError: There is no such state.
    """
    if name != HIDDEN_STATE:
        STATES[name]

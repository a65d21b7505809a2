"""What programs are shown as their state: the LNS state z_t, another one, or fixed values.

The ablation without the state and the interventions of Appendix E are one mechanism. A `Shown` is
plain data that crosses to the worker; the search itself is never changed by it, z_t goes on being
counted, and `Rollouts.state` holds z_t whatever was shown. `Rollouts.shown` holds another state.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spo_jax.envs.run.states import HIDDEN_STATE, STAGNATION, History, Value, state_of
from spo_jax.errors import InputError

INVERSION = 10, 30  # below the first the second is shown, from the first on 0 (Appendix E)


@dataclass(frozen=True)
class Shown:
    """What the programs of a rollout see in place of z_t at step t.

    Attributes:
        values: None for the state itself.
        by_step: False shows values[z_t], and the last value for every z_t past it; True shows
            values[t].
        state: Which, of STATES.

    Raises:
        InputError: There are no values, or negative ones.
    """

    values: tuple[Value, ...] | None = None
    by_step: bool = False
    state: str = STAGNATION

    def __post_init__(self) -> None:
        if self.values is not None and not self.values:
            raise InputError("there is no state to show: give at least one value")
        numbers = [each for each in self.values or () if not isinstance(each, tuple)]
        if self.state == STAGNATION and numbers and min(numbers) < 0:
            raise InputError(f"a state is at least 0, not {min(numbers)}")

    @property
    def observes(self) -> bool:
        """Whether it needs the search's history."""
        return self.values is None and self.state != STAGNATION

    @property
    def parts(self) -> int:
        """Of the state that it observes, which rollouts record."""
        return len(state_of(self.state).parts) if self.observes else 0

    def at(self, z: int, t: int, history: History | None = None) -> Value:
        """What is shown at step t, when the paper's state is z.

        Args:
            z: The paper's state.
            t: The step.
            history: Of the search, where it `observes`.
        """
        if self.values is None:
            return z if history is None else state_of(self.state).function(history)
        return self.values[t] if self.by_step else self.values[min(z, len(self.values) - 1)]


Showing = Shown | Mapping[tuple[str, int], Shown]
"""The same for all rollouts, or one for each (instance digest, rollout seed)."""


def fixed(k: int) -> Shown:
    """k at every step."""
    return Shown((k,))


def given(states: Sequence[Value], state: str = STAGNATION) -> Shown:
    """What is shown at each step, whatever the search does. state: which of STATES that is of."""
    return Shown(tuple(states), by_step=True, state=state)


OBSERVED = Shown()
HIDDEN = fixed(0)
INVERTED = Shown((INVERSION[1],) * INVERSION[0] + (0,))


def shown_with(state: str) -> Shown:
    """What programs see that were discovered with a state of STATES, or "none"."""
    return HIDDEN if state == HIDDEN_STATE else Shown(state=state)


def of_rollout(showing: Showing, digest: str, seed: int, steps: int) -> Shown:
    """What is shown in one rollout of `steps` steps. Raises InputError where that is not said."""
    shown = showing if isinstance(showing, Shown) else showing.get((digest, seed))
    if shown is None:
        raise InputError(f"there is no state to show for instance {digest} and seed {seed}")
    if shown.by_step and shown.values is not None and len(shown.values) < steps:
        raise InputError(
            f"{len(shown.values)} states are too few to show for a rollout of {steps} steps"
        )
    return shown

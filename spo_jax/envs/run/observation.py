"""What programs are shown as steps_since_improvement: the LNS state z_t, or something in its place.

The ablation without the state and the interventions of Appendix E are one mechanism. A `Shown` is
plain data that crosses to the worker; the search itself is never changed by it, z_t goes on being
counted, and `Rollouts.state` holds z_t whatever was shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spo_jax.errors import InputError

INVERSION = 10, 30  # below the first the second is shown, from the first on 0 (Appendix E)


@dataclass(frozen=True)
class Shown:
    """What the programs of a rollout see in place of z_t at step t.

    Attributes:
        values: None for z_t itself.
        by_step: False shows values[z_t], and the last value for every z_t past it; True shows
            values[t].

    Raises:
        InputError: There are no values, or negative ones.
    """

    values: tuple[int, ...] | None = None
    by_step: bool = False

    def __post_init__(self) -> None:
        if self.values is not None and not self.values:
            raise InputError("there is no state to show: give at least one value")
        if self.values is not None and min(self.values) < 0:
            raise InputError(f"a state is at least 0, not {min(self.values)}")

    def at(self, z: int, t: int) -> int:
        """What is shown at step t, when the true state is z."""
        if self.values is None:
            return z
        return self.values[t] if self.by_step else self.values[min(z, len(self.values) - 1)]


Showing = Shown | Mapping[tuple[str, int], Shown]
"""The same for all rollouts, or one for each (instance digest, rollout seed)."""


def fixed(k: int) -> Shown:
    """k at every step."""
    return Shown((k,))


def given(states: Sequence[int]) -> Shown:
    """The state of each step, whatever the search does."""
    return Shown(tuple(map(int, states)), by_step=True)


OBSERVED = Shown()
HIDDEN = fixed(0)
INVERTED = Shown((INVERSION[1],) * INVERSION[0] + (0,))


def shown_with(state: bool) -> Shown:
    """What programs see that were discovered with the state, or without it."""
    return OBSERVED if state else HIDDEN


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

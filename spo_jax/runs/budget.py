"""The wall-clock budget of a run (`minutes`): how long it has run, and when its rounds are over.

A round begins if it is likely to end in time: if it and the validation, judged by the rounds so
far, fit into what is left. So the number of rounds depends on the machine's speed and load, but the
result only on that number. The time of a round that was cut off does not count.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

USED = "used"  # the stage of `timings` with the seconds of the run up to the end of a round


@dataclass(frozen=True)
class Spent:
    """What the finished rounds took.

    rounds: [K] wall-clock seconds of each. playing: seconds of all their evaluations, of `pairs`
    pairs. used: of the run up to the end of the last one, with the time before its first round.
    """

    rounds: Sequence[float] = ()
    playing: float = 0.0
    pairs: int = 0
    used: float = 0.0


class Budget:
    """The seconds that a run may take, from its start in this session on.

    work: the validation, in evaluations of a pair in training. spent: asks what the rounds took.
    began: when this session began, by `now`, which returns seconds.
    """

    def __init__(
        self,
        seconds: float,
        work: float,
        spent: Callable[[], Spent],
        began: float,
        now: Callable[[], float] = time.monotonic,
    ):
        self._seconds, self._work, self._spent, self._now = seconds, work, spent, now
        self._began = began - spent().used

    @property
    def used(self) -> float:
        """Seconds so far, those of earlier sessions included."""
        return self._now() - self._began

    @property
    def left(self) -> float:
        """Seconds, at least 0."""
        return max(self._seconds - self.used, 0.0)

    @property
    def held(self) -> float:
        """Seconds that the validation takes, if a step takes as long as in the rounds so far."""
        spent = self._spent()
        return self._work * spent.playing / spent.pairs if spent.pairs else 0.0

    def over(self) -> bool:
        """Whether the next round, if as long as the last one and as the mean, would end too late.

        The first one always begins.
        """
        rounds = self._spent().rounds
        if not rounds:
            return False
        due = max(rounds[-1], sum(rounds) / len(rounds))
        return self.left < self.held + due

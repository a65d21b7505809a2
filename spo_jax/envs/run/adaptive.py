"""Which programs a search plays next: by weights that follow what they achieve.

`Portfolio` draws pairs, as Ropke and Pisinger (2006) draw operators: weights follow the mean scores
of a segment. `Roulettes` draws a destroy and a repair independently and moves the weights of both
after every step; its numbers are an `Adaptation`, by default those of G-LNS. Runs inside the
sandboxed worker.
"""

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import exp, log
from typing import Any, Protocol

from spo_jax.envs.problem import Layout
from spo_jax.envs.run.shown import Shown

SEGMENT, REACTION = 100, 0.1  # of the weights of pairs (Ropke and Pisinger, 2006)
LEAST = 0.05  # weight: a pair that finds nothing now may later
HALF_AT = 0.05  # a scaled temperature accepts a solution worse by so much of the start at 1/2


class Outcome(IntEnum):
    """What a step came to.

    FAILED: a program raised, or broke the contract. SAME, WORSE: accepted, with that cost beside
    the current solution's. BETTER: than the current solution. BEST: than all before.
    """

    FAILED = 0
    REJECTED = 1
    SAME = 2
    WORSE = 3
    BETTER = 4
    BEST = 5


SCORES = {Outcome.BEST: 33.0, Outcome.BETTER: 9.0, Outcome.WORSE: 13.0}  # of pairs; the others 0


@dataclass
class Operator:
    """A program as a worker runs it. layout: of the instance's arguments."""

    function: Callable[..., Any]
    layout: Layout


@dataclass
class Player:
    """A destroy and a repair that a step may play; pairs may share one of them."""

    destroy: Operator
    repair: Operator
    shown: Shown
    weight: float = 1.0
    score: float = 0.0
    uses: int = 0


class Choice(Protocol):
    """What a search asks for the programs of each step, and tells what became of them."""

    def draw(self, luck: random.Random) -> Player | None:
        """None: a step that fails without being played."""
        ...

    def reward(self, player: Player | None, outcome: Outcome, lowest: float) -> None:
        """lowest: the lowest cost of the search after the step."""
        ...


class Portfolio:
    """Pairs by weights. players: may be filled later."""

    def __init__(self, players: Sequence[Player]):
        self._players = players
        self._uses = 0

    def draw(self, luck: random.Random) -> Player:
        if len(self._players) == 1:
            return self._players[0]
        left = luck.random() * sum(player.weight for player in self._players)
        for player in self._players:
            left -= player.weight
            if left < 0:
                return player
        return self._players[-1]  # rounding

    def reward(self, player: Player | None, outcome: Outcome, lowest: float) -> None:
        """Count a use; after a segment of uses the weights follow the mean scores."""
        if player is None or len(self._players) == 1:
            return
        player.score += SCORES.get(outcome, 0.0)
        player.uses += 1
        self._uses += 1
        if self._uses % SEGMENT == 0:
            for each in self._players:
                if each.uses:
                    mean = each.score / each.uses
                    each.weight = (1 - REACTION) * each.weight + REACTION * mean
                each.weight = max(each.weight, LEAST)
                each.score, each.uses = 0.0, 0


@dataclass(frozen=True)
class Adaptation:
    """The numbers of an adaptive search over destroys and repairs; by default those of G-LNS.

    best, improved, accepted, other: the reward of a step to both of its operators: for a new best,
    for better than the current solution, for worse but accepted, and for every other one: rejected,
    of equal cost (which is not accepted), failed. kept: what a weight keeps of itself after a step.
    temperature: the first one of annealing, in units of cost; cooling: its factor after every step.
    scaled: the first temperature accepts half of the solutions that are worse by a twentieth of the
    start's cost (Ropke and Pisinger, 2006), and `temperature` is not used. improving: in place of
    annealing, what is not worse is accepted, equal costs too.
    """

    best: float = 1.5
    improved: float = 1.2
    accepted: float = 0.8
    other: float = 0.1
    kept: float = 0.5
    temperature: float = 100.0
    cooling: float = 0.97
    scaled: bool = False
    improving: bool = False

    def score(self, outcome: int) -> float:
        known = {
            Outcome.BEST: self.best, Outcome.BETTER: self.improved, Outcome.WORSE: self.accepted
        }  # fmt: skip
        return known.get(Outcome(outcome), self.other)

    def acceptance(
        self, start: float, luck: Callable[[], float]
    ) -> Callable[[float, float, float, float], bool]:
        """Of (cost, cost of the current solution, of the best, steps before this one).

        start: the first solution's cost.
        """
        if self.improving:
            return lambda cost, current, best, step: cost <= current
        first = HALF_AT / log(2) * start if self.scaled else self.temperature

        def accept(cost: float, current: float, best: float, step: float) -> bool:
            if cost <= current:
                return cost < current
            temperature = first * self.cooling**step
            return temperature > 0 and luck() < exp((current - cost) / temperature)

        return accept


PLAIN = Adaptation(kept=1.0, improving=True)  # operators drawn uniformly, in the paper's LNS


class Roulettes:
    """A destroy and a repair by their own weights, which begin at 1 and follow the rewards.

    banned: pairs of positions that are not played; such a step has failed. tell: called with each
    draw before it is played, and with what became of the draw before: (destroy, repair, outcome,
    lowest cost); at first with FAILED, after the last step with positions -1.
    """

    def __init__(
        self,
        rules: Adaptation,
        destroys: int,
        repairs: int,
        banned: Collection[tuple[int, int]] = (),
        tell: Callable[[int, int, Outcome, float], None] = lambda d, r, outcome, lowest: None,
    ):
        self._rules, self._banned, self._tell = rules, banned, tell
        self.weights = [1.0] * destroys, [1.0] * repairs
        self.drawn = -1, -1

    def begin(
        self, players: Sequence[Player], luck: random.Random, start: float, steps: int
    ) -> None:
        """Begin a search of so many steps. players: destroy by destroy, with each repair.

        start: the first solution's cost. The weights go on.
        """
        self._players, self._luck, self._left = players, luck, steps
        self._next(Outcome.FAILED, start)

    def draw(self, luck: random.Random) -> Player | None:
        if self.drawn in self._banned:
            return None
        destroy, repair = self.drawn
        return self._players[destroy * len(self.weights[1]) + repair]

    def reward(self, player: Player | None, outcome: Outcome, lowest: float) -> None:
        kept, score = self._rules.kept, self._rules.score(outcome)
        for weights, place in zip(self.weights, self.drawn, strict=True):
            weights[place] = kept * weights[place] + (1 - kept) * score
        self._left -= 1
        self._next(outcome, lowest)

    def _next(self, outcome: Outcome, lowest: float) -> None:
        self.drawn = (-1, -1)
        if self._left:
            destroys, repairs = self.weights
            self.drawn = spun(destroys, self._luck), spun(repairs, self._luck)
        self._tell(*self.drawn, outcome, lowest)


def spun(weights: Sequence[float], luck: random.Random) -> int:
    """A position drawn by the weights; uniformly where none is positive."""
    total = sum(weights)
    if total <= 0:
        return luck.randrange(len(weights))
    left = luck.random() * total
    for place, weight in enumerate(weights):
        left -= weight
        if left < 0:
            return place
    return max(place for place, weight in enumerate(weights) if weight > 0)  # rounding

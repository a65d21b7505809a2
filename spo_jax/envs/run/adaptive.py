"""Which programs a search plays next: by weights that follow what they achieve.

`Portfolio` draws pairs, as Ropke and Pisinger (2006) draw operators: weights follow the mean scores
of a segment. `Roulettes` draws a destroy and a repair independently and moves the weights of both
after every step; its numbers are an `Adaptation`, by default those of G-LNS. Runs inside the
sandboxed worker.
"""

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import log

from spo_jax.envs.run.acceptance import Rule, annealed, improving
from spo_jax.envs.run.lns import OperatorPair, Outcome

SEGMENT, REACTION = 100, 0.1  # of the weights of pairs (Ropke and Pisinger, 2006)
LEAST = 0.05  # weight: a pair that finds nothing now may later
HALF_AT = 0.05  # a scaled temperature accepts a solution worse by so much of the start at 1/2
SCORES = {Outcome.BEST: 33.0, Outcome.BETTER: 9.0, Outcome.WORSE: 13.0}  # of pairs; the others 0


class Portfolio:
    """Pairs by weights, which begin at 1.

    Args:
        pairs: [P] to draw from.

    Attributes:
        weights: [P] of the pairs.
    """

    def __init__(self, pairs: Sequence[OperatorPair]):
        self._pairs = pairs
        self.weights = [1.0] * len(pairs)
        self._scores, self._uses = [0.0] * len(pairs), [0] * len(pairs)
        self._drawn = 0

    def draw(self, luck: random.Random) -> OperatorPair:
        """Draw the pair of a step by the weights."""
        if len(self._pairs) > 1:
            self._drawn = spun(self.weights, luck)
        return self._pairs[self._drawn]

    def reward(self, pair: OperatorPair | None, outcome: Outcome, lowest: float) -> None:
        """Count a use; after a segment of uses the weights follow the mean scores."""
        if len(self._pairs) == 1:
            return
        self._scores[self._drawn] += SCORES.get(outcome, 0.0)
        self._uses[self._drawn] += 1
        if sum(self._uses) < SEGMENT:
            return
        for k, (score, uses) in enumerate(zip(self._scores, self._uses, strict=True)):
            if uses:
                self.weights[k] = (1 - REACTION) * self.weights[k] + REACTION * (score / uses)
            self.weights[k] = max(self.weights[k], LEAST)
            self._scores[k], self._uses[k] = 0.0, 0


@dataclass(frozen=True)
class Adaptation:
    """The numbers of an adaptive search over destroys and repairs; by default those of G-LNS.

    Attributes:
        best: The reward of a step to both of its operators for a new best.
        improved: Likewise for better than the current solution.
        accepted: Likewise for worse but accepted.
        other: Likewise for every other one: rejected, of equal cost (which is not accepted),
            failed.
        kept: What a weight keeps of itself after a step.
        temperature: The first one of annealing, in units of cost.
        cooling: Its factor after every step.
        scaled: The first temperature accepts half of the solutions that are worse by a twentieth of
            the start's cost (Ropke and Pisinger, 2006), and `temperature` is not used.
        improving: In place of annealing, what is not worse is accepted, equal costs too.
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
        """The reward of an `Outcome`."""
        known = {
            Outcome.BEST: self.best, Outcome.BETTER: self.improved, Outcome.WORSE: self.accepted
        }  # fmt: skip
        return known.get(Outcome(outcome), self.other)

    def acceptance(self, start: float, luck: Callable[[], float]) -> Rule:
        """Make the rule of acceptance of a search.

        Args:
            start: The first solution's cost.
            luck: Uniform random numbers in [0, 1).

        Returns:
            A rule as those of `spo_jax.envs.run.acceptance`, but progress counts the steps before.
        """
        if self.improving:
            return improving
        first = HALF_AT / log(2) * abs(start) if self.scaled else self.temperature

        def accept(cost: float, current: float, lowest: float, progress: float) -> bool:
            if cost <= current:
                return cost < current
            return annealed(cost - current, first * self.cooling**progress, luck)

        return accept


PLAIN = Adaptation(kept=1.0, improving=True)  # operators drawn uniformly, in the paper's LNS


class Roulettes:
    """A destroy and a repair by their own weights, which begin at 1 and follow the rewards.

    Args:
        rules: Rewards, and what weights keep.
        destroys: How many.
        repairs: Likewise.
        banned: Pairs of positions that are not played; such a step has failed.
        tell: Called with each draw before it is played, and with what became of the draw before:
            (destroy, repair, outcome, lowest cost); at first with FAILED, after the last step with
            positions -1.
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
        self, pairs: Sequence[OperatorPair], luck: random.Random, start: float, steps: int
    ) -> None:
        """Begin a search; the weights go on.

        Args:
            pairs: Destroy by destroy, with each repair.
            luck: What draws.
            start: The first solution's cost.
            steps: How many.
        """
        self._pairs, self._luck, self._left = pairs, luck, steps
        self._next(Outcome.FAILED, start)

    def draw(self, luck: random.Random) -> OperatorPair | None:
        """The operators of the step that was drawn; None where they are banned."""
        if self.drawn in self._banned:
            return None
        destroy, repair = self.drawn
        return self._pairs[destroy * len(self.weights[1]) + repair]

    def reward(self, pair: OperatorPair | None, outcome: Outcome, lowest: float) -> None:
        """Move the weights of both operators by what a step came to, and draw the next two."""
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

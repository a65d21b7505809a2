"""The search of `spo solve`: many steps of one pair or several, from a solution that is given.

A rollout (`lns`) is the paper's search: from a random start, improving, one pair. This one accepts
by name, draws a pair by weights that follow success, looks at a part of a large instance at a time,
and goes on from leg to leg: after each it can be told to go on from another solution. Runs inside
the sandboxed worker.
"""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, Literal

from spo_jax.envs.problem import Infeasible, Instance, Layout, Part, Problem, Rules, Solution
from spo_jax.envs.run.lns import Failure, failure
from spo_jax.envs.run.shown import Shown
from spo_jax.program import Role

Clock = Literal["wall", "cpu"]
CLOCKS: dict[Clock, Callable[[], float]] = {"wall": time.monotonic, "cpu": time.process_time}
Accept = Callable[[float, float, float, float], bool]

SEGMENT, REACTION = 100, 0.1  # of the weights of pairs (Ropke and Pisinger, 2006)
SCORES = 33.0, 9.0, 13.0  # a new best, better than the current solution, another one accepted
LEAST = 0.05  # weight: a pair that finds nothing now may later


# --- acceptance -----------------------------------------------------------------------------------


def improving(edge: float, warmth: float, luck: Callable[[], float]) -> Accept:
    """Not worse than the current solution: the paper's rule. The warmth changes nothing."""
    return lambda cost, current, best, progress: cost <= current


def annealing(edge: float, warmth: float, luck: Callable[[], float]) -> Accept:
    """Simulated annealing: a solution that is worse by d with probability exp(-d / T).

    T falls from warmth * edge to a hundredth of that, by the same factor in every equal share of
    the budget.
    """

    def accept(cost: float, current: float, best: float, progress: float) -> bool:
        worse = cost - current
        if worse <= 0:
            return True
        temperature = warmth * edge * COOLED**progress
        return temperature > 0 and luck() < exp(-worse / temperature)

    return accept


def record_to_record(edge: float, warmth: float, luck: Callable[[], float]) -> Accept:
    """Less than a threshold above the best (Dueck, 1993), which falls from warmth * edge to 0."""

    def accept(cost: float, current: float, best: float, progress: float) -> bool:
        return cost <= current or cost < best + warmth * edge * (1.0 - progress)

    return accept


COOLED = 0.01  # the last temperature as a fraction of the first
# name: the rule's maker, of (edge, warmth, luck), and its warmth. The accept that it makes is of
# (cost, cost of the current solution, of the best, share of the budget that is used up).
ACCEPTANCES: dict[str, tuple[Callable[[float, float, Callable[[], float]], Accept], float]] = {
    "improving": (improving, 0.0),
    "annealing": (annealing, 0.3),
    "record-to-record": (record_to_record, 2.0),
}


# --- the search -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Terms:
    """How a search goes.

    acceptance: a name of ACCEPTANCES; warmth: its first temperature or threshold in mean edges of
    the start (its cost / the instance's size). region: what programs see of a larger instance at a
    time, in what the instance's size counts; 0: all of it. stay: steps on a part before the next
    one. rewrite: after an improvement programs see the solution written in another way: those
    that look at places of the list one after another would begin at the same ones each time.
    skip_infeasible: a candidate that breaks the contract is a rejected step. clock: of a
    budget in seconds.
    """

    acceptance: str
    warmth: float
    region: int
    stay: int
    rewrite: bool = False
    skip_infeasible: bool = False
    clock: Clock = "wall"


@dataclass
class Player:
    """A pair as a worker runs it. layouts: of the destroy's arguments and of the repair's."""

    destroy: Callable[..., Any]
    repair: Callable[..., Any]
    layouts: dict[Role, Layout]
    shown: Shown
    weight: float = 1.0
    score: float = 0.0
    uses: int = 0


class Search:
    """One search. It draws from `luck` what acceptance and the choice of parts and pairs take, and
    programs draw from `rng`.

    prepare: called with the rules of each view before programs see it. mend: called with a player,
    a role and what the program raised; True asks for the step once more.

    best, lowest: the best solution and its cost since the start or the last `adopt`; current, cost:
    where the search is. steps: in all; idle: since `lowest` fell.
    """

    def __init__(
        self,
        problem: Problem,
        instance: Instance,
        players: Sequence[Player],
        start: Solution,
        terms: Terms,
        luck: random.Random,
        rng: Any,
        prepare: Callable[[Rules], None] = lambda rules: None,
        mend: Callable[[Player, Role, BaseException], bool] = lambda player, role, error: False,
    ):
        self.problem, self.instance, self.players, self.terms = problem, instance, players, terms
        self._luck, self._rng, self._prepare, self._mend = luck, rng, prepare, mend
        self._parts = 0 < terms.region < instance.size and problem.offers("part")
        self._rules: Rules | None = None  # of what programs see now
        self.rules: Rules  # of what they saw last
        self._part: Part | None = None  # None where that is the whole instance
        self.steps = 0
        self._uses = 0
        self.adopt(start)
        make, _ = ACCEPTANCES[terms.acceptance]
        edge = self.lowest / max(1, instance.size)
        self._accept = make(edge, terms.warmth, luck.random)

    def adopt(self, solution: Solution) -> None:
        """Go on from a solution, whose cost becomes the lowest."""
        self.best = self.current = solution
        self.lowest = self.cost = self.problem.cost(self.instance, solution)
        self.idle = 0
        if self._part is None and self._rules is not None:
            self._see(self._rules, None, solution)

    def leg(self, steps: int, until: float, progress: Callable[[int, float], float]) -> int:
        """At most `steps` more steps, none begun at `until` of the clock or later; how many.

        progress: (steps of the whole search, the clock) -> share of the budget that is used up.
        Raises Failure; what was found before it counts.
        """
        clock = CLOCKS[self.terms.clock]
        done = 0
        try:
            while done < steps and (now := clock()) < until:
                if self._left == 0:
                    self.look()
                try:
                    self._step(progress(self.steps, now))
                except Failure:
                    if self._part is None:
                        raise
                    self._fold()
                    self._parts = False  # perhaps it only fails on parts
                    continue
                done += 1
                self.steps += 1
                self._left -= 1
        finally:
            self._fold()
        return done

    # --- what programs see ----------------------------------------------------------------------

    _left = 0  # steps until they see something else

    def look(self) -> None:
        """Choose what programs see in the next steps; `leg` does it when it is due."""
        self._fold()
        if not self._parts:
            rules = self._rules = self.problem.rules(self.instance)
            self._prepare(rules)
            self._see(rules, None, self.current)
            return
        center = self._luck.randrange(self.instance.size)
        part = self.problem.part(self.instance, self.current, center, self.terms.region)
        rules = self.problem.rules(part.instance)
        self._prepare(rules)
        self._see(rules, part, part.solution)
        self._left = self.terms.stay

    def _see(self, rules: Rules, part: Part | None, solution: Solution) -> None:
        self._rules, self._part, self.rules = rules, part, rules
        self._left = self.terms.stay if part else -1
        self._at, self._at_cost = solution, rules.cost(solution)
        self._shift = self.cost - self._at_cost if part else 0.0  # from its costs to the whole's
        self._least = self._at_cost  # the lowest cost seen here
        self._found: Solution | None = None  # the new best, if it was found here
        self._z = 0

    def _fold(self) -> None:
        """Make what was found the current and the best solution of the whole."""
        if self._rules is None:
            return
        if self._part is None:
            self.current, self.cost = self._at, self._at_cost
            if self._found is not None:
                self.best, self._found = self._found, None
            return
        part, self._part, self._rules, self._left = self._part, None, None, 0
        whole = part.whole(self._at)
        if whole is not None:
            self.current, self.cost = whole, self.problem.cost(self.instance, whole)
        if self._found is not None:
            whole = self.current if self._found is self._at else part.whole(self._found)
            if whole is not None:
                self.best = whole
        self.lowest = self.problem.cost(self.instance, self.best)

    # --- steps ----------------------------------------------------------------------------------

    def _step(self, progress: float) -> None:
        rules, rng = self._rules, self._rng
        assert rules is not None
        player = self._draw() if len(self.players) > 1 else self.players[0]
        z = player.shown.at(self._z, self.steps)
        self._z += 1
        self.idle += 1
        role: Role = "destroy"
        score = 0.0
        try:
            given = rules.arguments(player.layouts[role])
            output = player.destroy(*given, rules.copy(self._at), z, rng)
            partial, removed = rules.destroyed(self._at, output)
            role = "repair"
            given = rules.arguments(player.layouts[role])
            candidate = rules.repaired(player.repair(*given, partial, removed, z, rng))
        except Infeasible as error:
            if not self.terms.skip_infeasible:
                raise failure(role, error, rules) from None
        except BaseException as error:
            if not self._mend(player, role, error):
                raise failure(role, error, rules) from None
            self._prepare(rules)
        else:
            cost = rules.cost(candidate)
            if self._accept(cost + self._shift, self._at_cost + self._shift, self.lowest, progress):
                score = SCORES[2] if cost != self._at_cost else 0.0
                if cost < self._at_cost:
                    score = SCORES[1]
                self._at, self._at_cost = candidate, cost
                if cost < self._least:
                    self._least, self._z = cost, 0
                    if self.terms.rewrite:
                        self._at = self.problem.rewritten(candidate, self._luck)
                if cost + self._shift <= self.lowest:  # of equally good ones the last
                    self._found = candidate
                    if cost + self._shift < self.lowest:
                        self.lowest, self.idle, score = cost + self._shift, 0, SCORES[0]
        if len(self.players) > 1:
            self._reward(player, score)

    def _draw(self) -> Player:
        left = self._luck.random() * sum(player.weight for player in self.players)
        for player in self.players:
            left -= player.weight
            if left < 0:
                return player
        return self.players[-1]  # rounding

    def _reward(self, player: Player, score: float) -> None:
        """Count a use; after a segment of uses the weights follow the mean scores."""
        player.score += score
        player.uses += 1
        self._uses += 1
        if self._uses % SEGMENT == 0:
            for each in self.players:
                if each.uses:
                    mean = each.score / each.uses
                    each.weight = (1 - REACTION) * each.weight + REACTION * mean
                each.weight = max(each.weight, LEAST)
                each.score, each.uses = 0.0, 0

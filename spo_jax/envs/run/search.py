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

from spo_jax.envs.problem import Infeasible, Instance, Part, Problem, Rules, Solution
from spo_jax.envs.run.adaptive import Choice, Outcome, Player, Portfolio
from spo_jax.envs.run.lns import Failure, collect_cycles, failure
from spo_jax.envs.run.rollouts import Status
from spo_jax.program import Role

Clock = Literal["wall", "cpu"]
CLOCKS: dict[Clock, Callable[[], float]] = {"wall": time.monotonic, "cpu": time.process_time}
Accept = Callable[[float, float, float, float], bool]


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
    skip_infeasible: a candidate that breaks the contract is a rejected step; tolerant: a program
    that raises has lost the step as well. clock: of a budget in seconds.
    """

    acceptance: str
    warmth: float
    region: int
    stay: int
    rewrite: bool = False
    skip_infeasible: bool = False
    tolerant: bool = False
    clock: Clock = "wall"


class Search:
    """One search. It draws from `luck` what acceptance and the choice of parts and pairs take, and
    programs draw from `rng`.

    choice: of the programs of each step, by default a portfolio of the players. accept: in place of
    what the terms name.
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
        choice: Choice | None = None,
        accept: Accept | None = None,
    ):
        self.problem, self.instance, self.terms = problem, instance, terms
        self.choice = choice or Portfolio(players)
        self._luck, self._rng, self._prepare, self._mend = luck, rng, prepare, mend
        self._parts = 0 < terms.region < instance.size and problem.offers("part")
        self._rules: Rules | None = None  # of what programs see now
        self.rules: Rules  # of what they saw last
        self._part: Part | None = None  # None where that is the whole instance
        self.steps = 0
        self.adopt(start)
        make, _ = ACCEPTANCES[terms.acceptance]
        edge = self.lowest / max(1, instance.size)
        self._accept = accept or make(edge, terms.warmth, luck.random)

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
        player = self.choice.draw(self._luck)
        z, self._z = self._z, self._z + 1
        self.idle += 1
        candidate = None if player is None else self._candidate(player, z)
        collect_cycles()
        outcome = Outcome.FAILED if candidate is None else self._judged(candidate, progress)
        self.choice.reward(player, outcome, self.lowest)

    def _candidate(self, player: Player, z: int) -> Solution | None:
        """What two programs make of the current solution; None for a step that is lost."""
        rules, rng = self._rules, self._rng
        assert rules is not None
        shown = player.shown.at(z, self.steps)
        role: Role = "destroy"
        try:
            given = rules.arguments(player.destroy.layout)
            output = player.destroy.function(*given, rules.copy(self._at), shown, rng)
            partial, removed = rules.destroyed(self._at, output)
            role = "repair"
            given = rules.arguments(player.repair.layout)
            return rules.repaired(player.repair.function(*given, partial, removed, shown, rng))
        except Infeasible as error:
            if not self.terms.skip_infeasible:
                raise failure(role, error, rules) from None
        except BaseException as error:
            if self._mend(player, role, error):
                self._prepare(rules)
                return None
            found = failure(role, error, rules)
            if not self.terms.tolerant or found.status == Status.HOST_FAULT:
                raise found from None
        return None

    def _judged(self, candidate: Solution, progress: float) -> Outcome:
        """What a candidate is, which becomes the current solution if it is accepted."""
        assert self._rules is not None
        cost, before = self._rules.cost(candidate), self._at_cost
        if not self._accept(cost + self._shift, before + self._shift, self.lowest, progress):
            return Outcome.REJECTED
        outcome = Outcome.WORSE if cost > before else Outcome.SAME
        if cost < before:
            outcome = Outcome.BETTER
        self._at, self._at_cost = candidate, cost
        if cost < self._least:
            self._least, self._z = cost, 0
            if self.terms.rewrite:
                self._at = self.problem.rewritten(candidate, self._luck)
        if cost + self._shift <= self.lowest:  # of equally good ones the last
            self._found = candidate
            if cost + self._shift < self.lowest:
                self.lowest, self.idle = cost + self._shift, 0
                outcome = Outcome.BEST
        return outcome

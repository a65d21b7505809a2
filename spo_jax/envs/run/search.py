"""The search of `spo solve`: many steps of one pair or several, from a solution that is given.

A rollout (`lns`) plays one pair for its steps on a whole instance. This one draws a pair by weights
that follow success, looks at a part of a large instance at a time, and goes on from leg to leg:
after each it can be told to go on from another solution. Runs inside the sandboxed worker.
"""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from spo_jax.envs.problem import Infeasible, Instance, Part, Problem, Rules, Solution, rules_of
from spo_jax.envs.run import lns
from spo_jax.envs.run.acceptance import ACCEPTANCES, Rule, mean_edge
from spo_jax.envs.run.lns import Choice, Failure, OperatorPair, Position, failure
from spo_jax.envs.run.own import OwnError
from spo_jax.envs.run.rollouts import Status
from spo_jax.envs.run.states import History
from spo_jax.program import Role

Clock = Literal["wall", "cpu"]
CLOCKS: dict[Clock, Callable[[], float]] = {"wall": time.monotonic, "cpu": time.process_time}


@dataclass(frozen=True)
class Terms:
    """How a search goes.

    acceptance: a name of ACCEPTANCES; warmth: its first temperature or threshold in mean edges of
    the start (|its cost|, 1 for 0, / the instance's size). region: what programs see of a larger
    instance at a time, in what the instance's size counts; 0: all of it. stay: steps on a part
    before the next one. rewrite: after an improvement programs see the solution written in another
    way: those that look at places of the list one after another would begin at the same ones each
    time. polish: what a repair makes goes through the local search of the rules (`Rules.polished`).
    skip_infeasible: a candidate that breaks the contract is a rejected step; tolerant: a program
    that raises has lost the step as well. clock: of a budget in seconds.
    """

    acceptance: str
    warmth: float
    region: int
    stay: int
    rewrite: bool = False
    polish: bool = False
    skip_infeasible: bool = False
    tolerant: bool = False
    clock: Clock = "wall"


class Search:
    """One search. It draws from `luck` what acceptance and the choice of parts and pairs take, and
    programs draw from `rng`.

    choice: of the programs of each step. accept: in place of what the terms name.
    prepare: called with the rules of each view before programs see it. mend: called with a pair, a
    role and what the program raised; True asks for the step once more. observed: whether a pair is
    shown a state that needs the search's history.

    share: the items in which it looks for parts (`Problem.shares`); None: all.
    best, lowest: the best solution and its cost since the start or the last `adopt`; current, cost:
    where the search is. steps: in all; idle: since `lowest` fell. used: of the budget, for states,
    where that is not the progress of a leg.
    """

    def __init__(
        self,
        problem: Problem,
        instance: Instance,
        choice: Choice,
        start: Solution,
        terms: Terms,
        luck: random.Random,
        rng: Any,
        prepare: Callable[[Rules], None] = lambda rules: None,
        mend: Callable[[OperatorPair, Role, BaseException], bool] = lambda pair, role, error: False,
        accept: Rule | None = None,
        observed: bool = False,
    ):
        self.problem, self.instance, self.terms, self.choice = problem, instance, terms, choice
        self._luck, self._rng, self._prepare, self._mend = luck, rng, prepare, mend
        self._parts = 0 < terms.region < instance.size and problem.offers("part")
        self._at: Position | None = None  # in what programs see now; None before they see anything
        self.rules: Rules  # of what they saw last
        self._part: Part | None = None  # None where that is the whole instance
        self.share: Sequence[int] | None = None
        self.steps = self.idle = 0
        self.history: History | None = None
        self.adopt(start)
        make, _, left = ACCEPTANCES[terms.acceptance]
        threshold = terms.warmth * mean_edge(self.lowest, instance.size)  # or temperature
        self._accept = accept or make(threshold, luck.random)
        if observed:
            self.history = History(
                self.lowest, None, temperature=lambda share: threshold * left(share)
            )
        self.used: Callable[[int, float], float] | None = None

    def adopt(self, solution: Solution, share: Sequence[int] | None = None) -> None:
        """Go on from a solution, whose cost becomes the lowest, within a share of it."""
        self.share = share
        self.best = self.current = solution
        self.lowest = self.cost = self.problem.minimised(self.instance, solution)
        self.idle = 0
        if self.history is not None:
            self.history.adopt(self.cost)
        if self._part is not None:
            self._part = self._at = None
        elif self._at is not None:
            self._see(self.rules, None, solution)

    def leg(self, steps: int, until: float, progress: Callable[[int, float], float]) -> int:
        """At most `steps` more steps, none begun at `until` of the clock or later; how many.

        progress: (steps of the whole search, the clock) -> share of the budget that is used up.
        Raises Failure; what was found before it counts.
        """
        clock, first = CLOCKS[self.terms.clock], self.steps
        last = first + steps
        try:
            while self.steps < last and clock() < until:
                if self._at is None:
                    self.look()
                try:
                    self._stretch(last, until, progress)
                except Failure:
                    if self._part is None:
                        raise
                    self._parts = False  # perhaps it only fails on parts
                if self._part is not None and (self.steps == self._leave or not self._parts):
                    self._fold()
        finally:
            self._fold()
        return self.steps - first

    def _stretch(self, last: int, until: float, progress: Callable[[int, float], float]) -> None:
        """Steps in what programs see now: as `leg`, up to step `last` of the search."""
        assert self._at is not None
        at, clock, terms, now = self._at, CLOCKS[self.terms.clock], self.terms, 0.0
        end = last if self._part is None else min(last, self._leave)

        def stop(at: Position) -> bool:
            nonlocal now
            if at.steps == end:
                return True
            now = clock()
            return now >= until

        def accept(cost: float, current: float, lowest: float) -> bool:
            return self._accept(cost, current, lowest, progress(at.steps, now))

        def rewritten(solution: Solution) -> Solution:
            return self.problem.rewritten(solution, self._luck)

        if self.history is not None:
            self.history.progress = lambda step: (self.used or progress)(step, now)

        try:
            lns.search(
                self.rules, at, self.choice, accept, stop, self._luck, self._rng,
                lost=self._lost, polished=self.rules.polished if terms.polish else None,
                rewritten=rewritten if terms.rewrite else None, history=self.history,
            )  # fmt: skip
        except OwnError as error:
            raise Failure(Status.HOST_FAULT, "destroy", str(error)) from None
        finally:
            self.steps, self.idle, self.lowest = at.steps, at.idle, at.lowest

    def _lost(self, pair: OperatorPair, role: Role, error: BaseException) -> bool:
        """Whether a step that failed with this is lost and the search goes on."""
        if isinstance(error, Infeasible):
            return lns.is_lost(error, self.terms.skip_infeasible)
        if self._mend(pair, role, error):
            self._prepare(self.rules)
            return True
        return self.terms.tolerant and failure(role, error, self.rules).status != Status.HOST_FAULT

    # --- what programs see ----------------------------------------------------------------------

    def look(self) -> None:
        """Choose what programs see in the next steps; `leg` does it when it is due."""
        self._fold()
        if not self._parts:
            rules = rules_of(self.problem, self.instance)
            self._prepare(rules)
            self._see(rules, None, self.current)
            return
        if self.share is None:
            center, within = self._luck.randrange(self.instance.size), {}
        else:
            center, within = self._luck.choice(self.share), {"within": self.share}
        part = self.problem.part(self.instance, self.current, center, self.terms.region, **within)
        rules = rules_of(self.problem, part.instance)
        self._prepare(rules)
        self._see(rules, part, part.solution)
        self._leave = self.steps + self.terms.stay  # the step at which they see something else

    def _see(self, rules: Rules, part: Part | None, solution: Solution) -> None:
        self.rules, self._part, cost = rules, part, rules.minimised(solution)
        self._at = Position(
            solution, cost, self.lowest, cost, shift=self.cost - cost if part else 0.0,
            steps=self.steps, idle=self.idle,
        )  # fmt: skip

    def _fold(self) -> None:
        """Make what was found the current and the best solution of the whole."""
        at = self._at
        if at is None:
            return
        if self._part is None:
            self.current, self.cost = at.solution, at.cost
            if at.found is not None:
                self.best, at.found = at.found, None
            return
        part, self._part, self._at = self._part, None, None
        whole = part.whole(at.solution)
        if whole is not None:
            self.current, self.cost = whole, self.problem.minimised(self.instance, whole)
        if at.found is not None:
            whole = self.current if at.found is at.solution else part.whole(at.found)
            if whole is not None:
                self.best = whole
        self.lowest = self.problem.minimised(self.instance, self.best)

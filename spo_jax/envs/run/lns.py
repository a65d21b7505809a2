"""Large neighbourhood search with destroy and repair programs (Section 3.1): the one loop.

`search` makes steps; which programs a step plays, what is accepted and when it ends are arguments.
`rollout` is that of a discovery: one pair; the paper's from a random start, accepting what is not
worse.
`spo_jax.envs.run.search` is that of `spo solve`, and `spo_jax.envs.run.sandbox.adapting` that of
G-LNS. A cost is what is minimised here, `Rules.minimised`. Runs inside the sandboxed worker.
"""

import gc
import math
import random
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

from spo_jax.envs.problem import Infeasible, Layout, OverLimit, Rules, Solution
from spo_jax.envs.run.acceptance import ACCEPTANCES, PAPER, mean_edge
from spo_jax.envs.run.observation import OBSERVED, Shown
from spo_jax.envs.run.own import OwnError
from spo_jax.envs.run.rollouts import Status
from spo_jax.envs.run.states import History, Value
from spo_jax.envs.views import plain
from spo_jax.program import Role

YOUNG = 500  # objects more than after the last collection; fewer can do no harm
PROGRAMS = ("<destroy>", "<repair>")  # the names of the files of programs in tracebacks


# --- the loop -------------------------------------------------------------------------------------


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


FAILED, REJECTED, SAME, WORSE, BETTER, BEST = Outcome  # looked up faster in the loop


@dataclass
class Operator:
    """A program as a worker runs it. layout: of the instance's arguments."""

    function: Callable[..., Any]
    layout: Layout = "rows"


@dataclass
class OperatorPair:
    """A destroy and a repair that a step may play; pairs may share one of them.

    shown: what the programs see of z_t.
    """

    destroy: Operator
    repair: Operator
    shown: Shown = OBSERVED


class Choice(Protocol):
    """Chooses the programs of each step, and learns what became of them."""

    def draw(self, luck: random.Random) -> OperatorPair | None:
        """None: a step that fails without being played."""
        ...

    def reward(self, pair: OperatorPair | None, outcome: Outcome, lowest: float) -> None:
        """lowest: the lowest cost of the search after the step."""
        ...


class Accept(Protocol):
    """Whether a candidate becomes the current solution."""

    def __call__(self, cost: float, current: float, lowest: float, /) -> bool:
        """cost: of the candidate. current, lowest: of the current solution, of the best one."""
        ...


@dataclass(slots=True)
class Position:
    """Where a search is.

    solution, cost: the current one. lowest: the lowest cost of the search. found: the last solution
    that had it, None where that is from before this position. stagnation: z_t, the steps since the
    last improvement of `least`, the lowest cost seen here. steps, idle: of the whole search, and
    since `lowest` fell. shift: what is added to costs here to have those of the whole instance,
    which are compared with `lowest`; 0 where all of the instance is seen.
    """

    solution: Solution
    cost: float
    lowest: float
    least: float
    shift: float = 0.0
    found: Solution | None = None
    stagnation: int = 0
    steps: int = 0
    idle: int = 0


def search(
    rules: Rules,
    at: Position,
    choice: Choice,
    accept: Accept,
    stop: Callable[[Position], bool],
    luck: random.Random,
    rng: Any,
    *,
    lost: Callable[[OperatorPair, Role, BaseException], bool],
    polished: Callable[[Solution, Solution], Solution] | None = None,
    rewritten: Callable[[Solution], Solution] | None = None,
    history: History | None = None,
) -> None:
    """Steps from `at`, which they move, until `stop` says so before one (eq:lns-update).

    luck: what choice draws from. rng: what the programs draw from. lost: whether a step whose
    program of that role raised this, or broke the contract (Infeasible), is lost and the search
    goes on. polished: the candidate after a local search, of the current solution and what the
    repair made. rewritten: the same solution, written as programs are to see it after an
    improvement. history: kept for programs that are shown another state than z_t.
    Raises Failure for a step that is not lost.
    """
    arguments, copy, cost_of = rules.arguments, rules.copy, rules.minimised
    destroyed, repaired, due = rules.destroyed, rules.repaired, len(rules.hands)
    draw, reward = choice.draw, choice.reward
    while not stop(at):
        pair = draw(luck)
        stagnation = at.stagnation
        at.stagnation = stagnation + 1
        at.idle += 1
        outcome, candidate = FAILED, None
        if pair is not None:
            destroy, repair = pair.destroy, pair.repair
            if history is not None:
                history.step, history.stagnation, history.best = at.steps, stagnation, at.lowest
            z = pair.shown.at(stagnation, at.steps, history)
            if history is not None:
                history.shown = z
            role: Role = "destroy"
            try:
                current = at.solution
                output = destroy.function(*arguments(destroy.layout), copy(current), z, rng)
                handed = destroyed(current, output)
                if type(handed) not in _VALUES or len(handed) != due:
                    raise _not_handed(rules, handed)
                role = "repair"
                output = repair.function(*arguments(repair.layout), *handed, z, rng)
                candidate = repaired(output)
                if polished is not None:
                    candidate = polished(current, candidate)
            except BaseException as error:
                if not lost(pair, role, error):
                    raise failure(role, error, rules) from None
        collect_cycles()
        if candidate is not None:
            cost, before = cost_of(candidate), at.cost
            whole = cost + at.shift
            if accept(whole, before + at.shift, at.lowest):
                outcome = BETTER if cost < before else WORSE if cost > before else SAME
                at.solution, at.cost = candidate, cost
                if cost < at.least:
                    at.least, at.stagnation = cost, 0
                    if rewritten is not None:
                        at.solution = rewritten(candidate)
                if whole <= at.lowest:  # of equally good ones the last
                    at.found = candidate
                    if whole < at.lowest:
                        at.lowest, at.idle = whole, 0
                        outcome = BEST
            else:
                outcome = REJECTED
        if history is not None:
            history.add(at.cost + at.shift, outcome)
        reward(pair, outcome, at.lowest)
        at.steps += 1


def not_worse(cost: float, current: float, lowest: float) -> bool:
    """The paper's acceptance (Section 3.1)."""
    return cost <= current


# --- the search of a discovery --------------------------------------------------------------------


@dataclass(frozen=True)
class Trace:
    """best_cost: T+1 floats. state: T ints, the true z_t, whatever was shown. best: a solution, the
    last one of the lowest cost. shown: of another state that was shown T times its parts, NaN where
    the rollout had ended; empty of the paper's.
    """

    best_cost: list[float]
    state: list[int]
    best: Solution
    shown: list[tuple[float, ...]]


def is_lost(error: BaseException, skip_infeasible: bool) -> bool:
    """Whether a step whose candidate breaks the contract or a limit in this way is lost alone."""
    return isinstance(error, OverLimit) or (skip_infeasible and isinstance(error, Infeasible))


class _Rollout:
    """The choice of a rollout, always the same pair; records its steps, and ends it."""

    def __init__(
        self, pair: OperatorPair, start: float, steps: int, used: Callable[[], float] | None
    ):
        self._pair, self._steps, self._used = pair, steps, used
        self.best_cost, self.state = [start], list[int]()
        self.history: History | None = None  # where programs are shown another state than z_t
        self.shown: list[tuple[float, ...]] = []

    def draw(self, luck: random.Random) -> OperatorPair:
        return self._pair

    def reward(self, pair: OperatorPair | None, outcome: Outcome, lowest: float) -> None:
        self.best_cost.append(lowest)
        if self.history is not None:
            z = self.history.shown
            self.shown.append(z if isinstance(z, tuple) else (z,))

    def stop(self, at: Position) -> bool:
        if at.steps == self._steps or (self._used is not None and self._used() >= 1.0):
            return True
        self.state.append(at.stagnation)
        return False

    def share(self, step: int) -> float:
        """Of the budget that is used up before a step: of the steps, or of the other one."""
        share = step / self._steps
        return share if self._used is None else max(share, min(1.0, self._used()))


def rollout(
    rules: Rules,
    pair: OperatorPair,
    start: random.Random,
    rng: Any,
    steps: int,
    *,
    used: Callable[[], float] | None = None,
    skip_infeasible: bool = False,
    first: Solution | None = None,
    acceptance: str = PAPER,
    luck: random.Random | None = None,
    rewritten: Callable[[Solution], Solution] | None = None,
) -> Trace:
    """One rollout of `steps` steps, or fewer.

    start: seeds the first solution, in whose place `first` may be given. rng: what the programs
    draw from. used: the share of another budget than the steps that is used up; at 1 no step begins
    any more. skip_infeasible: a candidate that breaks the contract is a rejected step instead of a
    failure, as one above a limit always is. acceptance: a name of ACCEPTANCES; luck, rewritten: as
    in `search`, for others than the paper's, with which what a repair makes is polished too.
    Raises Failure, and OwnError.
    """
    if first is None:
        first = rules.start(start)
    cost = rules.minimised(first)
    record, at = _Rollout(pair, cost, steps, used), Position(first, cost, cost, cost)
    accept: Accept = not_worse
    luck = luck or start
    make, warmth, left = ACCEPTANCES[acceptance]
    threshold = warmth * mean_edge(cost, rules.size)  # or temperature
    if pair.shown.observes:
        record.history = History(cost, steps, record.share, lambda share: threshold * left(share))
    if acceptance != PAPER:
        rule = make(threshold, luck.random)

        def by_rule(cost: float, current: float, lowest: float) -> bool:
            return rule(cost, current, lowest, record.share(at.steps))

        accept = by_rule
    search(
        rules, at, record, accept, record.stop, luck, rng,
        lost=lambda pair, role, error: is_lost(error, skip_infeasible),
        rewritten=None if acceptance == PAPER else rewritten,
        polished=None if acceptance == PAPER else rules.polished, history=record.history,
    )  # fmt: skip
    best_cost, state, shown = record.best_cost, record.state, record.shown
    missing = steps - len(state)
    best = first if at.found is None else at.found
    none = [(math.nan,) * pair.shown.parts] * missing if record.history else []
    return Trace(best_cost + best_cost[-1:] * missing, state + [-1] * missing, best, shown + none)


def one_step(
    rules: Rules, pair: OperatorPair, current: Solution, z: Value, rng: Any
) -> tuple[Any, Solution]:
    """What destroy and repair of one step from `current` make (eq:lns-update).

    z: the state that is shown. The rest is as in `rollout`. Returns what the leader hands on,
    (partial solution, removed), as plain values, None where they are none, and the candidate.
    Raises Failure.
    """
    destroy, repair = pair.destroy, pair.repair
    role: Role = "destroy"
    try:
        given = rules.arguments(destroy.layout)
        handed = rules.destroyed(current, destroy.function(*given, rules.copy(current), z, rng))
        if type(handed) not in _VALUES or len(handed) != len(rules.hands):
            raise _not_handed(rules, handed)
        try:
            kept = plain(tuple(handed))  # the repair may use them up
        except (TypeError, RecursionError):
            kept = None
        role = "repair"
        given = rules.arguments(repair.layout)
        return kept, rules.repaired(repair.function(*given, *handed, z, rng))
    except BaseException as error:
        raise failure(role, error, rules) from None


# --- failures -------------------------------------------------------------------------------------

_VALUES = (tuple, list)  # no iterator: a program's own would run where its values are taken


def _not_handed(rules: Rules, handed: Any) -> OwnError:
    """Says that a user's rules give no arguments of a follower: no program is at fault."""
    plain = type(handed) in _VALUES
    found = f"{len(handed)} values" if plain else f"a value of type {type(handed).__name__}"
    due = " and ".join(rules.hands)
    return OwnError(f"Rules.destroyed gives {found}, where a tuple of {due} is due")


class Failure(Exception):
    """A program failed; `cause` is the exception it raised, if it raised one."""

    def __init__(self, status: Status, role: Role, what: str, cause: BaseException | None = None):
        super().__init__(what)
        self.status = status
        self.role = role
        self.cause = cause


def collect_cycles() -> None:
    """Free what programs left in cycles, in a confined process: after each step, never during one.

    The collector is off there. It closes suspended generators, which runs a program's `finally`
    wherever Python allocates: up to Python 3.11 also halfway through the copy of a list that the
    `finally` empties. What a call leaves in cycles counts against its memory until it returns.
    """
    if not gc.isenabled() and gc.get_count()[0] > YOUNG:
        gc.collect()


def bug_of(rules: Rules, error: BaseException) -> str:
    """Says what a user's rules raised and where; empty if they did not, or a program did in them.

    A program that exhausts the memory or the stack may do so inside the rules.
    """
    if isinstance(error, OwnError):
        return str(error)
    if isinstance(error, Infeasible | MemoryError | RecursionError):
        return ""
    kinds = [kind.__module__ for kind in type(rules).__mro__[:-1]]
    own = {
        getattr(sys.modules.get(name), "__file__", None)
        for name in kinds
        if name.partition(".")[0] != "spo_jax"
    }
    calls = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename in PROGRAMS:
            return ""
        if frame.f_code.co_filename in own:
            calls.append(f"{kinds[0]}.{frame.f_code.co_name}, line {line}")
    if not calls:
        return ""
    late = isinstance(error, ImportError | OSError)
    hint = "; rules import at the top of their module and open no files" if late else ""
    description = _describe(error)
    return f"the rules raised {description[:200]} ({' > '.join(calls)[-140:]}){hint}"


def failure(role: Role, error: BaseException, rules: Rules) -> Failure:
    """What a step came to whose program of `role`, or our check of it, raised `error`."""
    bug = bug_of(rules, error)
    if bug:
        return Failure(Status.HOST_FAULT, role, bug, error)
    if isinstance(error, Infeasible):
        return Failure(Status.INVALID, role, str(error))
    if isinstance(error, MemoryError):
        return Failure(Status.MEMORY, role, "out of memory", error)
    return Failure(Status.CRASH, role, _describe(error), error)


def _describe(error: BaseException) -> str:
    """The exception's type, its place in the program, and the start of its message, whatever it
    carries. What comes before the first colon is ours alone
    (`spo_jax.envs.run.rollouts.Failed.redacted_reason`).
    """
    try:
        message = " ".join(str(error)[:300].split())
    except BaseException:
        message = ""
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename in PROGRAMS:
            line = trace.tb_lineno
        trace = trace.tb_next
    what = type(error).__name__ + (f" at line {line}" if line else "")
    return f"{what}: {message}" if message else what

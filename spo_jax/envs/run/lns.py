"""Large neighbourhood search with one destroy and one repair function (Section 3.1).

Accept if not worse; z_t is the number of steps since the last strict improvement, 0 at the start;
the best-so-far objective is recorded at every step. Runs inside the sandboxed worker.
"""

import gc
import random
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spo_jax.envs.problem import Infeasible, Rules, Solution
from spo_jax.envs.run.rollouts import Status
from spo_jax.envs.run.shown import OBSERVED, Shown
from spo_jax.program import Role

YOUNG = 500  # objects more than after the last collection; fewer can do no harm
PROGRAMS = ("<destroy>", "<repair>")  # the names of the files of programs in tracebacks


@dataclass(frozen=True)
class Trace:
    """best_cost: T+1 floats. state: T ints, the true z_t, whatever was shown. best: a solution."""

    best_cost: list[float]
    state: list[int]
    best: Solution


class Failure(Exception):
    """A program failed; `cause` is the exception it raised, if it raised one."""

    def __init__(self, status: Status, role: Role, what: str, cause: BaseException | None = None):
        super().__init__(what)
        self.status = status
        self.role = role
        self.cause = cause


def rollout(
    rules: Rules,
    destroy: Callable[..., Any],
    repair: Callable[..., Any],
    arguments: tuple[tuple[Any, ...], tuple[Any, ...]],
    start: random.Random,
    rng: Any,
    steps: int,
    *,
    over: Callable[[], bool] | None = None,
    skip_infeasible: bool = False,
    shown: Shown = OBSERVED,
) -> Trace:
    """One rollout of `steps` steps, or fewer.

    arguments: the instance's leading arguments for destroy and for repair. start: seeds the first
    solution. rng: what the programs draw from. over: asked before each step whether to end the
    rollout. skip_infeasible: a candidate that breaks the contract is a rejected step instead of a
    failure. shown: what the programs see of z_t. Raises Failure.
    """
    for_destroy, for_repair = arguments
    copy, cost, destroyed, repaired = rules.copy, rules.cost, rules.destroyed, rules.repaired
    show = shown.at
    current = rules.start(start)
    current_cost = cost(current)
    best_cost = [current_cost]
    state: list[int] = []
    stagnation = 0
    role: Role = "destroy"
    for t in range(steps):
        if over is not None and over():
            break
        state.append(stagnation)
        z = show(stagnation, t)
        stagnation += 1
        try:
            role = "destroy"
            partial, removed = destroyed(current, destroy(*for_destroy, copy(current), z, rng))
            role = "repair"
            candidate = repaired(repair(*for_repair, partial, removed, z, rng))
        except Infeasible as error:
            if not skip_infeasible:
                raise failure(role, error, rules) from None
        except BaseException as error:
            raise failure(role, error, rules) from None
        else:
            candidate_cost = cost(candidate)
            if candidate_cost <= current_cost:
                if candidate_cost < current_cost:
                    stagnation = 0
                current, current_cost = candidate, candidate_cost
        collect_cycles()
        best_cost.append(current_cost)  # the incumbent never worsens, so it is the best so far
    missing = steps - len(state)
    return Trace(best_cost + best_cost[-1:] * missing, state + [-1] * missing, current)


def collect_cycles() -> None:
    """Free what programs left in cycles, in a confined process: after each step, never during one.

    The collector is off there. It closes suspended generators, which runs a program's `finally`
    wherever Python allocates: up to Python 3.11 also halfway through the copy of a list that the
    `finally` empties. What a call leaves in cycles counts against its memory until it returns.
    """
    if not gc.isenabled() and gc.get_count()[0] > YOUNG:
        gc.collect()


def one_step(
    rules: Rules,
    destroy: Callable[..., Any],
    repair: Callable[..., Any],
    arguments: tuple[tuple[Any, ...], tuple[Any, ...]],
    current: Solution,
    z: int,
    rng: Any,
) -> tuple[list[int], Solution]:
    """What one step from `current` removes, and the candidate that it makes (eq:lns-update).

    z: the state that is shown. The rest is as in `rollout`. Raises Failure.
    """
    for_destroy, for_repair = arguments
    role: Role = "destroy"
    try:
        output = destroy(*for_destroy, rules.copy(current), z, rng)
        partial, removed = rules.destroyed(current, output)
        told = removed[:]  # the repair may use its list up
        role = "repair"
        return told, rules.repaired(repair(*for_repair, partial, removed, z, rng))
    except BaseException as error:
        raise failure(role, error, rules) from None


def bug_of(rules: Rules, error: BaseException) -> str:
    """Says what a user's rules raised and where; empty if they did not, or a program did in them.

    A program that exhausts the memory or the stack may do so inside the rules.
    """
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
    said = _describe(error)
    return f"the rules raised {said[:200]} ({' > '.join(calls)[-140:]}){hint}"


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
    carries. What comes before the first colon is ours alone (`spo_jax.envs.run.rollouts.told`).
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

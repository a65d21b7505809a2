"""`spo solve`: the best solution of one instance that a pair finds, or several pairs.

Searches run side by side in the sandbox, one in each worker; see
`spo_jax.envs.run.jobs.parallel_search`.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spo_jax.constants import current
from spo_jax.envs.files.textfiles import shown_cost
from spo_jax.envs.gaps import gap_of
from spo_jax.envs.problem import Instance, Problem, Solution
from spo_jax.envs.problems import each_problem
from spo_jax.envs.run.acceptance import ACCEPTANCES, PAPER
from spo_jax.envs.run.evaluator import require_lawful
from spo_jax.envs.run.jobs.parallel_search import Budget, News, Team
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.observation import shown_with
from spo_jax.envs.run.sandbox.process.starting import Ahead
from spo_jax.envs.run.search import Clock, Terms
from spo_jax.envs.run.starts import CONSTRUCTION, RANDOM, STARTS
from spo_jax.envs.run.states import STAGNATION
from spo_jax.errors import InputError
from spo_jax.program import Pair, load_pair
from spo_jax.seeding import python_rng

SECONDS = 10.0  # of a search that is given neither steps nor time
MOST_STEPS = 2_000_000
STAY = 150  # steps on a part of a large instance before the next one
LATE, LATE_SHARE = 1.0, 0.03  # seconds, and share of the time, that the last step may take
MARGIN, MARGIN_PER_NODE = 0.1, 5e-5  # seconds before the end that checking and writing may take


@dataclass(frozen=True, eq=False)
class Solved:
    """The best solution of one instance that the searches found.

    Attributes:
        instance: What was solved.
        solution: Of it, the best.
        cost: Of `solution`.
        gap: By how many per cent of the instance's reference it is worse, None without one.
        initial_cost: Of the best start.
        seed: Of the search that found it, None if no search found better than the start.
        steps: Of all searches, which are none where the problem knows the best solution
            (`Problem.trivial`).
        seconds: CPU seconds of all searches.
        searches: How many.
        restarts: Of each search.
        failed: (status, reason) of each search that a program ended.
        stop: What ended them early, or None.
    """

    instance: Instance
    solution: Solution
    cost: float
    gap: float | None
    initial_cost: float
    seed: int | None
    steps: int
    seconds: float
    searches: int
    restarts: int
    failed: tuple[tuple[str, str], ...]
    stop: KeyboardInterrupt | None = None

    def __repr__(self) -> str:
        gap = "" if self.gap is None else f", gap {self.gap:.3f}%"
        return f"Solved({self.instance.name}: {shown_cost(self.cost)}{gap}, {self.steps} steps)"


def problem_of(path: str | Path, options: Iterable[str] = ()) -> str:
    """The name of the known problem with the suffix of an instance file. Raises InputError.

    options: of `Reading` that its files must take. Of several, the first of `each_problem`.
    """
    for kind in ("suffixes", "tables"):
        fits = []
        for name, each in each_problem():
            if Path(path).suffix.lower() in getattr(each, kind):
                if set(options) <= {*each.reading}:
                    return name
                fits.append(name)
        if fits:
            return fits[0]
    known = [each for _, each in each_problem()]
    own = [suffix for each in known for suffix in each.suffixes]
    tables = [suffix for each in known for suffix in each.tables]
    *most, last = dict.fromkeys([*own, *tables])
    listed = f"{', '.join(most)} or {last}"
    raise InputError(f"{path}: the suffix is not {listed}, so say which --problem it is of")


def default_output(path: str | Path, problem: Problem) -> Path:
    """The default file of the solution: in this folder, with a name that no benchmark file has."""
    return Path(f"{Path(path).stem}.spo{problem.solution_suffix}")


def cpu_limit(problem: Problem, instance: Instance) -> float:
    """CPU seconds of 500 steps after which a search counts as endless.

    An evaluation has the problem's limit. A user's instance may be larger than that allows for,
    and the time of a step grows at least with the square of the size.
    """
    return 10 * problem.cpu_seconds * max(1.0, (instance.size / 500) ** 2)


def shipped_pair(problem: Problem) -> Pair:
    """The pair that comes with a problem. Raises InputError where there is none."""
    if not problem.pair:
        raise InputError(f"no pair comes with the problem {problem.name}: give one with --pair")
    return load_pair(problem.pair, problem.interface.game)


def start_of(
    problem: Problem, instance: Instance, start: str | Path, until: float = math.inf
) -> Solution:
    """The first solution of a search: the problem's construction, or that of a file.

    until: the time.monotonic() after which a construction gives what it has. Raises InputError
    where the problem has none, or the file is no solution of the instance.
    """
    if start == CONSTRUCTION:
        return problem.construct(instance, until)
    if not Path(start).is_file():
        known = f"{CONSTRUCTION}, {RANDOM}"
        raise InputError(f"--start {start}: neither {known} nor the file of a solution")
    return problem.read_solution(start, instance)


def default_start(problem: Problem) -> str:
    """The problem's construction where it has one."""
    return CONSTRUCTION if problem.offers("construct") else RANDOM


def solve(
    instance: Instance,
    pairs: Pair | Sequence[Pair],
    problem: Problem,
    *,
    start: str | Path | Solution | None = None,
    acceptance: str | None = None,
    warmth: float | None = None,
    region: int | None = None,
    steps: int | None = None,
    seconds: float | None = None,
    clock: Clock = "wall",
    began: float | None = None,
    seed: int = 0,
    workers: int = 1,
    cpu_seconds: float | None = None,
    on_invalid: str = "fail",
    state: bool | str | Sequence[bool | str] = STAGNATION,
    unsafe: bool = False,
    progress: Callable[[News], None] = lambda news: None,
    ahead: Ahead | None = None,
) -> Solved:
    """Run searches side by side, with exchange of the best.

    A KeyboardInterrupt ends the searches, and so does the end of the time. The best so far is
    returned, which is the start where no step has ended before that.

    Args:
        instance: What to solve.
        pairs: Of several, each step draws one by weights that follow its success.
        problem: The instance's.
        start: A name of STARTS or "package.module:NAME" (a solution for each search, the best of
            which searches that divide the instance all have), a solution file, or a solution;
            `default_start` unless given.
        acceptance: A name of ACCEPTANCES or "package.module:NAME"; the problem's unless given.
        warmth: Its first temperature or threshold in mean edges of the start.
        region: Of a larger instance programs see a part of that size at a time, 0: all of it; the
            problem's own unless given.
        steps: Of each search: then the same seed and workers give the same result.
        seconds: Of the whole call, instead; 10 if neither is given.
        clock: "cpu" counts the seconds in each search instead, without the time to start.
        began: The time.monotonic() from which seconds count.
        seed: Of the searches.
        workers: Searches.
        cpu_seconds: CPU limit of 500 steps, by default `cpu_limit`.
        on_invalid: "fail" or "skip", as `LocalEvaluator` has it.
        state: What the programs of each pair are shown of the search, as `evaluate` has it.
        unsafe: Run even where the kernel offers no seccomp.
        progress: Is told the best after every leg, about once a second, with its cost.
        ahead: Processes for its workers that were started before, while all else was loaded.

    Returns:
        The best solution of all searches.

    Raises:
        InputError: The programs ended all searches before they came to anything.
        SandboxUnavailable: No program can run here.
    """
    began = time.monotonic() if began is None else began
    several = [pairs] if isinstance(pairs, Pair) else list(pairs)
    states = [state] * len(several) if isinstance(state, bool | str) else list(state)
    shown = [shown_with(current("state", each)) for each in states]
    terms, budget = _asked(
        problem,
        instance,
        [acceptance] if acceptance else problem.acceptances,
        warmth,
        region,
        steps,
        seconds,
        clock,
        on_invalid,
    )
    if not several:
        raise InputError("there is no pair to search with")
    limit = cpu_limit(problem, instance) if cpu_seconds is None else cpu_seconds
    evaluator = LocalEvaluator(
        problem, workers, cpu_seconds=limit, on_invalid=on_invalid, unsafe=unsafe,
        acceptance=terms[0].acceptance, states=[each.state for each in shown],
    )  # fmt: skip
    evaluator.ahead = ahead
    margin = MARGIN + MARGIN_PER_NODE * instance.size
    last = math.inf if budget is None or clock == "cpu" else began + budget - margin
    until = last if budget is None else last - min(LATE, LATE_SHARE * budget)
    starts = _starts(problem, instance, start, workers, seed, until)
    if (best := problem.trivial(instance)) is not None:
        return _without_search(problem, instance, best, starts)
    with evaluator as started:
        for pair in several:
            require_lawful(started, problem, pair)
        found = Team(
            started,
            several,
            shown,
            instance,
            starts,
            terms,
            Budget(steps if budget is None else None, budget, limit, until, last),
            seed,
            lambda news: progress(replace(news, cost=problem.turned(news.cost))),
        ).run()
    if len(found.failed) == workers and found.search is None:
        status, reason = found.failed[0]
        reason = problem.interface.game.told(reason)
        hint = " (--cpu-seconds raises the limit)" if status == "timeout" else ""
        raise InputError(
            f"the pair gave no solution: {status}: {reason or 'no reason given'}{hint}"
        )
    cost = problem.turned(found.cost)
    return Solved(
        instance=instance,
        solution=found.solution,
        cost=cost,
        gap=gap_of(problem, instance, cost),
        initial_cost=problem.turned(found.initial_cost),
        seed=None if found.search is None else seed + found.search,
        steps=sum(found.steps),
        seconds=found.seconds,
        searches=workers,
        restarts=found.restarts,
        failed=found.failed,
        stop=found.stopped,
    )


def _without_search(
    problem: Problem, instance: Instance, best: Solution, starts: Sequence[Solution]
) -> Solved:
    """The answer of an instance whose best solution is known."""
    cost = float(problem.cost(instance, best))
    return Solved(
        instance=instance,
        solution=best,
        cost=cost,
        gap=gap_of(problem, instance, cost),
        initial_cost=problem.turned(min(problem.minimised(instance, each) for each in starts)),
        seed=None,
        steps=0,
        seconds=0.0,
        searches=0,
        restarts=0,
        failed=(),
    )


def _asked(
    problem: Problem,
    instance: Instance,
    acceptances: Sequence[str],
    warmth: float | None,
    region: int | None,
    steps: int | None,
    seconds: float | None,
    clock: Clock,
    on_invalid: str,
) -> tuple[list[Terms], float | None]:
    """The terms of searches with each acceptance, and seconds; None under a limit of steps."""
    for acceptance in acceptances:
        if acceptance not in ACCEPTANCES and ":" not in acceptance:
            listed = ", ".join(ACCEPTANCES)
            raise InputError(
                f"acceptance must be one of {listed}, not {acceptance!r}; or package.module:NAME"
            )
    if steps is not None and seconds is not None:
        raise InputError("give steps or a time, not both")
    if seconds is not None and not 0 < seconds <= 1e6:
        raise InputError(f"the time must be between 0 and a million seconds, not {seconds:g}")
    if steps is not None and not 1 <= steps <= MOST_STEPS:
        raise InputError(f"steps must be from 1 to {MOST_STEPS}, not {steps}")
    if warmth is not None and not 0 <= warmth <= 1e6:
        raise InputError(f"the warmth must be from 0 to a million, not {warmth:g}")
    if region is not None and region < 0:
        raise InputError(f"the region must be at least 0, not {region}")
    own = problem.region if instance.size > problem.whole else 0
    terms = [
        Terms(
            acceptance=acceptance,
            warmth=ACCEPTANCES[acceptance].warmth if warmth is None else warmth,
            region=own if region is None else region,
            stay=STAY,
            rewrite=acceptance != PAPER,
            polish=acceptance != PAPER,
            skip_infeasible=on_invalid == "skip",
            clock=clock,
        )
        for acceptance in acceptances
    ]
    if steps is None and seconds is None:
        seconds = SECONDS
    return terms, seconds


def _starts(
    problem: Problem, instance: Instance, start: Any, workers: int, seed: int, until: float
) -> list[Solution]:
    """The first solution of each search."""
    if start is None:
        start = default_start(problem)
    if start == RANDOM or (isinstance(start, str) and ":" in start and not Path(start).exists()):
        # As in the rollouts of those seeds.
        names = [("start", 0, instance.digest, seed + k) for k in range(workers)]
        return [STARTS[start](problem, instance, python_rng(*name)) for name in names]
    if isinstance(start, str | Path):
        return [start_of(problem, instance, start, until)] * workers
    return [start] * workers

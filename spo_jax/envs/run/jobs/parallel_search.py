"""Searches of one instance side by side: one in each worker, with exchange and restarts.

The parent only waits, checks and decides. It decodes every solution that a search reports and sums
its cost anew; a search that reports what is none ends. Under a limit of steps all searches report
after the same numbers of steps, and what they go on from depends on nothing else: the same seed and
the same number of workers give the same result, to the bit. Under a limit of time they do not.

Searches of a large instance whose problem has `shares` divide it: each changes its share of one
solution, and at each exchange what all have made is joined and divided anew.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from spo_jax.envs.problem import Instance, Solution
from spo_jax.envs.run.jobs.division import Division, Found, can_divide, divide, join
from spo_jax.envs.run.jobs.planning import CHECK_SECONDS
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.observation import Shown
from spo_jax.envs.run.rollouts import Status, unpadded
from spo_jax.envs.run.sandbox.jobs import LEG, WHOLE_JOB, Order, SearchJob
from spo_jax.envs.run.sandbox.outcome import ChildReport, fault
from spo_jax.envs.run.sandbox.worker import Worker, readable
from spo_jax.envs.run.search import Terms
from spo_jax.program import Pair
from spo_jax.seeding import derive, python_rng
from spo_jax.stopping import take_time

LEG_STEPS, LEG_SECONDS = 200, 1.0  # at most, between two reports
LEGS = 20  # at least, of a search
EXCHANGES = 10  # in a cycle: then a search goes on from the best of all if its own is worse
CYCLE_STEPS = 100  # times the size: a search that has more steps warms up anew
LEAST_CYCLE = 2000
POOL = 4  # solutions that restarts begin with
SHARE_REGIONS = 2  # a search's share holds so many regions that programs see, on the mean at least


@dataclass(frozen=True)
class Budget:
    """How long to search. Either steps of each search, or seconds of `Terms.clock`.

    until: the time.monotonic() at which no step begins any more, with wall-clock seconds; last:
    that at which one that does not end is killed.
    cpu_seconds: after which 500 steps count as endless.
    """

    steps: int | None
    seconds: float | None
    cpu_seconds: float
    until: float = math.inf
    last: float = math.inf


@dataclass(frozen=True)
class News:
    """What the searches have come to: the best solution and its cost, here as it is minimised.

    share: of the budget that is used up. left: seconds, None under a limit of steps before the
    first leg.
    """

    cost: float
    share: float
    left: float | None
    solution: Solution


@dataclass(frozen=True, eq=False)
class Outcome:
    """search: which found the solution, of those that divide it the one with the most of the gain;
    None for a start. steps: of each search. seconds: CPU, of all. failed: (status, reason) of each
    search that a program ended. stopped: what ended it early, or None. restarts: of each search.
    """

    solution: Solution
    cost: float
    initial_cost: float
    search: int | None
    steps: list[int]
    seconds: float
    failed: tuple[tuple[str, str], ...]
    stopped: KeyboardInterrupt | None
    restarts: int


@dataclass
class _Member:
    """One search. best: (cost, code) of what it last reported; clock: that of its process."""

    worker: Worker
    best: tuple[float, list[int]] = (math.inf, [])
    solution: Solution = None
    steps: int = 0
    clock: float = 0.0
    seconds: float = 0.0
    read: int = 0  # reports
    ended: bool = False
    go_on_from: list[int] = field(default_factory=list)
    share: int = -1  # which of the division's; -1: none


class Team:
    """All searches of one instance; `run` does them.

    pairs, shown: what each search draws from. starts: one for each search. terms: of
    search 0, 1, ..., by turns if there are fewer; alike but for acceptance and warmth. seed: search
    k has the streams of the rollout with seed + k.
    """

    def __init__(
        self,
        evaluator: LocalEvaluator,
        pairs: Sequence[Pair],
        shown: Sequence[Shown],
        instance: Instance,
        starts: Sequence[Solution],
        terms: Sequence[Terms],
        budget: Budget,
        seed: int = 0,
        progress: Callable[[News], None] = lambda news: None,
    ):
        self._problem, self._instance = evaluator.problem, instance
        self._clock, self._budget, self._seed = terms[0].clock, budget, seed
        self._warm = any(each.warmth > 0 for each in terms)
        self._progress = progress
        self._length = self._problem.code_length(instance)
        self._failed: list[tuple[str, str]] = []
        costs = [self._problem.minimised(instance, start) for start in starts]
        self._first = min(costs)
        self._best: tuple[float, Solution, int | None] = (
            self._first, starts[costs.index(self._first)], None
        )  # fmt: skip
        self._pool: list[tuple[float, list[int]]] = []
        self._cycle, self._cycles, self._mark = 0, 1, 0
        region, size = terms[0].region, instance.size
        divisible = 0 < region < size and can_divide(self._problem)
        self._most_shares = size // (SHARE_REGIONS * region) if divisible else 1
        if min(self._most_shares, len(starts)) > 1:
            starts = [self._best[1]] * len(starts)
        self._division: Division | None = None
        self._joined: Found = (math.inf, [], None)
        workers, place, matrix = evaluator.hire(instance)
        self._members = [_Member(worker) for worker in workers]
        name = (evaluator.seed, instance.digest)
        for k, (member, start) in enumerate(zip(self._members, starts, strict=True)):
            job = SearchJob(
                pairs=tuple(
                    (pair.destroy.source, pair.repair.source, state)
                    for pair, state in zip(pairs, shown, strict=True)
                ),
                instance=instance.digest,
                code_length=self._length,
                start=start,
                terms=terms[k % len(terms)],
                luck_seed=derive("luck", *name, seed + k),
                rng_seed=derive("programs", *name, seed + k),
                memory=evaluator.memory,
                gate_seconds=2 * CHECK_SECONDS * len(pairs),
            )
            member.worker.submit(job, {instance.digest: place}, matrix)
        self._began = time.monotonic()

    # --- the course of a search -------------------------------------------------------------------

    def run(self) -> Outcome:
        """Search until the budget is used up, all have failed, or the user stops it."""
        stopped = None
        try:
            while (used := self._used()) < 1.0 and self._active():
                self._plan(used)
                for member in self._active():
                    member.worker.order(self._order(member))
                    member.go_on_from = []
                in_time = self._wait()
                self._gather()
                if not in_time:
                    break
                self._tell()
        except KeyboardInterrupt as stop:
            take_time()  # what was found is still to be written
            stopped = stop
            self._gather()
        return Outcome(
            solution=self._best[1],
            cost=self._best[0],
            initial_cost=self._first,
            search=self._best[2],
            steps=[member.steps for member in self._members],
            seconds=math.fsum(member.seconds for member in self._members),
            failed=tuple(self._failed),
            stopped=stopped,
            restarts=self._cycle,
        )

    def _active(self) -> list[_Member]:
        return [member for member in self._members if not member.ended]

    @property
    def _span(self) -> float:
        """The whole budget, in steps or seconds of the clock."""
        steps, seconds = self._budget.steps, self._budget.seconds
        if steps is not None:
            return float(steps)
        assert seconds is not None
        return seconds if self._clock == "cpu" else self._budget.until - self._began

    def _used(self) -> float:
        """The share of the budget that is used up."""
        if self._budget.steps is not None:
            spent = float(max((member.steps for member in self._active()), default=0))
        elif self._clock == "cpu":
            spent = min((member.clock for member in self._active()), default=math.inf)
        else:
            spent = time.monotonic() - self._began
        return spent / self._span if self._span > 0 else 1.0

    def _plan(self, used: float) -> None:
        """Exchange the best and restart where it is time."""
        if self._cycles == 1 and used < 0.5 and self._warm:
            fastest = max(member.steps for member in self._members)
            enough = max(LEAST_CYCLE, CYCLE_STEPS * self._instance.size)
            if self._budget.steps is not None:
                self._cycles = max(1, self._budget.steps // enough)
            elif used > 0.02 and fastest:
                self._cycles = max(1, int(fastest / used) // enough)
        cycle = min(int(used * self._cycles), self._cycles - 1)
        known = [member for member in self._active() if member.best[1]]
        if not known:
            if self._shares() > 1:
                code = self._problem.encode(self._instance, self._best[1])
                self._divide(self._best[0], code)
            return
        divided = self._division is not None
        found = [self._joined[:2]] if divided else [member.best for member in known]
        if cycle > self._cycle:
            self._cycle, self._mark = cycle, 0
            self._pool = _pooled(self._pool + found)
            for k, member in enumerate(self._members):
                name = ("restart", self._seed + (0 if divided else k), self._instance.digest, cycle)
                best = python_rng(*name).choice(self._pool)
                member.go_on_from = best[1]
        else:
            mark = int((used * self._cycles - cycle) * EXCHANGES)
            if mark <= self._mark:
                return
            self._mark = mark
            best = min(found)
            for member in known:
                if divided or member.best[0] > best[0]:
                    member.go_on_from = best[1]
        if divided:
            self._divide(*best)

    def _shares(self) -> int:
        """Into how many shares the searches can divide a solution."""
        return min(len(self._active()), self._most_shares)

    def _divide(self, cost: float, code: list[int]) -> None:
        """Let all searches go on from a solution, each within a share of it if there are any."""
        self._division = None
        for member in self._members:
            member.share = -1
        count = self._shares()
        if count < 2:
            return
        seed = derive("division", self._seed, self._instance.digest, self._cycle, self._mark)
        division = divide(self._problem, self._instance, cost, code, count, seed)
        if division is None:
            return
        for k, member in enumerate(self._active()):
            member.share = k % len(division.shares)
            member.best, member.solution = (cost, code), division.start[2]
            member.go_on_from = code
        self._joined = division.start
        self._division = division  # at last: the user may end the search at any moment

    def _join(self, division: Division) -> None:
        """Put together what the searches have made of their shares."""
        made, names = [division.start] * len(division.shares), [-1] * len(division.shares)
        for k, member in enumerate(self._members):
            if member.share >= 0 and member.best[0] < made[member.share][0]:
                made[member.share], names[member.share] = (*member.best, member.solution), k
        lowest = min(range(len(made)), key=lambda share: made[share][0])
        self._joined = made[lowest]
        if names[lowest] < 0:
            return  # none has gained
        joined = join(self._problem, self._instance, division, made)
        if joined is not None and joined[0] < self._joined[0]:
            self._joined = joined
        if self._joined[0] < self._best[0]:
            self._best = (self._joined[0], self._joined[2], names[lowest])

    def _order(self, member: _Member) -> Order:
        """The next leg of a search."""
        timed = self._budget.steps is None
        wall = timed and self._clock == "wall"
        origin = self._began if wall else 0.0
        length = self._span / self._cycles
        begin = origin + self._cycle * length
        steps, until, limit = 1 << 60, math.inf, 0.0
        if self._budget.steps is not None:
            steps = max(1, min(LEG_STEPS, -(-self._budget.steps // LEGS)))
            steps = min(steps, self._budget.steps - member.steps)
            limit = self._budget.cpu_seconds * steps / 500
        else:
            leg = min(LEG_SECONDS, max(self._span / LEGS, 0.02))
            now = time.monotonic() if wall else member.clock
            until = min(now + leg, origin + self._span)
            limit = leg + self._budget.cpu_seconds
        division, kept = self._division, (0, 1, 0)
        if division is not None:
            kept = (member.share, division.asked, division.seed)
        return Order(
            steps, until, limit, begin, begin + length, timed, member.go_on_from, *kept
        )  # fmt: skip

    def _gather(self) -> None:
        """The best of all, in the order of the searches and not of their reports."""
        for k, member in enumerate(self._members):
            cost = member.best[0]
            if cost < self._best[0] or (cost == self._best[0] and k == self._best[2]):
                self._best = (cost, member.solution, k)
        if self._division is not None:
            self._join(self._division)

    def _tell(self) -> None:
        share = min(1.0, self._used())
        spent = time.monotonic() - self._began
        left = spent * (1 - share) / share if share > 0 else None
        self._progress(News(self._best[0], share, left, self._best[1]))

    # --- reports ----------------------------------------------------------------------------------

    def _wait(self) -> bool:
        """Until every active search has reported or ended; False if the time is over before."""
        waiting = {id(member.worker): member for member in self._active()}
        last = self._budget.last
        while waiting:
            owners = {fd: m for m in waiting.values() for fd in m.worker.descriptors}
            patience = min([last, *(m.worker.deadline for m in waiting.values())])
            ready = readable(owners, min(1.0, patience - time.monotonic()))
            now = time.monotonic()
            if now >= last:
                return False
            awake = {id(owners[fd].worker) for fd in ready}
            awake |= {key for key, m in waiting.items() if m.worker.deadline <= now}
            for key in [key for key in waiting if key in awake]:
                if self._attend(waiting[key]):
                    del waiting[key]
        return True

    def _attend(self, member: _Member) -> bool:
        """Read what a search has sent; whether its leg is over."""
        worker = member.worker
        try:
            over = worker.poll()
        except ConnectionError:
            self._end(member, fault(*worker.lost()))
            return True
        done = False
        while member.read < len(worker.reports) and not member.ended:
            report = worker.reports[member.read]
            member.read += 1
            if report.status != Status.OK or report.index == WHOLE_JOB:
                self._end(member, report)
            else:
                done = self._record(member, report)
        if over and not member.ended:
            self._end(member, worker.finish().verdict or fault("the search ended", 0.0))
        return done or member.ended

    def _record(self, member: _Member, report: ChildReport) -> bool:
        """Check a leg's report; whether the search waits for an order."""
        steps, _, clock, failing = LEG.unpack_from(report.payload)
        code = unpadded(np.frombuffer(report.payload, "<i4", offset=LEG.size))
        member.seconds += report.seconds
        try:
            solution = self._problem.decode(self._instance, code)
            cost = self._problem.minimised(self._instance, solution)
        except Exception as error:  # a hostile code may break any problem's decoding
            self._lie(member, report, str(error))
            return True
        if not math.isfinite(cost) or not steps >= member.steps:
            self._lie(member, report, "its numbers are impossible")
            return True
        member.steps, member.clock, member.best = steps, clock, (cost, code)
        member.solution = solution
        return not failing

    def _lie(self, member: _Member, report: ChildReport, what: str) -> None:
        reason = f"the best solution is infeasible: {what}"
        self._end(member, ChildReport(report.index, Status.TAMPERED, reason, report.seconds))

    def _end(self, member: _Member, report: ChildReport) -> None:
        member.ended = True
        self._failed.append((report.status.label, report.what))


def _pooled(found: Sequence[tuple[float, list[int]]]) -> list[tuple[float, list[int]]]:
    """The best few, one of each cost."""
    by_cost: dict[float, list[int]] = {}
    for cost, code in sorted(found):
        by_cost.setdefault(cost, code)
    return [*by_cost.items()][:POOL]

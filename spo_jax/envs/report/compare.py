"""`spo compare`: pairs, baselines and solvers on the same instances, for equal time on equal cores.

One call at a time runs (side by side only the calls of one method, on a core each), in a process of
its own that is bound to its cores. Every solution is checked by the problem's rules and its cost
summed by the problem.
"""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from spo_jax.envs.files.labels import with_unique_names
from spo_jax.envs.gaps import gap_of
from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.report.comparison.methods import Method
from spo_jax.envs.report.comparison.timed import Timed, timed
from spo_jax.envs.report.evaluation import InstanceResult, RolloutResult, Summary, summarise
from spo_jax.envs.report.reference_files import ReferenceFile
from spo_jax.envs.report.solve import SECONDS
from spo_jax.errors import InputError
from spo_jax.stopping import take_time

MISSING = "missing"
BEST_HERE = "the best found here"
PATIENCE, LEAST_PATIENCE = 10.0, 60.0  # times the seconds, at least: then a call is killed
LATE, LATE_SHARE = 0.5, 0.05  # seconds, and share of the time, that count as in time

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class Attempt:
    """One method on one instance with one seed.

    cores: that it could use at the same time. What it came to is `found`; of a method that is not
    installed the status is "missing", and the reason says what to install.
    """

    instance: Instance
    method: Method
    seed: int
    cores: int
    found: Timed

    @property
    def ok(self) -> bool:
        return self.found.status == "ok"


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `spo compare` measures.

    Attributes:
        problem: Of the instances.
        instances: With names of which each is there only once, and with the references that gaps
            are measured from; those of which none was known have the best cost found here, and
            reference_source says so.
        methods: What is compared.
        attempts: By instance, seed and method.
        seconds: That a method could use, of wall-clock time.
        workers: Cores that it could use.
        seeds: Of each method whose seed matters.
        stop: What ended it early, or None.
    """

    problem: Problem
    instances: tuple[Instance, ...]
    methods: tuple[Method, ...]
    attempts: tuple[Attempt, ...]
    seconds: float
    workers: int
    seeds: int
    stop: KeyboardInterrupt | None = None

    def of(self, method: Method, instance: Instance) -> list[Attempt]:
        """A method's attempts on an instance, by seed."""
        return [
            each
            for each in self.attempts
            if each.method is method and each.instance.name == instance.name
        ]

    def instance_of(self, attempt: Attempt) -> Instance:
        """An attempt's instance, with the reference that gaps are measured from."""
        return next(each for each in self.instances if each.name == attempt.instance.name)

    def gap(self, instance: Instance, cost: float) -> float | None:
        """By how many per cent of the instance's reference a cost is worse; None for no number."""
        return gap_of(self.problem, instance, cost)

    def summary(self, method: Method) -> Summary:
        """Mean gap and its interval over the instances, as in the report of `spo evaluate`.

        The interval is over instances, of each the mean over seeds; with one, over its seeds.
        """
        return summarise([self._result(method, instance) for instance in self.instances])

    def ranked(self) -> list[Method]:
        """The methods by their mean gap; last those that have none."""

        def key(method: Method) -> tuple[bool, float, float]:
            found = self.summary(method)
            gap, cost = found.mean_gap, found.mean_cost
            none = gap is None and cost is None
            paid = math.inf if cost is None else self.problem.turned(cost)
            return none, math.inf if gap is None else gap, paid

        return sorted(self.methods, key=key)

    def _result(self, method: Method, instance: Instance) -> InstanceResult:
        rollouts = tuple(
            RolloutResult(
                seed=each.seed,
                status=each.found.status,
                reason=each.found.reason,
                initial_cost=None,
                best_cost=each.found.cost if each.ok else None,
                gap=self.gap(instance, each.found.cost),
                seconds=each.found.seconds if each.ok else None,
                solution=each.found.solution,
            )
            for each in self.of(method, instance)
        )
        return InstanceResult(
            instance.name, instance.size, instance.reference, instance.reference_source,
            instance.certified, rollouts,
        )  # fmt: skip


def compare(
    problem: Problem,
    instances: Sequence[Instance],
    methods: Sequence[Method],
    *,
    seconds: float = SECONDS,
    seeds: int = 1,
    workers: int = 1,
    own: ReferenceFile | None = None,
    progress: Progress = lambda what, done, total: None,
    keep: Callable[[Attempt], None] = lambda attempt: None,
) -> Comparison:
    """Run every method on every instance with seeds 0, 1, ..., seeds - 1, one after another.

    A KeyboardInterrupt ends it; what is finished is returned, without the attempt under way.

    Args:
        problem: Of the instances.
        instances: To solve.
        methods: To compare.
        seconds: Of wall-clock time for each.
        seeds: How many.
        workers: Cores for each; see `methods` for what one does with several.
        own: References of the user's.
        progress: Is told what is done, of how many.
        keep: Is given each attempt when it ends.

    Returns:
        All attempts, and what gaps are measured from.

    Raises:
        InputError: Numbers are out of range, or there are more workers than this process has cores.
    """
    from spo_jax.envs.report.references import known

    cores = usable(seconds, seeds, workers)
    instances = with_unique_names([known(problem, each, own=own) or each for each in instances])
    plan = [
        (instance, seed, method)
        for instance in instances
        for seed in range(seeds)
        for method in methods
        if seed == 0 or (method.seeded and not method.missing)
    ]
    attempts: list[Attempt] = []
    stop = None
    try:
        for done, (instance, seed, method) in enumerate(plan):
            progress(f"{instance.name}: {method.name}", done, len(plan))
            calls = method.calls(instance, seed, seconds, cores)
            used = sum(len(call.cores) for call in calls)
            if method.missing:
                found = Timed(MISSING, method.missing, None, math.inf, (), math.nan, math.nan)
            else:
                found = timed(problem, calls, max(LEAST_PATIENCE, PATIENCE * seconds))
                found = _as_costs(problem, found)
            attempt = Attempt(instance, method, seed, used, found)
            attempts.append(attempt)
            keep(attempt)
        progress("compared", len(plan), len(plan))
    except KeyboardInterrupt as error:
        take_time()  # what was found is still to be written
        stop = error
    known_now = tuple(_with_best(problem, each, attempts) for each in instances)
    return Comparison(
        problem, known_now, tuple(methods), tuple(attempts), seconds, workers, seeds, stop
    )


def usable(seconds: float, seeds: int, workers: int) -> list[int]:
    """The cores of the methods: the last ones, as others mostly use the first.

    Raises InputError as `compare` does.
    """
    cores = sorted(os.sched_getaffinity(0))
    if not 0 < seconds <= 1e6:
        raise InputError(f"the time must be between 0 and a million seconds, not {seconds:g}")
    if seeds < 1 or workers < 1:
        raise InputError("seeds and workers must be at least 1")
    if workers > len(cores):
        raise InputError(
            f"--workers is {workers}, but this process may use {len(cores)} core(s): with fewer "
            "cores than workers the methods would not have equal time"
        )
    return cores[-workers:]


def late(attempt: Attempt, seconds: float) -> bool:
    """Whether an attempt took clearly longer than it could."""
    return attempt.ok and attempt.found.seconds > seconds * (1 + LATE_SHARE) + LATE


def _as_costs(problem: Problem, found: Timed) -> Timed:
    """What was found, with costs in place of what is minimised."""
    curve = tuple((second, problem.turned(cost)) for second, cost in found.curve)
    return replace(found, cost=problem.turned(found.cost), curve=curve)


def _with_best(problem: Problem, instance: Instance, attempts: Sequence[Attempt]) -> Instance:
    """The instance with a reference: if none is known the best cost found here."""
    if instance.reference is not None:
        return instance
    costs = [each.found.cost for each in attempts if each.ok and each.instance is instance]
    if not costs:
        return instance
    best = min(costs, key=problem.turned)
    return replace(instance, reference=best, reference_source=BEST_HERE)

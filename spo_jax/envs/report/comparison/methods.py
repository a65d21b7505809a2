"""What `spo compare` runs: pairs, the problem's construction and baselines, and solvers of a user.

A method is a function (instance, seed) -> solution with these optional keywords, which it takes by
having a parameter of that name:

- seconds: of wall-clock time that it may take. One without it ends by itself.
- report: a function that it calls with each new best solution, for the curve over time.
- workers: cores that it may use. One without it, whose seed matters, runs once on each core with
  another seed, and the best counts.

`spo baseline` runs the same functions.
"""

import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spo_jax.constants import ALL
from spo_jax.envs.kits import load_kit
from spo_jax.envs.problem import Instance, Problem, Solution
from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.baselines import get_baseline
from spo_jax.envs.report.comparison.timed import Call, Counted
from spo_jax.envs.report.solve import default_start, solve
from spo_jax.envs.run.jobs.parallel_search import News
from spo_jax.errors import InputError, MissingExtra
from spo_jax.program import Pair

CONSTRUCTION = "construction"


@dataclass(frozen=True)
class Method:
    """One row of a comparison.

    solve: or its "package.module:NAME", so that it is imported where it runs. takes: which of the
    keywords. seeded: whether the seed matters. modules: that it needs. missing: why it cannot run
    here, or "".
    """

    name: str
    solve: Callable[..., Solution] | str
    takes: frozenset[str] = frozenset()
    seeded: bool = True
    modules: tuple[str, ...] = ()
    missing: str = ""

    def calls(
        self, instance: Instance, seed: int, seconds: float, cores: Sequence[int]
    ) -> list[Call]:
        """The calls for one seed, that run side by side; together they use no more than `cores`."""
        options: dict[str, Any] = {"seconds": seconds} if "seconds" in self.takes else {}
        if "workers" in self.takes:
            options["workers"] = len(cores)
            groups = [frozenset(cores)]
        else:
            groups = [frozenset([core]) for core in cores[: None if self.seeded else 1]]
        first = seed * len(cores)  # so that no stream of random numbers serves twice
        return [
            Call(
                self.solve, instance, first + k, options, self.modules, "report" in self.takes, own
            )
            for k, own in enumerate(groups)
        ]


@dataclass(frozen=True)
class PairSearch:
    """The search of `spo solve` with one pair. terms: what of `solve` differs for the pair."""

    problem: str
    pair: Pair
    terms: Mapping[str, Any]

    def __call__(
        self,
        instance: Instance,
        seed: int,
        *,
        seconds: float,
        workers: int,
        report: Callable[[Solution], None],
    ) -> Solution:
        began = time.monotonic()
        problem = get_problem(self.problem)
        terms = {"start": default_start(problem), **self.terms}
        start: Any = terms.pop("start")
        if start == CONSTRUCTION:
            start = problem.construct(instance)
            report(start)
        reported = [float("inf")]

        def tell(news: News) -> None:
            if (paid := problem.turned(news.cost)) < reported[0]:
                reported[0] = paid
                report(news.solution)

        found = solve(
            instance, self.pair, problem, start=start, seconds=seconds, began=began, seed=seed,
            workers=workers, progress=tell, **terms,
        )  # fmt: skip
        return Counted(found.solution, found.steps) if found.searches else found.solution


@dataclass(frozen=True)
class Construction:
    """The problem's construction, where `spo solve` starts."""

    problem: str

    def __call__(self, instance: Instance, seed: int) -> Solution:
        return get_problem(self.problem).construct(instance)


def methods_of(
    problem: Problem,
    pairs: Mapping[str, tuple[Pair, Mapping[str, Any]]],
    against: Iterable[str] = (ALL,),
) -> list[Method]:
    """The methods of a comparison, in order.

    pairs: by the name of their row, with the terms of their search.
    against: names of baselines, "construction", "package.module:NAME" or "all".

    Raises InputError for a name that is none, where there is nothing to compare, and for pairs
    whose kit cannot be used: else that would be said after all other methods had their time.
    """
    if pairs:
        load_kit(problem)
    found = [
        Method(name, PairSearch(problem.spec, pair, terms),
               frozenset(["seconds", "workers", "report"]))
        for name, (pair, terms) in pairs.items()
    ]  # fmt: skip
    ours = [CONSTRUCTION] if problem.offers("construct") else []
    for name in against:
        for each in [*ours, *problem.baselines] if name == ALL else [name]:
            if not any(each == method.name for method in found):
                found.append(_method(problem, each))
    if not found:
        raise InputError(f"there is nothing to compare: the problem {problem.name} has no pair")
    return found


def _method(problem: Problem, name: str) -> Method:
    if name == CONSTRUCTION and problem.offers("construct"):
        return Method(name, Construction(problem.spec), seeded=False)
    declared = problem.baselines.get(name)
    modules = () if declared is None or declared.needs is None else (declared.needs[0],)
    try:
        known = get_baseline(name, problem)
    except MissingExtra as error:
        return Method(name, "", missing=str(error))
    keywords = {"seconds", "report", "workers"} & {*inspect.signature(known.solve).parameters}
    return Method(name, known.function, frozenset(keywords), known.seeded, modules)

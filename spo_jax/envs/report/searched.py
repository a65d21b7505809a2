"""What `spo solve` says: how far it is, and what it found.

Where there is no terminal it needs no rich, which takes a while to import.
"""

from typing import TYPE_CHECKING, TextIO

from spo_jax.envs.files.textfiles import cost_text, shown_cost
from spo_jax.envs.gaps import gap_of
from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.report.solve import Solved
from spo_jax.envs.run.acceptance import PAPER
from spo_jax.envs.run.jobs.parallel_search import News
from spo_jax.envs.run.starts import RANDOM
from spo_jax.envs.run.states import HIDDEN_STATE, STAGNATION

if TYPE_CHECKING:
    from rich.progress import Progress


class Searched:
    """Progress of `spo solve` on a terminal: that it reads; the best cost, its gap, the time left.
    Else nothing.

    path: of the instance, which `starts` tells once it is read.
    """

    def __init__(self, bar: TextIO, path: str):
        self._bar = _bar(bar) if bar.isatty() else None
        if self._bar is not None:
            self._task = self._bar.add_task(f"{path}: reading", total=None, left="")

    def __enter__(self) -> "Searched":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def starts(self, problem: Problem, instance: Instance) -> None:
        """What is read, and searched from now on."""
        self._problem, self._instance = problem, instance
        if self._bar is not None:
            self._bar.update(self._task, description=f"{instance.name}: starting", total=1.0)

    def __call__(self, news: News) -> None:
        if self._bar is None:
            return
        gap = gap_of(self._problem, self._instance, news.cost)
        gap_text = "" if gap is None else f", gap {gap:.2f}%"
        left = "" if news.left is None else f"{news.left:.0f} s left"
        text = f"{self._instance.name}: best {shown_cost(news.cost)}{gap_text}"
        self._bar.update(self._task, description=text, completed=news.share, left=left)


def _bar(file: TextIO) -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", markup=False),
        console=Console(file=file, markup=False, highlight=False),
        transient=True,
    )


def conditions(
    state: str = STAGNATION, on_invalid: str = "fail", acceptance: str = PAPER, start: str = RANDOM
) -> list[str]:
    """Settings of a rollout that differ from the defaults: a pair runs as it was discovered."""
    lines = []
    if state == HIDDEN_STATE:
        lines.append("discovered without the LNS state: steps_since_improvement is 0 at every step")
    elif state != STAGNATION:
        lines.append(f"programs are shown the state {state} (state)")
    if on_invalid == "skip":
        lines.append("an infeasible candidate is a rejected step (on_invalid = skip)")
    if acceptance != PAPER:
        lines.append(f"worse solutions are accepted by {acceptance} (acceptance)")
    if start != RANDOM:
        lines.append(f"the first solution is {start} (start)")
    return lines


def solved_lines(found: Solved, word: str = "cost") -> list[str]:
    """Cost, gap and effort of a solution; word: `Problem.word`."""
    instance = found.instance
    if found.gap is None:
        source = instance.reference_source
        gap = "gap unknown" + (f" ({source})" if source != Instance.reference_source else "")
    else:
        reference = cost_text(instance.reference or 0.0)
        gap = f"gap {found.gap:.3f}% to {reference} ({instance.reference_source})"
    searches = f"{found.searches} search" + ("es" if found.searches != 1 else "")
    times = "once" if found.restarts == 1 else f"{found.restarts} times"
    restarts = f", each restarted {times}" if found.restarts else ""
    effort = (
        f"started at {shown_cost(found.initial_cost)}; {found.steps} steps in {searches}"
        f"{restarts}; {found.seconds:.2f} CPU seconds"
    )
    lines = [
        f"{instance.name}: {word} {shown_cost(found.cost)}{_in_routes(found)}, {gap}",
        effort if found.searches else "too small to search: this is the best of all solutions",
    ]
    if found.stop is not None:
        lines.append("stopped early: this is the best so far")
    elif found.searches and not found.steps and not found.failed:
        lines.append("no step ended in time: this is the start")
    if found.failed:
        status, reason = found.failed[0]
        lines.append(f"{len(found.failed)} of {found.searches} searches failed: {status}: {reason}")
    return lines


def _in_routes(found: Solved) -> str:
    """How many routes a solution has, where there are routes."""
    if found.instance.demands is None or not all(isinstance(each, list) for each in found.solution):
        return ""
    routes = sum(map(bool, found.solution))
    return f" in {routes} route{'s' * (routes != 1)}"

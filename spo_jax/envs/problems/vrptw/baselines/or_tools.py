"""Google OR-Tools' routing solver on the VRPTW, with the time limits that the CVRP has."""

from collections.abc import Callable

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.cvrp.baselines.or_tools import time_limit
from spo_jax.envs.problems.cvrp.files.cvrplib import demands_of
from spo_jax.envs.problems.cvrp.rules import Routes
from spo_jax.envs.problems.or_tools import LARGEST, routed
from spo_jax.envs.problems.vrptw.baselines.references import scaled_times


def or_tools(
    instance: Instance,
    seed: int = 0,
    *,
    seconds: float | None = None,
    report: Callable[[Routes], None] | None = None,
) -> Routes:
    """The best routes of `time_limit` seconds of CPU time. The seed changes nothing.

    seconds: of wall-clock time, instead. report: is told each new best. Raises MissingExtra without
    OR-Tools, Infeasible if it finds no routes in that time.
    """
    times = scaled_times(instance, LARGEST)
    return routed(
        times.weights,
        instance.size,
        demands_of(instance),
        (times.durations + times.service[:, None], times.early, times.late),
        seconds=time_limit(instance.size) if seconds is None else seconds,
        cpu=seconds is None,
        report=report,
    )

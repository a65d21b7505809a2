"""Google OR-Tools' routing solver on the CVRP, by default under the time limits of Appendix C.

The paper names limits and no settings. Wall-clock time on a busy machine cuts the search short
without a word, so the limits of Appendix C are of CPU time, the same on an idle machine. A result
still depends on the speed of the machine.
"""

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.cvrp.baselines.references import NEVER, limited_times
from spo_jax.envs.problems.cvrp.files.cvrplib import demands_of
from spo_jax.envs.problems.cvrp.limits import limits_of
from spo_jax.envs.problems.or_tools import LARGEST, routed
from spo_jax.envs.problems.tsp.files.weights import scaled

# Appendix C: up to so many customers, so many seconds of search.
_SIZES = (20, 50, 100, 150, 200, 500, 750)
_SECONDS = (1, 2, 5, 8, 10, 30, 60, 120)


def time_limit(size: int) -> int:
    """Seconds of search for `size` customers."""
    return _SECONDS[bisect_left(_SIZES, size)]


def fleet(instance: Instance) -> int:
    """Vehicles that are enough for some cheapest routes, the fleet being free.

    Where two routes fit into one vehicle, joining them costs no more (triangle inequality). In
    routes of which no two fit, every pair carries more than one vehicle can, so there are fewer
    than twice as many as the whole demand fills. With limits, all that there may be.
    """
    demands, capacity = demands_of(instance)
    if (limits := limits_of(instance)) is not None:
        return min(instance.size, limits.max_vehicles)
    return min(instance.size, max(1, 2 * -(-int(demands.sum()) // capacity) - 1))


def or_tools(
    instance: Instance,
    seed: int = 0,
    *,
    seconds: float | None = None,
    report: Callable[[list[list[int]]], None] | None = None,
) -> list[list[int]]:
    """The best routes of `time_limit` seconds of CPU time. The seed changes nothing.

    seconds: of wall-clock time, instead. report: is told each new best. Raises MissingExtra without
    OR-Tools, Infeasible if it finds no routes in that time.
    """
    limit = time_limit(instance.size) if seconds is None else seconds
    return routed(
        **_model(instance),
        seconds=limit,
        cpu=seconds is None,
        report=report,
    )


def or_tools_default(instance: Instance, seed: int = 0) -> list[list[int]]:
    """The routes at which local search ends, without a metaheuristic. The seed changes nothing.

    Raises MissingExtra without OR-Tools, Infeasible if it finds no routes.
    """
    return routed(**_model(instance), seconds=None)


def _model(instance: Instance) -> dict[str, Any]:
    """The arguments of `routed`."""
    given = {"vehicles": fleet(instance), "load": demands_of(instance)}
    if (limits := limits_of(instance)) is None:
        return given | {"weights": scaled(instance.dist, LARGEST)}
    times = limited_times(instance, limits, LARGEST)
    bounds = (times.weights, times.longest), (times.durations + times.service, times.lasting)
    return given | {
        "weights": times.weights,
        "bounds": [(counted, most) for counted, most in bounds if most < NEVER],
    }

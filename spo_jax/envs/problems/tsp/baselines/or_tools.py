"""Google OR-Tools' routing solver on the TSP: one vehicle that nothing limits.

The paper runs it on the CVRP alone.
"""

from collections.abc import Callable

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.or_tools import LARGEST, routed
from spo_jax.envs.problems.tsp.files.weights import scaled

SECONDS = 10.0


def or_tools(
    instance: Instance,
    seed: int = 0,
    *,
    seconds: float = SECONDS,
    report: Callable[[list[int]], None] | None = None,
) -> list[int]:
    """The best tour of so many seconds of wall-clock time. The seed changes nothing.

    report: is told each new best. Raises MissingExtra without OR-Tools, Infeasible if it finds no
    tour in that time.
    """

    def tell(routes: list[list[int]]) -> None:
        if report is not None:
            report([0, *routes[0]])

    weights = scaled(instance.dist, LARGEST)
    [route] = routed(weights, 1, seconds=seconds, report=tell)
    return [0, *route]


def or_tools_default(instance: Instance, seed: int = 0) -> list[int]:
    """The tour at which local search ends, without a metaheuristic. The seed changes nothing.

    Raises MissingExtra without OR-Tools, Infeasible if it finds no tour.
    """
    [route] = routed(scaled(instance.dist, LARGEST), 1, seconds=None)
    return [0, *route]

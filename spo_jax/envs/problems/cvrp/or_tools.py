"""Google OR-Tools' routing solver on the CVRP, under the time limits of Appendix C.

The paper names limits and no settings; these are those of OR-Tools' own CVRP example: first the
cheapest arc of each path, then guided local search, which without a limit would not end. OR-Tools
can only limit wall-clock time, which on a busy machine cuts the search short without a word. So we
limit the search's CPU time, the same on an idle machine: each new solution that it passes through
asks whether the time is up. A result still depends on the speed of the machine.
"""

import time
from bisect import bisect_left
from typing import Any

from spo_jax.envs.problem import Infeasible, Instance
from spo_jax.envs.problems.cvrp.files import demands_of
from spo_jax.envs.problems.tsp.weights import scaled
from spo_jax.errors import MissingExtra

# Appendix C: up to so many customers, so many seconds of search.
_SIZES = (20, 50, 100, 150, 200, 500, 750)
_SECONDS = (1, 2, 5, 8, 10, 30, 60, 120)
_LARGEST = 1_000_000  # the largest scaled edge; OR-Tools works on integers
_PATIENCE = 100  # seconds of wall-clock time for a second of search, should no solution ask


def time_limit(size: int) -> int:
    """Seconds of search for `size` customers."""
    return _SECONDS[bisect_left(_SIZES, size)]


def fleet(instance: Instance) -> int:
    """Vehicles that are enough for some cheapest routes, the fleet being free.

    Where two routes fit into one vehicle, joining them costs no more (triangle inequality). In
    routes of which no two fit, every pair carries more than one vehicle can, so there are fewer
    than twice as many as the whole demand fills.
    """
    demands, capacity = demands_of(instance)
    return min(instance.size, max(1, 2 * -(-int(demands.sum()) // capacity) - 1))


def or_tools(instance: Instance, seed: int = 0, *, seconds: float | None = None) -> list[list[int]]:
    """The best routes of `seconds` of search, by default `time_limit`. The seed changes nothing.

    Raises MissingExtra without OR-Tools, Infeasible if it finds no routes in that time.
    """
    try:
        from ortools.constraint_solver import pywrapcp, routing_enums_pb2
    except ImportError:
        raise MissingExtra("ortools", "solvers") from None
    demands, capacity = demands_of(instance)
    vehicles = fleet(instance)
    manager = pywrapcp.RoutingIndexManager(len(instance.dist), vehicles, 0)
    routing = pywrapcp.RoutingModel(manager)
    weights = scaled(instance.dist, _LARGEST).tolist()
    routing.SetArcCostEvaluatorOfAllVehicles(routing.RegisterTransitMatrix(weights))
    demand = routing.RegisterUnaryTransitVector(demands.tolist())
    routing.AddDimensionWithVehicleCapacity(demand, 0, [capacity] * vehicles, True, "load")
    parameters: Any = pywrapcp.DefaultRoutingSearchParameters()
    parameters.first_solution_strategy = routing_enums_pb2.FirstSolutionStrategy.PATH_CHEAPEST_ARC
    parameters.local_search_metaheuristic = (
        routing_enums_pb2.LocalSearchMetaheuristic.GUIDED_LOCAL_SEARCH
    )
    limit = time_limit(instance.size) if seconds is None else seconds
    parameters.time_limit.FromMilliseconds(round(1000 * limit * _PATIENCE))
    end = time.thread_time() + limit

    def stop_in_time() -> None:
        if time.thread_time() >= end:
            routing.solver().FinishCurrentSearch()

    routing.AddAtSolutionCallback(stop_in_time)
    solution = routing.SolveWithParameters(parameters)
    if solution is None:
        raise Infeasible(f"OR-Tools found no feasible routes in {limit:g} s")
    routes = []
    for vehicle in range(vehicles):
        index, route = solution.Value(routing.NextVar(routing.Start(vehicle))), []
        while not routing.IsEnd(index):
            route.append(manager.IndexToNode(index))
            index = solution.Value(routing.NextVar(index))
        if route:
            routes.append(route)
    return routes

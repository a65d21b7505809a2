"""Google OR-Tools' routing solver, as each problem's `or_tools` calls it.

The settings are those of OR-Tools' own examples of the TSP and the CVRP: first the cheapest arc of
each path, then guided local search, which without a limit would not end. The first of these
examples leave it out: then local search ends by itself, where no move improves. It uses one thread.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spo_jax.envs.problem import Infeasible
from spo_jax.errors import MissingExtra

Routes = list[list[int]]

LARGEST = 1_000_000  # the largest scaled edge; OR-Tools works on integers
PATIENCE = 100  # seconds of wall-clock time for one of CPU time, should no solution ask


def routed(
    weights: np.ndarray,
    vehicles: int,
    load: tuple[np.ndarray, int] | None = None,
    times: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    bounds: Sequence[tuple[np.ndarray, int]] = (),
    *,
    seconds: float | None,
    cpu: bool = False,
    report: Callable[[Routes], None] | None = None,
) -> Routes:
    """The best routes from node 0 and back, without it, that are found in time; none is empty.

    seconds: of guided local search; None for local search alone, until no move improves.

    weights: [N, N] int64, the lengths of edges, at most LARGEST. load: demands [N] and the capacity
    of a vehicle. times: [N, N] int64 from the beginning of service at a node to the arrival at the
    next, and [N] each, when service may begin at the earliest and at the latest. bounds: [N, N]
    int64, what each way counts, and the most that a route may sum up to. cpu: whether
    seconds are those of this thread's CPU time, which a busy machine does not cut short, and not
    wall-clock time. OR-Tools can only limit the latter, so each solution that it passes through
    asks. report: is told each new best.

    Raises MissingExtra without OR-Tools, Infeasible if it finds no routes in that time.
    """
    try:
        from ortools.constraint_solver import pywrapcp, routing_enums_pb2
    except ImportError:
        raise MissingExtra("ortools", "solvers") from None
    began = time.monotonic()
    end = math.inf if seconds is None else time.thread_time() + seconds
    manager = pywrapcp.RoutingIndexManager(len(weights), vehicles, 0)
    routing = pywrapcp.RoutingModel(manager)
    lengths = routing.RegisterTransitMatrix(weights.tolist())
    routing.SetArcCostEvaluatorOfAllVehicles(lengths)
    if load is not None:
        demand = routing.RegisterUnaryTransitVector(load[0].tolist())
        limits = [load[1]] * vehicles
        routing.AddDimensionWithVehicleCapacity(demand, 0, limits, True, "load")
    for k, (counted, most) in enumerate(bounds):
        way = routing.RegisterTransitMatrix(counted.tolist())
        routing.AddDimension(way, 0, most, True, f"bound {k}")
    if times is not None:
        taken = routing.RegisterTransitMatrix(times[0].tolist())
        horizon = int(times[2][0])
        routing.AddDimension(taken, horizon, horizon, False, "time")
        clock = routing.GetDimensionOrDie("time")
        for node, (early, late) in enumerate(zip(*times[1:], strict=True)):
            if node:
                index = manager.NodeToIndex(node)
                clock.CumulVar(index).SetRange(int(early), min(int(late), horizon))
        for vehicle in range(vehicles):
            clock.CumulVar(routing.Start(vehicle)).SetRange(int(times[1][0]), horizon)
    parameters: Any = pywrapcp.DefaultRoutingSearchParameters()
    parameters.first_solution_strategy = routing_enums_pb2.FirstSolutionStrategy.PATH_CHEAPEST_ARC
    if seconds is not None:
        parameters.local_search_metaheuristic = (
            routing_enums_pb2.LocalSearchMetaheuristic.GUIDED_LOCAL_SEARCH
        )
        left = seconds * PATIENCE if cpu else seconds - (time.monotonic() - began)
        parameters.time_limit.FromMilliseconds(max(1, round(1000 * left)))
    lowest: int | None = None

    def routes_by(follower: Callable[[int], int]) -> Routes:
        routes = []
        for vehicle in range(vehicles):
            index, route = follower(routing.Start(vehicle)), []
            while not routing.IsEnd(index):
                route.append(manager.IndexToNode(index))
                index = follower(index)
            if route:
                routes.append(route)
        return routes

    def at_solution() -> None:
        nonlocal lowest
        if report is not None:
            cost = routing.CostVar().Value()
            if lowest is None or cost < lowest:
                lowest = cost
                report(routes_by(lambda index: routing.NextVar(index).Value()))
        if cpu and time.thread_time() >= end:
            routing.solver().FinishCurrentSearch()

    routing.AddAtSolutionCallback(at_solution)
    solution = routing.SolveWithParameters(parameters)
    if solution is None:
        within = "" if seconds is None else f" in {seconds:g} s"
        raise Infeasible(f"OR-Tools found no feasible routes{within}")
    return routes_by(lambda index: solution.Value(routing.NextVar(index)))

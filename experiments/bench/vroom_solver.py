"""VROOM as a solver of `spo compare`: `--against vroom_solver:vroom` (needs pyvroom)."""

from datetime import timedelta
from typing import Any

import numpy as np

# VROOM counts in whole numbers, and refuses those whose sum over all customers could overflow.
BOUND = 5e8


def vroom(instance: Any, seed: int, *, seconds: float = 10.0) -> list[list[int]]:
    """Routes of a CVRP or VRPTW by VROOM, whose search draws nothing and ends by itself.

    Args:
        instance: With a limit of a route's length, a duration, windows and service times if it has
            some.
        seed: Has no effect.
        seconds: Of wall-clock time at most.

    Raises:
        RuntimeError: A customer is in no route.
    """
    import vroom as library  # not before a process of its own needs it

    extra = instance.extra
    times = [extra[name] for name in ("ready", "due", "service") if name in extra]
    largest = max(float(instance.dist.max()), *(float(np.max(each)) for each in times), 1e-9)
    scale = BOUND / (largest * len(instance.dist))

    def whole(value: float, up: bool = True) -> int:
        """Rounded so that what is feasible here is feasible there."""
        return int(np.ceil(value * scale - 1e-6) if up else np.floor(value * scale + 1e-6))

    customers = range(1, len(instance.dist))
    of_vehicle: dict[str, Any] = {"start": 0, "end": 0, "capacity": [int(instance.capacity)]}
    # A duration has service times in it, which VROOM's longest travel time leaves out.
    closes = extra["due"][0] if "due" in extra else extra.get("max_duration", np.inf)
    if np.isfinite(closes):
        opens = extra["ready"][0] if "ready" in extra else 0.0
        of_vehicle["time_window"] = library.TimeWindow(whole(opens), whole(closes, up=False))
    if np.isfinite(longest := extra.get("max_distance", np.inf)):
        of_vehicle["max_travel_time"] = whole(longest, up=False)
    problem = library.Input()
    matrix = np.ceil(np.asarray(instance.dist) * scale - 1e-6).astype(np.uint32)
    problem.set_durations_matrix("car", matrix)
    vehicles = min(int(extra.get("max_vehicles", len(customers))), len(customers))
    problem.add_vehicle([library.Vehicle(1 + k, **of_vehicle) for k in range(vehicles)])
    jobs = []
    for node in customers:
        windows = []
        if "due" in extra:
            ready, due = extra["ready"][node], extra["due"][node]
            windows = [library.TimeWindow(whole(ready), whole(due, up=False))]
        service = whole(extra["service"][node]) if "service" in extra else 0
        demand = [int(instance.demands[node])]
        jobs.append(library.Job(node, node, 0, service, delivery=demand, time_windows=windows))
    problem.add_job(jobs)
    found = problem.solve(
        exploration_level=5, nb_threads=1, timeout=timedelta(seconds=0.9 * seconds)
    )
    if found.summary.unassigned:
        raise RuntimeError(f"VROOM left {found.summary.unassigned} customers out")
    stops = found.routes[found.routes["type"] == "job"]
    return [list(map(int, route["id"])) for _, route in stops.groupby("vehicle_id", sort=True)]

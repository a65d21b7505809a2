"""The job shop by OR-Tools' CP-SAT: an interval for each operation, none overlaps another."""

import numpy as np

from spo_jax.envs.problem import Infeasible
from spo_jax.errors import MissingExtra


def cp_sat(instance, seed, *, seconds=10.0):
    """The best order that CP-SAT finds on one core."""
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise MissingExtra("ortools", "solvers") from None
    machines, times = instance.extra.values()
    latest = int(times.sum())
    model = cp_model.CpModel()
    makespan = model.new_int_var(0, latest, "makespan")
    begins, uses = {}, {}
    for job, k in np.ndindex(times.shape):
        begin, time = model.new_int_var(0, latest, ""), int(times[job, k])
        if k:
            model.add(begin >= begins[job, k - 1] + int(times[job, k - 1]))
        model.add(makespan >= begin + time)
        interval = model.new_fixed_size_interval_var(begin, time, "")
        uses.setdefault(machines[job, k], []).append(interval)
        begins[job, k] = begin
    for intervals in uses.values():
        model.add_no_overlap(intervals)
    model.minimize(makespan)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise Infeasible(f"CP-SAT found no order in {seconds:g} s")
    return sorted(begins, key=lambda each: solver.value(begins[each]))

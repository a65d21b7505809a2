"""The multidimensional knapsack by OR-Tools' CP-SAT: a Boolean for each item."""

from spo_jax.envs.problem import Infeasible
from spo_jax.errors import MissingExtra


def cp_sat(instance, seed, *, seconds=10.0):
    """The best items that CP-SAT finds on one core."""
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise MissingExtra("ortools", "solvers") from None
    profits, weights, capacities = (array.tolist() for array in instance.extra.values())
    model = cp_model.CpModel()
    taken = [model.new_bool_var("") for _ in profits]
    for resource, capacity in enumerate(capacities):
        model.add(sum(row[resource] * x for row, x in zip(weights, taken, strict=True)) <= capacity)
    model.maximize(sum(profit * x for profit, x in zip(profits, taken, strict=True)))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise Infeasible(f"CP-SAT found no items in {seconds:g} s")
    return [item for item, x in enumerate(taken) if solver.boolean_value(x)]

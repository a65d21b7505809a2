"""Problems, found by name."""

from spo_jax.envs.problem import Problem
from spo_jax.errors import InputError
from spo_jax.named import imported, require_members

PROBLEMS = {
    "tsp": "spo_jax.envs.problems.tsp.rules:TSP",
    "cvrp": "spo_jax.envs.problems.cvrp.rules:CVRP",
}


def get_problem(name: str) -> Problem:
    """The problem called "tsp" or "cvrp", or any other by "package.module:OBJECT".

    Raises InputError where there is none, and for what is no `Problem`.
    """
    spec = PROBLEMS.get(name, name)
    problem = imported("problem", spec, ", ".join(PROBLEMS), "OBJECT")
    if spec == name:
        _require_problem(name, problem)
    return problem


def _require_problem(name: str, problem: Problem) -> None:
    what = f"problem {name!r}"
    require_members(what, problem, Problem)
    if problem.spec == name:
        return
    again = imported("problem", problem.spec, ", ".join(PROBLEMS), "OBJECT")
    if type(again) is not type(problem):  # or the workers would play another problem's rules
        raise InputError(f"{what}: its spec is {problem.spec!r}, by which another one is found")

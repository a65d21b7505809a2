"""Problems, the sandbox that runs programs on them, and what a run is worth."""

import importlib

from spo_jax.envs.problem import Problem
from spo_jax.errors import InputError

PROBLEMS = {"tsp": "spo_jax.envs.tsp:TSP", "cvrp": "spo_jax.envs.cvrp:CVRP"}


def get_problem(name: str) -> Problem:
    """The problem called "tsp" or "cvrp", or any other by "package.module:OBJECT"."""
    spec = PROBLEMS.get(name, name)
    module, colon, attribute = spec.partition(":")
    if not colon:
        known = ", ".join(PROBLEMS)
        raise InputError(f"unknown problem {name!r}: use {known}, or 'package.module:OBJECT'")
    try:
        problem = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"cannot find problem {name!r}: {error}") from None
    return problem() if isinstance(problem, type) else problem

"""Stochastic grammars of operator programs, found by problem and role.

They are readable Python as a person would write it, with a strategy sentence each: a generator
that needs no language model, a baseline, and the corpus of the small one that ships.
"""

import importlib

from spo_jax.errors import InputError
from spo_jax.program import ROLES, Role
from spo_jax.program.grammar.base import Grammar

PROBLEMS = ("tsp", "cvrp")


def get_grammar(problem: str, role: Role) -> Grammar:
    """The grammar of one role's programs. Raises InputError where there is none."""
    if problem not in PROBLEMS:
        known = ", ".join(PROBLEMS)
        raise InputError(f"no grammar for problem {problem!r}: there is one for each of {known}")
    if role not in ROLES:
        raise InputError(f"unknown role {role!r}: a role is 'destroy' or 'repair'")
    module = importlib.import_module(f"spo_jax.envs.problems.{problem}.grammar.{role}")
    grammar: Grammar = module.GRAMMAR
    return grammar

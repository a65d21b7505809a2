"""The program that some methods begin with, which a person wrote and no budget counts.

A method's setting `seed` is "none", "simple" (the trivial design that the problem brings), or the
path of a pair file. "auto", the default, is "simple" for a writer of prose, where the problem
brings one: published methods begin so, but SPO's prompt forms have no place for it. It is evaluated
in round 1 and kept as an individual, so later rounds need no file.
"""

import ast
from pathlib import Path

from spo_jax.envs.problem import Problem
from spo_jax.errors import InputError
from spo_jax.peers.pairs import scores_of
from spo_jax.program import ROLES, Program, Role, load_pair
from spo_jax.search.parts import Parts
from spo_jax.search.payoffs import Table
from spo_jax.search.rounds import Individual
from spo_jax.search.sampling.start import StartPair, opening, require_runnable

AUTO, NONE, SIMPLE = "auto", "none", "simple"
SEED = "seed"  # the operator of its individual


def describe_seed(seed: str, prose: bool) -> str:
    """Where a run begins, for the sentence that names a method."""
    if seed == NONE or (seed == AUTO and not prose):
        return "no seed program"
    if seed in (AUTO, SIMPLE):
        known = ", if it brings one" if seed == AUTO else ""
        return f"it begins with the problem's trivial program{known}"
    return f"it begins with {seed}"


def seed_pair(problem: Problem, seed: str, prose: bool) -> StartPair | None:
    """The pair that `seed` names. Raises InputError for one that cannot be had."""
    if seed == AUTO:
        seed = SIMPLE if prose and problem.simple else NONE
    if seed == NONE:
        return None
    if seed == SIMPLE and not problem.simple:
        raise InputError(
            f"method_settings: seed is {SIMPLE}, and problem {problem.name} brings no such pair; "
            f"say seed=FILE.py, or seed={NONE}"
        )
    path = Path(problem.simple if seed == SIMPLE else seed)
    return StartPair.of(seed, load_pair(path, problem.interface.game))


def seeded(parts: Parts, k: int, table: Table, seed: str) -> list[Individual]:
    """The seed as an individual of round 1; nothing in later rounds.

    Raises InputError for a seed that this run cannot run, or that fails on the training instances.
    """
    prose = parts.generator.writes_prose
    begin = seed_pair(parts.problem, seed, prose) if k == 1 else None
    if begin is None:
        return []
    game = parts.problem.interface.game
    require_runnable([begin], parts.evaluator, parts.config.generator.state, game)
    if not opening(parts, k, [begin], table).leaders:
        verdict = table.verdict(*begin.programs)
        raise InputError(
            f"method_settings: seed {begin.name} fails on the training instances "
            f"({verdict.status}: {verdict.reason})"
        )
    value = table.utility(*begin.programs)
    return [Individual(begin.pair, value, k, SEED, scores=scores_of(begin.pair, table))]


def first_operators(problem: Problem) -> dict[Role, list[Program]]:
    """The operators that the problem brings for the first populations of G-LNS, if any."""
    found: dict[Role, list[Program]] = {role: [] for role in ROLES}
    text = Path(problem.first).read_text("utf-8") if problem.first else ""
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    for role in ROLES:
        for node in functions:
            if node.name.startswith(f"{role}_"):
                source = ast.get_source_segment(text, node) or ""
                source = source.replace(f"def {node.name}(", f"def {role}(", 1) + "\n"
                found[role].append(Program.from_source(role, source, form=SEED))
    return found

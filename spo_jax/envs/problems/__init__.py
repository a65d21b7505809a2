"""Problems, found by name."""

import re
import sys
from collections.abc import Iterator, Mapping

from spo_jax.envs.problem import Baseline, Problem
from spo_jax.errors import InputError, require_kind
from spo_jax.program import Program
from spo_jax.registry import imported, require_members

GROUP = "spo_jax.problems"  # the entry point group of other packages' problems
# Ours are no entry points: those of a source tree are as old as its installation.
_OURS = {
    "tsp": "spo_jax.envs.problems.tsp:TSP",
    "cvrp": "spo_jax.envs.problems.cvrp:CVRP",
    "vrptw": "spo_jax.envs.problems.vrptw:VRPTW",
}
_REQUIRED = ("sample", "rules")


def known_problems() -> dict[str, str]:
    """The named problems: ours, and those of other packages.

    Returns:
        The "package.module:NAME" of each by its name.

    Raises:
        InputError: Two packages provide a problem of the same name.
    """
    from importlib.metadata import entry_points  # takes a while, and a worker needs none

    found = dict(_OURS)
    for point in entry_points(group=GROUP):
        if found.setdefault(point.name, point.value) != point.value and point.name not in _OURS:
            raise InputError(
                f"two packages bring a problem {point.name!r} ({found[point.name]} and "
                f"{point.value}): uninstall one, or name problems as 'package.module:NAME'"
            )
    return found


def each_problem() -> Iterator[tuple[str, Problem]]:
    """The named problems one after another, ours first, each loaded when it is its turn.

    Yields:
        Its name, and the problem.

    Raises:
        InputError: As `known_problems` and `get_problem`.
    """
    for name in _OURS:
        yield name, get_problem(name)
    for name in known_problems():
        if name not in _OURS:
            yield name, get_problem(name)


def get_problem(name: str) -> Problem:
    """Find a problem.

    Args:
        name: A name ("tsp", or an entry point's), or a "package.module:NAME".

    Returns:
        The problem.

    Raises:
        InputError: There is none, or the object is not a `Problem`.
    """
    require_kind("problem", name, str, "a name, as 'tsp' or 'package.module:NAME'")
    if ":" in name or name in _OURS:
        known, spec = _OURS, _OURS.get(name, name)
    else:
        known = known_problems()
        spec = known.get(name, name)
    problem = imported("problem", spec, ", ".join(known))
    if spec not in _OURS.values():
        _require_problem(f"problem {name!r}", problem)
        module, _, attribute = spec.partition(":")
        if getattr(sys.modules[module], attribute) is problem:  # not its class
            problem.found_as = spec
    return problem


def _require_problem(what: str, problem: Problem) -> None:
    if not isinstance(problem, Problem):
        raise InputError(
            f"{what} is of type {type(problem).__name__}, not a spo_jax.envs.problem.Problem"
        )
    require_members(what, problem, Problem)
    for method in _REQUIRED:
        if not problem.offers(method):
            raise InputError(f"{what} has no method {method}, which every problem has")
    suffixes, destroys = problem.suffixes, problem.classical_destroys()
    for name, due, fits in (
        ("name", "a word of letters, digits, - and _", re.fullmatch(r"[\w-]+", problem.name)),
        (
            "suffixes",
            'a tuple of suffixes in lower case, as (".x",)',
            type(suffixes) is tuple
            and all(isinstance(s, str) and re.fullmatch(r"\.[^.A-Z/]+", s) for s in suffixes),
        ),
        (
            "acceptances",
            'a tuple of names, as ("annealing",)',
            type(problem.acceptances) is tuple
            and problem.acceptances
            and all(isinstance(name, str) for name in problem.acceptances),
        ),
        ("settings", "a mapping", isinstance(problem.settings, Mapping)),
        (
            "baselines",
            "a mapping of names to Baselines",
            isinstance(problem.baselines, Mapping)
            and all(isinstance(each, Baseline) for each in problem.baselines.values()),
        ),
    ):
        if not fits:
            raise InputError(f"{what}: its {name} is {getattr(problem, name)!r:.80}, not {due}")
    if type(destroys) is not tuple or not all(isinstance(each, Program) for each in destroys):
        raise InputError(f"{what}: its classical_destroys returned no tuple of Programs")

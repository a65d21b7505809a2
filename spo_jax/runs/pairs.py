"""Evaluates pairs, solves with them, compares them; they come from files, runs or objects."""

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from spo_jax import __version__
from spo_jax.constants import ALL, SHIPPED
from spo_jax.envs.files.labels import numbered
from spo_jax.envs.files.reading import Reading
from spo_jax.envs.files.specs import (
    in_memory,
    is_uniform,
    own_references,
    parse_specs,
    read_instance,
)
from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.problems import get_problem, known_problems
from spo_jax.envs.report import solve as solving
from spo_jax.envs.report.reference_files import ReferenceFile
from spo_jax.envs.run.acceptance import PAPER
from spo_jax.envs.run.starts import RANDOM
from spo_jax.envs.run.states import STAGNATION
from spo_jax.errors import InputError, require_kind
from spo_jax.limits import usable_cores
from spo_jax.program import Pair, load_pair
from spo_jax.program.pairfile import load_terms
from spo_jax.runs.argument_errors import in_arguments

if TYPE_CHECKING:
    from spo_jax.config import Settings
    from spo_jax.envs.report.compare import Comparison
    from spo_jax.envs.report.comparison.methods import Method
    from spo_jax.envs.report.evaluation import Report
    from spo_jax.runs.run import Run

    Given = Pair | Run | str | Path

# The terms of the paper's rollouts, which are the defaults of settings, too.
PAPERS = {"on_invalid": "fail", "state": STAGNATION, "acceptance": PAPER, "start": RANDOM}


@in_arguments(unsafe_sandbox="unsafe", trust_pair="trust=True")
def evaluate(
    pair: "Given",
    problem: str | Problem | None = None,
    on: str | Sequence[str] | Instance | Sequence[Instance] = (),
    *,
    workers: int | None = None,
    distances: str = "file",
    capacity: float | None = None,
    vehicles: int | None = None,
    trust: bool = False,
    **more: Any,
) -> "Report":
    """Roll a pair out on groups of instances, as `spo evaluate`.

    Args:
        pair: Or a pair file, the file of operators of G-LNS, a run, whose best pair is meant, or
            "shipped", the one that comes with the problem.
        problem: A name or a Problem; by default that of the run, else of the instances.
        on: "uniform:SIZExCOUNT[@SEED]", instance files and folders, each a group of its own; or
            instances in memory, which are one group.
        workers: Processes, by default one per usable core.
        distances: How files are read, as `spo_jax.envs.files.reading.Reading` has it.
        capacity: Likewise.
        vehicles: Likewise.
        trust: Whether to follow functions that the head of a pair file names, as a state of one's
            own. They run outside the sandbox.
        **more: As `spo_jax.envs.report.evaluation.evaluate` has them: steps, seeds, references,
            ...; of a run on_invalid and state are its own by default.

    Returns:
        Costs, and gaps to references with intervals.

    Raises:
        SpoError: Something cannot be read or run.
    """
    from spo_jax.envs.report import evaluation

    specs: list[Any] = [on] if isinstance(on, str) or not isinstance(on, Iterable) else list(on)
    if not in_memory(specs) and not all(isinstance(each, str | Path) for each in specs):
        raise InputError("on takes instance files, folders and uniform:SIZExCOUNT, or Instances")
    reading = Reading(distances, capacity, vehicles)
    if problem is None:
        alone = [
            each
            for each in specs
            if isinstance(each, Instance) or not (is_uniform(str(each)) or Path(each).is_dir())
        ]
        problem = problem_of(alone, [pair], reading)
    known, found, terms = _found(pair, problem, trust)
    terms |= {"workers": workers or usable_cores()} | more | {"reading": reading}
    return evaluation.evaluate(found, known, specs, **terms)


@in_arguments(unsafe_sandbox="unsafe", trust_pair="trust=True")
def solve(
    instance: Instance | str | Path,
    pair: "Given | Sequence[Given] | None" = None,
    problem: str | Problem | None = None,
    *,
    workers: int | None = None,
    distances: str = "file",
    capacity: float | None = None,
    vehicles: int | None = None,
    trust: bool = False,
    **more: Any,
) -> solving.Solved:
    """Solve an instance by a pair, or by several pairs, as `spo solve`.

    Args:
        instance: An instance, or its file.
        pair: As in `evaluate`, or several; by default the one that comes with the problem.
        problem: A name or a Problem; by default that of the run, else of the instance.
        workers: Processes, by default one per usable core.
        distances: How files are read, as `spo_jax.envs.files.reading.Reading` has it.
        capacity: Likewise.
        vehicles: Likewise.
        trust: As in `evaluate`.
        **more: As `spo_jax.envs.report.solve.solve` has them: steps or seconds, start, acceptance,
            seed, ...

    Returns:
        The best solution that was found.

    Raises:
        SpoError: Something cannot be read or run, or gave no solution.
    """
    require_kind("instance", instance, (Instance, str, PathLike), "an Instance, or its file")
    reading = Reading(distances, capacity, vehicles)
    if problem is None:
        problem = problem_of([instance], _listed(pair), reading)
    known, found, terms = resolve_all(pair, problem, trust)
    if not isinstance(instance, Instance):
        instance = read_instance(known, instance, reading)
    if instance.problem != known.name:
        raise InputError(
            f"{instance.name} is an instance of {instance.problem}, not of {known.name}"
        )
    terms = terms | {"workers": workers or usable_cores()} | more
    return solving.solve(instance, found, known, **terms)


@in_arguments(out="out", pair="pairs", force="force=True", trust_pair="trust=True")
def compare(
    instances: Instance | str | Path | Sequence[Instance | str | Path],
    pairs: "Given | Sequence[Given] | None" = None,
    problem: str | Problem | None = None,
    *,
    against: str | Sequence[str] = ALL,
    references: str | Path | None = None,
    distances: str = "file",
    capacity: float | None = None,
    vehicles: int | None = None,
    out: str | Path | None = None,
    plot: str | Path | None = None,
    force: bool = False,
    trust: bool = False,
    **more: Any,
) -> "Comparison":
    """Compare pairs with baselines and solvers, for equal time on equal cores, as `spo compare`.

    Args:
        instances: Instances, their files, folders of them, or uniform:SIZExCOUNT[@SEED].
        pairs: As in `evaluate`, each a row of its own; "shipped", the default, is the one that
            comes with the problem.
        problem: As in `solve`.
        against: "all", or names of baselines, "construction" and "package.module:NAME"
            (`spo_jax.envs.report.comparison.methods`).
        references: A file of best known costs.
        distances: As in `solve`.
        capacity: Likewise.
        vehicles: Likewise.
        out: The folder of solutions, tables and curves, by default none.
        plot: The file of the picture.
        force: Whether files there are overwritten.
        trust: As in `evaluate`.
        **more: As `spo_jax.envs.report.compare.compare` has them: seconds, seeds, workers, ...

    Returns:
        What each method came to on each instance.

    Raises:
        SpoError: Something cannot be read, run or overwritten.
    """
    from spo_jax.envs.report import compare as comparing

    known, read, methods, own = contest(
        _listed(instances), _listed(pairs), problem, _listed(against), references,
        Reading(distances, capacity, vehicles), trust,
    )  # fmt: skip
    if out is None:
        return comparing.compare(known, read, methods, own=own, **more)
    from spo_jax.envs.report.comparison.compared import Folder

    folder = Folder(out, known, read, methods, picture=plot, force=force)
    terms = {"seconds": solving.SECONDS, "seeds": 1, "workers": 1} | more
    comparing.usable(*(terms[name] for name in ("seconds", "seeds", "workers")))
    folder.make()
    found = comparing.compare(known, read, methods, own=own, keep=folder.keep, **more)
    folder.write(found)
    return found


def contest(
    given: Sequence[Instance | str | Path],
    pairs: "Sequence[Given]",
    problem: str | Problem | None,
    against: Sequence[str],
    references: str | Path | None,
    reading: Reading,
    trust: bool = False,
) -> "tuple[Problem, list[Instance], list[Method], ReferenceFile | None]":
    """The problem, instances, methods and references of a comparison. Raises InputError."""
    from spo_jax.envs.report.comparison.methods import methods_of

    if not given:
        raise InputError("there is nothing to compare on: name an instance or a folder")
    for each in given:
        require_kind("instances", each, (Instance, str, PathLike), "Instances, or their files")
    for each in against:
        require_kind("against", each, str, "names, as 'alns' or 'package.module:NAME'")
    if problem is None:
        problem = problem_of(given, pairs, reading)
    listed: list[Any] = [*pairs] or [SHIPPED]
    for each in sorted(listed, key=_of_run, reverse=True)[:1]:  # a run knows its problem
        if _of_run(each):
            problem = resolve(each, problem)[0]
    known = get_problem(problem) if isinstance(problem, str) else problem
    assert isinstance(known, Problem)
    if not pairs and not known.pair:  # a problem of the user's, that brings none
        listed = []
    found = []
    for each in listed:
        _, [pair], terms = resolve_all(each, known, trust)
        found.append((pair, terms | {"state": terms["state"][0]}))
    names = numbered("pair" if is_shipped(each) else _row(each) for each in listed)
    methods = methods_of(known, dict(zip(names, found, strict=True)), against)
    own = None if references is None else own_references(str(references))
    specs = [str(each) for each in given if not isinstance(each, Instance)]
    plans = iter(parse_specs(specs, known, "none", reading) if specs else [])
    read: dict[tuple[str, str], Instance] = {}
    for each in given:
        for instance in [each] if isinstance(each, Instance) else next(plans).load(known):
            if instance.problem != known.name:
                raise InputError(
                    f"{instance.name} is an instance of {instance.problem}, not of {known.name}"
                )
            read.setdefault((instance.name, instance.digest), instance)  # each only once
    return known, [*read.values()], methods, own


def problem_of(
    instances: Sequence[Instance | str | Path], pairs: "Sequence[Given]", reading: Reading
) -> str | None:
    """The problem of some instances, or None without any, and where a run's pair tells it.

    Raises InputError where a file's suffix does not tell it, or they are of several problems.
    """
    if not instances or any(map(_of_run, pairs)):
        return None
    names = [
        each.problem if isinstance(each, Instance) else solving.problem_of(each, reading.given)
        for each in instances
    ]
    for name, other in zip(names, instances, strict=True):
        if name != names[0]:
            first = instances[0]
            raise InputError(
                f"{getattr(first, 'name', first)} is of the problem {names[0]}, and "
                f"{getattr(other, 'name', other)} is not: evaluate and compare on one problem at "
                "a time"
            )
    return names[0]


def is_shipped(pair: Any) -> bool:
    """Whether the pair that comes with the problem is meant; a file of that name goes before it."""
    return isinstance(pair, str) and pair == SHIPPED and not Path(SHIPPED).exists()


def is_alone(pair: str | Path) -> bool:
    """Whether a name is that of a pair without a run: the one that ships, or a file."""
    return is_shipped(pair) or Path(pair).is_file()


def of_pair(pair: str | Path, problem: Problem) -> str:
    """The origin of a pair that is alone, for the file that it is exported to."""
    if is_shipped(pair):
        return f"The pair that ships with spo-jax {__version__} for the problem {problem.name}."
    return f"The pair of {Path(pair).name}, for the problem {problem.name}."


def _row(pair: Any) -> str:
    """The name of a pair's row."""
    if is_run(pair):
        pair = pair.path
    return f"pair {Path(pair).resolve().stem}" if isinstance(pair, str | PathLike) else "pair"


def _listed(pair: Any) -> list[Any]:
    if pair is None:
        return []
    return list(pair) if isinstance(pair, list | tuple) else [pair]


def _of_run(pair: Any) -> bool:
    """Whether a pair is a run's, which knows its problem."""
    return Path(pair).is_dir() if isinstance(pair, str | PathLike) else is_run(pair)


def is_run(given: Any) -> "TypeGuard[Run]":
    """Whether it is a run. What reads runs is loaded only where it could be one."""
    if isinstance(given, Pair | str | PathLike):
        return False
    from spo_jax.runs.run import Run

    return isinstance(given, Run)


def resolve_all(
    pairs: "Given | Sequence[Given] | None",
    problem: str | Problem | None,
    trust: bool = False,
) -> tuple[Problem, list[Pair], dict[str, Any]]:
    """The problem; the pairs, by default the one that comes with it; the terms of a search.

    An infeasible candidate is a rejected step where that was so for one of them. Raises InputError
    where the problem is not known, or a pair is for another one.
    """
    if pairs is None:
        if problem is None:
            raise InputError("there is no problem: give one, or a pair")
        known = get_problem(problem) if isinstance(problem, str) else problem
        return known, [solving.shipped_pair(known)], _search_terms([PAPERS])
    listed = _listed(pairs)
    if not listed:
        raise InputError("there is no pair to search with: give one, or leave it out")
    found: list[Pair] = []
    terms = []
    for each in sorted(listed, key=_of_run, reverse=True):  # a run knows its problem
        problem, pair, own = _found(each, problem, trust)
        found.append(pair)
        terms.append(own)
    assert isinstance(problem, Problem)
    return problem, found, _search_terms(terms)


def _search_terms(each: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The terms of a search with pairs that were discovered under these terms of rollouts.

    It accepts and starts as their rollouts did where that is alike and not the paper's, whose are
    for rollouts alone.
    """
    terms: dict[str, Any] = {
        "on_invalid": max(own["on_invalid"] for own in each),  # "skip" above "fail"
        "state": [own["state"] for own in each],
    }
    for name in ("acceptance", "start"):
        known = {own[name] for own in each}
        if len(known) == 1 and PAPERS[name] not in known:
            terms |= {name: known.pop()}
    return terms


def terms_of(config: "Settings") -> dict[str, Any]:
    """The terms of rollouts that a pair was discovered under, and is by default used under."""
    evaluation = config.evaluation
    return {
        "on_invalid": evaluation.on_invalid,
        "state": config.generator.state,
        "acceptance": evaluation.acceptance,
        "start": evaluation.start,
    }


def resolve(
    pair: "Given", problem: str | Problem | None = None, trust: bool = False
) -> "tuple[Problem, Pair, Settings]":
    """The problem, by default the run's; the pair; the settings that it was discovered with.

    Raises InputError where the problem is not known, or is not the run's, and, without `trust`, for
    a file whose head names functions: those would run outside the sandbox.
    """
    from spo_jax.config import Settings

    known, found, own = _read(pair, problem, trust)
    return known, found, own if isinstance(own, Settings) else Settings.make(**own)


def _found(
    pair: "Given", problem: str | Problem | None, trust: bool
) -> tuple[Problem, Pair, dict[str, Any]]:
    """As `resolve`, with the terms of rollouts alone."""
    known, found, own = _read(pair, problem, trust)
    return known, found, PAPERS | own if isinstance(own, dict) else terms_of(own)


def _read(
    pair: "Given", problem: str | Problem | None, trust: bool
) -> "tuple[Problem, Pair, Settings | dict[str, str]]":
    """As `resolve`, with a run's settings, or the terms in the head of a pair file.

    Settings are loaded where there are some: that takes longer than all else.
    """
    from spo_jax.envs.glns_operators import is_operators, load_operators

    if not is_run(pair):
        require_kind("pair", pair, (Pair, str, PathLike), "a Pair, a Run, or the path of one")
    if problem is not None and not isinstance(problem, Problem):
        problem = get_problem(problem)
    if isinstance(pair, Pair):
        if problem is None:
            raise InputError("a pair does not say which problem it is for: give one")
        return problem, pair, {}
    if _of_run(pair):
        from spo_jax.runs.run import load_run

        run = pair if is_run(pair) else load_run(cast(str | Path, pair))
        own = get_problem(run.config.problem)
        if problem is not None and problem.name != own.name:
            raise InputError(f"{run.path} is a run for {own.name}, not for {problem.name}")
        return own, pair_of(run), run.config
    pair = cast(str | Path, pair)
    ships = is_shipped(pair)
    game = None if problem is None else problem.interface.game
    found = None if ships or is_operators(pair) else load_pair(pair, game)
    terms = {} if found is None else load_terms(pair)
    for name, value in terms.items():
        if ":" in value and not trust:
            raise InputError(
                f"{pair}: its head names the {name} {value}, a function that would run outside "
                "the sandbox; if you trust it, say so (--trust-pair)"
            )
    if terms:
        from spo_jax.config import Settings

        try:
            Settings.make(**terms)
        except InputError as error:
            raise InputError(f"{pair}: its head is wrong: {error}") from None
    if problem is None:
        listed = ", ".join(known_problems())
        raise InputError(f"{pair} does not say which problem it is for: add --problem ({listed})")
    if ships:
        return problem, solving.shipped_pair(problem), {}
    return problem, found or load_operators(pair, problem), terms


def pair_of(run: "Run") -> Pair:
    """A run's best pair. Raises InputError as long as there is none."""
    if run.best is None:
        raise InputError(f"{run.path}: this run has found no valid pair yet")
    return run.best.pair

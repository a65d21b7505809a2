"""What the studies share: arms that run with the same seeds and budget, and one report of them all.

An arm is a name and the settings that it changes; `learning.py` and `credit_study.py` choose arms.
Every arm discovers once with each of the seeds 0, 1, ..., in a run folder of its own under --out.
Finished runs are kept, so the same command goes on where it was stopped, and more arms or more
seeds cost only themselves. Any setting of `spo discover` may follow, and holds for all runs.

The table is printed, and written beside its picture: table.md, table.csv, runs.csv, curves.csv,
curves.png. Its intervals are 95% Student t intervals over the seeds, too few for a bootstrap. A
seed has its own training instances, and they move J by more than an arm does; runs of one seed
share them, and arms with the same model share their first answers. So the table also has each arm
minus the first one, seed by seed, and the picture aligns the seeds at round 1. Budgets are equal in
name alone: repairs are written for valid destroys, and one set for a destroy that a round wrote
twice, so an arm that teaches to fail or to repeat itself samples and evaluates fewer. The table's
first columns tell, by arm.
"""

import argparse
import math
import re
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from common import commandline
from common.discovered import discover
from common.outcomes import outcome
from common.study_report import report

from spo_jax import flags, presets
from spo_jax.config import Settings
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.shown import shown_with
from spo_jax.errors import InputError
from spo_jax.program import Pair
from spo_jax.search.credit import get_credit
from spo_jax.search.runs.run import load_run
from spo_jax.search.utility import get_utility, mean_scores
from spo_jax.seeding import derive

Arms = Mapping[str, Mapping[str, Any]]  # name -> the settings that the arm changes

FRESH_INSTANCES = 32  # the same ones for every run of every study


def script(name: str, parser: argparse.ArgumentParser, arms: Callable[[Namespace], Arms]) -> int:
    """Run a study's command line; the exit code: 2 for what the user can mend, 130 after Ctrl-C."""
    parser.add_argument("--seeds", type=int, default=5, help="runs of each arm")
    parser.add_argument("--problem", default="tsp")
    flags.add_arguments(parser)
    return commandline.script(name, parser, lambda args: study(args, arms(args)))


def study(args: Namespace, arms: Arms) -> int:
    """Run what is missing, then tell of all. Raises InputError for what the user can mend."""
    given = flags.given(args)
    varied = sorted({"seed", *(name for own in arms.values() for name in own)} & given.keys())
    if varied:
        raise InputError(f"{' and '.join(varied)}: a study sets that itself; leave it out")
    if args.seeds < 1 or not arms or len(set(map(folder_name, arms))) < len(arms):
        raise InputError("a study needs at least one seed, and arms with names of their own")
    out = Path(args.out)
    wanted: dict[tuple[str, int], Settings] = {}
    for arm, own in arms.items():
        for seed in range(args.seeds):
            settings = presets.settings(args.problem, args.preset, **{**given, **own, "seed": seed})
            wanted[arm, seed] = settings
        for name in (wanted[arm, 0].search.credit, wanted[arm, 0].learning.learning_credit):
            if name is not None:
                get_credit(name)
    paths = {key: out / f"{folder_name(key[0])}-seed{key[1]}" for key in wanted}
    # Seed by seed, so that a study that was stopped has something to compare.
    for arm, seed in sorted(wanted, key=lambda key: key[1]):
        own = {**arms[arm], "seed": seed}
        discover(wanted[arm, seed], args.preset, {**given, **own}, paths[arm, seed])
    afresh = fresh_utilities({key: load_run(path).best for key, path in paths.items()}, wanted)
    outcomes = [outcome(*key, path, afresh[key]) for key, path in paths.items()]
    report(outcomes, next(iter(wanted.values())), Path(args.preset).stem, FRESH_INSTANCES, out)
    return 0


def listed(text: str) -> list[str]:
    """The names in a text with commas between them."""
    return [name.strip() for name in text.split(",") if name.strip()]


def named(arms: Iterable[tuple[str, Mapping[str, Any]]]) -> Arms:
    """Arms by name. Raises InputError for a name that comes twice."""
    found: dict[str, Mapping[str, Any]] = {}
    for name, own in arms:
        if name in found:
            raise InputError(f"{name} is there twice: arms need names of their own")
        found[name] = own
    return found


def folder_name(arm: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", arm)


def fresh_utilities(pairs: Mapping[Any, Any], settings: Mapping[Any, Settings]) -> dict[Any, float]:
    """J of each run's pair (a `Best` or None) on instances that all runs and studies share.

    A pair runs as it was discovered: with the state or without, failing or skipping what is
    infeasible.
    """
    first = next(iter(settings.values()))
    problem = get_problem(first.problem)
    instances = problem.sample(first.evaluation.size, FRESH_INSTANCES, derive("credit study"))
    alike: dict[tuple[bool, str], dict[Any, Pair]] = {}
    for key, best in pairs.items():
        if best is not None:
            terms = settings[key].generator.state, settings[key].evaluation.on_invalid
            alike.setdefault(terms, {})[key] = best.pair
    utility = get_utility(first.evaluation.utility)
    values = dict.fromkeys(pairs, math.nan)
    for (state, on_invalid), found in alike.items():
        distinct = {pair.digest: pair for pair in found.values()}
        with LocalEvaluator(
            problem,
            first.workers,
            cpu_seconds=first.evaluation.cpu_seconds,
            memory_mb=first.evaluation.memory_mb,
            on_invalid=on_invalid,
            shown=shown_with(state),
            unsafe=first.evaluation.unsafe_sandbox,
        ) as evaluator:
            rollouts = evaluator.run(
                list(distinct.values()),
                instances,
                seeds=range(first.evaluation.rollouts),
                steps=first.evaluation.steps,
            )
        scores = mean_scores(utility(rollouts, instances))
        known = dict(zip(distinct, map(float, scores), strict=True))
        values |= {key: known[pair.digest] for key, pair in found.items()}
    return values

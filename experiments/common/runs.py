"""Discovery runs of contenders, and what single rounds of a run contain.

A run lies in OUT/discovery/PROBLEM-NAME-seedN, so every experiment uses what another discovered.
"""

import ast
import json
import math
import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import spo_jax
from common.budgets import PROBLEMS
from common.cli import Context
from common.contenders import SPO, Contender
from spo_jax.constants import SPO as SPO_METHOD
from spo_jax.envs.files.specs import parse_spec
from spo_jax.envs.files.textfiles import write_atomically
from spo_jax.envs.metrics import leader_credit
from spo_jax.envs.problem import Instance
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.observation import shown_with
from spo_jax.envs.run.rollouts import Rollouts
from spo_jax.errors import InputError
from spo_jax.program import Pair, Role, parse_tree
from spo_jax.runs.records import PairRecord, ProgramRecord
from spo_jax.runs.run import Run, load_run
from spo_jax.search.utility import UTILITIES, mean_scores

STATE = "steps_since_improvement"
CPU = "cpu"  # folder in OUT: CPU seconds of the runs there, a file for each


def discover(problem: str, preset: str, own: Mapping[str, Any], path: Path) -> Run:
    """Start the run at `path`, resume it, or read it if it is finished.

    own: settings above the preset's. Raises InputError where the run has other settings; a preset
    file may lie elsewhere now.
    """
    settings = spo_jax.settings(problem, preset, **own)
    begun = load_run(path) if path.exists() else None
    return spo_jax.discover(
        settings=settings,
        preset=begun.preset if begun else preset,
        path=path,
        resume=True,
        verbose=begun is None or begun.status != "finished",
    )


def finished(path: Path) -> bool:
    """Whether there is a finished run. Raises InputError for a folder that is no run."""
    return path.exists() and load_run(path).status == "finished"


def cpu_seconds() -> float:
    """CPU seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


def discover_counted(
    problem: str, preset: str, own: Mapping[str, Any], path: Path, out: Path
) -> Run:
    """`discover`, where what it spends is added to what `spent_by` tells."""
    done, began = finished(path), cpu_seconds()
    try:
        return discover(problem, preset, own, path)
    finally:  # a run that is stopped has spent something too
        if not done and path.exists():
            before = spent_by(path.name, out)
            total = (0.0 if math.isnan(before) else before) + cpu_seconds() - began
            (out / CPU).mkdir(parents=True, exist_ok=True)
            write_atomically(out / CPU / f"{path.name}.json", json.dumps({"seconds": total}))


def spent_by(name: str, out: Path) -> float:
    """CPU seconds of a run, over all the calls that went on with it; NaN if it was made elsewhere.

    A file for each run, so that scripts with one OUT do not overwrite each other's, and the OUT
    folders of several machines can be copied together.
    """
    path = out / CPU / f"{name}.json"
    return float(json.loads(path.read_text())["seconds"]) if path.exists() else math.nan


def runs_of(contender: Contender, context: Context) -> list[Run]:
    """The finished runs of a discovered contender, one per seed.

    Raises InputError where a run differs from what is asked for, or has no valid pair.
    """
    problem, budget, runs = context.problem.name, context.budget, []
    for seed in budget.seeds:
        path = context.out / "discovery" / f"{problem}-{contender.name}-seed{seed}"
        own = {**settings_of(contender, context), "seed": seed, "workers": context.workers}
        runs.append(discover_counted(problem, budget.presets[problem], own, path, context.out))
        if runs[-1].best is None:
            raise InputError(f"{path} has no valid pair: use a larger budget, or another seed")
    return runs


def settings_of(contender: Contender, context: Context) -> dict[str, Any]:
    """The settings of a contender's runs above the preset's. Raises InputError for bad ones."""
    problem, budget = context.problem.name, context.budget
    own = {**budget.settings, **(contender.settings or {})}
    if own.get("method", SPO_METHOD) != SPO_METHOD:
        own.pop("update", None)  # it trains no model, whatever the budget says
    spo_jax.settings(problem, budget.presets[problem], **own)
    return own


def asked_runs(args: Namespace, context: Context) -> tuple[Context, list[Run]]:
    """The runs of --run, with their problem, or SPO's runs of the budget."""
    if not args.run:
        return context, runs_of(SPO, context)
    runs = [load_run(path) for path in args.run]
    problems = {run.config.problem for run in runs}
    if len(problems) > 1 or not problems <= set(PROBLEMS):
        raise InputError(f"--run: all runs must be of the same problem, {' or '.join(PROBLEMS)}")
    return replace(context, problem=get_problem(problems.pop())), runs


def again(
    run: Run,
    pairs: Sequence[Pair],
    instances: Sequence[Instance],
    *,
    seed: int = 0,
    workers: int | None = None,
) -> tuple[Rollouts, np.ndarray]:
    """Rollouts of pairs under the terms of a run, and J of each. seed: of the evaluator."""
    terms = run.config.evaluation
    with evaluator_like(run, seed, workers) as evaluator:
        rollouts = evaluator.run(pairs, instances, range(terms.rollouts), terms.steps)
    return rollouts, mean_scores(UTILITIES[terms.utility](rollouts, instances))


def evaluator_like(run: Run, seed: int = 0, workers: int | None = None) -> LocalEvaluator:
    """An evaluator on this machine with the terms of a run, not started."""
    terms = run.config.evaluation
    return LocalEvaluator(
        get_problem(run.config.problem),
        workers or run.config.workers,
        seed=seed,
        cpu_seconds=terms.cpu_seconds,
        memory_mb=terms.memory_mb,
        on_invalid=terms.on_invalid,
        shown=shown_with(run.config.generator.state),
        unsafe=terms.unsafe_sandbox,
        kit=run.config.generator.kit != "none",
        work=terms.work,
        acceptance=terms.acceptance,
        start=terms.start,
    )


def fresh_instances(run: Run, count: int, seed: int) -> list[Instance]:
    """`count` instances of each size that a run trains on.

    Raises InputError where these are files.
    """
    config = run.config
    problem = get_problem(config.problem)
    sets = [parse_spec(text, problem) for text in config.evaluation.on]
    if any(each.uniform is None for each in sets):
        raise InputError(f"{run.path} trains on files, and a table takes fresh instances")
    known = {each.uniform[0] for each in sets if each.uniform is not None}
    sizes = sorted(known) or [config.evaluation.size]
    return [each for size in sizes for each in problem.sample(size, count, seed)]


# --- of one round ---------------------------------------------------------------------------------


def typical_pairs(run: Run) -> list[Pair | None]:
    """[K] of the new pairs of each round the one with the median J (the lower of two medians).

    None for a round without a valid new pair. Ties are broken by digests.
    """
    found: list[Pair | None] = []
    for number in range(1, run.rounds + 1):
        pairs = _valid(run, number)
        middle = pairs[(len(pairs) - 1) // 2] if pairs else None
        found.append(None if middle is None else run.pair(middle.destroy, middle.repair))
    return found


def best_programs(run: Run, number: int, role: Role, count: int) -> list[ProgramRecord]:
    """The `count` new programs of a round with the highest credit in it, as `credit` of each.

    A destroy's is the mean of its two best pairs (eq:leader-credit), a repair's its J
    (eq:follower-credit). Raises InputError for a round that does not exist or has fewer.
    """
    if not 1 <= number <= run.rounds:
        raise InputError(f"{run.path} has rounds 1 to {run.rounds}, and no round {number}")
    values: dict[str, list[float]] = {}
    for pair in _valid(run, number):
        name = pair.destroy if role == "destroy" else pair.repair
        if run[name].round == number:
            values.setdefault(name, []).append(pair.utility)
    programs = [
        replace(
            run[name],
            credit=float(leader_credit(np.array([own]))[0]) if role == "destroy" else max(own),
        )
        for name, own in values.items()
    ]
    ranked = sorted(programs, key=lambda each: (-each.credit, each.digest))[:count]
    if len(ranked) < count:
        raise InputError(
            f"round {number} of {run.path} has {len(ranked)} valid {role} programs, not {count}"
        )
    return ranked


def _valid(run: Run, number: int) -> list[PairRecord]:
    """The new pairs of a round, by J and then by their digests."""
    rows = (p for p in run.pairs if p.round == number and p.kind == "response")
    valid = (p for p in rows if p.status == "ok")
    return sorted(valid, key=lambda p: (p.utility, run[p.destroy].digest, run[p.repair].digest))


def reads_state(source: str) -> bool:
    """Whether a program reads steps_since_improvement, which is in its parameters anyway."""
    return any(isinstance(n, ast.Name) and n.id == STATE for n in ast.walk(parse_tree(source)))

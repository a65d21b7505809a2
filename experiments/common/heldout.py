"""Gaps of the pairs of runs on instances that no run trains or validates on.

Standard test sets have references that ship; every pair gets one rollout of 500 steps on each
instance, with the same seed for all pairs. A pair's gaps are kept in OUT/held-out, by the pair and
the terms of its run.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import spo_jax
from spo_jax.envs.files.textfiles import write_atomically
from spo_jax.runs.pairs import terms_of
from spo_jax.runs.run import Run

STEPS = 500
SETS = {
    "tsp": ("uniform:100x4@2026", "uniform:200x4@2026", "uniform:500x2@2026"),
    "cvrp": ("uniform:100x4@2026", "uniform:150x4@2026", "uniform:200x4@2026"),
}


def sets_of(problem: str) -> tuple[str, ...]:
    """Groups of instances that a study of the problem measures pairs on."""
    return SETS.get(problem, ("uniform:50x8@2026",))


def gaps(run: Run, sets: Sequence[str], out: Path, **more: Any) -> dict[str, float]:
    """Mean gap of the run's pair by set, in per cent; NaN without a pair, and where a rollout fails
    or an instance has no reference.

    The pair runs as it was discovered: with the state or without, failing or skipping what is
    infeasible. more: further arguments of `spo_jax.evaluate`. Raises InputError for bad sets.
    """
    if run.best is None:
        return dict.fromkeys(sets, math.nan)
    own = run.config.terms
    state = {"none": "False"}.get(own.pop("state", ""), run.config.generator.state)
    parts = [state.replace("stagnation", "True"), run.config.evaluation.on_invalid, *own.values()]
    terms = "-".join(parts).replace(":", "-")
    path = out / "held-out" / f"{run.config.problem}-{run.best.pair.digest[:16]}-{terms}.json"
    kept: dict[str, float | None] = json.loads(path.read_text()) if path.exists() else {}
    missing = [each for each in sets if each not in kept]
    if missing:
        report = spo_jax.evaluate(
            run.best.pair, run.config.problem, missing, steps=STEPS, seeds=1,
            unsafe=run.config.evaluation.unsafe_sandbox, **terms_of(run.config), **more,
        )  # fmt: skip
        for name, group in zip(missing, report.groups, strict=True):
            whole = not group.summary.failed and group.summary.with_gap == len(group.instances)
            kept[name] = group.summary.mean_gap if whole else None
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(kept, indent=1))
    return {name: math.nan if (gap := kept[name]) is None else gap for name in sets}

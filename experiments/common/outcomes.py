"""What a study reads from a finished run."""

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spo_jax.program import parse_tree
from spo_jax.search.runs.run import load_run

STATE = "steps_since_improvement"
MEASURES = {  # name in the files: heading of the table
    "answers": "answers",
    "pairs": "pairs evaluated",
    "best": "best J",
    "median": "median, last third",
    "top_decile": "top decile, last third",
    "failures": "failures, last third",
    "state_use": "use the state, last third",
    "fresh": "chosen pair, fresh J",
}
COUNTS = ("answers", "pairs")  # the measures that are whole numbers
SHARES = ("failures", "state_use")  # the measures that are shares
CURVES = {  # by round: name in the files, title of the panel
    "median": "median J of the round's new pairs",
    "top_decile": "top decile of J of the round's new pairs",
    "state_use": f"share of new programs that use\n{STATE}",
}


@dataclass(frozen=True, eq=False)
class Outcome:
    """One finished run. Everything is NaN where there is nothing to say it from.

    answers: sampled in the run. pairs: evaluated, cross-play included. best: its highest J. median,
    top_decile: of J of the pairs that the last third of the rounds found. failures: share of that
    third's answers that came to nothing. state_use: share of its programs that read the LNS state.
    fresh: J of the run's pair on instances that no run has seen. curves: [K] a round, by the names
    of CURVES.
    """

    arm: str
    seed: int
    answers: int
    pairs: int
    best: float
    median: float
    top_decile: float
    failures: float
    state_use: float
    fresh: float
    curves: Mapping[str, np.ndarray]


def outcome(arm: str, seed: int, path: Path, fresh: float) -> Outcome:
    """Read a finished run."""
    known = load_run(path)
    # A pair that an earlier round evaluated is not in this one's rows: these are new.
    found = [
        (each.round, each.utility)
        for each in known.pairs
        if each.kind == "response" and each.status == "ok"
    ]
    written = [(each.round, each.source) for each in known.programs if each.form]
    counts = np.array(
        [
            (c.destroy_answers + c.repair_answers, c.valid_destroys + c.valid_repairs)
            for c in known.counts
        ]
    )
    last = known.rounds - first_of_last_third(known.rounds) + 1
    answers, valid = counts[-last:].sum(axis=0)
    utilities = by_round(known.rounds, found)
    uses = by_round(known.rounds, [(k, reads_state(source)) for k, source in written])
    late = np.concatenate(utilities[-last:])
    return Outcome(
        arm,
        seed,
        answers=int(counts[:, 0].sum()),
        pairs=known.evaluated,
        best=known.best_by_round[-1].utility,
        median=_of(np.median, late),
        top_decile=_of(_top_decile, late),
        failures=1 - valid / answers if answers else math.nan,
        state_use=_of(np.mean, np.concatenate(uses[-last:])),
        fresh=fresh,
        curves={
            "median": np.array([_of(np.median, values) for values in utilities]),
            "top_decile": np.array([_of(_top_decile, values) for values in utilities]),
            "state_use": np.array([_of(np.mean, values) for values in uses]),
        },
    )


def by_round(rounds: int, rows: Sequence[tuple[int, float]]) -> list[np.ndarray]:
    """(round, value) rows as the values of round 1, 2, ..."""
    numbers, values = (np.array([row[k] for row in rows], dtype=float) for k in (0, 1))
    return [values[numbers == k] for k in range(1, rounds + 1)]


def reads_state(source: str) -> bool:
    """Whether a program reads steps_since_improvement, which is in its parameters anyway."""
    return any(isinstance(n, ast.Name) and n.id == STATE for n in ast.walk(parse_tree(source)))


def first_of_last_third(rounds: int) -> int:
    """Number of the round with which the last third begins; it holds at least one round."""
    return rounds - math.ceil(rounds / 3) + 1


def _of(statistic: Callable[[np.ndarray], Any], values: np.ndarray) -> float:
    return float(statistic(values)) if values.size else math.nan


def _top_decile(values: np.ndarray) -> float:
    return float(np.quantile(values, 0.9))

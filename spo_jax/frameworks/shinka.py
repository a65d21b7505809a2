"""ShinkaEvolve's evaluation program: a score of ours as the two files that it reads.

ShinkaEvolve (Apache-2.0) runs `evaluate.py --program_path FILE --results_dir FOLDER` as a process
of its own for each candidate. Its helper `run_shinka_eval` would import the candidate there, so it
is not used.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spo_jax.envs.files.textfiles import write_atomically
from spo_jax.errors import InputError, SpoError
from spo_jax.frameworks.scoring import FAILED, Score, Scorer

METRICS, CORRECT = "metrics.json", "correct.json"


def main(task: str | Path, argv: Sequence[str] | None = None, *, failed: float = FAILED) -> int:
    """Score one candidate; the exit code: 0, also for a pair that failed, or 2 without a score.

    task: a file of settings, as `spo task` writes it. failed: what a failed pair scores.
    """
    parser = argparse.ArgumentParser(description="Scores one pair in spo-jax's sandbox.")
    parser.add_argument("--program_path", required=True, help="the candidate")
    parser.add_argument("--results_dir", required=True, help=f"where {METRICS} and {CORRECT} go")
    args = parser.parse_args(argv)
    try:
        with Scorer(preset=task, failed=failed) as scorer:
            score = scorer.file(args.program_path)
        write(score, args.results_dir)
    except SpoError as error:
        print(f"spo: {error}", file=sys.stderr)
        return 2
    print(f"J {score.value:.6f}" if score.ok else f"{score.status}: {score.reason}")
    return 0


def write(score: Score, results_dir: str | Path) -> None:
    """The files metrics.json and correct.json. Raises InputError where they cannot be written."""
    metrics: dict[str, Any] = {
        "combined_score": score.value,
        "public": dict(score.instances),
        "private": {"status": score.status, "role": score.role},
        "text_feedback": score.reason,
    }
    correct = {"correct": score.ok, "error": score.reason or None}
    folder = Path(results_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}") from None
    for name, found in ((METRICS, metrics), (CORRECT, correct)):
        write_atomically(folder / name, json.dumps(found, indent=1, allow_nan=False) + "\n")

"""OpenEvolve's evaluator: a score of ours as metrics and artifacts of theirs.

OpenEvolve (Apache-2.0) loads an evaluator file in several processes, and with cascades again for
each candidate; it calls `evaluate(path)` in threads. All of these share one `Scorer` per process.
"""

from pathlib import Path
from typing import Any

from spo_jax.errors import InputError, SandboxUnavailable
from spo_jax.frameworks.scoring import FAILED, Score, Scorer, scorer_of


class Evaluation:
    """The functions that an evaluator file of OpenEvolve has.

    task: a file of settings, as `spo task` writes it, or a `Scorer`. failed: what a failed pair
    scores, where `task` is a file.

    Each function returns an EvaluationResult: the metrics are combined_score, which is J, and
    valid, 1 or 0; the artifacts are the scores of the instances, or status and failure. They raise
    InputError where OpenEvolve is not installed, and what `Scorer.pair` raises.
    """

    def __init__(self, task: str | Path | Scorer, *, failed: float = FAILED):
        self.scorer = task if isinstance(task, Scorer) else scorer_of(task, failed)

    def evaluate(self, program_path: str) -> Any:
        """On all instances."""
        return _result(self.scorer.file(program_path))

    def evaluate_stage1(self, program_path: str) -> Any:
        """On the first instance and seed alone."""
        return _result(self.scorer.file(program_path, first=True))

    def evaluate_stage2(self, program_path: str) -> Any:
        """As `evaluate`. Where the pair cannot be run it has failed: of an exception OpenEvolve
        would keep the score of stage 1, which is not a J.
        """
        try:
            return self.evaluate(program_path)
        except SandboxUnavailable as error:
            return _result(Score(self.scorer.failed, "host_fault", str(error)))


def _result(score: Score) -> Any:
    try:
        from openevolve.evaluation_result import EvaluationResult
    except ImportError:
        raise InputError(
            "openevolve is not installed: pip install openevolve; without it use spo_jax.Scorer"
        ) from None

    metrics = {"combined_score": score.value, "valid": float(score.ok)}
    if score.ok:
        lines = [f"{name}: {value:.6f}" for name, value in score.instances.items()]
        return EvaluationResult(metrics, {"scores": "\n".join(lines)})
    return EvaluationResult(metrics, {"status": score.status, "failure": score.reason})

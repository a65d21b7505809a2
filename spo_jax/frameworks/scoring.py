"""What a pair of another framework is worth, by the rollouts that a discovery would give it.

A candidate is read as text and run by sandboxed workers alone: the process that asks never imports
or executes it.
"""

import math
import os
import re
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from spo_jax.config import Settings
from spo_jax.envs.files.labels import labels
from spo_jax.envs.problem import Problem
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.evaluator import Evaluator, require_rollouts
from spo_jax.envs.run.jobs.planning import CHECK_SECONDS, FULL_STEPS, limit_of
from spo_jax.envs.run.rollouts import Failed, Status
from spo_jax.errors import InputError, SandboxUnavailable, require_kind, require_path
from spo_jax.program import Pair
from spo_jax.program.pairfile import parse_pair, read_file
from spo_jax.runs.discover import settings
from spo_jax.search.instances import training_instances
from spo_jax.search.plugins import evaluator_of
from spo_jax.search.utility import mean_scores, utility_of

FAILED = -1.0  # the J that ships is at least 0
TRIES = 2  # of a pair at which our own side fails
QUOTED = 120  # characters of a line of a program


@dataclass(frozen=True)
class Score:
    """What became of a pair.

    Attributes:
        value: J, or what a failed pair scores; finite.
        status: "ok", "rejected" (not a pair, or not lawful), "invalid", "crash", "timeout",
            "memory" or "tampered".
        reason: One clause that says what to mend; empty if it is "ok".
        role: "destroy" or "repair", whose program failed, where that is known.
        instances: The mean score of each by its name; empty unless it is "ok".
    """

    value: float
    status: str = Status.OK.label
    reason: str = ""
    role: str = ""
    instances: Mapping[str, float] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether `value` is the pair's J."""
        return self.status == Status.OK.label


class Scorer:
    """Scores pairs as a discovery with the same settings does, on its training instances.

    All pairs meet the same instances, starts and random streams, so a pair's score depends on
    nothing else; the instances of validation are not touched.

    Workers start with the first pair and stay; a context manager ends them, `close` does, and so
    does the end of the process, whatever ends it. Threads score one after another; a forked process
    starts workers of its own.

    Args:
        problem: As `spo_jax.settings` has it.
        preset: Likewise.
        of: The settings themselves, in place of the others.
        failed: What a pair without a J scores. It must be below any J.
        **more: As `spo_jax.settings` has them.

    Raises:
        InputError: Settings are wrong, or `failed` is not finite.
    """

    def __init__(
        self,
        problem: str | Problem | type[Problem] | None = None,
        preset: str | Path | None = None,
        *,
        of: Settings | None = None,
        failed: float = FAILED,
        **more: Any,
    ):
        if not math.isfinite(failed):
            raise InputError(f"failed is {failed}: what a failed pair scores must be finite")
        if of is None:
            of = settings(problem, None if preset is None else str(preset), **more)
        elif problem is not None or preset is not None or more:
            raise InputError("of has all settings: leave out the problem, the preset and others")
        self.config, self.failed = of, failed
        self.problem = get_problem(of.problem)
        self.instances = training_instances(of, self.problem)
        self._utility = utility_of(of.evaluation.utility, self.problem)
        self._lock = threading.Lock()
        self._evaluator: Evaluator | None = None
        self._ending: weakref.finalize[Any, Any] | None = None
        _LIVING.add(self)

    def __enter__(self) -> "Scorer":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers; a further pair starts them again."""
        with self._lock:
            if self._ending is not None:
                self._ending()
            self._evaluator = self._ending = None

    @property
    def seconds(self) -> float:
        """The CPU seconds that a pair may take by its limits, all rollouts and both gates."""
        evaluation = self.config.evaluation
        limits = [limit_of(self.problem, each, evaluation.cpu_seconds) for each in self.instances]
        rollouts = math.fsum(limits) * evaluation.rollouts * evaluation.steps / FULL_STEPS
        return rollouts + 2 * CHECK_SECONDS

    # --- scoring ----------------------------------------------------------------------------------

    def file(self, path: str | Path, *, first: bool = False) -> Score:
        """Score a pair file; see `pair`.

        Args:
            path: The file.
            first: On the first instance and seed alone, as a cheap sieve.

        Returns:
            The score. A file that cannot be read as a pair is "rejected".

        Raises:
            InputError: There is no such file, which is not the writer's fault; or as `pair`.
            SandboxUnavailable: As `pair`.
        """
        require_path("path", path)
        if not Path(path).is_file():
            raise InputError(f"{path}: no such file")
        try:
            text = read_file(Path(path))
        except InputError as error:
            reason = str(error).removeprefix(f"{path}: ")
            return Score(self.failed, Status.REJECTED.label, reason)
        return self.text(text, first=first)

    def text(self, text: str, *, first: bool = False) -> Score:
        """Score a pair file's text; see `pair`.

        Args:
            text: The text.
            first: On the first instance and seed alone, as a cheap sieve.

        Returns:
            The score. A text that cannot be read as a pair is "rejected".

        Raises:
            InputError: It is no text; or as `pair`.
            SandboxUnavailable: As `pair`.
        """
        require_kind("text", text, str, "the text of a pair file")
        try:
            pair = parse_pair(text, _TEXT, self.problem.interface.game)
        except InputError as error:
            reason = str(error).removeprefix(f"{_TEXT}: ")
            return Score(self.failed, Status.REJECTED.label, reason)
        return self.pair(pair, first=first)

    def pair(self, pair: Pair, *, first: bool = False) -> Score:
        """Score a pair.

        Args:
            pair: The programs.
            first: On the first instance and seed alone, as a cheap sieve.

        Returns:
            The score.

        Raises:
            InputError: An evaluator or a utility of the user's does what it must not, or a J is not
                above what failed pairs score.
            SandboxUnavailable: No program can run here, or our own side failed at this pair twice.
        """
        require_kind("pair", pair, Pair, "a Pair")
        instances = self.instances[:1] if first else self.instances
        seeds = range(1 if first else self.config.evaluation.rollouts)
        with self._lock:
            evaluator = self._started()
            for _ in range(TRIES):
                rollouts = evaluator.run([pair], instances, seeds, self.config.evaluation.steps)
                require_rollouts(
                    rollouts, 1, len(instances), len(seeds), self.config.evaluation.steps
                )
                failure = rollouts.failure(0)
                if failure is None or failure.status != Status.HOST_FAULT:
                    break
        if failure is not None:
            if failure.status == Status.HOST_FAULT:
                raise SandboxUnavailable(
                    f"the pair could not be run {TRIES} times: {failure.reason}"
                )
            return Score(self.failed, failure.status.label, _mendable(failure, pair), failure.role)
        scores = self._utility(rollouts, instances)
        value = float(mean_scores(scores)[0])
        if not value > self.failed:
            raise InputError(
                f"utility {self.config.evaluation.utility} gave J {value:g}, which is not above "
                f"the {self.failed:g} of failed pairs: pass failed=, a number below any J"
            )
        means = (math.fsum(row) / len(row) for row in scores[0].tolist())
        names = labels(self.instances)[: len(instances)]
        return Score(value, instances=dict(zip(names, means, strict=True)))

    def _started(self) -> Evaluator:
        if self._evaluator is None:
            evaluator = evaluator_of(self.config, self.problem)
            self._evaluator = evaluator.__enter__()
            self._ending = weakref.finalize(self, evaluator.__exit__, None, None, None)
        return self._evaluator

    def _forget(self) -> None:
        """Leave the workers to the process that this one was forked from."""
        self._lock = threading.Lock()  # a thread that is not here may hold it
        if self._ending is not None:
            self._ending.detach()
        self._evaluator = self._ending = None


@cache
def scorer_of(task: str | Path, failed: float = FAILED) -> Scorer:
    """The one `Scorer` of this process for a file of settings, which is read once."""
    return Scorer(preset=task, failed=failed)


_TEXT = "the text"
_LIVING: "weakref.WeakSet[Scorer]" = weakref.WeakSet()


def _forget_all() -> None:
    for each in list(_LIVING):
        each._forget()


os.register_at_fork(after_in_child=_forget_all)


def _mendable(failure: Failed, pair: Pair) -> str:
    """The reason as a model may read it, with the line that it names in place of its number.

    Lines are counted in the program alone, which its writer has never seen.
    """
    programs = {"destroy": pair.destroy, "repair": pair.repair}
    if failure.role not in programs:
        return failure.redacted_reason
    lines = programs[failure.role].source.split("\n")

    def quoted(found: re.Match[str]) -> str:
        number = int(found[1])
        if not 1 <= number <= len(lines):
            return found[0]
        return f"at `{lines[number - 1].strip()[:QUOTED]}`"

    return re.sub(r"\b(?:at )?line (\d{1,6})\b", quoted, failure.redacted_reason)

"""What runs programs: the protocol of evaluators, and how a run finds the one that it is to use."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.run.acceptance import PAPER
from spo_jax.envs.run.adaptive import Adaptation
from spo_jax.envs.run.observation import OBSERVED, Showing
from spo_jax.envs.run.rollouts import Refusal, Rollouts
from spo_jax.envs.run.starts import RANDOM
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program

if TYPE_CHECKING:
    from spo_jax.envs.run.jobs.operators import AdaptiveRuns

LOCAL, RAY = "local", "ray"
Progress = Callable[[int, int], None]  # (done, in all)


class Evaluator(Protocol):
    """Runs the programs of one problem; a context manager, which starts and ends what it needs.

    `spo_jax.envs.run.local.LocalEvaluator` runs them in sandboxed processes on this machine.
    """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    @property
    def layers(self) -> Mapping[str, bool]:
        """Which layers of its sandbox hold, for the record."""
        ...

    def check(self, programs: Sequence[Program]) -> list[Refusal | None]:
        """Tell whether programs may run.

        Returns:
            For each program None, or why it may not.
        """
        ...

    def run(
        self,
        pairs: Sequence[Pair],
        instances: Sequence[Instance],
        seeds: Sequence[int] = (0, 1),
        steps: int = 100,
        *,
        seconds: float | None = None,
        fail_fast: bool = True,
        progress: Progress | None = None,
    ) -> Rollouts:
        """Run every pair on every instance with every seed; the same whatever else is in the batch.

        Args:
            pairs: [P] what runs.
            instances: [I] on what.
            seeds: [S] of the rollouts.
            steps: T, of each rollout.
            seconds: End each rollout after this CPU time at the latest; the rest of best_cost
                repeats the last value, the rest of state is -1. It also raises the CPU-time limit
                to match.
            fail_fast: The first failed rollout of a pair, in the order of instances and seeds,
                stands for all that come after it, which are not run; otherwise each has its own
                status.
            progress: Called with (rollouts done, rollouts in all).

        Returns:
            The rollouts, over [P, I, S].
        """
        ...

    def adaptive(
        self,
        destroys: Sequence[Program],
        repairs: Sequence[Program],
        instances: Sequence[Instance],
        seeds: Sequence[int],
        steps: int,
        rules: Adaptation,
        *,
        carry: bool = True,
        progress: Progress | None = None,
    ) -> "AdaptiveRuns":
        """A search of `steps` per instance and seed that draws operators by weights (G-LNS).

        Args:
            destroys: The programs to draw from.
            repairs: Likewise.
            instances: [I] on what.
            seeds: [S] of the searches.
            steps: T, of each search.
            rules: Rewards, weights and acceptance.
            carry: Whether the weights of a seed go on from instance to instance; otherwise they
                begin anew in each.
            progress: Called with (searches done, searches in all).

        Returns:
            The searches, over [I, S, T].
        """
        ...


@runtime_checkable
class Spread(Protocol):
    """What an evaluator on several machines has besides, for the display and the record."""

    def listen(self, say: Callable[[str], None] | None) -> None:
        """Tell `say`, a line at a time, what becomes of machines."""
        ...

    def shares(self) -> str:
        """Which machine did how much of the rollouts, in a few words."""
        ...

    def record(self) -> list[dict[str, Any]]:
        """What ran where, machine by machine, as a manifest keeps it."""
        ...


def require_rollouts(found: object, pairs: int, instances: int, seeds: int, steps: int) -> None:
    """Check what an evaluator returned.

    Args:
        found: What it returned.
        pairs: P, how many it was given.
        instances: I, likewise.
        seeds: S, likewise.
        steps: T, of each rollout.

    Raises:
        InputError: It is no Rollouts with best_cost of [P, I, S, T+1].
    """
    due = (pairs, instances, seeds, steps + 1)
    shape = found.best_cost.shape if isinstance(found, Rollouts) else None
    if shape != due:
        what = f"a {type(found).__name__}" if shape is None else f"best_cost of shape {shape}"
        raise InputError(f"the evaluator returned {what}: it must return Rollouts of shape {due}")


def require_searches(found: object, instances: int, seeds: int, steps: int) -> None:
    """Check what an evaluator's `adaptive` returned.

    Args:
        found: What it returned.
        instances: I, how many it was given.
        seeds: S, likewise.
        steps: T, of each search.

    Raises:
        InputError: It is no AdaptiveRuns with outcomes of [I, S, T], drawn of [I, S, T, 2] and
            rollouts of one pair.
    """
    from spo_jax.envs.run.jobs.operators import AdaptiveRuns

    due = (instances, seeds, steps)
    if not isinstance(found, AdaptiveRuns):
        shape = f"a {type(found).__name__}"
    elif found.outcomes.shape != due:
        shape = f"outcomes of shape {found.outcomes.shape}"
    elif found.drawn.shape != (*due, 2):
        shape = f"drawn of shape {found.drawn.shape}"
    else:
        return require_rollouts(found.rollouts, 1, instances, seeds, steps)
    raise InputError(f"the evaluator returned {shape}: it must return AdaptiveRuns of shape {due}")


def require_lawful(evaluator: Evaluator, problem: Problem, pair: Pair) -> None:
    """Check a pair by the sandbox's gate.

    Args:
        evaluator: Whose gate it is.
        problem: What the pair is for.
        pair: The programs.

    Raises:
        InputError: The gate refuses one of them for this problem.
    """
    programs = (pair.destroy, pair.repair)
    for program, reason in zip(programs, evaluator.check(programs), strict=True):
        if reason is not None:
            noun = problem.interface.game.named(program.role)
            raise InputError(f"the {noun} program cannot run on {problem.name}: {reason}")


class EvaluatorFactory(Protocol):
    """Makes the evaluator of a problem; its settings are those of `LocalEvaluator`."""

    def __call__(
        self,
        problem: Problem,
        workers: int = 1,
        *,
        seed: int = 0,
        cpu_seconds: float | None = None,
        memory_mb: int = 512,
        on_invalid: str = "fail",
        shown: Showing = OBSERVED,
        unsafe: bool = False,
        kit: bool = True,
        work: float | None = None,
        acceptance: str = PAPER,
        start: str = RANDOM,
    ) -> Evaluator: ...

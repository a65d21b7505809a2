"""What runs programs: the protocol of evaluators, and how a run finds the one that it is to use."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from inspect import getattr_static
from typing import Any, Protocol, Self, runtime_checkable

from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.run.adaptive import Adaptation
from spo_jax.envs.run.operators import AdaptiveRuns
from spo_jax.envs.run.rollouts import Refusal, Rollouts
from spo_jax.envs.run.shown import OBSERVED, Showing
from spo_jax.errors import InputError
from spo_jax.named import imported, require_members, require_parameters
from spo_jax.program import Pair, Program

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
        """Whether programs may run: None, or why each may not."""
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
        """Every pair on every instance with every seed; the same whatever else is in the batch.

        seconds: end each rollout after this CPU time at the latest; the rest of best_cost repeats
            the last value, the rest of state is -1. It also raises the CPU-time limit to match.
        fail_fast: the first failed rollout of a pair, in the order of instances and seeds, stands
            for all that come after it, which are not run; otherwise each has its own status.
        progress: called with (rollouts done, rollouts in all).
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
    ) -> AdaptiveRuns:
        """A search of `steps` per instance and seed that draws operators by weights (G-LNS).

        rules: rewards, weights and acceptance. carry: whether the weights of a seed go on from
            instance to instance; otherwise they begin anew in each.
        progress: called with (searches done, searches in all).
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
    """Raises InputError unless an evaluator returned Rollouts of the shape that was asked for."""
    due = (pairs, instances, seeds, steps + 1)
    shape = found.best_cost.shape if isinstance(found, Rollouts) else None
    if shape != due:
        what = f"a {type(found).__name__}" if shape is None else f"best_cost of shape {shape}"
        raise InputError(f"the evaluator returned {what}: it must return Rollouts of shape {due}")


def require_searches(found: object, instances: int, seeds: int, steps: int) -> None:
    """Raises InputError unless an evaluator returned AdaptiveRuns of the shape asked for."""
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
    ) -> Evaluator: ...


def get_evaluator(name: str, ray_address: str | None = None) -> EvaluatorFactory:
    """What makes a run's evaluator: "local", "ray", or a class or function "package.module:NAME".

    ray_address: see `spo_jax.envs.run.cluster.ray_fleet.RayFleet`; for "ray" alone.

    Raises InputError where nothing like that is found, and when what was made is no `Evaluator`;
    MissingExtra for "ray" without Ray.
    """
    if ray_address is not None and name != RAY:
        raise InputError(
            f"ray_address is given, but evaluator is {name}; use evaluator {RAY}, or leave it out"
        )
    if name == LOCAL:
        from spo_jax.envs.run.local import LocalEvaluator

        return LocalEvaluator
    if name == RAY:
        from spo_jax.envs.run.cluster.evaluator import ClusterEvaluator
        from spo_jax.envs.run.cluster.ray_fleet import RayFleet

        return partial(ClusterEvaluator, fleet=RayFleet(ray_address))
    make = imported("evaluator", name, f"{LOCAL}, {RAY}", call=False)
    if not callable(make):
        raise InputError(f"evaluator {name!r} is of type {type(make).__name__}, not a function")
    require_parameters(f"evaluator {name!r}", make, EvaluatorFactory.__call__)

    def checked(problem: Problem, workers: int = 1, **settings: Any) -> Any:
        made = make(problem, workers, **settings)
        managed = isinstance(made, AbstractContextManager)
        if not managed or getattr_static(made, "layers", None) is None:
            raise InputError(
                f"evaluator {name!r} made a {type(made).__name__}: an evaluator is a context "
                "manager and has layers, as spo_jax.envs.run.evaluator.Evaluator"
            )
        require_members(f"evaluator {name!r}", made, Evaluator)
        return made

    return checked

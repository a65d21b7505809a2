"""The choice among a run's best pairs, on instances and rollout lengths that no round has seen.

Discovery compares pairs on a few short rollouts, where the best hundred differ by less than the
noise, so the highest J is partly luck. With `finalists` set, the best pairs meet once more on
larger instances with evaluation-length rollouts (Appendix A.3 names such a validation without
saying what it decides). With 0, the paper's Algorithm 1, the highest J is the choice.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from spo_jax.config import Config
from spo_jax.envs.evaluator import Evaluator
from spo_jax.envs.metrics import utility
from spo_jax.envs.problem import Problem
from spo_jax.search.rounds import Best, Observer
from spo_jax.seeding import derive


def validate(
    config: Config,
    problem: Problem,
    evaluator: Evaluator,
    finalists: Sequence[Best],
    observer: Observer,
) -> tuple[Best, ...]:
    """The finalists with their utility (eq:pair-performance) on the validation instances.

    NaN for a pair that failed there.
    """
    if not finalists:
        return ()
    observer.stage(config.rounds, "validation", len(finalists))
    instances = problem.sample(
        config.validation_size, config.validation_instances, derive(config.seed, "validation")
    )
    rollouts = evaluator.run(
        [finalist.pair for finalist in finalists],
        instances,
        seeds=range(config.rollouts),
        steps=config.validation_steps,
        progress=lambda done, total: observer.advance(done * len(finalists) // total),
    )
    values = utility(rollouts.best_cost)
    return tuple(
        replace(finalist, validation=float(value))
        for finalist, value in zip(finalists, values, strict=True)
    )


def chosen(finalists: Sequence[Best]) -> Best | None:
    """The finalist with the highest validation utility, the earlier of equals; None without one."""
    valid = [f for f in finalists if f.validation is not None and not math.isnan(f.validation)]
    return max(valid, key=lambda finalist: finalist.validation or 0.0, default=None)

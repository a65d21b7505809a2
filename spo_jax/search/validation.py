"""The best pairs of a run on instances that no round has seen, and the choice among them.

Discovery compares pairs on a few short rollouts, where the best hundred differ by less than the
noise, so the highest J is partly luck. When the rounds are over the `finalists` best pairs by J
are measured twice more:

- in validation: on instances of `validation_size`, or on those that `validate_on` names, with
  rollouts of `validation_steps`. With `select = "validation"` the best one there is the run's pair;
  with "utility", the paper's rule, the one with the highest J is (Appendix A.3 names a validation
  without saying what it decides).
- on fresh instances with the size, rollouts and steps of discovery, unless the training instances
  are files. Every pair has another J there. So `controls`, random valid pairs of the run, are
  measured too: what the highest J loses beyond them is what it over-promised. With `halving` only
  the highest J and the last few finalists are measured, with the fewest controls.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from spo_jax.config import Settings
from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.run.evaluator import Evaluator
from spo_jax.envs.run.rollouts import Rollouts, Status
from spo_jax.search.halving import halving, mixed, rungs
from spo_jax.search.instances import fresh_instances, validation_instances
from spo_jax.search.methods import rounds_of
from spo_jax.search.rounds import Best, Observer
from spo_jax.search.utility import Utility, improvement, mean_scores

FEWEST_CONTROLS = 10


@dataclass(frozen=True)
class Finals:
    """The measured pairs of a run; empty where none were measured.

    finalists: the best pairs by J, the highest first, one per destroy. controls: pairs that were
    drawn without regard to J; they have no validation.
    """

    finalists: tuple[Best, ...] = ()
    controls: tuple[Best, ...] = ()

    @property
    def highest(self) -> Best | None:
        """The finalist with the highest J."""
        return self.finalists[0] if self.finalists else None

    def chosen(self, select: str) -> Best | None:
        """The run's pair by the rule `select` ("utility" or "validation"), None without one.

        Of equals the earlier finalist; a pair that failed in validation is not chosen by it.
        """
        if select == "utility":
            return self.highest
        valid = [(f.validation, f) for f in self.finalists if _known(f.validation)]
        return max(valid, key=lambda each: each[0] or 0.0, default=(None, None))[1]

    @property
    def drift(self) -> float | None:
        """Median of J minus fresh J of the controls: what the other instances do to any pair.

        A median, because weak pairs move more than others.
        """
        losses = [loss for loss in map(loss_of, self.controls) if loss is not None]
        return median(losses) if losses else None

    @property
    def over_promise(self) -> float | None:
        """What the highest J lost on fresh instances beyond the controls; None if unknown."""
        loss = None if self.highest is None else loss_of(self.highest)
        return None if loss is None or self.drift is None else loss - self.drift


def loss_of(pair: Best) -> float | None:
    """Discovery J minus J on fresh instances; None where it was not measured, or failed there."""
    return pair.utility - pair.fresh if pair.fresh is not None and _known(pair.fresh) else None


def _known(value: float | None) -> bool:
    return value is not None and not math.isnan(value)


def controls_wanted(config: Settings) -> int:
    """How many random pairs are measured beside the finalists."""
    search = config.search
    return FEWEST_CONTROLS if search.halving else max(search.finalists, FEWEST_CONTROLS)


def work_of(
    config: Settings, problem: Problem, training: Sequence[Instance], validation: Sequence[Instance]
) -> float:
    """What `validate` takes, in evaluations of a pair in training.

    A step is taken to cost as much as its instance is large. Finalists may be fewer than wanted.
    """
    count, own = config.search.finalists, config.evaluation
    if not count:
        return 0.0
    sizes = [validation[place].size for place in mixed(validation)]
    stages = rungs(count, len(sizes)) if config.search.halving else [(count, len(sizes))]
    seen, steps, measured = 0, 0, count
    for pairs, until in stages:
        steps += pairs * sum(sizes[seen:until]) * own.validation_steps
        seen, measured = until, pairs
    unseen = sum(each.size for each in fresh_instances(config, problem))
    steps += (measured + controls_wanted(config)) * unseen * own.steps
    return steps / (own.steps * sum(each.size for each in training))


def validate(
    config: Settings,
    problem: Problem,
    evaluator: Evaluator,
    finalists: Sequence[Best],
    controls: Sequence[Best],
    observer: Observer,
    utility: Utility = improvement,
    instances: Sequence[Instance] = (),
) -> Finals:
    """The finalists with `validation` and `fresh`, the controls with `fresh`, filled in.

    Both are the mean scores of `utility`, NaN for a pair that failed there; `costs` are those of
    the validation. instances: of the validation, by default those that the config names.
    """

    def played(
        stage: str, pairs: Sequence[Best], instances: Sequence[Instance], steps: int
    ) -> Rollouts:
        observer.stage(rounds_of(config) or 0, stage, len(pairs))
        with observer.working(stage):
            rollouts = evaluator.run(
                [each.pair for each in pairs],
                instances,
                seeds=range(config.evaluation.rollouts),
                steps=steps,
                progress=lambda done, total: observer.advance(done * len(pairs) // total),
            )
        return rollouts

    if not finalists:
        return Finals()
    final = instances or validation_instances(config, problem)
    paid = np.full((len(finalists), len(final), config.evaluation.rollouts), math.nan)

    def of_some(pairs: Sequence[int], places: Sequence[int]) -> np.ndarray:
        some = [final[place] for place in places]
        steps = config.evaluation.validation_steps
        rollouts = played("validation", [finalists[p] for p in pairs], some, steps)
        costs = np.where(rollouts.status == Status.OK, rollouts.final_cost, math.nan)
        paid[np.ix_(pairs, places)] = costs
        return utility(rollouts, some)

    values: Sequence[float | None]
    if config.search.halving:
        values = halving(len(finalists), mixed(final), of_some)
    else:
        values = mean_scores(of_some(range(len(finalists)), range(len(final)))).tolist()
    validated = [
        replace(each, validation=value, costs=tuple(costs.ravel().tolist()))
        if np.isfinite(costs).all()
        else replace(each, validation=value)
        for each, value, costs in zip(finalists, values, paid, strict=True)
    ]
    unseen = fresh_instances(config, problem)
    if not unseen:
        return Finals(tuple(validated))
    dropped = [config.search.halving and f.validation is None for f in validated]
    wanted = [0, *(p for p in range(1, len(validated)) if not dropped[p])]
    everyone = (*(validated[p] for p in wanted), *controls)
    rollouts = played("fresh", everyone, unseen, config.evaluation.steps)
    fresh = mean_scores(utility(rollouts, unseen)).tolist()
    for p, value in zip(wanted, fresh, strict=False):
        validated[p] = replace(validated[p], fresh=value)
    known = zip(controls, fresh[len(wanted) :], strict=True)
    return Finals(tuple(validated), tuple(replace(each, fresh=value) for each, value in known))

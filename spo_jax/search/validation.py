"""The best pairs of a run on instances that no round has seen, and the choice among them.

Discovery compares pairs on a few short rollouts, where the best hundred differ by less than the
noise, so the highest J is partly luck. When the rounds are over the `finalists` best pairs by J
are measured twice more:

- in validation: on instances of `validation_size`, or on those that `validate_on` names, with
  rollouts of `validation_steps`. With `select = "validation"` the best one there is the run's pair;
  with "utility", the paper's rule, the one with the highest J is (Appendix A.3 names a validation
  without saying what it decides).
- on fresh instances with the size, rollouts and steps of discovery; where the training instances
  are files, on the validation's with these rollouts and steps. Every pair has another J there. So
  `controls`, random valid pairs of the run, are measured too: what the highest J loses beyond them
  is what it over-promised. With `halving` only the highest J and the last few finalists are
  measured, with the fewest controls.

Finalists and controls also have one short rollout on each of a few sizes that the training has not
(`spo_jax.search.instances.other_sizes`).

A pair that fails on such a size or on fresh instances, or whose J falls there by more than that of
other pairs, fits its training instances alone, as a program that has memorised them does. It is
refused as the run's pair, whatever `select` is, and the next one is taken.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from statistics import median

import numpy as np

from spo_jax.config import Settings
from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.run.evaluator import Evaluator
from spo_jax.envs.run.rollouts import Rollouts, Status
from spo_jax.program import Pair
from spo_jax.search.halving import halving, mixed, rungs
from spo_jax.search.instances import fresh_instances, validation_instances
from spo_jax.search.method import rounds_of
from spo_jax.search.rounds import Best, Observer
from spo_jax.search.utility import Utility, improvement, mean_scores

FEWEST_CONTROLS = 10
# J falls by more than that of other pairs where it does by SPREADS of their standard deviations,
# judged by the median absolute one, and by the share LEAST of J at least: docs/choices.md.
SPREADS, LEAST = 5.0, 0.03
MISFIT_STEPS = 10  # of a rollout on another size
FEWEST_FALLS = 3  # of controls; of fewer no spread is known, and those of other finalists count too
_NORMAL = 1.4826  # standard deviations in a median absolute deviation


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

        Of equals the earlier finalist. A pair that failed in validation is not chosen by it, and
        none that is refused.
        """
        return next((f for f in self._ranked(select) if not self.refusal(f)), None)

    def best(self, select: str) -> Best | None:
        """As `chosen`; where that is none, the next that stands: by J, or the best control by fresh
        J. If all fail, the highest J.
        """
        stand = [c for c in self.controls if _known(c.fresh) and not self.refusal(c)]
        control = max(stand, key=lambda c: c.fresh or 0.0, default=None)
        return self.chosen(select) or self.chosen("utility") or control or self.highest

    def refused(self, select: str) -> list[tuple[Best, str]]:
        """The finalists that fall, and those that fail and `select` prefers to the one that it
        chooses, with the reasons.
        """
        before = {f.pair.digest for f in takewhile(self.refusal, self._ranked(select))}
        reasons = [(f, self.refusal(f)) for f in self.finalists]
        return [
            (f, why)
            for f, why in reasons
            if why and ((_known(f.fresh) and not f.misfit) or f.pair.digest in before)
        ]

    def refusal(self, pair: Best) -> str:
        """Why a measured pair cannot be the run's pair; "" if it can."""
        if pair.misfit:
            return f"it fails on a size that it was not trained on: {pair.misfit}"
        measured = (*self.finalists, *self.controls)
        if not any(_known(each.fresh) for each in measured):
            return ""
        loss = loss_of(pair)
        if loss is None:
            return "it failed on fresh instances, or was not measured there"
        falls = _falls(self.controls, pair)
        if len(falls) < FEWEST_FALLS:
            falls = _falls(measured, pair)
        if not falls:
            return ""
        middle = median(falls)
        spread = _NORMAL * median(abs(fall - middle) for fall in falls)
        if loss - middle <= max(SPREADS * spread, LEAST * abs(pair.utility)):
            return ""
        return (
            f"its J falls by {loss:.4f} on fresh instances, that of {len(falls)} other pair"
            f"{'s' * (len(falls) > 1)} by {middle:.4f} (median), so it fits the training instances "
            "alone"
        )

    def _ranked(self, select: str) -> list[Best]:
        """The finalists in the order in which a rule prefers them."""
        if select == "utility":
            return list(self.finalists)
        valid = [f for f in self.finalists if _known(f.validation)]
        return sorted(valid, key=lambda f: -(f.validation or 0.0))

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


def _falls(pairs: Sequence[Best], but: Best) -> list[float]:
    """What pairs but one lose, where it is known."""
    losses = [loss_of(each) for each in pairs if each.pair.digest != but.pair.digest]
    return [loss for loss in losses if loss is not None]


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
    unseen = sum(each.size for each in fresh_instances(config, problem) or validation)
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
    sizes: Sequence[Instance] = (),
) -> Finals:
    """The finalists with `validation` and `fresh`, the controls with `fresh`, filled in, and all
    with `misfit`.

    Both are the mean scores of `utility`, NaN for a pair that failed there; `costs` are those of
    the validation. instances: of the validation, by default those that the config names. sizes: of
    other sizes, on which pairs are tried.
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
    unseen = fresh_instances(config, problem) or final
    dropped = [config.search.halving and f.validation is None for f in validated]
    wanted = [0, *(p for p in range(1, len(validated)) if not dropped[p])]
    everyone = (*(validated[p] for p in wanted), *controls)
    rollouts = played("fresh", everyone, unseen, config.evaluation.steps)
    fresh = mean_scores(utility(rollouts, unseen)).tolist()
    for p, value in zip(wanted, fresh, strict=False):
        validated[p] = replace(validated[p], fresh=value)
    known = zip(controls, fresh[len(wanted) :], strict=True)
    others = [replace(each, fresh=value) for each, value in known]
    fits = misfits(problem, evaluator, [each.pair for each in (*validated, *others)], sizes)
    tried = [replace(b, misfit=why) for b, why in zip((*validated, *others), fits, strict=True)]
    return Finals(tuple(tried[: len(validated)]), tuple(tried[len(validated) :]))


def misfits(
    problem: Problem, evaluator: Evaluator, pairs: Sequence[Pair], sizes: Sequence[Instance]
) -> list[str]:
    """Where and how each pair fails in a short rollout on instances of `sizes`; "" if it does not.

    A fault on our side is no failure of the pair's.
    """
    if not sizes:
        return [""] * len(pairs)
    found = evaluator.run(pairs, sizes, (0,), MISFIT_STEPS)
    wrong = ~np.isin(found.status, (Status.OK, Status.HOST_FAULT))[..., 0]
    return [
        f"at {sizes[i].size} {problem.unit}, {found.reason[p, i, 0]}" if wrong[p, i] else ""
        for p, i in enumerate(wrong.argmax(axis=1))
    ]

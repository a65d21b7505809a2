"""Utilities: from the rollouts of a pair to a score by instance and seed, and to their mean.

A utility is a pure function `utility(rollouts, instances) -> scores`. UTILITIES holds those that
ship, the paper's first; `get_utility("package.module:NAME")` takes any other. What selects
pairs, and what credits start from, is the mean of a pair's scores.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.envs.run.rollouts import Rollouts, Status
from spo_jax.errors import InputError
from spo_jax.named import imported_function

EPS = 1e-12  # guards the denominator of eq:pair-performance


class Utility(Protocol):
    """Rollouts in, scores out."""

    def __call__(self, rollouts: Rollouts, instances: Sequence[Instance]) -> np.ndarray:
        """[P, I, S] float64, more is better: finite for every rollout whose status is OK.

        instances: [I], with their references where these are known. What failed rollouts are given
        is not read. A pair's scores must not depend on the other pairs, nor on how many rollouts
        are given at once: in a race it is called with some of a pair's instances and seeds.
        """
        ...


def improvement(rollouts: Rollouts, instances: Sequence[Instance]) -> np.ndarray:
    """The paper's (eq:pair-performance): how far the cost fell, relative to the start."""
    start, end = rollouts.best_cost[..., 0], rollouts.best_cost[..., -1]
    return (start - end) / np.maximum(np.abs(start), EPS)


def anytime(rollouts: Rollouts, instances: Sequence[Instance]) -> np.ndarray:
    """The mean of `improvement` after each step: early progress counts more."""
    start, after = rollouts.best_cost[..., :1], rollouts.best_cost[..., 1:]
    return ((start - after) / np.maximum(np.abs(start), EPS)).mean(axis=-1)


UTILITIES: dict[str, Utility] = {"improvement": improvement, "anytime": anytime}
_SAVED = "the share of a random start's cost that the search saves"
_MEANING = {"improvement": _SAVED, "anytime": f"{_SAVED}, as a mean over its steps"}


def meaning(name: str) -> str:
    """What J is under a utility, in words."""
    return _MEANING.get(name, f"what the utility {name} makes of a pair's rollouts")


def mean_scores(scores: np.ndarray) -> np.ndarray:
    """[P, I, S] -> [P], NaN where any score is missing.

    The sum runs in order, so that it has the same bits whatever else is in the batch.
    """
    total = np.zeros(len(scores))
    for column in scores.reshape(len(scores), -1).T:
        total = total + column
    return total / (scores.shape[1] * scores.shape[2])


def get_utility(name: str) -> Utility:
    """A function of UTILITIES, or any other by "package.module:NAME".

    The results of a user's function are checked: InputError unless they are an array [P, I, S] of
    numbers, finite for every rollout that ended well. Scores of failed rollouts become NaN.
    Raises InputError where no such function is found.
    """
    if name in UTILITIES:
        return UTILITIES[name]
    function = imported_function("utility", name, ", ".join(UTILITIES), improvement)

    def checked(rollouts: Rollouts, instances: Sequence[Instance]) -> np.ndarray:
        found = function(rollouts, instances)
        scores = floats(f"utility {name!r}", "score", found, rollouts.status.shape)
        ended = rollouts.status == Status.OK
        if not np.isfinite(scores[ended]).all():
            raise InputError(f"utility {name!r} gives a rollout that ended well no score")
        with np.errstate(over="ignore"):
            if np.isinf(mean_scores(np.where(ended, scores, 0.0))).any():
                raise InputError(f"utility {name!r} returned scores too large for a mean")
        scores[~ended] = np.nan
        return scores

    return checked


def floats(who: str, noun: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    """What a user's function returned, as a float64 array of its own.

    Raises InputError unless it is numbers of that shape, finite or NaN.
    """
    try:
        if np.iscomplexobj(values):
            raise TypeError
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{who} returned a {noun} that is no array of numbers") from None
    if array.shape != shape:
        raise InputError(f"{who} returned a {noun} of shape {array.shape}, not {shape}")
    if np.isinf(array).any():
        raise InputError(f"{who} returned an infinite {noun}: use NaN for none")
    return array

"""Utilities: from the rollouts of a pair to a score by instance and seed, and to their mean.

A utility is a pure function `utility(rollouts, instances) -> scores`. UTILITIES has those that
ship, the paper's first, and takes any other as `UTILITIES["package.module:NAME"]`. What selects
pairs, and what credits start from, is the mean of a pair's scores.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import wraps
from inspect import unwrap
from types import CodeType
from typing import Any, Protocol

import numpy as np

from spo_jax.envs import scores
from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.run.rollouts import Rollouts, Status
from spo_jax.envs.run.starts import CONSTRUCTION, RANDOM
from spo_jax.errors import InputError
from spo_jax.numerics.jax_state import jax_ready
from spo_jax.registry import Registry, require_function


class Utility(Protocol):
    """Rollouts in, scores out."""

    def __call__(self, rollouts: Rollouts, instances: Sequence[Instance]) -> np.ndarray:
        """Score each rollout.

        A pair's scores must not depend on the other pairs, nor on how many rollouts are given at
        once.

        Args:
            rollouts: Of P pairs on I instances with S seeds.
            instances: [I], with their references where these are known.

        Returns:
            [P, I, S] float64, more is better: finite for every rollout whose status is OK. What
            failed rollouts are given is not read.
        """
        ...


def improvement(rollouts: Rollouts, instances: Sequence[Instance]) -> np.ndarray:
    """The paper's (eq:pair-performance): how far the cost fell, relative to the start.

    Args:
        rollouts: Of P pairs on I instances with S seeds.
        instances: [I].

    Returns:
        [P, I, S] float64.
    """
    return _computed("improvement", rollouts.best_cost, 3)


def anytime(rollouts: Rollouts, instances: Sequence[Instance]) -> np.ndarray:
    """The mean of `improvement` after each step: early progress counts more.

    Args:
        rollouts: As for `improvement`.
        instances: Likewise.

    Returns:
        Likewise.
    """
    return _computed("anytime", rollouts.best_cost, 3)


def _computed(name: str, values: np.ndarray, axes: int) -> np.ndarray:
    """A score of the leading axes, by JAX where this process has it, else with the same bits.

    JAX is given as many rows as one of a few shapes has.
    """
    if not jax_ready():
        return np.asarray(getattr(scores, name)(values))
    from spo_jax.envs import metrics
    from spo_jax.numerics.float64 import bucket, padded

    before, own = values.shape[:axes], values.shape[axes:]
    count = math.prod(before)
    flat = padded(values.reshape(count, *own), (bucket(count), *own))
    return np.array(getattr(metrics, name)(flat))[:count].reshape(before)


_STARTS = {RANDOM: "a random start", CONSTRUCTION: "the construction"}


def meaning(name: str, start: str = RANDOM, maximise: bool = False) -> str:
    """What J is under a utility, in words: of a user's own, the first sentence of its docstring.

    Args:
        name: The utility's.
        start: Of the rollouts, a name of STARTS.
        maximise: As `Problem.maximise`.
    """
    if name in UTILITIES:
        share = "value that the search adds" if maximise else "cost that the search saves"
        over = ", as a mean over its steps" if name == "anytime" else ""
        return f"the share of {_STARTS.get(start, 'the start')}'s {share}{over}"
    try:
        told = (UTILITIES[name].__doc__ or "").strip().partition("\n\n")[0]
    except InputError:  # a run is read where its utility is not
        told = ""
    sentence = " ".join(told.split()).partition(". ")[0].removesuffix(".")
    return f"what the utility {name} makes of a pair's rollouts{sentence and f': {sentence}'}"


def mean_scores(values: np.ndarray) -> np.ndarray:
    """[P, I, S] -> [P], NaN where any score is missing.

    The sum runs in order, so that it has the same bits whatever else is in the batch.

    Args:
        values: The scores.
    """
    return _computed("utility", values, 1)


def _own(name: str, function: Any) -> Utility:
    """The function, whose results are checked: InputError unless they are an array [P, I, S] of
    numbers, finite for every rollout that ended well. Scores of failed rollouts become NaN.
    """
    require_function(f"utility {name!r}", function, improvement)

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

    checked.__doc__ = getattr(function, "__doc__", None)
    checked.__wrapped__ = function  # type: ignore[attr-defined]
    return checked


UTILITIES: Registry[Utility] = Registry(
    "utility", {"improvement": improvement, "anytime": anytime}, _own
)


def utility_of(name: str, problem: Problem) -> Utility:
    """The utility of that name, which is given the references of instances as costs of rollouts
    are: as they are minimised.

    Args:
        name: Of UTILITIES.
        problem: The instances'.
    """
    found = UTILITIES[name]
    if not problem.maximise:
        return found

    def minimised(each: Instance) -> Instance:
        known = each.reference
        return each if known is None else replace(each, reference=problem.turned(known))

    @wraps(found)
    def turned(rollouts: Rollouts, instances: Sequence[Instance]) -> np.ndarray:
        return found(rollouts, [*map(minimised, instances)])

    return turned


def reads_seconds(utility: Utility) -> bool:
    """Whether the code of a user's function names `seconds`, as `Rollouts.seconds`.

    Args:
        utility: As `utility_of` has it.
    """
    function = unwrap(utility)
    call = function if hasattr(function, "__code__") else vars(type(function)).get("__call__")
    left = [getattr(call, "__code__", None)]
    while left:
        code = left.pop()
        if code is None:
            continue
        if "seconds" in code.co_names or "seconds" in code.co_consts:
            return True
        left += [each for each in code.co_consts if isinstance(each, CodeType)]
    return False


def floats(who: str, what: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    """What a user's function returned, as a float64 array of its own.

    Args:
        who: Returned it, for the message.
        what: The value that it returned, likewise.
        values: What it returned.
        shape: That it must have.

    Raises:
        InputError: It is not numbers of that shape, finite or NaN.
    """
    try:
        if np.iscomplexobj(values):
            raise TypeError
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{who} returned a {what} that is no array of numbers") from None
    if array.shape != shape:
        raise InputError(f"{who} returned a {what} of shape {array.shape}, not {shape}")
    if np.isinf(array).any():
        raise InputError(f"{who} returned an infinite {what}: use NaN for none")
    return array

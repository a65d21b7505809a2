"""Races: rules that stop the evaluation of pairs that look bad, and what the J of such a pair is.

A rule sees the scores so far of the pairs that are compared, and says which of them go on. All of
them have their evaluations on the same instances with the same seeds, in the same order
(`evaluations`), so that like is compared with like. A pair that is out is censored: its J is an
estimate (`completed`), too low on average, because it is out for being low on what it has.
docs/credit_schemes.md says by how much.

`spo_jax.search.heats` races the responses of a round; `spo_jax.search.lab.racing` replays races
from tables.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import index

import numpy as np

from spo_jax.errors import InputError
from spo_jax.named import imported_function
from spo_jax.search.formulas.plain import ranks

Array = np.ndarray
# scores [..., P, I, S] float64 by pair, instance and seed, NaN for what was not evaluated
# -> [..., P] bool, who goes on. An attribute `stages` may say after how many evaluations it is
# asked; without, it is asked after each.
Rule = Callable[[Array], Array]
NONE = "none"


def _by_evaluation(scores: Array) -> tuple[Array, Array]:
    """[..., P, e] the scores of the evaluations that were made, and [..., P] who has them all."""
    flat = scores.reshape(*scores.shape[:-2], -1)
    made = np.isfinite(flat)
    some = made.reshape(-1, flat.shape[-1]).any(axis=0)
    return flat[..., some], made[..., some].all(axis=-1)


def _known(scores: Array) -> Array:
    return np.where(np.isfinite(scores), scores, 0.0)


@dataclass(frozen=True)
class WorstOut:
    """After `after` evaluations the worst `share` of the pairs is out, rounded down.

    Raises InputError for less than one evaluation, or no share from 0 to below 1.
    """

    after: int
    share: float

    def __post_init__(self) -> None:
        if self.after < 1 or not 0 <= self.share < 1:
            raise InputError("WorstOut is after 1 evaluation or more, for a share of 0 to below 1")

    def __str__(self) -> str:
        return f"after {self.after}, the worst {self.share:.0%}"

    @property
    def stages(self) -> tuple[int, ...]:
        return (self.after,)

    def __call__(self, scores: Array) -> Array:
        seen, alive = _by_evaluation(scores)
        means = np.where(alive, _known(seen).mean(axis=-1), math.inf)  # behind those that are in
        place = np.argsort(np.argsort(means, axis=-1, kind="stable"), axis=-1, kind="stable")
        out = np.floor(alive.sum(axis=-1, keepdims=True) * self.share)
        return np.asarray(alive & (place >= out))


@dataclass(frozen=True)
class TTest:
    """A pair is out once a paired t test, one-sided, says that it is worse than the best so far.

    level: of one test. With every further evaluation there is another test, so that more good pairs
    are lost than 1 - level. Raises InputError for a level that is not between 0.5 and 1.
    """

    level: float = 0.95

    def __post_init__(self) -> None:
        _require_level(self.level)

    def __str__(self) -> str:
        return f"t test at {self.level:g}"

    def __call__(self, scores: Array) -> Array:
        seen, alive = _by_evaluation(scores)
        count = seen.shape[-1]
        if count < 2:
            return alive
        best = np.where(alive, _known(seen).mean(axis=-1), -np.inf).argmax(axis=-1)
        behind = _known(np.take_along_axis(seen, best[..., None, None], axis=-2) - seen)
        error = behind.std(axis=-1, ddof=1) / math.sqrt(count)
        return np.asarray(alive & ~(behind.mean(axis=-1) > _t(self.level, count - 1) * error))


@dataclass(frozen=True)
class FRace:
    """A pair is out once Friedman's test says that pairs differ, and its ranks are too low.

    Ranks are within each evaluation, so that no level or spread of an instance counts. After a
    significant test (chi squared) a pair is out whose rank sum is below the best one's by more than
    Conover's critical difference, two-sided (F-race, Birattari et al. 2002). level: of both tests.
    With two pairs left it is the same test. Raises InputError for a level that is not between 0.5
    and 1.
    """

    level: float = 0.95

    def __post_init__(self) -> None:
        _require_level(self.level)

    def __str__(self) -> str:
        return f"F-race at {self.level:g}"

    def __call__(self, scores: Array) -> Array:
        seen, alive = _by_evaluation(scores)
        count, left = seen.shape[-1], alive.sum(axis=-1)
        if count < 2:
            return alive
        by_pair = np.swapaxes(np.where(alive[..., None], seen, math.nan), -1, -2)  # [..., e, P]
        # Ranks 1 to k, ties sharing their mean.
        own = _known(ranks(by_pair) * np.maximum(left - 1, 1)[..., None, None] + 1)
        sums, squares = own.sum(axis=-2), (own**2).sum(axis=(-2, -1))
        flat = count * left * (left + 1) ** 2 / 4  # of the squares, were all pairs alike
        spread = squares - flat
        between = (sums**2).sum(axis=-1) - count * flat
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = np.where(spread > 0, (left - 1) * between / spread, 0.0)
            freedom = (count - 1) * np.maximum(left - 1, 1)
            share = 1 - statistic / (count * np.maximum(left - 1, 1))
            error = np.sqrt(2 * count * np.maximum(share, 0.0) * spread / freedom)
        differ = (left > 1) & (statistic > _chi_squared(self.level, np.maximum(left - 1, 1)))
        critical = _t((1 + self.level) / 2, freedom) * error
        behind = sums.max(axis=-1, keepdims=True) - sums
        return np.asarray(alive & ~(differ[..., None] & (behind > critical[..., None])))


def _require_level(level: float) -> None:
    if not 0.5 < level < 1:
        raise InputError(f"level is {level}; it is between 0.5 and 1")


def _t(share: float, degrees: Array | int) -> Array:
    """The quantile of Student's t. SciPy is slow to import, and few rules need it."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(degrees, share))


def _chi_squared(share: float, degrees: Array) -> Array:
    from scipy.special import chdtri

    return np.asarray(chdtri(degrees, 1 - share))


RULES: dict[str, Rule] = {
    "worst-quarter": WorstOut(2, 0.25),
    "worst-half": WorstOut(3, 0.5),
    "t-test": TTest(0.95),
    "f-race": FRace(0.95),
}


def get_racing(name: str) -> Rule | None:
    """A rule of RULES, None for "none", or any other by "package.module:NAME".

    Raises InputError where nothing callable is found under the name.
    """
    if name == NONE or name in RULES:
        return RULES.get(name)
    rule: Rule = imported_function("racing", name, ", ".join((NONE, *RULES)), _rule)
    return rule


def _rule(scores: Array) -> Array:
    """The signature of a rule."""
    raise NotImplementedError


def stages(rule: Rule, evaluations: int) -> list[int]:
    """After how many of a pair's evaluations a rule is asked, rising, below all of them.

    Raises InputError for a rule that would never be asked, or whose `stages` are no whole numbers.
    """
    told = getattr(rule, "stages", None)
    try:
        own = range(1, evaluations) if told is None else [index(count) for count in told]
    except TypeError:
        raise InputError(
            f"racing: the rule {_name(rule)} has stages {told!r:.80}, where whole numbers are due, "
            "as (2, 3): after how many evaluations it is asked"
        ) from None
    found = sorted({count for count in own if 1 <= count < evaluations})
    if not found:
        when = f"after {', '.join(map(str, own)) or 'none'}"
        when = "after each but the last" if told is None else when
        raise InputError(
            f"racing: the rule {_name(rule)} is asked {when}, and a pair has {evaluations} "
            "evaluations: no pair would ever be left out; use another rule, or more instances or "
            "rollouts"
        )
    return found


def _name(rule: Rule) -> str:
    """A function's name; what else says of itself."""
    return getattr(rule, "__name__", None) or str(rule)


def decided(rule: Rule, scores: Array) -> Array:
    """[..., P] bool, who goes on: what the rule says of those with scores.

    scores: [..., P, I, S], NaN throughout for pairs that are out. Raises InputError where the rule
    returns something else than bools, or lets no pair go on.
    """
    alive = np.isfinite(scores).any(axis=(-2, -1))
    found = rule(scores.copy())
    try:
        going = np.asarray(found)
    except ValueError:  # lists of unequal lengths
        going = np.zeros(0)
    if going.shape != alive.shape or going.dtype != bool:
        raise InputError(f"racing: the rule {_name(rule)} returned no bools of shape {alive.shape}")
    going = going & alive
    if not going.any(axis=-1).all():
        raise InputError(f"racing: the rule {_name(rule)} lets no pair go on")
    return going


def evaluations(instances: int, seeds: int) -> list[tuple[int, int]]:
    """[I S] places (instance, seed) in the order of a race: every instance once, then again.

    So the first evaluations are on as many instances as can be.
    """
    return [(i, s) for s in range(seeds) for i in range(instances)]


def completed(scores: Array, made: Array) -> Array:
    """[..., P]: J of every pair, the mean over all E evaluations or an estimate of it.

    Instances differ in their level. So of a pair that is out the estimate is the mean J of those
    that have all evaluations, plus how far the pair is from them on the evaluations that it has; at
    most the highest J of those, so that no estimate makes a pair the best.
    scores: [..., P, E] float64. made: [..., P, E] bool, at least one pair has all.
    """
    finished = np.asarray(made.all(axis=-1))
    all_of = np.where(finished[..., None], scores, 0.0)
    level = all_of.sum(axis=-2) / finished.sum(axis=-1)[..., None]
    away = np.where(made, scores - level[..., None, :], 0.0).sum(axis=-1) / made.sum(axis=-1)
    whole = np.where(finished, all_of.mean(axis=-1), -np.inf)
    estimate = np.minimum(level.mean(axis=-1)[..., None] + away, whole.max(axis=-1, keepdims=True))
    return np.asarray(np.where(finished, whole, estimate))

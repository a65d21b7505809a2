"""CALM's reward of an answer: by tiers, relative to the parents in its prompt.

Huang et al. 2025, arXiv 2505.12285, equations 3 and 4. It is a credit scheme that the update alone
learns from; failed answers earn `Calm.invalid` in the update (`spo_jax.rl.updates.learning`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from spo_jax.config import Settings
from spo_jax.config.updates import CALM, Calm, settings_of
from spo_jax.program import Pair, Program
from spo_jax.search.credit import CREDITS
from spo_jax.search.credit.arrays import parents_of
from spo_jax.search.credit.attribution import asks_fair_parent
from spo_jax.search.credit.plain import stackelberg
from spo_jax.search.credit.types import Credits, CreditScheme, Payoff


def learning_credit_of(config: Settings) -> CreditScheme | None:
    """What the update of a run learns from, None for the credit that selects. Raises InputError
    where there is no such scheme.
    """
    if config.learning.update == CALM:
        return ParentReward(settings_of(CALM, config.learning.update_settings))
    own = config.learning.learning_credit
    return None if own is None else CREDITS[own]


def difference(value: float, bar: float) -> float:
    """|g - g_bar| / min(|g|, |g_bar|), at most 1 (equation 3), for two J.

    g is minus a cost there, and 1 - J is a cost in units of the start's.
    """
    apart, least = abs(value - bar), min(abs(1 - value), abs(1 - bar))
    return min(apart / least, 1.0) if least > 0 else float(apart > 0)


def reward(value: float, bars: Sequence[float], copy: bool, settings: Calm) -> float:
    """Of a valid answer of J `value` to a prompt whose parents have the J `bars` (equation 4).

    copy: whether it has the source of a parent; one as good as a parent is taken for one, too.
    Without a parent there is nothing to compare with, and a valid answer earns 1. NaN of NaN.
    """
    if math.isnan(value):
        return math.nan
    bars = [bar for bar in bars if math.isfinite(bar)]
    if copy or value in bars:
        return settings.copy * settings.invalid
    best = max(bars, default=value)
    if value < best:
        return settings.worse * settings.invalid * difference(value, best)
    return 1 + difference(value, best)


@dataclass(frozen=True)
class ParentReward:
    """CALM's reward of both roles, as a credit scheme.

    A repair is compared with J of its parents with the very destroy that it answers, for which it
    asks (a pair for each destroy and each distinct parent in the prompts of its repairs). A destroy
    earns by its C_D (eq:leader-credit), compared with its best parent's of the parent's own round;
    other responses gave that, so equal C_D of different sources are chance and count as copies only
    if they are equal to the bit.
    """

    settings: Calm = field(default_factory=Calm)

    def asks(self, payoff: Payoff, *, top: int = 2) -> list[Pair]:
        return asks_fair_parent(payoff, top=top)

    def __call__(self, payoff: Payoff, *, top: int = 2) -> Credits:
        earned = stackelberg(payoff, top=top)
        of_leaders = zip(payoff.destroys, earned.leader, payoff.leader_baseline, strict=True)
        leader = [
            reward(float(value), [float(bar)], destroy.digest in destroy.parents, self.settings)
            for destroy, value, bar in of_leaders
        ]
        follower = np.full(payoff.utility.shape, np.nan)
        for i, (destroy, row) in enumerate(zip(payoff.destroys, payoff.repairs, strict=True)):
            for j, repair in enumerate(row):
                if repair is not None:
                    bars = self._bars(payoff, destroy, repair)
                    copy = repair.digest in repair.parents
                    follower[i, j] = reward(float(earned.follower[i, j]), bars, copy, self.settings)
        return Credits(np.array(leader, np.float64), follower)

    def _bars(self, payoff: Payoff, destroy: Program, repair: Program) -> list[float]:
        return [payoff.known(destroy, parent) for parent in parents_of(payoff, repair)]

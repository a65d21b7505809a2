"""What a complete payoff table is made of: leaders, followers, interaction, noise, spreads.

So a table of real programs finds its place among the worlds of `worlds.WorldSpec`.
"""

import math
from dataclasses import dataclass

import numpy as np

from spo_jax.errors import InputError
from spo_jax.search.lab.worlds import WorldSpec
from spo_jax.seeding import numpy_rng

Array = np.ndarray


@dataclass(frozen=True)
class Shares:
    """Variances of J by two-way random effects, in the square of J's unit; an estimate below 0 is
    0. noise: of J as the mean over a pair's evaluations. spread: the h of `WorldSpec`.
    """

    leader: float
    follower: float
    interaction: float
    noise: float
    spread: float

    @property
    def total(self) -> float:
        return self.leader + self.follower + self.interaction + self.noise

    @property
    def gamma(self) -> float:
        """Standard deviation of the interaction in those of leaders; infinity without any."""
        return self._in_leaders(self.interaction)

    @property
    def noise_in_leaders(self) -> float:
        return self._in_leaders(self.noise)

    @property
    def follower_in_leaders(self) -> float:
        return self._in_leaders(self.follower)

    def _in_leaders(self, variance: float) -> float:
        if not self.leader:
            return math.inf if variance else 0.0
        return math.sqrt(variance / self.leader)

    def spec(self, leaders: int = 30, followers: int = 64) -> WorldSpec:
        """A world of these shares. Raises InputError without differences between leaders."""
        if not self.leader:
            raise InputError(
                "no difference between leaders was found: there is no unit for a world"
            )
        return WorldSpec(
            leaders, followers, gamma=self.gamma, follower_sd=self.follower_in_leaders,
            noise=self.noise_in_leaders, spread=self.spread,
        )  # fmt: skip


def shares_of(scores: Array, spreads: bool = True) -> Shares:
    """scores: [K, M, E] float64, finite: leader, follower, evaluation (instance or seed), where
    evaluation e is of the same instance and seed for all pairs. At least two of each.

    Leaders, followers and their interaction are random effects; an evaluation's own effect, the
    same for all pairs, is no noise. The mean squares are those of the balanced design (Searle,
    Casella and McCulloch 1992, Variance Components, ch. 4). spreads: whether to fit the spread,
    which takes nearly all of the time; else it is NaN. Raises InputError for another shape, or a
    missing score.
    """
    scores = np.asarray(scores, np.float64)
    if scores.ndim != 3 or min(scores.shape) < 2 or not np.isfinite(scores).all():
        raise InputError(
            "scores are [leaders, followers, evaluations], finite, two of each or more"
        )
    leaders, followers, evaluations = scores.shape
    cells = scores.mean(axis=2)
    own = scores - cells[..., None] - scores.mean(axis=(0, 1)) + scores.mean()
    error = (own**2).sum() / ((leaders * followers - 1) * (evaluations - 1))
    row, column = cells.mean(axis=1), cells.mean(axis=0)
    apart = cells - row[:, None] - column + cells.mean()
    mixed = evaluations * (apart**2).sum() / ((leaders - 1) * (followers - 1))
    by_leader = evaluations * followers * row.var(ddof=1)
    by_follower = evaluations * leaders * column.var(ddof=1)
    deviation = (apart**2).sum(axis=1) / (followers - 1)
    spread = 0.0 if spreads else math.nan
    if spreads and mixed > error:
        spread = _spread(deviation, followers, error / evaluations)
    return Shares(
        max((by_leader - mixed) / (evaluations * followers), 0.0),
        max((by_follower - mixed) / (evaluations * leaders), 0.0),
        max((mixed - error) / evaluations, 0.0),
        error / evaluations,
        spread,
    )


def _spread(deviation: Array, followers: int, noise: float) -> float:
    """h by maximum likelihood. deviation: [K], variance of what is neither leader nor follower.

    Leader d's is v_d chi^2 / (M - 1) with M - 1 degrees of freedom, as for normal interactions,
    where s_d = s exp(h z_d - h^2) as in `WorldSpec`, and v_d = s_d^2 (1 - 2 / K) + s^2 / K + noise:
    the means of followers that were taken off hold a K-th of the other leaders' interactions.
    """
    from scipy.optimize import minimize
    from scipy.special import logsumexp

    count, free = len(deviation), followers - 1
    z, weight = np.polynomial.hermite_e.hermegauss(41)
    least = 1e-12 * deviation.mean()
    start = max(float(deviation.mean()) - noise, 1e-3 * float(deviation.mean()))

    def loss(point: Array) -> float:
        size, h = start * math.exp(point[0]), abs(point[1])
        own = size * np.exp(2 * h * z - 2 * h * h)
        v = own * (1 - 2 / count) + size / count + noise + least  # [Z]
        fits = -free / 2 * (np.log(v) + deviation[:, None] / v)
        return -float(logsumexp(fits, b=weight / weight.sum(), axis=1).sum())

    starts = [minimize(loss, (0.0, h), method="Nelder-Mead") for h in (0.1, 0.7)]
    return abs(float(min(starts, key=lambda each: each.fun).x[1]))


def jackknife(scores: Array) -> dict[str, tuple[float, float]]:
    """95% intervals of the logs of gamma and noise, and of spread, by leaving leaders out.

    Returns (low, high) of "gamma", "noise" and "spread"; NaN where an estimate is 0 or infinite.
    Leaders alone are resampled: the interval is for other leaders with the same followers.
    """
    from scipy.stats import t

    def values(part: Array) -> Array:
        found = shares_of(part)
        with np.errstate(divide="ignore"):
            logs = np.log([found.gamma, found.noise_in_leaders])
        return np.array([*logs, found.spread])

    count = len(scores)
    if count < 3:
        raise InputError(f"{count} leaders: an interval by leaving one out takes three")
    whole = values(scores)
    without = np.array([values(np.delete(scores, i, axis=0)) for i in range(count)])
    with np.errstate(invalid="ignore"):
        pseudo = count * whole - (count - 1) * without
        half = t.ppf(0.975, count - 1) * pseudo.std(axis=0, ddof=1) / math.sqrt(count)
    low, high = whole - half, whole + half
    found = {
        name: (float(np.exp(low[i])), float(np.exp(high[i])))
        for i, name in enumerate(("gamma", "noise"))
    }
    return found | {"spread": (max(float(low[2]), 0.0), float(high[2]))}


def bootstrap(scores: Array, count: int = 400, seed: int = 0) -> dict[str, tuple[float, float]]:
    """95% percentile intervals of the four parts of the variance, of gamma and of noise.

    Leaders and followers are resampled, each by themselves: the intervals are for other programs of
    both roles, on the same instances. By name: "leader", "follower", "interaction" and "noise" in
    parts of the total, "gamma" and "noise_in_leaders".
    """
    rng = numpy_rng(seed, "laboratory", "bootstrap")
    found = []
    for _ in range(count):
        rows, columns = (rng.integers(many, size=many) for many in scores.shape[:2])
        part = shares_of(scores[np.ix_(rows, columns)], spreads=False)
        total = part.total or 1.0
        parts = (part.leader, part.follower, part.interaction, part.noise)
        found.append([*(each / total for each in parts), part.gamma, part.noise_in_leaders])
    low, high = np.percentile(found, (2.5, 97.5), axis=0, method="nearest")
    names = ("leader", "follower", "interaction", "noise", "gamma", "noise_in_leaders")
    return {name: (float(low[i]), float(high[i])) for i, name in enumerate(names)}

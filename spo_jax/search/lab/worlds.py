"""Payoff worlds with a known truth: J of every pair, and rounds of noisy evaluations."""

import math
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from spo_jax.errors import InputError
from spo_jax.search.credit.arrays import Reference
from spo_jax.seeding import numpy_rng

Array = np.ndarray


@dataclass(frozen=True)
class WorldSpec:
    """What a world is like: J = leader + follower + gamma * interaction, under a ceiling.

    The main effects of leaders are standard normal, so all that follows is in their deviations.

    leaders, followers: how many there are, K and M.
    gamma: standard deviation of the interaction over all pairs.
    follower_sd: standard deviation of the followers' main effects.
    noise: standard deviation of an evaluation, normal, drawn anew for each sampled pair.
    spread: h; leader d's interactions have a deviation proportional to exp(h z_d), z_d standard
        normal. At 0 all leaders are alike; at 1 a few have brilliant and terrible responses.
    fit: the share of followers that interact with a leader at all; the fewer, the stronger, so that
        the variance stays.
    ceiling: J approaches it smoothly, J = c - log(1 + exp(c - x)); infinity: none.
    tails: degrees of freedom of the interaction's Student t, scaled to unit variance; infinity:
        normal.
    level: mean J, which is what a failure loses if it is paid as 0.
    parts: the share of each effect's variance that programs have by their parts, the bits of their
        numbers: linear in the bits of a program, and bilinear in those of a pair. At 0 nothing is
        learned about a program from another.
    failing: mean chance that an evaluation fails. tie: correlation of what orders leaders by their
        chances with their value J(d, best response), from -1 to 1; see `failing_chances`.

    Raises InputError for a value out of range.
    """

    leaders: int = 30
    followers: int = 64
    gamma: float = 1.0
    follower_sd: float = 0.5
    noise: float = 0.5
    spread: float = 0.5
    fit: float = 1.0
    ceiling: float = math.inf
    tails: float = math.inf
    level: float = 0.0
    parts: float = 0.0
    failing: float = 0.0
    tie: float = 0.0

    def __post_init__(self) -> None:
        for name in ("leaders", "followers"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 2:
                raise InputError(f"{name} is {value}; a world has a whole number of at least 2")
        for name in ("gamma", "follower_sd", "noise", "spread"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"{name} is {getattr(self, name)}; it must be 0 or more")
        require_failing(self.failing, self.tie)
        if not math.isfinite(self.level):
            raise InputError(f"level is {self.level}; it must be a number")
        if not 0 <= self.parts <= 1:
            raise InputError(f"parts is {self.parts}; a share is from 0 to 1")
        if not 0 < self.fit <= 1:
            raise InputError(f"fit is {self.fit}; a share is above 0 and at most 1")
        if not self.tails > 2:
            raise InputError(f"tails is {self.tails}; a variance takes more than 2 degrees")
        if math.isnan(self.ceiling) or self.ceiling == -math.inf:
            raise InputError(f"ceiling is {self.ceiling}; it must be a number, or inf for none")


def require_failing(failing: float, tie: float) -> None:
    """Raises InputError for a share or a correlation out of range."""
    if not 0 <= failing < 1:
        raise InputError(f"failing is {failing}; a share of failures is 0 or more and below 1")
    if not -1 <= tie <= 1:
        raise InputError(f"tie is {tie}; a correlation is from -1 to 1")


def world_spec(text: str) -> WorldSpec:
    """'gamma=2 noise=0.5' as a spec. Raises InputError for what is no parameter or no number."""
    kinds = {each.name: each.type for each in fields(WorldSpec)}
    given: dict[str, float] = {}
    for word in text.replace(",", " ").split():
        name, equals, value = word.partition("=")
        if name not in kinds or not equals:
            raise InputError(
                f"{word!r} is no parameter of a world: use NAME=VALUE, of {', '.join(kinds)}"
            )
        try:
            given[name] = int(value) if kinds[name] is int else float(value)
        except ValueError:
            raise InputError(f"{word!r}: {value!r} is not a number that {name} takes") from None
    return WorldSpec(**given)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Worlds:
    """utility: [W, K, M] float64, the true J of every pair. noise: of an evaluation.

    failing: [W, K], the chance of each leader that an evaluation of a pair with it fails; None: no
    pair ever fails.
    """

    utility: Array
    noise: float = 0.0
    failing: Array | None = None

    @cached_property
    def value(self) -> Array:
        """[W, K]: J of each leader with its best response (eq:follower-response)."""
        return self.utility.max(axis=-1)

    @cached_property
    def references(self) -> tuple[Array, Array]:
        """[W] int each: the leader of the highest value, and the follower of the highest mean J.

        Stand-ins for the first of each population, which was selected for just that.
        """
        return self.value.argmax(axis=-1), self.utility.mean(axis=1).argmax(axis=-1)


@dataclass(frozen=True, eq=False)
class Rounds:
    """Sampled and evaluated pairs: all leaders of each world, with R responses each.

    utility: [W, N, K, R] float64, J as measured, NaN for a failure. source: [W, N, K, R] int, which
    follower it is. reference: J with the world's references, as measured; a follower that comes
    twice in a round was measured once.
    """

    utility: Array
    source: Array
    reference: Reference | None = None


def make_worlds(spec: WorldSpec, count: int, seed: int = 0) -> Worlds:
    """`count` worlds. Each part has a stream of its own, so equal seeds with other values give
    the same leaders, followers and interactions, in other proportions.
    """

    def draws(part: str) -> np.random.Generator:
        return numpy_rng(seed, "laboratory", part)

    shape = (count, spec.leaders, spec.followers)
    interaction = draws("interaction").standard_normal(shape)
    if spec.tails < math.inf:
        interaction *= np.sqrt((spec.tails - 2) / draws("tails").chisquare(spec.tails, shape))
    fits = draws("fit").random(shape) < spec.fit
    h = spec.spread
    spread = np.exp(h * draws("spread").standard_normal(shape[:2]) - h * h)  # mean square 1
    leader = draws("leaders").standard_normal(shape[:2])
    follower = draws("followers").standard_normal((count, 1, spec.followers))[:, 0]
    if spec.parts:
        mine, theirs = bits(spec.leaders), bits(spec.followers)
        by_bits = draws("parts of pairs").standard_normal((count, mine.shape[1], theirs.shape[1]))
        leader = _mixed(leader, _linear(draws("parts of leaders"), count, mine), spec.parts)
        follower = _mixed(follower, _linear(draws("parts of followers"), count, theirs), spec.parts)
        together = mine @ by_bits @ theirs.T / math.sqrt(by_bits[0].size)
        interaction = _mixed(interaction, together, spec.parts)
    x = leader[..., None] + spec.follower_sd * follower[:, None]
    x = x + spec.gamma * spread[..., None] * fits * interaction / math.sqrt(spec.fit)
    if spec.ceiling < math.inf:
        x = spec.ceiling - np.logaddexp(0.0, spec.ceiling - x)
    x = x + spec.level if spec.level else x
    return Worlds(x, spec.noise, failing_chances(x, spec.failing, spec.tie, seed))


def bits(count: int) -> Array:
    """[count, B] of -1 and 1: the binary digits of the numbers from 0 on, the lowest first."""
    width = max(1, (count - 1).bit_length())
    return np.where(np.arange(count)[:, None] >> np.arange(width) & 1, 1.0, -1.0)


def _linear(rng: np.random.Generator, count: int, features: Array) -> Array:
    """[count, K] standard normal, linear in features [K, B] of -1 and 1."""
    weights = rng.standard_normal((count, features.shape[1]))
    return weights @ features.T / math.sqrt(features.shape[1])


def _mixed(one: Array, other: Array, share: float) -> Array:
    """Two independent effects in one, of which the other has a share of the variance."""
    return math.sqrt(1 - share) * one + math.sqrt(share) * other


def failing_chances(utility: Array, failing: float, tie: float, seed: int = 0) -> Array | None:
    """[W, K]: chances around the mean `failing`, at most 0.95; None where it is 0.

    A leader's chance is 2 failing Phi(a), a standard normal, which has the correlation `tie` with
    the leader's value among those of its world. Raises InputError as `require_failing`.
    """
    from scipy import stats

    require_failing(failing, tie)
    if not failing:
        return None
    value = utility.max(axis=-1)
    away = value - value.mean(axis=-1, keepdims=True)
    deviation = away.std(axis=-1, keepdims=True)
    own = numpy_rng(seed, "laboratory", "failing").standard_normal(value.shape)
    a = tie * away / np.where(deviation > 0, deviation, 1.0) + math.sqrt(1 - tie * tie) * own
    return np.asarray(np.clip(2 * failing * stats.norm.cdf(a), 0, 0.95))


def draw_rounds(worlds: Worlds, responses: int, rounds: int, seed: int = 0) -> Rounds:
    """Rounds in which every leader is answered by followers drawn uniformly, with replacement.

    A follower that comes twice is evaluated twice. Each response has a stream of its own: the first
    ones of a round are the same, however many there are.
    """
    if responses < 1 or rounds < 1:
        raise InputError("a round needs at least one response, and a measure at least one round")
    count, leaders, followers = worlds.utility.shape
    source = np.empty((count, rounds, leaders, responses), np.int64)
    error, chance = np.empty(source.shape), np.empty(source.shape)
    for j in range(responses):
        rng = numpy_rng(seed, "laboratory", "rounds", j)
        source[..., j] = rng.integers(followers, size=source.shape[:-1])
        error[..., j] = rng.standard_normal(source.shape[:-1])
        if worlds.failing is not None:
            chance[..., j] = rng.random(source.shape[:-1])
    world, leader = np.ogrid[:count, :leaders]
    true = worlds.utility[world[..., None, None], leader[:, None, :, None], source]
    utility = true + worlds.noise * error
    if worlds.failing is not None:
        utility = np.where(chance < worlds.failing[:, None, :, None], math.nan, utility)
    best, answer = worlds.references
    draws = numpy_rng(seed, "laboratory", "references")
    mine = worlds.utility[np.arange(count), :, answer][:, None]  # [W, 1, K]
    others = worlds.utility[np.arange(count), best][:, None]  # [W, 1, M]
    mine = mine + worlds.noise * draws.standard_normal((count, rounds, leaders))
    others = others + worlds.noise * draws.standard_normal((count, rounds, followers))
    follower = np.take_along_axis(others, source.reshape(count, rounds, -1), axis=-1)
    pair = np.take_along_axis(others, answer[:, None, None], axis=-1)[..., 0]
    return Rounds(utility, source, Reference(mine, follower.reshape(source.shape), pair))

"""Payoff worlds with a known truth: J of every pair, and rounds of noisy evaluations."""

import math
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from spo_jax.errors import InputError
from spo_jax.search.formulas.seen import Reference
from spo_jax.seeding import numpy_rng

Array = np.ndarray


@dataclass(frozen=True)
class Knobs:
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

    def __post_init__(self) -> None:
        for name in ("leaders", "followers"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 2:
                raise InputError(f"{name} is {value}; a world has a whole number of at least 2")
        for name in ("gamma", "follower_sd", "noise", "spread"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"{name} is {getattr(self, name)}; it must be 0 or more")
        if not 0 < self.fit <= 1:
            raise InputError(f"fit is {self.fit}; a share is above 0 and at most 1")
        if not self.tails > 2:
            raise InputError(f"tails is {self.tails}; a variance takes more than 2 degrees")
        if math.isnan(self.ceiling) or self.ceiling == -math.inf:
            raise InputError(f"ceiling is {self.ceiling}; it must be a number, or inf for none")


def knobs_of(text: str) -> Knobs:
    """'gamma=2 noise=0.5' as knobs. Raises InputError for what is no knob or no number."""
    kinds = {each.name: each.type for each in fields(Knobs)}
    given: dict[str, float] = {}
    for word in text.replace(",", " ").split():
        name, equals, value = word.partition("=")
        if name not in kinds or not equals:
            raise InputError(
                f"{word!r} is no knob of a world: use KNOB=VALUE, of {', '.join(kinds)}"
            )
        try:
            given[name] = int(value) if kinds[name] is int else float(value)
        except ValueError:
            raise InputError(f"{word!r}: {value!r} is not a number that {name} takes") from None
    return Knobs(**given)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Worlds:
    """utility: [W, K, M] float64, the true J of every pair. noise: of an evaluation."""

    utility: Array
    noise: float = 0.0

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

    utility: [W, N, K, R] float64, J as measured. source: [W, N, K, R] int, which follower it is.
    reference: J with the world's references, as measured; a follower that comes twice in a round
    was measured once.
    """

    utility: Array
    source: Array
    reference: Reference | None = None


def make_worlds(knobs: Knobs, count: int, seed: int = 0) -> Worlds:
    """`count` worlds. Each part has a stream of its own, so that equal seeds with other knobs give
    the same leaders, followers and interactions, in other proportions.
    """

    def draws(part: str) -> np.random.Generator:
        return numpy_rng(seed, "laboratory", part)

    shape = (count, knobs.leaders, knobs.followers)
    interaction = draws("interaction").standard_normal(shape)
    if knobs.tails < math.inf:
        interaction *= np.sqrt((knobs.tails - 2) / draws("tails").chisquare(knobs.tails, shape))
    fits = draws("fit").random(shape) < knobs.fit
    h = knobs.spread
    spread = np.exp(h * draws("spread").standard_normal(shape[:2]) - h * h)  # mean square 1
    x = draws("leaders").standard_normal(shape[:2])[..., None]
    x = x + knobs.follower_sd * draws("followers").standard_normal((count, 1, knobs.followers))
    x = x + knobs.gamma * spread[..., None] * fits * interaction / math.sqrt(knobs.fit)
    if knobs.ceiling < math.inf:
        x = knobs.ceiling - np.logaddexp(0.0, knobs.ceiling - x)
    return Worlds(x, knobs.noise)


def draw_rounds(worlds: Worlds, responses: int, rounds: int, seed: int = 0) -> Rounds:
    """Rounds in which every leader is answered by followers drawn uniformly, with replacement.

    A follower that comes twice is evaluated twice.
    """
    if responses < 1 or rounds < 1:
        raise InputError("a round needs at least one response, and a measure at least one round")
    count, leaders, followers = worlds.utility.shape
    rng = numpy_rng(seed, "laboratory", "rounds", responses)
    source = rng.integers(followers, size=(count, rounds, leaders, responses))
    world, leader = np.ogrid[:count, :leaders]
    true = worlds.utility[world[..., None, None], leader[:, None, :, None], source]
    utility = true + worlds.noise * rng.standard_normal(source.shape)
    best, answer = worlds.references
    draws = numpy_rng(seed, "laboratory", "references", responses)
    mine = worlds.utility[np.arange(count), :, answer][:, None]  # [W, 1, K]
    others = worlds.utility[np.arange(count), best][:, None]  # [W, 1, M]
    mine = mine + worlds.noise * draws.standard_normal((count, rounds, leaders))
    others = others + worlds.noise * draws.standard_normal((count, rounds, followers))
    follower = np.take_along_axis(others, source.reshape(count, rounds, -1), axis=-1)
    pair = np.take_along_axis(others, answer[:, None, None], axis=-1)[..., 0]
    return Rounds(utility, source, Reference(mine, follower.reshape(source.shape), pair))

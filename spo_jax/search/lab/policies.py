"""The bandit's policies: what logits are linear in, what is sampled, and what a run has seen."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from spo_jax.search.lab.worlds import bits


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Policy:
    """Logits, float32. leader: [K]. shared: [M]. own: [K, M]. All zero: uniform."""

    leader: jax.Array
    shared: jax.Array
    own: jax.Array

    @property
    def follower(self) -> jax.Array:
        """[K, M]: logits of each leader's responses."""
        return self.shared + self.own


class Writer(Protocol):
    """How logits follow from parameters, which have the fields of a policy. A pytree."""

    def parameters(self, runs: int) -> Policy:
        """Zeros, of so many runs in a leading axis: uniform policies."""

    def policy(self, parameters: Policy) -> Policy:
        """The logits of one run."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ByProgram:
    """Writes each program by itself: parameters are logits, of K leaders and M followers."""

    leaders: int = field(metadata={"static": True})
    followers: int = field(metadata={"static": True})

    def parameters(self, runs: int) -> Policy:
        """See `Writer`."""
        shapes = (self.leaders,), (self.followers,), (self.leaders, self.followers)
        return Policy(*(jnp.zeros((runs, *shape)) for shape in shapes))

    def policy(self, parameters: Policy) -> Policy:
        """See `Writer`."""
        return parameters


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ByFeatures:
    """Logits are linear in features, float32: of leaders [K, A], of followers [M, B], and of a
    leader as its followers see it, seen [K, C]. Parameters: leader [A], shared [B], own [C, B].
    """

    leaders: jax.Array
    followers: jax.Array
    seen: jax.Array

    def parameters(self, runs: int) -> Policy:
        """See `Writer`."""
        a, b, c = (each.shape[1] for each in (self.leaders, self.followers, self.seen))
        return Policy(jnp.zeros((runs, a)), jnp.zeros((runs, b)), jnp.zeros((runs, c, b)))

    def policy(self, parameters: Policy) -> Policy:
        """See `Writer`."""
        return Policy(
            self.leaders @ parameters.leader,
            self.followers @ parameters.shared,
            self.seen @ parameters.own @ self.followers.T,
        )


def _by_bits(leaders: int, followers: int, sees: bool = True) -> Writer:
    # Halves of -1 and 1: a parameter is the logarithm of a bit's odds.
    mine, theirs = (jnp.asarray(bits(count) / 2, jnp.float32) for count in (leaders, followers))
    return ByFeatures(mine, theirs, 2 * mine if sees else jnp.zeros((leaders, 1)))


WRITERS: dict[str, Callable[[int, int], Writer]] = {
    "table": ByProgram,
    "parts": _by_bits,
    "parts-unseen": partial(_by_bits, sees=False),
}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Sampled:
    """leaders: [B] int32. followers: [B, R] int32. utility: [B, R] float32, as measured."""

    leaders: jax.Array
    followers: jax.Array
    utility: jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class History:
    """What the rounds so far leave. seen: [N, K, M] bool, pairs that were evaluated, None where
    nobody asks. measured, true: [N], J of the pair that was measured best, as measured (float64)
    and without noise (float32).
    """

    seen: jax.Array | None
    measured: jax.Array
    true: jax.Array

    def copies(self, sampled: Sampled) -> tuple[jax.Array, jax.Array] | None:
        """Which leaders, [N, B] bool, and pairs, [N, B, R], an earlier round had."""
        if self.seen is None:
            return None
        own = jnp.take_along_axis(self.seen, sampled.leaders[..., None], axis=1)
        return own.any(axis=-1), jnp.take_along_axis(own, sampled.followers, axis=2)

    def after(
        self, sampled: Sampled, measured: jax.Array, utility: jax.Array, asked: Any = True
    ) -> "History":
        """With one more round.

        measured: [N, B, R], NaN for failures and where nothing is evaluated. utility: [N, K, M].
        asked: bool that broadcasts to [N, B, R], the pairs that are evaluated.
        """
        runs = jnp.arange(len(utility))
        values = jnp.where(jnp.isnan(measured), -jnp.inf, measured).reshape(len(runs), -1)
        place = values.argmax(axis=-1)
        leader = sampled.leaders[runs, place // measured.shape[-1]]
        follower = sampled.followers.reshape(len(runs), -1)[runs, place]
        better = values[runs, place] > self.measured
        seen = self.seen
        if seen is not None:
            at = runs[:, None, None], sampled.leaders[..., None], sampled.followers
            seen = seen.at[at].max(jnp.broadcast_to(asked, measured.shape))
        return History(
            seen,
            jnp.where(better, values[runs, place], self.measured),
            jnp.where(better, utility[runs, leader, follower], self.true),
        )

"""Credit schemes for many rounds at once: the very functions that `--credit` takes.

Most schemes are made of functions of arrays (`search.credit.arrays`), which take any number of
rounds. Any other scheme is called round by round with a payoff.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import jax
import numpy as np

from spo_jax.errors import InputError
from spo_jax.numerics.float64 import bucket
from spo_jax.program import Pair, Program, Role
from spo_jax.registry import known_by
from spo_jax.search.credit import (
    CREDITS,
    CreditScheme,
    CrossPlay,
    Payoff,
    pairs_asked,
)
from spo_jax.search.credit.arrays import PayoffArrays, Reference, arrays_with, earned, parts_of
from spo_jax.search.credit.types import formula_of, pays

Array = np.ndarray
AT_ONCE = 200  # rounds that a compiled scheme is given: few shapes, and few enough for the cache
DESTROY, REPAIR = Program("destroy", "reference"), Program("repair", "reference")


@dataclass(frozen=True, eq=False)
class Earned:
    """leader: [..., D], follower: [..., D, R] float64, what the update learns from, NaN where
    nothing was earned. score: [..., D], what leaders are selected by. order: [..., D, R], what
    ranks followers for cross-play.
    """

    leader: Array
    follower: Array
    score: Array
    order: Array


@dataclass(frozen=True)
class Scheme:
    """A credit scheme with its `top`. name: as `--credit` takes it, or of the function `own`.

    Raises InputError for a name under which there is none.
    """

    name: str
    top: int = 2
    own: CreditScheme | None = None

    def __post_init__(self) -> None:
        if self.top < 1:
            raise InputError(f"top is {self.top}: a leader is judged by at least one response")
        self.function  # noqa: B018  the name is checked where it is given

    @classmethod
    def of(cls, text: str | CreditScheme, top: int = 2) -> "Scheme":
        """NAME or NAME@TOP, or a function, which goes by its own name.

        Raises InputError for another top than a whole number, and for a function of a name that
        ships.
        """
        if callable(text):
            name = getattr(text, "__name__", type(text).__name__)
            if name in CREDITS:
                raise InputError(f"{name!r} is a scheme that ships: give the function another name")
            return cls(name, top, text)
        name, at, own = text.partition("@")
        if at and not own.isdecimal():
            raise InputError(f"scheme {text!r}: {own!r} is no whole number; use NAME@TOP")
        return cls(name, int(own) if at else top)

    @property
    def label(self) -> str:
        return self.name if self.top == 2 else f"{self.name}@{self.top}"

    @cached_property
    def function(self) -> CreditScheme:
        with known_by({} if self.own is None else {self.name: self.own}):
            return CREDITS[self.name]

    def __call__(
        self, utility: Array, source: Array, reference: Reference | None = None,
        scores: Array | None = None,
    ) -> Earned:  # fmt: skip
        """utility: [..., D, R] float64. source: [..., D, R] int, equal for equal followers.

        reference: J with a reference leader and follower, which is also the parent of all
        followers; by default there is none. scores: [..., D, R, E] float64, the evaluations of
        which J is the mean, each shown to the scheme as that of an instance; by default J is one.
        """
        formula = formula_of(self.function)
        if formula is None:
            return self.one_by_one(utility, source, reference, scores)
        before, own = utility.shape[:-2], reference or _unknown(utility)
        by_instance = utility[..., None] if scores is None else scores
        fields = jax.tree.map(
            lambda each: each.reshape(-1, *each.shape[len(before) :]),
            (utility, source, own, by_instance),
        )
        sources, count = bucket(int(source.max(initial=0)) + 1), math.prod(before)
        size = min(AT_ONCE, bucket(count))
        if not formula.traces(_rounds(sources, *fields), self.top):
            size = max(count, 1)
        parts = []
        for start in range(0, max(count, 1), size):
            some = jax.tree.map(lambda each, start=start: each[start : start + size], fields)
            filled = jax.tree.map(lambda each: np.resize(each, (size, *each.shape[1:])), some)
            rounds = _rounds(sources, *filled)
            found = earned(self.name, formula(rounds, self.top), rounds, pays(self.function))
            leader, follower, chosen = found
            earned_by = (leader, follower, *(chosen or (leader, follower)))
            parts.append([each[: len(some[0])] for each in earned_by])
        return Earned(
            *(
                np.concatenate(each).reshape(*before, *each[0].shape[1:])
                for each in zip(*parts, strict=True)
            )
        )

    def traced(
        self, utility: Any, source: Any, reference: Reference, sources: int
    ) -> tuple[Any, Any]:
        """What the update learns from, within a compiled function. The scheme has a formula that
        JAX can trace. sources: above all sources.
        """
        formula = formula_of(self.function)
        assert formula is not None
        rounds = _rounds(sources, utility, source, reference, utility[..., None])
        leader, follower, _ = parts_of(self.name, formula.function(rounds, self.top))
        return leader, follower

    @property
    def slow(self) -> str:
        """Why it is not compiled, as a sentence; empty for one that is, and for none yet called."""
        formula = formula_of(self.function)
        if formula is None:
            return f"{self.label} is slow: it is called round by round, as no function of arrays"
        if formula.untraced:
            return f"{self.label} is slow: {formula.untraced}, so it is called uncompiled"
        return ""

    def one_by_one(
        self, utility: Array, source: Array, reference: Reference | None = None,
        scores: Array | None = None,
    ) -> Earned:  # fmt: skip
        """As a call, by payoffs: for any scheme, at about a fifth of a millisecond a round.

        Raises InputError for a scheme that asks for another pair than those with the references.
        """
        own = reference or _unknown(utility)
        by_instance = (utility[..., None] if scores is None else scores)[..., None]
        leader = np.empty(utility.shape[:-1])
        follower, score = np.empty(utility.shape), np.empty(utility.shape[:-1])
        order = np.empty(utility.shape)
        for place in np.ndindex(utility.shape[:-2]):
            part = Reference(own.leader[place], own.follower[place], own.pair[place])
            payoff = _payoff(utility[place], source[place], part, by_instance[place])
            if asked := pairs_asked([self.function], payoff, self.top):
                payoff = replace(payoff, asked=self._answers(asked, payoff, part))
            found = self.function(payoff, top=self.top)
            leader[place], follower[place] = found.leader, found.follower
            score[place] = found.selected_by.leader
            order[place] = found.selected_by.follower
        return Earned(leader, follower, score, order)

    def _answers(
        self, asked: Sequence[Pair], payoff: Payoff, reference: Reference
    ) -> dict[tuple[str, str], float]:
        """J of the pairs that the scheme asks for, of those with a reference."""
        known = payoff.cross_play
        if not known.repairs:
            return {}
        first, answer = known.destroys[0].digest, known.repairs[0].digest
        found = {(d.digest, answer): float(value)
                 for d, value in zip(payoff.destroys, reference.leader, strict=True)}  # fmt: skip
        for row, values in zip(payoff.repairs, reference.follower.tolist(), strict=True):
            found |= {(first, r.digest): v for r, v in zip(row, values, strict=True) if r}
        found[first, answer] = float(reference.pair)
        try:
            return {key: found[key] for key in ((p.destroy.digest, p.repair.digest) for p in asked)}
        except KeyError:
            raise InputError(
                f"credit {self.name!r} asks for a pair without a reference: the laboratory has the "
                "first destroy and the first repair of the cross-play with others, and no more"
            ) from None

    def extra(self, responses: int) -> float:
        """How many pairs per leader the scheme asks for beside so many responses, all distinct."""
        if not hasattr(self.function, "asks"):
            return 0.0
        leaders = 32
        utility = np.arange(leaders * responses, dtype=float).reshape(leaders, responses)
        unknown = _unknown(utility)
        reference = Reference(unknown.leader, unknown.follower, np.zeros(()))
        payoff = _payoff(utility, utility.astype(int), reference, utility[..., None, None])
        asked = pairs_asked([self.function], payoff, self.top)
        new = [pair for pair in asked if math.isnan(payoff.known(pair.destroy, pair.repair))]
        return len(new) / leaders

    def responses(self, pairs: int) -> int:
        """The most responses a leader for which so many pairs per leader suffice; at least 1."""
        return _responses(self, pairs)


@cache
def _responses(scheme: Scheme, pairs: int) -> int:
    return next((r for r in range(pairs, 1, -1) if r + scheme.extra(r) <= pairs), 1)


def _rounds(
    sources: int, utility: Any, source: Any, reference: Reference, scores: Any
) -> PayoffArrays:
    """Rounds of a world. The reference repair is the parent of all followers."""
    xp = utility.__array_namespace__()
    return arrays_with(
        utility,
        scores=scores[..., None],
        source=source,
        failed=xp.isnan(utility) & (source >= 0),
        parent=xp.broadcast_to(reference.leader[..., None], utility.shape),
        reference=reference,
        sources=sources,
    )


def _unknown(utility: Array) -> Reference:
    """Without references."""
    return Reference(
        np.full(utility.shape[:-1], np.nan), np.full(utility.shape, np.nan),
        np.full(utility.shape[:-2], np.nan),
    )  # fmt: skip


def _payoff(utility: Array, source: Array, reference: Reference, scores: Array) -> Payoff:
    """A round; the references are all that it began with, where they are known at all."""
    destroys = _programs("destroy", len(utility))
    repairs = _programs("repair", int(source.max(initial=0)) + 1)
    rows = tuple(tuple(repairs[s] for s in row) for row in source.tolist())
    if np.isnan(reference.pair):
        return Payoff(utility, destroys, rows, scores=scores)
    value = np.reshape(reference.pair, (1, 1))
    before = CrossPlay((DESTROY,), (REPAIR,), value, value[..., None, None])
    return Payoff(utility, destroys, rows, scores=scores, cross_play=before)


def _programs(role: Role, count: int) -> tuple[Program, ...]:
    return tuple(_program(role, i) for i in range(count))


@cache
def _program(role: Role, number: int) -> Program:
    return Program(role, f"{role} {number}", parents=(REPAIR.digest,))

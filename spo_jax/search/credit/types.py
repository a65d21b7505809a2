"""What a credit scheme is given and what it returns."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeVar, get_args

import numpy as np

from spo_jax.errors import InputError
from spo_jax.program import Pair, Program


def _keep(owner: object, name: str, values: object, dtype: type = np.float64) -> np.ndarray:
    """A field as a read-only copy, so that no scheme can change it for the next."""
    array: np.ndarray = np.array(values, dtype=dtype)
    array.setflags(write=False)
    object.__setattr__(owner, name, array)
    return array


@dataclass(frozen=True, eq=False)
class CrossPlay:
    """Destroys of a population, and the fixed ones of the panel, with repairs of a population.

    Attributes:
        destroys: [M].
        repairs: [C], each source once.
        utility: [M, C] float64, J; NaN for a pair that failed or that no round evaluated.
        scores: [M, C, I, S] float64, likewise by training instance and seed.
    """

    destroys: tuple[Program, ...] = ()
    repairs: tuple[Program, ...] = ()
    utility: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    scores: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0, 0)))

    def __post_init__(self) -> None:
        _keep(self, "utility", self.utility)
        _keep(self, "scores", self.scores)


@dataclass(frozen=True, eq=False)
class Payoff:
    """The utilities of one round: destroy i with the repairs that were generated for it.

    Attributes:
        utility: [D, R] float64, J of row i's destroy with the j-th repair of `repairs[i]`; NaN
            where there is none, because the slot is empty, the repair was rejected or a rollout
            failed.
        destroys: [D] programs.
        repairs: [D] tuples of at most R, in the order of generation; None stands for an answer that
            held no program.
        leader_baseline: [D] float64, the population score of the best parent in the prompt of row
            i's destroy; NaN without a parent, and throughout by default. A destroy's score is C_D
            of its own round: as many responses, the same instances and seeds, so like is compared
            with like.
        follower_baseline: [D, R] float64, likewise for the repairs. A repair's score is C_R^pop,
            its mean J with a panel of proven destroys, while `utility` is J with one new destroy:
            the same unit, but the difference between those destroys is in it. J of the parent with
            this very destroy would be the fair bar; it is not known, and costs an evaluation per
            parent and row.
        scores: [D, R, I, S] float64, by training instance and seed, in the order of the run's;
            their mean is `utility`, and they are NaN where it is. By default `utility` itself, as
            of one instance and one seed.
        cross_play: The payoffs that are known between members of the populations that the round
            began with. Credits are computed before the round's own cross-play (Algorithm 1, lines
            10 and 14).
        asked: J of the pairs that the scheme asked for, by the digests of destroy and repair; NaN
            for one that failed.
        failed: [D, R] bool, the pairs without a utility by a fault of their programs, and not of
            the host. By default all programs without one.

    Raises:
        InputError: Shapes do not fit, a score is infinite, or a slot without a program has a score.
    """

    utility: np.ndarray
    destroys: tuple[Program, ...]
    repairs: tuple[tuple[Program | None, ...], ...]
    leader_baseline: np.ndarray = None  # type: ignore[assignment]  # an array once it is built
    follower_baseline: np.ndarray = None  # type: ignore[assignment]
    scores: np.ndarray = None  # type: ignore[assignment]
    cross_play: CrossPlay = field(default_factory=CrossPlay)
    asked: Mapping[tuple[str, str], float] = field(default_factory=dict)
    failed: np.ndarray = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        object.__setattr__(self, "asked", MappingProxyType(dict(self.asked)))
        utility = _keep(self, "utility", self.utility)
        if utility.ndim != 2:
            raise InputError(f"a payoff is a matrix [D, R], not of shape {utility.shape}")
        rows, slots = utility.shape
        if len(self.destroys) != rows or len(self.repairs) != rows:
            raise InputError(
                f"a payoff of {rows} rows needs as many destroys and tuples of repairs, "
                f"not {len(self.destroys)} and {len(self.repairs)}"
            )
        scores = _keep(
            self, "scores", utility[..., None, None] if self.scores is None else self.scores
        )
        if scores.ndim != 4 or scores.shape[:2] != utility.shape or np.isinf(scores).any():
            raise InputError(f"the scores of a payoff are [{rows}, {slots}, I, S], finite or NaN")
        for i, row in enumerate(self.repairs):
            if len(row) > slots:
                raise InputError(f"row {i} of a payoff has {len(row)} repairs in {slots} slots")
            if len(row) == slots and all(row):
                continue
            absent = [j for j in range(slots) if j >= len(row) or row[j] is None]
            if not (np.isnan(utility[i, absent]).all() and np.isnan(scores[i, absent]).all()):
                raise InputError(f"row {i} of a payoff scores a slot that holds no program")
        for name, shape in (("leader_baseline", (rows,)), ("follower_baseline", utility.shape)):
            given = getattr(self, name)
            baseline = _keep(self, name, np.full(shape, np.nan) if given is None else given)
            if baseline.shape != shape or np.isinf(baseline).any():
                raise InputError(f"the {name} of a payoff is finite or NaN, of shape {shape}")

        there = np.zeros(utility.shape, bool)
        for i, row in enumerate(self.repairs):
            there[i, : len(row)] = [repair is not None for repair in row]
        without = there & np.isnan(utility)
        failed = _keep(self, "failed", without if self.failed is None else self.failed, bool)
        if failed.shape != utility.shape or (failed & ~without).any():
            raise InputError("what failed in a payoff are programs without a utility, [D, R] bool")

    def known(self, destroy: Program | None, repair: Program | None) -> float:
        """J of any pair that this payoff knows.

        Args:
            destroy: A program or None.
            repair: Likewise.

        Returns:
            J; NaN for a pair that is not known or that failed, and for None.
        """
        if destroy is None or repair is None:
            return math.nan
        return self._known.get((destroy.digest, repair.digest), math.nan)

    @cached_property
    def _known(self) -> dict[tuple[str, str], float]:
        found = dict(self.asked)
        for d, row in zip(self.cross_play.destroys, self.cross_play.utility.tolist(), strict=True):
            for r, value in zip(self.cross_play.repairs, row, strict=True):
                found.setdefault((d.digest, r.digest), value)
        for d, own, row in zip(self.destroys, self.repairs, self.utility.tolist(), strict=True):
            for repair, value in zip(own, row, strict=False):
                if repair is not None:
                    found.setdefault((d.digest, repair.digest), value)
        return found


@dataclass(frozen=True, eq=False)
class Credits:
    """What each program of a payoff earned; NaN where it earned nothing and is left out.

    Attributes:
        leader: [D] float64, a destroy program's credit.
        follower: [D, R] float64, a repair's.
        selection: What programs are selected by, where that is not the credit itself: its `leader`
            becomes the score of destroys in the population, comparable from round to round, and its
            `follower` says which of the round's repairs enter cross-play.
    """

    leader: np.ndarray
    follower: np.ndarray
    selection: "Credits | None" = None

    @property
    def selected_by(self) -> "Credits":
        """`selection`, by default these credits."""
        return self if self.selection is None else self.selection


class CreditScheme(Protocol):
    """Payoffs in, credits out.

    It may have the attributes `asks` (see `asking`), `pays_failures` (see `paying_failures`) and
    `samples` (see `sampling`).
    """

    def __call__(self, payoff: Payoff, *, top: int) -> Credits:
        """Give credits of the payoff's shape.

        A pure function: the same payoff earns the same credits. What has no utility earns NaN, and
        so does a leader without a single finite response; what earns NaN is left out. Only a scheme
        that pays failures may pay those, and the leaders that have nothing else.

        Args:
            payoff: The round's.
            top: The L of eq:leader-credit, at least 1.

        Returns:
            The credits.
        """


Scheme = TypeVar("Scheme", bound=Callable[..., Credits])
Samples = Literal["programs", "pairs", "one-group"]  # see `spo_jax.search.groups`
Asks = Callable[..., Iterable[Pair]]


def asking(asks: Asks) -> Callable[[Scheme], Scheme]:
    """Mark a scheme that wants to know J of more pairs than the round's own.

    The round evaluates those of which it knows nothing, counts them, and calls the scheme with the
    payoff in which they are `asked`.

    Args:
        asks: A pure function `asks(payoff, *, top)` of the payoff without `asked`. It returns
            pairs, each of a destroy and a repair of the payoff or of its cross-play.

    Returns:
        The decorator.
    """

    def mark(scheme: Scheme) -> Scheme:
        scheme.asks = asks  # type: ignore[attr-defined]
        return scheme

    return mark


def paying_failures(scheme: Scheme) -> Scheme:
    """Mark a scheme that pays what `Payoff.failed` names.

    Args:
        scheme: The scheme.

    Returns:
        The same.
    """
    scheme.pays_failures = True  # type: ignore[attr-defined]
    return scheme


def sampling(samples: Samples) -> Callable[[Scheme], Scheme]:
    """Mark a scheme in whose update other things than the answers of a context are samples.

    Args:
        samples: "pairs": a destroy is a sample once for each of its pairs, with the follower's
            credit. Then `Credits.leader` says which destroys have any. "one-group": as "pairs", and
            the pairs of a destroy context are one group of both roles. "programs": as without a
            mark.

    Returns:
        The decorator.

    Raises:
        InputError: It is any other word.
    """
    if samples not in get_args(Samples):
        raise InputError(f"samples are one of {', '.join(get_args(Samples))}, not {samples!r}")

    def mark(scheme: Scheme) -> Scheme:
        scheme.samples = samples  # type: ignore[attr-defined]
        return scheme

    return mark


def samples_of(scheme: object) -> Samples:
    """What the samples of an update are under a scheme: by default the programs."""
    found: Samples = getattr(scheme, "samples", "programs")
    return found


def pays(scheme: object) -> bool:
    """Whether a scheme is marked by `paying_failures`."""
    return bool(getattr(scheme, "pays_failures", False))


def formula_of(scheme: object) -> Any:
    """The `arrays.Formula` of a scheme that was made by `of_arrays`; None of any other."""
    return getattr(scheme, "formula", None)

"""Credit schemes: from the payoffs of a round's pairs to the credits of their programs.

A credit scheme is a pure function `scheme(payoff, *, top) -> Credits`. SCHEMES holds those that
ship, the paper's first; `get_credit("package.module:function")` takes any other.

The update learns from a credit, and survivors are selected by `Credits.selection`. In the paper the
two are the same. They differ for a credit that is relative to its round, because a survivor keeps
its score and competes with the candidates of all later rounds.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from spo_jax.envs.metrics import follower_credit, leader_credit
from spo_jax.errors import InputError
from spo_jax.named import imported_function
from spo_jax.program import Program
from spo_jax.search.utility import floats


@dataclass(frozen=True, eq=False)
class CrossPlay:
    """Destroys of a population, and the fixed ones of the panel, with repairs of a population.

    destroys: [M]; repairs: [C], each source once.
    utility: [M, C] float64, J; NaN for a pair that failed or that no round evaluated.
    scores: [M, C, I, S] float64, likewise by training instance and seed.
    """

    destroys: tuple[Program, ...] = ()
    repairs: tuple[Program, ...] = ()
    utility: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    scores: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0, 0)))


@dataclass(frozen=True, eq=False)
class Payoff:
    """The utilities of one round: destroy i with the repairs that were generated for it.

    utility: [D, R] float64, J of row i's destroy with the j-th repair of `repairs[i]`; NaN where
        there is none, because the slot is empty, the repair was rejected or a rollout failed.
    destroys: [D] programs. repairs: [D] tuples of at most R, in the order of generation; None
        stands for an answer that held no program.
    leader_baseline: [D] float64, the population score of the best parent in the prompt of row i's
        destroy; NaN without a parent, and throughout by default. A destroy's score is C_D of its
        own round: as many responses, the same instances and seeds, so like is compared with like.
    follower_baseline: [D, R] float64, likewise for the repairs. A repair's score is C_R^pop, its
        mean J with a panel of proven destroys, while `utility` is J with one new destroy: the same
        unit, but the difference between those destroys is in it. J of the parent with this very
        destroy would be the fair bar; it is not known, and costs an evaluation a parent and row.
    scores: [D, R, I, S] float64, by training instance and seed, in the order of the run's; their
        mean is `utility`, and they are NaN where it is. By default `utility` itself, as of one
        instance and one seed.
    cross_play: the payoffs that are known between members of the populations that the round began
        with. Credits are computed before the round's own cross-play (Algorithm 1, lines 10 and 14).
    """

    utility: np.ndarray
    destroys: tuple[Program, ...]
    repairs: tuple[tuple[Program | None, ...], ...]
    leader_baseline: np.ndarray = None  # type: ignore[assignment]  # an array once it is built
    follower_baseline: np.ndarray = None  # type: ignore[assignment]
    scores: np.ndarray = None  # type: ignore[assignment]
    cross_play: CrossPlay = field(default_factory=CrossPlay)

    def __post_init__(self) -> None:
        utility = self._own("utility", self.utility)
        if utility.ndim != 2:
            raise InputError(f"a payoff is a matrix [D, R], not of shape {utility.shape}")
        rows, slots = utility.shape
        if len(self.destroys) != rows or len(self.repairs) != rows:
            raise InputError(
                f"a payoff of {rows} rows needs as many destroys and tuples of repairs, "
                f"not {len(self.destroys)} and {len(self.repairs)}"
            )
        scores = self._own(
            "scores", utility[..., None, None] if self.scores is None else self.scores
        )
        if scores.ndim != 4 or scores.shape[:2] != utility.shape or np.isinf(scores).any():
            raise InputError(f"the scores of a payoff are [{rows}, {slots}, I, S], finite or NaN")
        for i, row in enumerate(self.repairs):
            if len(row) > slots:
                raise InputError(f"row {i} of a payoff has {len(row)} repairs in {slots} slots")
            absent = [j for j in range(slots) if j >= len(row) or row[j] is None]
            if not (np.isnan(utility[i, absent]).all() and np.isnan(scores[i, absent]).all()):
                raise InputError(f"row {i} of a payoff scores a slot that holds no program")
        for name, shape in (("leader_baseline", (rows,)), ("follower_baseline", utility.shape)):
            given = getattr(self, name)
            baseline = self._own(name, np.full(shape, np.nan) if given is None else given)
            if baseline.shape != shape or np.isinf(baseline).any():
                raise InputError(f"the {name} of a payoff is finite or NaN, of shape {shape}")

    def _own(self, name: str, values: object) -> np.ndarray:
        """The field `name` as a read-only copy, so that no scheme can change it for the next."""
        array = np.array(values, dtype=np.float64)
        array.setflags(write=False)
        object.__setattr__(self, name, array)
        return array


@dataclass(frozen=True, eq=False)
class Credits:
    """What each program of a payoff earned; NaN where it earned nothing and is left out.

    leader: [D] float64, a destroy program's credit. follower: [D, R] float64, a repair's.
    selection: what programs are selected by, where that is not the credit itself: its `leader`
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
    """Payoffs in, credits out."""

    def __call__(self, payoff: Payoff, *, top: int) -> Credits:
        """Credits of the payoff's shape; `top` is the L of eq:leader-credit, at least 1.

        A pure function: the same payoff earns the same credits. What has no utility earns NaN, and
        so does a leader without a single finite response; what earns NaN is left out.
        """


# --- the schemes that ship ------------------------------------------------------------------------


def stackelberg(payoff: Payoff, *, top: int = 2) -> Credits:
    """The paper's credit: followers by how well they answer, leaders by their best answers.

    follower = J of the pair (eq:follower-credit); leader = mean of the `top` highest J of its row,
    of those there are (eq:leader-credit).
    """
    return Credits(leader_credit(payoff.utility, top), follower_credit(payoff.utility))


def shared(payoff: Payoff, *, top: int = 2) -> Credits:
    """The ablation without Stackelberg credit: both programs of a pair receive the pair's J.

    A destroy that is in several pairs receives the mean of its pairs' scores, of those there are;
    `top` plays no part.
    """
    everything = max(payoff.utility.shape[1], 1)
    return Credits(leader_credit(payoff.utility, everything), follower_credit(payoff.utility))


def highest(payoff: Payoff, *, top: int = 2) -> Credits:
    """A program earns its best pair of the round, whichever its role; `top` plays no part.

    A repair whose source was written for several destroys has several pairs.
    """
    return Credits(leader_credit(payoff.utility, 1), _over_pairs(payoff, max))


def average(payoff: Payoff, *, top: int = 2) -> Credits:
    """A program earns the mean of its pairs of the round, whichever its role.

    `shared` but for repairs that were written for several destroys; `top` plays no part.
    """
    return Credits(shared(payoff).leader, _over_pairs(payoff, _mean))


def rank(payoff: Payoff, *, top: int = 2) -> Credits:
    """Followers earn their rank among the answers to their destroy, leaders that of their best.

    A rank is the share of the others that are worse, ties counted as half: 1 for the best, 0 for
    the worst, 1/2 for one alone. A leader earns the mean rank of its `top` best pairs among all
    pairs of the round. Any increasing transform of J leaves these credits as they are. They say
    nothing about other rounds, so destroys are selected by the paper's credit; which repairs enter
    cross-play goes by rank: the best answers to all destroys come before any second best.
    """
    within = np.full(payoff.utility.shape, np.nan)
    for i, row in enumerate(payoff.utility):
        finite = np.isfinite(row)
        within[i, finite] = _ranks(row[finite])
    overall = np.full(payoff.utility.shape, np.nan)
    finite = np.isfinite(payoff.utility)
    overall[finite] = _ranks(payoff.utility[finite])
    absolute = stackelberg(payoff, top=top)
    return Credits(leader_credit(overall, top), within, Credits(absolute.leader, within))


def regret(payoff: Payoff, *, top: int = 2) -> Credits:
    """Minus what a program lost by not being the best reply that was sampled; at most 0.

    follower = J minus the best J of its row: what this answer costs the pair, the leader given.
    leader = its row's best J minus the best of all rows: what committing to this destroy costs,
    followers that reply as well as any was seen to reply given (eq:spo-objective with sampled
    responses). So a leader has no share in the regret of its followers, and `top` plays no part.
    Destroys are selected by their row's best J, which does not depend on the round's other rows.
    """
    value = leader_credit(payoff.utility, 1)
    follower = payoff.utility - value[:, None]
    best = value[np.isfinite(value)].max(initial=-math.inf)
    leader = np.where(np.isfinite(value), value - best, np.nan)
    return Credits(leader, follower, Credits(value, follower))


def gap(payoff: Payoff, *, top: int = 2) -> Credits:
    """Minus log(1 + r), where r is a pair's distance to the round's best in typical distances.

    r = (best J - J) / (best J - median J), medians over the round's pairs: 0 for the best pair, 1
    for the typical one. Up to r's unit that is the pair's gap to the best pair of the round, so a
    step counts by its share of what is left, near the best where J saturates, and a very bad pair
    cannot outweigh the rest of its group. A leader earns the mean of its `top` highest. No unit is
    left: J can be scaled and shifted. Selection is the paper's.
    """
    utility = payoff.utility
    finite = np.isfinite(utility)
    behind = utility[finite].max(initial=-math.inf) - utility[finite]
    # Where half of the pairs are the best one the mean stands in: it is zero only if all are.
    unit = float(np.median(behind) or behind.mean()) if behind.size else 0.0
    follower = np.full(utility.shape, np.nan)
    follower[finite] = -np.log1p(behind / unit) if unit else 0.0
    return Credits(leader_credit(follower, top), follower, stackelberg(payoff, top=top))


def relative_to_parent(payoff: Payoff, *, top: int = 2) -> Credits:
    """The paper's credit minus the score of the best parent in the prompt.

    Without a parent nothing is taken off. All answers to one prompt have the same parents, so
    advantages that are centred by group do not see the difference: see `improvement`. Selection is
    the paper's.
    """
    absolute = stackelberg(payoff, top=top)
    return Credits(
        _above(absolute.leader, payoff.leader_baseline),
        _above(absolute.follower, payoff.follower_baseline),
        absolute,
    )


def improvement(payoff: Payoff, *, top: int = 2) -> Credits:
    """`relative_to_parent`, but no less than 0: a child is paid for beating its parents alone.

    Those that do not are alike, however bad. Without a parent it is the paper's credit.
    """
    relative = relative_to_parent(payoff, top=top)
    return Credits(
        _gain(relative.leader, payoff.leader_baseline),
        _gain(relative.follower, payoff.follower_baseline),
        relative.selection,
    )


SCHEMES: dict[str, CreditScheme] = {
    "stackelberg": stackelberg,
    "shared": shared,
    "max": highest,
    "mean": average,
    "rank": rank,
    "regret": regret,
    "gap": gap,
    "relative-to-parent": relative_to_parent,
    "improvement": improvement,
}


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)  # the same in any order


def _over_pairs(payoff: Payoff, of: Callable[[list[float]], float]) -> np.ndarray:
    """[D, R]: `of` the utilities of all pairs of a repair's source, NaN where there is none."""
    where: dict[str, list[tuple[int, int]]] = {}
    for i, row in enumerate(payoff.repairs):
        for j, repair in enumerate(row):
            if repair is not None and np.isfinite(payoff.utility[i, j]):
                where.setdefault(repair.digest, []).append((i, j))
    earned = np.full(payoff.utility.shape, np.nan)
    for places in where.values():
        value = of([float(payoff.utility[place]) for place in places])
        for place in places:
            earned[place] = value
    return earned


def _ranks(values: np.ndarray) -> np.ndarray:
    """[N] finite -> [N] in [0, 1]: the share of the others below, and half of those equal."""
    if len(values) < 2:
        return np.full(len(values), 0.5)
    ordered = np.sort(values)
    below = np.searchsorted(ordered, values, "left")
    others = np.searchsorted(ordered, values, "right") - 1  # below or equal, itself left out
    return (below + others) / (2 * (len(values) - 1))


def _above(values: np.ndarray, baseline: np.ndarray) -> np.ndarray:
    return values - np.where(np.isnan(baseline), 0.0, baseline)


def _gain(values: np.ndarray, baseline: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(baseline), values, np.maximum(values, 0.0))  # NaN stays NaN


# --- schemes by name ------------------------------------------------------------------------------


def get_credit(name: str) -> CreditScheme:
    """A scheme of SCHEMES, or any other by "package.module:function".

    The scheme that comes back checks what it is given and what it returns: an InputError says
    which scheme returned something else than Credits of the payoff's shape, finite or NaN, or paid
    what has no utility. Raises InputError where nothing callable is found under the name.
    """
    if name in SCHEMES:
        return _checked(name, SCHEMES[name])
    return _checked(name, imported_function("credit", name, ", ".join(SCHEMES), stackelberg))


def _checked(name: str, scheme: Callable[..., object]) -> CreditScheme:
    def credit(payoff: Payoff, *, top: int = 2) -> Credits:
        if top < 1:
            raise InputError(f"top is {top}: a leader is judged by at least one response")
        found = scheme(payoff, top=top)
        if not isinstance(found, Credits):
            raise InputError(
                f"credit {name!r} returned a {type(found).__name__}: "
                "it must return spo_jax.search.credit.Credits"
            )
        credits = _lawful(name, found, payoff)
        if found.selection is None:
            return credits
        if not isinstance(found.selection, Credits):
            raise InputError(f"the selection of credit {name!r} must be Credits, or None")
        return replace(credits, selection=_lawful(f"{name} (selection)", found.selection, payoff))

    return credit


def _lawful(name: str, found: Credits, payoff: Payoff) -> Credits:
    """The credits as float64. Raises InputError unless they are what the protocol says."""
    rows, slots = payoff.utility.shape
    leader = floats(f"credit {name!r}", "leader", found.leader, (rows,))
    follower = floats(f"credit {name!r}", "follower", found.follower, (rows, slots))
    missing = np.isnan(payoff.utility)
    if not np.isnan(follower[missing]).all():
        raise InputError(f"credit {name!r} pays a repair whose pair has no utility: it earns NaN")
    if not np.isnan(leader[missing.all(axis=1)]).all():
        raise InputError(f"credit {name!r} pays a destroy without a valid pair: it earns NaN")
    return Credits(leader, follower)

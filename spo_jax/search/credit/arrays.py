"""Payoffs as arrays with leading axes, and credit schemes as JAX functions of them.

Such a function is `formula(rounds, top) -> (leader, follower, selection)`: leader [..., D],
follower [..., D, R], and such a pair that programs are selected by, or None where that is the
credit. `rounds` is a `PayoffArrays`, a pytree; `top` is a static int. Each round is by itself: its
results have the same bits alone, among others, and with rows of NaN after its own.

`of_arrays` makes a credit scheme of it, which a round calls with its payoff; the laboratory
(`spo_jax.search.lab`) calls the formula itself, for thousands of rounds at once.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, cast

import jax
import numpy as np

from spo_jax.errors import InputError
from spo_jax.numerics.float64 import bucket, jitted, padded
from spo_jax.program import Program
from spo_jax.registry import require_function
from spo_jax.search.credit.types import Credits, CreditScheme, Payoff, pays
from spo_jax.search.utility import floats

Array = jax.Array | np.ndarray
Selection = tuple[Array, Array] | None
Earned = tuple[Array, Array, Selection]


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Reference:
    """J of pairs with a reference destroy and a reference repair; NaN where it is not known.

    leader: [..., D], each destroy with the reference repair. follower: [..., D, R], each repair
    with the reference destroy. pair: [...], the two references with each other.
    """

    leader: Array
    follower: Array
    pair: Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class PayoffArrays:
    """Payoffs of rounds as arrays, float64 where nothing else is said. A row of NaN is no destroy.

    utility: [..., D, R], J, NaN where there is none. scores: [..., D, R, I, S], by instance and
    seed. source: [..., D, R] int, equal for equal repairs of a round, below 0 where there is none.
    failed: [..., D, R] bool, as `Payoff.failed`. leader_baseline: [..., D] and follower_baseline:
    [..., D, R], as of `Payoff`. parent: [..., D, R], J of a row's destroy with the best parent of
    the repair, NaN without one. reference: J of the pairs with the references.
    other_utility, other_source: [..., E, C], J of E destroys of earlier rounds with C repairs, and
    the repairs' numbers, as in `source`. sources: static; all numbers of sources are below it.
    """

    utility: Array
    scores: Array
    source: Array
    failed: Array
    leader_baseline: Array
    follower_baseline: Array
    parent: Array
    reference: Reference
    other_utility: Array
    other_source: Array
    sources: int = field(metadata={"static": True})


def arrays_with(utility: np.ndarray, **given: Any) -> PayoffArrays:
    """Rounds of [..., D, R] utilities; of all fields that are not given nothing is known.

    Each repair has a source of its own, J is the one score, and no pair failed.
    """
    before, by_row = utility.shape[:-2], utility.shape[:-1]

    def none(*shape: int) -> np.ndarray:
        return np.broadcast_to(np.nan, shape)

    whole = none(*utility.shape)
    numbers = np.arange(math.prod(utility.shape[-2:])).reshape(utility.shape[-2:])
    fields: dict[str, Any] = {
        "scores": utility[..., None, None],
        "source": np.broadcast_to(numbers, utility.shape),
        "failed": np.broadcast_to(False, utility.shape),
        "leader_baseline": none(*by_row),
        "follower_baseline": whole,
        "parent": whole,
        "reference": Reference(none(*by_row), whole, none(*before)),
        "other_utility": none(*before, 0, 0),
        "other_source": np.zeros((*before, 0, 0), int),
        "sources": numbers.size,
    }
    return PayoffArrays(utility, **(fields | given))


def arrays_of(payoff: Payoff) -> PayoffArrays:
    """One round, without leading axes. What is known of others has NaN up to `bucket` lengths."""
    rows, slots = payoff.utility.shape
    old, own = payoff.cross_play, {destroy.digest for destroy in payoff.destroys}
    others = [i for i, destroy in enumerate(old.destroys) if destroy.digest not in own]
    far, wide = bucket(len(others)), bucket(len(old.repairs))
    source, other_source = np.full((rows, slots), -1), np.full((far, wide), -1)
    for (i, j), number in _numbered((*payoff.repairs, *[old.repairs] * len(others))).items():
        if i < rows:
            source[i, j] = number
        else:
            other_source[i - rows, j] = number
    return PayoffArrays(
        payoff.utility,
        payoff.scores,
        source,
        payoff.failed,
        payoff.leader_baseline,
        payoff.follower_baseline,
        _best_parents(payoff),
        _reference(payoff),
        padded(old.utility[others], (far, wide)),
        other_source,
        bucket(rows) * slots + wide,
    )


def _with_rows(rounds: PayoffArrays, rows: int) -> PayoffArrays:
    """A round with so many rows, the last ones NaN."""

    def more(values: Any, fill: float = math.nan) -> np.ndarray:
        return padded(np.asarray(values), (rows, *values.shape[1:]), fill)

    known = rounds.reference
    return PayoffArrays(
        more(rounds.utility),
        more(rounds.scores),
        more(rounds.source, -1),
        more(rounds.failed, False),
        more(rounds.leader_baseline),
        more(rounds.follower_baseline),
        more(rounds.parent),
        Reference(more(known.leader), more(known.follower), known.pair),
        rounds.other_utility,
        rounds.other_source,
        rounds.sources,
    )


class Formula:
    """A formula that is compiled where JAX can trace it, and else called with NumPy arrays.

    untraced: why it is not compiled, known after the first call; empty for one that is.
    """

    def __init__(self, function: Callable[[PayoffArrays, int], Any]) -> None:
        self.function, self.untraced = function, ""
        self._tried = False
        self.name = getattr(function, "__name__", type(function).__name__)
        require_function(_who(self.name), function, _signature)

        def formula(rounds: PayoffArrays, top: int) -> Any:
            return function(rounds, top)

        self._compiled = jitted(static=("top",))(formula)

    def __call__(self, rounds: PayoffArrays, top: int) -> Any:
        """Credits of rounds of NumPy arrays, as JAX arrays where the formula is compiled."""
        if self.traces(rounds, top):
            return self._compiled(rounds, top)
        with jax.enable_x64(True):  # for one that JAX computes, but cannot compile
            return self.function(rounds, top)

    def traces(self, rounds: PayoffArrays, top: int) -> bool:
        """Whether JAX can trace it; tried once, with the first rounds that it is asked for.

        What fails for another reason is called as it is, and raises that.
        """
        within = any(isinstance(each, jax.core.Tracer) for each in jax.tree.leaves(rounds))
        if not (self._tried or within):
            self._tried = True
            try:
                with jax.enable_x64(True):
                    jax.eval_shape(lambda given: self.function(given, top), rounds)
            except Exception as error:
                self.untraced = f"JAX cannot trace it ({type(error).__name__})"
        return not self.untraced

    def of_round(self, rounds: PayoffArrays, top: int) -> Any:
        """As a call, of one round. It is compiled for a few numbers of rows: those of NaN that fill
        it up are cut off. The slots stay, because a formula may depend on their number.
        """
        if not self.traces(rounds, top):
            return self(rounds, top)
        rows = len(rounds.utility)
        found = self(_with_rows(rounds, bucket(rows)), top)
        return jax.tree.map(lambda each: each[:rows] if np.ndim(each) else each, found)

    def cache_size(self) -> int:
        """For how many shapes it was compiled."""
        return int(self._compiled.cache_size())  # type: ignore[attr-defined]


def of_arrays(function: Callable[[PayoffArrays, int], Any]) -> Any:
    """Make the credit scheme of a formula; to be used as a decorator.

    The scheme has the `Formula` as its attribute `formula`, and refuses what `earned` does.

    Args:
        function: The formula.

    Returns:
        The scheme.

    Raises:
        InputError: It is not called as formulas are.
    """
    formula = Formula(function)

    @wraps(function)
    def scheme(payoff: Payoff, *, top: int = 2) -> Credits:
        rounds = arrays_of(payoff)
        found = formula.of_round(rounds, top)
        leader, follower, other = earned(formula.name, found, rounds, pays(scheme))
        return Credits(leader, follower, None if other is None else Credits(*other))

    del scheme.__wrapped__  # whose signature is another
    scheme.formula = formula  # type: ignore[attr-defined]
    return cast(CreditScheme, scheme)


def _signature(rounds: PayoffArrays, top: int) -> Earned:
    """The signature of a formula."""
    raise NotImplementedError


def _who(name: str) -> str:
    return f"the function of arrays {name!r}"


def parts_of(name: str, found: object) -> tuple[Any, Any, tuple[Any, Any] | None]:
    """What a formula returned. Raises InputError unless it is of the three parts."""
    if isinstance(found, tuple) and len(found) == 3:
        selection = found[2]
        if selection is None or (isinstance(selection, tuple) and len(selection) == 2):
            return found
    raise InputError(
        f"{_who(name)} must return (leader, follower, selection), selection a (leader, follower) "
        "or None"
    )


def earned(
    name: str, found: object, rounds: PayoffArrays, paying: bool
) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray] | None]:
    """What a formula returned, as NumPy arrays of float64.

    Raises InputError unless it is (leader [..., D], follower [..., D, R], selection), selection
    such a pair or None, finite or NaN, and NaN for what has no utility. paying: it may pay what
    failed.
    """
    leader, follower, selection = parts_of(name, found)
    who = _who(name)
    missing = np.isnan(rounds.utility)
    if paying:
        missing = missing & ~np.asarray(rounds.failed)

    def lawful(leader: Any, follower: Any) -> tuple[np.ndarray, np.ndarray]:
        leaders = floats(who, "leader", leader, rounds.utility.shape[:-1])
        followers = floats(who, "follower", follower, rounds.utility.shape)
        if not (np.isnan(followers[missing]).all() and np.isnan(leaders[missing.all(-1)]).all()):
            raise InputError(f"{who} pays what has no utility, which earns NaN")
        return leaders, followers

    return (*lawful(leader, follower), None if selection is None else lawful(*selection))


# --- of one round ---------------------------------------------------------------------------------


def references_of(payoff: Payoff) -> tuple[Program | None, Program | None]:
    """The first destroy and the first repair that the round began with; None where there is none.

    A population is in the order of its selection, the highest score first; fixed destroys follow.
    """
    known = payoff.cross_play
    return next(iter(known.destroys), None), next(iter(known.repairs), None)


def parents_of(payoff: Payoff, repair: Program | None) -> list[Program]:
    """The parents in a repair's prompt."""
    written = () if repair is None else repair.parents
    return [each for each in payoff.cross_play.repairs if each.digest in written]


def _numbered(rows: Sequence[Sequence[Program | None]]) -> Mapping[tuple[int, int], int]:
    """The number of each program's source, by row and slot."""
    numbers: dict[str, int] = {}
    return {
        (i, j): numbers.setdefault(each.digest, len(numbers))
        for i, row in enumerate(rows)
        for j, each in enumerate(row)
        if each is not None
    }


def _reference(payoff: Payoff) -> Reference:
    destroy, repair = references_of(payoff)
    follower = np.full(payoff.utility.shape, np.nan)
    for i, row in enumerate(payoff.repairs):
        follower[i, : len(row)] = [payoff.known(destroy, each) for each in row]
    leader = np.array([payoff.known(each, repair) for each in payoff.destroys], dtype=np.float64)
    return Reference(leader, follower, np.array(payoff.known(destroy, repair)))


def _best_parents(payoff: Payoff) -> np.ndarray:
    """[D, R]: the highest J of a row's destroy with a parent of the repair, NaN without one."""
    found = np.full(payoff.utility.shape, np.nan)
    for i, row in enumerate(payoff.repairs):
        for j, repair in enumerate(row):
            values = [payoff.known(payoff.destroys[i], p) for p in parents_of(payoff, repair)]
            found[i, j] = max((v for v in values if math.isfinite(v)), default=math.nan)
    return found

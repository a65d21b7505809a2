"""Credit schemes: from the payoffs of a round's pairs to the credits of their programs.

A credit scheme is a pure function `scheme(payoff, *, top) -> Credits`. SCHEMES holds those that
ship, the paper's first; `get_credit("package.module:NAME")` takes any other. `credit_nouns` has
what they are given and return, `credit_schemes` those that ship.

The update learns from a credit, and survivors are selected by `Credits.selection`. In the paper the
two are the same. They differ for a credit that is relative to its round, because a survivor keeps
its score and competes with the candidates of all later rounds.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from spo_jax.errors import InputError
from spo_jax.named import imported_function, require_parameters
from spo_jax.program import Pair
from spo_jax.search.credit_nouns import Credits as Credits
from spo_jax.search.credit_nouns import CreditScheme as CreditScheme
from spo_jax.search.credit_nouns import CrossPlay as CrossPlay
from spo_jax.search.credit_nouns import Payoff as Payoff
from spo_jax.search.credit_nouns import asking as asking
from spo_jax.search.credit_schemes import SCHEMES as SCHEMES
from spo_jax.search.credit_schemes import shared as shared
from spo_jax.search.credit_schemes import stackelberg as stackelberg
from spo_jax.search.utility import floats


def get_credit(name: str) -> CreditScheme:
    """A scheme of SCHEMES, or any other by "package.module:NAME".

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

    asks = getattr(scheme, "asks", None)
    if asks is not None:
        require_parameters(f"what credit {name!r} asks with", asks, stackelberg)
    return credit if asks is None else asking(partial(_asked, name, asks))(credit)


def pairs_asked(schemes: Sequence[CreditScheme], payoff: Payoff, top: int) -> list[Pair]:
    """The pairs that some schemes want to know, each once, in the order in which they ask."""
    asked = [asks(payoff, top=top) for each in schemes if (asks := getattr(each, "asks", None))]
    found = {(pair.destroy.digest, pair.repair.digest): pair for pairs in asked for pair in pairs}
    return list(found.values())


def _asked(name: str, asks: Callable[..., object], payoff: Payoff, *, top: int) -> list[Pair]:
    """What a scheme asks for. Raises InputError for what is no pair of programs that it was shown.

    So every program in a run was sampled and checked, or is the problem's own.
    """
    found = asks(payoff, top=top)
    no_pair = f"credit {name!r} asks for a {{}}: it must ask for Pairs"
    if not isinstance(found, Iterable):
        raise InputError(no_pair.format(type(found).__name__))
    destroys = {each.digest for each in (*payoff.destroys, *payoff.cross_play.destroys)}
    repairs = {r.digest for row in (*payoff.repairs, payoff.cross_play.repairs) for r in row if r}
    pairs = list(found)
    for pair in pairs:
        if not isinstance(pair, Pair):
            raise InputError(no_pair.format(type(pair).__name__))
        if pair.destroy.digest not in destroys or pair.repair.digest not in repairs:
            raise InputError(
                f"credit {name!r} asks for a program that is neither in the payoff nor in its "
                "cross-play"
            )
    return pairs


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

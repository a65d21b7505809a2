"""Credit schemes: from the payoffs of a round's pairs to the credits of their programs.

A credit scheme is a pure function `scheme(payoff, *, top) -> Credits`. CREDITS has those that
ship, the paper's first, and takes any other as `CREDITS["package.module:NAME"]`. `types` has what
they are given and return. Those that ship are JAX functions of arrays (`arrays`), and are imported
once one is asked for, so that a command that computes no credit does not load JAX.

The update learns from a credit, and survivors are selected by `Credits.selection`. In the paper the
two are the same. They differ for a credit that is relative to its round, because a survivor keeps
its score and competes with the candidates of all later rounds.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from spo_jax.errors import InputError
from spo_jax.program import Pair
from spo_jax.registry import Registry, require_function, require_parameters
from spo_jax.search.credit.types import Credits as Credits
from spo_jax.search.credit.types import CreditScheme as CreditScheme
from spo_jax.search.credit.types import CrossPlay as CrossPlay
from spo_jax.search.credit.types import Payoff as Payoff
from spo_jax.search.credit.types import asking as asking
from spo_jax.search.credit.types import formula_of, pays
from spo_jax.search.credit.types import paying_failures as paying_failures
from spo_jax.search.credit.types import samples_of as samples_of
from spo_jax.search.credit.types import sampling as sampling
from spo_jax.search.utility import floats

if TYPE_CHECKING:
    from spo_jax.search.credit.arrays import of_arrays as of_arrays
    from spo_jax.search.credit.plain import shared as shared
    from spo_jax.search.credit.plain import stackelberg as stackelberg

_HOMES = {"of_arrays": "arrays", "shared": "plain", "stackelberg": "plain"}
_FORMULAS = {
    "stackelberg": "plain:stackelberg",
    "shared": "plain:shared",
    "shared-failures-zero": "plain:shared_failures_zero",
    "shared-first-pair": "plain:shared_first_pair",
    "shared-pair-samples": "plain:shared_pair_samples",
    "shared-one-advantage": "plain:shared_one_advantage",
    "no-leader-credit": "plain:no_leader_credit",
    "max": "plain:highest",
    "mean": "plain:average",
    "max-at-k": "best_of:max_at_k",
    "pkpo": "best_of:pkpo",
    "maxpo": "best_of:maxpo",
    "entropic": "best_of:entropic",
    "rank": "plain:rank",
    "regret": "plain:regret",
    "gap": "plain:gap",
    "relative-to-parent": "relative:relative_to_parent",
    "improvement": "relative:improvement",
    "fair-parent": "attribution:fair_parent",
    "counterfactual": "attribution:counterfactual",
    "two-way": "attribution:two_way",
    "shapley": "attribution:shapley",
    "lower-bound": "relative:lower_bound",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def _checked(name: str, scheme: CreditScheme) -> CreditScheme:
    def credit(payoff: Payoff, *, top: int = 2) -> Credits:
        if top < 1:
            raise InputError(f"top is {top}: a leader is judged by at least one response")
        found = scheme(payoff, top=top)
        if not isinstance(found, Credits):
            raise InputError(
                f"credit {name!r} returned a {type(found).__name__}: "
                "it must return spo_jax.search.credit.Credits"
            )
        credits = _lawful(name, found, payoff, paid)
        if found.selection is None:
            return credits
        if not isinstance(found.selection, Credits):
            raise InputError(f"the selection of credit {name!r} must be Credits, or None")
        chosen = _lawful(f"{name} (selection)", found.selection, payoff, paid)
        return replace(credits, selection=chosen)

    paid = pays(scheme)
    if paid:
        paying_failures(credit)
    sampling(samples_of(scheme))(credit)
    asks = getattr(scheme, "asks", None)
    if asks is not None:
        require_parameters(f"what credit {name!r} asks with", asks, CreditScheme.__call__)
    if (formula := formula_of(scheme)) is not None:
        credit.formula = formula  # type: ignore[attr-defined]
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


def _lawful(name: str, found: Credits, payoff: Payoff, paying: bool) -> Credits:
    """The credits as float64. Raises InputError unless they are what the protocol says.

    paying: whether the scheme pays failures.
    """
    rows, slots = payoff.utility.shape
    leader = floats(f"credit {name!r}", "leader", found.leader, (rows,))
    follower = floats(f"credit {name!r}", "follower", found.follower, (rows, slots))
    missing = np.isnan(payoff.utility)
    if paying:
        missing = missing & ~payoff.failed
    if not np.isnan(follower[missing]).all():
        raise InputError(f"credit {name!r} pays a repair whose pair has no utility: it earns NaN")
    if not np.isnan(leader[missing.all(axis=1)]).all():
        raise InputError(f"credit {name!r} pays a destroy without a valid pair: it earns NaN")
    return Credits(leader, follower)


def _own(name: str, found: Any) -> CreditScheme:
    require_function(f"credit {name!r}", found, CreditScheme.__call__)
    return _checked(name, found)


CREDITS: Registry[CreditScheme] = Registry(
    "credit", {name: f"{__name__}.{home}" for name, home in _FORMULAS.items()}, _own
)
"""Credit schemes by name. What a scheme returns is checked: an InputError says which one returned
something else than Credits of the payoff's shape, finite or NaN, or paid what has no utility.
"""

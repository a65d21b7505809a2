"""Who earned what: from the payoffs of a round's pairs to the credits of their programs.

A credit scheme is a function `scheme(payoff, *, top) -> Credits`. Two are here, `stackelberg` (the
paper's) and `shared` (its ablation, Section 5.5); `get_credit("package.module:function")` takes
any other, so a new idea about credit needs no change to the rest.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from spo_jax.envs.metrics import follower_credit, leader_credit
from spo_jax.errors import InputError


@dataclass(frozen=True, eq=False)
class Payoff:
    """The utilities of one round: destroy i met the repairs that were generated for it.

    utility: [D, R] float64, J of row i's destroy with the j-th repair of `repairs[i]`; NaN where
        there is none, because the slot is empty, the repair was rejected or a rollout failed.
    destroys: [D] digests. repairs: [D] tuples of at most R digests, in the order of generation;
        "" stands for an answer that held no program.
    """

    utility: np.ndarray
    destroys: tuple[str, ...]
    repairs: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        utility = np.array(self.utility, dtype=np.float64)  # ours, so that it may be frozen
        utility.setflags(write=False)
        object.__setattr__(self, "utility", utility)
        if utility.ndim != 2:
            raise InputError(f"a payoff is a matrix [D, R], not of shape {utility.shape}")
        rows, slots = utility.shape
        if len(self.destroys) != rows or len(self.repairs) != rows:
            raise InputError(
                f"a payoff of {rows} rows needs as many destroys and tuples of repairs, "
                f"not {len(self.destroys)} and {len(self.repairs)}"
            )
        for i, row in enumerate(self.repairs):
            if len(row) > slots:
                raise InputError(f"row {i} of a payoff has {len(row)} repairs in {slots} slots")
            absent = [j for j in range(slots) if j >= len(row) or not row[j]]
            if not np.isnan(utility[i, absent]).all():
                raise InputError(f"row {i} of a payoff scores a slot that holds no program")


@dataclass(frozen=True, eq=False)
class Credits:
    """What each program of a payoff earned; NaN where it earned nothing and is left out.

    leader: [D] float64, a destroy program's credit. follower: [D, R] float64, a repair's.
    """

    leader: np.ndarray
    follower: np.ndarray


class CreditScheme(Protocol):
    """Payoffs in, credits out."""

    def __call__(self, payoff: Payoff, *, top: int) -> Credits:
        """Credits of the payoff's shape; `top` is the L of eq:leader-credit, at least 1."""


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


SCHEMES: dict[str, CreditScheme] = {"stackelberg": stackelberg, "shared": shared}


def get_credit(name: str) -> CreditScheme:
    """The scheme called "stackelberg" or "shared", or any other by "package.module:function".

    The scheme that comes back checks what it is given and what it returns: an InputError says
    which scheme returned something else than Credits of the payoff's shape, finite or NaN.
    Raises InputError where nothing callable is found under the name.
    """
    scheme = SCHEMES[name] if name in SCHEMES else _imported(name)
    return _checked(name, scheme)


def _imported(name: str) -> CreditScheme:
    module, colon, attribute = name.partition(":")
    if not (colon and module and attribute) or module.startswith("."):
        known = ", ".join(SCHEMES)
        raise InputError(f"unknown credit {name!r}: use {known}, or 'package.module:function'")
    try:
        scheme = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # a user's module may raise anything while it is imported
        raise InputError(
            f"cannot import credit {name!r} ({type(error).__name__}: {error}); "
            "its folder must be on PYTHONPATH"
        ) from error
    if not callable(scheme):
        raise InputError(f"credit {name!r} is a {type(scheme).__name__}, not a function")
    return scheme


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
        rows, slots = payoff.utility.shape
        return Credits(
            _floats(name, "leader", found.leader, (rows,)),
            _floats(name, "follower", found.follower, (rows, slots)),
        )

    return credit


def _floats(name: str, field: str, values: object, shape: tuple[int, ...]) -> np.ndarray:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"credit {name!r} returned a {field} that is no array") from None
    if array.shape != shape:
        raise InputError(f"credit {name!r} returned a {field} of shape {array.shape}, not {shape}")
    if np.isinf(array).any():
        raise InputError(f"credit {name!r} returned an infinite {field}: use NaN for none")
    return array

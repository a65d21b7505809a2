"""Methods by name: SPO, its peers, and a user's own as "package.module:NAME"."""

from collections.abc import Sequence
from typing import Any

from spo_jax.config import Settings
from spo_jax.config.fields import with_settings
from spo_jax.constants import SPO
from spo_jax.envs.problem import Instance
from spo_jax.errors import InputError
from spo_jax.generator import Generator
from spo_jax.registry import Registry, require_members
from spo_jax.search.parts import Method, Parts
from spo_jax.search.rounds import Round, State


def _own(name: str, found: Any) -> Method:
    require_members(f"method {name!r}", found, Method)
    return found


_SHIPPED: dict[str, Method | str] = {
    SPO: "spo_jax.search.spo:Spo",
    "funsearch": "spo_jax.peers.funsearch:FunSearch",
    "eoh": "spo_jax.peers.eoh:Eoh",
    "reevo": "spo_jax.peers.reevo:ReEvo",
    "g-lns": "spo_jax.peers.glns:Glns",
    "mcts-ahd": "spo_jax.peers.mcts_ahd:MctsAhd",
    "hsevo": "spo_jax.peers.hsevo:HsEvo",
    "best-of-n": "spo_jax.peers.best_of_n:BestOfN",
}
METHODS: Registry[Method] = Registry("method", _SHIPPED, _own)


def method_of(config: Settings) -> Method:
    """The method of a run, with the run's settings for it.

    Raises InputError for one that is not there, and for settings that it has not.
    """
    found, given = METHODS[config.search.method], config.search.method_settings
    if not given:
        return found
    return with_settings(found, given, f"method {config.search.method}", "method_settings")


def rounds_of(config: Settings) -> int | None:
    """How many rounds a run has, None where `minutes` decides. Raises as `method_of` does."""
    if config.search.minutes is not None:
        return None
    return rounds_in(method_of(config), config)


def rounds_in(method: Method, config: Settings) -> int:
    """How many rounds a method says it takes. Raises InputError unless that is a number of them."""
    found = method.rounds(config)
    if type(found) is not int or found < 1:
        raise InputError(
            f"method {config.search.method!r}: its rounds(config) returned {found!r:.80}, "
            "where a whole number of at least 1 is due"
        )
    return found


def round_of(
    method: Method, parts: Parts, instances: Sequence[Instance], k: int, state: State
) -> Round:
    """Round k of a method. Raises InputError unless it returns that."""
    done = method.one_round(parts, instances, k, state)
    if not isinstance(done, Round) or done.number != k:
        found = f"round {done.number}" if isinstance(done, Round) else f"{done!r:.80}"
        raise InputError(
            f"method {parts.config.search.method!r}: its one_round returned {found}, where round "
            f"{k} is due, as a spo_jax.search.rounds.Round"
        )
    return done


def variant_of(method: Method, config: Settings, generator: Generator) -> str:
    """The sentence in which a method says what it is. Raises InputError unless that is a text."""
    found = method.variant(generator.writes_prose)
    if not isinstance(found, str):
        raise InputError(
            f"method {config.search.method!r}: its variant(prose) returned {found!r:.80}, "
            "where a text is due"
        )
    return found

"""Methods by name: SPO, its baselines, and a user's own as "package.module:NAME"."""

from collections.abc import Sequence

from spo_jax.config import Settings
from spo_jax.envs.problem import Instance
from spo_jax.errors import InputError
from spo_jax.generator import Generator
from spo_jax.knobs import told
from spo_jax.named import imported, require_members
from spo_jax.search.parts import Method, Parts
from spo_jax.search.rounds import Round, State
from spo_jax.words import SPO

METHODS = {
    "funsearch": "spo_jax.search.methods.funsearch:FunSearch",
    "eoh": "spo_jax.search.methods.eoh:Eoh",
    "reevo": "spo_jax.search.methods.reevo:ReEvo",
    "g-lns": "spo_jax.search.methods.glns:Glns",
    "mcts-ahd": "spo_jax.search.methods.mcts_ahd:MctsAhd",
    "hsevo": "spo_jax.search.methods.hsevo:HsEvo",
    "best-of-n": "spo_jax.search.methods.best_of_n:BestOfN",
}


def get_method(config: Settings) -> Method | None:
    """The method of a run, with the run's settings for it; None for SPO, which is Algorithm 1.

    Raises InputError for one that is not there, and for settings that it has not.
    """
    if config.search.method == SPO:
        return None
    own = METHODS.get(config.search.method, config.search.method)
    found = imported("method", own, ", ".join((SPO, *METHODS)))
    if own == config.search.method:
        require_members(f"method {own!r}", found, Method)
    given = config.search.method_settings
    if not given:
        return found
    return told(found, given, f"method {config.search.method}", "method_settings")


def rounds_of(config: Settings) -> int | None:
    """How many rounds a run has, None where `minutes` decides. Raises as `get_method` does."""
    if config.search.minutes is not None:
        return None
    method = get_method(config)
    return rounds_in(method, config) if method else config.search.rounds


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

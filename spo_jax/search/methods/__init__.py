"""Methods by name: SPO, its baselines, and a user's own as "package.module:NAME"."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from spo_jax.config import Config, closest
from spo_jax.envs.problem import Instance
from spo_jax.errors import InputError
from spo_jax.generator import Generator
from spo_jax.named import imported, require_members
from spo_jax.search.parts import Method, Parts
from spo_jax.search.rounds import Round, State
from spo_jax.words import SPO

METHODS = {
    "funsearch": "spo_jax.search.methods.funsearch:FunSearch",
    "eoh": "spo_jax.search.methods.eoh:Eoh",
    "reevo": "spo_jax.search.methods.reevo:ReEvo",
    "g-lns": "spo_jax.search.methods.glns:Glns",
    "best-of-n": "spo_jax.search.methods.best_of_n:BestOfN",
}


def get_method(config: Config) -> Method | None:
    """The method of a run, with the run's settings for it; None for SPO, which is Algorithm 1.

    Raises InputError for one that is not there, and for settings that it has not.
    """
    if config.method == SPO:
        return None
    own = METHODS.get(config.method, config.method)
    found = imported("method", own, ", ".join((SPO, *METHODS)))
    if own == config.method:
        require_members(f"method {own!r}", found, Method)
    if config.method_settings is None:
        return found
    return _with_settings(found, config)


def rounds_of(config: Config) -> int:
    """How many rounds a run has. Raises InputError as `get_method` does."""
    method = get_method(config)
    return rounds_in(method, config) if method else config.rounds


def rounds_in(method: Method, config: Config) -> int:
    """How many rounds a method says it takes. Raises InputError unless that is a number of them."""
    found = method.rounds(config)
    if type(found) is not int or found < 1:
        raise InputError(
            f"method {config.method!r}: its rounds(config) returned {found!r:.80}, where a whole "
            "number of at least 1 is due"
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
            f"method {parts.config.method!r}: its one_round returned {found}, where round {k} is "
            "due, as a spo_jax.search.rounds.Round"
        )
    return done


def variant_of(method: Method, config: Config, generator: Generator) -> str:
    """The sentence in which a method says what it is. Raises InputError unless that is a text."""
    found = method.variant(generator.writes_prose)
    if not isinstance(found, str):
        raise InputError(
            f"method {config.method!r}: its variant(prose) returned {found!r:.80}, where a text "
            "is due"
        )
    return found


def _with_settings(method: Any, config: Config) -> Any:
    """A method with other numbers, from a text as "islands=4, samples=2"."""
    text = str(config.method_settings)
    known = {}
    if dataclasses.is_dataclass(method):
        known = {field.name: getattr(method, field.name) for field in dataclasses.fields(method)}
    changed: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (each.strip() for each in part.partition("="))
        if not equals or not value:
            raise InputError(f"method_settings is {text!r}; write it as 'name=number, name=number'")
        if name not in known:
            hint = closest(name, known) if known else ""
            raise InputError(f"method {config.method} has no setting {name!r}{hint}")
        changed[name] = _converted(config.method, name, value, type(known[name]))
    return dataclasses.replace(method, **changed)


_KINDS: dict[type, tuple[str, Callable[[str], Any]]] = {
    int: ("a whole number", int),
    float: ("a number", float),
    str: ("a text", str),
    bool: ("true or false", lambda text: {"true": True, "false": False}[text.lower()]),
}


def _converted(method: str, name: str, text: str, kind: type) -> Any:
    if kind not in _KINDS:
        kinds = ", ".join(each.__name__ for each in _KINDS)
        raise InputError(
            f"method {method} has a setting {name} of kind {kind.__name__}, which method_settings "
            f"cannot give; its default must be one of {kinds}"
        )
    what, convert = _KINDS[kind]
    try:
        return convert(text)
    except (ValueError, KeyError):
        raise InputError(f"{name} is {text!r} in method_settings; it must be {what}") from None


def settings_of(method: Any) -> dict[str, Any]:
    """A method's numbers, for the record."""
    if not dataclasses.is_dataclass(method) or isinstance(method, type):
        return {}
    return dataclasses.asdict(method)


def check_range(name: str, value: float, low: float, high: float) -> None:
    """Raises InputError for a setting out of range."""
    if not low <= value <= high:
        raise InputError(f"{name} is {value} in method_settings; it must be from {low} to {high}")

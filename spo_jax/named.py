"""A user's own part of a run, by its name "package.module:NAME": the one importer of such names.

Where the line is between the user's mistake and the user's bug: what goes wrong before a part is
called (its name, its import, its constructor, its parameters) and what it returns are told in one
sentence, which names the option. What its code raises while a run calls it keeps its traceback.
"""

import importlib
import inspect
import traceback
from collections.abc import Callable
from typing import Any

from spo_jax.errors import InputError


def imported(what: str, name: str, known: str, noun: str = "NAME", call: bool = True) -> Any:
    """What "package.module:NAME" names; a class is called if `call`. Raises InputError for nothing.

    what: the option, for the sentence. known: the words that the option takes besides.
    """
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), attribute)):
        raise InputError(f"unknown {what} {name!r}: use {known}, or 'package.module:{noun}'")
    try:
        found = getattr(importlib.import_module(module), attribute)
        return found() if call and isinstance(found, type) else found
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a user's module may raise anything on import
        absent = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(
            f"{error.name}."
        )
        hint = "; its folder must be on PYTHONPATH" if absent else _raised_in(error)
        raise InputError(
            f"cannot import {what} {name!r} ({type(error).__name__}: {_message(error)}){hint}"
        ) from error


def imported_function(what: str, name: str, known: str, like: Callable[..., Any]) -> Any:
    """As `imported`. Raises InputError also for what cannot be called as `like` is called."""
    found = imported(what, name, known)
    if not callable(found):
        raise InputError(f"{what} {name!r} is of type {type(found).__name__}, not a function")
    require_parameters(f"{what} {name!r}", found, like)
    return found


def require_members(what: str, found: Any, protocol: type) -> None:
    """Raises InputError unless `found` has the attributes and methods that `protocol` declares.

    Attributes must be of their type where that is a class; methods must take the parameters.
    what: names `found`.
    """
    wider: dict[Any, tuple[type, ...]] = {float: (int, float)}
    for name, kind in protocol.__annotations__.items():
        if not hasattr(found, name):
            raise InputError(f"{what} has no attribute {name}, as {_told(protocol)} has")
        value = getattr(found, name)
        if isinstance(kind, type) and (
            not isinstance(value, wider.get(kind, kind))
            or (isinstance(value, bool) and kind is not bool)
        ):
            raise InputError(f"{what}: its {name} is {value!r:.80}, where a {kind.__name__} is due")
    for name, like in vars(protocol).items():
        if name.startswith("_") or not inspect.isfunction(like):
            continue
        if not callable(getattr(found, name, None)):
            raise InputError(f"{what} has no method {name}, as {_told(protocol)} has")
        require_parameters(f"{what}: its method {name}", getattr(found, name), like)


def require_parameters(what: str, function: Callable[..., Any], like: Callable[..., Any]) -> None:
    """Raises InputError unless `function` can be called as `like` is: its positional parameters by
    position, the keyword-only ones by name. `self` does not count.
    """
    wanted = [each for each in inspect.signature(like).parameters.values() if each.name != "self"]
    named = [each.name for each in wanted if each.kind is each.KEYWORD_ONLY]
    placed = [each.name for each in wanted if each.kind is not each.KEYWORD_ONLY]
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of some built-in functions nothing is known
        return
    try:
        signature.bind(*placed, **dict.fromkeys(named))
    except TypeError:
        due = ", ".join([*placed, *(["*", *named] if named else [])])
        has = ", ".join(str(each.replace(annotation=each.empty))
                        for each in signature.parameters.values())  # fmt: skip
        raise InputError(f"{what} must take ({due}); it takes ({has})") from None


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "no message"


def _told(protocol: type) -> str:
    return f"{protocol.__module__}.{protocol.__name__}"


def _raised_in(error: BaseException) -> str:
    """Where in a user's module it was raised, unless the message says it already."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
    frames = [f for f in frames if "importlib" not in f.filename]
    if isinstance(error, SyntaxError) or not frames:
        return ""
    return f" in {frames[-1].filename}, line {frames[-1].lineno}"

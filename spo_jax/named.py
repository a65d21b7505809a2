"""Imports a user's own part of a run by its name "package.module:NAME".

A mistake before the part is called (in its name, import, constructor or parameters), or in what it
returns, is an `InputError` that names the option. An exception that the part raises during a run is
a bug of the user and keeps its traceback.
"""

import contextlib
import importlib
import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from spo_jax.errors import InputError

_objects: dict[str, Any] = {}


@contextlib.contextmanager
def known_by(objects: Mapping[str, Any]) -> Iterator[None]:
    """Within the block these names are those of these objects, whatever could be imported."""
    before = dict(_objects)
    _objects.update(objects)
    try:
        yield
    finally:
        _objects.clear()
        _objects.update(before)


def imported(what: str, name: str, known: str, call: bool = True) -> Any:
    """The object named "package.module:NAME"; a class is instantiated if `call`.

    Raises InputError where there is none.

    what: the option, for the message. known: the built-in values of the option.
    """
    if name in _objects:
        found = _objects[name]
        return found() if isinstance(found, type) else found
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), attribute)):
        from spo_jax.knobs import nearest  # pydantic is slow, and only this needs it

        near = nearest(name.lower(), known.replace(" or ", ", ").split(", "))
        hint = f"; did you mean {near!r}?" if near else ""
        raise InputError(f"unknown {what} {name!r}: use {known}, or 'package.module:NAME'{hint}")
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
    """As `imported`. Also raises InputError unless the object can be called like `like`."""
    found = imported(what, name, known)
    if not callable(found):
        raise InputError(f"{what} {name!r} is of type {type(found).__name__}, not a function")
    require_parameters(f"{what} {name!r}", found, like)
    return found


def require_members(what: str, found: Any, protocol: type) -> None:
    """Raises InputError unless `found` has the attributes and methods that `protocol` declares.

    Attributes must have the declared type if it is a class; methods must take the parameters.
    what: the name of `found` in messages.
    """
    wider: dict[Any, tuple[type, ...]] = {float: (int, float)}
    for name, kind in protocol.__annotations__.items():
        if not hasattr(found, name):
            raise InputError(f"{what} has no attribute {name}, which {_path(protocol)} requires")
        value = getattr(found, name)
        if isinstance(kind, type) and (
            not isinstance(value, wider.get(kind, kind))
            or (isinstance(value, bool) and kind is not bool)
        ):
            raise InputError(f"{what}: its {name} is {value!r:.80}, not a {kind.__name__}")
    for name, like in vars(protocol).items():
        if name.startswith("_") or not inspect.isfunction(like):
            continue
        if not callable(getattr(found, name, None)):
            raise InputError(f"{what} has no method {name}, which {_path(protocol)} requires")
        require_parameters(f"{what}: its method {name}", getattr(found, name), like)


def require_parameters(what: str, function: Callable[..., Any], like: Callable[..., Any]) -> None:
    """Raises InputError unless `function` can be called like `like`: positional parameters by
    position, keyword-only ones by name. `self` does not count.
    """
    wanted = [each for each in inspect.signature(like).parameters.values() if each.name != "self"]
    named = [each.name for each in wanted if each.kind is each.KEYWORD_ONLY]
    placed = [each.name for each in wanted if each.kind is not each.KEYWORD_ONLY]
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions have no signature
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


def _path(protocol: type) -> str:
    return f"{protocol.__module__}.{protocol.__name__}"


def _raised_in(error: BaseException) -> str:
    """The line of the user's module that raised it, unless the message already says so."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
    frames = [f for f in frames if "importlib" not in f.filename]
    if isinstance(error, SyntaxError) or not frames:
        return ""
    return f" in {frames[-1].filename}, line {frames[-1].lineno}"

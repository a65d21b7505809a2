"""A user's own part of a run, by its name "package.module:NAME"."""

import importlib
from typing import Any

from spo_jax.errors import InputError


def imported(what: str, name: str, known: str) -> Any:
    """What "package.module:NAME" names; a class is called. Raises InputError for nothing."""
    module, colon, attribute = name.partition(":")
    if not (colon and module and attribute) or module.startswith("."):
        raise InputError(f"unknown {what} {name!r}: use {known}, or 'package.module:NAME'")
    try:
        found = getattr(importlib.import_module(module), attribute)
        return found() if isinstance(found, type) else found
    except Exception as error:  # a user's module may raise anything while it is imported
        raise InputError(
            f"cannot import {what} {name!r} ({type(error).__name__}: {error}); "
            "its folder must be on PYTHONPATH"
        ) from error


def imported_function(what: str, name: str, known: str) -> Any:
    """As `imported`. Raises InputError also for what cannot be called."""
    found = imported(what, name, known)
    if not callable(found):
        raise InputError(f"{what} {name!r} is a {type(found).__name__}, not a function")
    return found

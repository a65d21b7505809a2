"""Parts of a run found by name: "grammar", "none", or a user's own "package.module:NAME"."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spo_jax.errors import InputError
from spo_jax.program import Group, Role
from spo_jax.search.rounds import Generator, Updater


def get_generator(name: str) -> Generator:
    """The grammar, or any object with `generate(prompts, n, seed)`; a class is called first.

    Raises InputError where nothing like that is found under the name.
    """
    if name == "grammar":
        from spo_jax.search.grammar.generator import GrammarGenerator

        return GrammarGenerator()
    generator = _imported("generator", name, "grammar")
    if not callable(getattr(generator, "generate", None)):
        raise InputError(f"generator {name!r} has no method generate(prompts, n, seed)")
    return generator


def get_updater(name: str) -> Updater:
    """No update, an `Updater`, or a function of the groups that returns metrics.

    Raises InputError where nothing like that is found under the name.
    """
    if name == "none":
        return Updater()
    updater = _imported("update", name, "none")
    if isinstance(updater, Updater):
        return updater
    if callable(updater):
        return FunctionUpdater(updater)
    raise InputError(f"update {name!r} is a {type(updater).__name__}, neither Updater nor function")


class FunctionUpdater(Updater):
    """An update by a function that keeps nothing from round to round."""

    def __init__(self, function: Callable[[Mapping[Role, Sequence[Group]]], Any]):
        self._function = function

    def update(self, groups: Mapping[Role, Sequence[Group]]) -> dict[str, float]:
        return dict(self._function(groups) or {})


def _imported(what: str, name: str, known: str) -> Any:
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

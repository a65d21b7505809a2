"""Parts of a run found by name: ours by their words, a user's own as "package.module:NAME"."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spo_jax.config import ENDPOINT, LEARNERS, VLLM, Config
from spo_jax.errors import InputError
from spo_jax.program import Group, Role
from spo_jax.search.rounds import Generator, NoUpdate, Updater


def writer_and_learner(config: Config) -> tuple[Generator, Updater]:
    """The generator and the updater of a run: one and the same where a model learns.

    Raises InputError where one of them cannot be had.
    """
    if config.generator == ENDPOINT:
        from spo_jax.rl.endpoint import Endpoint

        return Endpoint(config), get_updater(config.update)
    if config.generator not in LEARNERS:
        return get_generator(config.generator), get_updater(config.update)
    updater = None if config.update == "grpo" else get_updater(config.update)
    from spo_jax.rl.policy import Policy

    kind = Policy
    if config.generator == VLLM:
        from spo_jax.rl.vllm.policy import VllmPolicy

        kind = VllmPolicy
    policy = kind.load(config)
    return policy, policy if updater is None else updater


def get_generator(name: str) -> Generator:
    """The grammar, or any object with `generate(prompts, n, seed)`; a class is called first.

    Raises InputError where nothing like that is found under the name.
    """
    if name == "grammar":
        from spo_jax.search.grammar.generator import GrammarGenerator

        return GrammarGenerator()
    generator = imported("generator", name, "model, vllm, openai, grammar")
    if not callable(getattr(generator, "generate", None)):
        raise InputError(f"generator {name!r} has no method generate(prompts, n, seed)")
    return generator


def get_updater(name: str) -> Updater:
    """No update, an `Updater`, or a function of the groups that returns metrics.

    Raises InputError where nothing like that is found under the name.
    """
    if name == "none":
        return NoUpdate()
    updater = imported("update", name, "grpo, none")
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

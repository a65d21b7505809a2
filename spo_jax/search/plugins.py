"""Parts of a run found by name: ours by their words, a user's own as "package.module:NAME"."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

from spo_jax.config import Config
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError
from spo_jax.named import imported, imported_function, require_members, require_parameters
from spo_jax.program import Group, Program, Role
from spo_jax.search.population import Member, Panel, Population, Select, leader_panel, select
from spo_jax.search.rounds import Generator, NoUpdate, Updater
from spo_jax.words import ENDPOINT, LEARNERS, VLLM


def writer_and_learner(config: Config) -> tuple[Generator, Updater]:
    """The generator and the updater of a run: one and the same where a model learns.

    Raises InputError where one of them cannot be had.
    """
    if config.generator == ENDPOINT:
        from spo_jax.rl.endpoint import Endpoint

        return Endpoint(config), get_updater(config.update)
    if config.generator not in LEARNERS:
        return get_generator(config.generator, config.problem), get_updater(config.update)
    updater = None if config.update == "grpo" else get_updater(config.update)
    from spo_jax.rl.policy import Policy

    kind = Policy
    if config.generator == VLLM:
        from spo_jax.rl.vllm.policy import VllmPolicy

        kind = VllmPolicy
    policy = kind.load(config)
    return policy, policy if updater is None else updater


def get_generator(name: str, problem: str = "") -> Generator:
    """The grammar of `problem`, or any object with `generate(prompts, n, seed)`.

    A class is called first.

    Raises InputError where nothing like that is found under the name.
    """
    if name == "grammar":
        from spo_jax.search.writing.grammar import GrammarGenerator

        return GrammarGenerator(get_problem(problem) if problem else None)
    generator = imported("generator", name, "model, vllm, openai, grammar")
    require_members(f"generator {name!r}", generator, Generator)
    return generator


def get_updater(name: str) -> Updater:
    """No update, an `Updater`, or a function of the groups that returns metrics.

    Raises InputError where nothing like that is found under the name.
    """
    if name == "none":
        return NoUpdate()
    updater = imported("update", name, "grpo, none")
    if isinstance(updater, Updater):
        require_members(f"update {name!r}", updater, Updater)
        return updater
    if callable(updater):
        require_parameters(f"update {name!r}", updater, _update)
        return FunctionUpdater(updater)
    raise InputError(f"update {name!r} is a {type(updater).__name__}, neither Updater nor function")


def _update(groups: Mapping[Role, Sequence[Group]]) -> Mapping[str, float] | None:
    """What an update by a function is called as."""


class FunctionUpdater(Updater):
    """An update by a function that keeps nothing from round to round."""

    def __init__(self, function: Callable[[Mapping[Role, Sequence[Group]]], Any]):
        self._function = function

    def update(self, groups: Mapping[Role, Sequence[Group]]) -> dict[str, float]:
        found = self._function(groups)
        return {} if found is None else found


def get_survivors(name: str) -> Select:
    """The rule of who survives a round: "diverse", or a function with the signature of `select`.

    What comes back of a user's own is checked: an InputError says where it returned something else
    than candidates with finite scores. Raises InputError where there is no such function.
    """
    if name == "diverse":
        return select
    function = imported_function("survivors", name, "diverse", select)
    due = "it must return members of its candidates, with finite scores"

    def checked(candidates: Sequence[Member], size: int, diversity: float) -> Population:
        chosen = _several(f"survivors {name!r}", function(candidates, size, diversity), due)
        programs = [member.program for member in candidates]
        for each in chosen:
            lawful = isinstance(each, Member) and each.program in programs
            lawful = lawful and isinstance(each.score, Real) and type(each.round) is int
            if not (lawful and math.isfinite(each.score)):
                raise InputError(f"survivors {name!r} returned {each!r:.80}: {due}")
        return tuple(replace(each, score=float(each.score)) for each in chosen)

    return checked


def get_panel(name: str) -> Panel:
    """Who judges repairs: "evolved", or a function with the signature of `leader_panel`.

    What comes back of a user's own is checked: an InputError says where it returned something else
    than destroy programs. Raises InputError where there is no such function.
    """
    if name == "evolved":
        return leader_panel
    function = imported_function("panel", name, "evolved", leader_panel)
    due = "it must return destroy programs"

    def checked(
        destroys: Population, size: int, fixed: tuple[Program, ...], diversity: float
    ) -> tuple[Program, ...]:
        chosen = _several(f"panel {name!r}", function(destroys, size, fixed, diversity), due)
        for each in chosen:
            if not isinstance(each, Program) or each.role != "destroy":
                raise InputError(f"panel {name!r} returned {each!r:.80}: {due}")
        return chosen

    return checked


def _several(what: str, found: Any, due: str) -> tuple[Any, ...]:
    """The things in what a function returned. Raises InputError for what holds none."""
    if not isinstance(found, Iterable):
        raise InputError(f"{what} returned {found!r:.80}: {due}")
    return tuple(found)

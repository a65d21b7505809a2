"""Parts of a run by name: those of the package, or the user's as "package.module:NAME"."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from spo_jax.config import Settings
from spo_jax.envs.problem import Problem
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError
from spo_jax.generator import Generator
from spo_jax.named import imported, imported_function, require_members, require_parameters
from spo_jax.program import Completion, Group, Program, Prompt, Role
from spo_jax.search.population import (
    Member,
    Panel,
    PanelContext,
    Population,
    SurvivorContext,
    Survivors,
    diverse_survivors,
    identity,
    leader_panel,
    ranked_survivors,
)
from spo_jax.search.rounds import NoUpdate, Updater
from spo_jax.updates import UPDATES
from spo_jax.words import ENDPOINT, LEARNERS, OWN_MODELS, VLLM

if TYPE_CHECKING:
    from spo_jax.envs.run.evaluator import Evaluator

# Those of the package.
_GENERATORS, _UPDATES = "model, vllm, openai, grammar", ", ".join((*UPDATES, "none"))


def writer_and_learner(config: Settings) -> tuple[Generator, Updater]:
    """The generator and the updater of a run: one object where a model learns.

    Raises InputError where one of them cannot be made, and for a model that does not know the
    problem.
    """
    if config.generator.name == ENDPOINT:
        from spo_jax.rl.endpoint import Endpoint

        return Endpoint(config), get_updater(config.learning.update)
    if config.generator.name not in LEARNERS:
        generator = get_generator(config.generator.name, config.problem)
        _require_prose(config, generator.writes_prose)
        return generator, get_updater(config.learning.update)
    update = config.learning.update
    updater = None if update in UPDATES else get_updater(update)
    from spo_jax.rl.policy import Policy

    kind = Policy
    if config.generator.name == VLLM:
        from spo_jax.rl.vllm.policy import VllmPolicy

        kind = VllmPolicy
    _require_prose(config, config.generator.model not in OWN_MODELS)
    policy = kind.load(config)
    _require_known(config)
    return policy, policy if updater is None else updater


def evaluator_of(config: Settings, problem: Problem) -> "Evaluator":
    """The evaluator of a run with these settings, not started. Raises InputError as its factory."""
    from spo_jax.envs.run.evaluator import get_evaluator
    from spo_jax.envs.run.shown import shown_with

    evaluation = config.evaluation
    return get_evaluator(evaluation.evaluator, evaluation.ray_address)(
        problem, config.workers, seed=config.seed, cpu_seconds=evaluation.cpu_seconds,
        memory_mb=evaluation.memory_mb, on_invalid=evaluation.on_invalid,
        shown=shown_with(config.generator.state), unsafe=evaluation.unsafe_sandbox,
        kit=config.generator.kit != "none", work=evaluation.work,
    )  # fmt: skip


def require_parts(config: Settings) -> None:
    """Raises the InputError with which a run is refused for a name, or for what does not fit its
    model; the same sentence. Starts nothing, and reads neither instances nor weights.
    """
    from spo_jax.envs.run.evaluator import get_evaluator
    from spo_jax.search.credit import get_credit
    from spo_jax.search.methods import rounds_of
    from spo_jax.search.parent_reward import learning_credit_of
    from spo_jax.search.racing import get_racing
    from spo_jax.search.utility import get_utility

    get_credit(config.search.credit)
    learning_credit_of(config)
    get_survivors(config.search.survivors)
    get_panel(config.search.panel)
    get_racing(config.search.racing)
    get_utility(config.evaluation.utility)
    rounds_of(config)
    name, update = config.generator.name, config.learning.update
    if name == ENDPOINT:
        from spo_jax.rl.endpoint import Endpoint

        Endpoint(config)
    elif name in LEARNERS:
        from spo_jax.rl.policy import require_fitting

        _require_prose(config, config.generator.model not in OWN_MODELS)
        require_fitting(config)
        _require_known(config)
    elif name == "grammar":
        get_generator(name, config.problem)
        _require_prose(config, False)
    else:
        imported("generator", name, _GENERATORS, call=False)
    if update not in (*UPDATES, "none"):
        imported("update", update, _UPDATES, call=False)
    get_evaluator(config.evaluation.evaluator, config.evaluation.ray_address)


def _require_known(config: Settings) -> None:
    """Raises InputError for a model that does not know the problem of a run."""
    from spo_jax.rl.policy import trained_on

    known, problem = trained_on(config.generator.model), get_problem(config.problem).name
    if known and problem not in known:
        raise InputError(
            f"model {config.generator.model} knows only the problems that it was trained on "
            f"({', '.join(known)}), not {problem}: use --generator grammar, an "
            "endpoint (--base-url) or another --model"
        )


def _require_prose(config: Settings, able: bool) -> None:
    """Raises InputError where answers are to be mended by a writer that cannot read what is wrong.

    able: whether it reads any text.
    """
    name, model = config.generator.name, config.generator.model
    if config.generator.mend and not able:
        who = f"model is {model}" if name in LEARNERS else f"generator is {name}"
        raise InputError(
            f"mend is {config.generator.mend}, and {who}, which reads no reasons (writes_prose); "
            "leave out mend"
        )


def get_generator(name: str, problem: str = "") -> Generator:
    """The grammar of `problem`, or a user's own generator; a class is called first.

    Raises InputError where nothing like that is found under the name.
    """
    if name == "grammar":
        from spo_jax.search.writing.grammar import GrammarGenerator

        return GrammarGenerator(get_problem(problem) if problem else None)
    return as_generator(imported("generator", name, _GENERATORS), f"generator {name!r}")


def as_generator(found: Any, what: str = "the generator") -> Generator:
    """A Generator as it is; what has at least a `generate` like a Generator's is adapted to one.

    what: names it in a sentence. Raises InputError for methods that are not as a Generator's.
    """
    if not isinstance(found, Generator):
        if not callable(getattr(found, "generate", None)):
            raise InputError(f"{what} has no method generate, as spo_jax.generator.Generator has")
        require_parameters(f"{what}: its method generate", found.generate, Generator.generate)
        found = _Adapted(found)
    require_members(what, found, Generator)
    return found


class _Adapted(Generator):
    """An object that does not subclass Generator; what it does not have is a Generator's."""

    def __init__(self, own: Any):
        self._own = own
        for name in ("writes_prose", "stream", "fits", "takes", "open", "close"):
            if hasattr(own, name):
                setattr(self, name, getattr(own, name))

    def generate(
        self, prompts: Sequence[Prompt], n: int, seed: int
    ) -> list[tuple[Completion, ...]]:
        found: list[tuple[Completion, ...]] = self._own.generate(prompts, n, seed)
        return found


def get_updater(name: str) -> Updater:
    """No update, an `Updater`, or a function of the groups that returns metrics.

    Raises InputError where nothing like that is found under the name.
    """
    if name == "none":
        return NoUpdate()
    updater = imported("update", name, _UPDATES)
    if isinstance(updater, Updater):
        require_members(f"update {name!r}", updater, Updater)
        return updater
    if callable(updater):
        require_parameters(f"update {name!r}", updater, _update)
        return FunctionUpdater(updater)
    raise InputError(f"update {name!r} is a {type(updater).__name__}, neither Updater nor function")


def _update(groups: Mapping[Role, Sequence[Group]]) -> Mapping[str, float] | None:
    """The signature of an update by a function."""


class FunctionUpdater(Updater):
    """An update by a function that keeps nothing from round to round."""

    def __init__(self, function: Callable[[Mapping[Role, Sequence[Group]]], Any]):
        self._function = function

    def update(self, groups: Mapping[Role, Sequence[Group]]) -> dict[str, float]:
        found = self._function(groups)
        return {} if found is None else found


_SURVIVORS = {"diverse": diverse_survivors, "ranked": ranked_survivors}


def get_survivors(name: str) -> Survivors:
    """The rule of survivors: "diverse", "ranked", or a function like `diverse_survivors`.

    What a user's own returns is checked: an InputError says where it returned something else than
    candidates with finite scores, each once and at most `context.size`.
    Raises InputError where there is no such function.
    """
    if name in _SURVIVORS:
        return _SURVIVORS[name]
    function = imported_function("survivors", name, ", ".join(_SURVIVORS), diverse_survivors)
    due = "it must return members of its candidates, with finite scores"

    def checked(candidates: Sequence[Member], context: SurvivorContext) -> Population:
        chosen = _several(f"survivors {name!r}", function(candidates, context), due)
        programs = [member.program for member in candidates]
        for each in chosen:
            lawful = isinstance(each, Member) and each.program in programs
            lawful = lawful and isinstance(each.score, Real) and type(each.round) is int
            if not (lawful and math.isfinite(each.score)):
                raise InputError(f"survivors {name!r} returned {each!r:.80}: {due}")
        distinct = len({identity(each.program) for each in chosen})
        if distinct < len(chosen) or len(chosen) > context.size:
            raise InputError(
                f"survivors {name!r} returned {len(chosen)} members, {distinct} of them distinct: "
                f"it must return each program once, and at most {context.size} (context.size)"
            )
        return tuple(replace(each, score=float(each.score)) for each in chosen)

    return checked


def get_panel(name: str) -> Panel:
    """The choice of the leader panel: "evolved", or a function like `leader_panel`.

    What a user's own returns is checked: an InputError says where it returned something else than
    destroy programs. Raises InputError where there is no such function.
    """
    if name == "evolved":
        return leader_panel
    function = imported_function("panel", name, "evolved", leader_panel)
    due = "it must return destroy programs"

    def checked(destroys: Population, context: PanelContext) -> tuple[Program, ...]:
        chosen = _several(f"panel {name!r}", function(destroys, context), due)
        for each in chosen:
            if not isinstance(each, Program) or each.role != "destroy":
                raise InputError(f"panel {name!r} returned {each!r:.80}: {due}")
        return chosen

    return checked


def _several(what: str, found: Any, due: str) -> tuple[Any, ...]:
    """What a function returned, as a tuple. Raises InputError for what is not iterable."""
    if not isinstance(found, Iterable):
        raise InputError(f"{what} returned {found!r:.80}: {due}")
    return tuple(found)

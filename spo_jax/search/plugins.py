"""Parts of a run by name: those of the package, or the user's as "package.module:NAME"."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spo_jax.config import Settings
from spo_jax.config.updates import UPDATES
from spo_jax.constants import ENDPOINT, GRAMMAR, LEARNERS, OWN_MODELS, VLLM
from spo_jax.envs.problem import Problem
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.states import SINCE, STAGNATION, parts_shown, require_state
from spo_jax.errors import InputError
from spo_jax.generator import Generator
from spo_jax.program import DESTROY_REPAIR, Completion, Group, Prompt, Role
from spo_jax.registry import Registry, require_members, require_parameters
from spo_jax.search.population import PANELS, SURVIVORS
from spo_jax.search.rounds import NoUpdate, Updater

if TYPE_CHECKING:
    from spo_jax.envs.run.evaluator import Evaluator


def writer_and_learner(config: Settings) -> tuple[Generator, Updater]:
    """The generator and the updater of a run: one object where a model learns.

    Raises InputError where one of them cannot be made, and for a model that does not know the
    problem.
    """
    if config.generator.name == ENDPOINT:
        from spo_jax.rl.endpoint.generator import Endpoint

        return Endpoint(config), UPDATERS[config.learning.update]
    if config.generator.name not in LEARNERS:
        generator = _generator(config)
        _require_prose(config, generator.writes_prose)
        return generator, UPDATERS[config.learning.update]
    update = config.learning.update
    updater = None if update in UPDATES else UPDATERS[update]
    from spo_jax.rl.policy import Policy

    kind = Policy
    if config.generator.name == VLLM:
        from spo_jax.rl.vllm.policy import VllmPolicy

        kind = VllmPolicy
    _require_prose(config, config.generator.model not in OWN_MODELS)
    policy = kind.load(config)
    return policy, policy if updater is None else updater


def evaluator_of(config: Settings, problem: Problem) -> "Evaluator":
    """The evaluator of a run with these settings, not started. Raises InputError as its factory."""
    from spo_jax.envs.run.factory import get_evaluator
    from spo_jax.envs.run.observation import shown_with

    evaluation = config.evaluation
    return get_evaluator(evaluation.evaluator, evaluation.ray_address)(
        problem, config.workers, seed=config.seed, cpu_seconds=evaluation.cpu_seconds,
        memory_mb=evaluation.memory_mb, on_invalid=evaluation.on_invalid,
        shown=shown_with(config.generator.state), unsafe=evaluation.unsafe_sandbox,
        kit=config.generator.kit != "none", work=evaluation.work, acceptance=evaluation.acceptance,
        start=evaluation.start,
    )  # fmt: skip


def require_parts(config: Settings) -> None:
    """Raises the InputError with which a run is refused for a name, or for what does not fit its
    model; the same sentence. Starts nothing, and reads neither instances nor weights.
    """
    from spo_jax.envs.run.acceptance import ACCEPTANCES
    from spo_jax.envs.run.factory import get_evaluator
    from spo_jax.envs.run.starts import Starts
    from spo_jax.search.credit import CREDITS
    from spo_jax.search.credit.parent_reward import learning_credit_of
    from spo_jax.search.method import rounds_of
    from spo_jax.search.utility import UTILITIES

    CREDITS[config.search.credit]
    learning_credit_of(config)
    SURVIVORS[config.search.survivors]
    PANELS[config.search.panel]
    UTILITIES[config.evaluation.utility]
    ACCEPTANCES[config.evaluation.acceptance]
    require_state(config.generator.state)
    Starts(get_problem(config.problem), name=config.evaluation.start)
    rounds_of(config)
    require_panel(config, get_problem(config.problem))
    name, update = config.generator.name, config.learning.update
    if name == ENDPOINT:
        from spo_jax.rl.endpoint.generator import Endpoint

        Endpoint(config)
    elif name in LEARNERS:
        from spo_jax.rl.policy import require_fitting

        _require_prose(config, config.generator.model not in OWN_MODELS)
        require_fitting(config)
        require_known(config)
        if name == VLLM:
            from spo_jax.rl.vllm.policy import require_weighable

            require_weighable(config)
    elif name == GRAMMAR:
        _generator(config)
        _require_prose(config, False)
    else:
        GENERATORS.found(name, call=False)
    if update not in (*UPDATES, "none"):
        UPDATERS.found(update, call=False)
    get_evaluator(config.evaluation.evaluator, config.evaluation.ray_address)


def require_panel(config: Settings, problem: Problem) -> None:
    """Raises InputError where classical destroys are to be in the panel and there are none."""
    if config.search.panel_classical and not problem.classical_destroys():
        raise InputError(
            "--panel-classical adds the problem's classical destroys to the panel, and "
            f"{problem.name} has none: leave it out, or implement classical_destroys"
        )


def require_game(config: Settings, problem: Problem) -> None:
    """Raises InputError for a method that knows no other game than destroy and repair."""
    game = problem.interface.game
    if config.search.method == "g-lns" and game != DESTROY_REPAIR:
        raise InputError(
            f"method g-lns evolves operators that destroy and repair, and {problem.name} has "
            f"{game.leader.plural} and {game.follower.plural}: choose another --method"
        )


def require_known(config: Settings) -> None:
    """Raises InputError for a model that does not know the problem of a run."""
    if config.generator.name not in LEARNERS:
        return
    from spo_jax.rl.policy import trained_on

    known, found = trained_on(config.generator.model), get_problem(config.problem)
    if known and found.name not in known:
        grammar = "--generator grammar, " if found.offers("grammar") else ""
        raise InputError(
            f"model {config.generator.model} knows only the problems that it was trained on "
            f"({', '.join(known)}), not {found.name}: use {grammar}an endpoint (--base-url) or "
            "another --model, which need a contract of the problem alone"
        )


def _require_prose(config: Settings, able: bool) -> None:
    """Raises InputError where answers are to be mended by a writer that cannot read what is wrong.

    able: whether it reads any text.
    """
    name, model = config.generator.name, config.generator.model
    if not able and name in LEARNERS:
        _require_paper_state(config)
    if config.generator.mend and not able:
        who = f"model is {model}" if name in LEARNERS else f"generator is {name}"
        raise InputError(
            f"mend is {config.generator.mend}, and {who}, which reads no reasons (writes_prose); "
            "leave out mend"
        )


def _require_paper_state(config: Settings, allowed: str = "") -> None:
    """Raises InputError where a writer that knows the paper's state alone is to read another one.

    allowed: a part of the other state that would do.
    """
    state = config.generator.state
    parts = parts_shown(state)
    if not parts or allowed in parts:
        return
    name, model = config.generator.name, config.generator.model
    who = f"model is {model}" if name in LEARNERS else f"generator is {name}"
    raise InputError(
        f"state is {state}, and {who}, which knows {SINCE} alone: use an endpoint (--base-url) or "
        f"another --model, or --state {STAGNATION}"
    )


def _generator(config: Settings) -> Generator:
    """The grammar of the problem, or a user's own generator. Raises InputError."""
    if config.generator.name == GRAMMAR:
        from spo_jax.search.writing.grammar import GrammarGenerator

        _require_paper_state(config, allowed=SINCE)
        return GrammarGenerator(get_problem(config.problem), config.generator.state)
    return GENERATORS[config.generator.name]


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
        for name in (
            "writes_prose",
            "reads_prompts",
            "stream",
            "fits",
            "takes",
            "open",
            "greeting",
            "close",
        ):
            if hasattr(own, name):
                setattr(self, name, getattr(own, name))

    def generate(
        self, prompts: Sequence[Prompt], n: int, seed: int
    ) -> list[tuple[Completion, ...]]:
        found: list[tuple[Completion, ...]] = self._own.generate(prompts, n, seed)
        return found


def _update(groups: Mapping[Role, Sequence[Group]]) -> Mapping[str, float] | None:
    """The signature of an update by a function."""


class FunctionUpdater(Updater):
    """An update by a function that keeps nothing from round to round."""

    def __init__(self, function: Callable[[Mapping[Role, Sequence[Group]]], Any]):
        self._function = function

    def update(self, groups: Mapping[Role, Sequence[Group]]) -> dict[str, float]:
        found = self._function(groups)
        return {} if found is None else found


def _own_updater(name: str, found: Any) -> Updater:
    """An `Updater`, or a function of the groups that returns metrics."""
    if isinstance(found, Updater):
        require_members(f"update {name!r}", found, Updater)
        return found
    if callable(found):
        require_parameters(f"update {name!r}", found, _update)
        return FunctionUpdater(found)
    raise InputError(f"update {name!r} is a {type(found).__name__}, neither Updater nor function")


# The others are made of a run's settings, by `writer_and_learner`.
GENERATORS: Registry[Generator] = Registry(
    "generator",
    {GRAMMAR: "spo_jax.search.writing.grammar:GrammarGenerator"},
    lambda name, found: as_generator(found, f"generator {name!r}"),
    others=("model", VLLM, ENDPOINT),
)
UPDATERS: Registry[Updater] = Registry(
    "update", {"none": NoUpdate()}, _own_updater, others=tuple(UPDATES)
)

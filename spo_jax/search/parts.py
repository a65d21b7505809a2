"""The parts of a discovery, and the protocol of methods that run on the same parts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from spo_jax.config import Settings
from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.run.evaluator import Evaluator
from spo_jax.generator import Generator
from spo_jax.search.credit import CREDITS, CreditScheme
from spo_jax.search.population import Panel, Survivors, diverse_survivors, leader_panel
from spo_jax.search.rounds import NoUpdate, Observer, Round, State, Updater
from spo_jax.search.utility import Utility, improvement
from spo_jax.search.writing.contexts import PromptMaker
from spo_jax.search.writing.prompts import Templates


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a discovery.

    Attributes:
        config: The run's settings.
        problem: What is solved.
        evaluator: What runs programs.
        generator: What writes them.
        credit: What programs are selected by.
        utility: The value of a pair.
        learning_credit: What the update learns from, if not `credit`.
        updater: What trains the generator.
        survivors: The rule of survivors.
        panel: The choice of leaders.
        observer: What watches the run.
        templates: Of the prompts; by default those of the config's folder, read when this is made.
    """

    config: Settings
    problem: Problem
    evaluator: Evaluator
    generator: Generator
    credit: CreditScheme = field(default_factory=lambda: CREDITS["stackelberg"])
    utility: Utility = improvement
    learning_credit: CreditScheme | None = None
    updater: Updater = field(default_factory=NoUpdate)
    survivors: Survivors = diverse_survivors
    panel: Panel = leader_panel
    observer: Observer = field(default_factory=Observer)
    templates: Templates | None = None

    @property
    def prompts(self) -> PromptMaker:
        """The maker of the run's prompts."""
        assert self.templates is not None  # since __post_init__
        return PromptMaker(self.config, self.problem.name, self.templates, self.generator.fits)

    def __post_init__(self) -> None:
        if self.templates is None:
            read = Templates.of(self.config.generator, self.problem)
            object.__setattr__(self, "templates", read)


class Method(Protocol):
    """A method: Algorithm 1, or what takes its place with the same parts and budget.

    Its rounds are pure functions of the config and the state that they start from, given
    deterministic parts.
    """

    def variant(self, prose: bool) -> str:
        """A sentence that names it.

        Args:
            prose: Whether the generator writes prose.
        """
        ...

    def rounds(self, config: Settings) -> int:
        """How many rounds there are, at least 1; those of a peer use up `nominal_pairs`."""
        ...

    def one_round(self, parts: Parts, instances: Sequence[Instance], k: int, state: State) -> Round:
        """Run a round.

        Args:
            parts: What it runs with.
            instances: The training instances.
            k: Its number, from 1 on.
            state: What the round before left.

        Returns:
            The record of the round.
        """
        ...

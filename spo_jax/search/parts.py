"""The parts of a discovery, and the protocol of methods that run on the same parts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from spo_jax.config import Settings
from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.run.evaluator import Evaluator
from spo_jax.generator import Generator
from spo_jax.search.contexts import PromptMaker
from spo_jax.search.credit import CreditScheme, stackelberg
from spo_jax.search.population import Panel, Survivors, diverse_survivors, leader_panel
from spo_jax.search.racing import Rule
from spo_jax.search.rounds import NoUpdate, Observer, Round, State, Updater
from spo_jax.search.utility import Utility, improvement
from spo_jax.search.writing.prompts import Templates


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a discovery.

    learning_credit: what the update learns from, if not `credit`. racing: which responses are
        evaluated further, by default all. templates: of the prompts; by default those of the
        config's folder, read when this is made.
    """

    config: Settings
    problem: Problem
    evaluator: Evaluator
    generator: Generator
    credit: CreditScheme = stackelberg
    utility: Utility = improvement
    learning_credit: CreditScheme | None = None
    updater: Updater = field(default_factory=NoUpdate)
    survivors: Survivors = diverse_survivors
    panel: Panel = leader_panel
    racing: Rule | None = None
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
    """A method that replaces Algorithm 1, with its parts and its budget.

    Its rounds are pure functions of the config and the state that they start from, as Algorithm 1's
    are, given deterministic parts.
    """

    def variant(self, prose: bool) -> str:
        """A sentence that names it. prose: whether the generator writes prose."""
        ...

    def rounds(self, config: Settings) -> int:
        """How many rounds use up the config's `nominal_pairs`; at least 1."""
        ...

    def one_round(self, parts: Parts, instances: Sequence[Instance], k: int, state: State) -> Round:
        """Round k, from 1 on."""
        ...

"""The updates of a policy's adapters by name: GRPO, and CALM's and EvoTune's.

Each is a class like `GrpoLearning`, made from the run's settings; the policy calls it with the
groups of one role. docs/research/published_updates.md says what of the two is as published.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np

from spo_jax.config import Settings
from spo_jax.config.updates import CALM, EVOTUNE, Calm, EvoTune, settings_of
from spo_jax.constants import VLLM
from spo_jax.program import Role
from spo_jax.rl.buckets import FINE, Ladder
from spo_jax.rl.lora import LoraConfig
from spo_jax.rl.qwen import Qwen
from spo_jax.rl.updates.batches import TokenGroup, advantages_of
from spo_jax.rl.updates.dpo import DIVERGENCES, DpoConfig, DpoTrainer
from spo_jax.rl.updates.grpo import (
    ADVANTAGES,
    RATIOS,
    SCHEDULES,
    GrpoConfig,
    standardised,
    token,
)
from spo_jax.rl.updates.preferences import Record, gather
from spo_jax.rl.updates.trainer import AdapterTrainer, Learner, Trainer
from spo_jax.seeding import derive, numpy_rng

Metrics = dict[str, float]


class Learning(Protocol):
    """How one role's adapter learns from a round."""

    @property
    def trainer(self) -> AdapterTrainer:
        """Of the base that both roles share."""
        ...

    def update(
        self, role: Role, learner: Learner, groups: Sequence[TokenGroup]
    ) -> tuple[Learner, Metrics]:
        """The learner after a round; consumes the one given. Called once per role and round."""
        ...

    def advantages(self, group: TokenGroup) -> np.ndarray:
        """[B] float64 for the record, NaN for samples that are left out."""
        ...

    def save(self, run: Path, number: int) -> None:
        """Keep what `update` needs beside learners after round `number`, on the disk at the end."""
        ...

    def restore(self, run: Path, number: int) -> None:
        """Go back to the save of round `number`."""
        ...


class GrpoLearning:
    """The paper's: one step of `Trainer.update` a round."""

    def __init__(self, config: Settings, trainer: Trainer) -> None:
        self.trainer = trainer

    def update(
        self, role: Role, learner: Learner, groups: Sequence[TokenGroup]
    ) -> tuple[Learner, Metrics]:
        return self.trainer.update(learner, [self.graded(group) for group in groups])

    def advantages(self, group: TokenGroup) -> np.ndarray:
        return advantages_of(self.graded(group), self.trainer.config)

    def graded(self, group: TokenGroup) -> TokenGroup:
        """The group with the credits that it is to learn from."""
        return group

    def save(self, run: Path, number: int) -> None:
        """Learners are all there is."""

    def restore(self, run: Path, number: int) -> None:
        """Learners are all there is."""


class CalmLearning(GrpoLearning):
    """CALM's: credits are its rewards (`search.credit.parent_reward`), failures earn its own."""

    def __init__(self, config: Settings, trainer: Trainer) -> None:
        super().__init__(config, trainer)
        own: Calm = settings_of(CALM, config.learning.update_settings)
        self._invalid = own.invalid

    def graded(self, group: TokenGroup) -> TokenGroup:
        if group.failed is None:
            return group
        failed = np.asarray(group.failed, bool) & ~np.isfinite(group.credits)
        return replace(group, credits=np.where(failed, self._invalid, group.credits))


class EvoTuneLearning:
    """EvoTune's: pairs are gathered in every round, and adapters trained on them in some.

    A training begins with a new adapter on the base, and takes all pairs so far whose chosen answer
    scores high enough.
    """

    def __init__(self, config: Settings, trainer: DpoTrainer) -> None:
        self.trainer, self._seed = trainer, config.seed
        own: EvoTune = settings_of(EVOTUNE, config.learning.update_settings)
        self._every = own.every or max(1, config.search.rounds // 6)
        self._percentile, self._rate = own.percentile, config.learning.learning_rate
        self._record = Record()

    def update(
        self, role: Role, learner: Learner, groups: Sequence[TokenGroup]
    ) -> tuple[Learner, Metrics]:
        rounds = self._record.rounds[role]
        new = gather(groups)
        rounds.append(new)
        pairs = self._record.pairs(role)
        metrics = {"new_pairs": float(len(new.pairs)), "pairs": float(len(pairs))}
        scores = self._record.scores(role, self._every)
        if len(rounds) % self._every or not scores:
            return learner, metrics
        threshold = float(np.percentile(scores, 100 - self._percentile))
        good = [pair for pair in pairs if pair.score >= threshold]
        metrics |= {"threshold": threshold, "used": float(len(good))}
        if not good:
            return learner, metrics
        # sqrt(1000 / n) at n prompts in the released code, which trains at 400, 800, ...
        rate = self._rate * math.sqrt(2.5 / (len(rounds) // self._every))
        fresh = self.trainer.init(adapter_key(self._seed, role))
        rng = numpy_rng(self._seed, "preferences", role, len(rounds))
        trained, measured = self.trainer.train(fresh, good, rate, rng)
        return trained, metrics | measured

    def advantages(self, group: TokenGroup) -> np.ndarray:
        """NaN: pairs have none."""
        return np.full(len(group.credits), np.nan)

    def save(self, run: Path, number: int) -> None:
        self._record.save(run, number)

    def restore(self, run: Path, number: int) -> None:
        self._record.restore(run, number)


def learning_of(
    config: Settings, model: Qwen, lora: LoraConfig, ladder: Ladder, context: int
) -> Learning:
    """The update of a run; GRPO's trainer also where nothing is to be learned."""
    objective = objective_of(config, ladder)
    if isinstance(objective, DpoConfig):
        return EvoTuneLearning(config, DpoTrainer(model, lora, objective, context))
    kind = CalmLearning if config.learning.update == CALM else GrpoLearning
    return kind(config, Trainer(model, lora, objective, context))


def objective_of(config: Settings, ladder: Ladder = FINE) -> GrpoConfig | DpoConfig:
    """The objective of a run's update. Raises InputError if the user's own advantage cannot be
    loaded.
    """
    grpo = replace(grpo_of(config), ladder=ladder)
    if config.learning.update == CALM:
        calm: Calm = settings_of(CALM, config.learning.update_settings)
        return replace(grpo, advantage=standardised, ratio=token, failure_penalty=None, kl=calm.kl)
    if config.learning.update != EVOTUNE:
        return grpo
    own: EvoTune = settings_of(EVOTUNE, config.learning.update_settings)
    return DpoConfig(
        learning_rate=config.learning.learning_rate,
        beta=own.beta,
        divergence=DIVERGENCES[own.divergence],
        epochs=own.epochs,
        batch=own.batch,
        max_gradient_norm=config.learning.max_gradient_norm,
        weight_decay=config.learning.weight_decay,
        micro_batch=config.learning.micro_batch,
        share_prompts=config.learning.share_prompts,
        ladder=ladder,
    )


def grpo_of(config: Settings) -> GrpoConfig:
    """The objective of GRPO with a run's settings. Raises InputError as `objective_of`."""
    raw = config.generator.name == VLLM and config.vllm.logprobs_mode == "raw_logprobs"
    return GrpoConfig(
        learning_rate=config.learning.learning_rate,
        schedule=SCHEDULES[config.learning.schedule],
        clip=config.learning.clip,
        max_gradient_norm=config.learning.max_gradient_norm,
        weight_decay=config.learning.weight_decay,
        micro_batch=config.learning.micro_batch,
        temperature=config.generator.temperature,
        advantage=ADVANTAGES[config.learning.advantage],
        ratio=RATIOS[config.learning.ratio],
        failure_penalty=config.learning.failure_penalty,
        weights=config.learning.sample_weights,
        share_prompts=config.learning.share_prompts,
        # A round is one step of the adapters that sampled it, and both samplers round differently.
        on_policy=True,
        sampled_at=1.0 if raw else None,
        importance_cap=config.vllm.importance_cap,
        importance_mode=config.vllm.importance_mode,
    )


def stream_key(*name: int | str) -> jax.Array:
    """The typed key of a random stream, from all 64 bits of its seed."""
    halves = jnp.array(divmod(derive(*name), 2**32), jnp.uint32)
    return jax.random.wrap_key_data(halves, impl="threefry2x32")


def adapter_key(seed: int, role: Role) -> jax.Array:
    """The key that a role's adapters begin with."""
    return stream_key(seed, "adapter", role)

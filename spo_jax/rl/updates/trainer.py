"""The update of one role's adapter: gradients over micro-batches, then one AdamW step."""

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from spo_jax.errors import SpoError
from spo_jax.rl.buckets import FEW
from spo_jax.rl.gradients import Static, accumulator, read, referred
from spo_jax.rl.lora import Adapter, LoraConfig, init_adapter
from spo_jax.rl.qwen.model import Qwen
from spo_jax.rl.sharding import replicated
from spo_jax.rl.updates.batches import Batch, TokenGroup, WeightedSample, plan, select
from spo_jax.rl.updates.grpo import GrpoConfig, Outcome


class NotFinite(SpoError, ArithmeticError):
    """The objective is infinite or NaN; nothing was updated."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Learner:
    """One role's adapter, its optimizer's state and step count (int32)."""

    adapter: Adapter
    optimizer: optax.OptState
    steps: jax.Array


class AdapterTrainer:
    """Adapters of one frozen base, and what every objective needs to move them.

    config: the objective's (`spo_jax.rl.gradients.Objective`), with the optimizer's settings.
    context: maximum tokens of a prompt with its completion. Its only state is the base.
    """

    def __init__(self, model: Qwen, lora: LoraConfig, config: Any, context: int = 8192) -> None:
        self.lora, self.config, self.context = lora, config, context
        self.model_config, self.mesh = model.config, model.mesh
        self._settings = Static(nnx.graphdef(model), lora, config)
        self._weights = nnx.state(model)
        self._shardings: Any = None
        self._host: Any = None  # the base's copy in host memory, if made

    def init(self, key: jax.Array) -> Learner:
        """A learner with an adapter without effect."""
        adapter = init_adapter(key, self.lora, self.model_config)
        optimizer = make_optimizer(self.config).init(adapter)
        return replicated(Learner(adapter, optimizer, jnp.int32(0)), self.mesh)

    def prepare(self, learner: Learner, samples: int) -> None:
        """Begin to compile the update of groups with so many samples; by default nothing."""

    def gradient(self, adapter: Adapter, batches: Iterable[Batch]) -> tuple[Adapter, list[Any]]:
        """The gradient of the loss over some batches, and the objective's results of each.

        Returns before it is computed.
        """
        total = replicated(jax.tree.map(jnp.zeros_like, adapter), self.mesh)
        outcomes = []
        for batch in batches:
            if self.config.refers:
                batch = referred(self._settings, self._weights, batch)
            total, outcome = accumulator()(self._settings, self._weights, adapter, total, batch)
            outcomes.append(outcome)
        return total, outcomes

    def read(
        self, adapter: Adapter, scale: jax.Array, tokens: np.ndarray, places: Sequence[int]
    ) -> tuple[jax.Array, jax.Array]:
        """Log-probabilities of a text at temperature 1: float32 [T - 1] and [P, V].

        Of tokens [T] except the first, and of every token after the prefixes of lengths `places`.
        scale: of the adapter; zero for the base alone.
        """
        rows = jnp.asarray(places, jnp.int32)
        return read(self._settings, self._weights, adapter, scale, jnp.asarray(tokens[None]), rows)

    # --- placement of the base --------------------------------------------------------------------

    def to_host(self) -> None:
        """Move the base to host memory and free it on the devices; no effect if it is there.

        The trainer's original model and its arrays become unusable.
        """
        if self._weights is self._host:
            return
        if self._host is None:  # it never changes, so one copy suffices
            self._host = jax.tree.map(lambda x: np.array(x), self._weights)
            self._shardings = jax.tree.map(lambda x: x.sharding, self._weights)
        for leaf in jax.tree.leaves(self._weights):
            leaf.delete()
        self._weights = self._host

    def to_devices(self) -> None:
        """Undo `to_host`."""
        if self._weights is self._host and self._host is not None:
            self._weights = jax.device_put(self._host, self._shardings)


class Trainer(AdapterTrainer):
    """Updates adapters by GRPO and its variants: `GrpoConfig`."""

    config: GrpoConfig

    def __init__(
        self, model: Qwen, lora: LoraConfig, config: GrpoConfig, context: int = 8192
    ) -> None:
        super().__init__(model, lora, config, context)
        self._prepared: Future[Any] | None = None

    def update(
        self, learner: Learner, groups: Sequence[TokenGroup]
    ) -> tuple[Learner, dict[str, float]]:
        """One step of ascent on eq:grpo with all usable samples of `groups`; consumes the learner.

        Without a non-zero advantage there is no step. Metrics: see `_metrics`. Raises InputError
        for a sample beyond the context, and NotFinite, which names the group, before any change.
        """
        began = time.perf_counter()
        if self._prepared is not None:
            wait([self._prepared])  # an error of it comes again below
            self._prepared = None
        selection = select(groups, self.config, self.context)
        batches = list(plan(selection, self.config, self.mesh))
        rows = [row for _, some in batches for row in some]
        gradients, outcomes = self.gradient(learner.adapter, (batch for batch, _ in batches))
        norm = float(norm_of(gradients))
        judged = _judged(rows, jax.device_get(outcomes))
        _check_finite(judged, norm, groups)
        if judged:
            learner = apply(self.config, learner, gradients)
        jax.block_until_ready(learner)
        seconds = time.perf_counter() - began
        tokens = sum(len(row.prompt) + len(row.tokens) for row, _ in judged)
        return learner, {
            "samples": float(selection.usable),
            "dropped": float(selection.dropped),
            "groups": float(selection.groups),
            "gradient_norm": norm,
            **_metrics(judged),
            **(_drift(judged) if self.config.on_policy else {}),
            "tokens_per_second": tokens / seconds,
        }

    def prepare(self, learner: Learner, samples: int) -> None:
        """Begin to compile the update of groups with so many samples, in another thread.

        `update` waits for it. Only on the ladder of a CPU, where the usual shapes are known.
        """
        config = self.config
        if not (config.ladder == FEW and config.share_prompts):
            return
        token = np.zeros(1, np.int32)
        group = TokenGroup(
            "", token, [token] * samples, [np.zeros(1, np.float32)] * samples, np.arange(samples)
        )
        own = replace(config, advantage=lambda credits: credits + 1.0)  # none is zero
        ((batch, _),) = plan(select([group], own, self.context), config, self.mesh)
        if config.refers:
            batch = replace(batch, reference=batch.logprobs)
        # Copies: the learner's own arrays are given away by the first step.
        adapter, gradients = (jax.tree.map(jnp.zeros_like, learner.adapter) for _ in range(2))
        traced = (self._settings, self._weights, adapter, gradients, batch)
        other = ThreadPoolExecutor(1)
        self._prepared = other.submit(lambda: accumulator().trace(*traced).lower().compile())
        other.shutdown(wait=False)


# --- inside jit -----------------------------------------------------------------------------------


@partial(jax.jit, static_argnums=0, donate_argnums=1)
def apply(config: GrpoConfig, learner: Learner, gradients: Adapter) -> Learner:
    """One optimizer step."""
    updates, state = make_optimizer(config).update(gradients, learner.optimizer, learner.adapter)
    return Learner(optax.apply_updates(learner.adapter, updates), state, learner.steps + 1)


norm_of = jax.jit(optax.tree.norm)  # one program in place of one for each operation and shape


def make_optimizer(config: Any) -> optax.GradientTransformation:
    """AdamW after clipping the gradient's global norm (Appendix A.4)."""
    return optimizer_at(config, config.schedule(config.learning_rate))


def optimizer_at(config: Any, rate: Any) -> optax.GradientTransformation:
    """As `make_optimizer`, at another rate, which may be an array inside jit."""
    return optax.chain(
        optax.clip_by_global_norm(config.max_gradient_norm),
        optax.adamw(rate, weight_decay=config.weight_decay),
    )


# --- on the host ----------------------------------------------------------------------------------

Judged = list[tuple[WeightedSample, Outcome]]  # each sample with its own row of the outcomes


def _judged(rows: Sequence[WeightedSample | None], outcomes: Sequence[Outcome]) -> Judged:
    if not outcomes:
        return []
    flat = jax.tree.map(lambda *parts: np.concatenate([part.ravel() for part in parts]), *outcomes)
    return [
        (row, jax.tree.map(lambda x, i=i: float(x[i]), flat)) for i, row in enumerate(rows) if row
    ]


def _check_finite(judged: Judged, norm: float, groups: Sequence[TokenGroup]) -> None:
    wrong = [sample for sample, outcome in judged if not np.isfinite(outcome.value)]
    if wrong or not np.isfinite(norm):
        names = dict.fromkeys(groups[s.group].name for s in wrong or [s for s, _ in judged])
        what = "objective" if wrong else "gradient"
        raise NotFinite(
            f"the {what} of group {', '.join(names)[:300]} is not finite; nothing was updated: "
            "continue from the last checkpoint, with a lower learning rate"
        )


def _metrics(judged: Judged) -> dict[str, float]:
    """Metrics over the samples with an advantage; NaN without any.

    objective: eq:grpo. ratio_mean, ratio_std: of the whole-sequence ratio. clipped: share of
    clipped tokens. kl, entropy: mean estimates of KL(sampler, policy) and of the sampler's entropy
    per token, in nats.
    """
    if not judged:
        return {
            "objective": 0.0,
            **dict.fromkeys(("ratio_mean", "ratio_std", "clipped", "kl", "entropy"), np.nan),
        }
    ratio = np.exp([outcome.log_ratio for _, outcome in judged])
    tokens = np.array([outcome.tokens for _, outcome in judged])
    return {
        "objective": float(sum(sample.weight * outcome.value for sample, outcome in judged)),
        "ratio_mean": float(ratio.mean()),
        "ratio_std": float(ratio.std()),
        "clipped": float(np.average([outcome.clipped for _, outcome in judged], weights=tokens)),
        "kl": float(sum(outcome.kl for _, outcome in judged) / tokens.sum()),
        "entropy": float(sum(outcome.surprise for _, outcome in judged) / tokens.sum()),
    }


def _drift(judged: Judged) -> dict[str, float]:
    """The sampler's drift from the trainer, at the sampler's temperature; NaN without a sample.

    drift_mean, drift_max: absolute difference of a token, in nats. drift_clipped: share of the
    samples that would be clipped with the sampler's log-probabilities in the ratio. effective: the
    effective share of samples, each weighted by its probability under the trainer over that under
    the sampler.
    """
    if not judged:
        names = ("drift_mean", "drift_max", "drift_clipped", "effective")
        return dict.fromkeys(names, np.nan)
    total = np.array([outcome.drift for _, outcome in judged])
    tokens = sum(outcome.tokens for _, outcome in judged)
    weights = np.exp(total - total.max())
    return {
        "drift_mean": float(sum(outcome.drift_size for _, outcome in judged) / tokens),
        "drift_max": float(max(outcome.drift_max for _, outcome in judged)),
        "drift_clipped": float(np.mean([outcome.drift_clipped for _, outcome in judged])),
        "effective": float(weights.sum() ** 2 / (weights**2).sum() / len(weights)),
    }

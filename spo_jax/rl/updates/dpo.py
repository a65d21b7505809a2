"""Direct preference optimization of an adapter (Rafailov et al., 2023), with other divergences.

The reference is the base without an adapter, whose log-probabilities a batch is given before its
gradient (`spo_jax.rl.gradients.referred`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from spo_jax.errors import InputError
from spo_jax.rl.buckets import FINE, Ladder
from spo_jax.rl.lora import Adapter
from spo_jax.rl.qwen.logprobs import token_logprobs
from spo_jax.rl.updates.batches import Batch, WeightedSample, batch_of
from spo_jax.rl.updates.grpo import Schedule, constant
from spo_jax.rl.updates.preferences import Preference
from spo_jax.rl.updates.trainer import AdapterTrainer, Learner, NotFinite, norm_of, optimizer_at

LARGEST = 80.0  # exponent of what float32 holds, with room for a sum


def reverse_kl(ratio: jax.Array) -> jax.Array:
    """log t: the published DPO. ratio: log t, of the policy's probability over the reference's."""
    return ratio


def forward_kl(ratio: jax.Array) -> jax.Array:
    """1 - 1 / t (f-DPO, Wang et al., 2024): a policy that loses what the reference has pays more.

    The exponent is at most `LARGEST`, so the value is finite.
    """
    return 1 - jnp.exp(jnp.minimum(-ratio, LARGEST))


def js(ratio: jax.Array) -> jax.Array:
    """log(2 t / (1 + t)), of the Jensen-Shannon divergence (f-DPO)."""
    return jnp.log(2.0) + jax.nn.log_sigmoid(ratio)


Divergence = Callable[[jax.Array], jax.Array]  # see `reverse_kl`; the derivative f'(t)
DIVERGENCES: dict[str, Divergence] = {
    "forward-kl": forward_kl, "reverse-kl": reverse_kl, "js": js
}  # fmt: skip


def preference_loss(
    chosen: jax.Array, rejected: jax.Array, beta: float, divergence: Divergence = reverse_kl
) -> jax.Array:
    """-log sigmoid(beta (f'(t_chosen) - f'(t_rejected))) of each pair.

    chosen, rejected: [N] float32, log-probability of an answer under the policy minus that under
    the reference.
    """
    return -jax.nn.log_sigmoid(beta * (divergence(chosen) - divergence(rejected)))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PairOutcome:
    """Results of each pair, [N] float32: its loss, and the log-ratios of its two answers."""

    value: jax.Array
    chosen: jax.Array
    rejected: jax.Array


@dataclass(frozen=True)
class DpoConfig:
    """The update's settings.

    batch: pairs of an optimizer step. epochs: passes over the pairs of a training. micro_batch:
    answers on a device at a time, of which two make a pair. The other fields are as in GrpoConfig.
    Raises InputError for a value out of range.
    """

    learning_rate: float = 1e-5
    beta: float = 0.4
    divergence: Divergence = forward_kl
    epochs: int = 2
    batch: int = 32
    max_gradient_norm: float = 1.0
    weight_decay: float = 0.001
    micro_batch: int = 2
    temperature: float = 1.0
    share_prompts: bool = True
    ladder: Ladder = FINE
    schedule: Schedule = constant

    def __post_init__(self) -> None:
        for name in (
            "learning_rate",
            "beta",
            "epochs",
            "batch",
            "max_gradient_norm",
            "micro_batch",
        ):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} is {getattr(self, name)}; it must be above 0")
        if self.weight_decay < 0:
            raise InputError("weight_decay must not be negative")

    @property
    def refers(self) -> bool:
        return True

    def loss(self, hidden: jax.Array, head: jax.Array, rows: Batch) -> tuple[jax.Array, Any]:
        """The weighted loss of rows [2 N], chosen and rejected in turn: `gradients.Objective`."""
        assert rows.reference is not None
        logprobs = token_logprobs(hidden, rows.tokens, head, self.temperature)
        ratio = jnp.sum(jnp.where(rows.mask, logprobs - rows.reference, 0.0), axis=1)
        chosen, rejected = ratio[0::2], ratio[1::2]
        loss = preference_loss(chosen, rejected, self.beta, self.divergence)
        return jnp.sum(loss * rows.weight[0::2]), PairOutcome(loss, chosen, rejected)


class DpoTrainer(AdapterTrainer):
    """Trains adapters on preferences: `DpoConfig`."""

    config: DpoConfig

    def train(
        self, learner: Learner, pairs: Sequence[Preference], rate: float, rng: np.random.Generator
    ) -> tuple[Learner, dict[str, float]]:
        """All epochs over some pairs, in an order of `rng` for each; consumes the learner.

        rate: of the first step; at step s of S it is rate (1 + cos(pi s / S)) / 2. Metrics:
        `steps`; of the last epoch, `loss`, `accuracy` (the share of pairs whose chosen answer
        gained more), `margin` (the mean of beta times the difference of the log-ratios) and
        `gradient_norm` (the mean, before clipping). Raises NotFinite.
        """
        config = self.config
        each = -(-len(pairs) // config.batch)
        steps, norms, outcomes = each * config.epochs, [], []
        for step in range(steps):
            if step % each == 0:
                order = rng.permutation(len(pairs))
            first = step % each * config.batch
            some = [pairs[i] for i in order[first : first + config.batch]]
            gradients, found = self.gradient(learner.adapter, self.batches(some))
            norms.append(norm_of(gradients))
            now = np.float32(rate * (1 + np.cos(np.pi * step / steps)) / 2)
            learner = _apply(config, learner, gradients, now)
            outcomes.append((len(some), found))
        # Nothing before waits for the device.
        measured = [_pairs(count, jax.device_get(found)) for count, found in outcomes]
        norm = np.array(jax.device_get(norms))
        if not (np.isfinite(norm).all() and all(np.isfinite(m).all() for m in measured)):
            raise NotFinite(
                "the objective of the preferences is not finite; nothing was updated: continue "
                "from the last checkpoint, with a lower learning rate"
            )
        loss, chosen, rejected = np.concatenate(measured[-each:], axis=1)
        return learner, {
            "steps": float(steps),
            "loss": float(loss.mean()),
            "accuracy": float((chosen > rejected).mean()),
            "margin": float(config.beta * (chosen - rejected).mean()),
            "gradient_norm": float(norm[-each:].mean()),
        }

    def batches(self, pairs: Sequence[Preference]) -> Iterator[Batch]:
        """The pairs of one step, which weigh alike; those of similar length share a batch.

        Both answers of a pair are rows of one batch, chosen and rejected in turn; what is missing
        in the last batch is padding of no weight.
        """
        config, devices = self.config, self.mesh.size if self.mesh else 1
        width = max(1, config.micro_batch // 2) * devices
        ordered = sorted(pairs, key=lambda p: (len(p.prompt), max(len(p.chosen), len(p.rejected))))
        for start in range(0, len(ordered), width):
            some = [_rows(pair, 1.0 / len(pairs)) for pair in ordered[start : start + width]]
            if config.share_prompts:
                batch, _ = batch_of(some, width, 2, 0, config.ladder, self.mesh)
            else:
                single = [(row,) for rows in some for row in rows]
                batch, _ = batch_of(single, 2 * width, 1, 0, config.ladder, self.mesh)
            yield batch


def _rows(pair: Preference, weight: float) -> tuple[WeightedSample, WeightedSample]:
    chosen, rejected = (
        WeightedSample(0, pair.prompt, tokens, np.zeros(len(tokens), np.float32), sign, weight)
        for tokens, sign in ((pair.chosen, 1.0), (pair.rejected, -1.0))
    )
    return chosen, rejected


def _pairs(count: int, outcomes: Sequence[PairOutcome]) -> np.ndarray:
    """[3, count] loss and log-ratios of a step's pairs; padding comes last."""
    return np.concatenate(
        [np.stack([o.value.ravel(), o.chosen.ravel(), o.rejected.ravel()]) for o in outcomes],
        axis=1,
    )[:, :count]


@partial(jax.jit, static_argnums=0, donate_argnums=1)
def _apply(config: DpoConfig, learner: Learner, gradients: Adapter, rate: jax.Array) -> Learner:
    """One optimizer step at a rate that is no part of what is compiled."""
    optimizer = optimizer_at(config, rate)
    updates, state = optimizer.update(gradients, learner.optimizer, learner.adapter)
    return Learner(optax.apply_updates(learner.adapter, updates), state, learner.steps + 1)

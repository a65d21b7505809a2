"""The gradient of an objective over a batch of answers, on the devices.

An objective is a frozen dataclass of its settings with a `loss` (`Objective`): `GrpoConfig` is one,
`DpoConfig` another. What is here gives it the hidden states, whatever the layout of the batch.
"""

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from flax import nnx

from spo_jax.rl.backend import quick_options
from spo_jax.rl.lora import Adapter, LoraConfig
from spo_jax.rl.qwen.logprobs import token_logprobs
from spo_jax.rl.qwen.model import Past, Qwen
from spo_jax.rl.sharding import gathered
from spo_jax.rl.updates.batches import Batch


class Objective(Protocol):
    """Settings with the loss that they are of; static in what is compiled.

    Attributes:
        temperature: Of the log-probabilities.
        share_prompts: Whether a batch's prompts are computed once.
    """

    temperature: float
    share_prompts: bool

    @property
    def refers(self) -> bool:
        """Whether the loss reads `Batch.reference`."""
        ...

    def loss(self, hidden: jax.Array, head: jax.Array, rows: Batch) -> tuple[jax.Array, Any]:
        """The weighted loss of rows.

        Args:
            hidden: [B, C, D], of the token before each target.
            head: [V, D].
            rows: [B], what the loss is of.

        Returns:
            The loss, and results [B] float32 of each row for the metrics.
        """
        ...


@dataclass(frozen=True)
class Static:
    """The static inputs of a compiled update."""

    graph: Any
    lora: LoraConfig
    config: Any  # an Objective


def _accumulate(
    settings: Static, weights: Any, adapter: Adapter, gradients: Adapter, batch: Batch
) -> tuple[Adapter, Any]:
    """`gradients` plus those of the loss on a batch; rows [K, G m]."""
    form = _shared_gradient if settings.config.share_prompts else _plain_gradient
    model = nnx.merge(settings.graph, weights)
    own, outcome = form(settings, model, adapter, batch)
    # Every process reads all outcomes, so each needs all of them.
    return jax.tree.map(jnp.add, gradients, own), gathered(outcome, model.mesh)


accumulate = jax.jit(_accumulate, static_argnums=0, donate_argnums=3)


@cache
def accumulator() -> Any:
    """`accumulate`, on a CPU compiled in less time to code as fast; see `quick_options`."""
    options = quick_options()
    return jax.jit(_accumulate, static_argnums=0, donate_argnums=3, compiler_options=options)


def _plain_gradient(
    settings: Static, model: Qwen, adapter: Adapter, batch: Batch
) -> tuple[Adapter, Any]:
    """Prompt and completion of each row as one sequence."""
    rows = _round(batch, 0)

    def loss(adapter: Adapter) -> tuple[jax.Array, Any]:
        before = _as_one(model, adapter.scaled(settings.lora.scale), rows)
        return settings.config.loss(before, model.head, rows)

    gradient, outcome = jax.grad(loss, has_aux=True)(adapter)
    return gradient, jax.tree.map(lambda x: x[None], outcome)


def _shared_gradient(
    settings: Static, model: Qwen, adapter: Adapter, batch: Batch
) -> tuple[Adapter, Any]:
    """Each prompt once: its rows' gradients are summed in its past, then pass through it.

    The past of every completion has keys and values, delta-net states and convolution tails; their
    cotangents are summed over the K rounds before the prompt's backward pass.
    """
    scale = settings.lora.scale
    left, backward = jax.vjp(lambda own: _prompts(model, own.scaled(scale), batch), adapter)

    def loss(adapter: Adapter, left: Left, row: Batch) -> Any:
        before = _behind(model, adapter.scaled(scale), left, row)
        return settings.config.loss(before, model.head, row)

    def one(carry: Any, k: jax.Array) -> tuple[Any, Any]:
        own, outcome = jax.grad(loss, argnums=(0, 1), has_aux=True)(adapter, left, _round(batch, k))
        return jax.tree.map(lambda a, b: a + b.astype(a.dtype), carry, own), outcome

    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, jnp.float32), (adapter, left))
    (direct, cotangent), outcome = jax.lax.scan(one, zeros, jnp.arange(batch.tokens.shape[0]))
    cotangent = jax.tree.map(lambda c, x: c.astype(x.dtype), cotangent, left)
    (through,) = backward(cotangent)
    return jax.tree.map(jnp.add, direct, through), outcome


@partial(jax.jit, static_argnums=0)
def referred(settings: Static, weights: Any, batch: Batch) -> Batch:
    """The batch with the log-probabilities of the base alone, the reference of an objective."""
    model = nnx.merge(settings.graph, weights)
    shared = settings.config.share_prompts
    left = _prompts(model, None, batch) if shared else None

    def one(k: jax.Array | int) -> jax.Array:
        rows = _round(batch, k)
        before = _as_one(model, None, rows) if left is None else _behind(model, None, left, rows)
        return token_logprobs(before, rows.tokens, model.head, settings.config.temperature)

    found = jax.lax.map(one, jnp.arange(batch.tokens.shape[0])) if shared else one(0)[None]
    return replace(batch, reference=found)


@partial(jax.jit, static_argnums=0)
def read(
    settings: Static,
    weights: Any,
    adapter: Adapter,
    scale: jax.Array,
    tokens: jax.Array,
    places: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """As `Trainer.read`; tokens [1, T], places [P] int32."""
    model = nnx.merge(settings.graph, weights)
    hidden, _ = model.hidden(tokens, jnp.ones(tokens.shape, bool), adapter.scaled(scale))
    given = token_logprobs(hidden[:, :-1], tokens[:, 1:], model.head, 1.0)[0]
    return given, jax.nn.log_softmax(model.logits(hidden[0, places - 1]))


# --- layouts: the hidden states [B, C, D] before each target --------------------------------------

Left = tuple[Any, jax.Array]  # of prompts: the past's layers, and their last hidden states [G, D]


def _as_one(model: Qwen, scaled: Any, rows: Batch) -> jax.Array:
    """Of rows that have a prompt each. scaled: an adapter for the model; None: the base alone."""
    tokens = jnp.concatenate([rows.prompts, rows.tokens], axis=1)
    mask = jnp.concatenate([rows.prompt_mask, rows.mask], axis=1)
    hidden, _ = model.hidden(tokens, mask, scaled)
    return hidden[:, rows.prompts.shape[1] - 1 : -1]


def _prompts(model: Qwen, scaled: Any, batch: Batch) -> Left:
    hidden, past = model.hidden(batch.prompts, batch.prompt_mask, scaled)
    return past.layers, hidden[:, -1]


def _behind(model: Qwen, scaled: Any, left: Left, rows: Batch) -> jax.Array:
    """Of rows that continue prompts which were read."""
    layers, last = left
    length = jnp.sum(rows.prompt_mask, axis=1, dtype=jnp.int32)
    past = Past(layers, rows.prompt_mask, length)
    hidden, _ = model.hidden(rows.tokens, rows.mask, scaled, past)
    first = jnp.repeat(last, rows.tokens.shape[0] // last.shape[0], axis=0)
    return jnp.concatenate([first[:, None], hidden[:, :-1]], axis=1)


def _round(batch: Batch, k: jax.Array | int) -> Batch:
    """Round k of a batch's rows, with the same prompts."""
    return Batch(
        batch.prompts, batch.prompt_mask, batch.tokens[k], batch.mask[k], batch.logprobs[k],
        batch.advantage[k], batch.weight[k],
        None if batch.reference is None else batch.reference[k],
    )  # fmt: skip

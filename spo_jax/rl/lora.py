"""Low-rank adapters: their targets, shapes and initial values."""

import math
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from spo_jax.errors import InputError
from spo_jax.rl.qwen.config import ATTENTION, FULL, QwenConfig
from spo_jax.rl.qwen.layers import LowRank

DELTA_NET = ("in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a", "out_proj")
MLP = ("gate_proj", "up_proj", "down_proj")
TARGETS = ATTENTION + DELTA_NET + MLP

# Appendix A.2 names "query, key, value and output projections". Three of four layers of Qwen3.5 are
# delta nets, with one matrix for queries, keys and values; without it most would not learn.
MIXERS = (*ATTENTION, "in_proj_qkv", "out_proj")
TARGET_SETS = {"mixers": MIXERS, "mixers+mlp": (*MIXERS, *MLP)}  # in every layer


@dataclass(frozen=True)
class LoraConfig:
    """rank: r. alpha: the correction is scaled by alpha / r. targets: names from `TARGETS`.

    The defaults are those of the paper's first problem (Appendix A.2), without dropout (zero
    there).
    Raises InputError for an unknown target or a rank below one.
    """

    rank: int = 16
    alpha: float = 32.0
    targets: tuple[str, ...] = MIXERS

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise InputError(f"the rank of an adapter is {self.rank}; it must be at least 1")
        if not (math.isfinite(self.alpha) and self.alpha > 0):
            raise InputError(f"alpha of an adapter is {self.alpha}; it must be a positive number")
        unknown = [name for name in self.targets if name not in TARGETS]
        if unknown or not self.targets:
            wrong = f"{unknown[0]!r} is not a target" if unknown else "an adapter needs a target"
            raise InputError(f"{wrong} (known: {', '.join((*TARGET_SETS, *TARGETS))})")

    @property
    def scale(self) -> float:
        return self.alpha / self.rank


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Adapter:
    """layers: for each position in the block, by target, a [repeats, r, in] and b [repeats, out, r]
    in float32, without the scale, as in PEFT.
    """

    layers: tuple[dict[str, LowRank], ...]

    def scaled(self, scale: float | jax.Array) -> tuple[dict[str, LowRank], ...]:
        """The adapter for the model: b times alpha / r."""
        return tuple(
            {name: replace(low_rank, b=low_rank.b * scale) for name, low_rank in layer.items()}
            for layer in self.layers
        )

    @property
    def size(self) -> int:
        """The number of parameters."""
        return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(self))


def shapes(config: QwenConfig, kind: str) -> dict[str, tuple[int, int]]:
    """(out, in) of each target in a layer with the mixer `kind`."""
    width, inner = config.hidden_size, config.intermediate_size
    heads = config.num_attention_heads * config.head_dim
    kv_heads = config.num_key_value_heads * config.head_dim
    feed_forward = {
        "gate_proj": (inner, width), "up_proj": (inner, width), "down_proj": (width, inner)
    }  # fmt: skip
    if kind == FULL:
        return {
            "q_proj": (config.query_dim, width),
            "k_proj": (kv_heads, width),
            "v_proj": (kv_heads, width),
            "o_proj": (width, heads),
            **feed_forward,
        }
    values = config.linear_num_value_heads
    return {
        "in_proj_qkv": (config.conv_dim, width),
        "in_proj_z": (config.value_dim, width),
        "in_proj_b": (values, width),
        "in_proj_a": (values, width),
        "out_proj": (width, config.value_dim),
        **feed_forward,
    }


def present(lora: LoraConfig, config: QwenConfig) -> list[str]:
    """The targets that the model's layers have, sorted. Raises InputError if it has none."""
    known = {name for kind in config.block for name in shapes(config, kind)}
    found = sorted(known.intersection(lora.targets))
    if not found:
        raise InputError(
            f"no layer of this {config.model_type} model has the target "
            f"{' or '.join(lora.targets)}; they have {', '.join(sorted(known))}"
        )
    return found


def init_adapter(key: jax.Array, lora: LoraConfig, config: QwenConfig) -> Adapter:
    """An initial adapter without effect: a as in PEFT, uniform on ±1/sqrt(in), b zero.

    Raises InputError as `present`.
    """
    targets = present(lora, config)
    layers = []
    for position, kind in enumerate(config.block):
        layer = {}
        for name, (out, inputs) in shapes(config, kind).items():
            if name not in targets:
                continue
            own = jax.random.fold_in(jax.random.fold_in(key, position), TARGETS.index(name))
            bound = inputs**-0.5
            a = jax.random.uniform(
                own, (config.repeats, lora.rank, inputs), jnp.float32, -bound, bound
            )
            layer[name] = LowRank(a, jnp.zeros((config.repeats, out, lora.rank), jnp.float32))
        layers.append(layer)
    return Adapter(tuple(layers))

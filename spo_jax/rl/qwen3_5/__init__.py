"""Qwen3.5 in Flax NNX."""

from spo_jax.rl.qwen3_5.config import Qwen3_5Config, named_config
from spo_jax.rl.qwen3_5.model import Qwen3_5

__all__ = ["Qwen3_5", "Qwen3_5Config", "named_config"]

"""Qwen3.5 in Flax NNX."""

from spo_jax.rl.qwen3_5.config import Qwen3_5Config, named_config
from spo_jax.rl.qwen3_5.model import Qwen3_5
from spo_jax.rl.qwen3_5.weights import load_pretrained, save_pretrained

__all__ = ["Qwen3_5", "Qwen3_5Config", "load_pretrained", "named_config", "save_pretrained"]

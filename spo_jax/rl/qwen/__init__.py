"""Dense Qwen models (2, 2.5, 3, 3.5) in Flax NNX, read from folders and GGUF files."""

from spo_jax.rl.qwen.config import QwenConfig, named_config
from spo_jax.rl.qwen.model import Qwen
from spo_jax.rl.qwen.weights import load_pretrained, save_pretrained

__all__ = ["Qwen", "QwenConfig", "load_pretrained", "named_config", "save_pretrained"]

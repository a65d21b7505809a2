"""The small Qwen3.5 that ships with the package: weights, tokenizer and chat template.

experiments/pretrain_embedded.py made it; docs/embedded_model.md tells how, and what it can do.
"""

from pathlib import Path

FOLDER = Path(__file__).parent / "model"

"""The small Qwen3.5 that ships with the package: weights, tokenizer and chat template.

experiments/pretrain_embedded.py trained it; docs/embedded_model.md describes its training and
quality.
"""

from pathlib import Path

FOLDER = Path(__file__).parent / "model"

"""The small Qwen3.5 that ships with the package, and its novice.

experiments/pretrain_embedded.py trained them; docs/embedded_model.md describes its training and
quality.
"""

from pathlib import Path

from spo_jax.words import EMBEDDED, NOVICE

FOLDER = Path(__file__).parent / "model"
FOLDERS = {EMBEDDED: FOLDER, NOVICE: FOLDER.with_name("novice")}

"""The small Qwen3.5 that ships with the package, and its novice.

experiments/pretrain_embedded.py trained them; docs/research/embedded_training.md describes their
training, docs/research/embedded_quality.md what the first one writes.
"""

from pathlib import Path

from spo_jax.constants import EMBEDDED, NOVICE

FOLDER = Path(__file__).parent / "model"
FOLDERS = {EMBEDDED: FOLDER, NOVICE: FOLDER.with_name("novice")}

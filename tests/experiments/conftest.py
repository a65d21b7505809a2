from pathlib import Path

import pytest

import spo_jax


@pytest.fixture
def grammar_run(tmp_path: Path) -> Path:
    """A run of the grammar on two tiny instances, one round."""
    path = tmp_path / "run"
    spo_jax.discover(
        "tsp", path=path, rounds=1, size=8, instances=2, rollouts=1, steps=3,
        finalists=0, select="utility", generator="grammar", workers=1,
    )  # fmt: skip
    return path

"""A run that learns: killed at any moment it ends like one that was not, adapters to the bit."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import killed_run
import numpy as np
import pytest

from spo_jax.rl.checkpoint import Checkpoints
from spo_jax.rl.policy import _abstract
from spo_jax.rl.qwen import QwenConfig
from spo_jax.rl.updates.trainer import Learner
from spo_jax.runs.database.store import dump
from spo_jax.runs.folders import BEST, CHECKPOINTS
from spo_jax.runs.run import load_run
from tests.rl import speaker

ROOT = Path(killed_run.__file__).parents[2]
MOMENTS = ["1:checkpoint", "2:sampling", "2:evaluation", "2:update", "2:checkpoint", "2:commit"]
SETTINGS = [
    "--preset", "smoke", "--rounds", "2", "--size", "10", "--instances", "2", "--rollouts", "1",
    "--steps", "10", "--workers", "1", "--select", "utility", "--finalists", "0",
    "--max-new-tokens", "3", "--context", "1000", "--sample-rows", "2", "--lora-rank", "2",
    "--learning-rate", "0.002",
]  # fmt: skip


def run(home: Path, moment: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "SPO_CACHE": str(home / "cache"),
        "JAX_ENABLE_COMPILATION_CACHE": "true",
    }
    command = [sys.executable, killed_run.__file__, moment, "discover", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250)


def learners(folder: Path) -> dict[Any, Learner]:
    """What a run's last round ended with: adapters, optimizer states, steps."""
    settings = load_run(folder).config
    like = _abstract(settings, QwenConfig.from_json(settings.generator.model))
    with Checkpoints(folder / CHECKPOINTS) as checkpoints:
        return checkpoints.restore(2, like)


def killed(home: Path, moments: list[str], *settings: str) -> None:
    """A run that is killed at each of the moments ends like the one that nothing stops."""
    line = ["tsp", "--model", str(home / "model"), *SETTINGS, *settings, "--out"]
    done = run(home, "never", *line, str(home / "whole"))
    assert done.returncode == 0, done.stderr
    line.append(str(home / "run"))
    for moment in moments:
        assert run(home, moment, *line).returncode == -signal.SIGKILL, moment
        line = ["--resume", str(home / "run")]
    done = run(home, "never", *line)
    assert done.returncode == 0, done.stderr

    one, other = home / "run", home / "whole"
    assert dump(one) == dump(other)
    assert (one / BEST).read_text().split('"""')[2] == (other / BEST).read_text().split('"""')[2]
    ours, theirs = learners(one), learners(other)
    assert all(int(learner.steps) > 0 for learner in ours.values())
    pairs = zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.slow
def test_killed_in_the_update(tmp_path: Path) -> None:
    speaker.write(tmp_path / "model", ("full_attention",))
    killed(tmp_path, ["2:update"], "--no-share-prompts", "--lora-targets", "q_proj, v_proj")


@pytest.mark.slow
def test_killed_at_every_moment(tmp_path: Path) -> None:
    speaker.write(tmp_path / "model")
    killed(tmp_path, MOMENTS)


@pytest.mark.slow
@pytest.mark.parametrize("update", ["calm", "evotune"])
def test_killed_while_another_update_learns(tmp_path: Path, update: str) -> None:
    """Two rounds of EvoTune are two trainings, the second with the pairs of both."""
    speaker.write(tmp_path / "model", ("full_attention",))
    own = ["--lora-targets", "q_proj, v_proj", "--update", update]
    killed(tmp_path, ["1:checkpoint", "2:update", "2:checkpoint"], *own)

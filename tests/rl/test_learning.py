"""CALM's and EvoTune's updates of a policy: what they learn from, and that they go on as before."""

import math
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from spo_jax.config import Settings
from spo_jax.program import Group, Prompt
from spo_jax.rl import grpo
from spo_jax.rl.learning import adapter_key, objective_of
from spo_jax.rl.policy import Policy
from tests.rl import speaker

PROMPTS = [
    Prompt("tsp", role, "simplification", "\n\n".join(["word"] * (3 + n)))
    for role in ("destroy", "repair")
    for n in range(2)
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return speaker.write(tmp_path_factory.mktemp("model"), ("full_attention",))


def settings(folder: Path, update: str, **own: Any) -> Settings:
    return Settings.make(
        generator="model", model=str(folder), max_new_tokens=3, context=60, sample_rows=8,
        lora_rank=2, lora_targets="q_proj, v_proj", learning_rate=0.05, rounds=12, update=update,
        update_settings=own,
    )  # fmt: skip


def graded(policy: Policy, seed: int) -> dict[Any, list[Group]]:
    """Credits out of nowhere; the last answer to each prompt failed."""
    rng = np.random.default_rng(seed)
    groups: dict[Any, list[Group]] = {"destroy": [], "repair": []}
    for asked, answers in zip(PROMPTS, policy.generate(PROMPTS, 4, seed), strict=True):
        credits = np.array([*rng.normal(size=3), math.nan])
        groups[asked.role].append(Group(asked, answers, credits, np.isnan(credits)))
    return groups


def leaves(policy: Policy) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(policy.learners)]


def equal(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_calm_has_its_own_objective(folder: Path) -> None:
    found = objective_of(settings(folder, "calm", kl=0.1))
    assert isinstance(found, grpo.GrpoConfig)
    assert (found.advantage, found.ratio) == (grpo.standardised, grpo.token)
    assert (found.kl, found.failure_penalty, found.learning_rate) == (0.1, None, 0.05)


def test_failures_earn_calms_reward(folder: Path) -> None:
    """Rewards 1, -0.5 and 2 and a failure's -0.8; one that failed by no fault of its own is out."""
    policy = Policy.load(settings(folder, "calm", invalid=-0.8))
    asked = PROMPTS[0]
    (answers,) = policy.generate([asked], 5, 0)
    credits = np.array([1.0, -0.5, 2.0, math.nan, math.nan])
    group = Group(asked, answers, credits, np.array([False, False, False, True, False]))
    found = policy.advantages({"destroy": [group], "repair": []})["destroy"][0]
    rewards = np.array([1.0, -0.5, 2.0, -0.8])
    np.testing.assert_allclose(found[:4], (rewards - rewards.mean()) / rewards.std())
    assert math.isnan(found[4])


@pytest.mark.long
def test_evotune_trains_anew_on_what_it_gathered(folder: Path, tmp_path: Path) -> None:
    """Twelve rounds: a training in every second one, from a new adapter each time."""
    config = settings(folder, "evotune", epochs=1, percentile=20)
    policy = Policy.load(config)
    start, scores = leaves(policy), []
    first = graded(policy, 0)
    metrics = policy.update(first)
    assert equal(leaves(policy), start)
    assert "destroy/steps" not in metrics
    gathered = metrics["destroy/pairs"]
    assert gathered == metrics["destroy/new_pairs"] > 0

    (tmp_path / "run").mkdir()
    policy.save(tmp_path / "run" / "checkpoints", 1)
    second = graded(policy, 1)
    metrics = policy.update(second)
    for groups in (first, second):
        for group in groups["destroy"]:
            distinct: dict[bytes, float] = {}
            for answer, credit in zip(group.completions, group.credits, strict=True):
                if np.isfinite(credit):
                    distinct.setdefault(answer.tokens.tobytes(), credit)
            scores += distinct.values()
    assert metrics["destroy/threshold"] == pytest.approx(np.percentile(scores, 80))
    assert 0 < metrics["destroy/used"] < metrics["destroy/pairs"]
    assert metrics["destroy/pairs"] == gathered + metrics["destroy/new_pairs"]
    assert metrics["destroy/steps"] == int(policy.learners["destroy"].steps) == 1
    assert not equal(leaves(policy), start)
    # Back at round 1 the same answers give the same adapters, to the bit.
    again = Policy.load(config)
    again.restore(tmp_path / "run" / "checkpoints", 1)
    assert again.update(second) == metrics
    assert equal(leaves(again), leaves(policy))
    # The next training begins anew: one step from the adapter of the run's start.
    policy.update(graded(policy, 2))
    policy.update(graded(policy, 3))
    assert int(policy.learners["destroy"].steps) == 1
    key = adapter_key(config.seed, "destroy")
    fresh = policy._trainer.init(key).adapter.layers[0]["q_proj"].a
    now = policy.learners["destroy"].adapter.layers[0]["q_proj"].a
    assert np.abs(now - fresh).max() < 0.06  # one step of AdamW at a rate of at most 0.08

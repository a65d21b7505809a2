"""A sampler that rounds otherwise than the trainer: the ratio is of the trainer's own."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spo_jax.config import Settings
from spo_jax.errors import InputError
from spo_jax.program import Group, Prompt
from spo_jax.rl.policy import Policy
from spo_jax.rl.qwen import load_pretrained
from spo_jax.rl.tokens import Tokenizer
from spo_jax.rl.updates.grpo import GrpoConfig
from spo_jax.rl.updates.learning import grpo_of
from spo_jax.rl.updates.trainer import Trainer
from tests.rl import speaker, tiny

LAYERS, N = 32, 4
PROMPTS = [
    Prompt("tsp", role, "simplification", "\n\n".join(["word"] * length))
    for role in ("destroy", "repair")
    for length in (3, 6)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return speaker.write(tmp_path_factory.mktemp("deep"), ("full_attention",) * LAYERS)


@pytest.fixture(scope="module")
def config(folder: Path) -> Settings:
    return Settings.make(
        generator="model", model=str(folder), max_new_tokens=24, context=120, sample_rows=16,
        lora_rank=2, lora_targets="q_proj",
    )  # fmt: skip


@pytest.fixture
def policy(config: Settings, folder: Path) -> Policy:
    """It samples and learns in bfloat16."""
    return Policy(config, load_pretrained(folder, jnp.bfloat16), Tokenizer.load(folder))


def graded(policy: Policy) -> dict[Any, list[Group]]:
    rng = np.random.default_rng(0)
    groups: dict[Any, list[Group]] = {"destroy": [], "repair": []}
    for asked, group in zip(PROMPTS, policy.generate(PROMPTS, N, 3), strict=True):
        groups[asked.role].append(Group(asked, group, rng.normal(size=N)))
    return groups


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32])
def test_the_first_ratio_is_one_whatever_the_sampler_rounds(
    policy: Policy, config: Settings, folder: Path, dtype: Any
) -> None:
    config = config.replace(clip=0.002)  # rounding passes it on any machine
    groups = graded(policy)
    model = load_pretrained(folder, dtype)
    policy._learning.trainer = Trainer(model, policy.lora, grpo_of(config), 120)
    metrics = policy.update(groups)
    for role in ("destroy", "repair"):
        assert metrics[f"{role}/ratio_mean"] == 1.0
        assert metrics[f"{role}/ratio_std"] == metrics[f"{role}/clipped"] == 0.0
        assert metrics[f"{role}/samples"] == 2 * N
        assert metrics[f"{role}/gradient_norm"] > 0
        assert metrics[f"{role}/drift_mean"] > 1e-3
    if dtype == jnp.float32:  # in bfloat16 every other way to compute it is also other numbers
        assert_drift(metrics, groups, model, policy, config)


def assert_drift(
    metrics: dict[str, float], groups: Any, model: Any, policy: Policy, config: Settings
) -> None:
    """The record, computed from whole rows. Fresh adapters change nothing."""
    shares = []
    for role, some in groups.items():
        apart, held, total, surprise = [], [], [], []
        for group in some:
            prompt = policy._tokenizer.prompt(group.prompt.text)
            for completion, A in zip(group.completions, group.credits, strict=True):
                row = np.zeros(120, np.int32)  # one shape for all
                length = len(prompt) + len(completion.tokens)
                row[:length] = np.concatenate([prompt, completion.tokens])
                logits = tiny.logits(model, row[None], np.arange(120)[None] < length)[0]
                logs = jax.nn.log_softmax(logits / config.generator.temperature)[len(prompt) - 1 :]
                own = np.asarray(logs)[np.arange(len(completion.tokens)), completion.tokens]
                apart.append(np.abs(own - completion.logprobs))
                surprise.append(-own)
                total.append(np.sum(own - completion.logprobs))
                ratio, advantage = np.exp(total[-1]), A - group.credits.mean()
                held.append(
                    ratio > 1 + config.learning.clip
                    if advantage > 0
                    else ratio < 1 - config.learning.clip
                )
        assert metrics[f"{role}/drift_mean"] == pytest.approx(
            np.concatenate(apart).mean(), rel=1e-3
        )
        assert metrics[f"{role}/drift_max"] == pytest.approx(np.concatenate(apart).max(), rel=1e-3)
        assert metrics[f"{role}/drift_clipped"] == np.mean(held)
        entropy = np.concatenate(surprise).mean()
        assert metrics[f"{role}/entropy"] == pytest.approx(entropy, rel=1e-4)
        shares += held
    assert np.mean(shares) > 0  # what rounding alone would have stopped


def test_the_temperature_of_a_record_that_is_compared_is_the_ratios() -> None:
    with pytest.raises(InputError, match=r"sampled_at is 1\.0 and temperature 0\.8"):
        GrpoConfig(sampled_at=1.0)
    assert replace(GrpoConfig(), on_policy=True, sampled_at=1.0).sampled_at == 1.0
    with pytest.raises(InputError, match="sampled_at is 0"):
        GrpoConfig(on_policy=True, sampled_at=0.0)

"""CALM's and EvoTune's updates of a policy: what they learn from, and that they go on as before."""

import math
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from spo_jax.config import Settings
from spo_jax.program import Group, Prompt
from spo_jax.rl.policy import Policy
from spo_jax.rl.updates import dpo, grpo
from spo_jax.rl.updates.batches import TokenGroup
from spo_jax.rl.updates.learning import EvoTuneLearning, adapter_key, objective_of
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


@pytest.mark.long
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


def test_evotune_has_the_published_objective(folder: Path) -> None:
    """CLAIRE-Labo/EvoTune: beta, forward KL, 2 epochs, 2 x 16 pairs a step, clipping at 1."""
    found = objective_of(settings(folder, "evotune"))
    assert isinstance(found, dpo.DpoConfig)
    assert (found.beta, found.divergence, found.epochs) == (0.4, dpo.forward_kl, 2)
    assert (found.batch, found.max_gradient_norm, found.temperature) == (32, 1.0, 1.0)


class Watched:
    """A trainer that does nothing but keep what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, list[int], float]] = []

    def init(self, key: Any) -> str:
        return "new"

    def train(self, learner: Any, pairs: Any, rate: float, rng: Any) -> Any:
        self.asked.append((learner, sorted(int(p.chosen[0]) for p in pairs), rate))
        return f"trained {len(self.asked)}", {}


def test_evotunes_trainings_by_hand() -> None:
    """A training in every second of 12 rounds. Round n has the scores n 10 + 0, 1, 2, 3 of answers
    of the same names: two pairs, of n 10 + 3 and n 10 + 2 as the better ones.
    """
    trainer = Watched()
    config = Settings.make(update="evotune", rounds=12, learning_rate=0.3, generator="model")
    learning = EvoTuneLearning(config, trainer)  # type: ignore[arg-type]

    def group(scores: list[int]) -> TokenGroup:
        own = [np.array([score], np.int32) for score in scores]
        logprobs = [np.zeros(1, np.float32)] * len(own)
        return TokenGroup("g", np.array([9]), own, logprobs, np.array(scores, float))

    learner: Any = "first"
    # The thresholds are 30th percentiles of the scores of the last two rounds alone.
    rounds = [10, 20, 30, 0, 25, 50]
    thresholds = {}
    for n, low in enumerate(rounds, 1):
        other = group([7, 7])
        learner, metrics = learning.update("destroy", learner, [group(list(range(low, low + 4)))])
        _, metrics_too = learning.update("repair", "r", [other])
        assert metrics_too["pairs"] == 0  # each role has its own
        if "threshold" in metrics:
            thresholds[n] = metrics["threshold"]
    # 10..13 and 20..23: of eight values the one at 0.3 x 7 = 2.1, 12 + 0.1. Then 0..3 and 30..33:
    # 2.1. Then 25..28 and 50..53: 27.1.
    assert thresholds == pytest.approx({2: 12.1, 4: 2.1, 6: 27.1})
    # All better answers so far that reach it, of this round too.
    assert [chosen for _, chosen, _ in trainer.asked] == [
        [13, 22, 23], [3, 12, 13, 22, 23, 32, 33], [28, 32, 33, 52, 53]
    ]  # fmt: skip
    # sqrt(1000 / n) at 400, 800 and 1200 prompts; each begins with a new adapter.
    rates = [rate for *_, rate in trainer.asked]
    assert rates == pytest.approx([0.3 * math.sqrt(1000 / n) for n in (400, 800, 1200)])
    assert {begun for begun, *_ in trainer.asked} == {"new"}
    assert learner == "trained 3"


def test_without_a_pair_that_is_good_enough_evotune_does_not_train() -> None:
    """The one pair prefers an answer of 1 to a failure. Of 1, 5 and 5 the threshold is 3.4."""
    trainer = Watched()
    config = Settings.make(update="evotune", rounds=6, generator="model")
    learning = EvoTuneLearning(config, trainer)  # type: ignore[arg-type]
    one = [np.array([n], np.int32) for n in (1, 2)]
    zeros = [np.zeros(1, np.float32)] * 2
    failed = TokenGroup(
        "f", np.array([9]), one, zeros, np.array([1.0, math.nan]), np.array([False, True])
    )
    same = TokenGroup("s", np.array([8]), one, zeros, np.array([5.0, 5.0]))
    learner, metrics = learning.update("destroy", "first", [failed, same])  # type: ignore[arg-type]
    assert (learner, metrics["pairs"], metrics["used"], trainer.asked) == ("first", 1, 0, [])
    assert metrics["threshold"] == pytest.approx(3.4)


@pytest.mark.slow
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

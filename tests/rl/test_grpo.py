"""Advantages and the clipped objective: by hand from the paper's equations, and against TRL."""

import math
from types import SimpleNamespace
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spo_jax.errors import InputError
from spo_jax.rl.updates import grpo
from spo_jax.rl.updates.batches import Batch
from spo_jax.rl.updates.grpo import GrpoConfig, advantages, clipped_objective
from tests.oracles import oracle

ALL = np.ones(4, bool)
NONE = np.zeros(4, bool)


def test_advantages_are_credits_minus_the_mean_of_the_group() -> None:
    got = advantages(np.array([1.0, 2.0, 3.0, 6.0]), NONE, ALL, GrpoConfig())
    np.testing.assert_allclose(got, [-2.0, -1.0, 0.0, 3.0])


@pytest.mark.parametrize("wrong", [lambda c: c[1:], lambda c: c / 0.0, lambda c: 1.0])
def test_an_advantage_that_is_none(wrong: Any) -> None:
    with (
        np.errstate(all="ignore"),
        pytest.raises(InputError, match="advantage of 4 credits has the shape"),
    ):
        advantages(np.array([1.0, 2.0, 3.0, 6.0]), NONE, ALL, GrpoConfig(advantage=wrong))


def test_samples_without_credit_or_logprobs_are_left_out_of_the_mean() -> None:
    credits = np.array([1.0, np.nan, 3.0, 100.0])
    usable = np.array([True, True, True, False])
    got = advantages(credits, NONE, usable, GrpoConfig())
    np.testing.assert_allclose(got, [-1.0, np.nan, 1.0, np.nan])


def test_a_group_without_spread_has_no_advantages() -> None:
    for form in grpo.ADVANTAGES.values():
        got = advantages(
            np.array([0.1 + 0.2, 0.3, 0.3, np.nan]), NONE, ALL, GrpoConfig(advantage=form)
        )
        np.testing.assert_array_equal(got, [0.0, 0.0, 0.0, np.nan])


def test_standardised_advantages() -> None:
    config = GrpoConfig(advantage=grpo.standardised)
    got = advantages(np.array([1.0, 1.0, 3.0, 3.0]) * 7, NONE, ALL, config)
    np.testing.assert_allclose(got, [-1.0, -1.0, 1.0, 1.0])


def test_leave_one_out_advantages() -> None:
    config = GrpoConfig(advantage=grpo.leave_one_out)
    got = advantages(np.array([1.0, 4.0, 7.0, np.nan]), NONE, ALL, config)
    np.testing.assert_allclose(got, [1 - 5.5, 4 - 4, 7 - 2.5, np.nan])
    got = advantages(np.array([1.0, np.nan, np.nan, np.nan]), NONE, ALL, config)
    np.testing.assert_array_equal(got, [0.0, np.nan, np.nan, np.nan])


def test_failed_samples_take_the_lowest_credit_minus_the_penalty() -> None:
    credits = np.array([4.0, 2.0, np.nan, np.nan])
    failed = np.array([False, False, True, False])  # the last has no credit for another reason
    got = advantages(credits, failed, ALL, GrpoConfig(failure_penalty=2.0))
    np.testing.assert_allclose(got, [2.0, 0.0, -2.0, np.nan])  # of 4, 2 and 2 - 2


def test_a_group_of_failures_alone_has_nothing_to_learn_from() -> None:
    nothing = np.full(4, np.nan)
    got = advantages(nothing, ALL, ALL, GrpoConfig(failure_penalty=1.0))
    np.testing.assert_array_equal(got, nothing)


def test_the_clipped_objective_by_hand() -> None:
    """eq:grpo at rho = 1.5, 0.5 and 1.1 for both signs of A, epsilon = 0.2.

    The clip holds where it makes the objective smaller: rho too large for a good sample, too small
    for a bad one. There the value is (1 +- epsilon) A and the gradient zero; else rho A, and its
    gradient with respect to each token's log-probability is rho A as well.
    """
    rho = np.array([1.5, 1.5, 0.5, 0.5, 1.1, 1.1])
    A = np.array([2.0, -2.0, 2.0, -2.0, 2.0, -2.0], np.float32)
    want = [2.4, -3.0, 1.0, -1.6, 2.2, -2.2]
    slope = [0.0, -3.0, 1.0, 0.0, 2.2, -2.2]
    # Two tokens and a padded one; the ratio is of their product.
    old = np.tile(np.float32([-1.0, -2.0, 0.0]), (6, 1))
    new = old + np.stack([0.25 * np.log(rho), 0.75 * np.log(rho), np.full(6, 9.0)], 1).astype("f")
    mask = np.tile([True, True, False], (6, 1))

    def total(new: jax.Array) -> tuple[jax.Array, grpo.Outcome]:
        outcome = clipped_objective(new, jnp.asarray(old), jnp.asarray(mask), jnp.asarray(A), 0.2)
        return outcome.value.sum(), outcome

    gradient, outcome = jax.grad(total, has_aux=True)(jnp.asarray(new))
    np.testing.assert_allclose(outcome.value, want, rtol=1e-5)
    np.testing.assert_allclose(gradient[:, 0], slope, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(gradient[:, 1], slope, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(gradient[:, 2], 0.0)
    np.testing.assert_array_equal(outcome.clipped, [1, 0, 0, 1, 0, 0])
    np.testing.assert_allclose(outcome.log_ratio, np.log(rho), rtol=1e-5)
    np.testing.assert_array_equal(outcome.tokens, 2)
    each = np.log(rho)[:, None] * [0.25, 0.75]
    np.testing.assert_allclose(outcome.kl, (np.exp(each) - 1 - each).sum(1), rtol=1e-3)


@pytest.mark.long
def test_a_clipped_ratio_beyond_all_numbers_leaves_no_trace() -> None:
    """exp(200) is infinite in float32; where the clip holds, neither value nor gradient sees it."""
    new = jnp.full((1, 2), 100.0)

    def value(new: jax.Array, A: float) -> jax.Array:
        mask = jnp.ones((1, 2), bool)
        return clipped_objective(new, jnp.zeros((1, 2)), mask, jnp.array([A]), 0.2).value.sum()

    assert value(new, 1.0) == pytest.approx(1.2)
    assert not jax.grad(value)(new, 1.0).any()
    assert value(new, 0.0) == 0
    assert not jax.grad(value)(new, 0.0).any()
    assert value(new, -1.0) == -jnp.inf  # the equation's own value: the trainer stops at it


def trl_loss(
    new: np.ndarray, batch: dict[str, np.ndarray], level: str, kl: float = 0.0
) -> tuple[float, np.ndarray]:
    """TRL's loss and its gradient with respect to the log-probabilities.

    batch may have importance weights, as of a sampler that differs.
    """
    torch = oracle("torch")
    GRPOTrainer = oracle("trl.trainer.grpo_trainer").GRPOTrainer

    logprobs = torch.tensor(new, requires_grad=True)

    class Stub:
        """What `_compute_loss` touches of a trainer; anything else is off."""

        model = SimpleNamespace(training=False)
        importance_sampling_level, loss_type = level, "grpo"
        epsilon_low = epsilon_high = 0.2
        beta, top_entropy_quantile, off_policy_mask_threshold = kl, 1.0, None
        aux_loss_enabled = _entropy_bonus_enabled = use_adaptive_entropy = False
        use_vllm = vllm_importance_sampling_correction = "importance" in batch
        current_gradient_accumulation_steps = 1
        args = SimpleNamespace(delta=None, use_bias_correction_kl=False)
        accelerator = SimpleNamespace(
            num_processes=1,
            gather=lambda x: x,
            gather_for_metrics=lambda x: x,
            reduce=lambda x, reduction: x,
        )

        def __init__(self) -> None:
            from collections import defaultdict

            self._metrics: Any = {"eval": defaultdict(list)}

        def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> Any:
            return logprobs, torch.zeros_like(logprobs), None

    ids = torch.zeros(new.shape, dtype=torch.long)
    inputs = {
        "prompt_ids": ids[:, :1],
        "prompt_mask": torch.ones_like(ids[:, :1]),
        "completion_ids": ids,
        "completion_mask": torch.tensor(batch["mask"]).long(),
        "old_per_token_logps": torch.tensor(batch["old"]),
        "advantages": torch.tensor(batch["advantage"]),
    }
    if "importance" in batch:
        inputs["importance_sampling_ratio"] = torch.tensor(batch["importance"])
    if kl:
        inputs["ref_per_token_logps"] = torch.tensor(batch["reference"])
    loss = GRPOTrainer._compute_loss(Stub(), None, inputs)
    loss.backward()
    assert logprobs.grad is not None
    return float(loss), logprobs.grad.numpy()


@pytest.mark.long
@pytest.mark.parametrize("mode", grpo.IMPORTANCE)
def test_a_wrong_sampler_is_corrected_as_by_trl(mode: str) -> None:
    """The sampler's numbers are off by noise on purpose; TRL's formula of the weights by loops."""
    rng = np.random.default_rng(1)
    B, T, cap = 8, 12, 1.2
    logprobs = -rng.exponential(1.0, (B, T)).astype(np.float32)
    sampler = logprobs + 0.2 * rng.normal(size=(B, T)).astype(np.float32)
    mask = np.arange(T)[None] < rng.integers(3, T + 1, B)[:, None]
    advantage = rng.normal(size=B).astype(np.float32)
    level, above = mode.split("-")
    weights = np.ones((B, T if level == "token" else 1), np.float32)
    for b in range(B):
        away = np.where(mask[b], logprobs[b] - sampler[b], 0)
        for t, d in enumerate(away if level == "token" else [away.sum()]):
            ratio = math.exp(d)
            weights[b, t] = min(ratio, cap) if above == "truncate" or ratio <= cap else 0.0
    assert (weights == (np.float32(cap) if above == "truncate" else 0)).any()
    batch = {"old": logprobs, "mask": mask, "advantage": advantage, "importance": weights}
    _, want = trl_loss(logprobs, batch, "token")

    hidden = jnp.asarray(logprobs)  # the model: one number per token
    rows = Batch(
        prompts=jnp.zeros((B, 1), int), prompt_mask=jnp.ones((B, 1), bool),
        tokens=jnp.zeros((B, T), int), mask=jnp.asarray(mask), logprobs=jnp.asarray(sampler),
        advantage=jnp.asarray(advantage), weight=jnp.full(B, 1 / B), reference=None,
    )  # fmt: skip
    config = GrpoConfig(ratio=grpo.token, on_policy=True, importance_cap=cap, importance_mode=mode)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grpo, "token_logprobs", lambda hidden, *_: hidden)
        gradient, outcome = jax.grad(
            lambda hidden: config.loss(hidden, jnp.zeros(()), rows), has_aux=True
        )(hidden)
    np.testing.assert_allclose(gradient, want, atol=1e-6)
    np.testing.assert_allclose(outcome.value, advantage, rtol=1e-6)  # the ratio stays 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("level", "ratio"), [("token", grpo.token), ("sequence", grpo.length_normalised)]
)
def test_loss_and_gradient_equal_trl(level: str, ratio: grpo.LogRatio) -> None:
    """TRL's "sequence" ratio is the length-normalised one; its loss is a mean over rows."""
    rng = np.random.default_rng(0)
    B, T = 8, 12
    old = -rng.exponential(1.0, (B, T)).astype(np.float32)
    new = old + 0.4 * rng.normal(size=(B, T)).astype(np.float32)
    mask = np.arange(T)[None] < rng.integers(3, T + 1, B)[:, None]
    advantage = rng.normal(size=B).astype(np.float32)
    batch = {"old": old, "mask": mask, "advantage": advantage}
    want, want_gradient = trl_loss(new, batch, level)

    def loss(new: jax.Array) -> tuple[jax.Array, grpo.Outcome]:
        outcome = clipped_objective(
            new, jnp.asarray(old), jnp.asarray(mask), jnp.asarray(advantage), 0.2, ratio
        )
        return -outcome.value.mean(), outcome

    (got, outcome), gradient = jax.value_and_grad(loss, has_aux=True)(jnp.asarray(new))
    assert 0 < float(outcome.clipped.mean()) < 1  # the clip holds somewhere, and not everywhere
    np.testing.assert_allclose(got, want, rtol=1e-5)
    np.testing.assert_allclose(gradient, want_gradient, atol=1e-6)
    chex.assert_tree_all_finite(outcome)


@pytest.mark.long
def test_the_divergence_from_the_base_equals_trl() -> None:
    """With a large weight, so that it shows; hidden states are logits, as the head is one-hot."""
    rng = np.random.default_rng(2)
    B, T, V = 5, 7, 11
    logits = rng.normal(size=(B, T, V)).astype(np.float32)
    tokens = rng.integers(0, V, (B, T), dtype=np.int32)
    new = np.take_along_axis(
        logits - np.log(np.exp(logits).sum(-1, keepdims=True)), tokens[..., None], -1
    )[..., 0]
    batch = {
        "old": new + 0.3 * rng.normal(size=(B, T)).astype(np.float32),
        "reference": new + 0.5 * rng.normal(size=(B, T)).astype(np.float32),
        "mask": np.arange(T)[None] < rng.integers(2, T + 1, B)[:, None],
        "advantage": rng.normal(size=B).astype(np.float32),
    }
    want, slope = trl_loss(new, batch, "token", kl=0.7)
    config = GrpoConfig(kl=0.7, ratio=grpo.token, temperature=1.0)
    rows = Batch(
        jnp.zeros((B, 1), jnp.int32), jnp.ones((B, 1), bool), jnp.asarray(tokens),
        jnp.asarray(batch["mask"]), jnp.asarray(batch["old"]), jnp.asarray(batch["advantage"]),
        jnp.full(B, 1 / B), jnp.asarray(batch["reference"]),
    )  # fmt: skip

    def loss(hidden: jax.Array) -> jax.Array:
        return config.loss(hidden, jnp.eye(V), rows)[0]

    got, gradient = jax.value_and_grad(loss)(jnp.asarray(logits))
    np.testing.assert_allclose(got, want, rtol=1e-5)
    softmax = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    expected = slope[..., None] * (np.eye(V)[tokens] - softmax)  # through the log-softmax
    np.testing.assert_allclose(gradient, expected, atol=1e-6)


@pytest.mark.parametrize(
    "changes",
    [
        {"learning_rate": 0.0}, {"clip": 0.0}, {"clip": 1.0}, {"micro_batch": 0},
        {"temperature": 0.0}, {"weight_decay": -1.0}, {"failure_penalty": -0.1},
        {"max_gradient_norm": float("nan")},
    ],
)  # fmt: skip
def test_settings_out_of_range_are_refused(changes: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(changes))):
        GrpoConfig(**changes)  # type: ignore[arg-type]

"""Preferences as a loss and as a training, against TRL and against plain formulas of the model."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spo_jax.errors import InputError
from spo_jax.rl import gradients
from spo_jax.rl.buckets import FEW
from spo_jax.rl.lora import Adapter
from spo_jax.rl.updates import dpo
from spo_jax.rl.updates.dpo import DIVERGENCES, DpoConfig, DpoTrainer, preference_loss
from spo_jax.rl.updates.preferences import Preference
from spo_jax.rl.updates.trainer import NotFinite
from tests.oracles import oracle
from tests.rl import tiny
from tests.rl.test_trainer import LORA, SMALL, distance, moved

PAIRS = 5


def make(config: DpoConfig | None = None) -> DpoTrainer:
    return DpoTrainer(tiny.pair(0, **SMALL)[1], LORA, config or DpoConfig(), context=512)


def preferences(count: int = PAIRS, seed: int = 0) -> list[Preference]:
    rng = np.random.default_rng(seed)

    def text(low: int, high: int) -> np.ndarray:
        return rng.integers(0, 256, rng.integers(low, high), dtype=np.int32)

    return [Preference(text(10, 60), text(5, 60), text(5, 60), 0.0) for _ in range(count)]


# --- the loss against TRL -------------------------------------------------------------------------


def trl_loss(
    new: np.ndarray, reference: np.ndarray, mask: np.ndarray, beta: float, divergence: str
) -> tuple[float, np.ndarray]:
    """TRL's loss and its gradient with respect to the log-probabilities [2 N, T], chosen first."""
    torch = oracle("torch")
    DPOTrainer = oracle("trl.trainer.dpo_trainer").DPOTrainer
    logprobs = torch.tensor(new, requires_grad=True)
    zeros = torch.zeros(new.shape)

    def model(**inputs: Any) -> Any:
        return SimpleNamespace(
            log_probs=logprobs * torch.tensor(mask), entropy=zeros, mean_logits=zeros,
            is_top1=zeros.bool(),
        )  # fmt: skip

    class Stub:
        """What `_compute_loss` touches of a trainer; anything else is off."""

        model = SimpleNamespace(training=False)
        aux_loss_enabled, ld_alpha, precompute_ref_logps = False, None, True
        f_divergence_type, f_alpha_divergence_coef = divergence, 0.0
        loss_types, loss_weights, label_smoothing = ["sigmoid"], [1.0], 0.0
        use_weighting, _total_train_tokens, _tp_size = False, 0, 1
        args = SimpleNamespace()
        accelerator = SimpleNamespace(
            device="cpu", gather=lambda x: x, gather_for_metrics=lambda x: x
        )

        def __init__(self) -> None:
            from collections import defaultdict

            self.beta = beta
            self._metrics: Any = {"eval": defaultdict(list)}

    N = len(new) // 2
    total = (reference * mask).sum(axis=1)
    ids = torch.zeros((len(new), new.shape[1] + 1), dtype=torch.long)
    seen = np.concatenate([np.zeros((len(mask), 1), bool), mask], axis=1)
    inputs = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "completion_mask": torch.tensor(seen).long(),
        "ref_chosen_logps": torch.tensor(total[:N]),
        "ref_rejected_logps": torch.tensor(total[N:]),
    }
    loss = DPOTrainer._compute_loss(Stub(), model, inputs, False)
    loss.backward()
    assert logprobs.grad is not None
    return float(loss.detach()), logprobs.grad.numpy()


@pytest.mark.long
@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("reverse_kl", "reverse-kl"), ("forward_kl", "forward-kl"), ("js_divergence", "js")],
)
def test_loss_and_gradient_equal_trl(theirs: str, ours: str) -> None:
    rng = np.random.default_rng(1)
    N, T = 6, 9
    reference = -rng.exponential(1.0, (2 * N, T)).astype(np.float32)
    new = reference + 0.3 * rng.normal(size=(2 * N, T)).astype(np.float32)
    mask = np.arange(T)[None] < rng.integers(3, T + 1, 2 * N)[:, None]
    want, want_gradient = trl_loss(new, reference, mask, 0.4, theirs)

    def loss(new: jax.Array) -> jax.Array:
        ratio = jnp.sum((new - reference) * mask, axis=1)
        return preference_loss(ratio[:N], ratio[N:], 0.4, DIVERGENCES[ours]).mean()

    got, gradient = jax.value_and_grad(loss)(jnp.asarray(new))
    np.testing.assert_allclose(got, want, rtol=1e-5)
    np.testing.assert_allclose(gradient, want_gradient, rtol=1e-4, atol=1e-6)


def test_the_loss_by_hand() -> None:
    """Ratios 2 and 1/2: log differences 2 log 2; of 1 - 1/t, 0.5 - (-1)."""
    ratio = jnp.log(jnp.array([2.0])), jnp.log(jnp.array([0.5]))
    assert preference_loss(*ratio, 0.5)[0] == pytest.approx(np.log(1 + 0.5))
    forward = preference_loss(*ratio, 0.4, dpo.forward_kl)[0]
    assert forward == pytest.approx(np.log(1 + np.exp(-0.6)))


def test_no_ratio_is_too_large_for_a_number() -> None:
    def loss(ratio: jax.Array, form: dpo.Divergence) -> jax.Array:
        return preference_loss(ratio[:1], ratio[1:], 0.4, form).sum()

    for form in DIVERGENCES.values():
        for pair in ([1e4, -1e4], [-1e4, 1e4], [-50.0, -50.0]):
            value, slope = jax.value_and_grad(loss)(jnp.array(pair), form)
            assert np.isfinite(value)
            assert np.isfinite(slope).all()


# --- the gradient through the model ---------------------------------------------------------------


def plain_loss(adapter: Adapter, pairs: list[Preference], config: DpoConfig) -> jax.Array:
    """The mean loss pair by pair, without padding, from whole tables of logits."""
    model = tiny.pair(0, **SMALL)[1]

    @jax.jit
    def logprob(prompt: jax.Array, answer: jax.Array, adapter: Adapter, scale: float) -> jax.Array:
        tokens = jnp.concatenate([prompt, answer])[None]
        hidden, _ = model.hidden(tokens, jnp.ones(tokens.shape, bool), adapter.scaled(scale))
        logits = jax.nn.log_softmax(hidden[0].astype(jnp.float32) @ model.head.T)
        return logits[jnp.arange(len(prompt) - 1, tokens.shape[1] - 1), answer].sum()

    total = jnp.zeros(())
    for pair in pairs:
        chosen, rejected = (
            logprob(pair.prompt, answer, adapter, LORA.scale)
            - logprob(pair.prompt, answer, adapter, 0.0)
            for answer in (pair.chosen, pair.rejected)
        )
        gap = config.divergence(chosen) - config.divergence(rejected)
        total += jnp.log1p(jnp.exp(-config.beta * gap))
    return total / len(pairs)


@pytest.mark.slow
@pytest.mark.parametrize("share", [True, False])
def test_the_gradient_is_that_of_the_plain_formula(share: bool) -> None:
    """Three pairs leave the second batch half full; their answers differ in length."""
    config = DpoConfig(share_prompts=share, micro_batch=4, divergence=dpo.js)
    trainer, rng = make(config), np.random.default_rng(0)
    pairs = [
        Preference(*(rng.integers(0, 256, n, dtype=np.int32) for n in (20, 12, 7)), 0.0)
        for _ in range(3)
    ]
    adapter = moved(trainer.init(jax.random.key(0))).adapter
    total, outcomes = trainer.gradient(adapter, trainer.batches(pairs))
    want, expected = jax.value_and_grad(plain_loss)(adapter, pairs, config)
    assert distance(total, expected) < 1e-4
    value = np.concatenate([np.asarray(each.value).ravel() for each in outcomes])[:3]
    assert value.mean() == pytest.approx(float(want), rel=1e-4)


@pytest.mark.slow
def test_the_reference_is_the_base_whatever_the_adapter() -> None:
    """A new adapter has no effect, so all log-ratios are 0 and the loss is log 2."""
    trainer = make()
    adapter = trainer.init(jax.random.key(0)).adapter
    _, outcomes = trainer.gradient(adapter, trainer.batches(preferences(2)))
    for each in outcomes:
        np.testing.assert_allclose(each.value, np.log(2), rtol=1e-4)
        np.testing.assert_allclose([each.chosen, each.rejected], 0.0, atol=1e-4)


# --- a training -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_training_prefers_what_is_preferred_and_compiles_once() -> None:
    config = DpoConfig(epochs=4, batch=2, micro_batch=4, ladder=FEW)
    trainer, pairs = make(config), preferences(5)
    learner, measured = trainer.train(
        trainer.init(jax.random.key(0)), pairs, 0.02, np.random.default_rng(0)
    )
    assert measured["steps"] == int(learner.steps) == 12  # three of an epoch, of 2, 2 and 1 pairs
    assert measured["loss"] < np.log(2) / 2
    assert measured["accuracy"] == 1
    assert measured["margin"] > 0
    programs = gradients.accumulator()._cache_size(), dpo._apply._cache_size()
    again, _ = trainer.train(
        trainer.init(jax.random.key(0)), preferences(8, 3), 0.01, np.random.default_rng(1)
    )
    assert (gradients.accumulator()._cache_size(), dpo._apply._cache_size()) == programs
    assert int(again.steps) == 16


@pytest.mark.long
def test_the_rate_falls_as_transformers_cosine_does(monkeypatch: pytest.MonkeyPatch) -> None:
    torch, transformers = oracle("torch"), oracle("transformers")
    rates: list[float] = []

    def apply(config: Any, learner: Any, gradients: Any, rate: Any) -> Any:
        rates.append(float(rate))
        return learner

    monkeypatch.setattr(dpo, "_apply", apply)
    trainer = make(DpoConfig(epochs=2, batch=2))
    monkeypatch.setattr(
        trainer, "gradient", lambda adapter, batches: (adapter, [outcome(len(list(batches)))])
    )
    trainer.train(trainer.init(jax.random.key(0)), preferences(), 0.3, np.random.default_rng(0))
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.3)
    schedule = transformers.get_cosine_schedule_with_warmup(optimizer, 0, 6)
    wanted = []
    for _ in range(6):
        wanted.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    np.testing.assert_allclose(rates, wanted, rtol=1e-6)


def outcome(count: int) -> dpo.PairOutcome:
    return dpo.PairOutcome(*(jnp.zeros(count) for _ in range(3)))


@pytest.mark.long
def test_an_epoch_sees_each_pair_once(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer, seen = make(DpoConfig(epochs=2, batch=2)), []

    def gradient(adapter: Any, batches: Any) -> Any:
        return adapter, [outcome(len(list(batches)))]

    monkeypatch.setattr(trainer, "gradient", gradient)
    monkeypatch.setattr(dpo, "_apply", lambda config, learner, gradients, rate: learner)
    batches = trainer.batches

    def watched(pairs: Any) -> Any:
        seen.extend(int(pair.score) for pair in pairs)
        return batches(pairs)

    monkeypatch.setattr(trainer, "batches", watched)
    pairs = [replace(pair, score=float(i)) for i, pair in enumerate(preferences())]
    trainer.train(trainer.init(jax.random.key(0)), pairs, 0.1, np.random.default_rng(0))
    assert sorted(seen[:PAIRS]) == sorted(seen[PAIRS:]) == list(range(PAIRS))
    assert seen[:PAIRS] != seen[PAIRS:]


@pytest.mark.long
def test_what_is_no_number_is_reported() -> None:
    trainer = make()
    trainer._weights = jax.tree.map(lambda x: x * jnp.nan, trainer._weights)
    with pytest.raises(NotFinite, match="objective of the preferences is not finite"):
        trainer.train(
            trainer.init(jax.random.key(0)), preferences(1), 0.1, np.random.default_rng(0)
        )


@pytest.mark.parametrize("name", ["beta", "epochs", "batch", "learning_rate"])
def test_settings_out_of_range_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} is 0; it must be above 0"):
        DpoConfig(**{name: 0})  # type: ignore[arg-type]

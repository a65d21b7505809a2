"""The update of an adapter, against torch's autograd and optimizer on the same weights."""

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spo_jax.errors import InputError
from spo_jax.rl import gradients
from spo_jax.rl.buckets import FEW, FINE, LARGE, pad_right
from spo_jax.rl.lora import TARGETS, Adapter, LoraConfig
from spo_jax.rl.sharding import replicated  # noqa: F401, used by the script below
from spo_jax.rl.updates import grpo, trainer
from spo_jax.rl.updates.batches import TokenGroup, plan, select
from spo_jax.rl.updates.grpo import GrpoConfig
from spo_jax.rl.updates.trainer import Learner, NotFinite, Trainer
from tests.oracles import oracle
from tests.rl import tiny

SMALL = {
    "num_hidden_layers": 4,
    "layer_types": ("linear_attention", "full_attention") * 2,
    "hidden_size": 32,
    "intermediate_size": 48,
}
ONE_BLOCK = {**SMALL, "layer_types": ("linear_attention",) * 3 + ("full_attention",)}
LORA = LoraConfig(rank=2, alpha=6.0, targets=TARGETS)


def make(config: GrpoConfig, lora: LoraConfig = LORA) -> Trainer:
    return Trainer(tiny.pair(0, **SMALL)[1], lora, config, context=512)


def moved(learner: Learner, seed: int = 1) -> Learner:
    """The learner with an adapter that does change something."""
    keys = iter(jax.random.split(jax.random.key(seed), 100))
    adapter = jax.tree.map(
        lambda x: x + 0.1 * jax.random.normal(next(keys), x.shape), learner.adapter
    )
    return replace(learner, adapter=adapter)


def make_groups(count: int = 2, size: int = 4, seed: int = 0) -> list[TokenGroup]:
    """Groups whose samplers' log-probabilities are those of a uniform guess, give or take."""
    rng = np.random.default_rng(seed)
    groups = []
    for g in range(count):
        lengths = rng.integers(5, 60, size)
        groups.append(
            TokenGroup(
                name=f"group-{g}",
                prompt=rng.integers(0, 256, rng.integers(10, 60), dtype=np.int32),
                completions=[rng.integers(0, 256, n, dtype=np.int32) for n in lengths],
                logprobs=[(-5.6 + 0.1 * rng.normal(size=n)).astype(np.float32) for n in lengths],
                credits=rng.normal(size=size),
            )
        )
    return groups


def gradient(runner: Trainer, learner: Learner, groups: list[TokenGroup]) -> tuple[Adapter, float]:
    """The accumulated gradient and the objective, before clipping and the step."""
    total = jax.tree.map(jnp.zeros_like, learner.adapter)
    objective = 0.0
    for batch, _ in plan(select(groups, runner.config, runner.context), runner.config, runner.mesh):
        total, outcome = gradients.accumulator()(
            runner._settings, runner._weights, learner.adapter, total, batch
        )
        objective += float(jnp.sum(outcome.value * batch.weight))
    return total, objective


def largest(tree: Any) -> float:
    return max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(tree))


def distance(a: Any, b: Any) -> float:
    """The largest difference, relative to the largest entry."""
    return largest(jax.tree.map(jnp.subtract, a, b)) / largest(b)


# --- against torch --------------------------------------------------------------------------------


def torch_gradient(
    learner: Learner, groups: list[TokenGroup], config: GrpoConfig
) -> tuple[Adapter, float]:
    """The gradient of eq:grpo, written down from the paper, sample by sample, without padding."""
    torch = oracle("torch")
    model = tiny.pair(0, **SMALL)[0]
    block = tiny.config(**SMALL).block
    names = {
        (i, name): f"{part}.{name}.weight"
        for i, kind in enumerate(block)
        for part, names in (
            ("self_attn" if kind == "full_attention" else "linear_attn", TARGETS[:9]),
            ("mlp", TARGETS[9:]),
        )
        for name in names
        if name in learner.adapter.layers[i]
    }
    ours = {
        key: {
            side: torch.tensor(np.asarray(getattr(learner.adapter.layers[key[0]][key[1]], side)))
            for side in "ab"
        }
        for key in names
    }
    for sides in ours.values():
        for tensor in sides.values():
            tensor.requires_grad_()
    frozen = dict(model.named_parameters())
    weights = dict(frozen)
    for (i, name), path in names.items():
        low_rank = ours[i, name]
        for r in range(low_rank["a"].shape[0]):
            full = f"model.layers.{r * len(block) + i}.{path}"
            weights[full] = frozen[full] + LORA.scale * low_rank["b"][r] @ low_rank["a"][r]

    total = torch.zeros(())
    for group in groups:
        A = torch.tensor(group.credits - group.credits.mean())
        for i, tokens in enumerate(group.completions):
            row = torch.tensor(np.concatenate([group.prompt, tokens])).long()[None]
            logits = torch.func.functional_call(model, weights, (row,)).logits[0]
            logs = torch.log_softmax(logits / config.temperature, dim=-1)
            chosen = logs[len(group.prompt) - 1 : -1].gather(1, row[0, len(group.prompt) :, None])
            rho = torch.exp((chosen[:, 0] - torch.tensor(group.logprobs[i])).sum())
            clipped = torch.clamp(rho, 1 - config.clip, 1 + config.clip)
            total = total + torch.minimum(rho * A[i], clipped * A[i]) / len(A) / len(groups)
    (-total).backward()
    got = jax.tree.map(jnp.zeros_like, learner.adapter)
    layers = [dict(layer) for layer in got.layers]
    for (i, name), sides in ours.items():
        layers[i][name] = replace(
            layers[i][name], **{side: jnp.asarray(t.grad.numpy()) for side, t in sides.items()}
        )
    return Adapter(tuple(layers)), float(total)


def near_the_policy(
    runner: Trainer, learner: Learner, groups: list[TokenGroup], spread: float
) -> list[TokenGroup]:
    """The same groups with log-probabilities near the policy's own, so that few ratios are clipped.

    They come from a single forward pass of each row.
    """
    rng = np.random.default_rng(5)
    scaled = learner.adapter.scaled(LORA.scale)
    near = []
    for group in groups:
        logprobs = []
        for tokens in group.completions:
            row, mask = pad_right([np.concatenate([group.prompt, tokens])], 128)
            logs = whole_row(row, mask, scaled, runner.config.temperature)
            own = logs[len(group.prompt) - 1 :][np.arange(len(tokens)), tokens]
            noise = spread * rng.normal() / len(tokens)
            logprobs.append(np.asarray(own + noise, np.float32))
        near.append(replace(group, logprobs=logprobs))
    return near


@jax.jit
def whole_row(row: jax.Array, mask: jax.Array, scaled: Any, temperature: float) -> jax.Array:
    """log softmax [T, V] of one padded row."""
    logits = tiny.pair(0, **SMALL)[1](row, mask, scaled)[0]
    return jax.nn.log_softmax(logits / temperature)


@pytest.mark.long
@pytest.mark.parametrize("shape", [SMALL, ONE_BLOCK], ids=["two-blocks", "one-block"])
def test_the_gradient_is_that_of_the_papers_equation(
    shape: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "SMALL", shape)
    config = GrpoConfig(micro_batch=3, share_prompts=shape is ONE_BLOCK)
    runner = make(config)
    learner = moved(runner.init(jax.random.key(0)))
    groups = near_the_policy(runner, learner, make_groups(), spread=0.3)
    want, want_objective = torch_gradient(learner, groups, config)
    got, objective = gradient(runner, learner, groups)
    assert objective == pytest.approx(want_objective, rel=1e-4)
    for i, layer in enumerate(want.layers):
        for name, low_rank in layer.items():
            assert largest(low_rank) > 0, (i, name)
            assert distance(got.layers[i][name], low_rank) < 1e-4, (i, name)


@pytest.mark.long
@pytest.mark.parametrize("name", grpo.SCHEDULES)
def test_the_step_is_torchs_clipping_and_adamw(name: str) -> None:
    torch = oracle("torch")
    config = GrpoConfig(
        learning_rate=0.05, schedule=grpo.SCHEDULES[name], weight_decay=0.1, max_gradient_norm=1.0
    )
    learner = make(config).init(jax.random.key(0))
    leaves, form = jax.tree.flatten(learner.adapter)
    theirs = [torch.nn.Parameter(torch.tensor(np.asarray(leaf))) for leaf in leaves]
    adamw = torch.optim.AdamW(theirs, lr=0.05, weight_decay=0.1)
    factor = {"constant": lambda step: 1.0, "inverse-sqrt": lambda step: (step + 1) ** -0.5}[name]
    schedule = torch.optim.lr_scheduler.LambdaLR(adamw, factor)
    rng = np.random.default_rng(0)
    for scale in (1.0, 1e-4, 3.0):  # the norm is above the limit, below it, and above again
        gradients = [scale * rng.normal(size=leaf.shape).astype(np.float32) for leaf in leaves]
        for parameter, values in zip(theirs, gradients, strict=True):
            parameter.grad = torch.tensor(values)
        torch.nn.utils.clip_grad_norm_(theirs, 1.0)
        adamw.step()
        schedule.step()
        tree = jax.tree.unflatten(form, [jnp.asarray(values) for values in gradients])
        learner = trainer.apply(config, learner, tree)
    assert int(learner.steps) == 3
    for leaf, parameter in zip(jax.tree.leaves(learner.adapter), theirs, strict=True):
        np.testing.assert_allclose(leaf, parameter.detach().numpy(), rtol=1e-4, atol=1e-6)


# --- one gradient, however it is computed ---------------------------------------------------------


@pytest.fixture(scope="module")
def plain() -> tuple[Learner, list[TokenGroup], Adapter, float]:
    """A gradient of five and three samples in two groups, in micro-batches of three."""
    runner = make(GrpoConfig(ratio=grpo.length_normalised))
    learner = moved(runner.init(jax.random.key(0)))
    groups = [*make_groups(1, 5), *make_groups(1, 3, seed=9)]
    return learner, groups, *gradient(runner, learner, groups)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"share_prompts": True},
        {"share_prompts": True, "micro_batch": 2},
        {"share_prompts": True, "micro_batch": 2, "ladder": FEW},
        {"micro_batch": 1},
    ],
)
def test_sharing_prompts_and_the_size_of_micro_batches_change_nothing(
    plain: tuple[Learner, list[TokenGroup], Adapter, float], changes: dict[str, Any]
) -> None:
    learner, groups, want, objective = plain
    runner = make(GrpoConfig(ratio=grpo.length_normalised, **changes))
    got, same = gradient(runner, learner, groups)
    assert same == pytest.approx(objective, rel=1e-5)
    assert distance(got, want) < 1e-5


FOUR_DEVICES = """
import jax
from tests.rl import test_trainer as t
from spo_jax.rl.updates import grpo
from spo_jax.rl.sharding import make_mesh, shard_model
from spo_jax.rl.updates.trainer import Trainer

assert len(jax.devices()) == 4
model = t.tiny.pair(0, **t.SMALL)[1]
groups = [*t.make_groups(2, 5), *t.make_groups(1, 3, seed=9)]
for share in (False, True):
    config = grpo.GrpoConfig(ratio=grpo.length_normalised, share_prompts=share, learning_rate=1e-3)
    one = Trainer(model, t.LORA, config, 512)
    learner = t.moved(one.init(jax.random.key(0)))
    want, objective = t.gradient(one, learner, groups)
    many = Trainer(shard_model(t.tiny.pair(0, **t.SMALL)[1], make_mesh(2, 2)), t.LORA, config, 512)
    spread = t.replicated(jax.device_get(learner), many.mesh)
    got, same = t.gradient(many, spread, groups)
    got = jax.device_get(got)
    assert abs(same - objective) < 1e-5 * abs(objective), (same, objective)
    assert t.distance(got, want) < 1e-5, t.distance(got, want)
    after, _ = many.update(spread, groups)
    alone, _ = one.update(learner, groups)
    change = t.distance(jax.device_get(after.adapter), alone.adapter)
    assert change < 1e-5, change
"""


@pytest.mark.slow
def test_four_devices_compute_what_one_does() -> None:
    environment = {
        **os.environ,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4 " + os.environ["XLA_FLAGS"],
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        [sys.executable, "-c", FOUR_DEVICES], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]


# --- the update -----------------------------------------------------------------------------------


@pytest.mark.long
def test_samples_that_cannot_be_used_are_counted_and_change_nothing() -> None:
    runner = make(GrpoConfig(learning_rate=1e-3))
    groups = make_groups(2, 4)
    worse = [
        TokenGroup(
            g.name,
            g.prompt,
            [*g.completions, g.completions[0], g.completions[1], g.completions[2][:0]],
            [*g.logprobs, g.logprobs[0], np.full_like(g.logprobs[1], np.nan), g.logprobs[2][:0]],
            np.array([*g.credits, np.nan, 5.0, 5.0]),
        )
        for g in groups
    ]
    want, clean = runner.update(runner.init(jax.random.key(0)), groups)
    got, metrics = runner.update(runner.init(jax.random.key(0)), worse)
    jax.tree.map(np.testing.assert_array_equal, got, want)
    assert (metrics["samples"], metrics["dropped"], metrics["groups"]) == (8, 6, 2)
    assert clean["dropped"] == 0
    assert metrics["gradient_norm"] == clean["gradient_norm"] > 0


def test_groups_or_samples_count_alike() -> None:
    """A group of two among one of four: each sample weighs a quarter and an eighth, or a sixth."""
    groups = make_groups(2, 4)
    few = np.where(np.arange(4) < 2, groups[1].credits, np.nan)
    groups[1] = replace(groups[1], credits=few)
    for config, weights in (
        (GrpoConfig(), {0: 1 / 8, 1: 1 / 4}),
        (GrpoConfig(weights="samples"), {0: 1 / 6, 1: 1 / 6}),
    ):
        found = {
            row.group: row.weight for rows in select(groups, config, 8192).samples for row in rows
        }
        assert found == pytest.approx(weights)


def test_without_an_advantage_there_is_no_step() -> None:
    runner = make(GrpoConfig())
    learner = runner.init(jax.random.key(0))
    before = jax.device_get(learner)
    equal = [replace(group, credits=np.full(4, 0.7)) for group in make_groups()]
    after, metrics = runner.update(learner, equal)
    jax.tree.map(np.testing.assert_array_equal, after, before)
    assert (metrics["samples"], metrics["gradient_norm"]) == (8, 0)
    assert np.isnan(metrics["ratio_mean"])


@pytest.mark.long
def test_a_group_without_spread_still_counts_among_the_groups() -> None:
    """eq:grpo is a mean over contexts: one that teaches nothing halves the other's gradient."""
    runner = make(GrpoConfig())
    learner = moved(runner.init(jax.random.key(0)))
    first, second = make_groups()
    half, _ = gradient(runner, learner, [first, replace(second, credits=np.ones(4))])
    whole, _ = gradient(runner, learner, [first])
    assert distance(jax.tree.map(lambda x: 2 * x, half), whole) < 1e-5


@pytest.mark.long
def test_an_infinite_objective_stops_before_the_step_and_names_the_group() -> None:
    runner = make(GrpoConfig())
    learner = runner.init(jax.random.key(0))
    before = jax.device_get(learner)
    good, bad = make_groups()
    # A sampler that found its answers impossible: the ratio of a bad one is beyond all numbers.
    bad = replace(bad, logprobs=[np.full_like(logs, -1e4) for logs in bad.logprobs])
    with pytest.raises(NotFinite, match="group-1 is not finite"):
        runner.update(learner, [good, bad])
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(learner), before)


def test_a_sample_beyond_the_context_is_refused() -> None:
    group = make_groups(1)[0]
    long = replace(group, prompt=np.zeros(500, np.int32))
    with pytest.raises(InputError, match=r"group group-0: sample 0 is \d+ tokens long"):
        make(GrpoConfig()).update(make(GrpoConfig()).init(jax.random.key(0)), [long])


def test_groups_whose_parts_differ_in_number_are_refused() -> None:
    with pytest.raises(InputError, match="group-0"):
        replace(make_groups(1)[0], credits=np.zeros(3))


@pytest.mark.long
def test_lengths_share_compiled_programs() -> None:
    """Twelve updates of as many lengths fit prompts and completions of one bucket each."""
    runner = make(GrpoConfig(micro_batch=2))
    learner = runner.init(jax.random.key(0))
    learner, _ = runner.update(learner, make_groups(1, 2))
    programs = gradients.accumulator()._cache_size(), trainer.apply._cache_size()
    for seed in range(1, 12):
        learner, _ = runner.update(learner, make_groups(1, 2, seed))
    assert (gradients.accumulator()._cache_size(), trainer.apply._cache_size()) == programs


@pytest.mark.slow
def test_the_update_that_is_prepared_is_the_one_that_runs(caplog: Any) -> None:
    runner = make(GrpoConfig(micro_batch=2, share_prompts=True, ladder=FEW, temperature=0.7))
    learner = runner.init(jax.random.key(0))
    runner.prepare(learner, 4)
    with jax.log_compiles():  # of this thread
        runner.update(learner, make_groups(3, 4))
    lines = [record.getMessage() for record in caplog.records]
    assert any(line.startswith("Compiling jit(apply)") for line in lines)
    assert not any(line.startswith("Compiling jit(_accumulate)") for line in lines)


def test_groups_that_are_padded_alike_share_a_compiled_program() -> None:
    groups = [*make_groups(1, 5), *make_groups(1, 3, seed=9)]
    for ladder, rounds in ((FINE, [2, 3]), (FEW, [3, 3]), (LARGE, [3, 3])):
        config = GrpoConfig(micro_batch=2, share_prompts=True, ladder=ladder)
        batches = [batch for batch, _ in plan(select(groups, config, 512), config)]
        assert sorted(batch.tokens.shape[0] for batch in batches) == rounds


@pytest.mark.long
def test_updates_make_what_earned_more_more_likely() -> None:
    runner = make(GrpoConfig(learning_rate=0.02, advantage=grpo.standardised))
    learner = runner.init(jax.random.key(0))
    groups = make_groups(1, 4)
    groups = [replace(groups[0], credits=np.array([1.0, 0.0, 0.0, 0.0]))]

    def likelihood(learner: Learner) -> np.ndarray:
        near = near_the_policy(runner, learner, groups, spread=0.0)
        return np.array([logs.mean() for logs in near[0].logprobs])

    before = likelihood(learner)
    for _ in range(5):
        learner, _ = runner.update(learner, near_the_policy(runner, learner, groups, spread=0.0))
    gained = likelihood(learner) - before
    assert gained[0] > 0.1
    assert (gained[1:] < gained[0] - 0.1).all()

"""Adapters against PEFT and torch autograd: logits, gradients, and folders both ways."""

import json
import re
import shutil
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny
from flax import nnx
from safetensors.numpy import load_file, save_file

from spo_jax.errors import InputError
from spo_jax.rl.lora import TARGETS, TARGETS_OF, Adapter, LoraConfig, init_adapter
from spo_jax.rl.peft import CONFIG, TENSORS, TEXT_KEYS, export_peft, import_peft
from spo_jax.rl.qwen3_5 import Qwen3_5, load_pretrained

peft = pytest.importorskip("peft")

LORA = LoraConfig(rank=4, alpha=6.0, targets=TARGETS)
PREFIX = "base_model.model.model.language_model."
TOKENS = tiny.tokens(0, 2, 70)
MASK = tiny.padded((70, 50), 70, "left")


def drawn(lora: LoraConfig, config: Any, seed: int = 0) -> Adapter:
    """An adapter with a B that is not zero."""
    rng = np.random.default_rng(seed)
    empty = init_adapter(jax.random.key(seed), lora, config)
    return jax.tree.map(lambda x: jnp.asarray(0.1 * rng.standard_normal(x.shape), x.dtype), empty)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Adapter]:
    _, ours = tiny.pair()
    adapter = drawn(LORA, ours.config)
    folder = tmp_path_factory.mktemp("exported") / "adapter"
    export_peft(adapter, LORA, ours.config, folder, base="some/base")
    return folder, adapter


@pytest.fixture
def folder(exported: tuple[Path, Adapter], tmp_path: Path) -> Path:
    """A copy of the exported folder that may be changed."""
    return Path(shutil.copytree(exported[0], tmp_path / "copy"))


def in_peft(folder: Path, trainable: bool = False, multimodal: bool = False) -> Any:
    """transformers' tiny model with the adapter of a folder, loaded by PEFT without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        return peft.PeftModel.from_pretrained(
            tiny.torch_model(multimodal=multimodal),
            folder,
            is_trainable=trainable,
            key_mapping=None if multimodal else TEXT_KEYS,
        ).eval()


def near(got: Any, want: Any, name: str = "") -> None:
    """Equal to 1e-4 of the largest number."""
    got, want = np.asarray(got), np.asarray(want)
    scale = np.abs(want).max()
    assert scale > 1e-3, name
    assert np.abs(got - want).max() < 1e-4 * scale, name


def our_logits(adapter: Adapter, lora: LoraConfig = LORA) -> np.ndarray:
    _, ours = tiny.pair()
    return tiny.logits(ours, TOKENS, MASK, adapter.scaled(lora.scale))[MASK]


@partial(jax.jit, static_argnums=0, compiler_options=tiny.QUICK)
def our_gradients(graph: Any, weights: Any, adapter: Adapter, direction: jax.Array) -> Adapter:
    model: Qwen3_5 = nnx.merge(graph, weights)

    def loss(adapter: Adapter) -> jax.Array:
        logits = model(TOKENS, MASK, adapter.scaled(LORA.scale))
        return jnp.sum(jnp.where(MASK[..., None], jax.nn.log_softmax(logits) * direction, 0.0))

    return jax.grad(loss)(adapter)


def test_logits_and_gradients_of_every_target_are_those_of_peft(
    exported: tuple[Path, Adapter],
) -> None:
    import torch

    folder, adapter = exported
    _, ours = tiny.pair()
    model = in_peft(folder, trainable=True)
    logits = model(
        torch.tensor(TOKENS).long(), attention_mask=torch.tensor(MASK).long(), use_cache=False
    ).logits
    near(our_logits(adapter), logits.detach().numpy()[MASK])
    unadapted = tiny.logits(ours, TOKENS, MASK)[MASK]
    assert np.abs(our_logits(adapter) - unadapted).mean() > 0.1

    direction = np.random.default_rng(1).standard_normal(logits.shape).astype(np.float32)
    valid = torch.tensor(MASK)[..., None]
    (torch.log_softmax(logits, -1) * torch.tensor(direction) * valid).sum().backward()
    gradients = our_gradients(*nnx.split(ours), adapter, direction)
    compared = set()
    for name, weight in model.named_parameters():
        found = re.search(r"layers\.(\d+)\.\w+\.(\w+)\.lora_([AB])\.", name)
        if found:
            layer, target, side = int(found[1]), found[2], found[3].lower()
            own = getattr(gradients.layers[layer % 4][target], side)[layer // 4]
            near(own, weight.grad.numpy(), name)
            compared.add((layer, target, side))
    assert len(compared) == (6 * 8 + 2 * 7) * 2
    assert {target for _, target, _ in compared} == set(TARGETS)


def test_a_fresh_adapter_changes_nothing() -> None:
    _, ours = tiny.pair()
    adapter = init_adapter(jax.random.key(0), LORA, ours.config)
    np.testing.assert_array_equal(our_logits(adapter), tiny.logits(ours, TOKENS, MASK)[MASK])
    assert all(np.abs(low.a).min() > 0 for layer in adapter.layers for low in layer.values())


def test_the_multimodal_class_needs_no_key_mapping(exported: tuple[Path, Adapter]) -> None:
    theirs = tiny.torch_model(multimodal=True)
    plain = tiny.torch_logits(theirs, TOKENS, MASK)[MASK]
    adapted = tiny.torch_logits(in_peft(exported[0], multimodal=True), TOKENS, MASK)[MASK]
    near(our_logits(exported[1]) if np.allclose(plain, our_plain(), atol=1e-3) else None, adapted)


def our_plain() -> np.ndarray:
    _, ours = tiny.pair()
    return tiny.logits(ours, TOKENS, MASK)[MASK]


def test_transformers_loads_an_export_by_itself(exported: tuple[Path, Adapter]) -> None:
    theirs = tiny.torch_model()
    theirs.load_adapter(str(exported[0]))
    near(our_logits(exported[1]), tiny.torch_logits(theirs, TOKENS, MASK)[MASK])

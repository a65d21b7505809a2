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
from spo_jax.rl.lora import TARGET_SETS, TARGETS, Adapter, LoraConfig, init_adapter
from spo_jax.rl.peft import CONFIG, TENSORS, TEXT_KEYS, export_peft, import_peft
from spo_jax.rl.qwen import Qwen
from tests.oracles import oracle

peft = oracle("peft")

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
    model: Qwen = nnx.merge(graph, weights)

    def loss(adapter: Adapter) -> jax.Array:
        logits = model(TOKENS, MASK, adapter.scaled(LORA.scale))
        return jnp.sum(jnp.where(MASK[..., None], jax.nn.log_softmax(logits) * direction, 0.0))

    return jax.grad(loss)(adapter)


@pytest.mark.slow
def test_logits_and_gradients_of_every_target_are_those_of_peft(
    exported: tuple[Path, Adapter],
) -> None:
    torch = oracle("torch")

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


@pytest.mark.slow
def test_a_fresh_adapter_changes_nothing() -> None:
    _, ours = tiny.pair()
    adapter = init_adapter(jax.random.key(0), LORA, ours.config)
    np.testing.assert_array_equal(our_logits(adapter), tiny.logits(ours, TOKENS, MASK)[MASK])
    assert all(np.abs(low.a).min() > 0 for layer in adapter.layers for low in layer.values())


@pytest.mark.long
def test_the_multimodal_class_needs_no_key_mapping(exported: tuple[Path, Adapter]) -> None:
    adapted = in_peft(exported[0], multimodal=True)
    near(our_logits(exported[1]), tiny.torch_logits(adapted, TOKENS, MASK)[MASK])


@pytest.mark.long
def test_transformers_loads_an_export_by_itself(exported: tuple[Path, Adapter]) -> None:
    theirs = tiny.torch_model()
    theirs.load_adapter(str(exported[0]))
    near(our_logits(exported[1]), tiny.torch_logits(theirs, TOKENS, MASK)[MASK])


def same(one: Adapter, other: Adapter) -> bool:
    leaves, others = jax.tree.leaves(one), jax.tree.leaves(other)
    return all(
        x.dtype == y.dtype and bool((x == y).all()) for x, y in zip(leaves, others, strict=True)
    )


def test_an_export_is_what_vllm_and_peft_ask_for(exported: tuple[Path, Adapter]) -> None:
    folder, adapter = exported
    tensors = load_file(folder / TENSORS)
    assert all(key.startswith(PREFIX + "layers.") for key in tensors)
    for name, want in (
        ("layers.7.self_attn.q_proj.lora_A.weight", adapter.layers[3]["q_proj"].a[1]),
        ("layers.4.linear_attn.in_proj_qkv.lora_B.weight", adapter.layers[0]["in_proj_qkv"].b[1]),
        ("layers.2.mlp.down_proj.lora_B.weight", adapter.layers[2]["down_proj"].b[0]),
    ):
        np.testing.assert_array_equal(tensors[PREFIX + name], want)
    config = peft.LoraConfig.from_pretrained(folder)
    assert (config.r, config.lora_alpha, config.lora_dropout, config.bias) == (4, 6, 0.0, "none")
    assert isinstance(config.lora_alpha, int)
    assert config.target_modules == set(TARGETS)
    assert config.base_model_name_or_path == "some/base"


def test_equal_adapters_give_equal_bytes(exported: tuple[Path, Adapter], tmp_path: Path) -> None:
    folder, adapter = exported
    config = tiny.config()
    turned = replace(LORA, targets=LORA.targets[::-1])
    layers = tuple(dict(reversed(layer.items())) for layer in adapter.layers)
    export_peft(Adapter(layers), turned, config, tmp_path / "again", base="some/base")
    for file in (CONFIG, TENSORS):
        assert (tmp_path / "again" / file).read_bytes() == (folder / file).read_bytes()


def test_export_and_import_are_inverse(exported: tuple[Path, Adapter]) -> None:
    adapter, lora = import_peft(exported[0], tiny.config())
    assert lora == LORA
    assert same(adapter, exported[1])


@pytest.mark.long
@pytest.mark.parametrize("name", TARGET_SETS)
@pytest.mark.parametrize("multimodal", [False, True])
def test_what_peft_writes_is_imported(name: str, multimodal: bool, tmp_path: Path) -> None:
    torch = oracle("torch")

    settings = peft.LoraConfig(
        r=3,
        lora_alpha=8,
        lora_dropout=0.1,
        target_modules=list(TARGET_SETS[name]),
        use_rslora=name == "mixers+mlp",
        init_lora_weights=False,
    )
    torch.manual_seed(0)
    model = peft.get_peft_model(tiny.torch_model(multimodal=multimodal), settings).eval()
    model.save_pretrained(tmp_path)
    written = load_file(tmp_path / TENSORS)
    assert all(("language_model" in key) == multimodal for key in written)
    adapter, lora = import_peft(tmp_path, tiny.config())
    assert lora.targets == tuple(each for each in TARGETS if each in TARGET_SETS[name])
    near(our_logits(adapter, lora), tiny.torch_logits(model, TOKENS, MASK)[MASK])


def edit_config(folder: Path, **changes: Any) -> None:
    values = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps({**values, **changes}))


def edit_tensors(folder: Path, edit: Callable[[dict[str, np.ndarray]], Any]) -> None:
    tensors = load_file(folder / TENSORS)
    edit(tensors)
    save_file(tensors, folder / TENSORS)


def test_the_name_of_the_default_adapter_in_keys(folder: Path, exported: Any) -> None:
    def rename(tensors: dict[str, np.ndarray]) -> None:
        for key in list(tensors):
            tensors[key.replace(".weight", ".default.weight")] = tensors.pop(key)

    edit_tensors(folder, rename)
    edit_config(folder, target_modules=r".*\.(\w+_proj\w*)")
    adapter, lora = import_peft(folder, tiny.config())
    assert lora == LORA
    assert same(adapter, exported[1])


def test_bfloat16_tensors_become_float32(folder: Path, exported: Any) -> None:
    edit_tensors(folder, lambda t: t.update({key: x.astype(jnp.bfloat16) for key, x in t.items()}))
    adapter, _ = import_peft(folder, tiny.config())
    rounded = jax.tree.map(lambda x: x.astype(jnp.bfloat16).astype(jnp.float32), exported[1])
    assert same(adapter, rounded)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"peft_type": "LOHA"}, "peft_type is 'LOHA'; only LORA is read"),
        ({"use_dora": True}, "use_dora is True, which is not supported"),
        ({"rank_pattern": {"q_proj": 8}}, "rank_pattern is {'q_proj': 8}"),
        ({"alpha_pattern": {"q_proj": 8}}, "alpha_pattern is {'q_proj': 8}"),
        ({"layers_to_transform": [0]}, r"layers_to_transform is [0]"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save is ['lm_head']"),
        ({"bias": "all"}, "bias is 'all'; only 'none' is supported"),
        (
            {"init_lora_weights": "pissa"},
            "init_lora_weights is 'pissa', which also changes the base",
        ),
        ({"target_modules": ["q_proj", "lm_head"]}, "'lm_head' is not a target"),
        ({"target_modules": []}, "an adapter needs a target"),
        ({"r": 0}, "rank of an adapter is 0"),
        ({"r": "four"}, "r is 'four' and lora_alpha 6; both must be numbers"),
        ({"lora_alpha": None}, "r is 4 and lora_alpha None"),
        ({"lora_alpha": -1}, "alpha of an adapter is -1"),
    ],
)
def test_other_adapters_are_refused(changes: dict[str, Any], message: str, folder: Path) -> None:
    edit_config(folder, **changes)
    with pytest.raises(InputError, match=re.escape(message)) as error:
        import_peft(folder, tiny.config())
    assert str(folder / CONFIG) in str(error.value)


Q_A = PREFIX + "layers.3.self_attn.q_proj.lora_A.weight"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda t: t.pop(Q_A), "1 missing (layers.3.self_attn.q_proj.lora_A.weight)"),
        (
            lambda t: t.update({"base_model.model.lm_head.lora_A.weight": t[Q_A]}),
            "1 unexpected (base_model.model.lm_head.lora_A.weight)",
        ),
        (
            lambda t: t.update({Q_A.replace("language_model.", ""): t[Q_A]}),
            "1 given twice",
        ),
        (
            lambda t: t.update({Q_A: t[Q_A][:3]}),
            f"1 of another shape or rank ({Q_A} [3, 64] instead of [4, 64])",
        ),
        (lambda t: t.update({Q_A: t[Q_A] * np.nan}), f"1 not finite ({Q_A})"),
        (lambda t: t.update({Q_A: t[Q_A].astype(np.int8)}), f"{Q_A} is I8; read are BF16"),
    ],
    ids=["missing", "unexpected", "twice", "rank", "nan", "dtype"],
)
def test_tensors_that_do_not_fit_are_refused(edit: Any, message: str, folder: Path) -> None:
    edit_tensors(folder, edit)
    with pytest.raises(InputError, match=re.escape(message)) as error:
        import_peft(folder, tiny.config())
    assert str(folder / TENSORS) in str(error.value)


def test_an_adapter_of_another_model_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match=r"of another shape or rank \(.*, \.\.\.\)"):
        import_peft(folder, tiny.config(hidden_size=32))
    with pytest.raises(InputError, match="62 missing"):
        import_peft(folder, tiny.config(num_hidden_layers=12))


@pytest.mark.parametrize("name", [CONFIG, TENSORS])
def test_missing_and_damaged_files_are_named(name: str, folder: Path) -> None:
    (folder / name).write_bytes((folder / name).read_bytes()[:-40])
    with pytest.raises(InputError, match=re.escape(name)):
        import_peft(folder, tiny.config())
    (folder / name).unlink()
    with pytest.raises(InputError, match=re.escape(f"{folder / name} is missing")):
        import_peft(folder, tiny.config())


def test_an_export_never_replaces_or_mismatches(
    exported: tuple[Path, Adapter], tmp_path: Path
) -> None:
    folder, adapter = exported
    with pytest.raises(InputError, match="exists already"):
        export_peft(adapter, LORA, tiny.config(), folder)
    with pytest.raises(InputError, match="of another shape or rank"):
        export_peft(adapter, replace(LORA, rank=5), tiny.config(), tmp_path / "new")
    with pytest.raises(InputError, match="unexpected"):
        export_peft(adapter, replace(LORA, targets=("q_proj",)), tiny.config(), tmp_path / "new")
    assert not list(tmp_path.iterdir())

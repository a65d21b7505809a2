"""Checkpoints: what is read, refused and written, and the memory that reading takes."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny
from flax import nnx
from jax.sharding import NamedSharding
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from spo_jax.errors import InputError
from spo_jax.rl.qwen import Qwen, load_pretrained, save_pretrained
from spo_jax.rl.qwen.weights import checkpoint_names
from spo_jax.rl.sharding import make_mesh
from tests.oracles import oracle

FILE, INDEX = "model.safetensors", "model.safetensors.index.json"
SMALL: dict[str, Any] = {"num_hidden_layers": 4, "vocab_size": 64}
Tensors = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A folder that transformers wrote, and its model."""
    folder = tmp_path_factory.mktemp("written")
    theirs = tiny.torch_model(**SMALL)
    theirs.save_pretrained(folder)
    return folder, theirs


@pytest.fixture
def folder(written: tuple[Path, Any], tmp_path: Path) -> Path:
    """A copy of it that may be changed."""
    for file in written[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def change(folder: Path, edit: Callable[[Tensors], Any]) -> None:
    """Rewrite the tensors of a folder after `edit` has changed them."""
    tensors = load_file(folder / FILE)
    edit(tensors)
    save_file(tensors, folder / FILE)


def shard(folder: Path) -> list[Path]:
    """Spread the tensors over three files and an index."""
    tensors = load_file(folder / FILE)
    names = sorted(tensors)
    parts = [f"part-{i}.safetensors" for i in range(3)]
    for i, part in enumerate(parts):
        save_file({name: tensors[name] for name in names[i::3]}, folder / part)
    index = {name: parts[i % 3] for i, name in enumerate(names)}
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": index}))
    (folder / FILE).unlink()
    return [folder / part for part in parts]


def same(one: Qwen, other: Qwen) -> bool:
    pairs = zip(jax.tree.leaves(nnx.state(one)), jax.tree.leaves(nnx.state(other)), strict=True)
    return all(x.dtype == y.dtype and bool((x == y).all()) for x, y in pairs)


def test_layers_are_stacked_by_their_place_in_the_block() -> None:
    theirs, ours = tiny.pair()
    layers = theirs.model.layers
    stacked = ours.block.layer3.mlp.up_proj.weight[...]
    want = [layers[i].mlp.up_proj.weight.detach().numpy() for i in (3, 7)]
    np.testing.assert_array_equal(stacked, np.stack(want))
    stacked = ours.block.layer1.linear_attn.A_log[...]
    want = [layers[i].linear_attn.A_log.detach().numpy() for i in (1, 5)]
    np.testing.assert_array_equal(stacked, np.stack(want))


@pytest.mark.long
def test_both_prefixes_and_what_is_not_text(written: tuple[Path, Any], folder: Path) -> None:
    def rename(tensors: Tensors) -> None:
        for name in list(tensors):
            assert "language_model" not in name
            tensors[name.replace("model.", "model.language_model.")] = tensors.pop(name)
        for name in ("model.visual.patch_embed.weight", "visual.merger.bias", "mtp.fc.weight"):
            tensors[name] = np.zeros(3, np.float32)

    change(folder, rename)
    assert same(load_pretrained(folder), load_pretrained(written[0]))


def test_shards(written: tuple[Path, Any], folder: Path) -> None:
    shard(folder)
    assert same(load_pretrained(folder), load_pretrained(written[0]))


def test_reading_in_pieces(written: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = load_pretrained(written[0])
    monkeypatch.setattr("spo_jax.rl.qwen.weights.PIECE", 1000)
    assert same(load_pretrained(written[0]), whole)


def test_a_tied_head_may_be_stored_again(tmp_path: Path) -> None:
    tiny.torch_model(tie_word_embeddings=True, **SMALL).save_pretrained(tmp_path)
    alone = load_pretrained(tmp_path)
    change(tmp_path, lambda t: t.update({"lm_head.weight": np.zeros((64, 64), np.float32)}))
    assert same(load_pretrained(tmp_path), alone)


@pytest.mark.parametrize("stored", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("dtype", [None, jnp.bfloat16, jnp.float32])
def test_dtypes(stored: str, dtype: Any, folder: Path) -> None:
    change(folder, lambda t: t.update({name: x.astype(stored) for name, x in t.items()}))
    model = load_pretrained(folder, dtype)
    assert model.dtype == (dtype or (jnp.float32 if stored == "float32" else jnp.bfloat16))
    mixer = model.block.layer0.linear_attn
    assert mixer.A_log[...].dtype == mixer.norm.weight[...].dtype == jnp.float32
    assert mixer.dt_bias[...].dtype == mixer.out_proj.weight[...].dtype == model.dtype
    name = "model.layers.0.linear_attn.out_proj.weight"
    want = load_file(folder / FILE)[name].astype(model.dtype)
    np.testing.assert_array_equal(mixer.out_proj.weight[...][0], want)


def test_a_mesh_gets_its_weights(written: tuple[Path, Any]) -> None:
    mesh = make_mesh()
    model = load_pretrained(written[0], mesh=mesh)
    assert model.mesh == mesh
    assert isinstance(model.embed_tokens[...].sharding, NamedSharding)
    assert same(model, load_pretrained(written[0]))


NORM = "model.norm.weight"
GATE = "model.layers.2.mlp.gate_proj.weight"
QKV = "model.layers.0.linear_attn.in_proj_qkv.weight"


def test_every_wrong_tensor_is_in_one_error(folder: Path) -> None:
    def break_four(tensors: Tensors) -> None:
        del tensors[NORM], tensors["lm_head.weight"]
        tensors[GATE] = tensors[GATE].T.copy()
        tensors["model.layers.9.mlp.gate_proj.weight"] = np.zeros((2, 2), np.float32)
        tensors[QKV] = tensors[QKV].astype(np.int8)
        tensors[GATE.replace("model.", "model.language_model.")] = tensors[GATE]

    change(folder, break_four)
    with pytest.raises(InputError) as error:
        load_pretrained(folder)
    message = str(error.value)
    for part in (
        str(folder),
        "2 missing (lm_head.weight, model.norm.weight)",
        "1 unexpected (model.layers.9.mlp.gate_proj.weight)",
        "1 given twice",
        "[64, 128] instead of [128, 64]",
        f"1 of an unsupported dtype ({QKV} I8)",
    ):
        assert part in message


def test_an_error_about_many_tensors_stays_short(folder: Path) -> None:
    change(folder, lambda t: [t.pop(name) for name in list(t) if "linear" in name])
    with pytest.raises(InputError, match=r"^.{0,1500}$") as error:
        load_pretrained(folder)
    assert "27 missing" in str(error.value)
    assert str(error.value).count("linear_attn") == 10


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1000])


def overwrite(file: Path) -> None:
    file.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")


@pytest.mark.parametrize("damage", [cut, overwrite, Path.unlink])
@pytest.mark.parametrize("sharded", [False, True])
def test_a_damaged_or_missing_file_is_named(damage: Any, sharded: bool, folder: Path) -> None:
    file = shard(folder)[1] if sharded else folder / FILE
    damage(file)
    with pytest.raises(InputError, match=re.escape(file.name)):
        load_pretrained(folder)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"weight_map": {"a": 1}}'])
def test_an_index_that_is_none(text: str, folder: Path) -> None:
    shard(folder)
    (folder / INDEX).write_text(text)
    with pytest.raises(InputError, match=re.escape(INDEX)):
        load_pretrained(folder)


def test_other_dtypes_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="float16; use bfloat16 or float32"):
        load_pretrained(folder, jnp.float16)


@pytest.mark.parametrize("tied", [False, True])
def test_transformers_loads_what_is_written(
    tied: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hf = oracle("transformers")

    theirs, ours = tiny.pair(tie_word_embeddings=tied, **SMALL)
    target = tmp_path / "target"
    save_pretrained(ours, target)
    again, report = hf.AutoModelForCausalLM.from_pretrained(target, output_loading_info=True)
    assert not any(report.values())
    assert not caplog.records
    tokens = tiny.tokens(0, 2, 20) % 64
    np.testing.assert_array_equal(
        tiny.torch_logits(again, tokens), tiny.torch_logits(theirs, tokens)
    )
    assert same(load_pretrained(target), ours)
    assert load_pretrained(target).config == ours.config


def test_bfloat16_is_written_as_it_is(written: tuple[Path, Any], tmp_path: Path) -> None:
    model = load_pretrained(written[0], jnp.bfloat16)
    save_pretrained(model, tmp_path / "target")
    assert same(load_pretrained(tmp_path / "target"), model)
    with safe_open(tmp_path / "target" / FILE, "numpy") as tensors:
        kinds = {name: tensors.get_slice(name).get_dtype() for name in tensors.keys()}  # noqa: SIM118
    exact = {name for name, kind in kinds.items() if kind == "F32"}
    ends = ("linear_attn.A_log", "linear_attn.norm.weight")
    assert exact == {name for name in kinds if name.endswith(ends)}
    assert json.loads((tmp_path / "target" / "config.json").read_text())["dtype"] == "bfloat16"


def test_others_may_read_what_the_user_lets_them(written: tuple[Path, Any], tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        save_pretrained(load_pretrained(written[0]), tmp_path / "out")
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "out").iterdir()}
    assert modes == {0o640}


def test_writing_never_leaves_half_a_folder(
    written: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_pretrained(written[0])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note").touch()
    with pytest.raises(InputError, match="full exists already"):
        save_pretrained(model, tmp_path / "full")

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("spo_jax.rl.qwen.weights.save_file", fail)
    with pytest.raises(InputError, match="no space left on device"):
        save_pretrained(model, tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
    monkeypatch.undo()
    (tmp_path / "empty").mkdir()
    save_pretrained(model, tmp_path / "empty")
    assert same(load_pretrained(tmp_path / "empty"), model)


LOAD = """
import re, sys
import jax, jax.numpy as jnp
from spo_jax.rl.qwen import load_pretrained

def status(key):
    with open("/proc/self/status") as file:
        return int(re.search(key + r":\\s+(\\d+) kB", file.read())[1]) * 1024

jnp.zeros(1).block_until_ready()
before = status("VmRSS")
model = load_pretrained(sys.argv[1])
print(status("VmHWM") - before)
"""


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_loading_takes_little_more_memory_than_the_checkpoint(tmp_path: Path) -> None:
    """On the CPU the loaded weights are host memory too, so the least is the checkpoint's size."""
    shape = {"vocab_size": 20_000, "hidden_size": 1024, "intermediate_size": 3072}
    config = tiny.config(**shape, num_hidden_layers=8)
    (tmp_path / "config.json").write_text(json.dumps(config.to_json()))
    model = nnx.eval_shape(lambda: Qwen(config, rngs=nnx.Rngs(0)))
    rng = np.random.default_rng(0)
    tensors = {}
    for path, leaf in nnx.to_flat_state(nnx.state(model)):
        names = checkpoint_names(path, config)
        for name in names:
            own = leaf.shape[1:] if len(names) > 1 else leaf.shape
            tensors[name] = rng.random(own, np.float32).astype(jnp.bfloat16)
    save_file(tensors, tmp_path / FILE)
    size = (tmp_path / FILE).stat().st_size
    assert size > 200e6
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", LOAD, str(tmp_path)]
    out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    peak = int(out.stdout)
    print(f"peak {peak / size:.3f} x {size / 1e6:.0f} MB")
    assert size < peak < 1.3 * size

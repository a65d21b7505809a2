"""GGUF files: weights, quantised ones too, and tokens against transformers."""

import json
import os
import sys
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spo_jax.errors import InputError, MissingExtra
from spo_jax.rl.policy import model_folder
from spo_jax.rl.qwen import gguf, load_pretrained
from spo_jax.rl.tokens import Tokenizer
from tests.oracles import oracle
from tests.rl import tiny

TOKENS = tiny.tokens(0, 2, 40)
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
MERGES = ["Ġ Ġ", "i n", "Ġ t", "e r", "h e", "Ġt he", "r e", "o n", "1 2", "Ċ Ċ", "d e", "de f"]
TEXTS = (
    "def f(x):\n\n    return  x ** 12  # there, in the end\r\n\t",
    "It's 12345 naïve Über-heroes; 汉字 é (e\u0301) \U0001f600\n\n\n",
    "<|im_start|>user\nthe other<|im_end|>\n",
    "",
)


def vocabulary() -> tuple[list[str], list[int]]:
    """The bytes as GPT-2 writes them, what the merges make, and two control tokens."""
    from tokenizers.pre_tokenizers import ByteLevel

    made = [merge.replace(" ", "") for merge in MERGES]
    plain = [*sorted(ByteLevel.alphabet()), *made]
    control = ["<|im_start|>", "<|im_end|>"]
    return [*plain, *control], [1] * len(plain) + [3] * len(control)


def write(path: Path, family: str = "qwen2", kind: str = "F32", **changes: Any) -> Any:
    """A GGUF file of a tiny model of transformers, which is returned.

    changes: keys of the file that differ; None leaves one out.
    """
    import gguf as library

    tokens, types = vocabulary()
    theirs = tiny.torch_model(
        model_type=family, vocab_size=288, tie_word_embeddings=changes.pop("tied", False)
    )
    config = theirs.config
    keys = {
        f"{family}.block_count": config.num_hidden_layers,
        f"{family}.context_length": config.max_position_embeddings,
        f"{family}.embedding_length": config.hidden_size,
        f"{family}.feed_forward_length": config.intermediate_size,
        f"{family}.attention.head_count": config.num_attention_heads,
        f"{family}.attention.head_count_kv": config.num_key_value_heads,
        f"{family}.rope.freq_base": 1e4,
        f"{family}.attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": MERGES,
        "tokenizer.ggml.eos_token_id": len(tokens) - 1,
        "tokenizer.chat_template": TEMPLATE,
        **({f"{family}.attention.key_length": config.head_dim} if family == "qwen3" else {}),
        **changes,
    }
    writer = library.GGUFWriter(path, family)
    for name, value in keys.items():
        if isinstance(value, list):
            writer.add_array(name, value)
        elif isinstance(value, str):
            writer.add_string(name, value)
        elif isinstance(value, float):
            writer.add_float32(name, value)
        elif value is not None:
            writer.add_uint32(name, value)
    back = {ours: name for name, ours in (gguf.OUTER | gguf.INNER).items()}
    for name, tensor in theirs.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        base, _, ending = name.rpartition(".")
        if base.startswith("model.layers."):
            _, _, layer, inner = base.split(".", 3)
            stored = f"blk.{layer}.{back[inner]}.{ending}"
        else:
            stored = f"{back[base]}.{ending}"
        array = tensor.numpy()
        quantised = library.GGMLQuantizationType[kind if array.ndim == 2 else "F32"]
        writer.add_tensor(stored, library.quants.quantize(array, quantised), raw_dtype=quantised)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return theirs


# --- weights --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "kind", "tied"),
    [("qwen2", "F32", False), ("qwen2", "Q8_0", True), ("qwen3", "F32", True),
     ("qwen3", "Q4_0", False)],
)  # fmt: skip
def test_logits_are_those_of_transformers(
    family: str, kind: str, tied: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of its model with the file's weights: quantised as the file has them, then in bfloat16."""
    torch = oracle("torch")
    import gguf as library

    monkeypatch.setattr(gguf, "SHARD", 100_000)  # several files
    theirs = write(tmp_path / "tiny.gguf", family, kind, tied=tied)
    for name, tensor in theirs.state_dict().items():
        if name == "lm_head.weight" and tied:
            continue  # the same tensor as the embedding
        if tensor.ndim == 2:
            own = library.GGMLQuantizationType[kind]
            known = library.quants.dequantize(library.quants.quantize(tensor.numpy(), own), own)
            tensor.copy_(torch.from_numpy(known.copy()))
        tensor.copy_(tensor.to(torch.bfloat16).to(torch.float32))
    gguf.convert(tmp_path / "tiny.gguf", tmp_path / "folder")
    assert len(list((tmp_path / "folder").glob("*.safetensors"))) > 1
    ours = load_pretrained(tmp_path / "folder", np.float32)
    assert ours.config.tie_word_embeddings == tied
    assert ours.config.rms_norm_eps == theirs.config.rms_norm_eps
    want = tiny.torch_logits(theirs, TOKENS)
    np.testing.assert_allclose(tiny.logits(ours, TOKENS), want, atol=1e-4, rtol=0)


# --- the tokenizer --------------------------------------------------------------------------------


def test_texts_are_tokens_as_qwens_tokenizer_has_them(tmp_path: Path) -> None:
    hf = oracle("transformers")

    write(tmp_path / "tiny.gguf")
    gguf.convert(tmp_path / "tiny.gguf", tmp_path / "folder")
    tokens, _ = vocabulary()
    theirs = hf.Qwen2Tokenizer(
        vocab={token: i for i, token in enumerate(tokens[:-2])},
        merges=[tuple(merge.split(" ")) for merge in MERGES],
    )
    theirs.add_special_tokens({"additional_special_tokens": tokens[-2:]})
    own = Tokenizer.load(tmp_path / "folder")
    assert own.stops == (len(tokens) - 1,)
    for text in TEXTS:
        ids = theirs.encode(text, add_special_tokens=False)
        names = theirs.convert_ids_to_tokens(ids)
        assert [tokens[i] for i in own.encode(text)] == names
    assert own.decode(own.encode(TEXTS[0])) == TEXTS[0]
    chat = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    assert own.prompt("hi").tolist() == own.encode(chat).tolist()


# --- the folder in the cache ----------------------------------------------------------------------


def test_a_file_is_converted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPO_CACHE", str(tmp_path / "cache"))
    write(tmp_path / "tiny.gguf")
    folder = model_folder(str(tmp_path / "tiny.gguf"))
    assert folder.parent == tmp_path / "cache/models"
    assert "once" in capsys.readouterr().err
    before = (folder / "config.json").stat().st_mtime_ns
    (tmp_path / "tiny.gguf").rename(tmp_path / "other.gguf")
    (tmp_path / "other.gguf").rename(tmp_path / "tiny.gguf")
    assert model_folder(str(tmp_path / "tiny.gguf")) == folder
    assert capsys.readouterr().err == ""
    assert (folder / "config.json").stat().st_mtime_ns == before
    write(tmp_path / "tiny.gguf", **{"tokenizer.chat_template": TEMPLATE + " "})
    assert model_folder(str(tmp_path / "tiny.gguf")) != folder


def test_two_runs_may_convert_a_file_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPO_CACHE", str(tmp_path / "cache"))
    write(tmp_path / "tiny.gguf")
    convert = gguf.convert

    def late(file: Path, folder: Path) -> None:
        convert(file, folder)  # the other run's
        convert(file, folder)

    monkeypatch.setattr(gguf, "convert", late)
    assert (gguf.folder_of(tmp_path / "tiny.gguf") / "config.json").is_file()


def test_without_the_package_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    with pytest.raises(MissingExtra, match=r"spo-jax\[gguf\]"):
        gguf.convert(tmp_path / "x.gguf", tmp_path / "folder")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"general.architecture": "llama"}, "architecture 'llama'; of GGUF files those of qwen2"),
        ({"tokenizer.ggml.pre": "llama-bpe"}, "only that of Qwen is read"),
        ({"tokenizer.chat_template": None}, "has no chat template"),
        ({"tokenizer.ggml.merges": None}, "lacks 'tokenizer.ggml.merges'"),
        ({"qwen2.rope.scaling.type": "yarn"}, "rope_type 'yarn'"),
        ({"qwen2.attention.sliding_window": 64}, "sliding_window of 64"),
    ],
)
def test_what_is_not_read_is_reported(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "tiny.gguf"
    if "general.architecture" in changes:
        write(path)
        data = path.read_bytes()
        path.write_bytes(data.replace(b"\x05\0\0\0\0\0\0\0qwen2", b"\x05\0\0\0\0\0\0\0llama", 1))
    else:
        write(path, **changes)
    with pytest.raises(InputError, match=message) as caught:
        gguf.convert(path, tmp_path / "folder")
    assert str(caught.value).startswith(str(path))
    assert not (tmp_path / "folder").exists()


def test_a_damaged_file_is_reported(tmp_path: Path) -> None:
    write(tmp_path / "tiny.gguf")
    data = (tmp_path / "tiny.gguf").read_bytes()
    for cut in (0, 3, 100, len(data) // 2, len(data) - 500):
        (tmp_path / "cut.gguf").write_bytes(data[:cut])
        with pytest.raises(InputError, match=r"cut\.gguf"):
            gguf.convert(tmp_path / "cut.gguf", tmp_path / "folder")
        assert not (tmp_path / "folder").exists()
    with pytest.raises(InputError, match=r"none\.gguf: No such file"):
        model_folder(str(tmp_path / "none.gguf"))
    assert json.dumps(list(tmp_path.iterdir()), default=str).count("folder") == 0


# --- a real model ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(
    "SPO_GGUF" not in os.environ, reason="SPO_GGUF does not name a GGUF file of a Qwen2 or Qwen3"
)
def test_a_real_file(tmp_path: Path) -> None:
    """Logits of the same folder in transformers, and tokens of its own reader of the file."""
    hf, torch = oracle("transformers"), oracle("torch")

    file = Path(os.environ["SPO_GGUF"])
    gguf.convert(file, tmp_path / "folder")
    own = Tokenizer.load(tmp_path / "folder")
    theirs = hf.AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    for text in TEXTS:
        normal = unicodedata.normalize("NFC", text)  # as Qwen's tokenizer, not this reader, does
        assert own.encode(text).tolist() == theirs.encode(normal, add_special_tokens=False)
    tokens = own.prompt("Write a function that removes the longest edges of a tour.")[None]
    model = hf.AutoModelForCausalLM.from_pretrained(tmp_path / "folder", dtype=torch.float32)
    want = tiny.torch_logits(model.eval(), tokens)
    del model
    ours = load_pretrained(tmp_path / "folder", np.float32)
    np.testing.assert_allclose(tiny.logits(ours, tokens), want, atol=1e-3, rtol=0)

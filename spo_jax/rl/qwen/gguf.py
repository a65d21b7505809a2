"""A GGUF file of a dense Qwen, as llama.cpp serves it, as a Hugging Face folder in bfloat16.

Quantised weights are computed once, in the package `gguf`, and kept in the user's cache folder. The
tokenizer and the chat template are those of the file.
"""

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

from spo_jax.cache import cache_folder
from spo_jax.errors import InputError, MissingExtra
from spo_jax.rl.qwen.config import FAMILIES, QwenConfig
from spo_jax.rl.qwen.weights import INDEX
from spo_jax.rl.tensor_files import fresh_folder, write_json

SUFFIX = ".gguf"
READ = ("qwen2", "qwen3")  # families whose tensors llama.cpp stores as transformers does
SHARD = 2 * 10**9  # bytes of a file of weights, which is held in memory
VERSION = 1  # of what is written; a folder of another one is not read
END = ("<|im_end|>", "<|endoftext|>")  # tokens that end an answer besides the file's own

# Names of tensors; llama.cpp's `blk.7.` is `model.layers.7.`
OUTER = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
INNER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}

# How Qwen's tokenizers part a text before merges, from their tokenizer.json.
PARTS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CONTROL, USER_DEFINED = 3, 4  # types of tokens that no merge makes


def folder_of(file: str | Path) -> Path:
    """The folder of a GGUF file in the cache; written at the first call, and kept.

    The folder's name has a digest of the file's content.

    Raises:
        InputError: The file is missing or damaged, is of another family, or holds a quantisation or
            a tokenizer that is not read.
        MissingExtra: The package gguf is not installed.
    """
    file = Path(file)
    try:
        state = file.stat()
        digest = _digest(file, state.st_size, state.st_mtime_ns)
    except OSError as error:
        raise InputError(f"model {file}: {error.strerror}; name a file that can be read") from None
    target = cache_folder() / "models" / f"{file.stem}-{digest}-{VERSION}"
    if not (target / "config.json").is_file():
        print(f"Reading {file} into {target}, once", file=sys.stderr)
        try:
            convert(file, target)
        except InputError:
            if not (target / "config.json").is_file():  # else another run was first
                raise
    return target


@lru_cache
def _digest(file: Path, size: int, changed: int) -> str:
    """Of the content. A run asks for its model's folder several times, and a file has gigabytes.

    size, changed: of the file now, so that another content is read again.
    """
    with open(file, "rb") as opened:
        found = hashlib.file_digest(opened, lambda: hashlib.blake2b(digest_size=8))
    return found.hexdigest()


def convert(file: str | Path, folder: str | Path) -> None:
    """Write the folder of a GGUF file, whole or not at all.

    Args:
        file: The GGUF file.
        folder: A new folder.

    Raises:
        InputError: As `folder_of`, or the folder exists or cannot be written.
        MissingExtra: As `folder_of`.
    """
    try:
        from gguf import GGUFReader
    except ImportError:
        raise MissingExtra("gguf", "gguf") from None
    try:
        reader = GGUFReader(file)
        # The largest are the lists of tokens and merges.
        values = {name: field.contents() for name, field in reader.fields.items()}
        tensors = reader.tensors
    except Exception as error:  # the library has no exceptions of its own
        raise InputError(f"{file} cannot be read as a GGUF file: {error}") from None
    try:
        with fresh_folder(folder) as fresh:
            _write(fresh, values, tensors)
    except KeyError as error:
        raise InputError(f"{file} lacks {error.args[0]!r}; it is no whole model") from None
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


def _write(folder: Path, values: Mapping[str, Any], tensors: Any) -> None:
    """The files of a folder, of what the GGUF file holds; weights last, as they take longest."""
    write_json(folder / "config.json", _config(values, {each.name: each for each in tensors}))
    try:
        QwenConfig.from_json(folder)
    except InputError as error:  # it begins with the path of this folder
        raise InputError(str(error).removeprefix(f"{folder / 'config.json'}: ")) from None
    _tokenizer(values).save(str(folder / "tokenizer.json"))
    settings, stops = _settings(values)
    write_json(folder / "tokenizer_config.json", settings)
    write_json(folder / "generation_config.json", {"eos_token_id": stops})
    _write_weights(folder, tensors)


def _config(values: Mapping[str, Any], tensors: Mapping[str, Any]) -> dict[str, Any]:
    """config.json."""
    family = values["general.architecture"]
    if family not in READ:
        raise InputError(
            f"it holds a model of the architecture {family!r}; of GGUF files those of "
            f"{' and '.join(READ)} are read"
        )

    def of(name: str) -> Any:
        return values[f"{family}.{name}"]

    heads, width = int(of("attention.head_count")), int(of("embedding_length"))
    rope = values.get(f"{family}.rope.scaling.type", "none")
    return {
        "architectures": [FAMILIES[family].architecture],
        "model_type": family,
        "dtype": "bfloat16",
        "vocab_size": int(tensors["token_embd.weight"].shape[1]),
        "hidden_size": width,
        "intermediate_size": int(of("feed_forward_length")),
        "num_hidden_layers": int(of("block_count")),
        "num_attention_heads": heads,
        "num_key_value_heads": int(of("attention.head_count_kv")),
        "head_dim": int(values.get(f"{family}.attention.key_length", width // heads)),
        "max_position_embeddings": int(of("context_length")),
        # Stored in float32: the shortest number that is the same there, as 1e-06.
        "rms_norm_eps": float(str(np.float32(of("attention.layer_norm_rms_epsilon")))),
        "rope_theta": float(of("rope.freq_base")),
        "rope_scaling": None if rope == "none" else {"rope_type": rope},
        "use_sliding_window": f"{family}.attention.sliding_window" in values,
        "sliding_window": values.get(f"{family}.attention.sliding_window"),
        "hidden_act": "silu",
        # Where a file has a head of its own, often at a higher precision, llama.cpp uses that.
        "tie_word_embeddings": "output.weight" not in tensors,
    }


def _tokenizer(values: Mapping[str, Any]) -> Any:
    """The tokenizer, of the library tokenizers."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
    from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split

    kind = (values["tokenizer.ggml.model"], values.get("tokenizer.ggml.pre"))
    if kind != ("gpt2", "qwen2"):
        raise InputError(f"its tokenizer is of the kind {kind}; only that of Qwen is read")
    tokens, types = values["tokenizer.ggml.tokens"], values["tokenizer.ggml.token_type"]
    merges = [tuple(merge.split(" ")) for merge in values["tokenizer.ggml.merges"]]
    found = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    found.normalizer = normalizers.NFC()
    found.pre_tokenizer = Sequence(
        [
            Split(Regex(PARTS), behavior="isolated"),
            ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    found.decoder = decoders.ByteLevel()
    added = [
        (token, kind)
        for token, kind in zip(tokens, types, strict=True)
        if kind in (CONTROL, USER_DEFINED)
    ]
    found.add_tokens(
        [AddedToken(token, special=kind == CONTROL, normalized=False) for token, kind in added]
    )
    return found


def _settings(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[int]]:
    """tokenizer_config.json, and the tokens that end an answer."""
    tokens = values["tokenizer.ggml.tokens"]
    settings: dict[str, Any] = {}
    for name, key in (("eos", "eos"), ("bos", "bos"), ("pad", "padding")):
        number = values.get(f"tokenizer.ggml.{key}_token_id")
        if number is not None:
            settings[f"{name}_token"] = tokens[number]
    if "tokenizer.chat_template" not in values:
        raise InputError("it has no chat template: use an instruction-tuned model")
    settings["chat_template"] = values["tokenizer.chat_template"]
    ends = [settings.get("eos_token"), *END]
    return settings, [i for i, token in enumerate(tokens) if token in ends]


def _write_weights(folder: Path, tensors: Any) -> None:
    """Safetensors files of at most about `SHARD` bytes, and their index."""
    shard: dict[str, np.ndarray] = {}
    placed: dict[str, str] = {}

    def flush() -> None:
        if shard:
            name = f"model-{len(set(placed.values())) + 1:05}.safetensors"
            save_file(shard, folder / name, metadata={"format": "pt"})
            placed.update(dict.fromkeys(shard, name))
            shard.clear()

    size = 0
    for name, array in _arrays(tensors):
        if size + array.nbytes > SHARD:
            flush()
            size = 0
        shard[name], size = array, size + array.nbytes
    flush()
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": placed}), "utf-8")


def _arrays(tensors: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Each tensor in bfloat16, by the name that transformers gives it."""
    from gguf.quants import dequantize

    for each in tensors:
        try:
            array = dequantize(each.data, each.tensor_type)
        except NotImplementedError:
            raise InputError(
                f"the tensor {each.name} is quantised as {each.tensor_type.name}, which the "
                "package gguf cannot compute; take a file of Q4_K_M, Q8_0 or F16, for example"
            ) from None
        yield _name(each.name), np.ascontiguousarray(array.astype(ml_dtypes.bfloat16))


def _name(name: str) -> str:
    base, _, kind = name.rpartition(".")
    if base in OUTER:
        return f"{OUTER[base]}.{kind}"
    layer, _, inner = base.removeprefix("blk.").partition(".")
    if base.startswith("blk.") and layer.isdecimal() and inner in INNER:
        return f"model.layers.{layer}.{INNER[inner]}.{kind}"
    raise InputError(f"the tensor {name} is none of a dense Qwen")

"""config.json: read as transformers reads it, written so that transformers reads it, refused."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import tiny

from spo_jax.errors import InputError
from spo_jax.rl.qwen import QwenConfig, named_config
from spo_jax.rl.qwen.config import FULL, LINEAR, SIZES
from tests.oracles import oracle

TEXT = {"model_type": "qwen3_5_text", **tiny.SHAPE}
OPTIONAL = {"tie_word_embeddings", "max_position_embeddings"}
THE_SAME_NAME = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "linear_num_key_heads",
    "linear_num_value_heads",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "linear_conv_kernel_dim",
    "rms_norm_eps",
    "max_position_embeddings",
    "tie_word_embeddings",
)


def read(folder: Path, values: Any) -> QwenConfig:
    (folder / "config.json").write_text(values if isinstance(values, str) else json.dumps(values))
    return QwenConfig.from_json(folder)


def agree(ours: QwenConfig, theirs: Any) -> None:
    for name in THE_SAME_NAME:
        assert getattr(ours, name) == getattr(theirs, name), name
    assert list(ours.layer_types) == theirs.layer_types
    assert ours.rope_theta == theirs.rope_parameters["rope_theta"]
    assert ours.rotary_dim == ours.head_dim * theirs.rope_parameters["partial_rotary_factor"]


@pytest.mark.parametrize("multimodal", [False, True])
def test_what_transformers_writes(multimodal: bool, tmp_path: Path) -> None:
    """Every number differs from transformers' default, so none can be guessed."""
    hf = oracle("transformers")

    values = {
        **tiny.SHAPE,
        "linear_conv_kernel_dim": 3,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True,
        "layer_types": [FULL, LINEAR] * 4,
        "rope_parameters": {
            **tiny.SHAPE["rope_parameters"],
            "rope_theta": 5e5,
            "partial_rotary_factor": 0.5,
        },
    }
    theirs = hf.Qwen3_5TextConfig(**values)
    whole = theirs
    if multimodal:
        both = {"text_config": values, "vision_config": tiny.VISION}
        whole = hf.Qwen3_5Config(**both, tie_word_embeddings=True)
    whole.save_pretrained(tmp_path)
    agree(QwenConfig.from_json(tmp_path), theirs)


@pytest.mark.parametrize("size", SIZES)
def test_what_is_written_is_what_transformers_reads(size: str, tmp_path: Path) -> None:
    hf = oracle("transformers")

    config = named_config(size)
    assert read(tmp_path, config.to_json()) == config
    assert config.to_json()["mamba_ssm_dtype"] == "float32"
    theirs = hf.AutoConfig.from_pretrained(tmp_path)
    assert isinstance(theirs, hf.Qwen3_5TextConfig)
    agree(config, theirs)
    assert sum(theirs.rope_parameters["mrope_section"]) == config.rotary_dim // 2


def test_the_9b_shape_is_the_default_of_transformers() -> None:
    hf = oracle("transformers")

    ours, theirs = named_config("9B"), hf.Qwen3_5TextConfig()
    for name in set(THE_SAME_NAME) - {"max_position_embeddings"}:
        assert getattr(ours, name) == getattr(theirs, name), name
    assert list(ours.layer_types) == theirs.layer_types


def test_layers_without_a_list_of_types(tmp_path: Path) -> None:
    values = {**TEXT, "num_hidden_layers": 6}
    assert read(tmp_path, values).layer_types == (LINEAR, LINEAR, LINEAR, FULL, LINEAR, LINEAR)
    values["full_attention_interval"] = 2
    assert read(tmp_path, values).layer_types == (LINEAR, FULL) * 3


def test_rope_of_older_files(tmp_path: Path) -> None:
    values = {name: value for name, value in TEXT.items() if name != "rope_parameters"}
    older = read(tmp_path, {**values, "rope_theta": 1e6, "partial_rotary_factor": 0.5})
    assert (older.rope_theta, older.rotary_dim) == (1e6, 16)


@pytest.mark.parametrize(
    ("types", "block", "repeats"),
    [
        ((LINEAR, LINEAR, LINEAR, FULL) * 8, 4, 8),
        ((LINEAR,) * 5, 1, 5),
        ((LINEAR, FULL, LINEAR, FULL, LINEAR, FULL), 2, 3),
        ((LINEAR, FULL, FULL, LINEAR), 4, 1),
        ((LINEAR, LINEAR, FULL, LINEAR, LINEAR), 5, 1),
    ],
)
def test_the_block_is_the_shortest_that_repeats(
    types: tuple[str, ...], block: int, repeats: int
) -> None:
    config = tiny.config(layer_types=types, num_hidden_layers=len(types))
    assert config.block == types[:block]
    assert (config.num_layers, config.repeats) == (len(types), repeats)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "llama"}, "model_type is 'llama'; only dense Qwen2, Qwen3 and Qwen3.5"),
        ({"model_type": ["qwen3"]}, "model_type is ['qwen3']"),
        ({"model_type": "qwen3_5_moe"}, "model_type is 'qwen3_5_moe'"),
        ({"num_hidden_layers": 0}, "layer_types is empty"),
        ({"num_hidden_layers": "8"}, "a value of the wrong type"),
        ({"layer_types": [LINEAR]}, "layer_types has 1 entries for 8 layers"),
        ({"layer_types": ["mamba"] * 8}, "layer_types holds 'mamba'"),
        ({"layer_types": 8}, "a value of the wrong type"),
        ({"full_attention_interval": 0}, "a value of the wrong type"),
        ({"hidden_size": 64.5}, "hidden_size is 64.5; it must be a positive integer"),
        ({"vocab_size": -1}, "vocab_size is -1; it must be a positive integer"),
        ({"head_dim": None}, "a value of the wrong type"),
        ({"head_dim": 20}, "rotary_dim is 5; it must be even"),
        ({"num_key_value_heads": 3}, "num_attention_heads is 4; it must be a multiple of"),
        ({"linear_num_key_heads": 3}, "linear_num_value_heads is 4; it must be a multiple of"),
        ({"rms_norm_eps": 0}, "rms_norm_eps is 0; it must be a positive number"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings is 'no'; it must be true or false"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'; only 'silu' is supported"),
        ({"attention_bias": True}, "attention_bias is True; only False is supported"),
        ({"attn_output_gate": False}, "attn_output_gate is False; only True is supported"),
        ({"rope_parameters": None}, "lacks 'rope_theta'"),
        ({"rope_parameters": {"rope_theta": "big"}}, "rope_theta is 'big'; it must be a positive"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "rope_parameters has rope_type 'yarn'; only"),
        ({"rope_scaling": {"type": "linear"}}, "rope_scaling has rope_type 'linear'; only"),
        ({"rope_parameters": [1e7]}, "a value of the wrong type"),
        ({"text_config": [1]}, "text_config is not a JSON object"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as error:
        read(tmp_path, {**TEXT, **changes})
    assert str(tmp_path / "config.json") in str(error.value)


@pytest.mark.parametrize("name", sorted(TEXT.keys() - OPTIONAL))
def test_a_missing_number_is_never_guessed(name: str, tmp_path: Path) -> None:
    values = {key: value for key, value in TEXT.items() if key != name}
    wanted = {"rope_parameters": "rope_theta", "model_type": "model_type"}.get(name, name)
    with pytest.raises(InputError, match=wanted):
        read(tmp_path, values)


@pytest.mark.parametrize("text", ["{", "[]", "null", ""])
def test_files_that_are_no_config(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape(str(tmp_path / "config.json"))):
        read(tmp_path, text)


def test_a_folder_without_a_config(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no config\.json; give a Hugging Face folder"):
        QwenConfig.from_json(tmp_path)
    with pytest.raises(InputError, match="unknown model size '8B'"):
        named_config("8B")

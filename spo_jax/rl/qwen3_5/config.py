"""The shape of a Qwen3.5 text model, read from a Hugging Face config.json."""

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

from spo_jax.errors import InputError

LINEAR, FULL = "linear_attention", "full_attention"
MODEL_TYPES = ("qwen3_5_text", "qwen3_5")  # a text model, and a multimodal one's outer config


@dataclass(frozen=True)
class Qwen3_5Config:
    """Names and meanings as in transformers' Qwen3_5TextConfig.

    layer_types: the mixer of each layer. rotary_dim: leading dimensions of a head that RoPE
    rotates. Raises InputError for inconsistent values.
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    layer_types: tuple[str, ...]
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    linear_num_key_heads: int
    linear_num_value_heads: int
    linear_key_head_dim: int
    linear_value_head_dim: int
    linear_conv_kernel_dim: int = 4
    rotary_dim: int = 64
    rope_theta: float = 1e7
    rms_norm_eps: float = 1e-6
    max_position_embeddings: int = 262_144
    tie_word_embeddings: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type is int and (type(value) is not int or value < 1):
                raise InputError(f"{field.name} is {value!r}; it must be a positive integer")
            if field.type is float and not (type(value) in (int, float) and 0 < value < math.inf):
                raise InputError(f"{field.name} is {value!r}; it must be a positive number")
            if field.type is bool and type(value) is not bool:
                raise InputError(f"{field.name} is {value!r}; it must be true or false")
        if not self.layer_types:
            raise InputError("layer_types is empty; a model needs at least one layer")
        unknown = sorted(set(self.layer_types) - {LINEAR, FULL})
        if unknown:
            raise InputError(f"layer_types holds {unknown[0]!r}; known are {LINEAR} and {FULL}")
        for many, few in (
            ("num_attention_heads", "num_key_value_heads"),
            ("linear_num_value_heads", "linear_num_key_heads"),
        ):
            if getattr(self, many) % getattr(self, few):
                raise InputError(
                    f"{many} is {getattr(self, many)}; it must be a multiple of {few} "
                    f"({getattr(self, few)})"
                )
        if self.rotary_dim % 2 or self.rotary_dim > self.head_dim:
            raise InputError(
                f"rotary_dim is {self.rotary_dim}; it must be even and at most head_dim "
                f"({self.head_dim})"
            )

    @property
    def num_layers(self) -> int:
        return len(self.layer_types)

    @property
    def block(self) -> tuple[str, ...]:
        """The shortest repeated sequence of mixers: three linear and one full in 9B."""
        types = self.layer_types
        for length in range(1, len(types) + 1):
            if len(types) % length == 0 and types == types[:length] * (len(types) // length):
                return types[:length]
        raise AssertionError("a sequence repeats itself once")

    @property
    def repeats(self) -> int:
        """How often `block` occurs: the length of the scan over the layers."""
        return self.num_layers // len(self.block)

    @property
    def key_dim(self) -> int:
        return self.linear_num_key_heads * self.linear_key_head_dim

    @property
    def value_dim(self) -> int:
        return self.linear_num_value_heads * self.linear_value_head_dim

    @property
    def conv_dim(self) -> int:
        """Channels of a delta net's convolution: queries, keys and values side by side."""
        return 2 * self.key_dim + self.value_dim

    @classmethod
    def from_json(cls, folder: str | Path) -> "Qwen3_5Config":
        """The config of a Hugging Face folder, of a multimodal model its text part.

        Raises InputError for a missing or unreadable file, another architecture, or an unsupported
        feature of the architecture.
        """
        path = Path(folder) / "config.json"
        try:
            values = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            raise InputError(f"{folder} has no config.json; give a Hugging Face folder") from None
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read as JSON: {error}") from None
        if not isinstance(values, dict) or values.get("model_type") not in MODEL_TYPES:
            kind = values.get("model_type") if isinstance(values, dict) else None
            raise InputError(f"{path}: model_type is {kind!r}; only dense Qwen3.5 models are read")
        text = values.get("text_config", values)
        if not isinstance(text, dict):
            raise InputError(f"{path}: text_config is not a JSON object")
        tied = values.get("tie_word_embeddings", text.get("tie_word_embeddings", False))
        try:
            return cls._from_text({**text, "tie_word_embeddings": tied})
        except KeyError as error:
            raise InputError(f"{path} lacks {error.args[0]!r}") from None
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        except (ArithmeticError, TypeError, ValueError) as error:
            raise InputError(f"{path} has a value of the wrong type: {error}") from None

    @classmethod
    def _from_text(cls, text: Mapping[str, Any]) -> "Qwen3_5Config":
        for name, lawful in (
            ("hidden_act", "silu"), ("attention_bias", False), ("attn_output_gate", True)
        ):  # fmt: skip
            if text.get(name, lawful) != lawful:
                raise InputError(f"{name} is {text[name]!r}; only {lawful!r} is supported")
        rope = {**text, **(text.get("rope_scaling") or {}), **(text.get("rope_parameters") or {})}
        kind = rope.get("rope_type", rope.get("type", "default"))
        if kind != "default":
            raise InputError(f"rope_type is {kind!r}; only 'default' is supported")
        layers, every = text["num_hidden_layers"], text.get("full_attention_interval", 4)
        types = text.get("layer_types") or [
            LINEAR if (i + 1) % every else FULL for i in range(layers)
        ]
        if len(types) != layers:
            raise InputError(f"layer_types has {len(types)} entries for {layers} layers")
        named = {f.name for f in fields(cls)} - {"layer_types", "rotary_dim", "rope_theta"}
        required = {f.name for f in fields(cls) if f.default is MISSING}
        return cls(
            layer_types=tuple(types),
            rotary_dim=int(text["head_dim"] * rope.get("partial_rotary_factor", 0.25)),
            rope_theta=rope["rope_theta"],
            **{name: text[name] for name in named if name in required or name in text},
        )

    def to_json(self) -> dict[str, Any]:
        """The config.json of a text model, in transformers' format."""
        values = asdict(self)
        theta = values.pop("rope_theta")
        factor = values.pop("rotary_dim") / self.head_dim
        sections = _mrope_sections(self.rotary_dim // 2)
        return {
            **values,
            "model_type": "qwen3_5_text",
            "architectures": ["Qwen3_5ForCausalLM"],
            "num_hidden_layers": self.num_layers,
            "layer_types": list(self.layer_types),
            "hidden_act": "silu",
            "attention_bias": False,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": theta,
                "partial_rotary_factor": factor,
                "mrope_section": sections,
                "mrope_interleaved": True,
            },
        }


def _mrope_sections(half: int) -> list[int]:
    """The split of rotary pairs into time, height and width; no effect on text."""
    side = half // 3
    return [half - 2 * side, side, side]


def named_config(size: str) -> Qwen3_5Config:
    """The published dense sizes, for benchmarks on random weights.

    Raises InputError for an unknown name.
    """
    if size not in SIZES:
        raise InputError(f"unknown model size {size!r} (known: {', '.join(SIZES)})")
    width, hidden, layers, heads, kv_heads, key_heads, value_heads, tied = SIZES[size]
    return Qwen3_5Config(
        vocab_size=248_320,
        hidden_size=width,
        intermediate_size=hidden,
        layer_types=tuple(FULL if (i + 1) % 4 == 0 else LINEAR for i in range(layers)),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=256,
        linear_num_key_heads=key_heads,
        linear_num_value_heads=value_heads,
        linear_key_head_dim=128,
        linear_value_head_dim=128,
        tie_word_embeddings=tied,
    )


# Width, MLP width, layers, heads, key-value heads, linear key and value heads, tied embeddings.
SIZES = {
    "0.8B": (1024, 3584, 24, 8, 2, 16, 16, True),
    "4B": (2560, 9216, 32, 16, 4, 16, 32, True),
    "9B": (4096, 12288, 32, 16, 4, 16, 32, False),
    "27B": (5120, 17408, 64, 24, 4, 16, 48, False),
}

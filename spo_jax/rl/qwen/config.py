"""The shape of a dense Qwen text model and its family, read from a Hugging Face config.json."""

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

from spo_jax.errors import InputError

LINEAR, FULL = "linear_attention", "full_attention"
SLIDING = "sliding_attention"  # refused
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")


@dataclass(frozen=True)
class Family:
    """What the models of a family compute besides their sizes: the only differences between them.

    architecture: transformers' class of the text model. prefix: of the tensors of its layers.
    mixers: the kinds of its layers. gated: whether q_proj also yields a gate of each head's output.
    qk_norm: whether queries and keys are normalised. norm_offset: RMSNorm's factor is this plus its
    weight. biases: projections with a bias where attention_bias is true. rotary: share of a head
    that RoPE rotates. fixed: supported values of settings that have others; an absent setting has
    this value. required: settings that need not be there in other families.
    """

    architecture: str
    prefix: str
    mixers: tuple[str, ...]
    gated: bool
    qk_norm: bool
    norm_offset: float
    biases: tuple[str, ...]
    rotary: float
    fixed: tuple[tuple[str, Any], ...]
    required: tuple[str, ...]


LINEAR_SIZES = (
    "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim"
)  # fmt: skip
FAMILIES = {
    "qwen2": Family(
        architecture="Qwen2ForCausalLM",
        prefix="model.",
        mixers=(FULL,),
        gated=False,
        qk_norm=False,
        norm_offset=0.0,
        biases=ATTENTION[:3],
        rotary=1.0,
        fixed=(("hidden_act", "silu"), ("attention_bias", True), ("partial_rotary_factor", 1.0)),
        required=("max_position_embeddings",),
    ),
    "qwen3": Family(
        architecture="Qwen3ForCausalLM",
        prefix="model.",
        mixers=(FULL,),
        gated=False,
        qk_norm=True,
        norm_offset=0.0,
        biases=ATTENTION,
        rotary=1.0,
        fixed=(("hidden_act", "silu"), ("partial_rotary_factor", 1.0)),
        required=("max_position_embeddings", "head_dim"),
    ),
    "qwen3_5_text": Family(
        architecture="Qwen3_5ForCausalLM",
        prefix="model.language_model.",
        mixers=(LINEAR, FULL),
        gated=True,
        qk_norm=True,
        norm_offset=1.0,
        biases=(),
        rotary=0.25,
        fixed=(("hidden_act", "silu"), ("attention_bias", False), ("attn_output_gate", True)),
        required=(*LINEAR_SIZES, "head_dim"),
    ),
}
"""By the model_type of a text model's config.json."""
MULTIMODAL = {"qwen3_5": "qwen3_5_text"}  # outer model_type, and that of the text model


@dataclass(frozen=True)
class QwenConfig:
    """Names and meanings as in transformers' Qwen3_5TextConfig, Qwen3Config and Qwen2Config.

    layer_types: the mixer of each layer. linear_*: 0 in a model without delta nets. rotary_dim:
    leading dimensions of a head that RoPE rotates. model_type: a name of `FAMILIES`.
    Raises InputError for inconsistent values.
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    layer_types: tuple[str, ...]
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    linear_num_key_heads: int = 0
    linear_num_value_heads: int = 0
    linear_key_head_dim: int = 0
    linear_value_head_dim: int = 0
    linear_conv_kernel_dim: int = 4
    rotary_dim: int = 64
    rope_theta: float = 1e7
    rms_norm_eps: float = 1e-6
    max_position_embeddings: int = 262_144
    tie_word_embeddings: bool = False
    attention_bias: bool = False
    model_type: str = "qwen3_5_text"

    def __post_init__(self) -> None:
        if not self.layer_types:
            raise InputError("layer_types is empty; a model needs at least one layer")
        known = self.family.mixers
        unknown = sorted(set(self.layer_types) - set(known))
        if unknown:
            names = " and ".join(known)
            raise InputError(f"layer_types holds {unknown[0]!r}; supported: {names}")
        linear = LINEAR in self.layer_types
        for field in fields(self):
            if field.name in LINEAR_SIZES and not linear:
                continue
            value = getattr(self, field.name)
            if field.type is int and (type(value) is not int or value < 1):
                raise InputError(f"{field.name} is {value!r}; it must be a positive integer")
            if field.type is float and not (type(value) in (int, float) and 0 < value < math.inf):
                raise InputError(f"{field.name} is {value!r}; it must be a positive number")
            if field.type is bool and type(value) is not bool:
                raise InputError(f"{field.name} is {value!r}; it must be true or false")
        for many, few in (
            ("num_attention_heads", "num_key_value_heads"),
            *([("linear_num_value_heads", "linear_num_key_heads")] if linear else ()),
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
    def family(self) -> Family:
        return FAMILIES[self.model_type]

    @property
    def biases(self) -> tuple[str, ...]:
        """The projections with a bias."""
        return self.family.biases if self.attention_bias else ()

    @property
    def query_dim(self) -> int:
        """Outputs of q_proj: a query per head, and a gate in a gated family."""
        return (1 + self.family.gated) * self.num_attention_heads * self.head_dim

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
    def from_json(cls, folder: str | Path) -> "QwenConfig":
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
        kind = values.get("model_type") if isinstance(values, dict) else None
        kind = MULTIMODAL.get(kind, kind) if isinstance(kind, str) else kind
        if not isinstance(kind, str) or kind not in FAMILIES:
            raise InputError(
                f"{path}: model_type is {kind!r}; only dense Qwen2, Qwen3 and Qwen3.5 models are "
                "read (qwen2, qwen3, qwen3_5)"
            )
        text = values.get("text_config", values)
        if not isinstance(text, dict):
            raise InputError(f"{path}: text_config is not a JSON object")
        tied = values.get("tie_word_embeddings", text.get("tie_word_embeddings", False))
        try:
            return cls._from_text({**text, "tie_word_embeddings": tied, "model_type": kind})
        except KeyError as error:
            raise InputError(f"{path} lacks {error.args[0]!r}") from None
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        except (ArithmeticError, TypeError, ValueError) as error:
            raise InputError(f"{path} has a value of the wrong type: {error}") from None

    @classmethod
    def _from_text(cls, text: Mapping[str, Any]) -> "QwenConfig":
        family = FAMILIES[text["model_type"]]
        rope = dict(text)
        for name in ("rope_scaling", "rope_parameters"):
            own = dict(text.get(name) or {})
            kind = own.get("rope_type", own.get("type", "default"))
            if kind != "default":
                raise InputError(f"{name} has rope_type {kind!r}; only 'default' is supported")
            rope |= own
        for name, lawful in family.fixed:
            if rope.get(name, lawful) != lawful:
                raise InputError(f"{name} is {rope[name]!r}; only {lawful!r} is supported")
        values = {**dict(family.fixed), **text}
        if "head_dim" not in family.required and values.get("head_dim") is None:
            values["head_dim"] = text["hidden_size"] // text["num_attention_heads"]
        named = {f.name for f in fields(cls)} - {"layer_types", "rotary_dim", "rope_theta"}
        required = {f.name for f in fields(cls) if f.default is MISSING} | set(family.required)
        return cls(
            layer_types=_layer_types(text, family),
            rotary_dim=int(values["head_dim"] * rope.get("partial_rotary_factor", family.rotary)),
            rope_theta=rope["rope_theta"],
            **{name: values[name] for name in named if name in required or name in values},
        )

    def to_json(self) -> dict[str, Any]:
        """The config.json of a text model, in transformers' format."""
        values = asdict(self)
        rope = {"rope_type": "default", "rope_theta": values.pop("rope_theta")}
        rotary = values.pop("rotary_dim")
        if LINEAR in self.family.mixers:
            rope |= {
                "partial_rotary_factor": rotary / self.head_dim,
                "mrope_section": _mrope_sections(rotary // 2),
                "mrope_interleaved": True,
            }
            values["mamba_ssm_dtype"] = "float32"  # of states, as here; vLLM asks for it
        else:
            values = {name: x for name, x in values.items() if not name.startswith("linear_")}
        return {
            **values,
            "architectures": [self.family.architecture],
            "num_hidden_layers": self.num_layers,
            "layer_types": list(self.layer_types),
            "hidden_act": "silu",
            "rope_parameters": rope,
        }


def _layer_types(text: Mapping[str, Any], family: Family) -> tuple[str, ...]:
    """The mixer of each layer: listed, or by the rule of the family.

    Raises InputError for a sliding window.
    """
    layers, types = text["num_hidden_layers"], text.get("layer_types")
    window, every = text.get("sliding_window"), text.get("full_attention_interval", 4)
    if not types and LINEAR in family.mixers:
        types = [LINEAR if (i + 1) % every else FULL for i in range(layers)]
    elif not types:
        slides = text.get("use_sliding_window") and window is not None
        first = text.get("max_window_layers", 0) if slides else layers
        types = [FULL if i < first else SLIDING for i in range(layers)]
    if len(types) != layers:
        raise InputError(f"layer_types has {len(types)} entries for {layers} layers")
    if SLIDING in types:
        raise InputError(
            f"{list(types).count(SLIDING)} of {layers} layers attend within a sliding_window of "
            f"{window} tokens (use_sliding_window); only full attention is supported"
        )
    return tuple(types)


def _mrope_sections(half: int) -> list[int]:
    """The split of rotary pairs into time, height and width; no effect on text."""
    side = half // 3
    return [half - 2 * side, side, side]


def named_config(size: str) -> QwenConfig:
    """The published dense sizes, for benchmarks on random weights.

    Raises InputError for an unknown name.
    """
    if size not in SIZES:
        raise InputError(f"unknown model size {size!r} (known: {', '.join(SIZES)})")
    width, hidden, layers, heads, kv_heads, key_heads, value_heads, tied = SIZES[size]
    return QwenConfig(
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

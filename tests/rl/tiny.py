"""Tiny Qwen models, in transformers and loaded into ours, whose every weight matters.

transformers starts norms at zero or one and matrices so small that a wrong sublayer would hardly
show. Here logits are of order one and so is what each sublayer does to them.
"""

import json
import tempfile
import zlib
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import nnx

from spo_jax.rl.qwen import Qwen, QwenConfig, load_pretrained
from tests.oracles import oracle

SIZES: dict[str, Any] = {
    "vocab_size": 256,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
}
SHAPE: dict[str, Any] = {
    **SIZES,
    "num_hidden_layers": 8,
    "head_dim": 32,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 1e7,
        "partial_rotary_factor": 0.25,
        "mrope_section": [2, 1, 1],
        "mrope_interleaved": True,
    },
}
"""Two blocks of three delta nets and one full attention."""

ROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}}
QWEN3_5 = "qwen3_5_text"
SHAPES: dict[str, dict[str, Any]] = {
    "qwen2": {**SIZES, **ROPE, "num_hidden_layers": 3},
    "qwen3": {**SIZES, **ROPE, "num_hidden_layers": 3, "head_dim": 32},
    QWEN3_5: SHAPE,
}
"""By model_type. A head of the qwen2 has 64 / 4 dimensions, of the others twice as many."""

CLASSES = {
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config"),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config"),
    QWEN3_5: ("Qwen3_5ForCausalLM", "Qwen3_5TextConfig"),
}
"""transformers' classes of model and config."""

VISION = {
    "depth": 1,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_heads": 2,
    "out_hidden_size": 64,
}


def config(model_type: str = QWEN3_5, **changes: Any) -> QwenConfig:
    """Our config of a family's shape, some entries changed; without torch and transformers."""
    with tempfile.TemporaryDirectory() as folder:
        values = {"model_type": model_type, **SHAPES[model_type], **changes}
        Path(folder, "config.json").write_text(json.dumps(values))
        return QwenConfig.from_json(folder)


def torch_model(
    seed: int = 0, multimodal: bool = False, model_type: str = QWEN3_5, **changes: Any
) -> Any:
    """transformers' model for text in float32, a fresh one.

    multimodal: Qwen3_5ForConditionalGeneration with the same text model in it.
    """
    hf = oracle("transformers")

    values = {name: list(v) if isinstance(v, tuple) else v for name, v in changes.items()}
    if multimodal:
        tied = {"tie_word_embeddings": values.get("tie_word_embeddings", False)}
        both = {"text_config": {**SHAPE, **values}, "vision_config": VISION}
        model = hf.Qwen3_5ForConditionalGeneration(hf.Qwen3_5Config(**both, **tied))
    else:
        model_class, config_class = (getattr(hf, name) for name in CLASSES[model_type])
        model = model_class(config_class(**SHAPES[model_type] | values))
    randomise(model, seed)
    return model.eval()


def randomise(model: Any, seed: int) -> None:
    """Norms, biases and time steps around their initial values, memories that fade over 1 to 100
    tokens, matrices and convolutions that keep the size of what passes through them.

    A delta net's output norm may blow up rounding errors of a head that is nearly silent. So what
    a layer adds is kept below the embedding that it is added to.
    """
    torch = oracle("torch")

    torch.set_num_threads(1)
    for name, weight in model.named_parameters():
        key = zlib.crc32(f"{seed} {name.replace('language_model.', '')}".encode())
        noise = torch.randn(weight.shape, generator=torch.Generator().manual_seed(key))
        if name.endswith("A_log"):
            weight.data = 1.5 * noise - 2.5
        elif weight.ndim == 1:
            weight.data += 0.3 * noise
        else:
            gains = {"out_proj": 0.3, "down_proj": 0.3, "embed_tokens": 3.0}
            gain = next((gains[part] for part in gains if part in name), 0.7)
            weight.data = gain * noise * weight.shape[-1] ** -0.5


@cache
def pair(seed: int = 0, **changes: Any) -> tuple[Any, Qwen]:
    """The same weights in transformers and in ours; shared, so change neither.

    A changed entry must be hashable: give layer_types as a tuple.
    """
    theirs = torch_model(seed, **changes)
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        return theirs, load_pretrained(folder)


def tokens(seed: int, rows: int, length: int) -> np.ndarray:
    """[rows, length] int32."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, SHAPE["vocab_size"], (rows, length), dtype=np.int32)


def padded(lengths: tuple[int, ...], total: int, side: str) -> np.ndarray:
    """A mask [rows, total] bool with padding on the "left" or the "right"."""
    place = np.arange(total)[None, :] < np.asarray(lengths)[:, None]
    return place[:, ::-1].copy() if side == "left" else place


def torch_logits(model: Any, tokens: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """transformers' logits [B, T, V] in float32."""
    torch = oracle("torch")

    valid = None if mask is None else torch.tensor(mask).long()
    with torch.no_grad():
        out = model(torch.tensor(tokens).long(), attention_mask=valid, use_cache=False)
    return out.logits.float().numpy()


# Compiling is what takes time here, and half of it goes into code that is run once.
QUICK = {"xla_backend_optimization_level": 0}


def logits(model: Qwen, tokens: np.ndarray, mask: Any = None, adapter: Any = None) -> np.ndarray:
    """Our logits [B, T, V], without padding where no mask is given."""
    mask = np.ones(tokens.shape, bool) if mask is None else mask
    graph, weights = nnx.split(model)
    return np.asarray(_logits(graph, weights, tokens, mask, adapter))


@partial(jax.jit, static_argnums=0, compiler_options=QUICK)
def _logits(graph: Any, weights: Any, tokens: Any, mask: Any, adapter: Any) -> jax.Array:
    return nnx.merge(graph, weights)(tokens, mask, adapter)

"""Adapters as PEFT folders: written for vLLM and PEFT, and read back.

Keys of a Qwen3.5 contain `language_model.`: vLLM needs it to find the layers in its class for
published checkpoints. transformers' multimodal class has the same names. Its text class lacks this
level: `model.load_adapter(folder)` removes it, but `PeftModel.from_pretrained` needs
key_mapping=TEXT_KEYS; without it PEFT warns and leaves the adapter at its random initial values.
Other families have one class and no such level. Equal adapters give equal bytes.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import save_file

from spo_jax.errors import InputError
from spo_jax.rl.lora import MLP, TARGETS, Adapter, LoraConfig, present, shapes
from spo_jax.rl.qwen.config import ATTENTION, QwenConfig
from spo_jax.rl.qwen.layers import LowRank
from spo_jax.rl.tensor_files import FLOATS, fresh_folder, opened, read_json, refuse, write_json

CONFIG, TENSORS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."  # before the name of a layer in the checkpoint
TEXT_KEYS = {r"^model\.language_model\.": "model."}
READ = re.compile(
    r"base_model\.model\.model\.(?:language_model\.)?"
    r"(layers\.\d+\.\w+\.(\w+)\.lora_[AB]\.)(?:default\.)?weight"
)
# Settings that change an adapter's effect and are not implemented here.
UNSUPPORTED = (
    "alora_invocation_tokens",
    "alpha_pattern",
    "arrow_config",
    "fan_in_fan_out",
    "kasa_config",
    "layer_replication",
    "layers_to_transform",
    "lora_bias",
    "modules_to_save",
    "monteclora_config",
    "rank_pattern",
    "target_parameters",
    "trainable_token_indices",
    "use_bdlora",
    "use_dora",
    "use_qalora",
    "velora_config",
)
# Other initialisations of an adapter also change the base.
PLAIN_STARTS = (None, True, False, "gaussian", "eva", "orthogonal")


def export_peft(
    adapter: Adapter, lora: LoraConfig, config: QwenConfig, folder: str | Path, base: str = ""
) -> None:
    """Write adapter_config.json and adapter_model.safetensors, atomically.

    base: the name or path of the base model, for information only.
    Raises InputError if the folder exists and is not empty, or the adapter has another shape than
    `lora` and `config` say.
    """
    tensors, prefix = {}, PREFIX + config.family.prefix
    for position, layer in enumerate(adapter.layers):
        for target, low_rank in layer.items():
            for side, stack in (("A", low_rank.a), ("B", low_rank.b)):
                for repeat, value in enumerate(np.asarray(jax.device_get(stack), np.float32)):
                    name = _name(repeat * len(config.block) + position, target, side)
                    tensors[prefix + name] = np.ascontiguousarray(value)
    _check(
        "the exported adapter does not fit its rank, its targets or the model",
        [(key, key.removeprefix(prefix), value.shape) for key, value in tensors.items()],
        dict(_expected(lora, config)),
    )
    values = {
        "base_model_name_or_path": base,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "init_lora_weights": True,
        "lora_alpha": int(lora.alpha) if lora.alpha == int(lora.alpha) else lora.alpha,
        "lora_dropout": 0.0,
        "modules_to_save": None,
        "peft_type": "LORA",
        "r": lora.rank,
        "target_modules": present(lora, config),
        "task_type": "CAUSAL_LM",
        "use_dora": False,
        "use_rslora": False,
    }
    with fresh_folder(folder) as fresh:
        write_json(fresh / CONFIG, values)
        save_file(tensors, fresh / TENSORS, metadata={"format": "pt"})


def import_peft(folder: str | Path, config: QwenConfig) -> tuple[Adapter, LoraConfig]:
    """The adapter in a folder that PEFT or `export_peft` wrote, in float32.

    Keys may lack `language_model.`, and may contain the name of PEFT's default adapter. Dropout is
    ignored; rank-stabilised scaling becomes an equivalent alpha.
    Raises InputError for missing or damaged files, an adapter of another kind, and tensors that are
    missing, unexpected, of another shape or rank or not finite; one error lists all tensors.
    """
    folder = Path(folder)
    values = read_json(folder / CONFIG)
    tensors = _read(folder / TENSORS)
    matches = {key: READ.fullmatch(key) for key in tensors}
    try:
        lora = _lora_config(values, [match[2] for match in matches.values() if match])
    except InputError as error:
        raise InputError(f"{folder / CONFIG}: {error}") from None

    names = {key: match[1] + "weight" if match else key for key, match in matches.items()}
    _check(
        f"{folder / TENSORS} does not fit its {CONFIG} or the model",
        [(key, names[key], value.shape) for key, value in tensors.items()],
        dict(_expected(lora, config)),
        [key for key, value in tensors.items() if not np.isfinite(value).all()],
    )
    by_name = {names[key]: value for key, value in tensors.items()}
    size = len(config.block)

    def stack(position: int, target: str, side: str) -> jax.Array:
        layers = range(position, config.num_layers, size)
        return jnp.asarray(np.stack([by_name[_name(i, target, side)] for i in layers]))

    layers = [
        {
            target: LowRank(stack(position, target, "A"), stack(position, target, "B"))
            for target in shapes(config, kind)
            if target in lora.targets
        }
        for position, kind in enumerate(config.block)
    ]
    return Adapter(tuple(layers)), lora


def _name(layer: int, target: str, side: str) -> str:
    part = "self_attn" if target in ATTENTION else "mlp" if target in MLP else "linear_attn"
    return f"layers.{layer}.{part}.{target}.lora_{side}.weight"


def _expected(lora: LoraConfig, config: QwenConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names below the prefix and shapes of an adapter's tensors."""
    for layer, kind in enumerate(config.layer_types):
        for target, (out, inputs) in shapes(config, kind).items():
            if target in lora.targets:
                yield _name(layer, target, "A"), (lora.rank, inputs)
                yield _name(layer, target, "B"), (out, lora.rank)


def _check(
    where: str,
    found: Sequence[tuple[str, str, tuple[int, ...]]],
    wanted: Mapping[str, tuple[int, ...]],
    infinite: Sequence[str] = (),
) -> None:
    """found: keys in the file, their names below the prefix and their shapes."""
    names = [name for _, name, _ in found]
    refuse(
        where,
        {
            "missing": [name for name in wanted if name not in set(names)],
            "unexpected": [key for key, name, _ in found if name not in wanted],
            "given twice": [key for i, (key, name, _) in enumerate(found) if name in names[:i]],
            "of another shape or rank": [
                f"{key} {list(shape)} instead of {list(wanted[name])}"
                for key, name, shape in found
                if name in wanted and shape != wanted[name]
            ],
            "not finite": infinite,
        },
    )


def _read(file: Path) -> dict[str, np.ndarray]:
    tensors = {}
    with opened(file) as stored:
        for key in stored.keys():  # noqa: SIM118  (not a mapping)
            dtype = stored.get_slice(key).get_dtype()
            if dtype not in FLOATS:
                raise InputError(f"{file}: {key} is {dtype}; read are {', '.join(FLOATS)}")
            tensors[key] = stored.get_tensor(key).astype(np.float32)
    return tensors


def _lora_config(values: Mapping[str, Any], found: Iterable[str]) -> LoraConfig:
    """found: targets of the tensors, for a config with a pattern of targets."""
    kind = values.get("peft_type")
    if kind != "LORA":
        raise InputError(f"peft_type is {kind!r}; only LORA is read")
    for name in UNSUPPORTED:
        if values.get(name):
            raise InputError(f"{name} is {values[name]!r}, which is not supported")
    if values.get("bias", "none") != "none":
        raise InputError(f"bias is {values['bias']!r}; only 'none' is supported")
    start = values.get("init_lora_weights")
    if start not in PLAIN_STARTS:
        raise InputError(f"init_lora_weights is {start!r}, which also changes the base")
    rank, alpha = values.get("r"), values.get("lora_alpha")
    if type(rank) is not int or isinstance(alpha, bool) or not isinstance(alpha, int | float):
        raise InputError(f"r is {rank!r} and lora_alpha {alpha!r}; both must be numbers")
    listed = values.get("target_modules")
    named = [str(name).split(".")[-1] for name in listed] if isinstance(listed, list) else found
    order = {name: i for i, name in enumerate(TARGETS)}
    targets = sorted(set(named), key=lambda name: (order.get(name, len(TARGETS)), name))
    if values.get("use_rslora"):
        alpha *= max(rank, 0) ** 0.5  # alpha / sqrt(r) = alpha sqrt(r) / r
    return LoraConfig(rank, float(alpha), tuple(targets))

"""Reads and writes checkpoints of transformers.

Reading streams: it assembles one parameter at a time from pieces of the files and moves it to the
device, the largest first, with little other memory. No weight is random.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.sharding import Mesh
from safetensors.numpy import save_file

from spo_jax.errors import InputError
from spo_jax.rl.qwen.config import QwenConfig
from spo_jax.rl.qwen.model import Qwen
from spo_jax.rl.sharding import weight_sharding
from spo_jax.rl.tensor_files import FLOATS, fresh_folder, opened, read_json, refuse, write_json

# Our parameters and their names in a checkpoint. A layer is a repeat of the block and a position in
# it. Qwen3.5's checkpoints, multimodal or of a text model, have its family's prefix for `PREFIX`.
NAMES = (
    (r"embed_tokens", "model.embed_tokens.weight"),
    (r"norm\.weight", "model.norm.weight"),
    (r"lm_head", "lm_head.weight"),
    (r"block\.layer(?P<place>\d+)\.(?P<rest>.+)", "model.layers.{layer}.{rest}"),
)
PREFIX = "model."
SKIPPED = ("model.visual.", "visual.", "mtp.")  # vision and multi-token prediction
SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
PIECE = 64 * 2**20  # bytes per read


@dataclass(frozen=True)
class _Stored:
    """A tensor's location: file, name there, shape and safetensors' dtype."""

    file: Path
    name: str
    shape: tuple[int, ...]
    dtype: str


def load_pretrained(folder: str | Path, dtype: Any = None, mesh: Mesh | None = None) -> Qwen:
    """The model of a Hugging Face folder: a text model, or the text part of a multimodal one.

    dtype: jnp.bfloat16 or jnp.float32, or None for that of the checkpoint's embedding; A_log and
    the delta net's norm are always float32. mesh: devices for the weights.
    Raises InputError for another architecture, missing or damaged files, and tensors that are
    missing, unexpected, of another shape or quantised; one error lists all tensors.
    """
    folder = Path(folder)
    config = QwenConfig.from_json(folder)
    stored = _find_tensors(folder, config.family.prefix)
    dtype = _chosen_dtype(stored, dtype)
    model = nnx.eval_shape(lambda: Qwen(config, dtype=dtype, rngs=nnx.Rngs(0)))
    graph, abstract = nnx.split(model)
    flat = nnx.to_flat_state(abstract)
    names = [checkpoint_names(path, config) for path, _ in flat]
    wanted = {
        name: leaf.shape[1:] if _is_stacked(path) else leaf.shape
        for (path, leaf), several in zip(flat, names, strict=True)
        for name in several
    }
    _check(folder, stored, wanted)

    leaves: list[Any] = [None] * len(flat)
    for i in sorted(range(len(flat)), key=lambda i: -flat[i][1].size):
        path, leaf = flat[i]
        sources = [stored[name][0] for name in names[i]]
        array = _assemble(sources, leaf.shape, leaf.dtype, _is_stacked(path))
        leaves[i] = leaf.replace(_to_device(array, mesh, _is_stacked(path)))
        del array
    filled = nnx.from_flat_state((path, leaf) for (path, _), leaf in zip(flat, leaves, strict=True))
    model = nnx.merge(graph, filled)
    model.mesh = mesh
    return model


def save_pretrained(model: Qwen, folder: str | Path) -> None:
    """Write a folder for transformers and `load_pretrained`, atomically.

    Raises InputError if the folder exists and is not empty.
    """
    tensors = {}
    for path, leaf in nnx.to_flat_state(nnx.state(model)):
        for repeat, name in enumerate(checkpoint_names(path, model.config)):
            index = repeat if _is_stacked(path) else ...
            value = np.asarray(jax.device_get(leaf[...][index]))
            if name.startswith(PREFIX):
                name = model.config.family.prefix + name.removeprefix(PREFIX)
            tensors[name] = np.ascontiguousarray(value)
    with fresh_folder(folder) as fresh:
        write_json(fresh / "config.json", {**model.config.to_json(), "dtype": model.dtype.name})
        save_file(tensors, fresh / SINGLE, metadata={"format": "pt"})


def checkpoint_names(path: Sequence[Any], config: QwenConfig) -> list[str]:
    """The names, with `PREFIX` for that of the family, of the tensors that a parameter stacks."""
    ours = ".".join(map(str, path))
    for pattern, name in NAMES:
        match = re.fullmatch(pattern, ours)
        if match and "place" in match.groupdict():
            place, size = int(match["place"]), len(config.block)
            layers = range(place, config.num_layers, size)
            return [name.format(layer=layer, rest=match["rest"]) for layer in layers]
        if match:
            return [name]
    raise AssertionError(f"{ours} has no name in a checkpoint")


def _is_stacked(path: Sequence[Any]) -> bool:
    return path[0] == "block"


def _find_tensors(folder: Path, prefix: str) -> dict[str, list[_Stored]]:
    """All tensors of the files, without vision and multi-token prediction."""
    stored: dict[str, list[_Stored]] = {}
    for file in _files(folder):
        with opened(file) as tensors:
            for name in tensors.keys():  # noqa: SIM118  (not a mapping)
                if name.startswith(SKIPPED):
                    continue
                view = tensors.get_slice(name)
                own = _Stored(file, name, tuple(view.get_shape()), view.get_dtype())
                if name.startswith(prefix):
                    name = PREFIX + name.removeprefix(prefix)
                stored.setdefault(name, []).append(own)
    return stored


def _files(folder: Path) -> list[Path]:
    if (folder / SINGLE).exists():
        return [folder / SINGLE]
    if not (folder / INDEX).exists():
        raise InputError(f"{folder} has neither {SINGLE} nor {INDEX}")
    weight_map = read_json(folder / INDEX).get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(f, str) for f in weight_map.values()):
        raise InputError(f"{folder / INDEX} has no weight_map of tensors to files")
    return [folder / file for file in sorted(set(weight_map.values()))]


def _chosen_dtype(stored: Mapping[str, list[_Stored]], dtype: Any) -> jnp.dtype:
    """Default: bfloat16 unless the embedding is float32; float16 could overflow."""
    if dtype is None:
        embedding = stored.get("model.embed_tokens.weight")
        dtype = jnp.float32 if embedding and embedding[0].dtype == "F32" else jnp.bfloat16
    dtype = jnp.dtype(dtype)
    if dtype not in (jnp.bfloat16, jnp.float32):
        raise InputError(f"a model cannot be loaded as {dtype.name}; use bfloat16 or float32")
    return dtype


def _check(
    folder: Path,
    stored: Mapping[str, list[_Stored]],
    wanted: Mapping[str, tuple[int, ...]],
) -> None:
    """Raise one InputError about all tensors that do not fit."""
    found = [(name, own) for name, several in stored.items() for own in several]
    problems = {
        "missing": [name for name in wanted if name not in stored],
        "unexpected": [
            own.name for name, own in found if name not in wanted and name != "lm_head.weight"
        ],
        "given twice": [own.name for several in stored.values() for own in several[1:]],
        "of another shape": [
            f"{own.name} {list(own.shape)} instead of {list(wanted[name])}"
            for name, own in found
            if name in wanted and own.shape != wanted[name]
        ],
        "of an unsupported dtype": [
            f"{own.name} {own.dtype}"
            for name, own in found
            if name in wanted and own.dtype not in FLOATS
        ],
    }
    refuse(f"the tensors in {folder} are not those of its config.json", problems)


def _assemble(
    sources: Sequence[_Stored], shape: tuple[int, ...], dtype: np.dtype, stacked: bool
) -> np.ndarray:
    """The tensors in one array, read in pieces.

    An open file stays mapped, and its read pages count as memory of the process, so each piece
    opens the file again.
    """
    out = np.empty(shape, dtype)
    for own, place in zip(sources, out if stacked else out[None], strict=True):
        rows = max(1, PIECE * len(place) // max(1, place.nbytes))
        for start in range(0, len(place), rows):
            end = min(start + rows, len(place))
            with opened(own.file) as tensors:
                place[start:end] = tensors.get_slice(own.name)[start:end]
    return out


def _to_device(array: np.ndarray, mesh: Mesh | None, stacked: bool) -> jax.Array:
    if mesh is None:
        moved = jax.device_put(array)
    else:
        sharding = weight_sharding(array.shape, mesh, stacked)
        moved = jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])
    return jax.block_until_ready(moved)  # else host copies accumulate

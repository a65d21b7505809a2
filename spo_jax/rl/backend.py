"""JAX as a run wants it: compiled programs are kept on the disk, and devices have a name."""

import os
from collections import Counter
from pathlib import Path

import jax


def keep_compiled(folder: str | Path) -> str:
    """Keep compiled programs in `folder` from now on, and take what is there instead of compiling.

    A folder that JAX was given by other means stays (JAX_COMPILATION_CACHE_DIR), and so does its
    choice to keep none (JAX_ENABLE_COMPILATION_CACHE=false). Returns a sentence where nothing can
    be kept, else an empty text.
    """
    known = jax.config.values
    if known["jax_compilation_cache_dir"] or not known["jax_enable_compilation_cache"]:
        return ""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError("no permission to write")
    except OSError as error:
        why = error.strerror or error
        return f"Compiled programs are not kept, so every start compiles: {folder} ({why})"
    jax.config.update("jax_compilation_cache_dir", str(folder))
    # A sampler's many small programs take longer together than its few large ones.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return ""


def share_devices(in_turns: bool) -> None:
    """Leave room on a card for another process: take what is needed and not most of it at once.

    in_turns: also give back what is freed, which is slower. Cards are numbered as nvidia-smi does,
    for us and for whom we start. Call it before anything looks at a device. What the environment
    says already, stays.
    """
    wanted = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    if in_turns:
        wanted["XLA_PYTHON_CLIENT_ALLOCATOR"] = "platform"
    for name, value in wanted.items():
        os.environ.setdefault(name, value)


def devices() -> str:
    """Such as "2 x NVIDIA H100 80GB HBM3"."""
    kinds = Counter(device.device_kind for device in jax.devices())
    return ", ".join(f"{count} x {kind}" for kind, count in kinds.items())

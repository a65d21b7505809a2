"""JAX as a run wants it: compiled programs are kept on the disk, and devices have a name."""

import os
from collections import Counter
from pathlib import Path

import jax

SAME_BITS = "--xla_gpu_deterministic_ops=true"


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


def ask_same_bits() -> None:
    """Ask for GPU programs that give the same bits whenever they are run or compiled: no sums in
    the order in which threads come, no kernels chosen by timing.

    Call it before anything looks at a device; XLA reads its flags once, and the last one counts.
    """
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {SAME_BITS}".strip()


def repeats() -> str:
    """How well this backend does again what it did: "bit for bit" or "to rounding"."""
    asked = SAME_BITS in os.environ.get("XLA_FLAGS", "").split()
    return "to rounding" if jax.default_backend() == "gpu" and not asked else "bit for bit"


def devices() -> str:
    """Such as "2 x NVIDIA H100 80GB HBM3"."""
    kinds = Counter(device.device_kind for device in jax.devices())
    return ", ".join(f"{count} x {kind}" for kind, count in kinds.items())

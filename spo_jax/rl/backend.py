"""JAX settings of a run: a cache of compiled programs, and names of devices."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import jax

SAME_BITS = "--xla_gpu_deterministic_ops=true"
# For large programs of small operations on a CPU: two thirds of the time to compile, as fast.
QUICK = {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 1}


def keep_compiled(folder: str | Path) -> str:
    """Cache compiled programs in `folder` from now on.

    A folder set by JAX_COMPILATION_CACHE_DIR, or no cache by JAX_ENABLE_COMPILATION_CACHE=false,
    has priority. Returns a sentence if the cache is not writable, else "".
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
        return f"Compiled programs are not cached, so every start compiles: {folder} ({why})"
    jax.config.update("jax_compilation_cache_dir", str(folder))
    # A sampler's many small programs together take longer than its few large ones.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return ""


def quick_options() -> dict[str, Any]:
    """The options in `QUICK` where they hold: on a CPU, if XLA knows them and XLA_FLAGS does not
    set them.
    """
    if jax.default_backend() != "cpu":
        return {}
    flags = os.environ.get("XLA_FLAGS", "")
    options = {name: value for name, value in QUICK.items() if name not in flags}
    try:
        jax.jit(lambda x: x, compiler_options=options).lower(0.0).compile()
    except jax.errors.JaxRuntimeError:  # another version of XLA
        return {}
    return options


def share_devices(in_turns: bool) -> None:
    """Leave room on a card for another process: disable JAX's preallocation.

    in_turns: also release freed memory, which is slower. Cards have nvidia-smi's numbers, also in
    child processes. Call it before any use of a device. Variables that are already set keep their
    values.
    """
    wanted = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    if in_turns:
        wanted["XLA_PYTHON_CLIENT_ALLOCATOR"] = "platform"
    for name, value in wanted.items():
        os.environ.setdefault(name, value)


def ask_same_bits() -> None:
    """Make GPU programs reproducible: no sums in thread order, no kernels chosen by timing.

    Call it before any use of a device; XLA reads its flags once, and the last one counts.
    """
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {SAME_BITS}".strip()


def repeats() -> str:
    """The reproducibility of this backend: "bit for bit" or "to rounding"."""
    asked = SAME_BITS in os.environ.get("XLA_FLAGS", "").split()
    return "to rounding" if jax.default_backend() == "gpu" and not asked else "bit for bit"


def devices() -> str:
    """For example "2 x NVIDIA H100 80GB HBM3"."""
    kinds = Counter(device.device_kind for device in jax.devices())
    return ", ".join(f"{count} x {kind}" for kind, count in kinds.items())

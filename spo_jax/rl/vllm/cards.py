"""Memory use of the trainer's card, by nvidia-smi: JAX's numbers omit a server on the same card,
and JAX has none if it releases freed memory.
"""

import os
import subprocess
import threading
import time

import jax
import jax.numpy as jnp
import jaxlib

from spo_jax.errors import InputError

EVERY = 1.0  # seconds between two queries of a card
TRIAL = 2**30  # bytes that are allocated and freed to test whether JAX releases them
LOOKS = 5  # queries after the release, since a driver may be slow


def card() -> str | None:
    """nvidia-smi's name of the card with the trainer's base; None on a CPU."""
    if jax.default_backend() == "cpu":
        return None
    number = jax.local_devices()[0].local_hardware_id or 0
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return visible.split(",")[number].strip() if visible else str(number)


def used(name: str) -> float | None:
    """Bytes that all processes together use on a card; None if unknown."""
    query = ["nvidia-smi", "-i", name, "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        result = subprocess.run(query, capture_output=True, text=True, check=True, timeout=10)
        return float(result.stdout) * 2**20
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def check_given_back() -> None:
    """Raises InputError if JAX keeps freed memory of its card, so that no server could use it.

    Call it before any allocation on the card: JAX could serve the trial from memory it holds.
    """
    name = card()
    if name is None:
        return
    jnp.zeros(1).block_until_ready()  # allocates what a process needs once
    before = used(name)
    trial = jnp.zeros(TRIAL, jnp.uint8).block_until_ready()
    taken = used(name)
    trial.delete()
    if before is None or taken is None or taken - before < TRIAL / 2:
        return  # the trial is not visible
    for _ in range(LOOKS):
        if taken - (used(name) or 0.0) > TRIAL / 2:
            return
        time.sleep(EVERY)
    raise InputError(
        f"jaxlib {jaxlib.__version__} keeps freed memory on card {name}, so that server and "
        "trainer cannot take turns there: use a version that releases it with "
        "XLA_PYTHON_CLIENT_ALLOCATOR=platform (0.10.1 and 0.10.2 do not), or two cards and "
        "residency both"
    )


class Peak:
    """A context that records in `most` the peak of bytes used on the trainer's card; None if
    unknown.
    """

    def __init__(self) -> None:
        self.most: float | None = None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> "Peak":
        if (name := card()) is not None:
            self._thread = threading.Thread(target=self._look, args=(name,), daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _look(self, name: str) -> None:
        while (now := used(name)) is not None:
            self.most = max(now, self.most or 0.0)
            if self._over.wait(EVERY):
                return

"""What is used on the trainer's card, by nvidia-smi: JAX's own numbers leave out a server that is
there too, and there are none where memory is given back when it is freed.
"""

import os
import subprocess
import threading
import time

import jax
import jax.numpy as jnp
import jaxlib

from spo_jax.errors import InputError

EVERY = 1.0  # seconds between two looks at a card
TRIAL = 2**30  # bytes that are taken and freed to see whether they are given back
LOOKS = 5  # for them, since a driver may take its time


def card() -> str | None:
    """The card with the trainer's base, as nvidia-smi calls it; None where it is on none."""
    if jax.default_backend() == "cpu":
        return None
    number = jax.local_devices()[0].local_hardware_id or 0
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return visible.split(",")[number].strip() if visible else str(number)


def used(name: str) -> float | None:
    """Bytes that all processes together use on a card; None where that cannot be known."""
    query = ["nvidia-smi", "-i", name, "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(query, capture_output=True, text=True, check=True, timeout=10)
        return float(said.stdout) * 2**20
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def check_given_back() -> None:
    """Raises InputError where JAX keeps what is freed on its card, so that no server could have it.

    Call it before anything is on the card: what JAX has already, it could take the trial from.
    """
    name = card()
    if name is None:
        return
    jnp.zeros(1).block_until_ready()  # what a process takes once
    before = used(name)
    trial = jnp.zeros(TRIAL, jnp.uint8).block_until_ready()
    taken = used(name)
    trial.delete()
    if before is None or taken is None or taken - before < TRIAL / 2:
        return  # it cannot be seen
    for _ in range(LOOKS):
        if taken - (used(name) or 0.0) > TRIAL / 2:
            return
        time.sleep(EVERY)
    raise InputError(
        f"jaxlib {jaxlib.__version__} keeps what it has freed on card {name}, so that server and "
        "trainer cannot take turns there: use a version that gives it back with "
        "XLA_PYTHON_CLIENT_ALLOCATOR=platform, which 0.10.1 and 0.10.2 do not, or two cards and "
        "residency both"
    )


class Peak:
    """While it is entered, the most bytes in `most` that looks at the trainer's card see used on
    it; None where nothing can be seen.
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

"""Every random stream has a name, and its seed is a hash of that name.

No seed depends on the clock, on hash order or on the order in which workers finish, so a stream is
the same on every use.
"""

import hashlib
import random

import numpy as np


def derive(*name: int | str | bytes) -> int:
    """Derive the seed of a random stream from its name: derive(seed, "round", 3).

    Args:
        *name: The parts of the name; 3 and "3" differ.

    Returns:
        64 bits, as an integer of at least 0.
    """
    digest = hashlib.blake2b(digest_size=8)
    for part in name:
        raw = part if isinstance(part, bytes) else repr(part).encode()
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return int.from_bytes(digest.digest(), "little")


def numpy_rng(*name: int | str | bytes) -> np.random.Generator:
    """A NumPy generator for the stream called `name`; see `derive`."""
    return np.random.Generator(np.random.PCG64(derive(*name)))


def python_rng(*name: int | str | bytes) -> random.Random:
    """A standard-library generator for the stream called `name`; see `derive`."""
    return random.Random(derive(*name))

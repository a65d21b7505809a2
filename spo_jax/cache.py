"""Where what takes long to compute is kept from one command to the next."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """The folder of references, compiled programs and converted models.

    Returns:
        $SPO_CACHE, else spo-jax in the user's cache folder.
    """
    if named := os.environ.get("SPO_CACHE"):
        return Path(named)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home) / "spo-jax"

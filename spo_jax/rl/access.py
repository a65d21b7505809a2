"""How a server is reached: its address, its key, and what it says with the key struck out.

A run keeps addresses and shows what servers say, so neither may hold a secret. Keys come from the
environment, each time one is wanted, and are no attribute of anything.
"""

import os
from urllib.parse import urlsplit

from spo_jax.errors import InputError

ENDPOINT_KEYS = ("SPO_API_KEY", "OPENAI_API_KEY")  # environment variables, the first that is set
VLLM_KEYS = ("VLLM_API_KEY",)  # which vLLM itself reads, as the key that it asks for
LONGEST = 300  # characters that are shown of what a server says


def address(url: str, setting: str, names: tuple[str, ...]) -> str:
    """`url` without a slash at its end. names: of the variables where a key belongs.

    Raises InputError for what is no address, and for one that should not be kept.
    """
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        known = False
    if not known:
        raise InputError(f"{setting} is no address; write it as http://127.0.0.1:8000/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InputError(
            f"{setting} may hold no name, password or query, because a run keeps it; "
            f"put the key into the environment variable {names[0]}"
        )
    return url.rstrip("/")


def key(names: tuple[str, ...]) -> str:
    """The key in the first of these variables that is set, without blanks around it, or "".

    Raises InputError for one that cannot be sent: what then complains of it would show it.
    """
    for name in names:
        if found := os.environ.get(name, "").strip():
            if not (found.isascii() and found.isprintable()):
                raise InputError(
                    f"the key in {name} holds a line break or another character that no key has; "
                    "set it again"
                )
            return found
    return ""


def shown(text: str, names: tuple[str, ...]) -> str:
    """At most `LONGEST` characters on one line, without the key."""
    if own := key(names):
        text = text.replace(own, "...")
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."

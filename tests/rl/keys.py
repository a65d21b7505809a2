"""Where a text may hold a key, and how that is found out."""

from tests.rl.chat_server import KEY

WAYS = {
    "as it is": lambda key: key,
    "inside": lambda key: f"abc{key}def",
    "twice": lambda key: f"{key}{key}",
    "upper": lambda key: key.upper(),
    "swapped": lambda key: key.swapcase(),
    "in lines": lambda key: f"a\n{key}\nb",
    "in a half of itself": lambda key: f"{key[:9]}{key}{key[9:]}",
    "after half an escape": lambda key: f"\\u00{key} %{key} &#{key}",
}


def leaks(text):
    """Whether a text holds the key, in any case."""
    return KEY.lower() in text.lower()

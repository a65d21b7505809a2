"""The README as a package index shows it; all else is in pyproject.toml."""

import re
from pathlib import Path

from setuptools import setup


def on_its_own(text: str) -> str:
    """Without pictures, and with paths in place of links of use in the repository alone."""
    text = re.sub(r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n\n?", "", text, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]*)\]\((?![a-z]+:)([^)]*)\)", _with_path, text)


def _with_path(link: re.Match[str]) -> str:
    return f"`{link[2]}`" if link[1] == link[2] else f"{link[1]} (`{link[2]}`)"


setup(
    long_description=on_its_own(Path(__file__).with_name("README.md").read_text("utf-8")),
    long_description_content_type="text/markdown",
)

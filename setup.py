"""The README as a package index shows it, and what kits are compiled from; all else is in
pyproject.toml.
"""

import hashlib
import re
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext


def on_its_own(text: str) -> str:
    """Without pictures, and with paths in place of links of use in the repository alone."""
    text = re.sub(r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n\n?", "", text, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]*)\]\((?![a-z]+:)([^)]*)\)", _with_path, text)


def _with_path(link: re.Match[str]) -> str:
    return f"`{link[2]}`" if link[1] == link[2] else f"{link[1]} (`{link[2]}`)"


class BuildKits(build_ext):
    """Each kit knows its sources, so that it is not used after these have changed."""

    def build_extension(self, ext: Extension) -> None:
        kit = Path(ext.sources[0]).parent
        texts = b"".join(each.read_bytes() for each in _sources(kit))
        ext.define_macros.append(("KIT_SOURCES", f'"{hashlib.sha256(texts).hexdigest()}"'))
        super().build_extension(ext)


def _sources(kit: Path) -> list[Path]:
    """As `spo_jax.envs.kits` has them, which cannot be imported before it is installed."""
    problems = kit.parents[1]
    return [*sorted(problems.glob("*.h")), *sorted(problems.glob(f"*/{kit.name}/*.[ch]"))]


setup(
    cmdclass={"build_ext": BuildKits},
    long_description=on_its_own(Path(__file__).with_name("README.md").read_text("utf-8")),
    long_description_content_type="text/markdown",
)

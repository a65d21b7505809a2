"""Hooks of MkDocs: links that lead out of docs/ lead to a page or a file of the site.

The pages are written for a reader of the repository, where a link is a path from the page's own
file. In the site README.md, CHANGELOG.md, CONTRIBUTING.md and experiments/README.md are pages;
whatever else outside docs/ is linked is copied into source/, and a linked folder gets a page that
lists it. Each notebook of docs/notebooks/ is a page, too.
"""

import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from mkdocs.structure.files import File, Files, InclusionLevel

# Where files outside docs/ are in the site.
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "experiments/README.md": "experiments.md",
}
DOCS = "docs/"
NOTEBOOKS = "notebooks"  # in docs/ and in the site

# Group 1 is code, in which nothing is a link; group 3 the path of one, group 4 its place there.
_LINK = re.compile(
    r"(^ *```.*?^ *```$|`[^`\n]+`)|(\]\()([^)\s#:]+)(#[^)\s]*)?(?=\))", re.DOTALL | re.MULTILINE
)


def on_config(config: Any) -> Any:
    """Adds the notebooks to the navigation, behind the guides."""
    pages = [f"{NOTEBOOKS}/{name}.md" for name in _notebooks(Path(config.config_file_path).parent)]
    behind = next(k for k, each in enumerate(config.nav) if "Guides" in each)
    config.nav.insert(behind + 1, {"Notebooks": pages})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages and files outside docs/, and pages of folders, that some page links to."""
    root = Path(config.config_file_path).parent
    pages = [DOCS + file.src_uri for file in files.documentation_pages()]
    texts = {page: (root / page).read_text("utf-8") for page in (*pages, *PAGES)}
    for path, uri in PAGES.items():
        files.append(File.generated(config, uri, content=texts[path]))
    for name, text in _notebooks(root).items():
        uri = f"{NOTEBOOKS}/{name}.md"
        texts[DOCS + uri] = text
        files.append(File.generated(config, uri, content=text))
    for page, text in texts.items():
        for target in _targets(page, text, root):
            uri = _uri(target, root)
            if files.get_file_from_path(uri) is not None:
                continue
            path = root / target
            if path.is_dir():
                listed = sorted(each.name for each in path.iterdir() if each.is_file())
                rows = "\n".join(f"- [{name}]({name})" for name in listed)
                text = f"# {target.removeprefix(DOCS)}\n\n{rows}\n"
                made = File.generated(
                    config, uri, content=text, inclusion=InclusionLevel.NOT_IN_NAV
                )
                files.append(made)
            else:
                files.append(File.generated(config, uri, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """The page's text with the links of the repository turned into those of the site."""
    root, here = Path(config.config_file_path).parent, page.file.src_uri
    if here == "reference/settings.md":
        markdown = markdown.replace("<!-- settings -->", _settings())
    source = {uri: path for path, uri in PAGES.items()}.get(here, DOCS + here)

    def turned(found: re.Match[str]) -> str:
        target = found[3] and _resolved(source, found[3], root)
        if not target:
            return found[0]
        uri = _uri(target, root)
        if not here.startswith(f"{NOTEBOOKS}/"):  # a notebook's own page links to the file
            uri = re.sub(rf"^({NOTEBOOKS}/.*)\.ipynb$", r"\1.md", uri)
        uri = posixpath.relpath(uri, posixpath.dirname(here) or ".")
        return f"{found[2]}{uri}{found[4] or ''}"

    return _LINK.sub(turned, markdown)


def _notebooks(root: Path) -> dict[str, str]:
    """The pages of the notebooks by name: code cells as blocks, and where the notebook is."""
    found = {}
    for path in sorted((root / DOCS / NOTEBOOKS).glob("*.ipynb")):
        parts = []
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            text = "".join(cell["source"])
            parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        link = f"[{path.name}]({path.name})"
        parts.insert(1, f"This page is a notebook without what its cells print and draw: {link}.")
        found[path.stem] = "\n\n".join(parts) + "\n"
    return found


def _settings() -> str:
    """A table of settings for each group."""
    from spo_jax.config import FIELDS

    lines: list[str] = []
    group = None
    for each in FIELDS.values():
        if each.group != group:
            group = each.group
            lines += ["", f"## [{group}]" if group else "## Above all tables", ""]
            lines += ["| setting | what it is |", "|---|---|"]
        own = "" if each.name == each.flat else f"; in a file `{each.name}`"
        told = each.help.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")
        lines.append(f"| `{each.flat}`{' *' if each.volatile else ''} | {told}{own} |")
    return "\n".join(lines)


def _targets(page: str, text: str, root: Path) -> Iterator[str]:
    for found in _LINK.finditer(text):
        target = found[3] and _resolved(page, found[3], root)
        if target:
            yield target


def _resolved(page: str, link: str, root: Path) -> str | None:
    """The path in the repository of what a page links to; None where there is nothing."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(link)))
    return None if path.startswith("../") or not (root / path).exists() else path


def _uri(path: str, root: Path) -> str:
    """Where a file or folder of the repository is in the site."""
    uri = PAGES.get(path) or (
        path.removeprefix(DOCS) if path.startswith(DOCS) else f"source/{path}"
    )
    return f"{uri}/index.md" if (root / path).is_dir() else uri

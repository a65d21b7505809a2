"""The documentation: every page is in its navigation, every link leads somewhere, and what the
README, the reference, the licences and the citation say is so."""

import importlib.metadata
import re
import tomllib
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

import spo_jax
from spo_jax import Payoff, Program
from spo_jax.search.credit import CREDITS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
# Read in the repository and in the site, where docs/mkdocs/hooks.py makes pages of them.
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "experiments/README.md": "experiments.md",
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def prose(path: Path) -> str:
    """A page without its code, in which nothing is a link or a heading."""
    text = re.sub(r"^ *```.*?^ *```$", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]+`", lambda code: re.sub(r"[\[\]]", "", code[0]), text)


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found: Counter[str] = Counter()
    names = set()
    for heading in re.findall(r"^#{1,6} +(.+?) *$", prose(path), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        names.add(f"{slug}-{found[slug]}" if found[slug] else slug)
        found[slug] += 1
    return names


@pytest.mark.parametrize(
    "path",
    [*(ROOT / name for name in OUTSIDE), *PAGES],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_links_lead_somewhere(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not re.search(r"^(<{7}|={7}|>{7})( |$)", text, re.MULTILINE), "marks of a merge"
    for link in re.findall(r"\]\(([^)\s]+)(?: \"[^\"]*\")?\)", prose(path)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / unquote(name)).resolve() if name else path
        assert target.is_relative_to(ROOT), f"{link} leads out of the repository"
        assert target.exists(), f"{link} leads nowhere"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{link}: no such heading"


def test_the_navigation_names_every_page_once() -> None:
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    entries = re.findall(r"^ +- .*: (\S+\.md)$", text.split("\nnav:\n")[1], re.MULTILINE)
    pages = [path.relative_to(DOCS).as_posix() for path in PAGES]
    assert sorted(entries) == sorted([*pages, *OUTSIDE.values()])


@pytest.mark.parametrize(
    "path",
    sorted(set((DOCS / "research").glob("*.md")) - {DOCS / "research" / "index.md"}),
    ids=lambda path: path.stem,
)
def test_a_research_page_answers_its_question(path: Path) -> None:
    title, *sections = re.findall(r"^##? (.+)$", prose(path), re.MULTILINE)
    assert title.endswith("?")
    assert sections[:3] == ["Command", "Figure", "Answer"]
    listed = (path.parent / "index.md").read_text("utf-8")
    assert f"[{title}]({path.name})" in listed


def test_the_reference_has_every_public_name() -> None:
    pages = [path.read_text("utf-8") for path in (DOCS / "reference").glob("*.md")]
    named = re.findall(r"^::: spo_jax\.(\w+)$", "\n".join(pages), re.MULTILINE)
    assert sorted(named) == spo_jax.__all__


# --- licences and citation ------------------------------------------------------------------------


def declared() -> dict[str, set[str]]:
    """The extras that declare each package, "always" for a dependency."""
    found: dict[str, set[str]] = {}
    groups = {"always": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
    for group, requirements in groups.items():
        for each in requirements:
            name = re.match(r"[\w-]+", each)
            assert name is not None
            found.setdefault(name[0].lower(), set()).add(group)
    return found


def test_every_dependency_has_its_licence() -> None:
    text = (DOCS / "licences.md").read_text("utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert rows[0] == ["package", "needed for", "licence"]
    table = {name: (re.findall(r"[\w-]+", extras), licence) for name, extras, licence in rows[1:]}
    assert list(table) == sorted(table)
    assert {name: set(extras) for name, (extras, _) in table.items()} == declared()
    for name, (_, licence) in table.items():
        try:
            # Not by []: where the backport importlib_metadata is imported, a missing key raises.
            expression = importlib.metadata.metadata(name).get("License-Expression")
        except importlib.metadata.PackageNotFoundError:
            continue
        assert expression in (None, licence), f"{name} says {expression}"


def test_the_citation_is_of_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    head, _, paper = text.partition("preferred-citation:")
    for field, value in (("version", PROJECT["version"]), ("license", PROJECT["license"])):
        assert f"\n{field}: {value}\n" in head
    assert PROJECT["version"] == spo_jax.__version__
    assert re.findall(r"- name: (.+)", head) == [each["name"] for each in PROJECT["authors"]]
    people = re.findall(r"family-names: (\w+)\s+given-names: (\w+)", paper)
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [f"{family}, {given}" for family, given in people] == re.findall(
        r"\w+, \w+", re.findall(r"author = \{(.+?)\}", readme)[0].replace(" and ", " ")
    )


# --- the README -----------------------------------------------------------------------------------


def blocks() -> list[str]:
    text = (ROOT / "README.md").read_text("utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def test_the_credit_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [example] = [block for block in blocks() if block.startswith("# mycredit.py\n")]
    (tmp_path / "mycredit.py").write_text(example)
    monkeypatch.syspath_prepend(tmp_path)
    scheme = CREDITS["mycredit:optimistic"]
    repairs = (Program("repair", "r"), Program("repair", "s"))
    destroys = (Program("destroy", "d"), Program("destroy", "e"))
    payoff = Payoff(np.array([[0.5, 0.75], [0.25, np.nan]]), destroys, (repairs, repairs))
    credits = scheme(payoff, top=2)
    np.testing.assert_array_equal(credits.leader, [0.75, 0.25])
    np.testing.assert_array_equal(credits.follower, [[-0.125, 0.125], [0.0, np.nan]])


@pytest.mark.slow
def test_the_readme_from_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [example] = [block for block in blocks() if "spo_jax.discover" in block]
    monkeypatch.chdir(tmp_path)
    exec(example, {"__name__": "__main__"})
    strategy, gap, cost = capsys.readouterr().out.splitlines()
    assert strategy
    assert 0 <= float(gap) < 100
    assert float(cost) > 0

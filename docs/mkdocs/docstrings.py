"""An extension of Griffe: links in docstrings, and lists in those that have no sections.

Public names of spo_jax in backticks become links. Where a docstring is not in Google's style yet, a
paragraph that explains names, "size: what it counts. shape: [N, 2].", becomes a list with an item
for each: a name that begins a line, or one of the object's own after a full stop. The docstrings
themselves stay as they are.
"""

import inspect
import re
from typing import Any

import griffe

_NAMES = r"[a-z_]\w*(?:, [a-z_]\w*)*"
_START = re.compile(rf"^({_NAMES}): ")
_WITHIN = re.compile(rf"(?<=[.;] )({_NAMES}): ")
_RAISES = re.compile(r"(?<=\.) (?=Raises )")  # ends the item before it
_CODE = re.compile(r"`(?:spo_jax\.)?([A-Za-z]\w*)`")


class Docstrings(griffe.Extension):
    """Rewrites each docstring when the package is loaded."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        public = {name for name, member in pkg.members.items() if member.is_alias}
        _rewrite(pkg, public - {"Any", "import_module", "TYPE_CHECKING"})


def _rewrite(thing: griffe.Object, public: set[str]) -> None:
    if thing.docstring is not None:
        own = {each.name for each in getattr(thing, "parameters", ())} | set(thing.members)
        text = markdown(inspect.cleandoc(thing.docstring.value), own)
        name = thing.name
        thing.docstring.value = _CODE.sub(
            lambda code: (
                f"[`{code[1]}`][spo_jax.{code[1]}]"
                if code[1] in public and code[1] != name
                else code[0]
            ),
            text,
        )
    for member in thing.members.values():
        if not member.is_alias:
            _rewrite(member, public)


def markdown(text: str, own: set[str]) -> str:
    """A docstring as Markdown. own: the names that it may explain in the middle of a line."""
    return "\n\n".join(_paragraph(each, own) for each in re.split(r"\n\s*\n", text))


def _paragraph(text: str, own: set[str]) -> str:
    items: list[str] = []
    lead: list[str] = []
    for line in text.split("\n"):
        if _START.match(line):
            items.append(line)
        elif items:
            items[-1] += " " + line.strip()
        else:
            lead.append(line)
    if not items:
        return text
    items = [part for item in items for part in _parts(item, own)]
    last, *raises = _RAISES.split(items[-1], maxsplit=1)
    listed = "\n".join("- " + _START.sub(_bold, item) for item in (*items[:-1], last))
    return "\n\n".join(filter(None, ("\n".join(lead), listed, *raises)))


def _bold(found: re.Match[str]) -> str:
    return ", ".join(f"**{name}**" for name in found[1].split(", ")) + ": "


def _parts(item: str, own: set[str]) -> list[str]:
    cuts = [0]
    cuts += [found.start() for found in _WITHIN.finditer(item) if set(found[1].split(", ")) <= own]
    return [item[a:b].strip() for a, b in zip(cuts, [*cuts[1:], len(item)], strict=True)]

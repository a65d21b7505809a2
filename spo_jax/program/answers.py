"""Parses a model's answer into a program."""

import re

from spo_jax.errors import Rejection
from spo_jax.program.nouns import Program, Role, decode, entry_function, one_line, parse_tree

_LABEL = r"^[ \t>#*_]*{}[ \t*_]*:[ \t*_]*"
_STRATEGY = re.compile(_LABEL.format("STRATEGY"), re.MULTILINE | re.IGNORECASE)
_CODE = re.compile(_LABEL.format("CODE"), re.MULTILINE | re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(```+|~~~+)([^\n`]*)$", re.MULTILINE)


def parse_response(role: Role, text: str | bytes, **origin: object) -> Program:
    """The program in a model's answer: `STRATEGY:` one sentence, `CODE:` one function.

    The code may be fenced or not; a <think> block, Markdown emphasis on the labels and prose
    around a fence are ignored. `origin` (parents, form, condition, derivation) goes to the program.
    Raises Rejection that names the first missing part.
    """
    answer = _without_thoughts(decode(text))
    strategy = _STRATEGY.search(answer)
    if strategy is None:
        raise Rejection("no STRATEGY: line")
    code = _CODE.search(answer, strategy.end())
    if code is None:
        raise Rejection("no CODE: section after the strategy")
    sentence = one_line(answer[strategy.end() : code.start()].split("```")[0]).strip("*_ ")
    if not sentence:
        raise Rejection("the STRATEGY: sentence is empty")
    body = answer[code.end() :]
    fenced = _fenced(body)
    if fenced is not None:
        body = fenced
    elif "```" in body:
        raise Rejection("the code fence is not closed (answer cut off?)")
    if not body.strip():
        raise Rejection("the CODE: section is empty")
    source = body.strip("\n") + "\n"
    entry_function(parse_tree(source), role)
    return Program.from_source(role, source, sentence, **origin)  # type: ignore[arg-type]


# Both scan a text once. A regular expression would search for an end from each opening tag again,
# which takes seconds for an answer made of opening tags.


def _without_thoughts(text: str) -> str:
    """`text` without each <think> block."""
    kept: list[str] = []
    at = 0
    while True:
        begin = text.find("<think>", at)
        end = text.find("</think>", begin) if begin >= 0 else -1
        if end < 0:
            return "".join([*kept, text[at:]])
        kept.append(text[at:begin])
        at = end + len("</think>")


def _fenced(text: str) -> str | None:
    """The content of the first fence that a line of the same characters closes."""
    opened: dict[str, int] = {}  # characters -> start of the enclosed text
    closed: dict[str, int] = {}
    for line in _FENCE.finditer(text):
        characters, rest = line.groups()
        if characters not in opened:
            opened[characters] = line.end() + 1
        elif not rest.strip():
            closed.setdefault(characters, line.start())
    if not closed:
        return None
    first = min(closed, key=opened.__getitem__)
    return text[opened[first] : closed[first]]

"""Parses a model's answer into a program."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from spo_jax.errors import InputError, Rejection
from spo_jax.program.nouns import (
    AnswerFormat,
    Program,
    Role,
    decode,
    entry_function,
    one_line,
    parse_tree,
)
from spo_jax.program.pairfile import parse_pair
from spo_jax.program.versions import IMPROVED, newest

_LABEL = r"^[ \t>#*_]*{}[ \t*_]*:[ \t*_]*"
_STRATEGY = re.compile(_LABEL.format("STRATEGY"), re.MULTILINE | re.IGNORECASE)
_CODE = re.compile(_LABEL.format("CODE"), re.MULTILINE | re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(```+|~~~+)([^\n`]*)$", re.MULTILINE)

# A top-level line of a program.
_TOP = re.compile(r"^(?:import \w|from [\w.]+ import |def \w+ *\(|@\w)", re.MULTILINE)
_THOUGHT = re.compile(r"\{([^{}]{8,})\}")  # a shorter one is a piece of code, as {i}


def parse_answer(how: AnswerFormat, role: Role, text: str | bytes, **origin: object) -> Program:
    """The program in a model's answer.

    how: "labels", as `parse_response`. "braces": one sentence in braces, else all text before the
    code, and code, as EoH's answers have them. "code": code alone, whose docstring is the strategy.
    "joint": code of both programs, of which this is the one of `role`. In the last three the code
    is the first fence, else all lines from the first import or function on; of functions named
    destroy_v0, destroy_v1, ... the newest counts.
    Raises Rejection that names the first missing part.
    """
    if how == "labels":
        return parse_response(role, text, **origin)
    answer = _without_thoughts(decode(text))
    body, before = _code(answer)
    if how == "joint":
        return _half(body, role, origin)
    strategy = None
    if how == "braces":
        found = _THOUGHT.search(before)
        strategy = one_line(found[1] if found else before).strip("*_ ")
        if not strategy:
            raise Rejection("no sentence in braces before the code")
    source = newest(body.strip("\n") + "\n", role)
    entry_function(parse_tree(source), role)
    program = Program.from_source(role, source, strategy, **origin)  # type: ignore[arg-type]
    if how == "code" and program.strategy.startswith(IMPROVED):  # the docstring that a prompt gave
        return replace(program, strategy="")
    return program


def _half(code: str, role: Role, origin: Mapping[str, Any]) -> Program:
    """One program of the code of two. Raises Rejection."""
    try:
        pair = parse_pair(code.strip("\n") + "\n", "the answer")
    except InputError as error:
        raise Rejection(str(error)) from None
    return replace(pair.destroy if role == "destroy" else pair.repair, **origin)


def _code(answer: str) -> tuple[str, str]:
    """The code of an answer without labels, and the text before it. Raises Rejection."""
    fence = _FENCE.search(answer)
    if fence is not None:
        body = _fenced(answer)
        if body is None:
            raise Rejection("the code fence is not closed (answer cut off?)")
        if not body.strip():
            raise Rejection("the code fence is empty")
        return body, answer[: fence.start()]
    start = _TOP.search(answer)
    if start is None:
        raise Rejection("no code")
    lines = answer[start.start() :].split("\n")
    inside = (not line.strip() or line[0] in " \t#)]}" or _TOP.match(line) for line in lines)
    end = next((place for place, code in enumerate(inside) if not code), len(lines))
    return "\n".join(lines[:end]), answer[: start.start()]


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

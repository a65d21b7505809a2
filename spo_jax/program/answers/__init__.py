"""Parses a model's answer into a program.

The answer's form is asked for by the prompt, but what counts is whether there is a program: code is
found wherever it stands (`blocks`), made to stand on its own (`tidying`), and the strategy is the
first that there is of a label's sentence, the function's docstring, the sentence before the code,
and a comment.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from spo_jax.errors import InputError, Rejection
from spo_jax.program.answers.blocks import Block, blocks_of, fault_of, has_function, json_of
from spo_jax.program.answers.tidying import program_of, standalone
from spo_jax.program.pairfile import parse_pair
from spo_jax.program.syntax import parse_tree
from spo_jax.program.types import (
    ROLES,
    AnswerFormat,
    Program,
    Role,
    decode,
    entry_function,
    one_line,
)
from spo_jax.program.versions import IMPROVED, newest

# What may stand before and around a label: marks of headings, emphasis, lists, tables and tags.
_MARKS = r"[ \t>#*_|+\-<\[({\"'\d.)]{0,20}"


def _label(words: str) -> re.Pattern[str]:
    """A line that begins with a label, up to what it labels."""
    named = rf"^{_MARKS}{words}(?:[ \t]+(?:sentence|description|name|section|block))?"
    ends = r"(?:[ \t>\]*_\"')}]*(?:[>\]]|[:|\u2013\u2014=\-])[ \t*_|\"'>]*|[ \t>\]*_]*$)"
    return re.compile(named + ends, re.MULTILINE | re.IGNORECASE)


_STRATEGY = _label(r"(?:the[ \t]+)?strategy")
_CODE = _label(r"(?:python[ \t]+)?(?:code|program|implementation|function)")
_MARK = re.compile(r"^[ \t]*(?:`{3,}|~{3,}|'{3}|\"{3}|</?[A-Za-z]|#{1,6}[ \t])", re.MULTILINE)
_ENDS = re.compile("```|</[ \t]?strategy|</[ \t]?thought", re.IGNORECASE)
_THOUGHT = re.compile(r"\{([^{}]{8,})\}")  # a shorter one is a piece of code, as {i}
_COMMENT = re.compile(r"^[ \t]*#+[ \t]*(\S.*)$", re.MULTILINE)
_EMPHASIS = ' \t*_`#>|"-'
_KEY = re.compile("strateg|idea|thought|description|algorithm", re.IGNORECASE)


def parse_answer(
    how: AnswerFormat, role: Role, text: str | bytes, function: str = "", **origin: object
) -> Program:
    """Read the program in a model's answer.

    Args:
        how: What the prompt asked for. "labels": as `parse_response`. "braces": one sentence in
            braces, else all text before the code, and code, as EoH's answers have them. "code":
            code alone. "joint": code of both programs, of which this is the one of `role`. Of
            functions named destroy_v0, destroy_v1, ... the newest counts.
        role: Of the program, "destroy" or "repair".
        text: The answer; bytes are UTF-8.
        function: The name of the role's function, where it is another than the role's.
        **origin: `parents`, `form`, `condition` and `derivation` of the `Program`.

    Returns:
        The program, which no gate has checked yet.

    Raises:
        Rejection: There is no such program. It says what was looked for.
    """
    if how == "labels":
        return parse_response(role, text, function, **origin)
    name = function or role
    answer = _without_thoughts(decode(text))
    if how == "joint":
        return _half(answer, role, origin)
    source, block = _found(answer, name)
    strategy = None
    if how == "braces":
        before = answer[: block.start]
        found = _THOUGHT.search(before)
        strategy = one_line(found[1] if found else _paragraphs(before)).strip("*_ ") or None
    program = Program.from_source(
        role,
        source,
        strategy,
        function=name,
        **origin,  # type: ignore[arg-type]
    )
    if how == "code" and program.strategy.startswith(IMPROVED):  # the docstring that a prompt gave
        return replace(program, strategy="")
    return program


def parse_response(role: Role, text: str | bytes, function: str = "", **origin: object) -> Program:
    """Read the program in a model's answer: `STRATEGY:` one sentence, `CODE:` one function.

    Labels, fences and their order are as they come.

    Args:
        role: Of the program, "destroy" or "repair".
        text: The answer; bytes are UTF-8.
        function: As in `parse_answer`.
        **origin: `parents`, `form`, `condition` and `derivation` of the `Program`.

    Returns:
        The program, which no gate has checked yet.

    Raises:
        Rejection: The answer has no complete function of the role.
    """
    name = function or role
    answer = _without_thoughts(decode(text))
    source, block = _found(answer, name)
    strategy = _labelled(answer, block) or _keyed(answer) or _of_function(source, name)
    if not strategy:
        strategy = _sentence(answer[: block.start]) or _comment(source)
    return Program.from_source(
        role,
        source,
        strategy,
        function=name,
        **origin,  # type: ignore[arg-type]
    )


def _found(answer: str, name: str) -> tuple[str, Block]:
    """The source of a program, and the block of its function. Raises Rejection."""
    blocks = blocks_of(answer)
    found = program_of(blocks, name)
    if found is None:
        raise _missing(answer, name, blocks)
    source = newest(found[0], name)
    entry_function(parse_tree(source), name)
    return source, found[1]


def _missing(answer: str, name: str, blocks: list[Block]) -> Rejection:
    names = [each for block in blocks for each in block.functions]
    if names:
        return Rejection(f"no function named {name} (found: {', '.join(names[:5])})")
    if fault := fault_of(answer):
        return Rejection(f"no complete function named {name}, in a fence or without: {fault}")
    return Rejection(f"no function named {name}, in a fence or without (found: none)")


def _half(answer: str, role: Role, origin: Mapping[str, Any]) -> Program:
    """One program of the code of two. Raises Rejection."""
    blocks = blocks_of(answer)
    both = [each for each in blocks if {*ROLES} <= {*each.functions}]
    code = both[-1].source if both else "\n".join(each.source for each in blocks)
    if not code:
        raise _missing(answer, role, blocks)
    try:
        pair = parse_pair(standalone(code, ROLES), "the answer")
    except InputError as error:
        raise Rejection(str(error)) from None
    return replace(pair.destroy if role == "destroy" else pair.repair, **origin)


# --- the strategy ---------------------------------------------------------------------------------


def _labelled(answer: str, block: Block) -> str:
    """The sentence behind the last label before the code, else behind the first one after it."""
    labels = [*_STRATEGY.finditer(answer)]
    before = [each for each in labels if each.start() < block.start]
    for label in [*reversed(before), *labels[len(before) :]]:
        at = label.end()
        ends = [len(answer), *(b for b in (block.start,) if b > at)]
        for mark in (_CODE, _MARK):
            if (found := mark.search(answer, at + 1)) is not None:
                ends.append(found.start())
        text = _ENDS.split(answer[at : min(ends)])[0]
        if _STRATEGY.search(text):  # the next draft's
            text = text[: _STRATEGY.search(text).start()]  # type: ignore[union-attr]
        if "#" in label[0] and _COMMENT.match(answer, label.start()):  # a comment's, to its end
            text = _commented(text)
        if sentence := one_line(text).strip(_EMPHASIS):
            return sentence
    return ""


def _commented(text: str) -> str:
    """The first line, and the comments right below it."""
    lines = text.split("\n")
    kept = [lines[0]]
    for line in lines[1:]:
        if (found := _COMMENT.match(line)) is None:
            break
        kept.append(found[1])
    return "\n".join(kept if len(kept) > 1 or lines[0].strip() else lines)


def _keyed(answer: str) -> str:
    """The strategy in an answer of JSON."""
    for found in json_of(answer):
        for name, value in found.items() if isinstance(found, dict) else ():
            if isinstance(value, str) and _KEY.search(name) and value.strip():
                return one_line(value)
    return ""


def _of_function(source: str, name: str) -> str:
    return ast.get_docstring(entry_function(parse_tree(source), name)) or ""


def _paragraphs(text: str) -> str:
    """The words of a text, without what only marks the code that follows."""
    lines = [line for line in text.split("\n") if not _MARK.match(line)]
    return "\n".join(lines)


def _sentence(before: str) -> str:
    """The last paragraph before the code that does not only announce it."""
    plain = [
        one_line(each).strip(_EMPHASIS) for each in re.split(r"\n[ \t]*\n", _paragraphs(before))
    ]
    sentences = [each for each in plain if len(each) > 8 and not each.endswith(":")]
    return sentences[-1] if sentences else ""


def _comment(source: str) -> str:
    """The first comment of a program."""
    found = _COMMENT.search(source)
    return one_line(found[1]) if found else ""


# --- thoughts -------------------------------------------------------------------------------------


def _without_thoughts(text: str) -> str:
    """`text` without each <think> block; without what stands before an end that none begins.

    Scans the text once. A regular expression would search for an end from each opening tag again,
    which takes seconds for an answer made of opening tags.
    """
    kept: list[str] = []
    at = 0
    while True:
        begin = text.find("<think>", at)
        end = text.find("</think>", begin) if begin >= 0 else -1
        if end < 0:
            break
        kept.append(text[at:begin])
        at = end + len("</think>")
    left = "".join([*kept, text[at:].replace("<think>", "")])
    _, orphan, after = left.rpartition("</think>")
    return after if orphan and has_function(after) else left.replace("</think>", "")

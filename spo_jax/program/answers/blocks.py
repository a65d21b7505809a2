"""Finds the blocks of Python in a model's answer, whatever stands around them.

Models put code into fences of backticks, tildes or quotation marks, closed or not, between tags, in
a value of JSON, behind a label on the same line, indented, quoted, or just so among sentences. An
answer is cut wherever a line can only be such a mark; what parses of the pieces is code.
"""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from spo_jax.errors import Rejection
from spo_jax.program.syntax import parse_tree

MOST_BLOCKS = 40  # with a function, of an answer: the last ones
MOST_FAULTS = 8  # statements of a block that may be no Python

_LANGUAGE = r"(?:python3?|py|json|text|txt|plaintext)"
# A line that can only be the mark of a fence, with what follows on it.
_FENCE = re.compile(
    rf"[ \t]*(?:(?:`{{3,}}|~{{3,}})[ \t]*{_LANGUAGE}?|(?:'{{3}}|\"{{3}})[ \t]*{_LANGUAGE})\b[ \t]*"
    rf"(?=\n|$|(?:def|import|from|@)\b)|[ \t]*(?:`{{3,}}|~{{3,}})[^\n`]*(?=\n|$)",
    re.IGNORECASE,
)
_QUOTES = re.compile(r"(?:'{3}|\"{3})[ \t]*")  # alone on its line, once such a fence is open
_TAG = re.compile(
    r"[ \t]*(?:<[ \t]?/?[ \t]?[A-Za-z][\w:-]{0,30}[^<>\n]{0,60}>|\[/?[A-Z_]{2,20}\])[ \t]*"
)
_STARTS = r"(?:def[ \t]+\w+[ \t]*\(|import[ \t]+\w|from[ \t]+[\w.]+[ \t]+import[ \t])"
# What a line may have before code that begins on it, its white space as single spaces: a label, a
# number, the mark of a fence or of a quote.
_BEFORE = re.compile(
    r"\W{0,12}(?:(?:\w+ ){0,3}\w+ ?[*_`]*[:\-\u2013\u2014|]+)?[ *_|]{0,12}"
    rf"(?:`{{1,9}}|~{{3,9}}|'{{3}}|\"{{3}})? ?{_LANGUAGE}?",
    re.IGNORECASE,
)
MOST_BEFORE = 80  # characters
_BEGINS = re.compile(_STARTS)
_CODE = re.compile(rf"\b{_STARTS}")
_MAY_BE_CODE = re.compile(rf"^[ \t>.]*(?:{_STARTS}|[A-Za-z_]\w*[ \t]*=[^=])", re.MULTILINE)
_PROMPT = re.compile(r"[ \t]*(?:>>>|\.\.\.)(?: |$)")  # of Python's own shell
_QUOTED = re.compile(r"[ \t]*>(?: |$)")
_TOP = re.compile(rf"(?:{_STARTS}|@\w|#|[A-Za-z_]\w*[ \t]*(?::[^=\n]+)?=[^=]|[)\]}}])")
_DEF = re.compile(r"^[ \t>.]*def[ \t]+\w+[ \t]*\(", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A piece of an answer that is Python. start: where it begins in the answer, in characters."""

    source: str
    tree: ast.Module
    start: int

    @cached_property
    def functions(self) -> list[str]:
        """The names of its functions, in their order."""
        return [node.name for node in self.tree.body if isinstance(node, ast.FunctionDef)]


def blocks_of(answer: str) -> list[Block]:
    """The blocks of an answer in its order, at least one statement each."""
    found = [block for at, text in _pieces(answer) if (block := _parsed(text, at))]
    if not any(block.functions for block in found):
        found += _whole(answer)
        found += [block for text in _values(answer) if (block := _parsed(text, 0))]
    return found


def has_function(answer: str) -> bool:
    """Whether a line of an answer begins a function, complete or not."""
    return _DEF.search(answer) is not None


def fault_of(answer: str) -> str:
    """Why the last piece of an answer that begins a function is no Python; "" without one."""
    begun = [text[_begin(text) :] for _, text in _pieces(answer) if _DEF.search(text)]
    try:
        parse_tree(_outdented(begun[-1]).strip("\n") + "\n" if begun else "")
    except Rejection as error:
        return error.reason
    return ""


def _pieces(answer: str) -> Iterator[tuple[int, str]]:
    """(start, text) of what may be code between the marks of an answer.

    Of those with functions the last MOST_BLOCKS and what stands between them.
    """
    pieces: list[tuple[int, list[str]]] = [(0, [])]
    quotes = False  # whether a fence of quotation marks is open
    at = 0
    for line in answer.split("\n"):
        end = _mark_end(line, quotes)
        if line.lstrip().startswith(("'''", '"""')) and end:
            quotes = not quotes
        if end:
            pieces.append((at + end, []))
        if not end and line.rstrip().endswith("```"):  # a fence that ends behind code
            pieces[-1][1].append(line.rstrip()[:-3])
            pieces.append((at + len(line), [""]))
        else:
            pieces[-1][1].append(line[end:])
        at += len(line) + 1
    texts = [(start, "\n".join(lines)) for start, lines in pieces]
    texts = [(start, text) for start, text in texts if _MAY_BE_CODE.search(text)]
    defining = [k for k, (_, text) in enumerate(texts) if _DEF.search(text)]
    yield from texts[defining[-MOST_BLOCKS] if len(defining) > MOST_BLOCKS else 0 :]


def _mark_end(line: str, quotes: bool) -> int:
    """Where the mark ends with which a line begins: of a fence, a tag or a label before code.

    0 for a line without one. quotes: whether quotation marks alone end a fence.
    """
    if (mark := _FENCE.match(line)) or (quotes and (mark := _QUOTES.fullmatch(line))):
        return mark.end()
    if (mark := _TAG.match(line)) and (mark.end() == len(line) or _BEGINS.match(line, mark.end())):
        return mark.end()
    code = _CODE.search(line)
    before = " ".join(line[: code.start()].split()) if code else ""
    if not code or before in ("", ">>>", "...", ">") or code.start() > MOST_BEFORE:
        return 0
    # An indented line may be of a docstring that talks of code.
    quote = _QUOTED.match(line) or _PROMPT.match(line)
    indented = line[quote.end() if quote else 0 :][:1] in (" ", "\t")
    if (indented and "`" not in before) or not _BEFORE.fullmatch(before):
        return 0
    return code.start()


def _parsed(text: str, start: int) -> Block | None:
    """The Python of a piece: all of it, else its lines that look like code."""
    for read in (str, _unmarked, lambda text: _code_lines(_unmarked(text))):
        reading = _outdented(read(text))
        for candidate in (reading, reading.expandtabs(4)):
            source = candidate.strip("\n").rstrip()
            if not source:
                continue
            try:
                tree = parse_tree(source + "\n")
            except Rejection:
                continue
            if tree.body and not _is_prose(tree):
                return Block(source + "\n", tree, start + _begin(text))
    return None


def _begin(text: str) -> int:
    """Where the first line of a piece is that looks like code."""
    first = _MAY_BE_CODE.search(text)
    return first.start() if first else 0


def _is_prose(tree: ast.Module) -> bool:
    """Whether words happened to be Python."""
    return all(isinstance(node, ast.Expr | ast.AnnAssign) for node in tree.body)


def _outdented(text: str) -> str:
    """A text without the indentation of its first line of code."""
    first = re.search(rf"^([ \t]*)(?:{_STARTS})", text, re.MULTILINE)
    indent = first[1] if first else ""
    if not indent:
        return text
    return "\n".join(line.removeprefix(indent) for line in text.split("\n"))


def _unmarked(text: str) -> str:
    """A text without the marks of quoted lines, or of those typed into a shell."""
    lines = text.split("\n")
    for mark in (_PROMPT, _QUOTED):
        if any((found := mark.match(line)) and _DEF.match(line[found.end() :]) for line in lines):
            stripped = ((mark.match(line), line) for line in lines)
            return "\n".join(line[found.end() :] if found else "" for found, line in stripped)
    return text


def _code_lines(text: str) -> str:
    """The top-level lines of a text that look like code, with what is indented below them.

    Lines within a function are those until the next one at the margin that looks like none.
    """
    kept: list[str] = []
    inside = False
    for line in _outdented(text).split("\n"):
        if line[:1] not in ("", " ", "\t"):
            inside = _TOP.match(line) is not None
        if inside:
            kept.append(line)
    for _ in range(MOST_FAULTS):
        try:
            parse_tree("\n".join(kept) + "\n")
            break
        except Rejection as error:  # a statement is cut off, or is no code
            found = re.search(r"in line (\d+)", error.reason)
            fault = int(found[1]) - 1 if found else len(kept)
            tops = [k for k, each in enumerate(kept) if each[:1] not in ("", *" \t)]}")]
            first = max((k for k in tops if k <= fault), default=0)
            last = min((k for k in tops if k > fault), default=len(kept))
            del kept[first:last]
    return "\n".join(kept)


def _whole(answer: str) -> list[Block]:
    """All between the first and the last fence: for marks of fences within the code's own texts."""
    marks = [*re.finditer(r"^[ \t]*(?:`{3,}|~{3,})[^\n`]*$", answer, re.MULTILINE)]
    if len(marks) < 2:
        return []
    start = marks[0].end() + 1
    block = _parsed(answer[start : marks[-1].start()], start)
    return [block] if block else []


def _values(answer: str) -> Iterator[str]:
    """The texts with functions in the JSON of an answer."""
    for found in json_of(answer):
        pending: list[Any] = [found]
        while pending:
            value = pending.pop(0)
            if isinstance(value, str) and _DEF.search(value):
                yield value
            elif isinstance(value, list):
                lines = all(isinstance(each, str) for each in value)
                pending += ["\n".join(value)] if lines else value
            elif isinstance(value, dict):
                pending += value.values()


def json_of(answer: str) -> Iterator[Any]:
    """The objects and lists of JSON in an answer: from the first bracket to the last."""
    for opening, closing in ("{}", "[]"):
        first, last = answer.find(opening), answer.rfind(closing)
        if 0 <= first < last:
            try:
                yield json.loads(answer[first : last + 1], strict=False)
            except (ValueError, RecursionError):
                continue

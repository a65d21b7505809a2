"""From a model's answer to a program."""

import re

from spo_jax.errors import Rejection
from spo_jax.program.nouns import Program, Role, decode, entry_function, one_line, parse_tree

_THINK = re.compile(r"<think>.*?</think>", re.DOTALL)
_LABEL = r"^[ \t>#*_]*{}[ \t*_]*:[ \t*_]*"
_STRATEGY = re.compile(_LABEL.format("STRATEGY"), re.MULTILINE | re.IGNORECASE)
_CODE = re.compile(_LABEL.format("CODE"), re.MULTILINE | re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(```+|~~~+)[^\n`]*\n(.*?)^[ \t]*\1[ \t]*$", re.MULTILINE | re.DOTALL)


def parse_response(role: Role, text: str | bytes, **origin: object) -> Program:
    """The program in a model's answer: `STRATEGY:` one sentence, `CODE:` one function.

    The code may be fenced or not; a <think> block, Markdown emphasis on the labels and prose
    around a fence are ignored. `origin` (parents, form, condition, derivation) goes to the program.
    Raises Rejection with the first thing that is missing.
    """
    answer = _THINK.sub("", decode(text))
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
    fence = _FENCE.search(body)
    if fence is not None:
        body = fence.group(2)
    elif "```" in body:
        raise Rejection("the code fence is not closed (answer cut off?)")
    if not body.strip():
        raise Rejection("the CODE: section is empty")
    source = body.strip("\n") + "\n"
    entry_function(parse_tree(source), role)
    return Program.from_source(role, source, sentence, **origin)  # type: ignore[arg-type]

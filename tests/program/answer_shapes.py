"""The shapes in which language models write a right answer: each keeps its program.

`RECORDED` are answers with what a user expects of each, "valid" or "refused". `shaped` writes one
of SHAPES.
"""

import json
import textwrap
from collections.abc import Callable
from pathlib import Path

RECORDED = [
    json.loads(line)
    for line in Path(__file__).with_suffix(".jsonl").read_text("utf-8").splitlines()
]

# $S: the sentence. $C: the code, $F: in a fence, $J: as text of JSON, $L: as its lines. $D: a draft
# in a fence, $d: alone. $R: the role.
_TEMPLATES = {
    "as asked": "STRATEGY: $S\nCODE:\n$F",
    "without a fence": "STRATEGY: $S\nCODE:\n$C",
    "small letters": "strategy: $S\ncode:\n$F",
    "headings": "## STRATEGY\n\n$S\n\n## CODE\n\n$F",
    "headings, code first": "## Code\n$F\n## Strategy\n$S\n",
    "bold, inside": "**STRATEGY:** $S\n\n**CODE:**\n$F",
    "bold, outside": "**STRATEGY**: $S\n\n**CODE**:\n$F",
    "bold, alone": "**Strategy**\n\n$S\n\n**Code**\n\n$F",
    "list": "- STRATEGY: $S\n- CODE:\n$F",
    "numbers": "1) STRATEGY: $S\n2) CODE:\n$F",
    "numbered headings": "### 1. Strategy\n$S\n\n### 2. Code\n$F",
    "dashes": "STRATEGY \u2014 $S\nCODE \u2014\n$F",
    "equals": "STRATEGY = $S\nCODE =\n$F",
    "brackets": "[STRATEGY] $S\n[CODE]\n$F[/CODE]\n",
    "table": "| STRATEGY | $S |\n|---|---|\n\n$F",
    "tags": "<strategy>$S</strategy>\n<code>\n$C</code>\n",
    "tags around a fence": "<strategy>\n$S\n</strategy>\n<code>\n$F</code>\n",
    "answer tag": "<answer>\nSTRATEGY: $S\nCODE:\n$C</answer>\n",
    "json": '{"strategy": "$S", "code": $J}',
    "json in a fence": '```json\n{"strategy": "$S", "code": $J}\n```\n',
    "json with lines": '{"strategy": "$S",\n "code": [\n$L\n]}',
    "tildes": "STRATEGY: $S\nCODE:\n~~~\n$C~~~\n",
    "four backticks": "STRATEGY: $S\nCODE:\n````python\n$C````\n",
    "python3": "STRATEGY: $S\nCODE:\n```python3\n$C```\n",
    "a name on the fence": "STRATEGY: $S\nCODE:\n```python title=a.py\n$C```\n",
    "upper case fence": "STRATEGY: $S\nCODE:\n```Python\n$C```\n",
    "quotation marks": "STRATEGY: $S\nCODE:\n'''python\n$C'''\n",
    "open fence": "STRATEGY: $S\nCODE:\n```python\n$C",
    "closed twice": "STRATEGY: $S\nCODE:\n$F```\n",
    "fence on the label": "STRATEGY: $S\nCODE: $F",
    "code on the label": "STRATEGY: $S\nCODE: $C",
    "all in a fence": "```\nSTRATEGY: $S\nCODE:\n$C```\n",
    "comments": "```python\n# STRATEGY: $S\n# CODE:\n$C```\n",
    "a comment": "```python\n# $S\n$C```\n",
    "a sentence": "$S\n\n$F",
    "a greeting": "Sure! Here is an operator.\n\n$S\n\nHere is the code:\n\n$F",
    "prose behind": "STRATEGY: $S\nCODE:\n$C\nThis is fast.\n\n- It uses no memory.\n",
    "prose behind a fence": "STRATEGY: $S\nCODE:\n$F\nNote: `import os` is not used.\n",
    "import apart": "STRATEGY: $S\nCODE:\n```python\nimport math\n```\n$F",
    "helper apart": "STRATEGY: $S\nCODE:\n```\ndef helper(x):\n    return x\n```\nand\n$F",
    "an earlier draft": "$D\nBetter:\n\nSTRATEGY: $S\nCODE:\n$F",
    "three drafts": "$D$D\nSTRATEGY: $S\nCODE:\n$F",
    "drafts in a fence": "STRATEGY: $S\nCODE:\n```python\n$d$C```\n",
    "a cut draft behind": "STRATEGY: $S\nCODE:\n$F\nOr:\n```python\ndef $R(a,",
    "an example": "STRATEGY: $S\nCODE:\n```python\n$C\nd = [[0, 1], [1, 0]]\nprint($R(d))\n```\n",
    "an example apart": "STRATEGY: $S\nCODE:\n$F\nUsage:\n```python\nx = $R([])\nprint(x)\n```\n",
    "a main": "STRATEGY: $S\nCODE:\n```\n$C\nif __name__ == '__main__':\n    print(1)\n```\n",
    "a test": "STRATEGY: $S\nCODE:\n```\n$C\ndef test():\n    open('x')\ntest()\n```\n",
    "thoughts": "<think>\n$D</think>\nSTRATEGY: $S\nCODE:\n$F",
    "end of thoughts": "I think of a def.\n</think>\nSTRATEGY: $S\nCODE:\n$F",
    "open thoughts": "<think>\nSTRATEGY: $S\nCODE:\n$F",
}
_ASKED = _TEMPLATES["as asked"]
_LABELS = _TEMPLATES["without a fence"]


def _filled(template: str, sentence: str, source: str) -> str:
    role = "destroy" if "def destroy" in source else "repair"
    draft = f"def {role}(*a):\n    raise NotImplementedError\n"
    values = {
        "$F": f"```python\n{source}```\n",
        "$J": json.dumps(source),
        "$L": ",\n".join(map(json.dumps, source.splitlines())),
        "$D": f"```python\n{draft}```\n",
        "$d": draft,
        "$R": role,
        "$C": source,
        "$S": sentence,
    }
    for name, value in values.items():
        template = template.replace(name, value)
    return template


def _typed(source: str) -> str:
    """As Python's shell shows it."""
    lines = source.rstrip("\n").split("\n")
    marks = [">>> " if line and not line[0].isspace() else "... " for line in lines]
    return "".join(f"{mark}{line}\n" for mark, line in zip(marks, lines, strict=True))


# Of the source, before it is put into a template.
_CHANGED: dict[str, tuple[str, Callable[[str], str]]] = {
    "fence ends on the line": ("STRATEGY: $S\nCODE:\n```python\n$C```\n", str.rstrip),
    "raw json": (
        '{"strategy": "$S", "code": "$C"}',
        lambda c: c.replace("\\", "\\\\").replace('"', '\\"'),
    ),
    "indented": (_LABELS, lambda c: textwrap.indent(c, "    ")),
    "indented fence": (
        "1. STRATEGY: $S\n2. CODE:\n$C", lambda c: textwrap.indent(f"```py\n{c}```\n", "   ")
    ),
    "tabs": (_ASKED, lambda c: c.replace("    ", "\t")),
    "quoted": (_LABELS, lambda c: textwrap.indent(c, "> ", lambda line: True)),
    "a shell": (_LABELS, _typed),
}  # fmt: skip
SHAPES = (*_TEMPLATES, *_CHANGED, "crlf")


def shaped(shape: str, sentence: str, source: str) -> str:
    """The answer of one of SHAPES with a strategy's sentence and a program's source."""
    if shape == "crlf":
        return _filled(_ASKED, sentence, source).replace("\n", "\r\n")
    template, change = _CHANGED.get(shape, (_TEMPLATES.get(shape, ""), str))
    return _filled(template, sentence, change(source))

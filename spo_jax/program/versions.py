"""Versions of a function as FunSearch shows them: destroy_v0, destroy_v1, ... in one file."""

import ast
import io
import re
import tokenize

from spo_jax.errors import Rejection
from spo_jax.program.syntax import parse_tree
from spo_jax.program.types import entry_function

IMPROVED = "Improved version of"  # how the docstring of a later version begins


def version(source: str, name: str, number: int) -> str:
    """A program with its function, and its calls of itself, named as version `number`.

    Later ones than 0 have the docstring that says of which version they are the improvement.
    """
    function = entry_function(parse_tree(source), name)
    lines = source.split("\n")
    first, later = function.body[0], function.body[1:]
    if number and first.lineno > function.lineno:
        end = first.lineno - 1
        alone = not later or later[0].lineno > (first.end_lineno or first.lineno)
        if ast.get_docstring(function) is not None and alone:
            end = first.end_lineno or end
        indent = lines[first.lineno - 1][: first.col_offset]
        lines[first.lineno - 1 : end] = [indent + _docstring(name, number)]
    return renamed("\n".join(lines), {function.name: f"{name}_v{number}"})


def header(source: str, name: str, number: int) -> str:
    """The head of version `number`, with the parameters of a program, for the model to complete."""
    function = entry_function(parse_tree(source), name)
    given = ast.unparse(function.args)
    return f"def {name}_v{number}({given}):\n    {_docstring(name, number)}\n"


def newest(source: str, name: str) -> str:
    """The program in a text of versions: the newest, under its own name.

    A text without versions is returned as it is. Raises Rejection for a newest version that calls
    an earlier one, since a program stands alone.
    """
    named = re.compile(rf"{name}_v(\d{{1,9}})")
    functions = {
        int(match[1]): node
        for node in parse_tree(source).body
        if isinstance(node, ast.FunctionDef) and (match := named.fullmatch(node.name))
    }
    if not functions:
        return source
    last = max(functions)
    lines = source.split("\n")
    for number, node in functions.items():
        if number != last:
            for place in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[place] = ""
    kept = "\n".join(lines).strip("\n") + "\n"
    for word in ast.walk(parse_tree(kept)):
        called = word.id if isinstance(word, ast.Name) else ""
        if named.fullmatch(called) and called != functions[last].name:
            raise Rejection(f"{functions[last].name} calls {called}, an earlier version")
    return renamed(kept, {functions[last].name: name})


def _docstring(name: str, number: int) -> str:
    return f'"""{IMPROVED} `{name}_v{number - 1}`."""'


def renamed(source: str, names: dict[str, str]) -> str:
    """A text with other names; strings and comments stay as they are."""
    lines = source.split("\n")
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError, SystemError) as error:  # the last in 3.13
        raise Rejection(f"unreadable source: {error}") from None
    for token in reversed(tokens):  # from the end, so that earlier places stay where they are
        if token.type == tokenize.NAME and token.string in names:
            row, column = token.start
            line = lines[row - 1]
            lines[row - 1] = (
                line[:column] + names[token.string] + line[column + len(token.string) :]
            )
    return "\n".join(lines)

"""Programs and pairs, parsed from a model's answer or a pair file.

What reads and writes texts is loaded when it is first asked for: workers know programs alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from spo_jax.program.game import DESTROY_REPAIR, Game, Side
from spo_jax.program.interface import Argument, Interface
from spo_jax.program.syntax import parse_tree
from spo_jax.program.types import (
    MAX_SOURCE,
    ROLES,
    AnswerFormat,
    Completion,
    Group,
    Pair,
    Program,
    Prompt,
    Role,
    Turn,
    Usage,
    conversation,
    entry_function,
    normalise,
    one_line,
)

if TYPE_CHECKING:
    from spo_jax.program.answers import parse_answer, parse_response
    from spo_jax.program.pairfile import Unwritable, format_pair, load_pair, save_pair

__all__ = [
    "DESTROY_REPAIR",
    "MAX_SOURCE",
    "ROLES",
    "AnswerFormat",
    "Argument",
    "Completion",
    "Game",
    "Group",
    "Interface",
    "Pair",
    "Program",
    "Prompt",
    "Role",
    "Side",
    "Turn",
    "Unwritable",
    "Usage",
    "conversation",
    "entry_function",
    "format_pair",
    "load_pair",
    "normalise",
    "one_line",
    "parse_answer",
    "parse_response",
    "parse_tree",
    "save_pair",
]

_HOMES = dict.fromkeys(("parse_answer", "parse_response"), "answers")
_HOMES |= dict.fromkeys(("Unwritable", "format_pair", "load_pair", "save_pair"), "pairfile")


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found

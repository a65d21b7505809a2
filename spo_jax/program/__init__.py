"""Programs and pairs, and the texts they come from: a model's answer or a pair file."""

from spo_jax.program.answers import parse_response
from spo_jax.program.nouns import (
    MAX_SOURCE,
    ROLES,
    Completion,
    Group,
    Pair,
    Program,
    Prompt,
    Role,
    Usage,
    entry_function,
    normalise,
    one_line,
    parse_tree,
)
from spo_jax.program.pairfile import format_pair, load_pair, save_pair

__all__ = [
    "MAX_SOURCE",
    "ROLES",
    "Completion",
    "Group",
    "Pair",
    "Program",
    "Prompt",
    "Role",
    "Usage",
    "entry_function",
    "format_pair",
    "load_pair",
    "normalise",
    "one_line",
    "parse_response",
    "parse_tree",
    "save_pair",
]

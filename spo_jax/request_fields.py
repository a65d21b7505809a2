"""The fields that a request to an endpoint may have besides our own: the setting request_extra."""

import json

from spo_jax.errors import InputError

# What a request says by other settings, or has to be as it is.
OWN_FIELDS = frozenset(
    ("model", "messages", "temperature", "top_p", "max_tokens", "max_completion_tokens", "seed")
) | {"n", "stream"}


def check_extra(text: str) -> None:
    """Raises InputError unless `text` is a JSON object of fields that are free."""
    try:
        fields = json.loads(text)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise InputError(
            f"request_extra is {text!r}; it must be a JSON object, as "
            """'{"reasoning_effort": "low"}'"""
        )
    if taken := sorted(OWN_FIELDS & fields.keys()):
        raise InputError(
            f"request_extra holds {', '.join(taken)}, which a request says by itself; leave it out"
        )

"""Errors in the words of a caller from Python: arguments where the command line has options."""

import contextlib
import re
from collections.abc import Iterator

from spo_jax.errors import SpoError

_OPTION = re.compile(r"--([a-z]+(?:-[a-z]+)*)(?: [A-Z]+(?:\.py|\.png)?\b)?")
_PHRASES = (
    (re.compile(r"--resume RUN\b"), "resume=True and path=RUN"),
    (re.compile(r"--resume \S.*, or another --out\b"), "resume=True, or another path"),
    (re.compile(r"--resume\b"), "resume=True"),
)
_ARGUMENTS = {
    "out": "path",
    "time": "seconds",
    "reference-effort": "effort",
    "method-setting": "method_settings",
    "update-setting": "update_settings",
    **{
        name: name
        for name in ("problem", "preset", "search", "steps", "seeds", "references", "rewind")
    },
    "distances": "distances",
    "capacity": "capacity",
    "vehicles": "vehicles",
}


@contextlib.contextmanager
def in_arguments(**names: str) -> Iterator[None]:
    """A SpoError of the block, or of a function decorated with this, names Python's arguments.

    It is the same error; its sentence has cpu_seconds where it had --cpu-seconds. Options that
    are not ours, as those of a vLLM server, stay. names: arguments of the function by option,
    where they are not the settings'.
    """
    try:
        yield
    except SpoError as error:
        from spo_jax.config import FIELDS  # pydantic is slow, and only this needs it

        known = {name.replace("_", "-"): name for name in FIELDS} | _ARGUMENTS
        known |= {option.replace("_", "-"): name for option, name in names.items()}
        text = str(error)
        for phrase, words in _PHRASES:
            text = phrase.sub(words, text)
        text = _OPTION.sub(lambda found: known.get(found[1], found[0]), text)
        error.args = (text, *error.args[1:])
        raise

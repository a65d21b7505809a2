"""Answers as rows: the texts of prompts, compressed, and what became of answers sent back."""

import zlib
from collections.abc import Iterator
from typing import Any

from spo_jax.envs.run.rollouts import Status
from spo_jax.search.rounds import Answers


def mend_rows(answers: Answers) -> Iterator[tuple[Any, ...]]:
    """The further answers: place, number from 1, what was wrong before, what was said of it, what
    is wrong now ("ok" for nothing), and the program.
    """
    for place, mend in enumerate(answers.mended):
        wrong = "" if mend is None else mend.status
        for number, attempt in enumerate(mend.attempts if mend else (), 1):
            digest = "" if attempt.program is None else attempt.program.digest
            status = attempt.status or Status.OK.label
            yield (place, number, wrong, attempt.prompt.turns[-1][1], status, digest)
            wrong = attempt.status


def packed(text: str, like: str) -> bytes:
    """A prompt's text, compressed. like: the first one of its round and role, "" for that itself.

    Prompts of a round differ by their programs alone, so the others take a tenth of it.
    """
    press = zlib.compressobj(zdict=as_bytes(like or " "))
    return press.compress(as_bytes(text)) + press.flush()


def unpacked(data: bytes, like: str) -> str:
    """The inverse of `packed`. Raises zlib.error or UnicodeDecodeError for what is none."""
    press = zlib.decompressobj(zdict=as_bytes(like or " "))
    return (press.decompress(data) + press.flush()).decode()


def as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")

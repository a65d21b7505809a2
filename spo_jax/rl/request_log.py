"""What an endpoint was asked and said, line by line: no answer is asked for, or paid, twice.

A line is written when its request is settled and never changed, so a run that is killed finds all
that it had. A kill in the middle of a line leaves a torn one, which is cut off.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spo_jax import jsontext
from spo_jax.program import Completion, Prompt, Role, Usage
from spo_jax.seeding import derive

REQUESTS = "requests.jsonl"  # its name in a run folder
LOST = Completion("", usage=Usage(lost=True))  # in the place of an answer that cannot be had


@dataclass(frozen=True)
class Request:
    """One answer that is wanted.

    sample: which of the answers to this text in its call, from 0. key: hex digest of the call's
    seed, the text, the sample and what else is sent; equal keys are the same request.
    """

    role: Role
    text: str
    sample: int
    key: str

    @property
    def seed(self) -> int:
        """The seed to send: 31 bits, which every server can hold."""
        return derive(self.key) % 2**31


def requests(
    prompts: Sequence[Prompt], n: int, seed: int, extra: Mapping[str, Any] | None = None
) -> list[Request]:
    """`n` requests for each prompt, in their order; prompts with one text share its samples.

    extra: fields that are sent besides, in any order.
    """
    more = (json.dumps(extra, sort_keys=True),) if extra else ()
    asked: dict[str, int] = {}
    found = []
    for prompt in prompts:
        for _ in range(n):
            sample = asked.get(prompt.text, 0)
            asked[prompt.text] = sample + 1
            name = "\0".join((str(seed), prompt.text, str(sample), *more))
            key = hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
            found.append(Request(prompt.role, prompt.text, sample, key))
    return found


class RequestLog:
    """Settled requests by their keys, in memory, and in a file where one is given.

    The file belongs to one process. A line that cannot be read is as if it were not there.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._settled: dict[str, Completion] = {}
        if path is None or not path.exists():
            return
        with open(path, "rb+") as file:
            data = file.read()
            whole = data.rfind(b"\n") + 1
            file.truncate(whole)
        for line in data[:whole].splitlines():
            try:
                entry = jsontext.parse(line)
                self._settled[entry["key"]] = _completion(entry)
            except (ValueError, TypeError, KeyError):
                continue

    def __contains__(self, request: Request) -> bool:
        return request.key in self._settled

    def __getitem__(self, request: Request) -> Completion:
        return self._settled[request.key]

    @property
    def answered(self) -> bool:
        """Whether there ever was an answer."""
        return any(c.usage is not None and not c.usage.lost for c in self._settled.values())

    def answer(self, request: Request, text: str, **counted: Any) -> None:
        """Keep an answer. counted: prompt_tokens, completion_tokens, finish and model,
        each as the endpoint says or None.
        """
        self._write([{**_name(request), "text": text, **counted}])

    def give_up(self, failed: Iterable[tuple[Request, str]]) -> None:
        """Keep that some answers could not be had, and why: each is an empty text from now on."""
        self._write([{**_name(request), "error": why} for request, why in failed])

    def _write(self, entries: Sequence[dict[str, Any]]) -> None:
        if self._path is not None and entries:
            with open(self._path, "a", encoding="utf-8") as file:
                file.write("".join(json.dumps(entry) + "\n" for entry in entries))
                file.flush()
                os.fsync(file.fileno())
        for entry in entries:
            self._settled[entry["key"]] = _completion(entry)


def _name(request: Request) -> dict[str, Any]:
    return {"key": request.key, "role": request.role, "sample": request.sample}


def _completion(entry: dict[str, Any]) -> Completion:
    if "error" in entry:
        return LOST
    if not isinstance(entry["text"], str):
        raise TypeError("an answer is a text")
    usage = Usage(
        prompt_tokens=entry["prompt_tokens"],
        completion_tokens=entry["completion_tokens"],
        cut=entry["finish"] == "length",
    )
    return Completion(entry["text"], usage=usage)

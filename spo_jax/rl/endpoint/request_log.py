"""The log of an endpoint's requests and answers, so that no answer is requested or paid twice.

A line is written when its request completes and never changes, so a killed run loses no answer. An
incomplete last line after a kill is removed.
"""

import hashlib
import json
import os
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spo_jax import jsontext
from spo_jax.program import Completion, Prompt, Role, Turn, Usage
from spo_jax.seeding import derive

REQUESTS = "requests.jsonl"  # its name in a run folder
LOST = Completion("", usage=Usage(lost=True))  # replaces a failed answer


@dataclass(frozen=True)
class Request:
    """One requested answer.

    sample: number of the answer to this text in its call, from 0. key: hex digest of the call's
    seed, all messages, the sample, what is added to the temperature and the additional fields;
    equal keys are the same request.
    """

    role: Role
    text: str
    sample: int
    key: str
    system: str = ""
    warmer: float = 0.0
    turns: tuple[Turn, ...] = ()

    @property
    def asks(self) -> tuple[object, ...]:
        """What is sent but for the seed: one request can ask for the answers of equal ones."""
        return self.text, self.system, self.warmer, self.turns

    @property
    def seed(self) -> int:
        """The seed to send: 31 bits, which every server accepts."""
        return derive(self.key) % 2**31


def requests(
    prompts: Sequence[Prompt], n: int, seed: int, extra: Mapping[str, Any] | None = None
) -> list[Request]:
    """`n` requests for each prompt, in their order; prompts that ask the same share its samples.

    extra: additional fields, in any order.
    """
    more = (json.dumps(extra, sort_keys=True),) if extra else ()
    asked: Counter[tuple[str, ...]] = Counter()
    found = []
    for prompt in prompts:
        system, warmer = prompt.system, prompt.warmer
        # Only what differs from a plain request is in a key, so logs of older runs stay valid.
        own: tuple[str, ...] = (
            (f"system {system}", f"warmer {warmer!r}") if system or warmer else ()
        )
        own += tuple(f"turn {json.dumps(turn)}" for turn in prompt.turns)
        for _ in range(n):
            sample = asked[prompt.text, *own]
            asked[prompt.text, *own] += 1
            name = "\0".join((str(seed), prompt.text, str(sample), *own, *more))
            key = hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
            request = Request(prompt.role, prompt.text, sample, key, system, warmer, prompt.turns)
            found.append(request)
    return found


class RequestLog:
    """Completed requests by their keys, in memory and, if given, in a file.

    The file belongs to one process, whose threads may write at the same time. Unreadable lines are
    ignored.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._writing = threading.Lock()
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
        """Whether there is any answer."""
        return any(c.usage is not None and not c.usage.lost for c in [*self._settled.values()])

    def answer(self, answered: Iterable[tuple[Request, Mapping[str, Any]]]) -> None:
        """Keep the answers of one reply. Each has its text, prompt_tokens, completion_tokens,
        finish and model, all but the text from the endpoint or None.
        """
        self._write([{**_name(request), **answer} for request, answer in answered])

    def give_up(self, failed: Iterable[tuple[Request, str]]) -> None:
        """Keep failed answers and the reason: each is an empty text from now on."""
        self._write([{**_name(request), "error": why} for request, why in failed])

    def _write(self, entries: Sequence[dict[str, Any]]) -> None:
        if self._path is not None and entries:
            with self._writing, open(self._path, "a", encoding="utf-8") as file:
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

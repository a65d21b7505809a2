"""Puts a streamed chat completion together: server-sent events become one plain reply.

An answer that is streamed can be watched, and one that stalls is seen. The reply that comes of it
is as without streaming, so whatever reads and cleans replies need not know of streams. Memory is
bounded by the texts and by one event, whatever else a server sends.
"""

from typing import Any

from spo_jax import jsontext

EVENT = 2**20  # bytes of one event
CHOICES = 1000  # answers of a reply
LONGEST = 100  # characters of a reason why an answer ended


class EventStream:
    """The reply to a streamed request. limit: characters of all texts together."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._texts: dict[int, list[str]] = {}
        self._ends: dict[int, Any] = {}
        self._others: dict[str, Any] = {}
        self._length = 0
        self._over = False

    def feed(self, data: bytes) -> int:
        """Read the next bytes; returns how many pieces of answers they hold, about one per token.

        Raises ValueError for what is no such stream, or too long: what came, as the end of a
        sentence, in words of ours.
        """
        self._buffer += data
        *lines, rest = self._buffer.replace(b"\r\n", b"\n").split(b"\n")
        if len(rest) > EVENT:
            raise ValueError(f"an event of more than {EVENT} bytes")
        pieces = sum(self._line(bytes(line)) for line in lines)
        self._buffer = rest
        return pieces

    def reply(self) -> dict[str, Any]:
        """The reply. Raises ValueError as `feed`, and EOFError if the stream ended too early."""
        self.feed(b"\n")
        texts, ends = self._texts, self._ends
        if "error" in self._others:  # what came before it is no whole answer
            return self._others
        if not self._over and not (texts and texts.keys() <= ends.keys()):
            raise EOFError("the stream ended within an answer")
        choices = [
            {"index": i, "message": {"content": "".join(texts[i])}, "finish_reason": ends.get(i)}
            for i in sorted(texts)
        ]
        return {**self._others, "choices": choices}

    def _line(self, line: bytes) -> int:
        """Read a line; how many pieces of answers it holds. Only lines of data hold any."""
        name, _, data = line.partition(b":")
        if name != b"data" or self._over:
            return 0
        if data.strip() == b"[DONE]":
            self._over = True
            return 0
        try:
            event = jsontext.parse(data)
        except ValueError:
            raise ValueError("an event that is not JSON") from None
        if not isinstance(event, dict):
            raise ValueError("an event that is no object")
        self._others |= {
            name: event[name] for name in ("error", "model", "usage") if event.get(name)
        }
        choices = event.get("choices") or []
        try:
            return sum(map(self._piece, choices))
        except (AttributeError, KeyError, TypeError):
            raise ValueError("an event that is no part of a chat completion") from None

    def _piece(self, choice: dict[str, Any]) -> bool:
        index, delta = choice["index"], choice.get("delta") or {}
        if type(index) is not int or not 0 <= index < CHOICES:
            raise KeyError(index)
        texts, text = self._texts.setdefault(index, []), delta.get("content") or ""
        if not isinstance(text, str):
            raise TypeError(text)
        if text:
            texts.append(text)
        self._length += len(text)
        if self._length > self._limit:
            raise ValueError(f"answers of more than {self._limit} characters")
        if reason := choice.get("finish_reason"):
            short = isinstance(reason, str) and len(reason) <= LONGEST
            self._ends[index] = reason if short else None
        return any(value for name, value in delta.items() if name != "role")

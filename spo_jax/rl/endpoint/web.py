"""Sends requests to servers, reads their replies within limits, and keeps the keys out of texts.

A server may send forever, a byte at a time or as fast as it can, and a body may decompress to a
thousand times its size. So a whole request has one deadline, and a body has a limit after
decompression, which is done once at most. Redirects are not followed, because they could send the
key elsewhere. Each request has its own client, so it uses no cookie and no connection of an earlier
one, on which an answer could arrive before its request.

A run stores addresses and shows server texts, so neither may contain a secret. Keys are read from
the environment at each use; no object holds them.
"""

import asyncio
import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from email.utils import mktime_tz, parsedate_tz
from functools import cache
from ssl import SSLContext
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2

from spo_jax import jsontext
from spo_jax.errors import InputError
from spo_jax.rl.endpoint.event_stream import EventStream

MB = 2**20
LIMIT = 4 * MB  # bytes of a body
CONNECT = 10.0  # seconds for a connection
STALL = 120.0  # seconds without a byte within a streamed answer
CODINGS = ("identity", "gzip", "deflate")  # we ask for the first; some send another all the same
HEADERS = {"accept-encoding": "identity", "content-type": "application/json"}
ENDPOINT_KEYS = ("SPO_API_KEY", "OPENAI_API_KEY")  # environment variables, the first that is set
VLLM_KEYS = ("VLLM_API_KEY",)  # vLLM's own variable
MOST_READ = 10_000  # characters of a server's text that are read to show it
LONGEST = 300  # shown characters of a server's text
LEAST = 6  # characters of a secret; a shorter key (none, EMPTY) is an ordinary word
STRUCK = "..."  # replaces a key
SURE = 16  # a key of this length is no part of a server's or a model's name by chance
SURROGATE = re.compile("[\ud800-\udfff]")  # unpaired, as JSON's parser joins pairs

T = TypeVar("T")


class Lost(Exception):
    """No answer, or one that does not depend on the request: the request may be repeated."""


class Late(Lost):
    """No answer before the deadline."""


@dataclass(frozen=True)
class Reply:
    """A server's reply. flaw: why its body is missing, as the end of a sentence, or ""."""

    status: int
    headers: Mapping[str, str]
    data: bytes
    flaw: str = ""

    @property
    def fine(self) -> bool:
        return 200 <= self.status < 300

    @property
    def temporary(self) -> bool:
        """Whether the same request may have another reply later."""
        return self.status in (408, 409, 429) or self.status >= 500

    @property
    def wait(self) -> float:
        """Seconds until a repetition, by Retry-After, a number or a date; 0.0 if it says none."""
        header = self.headers.get("retry-after", "")
        if re.fullmatch(r"[0-9]+(\.[0-9]+)?", header):
            return float(header)
        try:
            date = parsedate_tz(header[:40])
            return max(0.0, mktime_tz(date) - time.time()) if date else 0.0
        except (ValueError, OverflowError):
            return 0.0

    def value(self, picked: Callable[[Any], Any] = lambda found: found) -> Any:
        """The value of a JSON body, cleaned of the key. Raises ValueError for invalid JSON.

        picked: selects the needed part of the value, so that only this part is cleaned.
        """
        return cleaned(picked(jsontext.parse(self.data)))

    def error_text(self) -> str:
        """The message of an error, or all of its text, for a terminal."""
        try:
            return shown(self.flaw or message(jsontext.parse(self.data)))
        except ValueError:
            return shown(self.data.decode("utf-8", "replace"))


def message(found: Any) -> str:
    """The message in a server's error value, or all of it, before cleaning."""
    if isinstance(found, dict):
        found = found.get("error", found)
    if isinstance(found, dict):
        found = found.get("message", found.get("detail", found))
    return str(found)


async def fetch(
    method: str,
    url: str,
    *,
    seconds: float,
    headers: Mapping[str, str],
    body: Mapping[str, Any] | None = None,
    limit: int = LIMIT,
    heard: Callable[[int], None] | None = None,
    proxies: bool = False,
) -> Reply:
    """The reply to a request, whatever its status. Raises Late after `seconds`, and Lost for a
    server that cannot be reached or sends no complete reply.

    body: sent as JSON. limit: bytes of the reply's body. heard: is called with the number of pieces
    of answers that came, while they come; a streamed reply then becomes a plain one. proxies:
    whether to use those that the environment names.
    """
    data = None if body is None else json.dumps(body, separators=(",", ":")).encode()
    timeout = httpx2.Timeout(None, connect=CONNECT)
    try:
        async with (
            asyncio.timeout(seconds),
            httpx2.AsyncClient(verify=_trusted(), trust_env=proxies, timeout=timeout) as client,
            client.stream(method, url, content=data, headers={**HEADERS, **headers}) as response,
        ):
            return await _received(response, limit, heard)
    except TimeoutError:
        raise Late(f"gave no answer within {seconds:g} s") from None
    except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
        raise Lost(f"cannot be reached ({_why(error)})") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, EOFError, OSError, ValueError) as error:
        raise Lost(f"broke off, or answered with invalid HTTP ({_why(error)})") from None


def begin(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Start requests of a thread that may itself run an event loop, as a notebook's does.

    Cancelling the future aborts them.
    """
    return asyncio.run_coroutine_threadsafe(work, _loop())


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="web", daemon=True).start()
    return loop


@cache
def _trusted() -> SSLContext:
    """Made once, because that takes longer than a request."""
    for name in ("httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)  # below, they log server texts
    return httpx2.create_ssl_context()


async def _received(
    response: httpx2.Response, limit: int, heard: Callable[[int], None] | None
) -> Reply:
    """The reply with its body. Raises EOFError for a stream that ends early or stalls."""
    status, headers = response.status_code, response.headers

    def flawed(why: str) -> Reply:
        return Reply(status, headers, b"", f"answered {why}")

    if headers.get("content-encoding", "identity").strip().lower() not in CODINGS:
        return flawed("in an encoding that was not requested")
    streamed = headers.get("content-type", "").lower().startswith("text/event-stream")
    if heard and streamed and status == 200:
        try:
            return Reply(status, headers, await _streamed(response, heard))
        except ValueError as error:
            return flawed(f"with {_why(error)}")
    data = bytearray()
    async for part in response.aiter_bytes():
        data += part
        if len(data) > limit:
            return flawed(f"with more than {limit / MB:g} MB")
    return Reply(status, headers, bytes(data))


async def _streamed(response: httpx2.Response, heard: Callable[[int], None]) -> bytes:
    """The plain body of a stream. Raises as `EventStream` does."""
    stream, parts, begun = EventStream(LIMIT), response.aiter_bytes(), False
    while True:
        try:
            async with asyncio.timeout(STALL if begun else None):
                part = await anext(parts)
        except TimeoutError:
            raise EOFError(f"nothing came for {STALL:g} s") from None
        except StopAsyncIteration:
            return json.dumps(stream.reply()).encode()
        if pieces := stream.feed(part):
            begun = True
            heard(pieces)


def _why(error: Exception) -> str:
    """It may quote a server, as in a status line."""
    return shown(str(error) or type(error).__name__)


# --- addresses and keys ---------------------------------------------------------------------------


def address(url: str, setting: str, names: tuple[str, ...]) -> str:
    """`url` without a final slash. names: of the variables for the key.

    Raises InputError for an invalid address, and for one with a secret.
    """
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        known = False
    if not known:
        raise InputError(f"{setting} is not an address; write it as http://127.0.0.1:8000/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InputError(
            f"{setting} must not contain a name, password or query, because a run stores it; "
            f"put the key into the environment variable {names[0]}"
        )
    return url.rstrip("/")


def key(names: tuple[str, ...]) -> str:
    """The key in the first set variable of these, stripped of blanks, or "".

    Raises InputError for one that cannot be sent: a later error message would show it.
    """
    for name in names:
        if found := os.environ.get(name, "").strip():
            if not (found.isascii() and found.isprintable()):
                raise InputError(
                    f"the key in {name} has a line break or another character that no key has; "
                    "set it again"
                )
            return found
    return ""


def check_kept(text: str, setting: str, names: tuple[str, ...]) -> None:
    """Raises InputError for a setting that contains the key, because a run stores its settings."""
    if any(own.lower() in text.lower() for own in _keys() if len(own) >= SURE):
        raise InputError(
            f"{setting} contains the key, and a run stores it; put the key into the environment "
            f"variable {names[0]}"
        )


def cleaned(value: Any) -> Any:
    """A JSON value without our keys or unpaired surrogates in its strings and field names.

    A key is removed as it stands, in any case; one that a server disguises is not looked for. Every
    server text passes through here before we read, store or show it. No file or terminal accepts an
    unpaired surrogate.
    """
    keys = [re.compile(re.escape(own), re.IGNORECASE) for own in _keys()]

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            text = SURROGATE.sub("\ufffd", value)
            for own in keys:
                text = own.sub(STRUCK, text)
            return text
        if isinstance(value, list):
            return [clean(each) for each in value]
        if isinstance(value, dict):
            return {clean(name): clean(each) for name, each in value.items()}
        return value

    return clean(value)


def shown(text: str) -> str:
    """At most `LONGEST` characters on one line, without the key, for a terminal."""
    start = cleaned(text[:MOST_READ])[: 10 * LONGEST]
    line = " ".join("".join(c if c.isprintable() else " " for c in start).split())
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."


def _keys() -> list[str]:
    """All set keys, also those that cannot be sent."""
    found = {os.environ.get(name, "").strip() for name in (*ENDPOINT_KEYS, *VLLM_KEYS)}
    return sorted(own for own in found if len(own) >= LEAST)

"""Reads a server's reply within limits of time and size, for every client.

A server may send forever, a byte at a time or as fast as it can, and a body may decompress to a
thousand times its size. So a whole request has one deadline, and a body has one limit before and
after decompression. Replies are cleaned of the key before any use.
"""

import asyncio
import logging
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.cookiejar import CookieJar
from importlib import import_module
from typing import Any

from spo_jax import jsontext
from spo_jax.rl.access import cleaned

MB = 2**20
LIMIT = 4 * MB  # bytes of a body, before and after decompression
SAID = 10_000  # characters of a server's error message
CODINGS = 3  # nested content codings of a body
KEPT = {  # headers that are read, and their valid values
    "retry-after": re.compile(
        r"[0-9]{1,300}(\.[0-9]{1,9})?|[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT"
    ),
    "retry-after-ms": re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?"),
    "location": re.compile(r"[!-~]{1,500}"),
}
FLAW = "spo_flaw"  # in a response's extensions: why its body is incomplete


@dataclass(frozen=True)
class Body:
    """The bytes of an answer. flaw: why they are incomplete, as the end of a sentence, or ""."""

    data: bytes
    flaw: str = ""


def decoded(data: bytes, codings: str, limit: int = LIMIT) -> Body:
    """A body decoded by its Content-Encoding header, of at most `limit` bytes."""
    names = [name for each in codings.split(",") if (name := each.strip().lower())]
    names = [name for name in names if name != "identity"]
    if len(names) > CODINGS or not {"gzip", "x-gzip", "deflate"}.issuperset(names):
        return Body(b"", "answered in an encoding that was not requested")
    for name in reversed(names):
        try:
            data, whole = _inflated(data, name, limit)
        except zlib.error:
            return Body(b"", f"answered with {name} that cannot be decompressed")
        if len(data) > limit:
            return Body(data[:limit], too_much(limit))
        if not whole:
            return Body(data, f"answered with {name} that breaks off")
    return Body(data)


def _inflated(data: bytes, name: str, limit: int) -> tuple[bytes, bool]:
    """At most `limit` + 1 bytes, and whether the stream came to its end."""
    if name != "deflate":
        window = zlib.MAX_WBITS | 16
    elif len(data) > 1 and data[0] & 15 == 8 and (data[0] * 256 + data[1]) % 31 == 0:
        window = zlib.MAX_WBITS
    else:  # without zlib's header, as some send it
        window = -zlib.MAX_WBITS
    machine = zlib.decompressobj(window)
    return machine.decompress(data, limit + 1), machine.eof


def too_much(limit: int) -> str:
    return f"answered with more than {limit / MB:g} MB"


def value(data: bytes, picked: Callable[[Any], Any] = lambda found: found) -> Any:
    """The value of a JSON body, cleaned of the key. Raises ValueError for invalid JSON.

    picked: selects the needed part of the value, so that only this part is cleaned.
    """
    return cleaned(picked(jsontext.parse(data)))


def said(data: bytes) -> str:
    """The message in a server's error text, or all of it, cleaned of the key."""
    try:
        found = words(jsontext.parse(data))
    except ValueError:
        found = data.decode("utf-8", "replace")
    return str(cleaned(found[:SAID]))


def words(found: Any) -> str:
    """The message in a server's error value, or all of it, before cleaning."""
    if isinstance(found, dict):
        found = found.get("error", found)
    if isinstance(found, dict):
        found = found.get("message", found.get("detail", found))
    return str(found)


# --- with the client of the package openai --------------------------------------------------------


def openai_http() -> Any:
    """The module whose client, responses and errors the package openai uses."""
    from openai import DefaultAsyncHttpxClient

    return import_module(DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0])


def http_client(seconds: float) -> Any:
    """A client for AsyncOpenAI; every request, body included, ends within `seconds`.

    It follows no redirects, which could send the key elsewhere, and keeps no cookies and no
    connections, on which an answer could arrive before its request.
    """
    from openai import DefaultAsyncHttpxClient

    http = openai_http()
    for name in (http.__name__, http.__name__.replace("httpx", "httpcore")):
        logging.getLogger(name).setLevel(logging.WARNING)  # below, they log server texts

    class NoCookies(CookieJar):
        def extract_cookies(self, response: Any, request: Any) -> None:
            return None

    class Bounded(DefaultAsyncHttpxClient):  # type: ignore[misc, valid-type, unused-ignore]
        async def send(self, request: Any, **how: Any) -> Any:
            how |= {"stream": True, "follow_redirects": False}
            try:
                async with asyncio.timeout(seconds):
                    response = await super().send(request, **how)
                    try:
                        body = await _received(response)
                    finally:
                        await response.aclose()
            except TimeoutError:
                raise http.ReadTimeout("the deadline has passed", request=request) from None
            return http.Response(
                response.status_code,
                headers=_kept(response.headers),
                content=body.data,
                request=request,
                extensions={FLAW: body.flaw},
            )

    return Bounded(
        timeout=http.Timeout(seconds, connect=min(seconds, 10.0)),
        limits=http.Limits(max_keepalive_connections=0),
        cookies=NoCookies(),
        headers={"accept-encoding": "identity"},
    )


async def _received(response: Any) -> Body:
    data = bytearray()
    async for part in response.aiter_raw():
        data += part
        if len(data) > LIMIT:
            return Body(b"", too_much(LIMIT))
    return decoded(bytes(data), response.headers.get("content-encoding", ""))


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    return {
        name: cleaned(found)
        for name, form in KEPT.items()
        if (found := headers.get(name)) is not None and form.fullmatch(found)
    }

"""One HTTP request to a vLLM server, with one deadline and a size limit for all of it."""

import io
import socket
import time
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from typing import Any
from urllib.parse import SplitResult

PART = 2**16  # bytes per read


class TooMuch(HTTPException):
    """A body is longer than the limit."""


class Connection:
    """A connection to the server at `url` for one request.

    seconds: from now to the deadline for the last byte. Every method raises HTTPException or
    OSError, including TimeoutError after the deadline.
    """

    def __init__(self, url: SplitResult, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
        self._http = kind(str(url.hostname), url.port, timeout=seconds)
        self._socket: socket.socket | None = None

    def exchange(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], limit: int
    ) -> tuple[int, bytes]:
        """The status, and a body of at most `limit` bytes."""
        http = self._http
        http.connect()
        self._socket = http.sock
        http.sock.settimeout(self._left())
        http.request(method, path, body, headers)  # sendall: all data within the timeout
        reply = HTTPResponse(_Timed(http.sock, self._left), method=method)  # type: ignore[arg-type]
        try:
            reply.begin()
            data = bytearray()
            while part := reply.read(PART):
                data += part
                if len(data) > limit:
                    raise TooMuch(f"more than {limit} bytes")
            if reply.length:
                raise IncompleteRead(bytes(data), reply.length)
        finally:
            reply.close()
        return reply.status, bytes(data)

    def abort(self) -> None:
        """Abort it from another thread."""
        if self._socket is not None:
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._http.close()

    def _left(self) -> float:
        """Seconds until the deadline. Raises TimeoutError after it."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class _Timed(io.RawIOBase):
    """A socket and file for HTTPResponse; each read has the remaining time as its timeout."""

    def __init__(self, sock: socket.socket, left: Any) -> None:
        self._socket, self._left = sock, left

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self, PART)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._socket.settimeout(self._left())
        return self._socket.recv_into(buffer)

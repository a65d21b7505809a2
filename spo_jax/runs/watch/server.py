"""Answers a browser on this machine: a frame that asks what has changed, and pages of runs.

It listens on the loopback address, and answers only requests that name it, so that a page of
elsewhere whose name was made to point here (DNS rebinding) learns nothing. On another address every
request needs a token, which the printed link hands over once and a cookie keeps.
"""

import contextlib
import hmac
import ipaddress
import json
import re
import secrets
import time
from collections.abc import Sequence
from functools import cache
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from urllib.parse import parse_qs, urlsplit

from spo_jax.errors import InputError
from spo_jax.runs.report import compare
from spo_jax.runs.report.text import template
from spo_jax.runs.watch.watched import Watched

COOKIE = "spo-watch"
TOKEN = re.compile(r"[A-Za-z0-9_-]{8,64}")
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
COMPARISON = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'"
PATIENCE = 1.0  # seconds that the state of all runs waits for those that are being read
ASSETS = {"frame.js": "text/javascript", "frame.css": "text/css"}


class Server(ThreadingHTTPServer):
    """Serves runs until it is shut down."""

    daemon_threads = True

    def __init__(
        self, runs: Sequence[Watched], host: str = "127.0.0.1", port: int = 0,
        token: str | None = None,
    ):  # fmt: skip
        """port: 0 for any free one. token: for an address that others reach; made up if None.

        Raises InputError where the address cannot be listened on.
        """
        if token is not None and not TOKEN.fullmatch(token):
            raise InputError("--token must have 8 to 64 letters, digits, - and _")
        self.runs = runs
        self.local = is_loopback(host)
        self.token = "" if self.local and token is None else token or secrets.token_urlsafe(18)
        try:
            super().__init__((host, port), Handler)
        except OSError as error:
            what = error.strerror or str(error)
            raise InputError(
                f"cannot listen on {host}:{port}: {what}; give another --port, or 0 for any"
            ) from None
        except OverflowError:
            raise InputError(f"--port is {port}: it must be from 0 to 65535") from None

    @property
    def link(self) -> str:
        """What to open in a browser."""
        host, port = str(self.server_address[0]), int(self.server_address[1])
        return f"http://{host}:{port}/" + (f"?token={self.token}" if self.token else "")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    server_version, sys_version = "spo", ""

    def do_GET(self) -> None:
        """A page, a part of the frame, or the state of the runs."""
        where = urlsplit(self.path)
        given = parse_qs(where.query).get("token", [""])[0]
        if self.server.local and not self._names_us():
            self._refuse(403, "This server answers requests to 127.0.0.1 and localhost only.")
        elif self.server.token and given and self._is_token(given):
            self.send_response(303)
            self.send_header("Location", "/")
            self.send_header(
                "Set-Cookie", f"{COOKIE}={self.server.token}; Path=/; HttpOnly; SameSite=Strict"
            )
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.server.token and not self._is_token(self._cookie()):
            self._refuse(401, "Open the link with the token that spo watch printed.")
        else:
            self._answer(where.path)

    do_HEAD = do_GET

    def _answer(self, path: str) -> None:
        name = path.removeprefix("/")
        kind, _, number = name.partition("/")
        if path == "/":
            self._send(frame([each.path.name for each in self.server.runs]), "text/html", POLICY)
        elif name in ASSETS:
            self._send(asset(name), ASSETS[name])
        elif name == "state":
            self._send(json.dumps(self._states()), "application/json")
        elif name == "compare":
            self._send(self._comparison(), "text/html", COMPARISON)
        elif kind == "run" and number.isascii() and number.isdigit() and len(number) < 6:
            if int(number) >= len(self.server.runs):
                self._refuse(404, "There is no such run.")
                return
            try:
                page = self.server.runs[int(number)].page()
            except InputError as error:
                self._refuse(404, str(error))
            else:
                self._send(page, "text/html")  # it has a policy of its own
        else:
            self._refuse(404, "There is no such page.")

    def _states(self) -> list[dict[str, object]]:
        for each in self.server.runs:
            with contextlib.suppress(InputError):
                each.follow()
        until = time.monotonic() + PATIENCE
        return [each.state(max(0.0, until - time.monotonic())) for each in self.server.runs]

    def _comparison(self) -> str:
        runs, missing = [], []
        for each in self.server.runs:
            try:
                runs.append(each.run())
            except InputError as error:
                missing.append(str(error))
        page = compare.page(runs) if runs else {"missing": "No run can be read."}
        return compare.html(page, missing)

    def _names_us(self) -> bool:
        host = self.headers.get("Host", "")
        port = f":{self.server.server_address[1]}"
        return host.removesuffix(port).lower() in LOOPBACK and host.endswith(port)

    def _cookie(self) -> str:
        try:
            found = SimpleCookie(self.headers.get("Cookie", "")).get(COOKIE)
        except CookieError:
            return ""
        return found.value if found else ""

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self.server.token.encode())

    def _refuse(self, code: int, sentence: str) -> None:
        self._send(sentence + "\n", "text/plain", code=code)

    def _send(self, text: str, kind: str, policy: str = "", code: int = 200) -> None:
        body = text.encode(errors="replace")
        self.send_response(code)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        if policy:
            self.send_header("Content-Security-Policy", policy)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a browser asks every other second."""

    def handle(self) -> None:
        """As usual; a browser that goes away is no error."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            super().handle()


# --- pages ----------------------------------------------------------------------------------------


@cache
def asset(name: str) -> str:
    """A file of this package."""
    return (files("spo_jax.runs.watch") / name).read_text("utf-8")


def frame(names: Sequence[str]) -> str:
    """The page around the report of a run."""
    return template("spo_jax.runs.watch", "frame.html").render(names=names)

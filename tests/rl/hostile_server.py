"""A server of plain sockets on 127.0.0.1 that may send any bytes, at any pace, within bounds."""

import json
import re
import socket
import struct
import threading
import time
from contextlib import contextmanager

LONGEST = 8.0  # seconds that one connection may last
MOST = 256 * 2**20  # bytes that one connection may be sent
LATE = 4.0  # more of them, for a machine that is busy; a server goes on for twice as long
MEMORY = 96 * 2**20  # bytes that a client may take, of a server that sends `MOST`
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"


class Peer:
    """One connection, whose request was read. asked: how many there were before it."""

    def __init__(self, conn, request, asked, stop):
        self.conn, self.request, self.asked, self._stop = conn, request, asked, stop
        self._until, self.sent = time.monotonic() + LONGEST, 0

    def open(self):
        return not self._stop.is_set() and time.monotonic() < self._until and self.sent < MOST

    def send(self, data):
        self.conn.sendall(data)
        self.sent += len(data)

    def forever(self, data, pause=0.0):
        """Send it again and again."""
        while self.open():
            self.send(data)
            if pause:
                self._stop.wait(pause)

    def wait(self):
        while self.open():
            self._stop.wait(0.05)


def answer(body, status="200 OK", headers=(), length=None):
    """The bytes of a response. body: bytes, or what becomes JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", "content-type: application/json", *headers]
    lines.append(f"content-length: {len(data) if length is None else length}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + data


def chat(content="x", **other):
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": content}}
    return {"model": "fake-1", "choices": [choice], "usage": None, **other}


class Hostile:
    def __init__(self, act):
        self.act, self.requests = act, []
        self._stop, self._threads, self._lock = threading.Event(), [], threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._listener.settimeout(0.05)
        self.port = self._listener.getsockname()[1]
        self._start(self._accept)

    def url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    def close(self):
        self._stop.set()
        for thread in self._threads:
            thread.join(LONGEST)
        self._listener.close()

    def _start(self, work, *given):
        self._threads.append(threading.Thread(target=work, args=given, daemon=True))
        self._threads[-1].start()

    def _accept(self):
        while not self._stop.is_set():
            try:
                conn, _ = self._listener.accept()
            except TimeoutError:
                continue
            self._start(self._serve, conn)

    def _serve(self, conn):
        with conn:
            conn.settimeout(2.0)
            try:
                request = read(conn)
                with self._lock:
                    asked = len(self.requests)
                    self.requests.append(request)
                if request:
                    self.act(Peer(conn, request, asked, self._stop))
            except OSError:
                return  # the client has left


def read(conn):
    """One request, or nothing."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = conn.recv(65536)
        if not part:
            return data
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    while len(body) < int(fields.get(b"content-length", 0)):
        body += conn.recv(65536)
    return head + b"\r\n\r\n" + body


@contextmanager
def hostile(act):
    server = Hostile(act)
    try:
        yield server
    finally:
        server.close()


# --- what it may do -------------------------------------------------------------------------------


def sends(*parts, **forever):
    def act(peer):
        for part in parts:
            peer.send(part)
        if forever:
            peer.forever(**forever)

    return act


def reset(peer):
    peer.send(HEAD + b"content-length: 1000\r\n\r\n{")
    peer.conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def nested(text="[", depth=100_000):
    return text * depth


# --- what its client may take ---------------------------------------------------------------------


def peak():
    """The most memory of this process since it was last asked, bytes."""
    with open("/proc/self/status") as file:
        found = re.search(r"VmHWM:\s+(\d+) kB", file.read())
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return int(found[1]) * 1024

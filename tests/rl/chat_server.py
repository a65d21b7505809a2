"""A real HTTP server that speaks the protocol of chat completions, and an endpoint that asks it."""

import json
import threading
import time
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from spo_jax.config import Settings
from spo_jax.program import Prompt
from spo_jax.rl.endpoint.generator import Endpoint

KEY = "sk-very-secret-0123456789"


MODELS = ["fake", "other"]


class Server:
    """Chat completions by `reply(body, count)`, `count` being how often that text was asked.

    reply: gives the text of an answer, a list of several, or (status, message, headers), or None
    to hang up.
    """

    def __init__(self, reply):
        self.reply, self.models = reply, MODELS
        self.asked, self.keys, self.in_flight, self.most = [], Counter(), 0, 0
        self._counts, self._lock = Counter(), threading.Lock()

    def url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    def handle(self, http):
        body = json.loads(http.rfile.read(int(http.headers["content-length"])))
        text = body["messages"][0]["content"]
        with self._lock:
            self.asked.append((time.monotonic(), body))
            self.keys[http.headers["authorization"]] += 1
            self._counts[text] += 1
            count = self._counts[text]
            self.in_flight += 1
            self.most = max(self.most, self.in_flight)
        try:
            found = (
                self.reply(body, count) if http.path == "/v1/chat/completions" else (404, "", {})
            )
        finally:
            with self._lock:
                self.in_flight -= 1
        if found is None:
            http.close_connection = True
            return
        status, message, headers = found if isinstance(found, tuple) else (200, None, {})
        sent = {"error": {"message": message}} if message is not None else completion(found, body)
        data = json.dumps(sent).encode()
        http.send_response(status)
        headers = {"content-type": "application/json", "content-length": len(data), **headers}
        for name, value in headers.items():
            http.send_header(name, str(value))
        http.end_headers()
        http.wfile.write(data)


def completion(found, body):
    texts = found if isinstance(found, list) else [found]
    length = sum(map(len, texts))
    tokens = {"prompt_tokens": len(body["messages"][0]["content"]), "completion_tokens": length}
    choices = [
        {"index": i, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        for i, text in enumerate(texts)
    ]
    return {"id": "1", "object": "chat.completion", "created": 0, "model": "fake-1",
            "choices": choices, "usage": tokens}  # fmt: skip


@contextmanager
def serving(reply):
    server = Server(reply)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            try:
                server.handle(self)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def do_GET(self):
            data = json.dumps({"data": [{"id": name} for name in server.models]}).encode()
            self.send_response(200 if self.path == "/v1/models" else 404)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args):
            pass

    class Http(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

        def handle_error(self, request, client_address):
            pass  # a client that was killed or has left

    http = Http(("127.0.0.1", 0), Handler)
    server.port = http.server_port
    thread = threading.Thread(target=http.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def config(url, **given):
    given = {"responses": 2, "repairs_per_destroy": 2, "retries": 0, "model": "fake"} | given
    return Settings.make(generator="openai", base_url=url, **given)


def prompts(*texts):
    return [Prompt("tsp", "destroy", "initialization", text) for text in texts]


def texts(found):
    return [[completion.text for completion in group] for group in found]


def echo(body, count):
    return f"{body['messages'][0]['content']} {body['seed']}"


def opened(server, folder, **given):
    endpoint, messages = Endpoint(config(server.url(), **given)), []
    endpoint.open(folder, messages.append)
    return endpoint, messages


def several(body, count):
    """As many answers as were asked for."""
    return [f"{echo(body, count)} {i}" for i in range(body.get("n", 1))]

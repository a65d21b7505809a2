"""Requests to servers of either kind: proxies, waits, and callers with an event loop."""

import asyncio
import time
from email.utils import formatdate

import numpy as np
import pytest

from spo_jax.rl.endpoint.generator import Endpoint
from spo_jax.rl.endpoint.web import Lost, Reply
from spo_jax.rl.vllm.client import Client
from tests.rl.chat_server import config, echo, prompts, serving, texts
from tests.rl.hostile_server import answer, chat, hostile, sends

pytestmark = pytest.mark.usefixtures("chat_key")


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("3", 3), ("0.25", 0.25), ("0", 0), ("", 0), ("nan", 0), ("1e999", 0), ("-5", 0),
        ("9" * 5000, float("inf")), ("soon", 0), ("Mon, 01 Jan 2001 00:00:00 GMT", 0),
        ("Fri, 99 Abc 9999 23:59:59 GMT", 0), ("\u0663", 0),
    ],
)  # fmt: skip
def test_how_long_a_server_asks_to_wait(header, seconds):
    assert Reply(429, {"retry-after": header}, b"").wait == seconds


def test_a_server_may_name_a_time_to_wait_for():
    wait = Reply(429, {"retry-after": formatdate(time.time() + 60, usegmt=True)}, b"").wait
    assert 50 < wait <= 60


def test_an_endpoint_is_asked_through_a_proxy_and_a_vllm_server_is_not(monkeypatch):
    with hostile(sends(answer(chat("x")))) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        endpoint = Endpoint(config("http://example.invalid/v1"))
        assert texts(endpoint.generate(prompts("a"), 1, seed=0)) == [["x"]]
        assert proxy.requests[0].startswith(b"POST http://example.invalid/v1/chat/completions ")
        with pytest.raises(Lost, match="cannot be reached"):
            Client("http://127.0.0.1:1").read("base", np.array([1, 2]), 5.0)
        assert len(proxy.requests) == 1


def test_an_organisation_and_a_project_are_named_where_they_are_set(monkeypatch):
    monkeypatch.delenv("OPENAI_ORG_ID", raising=False)
    monkeypatch.setenv("OPENAI_PROJECT_ID", "mine")
    with hostile(sends(answer(chat("x")))) as server:
        Endpoint(config(server.url())).generate(prompts("a"), 1, seed=0)
        assert b"\r\nopenai-project: mine\r\n" in server.requests[0].lower()
        assert b"openai-organization" not in server.requests[0].lower()


def test_a_caller_may_have_an_event_loop_of_its_own():
    async def notebook(url):
        endpoint = Endpoint(config(url))
        return endpoint.greeting(), texts(endpoint.generate(prompts("a"), 1, seed=0))

    with serving(echo) as server:
        greeting, [[text]] = asyncio.run(notebook(server.url()))
    assert greeting.endswith("answers and has fake")
    assert text.startswith("a ")

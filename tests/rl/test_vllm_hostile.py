"""A vLLM server that does all it can: the client ends in time, in bounds, and in a sentence."""

import gzip
import json
import re
import threading
import time

import numpy as np
import pytest

from spo_jax.errors import InputError
from spo_jax.rl.endpoint.web import Late, Lost
from spo_jax.rl.tokens import Tokenizer
from spo_jax.rl.vllm.client import Client
from spo_jax.rl.vllm.replies import Refused, Sampling
from tests.rl.chat_server import KEY
from tests.rl.hostile_server import (
    CHUNKED,
    HEAD,
    LATE,
    MEMORY,
    answer,
    hostile,
    nested,
    peak,
    reset,
    sends,
)
from tests.rl.keys import WAYS, leaks

HOW = Sampling(2, 0.8, 0.9, 3, (2,), 1.0)
PROMPT = np.array([5, 6, 7], np.int32)
CHOICE = {
    "token_ids": [90, 2], "text": "word4\n", "finish_reason": "stop",
    "logprobs": {"token_logprobs": [-1.0, -2]},
}  # fmt: skip


def typed(**changed):
    return sends(answer({"choices": [{**CHOICE, **changed, "index": 0}, {**CHOICE, "index": 1}]}))


@pytest.fixture
def ask(markov):
    tokenizer = Tokenizer.load(markov)
    return lambda server: Client(server.url()).complete("base", PROMPT, HOW, tokenizer)


LATE_ONES = {
    "silence": lambda peer: peer.wait(),
    "head drips": sends(HEAD, data=b"x-a: b\r\n", pause=0.2),
    "body drips": sends(HEAD + b"content-length: 9999\r\n\r\n", data=b" ", pause=0.2),
    "chunks drip": sends(CHUNKED, data=b"1\r\n \r\n", pause=0.2),
    "endless 100": sends(data=b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
}
LOST = {
    "endless trailers": sends(CHUNKED + b"0\r\n", data=b"a: b\r\n" * 1000),
    "gzip": sends(answer(gzip.compress(b" " * 2**24), headers=["content-encoding: gzip"])),
    "endless body": sends(HEAD + b"\r\n", data=b" " * 2**20),
    "endless chunks": sends(CHUNKED, data=b"10000\r\n" + b" " * 65536 + b"\r\n"),
    "endless head": sends(HEAD, data=b"x-a: b\r\n" * 1000),
    "endless line": sends(HEAD + b"x: ", data=b"b" * 60_000),
    "reset": reset,
    "hangs up": lambda peer: None,
    "half an answer": sends(answer({"choices": [CHOICE] * 2}, length=999)),
    "half a chunk": sends(CHUNKED + b"ff\r\n{"),
    "no http": sends(b"\x15\x03\x01\x00\x02\x02\x50" * 9),
    "an endless error": sends(b"HTTP/1.1 500 Bad\r\n\r\n", data=b"x" * 2**20),
}
WRONG = {
    "nested": (sends(answer(nested().encode())), "answered without a completion"),
    "a nest": (
        sends(answer(f'{{"choices":{nested("[", 500)}{nested("]", 500)}}}'.encode())),
        "answered without a completion",
    ),
    "bad text": (sends(answer(b'{"choices": "\xff"}')), "answered without a completion"),
    "null": (sends(answer(None)), "answered without a completion"),
    "no list": (sends(answer({"choices": {"0": CHOICE}})), "answered without a completion"),
    "no choice": (sends(answer({"choices": []})), "answered without a completion"),
    "no objects": (sends(answer({"choices": [None, 1]})), "answered without a completion"),
    "an index of text": (
        sends(answer({"choices": [{**CHOICE, "index": "0"}, CHOICE]})),
        "answered without a completion",
    ),
    "three": (sends(answer({"choices": [CHOICE] * 3})), "gave 3 answers to a request for 2"),
    "another prompt": (typed(prompt_token_ids=5), "changed a prompt"),
    "tokens are texts": (typed(token_ids=["90", "2"]), "returns no token ids"),
    "tokens are lists": (typed(token_ids=[[90], [2]]), "returns no token ids"),
    "huge tokens": (typed(token_ids=[10**30, 2]), "returns no token ids"),
    "logprobs are a list": (typed(logprobs=[-1.0, -2.0]), "no log-probabilities"),
    "logprobs are texts": (typed(logprobs={"token_logprobs": ["x", "y"]}), "no log-probabilities"),
    "huge logprobs": (typed(logprobs={"token_logprobs": [10**400, 1]}), "no log-probabilities"),
    "NaN": (typed(logprobs={"token_logprobs": [float("nan"), -1.0]}), "needs a finite one"),
    "a nested error": (sends(answer(nested().encode(), "400 Bad")), r"refuses .*\(400: \[\["),
    "sends on": (sends(answer(b"", "307 There", ["location: http://x/"])), "refuses /v1/compl"),
}  # fmt: skip


@pytest.mark.parametrize("name", [*LATE_ONES, *LOST])
def test_no_answer_comes_in_time_or_is_too_long(ask, name):
    act, why = (LATE_ONES.get(name), Late) if name in LATE_ONES else (LOST[name], Lost)
    with hostile(act) as server:
        peak()
        before, start = peak(), time.monotonic()
        with pytest.raises(why) as error:
            ask(server)
        took, grown = time.monotonic() - start, peak() - before
    assert took < HOW.timeout + LATE
    assert grown < MEMORY
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_one_sentence(ask, name):
    act, sentence = WRONG[name]
    with hostile(act) as server, pytest.raises(InputError, match=sentence) as error:
        ask(server)
    assert len(str(error.value)) < 500


def test_wrong_readings_are_one_sentence():
    for rows in (None, [0], [0, {"6": {"logprob": 10**400}}, {"7": {"logprob": 0}}]):
        reply = answer({"choices": [{"prompt_logprobs": rows}]})
        with hostile(sends(reply)) as server, pytest.raises(InputError, match="gave no log-prob"):
            Client(server.url()).read("base", PROMPT, 1.0)
    for top in (None, [], [[]], [{"token_id:x": 0}], [{f"token_id:{10**30}": 0}]):
        reply = answer({"choices": [{"logprobs": {"top_logprobs": top}}]})
        with hostile(sends(reply)) as server, pytest.raises(InputError, match="tokens are likely"):
            Client(server.url()).likely("base", PROMPT, 1.0)


def test_a_request_under_way_can_be_broken_off(ask):
    with hostile(lambda peer: peer.wait()) as server:
        client = Client(server.url())
        failed = []

        def read():
            try:
                client.read("base", PROMPT, 60.0)
            except Lost as error:
                failed.append(error)

        thread = threading.Thread(target=read)
        thread.start()
        while thread.is_alive() and not server.requests:
            time.sleep(0.01)
        client.abort()
        thread.join(5)
        assert len(failed) == 1


@pytest.mark.parametrize("way", WAYS)
def test_the_key_is_in_nothing_that_is_reported(monkeypatch, ask, way):
    monkeypatch.setenv("VLLM_API_KEY", KEY)
    word = WAYS[way](KEY)
    line = re.sub(r"[^ -~]", " ", word)
    shown = []
    for reply in (
        answer({"error": {"message": word}}, "400 Bad"),
        answer({word: [word]}, "500 Bad"),
        answer(word.encode(), "400 Bad"),
        answer(json.dumps(word).encode()),
        answer({"choices": [{**CHOICE, "finish_reason": word}] * 2}),
        f"{line}\r\n\r\n".encode(),
        f"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{line}\r\n".encode(),
    ):
        with hostile(sends(reply)) as server:
            with pytest.raises((Lost, InputError)) as error:
                ask(server)
            shown.append(str(error.value))
    with hostile(sends(answer({"version": word}))) as server:
        shown.append(Client(server.url()).version())
    with hostile(sends(answer({"data": [{"id": word}]}))) as server:
        shown += Client(server.url()).models()
    assert not [text for text in shown if leaks(text)]


def test_a_refusal_has_its_status():
    with hostile(sends(answer({"error": {"message": "no"}}, "404 No"))) as server:
        with pytest.raises(Refused, match="no") as error:
            Client(server.url()).load("a", "/folder")
        assert error.value.status == 404

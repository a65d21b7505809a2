"""Endpoints that do all they can: each request ends in time, in bounds, and in a sentence."""

import gzip
import json
import re
import time
import zlib

import pytest

from spo_jax.errors import InputError
from spo_jax.rl.endpoint.request_log import REQUESTS
from tests.rl.chat_server import KEY, opened, prompts, texts
from tests.rl.hostile_server import (
    CHUNKED,
    HEAD,
    LATE,
    MEMORY,
    MOST,
    answer,
    chat,
    hostile,
    nested,
    peak,
    reset,
    sends,
)

pytestmark = pytest.mark.usefixtures("chat_key", "warm")

TIMEOUT = 1.0  # seconds that a request may take

NO_ANSWER = "gave no answer within 1 s"
BROKEN = r"broke off, or answered with invalid HTTP \("
NO_CHAT = r"answered without a chat completion \("
BODY = json.dumps(chat("x")).encode()


def bomb(coding, twice=False):
    """`MOST` bytes in a thousandth of them, once or twice."""
    machine = zlib.compressobj(9, zlib.DEFLATED, 15 if coding == "deflate" else 31)
    first, more = (machine.compress(b"\0" * 2**20) + machine.flush(zlib.Z_FULL_FLUSH) for _ in "ab")
    data = first + more * (MOST // 2**20 - 1)  # each part stands for itself
    data = gzip.compress(data) if twice else data
    return sends(answer(data, headers=[f"content-encoding: {coding}"]))


def typed(**changed):
    """An answer with a field of a wrong type."""
    return sends(answer({**chat(), **changed}))


HUGE = "9" * 4000
STREAM = HEAD.replace(b"application/json", b"text/event-stream") + b"\r\n"
PIECE = b'data: {"choices": [{"index": 0, "delta": {"content": "xy"}}]}\n\n'
LOST = {  # what a server does, and how the sentence goes on after its address
    "silence": (lambda peer: peer.wait(), NO_ANSWER),
    "head drips": (sends(HEAD, data=b"x-a: b\r\n", pause=0.2), NO_ANSWER),
    "status line drips": (sends(b"HTTP/1.1 ", data=b" ", pause=0.2), NO_ANSWER),
    "body drips": (sends(HEAD + b"content-length: 9999\r\n\r\n", data=b" ", pause=0.2), NO_ANSWER),
    "chunks drip": (sends(CHUNKED, data=b"1\r\n \r\n", pause=0.2), NO_ANSWER),
    "endless head": (sends(HEAD, data=b"x-a: " + b"b" * 60_000 + b"\r\n"), BROKEN),
    "endless line": (sends(HEAD + b"x: ", data=b"b" * 60_000), BROKEN),
    "endless 1xx": (sends(data=b"HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n" * 100), NO_ANSWER),
    "endless 100": (sends(data=b"HTTP/1.1 100 Continue\r\n\r\n" * 100), NO_ANSWER),
    "endless body": (sends(HEAD + b"\r\n", data=b" " * 2**20), "answered with more than 4 MB"),
    "long body": (
        sends(HEAD + b"content-length: 3000000000\r\n\r\n", data=b" " * 2**20),
        "answered with more than 4 MB",
    ),
    "endless chunks": (
        sends(CHUNKED, data=b"10000\r\n" + b" " * 65536 + b"\r\n"),
        "answered with more than 4 MB",
    ),
    "small chunks": (
        sends(CHUNKED, data=b"1\r\n \r\n" * 1000),
        f"({NO_ANSWER}|answered with more than 4 MB)",
    ),
    "endless chunk extension": (sends(CHUNKED + b"1;", data=b"a" * 60_000), BROKEN),
    "endless trailers": (sends(CHUNKED + b"0\r\n", data=b"a: " + b"b" * 6000 + b"\r\n"), BROKEN),
    "gzip": (bomb("gzip"), "answered with more than 4 MB"),
    "deflate": (bomb("deflate"), "answered with more than 4 MB"),
    "gzip twice": (bomb("gzip, gzip", twice=True), "answered in an encoding"),
    "gzip often": (
        sends(answer(b"", headers=["content-encoding: " + ", ".join(["gzip"] * 50)])),
        "answered in an encoding",
    ),
    "brotli": (sends(answer(b"x", headers=["content-encoding: br"])), "answered in an encoding"),
    "no gzip": (sends(answer(BODY, headers=["content-encoding: gzip"])), BROKEN),
    "half a gzip": (
        sends(answer(gzip.compress(BODY)[:-20], headers=["content-encoding: gzip"])),
        NO_CHAT + "Unterminated string",
    ),
    "codec bomb": (
        sends(answer(b"x", headers=["content-type: application/json; charset=zlib"])),
        NO_CHAT,
    ),
    "reset": (reset, BROKEN),
    "hangs up": (lambda peer: None, BROKEN),
    "half an answer": (sends(answer(BODY, length=len(BODY) + 9)), BROKEN),
    "half a chunk": (sends(CHUNKED + b"ff\r\n" + BODY[:20]), BROKEN),
    "too short a length": (sends(answer(BODY, length=20)), NO_CHAT),
    "lengths that differ": (
        sends(HEAD + b"content-length: 5\r\ncontent-length: 7\r\n\r\n" + BODY),
        BROKEN,
    ),
    "a negative length": (sends(HEAD + b"content-length: -5\r\n\r\n" + BODY), BROKEN),
    "a huge length": (sends(HEAD + b"content-length: " + b"9" * 30 + b"\r\n\r\n"), BROKEN),
    "a length of digits": (sends(HEAD + b"content-length: " + b"9" * 5000 + b"\r\n\r\n"), BROKEN),
    "no http": (sends(b"\x15\x03\x01\x00\x02\x02\x50" * 9), BROKEN),
    "another protocol": (sends(b"SSH-2.0-OpenSSH_9.6\r\n"), BROKEN),
    "status 0": (sends(answer(BODY, "000 Zero")), BROKEN),
    "status 101": (sends(answer(BODY, "101 Switching", ["upgrade: x"])), "(answered|broke off)"),
    "status 204": (sends(b"HTTP/1.1 204 No Content\r\n\r\n"), NO_CHAT),
    "status 999": (sends(answer({"error": "why"}, "999 What")), "answered 999: why"),
    "a binary status": (sends(b"HTTP/1.1 200 \xff\x00\r\n\r\n"), BROKEN),
    "nothing": (sends(answer(b"")), NO_CHAT),
    "html": (sends(answer(b"<html>It works</html>")), NO_CHAT),
    "events": (sends(answer(b"data: " + BODY + b"\n\ndata: [DONE]\n\n")), NO_CHAT),
    "nested lists": (sends(answer(nested().encode())), NO_CHAT + "it is nested more than 100"),
    "nested objects": (sends(answer(nested('{"a":').encode())), NO_CHAT + "it is nested more"),
    "whole nest": (
        sends(answer(b'{"choices":' + nested().encode() + nested("]").encode() + b"}")),
        NO_CHAT + "it is nested more",
    ),
    "a nest of 500": (
        sends(answer(f'{{"choices":{nested("[", 500)}{nested("]", 500)}}}'.encode())),
        NO_CHAT + "it is nested more",
    ),
    "nested error": (sends(answer(nested().encode(), "400 Bad")), r"refuses a request \(400: \[\["),
    "bad text": (sends(answer(b'{"choices": [{"message": {"content": "\xff\xfe"}}]}')), NO_CHAT),
    "utf-16": (sends(answer(BODY.decode().encode("utf-16"))), NO_CHAT),
    "a number of digits": (sends(answer(b"1" * 10_000)), NO_CHAT),
    "null": (sends(answer(None)), NO_CHAT + "no choices"),
    "a list": (sends(answer([chat()])), NO_CHAT + "no choices"),
    "choices is null": (typed(choices=None), NO_CHAT + "no choices"),
    "choices is a text": (typed(choices="abc"), NO_CHAT + "no choices"),
    "choices is an object": (typed(choices={"0": 1}), NO_CHAT + "no choices"),
    "choices is a number": (typed(choices=3.5), NO_CHAT + "no choices"),
    "a choice is null": (typed(choices=[None]), NO_CHAT + "no choices"),
    "a message is a list": (typed(choices=[{"message": [1]}]), NO_CHAT + "no choices"),
    "content is a list": (
        typed(choices=[{"message": {"content": ["x"]}}]),
        NO_CHAT + "its content",
    ),
    "content is NaN": (
        sends(answer(b'{"choices": [{"message": {"content": NaN}}]}')),
        NO_CHAT + "its content",
    ),
    "too long a text": (sends(answer(chat("x" * 10**6))), NO_CHAT + "1000000 characters, more"),
    "an error that is fine": (
        sends(answer({"error": {"message": "no money", "code": 402}})),
        NO_CHAT + "no money",
    ),
    "an error of any type": (sends(answer({"error": [1, 2]}, "400 Bad")), r"refuses a request"),
    "an endless error": (
        sends(b"HTTP/1.1 400 Bad\r\n\r\n", data=b"x" * 2**20),
        "refuses a request .400: answered with more than 4 MB",
    ),
    "wait for ever": (
        sends(answer({}, "429 Busy", ["retry-after: 99999999999999999999"])),
        "answered 429",
    ),
    "wait nan": (sends(answer({}, "429 Busy", ["retry-after: nan"])), "answered 429"),
    "wait inf": (sends(answer({}, "503 Busy", ["retry-after-ms: 1e999"])), "answered 503"),
    "wait till 9999": (
        sends(answer({}, "429 Busy", ["retry-after: Fri, 31 Dec 9999 23:59:59 GMT"])),
        "answered 429",
    ),
    "wait no date": (sends(answer({}, "429 Busy", ["retry-after: " + "(" * 5000])), "answered 429"),
    "sends on to itself": (
        sends(answer(b"", "307 There", ["location: /v1/chat/completions"])),
        "answered 307, a redirect to /v1/chat/completions; give --base-url",
    ),
    "sends on to nowhere": (sends(answer(b"", "302 There")), "answered 302, .* to nowhere"),
    "sends on to a file": (
        sends(answer(b"", "301 There", ["location: file:///etc/passwd"])),
        "answered 301, .* to file:///etc/passwd",
    ),
    "endless events": (sends(STREAM, data=PIECE * 100), f"({NO_ANSWER}|answered with answers of)"),
    "endless empty events": (sends(STREAM, data=PIECE.replace(b"xy", b"") * 100), NO_ANSWER),
    "endless comments": (sends(STREAM, data=b": wait\n\n" * 10_000), NO_ANSWER),
    "an endless event": (
        sends(STREAM, data=b"data: " + b"x" * 60_000),
        "answered with an event of more than",
    ),
    "events drip": (sends(STREAM, data=PIECE, pause=0.2), NO_ANSWER),
    "half a stream": (sends(STREAM + PIECE), BROKEN + "the stream ended"),
    "no stream": (sends(STREAM), BROKEN + "the stream ended"),
    "an event of html": (sends(STREAM + b"data: <html>\n\n"), "answered with an event that is not"),
    "a stream of errors": (
        sends(STREAM + b'data: {"error": {"message": "no money"}}\n\n' * 9),
        NO_CHAT + "no money",
    ),
    "a stream in gzip": (
        sends(STREAM.replace(b"\r\n\r\n", b"\r\ncontent-encoding: gzip\r\n\r\n"), data=b"x"),
        BROKEN,
    ),
    "cookies": (
        sends(answer({}, "400 Bad", ["set-cookie: a=b; expires=" + "1 " * 20_000] * 2)),
        "refuses a request",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """All is imported that a request needs, which counts to the time of none."""
    with hostile(sends(answer(BODY))) as server:
        opened(server, tmp_path_factory.mktemp("warm"))[0].generate(prompts("a"), 1, seed=0)


@pytest.mark.long
@pytest.mark.parametrize("name", LOST)
def test_whatever_a_server_does_the_request_fails_with_a_sentence(tmp_path, name):
    act, sentence = LOST[name]
    with hostile(act) as server:
        endpoint, messages = opened(server, tmp_path, request_timeout=TIMEOUT, concurrency=1)
        peak()
        before, start = peak(), time.monotonic()
        with pytest.raises(InputError, match=rf"^the endpoint {server.url()} {sentence}") as error:
            endpoint.generate(prompts("a"), 1, seed=0)
        took, grown = time.monotonic() - start, peak() - before
    assert took < TIMEOUT + LATE
    assert grown < MEMORY
    assert str(error.value).endswith("--resume")
    assert len(str(error.value)) < 700
    assert str(error.value).isprintable()
    assert not (tmp_path / REQUESTS).exists()
    assert messages == []


@pytest.mark.parametrize("name", ["body drips", "reset", "no http", "gzip", "nested lists"])
def test_among_answers_it_is_one_that_is_lost(tmp_path, name):
    act, sentence = LOST[name]

    def some(peer):
        bad = b'"content":"bad"' in peer.request
        act(peer) if bad else peer.send(answer(chat("fine")))

    with hostile(some) as server:
        endpoint, messages = opened(server, tmp_path, request_timeout=TIMEOUT)
        found = endpoint.generate(prompts("a", "bad", "b"), 1, seed=0)
    assert [group[0].text for group in found] == ["fine", "", "fine"]
    assert len(messages) == 1
    assert re.match(f"1 of 3 answers failed: the endpoint {sentence}", messages[0])
    lines = [json.loads(line) for line in (tmp_path / REQUESTS).read_text().splitlines()]
    (lost,) = [line for line in lines if "error" in line]
    assert re.match(sentence, lost["error"])


@pytest.mark.long
def test_a_request_is_repeated_within_its_own_deadline(tmp_path):
    def act(peer):
        if peer.asked < 2:
            peer.forever(b"H" if peer.asked else b"HTTP/1.1 200 OK\r\nx: y\r\n", pause=0.2)
        else:
            peer.send(answer(chat("at last")))

    with hostile(act) as server:
        endpoint, _ = opened(server, tmp_path, request_timeout=0.5, retries=2)
        start = time.monotonic()
        found = endpoint.generate(prompts("a"), 1, seed=0)
    assert found[0][0].text == "at last"
    assert time.monotonic() - start < 0.5 + 0.5 + 1.0 + 0.5 + LATE  # and two waits
    assert len(server.requests) == 3


@pytest.mark.parametrize("wait", ["121", "999999999", "99999999999999999999", "1e999", "nan", "-5"])
def test_a_server_is_waited_for_no_longer_than_the_limit(tmp_path, wait):
    with hostile(sends(answer({}, "429 Busy", [f"retry-after: {wait}"]))) as server:
        endpoint, _ = opened(server, tmp_path, retries=1, concurrency=1)
        start = time.monotonic()
        with pytest.raises(InputError, match="answered 429"):
            endpoint.generate(prompts("a"), 1, seed=0)
        assert time.monotonic() - start < 0.5 + LATE
        assert len(server.requests) == (1 if wait.isdigit() else 2)


FINE = {  # what is an answer all the same, and its text and counts
    "gzip": (
        sends(answer(gzip.compress(BODY), headers=["content-encoding: gzip"])), "x", None, None,
    ),
    "deflate": (
        sends(answer(zlib.compress(BODY), headers=["content-encoding: deflate"])), "x", None, None,
    ),
    "raw deflate": (
        sends(answer(zlib.compress(BODY)[2:-4], headers=["content-encoding: deflate"])),
        "x", None, None,
    ),
    "an encoding that is none": (
        sends(answer(BODY, headers=["content-encoding: Identity"])), "x", None, None,
    ),
    "halves of a character": (
        sends(answer(b'{"choices": [{"message": {"content": "a\\ud800b\\ud83d\\ude00"}}]}')),
        "a\ufffdb\U0001f600", None, None,
    ),
    "two choices": (
        typed(choices=[{"message": {"content": "one"}}, {"message": {"content": "two"}}]),
        "one", None, None,
    ),
    "a field twice": (
        sends(answer(b'{"choices": [], "choices": [{"message": {"content": "last"}}]}')),
        "last", None, None,
    ),
    "no counts": (typed(usage=[1, 2]), "x", None, None),
    "negative counts": (typed(usage={"prompt_tokens": -1, "completion_tokens": 3}), "x", None, 3),
    "counts of other types": (
        typed(usage={"prompt_tokens": "7", "completion_tokens": True}), "x", None, None,
    ),
    "huge counts": (
        sends(answer(
            b'{"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": '
            + HUGE.encode() + b', "completion_tokens": 1e999}}'
        )),
        "x", None, None,
    ),
    "counts that are no numbers": (
        sends(answer(
            b'{"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": NaN, '
            b'"completion_tokens": -Infinity}}'
        )),
        "x", None, None,
    ),
    "names of other types": (
        typed(model={"a": [1]}, id=3.5, created="x", choices=[
            {"index": "1", "finish_reason": ["stop"], "message": {"content": "x", "role": 1}}
        ]), "x", None, None,
    ),
    "an early hint": (
        sends(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", answer(BODY)), "x", None, None,
    ),
    "an answer before its question": (sends(answer(BODY) + answer(chat("evil"))), "x", None, None),
    "garbage after it": (sends(answer(BODY) + b"\0garbage\r\n" * 99), "x", None, None),
    "to the end": (sends(HEAD + b"\r\n" + BODY), "x", None, None),
}  # fmt: skip


@pytest.mark.parametrize("name", FINE)
def test_what_can_be_read_is_an_answer(tmp_path, name):
    act, text, prompt, done = FINE[name]
    with hostile(act) as server:
        endpoint, messages = opened(server, tmp_path, prompt_price=2.0, concurrency=1)
        found = endpoint.generate(prompts("a", "b"), 2, seed=0)
    for completion in (c for group in found for c in group):
        counted = completion.usage.prompt_tokens, completion.usage.completion_tokens
        assert (completion.text, *counted) == (text, prompt, done)
    assert messages == []
    again, _ = opened(server, tmp_path)  # it is gone
    assert texts(again.generate(prompts("a", "b"), 2, seed=0)) == texts(found)


def test_the_key_goes_to_no_other_server(tmp_path):
    with hostile(sends(answer(chat("stolen")))) as thief:
        for code in (301, 302, 303, 307, 308):
            to = f"location: http://127.0.0.1:{thief.port}/v1/chat/completions"
            with hostile(sends(answer(b"", f"{code} There", [to]))) as server:
                endpoint, _ = opened(server, tmp_path)
                with pytest.raises(InputError, match=f"answered {code}, a redirect to"):
                    endpoint.generate(prompts("a"), 1, seed=0)
                assert f"Bearer {KEY}".encode() in server.requests[0]
                assert len(server.requests) == 1
        assert thief.requests == []


def test_no_connection_and_no_cookie_is_used_again(tmp_path):
    fields = ["set-cookie: a=b; path=/", "connection: keep-alive"]
    with hostile(sends(answer(BODY, headers=fields))) as server:
        opened(server, tmp_path, concurrency=1)[0].generate(prompts("a"), 3, seed=0)
        assert len(server.requests) == 3
        assert not [request for request in server.requests if b"cookie" in request.lower()]


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [{"message": {"content": "x"}}], "more": ["%73" * 9] * 110_000},
        {"choices": [{"message": {"content": "x"}, "more": {str(i): {} for i in range(300_000)}}]},
        {"choices": [{"message": {"content": "x"}}], "model": "%73" * 1_200_000},
        {"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": ["sk-"] * 500_000}},
    ],
    ids=["texts", "objects", "a name", "counts"],
)
def test_what_is_not_wanted_takes_no_time(tmp_path, body):
    with hostile(sends(answer(body))) as server:
        endpoint, _ = opened(server, tmp_path, request_timeout=TIMEOUT, concurrency=1)
        start = time.process_time()
        assert texts(endpoint.generate(prompts("a"), 1, seed=0)) == [["x"]]
        assert time.process_time() - start < TIMEOUT + LATE

"""Streamed answers: the reply is as without streaming, in bounds, and a stall is seen."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spo_jax.rl.endpoint import event_stream, web
from spo_jax.rl.endpoint.event_stream import EventStream
from tests.rl.chat_server import opened, prompts, texts
from tests.rl.hostile_server import answer, chat, hostile

pytestmark = pytest.mark.usefixtures("chat_key")

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n"
USAGE = {"prompt_tokens": 7, "completion_tokens": 5}


def event(**fields):
    return f"data: {json.dumps(fields)}\n\n".encode()


def piece(text, index=0, finish=None):
    choice = {"index": index, "delta": {"content": text}, "finish_reason": finish}
    return event(model="m", choices=[choice])


def streamed(*answers, done=True, usage=USAGE):
    """The events of answers, each a list of pieces, written in turn."""
    parts = [event(choices=[{"index": i, "delta": {"role": "assistant", "content": None}}])
             for i in range(len(answers))]  # fmt: skip
    for k in range(max(map(len, answers))):
        parts += [piece(pieces[k], i) for i, pieces in enumerate(answers) if k < len(pieces)]
    parts += [piece("", i, "stop") for i in range(len(answers))]
    parts.append(event(choices=[], usage=usage))
    return b"".join(parts) + (b"data: [DONE]\n\n" if done else b"")


@given(
    st.lists(st.lists(st.text(max_size=5), min_size=1, max_size=4), min_size=1, max_size=3),
    st.lists(st.integers(1, 40), max_size=60),
    st.sampled_from([b"\n", b"\r\n"]),
)
def test_the_reply_is_what_was_streamed_however_it_is_cut(answers, cuts, newline):
    data = streamed(*answers).replace(b"\n", newline)
    stream, pieces, place = EventStream(10**6), 0, 0
    for size in [*cuts, len(data)]:
        pieces += stream.feed(data[place : place + size])
        place += size
    reply = stream.reply()
    found = [choice["message"]["content"] for choice in reply["choices"]]
    assert found == ["".join(each) for each in answers]
    assert [choice["finish_reason"] for choice in reply["choices"]] == ["stop"] * len(answers)
    assert (reply["usage"], reply["model"]) == (USAGE, "m")
    assert pieces == sum(text != "" for each in answers for text in each)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"data: {\n\n", "not JSON"),
        (b"data: " + b"[" * 10**5 + b"\n\n", "not JSON"),
        (b"data: [1]\n\n", "no object"),
        (b'data: {"choices": 3}\n\n', "no part"),
        (b'data: {"choices": [{"index": -1, "delta": {}}]}\n\n', "no part"),
        (b'data: {"choices": [{"index": 1000000000, "delta": {}}]}\n\n', "no part"),
        (b'data: {"choices": [{"index": true, "delta": {}}]}\n\n', "no part"),
        (b'data: {"choices": [{"index": 0, "delta": {"content": ["x"]}}]}\n\n', "no part"),
        (b'data: {"choices": [{"index": 0, "delta": "x"}]}\n\n', "no part"),
        (b"data: " + b"x" * (event_stream.EVENT + 1), "more than 1048576 bytes"),
        (b"x" * (event_stream.EVENT + 1), "more than 1048576 bytes"),
        (piece("x" * 101), "more than 100 characters"),
        (piece("x" * 50) + piece("x" * 51, index=1), "more than 100 characters"),
    ],
)
def test_what_is_no_stream_of_answers_is_refused_in_words_of_ours(data, what):
    with pytest.raises(ValueError, match=f"^(an event|answers) (that is|of) .*{what}"):
        EventStream(100).feed(data)


def test_other_lines_and_what_follows_the_end_say_nothing():
    stream = EventStream(100)
    stream.feed(b": wait\n\nevent: x\nid: 5\nretry: 1\n\n" + piece("a", finish="length"))
    stream.feed(b"data: [DONE]\n\n" + piece("b") + b"data: {\n\n")
    [choice] = stream.reply()["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("a", "length")


@pytest.mark.parametrize(
    "data", [b"", b": wait\n", piece("a"), piece("a", 0, "stop") + piece("b", 1)]
)
def test_a_stream_that_ends_early_is_no_reply(data):
    stream = EventStream(100)
    stream.feed(data)
    with pytest.raises(EOFError):
        stream.reply()


def test_an_error_in_a_stream_is_the_reply():
    stream = EventStream(100)
    stream.feed(piece("half") + event(error={"message": "out of memory"}))
    assert stream.reply() == {"model": "m", "error": {"message": "out of memory"}}


@pytest.mark.parametrize("counts", [True, False])
def test_a_server_that_does_not_count_what_it_streams_is_asked_without(tmp_path, counts):
    def act(peer):
        if b'"stream"' in peer.request:
            data = streamed(["x"], usage=USAGE if counts else None)
            peer.send(HEAD + data)
        else:
            peer.send(answer(chat(usage=USAGE)))

    with hostile(act) as server:
        endpoint, _ = opened(server, tmp_path, concurrency=1)
        found = endpoint.generate(prompts("a", "b", "c"), 1, seed=0)
        sent = [b'"stream"' in request for request in server.requests]
    assert texts(found) == [["x"]] * 3
    assert sent == ([True] * 3 if counts else [True, False, False])
    assert [group[0].usage.completion_tokens for group in found[1:]] == [5, 5]


def test_a_servers_streamed_answers_are_kept_and_their_tokens_heard(tmp_path):
    def act(peer):
        body = json.loads(peer.request.partition(b"\r\n\r\n")[2])
        assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})
        data = streamed(*[["an", "swer", f" {i}"] for i in range(body.get("n", 1))])
        peer.send(HEAD + data[:100])
        peer.send(data[100:])

    heard = []
    with hostile(act) as server:
        endpoint, _ = opened(server, tmp_path)
        endpoint.on_tokens = heard.append
        found = endpoint.generate(prompts("a"), 3, seed=0)
        assert len(server.requests) == 1
    assert texts(found) == [["answer 0", "answer 1", "answer 2"]]
    assert sum(heard) == 9
    assert sum(c.usage.completion_tokens for c in found[0]) == 5
    assert sum(c.usage.prompt_tokens for c in found[0]) == 7


def test_a_stream_that_breaks_off_or_stalls_is_asked_for_again(tmp_path, monkeypatch):
    monkeypatch.setattr(web, "STALL", 0.2)

    def act(peer):
        if peer.asked == 0:
            peer.send(HEAD + piece("half"))
        elif peer.asked == 1:
            peer.send(HEAD + piece("half"))
            peer.wait()
        else:
            peer.send(HEAD + streamed(["whole"]))

    with hostile(act) as server:
        endpoint, _ = opened(server, tmp_path, retries=2, request_timeout=20.0)
        assert texts(endpoint.generate(prompts("a"), 1, seed=0)) == [["whole"]]
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("message", "status"),
    [("stream_options: Extra inputs are not permitted", 422), ("streaming is not supported", 400)],
)
def test_a_server_that_refuses_to_stream_is_asked_without(tmp_path, message, status):
    def act(peer):
        refused = b'"stream"' in peer.request
        reply = (
            answer({"error": {"message": message}}, f"{status} No") if refused else answer(chat())
        )
        peer.send(reply)

    with hostile(act) as server:
        endpoint, remarks = opened(server, tmp_path, concurrency=1)
        assert texts(endpoint.generate(prompts("a", "b"), 1, seed=0)) == [["x"], ["x"]]
        assert len(server.requests) == 3
    assert remarks == []

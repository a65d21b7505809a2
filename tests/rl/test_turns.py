"""Prompts with earlier turns: what generators send, and calls that begin before another is over."""

import hashlib
import threading
from dataclasses import replace

import numpy as np
import pytest

from spo_jax.program import Prompt
from spo_jax.rl.endpoint.request_log import REQUESTS, requests
from spo_jax.rl.tokens import Tokenizer
from spo_jax.search.plugins import as_generator
from spo_jax.search.writing.grammar import GrammarGenerator
from tests.rl import speaker
from tests.rl.chat_server import opened, prompts, serving, texts
from tests.rl.vllm_home import PROMPTS, Home, N

PLAIN = Prompt("tsp", "destroy", "initialization", "Write one.")
TURNS = (("first", "No."), ("second", "No, too."))
LATER = replace(PLAIN, turns=TURNS)


def test_a_conversation_as_messages_and_as_text():
    assert PLAIN.whole == "Write one."
    assert PLAIN.messages == [{"role": "user", "content": "Write one."}]
    assert replace(PLAIN, system="Be brief.").whole == "[system]\nBe brief.\n\n[user]\nWrite one."
    wanted = [("user", "Write one."), ("assistant", "first"), ("user", "No."),
              ("assistant", "second"), ("user", "No, too.")]  # fmt: skip
    assert [(m["role"], m["content"]) for m in LATER.messages] == wanted
    assert LATER.whole == "\n\n".join(f"[{role}]\n{text}" for role, text in wanted)


def test_keys_of_prompts_without_turns_are_those_of_before():
    name = "\0".join(("7", "Write one.", "0"))
    known = hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
    assert requests([PLAIN], 1, 7)[0].key == known
    name = "\0".join(("7", "Write one.", "0", "system Be brief.", "warmer 0.3"))
    known = hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
    other = replace(PLAIN, system="Be brief.", warmer=0.3)
    assert requests([other], 1, 7)[0].key == known


def test_keys_tell_turns_apart():
    some = [
        PLAIN, LATER, replace(PLAIN, turns=TURNS[:1]), replace(PLAIN, turns=TURNS[::-1]),
        replace(PLAIN, turns=(("first", "No.second"), ("", "No, too."))), LATER,
        replace(PLAIN, turns=(("a\ud800", "b"),)),
    ]  # fmt: skip
    found = requests(some, 1, 7)
    assert len({request.key for request in found}) == len(some)
    assert [request.sample for request in found] == [0, 0, 0, 0, 0, 1, 0]


@pytest.mark.usefixtures("chat_key")
def test_an_endpoint_is_sent_the_whole_conversation(tmp_path):
    with serving(lambda body, count: str(len(body["messages"]))) as server:
        endpoint, _ = opened(server, tmp_path)
        found = texts(endpoint.generate([PLAIN, replace(LATER, system="Be brief.")], 1, 7))
        assert found == [["1"], ["6"]]
        sent = max((body["messages"] for _, body in server.asked), key=len)
        assert sent == replace(LATER, system="Be brief.").messages
        again, _ = opened(server, tmp_path)
        assert texts(again.generate([replace(LATER, system="Be brief.")], 1, 7)) == [["6"]]
        assert len(server.asked) == 2


@pytest.mark.usefixtures("chat_key")
def test_a_call_within_another_goes_first_and_both_keep_the_limit(tmp_path):
    held = threading.Semaphore(0)

    def reply(body, count):
        if len(body["messages"]) > 1:
            return "mended"
        if body["messages"][0]["content"] != "a":
            held.acquire(timeout=20)
        return "first"

    with serving(reply) as server:
        endpoint, _ = opened(server, tmp_path, concurrency=2, sample_rows=1)
        stream = endpoint.stream(prompts(*"abcdefgh"), 1, 0)
        assert next(part for part in stream if part) == {0: stream_of(endpoint, "a")}
        done = []
        inner = threading.Thread(
            target=lambda: done.extend(endpoint.generate([LATER] * 3, 1, 1)), daemon=True
        )
        inner.start()
        while len(endpoint.slots._waiting) < 2:  # both calls wait, and both slots are taken
            inner.join(0.01)
        for _ in range(2):  # two answers of the outer call make room for all of the inner one
            held.release()
        inner.join(20)
        assert [group[0].text for group in done] == ["mended"] * 3
        for _ in range(20):
            held.release()
        assert sum(len(part) for part in stream) == 7
        assert server.most <= 2
        assert len((tmp_path / REQUESTS).read_text().splitlines()) == 11


def stream_of(endpoint, text):
    """The answers that the log has to a prompt."""
    [request] = requests(prompts(text), 1, 0)
    return (endpoint.had(request),)


@pytest.mark.usefixtures("chat_key")
def test_mends_that_all_fail_do_not_end_a_run(tmp_path):
    def reply(body, count):
        return (500, "busy", {}) if len(body["messages"]) > 1 else "first"

    with serving(reply) as server:
        endpoint, messages = opened(server, tmp_path)
        assert texts(endpoint.generate([PLAIN], 1, 0)) == [["first"]]
        [[answer]] = endpoint.generate([LATER], 1, 0)
        assert answer.usage.lost
        assert messages == ["1 of 1 answers failed: the endpoint answered 500: busy"]
        # So it stays: a resumed run does not ask again.
        again, _ = opened(server, tmp_path)
        assert again.generate([LATER], 1, 0)[0][0].usage.lost
        assert len(server.asked) == 2


def test_a_chat_template_is_given_all_turns(tmp_path):
    tokenizer = Tokenizer.load(speaker.write(tmp_path))
    long = tokenizer.prompt("word", "word word", TURNS)
    short = tokenizer.prompt("word", "word word")
    assert len(long) > len(short)
    rendered = tokenizer._template.render(
        messages=replace(LATER, text="word", system="word word").messages,
        add_generation_prompt=True,
        enable_thinking=False,
    )
    np.testing.assert_array_equal(long, tokenizer.encode(rendered))


def test_generators_that_know_no_turns_answer_the_prompt_alone():
    grammar = GrammarGenerator()
    assert texts(grammar.generate([LATER], 2, 3)) == texts(grammar.generate([PLAIN], 2, 3))
    assert not grammar.writes_prose  # so nothing is sent back to it

    class Own:
        def generate(self, prompts, n, seed):
            return []

        def fits(self, text):
            return len(text) < 30

    own = as_generator(Own())
    assert own.takes(PLAIN)
    assert not own.takes(LATER)


@pytest.mark.long
def test_a_policy_answers_a_conversation_while_another_call_is_not_over(home: Home) -> None:
    policy = home.open(context=120)
    later = replace(PROMPTS[0], turns=(("word word", "word"),))
    stream = policy.stream(PROMPTS, N, 7)
    first = next(part for part in stream if part)
    [[mended]] = policy.generate([later], 1, 3)
    assert len(mended.tokens) > 0
    rest: dict[int, object] = {}
    for part in stream:
        rest |= part
    assert sorted({*first, *rest}) == list(range(len(PROMPTS)))
    tokens = policy.tokens_of(later)
    assert len(tokens) > len(policy.tokens_of(PROMPTS[0]))
    assert policy.takes(later)
    assert not policy.takes(replace(later, turns=(("word\n\n" * 200, "word"),)))
    # A stream that is closed early stops the server's work, and the next one begins it anew.
    stream = policy.stream(PROMPTS, N, 7)
    next(part for part in stream if part)
    stream.close()
    assert len(policy.generate(PROMPTS[:1], 1, 7)) == 1

"""The generator that asks an endpoint: what it asks, and what it does without an answer."""

import threading
import time

import pytest

from spo_jax.config import Settings
from spo_jax.errors import InputError
from spo_jax.rl.endpoint import GIVE_UP, Endpoint
from spo_jax.rl.request_log import REQUESTS
from spo_jax.search.candidates import Answers, written
from tests.rl import chat_server
from tests.rl.chat_server import KEY, config, echo, opened, prompts, serving, texts

pytestmark = pytest.mark.usefixtures("chat_key")

# --- asking ---------------------------------------------------------------------------------------


def test_answers_come_in_the_order_of_the_prompts():
    wanted = prompts("a", "b", "a")
    with serving(echo) as server:
        endpoint = Endpoint(config(server.url(), temperature=0.5, top_p=0.9, max_new_tokens=77))
        found = endpoint.generate(wanted, 2, seed=5)
        assert texts(endpoint.generate(wanted, 2, seed=5)) == texts(found)
        assert len(server.asked) == 6  # the second time all of it was known
        other = endpoint.generate(wanted, 2, seed=6)
    assert [[text[0] for text in group] for group in texts(found)] == [
        ["a"] * 2,
        ["b"] * 2,
        ["a"] * 2,
    ]
    # Each has a seed of its own: samples of one prompt, and prompts with one text.
    assert len({text for group in texts([*found, *other]) for text in group}) == 12
    body = server.asked[0][1]
    assert {k: body[k] for k in ("model", "temperature", "top_p", "max_tokens")} == {
        "model": "fake", "temperature": 0.5, "top_p": 0.9, "max_tokens": 77,
    }  # fmt: skip
    assert body.keys() == {"model", "messages", "temperature", "top_p", "max_tokens", "seed"}
    assert server.keys == {f"Bearer {KEY}": 12}


def test_parts_are_of_one_size_and_in_order_whatever_comes_first():
    first_is_there = threading.Event()

    def reply(body, count):
        text = body["messages"][0]["content"]
        if text == "a":
            time.sleep(0.2)
        if text == "e":
            assert first_is_there.wait(5)  # the first part does not wait for the last
        return text

    with serving(reply) as server:
        endpoint = Endpoint(config(server.url(), sample_rows=5, concurrency=10))
        parts = []
        for part in endpoint.stream(prompts(*"abcde"), 2, seed=0):
            if part:
                parts.append({place: [c.text for c in group] for place, group in part.items()})
                first_is_there.set()
    assert parts == [{0: ["a"] * 2, 1: ["b"] * 2}, {2: ["c"] * 2, 3: ["d"] * 2}, {4: ["e"] * 2}]


def test_leaving_early_stops_asking():
    with serving(lambda body, count: time.sleep(0.1) or "x") as server:
        endpoint = Endpoint(config(server.url(), sample_rows=2, concurrency=2))
        parts = endpoint.stream(prompts(*map(str, range(50))), 2, seed=0)
        assert any(next(parts) for _ in range(20))
        parts.close()
        assert not [thread for thread in threading.enumerate() if thread.name == "endpoint"]
        assert len(server.asked) < 30


def test_no_more_requests_at_a_time_than_allowed():
    three = threading.Barrier(3, timeout=60)  # each answer waits for two more requests
    with serving(lambda body, count: f"x{three.wait()}") as server:
        Endpoint(config(server.url(), concurrency=3)).generate(prompts(*"abcdef"), 2, seed=0)
    assert (server.most, len(server.asked)) == (3, 12)


def test_what_fails_once_is_asked_again_and_not_before_it_may():
    def reply(body, count):
        text = body["messages"][0]["content"]
        if count > 1 or text == "fine":
            return f"{text} {count}"
        if text == "slow":
            time.sleep(1.2)
        return {
            "busy": (429, "slow down", {"retry-after": "1"}),
            "broken": (500, "oops", {}),
            "down": (503, "loading", {}),
            "gone": None,
            "slow": "too late",
        }[text]

    names = ["fine", "busy", "broken", "down", "gone", "slow"]
    with serving(reply) as server:
        endpoint = Endpoint(config(server.url(), retries=1, request_timeout=0.8))
        found = texts(endpoint.generate(prompts(*names), 1, seed=0))
    assert found == [["fine 1"], *([f"{name} 2"] for name in names[1:])]
    busy = [at for at, body in server.asked if body["messages"][0]["content"] == "busy"]
    assert busy[1] - busy[0] >= 1


# --- what cannot be had ---------------------------------------------------------------------------


def test_some_lost_answers_are_counted_and_not_asked_for_again(tmp_path):
    def reply(body, count):
        text = body["messages"][0]["content"]
        return {"b": (500, f"no {KEY} here", {}), "c": (400, "too long", {})}.get(text, text)

    with serving(reply) as server:
        endpoint, said = opened(server, tmp_path, concurrency=1)
        found = endpoint.generate(prompts(*"abca"), 2, seed=0)
        assert texts(found) == [["a", "a"], ["", ""], ["", ""], ["a", "a"]]
        assert len(said) == 1
        assert said[0].startswith("4 of 8 answers failed: the endpoint ")
        asked = len(server.asked)
        again, said = opened(server, tmp_path)
        assert texts(again.generate(prompts(*"abca"), 2, seed=0)) == texts(found)
        assert (len(server.asked), said) == (asked, [])
    answers = [
        Answers(p, group, (None,) * 2) for p, group in zip(prompts(*"abca"), found, strict=True)
    ]
    settings = config("http://x", prompt_price=3.0, completion_price=1e6)
    assert written(answers, settings) == pytest.approx({
        "destroy/tokens": 4, "destroy/prompt_tokens": 4, "destroy/cost": 4 + 12e-6,
        "destroy/cut": 0, "destroy/lost": 4, "destroy/uncounted": 0, "destroy/shortened": 0,
    })  # fmt: skip
    assert KEY not in (tmp_path / REQUESTS).read_text()


def test_where_nothing_can_be_had_the_run_ends_and_asks_again_later(tmp_path):
    works = False

    def reply(body, count):
        return "x" if works else (503, "loading the model", {})

    with serving(reply) as server:
        endpoint, _ = opened(server, tmp_path)
        for few in (prompts(*"abcdef"), prompts("a")):
            with pytest.raises(InputError, match=r"answered 503: loading the model; .* --resume$"):
                endpoint.generate(few, 1, seed=0)
        assert not (tmp_path / REQUESTS).exists()
        works = True
        assert texts(endpoint.generate(prompts("a"), 1, seed=0)) == [["x"]]
        works = False
        asked = len(server.asked)
        with pytest.raises(InputError, match="503"):
            endpoint.generate(prompts(*map(str, range(100))), 1, seed=0)
        assert GIVE_UP <= len(server.asked) - asked < GIVE_UP + 8
        works = True  # failures of a call that ended are not settled
        numbers = prompts(*map(str, range(30)))
        assert texts(opened(server, tmp_path)[0].generate(numbers, 1, seed=0)) == [["x"]] * 30
    with pytest.raises(InputError, match=r"^the endpoint http\S+ cannot be reached \("):
        endpoint.generate(prompts("new"), 1, seed=0)


@pytest.mark.parametrize(
    ("status", "said", "sentence"),
    [
        (400, "Unsupported value: top_p", "refuses a request .*top_p.*temperature 0.8, top_p 0.95"),
        (401, f"Incorrect API key provided: {KEY}", "refuses the key .401.: .* SPO_API_KEY"),
        (403, f"no access with {KEY} now", r"answered 403: no access with \.\.\. now"),
        (404, "no model fake", "no such address or no model fake .404: no model fake"),
    ],
)
def test_a_refusal_is_one_sentence_at_once(status, said, sentence):
    with serving(lambda body, count: (status, said, {})) as server:
        endpoint = Endpoint(config(server.url(), concurrency=1, retries=5))
        with pytest.raises(InputError, match=sentence) as error:
            endpoint.generate(prompts(*"abc"), 2, seed=0)
        assert len(server.asked) == 1
    assert KEY not in str(error.value)
    assert "\n" not in str(error.value)


def test_the_same_is_asked_in_words_that_the_endpoint_takes(tmp_path):
    def reply(body, count):
        if "max_tokens" in body:
            return 400, "Unsupported parameter: use 'max_completion_tokens' instead", {}
        if "seed" in body:
            return 422, "Extra inputs are not permitted: seed", {}
        return str(body["max_completion_tokens"])

    with serving(reply) as server:
        endpoint, said = opened(server, tmp_path, max_new_tokens=9, concurrency=1)
        assert texts(endpoint.generate(prompts("a"), 3, seed=0)) == [["9"] * 3]
        assert len(server.asked) == 5
    assert said == ["The endpoint accepts no seed; requests have none from now on"]


@pytest.mark.parametrize("sent", [{}, {"choices": []}, {"choices": [{"message": {"content": 1}}]}])
def test_what_is_no_chat_completion_is_no_answer(monkeypatch, sent):
    monkeypatch.setattr(chat_server, "completion", lambda text, body: sent)
    with serving(echo) as server, pytest.raises(InputError, match="without a chat completion"):
        Endpoint(config(server.url())).generate(prompts("a"), 1, seed=0)


def test_an_answer_without_text_or_count_is_an_answer(monkeypatch):
    sent = {"choices": [{"message": {"content": None}, "finish_reason": "length"}]}
    monkeypatch.setattr(chat_server, "completion", lambda text, body: sent)
    with serving(echo) as server:
        found = Endpoint(config(server.url())).generate(prompts("a"), 1, seed=0)
    numbers = written([Answers(prompts("a")[0], found[0], (None,))], Settings())
    assert found[0][0].text == ""
    assert {k: v for k, v in numbers.items() if v} == {"destroy/cut": 1, "destroy/uncounted": 1}

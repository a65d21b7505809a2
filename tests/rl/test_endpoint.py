"""The generator that asks an endpoint: what it asks, and what it does without an answer."""

import re
import threading
import time

import pytest

from spo_jax.config import Settings
from spo_jax.errors import InputError
from spo_jax.rl.endpoint.generator import GIVE_UP, Endpoint
from spo_jax.rl.endpoint.request_log import REQUESTS
from spo_jax.search.sampling.sample import Answers, written
from tests.rl import chat_server
from tests.rl.chat_server import KEY, config, echo, opened, prompts, serving, several, texts
from tests.rl.hostile_server import answer, hostile, nested, reset, sends

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
    body = server.asked[-1][1]
    assert {k: body[k] for k in ("model", "temperature", "top_p", "max_tokens")} == {
        "model": "fake", "temperature": 0.5, "top_p": 0.9, "max_tokens": 77,
    }  # fmt: skip
    streamed = {"stream", "stream_options"}
    assert body.keys() - streamed == {
        "model", "messages", "temperature", "top_p", "max_tokens", "seed"
    }  # fmt: skip
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
        asked = len(server.asked)
        time.sleep(0.5)
        assert len(server.asked) <= asked + 2 < 30  # two may have been on their way


def test_no_more_requests_at_a_time_than_allowed():
    three = threading.Barrier(3, timeout=60)  # each answer waits for two more requests
    with serving(lambda body, count: f"x{three.wait()}") as server:
        Endpoint(config(server.url(), concurrency=3)).generate(prompts(*"abcdefghijkl"), 1, seed=0)
    assert (server.most, len(server.asked)) == (3, 12)


def sizes(server):
    return [body.get("n", 1) for _, body in server.asked]


def test_answers_to_one_prompt_are_asked_for_in_one_request(tmp_path):
    with serving(several) as server:
        endpoint, messages = opened(server, tmp_path, concurrency=6)
        found = endpoint.generate(prompts("a", "b", "b"), 4, seed=1)
        assert sorted(sizes(server)) == [2, 4, 6]  # no request has more than `concurrency`
        assert server.most == 1  # 4 + 6 are more than 6
        assert [len({c.text for c in group}) for group in found] == [4] * 3
        assert [[c.text[0] for c in group] for group in found] == [["a"] * 4, *[["b"] * 4] * 2]
        # What the server counted is the sum of what is kept.
        usages = [c.usage for group in found for c in group]
        assert sum(usage.prompt_tokens for usage in usages) == 3
        assert sum(u.completion_tokens for u in usages) == sum(
            len(c.text) for group in found for c in group
        )
        # A group that is partly known is completed.
        more = endpoint.generate(prompts("a"), 7, seed=1)
        assert (texts(more)[0][:4], sizes(server)[3:]) == (texts(found)[0], [3])
        new, _ = opened(server, tmp_path)
        assert texts(new.generate(prompts("a"), 7, seed=1)) == texts(more)
    assert messages == []


@pytest.mark.parametrize(
    ("most", "refusal"),
    [
        (1, ""),
        (3, ""),
        (3, "n_cmpl cannot be greater than the number of slots, please increase -np"),
        (1, "'n' : number must be at most 1 with this model"),
    ],
)
def test_an_endpoint_that_gives_fewer_is_asked_for_fewer(tmp_path, most, refusal):
    def reply(body, count):
        if refusal and body.get("n", 1) > most:
            return 400, refusal, {}
        return several(body, count)[:most]

    with serving(reply) as server:
        endpoint, messages = opened(server, tmp_path, concurrency=12)
        found = endpoint.generate(prompts("a", "b"), 12, seed=0)
        few, asked = sizes(server), len(server.asked)
        again = opened(server, tmp_path)[0].generate(prompts("a", "b"), 12, seed=0)
        assert texts(again) == texts(found)
        assert len(server.asked) == asked
    assert [len({c.text for c in group}) for group in found] == [12, 12]
    assert sum(n for n in few if n <= most) + (0 if refusal else most) == 24
    number = "one answer" if most == 1 else f"{most} answers"
    assert len(messages) == 1
    assert messages[0].startswith(f"The endpoint gives {number} per request; ")


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
        endpoint, messages = opened(server, tmp_path, concurrency=1)
        found = endpoint.generate(prompts(*"abca"), 2, seed=0)
        assert texts(found) == [["a", "a"], ["", ""], ["", ""], ["a", "a"]]
        assert len(messages) == 1
        assert messages[0].startswith("4 of 8 answers failed: the endpoint ")
        asked = len(server.asked)
        again, messages = opened(server, tmp_path)
        assert texts(again.generate(prompts(*"abca"), 2, seed=0)) == texts(found)
        assert (len(server.asked), messages) == (asked, [])
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
    ("status", "text", "sentence"),
    [
        (400, "Unsupported value: top_p", "refuses a request .*top_p.*temperature 0.8, top_p 0.95"),
        (401, f"Incorrect API key provided: {KEY}", "refuses the key .401.: .* SPO_API_KEY"),
        (403, f"no access with {KEY} now", r"answered 403: no access with \.\.\. now"),
        (404, "no model fake", "no such address or no model fake .404: no model fake"),
    ],
)
def test_a_refusal_is_one_sentence_at_once(status, text, sentence):
    with serving(lambda body, count: (status, text, {})) as server:
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
        endpoint, messages = opened(server, tmp_path, max_new_tokens=9, concurrency=1)
        assert texts(endpoint.generate(prompts("a"), 3, seed=0)) == [["9"] * 3]
        assert len(server.asked) == 5
    assert messages == ["The endpoint accepts no seed; requests have none from now on"]


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


# --- before the first request ---------------------------------------------------------------------


def test_a_greeting_says_whether_the_endpoint_answers_and_has_the_model():
    with serving(echo) as server:
        url = server.url()
        assert Endpoint(config(url)).greeting() == f"{url} answers and has fake"
        server.models = [f"m{i}" for i in range(7)]
        line = f"{url} answers, but does not list the model fake; it lists m0, m1, m2, m3, m4"
        assert Endpoint(config(url)).greeting() == f"{line} and 2 more"
        server.models = []
        assert Endpoint(config(url)).greeting() == ""
        assert server.asked == []
    assert Endpoint(config(url)).greeting().startswith(f"{url} cannot be reached (")


@pytest.mark.parametrize(
    ("act", "ending"),
    [
        (sends(answer({}, "404 No")), "$"),
        (sends(answer({"data": 3})), "$"),
        (sends(answer(b"<html>")), "$"),
        (sends(answer(nested().encode())), "$"),
        (sends(answer({"data": [{"id": ["x"]}, {"id": "x" * 10**6}]})), "$"),
        (sends(answer({"error": KEY}, "401 No")), " refuses the key .401.: put a valid one into "),
        (sends(answer({"data": [{"id": f"{KEY} \x1b[31m"}]})), r" answers, .* it lists \.\.\."),
        (lambda peer: peer.wait(), " does not say within 0.5 s which models it has$"),
        (reset, r" broke off, or answered with invalid HTTP \("),
    ],
)
def test_a_greeting_of_any_server_is_a_line_without_the_key(act, ending):
    with hostile(act) as server:
        line = Endpoint(config(server.url(), request_timeout=0.5, retries=3)).greeting()
        assert len(server.requests) == 1
    assert re.match(ending if ending == "$" else re.escape(server.url()) + ending, line)
    assert KEY not in line
    assert line.isprintable()

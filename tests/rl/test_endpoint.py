"""The generator that asks an endpoint, against a real HTTP server that speaks its protocol."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from spo_jax.cli import main
from spo_jax.config import Config
from spo_jax.errors import InputError, MissingExtra
from spo_jax.presets import load
from spo_jax.program import ROLES, Prompt
from spo_jax.rl.endpoint import GIVE_UP, Endpoint, address
from spo_jax.rl.request_log import REQUESTS, RequestLog, requests
from spo_jax.search.candidates import Answers, written
from spo_jax.search.grammar import get_grammar
from spo_jax.search.grammar.generator import answer
from spo_jax.search.manifest import check_model, model_of
from spo_jax.search.plugins import writer_and_learner
from spo_jax.search.rounds import NoUpdate
from spo_jax.search.store import BEST, Store, dump, load_run
from spo_jax.seeding import python_rng

KEY = "sk-very-secret-0123456789"


class Server:
    """Chat completions by `reply(body, count)`, `count` being how often that text was asked.

    reply: gives the text of an answer, or (status, message, headers), or None to hang up.
    """

    def __init__(self, reply):
        self.reply = reply
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
        status, said, headers = found if isinstance(found, tuple) else (200, None, {})
        sent = {"error": {"message": said}} if said is not None else completion(found, body)
        data = json.dumps(sent).encode()
        http.send_response(status)
        headers = {"content-type": "application/json", "content-length": len(data), **headers}
        for name, value in headers.items():
            http.send_header(name, str(value))
        http.end_headers()
        http.wfile.write(data)


def completion(text, body):
    tokens = {"prompt_tokens": len(body["messages"][0]["content"]), "completion_tokens": len(text)}
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant"}}
    choice["message"]["content"] = text
    return {"id": "1", "object": "chat.completion", "created": 0, "model": "fake-1",
            "choices": [choice], "usage": tokens}  # fmt: skip


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


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("SPO_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def config(url, **given):
    given = {"responses": 2, "repairs_per_destroy": 2, "retries": 0} | given
    return Config(generator="openai", base_url=url, model="fake", **given)


def prompts(*texts):
    return [Prompt("tsp", "destroy", "initialization", text) for text in texts]


def texts(found):
    return [[completion.text for completion in group] for group in found]


def echo(body, count):
    return f"{body['messages'][0]['content']} {body['seed']}"


def opened(server, folder, **given):
    endpoint, said = Endpoint(config(server.url(), **given)), []
    endpoint.open(folder, said.append)
    return endpoint, said


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
    with serving(lambda body, count: time.sleep(0.03) or "x") as server:
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
        assert said[0].startswith("4 of 8 answers could not be had: the endpoint ")
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
    assert said == ["The endpoint takes no seed; requests go without one from here on"]


@pytest.mark.parametrize("sent", [{}, {"choices": []}, {"choices": [{"message": {"content": 1}}]}])
def test_what_is_no_chat_completion_is_no_answer(monkeypatch, sent):
    monkeypatch.setattr(sys.modules[__name__], "completion", lambda text, body: sent)
    with serving(echo) as server, pytest.raises(InputError, match="no chat completion"):
        Endpoint(config(server.url())).generate(prompts("a"), 1, seed=0)


def test_an_answer_without_text_or_count_is_an_answer(monkeypatch):
    sent = {"choices": [{"message": {"content": None}, "finish_reason": "length"}]}
    monkeypatch.setattr(sys.modules[__name__], "completion", lambda text, body: sent)
    with serving(echo) as server:
        found = Endpoint(config(server.url())).generate(prompts("a"), 1, seed=0)
    numbers = written([Answers(prompts("a")[0], found[0], (None,))], Config())
    assert found[0][0].text == ""
    assert {k: v for k, v in numbers.items() if v} == {"destroy/cut": 1, "destroy/uncounted": 1}


# --- the log --------------------------------------------------------------------------------------


def test_a_torn_line_is_asked_for_again_and_nothing_else(tmp_path):
    log = tmp_path / REQUESTS
    with serving(lambda body, count: f"{body['seed']} at {time.monotonic()}") as server:
        first = texts(
            opened(server, tmp_path, concurrency=1)[0].generate(prompts(*"ab"), 2, seed=0)
        )
        whole = log.read_bytes()
        lines = whole.splitlines(keepends=True)
        for cut in (1, len(lines[-1]) // 2, len(lines[-1]) - 1):
            log.write_bytes(b"".join(lines[:-1]) + lines[-1][:cut])
            asked = len(server.asked)
            again = texts(opened(server, tmp_path)[0].generate(prompts(*"ab"), 2, seed=0))
            assert len(server.asked) == asked + 1
            assert (again[0], again[1][0]) == (first[0], first[1][0])
            assert len(log.read_text().splitlines()) == 4
            assert all(json.loads(line) for line in log.read_text().splitlines())
        log.write_bytes(lines[0] + b"\0\0not json\n{}\n" + b"".join(lines[1:]))
        assert texts(opened(server, tmp_path)[0].generate(prompts(*"ab"), 2, seed=0)) == first
    assert json.loads(lines[0]) == json.loads(lines[0]) | {
        "key": requests(prompts("a"), 1, 0)[0].key, "role": "destroy", "sample": 0,
        "prompt_tokens": 1, "finish": "stop", "model": "fake-1",
    }  # fmt: skip


def test_a_key_names_the_seed_the_text_and_the_sample():
    keys = [
        [request.key for request in requests(prompts(*some), n, seed)]
        for some, n, seed in (("aba", 2, 0), ("baa", 2, 0), ("aba", 2, 1))
    ]
    one, moved, other = keys
    assert len(set(one)) == 6
    assert [*one[2:4], *one[:2], *one[4:]] == moved
    assert not set(one) & set(other)
    assert requests(prompts("a"), 1, 0)[0] not in RequestLog()


# --- settings -------------------------------------------------------------------------------------


def test_which_key_is_sent(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "other")
    with serving(echo) as server:
        for count, name in enumerate(("SPO_API_KEY", "OPENAI_API_KEY", "none")):
            Endpoint(config(server.url())).generate(prompts("a"), 1, seed=count)
            monkeypatch.delenv(name, raising=False)
    assert server.keys == {f"Bearer {KEY}": 1, "Bearer other": 1, "Bearer none": 1}


def test_settings_that_go_together():
    given = {"generator": "openai", "base_url": "http://x/v1", "model": "m"}
    settings = load("tsp", "smoke", given)
    assert (settings.update, settings.model) == ("none", "m")
    assert settings.learning_rate == Config().learning_rate  # not the small model's own
    for name in ("base_url", "model"):
        with pytest.raises(InputError, match="give both --base-url URL and --model NAME"):
            load("tsp", "smoke", {k: v for k, v in given.items() if k not in (name,)})
    with pytest.raises(InputError, match="update is grpo, which teaches a model"):
        load("tsp", "smoke", {**given, "update": "grpo"})
    with pytest.raises(InputError, match="generator is grammar, which asks no endpoint"):
        load("tsp", "smoke", {"generator": "grammar", "base_url": "http://x/v1"})
    generator, updater = writer_and_learner(settings)
    assert isinstance(generator, Endpoint)
    assert isinstance(updater, NoUpdate)


def test_a_model_for_a_preset_of_an_endpoint_is_one_there(tmp_path):
    preset = tmp_path / "mine.toml"
    preset.write_text('generator = "openai"\nbase_url = "http://x/v1"\nmodel = "small"\n')
    assert load("tsp", str(preset), {"model": "large"}).generator == "openai"


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtra, match=re.escape("pip install 'spo-jax[openai]'")):
        Endpoint(config("http://x/v1"))


def test_addresses():
    assert address("https://api.example.com/v1/") == "https://api.example.com/v1"
    for wrong in ("localhost:8000", "ftp://x/v1", "http://", "http://x:port/v1", "http://[x"):
        with pytest.raises(InputError, match=r"^base_url is no address"):
            address(wrong)
    for secret in ("http://me:secret@x/v1", "http://x/v1?key=secret", "http://x/v1#secret"):
        with pytest.raises(InputError, match=r"put the key into .* SPO_API_KEY") as error:
            address(secret)
        assert "secret" not in str(error.value)


def test_a_run_goes_on_with_its_model_wherever_that_is(tmp_path):
    began = model_of(config("http://x/v1"))
    assert began == {"name": "fake", "base_url": "http://x/v1"}
    check_model(began, {**began, "base_url": "http://y/v1"}, tmp_path)
    with pytest.raises(InputError, match="began with another model: fake then, new now"):
        check_model(began, {**began, "name": "new"}, tmp_path)


# --- a whole run ----------------------------------------------------------------------------------


def programs(body, count):
    """Programs of the grammar, of the role that the prompt asks for; now and then a refusal."""
    rng = python_rng(body["seed"])
    (role,) = re.findall(r"exactly one Python function, (\w+),", body["messages"][0]["content"])
    assert role in ROLES
    if rng.random() < 0.1:
        return 500, "not this one", {}
    grammar = get_grammar("tsp", role)
    return answer(grammar, grammar.edit("initialization", [], rng, True)).text


def test_a_killed_run_asks_nothing_twice_and_ends_the_same(tmp_path, capsys):
    kill = [None]

    def reply(body, count):
        if kill[0] and len(server.asked) > 40:
            os.kill(kill.pop(), signal.SIGKILL)
            kill.append(None)
        return programs(body, count)

    with serving(reply) as server:
        line = ["discover", "tsp", "--preset", "smoke", "--generator", "openai", "--model", "fake"]
        line += ["--base-url", server.url(), "--workers", "1", "--retries", "0", "--steps", "10"]
        line += ["--finalists", "0", "--select", "utility", "--size", "12", "--sample-rows", "4"]
        line += ["--concurrency", "4", "--prompt-price", "2", "--completion-price", "8", "--out"]
        whole, killed = tmp_path / "whole", tmp_path / "killed"
        assert main([*line, str(whole)]) == 0
        shown = capsys.readouterr().out
        wanted = {body["seed"] for _, body in server.asked}
        assert len(wanted) == len(server.asked)
        used = [json.loads(entry) for entry in (whole / REQUESTS).read_text().splitlines()]
        assert len(used) == len(wanted)

        server.asked.clear()
        process = subprocess.Popen([sys.executable, "-m", "spo_jax", *line, str(killed)])
        kill[0] = process.pid
        assert process.wait(60) == -signal.SIGKILL
        assert load_run(killed).rounds == 1
        before = (killed / REQUESTS).read_bytes().count(b"\n")
        assert before > 20
        server.asked.clear()
        assert main(["discover", "--resume", str(killed)]) == 0
        assert {body["seed"] for _, body in server.asked} < wanted
        assert len(server.asked) == len(wanted) - before

    assert dump(killed) == dump(whole)
    assert (killed / BEST).exists()
    with Store.reopen(whole) as store:
        totals = store.totals()
    for name in ("prompt_tokens", "tokens", "cost", "lost"):
        totals[name] = sum(totals[f"{role}/{name}"] for role in ROLES)
    prompt = sum(entry.get("prompt_tokens", 0) for entry in used)
    done = sum(entry.get("completion_tokens", 0) for entry in used)
    lost = sum("error" in entry for entry in used)
    assert lost > 0
    assert (totals["prompt_tokens"], totals["tokens"], totals["lost"]) == (prompt, done, lost)
    assert totals["cost"] == pytest.approx((2 * prompt + 8 * done) / 1e6)
    assert f"Endpoint: {prompt:,} prompt tokens, {done:,} completion tokens, cost " in shown
    manifest = json.loads((killed / "manifest.json").read_text())
    assert manifest["model"] == {"name": "fake", "base_url": server.url()}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 8
    assert not [path for path in files if KEY.encode() in path.read_bytes()]

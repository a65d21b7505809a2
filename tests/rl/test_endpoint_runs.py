"""The generator that asks an endpoint: its log, its settings, and runs with it."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from spo_jax import presets
from spo_jax.cli import main
from spo_jax.config import Settings
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError
from spo_jax.program import ROLES
from spo_jax.rl.endpoint.generator import Endpoint
from spo_jax.rl.endpoint.request_log import REQUESTS, RequestLog, requests
from spo_jax.rl.endpoint.web import ENDPOINT_KEYS, address
from spo_jax.runs.database.store import Store, dump
from spo_jax.runs.folders import BEST
from spo_jax.runs.manifest import check_model, model_of
from spo_jax.runs.run import load_run
from spo_jax.search.plugins import writer_and_learner
from spo_jax.search.rounds import NoUpdate
from spo_jax.search.writing.grammar import answer
from spo_jax.seeding import python_rng
from tests.rl.chat_server import KEY, config, echo, opened, prompts, serving, texts

pytestmark = pytest.mark.usefixtures("chat_key")

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
    for extra in ({"a": 1, "b": 2}, {"b": 2, "a": 1}):  # fields that are sent besides
        sent = [request.key for request in requests(prompts(*"aba"), 2, 0, extra)]
        assert not set(sent) & set(one)
    assert sent == [r.key for r in requests(prompts(*"aba"), 2, 0, {"a": 1, "b": 2})]
    assert [r.key for r in requests(prompts(*"aba"), 2, 0, {})] == one
    assert requests(prompts("a"), 1, 0)[0] not in RequestLog()


# --- settings -------------------------------------------------------------------------------------


def test_which_key_is_sent(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "other")
    with serving(echo) as server:
        for count, name in enumerate(("SPO_API_KEY", "OPENAI_API_KEY", "none")):
            Endpoint(config(server.url())).generate(prompts("a"), 1, seed=count)
            monkeypatch.delenv(name, raising=False)
    assert server.keys == {f"Bearer {KEY}": 1, "Bearer other": 1, "Bearer none": 1}


@pytest.mark.parametrize("name", ENDPOINT_KEYS)
@pytest.mark.parametrize("inside", ["\n", "\r", "\0", "\x7f", "\u00e9"])
def test_a_key_that_cannot_be_sent_is_refused_unseen(monkeypatch, name, inside):
    monkeypatch.delenv("SPO_API_KEY")
    monkeypatch.setattr(os, "environ", os.environ | {name: f"sk-first{inside}second"})
    with pytest.raises(InputError, match=f"^the key in {name} has a line break") as error:
        Endpoint(config("http://x/v1"))
    assert not re.search("first|second", str(error.value))


def test_blanks_around_a_key_are_not_sent(monkeypatch):
    monkeypatch.setenv("SPO_API_KEY", f"  {KEY}\r\n")
    with serving(echo) as server:
        Endpoint(config(server.url())).generate(prompts("a"), 1, seed=0)
    assert server.keys == {f"Bearer {KEY}": 1}


def test_more_fields_of_a_request():
    given = {"request_extra": '{"reasoning_effort": "low", "top_k": 20}', "seed": 3}
    with serving(echo) as server:
        Endpoint(config(server.url(), **given)).generate(prompts("a"), 1, seed=0)
        (_, body), *_ = server.asked
        assert (body["reasoning_effort"], body["top_k"]) == ("low", 20)
        server.reply = lambda body, count: (400, "no", {})
        with pytest.raises(InputError, match=r"which says .*max_tokens 1200, reasoning_effort low"):
            Endpoint(config(server.url(), **given)).generate(prompts("b"), 1, seed=0)
    for wrong in ("reasoning", "[1]", "3"):
        with pytest.raises(InputError, match="it must be a JSON object, as"):
            config("http://x/v1", request_extra=wrong)
    with pytest.raises(InputError, match="request_extra holds stream, temperature, which a requ"):
        config("http://x/v1", request_extra='{"temperature": 1, "stream": true}')
    with pytest.raises(InputError, match="request_extra is given, but generator is grammar"):
        Settings.make(generator="grammar", request_extra="{}")
    assert config("http://x/v1", **given).changed({"request_extra": "{}"}) == ["request_extra"]


def test_settings_that_go_together():
    given = {"generator": "openai", "base_url": "http://x/v1", "model": "m"}
    settings = presets.settings("tsp", "smoke", **given)
    assert (settings.learning.update, settings.generator.model) == ("none", "m")
    rate = Settings().learning.learning_rate  # not the small model's own
    assert settings.learning.learning_rate == rate
    for name in ("base_url", "model"):
        with pytest.raises(InputError, match="give both --base-url URL and --model NAME"):
            presets.settings("tsp", "smoke", **{k: v for k, v in given.items() if k not in (name,)})
    with pytest.raises(InputError, match="update is grpo, which trains a model"):
        presets.settings("tsp", "smoke", **{**given, "update": "grpo"})
    alone = presets.settings("tsp", "smoke", base_url="http://x/v1", model="m")
    assert alone == presets.settings("tsp", "smoke", **given)
    with pytest.raises(InputError, match="base_url is given, but generator is grammar"):
        presets.settings("tsp", "smoke", generator="grammar", base_url="http://x/v1")
    generator, updater = writer_and_learner(settings)
    assert isinstance(generator, Endpoint)
    assert isinstance(updater, NoUpdate)


def test_a_model_for_a_preset_of_an_endpoint_is_one_there(tmp_path):
    preset = tmp_path / "mine.toml"
    preset.write_text(
        '[generator]\nname = "openai"\nmodel = "small"\n[endpoint]\nbase_url = "http://x/v1"\n'
    )
    assert presets.settings("tsp", str(preset), model="large").generator.name == "openai"


def test_addresses():
    kept = address("https://api.example.com/v1/", "base_url", ENDPOINT_KEYS)
    assert kept == "https://api.example.com/v1"
    for wrong in ("localhost:8000", "ftp://x/v1", "http://", "http://x:port/v1", "http://[x"):
        with pytest.raises(InputError, match=r"^base_url is not an address"):
            address(wrong, "base_url", ENDPOINT_KEYS)
    for secret in ("http://me:secret@x/v1", "http://x/v1?key=secret", "http://x/v1#secret"):
        with pytest.raises(InputError, match=r"put the key into .* SPO_API_KEY") as error:
            address(secret, "base_url", ENDPOINT_KEYS)
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
    (role,) = re.findall(r"complete function (\w+) in", body["messages"][0]["content"])
    assert role in ROLES
    if rng.random() < 0.1:
        return 500, "not this one", {}
    grammar = get_problem("tsp").grammar(role)
    return answer(grammar, grammar.edit("initialization", [], rng, True)).text


@pytest.mark.slow
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

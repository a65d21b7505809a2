"""The key is in nothing that is kept or shown, wherever an endpoint says it."""

import itertools
import json
import re

import pytest

from spo_jax.cli import main
from spo_jax.errors import InputError
from spo_jax.rl.endpoint.request_log import REQUESTS
from spo_jax.runs.folders import MANIFEST
from tests.rl.chat_server import KEY, opened, prompts
from tests.rl.hostile_server import answer, chat, hostile, sends
from tests.rl.keys import WAYS, leaks
from tests.rl.test_endpoint_hostile import FINE, LOST
from tests.rl.test_endpoint_runs import programs

pytestmark = pytest.mark.usefixtures("chat_key")


@pytest.mark.parametrize("name", WAYS)
def test_the_ways_hold_the_key(name):
    assert leaks(f"some {WAYS[name](KEY)} text")


def everywhere(way):
    """Ways to say a text: as answers in all fields, in errors, headers and invalid HTTP."""
    word = WAYS[way](KEY)
    line = re.sub(r"[^ -~]", " ", word)
    full = chat(word, id=word, model=word, object=word, system_fingerprint=word, created=word)
    full["choices"][0] |= {"finish_reason": word, "logprobs": {word: word}}
    full["choices"][0]["message"] |= {"role": word, "refusal": word, word: word}
    full["usage"] = {"prompt_tokens": word, word: 3}
    heads = [f"x-request-id: {line}", f"set-cookie: {line}={line}", f"server: {line}"]
    raw = json.dumps(full, ensure_ascii=False).encode()
    split = raw.replace(b"-", b"\\u002d").replace(b"s", b"\\u0073")  # of a key, in JSON
    return {
        "an answer": answer(full, headers=heads),
        "an answer of escapes": answer(split if way == "as it is" else raw, headers=heads),
        "an error": answer({"error": {"message": word, "type": word, "code": word}}, "403 No"),
        "an error that may be repeated": answer({"error": {"message": word}}, "500 No"),
        "an error of an answer": answer({"error": {"message": word}}),
        "an error without a message": answer({"error": {word: [word, {"a": word}]}}, "400 No"),
        "an error of text": answer(word.encode(), "418 No"),
        "a long error": answer((" " + word + "y" * 270 + word).encode(), "404 No"),
        "a refusal": answer({"detail": word}, "422 No"),
        "an address": answer(b"", "307 There", [f"location: http://127.0.0.1/{line}"]),
        "a status": f"HTTP/1.1 403 {line}\r\ncontent-length: 0\r\n\r\n".encode(),
        "no status": f"{line}\r\n\r\n".encode(),
        "a bad header": f"HTTP/1.1 200 OK\r\n{line}\r\n{line}: \0\r\n\r\n".encode(),
        "a bad length": f"HTTP/1.1 200 OK\r\ncontent-length: {line}\r\n\r\n".encode(),
        "a coding": answer(b"x", headers=[f"content-encoding: {line}"]),
        "a wait": answer(b"", "429 No", [f"retry-after: {line}"]),
        "no JSON": answer(word.encode()),
    }


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_the_key_is_nowhere(tmp_path, way, capsys, caplog):
    caplog.set_level(0)
    places = {"fine": answer(chat("fine")), **everywhere(way)}

    def act(peer):
        _, _, body = peer.request.partition(b"\r\n\r\n")
        peer.send(places[json.loads(body)["messages"][0]["content"]])

    with hostile(act) as server:
        endpoint, messages = opened(server, tmp_path, concurrency=1, request_timeout=5.0)
        found = endpoint.generate(prompts(*places), 1, seed=0)
        shown = [*messages, *(c.text for group in found for c in group)]
        for place in ("an error", "no status"):
            new, _ = opened(server, tmp_path, concurrency=1, request_timeout=5.0)
            with pytest.raises(InputError) as error:
                new.generate(prompts(place), 1, seed=1)
            shown.append(str(error.value))
    lines = (tmp_path / REQUESTS).read_text().splitlines()
    assert len(lines) == len(places)
    shown += [*lines, *capsys.readouterr(), *(record.getMessage() for record in caplog.records)]
    assert not [text for text in shown if leaks(text)]


def test_what_is_no_key_is_left_as_it_is(tmp_path, monkeypatch):
    program = 'def f(none):\n    """EMPTY %20 \\u0041 &amp; sk-very"""\n    return None\n'
    for key in ("none", "EMPTY", KEY):
        monkeypatch.setenv("SPO_API_KEY", key)
        with hostile(sends(answer(chat(program)))) as server:
            found = opened(server, tmp_path / key)[0]
            (tmp_path / key).mkdir()
            assert found.generate(prompts("a"), 1, seed=0)[0][0].text == program


def test_settings_that_a_run_keeps_hold_no_key(tmp_path):
    for setting in (
        {"model": f"a-{KEY}"},
        {"request_extra": json.dumps({"key": f"x{KEY.upper()}"})},
    ):
        (name,) = setting
        with (
            hostile(sends(answer(chat()))) as server,
            pytest.raises(InputError, match=f"^{name} contains the key, and a run") as error,
        ):
            opened(server, tmp_path, **setting)
        assert KEY not in str(error.value)


@pytest.mark.long
@pytest.mark.parametrize("rotten", [False, True])
def test_a_whole_run_holds_no_key_and_ends_in_a_sentence(tmp_path, capfd, rotten):
    """Half of the answers are programs; rotten: the others are what `test_endpoint_hostile` has."""
    run, ways = tmp_path / "run", [WAYS[name](KEY) for name in WAYS if "\n" not in WAYS[name](KEY)]
    acts = [act for act, _ in LOST.values()] + [act for act, *_ in FINE.values()]
    asked = itertools.count()  # a few failures before the first answer would end the run

    def act(peer):
        if peer.request.startswith(b"GET "):
            return peer.send(answer({"data": [{"id": word} for word in ways]}))
        _, _, body = peer.request.partition(b"\r\n\r\n")
        body = json.loads(body)
        if next(asked) >= 8 and rotten and body["seed"] % 2:
            return acts[body["seed"] % len(acts)](peer)
        word = ways[body["seed"] % len(ways)]
        found = programs(body, 0)
        text = found if isinstance(found, str) else "nothing"
        text = text.replace("STRATEGY:", f"STRATEGY: {word} ")
        completion = chat(text + f"\n# {word}", model=word, id=word)
        peer.send(answer(completion, headers=[f"x-request-id: {KEY}", f"set-cookie: a={KEY}"]))

    with hostile(act) as server:
        line = ["discover", "tsp", "--preset", "smoke", "--generator", "openai", "--model", "fake"]
        line += ["--base-url", server.url(), "--workers", "1", "--retries", "0", "--steps", "5"]
        line += ["--finalists", "0", "--select", "utility", "--size", "12", "--sample-rows", "8"]
        line += ["--request-timeout", "0.5", "--concurrency", "8", "--out", str(run)]
        code = main(line)
        if rotten:
            assert main(["discover", "--resume", str(run)]) in (0, 2)
    out, err = capfd.readouterr()
    assert "Traceback" not in out + err
    assert code == 0 or (rotten and code == 2 and err.startswith("spo: the endpoint "))
    files = [path for path in run.rglob("*") if path.is_file()]
    assert {MANIFEST, REQUESTS, "log.txt"} <= {path.name for path in files}
    texts = [path.read_bytes().decode("latin-1") for path in files]
    assert not any(leaks(text) for text in [*texts, out, err])
    entries = [json.loads(line) for line in (run / REQUESTS).read_text().splitlines()]
    assert len([entry for entry in entries if "error" not in entry]) > 5
    assert not rotten or len({entry["error"] for entry in entries if "error" in entry}) > 3

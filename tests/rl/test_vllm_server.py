"""vLLM servers: how one is started and ended, and one that is somebody else's."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import nullcontext, suppress
from itertools import pairwise
from pathlib import Path

import pytest

from spo_jax.cli import main
from spo_jax.errors import InputError
from spo_jax.rl.vllm.client import Client
from spo_jax.rl.vllm.server import LOG, LORAS, check_version, command, free_port, version
from spo_jax.runs.manifest import model_of, other_software, versions
from tests.rl.vllm_home import PROMPTS, Home, N, learn, left

# --- a server of somebody else --------------------------------------------------------------------


@pytest.mark.long
def test_a_running_server_is_used_and_left_as_it_was(home: Home) -> None:
    with home.serving(free_port()) as given:
        client = Client(given["vllm_url"])
        policy = home.open(**given)
        learn(policy)
        policy.generate(PROMPTS, N, 1)
        assert len(client.models()) == 3
        policy.close()
        assert client.models() == ["base"]
        home.tell(no_lora=True)
        policy = home.open(**given)
        with pytest.raises(InputError, match="start it with --enable-lora and VLLM_ALLOW"):
            policy.generate(PROMPTS, N, 1)
        home.tell(blind=True)
        with pytest.raises(
            InputError, match=r"No adapter found .*; it must see /.*/adapters/destr"
        ):
            policy.generate(PROMPTS, N, 1)
        assert version(home.config(**given)) == "0.32.1"
        home.tell(version="0.16.1")
        with pytest.raises(
            InputError, match=r"^vLLM is 0.16.1; a run needs at least 0.32, because"
        ):
            version(home.config(**given))
    policy = home.open(**given)
    with pytest.raises(InputError, match=rf"no vLLM server answers at {given['vllm_url']}"):
        policy.generate(PROMPTS, N, 1)
    assert version(home.config(**given)) == ""


@pytest.mark.long
def test_a_running_server_is_left_awake_and_woken_where_it_was_not(home: Home) -> None:
    with home.serving(free_port()) as given:
        client = Client(given["vllm_url"])
        policy = home.open(residency="sleep", rounds=1, **given)
        learn(policy)
        assert client.asleep()
        policy.close()
        assert not client.asleep()
        assert client.models() == ["base"]
        client.sleep()  # as a run that is killed leaves it
        for residency in ("sleep", "both"):
            policy = home.open(residency=residency, **given)
            assert len(policy.generate(PROMPTS[:1], N, 0)[0]) == N
            client.sleep()


def test_closing_ends_answers_of_a_running_server_and_takes_its_adapters(home: Home) -> None:
    with home.serving(free_port()) as given:
        policy = home.open(**given, request_timeout=50.0)
        policy.generate(PROMPTS, N, 0)
        home.tell(hang=True)
        asked = len(home.asked("/v1/completions"))
        answers = policy.stream(PROMPTS, N, 0)
        assert next(answers) == {}
        while len(home.asked("/v1/completions")) == asked:
            time.sleep(0.01)
        began = time.monotonic()
        policy.close()
        answers.close()
        assert time.monotonic() - began < 5
        assert len(Client(given["vllm_url"]).models()) == 1


@pytest.mark.long
def test_a_running_server_may_be_started_again_between_rounds(home: Home) -> None:
    port = free_port()
    with home.serving(port) as given:
        policy = home.open(**given)
        learn(policy)
    with home.serving(port):
        policy.generate(PROMPTS, N, 1)
        assert len(Client(given["vllm_url"]).models()) == 3


@pytest.mark.long
def test_a_running_server_may_ask_for_a_key(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = "sk-very-secret-0123456789"
    monkeypatch.setenv("VLLM_API_KEY", secret)
    with home.serving(free_port()) as given:
        policy = home.open(**given)
        assert len(policy.generate(PROMPTS[:1], N, 0)[0]) == N
        monkeypatch.setenv("VLLM_API_KEY", secret + "x")
        with pytest.raises(InputError, match=r"asks for a key \(401\): put it into VLLM_API_KEY"):
            home.open(**given).generate(PROMPTS[:1], N, 0)
        monkeypatch.setenv("VLLM_API_KEY", "sk-very\nsecret")
        with pytest.raises(InputError, match=r"the key in VLLM_API_KEY has a line break") as error:
            home.open(**given).generate(PROMPTS[:1], N, 0)
        assert "sk-very" not in str(error.value)
        monkeypatch.setenv("VLLM_API_KEY", secret)
        policy.close()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if secret.encode() in path.read_bytes()]


@pytest.mark.parametrize("url", ["http://h:abc", "localhost:8000", "http://user:secret@host"])
def test_an_address_is_looked_at_before_anything_is_kept(
    home: Home, url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XLA_PYTHON_CLIENT_PREALLOCATE", "CUDA_DEVICE_ORDER"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)  # and that it is not set is what is restored
    run = home.path / "run"
    line = ["discover", "tsp", "--preset", "smoke", "--generator", "vllm", "--vllm-url", url]
    assert main([*line, "--model", str(home.model), "--out", str(run)]) == 2
    errors = capsys.readouterr().err
    assert "vllm_url is not an address" in errors or "vllm_url must not contain a name" in errors
    assert "secret" not in errors
    assert not run.exists()
    assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"  # for residency both, too


# --- whatever happens, it ends --------------------------------------------------------------------

RUN = """
import sys, threading, time
from pathlib import Path
from spo_jax.config import Settings
from spo_jax.rl.vllm.server import Started
config = Settings.make(generator="vllm", vllm_python=sys.argv[1], vllm_args=sys.argv[2])
started = Started(config, Path(sys.argv[3]), Path(sys.argv[4]), 60)
client = started.start(threading.Event(), 7)
client.reset_cache()
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.long
@pytest.mark.parametrize("who", ["run", "guard"])
def test_the_server_ends_when_the_run_is_killed(home: Home, who: str) -> None:
    words = [home.python, home.arguments, home.model, home.path / LOG]
    line = [sys.executable, "-c", RUN, *map(str, words)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
        (pid,) = home.pids()
        assert left([pid])
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(run.pid if who == "run" else parent, signal.SIGKILL)
        until = time.monotonic() + 5
        # Of a server whose guard is killed only the main process is sure to end.
        while (left([pid]) if who == "run" else Path(f"/proc/{pid}").exists()) and (
            time.monotonic() < until
        ):
            time.sleep(0.02)
        assert not Path(f"/proc/{pid}").exists()
        assert who == "guard" or not left([pid])
        run.kill()
        if who == "guard":
            os.killpg(pid, signal.SIGKILL)


def test_a_server_gets_what_the_run_needs(home: Home) -> None:
    config = home.config(lora_rank=20, residency="sleep", vllm_args="--max-logprobs 7 -x 'a b'")
    line = command(config, "py", Path("model"), 60, 81, 2**40 + 3)
    assert line[:5] == ["py", "-m", "vllm.entrypoints.openai.api_server", "--model", "model"]
    pairs = dict(pairwise(line))
    assert pairs["--max-lora-rank"] == "32"
    assert pairs["--max-model-len"] == "60"
    assert pairs["--host"] == "127.0.0.1"
    assert int(pairs["--max-loras"]) == LORAS == 2 * 2 + 1
    assert int(pairs["--max-cpu-loras"]) >= LORAS
    assert "--enable-sleep-mode" in line
    assert pairs["--logprobs-mode"] == "raw_logprobs"
    capped = command(home.config(importance_cap=2.0), "py", Path("model"), 60, 81, 0)
    assert dict(pairwise(capped))["--logprobs-mode"] == "processed_logprobs"
    assert line[-4:] == ["--max-logprobs", "7", "-x", "a b"]
    assert pairs["--seed"] == "3"
    assert "--enable-sleep-mode" not in command(home.config(), "py", Path("model"), 60, 81, 0)
    with pytest.raises(InputError, match="lora_rank is 600; vLLM takes at most 512"):
        command(home.config(lora_rank=600), "py", Path("model"), 60, 81, 2**40 + 3)
    with pytest.raises(InputError, match="vllm_args is"):
        command(home.config(vllm_args="'"), "py", Path("model"), 60, 81, 2**40 + 3)


@pytest.mark.long
def test_a_server_has_the_cards_it_is_given(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2")
    for given, seen in ((None, "0,1,2"), ("1,2", "1,2")):
        policy = home.open(vllm_devices=given)
        policy.generate(PROMPTS[:1], N, 0)
        policy.close()
        assert home.asked("start")[-1]["devices"] == seen


def test_the_version_of_vllm_is_recorded(home: Home) -> None:
    assert model_of(home.config())["vllm"] == "0.32.2"
    assert "vllm" not in model_of(home.config(vllm_python=sys.executable))
    home.python.write_text(home.python.read_text().replace("0.32.2", "0.11.0"))
    with pytest.raises(InputError, match=r"^vLLM is 0.11.0; a run needs at least 0.32, because"):
        model_of(home.config())
    began = {"versions": versions(), "model": {"devices": "1 x cpu", "vllm": "0.1"}}
    now = {"devices": "1 x cpu", "vllm": "0.2"}
    assert "(vllm 0.1 -> 0.2)" in other_software(began, now)
    assert other_software(began, {"devices": "1 x cpu"}) == ""
    assert other_software({"versions": versions(), "model": {"devices": "1 x cpu"}}, now) == ""
    with pytest.raises(InputError, match="vllm_python is nowhere/python, which is not a program"):
        model_of(home.config(vllm_python="nowhere/python"))


@pytest.mark.parametrize(
    ("found", "known"),
    [
        ("0.32.0", True), ("0.32.0rc1", True), ("0.32.1+cpu", True), ("1.0.0", True), ("", True),
        ("0.1.dev1+g1a2b", True), ("0.1.dev12345", True), ("main", True), ("0.31.9", False),
        ("0.9.2.post1", False), ("0.1.1", False), ("0.11.1rc7.dev3+g1", False),
    ],
)  # fmt: skip
def test_which_versions_will_do(found: str, known: bool) -> None:
    old = pytest.raises(InputError, match=f"^vLLM is {re.escape(found)};")
    with nullcontext() if known else old:
        check_version(found)


# Kills all but the first of the server's processes a second late, as a driver may.
LATE = """
import os, signal, sys, threading, time
from spo_jax.rl.vllm import guard
guard.GRACE = 0.2
def killpg(group, number):
    os.kill(group, number)
    later = threading.Timer(1.0, kill_all, (group, number))
    later.daemon = True
    later.start()
kill_all, os.killpg = os.killpg, killpg
guard.main(os.getppid(), ["sh", "-c", "trap '' TERM; sleep 60 & echo $$; wait; sleep 60"])
"""


def test_the_card_is_free_when_the_guard_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", LATE], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        group = int(run.stdout.readline())
        try:
            assert len(left([group])) == 2
            run.terminate()
            assert run.wait(20) == 0
            assert not left([group])
        finally:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)

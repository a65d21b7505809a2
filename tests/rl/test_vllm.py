"""The policy that samples from a vLLM server, against a process that speaks its interface."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from spo_jax.config import Config
from spo_jax.errors import InputError
from spo_jax.program import Completion, Group, Prompt
from spo_jax.rl.tokens import Tokenizer
from spo_jax.rl.vllm.client import Client, Sampling, read_choice
from spo_jax.rl.vllm.policy import VllmPolicy
from spo_jax.rl.vllm.sampler import RESTARTS
from spo_jax.rl.vllm.server import LOG, LORAS, command, ending, free_port
from tests.rl import speaker

N = 2
FAKE = Path(__file__).with_name("fake_vllm.py")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of which a token's distribution follows from the token before: see fake_vllm.py."""
    folder = speaker.write(tmp_path_factory.mktemp("model"), ("full_attention",))
    weights = load_file(folder / "model.safetensors")
    silent = {k: v * 0 if "o_proj" in k else v for k, v in weights.items()}
    save_file(silent, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


class Home:
    """A run's folder, what its server is to do wrong, and what it did."""

    def __init__(self, model: Path, path: Path) -> None:
        self.model, self.path, self.said = model, path, []
        self.misbehave, self.diary = path / "misbehave.json", path / "diary.jsonl"
        self.python = path / "python"
        self.python.write_text(f'#!/bin/sh\nshift 2\nexec {sys.executable} {FAKE} "$@"\n')
        self.python.chmod(0o755)
        self.arguments = f"--misbehave {self.misbehave} --diary {self.diary}"
        self.opened: list[VllmPolicy] = []

    def config(self, **given: Any) -> Config:
        given = {
            "generator": "vllm", "vllm_python": str(self.python), "vllm_args": self.arguments,
            "model": str(self.model), "max_new_tokens": 3, "context": 60, "sample_rows": 4,
            "lora_rank": 2, "lora_targets": "gate_proj,up_proj,down_proj", "learning_rate": 0.05,
            "share_prompts": False, "concurrency": 3, "request_timeout": 5.0, "retries": 1,
        } | given  # fmt: skip
        return Config(**given)

    def open(self, **given: Any) -> VllmPolicy:
        policy = VllmPolicy.load(self.config(**given))
        policy.open(self.path, self.said.append)
        self.opened.append(policy)
        return policy

    def tell(self, **what: Any) -> None:
        self.misbehave.write_text(json.dumps(what))

    def did(self) -> list[dict[str, Any]]:
        lines = self.diary.read_text().splitlines() if self.diary.exists() else []
        return [json.loads(line) for line in lines]

    def pids(self) -> list[int]:
        return list(dict.fromkeys(line["pid"] for line in self.did()))

    def adapters(self, what: str) -> list[str]:
        """The adapters that were loaded or unloaded, without what makes a run's own."""
        return [
            line["lora_name"].rpartition("-")[0]
            for line in self.did()
            if line["path"] == f"/v1/{what}_lora_adapter"
        ]


@pytest.fixture
def home(folder: Path, tmp_path: Path) -> Any:
    home = Home(folder, tmp_path)
    yield home
    for policy in home.opened:
        policy.close()
    assert not left(home.pids())


def left(pids: list[int]) -> list[int]:
    """Processes of these groups that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) in pids and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def prompt(role: Any, paragraphs: int = 3, n: int = 0) -> Prompt:
    return Prompt("tsp", role, "simplification", "\n\n".join(["word"] * paragraphs) + f" {n}")


PROMPTS = [prompt("repair"), prompt("destroy", 4), prompt("repair", 7), prompt("destroy")]


def groups(answers: Any) -> Any:
    rng = np.random.default_rng(0)
    found: dict[str, list[Group]] = {"destroy": [], "repair": []}
    for asked, group in zip(PROMPTS, answers, strict=True):
        found[asked.role].append(Group(asked, group, rng.normal(size=N)))
    return found


def learn(policy: VllmPolicy, seed: int = 0) -> dict[str, float]:
    return policy.update(groups(policy.generate(PROMPTS, N, seed)))


def trained(policy: VllmPolicy, asked: Prompt, completion: Completion) -> np.ndarray:
    """The trainer's log-probabilities of an answer, at temperature 1."""
    start = policy._tokenizer.prompt(asked.text)
    tokens = np.resize(np.concatenate([start, completion.tokens]), 57)  # one shape, one program
    adapter = policy.learners[asked.role].adapter
    given, _ = policy._trainer.read(adapter, jnp.float32(policy.lora.scale), tokens, [1])
    rows = np.arange(len(completion.tokens)) + len(start) - 1
    return np.asarray(given)[rows]


# --- answers --------------------------------------------------------------------------------------


def test_answers_are_those_of_each_roles_adapter_and_each_round(home: Home) -> None:
    policy = home.open()
    for _ in range(2):
        answers = policy.generate(PROMPTS, N, 7)
        for asked, group in zip(PROMPTS, answers, strict=True):
            assert len(group) == N
            for completion in group:
                tokens = completion.tokens
                assert tokens.dtype == np.int32
                assert completion.text == policy._tokenizer.decode(tokens)
                assert (tokens[-1] in policy._tokenizer.stops) or len(tokens) == 3
                assert np.allclose(
                    completion.logprobs, trained(policy, asked, completion), atol=1e-4
                )
        metrics = policy.update(groups(answers))
    for role in ("destroy", "repair"):
        assert metrics[f"{role}/ratio_mean"] == 1.0  # the trainer's own, whatever the server says
        assert metrics[f"{role}/drift_mean"] < 1e-4
        assert metrics[f"{role}/effective"] == pytest.approx(1.0)
        assert metrics[f"{role}/gradient_norm"] > 0
    assert metrics["probe"] < 1e-3
    loaded = ["destroy-0.1", "repair-0.1", "destroy-1.1", "repair-1.1"]
    assert home.adapters("load") == loaded
    assert home.adapters("unload") == loaded[:2]
    asked = Counter(line["model"] for line in home.did() if line["path"] == "/v1/completions")
    assert len(asked) == 5  # both roles' adapters twice, and the base of the probe
    assert home.said == []


def test_parts_come_in_order(home: Home) -> None:
    parts = [part for part in home.open().stream(PROMPTS, N, 7) if part]
    assert [list(part) for part in parts] == [[0, 1], [2, 3]]


HOW = Sampling(
    n=1, temperature=1.0, top_p=1.0, max_new_tokens=3, stop_tokens=(2,), timeout=1.0
)  # fmt: skip
GOOD = {
    "token_ids": [90, 2], "text": "word4\n", "finish_reason": "stop",
    "logprobs": {"token_logprobs": [-1.0, -2]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"text": "word5\n"}, "is not that of its tokens"),
        ({"token_ids": None}, "returns no token ids"),
        ({"token_ids": []}, "returns no token ids"),
        ({"token_ids": [90, 96]}, "token 96, which the tokenizer"),
        ({"logprobs": {"token_logprobs": [-1.0]}}, "1 log-probabilities to 2 tokens"),
        ({"logprobs": {"token_logprobs": [-1.0, None]}}, "no log-probabilities to 2 tokens"),
        ({"logprobs": {"token_logprobs": [-1.0, -math.inf]}}, "needs a finite one"),
        ({"logprobs": None}, "no log-probabilities"),
        ({"finish_reason": "length"}, "ended by 'length'"),
        ({"token_ids": [90, 90], "text": "word4\nword4\n"}, "its stop token is not in it"),
        ({"token_ids": [2, 90]}, "its stop token is not its last"),
        (
            {"token_ids": [90] * 4, "text": "word4\n" * 4, "finish_reason": "length",
             "logprobs": {"token_logprobs": [0.0] * 4}},
            "has 4 tokens; 3 were asked for",
        ),
    ],
)  # fmt: skip
def test_answers_that_do_not_fit_are_refused(folder: Path, wrong: Any, why: str) -> None:
    tokenizer = Tokenizer.load(folder)
    good = read_choice(GOOD, tokenizer, HOW)
    assert (good.tokens.tolist(), good.logprobs.tolist(), good.text) == (
        [90, 2],
        [-1, -2],
        "word4\n",
    )
    with pytest.raises(InputError, match=why):
        read_choice({**GOOD, **wrong}, tokenizer, HOW)


def test_a_server_with_another_tokenizer_ends_the_run(home: Home) -> None:
    policy = home.open()
    policy.generate(PROMPTS[:1], N, 0)
    home.tell(other_text=True)
    with pytest.raises(InputError, match="is not that of its tokens"):
        policy.generate(PROMPTS, N, 0)


# --- the right weights ----------------------------------------------------------------------------


REPAIR = r"with adapter repair-2\.1-\w+, read afresh, its .* are rather those of "


@pytest.mark.parametrize(
    ("what", "tolerance", "why"),
    [
        ({"stale": True}, 0.15, r"does not serve the weights that learn.*probe_tolerance"),
        ({"stale": True}, 9.0, r"read afresh, its .* are rather those of the adapter before it"),
        ({"stale": "cached"}, 9.0, r"with its cache, its .* rather those of the adapter before it"),
        ({"other": True}, 9.0, REPAIR + "adapter destroy-2"),
        ({"base": True}, 9.0, r"as if adapter destroy-2\.1-\w+ were not there"),
        ({"wrong": 0.2}, 0.15, r"does not have the model of the trainer: .* are 0\.2 nats"),
    ],
)
def test_wrong_weights_end_the_run(home: Home, what: Any, tolerance: float, why: str) -> None:
    policy = home.open(probe_tolerance=tolerance)
    learn(policy)
    assert learn(policy)["probe_share"] == pytest.approx(1, abs=0.01)
    home.tell(**what)
    with pytest.raises(InputError, match=why):
        policy.generate(PROMPTS, N, 1)


def test_drift_is_measured_and_can_be_corrected(home: Home) -> None:
    """Each of three tokens is 0.1 nats more likely on the server than here for a destroy, so that
    it counts exp(-0.3) of what it did, and less likely for a repair, which then counts the cap.
    """
    found = {}
    for cap in (None, 0.9):
        policy = home.open(importance_cap=cap, drift_warning=1.0)
        told: dict[str, list[Group]] = {"destroy": [], "repair": []}
        for asked in PROMPTS:
            apart = np.float32(0.1 if asked.role == "destroy" else -0.1)
            whole = [Completion("", np.array([i, 6, 7], np.int32)) for i in (5, 9)]
            group = [replace(c, logprobs=trained(policy, asked, c) + apart) for c in whole]
            told[asked.role].append(Group(asked, tuple(group), np.array([1.0, 0.5])))
        found[cap] = metrics = policy.update(told)
        for role in ("destroy", "repair"):
            assert metrics[f"{role}/drift_mean"] == pytest.approx(0.1, abs=1e-4)
            assert metrics[f"{role}/drift_max"] == pytest.approx(0.1, abs=1e-4)
            assert metrics[f"{role}/ratio_mean"] == 1.0
    for role, weight in (("destroy", math.exp(-0.3)), ("repair", 0.9)):
        plain, capped = (found[cap][f"{role}/gradient_norm"] for cap in (None, 0.9))
        assert capped == pytest.approx(plain * weight, rel=1e-3)


def test_too_much_drift_is_said(home: Home) -> None:
    policy = home.open(drift_warning=0.2)
    answers = policy.generate(PROMPTS, N, 0)
    policy.update(groups([[replace(c, logprobs=c.logprobs - 0.3) for c in g] for g in answers]))
    assert len(home.said) == 2
    assert "of destroy answers are 0.3 nats a token from the trainer's" in home.said[0]


# --- a server that fails --------------------------------------------------------------------------


def test_a_crash_in_mid_call_is_made_good(home: Home) -> None:
    policy = home.open()
    learn(policy)
    expected = policy.generate(PROMPTS, N, 5)
    home.tell(crash=True, once=True)
    found = policy.generate(PROMPTS, N, 5)
    for one, other in zip(expected, found, strict=True):
        assert [c.text for c in one] == [c.text for c in other]
    assert len(home.pids()) == 2
    assert not left(home.pids()[:1])
    assert home.adapters("load")[-2:] == ["destroy-1.1", "repair-1.1"]
    assert "it is started again" in home.said[0]


def test_a_server_that_always_crashes_ends_the_run(home: Home) -> None:
    policy = home.open()
    home.tell(crash=True)
    why = rf"was started {RESTARTS} times without giving an answer; .*{LOG} ends: .*on fire"
    with pytest.raises(InputError, match=why):
        policy.generate(PROMPTS[:1], N, 0)
    assert len(home.pids()) == RESTARTS + 1


def test_a_request_that_hangs_is_repeated(home: Home) -> None:
    policy = home.open(request_timeout=0.5)
    home.tell(hang=True, once=True)
    assert len(policy.generate(PROMPTS[:1], N, 0)[0]) == N
    home.tell(hang=True)
    with pytest.raises(InputError, match=r"gave no answer within 0\.5 s, 2 times in a row"):
        policy.generate(PROMPTS[:1], N, 0)


def test_errors_are_repeated_and_refusals_are_not(home: Home) -> None:
    policy = home.open()
    home.tell(status=500, once=True)
    assert len(policy.generate(PROMPTS[:1], N, 0)[0]) == N
    home.tell(status=500)
    with pytest.raises(InputError, match="answered 500: I would rather not, 2 times in a row"):
        policy.generate(PROMPTS[:1], N, 0)
    home.tell(status=400)
    before = len(home.did())
    with pytest.raises(InputError, match=r"refuses /v1/completions \(400: I would rather not\)"):
        policy.generate(PROMPTS[:1], N, 0)
    assert len(home.did()) == before + 1


def test_a_server_that_does_not_start(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = home.open(vllm_args=home.arguments + " --fail 'no card is there'")
    with pytest.raises(InputError, match=r"ended while it started; .*ends: no card is there"):
        policy.generate(PROMPTS[:1], N, 0)
    home.tell(ill=True)
    policy = home.open(vllm_startup=1.0)
    with pytest.raises(InputError, match=r"not ready within 1 s \(vllm_startup\)"):
        policy.generate(PROMPTS[:1], N, 0)
    assert not policy._sampler._server.alive()
    with pytest.raises(InputError, match="vllm_python is nowhere/python, which is no program"):
        home.open(vllm_python="nowhere/python")


OUTPUT = """\
(APIServer pid=1) INFO 11-21 23:15:41 [api_utils.py:286] non-default args: {}
/lib/api_server.py:51: DeprecationWarning: say it in another way
(VllmWorker-0 pid=3) ERROR 11-21 23:16:04 [multiproc_executor.py:953]     raise ValueError(
(VllmWorker-0 pid=3) ERROR 11-21 23:16:04 [multiproc_executor.py:953] ValueError: no memory
(EngineCore pid=2) ERROR 11-21 23:16:07 [core.py:1510] Traceback (most recent call last):
(EngineCore pid=2) ERROR 11-21 23:16:07 [core.py:1510] Exception: see stack trace for root cause.
  File "multiprocessing/process.py", line 314, in _bootstrap
    self.run()
(APIServer pid=1) INFO 11-21 23:15:41 [api_utils.py:286]
(APIServer pid=1) INFO 11-21 23:15:41 [core.py:2] one
two
three
four
RuntimeError: See root cause above.
INFO:     Application shutdown complete.
nanobind: leaked 4 instances!
/lib/resource_tracker.py:254: UserWarning: there appear to be 2 leaked semaphores
"""
INVALID = """\
pydantic.ValidationError: 1 validation error for ModelConfig
  Value error, Sleep mode is not supported on current platform.
    For further information visit the manual
"""


def test_an_error_shows_what_it_came_from() -> None:
    log, cause = Path("log"), "ValueError: no memory / Exception: see stack trace for root cause."
    end = "four / RuntimeError: See root cause above."
    assert ending(log, OUTPUT) == f"; log ends: {cause} / ... / {end}"
    quiet = re.sub("(Error|Exception):", r"\1", OUTPUT)
    end = "one / two / three / four / RuntimeError See root cause above."
    assert ending(log, quiet) == f"; log ends: Exception see stack trace for root cause. / {end}"
    first, second, _ = map(str.strip, INVALID.splitlines())
    assert ending(log, INVALID) == f"; log ends: {first} / {second}"
    assert ending(log, " \n") == "; log is empty"


def test_who_leaves_early_does_not_wait(home: Home) -> None:
    policy = home.open(request_timeout=50.0)
    policy.generate(PROMPTS, N, 0)
    home.tell(hang=True)
    answers = policy.stream(PROMPTS, N, 0)
    assert next(answers) == {}
    began = time.monotonic()
    answers.close()
    assert time.monotonic() - began < 2
    home.misbehave.unlink()
    assert len(policy.generate(PROMPTS, N, 0)) == len(PROMPTS)  # it can go on


# --- adapters -------------------------------------------------------------------------------------


def test_a_name_or_folder_is_never_used_again(home: Home) -> None:
    policy, kept = home.open(), home.path / "kept"
    learn(policy)
    policy.save(kept, 1)
    learn(policy)  # and killed before it is saved
    policy.generate(PROMPTS, N, 0)
    policy.close()
    again = VllmPolicy.load(home.config(seed=9))
    again.restore(kept, 1)
    again.open(home.path, home.said.append)
    home.opened.append(again)
    learn(again)
    again.generate(PROMPTS, N, 0)
    names = home.adapters("load")
    assert names[::2] == ["destroy-0.1", "destroy-1.1", "destroy-2.1", "destroy-1.2", "destroy-2.2"]
    full = {p.name for p in (home.path / "adapters").iterdir() if any(p.iterdir())}
    assert full == {"destroy-2.2", "repair-2.2"}  # what is not needed takes no room
    assert len([n for n in home.adapters("load") if n.startswith("repair")]) == 5


# --- a server of somebody else --------------------------------------------------------------------


def test_a_running_server_is_used_and_left_as_it_was(home: Home) -> None:
    port = free_port()
    inner = command(home.config(), str(home.python), home.model, 60, port)
    environment = os.environ | {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True"}
    with subprocess.Popen(inner, env=environment, process_group=0) as server:
        try:
            url, client = f"http://127.0.0.1:{port}/v1", Client(f"http://127.0.0.1:{port}")
            given = {"vllm_python": None, "vllm_args": None, "vllm_url": url}
            while not client.healthy():
                time.sleep(0.05)
            policy = home.open(**given)
            learn(policy)
            policy.generate(PROMPTS, N, 1)
            assert len(client.models()) == 3
            policy.close()
            assert server.poll() is None
            assert client.models() == ["base"]
            home.tell(no_lora=True)
            policy = home.open(**given)
            with pytest.raises(InputError, match="start it with --enable-lora and VLLM_ALLOW"):
                policy.generate(PROMPTS, N, 1)
        finally:
            os.killpg(server.pid, signal.SIGKILL)
    policy = home.open(**given)
    with pytest.raises(InputError, match=rf"no vLLM server answers at {url}"):
        policy.generate(PROMPTS, N, 1)


# --- one card -------------------------------------------------------------------------------------


def on_host(policy: VllmPolicy) -> bool:
    return all(isinstance(x, np.ndarray) for x in jax.tree.leaves(policy._trainer._weights))


def test_server_and_trainer_take_turns_by_sleep(home: Home) -> None:
    policy = home.open(residency="sleep")
    assert on_host(policy)
    answers = policy.generate(PROMPTS, N, 0)
    metrics = policy.update(groups(answers))
    assert on_host(policy)
    assert metrics["repair/drift_mean"] < 1e-4
    for asked, group in zip(PROMPTS, policy.generate(PROMPTS, N, 1), strict=True):
        for completion in group:
            assert np.allclose(completion.logprobs, trained(policy, asked, completion), atol=1e-4)
    paths = [line["path"] for line in home.did()]
    asleep, awake = paths.index("/sleep"), paths.index("/wake_up")
    assert awake == asleep + 1  # nothing is asked of it between
    assert paths[awake + 1] == "/v1/load_lora_adapter"
    home.tell(insomnia=True)
    with pytest.raises(InputError, match="does not go to sleep; use residency restart"):
        policy.update(groups(answers))


def test_server_and_trainer_take_turns_by_restart(home: Home) -> None:
    policy = home.open(residency="restart")
    learn(policy)
    assert not left(home.pids())
    assert on_host(policy)
    policy.generate(PROMPTS, N, 1)
    assert len(home.pids()) == 2


def test_the_base_goes_to_the_host_and_back_as_it_was(home: Home) -> None:
    policy = home.open()
    trainer = policy._trainer
    before = [np.array(x) for x in jax.tree.leaves(trainer._weights)]
    old = jax.tree.leaves(trainer._weights)
    trainer.to_host()
    assert all(x.is_deleted() for x in old)
    trainer.to_host()
    trainer.to_devices()
    trainer.to_devices()
    now = jax.tree.leaves(trainer._weights)
    assert all(isinstance(x, jax.Array) for x in now)
    assert all(np.array_equal(a, b) for a, b in zip(before, now, strict=True))


# --- whatever happens, it ends --------------------------------------------------------------------

RUN = """
import sys, threading, time
from pathlib import Path
from spo_jax.config import Config
from spo_jax.rl.vllm.server import Started
config = Config(generator="vllm", vllm_python=sys.argv[1], vllm_args=sys.argv[2])
started = Started(config, Path(sys.argv[3]), Path(sys.argv[4]), 60)
client = started.start(threading.Event())
client.reset_cache()
print("ready", flush=True)
time.sleep(60)
"""


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


def test_a_server_is_told_what_the_run_needs(home: Home) -> None:
    config = home.config(
        lora_rank=20, residency="sleep", seed=2**40 + 3, vllm_args="--seed 7 -x 'a b'"
    )
    line = command(config, "py", Path("model"), 60, 81)
    assert line[:5] == ["py", "-m", "vllm.entrypoints.openai.api_server", "--model", "model"]
    pairs = dict(pairwise(line))
    assert pairs["--max-lora-rank"] == "32"
    assert pairs["--max-model-len"] == "60"
    assert pairs["--host"] == "127.0.0.1"
    assert int(pairs["--max-loras"]) == LORAS == 2 * 2 + 1
    assert int(pairs["--max-cpu-loras"]) >= LORAS
    assert "--enable-sleep-mode" in line
    assert line[-4:] == ["--seed", "7", "-x", "a b"]
    assert "--enable-sleep-mode" not in command(home.config(), "py", Path("model"), 60, 81)
    with pytest.raises(InputError, match="lora_rank is 600; vLLM takes at most 512"):
        command(home.config(lora_rank=600), "py", Path("model"), 60, 81)
    with pytest.raises(InputError, match="vllm_args is"):
        command(home.config(vllm_args="'"), "py", Path("model"), 60, 81)


def test_settings_that_do_not_go_together() -> None:
    with pytest.raises(InputError, match="give either --vllm-python PATH"):
        Config(generator="vllm")
    with pytest.raises(InputError, match="give either --vllm-python PATH"):
        Config(generator="vllm", vllm_python="a", vllm_url="b")
    with pytest.raises(InputError, match="not ours to start"):
        Config(generator="vllm", vllm_url="b", residency="restart")
    with pytest.raises(InputError, match="vllm_args is given, but generator is model"):
        Config(vllm_args="--seed 1")
    assert Config(generator="vllm", vllm_url="b").update == "grpo"

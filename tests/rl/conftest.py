"""Fixtures of the tests with a server of either kind."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from safetensors.numpy import load_file, save_file

from tests.rl import speaker
from tests.rl.chat_server import KEY
from tests.rl.vllm_home import Home, left


@pytest.fixture(scope="session")
def markov(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of which a token's distribution follows from the token before: see fake_vllm.py."""
    folder = speaker.write(tmp_path_factory.mktemp("model"), ("full_attention",))
    weights = load_file(folder / "model.safetensors")
    silent = {k: v * 0 if "o_proj" in k else v for k, v in weights.items()}
    save_file(silent, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.fixture
def home(markov: Path, tmp_path: Path) -> Iterator[Home]:
    home = Home(markov, tmp_path)
    yield home
    for policy in home.opened:
        policy.close()
    until = time.monotonic() + 5  # a group that is killed ends when the kernel comes to it
    while left(home.pids()) and time.monotonic() < until:
        time.sleep(0.02)
    assert not left(home.pids())


@pytest.fixture
def chat_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPO_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

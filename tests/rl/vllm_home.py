"""A run that samples from a server which speaks vLLM's interface: see fake_vllm.py."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from spo_jax.config import Settings
from spo_jax.program import Completion, Group, Prompt
from spo_jax.rl.vllm.client import Client
from spo_jax.rl.vllm.policy import VllmPolicy
from spo_jax.rl.vllm.server import command

N = 2
FAKE = Path(__file__).with_name("fake_vllm.py")


class Home:
    """A run's folder, what its server is to do wrong, and what it did."""

    def __init__(self, model: Path, path: Path) -> None:
        self.model, self.path, self.messages = model, path, []
        self.misbehave, self.diary = path / "misbehave.json", path / "diary.jsonl"
        self.python = path / "python"
        self.python.write_text(
            '#!/bin/sh\n[ "$1" = -I ] && echo 0.32.2 && exit\nshift 2\n'
            f'exec {sys.executable} {FAKE} "$@"\n'
        )
        self.python.chmod(0o755)
        self.arguments = f"--misbehave {self.misbehave} --diary {self.diary}"
        self.opened: list[VllmPolicy] = []

    def config(self, **given: Any) -> Settings:
        given = {
            "generator": "vllm", "vllm_python": str(self.python), "vllm_args": self.arguments,
            "model": str(self.model), "max_new_tokens": 3, "context": 60, "sample_rows": 4,
            "lora_rank": 2, "lora_targets": "gate_proj,up_proj,down_proj", "learning_rate": 0.05,
            "share_prompts": False, "concurrency": 3, "request_timeout": 60.0, "retries": 1,
        } | given  # fmt: skip
        return Settings.make(**given)

    def open(self, **given: Any) -> VllmPolicy:
        policy = VllmPolicy.load(self.config(**given))
        policy.open(self.path, self.messages.append)
        self.opened.append(policy)
        return policy

    @contextmanager
    def serving(self, port: int) -> Iterator[dict[str, Any]]:
        """A server of somebody else; gives the settings that use it."""
        inner = command(self.config(residency="sleep"), str(self.python), self.model, 60, port, 0)
        environment = os.environ | {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True"}
        with subprocess.Popen(inner, env=environment, process_group=0) as server:
            try:
                url = f"http://127.0.0.1:{port}"
                while not Client(url).healthy():
                    time.sleep(0.05)
                yield {"vllm_python": None, "vllm_args": None, "vllm_url": url + "/v1"}
                assert server.poll() is None  # it is not ours to end
            finally:
                os.killpg(server.pid, signal.SIGKILL)

    def tell(self, **what: Any) -> None:
        self.misbehave.write_text(json.dumps(what))

    def did(self) -> list[dict[str, Any]]:
        lines = self.diary.read_text().splitlines() if self.diary.exists() else []
        return [json.loads(line) for line in lines]

    def asked(self, path: str) -> list[dict[str, Any]]:
        return [line for line in self.did() if line["path"] == path]

    def pids(self) -> list[int]:
        return list(dict.fromkeys(line["pid"] for line in self.did()))

    def adapters(self, what: str) -> list[str]:
        """The adapters that were loaded or unloaded, without what makes a run's own."""
        return [
            line["lora_name"].rpartition("-")[0]
            for line in self.did()
            if line["path"] == f"/v1/{what}_lora_adapter"
        ]


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


def trained(
    policy: VllmPolicy, asked: Prompt, completion: Completion, temperature: float = 1.0
) -> np.ndarray:
    """The trainer's log-probabilities of an answer."""
    start = policy._tokenizer.prompt(asked.text)
    tokens = np.resize(np.concatenate([start, completion.tokens]), 57)  # one shape, one program
    adapter = policy.learners[asked.role].adapter
    rows = np.arange(len(completion.tokens)) + len(start) - 1
    scale = jnp.float32(policy.lora.scale)
    _, after = policy._trainer.read(adapter, scale, tokens, np.resize(rows + 1, 3))
    scaled = np.asarray(jax.nn.log_softmax(after / temperature))
    return scaled[np.arange(len(rows)), completion.tokens]

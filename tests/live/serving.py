"""What the tests against a real vLLM server share.

SPO_VLLM_PYTHON is the bin/python of an environment with vLLM, as `make test-vllm` makes one.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from spo_jax import presets
from spo_jax.config import Settings
from spo_jax.constants import EMBEDDED
from spo_jax.program import ROLES, Completion, Group, Program, Prompt
from spo_jax.program.grammar.base import CROSSOVERS, MUTATIONS
from spo_jax.rl.lora import TARGETS, Adapter
from spo_jax.rl.policy import model_folder
from spo_jax.rl.updates.trainer import Learner
from spo_jax.rl.vllm.client import Client
from spo_jax.rl.vllm.policy import VllmPolicy
from spo_jax.rl.vllm.server import LOG, Started
from spo_jax.search.writing.prompts import INITIALIZATION, templates_of

PYTHON = os.environ.get("SPO_VLLM_PYTHON")
MARKS = [
    pytest.mark.vllm,
    pytest.mark.timeout(10_000),
    pytest.mark.skipif(
        PYTHON is None,
        reason="SPO_VLLM_PYTHON is not set: it names the Python of an environment with vLLM, "
        "which `make test-vllm` makes",
    ),
]
CONTEXT = 2048
PATIENCE = 3000.0  # seconds, on a machine that is busy with other things
N = 2
SHORT = 100  # tokens: what stirred adapters write hardly ever ends by itself
MEASURED: list[str] = []  # lines that are shown when all tests are done

_DESTROYS = tuple(
    Program("destroy", f"def destroy(dist, current_tour):\n    return {n}\n", f"Removes {what}.")
    for n, what in enumerate(("a run of neighbours", "the longest edges"))
)
_REPAIRS = tuple(
    Program("repair", f"def repair(dist, partial_tour):\n    return {n}\n", f"Inserts {what}.")
    for n, what in enumerate(("the farthest node first", "by regret"))
)


def prompts() -> list[Prompt]:
    """Of each role, without a parent and with one and two."""
    return [
        templates_of("tsp").render(
            "tsp", role, form, parents[:count], _DESTROYS[0] if role == "repair" else None
        )
        for role, parents in (("destroy", _DESTROYS), ("repair", _REPAIRS))
        for count, form in enumerate((INITIALIZATION, MUTATIONS[0], CROSSOVERS[0]))
    ]


def config(**given: Any) -> Settings:
    """Of a run with the model that ships, as it learns by itself."""
    fixed = {"generator": "vllm", "context": CONTEXT, "max_new_tokens": 300, "concurrency": 2}
    fixed |= {"vllm_startup": PATIENCE, "request_timeout": PATIENCE}
    if "vllm_url" not in given:
        fixed["vllm_python"] = PYTHON
    return presets.settings("tsp", "smoke", **fixed | given)


@contextmanager
def serving(folder: Path, arguments: str | None = None) -> Iterator[Client]:
    """A server as a run starts it."""
    settings = config(vllm_args=arguments)
    server = Started(settings, model_folder(EMBEDDED), folder / LOG, CONTEXT)
    began = time.monotonic()
    client = server.start(threading.Event(), 0)
    assert server._guard is not None
    size = memory(descendants(server._guard.pid)) / 1e9
    note(f"a server was ready after {time.monotonic() - began:.0f} s, with {size:.1f} GB")
    try:
        yield client
    finally:
        server.stop()


def opened(folder: Path, messages: list[str], seed: int | None = None, **given: Any) -> VllmPolicy:
    """A policy; with a seed its adapters change every matrix of the model."""
    all_stirred = {"lora_targets": ",".join(TARGETS), "max_new_tokens": SHORT}
    policy = VllmPolicy.load(config(**({} if seed is None else all_stirred) | given))
    if seed is not None:
        stir(policy, seed)
    policy.open(folder, messages.append)
    return policy


def stir(policy: VllmPolicy, seed: int) -> None:
    """Draw both adapters anew, as far from the base as months of learning would not take them."""
    for i, role in enumerate(ROLES):
        policy.learners[role] = stirred(policy.learners[role], seed + i)


def stirred(learner: Learner, seed: int, size: float = 0.3) -> Learner:
    rng = np.random.default_rng(seed)
    layers = tuple(
        {
            name: replace(low, b=jnp.asarray(size * rng.standard_normal(low.b.shape), jnp.float32))
            for name, low in layer.items()
        }
        for layer in learner.adapter.layers
    )
    return replace(learner, adapter=Adapter(layers))


def apart(policy: VllmPolicy, asked: Prompt, found: Completion, adapter: Adapter | None) -> float:
    """Mean size of the difference of a server's log-probabilities of an answer from the trainer's,
    with an adapter or with the base alone, nats per token.
    """
    start = policy._tokenizer.prompt(asked.text)
    tokens = np.resize(np.concatenate([start, found.tokens]), 700)  # one shape, one program
    some = policy.learners[asked.role].adapter if adapter is None else adapter
    scale = jnp.float32(0.0 if adapter is None else policy.lora.scale)
    given, _ = policy._trainer.read(some, scale, tokens, [1])
    rows = np.arange(len(found.tokens)) + len(start) - 1
    return float(np.mean(np.abs(np.asarray(given)[rows] - found.logprobs)))


def groups(answers: Any, asked: list[Prompt], seed: int = 0) -> Any:
    """Answers with credits that were drawn."""
    rng = np.random.default_rng(seed)
    found: dict[str, list[Group]] = {role: [] for role in ROLES}
    for prompt, group in zip(asked, answers, strict=True):
        found[prompt.role].append(Group(prompt, group, rng.normal(size=len(group))))
    return found


def note(line: str) -> None:
    """Something measured, for the end of the tests' output."""
    MEASURED.append(line)


# --- processes ------------------------------------------------------------------------------------


def _stats() -> dict[int, list[str]]:
    """The fields of /proc/PID/stat from the state on, of every process that is no zombie."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            found[int(stat.parent.name)] = fields
    return found


def descendants(pid: int) -> set[int]:
    """The children of a process, theirs, and so on."""
    parents = {child: int(fields[1]) for child, fields in _stats().items()}
    found, last = {pid}, -1
    while len(found) != last:
        last = len(found)
        found |= {child for child, parent in parents.items() if parent in found}
    return found - {pid}


def groups_of(pids: set[int]) -> set[int]:
    """The process groups of some processes."""
    stats = _stats()
    return {int(stats[pid][2]) for pid in pids if pid in stats}


def left(groups: set[int], patience: float = 0.0) -> list[int]:
    """Processes of these groups that still run after `patience` seconds."""
    until = time.monotonic() + patience
    while True:
        found = [pid for pid, fields in _stats().items() if int(fields[2]) in groups]
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.1)


def memory(pids: set[int]) -> int:
    """Bytes that some processes hold, what they share counted in parts."""
    found = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        found += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
    return found

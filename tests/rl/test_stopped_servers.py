"""A run that waits for an endpoint or a vLLM server ends at once when it is told to."""

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

import spo_jax
from tests.rl.chat_server import serving
from tests.rl.vllm_home import Home, left

ROOT = str(Path(spo_jax.__file__).parents[1])
SMALL = ["discover", "tsp", "--preset", "smoke", "--workers", "1", "--size", "12"]


def stop(line, number, ready):
    """Start a discovery, end it by a signal once it is `ready`; its code and output."""
    with subprocess.Popen(
        [sys.executable, "-m", "spo_jax", *line],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": ROOT},
        preexec_fn=partial(signal.signal, number, signal.SIG_DFL),
    ) as process:  # fmt: skip
        while not ready():
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        process.send_signal(number)
        output, errors = process.communicate()
    return process.returncode, output, errors


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_endpoint_that_hangs_holds_nobody(tmp_path, number):
    asked, over = threading.Event(), threading.Event()

    def reply(body, count):
        asked.set()
        over.wait(200)
        return "never"

    place = str(tmp_path / "run")
    with serving(reply) as server:
        line = [*SMALL, "--generator", "openai", "--model", "fake", "--base-url", server.url()]
        code, output, errors = stop([*line, "--out", place], number, asked.is_set)
        over.set()
    assert (code, errors) == (128 + number, "")
    assert output.endswith(
        f"0 of 2 rounds are kept; go on with:\n  spo discover tsp --resume {place}\n"
    )


@pytest.mark.long
def test_a_server_of_ours_ends_with_the_run(home: Home):
    place = str(home.path / "run")
    line = [*SMALL, "--generator", "vllm", "--vllm-python", str(home.python)]
    line += [f"--vllm-args={home.arguments}", "--model", str(home.model), "--max-new-tokens", "3"]
    line += [
        "--context",
        "1000",
        "--lora-rank",
        "2",
        "--lora-targets",
        "gate_proj,up_proj,down_proj",
    ]
    code, output, errors = stop([*line, "--out", place], signal.SIGTERM, home.pids)
    assert (code, errors) == (143, "")
    assert "go on with:" in output
    while left(home.pids()):
        time.sleep(0.02)

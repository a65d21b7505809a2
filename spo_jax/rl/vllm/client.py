"""Sends requests to a vLLM server and validates its answers for the trainer.

Prompts and answers are token ids, so that no text is tokenised twice. Every sampling parameter is
sent, because a server takes missing ones from the model folder's generation config.
Log-probabilities are those of the server's --logprobs-mode: raw_logprobs, at temperature 1 and
before top-p, or processed_logprobs, of the distribution that a token was drawn from.

Each request has its own connection, which detects a dead server and can abort a hanging one. The
key, if the server needs one, is that of vLLM's own variable, `web.VLLM_KEYS`.
"""

import re
from collections.abc import Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Any

import numpy as np

from spo_jax.errors import InputError
from spo_jax.program import Completion
from spo_jax.rl.endpoint.web import LIMIT, VLLM_KEYS, Lost, Reply, begin, fetch, key, shown
from spo_jax.rl.tokens import Tokenizer
from spo_jax.rl.vllm.replies import Refused, Sampling, read_choice

QUICK = 10.0  # seconds for a healthy server's health check
CONTROL = 300.0  # seconds for loading an adapter, sleeping or waking
WARM = 2.0  # temperature of `likely`, which tells the modes of log-probabilities apart
LIKELY = 20  # requested log-probabilities per token; a server's default maximum
AS_ID = "token_id:"  # prefix of a token id in place of its text
EACH = 1024  # bytes of JSON per token, at most
CACHE = re.compile(rb"^vllm:cache_config_info\{([^}\n]*)\}", re.MULTILINE)
CACHE_LABEL = rb'(?:^|,)%s="([0-9]{1,9})(?:\.0)?"'


@dataclass(frozen=True)
class Cache:
    """A server's cache, in blocks of `size` tokens that all its layers share.

    prefixes: whether beginnings of prompts are kept for later requests, as far as it says.
    """

    blocks: int
    size: int
    prefixes: bool = True


class Client:
    """A server at `url`, http://HOST:PORT, with adapters that requests call by their names.

    All methods raise Lost without an answer, and InputError if the server refuses. They are
    thread-safe. Raises InputError for a key that cannot be sent.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/").removesuffix("/v1")
        key(VLLM_KEYS)
        self._open: set[Future[Reply]] = set()

    # --- the server -------------------------------------------------------------------------------

    def healthy(self) -> bool:
        """Whether it passes its health check within `QUICK` seconds."""
        try:
            self._ask("GET", "/health", timeout=QUICK)
        except (Lost, InputError):
            return False
        return True

    def version(self) -> str:
        """The version of vLLM."""
        found = _value(self._ask("GET", "/version", timeout=QUICK))
        return shown(str(found.get("version", ""))) if isinstance(found, dict) else ""

    def models(self) -> list[str]:
        """The names of the base and of the loaded adapters."""
        found = _value(self._ask("GET", "/v1/models", timeout=QUICK))
        try:
            return [str(model["id"]) for model in found["data"]]
        except (LookupError, TypeError):
            raise InputError(f"{self.url} lists no models, so it is no vLLM server") from None

    def load(self, name: str, path: str) -> None:
        """Load an adapter from a folder; the server must see it under the same path."""
        self._control("/v1/load_lora_adapter", {"lora_name": name, "lora_path": path})

    def unload(self, name: str) -> None:
        """Unload an adapter; does nothing if it is not loaded, for instance after a restart."""
        try:
            self._control("/v1/unload_lora_adapter", {"lora_name": name})
        except Refused as error:
            if error.status != 404:
                raise

    def sleep(self) -> None:
        """Move the weights to host memory and drop all caches (level 1)."""
        self._control("/sleep?level=1")
        self._check_asleep(True)

    def wake(self) -> None:
        """Undo `sleep`."""
        self._control("/wake_up")
        self._check_asleep(False)

    def asleep(self) -> bool:
        """Whether it sleeps, so that requests wait; False if it cannot sleep."""
        try:
            return self._sleeps() is True
        except Refused:
            return False

    def reset_cache(self) -> None:
        """Drop the prefix cache."""
        self._control("/reset_prefix_cache")

    def cache(self) -> Cache | None:
        """Its cache of keys, values and states, as its metrics say; None if they do not."""
        try:
            line = CACHE.search(self._ask("GET", "/metrics", timeout=QUICK).data)
        except Refused:
            return None
        names = (b"num_gpu_blocks", b"block_size")
        found = [line and re.search(CACHE_LABEL % name, line[1]) for name in names]
        blocks, size = (int(each[1]) if each else 0 for each in found)
        if not (line and blocks and size):
            return None
        return Cache(blocks, size, prefixes=b'enable_prefix_caching="False"' not in line[1])

    def _control(self, path: str, body: Mapping[str, Any] | None = None) -> None:
        self._ask("POST", path, body, timeout=CONTROL)

    def _check_asleep(self, wanted: bool) -> None:
        if self._sleeps() is not wanted:
            word = "does not go to sleep" if wanted else "does not wake up"
            raise InputError(
                f"the vLLM server {word}; use residency restart, or one card for each of the two"
            )

    def _sleeps(self) -> Any:
        found = _value(self._ask("GET", "/is_sleeping", timeout=QUICK))
        return found.get("is_sleeping") if isinstance(found, dict) else None

    # --- tokens -----------------------------------------------------------------------------------

    def complete(
        self, model: str, prompt: np.ndarray, how: Sampling, tokenizer: Tokenizer
    ) -> tuple[Completion, ...]:
        """`how.n` answers to a prompt [T] int32, each checked by `read_choice`.

        Without a seed: a request's own switches off vLLM's fast sampler, and would repeat nothing,
        because the batch that an answer was computed in changes its bits.
        """
        found = self._completion(
            model,
            prompt,
            how.timeout,
            n=how.n,
            temperature=how.temperature,
            top_p=how.top_p,
            max_tokens=how.max_new_tokens,
            stop_token_ids=list(how.stop_tokens),
        )
        order = sorted(found, key=lambda choice: choice.get("index", 0))
        return tuple(read_choice(choice, tokenizer, how) for choice in order)

    def read(self, model: str, tokens: np.ndarray, timeout: float) -> np.ndarray:
        """[T - 1] float32: log-probabilities of tokens [T] but the first, at temperature 1.

        The server computes them without its cache.
        """
        (choice,) = self._completion(
            model, tokens, timeout, n=1, temperature=0.0, max_tokens=1, prompt_logprobs=1
        )
        given: Any = choice.get("prompt_logprobs")
        try:
            found = [
                float(row[str(int(token))]["logprob"])
                for row, token in zip(given[1:], tokens[1:], strict=True)
            ]
        except (LookupError, TypeError, ValueError, OverflowError):
            raise InputError(
                "the vLLM server gave no log-probabilities of a prompt; the check of its weights "
                "needs them"
            ) from None
        return np.array(found, np.float32)

    def likely(
        self, model: str, tokens: np.ndarray, timeout: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """The most probable tokens after tokens [T], `LIKELY` int32, and their log-probabilities,
        float32: at temperature 1, or at `WARM` where the server processes them.

        The server may use its cache, as for an answer.
        """
        asked = {"logprobs": LIKELY, "return_tokens_as_token_ids": True}
        (choice,) = self._completion(
            model, tokens, timeout, n=1, temperature=WARM, max_tokens=1, **asked
        )
        try:
            (given,) = choice["logprobs"]["top_logprobs"]
            found = [(int(name.removeprefix(AS_ID)), float(x)) for name, x in given.items()]
            found.sort(key=lambda each: -each[1])
            ids, logprobs = zip(*found[:LIKELY], strict=True)  # the sampled token is one more
            tokens = np.array(ids, np.int32)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
            raise InputError(
                "the vLLM server does not say which tokens are likely; use a newer version of vLLM"
            ) from None
        return tokens, np.array(logprobs, np.float32)

    def _completion(
        self, model: str, prompt: np.ndarray, timeout: float, **given: Any
    ) -> list[dict[str, Any]]:
        body = {
            "model": model,
            "prompt": [int(token) for token in prompt],
            "logprobs": 1,
            "return_token_ids": True,
            "top_p": 1.0,
            "top_k": -1,
            "min_p": 0.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "repetition_penalty": 1.0,
            **given,
        }
        tokens = len(body["prompt"]) + body["n"] * body["max_tokens"]
        found = _value(
            self._ask("POST", "/v1/completions", body, timeout=timeout, limit=LIMIT + EACH * tokens)
        )
        choices = found.get("choices") if isinstance(found, dict) else None
        if not (isinstance(choices, list) and choices and all(map(_is_choice, choices))):
            raise InputError(f"{self.url} answered without a completion")
        if len(choices) != body["n"]:
            raise InputError(
                f"the vLLM server gave {len(choices)} answers to a request for {body['n']}"
            )
        returned = choices[0].get("prompt_token_ids")
        if returned is not None and returned != body["prompt"]:
            raise InputError("the vLLM server changed a prompt, so its answers are to another one")
        return choices

    # --- requests ---------------------------------------------------------------------------------

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        timeout: float,
        limit: int = LIMIT,
    ) -> Reply:
        own, url = key(VLLM_KEYS), self.url + path
        headers = {"authorization": f"Bearer {own}"} if own else {}
        request = begin(
            fetch(method, url, seconds=timeout, headers=headers, body=body, limit=limit)
        )
        self._open.add(request)
        request.add_done_callback(self._open.discard)
        try:
            reply = request.result()
        except CancelledError:
            raise Lost("gave no answer before the request was aborted") from None
        finally:
            request.cancel()  # has an effect only if the caller was interrupted
        if reply.temporary:
            raise Lost(f"answered {reply.status}: {reply.error_text()}")
        if not reply.fine:
            raise Refused(_refusal(path, reply, body or {}), reply.status)
        if reply.flaw:
            raise Lost(reply.flaw)
        return reply

    def abort(self) -> None:
        """Abort every request in flight; each raises Lost."""
        for request in tuple(self._open):
            request.cancel()


def _value(reply: Reply) -> Any:
    """Its JSON value, cleaned of the key; None if it is not JSON."""
    try:
        return reply.value()
    except ValueError:
        return None


def _is_choice(given: Any) -> bool:
    return isinstance(given, dict) and type(given.get("index", 0)) is int


def _refusal(path: str, reply: Reply, body: Mapping[str, Any]) -> str:
    """The message of a refusal, with a remedy."""
    status, text, known = reply.status, reply.error_text(), path.partition("?")[0]
    if status == 401:
        return f"the vLLM server asks for a key (401): put it into {VLLM_KEYS[0]}"
    if status == 404 and text == "Not Found":  # the address does not exist
        if "lora_adapter" in path:
            variable = "VLLM_ALLOW_RUNTIME_LORA_UPDATING=True"
            return f"the vLLM server loads no adapters: start it with --enable-lora and {variable}"
        if not path.startswith("/v1/"):
            return (
                f"the vLLM server knows no {known}: start it with VLLM_SERVER_DEV_MODE=1 and "
                "--enable-sleep-mode"
            )
    hint = f"; it must see {body['lora_path']}" if "lora_path" in body else ""
    return f"the vLLM server refuses {known} ({status}: {text}){hint}"

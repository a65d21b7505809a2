"""A generator that asks a model behind an OpenAI-compatible endpoint, and teaches it nothing.

One request a completion, so a server needs neither n nor log-probabilities. What is deliberate:

- An endpoint is not deterministic. Settled requests are kept in the run's folder, and a run that
  goes on takes from there what it has asked before.
- Requests are made in a thread of their own, in the order of the prompts, and answers are handed
  on in that order in parts of a fixed size, so nothing depends on which comes first.
- The key is read from the environment when a client is made (`access`), and is struck out of all
  that a server says before that is read (`wire`), so it is in nothing that is kept or shown.
- A request that fails for good counts as settled when all of its call's are: if the endpoint turns
  out to be gone, the run ends and asks again for what it could not have.
"""

import asyncio
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

from spo_jax.config import Config
from spo_jax.errors import InputError, MissingExtra
from spo_jax.generator import Generator
from spo_jax.program import Completion, Prompt
from spo_jax.rl import wire
from spo_jax.rl.access import ENDPOINT_KEYS, LONGEST, address, check_kept, key, shown
from spo_jax.rl.request_log import LOST, REQUESTS, Request, RequestLog, requests

NO_KEY = "none"  # what a server that asks for no key is sent
GIVE_UP = 20  # requests that fail one after another, none answered between, before a run ends
GIVE_UP_AT_FIRST = 3  # the same as long as nothing was ever answered
PATIENCE = 0.5  # seconds, after which it is looked whether anyone still waits
MOST = 2**31  # tokens of a request; a server that counts more does not count
ROOM, EACH = 2**16, 64  # characters of an answer: so many, and so many more for each token


class Endpoint(Generator):
    """Asks `config.model` at `config.base_url`.

    Raises MissingExtra without the package `openai`, and InputError for an address that is none, or
    that holds a secret, and for a key that cannot be sent.
    """

    writes_prose = True

    def __init__(self, config: Config) -> None:
        try:
            import openai  # noqa: F401 - looked for now, used when there is something to ask
        except ImportError:
            raise MissingExtra("openai", "openai") from None
        self._config = config
        self._url = address(str(config.base_url), "base_url", ENDPOINT_KEYS)
        key(ENDPOINT_KEYS)
        for name in ("base_url", "model", "request_extra"):
            check_kept(str(getattr(config, name)), name, ENDPOINT_KEYS)
        self._extra = json.loads(config.request_extra or "{}")
        self._log = RequestLog()
        self._remark: Callable[[str], None] = lambda line: None
        self._length = "max_tokens"  # what the endpoint calls the longest answer
        self._seeded = True

    def open(self, folder: Path, remark: Callable[[str], None]) -> None:
        """Keep the requests of a run in its folder, and take from there what it has had."""
        self._log = RequestLog(folder / REQUESTS)
        self._remark = remark

    def generate(
        self, prompts: Sequence[Prompt], n: int, seed: int
    ) -> list[tuple[Completion, ...]]:
        """`n` completions of each prompt. One that could not be had has no text.

        Raises InputError where the endpoint refuses everything, or is gone.
        """
        found = {
            place: group for part in self.stream(prompts, n, seed) for place, group in part.items()
        }
        return [found[place] for place in range(len(prompts))]

    def stream(
        self, prompts: Sequence[Prompt], n: int, seed: int
    ) -> Iterator[dict[int, tuple[Completion, ...]]]:
        """What `generate` returns, in parts of about `sample_rows` answers, in order.

        Between them come empty parts, as long as the next one is not there.
        """
        config, wanted = self._config, requests(prompts, n, seed, self._extra)
        new = [request for request in wanted if request not in self._log]
        call = _Call(self, new, config.concurrency)
        size = max(1, config.sample_rows // n)
        try:
            for first in range(0, len(prompts), size):
                part = range(first, min(first + size, len(prompts)))
                asked = wanted[part.start * n : part.stop * n]
                while not call.has(asked):
                    yield {}
                answers = [call.take(request) for request in asked]
                yield {p: tuple(answers[i * n : (i + 1) * n]) for i, p in enumerate(part)}
            self._settle(call.failed, len(wanted))
        finally:
            call.stop()

    # --- one request ------------------------------------------------------------------------------

    def client(self) -> Any:
        """A client of the endpoint. It repeats requests: what a server says of when, is obeyed."""
        from openai import AsyncOpenAI

        config = self._config
        http = wire.http_client(config.request_timeout)
        return AsyncOpenAI(
            base_url=self._url,
            api_key=key(ENDPOINT_KEYS) or NO_KEY,
            max_retries=config.retries,
            timeout=http.timeout,
            http_client=http,
        )

    async def ask(self, client: Any, request: Request) -> None:
        """Have one answer, and keep it. Raises Failed where it cannot be had."""
        from openai import APIConnectionError, APIStatusError, APITimeoutError, OpenAIError

        config, response = self._config, wire.openai_http().Response
        while True:
            asked = self._parameters(request)
            try:
                reply = await client.post("/chat/completions", body=asked, cast_to=response)
            except APITimeoutError:
                raise Failed(f"gave no answer within {config.request_timeout:g} s") from None
            except APIConnectionError as error:
                raise Failed(_unreached(error.__cause__ or error)) from None
            except APIStatusError as error:
                if not self._reworded(error, asked):
                    raise self._refused(error, asked) from None
            except OpenAIError as error:
                raise Failed(_unreached(error)) from None
            else:
                self._log.answer(request, **self._read(reply))
                return

    def _parameters(self, request: Request) -> dict[str, Any]:
        config = self._config
        return {
            "model": config.model,
            "messages": [{"role": "user", "content": request.text}],
            "temperature": config.temperature,
            "top_p": config.top_p,
            self._length: config.max_new_tokens,
            **({"seed": request.seed} if self._seeded else {}),
            **self._extra,
        }

    def _reworded(self, error: Any, asked: dict[str, Any]) -> bool:
        """Whether the same can be asked in words that this endpoint may take.

        The longest answer has two names. A seed is left out where there is none: nothing depends
        on it. Whatever else is refused is a person's to change.
        """
        if error.status_code not in (400, 422):
            return False
        said = _said(error)
        if "max_tokens" in asked and "max_completion_tokens" in said:
            self._length = "max_completion_tokens"
            return True
        if "seed" in asked and re.search(r"\bseed\b", said):
            if self._seeded:
                self._remark("The endpoint takes no seed; requests go without one from here on")
            self._seeded = False
            return True
        return False

    def _refused(self, error: Any, asked: dict[str, Any]) -> "Failed":
        """What a status says."""
        code, said = error.status_code, _said(error)
        if code == 401:  # what it says may hold a part of the key
            return Failed(
                f"refuses the key (401): put one that it takes into {ENDPOINT_KEYS[0]}", True
            )
        if code == 404:
            return Failed(
                f"has no such address or no model {self._config.model} (404: {said}); "
                "base_url mostly ends in /v1",
                True,
            )
        if code in (400, 422):
            plain = {k: v for k, v in asked.items() if k not in ("messages", "seed")}
            sent = ", ".join(f"{k} {v}" for k, v in plain.items())
            return Failed(f"refuses a request ({code}: {said}), which says {sent}", True)
        if 300 <= code < 400:
            to = shown(error.response.headers.get("location", "")) or "nowhere"
            return Failed(
                f"answered {code}, which sends requests on to {to}; give --base-url the address "
                "that answers by itself",
                True,
            )
        again = code in (408, 409, 429) or code >= 500
        return Failed(f"answered {code}: {said}", not again)

    def _read(self, reply: Any) -> dict[str, Any]:
        """What is kept of a reply. Raises Failed for one that is no chat completion."""
        if flaw := reply.extensions[wire.FLAW]:
            raise Failed(flaw)
        try:
            found: dict[str, Any] = wire.value(reply.content, self._picked)
        except ValueError as error:
            raise Failed(f"answered with no chat completion ({shown(str(error))})") from None
        return found

    def _picked(self, reply: Any) -> dict[str, Any]:
        """The fields of a log entry, not cleaned yet. Raises ValueError."""
        if isinstance(reply, dict) and reply.get("error") and not reply.get("choices"):
            raise ValueError(wire.words(reply))
        try:
            choice = reply["choices"][0]
            text, finish = choice["message"].get("content"), choice.get("finish_reason")
        except (AttributeError, LookupError, TypeError):
            raise ValueError("no choices in it") from None
        if text is None:
            text = ""  # all of the answer's length went into thinking, or it was withheld
        if not isinstance(text, str):
            raise ValueError("its content is no text")
        if len(text) > (most := ROOM + EACH * self._config.max_new_tokens):
            raise ValueError(f"{len(text)} characters, where {most} were expected at most")
        usage = reply.get("usage")
        counts = {
            name: value if type(value) is int and 0 <= value <= MOST else None
            for name in ("prompt_tokens", "completion_tokens")
            for value in [usage.get(name) if isinstance(usage, dict) else None]
        }
        names = {"finish": finish, "model": reply.get("model")}
        return {
            "text": text,
            **counts,
            **{
                name: word if isinstance(word, str) and len(word) <= LONGEST else None
                for name, word in names.items()
            },
        }

    # --- all requests of a call -------------------------------------------------------------------

    def had(self, request: Request) -> Completion:
        """An answer that is in the log."""
        return self._log[request]

    def hopeless(self, failure: "Failed", in_a_row: int) -> bool:
        """Whether there is no point in going on after so many failures, this the last of them."""
        if self._log.answered:
            return in_a_row >= GIVE_UP
        return failure.final or in_a_row >= GIVE_UP_AT_FIRST

    def gone(self, failure: "Failed") -> InputError:
        """The end of a run."""
        return InputError(
            f"the endpoint {self._url} {failure}; finished rounds and all answers are kept, "
            "so mend it and go on with --resume"
        )

    def _settle(self, failed: Sequence[tuple[Request, "Failed"]], wanted: int) -> None:
        """Do without a call's answers that could not be had. Raises InputError where none could."""
        if not failed:
            return
        if len(failed) == wanted:
            raise self.gone(failed[-1][1])
        self._log.give_up((request, str(failure)) for request, failure in failed)
        (why, _), *_ = Counter(str(failure) for _, failure in failed).most_common(1)
        self._remark(f"{len(failed)} of {wanted} answers could not be had: the endpoint {why}")


class Failed(Exception):
    """A request that failed for good. final: another one like it would, too."""

    def __init__(self, why: str, final: bool = False) -> None:
        super().__init__(why)
        self.final = final


class _Call:
    """The requests of one call, made in a thread until all are settled or `stop` is called."""

    def __init__(self, endpoint: Endpoint, wanted: Sequence[Request], at_a_time: int) -> None:
        self._endpoint, self._wanted = endpoint, wanted
        self._workers = min(at_a_time, len(wanted))
        self._coming: dict[str, Future[Completion]] = {request.key: Future() for request in wanted}
        self.failed: list[tuple[Request, Failed]] = []
        self._in_a_row = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="endpoint", daemon=True)
        if wanted:
            self._thread.start()

    def has(self, asked: Sequence[Request]) -> bool:
        """Whether these are settled; waits a moment for them."""
        coming = [self._coming[r.key] for r in asked if r.key in self._coming]
        return not wait(coming, PATIENCE).not_done

    def take(self, request: Request) -> Completion:
        """The answer to a settled request. Raises what ended the call, if something did."""
        coming = self._coming.get(request.key)
        return self._endpoint.had(request) if coming is None else coming.result()

    def stop(self) -> None:
        """Ask nothing more; what is being asked is dropped."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._ask_all())
        except BaseException as error:  # it is raised again where the answers are waited for
            for coming in self._coming.values():
                if not coming.done():
                    coming.set_exception(error)

    async def _ask_all(self) -> None:
        left = iter(self._wanted)
        async with self._endpoint.client() as client:
            tasks = [asyncio.create_task(self._ask(client, left)) for _ in range(self._workers)]
            pending = set(tasks)
            try:
                while pending and not self._stopped.is_set():
                    done, pending = await asyncio.wait(
                        pending, timeout=PATIENCE, return_when=asyncio.FIRST_EXCEPTION
                    )
                    for task in done:
                        task.result()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, client: Any, left: Iterator[Request]) -> None:
        """One request after another, of those that are left."""
        for request in left:
            try:
                await self._endpoint.ask(client, request)
                self._in_a_row = 0
                self._coming[request.key].set_result(self._endpoint.had(request))
            except Failed as failure:
                self._in_a_row += 1
                if self._endpoint.hopeless(failure, self._in_a_row):
                    raise self._endpoint.gone(failure) from None
                self.failed.append((request, failure))
                self._coming[request.key].set_result(LOST)


# --- what a failure says --------------------------------------------------------------------------


def _said(error: Any) -> str:
    """The words of a refusal."""
    reply = error.response
    return shown(reply.extensions[wire.FLAW] or wire.said(reply.content))


def _unreached(cause: BaseException) -> str:
    """Why there is no whole answer. Words of a server may be in it, as in a status line."""
    why = shown(str(cause) or type(cause).__name__)
    if type(cause).__name__ == "ConnectError":
        return f"cannot be reached ({why})"
    return f"broke off, or answered with what is no HTTP ({why})"

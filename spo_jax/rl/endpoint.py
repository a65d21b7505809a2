"""A generator that samples from a model behind an OpenAI-compatible endpoint, without training.

One request per completion, so a server needs neither n nor log-probabilities. Design decisions:

- An endpoint is not deterministic. The run's folder keeps completed requests, and a resumed run
  reads them from there.
- A separate thread sends the requests in the order of the prompts and returns answers in that order
  in parts of a fixed size, so no result depends on which answer comes first.
- A new client reads the key from the environment (`access`). The key is removed from every server
  text before we read it (`wire`), so nothing stored or shown contains it.
- A final failure is recorded only when all requests of its call are complete: if the endpoint goes
  down, the run ends, and its resumption repeats the failed requests.
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

from spo_jax.config import Settings
from spo_jax.errors import InputError, MissingExtra
from spo_jax.generator import Streaming
from spo_jax.program import Completion, Prompt, conversation
from spo_jax.rl import wire
from spo_jax.rl.access import ENDPOINT_KEYS, LONGEST, address, check_kept, key, shown
from spo_jax.rl.request_log import LOST, REQUESTS, Request, RequestLog, requests
from spo_jax.rl.slots import Slots

NO_KEY = "none"  # sent if no key is set
CONCURRENCY = 8  # requests at a time, where a run names no number
GIVE_UP = 20  # consecutive failures that end a run
GIVE_UP_AT_FIRST = 3  # the same before the first answer
PATIENCE = 0.5  # seconds between checks for a waiting caller
MOST = 2**31  # tokens of a request; a larger count is ignored
ROOM, EACH = 2**16, 64  # characters of an answer: at most ROOM + EACH per token


class Endpoint(Streaming):
    """Samples from `config.model` at `config.base_url`.

    Raises MissingExtra without the package `openai`, and InputError for an invalid address, an
    address with a secret, and a key that cannot be sent.
    """

    writes_prose = True

    def __init__(self, config: Settings) -> None:
        try:
            import openai  # noqa: F401 - checked now, used at the first request
        except ImportError:
            raise MissingExtra("openai", "openai") from None
        self._config = config
        self._url = address(str(config.endpoint.base_url), "base_url", ENDPOINT_KEYS)
        key(ENDPOINT_KEYS)
        for name in ("base_url", "model", "request_extra"):
            check_kept(str(config.flat()[name]), name, ENDPOINT_KEYS)
        self._extra = json.loads(config.endpoint.request_extra or "{}")
        self._log = RequestLog()
        self._remark: Callable[[str], None] = lambda line: None
        self._length = "max_tokens"  # the endpoint's name for the maximum length
        self._seeded = True
        self.slots = Slots(config.endpoint.concurrency or CONCURRENCY)

    def open(self, folder: Path, remark: Callable[[str], None]) -> None:
        """Keep a run's requests in its folder, and reuse the answers there."""
        self._log = RequestLog(folder / REQUESTS)
        self._remark = remark

    def stream(
        self, prompts: Sequence[Prompt], n: int, seed: int
    ) -> Iterator[dict[int, tuple[Completion, ...]]]:
        """`n` completions of each prompt, in parts of about `sample_rows` answers, in order.

        Empty parts come while the next one is not ready. A completion that failed has no text.
        Another call may begin before this one is over; it goes first, and both together send
        `concurrency` requests at a time.
        Raises InputError if the endpoint refuses all requests or is down. Requests with further
        turns may all fail: the answers that they are to mend are there.
        """
        config, wanted = self._config, requests(prompts, n, seed, self._extra)
        new = [request for request in wanted if request not in self._log]
        call = _Call(self, new, config.endpoint.concurrency or CONCURRENCY)
        size = max(1, config.generator.sample_rows // n)
        try:
            for first in range(0, len(prompts), size):
                part = range(first, min(first + size, len(prompts)))
                asked = wanted[part.start * n : part.stop * n]
                while not call.has(asked):
                    yield {}
                answers = [call.take(request) for request in asked]
                yield {p: tuple(answers[i * n : (i + 1) * n]) for i, p in enumerate(part)}
            self._settle(call.failed, wanted)
        finally:
            call.stop()

    # --- one request ------------------------------------------------------------------------------

    def client(self) -> Any:
        """A client of the endpoint. It repeats requests and obeys Retry-After."""
        from openai import AsyncOpenAI

        config = self._config
        http = wire.http_client(config.endpoint.request_timeout)
        return AsyncOpenAI(
            base_url=self._url,
            api_key=key(ENDPOINT_KEYS) or NO_KEY,
            max_retries=config.endpoint.retries,
            timeout=http.timeout,
            http_client=http,
        )

    async def ask(self, client: Any, request: Request) -> None:
        """Request one answer and keep it. Raises Failed."""
        from openai import APIConnectionError, APIStatusError, APITimeoutError, OpenAIError

        config, response = self._config, wire.openai_http().Response
        while True:
            asked = self._parameters(request)
            try:
                reply = await client.post("/chat/completions", body=asked, cast_to=response)
            except APITimeoutError:
                raise Failed(
                    f"gave no answer within {config.endpoint.request_timeout:g} s"
                ) from None
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
            "model": config.generator.model,
            "messages": conversation(request.text, request.system, request.turns),
            "temperature": config.generator.temperature + request.warmer,
            "top_p": config.generator.top_p,
            self._length: config.generator.max_new_tokens,
            **({"seed": request.seed} if self._seeded else {}),
            **self._extra,
        }

    def _reworded(self, error: Any, asked: dict[str, Any]) -> bool:
        """Adapt the request to the endpoint; returns whether that is possible.

        The maximum length has two names. A refused seed is omitted: nothing depends on it. The user
        must fix any other refusal.
        """
        if error.status_code not in (400, 422):
            return False
        said = _said(error)
        if "max_tokens" in asked and "max_completion_tokens" in said:
            self._length = "max_completion_tokens"
            return True
        if "seed" in asked and re.search(r"\bseed\b", said):
            if self._seeded:
                self._remark("The endpoint accepts no seed; requests have none from now on")
            self._seeded = False
            return True
        return False

    def _refused(self, error: Any, asked: dict[str, Any]) -> "Failed":
        """The failure for a status."""
        code, said = error.status_code, _said(error)
        if code == 401:  # its message may hold a part of the key
            return Failed(f"refuses the key (401): put a valid one into {ENDPOINT_KEYS[0]}", True)
        if code == 404:
            return Failed(
                f"has no such address or no model {self._config.generator.model} (404: {said}); "
                "base_url usually ends in /v1",
                True,
            )
        if code in (400, 422):
            plain = {k: v for k, v in asked.items() if k not in ("messages", "seed")}
            sent = ", ".join(f"{k} {v}" for k, v in plain.items())
            return Failed(f"refuses a request ({code}: {said}), which says {sent}", True)
        if 300 <= code < 400:
            to = shown(error.response.headers.get("location", "")) or "nowhere"
            return Failed(
                f"answered {code}, a redirect to {to}; give --base-url the address that answers "
                "without one",
                True,
            )
        again = code in (408, 409, 429) or code >= 500
        return Failed(f"answered {code}: {said}", not again)

    def _read(self, reply: Any) -> dict[str, Any]:
        """The stored fields of a reply. Raises Failed unless it is a chat completion."""
        if flaw := reply.extensions[wire.FLAW]:
            raise Failed(flaw)
        try:
            found: dict[str, Any] = wire.value(reply.content, self._picked)
        except ValueError as error:
            raise Failed(f"answered without a chat completion ({shown(str(error))})") from None
        return found

    def _picked(self, reply: Any) -> dict[str, Any]:
        """The fields of a log entry, before cleaning. Raises ValueError."""
        if isinstance(reply, dict) and reply.get("error") and not reply.get("choices"):
            raise ValueError(wire.words(reply))
        try:
            choice = reply["choices"][0]
            text, finish = choice["message"].get("content"), choice.get("finish_reason")
        except (AttributeError, LookupError, TypeError):
            raise ValueError("no choices in it") from None
        if text is None:
            text = ""  # thinking used the whole length, or the text was withheld
        if not isinstance(text, str):
            raise ValueError("its content is not a text")
        if len(text) > (most := ROOM + EACH * self._config.generator.max_new_tokens):
            raise ValueError(f"{len(text)} characters, more than {most}")
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
        """An answer from the log."""
        return self._log[request]

    def hopeless(self, failure: "Failed", in_a_row: int) -> bool:
        """Whether the run must end after so many consecutive failures, with this as the last."""
        if self._log.answered:
            return in_a_row >= GIVE_UP
        return failure.final or in_a_row >= GIVE_UP_AT_FIRST

    def gone(self, failure: "Failed") -> InputError:
        """The end of a run."""
        return InputError(
            f"the endpoint {self._url} {failure}; finished rounds and all answers are kept: "
            "fix it and continue with --resume"
        )

    def _settle(
        self, failed: Sequence[tuple[Request, "Failed"]], wanted: Sequence[Request]
    ) -> None:
        """Skip a call's failed answers. Raises InputError if all failed and none mends another."""
        if not failed:
            return
        if len(failed) == len(wanted) and not all(request.turns for request in wanted):
            raise self.gone(failed[-1][1])
        self._log.give_up((request, str(failure)) for request, failure in failed)
        (why, _), *_ = Counter(str(failure) for _, failure in failed).most_common(1)
        self._remark(f"{len(failed)} of {len(wanted)} answers failed: the endpoint {why}")


class Failed(Exception):
    """A request that failed finally. final: similar requests would fail, too."""

    def __init__(self, why: str, final: bool = False) -> None:
        super().__init__(why)
        self.final = final


class _Call:
    """The requests of one call; a thread sends them until all are complete or `stop` is called."""

    def __init__(self, endpoint: Endpoint, wanted: Sequence[Request], at_a_time: int) -> None:
        self._endpoint, self._wanted = endpoint, wanted
        self._number = endpoint.slots.enter()
        self._workers = min(at_a_time, len(wanted))
        self._coming: dict[str, Future[Completion]] = {request.key: Future() for request in wanted}
        self.failed: list[tuple[Request, Failed]] = []
        self._in_a_row = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="endpoint", daemon=True)
        if wanted:
            self._thread.start()

    def has(self, asked: Sequence[Request]) -> bool:
        """Whether these are complete; waits briefly for them."""
        coming = [self._coming[r.key] for r in asked if r.key in self._coming]
        return not wait(coming, PATIENCE).not_done

    def take(self, request: Request) -> Completion:
        """The answer to a completed request. Raises the error that ended the call, if any."""
        coming = self._coming.get(request.key)
        return self._endpoint.had(request) if coming is None else coming.result()

    def stop(self) -> None:
        """Send no more requests and drop those in flight."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._ask_all())
        except BaseException as error:  # raised again in the waiting thread
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
        """Send the remaining requests one after another."""
        slots = self._endpoint.slots
        for request in left:
            await slots.take(self._number)
            try:
                await self._endpoint.ask(client, request)
                self._in_a_row = 0
                completion = self._endpoint.had(request)
                self._endpoint.answered(completion)
                self._coming[request.key].set_result(completion)
            except Failed as failure:
                self._in_a_row += 1
                if self._endpoint.hopeless(failure, self._in_a_row):
                    raise self._endpoint.gone(failure) from None
                self.failed.append((request, failure))
                self._coming[request.key].set_result(LOST)
            finally:
                slots.give()


# --- messages of failures -------------------------------------------------------------------------


def _said(error: Any) -> str:
    """The message of a refusal."""
    reply = error.response
    return shown(reply.extensions[wire.FLAW] or wire.said(reply.content))


def _unreached(cause: BaseException) -> str:
    """Why there is no complete answer. It may quote a server, as in a status line."""
    why = shown(str(cause) or type(cause).__name__)
    if type(cause).__name__ == "ConnectError":
        return f"cannot be reached ({why})"
    return f"broke off, or answered with invalid HTTP ({why})"

"""A generator that samples from a model behind an OpenAI-compatible endpoint, without training.

The answers to one prompt are asked for in one request where the endpoint can give them (field `n`):
it then reads the prompt once. It needs no log-probabilities. Design decisions:

- An endpoint is not deterministic. The run's folder keeps completed requests, and a resumed run
  reads them from there.
- A separate thread sends the requests in the order of the prompts and returns answers in that order
  in parts of a fixed size, so no result depends on which answer comes first.
- Each request reads the key from the environment. The key is removed from every server text before
  we read it (`web`), so nothing stored or shown contains it.
- A final failure is recorded only when all requests of its call are complete: if the endpoint goes
  down, the run ends, and its resumption repeats the failed requests.
"""

import asyncio
import json
import os
import random
import re
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

from spo_jax.config import Settings
from spo_jax.errors import InputError
from spo_jax.generator import Streaming
from spo_jax.program import Completion, Prompt, conversation
from spo_jax.rl.endpoint import web
from spo_jax.rl.endpoint.request_log import LOST, REQUESTS, Request, RequestLog, requests
from spo_jax.rl.endpoint.slots import Slots
from spo_jax.rl.endpoint.web import ENDPOINT_KEYS, LONGEST, Late, Lost, Reply, key, shown

NO_KEY = "none"  # sent if no key is set
CONCURRENCY = 8  # answers at a time, where a run names no number
GIVE_UP = 20  # consecutive failures that end a run
GIVE_UP_AT_FIRST = 3  # the same before the first answer
PATIENCE = 0.5  # seconds between checks for a waiting caller
GRACE = 5.0  # seconds for requests to end; no longer, because garbage of theirs may wait for them
POLL = 0.01  # seconds between checks for free slots
BACKOFF, LONGEST_BACKOFF = 0.5, 8.0  # seconds before the first repetition, doubled, at most
LONGEST_WAIT = 120.0  # seconds that a server may ask for before a repetition
OWNERS = (  # headers and their environment variables, as of OpenAI's own client
    ("openai-organization", "OPENAI_ORG_ID"),
    ("openai-project", "OPENAI_PROJECT_ID"),
)
STREAM = {"stream": True, "stream_options": {"include_usage": True}}
SEVERAL = re.compile(r"\bn\b|n_cmpl|choices|candidate")  # a refusal of several answers at once
MOST = 2**31  # tokens of a request; a larger count is ignored
GREETING = 10.0  # seconds for the list of models
SHOWN = 5  # models of a list that a person sees
ROOM, EACH = 2**16, 64  # characters of an answer: at most ROOM + EACH per token


class Endpoint(Streaming):
    """Samples from `generator.model` at `endpoint.base_url`.

    Raises InputError for an invalid address, an address with a secret, and a key that cannot be
    sent.
    """

    writes_prose = True

    def __init__(self, config: Settings) -> None:
        self._config = config
        self._url = web.address(str(config.endpoint.base_url), "base_url", ENDPOINT_KEYS)
        key(ENDPOINT_KEYS)
        for name in ("base_url", "model", "request_extra"):
            web.check_kept(str(config.flat()[name]), name, ENDPOINT_KEYS)
        self._extra = json.loads(config.endpoint.request_extra or "{}")
        self._log = RequestLog()
        self._remark: Callable[[str], None] = lambda line: None
        self._length = "max_tokens"  # the endpoint's name for the maximum length
        self._seeded = self._streams = True
        self.slots = Slots(config.endpoint.concurrency or CONCURRENCY)
        self.most = self.slots.most  # answers of one request
        self._fewer = False  # the endpoint was found to give fewer, which is not reported yet

    def open(self, folder: Path, remark: Callable[[str], None]) -> None:
        """Keep a run's requests in its folder, and reuse the answers there."""
        self._log = RequestLog(folder / REQUESTS)
        self._remark = remark

    def greeting(self) -> str:
        """Whether the endpoint answers and lists the model; empty if it does not say."""
        return web.begin(self._greeting()).result()

    def stream(
        self, prompts: Sequence[Prompt], n: int, seed: int
    ) -> Iterator[dict[int, tuple[Completion, ...]]]:
        """`n` completions of each prompt, in parts of about `sample_rows` answers, in order.

        Empty parts come while the next one is not ready. A completion that failed has no text.
        Another call may begin before this one is over; it goes first, and both together have
        `concurrency` answers in flight.
        Raises InputError if the endpoint refuses all requests or is down. Requests with further
        turns may all fail: the answers that they are to mend are there.
        """
        config, wanted = self._config, requests(prompts, n, seed, self._extra)
        new = [request for request in wanted if request not in self._log]
        call = _Call(self, new)
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

    async def _greeting(self) -> str:
        model, answers = self._config.generator.model, f"{self._url} answers"
        seconds = min(GREETING, self._config.endpoint.request_timeout)
        try:
            reply = await self._fetch("GET", "/models", seconds)
            names = reply.value(_names)
        except Late:
            return f"{self._url} does not say within {seconds:g} s which models it has"
        except Lost as lost:
            return f"{self._url} {lost}"
        except ValueError:
            names = []
        if reply.status == 401:
            return f"{self._url} {self._refused(reply, {})}"
        if not names or not reply.fine:
            return ""
        if model in names:
            return f"{answers} and has {model}"
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        listed = shown(", ".join(names[:SHOWN]))
        return f"{answers}, but does not list the model {model}; it lists {listed}{more}"

    # --- one request ------------------------------------------------------------------------------

    async def ask(self, batch: Sequence[Request]) -> int:
        """Request the answers of equal requests at once and keep those that come, from the first
        on. Returns how many came. Raises Failed.
        """
        while True:
            batch = batch[: self.most]
            asked = self._parameters(batch)
            reply = await self._reply(asked)
            if reply.fine:
                break
            if not self._reworded(reply, asked):
                raise self._refused(reply, asked)
        answers = self._read(reply)[: len(batch)]
        self._log.answer(zip(batch, answers, strict=False))
        self._limit(len(answers), len(batch))
        # A server may count only what it does not stream, and costs need counts.
        self._streams = self._streams and answers[0]["completion_tokens"] is not None
        return len(answers)

    async def _reply(self, asked: Mapping[str, Any]) -> Reply:
        """The reply to a request, which is repeated where that may help. Raises Failed."""
        retries, timeout = self._config.endpoint.retries, self._config.endpoint.request_timeout
        backoff = BACKOFF
        for left in reversed(range(retries + 1)):
            wait = 0.0
            try:
                reply = await self._fetch("POST", "/chat/completions", timeout, asked)
            except Lost as lost:
                if not left:
                    raise Failed(str(lost)) from None
            else:
                wait = reply.wait
                if not left or not reply.temporary or wait > LONGEST_WAIT:
                    break
            await asyncio.sleep(wait or backoff * random.uniform(0.75, 1))
            backoff = min(2 * backoff, LONGEST_BACKOFF)
        return reply

    async def _fetch(
        self, method: str, path: str, seconds: float, body: Mapping[str, Any] | None = None
    ) -> Reply:
        headers = {name: own for name, variable in OWNERS if (own := os.environ.get(variable))}
        headers["authorization"] = f"Bearer {key(ENDPOINT_KEYS) or NO_KEY}"
        return await web.fetch(
            method,
            self._url + path,
            seconds=seconds,
            headers=headers,
            body=body,
            heard=self.heard,
            proxies=True,
        )

    def _parameters(self, batch: Sequence[Request]) -> dict[str, Any]:
        config, request = self._config, batch[0]
        return {
            "model": config.generator.model,
            "messages": conversation(request.text, request.system, request.turns),
            "temperature": config.generator.temperature + request.warmer,
            "top_p": config.generator.top_p,
            self._length: config.generator.max_new_tokens,
            **({"n": len(batch)} if len(batch) > 1 else {}),
            **({"seed": request.seed} if self._seeded else {}),
            **(STREAM if self._streams else {}),
            **self._extra,
        }

    def _reworded(self, reply: Reply, asked: dict[str, Any]) -> bool:
        """Adapt the request to the endpoint; returns whether that is possible.

        The maximum length has two names. A refused seed or stream is omitted: nothing depends on
        it. A refused number of answers is halved: servers have limits. The user must fix any other
        refusal.
        """
        if reply.status not in (400, 422):
            return False
        text = reply.error_text()
        if "max_tokens" in asked and "max_completion_tokens" in text:
            self._length = "max_completion_tokens"
            return True
        if "seed" in asked and re.search(r"\bseed\b", text):
            if self._seeded:
                self._remark("The endpoint accepts no seed; requests have none from now on")
            self._seeded = False
            return True
        if "stream" in asked and "stream" in text:
            self._streams = False
            return True
        if asked.get("n", 1) > 1 and SEVERAL.search(text):
            self.most, self._fewer = min(self.most, asked["n"] // 2), True
            return True
        return False

    def _limit(self, came: int, asked: int) -> None:
        """Ask for no more answers at once than came, and say so."""
        if came < min(asked, self.most):
            self.most, self._fewer = came, True
        if self._fewer:
            self._fewer = False
            number = "one answer" if self.most == 1 else f"{self.most} answers"
            self._remark(f"The endpoint gives {number} per request; it reads the prompt for each")

    def _refused(self, reply: Reply, asked: dict[str, Any]) -> "Failed":
        """The failure for a status."""
        code, text = reply.status, reply.error_text()
        if code == 401:  # its message may hold a part of the key
            return Failed(f"refuses the key (401): put a valid one into {ENDPOINT_KEYS[0]}", True)
        if code == 404:
            return Failed(
                f"has no such address or no model {self._config.generator.model} (404: {text}); "
                "base_url usually ends in /v1",
                True,
            )
        if code in (400, 422):
            plain = {k: v for k, v in asked.items() if k not in ("messages", "seed", *STREAM)}
            sent = ", ".join(f"{k} {v}" for k, v in plain.items())
            return Failed(f"refuses a request ({code}: {text}), which says {sent}", True)
        if 300 <= code < 400:
            to = shown(reply.headers.get("location", "")) or "nowhere"
            return Failed(
                f"answered {code}, a redirect to {to}; give --base-url the address that answers "
                "without one",
                True,
            )
        return Failed(f"answered {code}: {text}", not reply.temporary)

    def _read(self, reply: Reply) -> list[dict[str, Any]]:
        """The stored fields of each answer. Raises Failed unless it is a chat completion."""
        if reply.flaw:
            raise Failed(reply.flaw)
        try:
            found: list[dict[str, Any]] = reply.value(self._picked)
        except ValueError as error:
            raise Failed(f"answered without a chat completion ({shown(str(error))})") from None
        return found

    def _picked(self, reply: Any) -> list[dict[str, Any]]:
        """The fields of log entries, before cleaning. Raises ValueError."""
        if isinstance(reply, dict) and reply.get("error") and not reply.get("choices"):
            raise ValueError(web.message(reply))
        try:
            choices = [
                (c["message"].get("content"), c.get("finish_reason")) for c in reply["choices"]
            ]
            usage = reply.get("usage")
        except (AttributeError, LookupError, TypeError):
            choices = []
        if not choices:
            raise ValueError("no choices in it")
        # Without a text, thinking used the whole length, or the text was withheld.
        texts = ["" if text is None else text for text, _ in choices]
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("its content is not a text")
        most = ROOM + EACH * self._config.generator.max_new_tokens
        if (longest := max(map(len, texts))) > most:
            raise ValueError(f"{longest} characters, more than {most}")
        prompt, completion = (
            value if type(value) is int and 0 <= value <= MOST else None
            for name in ("prompt_tokens", "completion_tokens")
            for value in [usage.get(name) if isinstance(usage, dict) else None]
        )
        return [
            {
                "text": text,
                "prompt_tokens": prompt if first or prompt is None else 0,
                "completion_tokens": tokens,
                "finish": _name(finish),
                "model": _name(reply.get("model")),
            }
            for first, text, tokens, (_, finish) in zip(
                [True] + [False] * len(texts),
                texts,
                _shared(completion, texts),
                choices,
                strict=False,
            )
        ]

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
    """The requests of one call, which are sent until all are complete or `stop` is called."""

    def __init__(self, endpoint: Endpoint, wanted: Sequence[Request]) -> None:
        self._endpoint, self._number = endpoint, 0
        self._left = deque(wanted)
        self._coming: dict[str, Future[Completion]] = {request.key: Future() for request in wanted}
        self.failed: list[tuple[Request, Failed]] = []
        self._in_a_row = 0
        self._stopped = threading.Event()
        self._sending = web.begin(self._send()) if wanted else None

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
        if self._sending is not None:
            wait([self._sending], GRACE)

    async def _send(self) -> None:
        self._number = self._endpoint.slots.enter()
        try:
            await self._ask_all()
        except BaseException as error:  # raised again by `take`
            for coming in self._coming.values():
                if not coming.done():
                    coming.set_exception(error)
        finally:
            self._endpoint.slots.leave(self._number)

    async def _ask_all(self) -> None:
        in_flight: set[asyncio.Task[None]] = set()
        try:
            while (self._left or in_flight) and not self._stopped.is_set():
                while batch := self._next():
                    in_flight.add(asyncio.create_task(self._ask(batch)))
                if not in_flight:
                    await asyncio.sleep(POLL)
                    continue
                done, _ = await asyncio.wait(
                    in_flight,
                    timeout=POLL if self._left else PATIENCE,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                for task in done:
                    in_flight.discard(task)
                    task.result()
        finally:
            for task in in_flight:
                task.cancel()
            await asyncio.gather(*in_flight, return_exceptions=True)

    def _next(self) -> list[Request]:
        """The next equal requests, with their slots, if so many are free."""
        left, most = self._left, self._endpoint.most
        equal = takewhile(lambda request: request.asks == left[0].asks, islice(left, most))
        count = sum(1 for _ in equal)
        if not count or not self._endpoint.slots.take(self._number, count):
            return []
        return [left.popleft() for _ in range(count)]

    async def _ask(self, batch: Sequence[Request]) -> None:
        """Request the answers of equal requests; what does not come is left for another time."""
        try:
            came = await self._endpoint.ask(batch)
        except Failed as failure:
            self._in_a_row += 1
            if self._endpoint.hopeless(failure, self._in_a_row):
                raise self._endpoint.gone(failure) from None
            self.failed.extend((request, failure) for request in batch)
            for request in batch:
                self._coming[request.key].set_result(LOST)
        else:
            self._in_a_row = 0
            self._left.extendleft(reversed(batch[came:]))
            for request in batch[:came]:
                completion = self._endpoint.had(request)
                self._endpoint.answered(completion)
                self._coming[request.key].set_result(completion)
        finally:
            self._endpoint.slots.give(len(batch))


def _names(reply: Any) -> list[str]:
    """The models in a server's list. Raises ValueError."""
    try:
        return [name for each in reply["data"] if (name := _name(each["id"]))]
    except (KeyError, TypeError):
        raise ValueError("no list of models") from None


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and len(value) <= LONGEST else None


def _shared(tokens: int | None, texts: Sequence[str]) -> list[int | None]:
    """The tokens of a reply by answer: a server counts them together, so by their lengths."""
    if tokens is None:
        return [None] * len(texts)
    lengths = [len(text) for text in texts]
    shares = [tokens * length // max(1, sum(lengths)) for length in lengths]
    return [tokens - sum(shares[1:]), *shares[1:]]

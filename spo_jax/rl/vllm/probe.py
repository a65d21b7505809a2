"""Checks that a server serves the weights of the trainer.

Both score a fixed text: each of its tokens, computed by the server without its
cache, and the likely tokens after some of its prefixes, where the server may use its cache. The
second detects an adapter under a used name or path, the first every other mistake.

The server's scores must be close to the trainer's (never equal, in bfloat16). They must also be
closer to them than to the trainer's scores with other weights that the server has or had. At first
an adapter changes a text by less than bfloat16 does, but not at random, so a thousand tokens
distinguish the two.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from spo_jax.errors import InputError
from spo_jax.rl.updates.trainer import AdapterTrainer, Learner
from spo_jax.rl.vllm.client import WARM, Client

TEXT = Path(__file__)  # natural text, on which bfloat16 errs less than on one in random order
LENGTH = 1200  # tokens of the text; a cache has blocks of up to some 550 tokens
NEXT = 24  # prefixes with likely tokens; the errors after one prefix are correlated
WIDTH = 8  # requests in flight
ASKED = 3  # requests per prefix: a server may cache it only at its second; 1 if it caches none
SEEN = 1e-3  # mean change by an adapter that is visible even in bfloat16
SURE = 12.0  # standard deviations between two distinguishable weights
EXACT = 1e-4  # nats; the least noise of any server
CACHED = "with its cache"  # the kind of the reading of likely tokens


@dataclass(frozen=True, eq=False)
class Expected:
    """The trainer's log-probabilities of the text. read: [T - 1] float32. next: [NEXT, V]."""

    read: np.ndarray
    next: np.ndarray


@dataclass(frozen=True)
class ProbeResult:
    """apart: the largest mean difference of a reading, nats per token. share: the smallest position
    of a reading between other weights (0) and the right ones (1, up to noise); NaN if no others are
    distinguishable.
    """

    apart: float
    share: float


@dataclass(frozen=True, eq=False)
class Reading:
    """A server's scores. what: their kind. found: [N]. of: the same scores of an `Expected`."""

    what: str
    found: np.ndarray
    of: Callable[[Expected], np.ndarray]

    def distance(self, some: Expected) -> float:
        """Mean absolute difference, nats per token."""
        return _mean(self.found - self.of(some))

    def share(self, right: Expected, other: Expected, sure: float) -> float:
        """Its position between `other` (0) and `right` (1).

        NaN if their distance is below `sure`: noise would be more than 1 / SURE of it.
        """
        start = self.of(other)
        way = self.of(right) - start
        length = float(way @ way)
        return float((self.found - start) @ way) / length if length >= sure**2 else np.nan


@dataclass(frozen=True, eq=False)
class Probe:
    """The fixed text. tokens: [T] int32. places: lengths of its prefixes, the last T. mode: the
    server's --logprobs-mode.
    """

    tokens: np.ndarray
    places: tuple[int, ...]
    mode: str

    @classmethod
    def of(cls, encode: Callable[[str], np.ndarray], longest: int, mode: str) -> "Probe":
        """The first `LENGTH` tokens of `TEXT`, or `longest`."""
        size = min(LENGTH, longest)
        tokens = encode(TEXT.read_text(encoding="utf-8"))[:size].astype(np.int32)
        return cls(tokens, tuple(-(-len(tokens) * i // NEXT) for i in range(1, NEXT + 1)), mode)

    def expect(self, trainer: AdapterTrainer, learner: Learner, base: bool = False) -> Expected:
        """The trainer's scores with a learner's adapter, or with the base alone."""
        scale = jnp.float32(0.0 if base else trainer.lora.scale)
        found = trainer.read(learner.adapter, scale, self.tokens, self.places)
        return Expected(*map(np.asarray, found))

    def check(
        self,
        client: Client,
        base: tuple[str, Expected],
        adapters: Mapping[str, Expected],
        before: Mapping[str, Expected],
        tolerance: float,
        timeout: float,
    ) -> ProbeResult:
        """Check a server. base: its name and scores. adapters, before: by name, the trainer's
        scores with each adapter, and with the one it replaced.

        Raises InputError if a reading is on average more than `tolerance` nats per token from the
        trainer's, or closer to other weights, or if the server answers with the base although the
        adapter changes it.
        """
        plain = client.read(base[0], self.tokens, timeout)
        noise = plain - base[1].read
        if not (worst := _mean(noise)) <= tolerance:
            raise InputError(
                "the vLLM server does not have the model of the trainer: its log-probabilities of "
                f"a fixed text are {worst:.3g} nats per token from the trainer's, more than "
                f"{tolerance:g} (probe_tolerance)"
            )
        sure = SURE * max(float(np.sqrt(np.mean(noise**2))), EXACT)
        least = np.nan
        for name, own in adapters.items():
            rivals = {"the base": base[1]}
            rivals |= {f"adapter {other}": e for other, e in adapters.items() if other != name}
            if name in before:
                rivals["the previous adapter"] = before[name]
            shift = _mean(own.read - base[1].read)
            for reading in self._readings(client, name, timeout):
                if shift > SEEN and np.array_equal(reading.found, plain):
                    raise InputError(
                        f"the vLLM server answers without adapter {name}, so its answers would not "
                        "be those of the trainer's weights"
                    )
                mean = reading.distance(own)
                if not mean <= tolerance:
                    other = f"; another --logprobs-mode than {self.mode} causes this"
                    raise _wrong(
                        name, reading, f"{mean:.3g} nats per token from the trainer's, more than "
                        f"{tolerance:g} (probe_tolerance)"
                        + (other if reading.what == CACHED else ""),
                    )  # fmt: skip
                worst = max(worst, mean)
                shares = {what: reading.share(own, other, sure) for what, other in rivals.items()}
                if any(share < 0.5 for share in shares.values()):
                    nearest = min(rivals, key=lambda what: reading.distance(rivals[what]))
                    raise _wrong(name, reading, f"closest to those of {nearest}")
                least = np.fmin(least, np.fmin.reduce(list(shares.values())))
        return ProbeResult(worst, float(least))

    def _readings(self, client: Client, name: str, timeout: float) -> Iterator[Reading]:
        yield Reading(
            "without its cache", client.read(name, self.tokens, timeout), lambda e: e.read
        )

        def ask(place: int) -> tuple[np.ndarray, np.ndarray]:
            return client.likely(name, self.tokens[:place], timeout)

        cache = client.cache()
        for _ in range(1 if cache and not cache.prefixes else ASKED):
            whole = ask(self.places[-1])  # first, so that a cache has what the others begin with
            with ThreadPoolExecutor(WIDTH) as pool:
                likely = [*pool.map(ask, self.places[:-1]), whole]
            ids, logprobs = (np.concatenate(x) for x in zip(*likely, strict=True))
            rows = np.repeat(np.arange(len(likely)), [len(x) for x, _ in likely])
            yield Reading(CACHED, logprobs, partial(self._likely, rows, ids))

    def _likely(self, rows: np.ndarray, ids: np.ndarray, expected: Expected) -> np.ndarray:
        if self.mode == "raw_logprobs":
            return expected.next[rows, ids]
        warm = expected.next / np.float32(WARM)
        return warm[rows, ids] - np.logaddexp.reduce(warm, axis=1)[rows]


def _mean(differences: np.ndarray) -> float:
    return float(np.mean(np.abs(differences)))


def _wrong(name: str, reading: Reading, what: str) -> InputError:
    return InputError(
        f"the vLLM server does not serve the trainer's weights: with adapter {name}, "
        f"{reading.what}, its log-probabilities of a fixed text are {what}"
    )

"""Whether a server serves the weights that the trainer holds.

A fixed text is read by both: each of its tokens as the server computes it afresh, and what may
follow some of its beginnings, for which the server may use what it has cached. The second is what
an adapter under a used name or path would spoil, the first what every other mistake would. All is
at temperature 1.

Two questions are asked of each reading. Is it near to what the trainer says? A server in bfloat16
is never the same. And is it nearer to that than to what the trainer says of other weights that the
server has or had? An adapter changes a text by less than bfloat16 does at first, but not by chance,
so that over a thousand tokens the two can be told apart.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import jax.numpy as jnp
import numpy as np

from spo_jax.errors import InputError
from spo_jax.rl.trainer import Learner, Trainer
from spo_jax.rl.vllm.client import Client

TEXT = """\
STRATEGY: Removes a run of neighbouring customers around a random seed node, more of them the longer
the search has not improved, so that the repair may reorder a whole region.

CODE:
```python
def destroy(dist, current_tour, steps_since_improvement, rng):
    n = len(current_tour)
    count = max(1, min(35 * n // 100, 3 + steps_since_improvement // 5))
    seed = rng.choice(current_tour)
    near = sorted(current_tour, key=lambda node: dist[seed][node])[:count]
    removed = set(near)
    kept = [node for node in current_tour if node not in removed]
    return kept, near
```

"""
LENGTH = 1200  # tokens of it that are read; a cache is kept in blocks of up to some 550 tokens
NEXT = 24  # beginnings of it after which likely tokens are asked for: those of one err together
ASKED = 3  # times each: a server may cache a beginning only when it has been asked for twice
SEEN = 1e-3  # a mean change by an adapter that even a server in bfloat16 shows
SURE = 12.0  # standard deviations between two weights that are held to be told apart
EXACT = 1e-4  # nats; no server is nearer than that
CACHED = "with its cache"  # how a server is asked for likely tokens


@dataclass(frozen=True, eq=False)
class Expected:
    """What the trainer says of the probe's tokens. read: [T - 1] float32. next: [NEXT, V]."""

    read: np.ndarray
    next: np.ndarray


@dataclass(frozen=True)
class Found:
    """apart: the largest mean difference of a reading, nats a token. share: the smallest part of
    the way from other weights to the right ones, which is 1 for the right ones but for noise, and 0
    for the others; NaN where none can be told apart from the right ones.
    """

    apart: float
    share: float


@dataclass(frozen=True, eq=False)
class Reading:
    """What a server says. what: how it was asked. found: [N]. of: the same of an `Expected`."""

    what: str
    found: np.ndarray
    of: Callable[[Expected], np.ndarray]

    def distance(self, some: Expected) -> float:
        """Mean size of the difference, nats a token."""
        return _mean(self.found - self.of(some))

    def share(self, right: Expected, other: Expected, sure: float) -> float:
        """How much of the way from `other` to `right` it has gone.

        NaN where the way is shorter than `sure`: noise would be more than 1 / SURE of it.
        """
        start = self.of(other)
        way = self.of(right) - start
        length = float(way @ way)
        return float((self.found - start) @ way) / length if length >= sure**2 else np.nan


@dataclass(frozen=True, eq=False)
class Probe:
    """The fixed text. tokens: [T] int32. places: lengths of its beginnings, the last all of it."""

    tokens: np.ndarray
    places: tuple[int, ...]

    @classmethod
    def of(cls, encode: Callable[[str], np.ndarray], longest: int) -> "Probe":
        """`TEXT`, then its tokens in other orders: `LENGTH` tokens in all, or `longest`.

        In the same order a model would be sure of them, whatever its adapter.
        """
        own, size = encode(TEXT), min(LENGTH, longest)
        rng = np.random.default_rng(0)
        parts = [own, *(rng.permutation(own) for _ in range(size // len(own)))]
        tokens = np.concatenate(parts)[:size].astype(np.int32)
        return cls(tokens, tuple(-(-size * i // NEXT) for i in range(1, NEXT + 1)))

    def expect(self, trainer: Trainer, learner: Learner, base: bool = False) -> Expected:
        """What the trainer says with a learner's adapter, or with the base alone."""
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
    ) -> Found:
        """How right a server is. base: its name. adapters, before: by name, what the trainer says
        of each, and of what was served in its place before.

        Raises InputError where a reading is more than `tolerance` nats a token from the trainer's
        on average, or nearer to other weights, or where the server answers with the base although
        the adapter changes it.
        """
        plain = client.read(base[0], self.tokens, timeout)
        noise = plain - base[1].read
        if not (worst := _mean(noise)) <= tolerance:
            raise InputError(
                "the vLLM server does not have the model of the trainer: its log-probabilities of "
                f"a fixed text are {worst:.3g} nats a token from the trainer's, where "
                f"{tolerance:g} are expected at most (probe_tolerance)"
            )
        sure = SURE * max(float(np.sqrt(np.mean(noise**2))), EXACT)
        least = np.nan
        for name, own in adapters.items():
            rivals = {"the base": base[1]}
            rivals |= {f"adapter {other}": e for other, e in adapters.items() if other != name}
            if name in before:
                rivals["the adapter before it"] = before[name]
            shift = _mean(own.read - base[1].read)
            for reading in self._readings(client, name, timeout):
                if shift > SEEN and np.array_equal(reading.found, plain):
                    raise InputError(
                        f"the vLLM server answers as if adapter {name} were not there, so its "
                        "answers would not be those of the weights that learn"
                    )
                mean = reading.distance(own)
                if not mean <= tolerance:
                    other = "; a server whose --logprobs-mode is another differs in this reading"
                    raise _wrong(
                        name, reading, f"{mean:.3g} nats a token from the trainer's, where "
                        f"{tolerance:g} are expected at most (probe_tolerance)"
                        + (other if reading.what == CACHED else ""),
                    )  # fmt: skip
                worst = max(worst, mean)
                shares = {what: reading.share(own, other, sure) for what, other in rivals.items()}
                if any(share < 0.5 for share in shares.values()):
                    nearest = min(rivals, key=lambda what: reading.distance(rivals[what]))
                    raise _wrong(name, reading, f"rather those of {nearest}")
                least = np.fmin(least, np.fmin.reduce(list(shares.values())))
        return Found(worst, float(least))

    def _readings(self, client: Client, name: str, timeout: float) -> Iterator[Reading]:
        yield Reading("read afresh", client.read(name, self.tokens, timeout), lambda e: e.read)
        for _ in range(ASKED):
            likely = [client.likely(name, self.tokens[:place], timeout) for place in self.places]
            ids, logprobs = (np.concatenate(x) for x in zip(*likely, strict=True))
            rows = np.repeat(np.arange(len(likely)), [len(x) for x, _ in likely])
            yield Reading(CACHED, logprobs, partial(_at, rows, ids))


def _at(rows: np.ndarray, ids: np.ndarray, expected: Expected) -> np.ndarray:
    return expected.next[rows, ids]


def _mean(differences: np.ndarray) -> float:
    return float(np.mean(np.abs(differences)))


def _wrong(name: str, reading: Reading, what: str) -> InputError:
    return InputError(
        f"the vLLM server does not serve the weights that learn: with adapter {name}, "
        f"{reading.what}, its log-probabilities of a fixed text are {what}"
    )

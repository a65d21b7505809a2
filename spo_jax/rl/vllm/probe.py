"""Whether a server serves the weights that the trainer holds.

A fixed text is read by both: each of its tokens as the server computes it afresh, and the most
probable next token after some of its beginnings, for which the server may use what it has cached.
The second is what an adapter under a used name or path would spoil, the first what every other
mistake would. All is at temperature 1.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

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
LENGTH = 192  # tokens of it that are read
NEXT = 4  # beginnings of it after which the next token is asked for
SEEN = 1e-3  # a mean change by an adapter that even a server in bfloat16 shows


@dataclass(frozen=True, eq=False)
class Expected:
    """What the trainer says of the probe's tokens. read: [T - 1] float32. next: [NEXT, V]."""

    read: np.ndarray
    next: np.ndarray


@dataclass(frozen=True, eq=False)
class Probe:
    """The fixed text. tokens: [T] int32. places: lengths of its beginnings, the last all of it."""

    tokens: np.ndarray
    places: tuple[int, ...]

    @classmethod
    def of(cls, encode: Callable[[str], np.ndarray], longest: int) -> "Probe":
        """`TEXT`, as often as it takes to have `LENGTH` tokens or `longest`."""
        own = encode(TEXT)
        size = min(LENGTH, longest)
        tokens = np.tile(own, -(-size // len(own)))[:size].astype(np.int32)
        return cls(tokens, tuple(-(-size * i // NEXT) for i in range(1, NEXT + 1)))

    def expect(self, trainer: Trainer, learner: Learner, base: bool = False) -> Expected:
        """What the trainer says with a learner's adapter, or with the base alone."""
        scale = 0.0 if base else trainer.lora.scale
        table = np.asarray(trainer.table(learner.adapter, jnp.float32(scale), self.tokens))
        read = np.take_along_axis(table[:-1], self.tokens[1:, None], axis=1)[:, 0]
        return Expected(read, table[[place - 1 for place in self.places]])

    def check(
        self,
        client: Client,
        base: str,
        expected: Mapping[str, Expected],
        expected_base: Expected,
        tolerance: float,
        timeout: float,
    ) -> float:
        """The largest mean difference of an adapter. expected: by the adapters' names.

        Raises InputError where it exceeds `tolerance` nats a token, or where the server answers
        with the base although the adapter changes it.
        """
        plain = client.read(base, self.tokens, timeout)
        worst = 0.0
        for name, own in expected.items():
            found = client.read(name, self.tokens, timeout)
            shift = float(np.mean(np.abs(own.read - expected_base.read)))
            if shift > SEEN and np.array_equal(found, plain):
                raise InputError(
                    f"the vLLM server answers as if adapter {name} were not there, so its answers "
                    "would not be those of the weights that learn"
                )
            asked = self._next(client, name, timeout)
            cached = [
                row[token] - logprob for row, (token, logprob) in zip(own.next, asked, strict=True)
            ]
            apart = {
                "read afresh": float(np.mean(np.abs(found - own.read))),
                "with its cache": float(np.mean(np.abs(cached))),
            }
            for what, mean in apart.items():
                if not mean <= tolerance:
                    raise InputError(
                        f"the vLLM server does not serve the weights that learn: with adapter "
                        f"{name}, {what}, its log-probabilities of a fixed text are {mean:.3g} "
                        f"nats a token from the trainer's, where {tolerance:g} are expected at "
                        "most (probe_tolerance)"
                    )
            worst = max(worst, *apart.values())
        return worst

    def _next(self, client: Client, name: str, timeout: float) -> list[tuple[int, float]]:
        return [client.next(name, self.tokens[:place], timeout) for place in self.places]

"""The samples of an update: by generation context, with their advantages, and as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import jax
import numpy as np

from spo_jax.errors import InputError


@dataclass(frozen=True, eq=False)
class TokenGroup:
    """The samples of one generation context, as tokens.

    name: for messages. prompt: [Tp] int32. completions: B arrays [T] int32. logprobs: B arrays [T]
    float32, of the sampler before truncation. credits: [B] float64, NaN without one.
    failed: [B] bool, no credit by the sample's own fault; None if unknown. prompts: B arrays, what
    each sample answered, where that is not `prompt` for all; empty if it is. by_pair: [B, K], and
    others: [M] float64, as in `spo_jax.program.Group`.
    Raises InputError if these differ in number or length.
    """

    name: str
    prompt: np.ndarray
    completions: Sequence[np.ndarray]
    logprobs: Sequence[np.ndarray]
    credits: np.ndarray
    failed: np.ndarray | None = None
    prompts: Sequence[np.ndarray] = ()
    by_pair: np.ndarray | None = None
    others: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        B = len(self.completions)
        failed = B if self.failed is None else len(self.failed)
        pairs = B if self.by_pair is None else len(self.by_pair)
        if {len(self.logprobs), len(self.credits), failed, len(self.prompts) or B, pairs} != {B}:
            raise InputError(
                f"group {self.name}: its samples, log-probabilities and credits differ in number"
            )
        if not all(len(prompt) for prompt in (self.prompt, *self.prompts)):
            raise InputError(f"group {self.name}: its prompt is empty")

    def prompt_of(self, i: int) -> np.ndarray:
        """[Tp] int32: what sample i answered."""
        return self.prompts[i] if len(self.prompts) else self.prompt

    def usable(self) -> np.ndarray:
        """[B] bool: samples with a finite log-probability for each token."""
        pairs = zip(self.completions, self.logprobs, strict=True)
        return np.array(
            [
                0 < len(tokens) == len(logs) and bool(np.isfinite(logs).all())
                for tokens, logs in pairs
            ],
            bool,
        )


@dataclass(frozen=True, eq=False)
class WeightedSample:
    """A sample with its advantage. weight: in the objective, 1 / (samples of its group x
    groups)."""

    group: int
    prompt: np.ndarray
    tokens: np.ndarray
    logprobs: np.ndarray
    advantage: float
    weight: float


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Batch:
    """The arrays of one gradient call: G prompts, each with m rows in each of K rounds.

    prompts: [G, P] int32, padded on the left; prompt_mask: [G, P] bool. tokens: [K, G m, C] int32,
    padded on the right; mask: [K, G m, C] bool; logprobs: [K, G m, C] float32 of the sampler.
    advantage, weight: [K, G m] float32; a padding row has weight zero. reference: [K, G m, C]
    float32, log-probabilities of the base alone, for objectives that compare with it.
    """

    prompts: jax.Array
    prompt_mask: jax.Array
    tokens: jax.Array
    mask: jax.Array
    logprobs: jax.Array
    advantage: jax.Array
    weight: jax.Array
    reference: jax.Array | None = None

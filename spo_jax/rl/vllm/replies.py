"""What a vLLM server replies: a refusal, or an answer that is checked for the trainer."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spo_jax.errors import InputError
from spo_jax.program import Completion
from spo_jax.rl.endpoint.web import Lost, shown
from spo_jax.rl.tokens import Tokenizer

UNREADABLE = "\ufffd"  # replaces undecodable bytes


class Refused(InputError):
    """A server's refusal. status: of HTTP."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Sampling:
    """Sampling parameters; fields as in `rl.sampling.SamplingConfig`. timeout: seconds."""

    n: int
    temperature: float
    top_p: float
    max_new_tokens: int
    stop_tokens: tuple[int, ...]
    timeout: float


def read_choice(choice: Mapping[str, Any], tokenizer: Tokenizer, how: Sampling) -> Completion:
    """An answer for the trainer: tokens with their final stop token.

    Raises Lost for an aborted answer. Raises InputError if our tokenizer does not turn the tokens
    into the text, if a token lacks a finite log-probability, or if the answer does not end at its
    first stop token.
    """
    if (finish := choice.get("finish_reason")) not in ("stop", "length"):
        raise Lost(f"broke off an answer ({shown(str(finish))})")
    tokens, logprobs = _tokens(choice)
    if tokens.min() < 0 or tokens.max() >= tokenizer.size:
        raise InputError(
            f"the vLLM server answered with token {int(tokens.max())}, which the tokenizer of the "
            "model folder does not have: both must use the same folder"
        )
    text = tokenizer.decode(tokens)
    # Tokens may end within a character; a server omits that part.
    if UNREADABLE not in text and text != choice.get("text"):
        raise InputError(
            "the text of an answer of the vLLM server is not that of its tokens: it must use the "
            "tokenizer of the model folder"
        )
    ends = np.isin(tokens, how.stop_tokens)
    stopped = bool(ends[-1])
    if ends[:-1].any() or (finish == "stop") != stopped:
        raise InputError(
            f"an answer of the vLLM server ended by {finish!r} and its stop token is "
            f"{'not its last' if ends.any() else 'not in it'}; both must have the same stop tokens"
        )
    if len(tokens) > how.max_new_tokens:
        raise InputError(
            f"an answer of the vLLM server has {len(tokens)} tokens; the request allows "
            f"{how.max_new_tokens}"
        )
    return Completion(text, tokens, logprobs)


def _tokens(choice: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """A choice's tokens [T] int32 and log-probabilities [T] float32, T at least one."""
    tokens = choice.get("token_ids")
    if not isinstance(tokens, list) or not tokens or not all(map(_is_small, tokens)):
        raise InputError("the vLLM server returns no token ids; use a newer version of vLLM")
    logprobs: Any = choice.get("logprobs")
    given: Any = logprobs.get("token_logprobs") if isinstance(logprobs, dict) else None
    known = isinstance(given, list) and all(_is_small(x) or type(x) is float for x in given)
    if not known or len(given) != len(tokens) or not all(map(math.isfinite, given)):
        raise InputError(
            f"the vLLM server gave {len(given) if known else 'no'} log-probabilities to "
            f"{len(tokens)} tokens; each token needs a finite one"
        )
    return np.array(tokens, np.int32), np.array(given, np.float32)


def _is_small(given: Any) -> bool:
    """Whether it is an integer that NumPy can hold."""
    return type(given) is int and abs(given) < 2**31

"""Rounds lengths up to buckets, so that programs are compiled for few shapes.

There are two buckets per octave, multiples of 64: padding adds at most half of a sequence, and a
context of 8,192 tokens has fourteen buckets. Prompts are padded on the left, next to their
completions, and completions on the right.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SMALLEST = 64


@dataclass(frozen=True)
class Ladder:
    """The lengths that are compiled for.

    prompt, completion: the least, a power of two times 64. powers: of two alone, in lengths and in
    the number of prompts. alike: pad every group to the samples of the largest.
    """

    prompt: int = SMALLEST
    completion: int = SMALLEST
    powers: bool = False
    alike: bool = False

    def of_prompt(self, length: int) -> int:
        """The padded length of a prompt."""
        return max(self.prompt, self._bucket(length))

    def of_completion(self, length: int) -> int:
        """The padded length of a completion."""
        return max(self.completion, self._bucket(length))

    def rung(self, count: int) -> int:
        """The padded number of prompts."""
        return rung(count, self.powers)

    def _bucket(self, length: int) -> int:
        return bucket(length, self.powers)


FINE = Ladder()
# On a CPU: a typical prompt with a parent or two, and a typical program. One compilation takes as
# long as a hundred updates of the model that ships, so its first, short prompts are padded too.
FEW = Ladder(256, 128, powers=True, alike=True)
# Of a large model on a card: an update compiles for minutes. What is padded are short answers.
LARGE = Ladder(1024, 512, alike=True)


def bucket(length: int, powers: bool = False) -> int:
    """The smallest of 64, 128, 192, 256, 384, 512, 768, 1024, ... that is at least `length`.

    powers: of 64 and its products with powers of two.
    """
    return SMALLEST * rung(-(-length // SMALLEST), powers)


def rung(count: int, powers: bool = False) -> int:
    """The smallest of 1, 2, 3, 4, 6, 8, 12, 16, 24, ... that is at least `count`.

    powers: of the powers of two.
    """
    power = 1 << max(count - 1, 0).bit_length()
    if powers:
        return power
    lower = power - power // 4
    return lower if power >= 4 and count <= lower else power


def pad_left(
    rows: Sequence[np.ndarray], width: int, fill: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of tokens ending in the last column: tokens [B, width] int32 and mask [B, width] bool.

    No row may be longer than `width`.
    """
    tokens = np.full((len(rows), width), fill, np.int32)
    mask = np.zeros((len(rows), width), bool)
    for i, row in enumerate(rows):
        start = width - len(row)
        tokens[i, start:], mask[i, start:] = row, True
    return tokens, mask


def pad_right(
    rows: Sequence[np.ndarray], width: int, fill: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of tokens starting in the first column; otherwise as `pad_left`."""
    tokens = np.full((len(rows), width), fill, np.int32)
    mask = np.zeros((len(rows), width), bool)
    for i, row in enumerate(rows):
        tokens[i, : len(row)], mask[i, : len(row)] = row, True
    return tokens, mask

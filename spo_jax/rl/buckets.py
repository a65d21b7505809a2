"""Rounds lengths up to buckets, so that programs are compiled for few shapes.

There are two buckets per octave, multiples of 64: padding adds at most half of a sequence, and a
context of 8,192 tokens has fourteen buckets. Prompts are padded on the left, next to their
completions, and completions on the right.
"""

from collections.abc import Sequence

import numpy as np

SMALLEST = 64
# On a CPU: a typical prompt with a parent or two, and a typical program. One compilation takes as
# long as a hundred updates of the model that ships, so its first, short prompts are padded too.
COARSE_PROMPT, COARSE_COMPLETION = 256, 128


def bucket(length: int, coarse: int = 0) -> int:
    """The smallest of 64, 128, 192, 256, 384, 512, 768, 1024, ... that is at least `length`.

    coarse: if positive, of this power of two and those above: fewer programs, more padding.
    """
    if coarse:
        return max(coarse, 1 << (length - 1).bit_length())
    return SMALLEST * rung(-(-length // SMALLEST))


def rung(count: int, coarse: bool = False) -> int:
    """The smallest of 1, 2, 3, 4, 6, 8, 12, 16, 24, ... that is at least `count`.

    coarse: of the powers of two.
    """
    power = 1 << max(count - 1, 0).bit_length()
    if coarse:
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

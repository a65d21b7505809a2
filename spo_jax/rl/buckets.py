"""Lengths rounded up to a ladder, so that programs are compiled for few shapes.

The ladder has two rungs an octave, multiples of 64: padding costs at most half of a sequence, and a
context of 8,192 tokens has fourteen rungs. Prompts are padded on the left, so that the tokens that
follow stand beside them, and completions on the right.
"""

from collections.abc import Sequence

import numpy as np

SMALLEST = 64


def bucket(length: int, coarse: bool = False) -> int:
    """The smallest of 64, 128, 192, 256, 384, 512, 768, 1024, ... that is at least `length`.

    coarse: of 128, 256, 512, 1024, ...: a third of the programs for more padding.
    """
    if coarse:
        return max(2 * SMALLEST, 1 << (length - 1).bit_length())
    return SMALLEST * rung(-(-length // SMALLEST))


def rung(count: int) -> int:
    """The smallest of 1, 2, 3, 4, 6, 8, 12, 16, 24, ... that is at least `count`."""
    power = 1 << max(count - 1, 0).bit_length()
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
    """Rows of tokens beginning in the first column; otherwise as `pad_left`."""
    tokens = np.full((len(rows), width), fill, np.int32)
    mask = np.zeros((len(rows), width), bool)
    for i, row in enumerate(rows):
        tokens[i, : len(row)], mask[i, : len(row)] = row, True
    return tokens, mask

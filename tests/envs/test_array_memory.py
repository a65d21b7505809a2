"""Whatever NumPy hands out reads as zeros until it is written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("poisoned.py")


def poisoned(allocator: str, calls: int, seed: int) -> tuple[set[str], int]:
    """The functions that handed out poison, and how many calls returned."""
    found = subprocess.run(
        [sys.executable, str(SCRIPT), allocator, str(calls), str(seed)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    ).stdout
    returned = re.search(r"^(\d+) calls returned", found, re.M)
    assert returned is not None, found
    return set(re.findall(r"^POISON (.*)$", found, re.M)), int(returned[1])


@pytest.mark.slow
def test_no_function_hands_out_memory_that_nobody_wrote() -> None:
    guilty, returned = poisoned("zeroed", 1, 0)
    assert not guilty
    assert returned > 400


def test_the_search_finds_what_numpy_does_by_itself() -> None:
    guilty, _ = poisoned("plain", 0, 0)
    assert {"chosen 0", "chosen 2", "chosen 3"} <= guilty


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_function_hands_out_memory_that_nobody_wrote_at_length(seed: int) -> None:
    guilty, returned = poisoned("zeroed", 8, seed)
    assert not guilty
    assert returned > 2000

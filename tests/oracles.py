"""Libraries that tests of the learning half compare with: torch, transformers, peft and trl.

They are the extra `oracles`, and large: torch for CPUs is not built for every Python, and its build
for GPUs takes gigabytes. Where SPO_WITHOUT_ORACLES=1 says that they were left out, what needs one
is skipped. Elsewhere a missing one is an error, so that no comparison is lost unnoticed.
"""

import importlib
import os
from typing import Any

import pytest


def oracle(name: str) -> Any:
    """The module of that name. A test, a fixture or a whole file is skipped if it was left out.

    Raises ModuleNotFoundError where it is missing and SPO_WITHOUT_ORACLES is not 1.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if os.environ.get("SPO_WITHOUT_ORACLES") == "1":
            pytest.skip(f"{name} was left out (SPO_WITHOUT_ORACLES=1)", allow_module_level=True)
        error.add_note("The extra `oracles` has it; SPO_WITHOUT_ORACLES=1 runs the tests without.")
        raise
